"""The workloads in one table: each entry has a request, the servers for it, and the targets of its rows."""

import dataclasses
import os

DEVICE = "ab" * 32
TOPIC = "com.example.app"


@dataclasses.dataclass(frozen=True)
class Push:
    """The requests, the same for both servers."""

    bytes: int = 1024
    connections: int = 1
    # Concurrent streams per connection.
    streams: int = 100
    topic: str = TOPIC
    device: str = DEVICE
    # If more than one: this many numbered device tokens in turn, instead of `device`.
    devices: int = 1
    # Whether the provider token's signature is invalid.
    is_forged: bool = False
    # If not zero: the connection is replaced after this many pushes, with a new provider token if
    # `has_fresh_tokens`.
    each_connection: int = 0
    has_fresh_tokens: bool = False
    # If not zero: all pushes use one connection, and the provider token is signed anew after this many.
    each_token: int = 0
    # Whether faults end streams and connections, so that each push's response is compared with its record.
    is_tracked: bool = False
    # Threads of the load generator.
    threads: int = 1

    @property
    def paths(self):
        if self.devices == 1:
            return [f"/3/device/{self.device}"]
        return [f"/3/device/{number:064x}" for number in range(1, self.devices + 1)]  # 0 is rejected

    @property
    def is_plain(self):
        """Whether h2load can send these pushes with one call."""
        return not (self.each_connection or self.each_token or self.is_tracked)


@dataclasses.dataclass(frozen=True)
class Mock:
    """apns-mock, which must respond with each of these statuses and no other."""

    statuses: tuple = (200,)
    threads: int = 1
    flags: tuple = ()
    # The settings below `apns:` in the config file.
    settings: tuple = ()
    # Devices registered through the admin API beforehand.
    devices: tuple = ()
    # If not zero: this many devices of the app TOPIC are registered by a fixture file. Their tokens are those that
    # `Push.devices` numbers.
    registered: int = 0
    # The fault profile that is selected once the inbox is full.
    profile: str = None
    # Whether pushes are forwarded to a second server, which shares the core of the load.
    has_upstream: bool = False
    # The readers of the inbox during the measurement: a method of `Readers`.
    readers: str = None


@dataclasses.dataclass(frozen=True)
class Nghttpd:
    """nghttpd with one thread."""

    statuses: tuple = (200,)


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    about: str
    push: Push = Push()
    ours: Mock = Mock()
    theirs: object = Nghttpd()
    # The figures to compare, one report row each: "cpu_us", the CPU time of the whole server, and "loops_us", that
    # of its event loops, both in µs per push; "per_second", pushes per second.
    figures: tuple = ("cpu_us",)
    # The highest acceptable ratio of each figure; for pushes per second the lowest.
    targets: tuple = (None,)
    # Pushes per run; few enough for the inbox to hold all of them, or to evict none of a growing one.
    pushes: int = 50_000
    # How it is measured: a key of `MEASURES` in bench.py.
    measure: str = "duel"
    # The number of clients that wait for pushes.
    waits: int = 0
    # Whether memory is not touched beforehand.
    has_fresh_memory: bool = False
    # Cores needed for a meaningful result.
    cores: int = 2
    # Whether the server gets two cores, on machines with at least four.
    has_wide_server: bool = False


NGHTTPD = (0.7,)
BAD_DEVICE = Push(device="not-a-device-token")
DEAD = {"token": DEVICE, "topic": TOPIC, "state": "unregistered"}
HUNDRED_AT_ONCE = (("first_streams", 100),)
# More devices would not fit into nghttpd's cache of open files, and make it slower.
THOUSAND_DEVICES = Push(devices=1000)
# With the run that warms up, eight runs of this many fill an inbox with a million records.
EIGHTH = 125_000

WORKLOADS = [
    # The first, because the others leave memory behind that is no longer fresh.
    Workload("growing-fresh", "growing inbox, memory never used before", THOUSAND_DEVICES, pushes=EIGHTH,
             measure="growing", has_fresh_memory=True),
    Workload("token", "1 KB by provider token, one connection", targets=NGHTTPD),
    Workload("crowd", "1 KB, 8 connections x 100 streams", Push(connections=8), targets=NGHTTPD),
    Workload("4-KB", "4 KB, one connection", Push(bytes=4096), pushes=25_000, targets=NGHTTPD),
    Workload("400", "rejected: BadDeviceToken", BAD_DEVICE, Mock((400,)), targets=NGHTTPD),
    Workload("400-topic", "rejected: BadTopic", Push(topic="com example app"), Mock((400,)), targets=NGHTTPD),
    # As in APNs, a connection is limited to one stream until it has presented a valid token, hence the two
    # workloads.
    Workload("403", "rejected: InvalidProviderToken, setting first_streams: 100", Push(is_forged=True),
             Mock((403,), settings=HUNDRED_AT_ONCE), targets=NGHTTPD),
    Workload("403-one", "rejected: InvalidProviderToken, one stream at a time", Push(is_forged=True, streams=1),
             Mock((403,), flags=("--max-records", "20000")), pushes=20_000, targets=(1.0,)),
    Workload("410", "rejected: Unregistered", Push(), Mock((410,), devices=(DEAD,)), targets=NGHTTPD),
    Workload("413", "rejected: PayloadTooLarge, 5 KB", Push(bytes=5120), Mock((413,)), pushes=25_000, targets=NGHTTPD),
    Workload("growing", "growing inbox, memory used before", THOUSAND_DEVICES, pushes=EIGHTH, measure="growing",
             targets=(1.0,)),
    Workload("new-signature", "a JWT signed anew each 100 pushes, one connection", Push(each_token=100),
             pushes=20_000, targets=(1.0,)),
    Workload("new-connection", "a new connection each 100 pushes, the same JWT", Push(each_connection=100),
             pushes=6000, targets=(0.95,)),
    Workload("connection-per-push", "a new connection for each push, the same JWT", Push(each_connection=1),
             pushes=500, targets=(0.85,)),
    Workload("new-token", "a new connection with a new JWT each 100 pushes",
             Push(each_connection=100, has_fresh_tokens=True), pushes=6000, targets=(1.15,)),
    # The profile rejects a push on its first attempt only, so each push has its own device token.
    Workload("faults", "profile flaky-503 against healthy", Push(devices=50_000),
             Mock((200, 503), flags=("--profile", "flaky-503")), Mock(), targets=(1.05,)),
    # With more streams, each reset of a connection would lose most of the connection's pushes.
    Workload("chaos", "profile chaos-mix without delays against healthy",
             Push(devices=5000, streams=10, is_tracked=True), Mock(profile="chaos-immediate"), Mock(), pushes=5000,
             targets=(1.15,)),
    Workload("registered", "1,000 registered devices, delivery log on, against none registered",
             THOUSAND_DEVICES, Mock(registered=1000), Mock(), targets=(1.15,)),
    Workload("unregistered", "a device that is not among 100,000 registered ones, against none registered",
             Push(), Mock(registered=100_000), Mock(), targets=(1.02,)),
    Workload("relay", "forwarded by --upstream, against not forwarded", ours=Mock(has_upstream=True), theirs=Mock(),
             targets=(2.2,), pushes=25_000),
    Workload("relay-one", "forwarded one by one, against not forwarded", Push(streams=1), Mock(has_upstream=True), Mock(),
             targets=(2.2,), pushes=5000),
    Workload("threads-cpu", "two threads against one, on one core", Push(connections=8), Mock(threads=2), Mock(),
             targets=(1.05,)),
    Workload("threads", "two threads against one, on two cores", Push(connections=8, threads=2), Mock(threads=2),
             Mock(), figures=("per_second",), targets=(1.7,), cores=4, has_wide_server=True),
    Workload("reading", "web UI, tail and a query per second, against no readers", Push(), Mock(readers="usual"),
             Mock(), figures=("loops_us", "per_second"), targets=(1.05, 0.85), pushes=150_000, has_wide_server=True),
    Workload("reading-hard", "many expensive queries and waits, against no readers", Push(), Mock(readers="hard"),
             Mock(), figures=("loops_us", "per_second"), targets=(None, None), has_wide_server=True),
    Workload("waits", "pushes while 10,000 clients wait for others, against none waiting", Push(), Mock(), Mock(),
             targets=(1.05,), measure="waits", waits=10_000),
    Workload("idle-connection", "memory of an idle connection", Push(connections=2000), measure="idle_connection"),
    Workload("start", "an idle server", ours=Mock(threads=os.cpu_count()), measure="start_server"),
]

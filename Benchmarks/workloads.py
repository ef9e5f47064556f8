"""The workloads in one table: each entry has a request, the servers for it, and the target for their ratio."""

import dataclasses

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
    # Threads of the load generator.
    threads: int = 1

    @property
    def paths(self):
        if self.devices == 1:
            return [f"/3/device/{self.device}"]
        return [f"/3/device/{number:064x}" for number in range(1, self.devices + 1)]  # 0 is rejected


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
    # Whether clients read the inbox during the measurement.
    is_read: bool = False


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
    # The highest acceptable ratio of the first figure; for pushes per second the lowest.
    target: float = None
    # Pushes per run; few enough for the inbox to hold all of them.
    pushes: int = 50_000
    # If not zero: our server repeats the runs this many times and keeps all records, and its last part is compared
    # with the first part of the other server.
    parts: int = 0
    # Cores needed for a meaningful result.
    cores: int = 2
    # Whether the server gets two cores, on machines with at least four.
    has_wide_server: bool = False


REJECTED = 1.1
BAD_DEVICE = Push(device="not-a-device-token")
DEAD = {"token": DEVICE, "topic": TOPIC, "state": "unregistered"}
HUNDRED_AT_ONCE = (("first_streams", 100),)

WORKLOADS = [
    Workload("token", "1 KB by provider token, one connection", target=1.0),
    Workload("crowd", "1 KB, 8 connections x 100 streams", Push(connections=8), target=1.0),
    Workload("4-KB", "4 KB, one connection", Push(bytes=4096), pushes=25_000, target=1.0),
    Workload("new-signature", "a JWT signed anew each 100 pushes, one connection", Push(each_token=100),
             pushes=20_000, target=1.0),
    Workload("new-connection", "a new connection each 100 pushes, the same JWT", Push(each_connection=100),
             pushes=6000),
    Workload("new-token", "a new connection with a new JWT each 100 pushes",
             Push(each_connection=100, has_fresh_tokens=True), pushes=6000, target=1.0),
    Workload("400", "rejected: BadDeviceToken", BAD_DEVICE, Mock((400,)), target=REJECTED),
    Workload("400-topic", "rejected: BadTopic", Push(topic="com example app"), Mock((400,)), target=REJECTED),
    Workload("400-404", "rejected: BadDeviceToken, against nghttpd's 404, whose response has a body too", BAD_DEVICE,
             Mock((400,)), Nghttpd((404,))),
    # As in APNs, a connection is limited to one stream until it has presented a valid token, hence the two
    # workloads.
    Workload("403", "rejected: InvalidProviderToken, setting first_streams: 100", Push(is_forged=True),
             Mock((403,), settings=HUNDRED_AT_ONCE), target=REJECTED),
    Workload("403-one", "rejected: InvalidProviderToken, one stream at a time", Push(is_forged=True, streams=1),
             Mock((403,), flags=("--max-records", "20000")), pushes=20_000, target=REJECTED),
    Workload("410", "rejected: Unregistered", Push(), Mock((410,), devices=(DEAD,)), target=REJECTED),
    Workload("413", "rejected: PayloadTooLarge, 5 KB", Push(bytes=5120), Mock((413,)), pushes=25_000,
             target=REJECTED),
    # The profile rejects a push on its first attempt only, so each push has its own device token.
    Workload("faults", "profile flaky-503 against healthy, 50,000 devices", Push(devices=50_000),
             Mock((200, 503), flags=("--profile", "flaky-503")), Mock(), target=1.1),
    Workload("registered", "pushes to 1,000 registered devices, which are online, against the same devices unregistered",
             Push(devices=1000), Mock(registered=1000), Mock(), target=1.15),
    Workload("unregistered", "pushes to a device that is not registered, with 100,000 others that are, against without",
             Push(), Mock(registered=100_000), Mock(), target=1.02),
    Workload("reading", "the inbox is read too, against not: CPU of the event loops, pushes a second", Push(),
             Mock(is_read=True), Mock(), figures=("loops_us", "per_second"), has_wide_server=True),
    Workload("threads-cpu", "two threads against one, on one core: CPU", Push(connections=8), Mock(threads=2), Mock()),
    Workload("threads", "two threads against one, on two cores: pushes a second", Push(connections=8, threads=2),
             Mock(threads=2), Mock(), figures=("per_second",), target=1.7, cores=4, has_wide_server=True),
    Workload("growth", "an inbox that grows to a million: the last tenth against the first",
             Push(connections=4, devices=20_000), theirs=Mock(), target=1.1, pushes=20_000, parts=10),
]

"""The servers under measurement: processes pinned to given cores, and the kernel's account of what they used."""

import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from workloads import TOPIC


class BadRun(Exception):
    """A measurement that does not count: a server did not become ready, or a push was not handled as expected."""


FAULT_PROFILES = pathlib.Path(__file__).parent / "FaultProfiles"


def available_memory():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def touch_memory(size):
    """Writes to `size` bytes in a process that exits, so that the servers get memory that has been used before: the
    first write to a page of a virtual machine can cost ten times as much as the later ones.
    """
    size = min(size, available_memory() - (1 << 30))
    if size > 0:
        subprocess.run([sys.executable, "-c", f"b'1' * {size}"], check=True)


def allow_descriptors(needed):
    """Raises the limit of open files for this process and those it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise BadRun(f"a process may open {hard} files here, and {needed} are needed: raise the hard limit "
                     "(ulimit -Hn, as root)")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class ServerProcess:
    """A server pinned to some cores and stopped by its process id."""

    # Prefix of the server's command, for programs such as valgrind.
    wrapper = ()
    # The fault profile during the measurement.
    profile = None

    def start(self, command, cores, **options):
        own_cores = os.sched_getaffinity(0)
        # Inherited by the process. A function called in the child would prevent `vfork` and delay the start.
        os.sched_setaffinity(0, cores)
        self.began = time.monotonic()
        self.process = subprocess.Popen([*self.wrapper, *command], stdout=subprocess.DEVNULL, **options)
        os.sched_setaffinity(0, own_cores)

    def cpu_seconds(self):
        """Returns the CPU time so far in seconds, with nanosecond resolution, including that of ended threads."""
        # The id of another process's CPU clock, as clock_getcpuclockid(3) computes it on Linux.
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def loop_seconds(self):
        """Returns the CPU time so far of the event loops alone, which process the pushes. These threads never end."""
        threads = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*")
        loops = [thread for thread in threads if (thread / "comm").read_text().startswith("NIO-ELT")]
        return sum(int((loop / "schedstat").read_text().split()[0]) for loop in loops) / 1e9

    def resident_bytes(self):
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def move(self, cores):
        for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)

    def select_profile(self):
        """Selects the workload's fault profile, if it has one."""

    def wait_until(self, condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise BadRun(f"{self.process.args[0]} did not get ready")
            time.sleep(0.001)

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def write_fixtures(path, count):
    """Writes a fixture file with devices of one app, whose tokens are the numbers from 1 to `count`."""
    with path.open("w") as file:
        file.write('{"apps": [{"bundle_id": "%s", "team_id": "MOCKTEAM01"}], "devices": [' % TOPIC)
        for number in range(1, count + 1):
            app = {"bundle_id": TOPIC, "environment": "sandbox", "tokens": {"alert": f"{number:064x}"}}
            file.write(("," if number > 1 else "") + json.dumps({"id": f"phone-{number}", "apps": [app]}))
        file.write("]}")


class MockProcess(ServerProcess):
    """`apns-mock serve`."""

    def __init__(self, side, name, binary, folder, cores):
        self.statuses, self.devices, self.profile = side.statuses, side.devices, side.profile
        self.port_file = folder / f"{name}.json"
        self.port_file.unlink(missing_ok=True)
        config = folder / f"{name}.yaml"
        config.write_text(json.dumps({"apns": dict(side.settings)}))
        command = [
            binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", folder / "Certs",
            "--port-file", self.port_file, "--config", config, "--threads", str(side.threads), "--log-level", "error",
            "--profiles", FAULT_PROFILES, *side.flags]
        if side.registered:
            fixtures = folder / f"{name}-fixtures.json"
            write_fixtures(fixtures, side.registered)
            command += ["--fixtures", fixtures]
        # Settings that the shell has for another server must not apply to this one.
        plain = {name: value for name, value in os.environ.items() if not name.startswith("APNS_MOCK_")}
        self.start(command, cores, env=plain, stderr=subprocess.DEVNULL)

    def get_ready(self):
        self.wait_until(self.port_file.exists)
        self.ready_after = time.monotonic() - self.began
        ports = json.loads(self.port_file.read_text())
        self.port, self.admin_port = ports["apns"][0]["port"], ports["admin"]["port"]
        for device in self.devices:
            self.api("POST", "/devices", body=device)

    def api(self, method, path, body=None, **query):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.admin_port}/api/v1{path}?{urllib.parse.urlencode(query)}", method=method,
            headers={"content-type": "application/json"}, data=None if body is None else json.dumps(body).encode())
        try:
            return json.load(urllib.request.urlopen(request, timeout=600))
        except urllib.error.HTTPError as error:
            raise BadRun(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def select_profile(self):
        if self.profile:
            self.api("PUT", "/profile", body={"name": self.profile})

    def inbox(self):
        return self.api("GET", "/status")["inbox"]

    @property
    def is_full(self):
        """Whether each further push makes the inbox drop its oldest record."""
        return self.inbox()["evicted"] > 0

    def mark(self):
        """Returns the inbox's last sequence number."""
        return self.inbox()["last_seq"]

    def verify(self, mark, pushes):
        """Checks that exactly `pushes` pushes were recorded since `mark`, all with expected responses, and that
        each expected response occurred.
        """
        recorded = self.mark() - mark
        if recorded != pushes:
            raise BadRun(f"{pushes} pushes sent, {recorded} recorded")
        matched, evicted = {}, 0
        for status in self.statuses:
            accepted = "true" if status == 200 else "false"
            page = self.api("GET", "/pushes", after=mark, limit=1, status=status, accepted=accepted)
            matched[status] = page["matched"]
            evicted = max(0, page["evicted"] - mark)
        if sum(matched.values()) + evicted != pushes or not all(matched.values()):
            raise BadRun(f"{pushes} pushes sent; recorded by status: {matched}, dropped since: {evicted}")

    def compare(self, mark, ends):
        """Compares the records since `mark` with how the push to each device ended for the client (`provider.send`).
        A lost push may be recorded or not, depending on where its connection broke.

        Returns: the recorded devices.
        """
        records, after = [], mark
        while after is not None:
            page = self.api("GET", "/pushes", after=after, limit=1000, fields="request.device_token,served.status")
            records += [(each["request"]["device_token"], each["served"]["status"]) for each in page["items"]]
            after = page["next"]
        statuses = dict(records)
        if len(statuses) != len(records) or statuses.keys() - ends.keys():
            raise BadRun("a push was recorded more than once, or was not sent")
        for device, end in ends.items():
            status = statuses.get(device)
            is_right = {"accepted": status == 200, "rejected": status not in (200, None),
                        "reset": device in statuses and status is None, "lost": True}
            if not is_right[end]:
                raise BadRun(f"a push was {end}, but its record has the status {status}")
        if set(ends.values()) == {"accepted"}:
            raise BadRun("no fault occurred")
        return statuses


class NghttpdProcess(ServerProcess):
    """nghttpd, from the nghttp2 project, with an empty file for each path, or with no files if it has to respond
    404.
    """

    # It has no inbox to fill.
    is_full = True

    def __init__(self, side, paths, folder, cores):
        documents = folder / "documents"
        documents.mkdir()
        for path in paths if side.statuses == (200,) else ():
            document = documents / path.lstrip("/")
            document.parent.mkdir(parents=True, exist_ok=True)
            document.touch()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.statuses = side.statuses
        self.start(
            ["nghttpd", "-n1", "-a", "127.0.0.1", "-d", documents, str(self.port),
             folder / "Certs/server-key.pem", folder / "Certs/server.pem"], cores, stderr=subprocess.DEVNULL)

    def get_ready(self):
        self.wait_until(self.listens)

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def mark(self):
        return None

    def verify(self, mark, pushes):
        """Does nothing: nghttpd records nothing, so h2load's count of the responses is the only check."""

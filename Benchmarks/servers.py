"""The servers under measurement: processes pinned to given cores, and the kernel's account of what they used."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from workloads import TOPIC


class BadRun(Exception):
    """A measurement that does not count: a server did not become ready, or a push was not handled as expected."""


class ServerProcess:
    """A server pinned to some cores and stopped by its process id."""

    # Prefix of the server's command, for programs such as valgrind.
    wrapper = ()

    def start(self, command, cores, **options):
        self.process = subprocess.Popen(
            [*self.wrapper, *command], preexec_fn=lambda: os.sched_setaffinity(0, cores), stdout=subprocess.DEVNULL,
            **options)

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

    def wait_until(self, condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise BadRun(f"{self.process.args[0]} did not get ready")
            time.sleep(0.01)

    def stop(self):
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
        self.statuses, self.devices, self.port_file = side.statuses, side.devices, folder / f"{name}.json"
        config = folder / f"{name}.yaml"
        config.write_text(json.dumps({"apns": dict(side.settings)}))
        command = [
            binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", folder / "Certs",
            "--port-file", self.port_file, "--config", config, "--threads", str(side.threads), "--log-level", "error",
            *side.flags]
        if side.registered:
            fixtures = folder / f"{name}-fixtures.json"
            write_fixtures(fixtures, side.registered)
            command += ["--fixtures", fixtures]
        # Settings that the shell has for another server must not apply to this one.
        plain = {name: value for name, value in os.environ.items() if not name.startswith("APNS_MOCK_")}
        self.start(command, cores, env=plain, stderr=subprocess.DEVNULL)

    def get_ready(self):
        self.wait_until(self.port_file.exists)
        ports = json.loads(self.port_file.read_text())
        self.port, self.admin_port = ports["apns"][0]["port"], ports["admin"]["port"]
        for device in self.devices:
            self.api("POST", "/devices", body=device)

    def api(self, method, path, body=None, **query):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.admin_port}/api/v1{path}?{urllib.parse.urlencode(query)}", method=method,
            headers={"content-type": "application/json"}, data=None if body is None else json.dumps(body).encode())
        try:
            return json.load(urllib.request.urlopen(request, timeout=120))
        except urllib.error.HTTPError as error:
            raise BadRun(f"{method} {path}: {error.code} {error.read().decode()}") from None

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

"""One `apns-mock serve` process: started on free ports, controlled through its admin API, stopped by signal."""

import functools
import json
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from support import tokens
from support.way import Way

START_TIMEOUT = 30  # seconds until the port file must exist; generating keys is slow on a loaded machine
STOP_TIMEOUT = 15
REPEATED = 0.3  # seconds after which a signal counts as a second one; within 0.2 it is the same
LOG_TIMEOUT = 15  # seconds until a log line must appear


def clean_environment(**variables):
    """Returns this process's environment without the variables of apns-mock and of libpq, plus the given ones."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("APNS_MOCK_", "PG"))}
    return {**kept, **variables}


@functools.cache
def privilege_drop():
    """Returns a command prefix that removes root's privileges, so that system calls denied to ordinary users also
    fail in tests run by root. Ports below 1024 stay allowed, for clients that only connect to 443. Empty if the
    tests do not run as root or privileges cannot be dropped.
    """
    drop = ["setpriv", "--bounding-set=-all,+net_bind_service", "--inh-caps=-all"]
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return []
    return drop if subprocess.run([*drop, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []


@functools.cache
def is_sanitized(program):
    """Returns whether a program is built with AddressSanitizer or ThreadSanitizer, which distort measurements."""
    with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(name) >= 0 for name in (b"__asan_init", b"__tsan_init"))


class Response:
    """A response of the admin API."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


def chooses_store(flags, environment):
    """Returns whether a server's flags, variables or config file say where it keeps the inbox."""
    flags = [str(flag) for flag in flags]
    files = [pathlib.Path(file) for flag, file in zip(flags, flags[1:]) if flag == "--config"]
    return ("APNS_MOCK_STORE" in environment or any(flag.startswith("--store") for flag in flags)
            or any(file.exists() and "store:" in file.read_text(errors="replace") for file in files))


class Server:
    """The running program. Several servers may share `certs`; everything else is in `directory`, by default a temporary
    one, in which the program runs. `way` is how clients reach it unless a test overrides it.
    """

    way = Way()
    #: Returns the value of `--store` for a server with this folder, unless a flag sets it; None: in memory.
    default_store = None

    def __init__(self, binary, certs, *flags, apns=("127.0.0.1:0",), admin="127.0.0.1:0", environment=None,
                 directory=None, role="active"):
        """Waits until the server has this role: `standby`, or `active` when it is ready; None for any."""
        self.directory = directory or pathlib.Path(tempfile.mkdtemp(prefix="apns-mock-test-"))
        self.port_file = self.directory / "ports.json"
        self.binary = pathlib.Path(binary).resolve()  # the server runs in another folder
        self.certs = certs
        arguments = [str(self.binary), "serve", "--admin", admin]
        for address in apns:
            arguments += ["--apns", address]
        if self.default_store and not chooses_store(flags, environment or {}):
            arguments += ["--store", self.default_store(self.directory)]
            if "--max-records" not in flags:
                arguments += ["--max-records", "100000"]
        arguments += ["--certs", str(certs), "--port-file", str(self.port_file), *map(str, flags)]
        #: Whether the server was asked to stop.
        self.is_stopping = False
        self.log_path = self.directory / "log"
        self.out_path = self.directory / "out"
        with open(self.log_path, "wb") as log, open(self.out_path, "wb") as out:
            self.process = subprocess.Popen(
                [*privilege_drop(), *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=log, cwd=self.directory,
                env=clean_environment(**(environment or {})),
            )
        try:
            self.await_role(role)
        except BaseException:
            self.kill()
            raise
        facts = self.facts = self.read_facts()
        self.listeners = [(entry["host"], entry["port"]) for entry in facts["apns"]]
        self.port = self.listeners[0][1]
        self.admin_host, self.admin_port = facts["admin"]["host"], facts["admin"]["port"]
        self.ca = facts["ca"]
        self.key_path = facts["key"]
        self.key_id = facts["key_id"]
        self.team_id = facts["team_id"]
        self._bearer = None

    def read_facts(self):
        """Returns the content of the port file."""
        return json.loads(self.port_file.read_text())

    def await_role(self, role, timeout=START_TIMEOUT):
        """Waits until the port file says that the server has this role; None for any."""
        deadline = time.monotonic() + timeout
        while not (self.port_file.exists() and role in (None, self.read_facts()["role"])):
            if self.process.poll() is not None:
                raise AssertionError(f"serve ended with {self.process.returncode} before it was {role}:\n{self.log()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"serve was not {role} within {timeout} s:\n{self.log()}")
            time.sleep(0.005)

    # Values that clients need

    @property
    def url(self):
        return f"https://localhost:{self.port}"

    @property
    def authority(self):
        return f"localhost:{self.port}"

    @property
    def key(self):
        return pathlib.Path(self.key_path).read_text()

    def token(self, **changes):
        """Returns a new provider token signed with the server's key; `changes` as in `tokens.provider_token`."""
        return tokens.provider_token(**{"key": self.key, "key_id": self.key_id, "team_id": self.team_id, **changes})

    @property
    def bearer(self):
        """The value of the authorization header, the same for the life of this server."""
        if self._bearer is None:
            self._bearer = "bearer " + self.token()
        return self._bearer

    # The admin API

    def request(self, method, path, body=None, *, headers=None, **query):
        """Sends one request; `query` values may be lists for repeated parameters. Returns a response for every
        status.
        """
        if query:
            path += "?" + urllib.parse.urlencode(query, doseq=True)
        url = f"http://{self.admin_host}:{self.admin_port}{path}"
        sent = dict(headers or {})
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        request = urllib.request.Request(url, data=data, headers=sent, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
                return Response(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Response(error.code, error.headers, error.read())

    def api(self, method, path, body=None, **query):
        """Sends a request under /api/v1 that must succeed; returns its JSON."""
        response = self.request(method, "/api/v1" + path, body, **query)
        assert 200 <= response.status < 300, f"{method} {path}: {response.status} {response.body!r}"
        return response.json if response.body else None

    def pushes(self, **query):
        """Returns the matching records, oldest first."""
        return self.api("GET", "/pushes", **query)["items"]

    def record(self, device):
        """Returns the device's only record."""
        items = self.pushes(device_token=device)
        assert len(items) == 1, f"{len(items)} records of {device}: {items}"
        return items[0]

    # The command line

    def command(self, *arguments, input=None, environment=None):
        """Runs a client command against this server."""
        return run(self.binary, *arguments, "--port-file", self.port_file, input=input, environment=environment)

    # Log and shutdown

    def log(self):
        return self.log_path.read_text(errors="replace")

    def logged(self, *words, count=1):
        """Returns the log lines with all of `words` once there are `count`. The server logs asynchronously, so a
        line may appear after the event it reports.
        """
        deadline = time.monotonic() + LOG_TIMEOUT
        while True:
            lines = [line for line in self.log().splitlines() if all(word in line for word in words)]
            if len(lines) >= count:
                return lines
            if time.monotonic() > deadline:
                raise AssertionError(f"{count} lines with {words} are not in the log:\n{self.log()[-4000:]}")
            time.sleep(0.01)

    def output(self):
        return self.out_path.read_text(errors="replace")

    def signal(self, number=signal.SIGTERM):
        """Sends a signal; after SIGSTOP, waits until no thread runs."""
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            threads = pathlib.Path("/proc", str(self.process.pid), "task")
            wait_until(lambda: all("State:\tT" in (one / "status").read_text() for one in threads.iterdir()), "every thread stops")
        self.is_stopping = self.is_stopping or number in (signal.SIGTERM, signal.SIGINT)

    def wait(self, timeout=STOP_TIMEOUT):
        return self.process.wait(timeout=timeout)

    def stop(self):
        """Sends SIGTERM, unless the test has, and returns the exit code. The port file must be removed."""
        # A second signal would make the server exit at once.
        if self.process.poll() is None and not self.is_stopping:
            self.signal()
        code = self.wait()
        assert not self.port_file.exists(), "the port file outlived the server"
        return code

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def resident_bytes(self, kind="VmRSS"):
        """Returns the process's resident memory on Linux, and None elsewhere or if a sanitizer uses memory of its own.
        The kind `RssAnon` counts only the memory that the process allocated, without the pages of the program's file.
        """
        status = pathlib.Path(f"/proc/{self.process.pid}/status")
        if not status.exists() or is_sanitized(os.path.realpath(f"/proc/{self.process.pid}/exe")):
            return None
        for line in status.read_text().splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) * 1024
        return None


def stop_cleanly(server):
    """Stops a server; fails the test if the server has crashed."""
    try:
        assert server.stop() == 0, f"serve ended with {server.process.returncode}:\n{server.log()[-4000:]}"
    finally:
        server.kill()


def wait_until(condition, message, timeout=30):
    """Polls until `condition()` is true and returns its value. For events that no response announces. `message` may
    be a function.
    """
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never: {message() if callable(message) else message}"
        time.sleep(0.02)
    return found


def run(binary, *arguments, input=None, environment=None, cwd=None, timeout=30):
    """Runs one command of the program to its end; returns a `CompletedProcess` with text."""
    return subprocess.run(
        [str(binary), *map(str, arguments)], input=input, capture_output=True, text=True, timeout=timeout, cwd=cwd,
        env=clean_environment(**(environment or {})),
    )

"""Signals under load: every acknowledged push is in the export exactly once, and the server shuts down promptly and
cleanly.
"""

import collections
import contextlib
import json
import secrets
import signal
import socket
import subprocess
import threading
import time
import uuid

import pytest
from hyperframe.frame import HeadersFrame

from support.server import REPEATED, Server, clean_environment, wait_until
from support.wire import Closed, client_context, connect, push_headers

httpx = pytest.importorskip("httpx")

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds

STREAMS = 20
PUSHES = 300
HELD = "fe" * 32  # the device whose pushes a rule delays


class Loader(threading.Thread):
    """A provider that pushes until the server has stopped. `acknowledged`: the ids of its pushes answered with 200."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.device = secrets.token_hex(32)
        self.acknowledged = set()
        self.error = None

    def run(self):
        try:
            self.load()
        except (Closed, OSError, httpx.TransportError):
            pass  # the server has stopped, as expected
        except Exception as error:  # raised in the test's thread
            self.error = error


class Frames(Loader):
    """Many concurrent streams, with every tenth push delayed by the rule."""

    def load(self):
        with connect(self.server) as wire:
            wire.push(push_headers(self.server, self.device, apns_id=str(uuid.uuid4())))
            open_streams, count = {}, 0
            while True:
                while len(open_streams) < STREAMS:
                    count += 1
                    apns_id, device = str(uuid.uuid4()), self.device if count % 10 else HELD
                    open_streams[wire.open(push_headers(self.server, device, apns_id=apns_id), b"{}")] = apns_id
                frame = wire.receive()
                if isinstance(frame, HeadersFrame):
                    if wire.responses[frame.stream_id].status == 200:
                        self.acknowledged.add(open_streams[frame.stream_id])
                    del open_streams[frame.stream_id]


class Library(Loader):
    """httpx, one push after the other."""

    def load(self):
        with httpx.Client(http2=True, verify=client_context(self.server.ca), trust_env=False, timeout=20) as client:
            while True:
                apns_id = str(uuid.uuid4())
                response = client.post(
                    f"{self.server.url}/3/device/{self.device}", content=b"{}",
                    headers={"authorization": self.server.bearer, "apns-topic": "com.example.app", "apns-id": apns_id,
                             "apns-push-type": "alert"})
                if response.status_code == 200:
                    self.acknowledged.add(apns_id)


@contextlib.contextmanager
def under_load(server, pushes=PUSHES):
    """Enters the block when at least `pushes` are acknowledged. At its end the server must stop, and the loaders
    with it.
    """
    loaders = [kind(server) for kind in (Frames, Frames, Frames, Library)]
    try:
        for loader in loaders:
            loader.start()
        wait_until(lambda: sum(len(loader.acknowledged) for loader in loaders) >= pushes
                   or any(loader.error for loader in loaders), "the load does not come up", 120)
        yield loaders
        server.wait(60)
    finally:
        server.kill()
    for loader in loaders:
        loader.join(30)
        assert not loader.is_alive() and loader.error is None, loader.error


def acknowledged(loaders):
    return set().union(*(loader.acknowledged for loader in loaders))


def exported(path):
    """Counts how often each id is in the export with status 200."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return collections.Counter(record["apns"]["id"] for record in records if record["served"]["status"] == 200)


def assert_nothing_is_lost(loaders, path, pushes=PUSHES):
    kept, sent = exported(path), acknowledged(loaders)
    wrong = {apns_id: kept[apns_id] for apns_id in sent if kept[apns_id] != 1}
    assert len(sent) >= pushes and not wrong, f"{len(wrong)} of {len(sent)} acknowledged pushes are not there once"


@pytest.mark.parametrize("pushes", [1, PUSHES, pytest.param(3_000, marks=pytest.mark.long)])
def test_no_acknowledged_push_is_lost_by_a_signal_under_load(binary, certs, tmp_path, pushes):
    export = tmp_path / "inbox.ndjson"
    server = Server(binary, certs, "--export-on-exit", export)
    with under_load(server, pushes) as loaders:
        server.signal(signal.SIGTERM)
        assert server.wait(40) == 0
    assert_nothing_is_lost(loaders, export, pushes)


@contextlib.contextmanager
def admin_readers(server):
    """Runs an event stream, a wait, and an export request that reads nothing."""
    with contextlib.ExitStack() as stack:
        sockets = []
        for path in ("/api/v1/events", "/api/v1/pushes/wait?topic=com.example.unused&timeout=5m", "/api/v1/export"):
            sock = stack.enter_context(socket.socket())
            sock.settimeout(30)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((server.admin_host, server.admin_port))
            sock.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            sockets.append(sock)
        assert sockets[0].recv(16).startswith(b"HTTP/1.1 200")
        yield


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_lost_with_delayed_pushes_and_readers(binary, certs, tmp_path, number):
    """The rule delays pushes for longer than the shutdown timeout, and a client reads an export slowly."""
    export = tmp_path / "inbox.ndjson"
    server = Server(binary, certs, "--export-on-exit", export, "--shutdown-timeout", "300ms")
    server.api("POST", "/rules", {"name": "held", "do": {"delay": {"fixed": "1m"}}, "when": {"device_token": HELD}})
    with under_load(server) as loaders, admin_readers(server):
        began = time.monotonic()
        server.signal(number)
        assert server.wait(40) == 0, server.log()[-2000:]
        assert time.monotonic() - began < 20, "neither what is held nor who reads slowly may delay the end for long"
    assert_nothing_is_lost(loaders, export)
    assert not server.port_file.exists() and list(tmp_path.iterdir()) == [export]
    assert f"{len(export.read_text().splitlines())} pushes to {export}" in server.log()


def test_sighup_during_shutdown_changes_nothing(binary, certs, tmp_path):
    """SIGHUP reloads the profiles; during shutdown it must be ignored, and must not kill the process."""
    export = tmp_path / "inbox.ndjson"
    server = Server(binary, certs, "--export-on-exit", export, "--shutdown-timeout", "500ms")
    with under_load(server) as loaders, connect(server) as slow:
        slow.open(push_headers(server, secrets.token_hex(32)), end_stream=False)
        slow.ping()
        server.signal(signal.SIGTERM)
        slow.goaway()
        while server.process.poll() is None:
            server.signal(signal.SIGHUP)
            time.sleep(0.002)
        assert server.wait() == 0
    assert_nothing_is_lost(loaders, export)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_under_load_leaves_the_old_export_or_a_whole_one(binary, certs, tmp_path, second):
    export = tmp_path / "inbox.ndjson"
    export.write_text("what was there before\n")
    server = Server(binary, certs, "--export-on-exit", export, "--shutdown-timeout", "1m")
    with under_load(server) as loaders, connect(server) as slow:
        slow.open(push_headers(server, secrets.token_hex(32)), end_stream=False)
        slow.ping()
        server.signal(signal.SIGTERM)
        slow.goaway()
        time.sleep(REPEATED)
        began = time.monotonic()
        server.signal(second)
        assert server.wait(40) == 130
        assert time.monotonic() - began < 20
    assert export.read_text() == "what was there before\n", "everything ended before it could be written"
    assert acknowledged(loaders) and not server.port_file.exists()


def test_a_second_signal_while_the_export_is_written_leaves_no_part_of_it(binary, certs, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    export = folder / "inbox.ndjson"
    export.write_text("what was there before\n")
    # The export begins when the time for the request that does not end is over: later than the second signal may arrive.
    server = Server(binary, certs, "--export-on-exit", export, "--shutdown-timeout", f"{int(1000 * REPEATED)}ms")
    try:
        with connect(server) as wire, connect(server) as slow:
            slow.open(push_headers(server, HELD), end_stream=False)
            slow.ping()
            wire.push(push_headers(server, HELD))
            # Eight at a time always fit: the server renews the window when half of it is used.
            for _ in range(470):
                for stream in [wire.open(push_headers(server, HELD), b"{%s}" % (b" " * 4_000)) for _ in range(8)]:
                    wire.response(stream)
            server.signal(signal.SIGTERM)
            wait_until(lambda: len(list(folder.iterdir())) > 1 or export.stat().st_size > 100, "nothing is written")
            server.signal(signal.SIGTERM)
            code = server.wait(40)
    finally:
        server.kill()
    assert list(folder.iterdir()) == [export]
    # A fast machine has finished before the second signal.
    assert (code, len(export.read_text().splitlines())) in ((130, 1), (0, 470 * 8 + 2))


def test_a_signal_after_shutdown_does_not_change_the_exit_code(binary, certs):
    """Sends signals right after the log says `stopped`, repeatedly because the interval until the process exits is
    short.
    """
    codes = collections.Counter()
    for _ in range(20):
        process = subprocess.Popen(
            [str(binary), "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", str(certs),
             "--log-format", "json"],
            env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            for line in process.stderr:
                message = json.loads(line)["message"]
                if message in ("ready", "stopped"):
                    for _ in range(1 if message == "ready" else 3):
                        process.send_signal(signal.SIGTERM)
            codes[process.wait(30)] += 1
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
    assert set(codes) == {0}

"""Chaos that is not a client's doing: a signal under load, a full disk, clocks that jump."""

import json
import pathlib
import secrets
import signal
import threading
import uuid

import pytest
from hyperframe.frame import HeadersFrame

from support.attack import Bystander, await_that
from support.server import Server, run
from support.wire import Closed, connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for slow machines; here each takes seconds

STREAMS = 20


class Loader(threading.Thread):
    """A provider with many streams at once, until the server is gone. `acknowledged`: the ids of its pushes that got 200."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.acknowledged = set()
        self.error = None

    def run(self):
        try:
            self.load()
        except Closed:
            pass  # what it waits for
        except Exception as error:  # told in the thread of the test
            self.error = error

    def load(self):
        device = secrets.token_hex(32)
        with connect(self.server) as wire:
            wire.push(push_headers(self.server, device, apns_id=str(uuid.uuid4())))
            asked = {}
            while True:
                while len(asked) < STREAMS:
                    apns_id = str(uuid.uuid4())
                    asked[wire.open(push_headers(self.server, device, apns_id=apns_id), b"{}")] = apns_id
                frame = wire.receive()
                if isinstance(frame, HeadersFrame):
                    if wire.answers[frame.stream_id].status == 200:
                        self.acknowledged.add(asked[frame.stream_id])
                    del asked[frame.stream_id]


@pytest.mark.parametrize("pushes", [1, 300, 3_000])
def test_no_acknowledged_push_is_lost_by_a_signal_under_load(binary, certs, tmp_path, pushes):
    export = tmp_path / "inbox.ndjson"
    server = Server(binary, certs, "--export-on-exit", export)
    loaders = [Loader(server) for _ in range(4)]
    try:
        for loader in loaders:
            loader.start()
        await_that(lambda: sum(len(loader.acknowledged) for loader in loaders) >= pushes
                   or any(loader.error for loader in loaders), "the load does not come up", 50)
        server.signal(signal.SIGTERM)
        assert server.wait(40) == 0
    finally:
        server.kill()
    for loader in loaders:
        loader.join(20)
        assert not loader.is_alive() and loader.error is None
    acknowledged = set().union(*(loader.acknowledged for loader in loaders))
    kept = [json.loads(line) for line in export.read_text().splitlines()]
    accepted = {record["apns"]["id"] for record in kept if record["served"]["status"] == 200}
    assert len(acknowledged) >= pushes
    assert acknowledged <= accepted, f"{len(acknowledged - accepted)} of {len(acknowledged)} acknowledged pushes are lost"


@pytest.fixture
def full_disk(binary, tmp_path):
    """The program in a shell that may not write a single byte to any file. As with a full disk files can be made, and stay
    empty; pipes work."""
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\ntrap "" XFSZ\nulimit -f 0\nexec "{binary}" "$@"\n')
    shell.chmod(0o755)
    return shell


def test_a_full_disk_for_the_port_file_is_an_error_that_says_so(full_disk, certs, server, tmp_path):
    """`server` has filled the folder of certificates."""
    folder = tmp_path / "run"
    folder.mkdir()
    done = run(full_disk, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, "--port-file",
               folder / "ports.json")
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "ports.json" in last and "too large" in last, done.stderr
    assert list(folder.iterdir()) == [], "half a file is left"


def test_a_full_disk_for_the_certificates_is_an_error_that_says_so(full_disk, tmp_path):
    done = run(full_disk, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", tmp_path / "certs")
    assert done.returncode in (1, 2), done.stderr
    assert str(tmp_path / "certs") in done.stderr and "too large" in done.stderr, done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="no /dev/full")
def test_logs_that_nobody_can_take_do_not_stop_the_server(binary, certs, tmp_path, device):
    """Both streams are /dev/full: the server serves, and ends well."""
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\nexec "{binary}" "$@" >/dev/full 2>/dev/full\n')
    shell.chmod(0o755)
    server = Server(shell, certs, "--log-level", "debug")
    try:
        for _ in range(20):
            with connect(server) as wire:
                assert wire.push(push_headers(server, device)).status == 200
        assert server.stop() == 0
    finally:
        server.kill()


def test_a_clock_that_jumps_ends_no_connection_and_no_wait(start, device):
    """Years forth and back while pushes come: a provider token may be stale for a moment, nothing else is."""
    server = start()
    server.api("POST", "/rules", {"name": "held", "do": {"delay": {"fixed": "1500ms"}}, "when": {"device_token": device}})
    bystander = Bystander(server)
    bystander.start()
    await_that(lambda: bystander.statuses or bystander.error, "no answer")
    with connect(server) as wire:
        held = wire.open(push_headers(server, device), b"{}")
        wire.ping()
        for year in ("2001", "2099", "1970", "2038", "9999", "2026"):
            before = len(bystander.statuses)
            server.api("PUT", "/clock", {"mode": "frozen", "now": f"{year}-01-19T03:14:08Z"})
            await_that(lambda: len(bystander.statuses) > before + 2 or bystander.error, f"no answer in {year}")
        server.api("PUT", "/clock", {"mode": "real"})
        assert wire.answer(held).status == 200, "judged before the first jump, and held by the machine's time"
        before = len(bystander.statuses)
        await_that(lambda: len(bystander.statuses) > before + 2 or bystander.error, "no answer")
        assert wire.push(push_headers(server, "ab" * 32)).status == 200
    statuses = bystander.end()
    assert set(statuses) <= {200, 403} and statuses[0] == statuses[-1] == 200

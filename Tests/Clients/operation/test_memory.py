"""The memory of an idle server, and what an idle connection adds to it."""

import contextlib
import pathlib
import socket
import time

import pytest

from support.attack import MEBIBYTE, forget_peak, peak_bytes
from support.server import wait_until
from support.wire import client_context, connect, push_headers

WARMING = 50  # connections that make the server map the memory needed to serve any
CONNECTIONS = 300
# With thousands of connections each takes 37 KB, including its push's record (Benchmarks/idle.py). Before
# connections shared the buffers that only one of them needs at a time, each took 57 KB.
MOST = 45_000
BURST = 40  # concurrent pushes of 1 KB: most of what the client may send before the server renews the window
# Measured: 68 KB. When each connection had its own read buffers, it kept 129 KB.
MOST_AFTER_A_BURST = 100_000

UNREAD = 300  # clients that request a page and do not read the response
# Measured: 30 MiB. When responses were rendered as a whole, they took 1.8 GB.
MOST_UNREAD = 150 * MEBIBYTE
# The limit after the clients have disconnected. Measured: 4 MiB; without returning freed memory to the system, 28
# to 67 MiB.
GIVEN_BACK = 16 * MEBIBYTE

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def fresh(start):
    server = start("--log-level", "error")
    if server.resident_bytes() is None:
        pytest.skip("only Linux tells the memory of a process")
    return server


def kept_by_each(server, context, use):
    """Returns how many bytes each used and then idle connection adds. Pages of the program's file do not count: the
    server releases them shortly after it is ready, and reads some again.
    """
    standing = []

    def stand(count):
        for _ in range(count):
            standing.append(connect(server, context=context))
            use(standing[-1])

    try:
        stand(WARMING)
        before = server.resident_bytes("RssAnon")
        stand(CONNECTIONS)
        return (server.resident_bytes("RssAnon") - before) / CONNECTIONS
    finally:
        for wire in standing:
            wire.close()


def test_an_idle_server_holds_less_than_30_mebibytes(fresh):
    """Pages needed only during startup are released shortly after the server is ready."""
    if "Anonymous:" not in pathlib.Path("/proc/self/smaps").read_text():
        pytest.skip("only a kernel that tells about each mapping lets the server know them")
    wait_until(lambda: fresh.resident_bytes() < 30 * MEBIBYTE, "the server holds more than 30 MiB")


def test_a_connection_idle_after_a_push_uses_little_memory(fresh, device):
    context = client_context(fresh.ca)

    def use(wire):
        assert wire.push(push_headers(fresh, device)).status == 200

    each = kept_by_each(fresh, context, use)
    assert each < MOST, f"{each:.0f} bytes for each connection"


def test_a_connection_that_was_busy_keeps_little_of_that(start, device):
    """Data received in a burst is buffered in memory of the server's thread, not of the connection."""
    server = start("--log-level", "error", "--max-records", "1000")
    if server.resident_bytes() is None:
        pytest.skip("only Linux tells the memory of a process")
    context = client_context(server.ca)
    headers, body = push_headers(server, device), b'{"aps":{"alert":"%s"}}' % (b"a" * 1_000)

    def use(wire):
        assert wire.push(headers).status == 200
        asked = [wire.request_frames(headers, body) for _ in range(BURST)]
        wire.send(*(frame for _, frames in asked for frame in frames))
        assert {wire.answer(stream).status for stream, _ in asked} == {200}

    each = kept_by_each(server, context, use)
    assert each < MOST_AFTER_A_BURST, f"{each:.0f} bytes for each connection"


def fill(server, device, count, text):
    """Sends `count` different alerts, each with a text of about `text` bytes."""
    headers = push_headers(server, device)
    burst = max(1, 40_000 // (text + 64))  # fits into the connection's flow-control window
    with connect(server) as wire:
        for first in range(0, count, burst):
            asked = [
                wire.request_frames(headers, b'{"aps":{"alert":"%08d%s"}}' % (number, b"a" * text))
                for number in range(first, min(count, first + burst))]
            wire.send(*(frame for _, frames in asked for frame in frames))
            assert {wire.answer(stream).status for stream, _ in asked} == {200}


def test_pages_that_are_not_read_use_little_memory(fresh, device):
    """Pages are rendered at the pace at which the client reads them."""
    fill(fresh, device, 1_000, 4_000)
    page = fresh.request("GET", "/api/v1/pushes?limit=1000").json
    assert [item["seq"] for item in page["items"]] == list(range(1, 1_001))
    assert (page["next"], page["matched"], page["total"]) == (None, 1_000, 1_000)
    before = fresh.resident_bytes()
    forget_peak(fresh)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(UNREAD)]
        for client in clients:
            client.settimeout(10)
            # Keeps the kernel's buffer small, which does not count as the server's memory.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((fresh.admin_host, fresh.admin_port))
            client.sendall(b"GET /api/v1/pushes?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        # A debug build renders slowly and does not finish all responses in this time.
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            held = fresh.resident_bytes() - before
            assert held < MOST_UNREAD, f"{held / MEBIBYTE:.0f} MiB for {UNREAD} unread pages"
            time.sleep(0.2)
        assert peak_bytes(fresh) - before < MOST_UNREAD
    wait_until(lambda: fresh.resident_bytes() - before < GIVEN_BACK, "the memory of the pages is not given back")
    assert fresh.request("GET", "/api/v1/pushes?limit=1").status == 200

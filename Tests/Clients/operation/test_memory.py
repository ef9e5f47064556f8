"""The memory of an idle server, and what an idle connection adds to it."""

import contextlib
import pathlib
import socket
import time

import pytest

from support.attack import MEBIBYTE, reset_peak, peak_bytes
from support.selection import ALL
from support.server import wait_until
from support.wire import client_context, connect, push_headers

WARMING = 50  # connections that make the server map the memory needed to serve any
CONNECTIONS = 300
# With thousands of connections each takes 37 KB, including its push's record (Benchmarks/idle.py). Before
# connections shared the buffers that only one of them needs at a time, each took 57 KB.
IDLE_LIMIT = 45_000
BURST = 40  # concurrent pushes of 1 KB: most of what the client may send before the server renews the window
# Measured: 68 KB. When each connection had its own read buffers, it kept 129 KB.
LIMIT_AFTER_A_BURST = 100_000

UNREAD = 300  # clients that request a page and do not read the response
# Measured: 68 MiB, 113 MiB with SQLite, 86 MiB with PostgreSQL. When responses were rendered as a whole, they took
# 1.8 GB; when a page had all its records in memory, 1.4 GB with SQLite.
UNREAD_LIMIT = 150 * MEBIBYTE
# The limit after the clients have disconnected. Measured: 4 MiB; without returning freed memory to the system, 28
# to 67 MiB.
REMAINING_LIMIT = 16 * MEBIBYTE

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def new_server(start):
    server = start("--log-level", "error")
    if server.resident_bytes() is None:
        pytest.skip("only Linux reports the memory of a process")
    return server


def bytes_per_connection(server, context, use):
    """Returns how many bytes each used and then idle connection adds. Pages of the program's file do not count: the
    server releases them shortly after it is ready, and reads some again.
    """
    connections = []

    def connect_clients(count):
        for _ in range(count):
            connections.append(connect(server, context=context))
            use(connections[-1])

    try:
        connect_clients(WARMING)
        before = server.resident_bytes("RssAnon")
        connect_clients(CONNECTIONS)
        return (server.resident_bytes("RssAnon") - before) / CONNECTIONS
    finally:
        for wire in connections:
            wire.close()


def test_an_idle_server_uses_less_than_30_mebibytes(new_server):
    """Pages needed only during startup are released shortly after the server is ready."""
    if "Anonymous:" not in pathlib.Path("/proc/self/smaps").read_text():
        pytest.skip("this kernel does not report the mappings of a process")
    wait_until(lambda: new_server.resident_bytes() < 30 * MEBIBYTE, "the server uses more than 30 MiB")


def test_a_connection_idle_after_a_push_uses_little_memory(new_server, device):
    context = client_context(new_server.ca)

    def use(wire):
        assert wire.push(push_headers(new_server, device)).status == 200

    each = bytes_per_connection(new_server, context, use)
    assert each < IDLE_LIMIT, f"{each:.0f} bytes per connection"


def test_a_connection_frees_memory_after_a_burst(start, device):
    """Data received in a burst is buffered in memory of the server's thread, not of the connection."""
    server = start("--log-level", "error", "--max-records", "1000")
    if server.resident_bytes() is None:
        pytest.skip("only Linux reports the memory of a process")
    context = client_context(server.ca)
    headers, body = push_headers(server, device), b'{"aps":{"alert":"%s"}}' % (b"a" * 1_000)

    def use(wire):
        assert wire.push(headers).status == 200
        requests = [wire.request_frames(headers, body) for _ in range(BURST)]
        wire.send(*(frame for _, frames in requests for frame in frames))
        assert {wire.response(stream).status for stream, _ in requests} == {200}

    each = bytes_per_connection(server, context, use)
    assert each < LIMIT_AFTER_A_BURST, f"{each:.0f} bytes per connection"


def fill(server, device, count, text):
    """Sends `count` different alerts, each with a text of about `text` bytes."""
    headers = push_headers(server, device)
    burst = max(1, 40_000 // (text + 64))  # fits into the connection's flow-control window
    with connect(server) as wire:
        for first in range(0, count, burst):
            requests = [
                wire.request_frames(headers, b'{"aps":{"alert":"%08d%s"}}' % (number, b"a" * text))
                for number in range(first, min(count, first + burst))]
            wire.send(*(frame for _, frames in requests for frame in frames))
            assert {wire.response(stream).status for stream, _ in requests} == {200}


def test_pages_that_are_not_read_use_little_memory(new_server, device):
    """Pages are rendered at the pace at which the client reads them."""
    fill(new_server, device, 1_000, 4_000)
    page = new_server.request("GET", "/api/v1/pushes?limit=1000").json
    assert [item["seq"] for item in page["items"]] == list(range(1, 1_001))
    assert (page["next"], page["matched"], page["total"]) == (None, 1_000, 1_000)
    before = new_server.resident_bytes()
    reset_peak(new_server)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(UNREAD)]
        for client in clients:
            client.settimeout(10)
            # Keeps the kernel's buffer small, which does not count as the server's memory.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((new_server.admin_host, new_server.admin_port))
            client.sendall(b"GET /api/v1/pushes?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        # A debug build renders slowly and does not finish all responses in this time.
        deadline = time.monotonic() + (10 if ALL else 5)
        while time.monotonic() < deadline:
            used = new_server.resident_bytes() - before
            assert used < UNREAD_LIMIT, f"{used / MEBIBYTE:.0f} MiB for {UNREAD} unread pages"
            time.sleep(0.2)
        assert peak_bytes(new_server) - before < UNREAD_LIMIT
    wait_until(lambda: new_server.resident_bytes() - before < REMAINING_LIMIT, "the memory of the pages is not freed", 90)
    assert new_server.request("GET", "/api/v1/pushes?limit=1").status == 200

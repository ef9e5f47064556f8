"""Thousands of connections, no descriptors left, and TLS renegotiation."""

import os
import resource
import socket
import struct
import subprocess
import time

import pytest
from hyperframe.frame import SettingsFrame

from support import drivers
from support.attack import MEBIBYTE, descriptors, processor_seconds, unharmed
from support.selection import ALL
from support.server import Server, stop_cleanly, wait_until
from support.wire import connect, push_headers

DESCRIPTORS = 160
ROOM = DESCRIPTORS // 2  # for providers
ADMIN = DESCRIPTORS // 4  # for clients of the admin API
RESERVE = ADMIN // 4  # of these

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds

prlimit = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux changes the limits of another process")


@pytest.fixture
def limited(binary, certs, tmp_path):
    """A server with a low limit for open files."""
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec "{binary}" "$@"\n')
    shell.chmod(0o755)
    server = Server(shell, certs)
    yield server
    stop_cleanly(server)


def plain(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def was_hung_up_on(sock):
    """Returns whether the server has closed a connection on which nothing was sent."""
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def close_all(sockets):
    for sock in sockets:
        sock.close()


def test_more_connections_than_descriptors(limited, device):
    """Excess connections are closed at once. Connected clients, the admin API and later clients are served."""
    with unharmed(limited):
        crowd = [plain(limited.port) for _ in range(2 * ROOM)]
        crowd += [plain(limited.admin_port) for _ in range(DESCRIPTORS // 8)]
        try:
            wait_until(lambda: sum(map(was_hung_up_on, crowd)) > ROOM, "no connection was refused")
            assert limited.request("GET", "/livez").status == 200
        finally:
            close_all(crowd)
        wait_until(lambda: is_empty(limited), "they are still open")
        with connect(limited) as later:
            assert later.push(push_headers(limited, device)).status == 200
    warnings = limited.logged("not accepted")
    assert len(warnings) == 1 and "127.0.0.1:" in warnings[0]
    assert f"{ROOM} connections are open" in warnings[0] and "ulimit -n" in warnings[0]


def test_connections_in_use_leave_a_reserve_for_health_checks(limited):
    """Clients that do not read their responses use all connections but a quarter. On those health checks are served,
    everything else is refused at once, and silent connections are closed after a second.
    """
    events = b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
    upload = b"POST /api/v1/reset HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
    crowd = []
    try:
        for request in [events] * (ADMIN // 2) + [upload] * (ADMIN // 2 - RESERVE):
            crowd.append(plain(limited.admin_port))
            crowd[-1].sendall(request)
        # The connection of an earlier client may be closed only now.
        refused = 0
        while refused < 5:
            if limited.request("GET", "/").status == 503:
                refused += 1
                time.sleep(0.1)
            else:
                refused = 0
                crowd.append(plain(limited.admin_port))
                crowd[-1].sendall(upload)
        for _ in range(20):
            # Also while the previous connection of the reserve is being closed.
            assert limited.request("GET", "/metrics").status == 200
            assert limited.request("GET", "/api/v1/status").status == 503
        for path, status in [("/livez", 200), ("/readyz", 200), ("/api/v1/status", 503)]:
            response = limited.request("GET", path)
            assert response.status == status, path
            assert response.headers["connection"] == "close"
        assert "all connections to the admin listener are in use" in response.json["detail"]
        assert response.headers["retry-after"] == "1" and "ulimit -n" in response.json["hint"]
        response = limited.request("POST", "/api/v1/reset", {"parts": ["faults"]})
        assert response.status == 503
        in_reserve = [plain(limited.admin_port) for _ in range(RESERVE)]
        crowd += in_reserve
        assert limited.request("GET", "/livez").status == 200
        wait_until(lambda: all(map(was_hung_up_on, in_reserve)), "silent connections of the reserve stay open", 5)
        close_all(crowd[ADMIN // 2:])
        wait_until(lambda: limited.request("GET", "/api/v1/status").status == 200, "there is no room")
        silent = [plain(limited.admin_port) for _ in range(RESERVE // 2)]
        crowd += silent
        wait_until(lambda: all(map(was_hung_up_on, silent)), "silent connections are not closed after ten seconds")
    finally:
        close_all(crowd)
    log = limited.log()
    assert log.count("connections to the admin listener are open") == 1
    assert f"{ADMIN - RESERVE} connections" in log


def is_empty(server):
    """Returns whether only the bystander is connected."""
    return server.api("GET", "/connections", state="open")["open"] <= 1


def test_idle_admin_connections_are_closed_for_new_ones(limited):
    """At the admin listener's connection limit a new client is answered, and the connection that was idle longest
    is closed.
    """
    kept = []
    try:
        for _ in range(ADMIN - RESERVE):
            sock = plain(limited.admin_port)
            kept.append(sock)
            sock.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        assert limited.request("GET", "/livez").status == 200
        assert time.monotonic() - began < 10
        wait_until(lambda: was_hung_up_on(kept[0]), "the longest idle connection stays open")
        kept[-1].sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        kept[-1].settimeout(20)
        assert kept[-1].recv(65536).startswith(b"HTTP/1.1 200 ")
    finally:
        close_all(kept)


@pytest.mark.parametrize("target", ["/api/v1/events", "/api/v1/pushes/wait?count=1&timeout=60s"])
def test_waiting_requests_do_not_use_all_connections(limited, target):
    """Half of the admin listener's connections may wait. The next waiting request is refused at once, and allowed
    again after one has ended.
    """
    most = ADMIN // 2
    request = f"GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    waiting = []
    try:
        for _ in range(most):
            sock = plain(limited.admin_port)
            waiting.append(sock)
            sock.sendall(request)
        if "events" in target:
            assert all(sock.recv(12) == b"HTTP/1.1 200" for sock in waiting)
        else:
            wait_until(lambda: f"\napns_mock_waits {most}\n" in limited.request("GET", "/metrics").body.decode(), "not waiting")
        for refused in (target, "/api/v1/events", "/api/v1/pushes/wait"):
            response = limited.request("GET", refused)
            assert response.status == 503, response.body
            assert response.json["detail"].startswith(f"{most} requests wait for pushes or follow events")
            assert "ulimit -n" in response.json["hint"]
        verification = {"timeout": "5s", "expect": [{"count": {"at_least": 2}}]}
        assert limited.request("POST", "/api/v1/verify", verification).status == 503
        # A request that does not wait is not refused.
        assert limited.request("GET", "/api/v1/pushes/wait?count=0&timeout=0s").status == 200
        assert limited.request("GET", "/livez").status == 200
        waiting.pop().close()
        wait_until(
            lambda: limited.request("GET", "/api/v1/pushes/wait?count=0&timeout=1ms").status == 200, "still refused")
    finally:
        close_all(waiting)


@prlimit
def test_the_server_survives_without_descriptors_and_does_not_spin(start, device):
    """The limit is lowered, or the machine has no descriptors left: new connections stay in the kernel's queue."""
    server = start()
    with unharmed(server, processor=10):
        lowest = descriptors(server) + 4
        pid, kind = server.process.pid, resource.RLIMIT_NOFILE
        resource.prlimit(pid, kind, (lowest, resource.prlimit(pid, kind)[1]))
        crowd = [plain(server.port) for _ in range(10)]
        try:
            wait_until(lambda: "cannot accept a connection" in server.log(), "the log does not say that there are no descriptors")
            wait_until(lambda: descriptors(server) <= lowest - 2, "the server has no descriptor for other files", 5)
            spent, began = processor_seconds(server), time.monotonic()
            time.sleep(2)  # a fixed time for the measurement: a server that retries in a loop would use all of it
            assert processor_seconds(server) - spent < 0.5 * (time.monotonic() - began)
        finally:
            close_all(crowd)
        with connect(server) as later:
            assert later.push(push_headers(server, device)).status == 200
        assert server.request("GET", "/livez").status == 200
    assert len(server.logged("cannot accept a connection")) == 1


WAVE = 400  # concurrent connections: fits the usual limit of 1024 descriptors per process


def drop(sock):
    """Closes with a zero linger time, which sends a reset and leaves no local port in TIME_WAIT."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def test_thousands_of_connections_opened_and_dropped(start):
    """Waves of connections: most are closed with RST, some with FIN; some during the handshake, some after it, some
    after a push whose response they do not await. Memory and descriptors return to their values after the first
    wave, and the list of connections stays short.
    """
    server = start()
    wires = [connect(server)]
    context = wires[0].sock.context
    close_all(wires)
    held = []
    with unharmed(server, memory=64 * MEBIBYTE, processor=60):
        opened = descriptors(server)
        for wave in range((20_000 if ALL else 4_400) // WAVE):
            crowd = [plain(server.port) for _ in range(WAVE - 4)]
            wires = [connect(server, context=context) for _ in range(4)]
            for sock in crowd[::3]:
                sock.sendall(b"\x16\x03\x01\x02\x00\x01")
            for wire in wires[::2]:
                wire.open(push_headers(server, "ef" * 32), b"{}")
            for index, sock in enumerate([*crowd, *(wire.sock for wire in wires)]):
                drop(sock) if index % 10 else sock.close()
            if wave % 10 == 0:
                if opened is not None:
                    wait_until(lambda: descriptors(server) <= opened, f"descriptors are left open after wave {wave}")
                held.append(server.resident_bytes())
        wait_until(lambda: is_empty(server), "some are still open")
        listed = server.request("GET", "/api/v1/connections")
        assert len(listed.json["items"]) < 2_000 and len(listed.body) < 2 * MEBIBYTE, "the list is not bounded"
    assert held[0] is None or held[-1] - held[0] < 16 * MEBIBYTE, held
    assert len(server.log_path.read_bytes()) < 4 * MEBIBYTE


@pytest.mark.skipif(not drivers.tool("openssl"), reason="no openssl")
def test_renegotiation_is_refused(server, device):
    """TLS 1.2 lets a client request a new handshake, which costs the server ten times what it costs the client."""
    with unharmed(server):
        client = subprocess.Popen(
            [drivers.tool("openssl"), "s_client", "-connect", f"127.0.0.1:{server.port}", "-servername", "localhost",
             "-CAfile", server.ca, "-tls1_2", "-alpn", "h2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            client.stdin.write(b"R\n")
            client.stdin.flush()
            output = client.stdout.read().decode(errors="replace")
            assert "RENEGOTIATING" in output and "no renegotiation" in output
        finally:
            client.kill()
            client.wait()


@pytest.mark.skipif(not drivers.tool("openssl"), reason="no openssl")
def test_a_flood_of_key_updates_ends_its_connection(server):
    """Each line "k" makes `openssl s_client` send a TLS 1.3 KeyUpdate message. TLS itself does not limit their
    number.
    """
    with unharmed(server):
        client = subprocess.Popen(
            [drivers.tool("openssl"), "s_client", "-connect", f"127.0.0.1:{server.port}", "-servername", "localhost",
             "-CAfile", server.ca, "-tls1_3", "-alpn", "h2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        sent, output = 0, b""
        try:
            client.stdin.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0).serialize())
            client.stdin.flush()
            # Wait for the acknowledgement: s_client would send a "k" that it reads together with the preface.
            while SettingsFrame(0, flags=["ACK"]).serialize() not in output:
                part = os.read(client.stdout.fileno(), 65536)
                assert part, output
                output += part
            while sent < 1000 and client.poll() is None:
                time.sleep(0.005)  # s_client only reads the first character of each read
                client.stdin.write(b"k\n")
                client.stdin.flush()
                sent += 1
        except BrokenPipeError:
            pass
        finally:
            client.kill()
            output += client.communicate()[0]
    assert 32 < sent < 1000, f"{sent} key updates were sent"
    assert b"TLS key updates" in output, output[-500:]
    assert server.logged("TLS key updates")

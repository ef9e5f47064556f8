"""HTTP/1.1, plain text, garbage and incomplete handshakes on the APNs port: a clean end, and no effect on other
connections.
"""

import random
import re
import socket
import ssl
import subprocess
import time

import pytest
from hyperframe.frame import GoAwayFrame, SettingsFrame

from support import drivers
from support.server import clean_environment
from support.wire import (
    PREFACE, PROTOCOL_ERROR, TIMEOUT, Closed, Wire, connect, push_headers, read_until_closed, tls_socket,
)

HTTP1 = b"POST /3/device/abcd HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def neighbor(server, device):
    """A well-behaved connection on which pushes must be accepted before and after the test."""
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        yield wire
        assert wire.push(push_headers(server, device)).status == 200, "the neighbor suffered"
    with connect(server) as fresh:
        assert fresh.push(push_headers(server, device)).status == 200, "new connections suffer"


@pytest.fixture
def await_log(server):
    """Waits until a log line written since the start of the test matches."""
    at_start = len(server.log())

    def waiter(pattern):
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            lines = server.log()[at_start:].splitlines()
            if any(re.search(pattern, line) for line in lines):
                return
            time.sleep(0.02)
        raise AssertionError(f"no line of the log matches {pattern!r}: {lines}")

    return waiter


def plain_socket(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)


def settings_goaway_close(wire):
    """Asserts that the server sends what APNs sends to any other protocol; returns the GOAWAY's text."""
    frames = wire.read_to_end()
    assert [type(frame) for frame in frames] == [SettingsFrame, GoAwayFrame], frames
    assert [value for _, value in frames[0].settings.items()] == [4096, 1, 16384, 8000]
    assert frames[1].error_code == PROTOCOL_ERROR
    text = frames[1].additional_data.decode("ascii")
    assert text and not text.startswith("{"), text
    return text


@pytest.mark.parametrize("alpn", [(), ("http/1.1",), ("h2",)], ids=["no alpn", "alpn http/1.1", "alpn h2"])
def test_http1_over_tls_gets_settings_goaway_close_and_a_line_in_the_log(server, neighbor, await_log, alpn):
    with connect(server, preface=False, alpn=alpn) as wire:
        wire.write(HTTP1)
        settings_goaway_close(wire)
    await_log(r"HTTP/1\.1")


@pytest.mark.parametrize("flag", ["--http1.1", "--http1.0"])
def test_curl_without_http2_reports_the_same_as_for_apns(server, neighbor, flag):
    done = subprocess.run(
        [drivers.tool("curl"), "-sS", flag, "--cacert", server.ca, "-d", "{}", f"{server.url}/3/device/abcd"],
        capture_output=True, text=True, timeout=30, env=clean_environment())
    assert done.returncode != 0
    assert "HTTP/0.9" in done.stderr, done.stderr


@pytest.mark.parametrize("words", [HTTP1, PREFACE + SettingsFrame().serialize(), b"hello, is anybody there?\r\n"],
                         ids=["HTTP/1.1", "HTTP/2 without TLS", "text"])
def test_plain_text_gets_settings_goaway_close_in_the_clear_and_a_line_in_the_log(
        server, neighbor, await_log, words):
    with Wire(plain_socket(server), preface=False) as wire:
        wire.write(words)
        settings_goaway_close(wire)
    await_log(r"(?i)plain|without TLS|clear")


@pytest.mark.parametrize("seed", range(8))
def test_garbage_inside_tls_ends_that_connection(server, neighbor, seed):
    noise = random.Random(seed).randbytes(4096)
    with connect(server, preface=False) as wire:
        wire.write(noise)
        wire.read_to_end()
        assert wire.closed


@pytest.mark.parametrize("seed", range(8))
def test_garbage_after_a_good_preface_ends_that_connection(server, neighbor, seed):
    generator = random.Random(seed)
    frame = (100).to_bytes(3, "big") + bytes([generator.choice([0, 1, 3, 4, 6, 8, 9]), 0xFF]) + generator.randbytes(4)
    with connect(server) as wire:
        try:
            for _ in range(64):
                wire.write(frame + generator.randbytes(100))
        except Closed:
            return
        wire.read_to_end()
        assert wire.closed


@pytest.mark.parametrize("noise", [
    b"\x16\x03\x01\x00\x05\xff\xff\xff\xff\xff", b"\x16\x03\x01\xff\xff" + b"\x00" * 70000, b"\x80\x2e\x01\x00\x02",
    b"\x00" * 4096, b"\xff" * 4096,
], ids=["bad record", "huge record", "SSL 2", "zeros", "ones"])
def test_garbage_instead_of_tls_ends_that_connection(server, neighbor, noise):
    with plain_socket(server) as sock:
        try:
            sock.sendall(noise)
        except (BrokenPipeError, ConnectionResetError):
            return
        sock.shutdown(socket.SHUT_WR)
        read_until_closed(sock)


def client_hello(server):
    """Returns a real client's first flight."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context(cafile=server.ca).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_incomplete_handshakes_do_not_delay_others(server, neighbor):
    hello = client_hello(server)
    halves = []
    for index in range(100):
        sock = plain_socket(server)
        sock.sendall(hello[:1 + index * (len(hello) - 2) // 99])
        halves.append(sock)
    with connect(server) as wire:
        wire.settings()
    for sock in halves:
        sock.close()


def test_a_client_hello_byte_by_byte_is_a_handshake(server, device):
    """A single byte does not identify the protocol; the server must wait for more."""
    sock = plain_socket(server)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    hello = client_hello(server)
    for byte in hello[:16]:
        sock.sendall(bytes([byte]))
    sock.sendall(hello[16:])
    assert sock.recv(5)[0] == 0x16, "the server sends a handshake record"
    sock.close()


def test_a_silent_connection_does_not_delay_others(server, neighbor):
    silent = [plain_socket(server) for _ in range(50)]
    half_spoken = [tls_socket(server) for _ in range(5)]
    with connect(server) as wire:
        wire.settings()
    for sock in silent + half_spoken:
        sock.close()


def test_a_preface_in_pieces_is_a_preface(server, device):
    with connect(server, preface=False) as wire:
        for byte in PREFACE + SettingsFrame().serialize():
            wire.write(bytes([byte]))
        assert wire.push(push_headers(server, device)).status == 200


@pytest.mark.parametrize("cut", [1, 9, 30, 60])
def test_half_a_request_and_a_closed_connection(server, neighbor, device, cut):
    for _ in range(20):
        wire = connect(server)
        _, frames = wire.request_frames(push_headers(server, device), b"{}")
        wire.write(b"".join(frame.serialize() for frame in frames)[:cut])
        wire.close()


def test_a_client_that_reconnects_does_not_fill_the_log(start):
    server = start("--log-level", "notice")
    for _ in range(130):
        with plain_socket(server) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while sock.recv(65536):
                pass
    lines = server.logged("plain text", count=100)
    assert len(lines) == 100
    assert "further messages about 127.0.0.1 are logged at level debug" in lines[-1] and "further messages" not in lines[-2]
    # A different problem is logged.
    with connect(server) as wire:
        wire.write(b"\0\0\0\4\0\0\0\0\1")  # SETTINGS on a stream
        wire.read_to_end()
    assert server.logged("HTTP/2 error 1")

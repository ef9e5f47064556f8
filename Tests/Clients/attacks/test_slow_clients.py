"""Slow clients: the server closes each or ends its request without delaying others. All of them attack one server
at the same time, because each takes half a minute to be detected.
"""

import re
import secrets
import socket
import ssl
import sys
import threading
import time

import pytest
from hyperframe.frame import DataFrame, PingFrame, SettingsFrame, WindowUpdateFrame

from support.attack import ENHANCE_YOUR_CALM, MEBIBYTE, client_log, goaways, name_of, unharmed
from support.server import Server
from support.wire import CANCEL, Closed, Wire, client_context, connect, push_headers, tls_socket

HALF_OPEN = 500
# The address they come from. The server logs 100 messages per address, and the other attackers' messages are needed.
HALF_OPEN_HOST = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
DRIP = 0.5  # seconds between two bytes of a dripping client
# Seconds. The server checks every ten seconds and closes at the fourth check; about doubled for slow machines.
TIMEOUT = 90

pytestmark = pytest.mark.timeout(3 * TIMEOUT)


class Slow(threading.Thread):
    """One slow client. The result of `act` is in `self.seen`."""

    def __init__(self, act, server, device):
        super().__init__(daemon=True)
        self.act, self.server, self.device = act, server, device
        self.peer = self.peers = self.seen = self.error = None
        self.began = time.monotonic()
        self.took = None

    def run(self):
        try:
            self.seen = self.act(self)
        except Exception as error:  # raised when its test accesses it
            self.error = error
        self.took = time.monotonic() - self.began

    def wire(self, **settings):
        wire = connect(self.server, **settings)
        wire.sock.settimeout(TIMEOUT)
        self.peer = name_of(wire.sock)
        return wire

    def drip(self, sock, data):
        """Sends one byte at a time until the server closes or all bytes are sent."""
        for byte in data:
            try:
                sock.sendall(bytes([byte]))
            except OSError:
                return
            time.sleep(DRIP)


def says_nothing(slow):
    """Does not start TLS: hundreds of half-open sockets."""
    sockets = [
        socket.create_connection(("127.0.0.1", slow.server.port), source_address=(HALF_OPEN_HOST, 0))
        for _ in range(HALF_OPEN)]
    slow.peers = [name_of(sock) for sock in sockets]
    ends = []
    for sock in sockets:
        sock.settimeout(TIMEOUT)
        try:
            ends.append(sock.recv(1))
        except ConnectionResetError:
            ends.append(b"")
        sock.close()
    return ends


def drips_its_greeting(slow):
    """Sends a TLS ClientHello byte by byte."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(slow.server.ca).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    with socket.create_connection(("127.0.0.1", slow.server.port)) as sock:
        slow.peer = name_of(sock)
        slow.drip(sock, outgoing.read())


def says_no_preface(slow):
    """Completes the TLS handshake and sends nothing."""
    sock = tls_socket(slow.server)
    sock.settimeout(TIMEOUT)
    slow.peer = name_of(sock)
    with Wire(sock, preface=False, acknowledge=False) as wire:
        wire.read_to_end()
        return goaways(wire)


def drips_its_headers(slow):
    """Sends a header block byte by byte: the field "x" of 16 kB."""
    with slow.wire() as wire:
        literal = b"\x00\x01x\x7f\xe1\x7e"
        wire.write(len(literal + b"y" * 16352).to_bytes(3, "big") + b"\x01\x04\0\0\0\x01" + literal)
        try:
            drip_until(wire, b"y", lambda: goaways(wire))
        except Closed:
            pass  # with its GOAWAY in the same read
        wire.read_to_end()
        return goaways(wire)


def drips_its_body(slow):
    """Sends a body byte by byte."""
    with slow.wire() as wire:
        stream = wire.open(push_headers(slow.server, slow.device), end_stream=False)
        response = wire.responses[stream]
        drip_until(wire, DataFrame(stream, b" ").serialize(), lambda: response.finished)
        # The connection is still usable.
        status = wire.push(push_headers(slow.server, "ab" * 32)).status
        return response, status, goaways(wire), slow.server.record(slow.device)


def drip_until(wire, data, is_over):
    while not is_over():
        wire.write(data)
        time.sleep(DRIP)
        wire.drain()


def gives_no_window(slow):
    """Grants no flow-control window for the body of a rejection."""
    with slow.wire(settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0}) as wire:
        response = wire.push(push_headers(slow.server, slow.device, apns_topic=None))
        status = wire.push(push_headers(slow.server, "ab" * 32)).status
        return response, status, goaways(wire), slow.server.record(slow.device)


def reads_nothing(slow):
    """Requests more, within the limits, than the socket buffers hold, and never reads a response."""
    slow.server.api("POST", "/rules", {
        "name": "long", "do": {"respond": {"status": 503, "body": "x" * 60_000}}, "when": {"device_token": slow.device}})
    largest = 2**31 - 1
    with slow.wire(settings={SettingsFrame.INITIAL_WINDOW_SIZE: largest}) as wire:
        wire.send(WindowUpdateFrame(0, window_increment=largest - 65535))
        wire.settings()
        wire.push(push_headers(slow.server, "ab" * 32))  # 1000 streams from here on
        # 24 MB. Sent in one write, so that the server reads all requests before it has written a response.
        headers = push_headers(slow.server, slow.device)
        wire.send(*(frame for _ in range(400) for frame in wire.request_frames(headers, b"{}")[1]))
        # A client that reads would see the end of the connection; this one only notices it when it writes.
        try:
            while True:
                time.sleep(DRIP)
                wire.send(PingFrame(opaque_data=b"anything"))
        except (Closed, OSError) as error:
            return error


def is_kept_waiting(slow):
    """Not slow itself: the server delays its push for longer than the limits for slow clients."""
    slow.server.api("POST", "/rules", {
        "name": "held", "do": {"delay": {"fixed": "42s"}}, "when": {"device_token": slow.device}})
    with slow.wire() as wire:
        response = wire.push(push_headers(slow.server, slow.device))
        return response.status, goaways(wire)


ATTACKS = (says_nothing, drips_its_greeting, says_no_preface, drips_its_headers, drips_its_body, gives_no_window,
           reads_nothing, is_kept_waiting)


@pytest.fixture(scope="module")
def siege(binary, certs):
    """The result of each attack, and the server's log about it. A bystander must not be affected."""
    server = Server(binary, certs, "--max-records", "20000")
    try:
        # A third of the memory is for the bystander's pushes.
        with unharmed(server, memory=48 * MEBIBYTE, processor=60, interval=0.05) as bystander:
            attackers = {act: Slow(act, server, secrets.token_hex(32)) for act in ATTACKS}
            for attacker in attackers.values():
                attacker.start()
            for attacker in attackers.values():
                attacker.join(2 * TIMEOUT)
                assert attacker.took is not None, f"{attacker.act.__name__} is still there"
            attackers["responses to the provider"] = len(bystander.statuses)
        yield server, attackers
        assert server.stop() == 0
    finally:
        server.kill()


@pytest.fixture
def after(siege):
    """`after(act)`: the attacker after the end of all attacks, and the log lines about it."""
    server, attackers = siege

    def of(act, count=1):
        attacker = attackers[act]
        if attacker.error:
            raise attacker.error
        assert attacker.took < TIMEOUT
        if attacker.peers is None:
            return attacker, client_log(server, attacker.peer, count)
        # The limit of the log leaves out most of them; which ones depends on the order in which they are closed.
        lines = server.logged(f"{HALF_OPEN_HOST}:", "no TLS handshake within 10 s")
        return attacker, [line for line in lines if any(re.search(rf"\b{re.escape(peer)}\b", line) for peer in attacker.peers)]

    return of


def test_half_open_sockets_are_closed(after):
    slow, lines = after(says_nothing)
    assert slow.seen == [b""] * HALF_OPEN
    assert 0 < len(lines) <= 100


def test_a_slow_handshake_is_cut_off(after):
    slow, lines = after(drips_its_greeting)
    assert len(lines) == 1 and "no TLS handshake within 10 s" in lines[0]


def test_a_connection_without_preface_is_ended(after):
    slow, lines = after(says_no_preface)
    assert [goaway.error_code for goaway in slow.seen] == [ENHANCE_YOUR_CALM]
    assert b"preface within 30 s" in slow.seen[0].additional_data
    assert len(lines) == 1 and "preface within 30 s" in lines[0]


@pytest.mark.parametrize("act", [says_no_preface, drips_its_headers, drips_its_body, gives_no_window])
def test_the_end_comes_after_the_documented_time(after, act):
    """30 s, checked every 10 s (Limits.md); the rest is for slow machines."""
    slow, _ = after(act)
    assert 29.5 < slow.took < 50


def test_headers_that_never_end_end_their_connection(after):
    slow, lines = after(drips_its_headers)
    assert [goaway.error_code for goaway in slow.seen] == [ENHANCE_YOUR_CALM]
    assert b"the header block of stream 1 did not end within 30 s" == slow.seen[0].additional_data
    assert len(lines) == 1 and "header block of stream 1" in lines[0]


def test_a_body_that_never_ends_ends_its_stream(after):
    slow, lines = after(drips_its_body)
    response, status, said, record = slow.seen
    assert (response.headers, response.reset, status, said) == (None, CANCEL, 200, [])
    assert len(lines) == 1 and "stream 1 reset with CANCEL: its request is incomplete" in lines[0]
    assert (record["outcome"], record["accepted"], record["served"]["reset"]) == ("unanswered", False, "CANCEL")


def test_a_response_without_window_is_abandoned(after):
    slow, lines = after(gives_no_window)
    response, status, said, record = slow.seen
    assert (response.status, response.data, response.reset, status, said) == (400, [], CANCEL, 200, [])
    assert len(lines) == 1 and "stream 1 reset with CANCEL: its response is not read" in lines[0]
    assert (record["served"]["status"], record["served"]["reset"]) == (400, "CANCEL")
    assert (record["decision"], record["ending"], record["outcome"]) == ("rejected", "reset", "response_lost")


def test_a_client_that_never_reads_is_closed(after):
    slow, lines = after(reads_nothing)
    assert isinstance(slow.seen, (Closed, OSError)) and not isinstance(slow.seen, TimeoutError), slow.seen
    assert len(lines) == 1 and "does not read its responses, closed" in lines[0]


def test_a_provider_gets_its_responses_during_all_attacks(siege):
    assert siege[1]["responses to the provider"] > 100


def test_a_push_delayed_by_a_rule_does_not_time_out(after):
    slow, lines = after(is_kept_waiting, count=0)
    assert slow.seen == (200, []) and lines == []
    assert slow.took > 40

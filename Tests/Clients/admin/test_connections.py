"""Connections in the admin API, and its actions on them: GOAWAY, reset and close."""

import concurrent.futures
import datetime
import json
import signal
import socket
import ssl
import threading

import pytest
from hyperframe.frame import GoAwayFrame, SettingsFrame

from support.faults import (  # noqa: F401 (fixtures)
    EVERY_STREAM, Provider, closed, ending, faults, is_silent, line, mock, new_device, pushed, timeline, widened,
)
from support.selection import ALL
from support.server import wait_until
from support.wire import TIMEOUT, Closed, client_context, connect, push_headers, read_until_closed, tls_socket


def id_of(server, wire):
    """Returns the id of a client's own connection."""
    port = wire.sock.getsockname()[1]
    mine = [one["id"] for one in server.api("GET", "/connections")["items"] if one["client"].endswith(f":{port}")]
    return mine[-1]


def command(server, what, **body):
    return server.api("POST", f"/connections/{what}", body)["connections"]


def goaways(wire):
    return [(frame.error_code, frame.last_stream_id, frame.additional_data) for frame in wire.frames
            if isinstance(frame, GoAwayFrame)]


def parsed(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


# Large amounts at once

def test_a_full_socket_buffer_is_read_completely(start, device):
    """More data than the server reads at once: it is stopped while the socket buffers fill, and the last byte is
    sent separately.
    """
    server = start()
    pushes = 60  # each 1 KB, which fits the window, with 6 KB of header fields, to which flow control does not apply
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        bodies, frames = {}, []
        for number in range(pushes):
            body = b'{"aps":{"alert":"%s"}}' % (b"%d " % number * 200)[:1_000]
            stream, each = wire.request_frames(push_headers(server, device, ("x-filler", "~" * 6_000)), body)
            bodies[stream] = body
            frames += each
        sent = b"".join(frame.serialize() for frame in frames)
        server.signal(signal.SIGSTOP)
        try:
            sending = threading.Thread(target=lambda: (wire.write(sent[:-1]), wire.write(sent[-1:])), daemon=True)
            sending.start()
            sending.join(2)  # as much as the sockets accept
        finally:
            server.signal(signal.SIGCONT)
        sending.join(TIMEOUT)
        assert {wire.response(stream).status for stream in bodies} == {200}
    items = server.api("GET", "/pushes?limit=1000")["items"]
    kept = {item["connection"]["stream"]: item["request"]["payload"] for item in items}
    assert [kept[stream] for stream in bodies] == [json.loads(body) for body in bodies.values()]


# Listing

def test_an_open_connection(mock, faults):
    with widened(mock) as wire:
        connection = mock.api("GET", f"/connections/{id_of(mock, wire)}")
        events = connection.pop("events")
        number = connection.pop("number")
        host, port = wire.sock.getsockname()
        assert connection == {
            "id": f"c{number}", "state": "open", "listener": 0, "client": f"{host}:{port}", "sni": "localhost",
            "tls": "TLSv1.3", "certificate": None, "pushes": 1, "events_dropped": 0}
        assert [(event["event"], event["detail"]) for event in events] == [
            ("accepted", "listener=0"), ("handshake", "TLSv1.3 sni=localhost"),
            ("settings", "max_concurrent_streams=1"), ("settings", "max_concurrent_streams=1000")]
        times = [parsed(event["at"]) for event in events]
        assert times == sorted(times)


def test_a_connection_with_a_certificate(mock, faults, certs):
    device = new_device()
    with line(mock, certificate=(certs / "client.pem", certs / "client-key.pem")) as wire:
        assert wire.push(push_headers(mock, device, authorization=None)).status == 200
        connection = mock.api("GET", f"/connections/{id_of(mock, wire)}")
    assert connection["certificate"] == "com.example.app"
    assert connection["id"] == mock.record(device)["connection"]["id"], "records name the same connection"


def test_a_closed_connection_stays_listed(mock, faults):
    with widened(mock) as wire:
        connection = id_of(mock, wire)
    wait_until(lambda: mock.api("GET", f"/connections/{connection}")["state"] == "closed", "closed")
    assert mock.api("GET", f"/connections/{connection}")["events"][-1]["event"] == "closed"
    assert connection in [one["id"] for one in mock.api("GET", "/connections", state="closed")["items"]]
    assert connection not in [one["id"] for one in mock.api("GET", "/connections", state="open")["items"]]


def test_the_list_contains_the_counts(mock, faults):
    wait_until(lambda: mock.api("GET", "/connections")["open"] == 0, "nothing open")
    with widened(mock), widened(mock), widened(mock):
        listed = mock.api("GET", "/connections")
        assert (listed["open"], listed["total"]) == (3, len(listed["items"]))
        assert len(mock.api("GET", "/connections", state="open")["items"]) == 3


def test_closed_connections_are_limited(start):
    """A provider that connects for each push does not use up the memory."""
    server = start()
    assert server.api("GET", "/connections") == {"items": [], "total": 0, "open": 0}
    for _ in range(230):
        socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT).close()
    wait_until(lambda: server.api("GET", "/connections")["open"] == 0, "all closed")
    with widened(server) as wire:
        listed = server.api("GET", "/connections")
        assert id_of(server, wire) == "c231"
        assert (listed["total"], listed["open"]) == (201, 1)


def test_a_failed_handshake_has_a_reason(mock, faults):
    with pytest.raises(ssl.SSLCertVerificationError):
        tls_socket(mock, context=ssl.create_default_context())
    found = wait_until(
        lambda: [event for one in mock.api("GET", "/connections", state="closed")["items"] for event in one["events"]
                 if event["event"] == "handshake" and "alert" in event["detail"].lower()], "a failed handshake")
    assert "unknown ca" in found[-1]["detail"].lower(), found


def test_a_stream_that_is_no_valid_http2_is_in_the_timeline(mock, faults):
    with widened(mock) as wire:
        stream = wire.open(push_headers(mock, new_device(), ("Upper-Case", "x")), b"{}")
        assert wire.response(stream).reset == 1
        events, _ = timeline(mock, wire)
        assert ("reset", f"stream={stream} PROTOCOL_ERROR") in events


def test_events_are_bounded(mock, faults):
    with widened(mock) as wire:
        for streams in range(1, 121):
            faults.add({"settings": {"max_concurrent_streams": streams}}, at="connection", name="flip")
        wire.until(lambda frame: isinstance(frame, SettingsFrame) and list(frame.settings.values()) == [120])
        connection = mock.api("GET", f"/connections/{id_of(mock, wire)}")
        assert len(connection["events"]) == 100
        assert connection["events_dropped"] > 0
        assert connection["events"][0]["event"] == "accepted"


# GOAWAY by request

def test_goaway_to_all(mock, faults):
    wires = [widened(mock) for _ in range(5)]
    ids = {id_of(mock, wire) for wire in wires}
    assert set(command(mock, "goaway", all=True)) >= ids
    for wire in wires:
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, 1, b"")]
        wire.close()
        assert ("goaway", "NO_ERROR last_stream=1 ") in closed(mock, wire)


def test_goaway_to_one_connection_does_not_affect_others(mock, faults, device):
    with widened(mock) as one, widened(mock) as other:
        assert command(mock, "goaway", connection=id_of(mock, one)) == [id_of(mock, one)]
        assert ending(one) == "fin"
        assert other.push(push_headers(mock, device)).status == 200
        assert goaways(other) == [] and timeline(mock, other)[1] == "open"


@pytest.mark.parametrize(("fields", "expected"), [
    ({"code": "ENHANCE_YOUR_CALM"}, [(11, 1, b"")]), ({"code": 7}, [(7, 1, b"")]),
    ({"debug": "Maximum exceeded"}, [(0, 1, b"Maximum exceeded")]),
    ({"debug": {"reason": "Shutdown"}}, [(0, 1, b'{"reason":"Shutdown"}')]),
    ({"twice": True}, [(0, EVERY_STREAM, b""), (0, 1, b"")]), ({"last_stream": "all"}, [(0, EVERY_STREAM, b"")]),
    ({"last_stream": "this"}, [(0, 1, b"")]), ({"last_stream": "before_this"}, [(0, 1, b"")]),
], ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_goaway_with_fields(mock, faults, fields, expected):
    with widened(mock) as wire:
        command(mock, "goaway", connection=id_of(mock, wire), close_after="0s", **fields)
        assert ending(wire) == "fin"
        assert goaways(wire) == expected
        # Two GOAWAY frames for one command are one event.
        (logged,) = [detail for event, detail in closed(mock, wire) if event == "goaway"]
        assert logged.endswith(expected[-1][2].decode()), logged


def test_goaway_on_a_connection_without_a_stream(mock, faults):
    with line(mock) as wire:
        wire.ping()
        command(mock, "goaway", connection=id_of(mock, wire), close_after="0s")
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, 0, b"")]


def test_goaway_and_never_close(mock, faults):
    after = new_device()
    with widened(mock) as wire:
        command(mock, "goaway", connection=id_of(mock, wire), close_after="never")
        wire.goaway()
        late = pushed(wire, mock, after)
        wire.ping()
        assert is_silent(wire) and not wire.responses[late].finished
        assert timeline(mock, wire)[1] == "open"
    assert mock.record(after)["accepted"] is False


def test_goaway_while_pushes_are_delayed(mock, faults):
    """Delayed pushes are below the last stream, so they are answered before the connection ends."""
    devices = [new_device() for _ in range(20)]
    with widened(mock) as wire:
        faults.add({"delay": {"fixed": "600ms"}})
        streams = [pushed(wire, mock, one) for one in devices]
        wire.ping()
        command(mock, "goaway", connection=id_of(mock, wire), close_after="5s")
        assert wire.goaway().last_stream_id == streams[-1]
        assert {wire.response(stream).status for stream in streams} == {200}
        assert ending(wire) == "fin"
    for one in devices:
        assert mock.record(one)["accepted"] is True


COUNT = 400 if ALL else 100  # pushes of each provider


@pytest.mark.timeout(120)
def test_goaway_again_and_again_and_a_good_provider_loses_and_doubles_nothing(mock, faults):
    """Four providers written with h2 push while GOAWAYs end all connections. They trust the last stream id: they
    resend pushes above it on a new connection, and a push below it without a response would be lost.
    """
    ended = threading.Event()

    def provide():
        """Returns the devices whose pushes were answered with 200, and the number of GOAWAYs; fails if a push was
        lost.
        """
        waiting, served, hits = [new_device() for _ in range(COUNT)], [], 0
        while waiting:
            try:
                provider = Provider(mock)
            except (OSError, ssl.SSLError):
                continue  # the connection ended during the handshake
            with provider:
                provider.until(lambda: provider.limits or provider.goaway)
                while waiting and provider.limits and not provider.goaway and not provider.closed:
                    # One stream until the limit is raised.
                    sent = {provider.open(one): one for one in waiting[:1 if provider.limits[-1] == 1 else 20]}
                    provider.until(lambda: provider.goaway or provider.ended.issuperset(sent))
                    assert provider.goaway or not provider.closed, "closed without GOAWAY"
                    last = provider.goaway[1] if provider.goaway else EVERY_STREAM
                    for stream in (stream for stream in sent if stream <= last):
                        assert provider.statuses.get(stream) == 200, (stream, provider.goaway)
                        served.append(sent[stream])
                        waiting.remove(sent[stream])
                hits += provider.goaway is not None
        return served, hits

    def disturb():
        for _ in range(60):  # limited, because on a slow machine no provider would make progress
            if ended.wait(0.05):
                return
            mock.api("POST", "/connections/goaway", {"all": True, "debug": {"reason": "Shutdown"}})

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        disturber = pool.submit(disturb)
        try:
            providers = [pool.submit(provide) for _ in range(4)]
            served, hits = zip(*(provider.result(100) for provider in providers))
        finally:
            ended.set()
        disturber.result(TIMEOUT)
    assert [len(devices) for devices in served] == [COUNT] * 4 and sum(hits) > 0
    for one in (device for devices in served for device in devices):
        assert len(mock.pushes(device_token=one, accepted="true")) == 1


# Reset and close by request

def test_reset_of_one_connection_does_not_affect_others(mock, faults, device):
    with widened(mock) as one, widened(mock) as other:
        assert command(mock, "reset", connection=id_of(mock, one)) == [id_of(mock, one)]
        assert ending(one) == "reset"
        assert goaways(one) == []
        assert other.push(push_headers(mock, device)).status == 200
        assert closed(mock, one)[-2:] == [("reset", "TCP RST"), ("closed", "")]


def test_close_of_several_connections(mock, faults, device):
    wires = [widened(mock) for _ in range(3)]
    with widened(mock) as other:
        ids = [id_of(mock, wire) for wire in wires]
        assert sorted(command(mock, "close", connection=ids)) == sorted(ids)
        for wire in wires:
            assert ending(wire) == "fin"
            assert goaways(wire) == []
        assert other.push(push_headers(mock, device)).status == 200


@pytest.mark.parametrize("with_port", [True, False], ids=["with port", "address alone"])
def test_connections_of_a_client(mock, faults, with_port):
    with widened(mock) as one, widened(mock) as other:
        host, port = one.sock.getsockname()
        assert command(mock, "close", client="127.0.0.2") == []
        ids = command(mock, "close", client=f"{host}:{port}" if with_port else host)
        assert (id_of(mock, one) in ids, id_of(mock, other) in ids) == (True, not with_port)
        assert ending(one) == "fin"
        if with_port:
            other.ping()
        else:
            assert ending(other) == "fin"


def test_connections_of_a_listener(start, device):
    server = start(apns=["127.0.0.1:0", "127.0.0.1:0"])
    (_, first), (_, second) = server.listeners
    with line(server, port=first) as one, line(server, port=second) as other:
        one.ping(), other.ping()
        ids = [id_of(server, one), id_of(server, other)]
        assert command(server, "reset", connection=ids, listener=1) == ids[1:], "all of the conditions"
        assert ending(other) == "reset"
        assert one.push(push_headers(server, device)).status == 200
        assert command(server, "close", listener=0) == ids[:1]


def test_delayed_pushes_end_with_their_connection(mock, faults, device):
    faults.add({"hang": {}})
    with line(mock) as wire:
        pushed(wire, mock, device)
        wire.ping()
        command(mock, "reset", connection=id_of(mock, wire))
        assert ending(wire) == "reset"
    wait_until(lambda: mock.record(device)["outcome"] == "unanswered", "unanswered")
    assert mock.record(device)["accepted"] is False


@pytest.mark.parametrize(("what", "end"), [("reset", "reset"), ("close", "fin"), ("goaway", "fin")])
def test_connections_before_the_handshake(mock, faults, what, end):
    """Before the handshake no frame can be sent, so the connections are just ended."""
    with socket.create_connection(("127.0.0.1", mock.port), timeout=TIMEOUT) as sock:
        port = sock.getsockname()[1]
        wait_until(lambda: any(one["client"].endswith(f":{port}")
                               for one in mock.api("GET", "/connections", state="open")["items"]), "accepted")
        command(mock, what, all=True)
        assert read_until_closed(sock)[1] == end


def test_a_stalled_handshake_is_ended_by_a_command(mock, faults):
    rule = faults.add({"stall": {}}, at="tls")
    sock = socket.create_connection(("127.0.0.1", mock.port), timeout=TIMEOUT)
    failures = []

    def shake():
        try:
            client_context(mock.ca).wrap_socket(sock, server_hostname="localhost")
        except (OSError, ssl.SSLError) as error:
            failures.append(error)

    thread = threading.Thread(target=shake, daemon=True)
    thread.start()
    wait_until(lambda: faults.fired(rule) == 1, "stalled")
    command(mock, "close", all=True)
    thread.join(TIMEOUT)
    sock.close()
    assert failures and not isinstance(failures[0], TimeoutError), failures


def test_a_hundred_connections_at_once(mock, faults):
    wires = [connect(mock) for _ in range(100)]
    for wire in wires:
        wire.settings()
    assert len(command(mock, "reset", all=True)) >= 100
    for wire in wires:
        with pytest.raises(Closed):
            while True:
                wire.receive()
    wait_until(lambda: mock.api("GET", "/connections")["open"] == 0, "all closed")


def test_a_command_without_connections(mock, faults):
    wait_until(lambda: mock.api("GET", "/connections")["open"] == 0, "nothing open")
    assert command(mock, "goaway", all=True) == []

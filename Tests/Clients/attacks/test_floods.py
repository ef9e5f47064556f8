"""Floods of frames. Each ends its connection with a GOAWAY that states the reason; other connections are
unaffected.
"""

import itertools

import pytest
from hyperframe.frame import ContinuationFrame, DataFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

from support.attack import ENHANCE_YOUR_CALM, MEBIBYTE, client_log, goaways, name_of, storm, unharmed
from support.selection import ALL
from support.server import wait_until
from support.wire import CANCEL, REFUSED_STREAM, Closed, connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds

DATA, HEADERS, PRIORITY, WINDOW_UPDATE, CONTINUATION, UNKNOWN = 0, 1, 2, 8, 9, 0x77
END_HEADERS, PADDED = 4, 8


def frame(kind, payload=b"", *, stream=0, flags=0):
    """Returns a frame by its numbers, for frames that no library sends."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def opened(server, wire, device):
    """Returns a stream whose request does not end."""
    return wire.open(push_headers(server, device), end_stream=False)


def answered(server, wire, device):
    """Returns a stream with a complete response."""
    stream = wire.open(push_headers(server, device), b"{}")
    assert wire.response(stream).status == 200
    return stream


def refused(server, wire, device):
    """Returns a stream that the server has answered and reset, because it does not need the body."""
    stream = wire.open(push_headers(server, device, ("x-fill", "x" * 9000)), end_stream=False)
    assert wire.response(stream).status == 431
    return stream


NOTHING = {
    "PING": lambda *_: PingFrame(opaque_data=b"anyone??").serialize(),
    "PING acknowledgements": lambda *_: PingFrame(opaque_data=b"nobodyis", flags=["ACK"]).serialize(),
    "SETTINGS": lambda *_: SettingsFrame(settings={SettingsFrame.INITIAL_WINDOW_SIZE: 70_000}).serialize(),
    "empty SETTINGS": lambda *_: SettingsFrame().serialize(),
    "PRIORITY": lambda *_: frame(PRIORITY, b"\0\0\0\0\x10", stream=77),
    "WINDOW_UPDATE": lambda *_: frame(WINDOW_UPDATE, b"\0\0\0\1"),
    "unknown frames": lambda *_: frame(UNKNOWN),
    "empty DATA": lambda *which: frame(DATA, stream=opened(*which)),
    "DATA that is padding": lambda *which: frame(DATA, b"\0", stream=opened(*which), flags=PADDED),
    "DATA on a stream that the server has reset": lambda *which: frame(DATA, b"x", stream=refused(*which)),
    "RST_STREAM on a stream that is over": lambda *which: (
        RstStreamFrame(answered(*which), error_code=CANCEL).serialize()),
}


@pytest.mark.parametrize("flood", NOTHING)
def test_empty_frames_end_their_connection(server, device, flood):
    with unharmed(server), connect(server) as hostile:
        nothing = NOTHING[flood](server, hostile, device)
        said = storm(hostile, nothing * (16384 // len(nothing)))
        assert [goaway.error_code for goaway in said] == [ENHANCE_YOUR_CALM]
        assert b"flood" in said[0].additional_data.lower() or b"reset" in said[0].additional_data
        lines = client_log(server, name_of(hostile.sock))
        assert len(lines) == 1 and said[0].additional_data.decode() in lines[0]


def test_unexpected_settings_acknowledgements_end_their_connection(server):
    with unharmed(server), connect(server) as hostile:
        said = storm(hostile, SettingsFrame(flags=["ACK"]).serialize() * 1000)
        assert [(goaway.error_code, goaway.additional_data) for goaway in said] == [(1, b"SETTINGS: unexpected ACK")]
        assert len(client_log(server, name_of(hostile.sock))) == 1


def test_a_provider_with_many_control_frames_is_no_flood(server, device):
    """Sends more PRIORITY frames than would end a connection without pushes: about three bytes of them per byte of
    a push.
    """
    chatter = frame(PRIORITY, b"\0\0\0\0\x10", stream=7777) * 1000
    with connect(server) as busy:
        for _ in range(9 * MEBIBYTE // len(chatter)):
            busy.write(chatter)
            assert busy.push(push_headers(server, device), b"x" * 4000).status == 200
        assert goaways(busy) == []


def requests(server, wire, device, count, then):
    """Returns the bytes of this many requests on new streams, with `then` after each. Their header blocks are
    constant once the dynamic table is filled, so the attack is cheap for the client.
    """
    first, frames = wire.request_frames(push_headers(server, device), end_stream=False)
    block = b"".join(one.serialize() for one in frames)
    learnt = wire.header_frames(first, push_headers(server, device), end_stream=False)[0].data
    streams = range(first + 2, first + 2 + 2 * count, 2)
    wire.next_stream = streams.stop
    return itertools.chain(
        [block + then(first)], (frame(HEADERS, learnt, stream=stream, flags=END_HEADERS) + then(stream)
                                for stream in streams))


def in_batches(parts, size):
    parts = iter(parts)
    while batch := b"".join(itertools.islice(parts, size)):
        yield batch


def flooded(wire, batches):
    """Writes until the server sends GOAWAY or closes; returns its GOAWAY frames."""
    try:
        for batch in batches:
            wire.write(batch)
            wire.drain()
            if goaways(wire):
                break
    except Closed:
        pass  # closed while writing
    wire.read_to_end()
    return goaways(wire)


RESETS = {
    "by the client (CVE-2023-44487)": lambda stream: RstStreamFrame(stream, error_code=CANCEL).serialize(),
    "by the client, with the request whole": lambda stream: (
        DataFrame(stream, b"{}", flags=["END_STREAM"]).serialize()
        + RstStreamFrame(stream, error_code=CANCEL).serialize()),
}


@pytest.mark.parametrize("reset", RESETS)
def test_rapid_reset_ends_its_connection(server, device, reset):
    with unharmed(server), connect(server) as hostile:
        said = flooded(hostile, in_batches(requests(server, hostile, device, 100_000, RESETS[reset]), 100))
        assert [goaway.error_code for goaway in said] == [ENHANCE_YOUR_CALM]
        assert b"more than 10000 streams reset" in said[0].additional_data
        assert said[0].last_stream_id < 2 * 15_000
        lines = client_log(server, name_of(hostile.sock))
        assert len(lines) == 1 and "more than 10000 streams reset" in lines[0]


def test_provoked_resets_end_the_connection(server, device):
    """CVE-2025-8671: the client never resets a stream, but sends what the server must reset. The log has two lines:
    the first error and the end of the connection.
    """
    lie = lambda stream: DataFrame(stream, b"{}", flags=["END_STREAM"]).serialize()  # noqa: E731
    with unharmed(server), connect(server, acknowledge=False) as hostile:
        headers = push_headers(server, device, ("content-length", "1"))
        first, frames = hostile.request_frames(headers, end_stream=False)
        learnt = hostile.header_frames(first, headers, end_stream=False)[0].data
        begin = b"".join(one.serialize() for one in frames) + lie(first)
        rest = (frame(HEADERS, learnt, stream=stream, flags=END_HEADERS) + lie(stream)
                for stream in range(first + 2, 200_000, 2))
        said = flooded(hostile, in_batches(itertools.chain([begin], rest), 100))
        assert [goaway.error_code for goaway in said] == [ENHANCE_YOUR_CALM]
        assert b"more than 10000 streams reset" in said[0].additional_data
        lines = client_log(server, name_of(hostile.sock), count=2)
        assert len(lines) == 2 and "PROTOCOL_ERROR" in lines[0] and "more than 10000" in lines[1], lines


def test_a_provider_that_cancels_a_thousand_pushes_is_not_treated_as_an_attacker(start, device):
    """Cancels all streams at once, as often as a provider with timeouts may while a rule delays its pushes."""
    server = start("--profile", "healthy")
    server.api("POST", "/rules", {"name": "held", "do": {"hang": {}}, "when": {"device_token": device}})
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ab" * 32)).status == 200  # 1000 streams from here on
        for _ in range(3):
            streams = [wire.open(push_headers(server, device)) for _ in range(900)]
            wire.send(*(RstStreamFrame(stream, error_code=CANCEL) for stream in streams))
            wire.ping()
        assert wire.push(push_headers(server, "ab" * 32)).status == 200
        assert goaways(wire) == []


@pytest.mark.parametrize("action", [
    {"hang": {"for": "1h"}}, {"delay": {"fixed": "1h"}}, {"dribble": {"chunks": 2, "over": "2h"}},
], ids=lambda action: next(iter(action)))
def test_canceled_delayed_pushes_free_their_memory(start, device, action):
    """Rapid reset under a rule that delays pushes for an hour: timers and records must not accumulate."""
    server = start("--max-records", "1000")
    server.api("POST", "/rules", {
        "name": "held", "at": "response" if "dribble" in action else "request", "do": action,
        "when": {"device_token": device}})
    whole = RESETS["by the client, with the request whole"]
    with unharmed(server, memory=48 * MEBIBYTE):
        for _ in range(3):
            with connect(server) as hostile:
                hostile.settings()
                for batch in in_batches(requests(server, hostile, device, 9_000 if ALL else 1_500, whole), 100):
                    hostile.write(batch)
                    hostile.drain()
                hostile.ping()
                assert goaways(hostile) == []
        wait_until(lambda: server.pushes(outcome="pending") == [], "pushes of clients that left are still held")


def test_continuation_without_end(server):
    """CVE-2024-27316: a header block of empty frames that never ends."""
    with unharmed(server), connect(server) as hostile:
        hostile.send(HeadersFrame(1, b""))
        said = storm(hostile, ContinuationFrame(1, b"").serialize() * 1000)
        assert len(said) == 1 and said[0].error_code == ENHANCE_YOUR_CALM
        assert b"CONTINUATION" in said[0].additional_data or b"flood" in said[0].additional_data
        assert len(client_log(server, name_of(hostile.sock))) == 1


def test_an_hpack_bomb_is_not_expanded(server, device):
    """A field of 4 kB enters the dynamic table, and each further byte of the block refers to it. 64 kB would expand
    to 256 MB.
    """
    def literal(value):  # "x" with incremental indexing, its length as an HPACK integer
        return b"\x40\x01x\x7f" + bytes([(len(value) - 127) & 0x7F | 0x80, (len(value) - 127) >> 7]) + value

    with unharmed(server, memory=16 * MEBIBYTE, processor=5), connect(server) as hostile:
        start = hostile.header_frames(1, push_headers(server, device), end_stream=False)[0].data + literal(b"v" * 4000)
        hostile.write(frame(HEADERS, start + b"\xbe" * (16384 - len(start)), stream=1))
        said = storm(hostile, frame(CONTINUATION, b"\xbe" * 16384, stream=1))
        assert len(said) == 1 and said[0].error_code == ENHANCE_YOUR_CALM
        assert b"header list" in said[0].additional_data
        lines = client_log(server, name_of(hostile.sock))
        assert len(lines) == 1 and "header list" in lines[0]


def test_responses_without_window_are_bounded(server, device):
    """A client with a zero window opens streams whose responses have bodies, and more than the limit it has
    acknowledged.
    """
    with unharmed(server), connect(server, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0}) as hostile:
        hostile.settings()
        said = flooded(hostile, in_batches(
            requests(server, hostile, "nohex", 20_000,
                     lambda stream: DataFrame(stream, b"{}", flags=["END_STREAM"]).serialize()), 100))
        assert said[0].error_code == REFUSED_STREAM and b"streams" in said[0].additional_data
        assert len(client_log(server, name_of(hostile.sock))) == 1


def test_streams_opened_by_a_client_that_acknowledges_nothing_are_bounded(server, device):
    """As long as the client does not acknowledge SETTINGS, only the hard limit applies; streams beyond it are
    refused.
    """
    with unharmed(server, memory=64 * MEBIBYTE), connect(server, acknowledge=False) as hostile:
        hostile.settings()
        for batch in in_batches(requests(server, hostile, device, 8_000, lambda stream: b""), 100):
            hostile.write(batch)
        hostile.ping(b"all sent")
        hostile.ping(b"all told")  # the acknowledgement of the first PING may overtake the refusals
        refused = [one.error_code for one in hostile.frames if isinstance(one, RstStreamFrame)]
        assert len(refused) == 8_001 - 4_000 and set(refused) == {REFUSED_STREAM}
        assert goaways(hostile) == []

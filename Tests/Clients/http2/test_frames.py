"""RFC 9113, sections 4, 5.5 and 7: frames, their size, header blocks, and unknown types, flags and codes."""

import pytest

from support.conformance import (
    ACK, BODY, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, GOES_ON, HEADERS, KINDS, MALFORMED, OPENED,
    PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SERVED, SETTINGS, STREAM, UNKNOWN, WHOLE, WINDOW_UPDATE,
    WITH_PRIORITY, Line, answered, block, check, connection_error, field, frame, integer, number, priority, setting,
    stream_error, table, text,
)

RESERVED = 0x80000000


def between(line, *frames):
    """Returns a push with frames between its HEADERS and its DATA."""
    return line.request() + b"".join(frames) + frame(DATA, END_STREAM, STREAM, BODY)


FORMAT = {
    "4.1 an unknown type on stream 0": (lambda line: frame(UNKNOWN, 0, 0, b"x"), {GOES_ON}),
    "4.1 an unknown type on an idle stream": (lambda line: frame(UNKNOWN, 0, STREAM, b"x"), {GOES_ON}),
    "4.1 an unknown type on an open stream": (lambda line: between(line, frame(UNKNOWN, 0, STREAM, b"x")), SERVED),
    "4.1 an unknown type on a closed stream": (lambda line: frame(UNKNOWN, 0, OPENED, b"x"), {GOES_ON}),
    "4.1 an unknown type with all flags": (lambda line: frame(UNKNOWN, 0xFF, STREAM, b"x"), {GOES_ON}),
    "4.1 an unknown type without payload": (lambda line: frame(UNKNOWN), {GOES_ON}),
    "4.1 an unknown type of 16384 bytes": (lambda line: frame(UNKNOWN, 0, 0, b"x" * 16384), {GOES_ON}),
    "4.1 every type that is not taken":
        (lambda line: b"".join(frame(kind, 0, 0, b"x") for kind in range(0x40, 0x100)), {GOES_ON}),
    "4.1 undefined flags of DATA":
        (lambda line: line.request() + frame(DATA, 0xFF & ~PADDED, STREAM, BODY), SERVED),
    "4.1 undefined flags of HEADERS":
        (lambda line: line.request(flags=0xFF & ~(PADDED | WITH_PRIORITY)), answered(400)),
    "4.1 undefined flags of PRIORITY": (lambda line: frame(PRIORITY, 0xFF, STREAM, priority(0)), {GOES_ON}),
    "4.1 undefined flags of RST_STREAM":
        (lambda line: line.request() + frame(RST_STREAM, 0xFF, STREAM, number(8)), {GOES_ON}),
    "4.1 undefined flags of SETTINGS": (lambda line: frame(SETTINGS, 0xFF & ~ACK), {GOES_ON}),
    "4.1 undefined flags of PING": (lambda line: frame(PING, 0xFF & ~ACK, 0, b"12345678"), {GOES_ON}),
    "4.1 undefined flags of WINDOW_UPDATE": (lambda line: frame(WINDOW_UPDATE, 0xFF, 0, number(1)), {GOES_ON}),
    "4.1 undefined flags of CONTINUATION":
        (lambda line: line.request(flags=END_STREAM) + frame(CONTINUATION, 0xFF, STREAM, field("x-y", "z")),
         answered(400)),
    "4.1 the reserved bit of HEADERS and DATA":
        (lambda line: line.push_on(STREAM | RESERVED), SERVED),
    "4.1 the reserved bit of SETTINGS": (lambda line: frame(SETTINGS, 0, RESERVED), {GOES_ON}),
    "4.1 the reserved bit of PING": (lambda line: frame(PING, 0, RESERVED, b"12345678"), {GOES_ON}),
    "4.1 the reserved bit of PRIORITY":
        (lambda line: frame(PRIORITY, 0, STREAM | RESERVED, priority(0)), {GOES_ON}),
    "4.1 the reserved bit of WINDOW_UPDATE": (lambda line: frame(WINDOW_UPDATE, 0, RESERVED, number(1)), {GOES_ON}),
    "4.1 the reserved bit of RST_STREAM":
        (lambda line: line.request() + frame(RST_STREAM, 0, STREAM | RESERVED, number(8)), {GOES_ON}),
}


@table(FORMAT)
def test_frame_format(server, device, say, right):
    check(server, device, say, right)


@pytest.mark.parametrize("flags", [0, 0xFE], ids=["4.1 no flags", "4.1 undefined flags"])
def test_a_ping_gets_only_an_acknowledgement(server, device, flags):
    with Line(server, device) as line:
        line.write(frame(PING, flags, 0, b"question"))
        response = line.until(lambda one: one.type == PING)
        assert (response.opaque_data, response.stream_id, list(response.flags)) == (b"question", 0, ["ACK"])


def filler(room):
    """Returns an unknown header field that takes this many bytes of a block."""
    value = next(n for n in range(room, 0, -1) if len(field("x-fill", b"x" * n)) == room)
    return field("x-fill", b"x" * value)


def filled(line, size):
    """Returns the block of a valid push, padded to a size."""
    head = block(line.fields())
    return head + filler(size - len(head))


TOO_LONG = b"\0" * 16385
SIZES = {
    "4.2 DATA of 16384 bytes": (lambda line: line.push_on(body=b"x" * 16384), answered(413)),
    "4.2 HEADERS of 16384 bytes": (lambda line: frame(HEADERS, WHOLE, STREAM, filled(line, 16384)), answered(431)),
    "4.2 DATA of 16385 bytes":
        (lambda line: line.request() + frame(DATA, END_STREAM, STREAM, TOO_LONG), stream_error("FRAME_SIZE_ERROR")),
    "4.2 HEADERS of 16385 bytes":
        (lambda line: frame(HEADERS, WHOLE, STREAM, filled(line, 16385)), connection_error("FRAME_SIZE_ERROR")),
    "4.2 CONTINUATION of 16385 bytes":
        (lambda line: line.request(flags=END_STREAM) + frame(CONTINUATION, END_HEADERS, STREAM, TOO_LONG),
         connection_error("FRAME_SIZE_ERROR")),
    "4.2 CONTINUATION of 16385 bytes behind malformed HEADERS":
        (lambda line: line.request(flags=END_STREAM, extra=[("Bad", "1")]) + frame(
            CONTINUATION, END_HEADERS, STREAM, filler(16385)), connection_error("FRAME_SIZE_ERROR")),
    "4.2 PUSH_PROMISE of 16385 bytes":
        (lambda line: frame(PUSH_PROMISE, END_HEADERS, OPENED, TOO_LONG),
         connection_error("FRAME_SIZE_ERROR", "PROTOCOL_ERROR")),
    **{f"4.2 {name} of 16385 bytes":
        (lambda line, kind=KINDS[name], stream=stream: frame(kind, 0, stream, TOO_LONG),
         connection_error("FRAME_SIZE_ERROR"))
        for name, stream in [("PRIORITY", STREAM), ("RST_STREAM", OPENED), ("SETTINGS", 0), ("PING", 0), ("GOAWAY", 0),
                             ("WINDOW_UPDATE", 0), ("an unknown frame", 0)]},
    **{f"4.2 {name} that claims 16 MiB":
        (lambda line, kind=KINDS[name], stream=stream: frame(kind, 0, stream, length=0xFFFFFF),
         connection_error("FRAME_SIZE_ERROR"))
        for name, stream in [("HEADERS", STREAM), ("SETTINGS", 0), ("PING", 0), ("an unknown frame", 0)]},
}


@table(SIZES)
def test_frame_size(server, device, say, right):
    check(server, device, say, right)


# Frames that are not allowed between HEADERS and its CONTINUATION.
INTRUDERS = {
    "DATA": lambda line: frame(DATA, 0, STREAM, b"{}"),
    "HEADERS on the same stream": lambda line: line.request(),
    "HEADERS on another stream": lambda line: line.request(STREAM + 2),
    "PRIORITY": lambda line: frame(PRIORITY, 0, STREAM, priority(0)),
    "PRIORITY on another stream": lambda line: frame(PRIORITY, 0, STREAM + 2, priority(0)),
    "RST_STREAM": lambda line: frame(RST_STREAM, 0, STREAM, number(8)),
    "SETTINGS": lambda line: frame(SETTINGS),
    "SETTINGS ACK": lambda line: frame(SETTINGS, ACK),
    "PUSH_PROMISE": lambda line: frame(PUSH_PROMISE, END_HEADERS, STREAM, number(2)),
    "PING": lambda line: frame(PING, 0, 0, b"12345678"),
    "GOAWAY": lambda line: frame(GOAWAY, 0, 0, number(0, 8)),
    "WINDOW_UPDATE": lambda line: frame(WINDOW_UPDATE, 0, 0, number(1)),
    "CONTINUATION of another stream": lambda line: frame(CONTINUATION, END_HEADERS, STREAM + 2),
    "CONTINUATION of stream 0": lambda line: frame(CONTINUATION, END_HEADERS, 0),
    "an unknown frame (5.5)": lambda line: frame(UNKNOWN, 0, STREAM, b"x"),
    "an unknown frame on stream 0 (5.5)": lambda line: frame(UNKNOWN, 0, 0, b"x"),
}
HEADER_BLOCKS = {
    f"4.3 {name} inside a header block":
        (lambda line, intruder=intruder: line.request(flags=END_STREAM) + intruder(line)
         + frame(CONTINUATION, END_HEADERS, STREAM), connection_error("PROTOCOL_ERROR"))
    for name, intruder in INTRUDERS.items()
} | {
    "4.3 a block that cannot be decoded":
        (lambda line: frame(HEADERS, WHOLE, STREAM, b"\xff\xff\xff\xff\xff"), connection_error("COMPRESSION_ERROR")),
    "4.3 a block that ends inside a field":
        (lambda line: frame(HEADERS, WHOLE, STREAM, block(line.fields())[:-1]),
         connection_error("COMPRESSION_ERROR")),
    "4.3 a block cut in the middle of a field":
        (lambda line: cut(line, [100]), SERVED),
    "4.3 a block in nine pieces, some of them empty":
        (lambda line: cut(line, [0, 0, 1, 2, 50, 51, 200, 200]), SERVED),
    "4.3 an empty block": (lambda line: frame(HEADERS, WHOLE, STREAM), MALFORMED),
}


def cut(line, places):
    """Returns a push whose block is cut at these positions."""
    whole = block(line.fields())
    pieces = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)])]
    frames = [frame(HEADERS, 0, STREAM, pieces[0]), *(frame(CONTINUATION, 0, STREAM, piece) for piece in pieces[1:-1])]
    return b"".join(frames) + frame(CONTINUATION, END_HEADERS, STREAM, pieces[-1]) + frame(
        DATA, END_STREAM, STREAM, BODY)


@table(HEADER_BLOCKS)
def test_header_blocks(server, device, say, right):
    check(server, device, say, right)


THROWN_AWAY = {
    "4.3 of a malformed request": lambda line, entry: line.request(flags=WHOLE, extra=[("X-BAD", "1")], more=entry),
    "4.3 of a request on a stream that was reset":
        lambda line, entry: line.request(extra=[("X-BAD", "1")]) + line.request(flags=WHOLE, more=entry),
    "4.3 of a request whose list is too large":
        lambda line, entry: line.request(flags=WHOLE, extra=[("x-fill", "x" * 9000)], more=entry),
    "4.3 of trailers": lambda line, entry: line.request() + frame(HEADERS, WHOLE, STREAM, entry),
}


@pytest.mark.parametrize("say", THROWN_AWAY.values(), ids=THROWN_AWAY.keys())
def test_a_discarded_block_updates_the_table(server, device, say):
    """Otherwise all further header blocks on the connection would be decoded wrongly."""
    with Line(server, device) as line:
        line.write(say(line, b"\x40" + text("apns-collapse-id") + text("remembered")))
        line.write(line.request(STREAM + 2, more=integer(62, 7, 0x80)) + frame(DATA, END_STREAM, STREAM + 2, BODY))
        assert line.response(STREAM + 2).status == 200
    assert server.pushes(device_token=device, collapse_id="remembered")


EXTENSIONS = {
    "5.5 ALTSVC": (lambda line: frame(0xA, 0, 0, number(0, 2) + b'h3=":443"'), {GOES_ON}),
    "5.5 ORIGIN": (lambda line: frame(0xC, 0, 0, b""), {GOES_ON}),
    "5.5 PRIORITY_UPDATE": (lambda line: frame(0x10, 0, 0, number(STREAM) + b"u=1"), {GOES_ON}),
    "5.5 METADATA": (lambda line: between(line, frame(0x4D, 4, STREAM, b"x")), SERVED),
    "5.5 an unknown setting": (lambda line: frame(SETTINGS, 0, 0, setting((0x7F, 1), (0xFFFF, 2))), {GOES_ON}),

}


@table(EXTENSIONS)
def test_extensions(server, device, say, right):
    check(server, device, say, right)


@pytest.mark.parametrize("code", [0, 8, 14, 0xFF, 0xFFFFFFFF], ids=lambda code: f"7 code {code}")
def test_any_error_code_in_rst_stream_ends_only_the_stream(server, device, code):
    check(server, device, lambda line: line.request() + frame(RST_STREAM, 0, STREAM, number(code)), {GOES_ON})


@pytest.mark.parametrize("code", [0, 8, 14, 0xFF, 0xFFFFFFFF], ids=lambda code: f"7 code {code}")
def test_any_error_code_in_goaway_ends_the_connection_after_open_requests(server, device, code):
    with Line(server, device) as line:
        line.write(line.push_on() + frame(GOAWAY, 0, 0, number(0) + number(code)))
        assert line.response(STREAM).status == 200
        line.read_to_end()

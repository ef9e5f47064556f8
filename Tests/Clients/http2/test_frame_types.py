"""RFC 9113, section 6: each frame type with every invalid stream, size, flag and content, and with valid ones."""

from support.conformance import (
    ACK, BODY, CONTINUATION, DATA, ENABLE_PUSH, END_HEADERS, END_STREAM, GOAWAY, GOES_ON, HEADERS,
    HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE, OPENED,
    PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SERVED, SETTINGS, STREAM, WHOLE, WINDOW_UPDATE, WITH_PRIORITY,
    Line, answered, block, check, connection_error, field, frame, number, padded, priority, setting, stream_error,
    table,
)

FRAME_SIZE_ERROR = connection_error("FRAME_SIZE_ERROR")
PROTOCOL_ERROR = connection_error("PROTOCOL_ERROR")
RST = number(8)


def data(line, *payloads, flags=PADDED):
    """Returns a push whose body is in these DATA frames."""
    frames = [frame(DATA, flags, STREAM, payload) for payload in payloads[:-1]]
    return line.request() + b"".join(frames) + frame(DATA, flags | END_STREAM, STREAM, payloads[-1])


DATA_FRAMES = {
    "6.1 stream 0": (lambda line: frame(DATA, END_STREAM, 0, b"{}"), PROTOCOL_ERROR),
    "6.1 no padding": (lambda line: data(line, padded(BODY, 0)), SERVED),
    "6.1 padding of 255": (lambda line: data(line, padded(BODY, 255)), SERVED),
    "6.1 padding and nothing else": (lambda line: data(line, padded(b"", 255), padded(BODY, 1)), SERVED),
    "6.1 three frames": (lambda line: data(line, BODY[:5], BODY[5:6], BODY[6:], flags=0), SERVED),
    "6.1 an empty one at the end": (lambda line: data(line, BODY, b"", flags=0), SERVED),
    "6.1 padding that is not zero":  # a receiver may check it or not
        (lambda line: data(line, bytes([5]) + BODY + b"xxxxx"), SERVED | PROTOCOL_ERROR),
    "6.1 padding as long as the payload": (lambda line: data(line, bytes([5]) + b"\0" * 4), PROTOCOL_ERROR),
    "6.1 padding longer than the payload": (lambda line: data(line, padded(BODY, 5, 255)), PROTOCOL_ERROR),
    "6.1 a length byte alone that claims padding": (lambda line: data(line, b"\x01"), PROTOCOL_ERROR),
    "6.1 PADDED without a byte": (lambda line: data(line, b""), FRAME_SIZE_ERROR | PROTOCOL_ERROR),
}


@table(DATA_FRAMES)
def test_data(server, device, say, right):
    check(server, device, say, right)


def headers(line, flags, before=b"", after=b""):
    """Returns a push whose HEADERS has further bytes around the block."""
    return frame(HEADERS, END_HEADERS | flags, STREAM, before + block(line.fields()) + after) + frame(
        DATA, END_STREAM, STREAM, BODY)


BOTH = PADDED | WITH_PRIORITY
HEADERS_FRAMES = {
    "6.2 stream 0": (lambda line: line.request(0), PROTOCOL_ERROR),
    "6.2 stream 0, malformed as well": (lambda line: frame(HEADERS, WHOLE, 0), PROTOCOL_ERROR),
    "6.2 no padding": (lambda line: headers(line, PADDED, b"\0"), SERVED),
    "6.2 padding of 255": (lambda line: headers(line, PADDED, b"\xff", b"\0" * 255), SERVED),
    "6.2 priority": (lambda line: headers(line, WITH_PRIORITY, priority(0, 255)), SERVED),
    "6.2 padding and priority": (lambda line: headers(line, BOTH, b"\x08" + priority(OPENED), b"\0" * 8), SERVED),
    "6.2 padding, in a block of two frames":
        (lambda line: frame(HEADERS, PADDED, STREAM, padded(block(line.fields()[:3]), 9)) + frame(
            CONTINUATION, END_HEADERS, STREAM, block(line.fields()[3:])) + frame(DATA, END_STREAM, STREAM, BODY),
         SERVED),
    "6.2 padding and no block, which comes in CONTINUATION":
        (lambda line: frame(HEADERS, PADDED, STREAM, padded(b"", 9)) + frame(
            CONTINUATION, END_HEADERS, STREAM, block(line.fields())) + frame(DATA, END_STREAM, STREAM, BODY), SERVED),
    "6.2 padding as long as the payload":
        (lambda line: frame(HEADERS, WHOLE | PADDED, STREAM, bytes([5]) + b"\0" * 4), PROTOCOL_ERROR),
    "6.2 padding longer than the payload":
        (lambda line: frame(HEADERS, WHOLE | PADDED, STREAM, b"\xff" + block(line.fields()[:2])), PROTOCOL_ERROR),
    "6.2 padding that takes the priority's bytes":
        (lambda line: frame(HEADERS, WHOLE | BOTH, STREAM, b"\x03" + priority(0)), PROTOCOL_ERROR),
    "6.2 PADDED without a byte":
        (lambda line: frame(HEADERS, WHOLE | PADDED, STREAM), FRAME_SIZE_ERROR | PROTOCOL_ERROR),
    "6.2 PRIORITY of four bytes":
        (lambda line: frame(HEADERS, WHOLE | WITH_PRIORITY, STREAM, b"\0" * 4), FRAME_SIZE_ERROR | PROTOCOL_ERROR),
    "6.2 PRIORITY without a byte":
        (lambda line: frame(HEADERS, WHOLE | WITH_PRIORITY, STREAM), FRAME_SIZE_ERROR | PROTOCOL_ERROR),
    "6.2 PADDED and PRIORITY of five bytes":
        (lambda line: frame(HEADERS, WHOLE | BOTH, STREAM, b"\0" * 5), FRAME_SIZE_ERROR | PROTOCOL_ERROR),
}


@table(HEADERS_FRAMES)
def test_headers(server, device, say, right):
    check(server, device, say, right)


PRIORITY_FRAMES = {
    "6.3 stream 0": (lambda line: frame(PRIORITY, 0, 0, priority(STREAM)), PROTOCOL_ERROR),
    **{f"6.3 {size} bytes": (lambda line, size=size: frame(PRIORITY, 0, STREAM, b"\0" * size),
                             stream_error("FRAME_SIZE_ERROR")) for size in (0, 4, 6)},
}


@table(PRIORITY_FRAMES)
def test_priority(server, device, say, right):
    check(server, device, say, right)


RST_STREAM_FRAMES = {
    "6.4 stream 0": (lambda line: frame(RST_STREAM, 0, 0, RST), PROTOCOL_ERROR),
    "6.4 idle": (lambda line: frame(RST_STREAM, 0, STREAM, RST), PROTOCOL_ERROR),
    "6.4 twice": (lambda line: line.request() + frame(RST_STREAM, 0, STREAM, RST) * 2, {GOES_ON}),
    **{f"6.4 {size} bytes": (lambda line, size=size: line.request() + frame(RST_STREAM, 0, STREAM, b"\0" * size),
                             FRAME_SIZE_ERROR) for size in (0, 3, 5, 8)},
}


@table(RST_STREAM_FRAMES)
def test_rst_stream(server, device, say, right):
    check(server, device, say, right)


def settings(*pairs):
    return lambda line: frame(SETTINGS, 0, 0, setting(*pairs))


SETTINGS_FRAMES = {
    "6.5 a stream": (lambda line: frame(SETTINGS, 0, STREAM), PROTOCOL_ERROR),
    "6.5 a stream that was there": (lambda line: frame(SETTINGS, 0, OPENED, setting((3, 1))), PROTOCOL_ERROR),
    "6.5 a stream, with ACK": (lambda line: frame(SETTINGS, ACK, STREAM), PROTOCOL_ERROR),
    "6.5 ACK with a setting":
        (lambda line: frame(SETTINGS, ACK, 0, setting((MAX_CONCURRENT_STREAMS, 1))), FRAME_SIZE_ERROR),
    "6.5 ACK with a byte": (lambda line: frame(SETTINGS, ACK, 0, b"\0"), FRAME_SIZE_ERROR),
    # The RFC does not define an acknowledgement without SETTINGS to acknowledge.
    "6.5 ACK of nothing": (lambda line: frame(SETTINGS, ACK), {GOES_ON} | PROTOCOL_ERROR),
    **{f"6.5 {size} bytes": (lambda line, size=size: frame(SETTINGS, 0, 0, b"\0" * size), FRAME_SIZE_ERROR)
       for size in (1, 3, 5, 7, 11)},
    "6.5.2 HEADER_TABLE_SIZE of 0": (settings((HEADER_TABLE_SIZE, 0)), {GOES_ON}),
    "6.5.2 HEADER_TABLE_SIZE of the most": (settings((HEADER_TABLE_SIZE, 0xFFFFFFFF)), {GOES_ON}),
    "6.5.2 ENABLE_PUSH of 0": (settings((ENABLE_PUSH, 0)), {GOES_ON}),
    "6.5.2 ENABLE_PUSH of 1": (settings((ENABLE_PUSH, 1)), {GOES_ON}),
    "6.5.2 ENABLE_PUSH of 2": (settings((ENABLE_PUSH, 2)), PROTOCOL_ERROR),
    "6.5.2 ENABLE_PUSH of the most": (settings((ENABLE_PUSH, 0xFFFFFFFF)), PROTOCOL_ERROR),
    "6.5.2 MAX_CONCURRENT_STREAMS of 0": (settings((MAX_CONCURRENT_STREAMS, 0)), {GOES_ON}),
    "6.5.2 INITIAL_WINDOW_SIZE of 2^31-1": (settings((INITIAL_WINDOW_SIZE, 0x7FFFFFFF)), {GOES_ON}),
    "6.5.2 INITIAL_WINDOW_SIZE of 2^31":
        (settings((INITIAL_WINDOW_SIZE, 0x80000000)), connection_error("FLOW_CONTROL_ERROR")),
    "6.5.2 INITIAL_WINDOW_SIZE of the most":
        (settings((INITIAL_WINDOW_SIZE, 0xFFFFFFFF)), connection_error("FLOW_CONTROL_ERROR")),
    "6.5.2 MAX_FRAME_SIZE of 0": (settings((MAX_FRAME_SIZE, 0)), PROTOCOL_ERROR),
    "6.5.2 MAX_FRAME_SIZE of 16383": (settings((MAX_FRAME_SIZE, 16383)), PROTOCOL_ERROR),
    "6.5.2 MAX_FRAME_SIZE of 16384": (settings((MAX_FRAME_SIZE, 16384)), {GOES_ON}),
    "6.5.2 MAX_FRAME_SIZE of 2^24-1": (settings((MAX_FRAME_SIZE, 0xFFFFFF)), {GOES_ON}),
    "6.5.2 MAX_FRAME_SIZE of 2^24": (settings((MAX_FRAME_SIZE, 0x1000000)), PROTOCOL_ERROR),
    "6.5.2 MAX_FRAME_SIZE of the most": (settings((MAX_FRAME_SIZE, 0xFFFFFFFF)), PROTOCOL_ERROR),
    "6.5.2 MAX_HEADER_LIST_SIZE of 0": (settings((MAX_HEADER_LIST_SIZE, 0)), {GOES_ON}),
    "6.5.2 identifier 0 and unknown identifiers": (settings((0, 1), (7, 1), (0x8888, 1), (0xFFFF, 1)), {GOES_ON}),
    "6.5.2 one setting often": (settings(*[(MAX_CONCURRENT_STREAMS, n) for n in range(30)]), {GOES_ON}),
    # nghttp2 processes a SETTINGS frame as a whole and applies only the last value of each setting.
    "6.5.3 a wrong value that is corrected in the same frame":
        (settings((ENABLE_PUSH, 2), (ENABLE_PUSH, 0)), PROTOCOL_ERROR | {GOES_ON}),
    # nghttp2's flood limit, not a rule of the RFC.
    "6.5 2000 settings in a frame":
        (settings(*[(MAX_CONCURRENT_STREAMS, n) for n in range(2000)]),
         {GOES_ON} | connection_error("ENHANCE_YOUR_CALM")),
}


@table(SETTINGS_FRAMES)
def test_settings(server, device, say, right):
    check(server, device, say, right)


def test_each_settings_is_acknowledged_once_with_an_empty_frame(server, device):
    """Section 6.5.3. The first acknowledgement is for the SETTINGS of the preface."""
    with Line(server, device) as line:
        line.write(b"".join(settings((MAX_CONCURRENT_STREAMS, n))(line) for n in range(10)))
        line.ping()
        acknowledgements = [one for one in line.frames if one.type == SETTINGS and "ACK" in one.flags]
        assert [(one.stream_id, one.settings) for one in acknowledgements] == [(0, {})] * 11


PUSH_PROMISE_FRAMES = {
    "6.6 on an open stream":
        (lambda line: line.request() + frame(PUSH_PROMISE, END_HEADERS, STREAM, number(2) + block(line.fields())),
         PROTOCOL_ERROR),
    "6.6 on an idle stream": (lambda line: frame(PUSH_PROMISE, END_HEADERS, STREAM, number(2)), PROTOCOL_ERROR),
    "6.6 on stream 0": (lambda line: frame(PUSH_PROMISE, END_HEADERS, 0, number(2)), PROTOCOL_ERROR),
    "6.6 that promises a stream of the client's":
        (lambda line: line.request() + frame(PUSH_PROMISE, END_HEADERS, STREAM, number(5)), PROTOCOL_ERROR),
    "6.6 with padding that is too long":
        (lambda line: line.request() + frame(PUSH_PROMISE, END_HEADERS | PADDED, STREAM, b"\xff" + number(2)),
         PROTOCOL_ERROR),
    "6.6 of three bytes":
        (lambda line: line.request() + frame(PUSH_PROMISE, END_HEADERS, STREAM, b"\0\0\2"),
         PROTOCOL_ERROR | FRAME_SIZE_ERROR),
}


@table(PUSH_PROMISE_FRAMES)
def test_push_promise(server, device, say, right):
    """Also section 8.4: a client cannot push."""
    check(server, device, say, right)


PING_FRAMES = {
    "6.7 a stream": (lambda line: frame(PING, 0, STREAM, b"12345678"), PROTOCOL_ERROR),
    "6.7 a stream, with ACK": (lambda line: frame(PING, ACK, OPENED, b"12345678"), PROTOCOL_ERROR),
    **{f"6.7 {size} bytes": (lambda line, size=size: frame(PING, 0, 0, b"\0" * size), FRAME_SIZE_ERROR)
       for size in (0, 6, 7, 9, 16)},
    "6.7 ACK of 7 bytes": (lambda line: frame(PING, ACK, 0, b"\0" * 7), FRAME_SIZE_ERROR),
}


@table(PING_FRAMES)
def test_ping(server, device, say, right):
    check(server, device, say, right)


def test_the_acknowledgement_of_a_ping_is_not_acknowledged(server, device):
    """Section 6.7."""
    with Line(server, device) as line:
        line.write(frame(PING, ACK, 0, b"answered") + frame(PING, 0, 0, b"question"))
        line.reaction()
        assert [one.opaque_data for one in line.frames if one.type == PING] == [b"question", b"was read", b"was sent"]


GOAWAY_FRAMES = {
    "6.8 a stream": (lambda line: frame(GOAWAY, 0, STREAM, number(0, 8)), PROTOCOL_ERROR),
    "6.8 a stream that was there": (lambda line: frame(GOAWAY, 0, OPENED, number(0, 8)), PROTOCOL_ERROR),
    **{f"6.8 {size} bytes": (lambda line, size=size: frame(GOAWAY, 0, 0, b"\0" * size), FRAME_SIZE_ERROR)
       for size in (0, 4, 7)},
}


@table(GOAWAY_FRAMES)
def test_goaway(server, device, say, right):
    check(server, device, say, right)


def test_open_streams_finish_after_the_clients_goaway(server, device):
    """Section 6.8: also a request that is still being sent, and after a second GOAWAY, because an endpoint may send
    several.
    """
    with Line(server, device) as line:
        line.write(line.request() + frame(GOAWAY, 0, 0, number(0, 8) + b"bye") * 2)
        line.ping()
        line.write(frame(DATA, END_STREAM, STREAM, BODY))
        assert line.response(STREAM).status == 200
        line.read_to_end()


def update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, number(increment))


MOST = 0x7FFFFFFF
FLOW_CONTROL_ERROR = connection_error("FLOW_CONTROL_ERROR")
WINDOW_UPDATE_FRAMES = {
    "6.9 by 0 on the connection": (lambda line: update(0, 0), PROTOCOL_ERROR),
    "6.9 by 0 on a stream": (lambda line: line.request() + update(STREAM, 0), stream_error("PROTOCOL_ERROR")),
    "6.9 by 0 but for the reserved bit": (lambda line: update(0, 0x80000000), PROTOCOL_ERROR),
    "6.9 the reserved bit is not part of the number":
        (lambda line: line.request() + update(0, 0x80000001) + update(STREAM, 0x80000001) + frame(
            DATA, END_STREAM, STREAM, BODY), SERVED),
    **{f"6.9 {size} bytes on the connection":
        (lambda line, size=size: frame(WINDOW_UPDATE, 0, 0, b"\1" * size), FRAME_SIZE_ERROR)
       for size in (0, 3, 5)},
    "6.9 3 bytes on a stream":
        (lambda line: line.request() + frame(WINDOW_UPDATE, 0, STREAM, b"\0\0\1"), FRAME_SIZE_ERROR),
    "6.9.1 the connection's window up to 2^31-1": (lambda line: update(0, MOST - 65535), {GOES_ON}),
    "6.9.1 the connection's window one beyond": (lambda line: update(0, MOST - 65534), FLOW_CONTROL_ERROR),
    "6.9.1 the connection's window beyond by the sum": (lambda line: update(0, MOST // 2) * 3, FLOW_CONTROL_ERROR),
    "6.9.1 a stream's window up to 2^31-1":
        (lambda line: line.request() + update(STREAM, MOST - 65535) + frame(DATA, END_STREAM, STREAM, BODY), SERVED),
    "6.9.1 a stream's window one beyond":
        (lambda line: line.request() + update(STREAM, MOST - 65534), stream_error("FLOW_CONTROL_ERROR")),
    "6.9.1 a stream's window beyond by the sum":
        (lambda line: line.request() + update(STREAM, MOST // 2) * 3, stream_error("FLOW_CONTROL_ERROR")),
    "6.9.2 a stream's window beyond by SETTINGS":
        (lambda line: line.request() + update(STREAM, MOST - 65535) + settings((INITIAL_WINDOW_SIZE, 65536))(line),
         FLOW_CONTROL_ERROR),
    "6.9.2 one stream's window of several beyond by SETTINGS":
        (lambda line: line.request() + line.request(STREAM + 2) + line.request(STREAM + 4) + update(STREAM + 2, 1)
         + settings((INITIAL_WINDOW_SIZE, MOST))(line), FLOW_CONTROL_ERROR),
    "6.9.2 a stream's window up to 2^31-1 by SETTINGS":
        (lambda line: line.request() + update(STREAM, MOST - 65536) + settings((INITIAL_WINDOW_SIZE, 65536))(line)
         + frame(DATA, END_STREAM, STREAM, BODY), SERVED),
    "6.9.2 many streams' windows up to 2^31-1 by SETTINGS":
        (lambda line: b"".join(line.request(stream) for stream in range(STREAM, STREAM + 200, 2))
         + settings((INITIAL_WINDOW_SIZE, 0))(line) + settings((INITIAL_WINDOW_SIZE, MOST))(line) + frame(
             DATA, END_STREAM, STREAM, BODY), SERVED),
    "6.9.2 no stream, no window beyond":
        (lambda line: update(0, MOST - 65535) + settings((INITIAL_WINDOW_SIZE, MOST))(line) + line.push_on(), SERVED),
}


@table(WINDOW_UPDATE_FRAMES)
def test_window_update(server, device, say, right):
    check(server, device, say, right)


def more(flags=0, stream=STREAM, payload=b""):
    return frame(CONTINUATION, flags, stream, payload)


CONTINUATION_FRAMES = {
    "6.10 several":
        (lambda line: line.request(flags=0) + more() + b"".join(more(payload=field(f"x-{n}", "z")) for n in range(3))
         + more(END_HEADERS) + frame(DATA, END_STREAM, STREAM, BODY), SERVED),
    "6.10 END_STREAM is that of HEADERS":
        (lambda line: line.request(flags=END_STREAM) + more(END_HEADERS), answered(400)),
    "6.10 without HEADERS": (lambda line: more(END_HEADERS), PROTOCOL_ERROR),
    "6.10 on stream 0": (lambda line: line.request(flags=END_STREAM) + more(END_HEADERS, 0), PROTOCOL_ERROR),
    "6.10 on stream 0 without HEADERS": (lambda line: more(END_HEADERS, 0), PROTOCOL_ERROR),
    "6.10 on another stream":
        (lambda line: line.request(flags=END_STREAM) + more(END_HEADERS, STREAM + 2), PROTOCOL_ERROR),
    "6.10 behind HEADERS with END_HEADERS":
        (lambda line: line.request() + more(END_HEADERS, payload=field("x-y", "z")), PROTOCOL_ERROR),
    "6.10 behind CONTINUATION with END_HEADERS":
        (lambda line: line.request(flags=0) + more(END_HEADERS) * 2, PROTOCOL_ERROR),
    "6.10 behind DATA":
        (lambda line: line.request() + frame(DATA, 0, STREAM, b"{") + more(END_HEADERS), PROTOCOL_ERROR),
    "6.10 in trailers":
        (lambda line: line.request() + frame(DATA, 0, STREAM, BODY) + frame(
            HEADERS, END_STREAM, STREAM, field("x-y", "z")) + more(END_HEADERS, payload=field("x-z", "y")), SERVED),
}


@table(CONTINUATION_FRAMES)
def test_continuation(server, device, say, right):
    check(server, device, say, right)

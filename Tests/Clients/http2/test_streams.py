"""RFC 9113, sections 5.1 to 5.4: stream states and the frames allowed in each, stream ids, priorities, errors.

More streams than allowed: test_stream_limits.py.
"""

import pytest

from support.conformance import (
    BODY, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOES_ON, HEADERS, INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS, OPENED, PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SERVED, STREAM, UNKNOWN, WHOLE,
    WINDOW_UPDATE, WITH_PRIORITY, Line, answered, block, by_seven_bytes, check, code_name, connection_error, field,
    frame, frame_by_frame, in_one_piece, number, padded, priority, stream_error, table,
)

HIGHEST = 0x7FFFFFFF
RST = number(8)  # the payload of RST_STREAM with CANCEL

IDLE = {
    "5.1 idle: DATA": (lambda line: frame(DATA, END_STREAM, STREAM, b"{}"), connection_error("PROTOCOL_ERROR")),
    "5.1 idle: RST_STREAM": (lambda line: frame(RST_STREAM, 0, STREAM, RST), connection_error("PROTOCOL_ERROR")),
    "5.1 idle: WINDOW_UPDATE":
        (lambda line: frame(WINDOW_UPDATE, 0, STREAM, number(1)), connection_error("PROTOCOL_ERROR")),
    "5.1 idle: CONTINUATION":
        (lambda line: frame(CONTINUATION, END_HEADERS, STREAM, field("x", "y")), connection_error("PROTOCOL_ERROR")),
    "5.1 idle: PRIORITY": (lambda line: frame(PRIORITY, 0, STREAM, priority(0)), {GOES_ON}),
    "5.1 idle: PRIORITY, then a push": (lambda line: frame(PRIORITY, 0, STREAM, priority(0)) + line.push_on(), SERVED),
    "5.1 idle: PRIORITY of a later stream, then a push":
        (lambda line: frame(PRIORITY, 0, 101, priority(0)) + line.push_on(), SERVED),
    "5.1 idle, of the server: DATA": (lambda line: frame(DATA, 0, 2, b"{}"), connection_error("PROTOCOL_ERROR")),
    "5.1 idle, of the server: RST_STREAM":
        (lambda line: frame(RST_STREAM, 0, 2, RST), connection_error("PROTOCOL_ERROR")),
    "5.1 idle, of the server: WINDOW_UPDATE":
        (lambda line: frame(WINDOW_UPDATE, 0, 2, number(1)), connection_error("PROTOCOL_ERROR")),
}


@table(IDLE)
def test_idle(server, device, say, right):
    check(server, device, say, right)


OPEN = {
    "5.1 open: RST_STREAM": (lambda line: line.request() + frame(RST_STREAM, 0, STREAM, RST), {GOES_ON}),
    "5.1 open: WINDOW_UPDATE, PRIORITY":
        (lambda line: line.request() + frame(WINDOW_UPDATE, 0, STREAM, number(1)) + frame(
            PRIORITY, 0, STREAM, priority(0)) + frame(DATA, END_STREAM, STREAM, BODY), SERVED),
    "5.1 open: PUSH_PROMISE": (lambda line: line.request() + frame(PUSH_PROMISE, END_HEADERS, STREAM, number(2)),
                               connection_error("PROTOCOL_ERROR")),
}


@table(OPEN)
def test_open(server, device, say, right):
    check(server, device, say, right)


HALF_CLOSED = {
    "5.1 half-closed (remote): DATA":
        (lambda line: frame(DATA, END_STREAM, STREAM, b"{}"), stream_error("STREAM_CLOSED")),
    "5.1 half-closed (remote): empty DATA":
        (lambda line: frame(DATA, 0, STREAM), stream_error("STREAM_CLOSED")),
    "5.1 half-closed (remote): HEADERS": (lambda line: line.request(), stream_error("STREAM_CLOSED")),
    "5.1 half-closed (remote): trailers":
        (lambda line: frame(HEADERS, WHOLE, STREAM, field("x-y", "z")), stream_error("STREAM_CLOSED")),
    "5.1 half-closed (remote): CONTINUATION":  # also section 6.10: no HEADERS without END_HEADERS precedes it
        (lambda line: frame(CONTINUATION, END_HEADERS, STREAM, field("x-y", "z")),
         stream_error("STREAM_CLOSED") | connection_error("PROTOCOL_ERROR")),
    "5.1 half-closed (remote): PRIORITY": (lambda line: frame(PRIORITY, 0, STREAM, priority(0)), answered(400)),
    "5.1 half-closed (remote): WINDOW_UPDATE":
        (lambda line: frame(WINDOW_UPDATE, 0, STREAM, number(1000)), answered(400)),
    "5.1 half-closed (remote): RST_STREAM": (lambda line: frame(RST_STREAM, 0, STREAM, RST), answered(400)),
}


@table(HALF_CLOSED)
def test_half_closed(server, device, say, right):
    """The request is complete, and the response cannot be: it has a body and the client's window is zero."""
    with Line(server, device, settings=[(INITIAL_WINDOW_SIZE, 0)]) as line:
        line.write(line.push_on(apns_priority="7"))
        line.until(lambda one: one.type == HEADERS)
        line.write(say(line))
        reaction = line.reaction()
        assert reaction in right


def served(line):
    """Ends the stream with a response."""
    line.write(line.push_on())
    line.response(STREAM)


def taken_back(line):
    """The client resets the stream."""
    line.write(line.request() + frame(RST_STREAM, 0, STREAM, RST))
    line.ping()


def refused(line):
    """The server resets the stream, in the middle of its body."""
    line.write(line.request(extra=[("content-length", "2")]) + frame(DATA, 0, STREAM, b"too long"))
    line.until(lambda one: one.type == RST_STREAM)


def too_large(line):
    """The server responds and then resets the stream, because the body did not end."""
    half = b"".join(frame(DATA, 0, STREAM, b"x" * 16384) for _ in range(2))
    line.write(line.request() + half)
    # The complete body exceeds the initial window.
    line.until(lambda one: one.type == WINDOW_UPDATE and one.stream_id == STREAM)
    line.write(half + frame(DATA, 0, STREAM, b"xx"))
    line.until(lambda one: one.type == RST_STREAM)


LATECOMERS = {
    "DATA": lambda line: frame(DATA, 0, STREAM, b"{}"),
    "DATA with END_STREAM": lambda line: frame(DATA, END_STREAM, STREAM, b"{}"),
    "HEADERS of another request": lambda line: line.request(flags=WHOLE),
    "trailers": lambda line: frame(HEADERS, WHOLE, STREAM, field("x-y", "z")),
    "CONTINUATION": lambda line: frame(CONTINUATION, END_HEADERS, STREAM, field("x-y", "z")),
    "PRIORITY": lambda line: frame(PRIORITY, 0, STREAM, priority(0)),
    "RST_STREAM": lambda line: frame(RST_STREAM, 0, STREAM, RST),
    "WINDOW_UPDATE": lambda line: frame(WINDOW_UPDATE, 0, STREAM, number(1)),
}


@pytest.mark.parametrize("late", ["HEADERS of another request", "trailers", "DATA", "DATA with END_STREAM"],
                         ids=lambda late: f"5.1 closed: {late}")
@pytest.mark.parametrize("how", [served, taken_back], ids=["answered", "reset by the client"])
def test_frames_after_end_stream_are_errors(server, device, how, late):
    """Section 6.1 requires STREAM_CLOSED for DATA. For HEADERS, RFC 9113 leaves the choice to the server; RFC 7540
    required it.
    """
    with Line(server, device) as line:
        how(line)
        line.write(LATECOMERS[late](line))
        assert line.reaction() == "GOAWAY STREAM_CLOSED"


@pytest.mark.parametrize("late", ["PRIORITY", "RST_STREAM", "WINDOW_UPDATE"], ids=lambda late: f"5.1 closed: {late}")
@pytest.mark.parametrize("how", [served, taken_back], ids=["answered", "reset by the client"])
def test_late_frames_on_a_closed_stream_are_ignored(server, device, how, late):
    with Line(server, device) as line:
        how(line)
        is_ignored(line, LATECOMERS[late](line))


def is_ignored(line, late):
    """Asserts that nothing more is sent on the stream, and that the connection stays open."""
    before = len(line.frames)
    line.write(late)
    reaction = line.reaction()
    assert not line.goaways, reaction
    assert not [one for one in line.frames[before:] if one.stream_id == STREAM]


@pytest.mark.parametrize("late", [late for late in LATECOMERS if late != "CONTINUATION"],
                         ids=lambda late: f"5.1 closed by the server: {late}")
@pytest.mark.parametrize("how", [refused, too_large], ids=["reset", "answered and reset"])
def test_frames_on_a_stream_reset_by_the_server_are_ignored(server, device, how, late):
    """The frames may have been sent before the reset arrived, and RST_STREAM must not follow RST_STREAM (section
    5.4.2).
    """
    with Line(server, device) as line:
        how(line)
        is_ignored(line, LATECOMERS[late](line))


def test_frames_on_many_streams_reset_by_the_server_are_ignored(server, device):
    """For any number of streams: a provider with the same mistake in all pushes may send all bodies before it reads
    the resets.
    """
    with Line(server, device) as line:
        streams = range(3, 603, 2)
        line.write(b"".join(line.request(stream, extra=[("Bad", "1")]) for stream in streams))
        line.until(lambda one: one.type == RST_STREAM and one.stream_id == streams[-1])
        line.write(b"".join(frame(DATA, END_STREAM, stream, BODY) for stream in streams) + line.push_on(603))
        assert line.response(603).status == 200
        line.ping()
        assert not line.goaways


ENDED = {"GOAWAY STREAM_CLOSED"}
IGNORED = {"RST_STREAM PROTOCOL_ERROR", GOES_ON}  # the client may have reset the stream as well by the time the server does


def malformed(line):
    return line.request(extra=[("Bad", "1")])


def cancel(stream=STREAM):
    return frame(RST_STREAM, 0, stream, RST)


def more(payload=b"{}", flags=0, stream=STREAM):
    return frame(DATA, flags, stream, payload)


ORDERS = {
    "5.1 RST_STREAM, DATA": (lambda line: line.request() + cancel() + more(), ENDED),
    "5.1 DATA, RST_STREAM, DATA": (lambda line: line.request() + more() + cancel() + more(), ENDED),
    "5.1 RST_STREAM, DATA without payload": (lambda line: line.request() + cancel() + more(b""), ENDED),
    "5.1 RST_STREAM, DATA with nothing but padding":
        (lambda line: line.request() + cancel() + more(padded(b"", 5), PADDED), ENDED),
    "5.1 RST_STREAM, unknown frames, DATA":
        (lambda line: line.request() + cancel() + frame(UNKNOWN, 1, STREAM, b"x" * 300) * 2 + more(), ENDED),
    "5.1 RST_STREAM, another push, DATA":
        (lambda line: line.request() + cancel() + line.push_on(STREAM + 2) + more(), ENDED),
    "5.1 RST_STREAM, DATA on another stream":
        (lambda line: line.request() + line.request(STREAM + 2) + cancel() + more(
            BODY, END_STREAM, STREAM + 2), {GOES_ON}),
    "5.1 END_STREAM, DATA": (lambda line: line.push_on() + more(), ENDED),
    "5.1 END_STREAM in HEADERS, DATA": (lambda line: line.request(flags=WHOLE) + more(), ENDED),
    "5.1 END_STREAM in trailers, DATA":
        (lambda line: line.request() + frame(HEADERS, WHOLE, STREAM, field("x-y", "z")) + more(), ENDED),
    "5.1 malformed, DATA": (lambda line: malformed(line) + more(), IGNORED),
    "5.1 malformed, DATA, RST_STREAM": (lambda line: malformed(line) + more() + cancel(), IGNORED),
    "5.1 malformed, DATA with END_STREAM, RST_STREAM":
        (lambda line: malformed(line) + more(flags=END_STREAM) + cancel(), IGNORED),
}


@pytest.mark.parametrize("pieces", [in_one_piece, frame_by_frame, by_seven_bytes])
@table(ORDERS)
def test_packing_of_frames_does_not_matter(server, device, say, right, pieces):
    check(server, device, say, right, pieces=pieces)


@pytest.mark.parametrize("before", [b"", frame(DATA, 0, STREAM, b"{}")], ids=["", "DATA before"])
def test_frames_after_a_canceled_malformed_request_are_errors(server, device, before):
    """In one write, because otherwise the server would already have reset the stream itself."""
    check(server, device, lambda line: malformed(line) + before + cancel() + more(), ENDED)


@pytest.mark.parametrize("how", [served, taken_back, refused], ids=["answered", "reset by the client", "reset"])
def test_continuation_on_a_closed_stream_is_a_protocol_error(server, device, how):
    with Line(server, device) as line:
        how(line)
        line.write(LATECOMERS["CONTINUATION"](line))
        assert line.reaction() == "GOAWAY PROTOCOL_ERROR"


IDENTIFIERS = {
    "5.1.1 an even number": (lambda line: line.push_on(4), connection_error("PROTOCOL_ERROR")),
    "5.1.1 an even number below": (lambda line: line.push_on(9) + line.push_on(2), connection_error("PROTOCOL_ERROR")),
    "5.1.1 stream 0": (lambda line: line.push_on(0), connection_error("PROTOCOL_ERROR")),
    "5.1.1 a number that was passed over":
        (lambda line: line.request(5) + line.push_on(3), connection_error("PROTOCOL_ERROR")),
    "5.1.1 a number that was passed over long ago":
        (lambda line: b"".join(line.request(stream, WHOLE) for stream in range(7, 39, 2)) + line.push_on(5),
         connection_error("PROTOCOL_ERROR")),
    "5.1.1 DATA on a number that was passed over":
        (lambda line: line.request(9) + frame(DATA, END_STREAM, 5, BODY),
         connection_error("PROTOCOL_ERROR", "STREAM_CLOSED")),
    "5.1.1 a number again": (lambda line: line.push_on() + line.push_on(), connection_error("STREAM_CLOSED")),
    "5.1.1 numbers may be passed over": (lambda line: line.push_on(999), SERVED),
    "5.1.1 RST_STREAM on a number that was passed over":
        (lambda line: line.push_on(999) + frame(RST_STREAM, 0, 5, RST), SERVED),
}


@table(IDENTIFIERS)
def test_identifiers(server, device, say, right):
    check(server, device, say, right, stream=999)


def test_the_highest_stream_id(server, device):
    """After it no further stream can be opened on the connection; the next lower id was skipped."""
    with Line(server, device) as line:
        line.write(line.push_on(HIGHEST))
        assert line.response(HIGHEST).status == 200
        line.write(line.push_on(HIGHEST - 2))
        assert line.goaway().error_code == 1
        assert line.goaways[0].last_stream_id == HIGHEST


def test_one_stream_more_than_allowed_is_an_error(server, device):
    """Section 5.1.2: PROTOCOL_ERROR or REFUSED_STREAM; APNs sends the latter in a GOAWAY."""
    with Line(server, device, fresh=True) as line:
        assert line.settings().settings[MAX_CONCURRENT_STREAMS] == 1
        line.ping()
        line.write(line.request(1) + line.request(3))
        assert line.reaction() == "GOAWAY REFUSED_STREAM"


def test_a_client_that_does_not_acknowledge_may_open_4000_streams_and_the_next_is_refused(server, device):
    """Section 5.1.2: a stream error. The body of the refused stream may already have been sent."""
    with Line(server, device, fresh=True) as line:
        line.acknowledge = False
        for start in range(1, 8001, 200):
            line.write(b"".join(line.request(stream) for stream in range(start, start + 200, 2)))
        line.write(line.push_on(8001))
        refused = line.until(lambda one: one.type == RST_STREAM)
        assert (refused.stream_id, code_name(refused.error_code)) == (8001, "REFUSED_STREAM")
        line.write(frame(DATA, END_STREAM, 3, BODY))
        assert line.response(3).status == 200


def test_streams_that_are_closed_or_idle_do_not_count(server, device):
    """Section 5.1.2. Only one stream may be open until a push has been accepted."""
    with Line(server, device, fresh=True) as line:
        line.settings()
        line.ping()
        for stream in range(1, 41, 2):
            line.write(frame(PRIORITY, 0, stream + 1000, priority(0)) + line.request(stream)
                       + frame(RST_STREAM, 0, stream, RST))
        line.write(line.push_on(41))
        assert line.response(41).status == 200


# Section 5.3: RFC 9113 deprecates priorities, but their frames must be accepted. RFC 7540 made it an error for a
# stream to depend on itself; now it may be one or not.
ITSELF = stream_error("PROTOCOL_ERROR")
PRIORITIES = {
    "5.3 PRIORITY, weight 1": (lambda line: frame(PRIORITY, 0, STREAM, priority(0, 0)) + line.push_on(), SERVED),
    "5.3 PRIORITY, weight 256": (lambda line: frame(PRIORITY, 0, STREAM, priority(0, 255)) + line.push_on(), SERVED),
    "5.3 PRIORITY, exclusive":
        (lambda line: frame(PRIORITY, 0, STREAM, priority(0, 15, True)) + line.push_on(), SERVED),
    "5.3 PRIORITY, on a closed stream":
        (lambda line: frame(PRIORITY, 0, STREAM, priority(OPENED)) + line.push_on(), SERVED),
    "5.3 PRIORITY, on an idle stream":
        (lambda line: frame(PRIORITY, 0, STREAM, priority(77)) + line.push_on(), SERVED),
    "5.3 PRIORITY, on one of the server's":
        (lambda line: frame(PRIORITY, 0, STREAM, priority(2)) + line.push_on(), SERVED),
    "5.3 PRIORITY, in a circle":
        (lambda line: frame(PRIORITY, 0, 5, priority(7)) + frame(PRIORITY, 0, 7, priority(5)) + line.push_on(),
         SERVED),
    "5.3 PRIORITY, of a closed stream": (lambda line: frame(PRIORITY, 0, OPENED, priority(0)), {GOES_ON}),
    "5.3 PRIORITY, of an even stream": (lambda line: frame(PRIORITY, 0, 2, priority(0)), {GOES_ON}),
    "5.3 PRIORITY, on itself": (lambda line: frame(PRIORITY, 0, STREAM, priority(STREAM)), ITSELF | {GOES_ON}),
    "5.3 HEADERS, on a closed stream": (lambda line: with_priority(line, priority(OPENED, 255)), SERVED),
    "5.3 HEADERS, on an idle stream": (lambda line: with_priority(line, priority(77)), SERVED),
    "5.3 HEADERS, exclusive": (lambda line: with_priority(line, priority(0, 15, True)), SERVED),
    "5.3 HEADERS, on itself": (lambda line: with_priority(line, priority(STREAM)), ITSELF | SERVED),
    "5.3 a chain of 200": (lambda line: b"".join(
        frame(PRIORITY, 0, n + 2, priority(n)) for n in range(5, 405, 2)) + line.push_on(), SERVED),
}


def with_priority(line, said):
    return frame(HEADERS, END_HEADERS | WITH_PRIORITY, STREAM, said + block(line.fields())) + frame(
        DATA, END_STREAM, STREAM, BODY)


@table(PRIORITIES)
def test_priorities(server, device, say, right):
    check(server, device, say, right)


def test_after_a_connection_error_nothing_is_served_and_the_server_closes(server, device):
    """Section 5.4.1: GOAWAY with the last stream that was processed, then the end."""
    with Line(server, device) as line:
        line.write(line.push_on())
        assert line.response(STREAM).status == 200
        line.write(frame(PING, 0, 0, b"short") + line.push_on(STREAM + 2))
        goaway = line.goaway()
        assert (code_name(goaway.error_code), goaway.last_stream_id) == ("FRAME_SIZE_ERROR", STREAM)
        line.read_to_end()
        assert line.responses[STREAM + 2].status is None
    assert len(server.pushes(device_token=device, accepted="true")) == 2


def test_a_stream_error_does_not_affect_other_streams(server, device):
    """Section 5.4.2: streams opened before and after the faulty one are answered."""
    with Line(server, device) as line:
        line.write(line.request(3) + line.request(5, extra=[("Bad", "1")]) + line.request(7))
        line.until(lambda one: one.type == RST_STREAM)
        line.write(b"".join(frame(DATA, END_STREAM, stream, BODY) for stream in (3, 7)))
        assert [line.response(stream).status for stream in (3, 7)] == [200, 200]

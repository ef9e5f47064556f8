"""RFC 9113, sections 5.2 and 6.9: the server respects the client's window, and renews its own for all data that is
read or discarded. Invalid WINDOW_UPDATE frames: test_frame_types.py; windows withheld by a fault:
test_wire_faults.py.
"""

import pytest
from hyperframe.frame import WindowUpdateFrame

from support.conformance import (
    BODY, DATA, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PADDED, RST_STREAM, SERVED, SETTINGS, STREAM, WHOLE,
    WINDOW_UPDATE, Line, frame, number, padded, setting, stream_error, table,
)
from support.faults import faults, mock  # fixtures

REJECTED = {"apns_priority": "7"}  # the response has a body of 24 bytes
REASON = b'{"reason":"BadPriority"}'


def bodies(line, stream=STREAM):
    return [len(data) for data in line.responses[stream].data]


def update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, number(increment))


def initial_window(size):
    return frame(SETTINGS, 0, 0, setting((INITIAL_WINDOW_SIZE, size)))


def synchronize(line):
    line.ping(b"was read")
    line.ping(b"was sent")


@pytest.mark.parametrize("size", [1, 2, 23, 24, 25], ids=lambda size: f"6.9.1 {size} bytes")
def test_a_body_is_cut_to_the_streams_window(server, device, size):
    with Line(server, device, settings=[(INITIAL_WINDOW_SIZE, size)]) as line:
        line.write(line.push_on(**REJECTED))
        synchronize(line)
        assert bodies(line) == [min(size, 24)]
        while not line.responses[STREAM].finished:
            line.write(update(STREAM, 1))
            line.receive()
        assert line.responses[STREAM].body == REASON


def test_the_initial_window_is_changed_for_streams_that_are_open(server, device):
    """Section 6.9.2: an increase."""
    with Line(server, device, settings=[(INITIAL_WINDOW_SIZE, 0)]) as line:
        line.write(line.push_on(3, **REJECTED) + line.push_on(5, **REJECTED))
        synchronize(line)
        assert (bodies(line, 3), bodies(line, 5)) == ([], [])
        line.write(initial_window(10))
        synchronize(line)
        assert (bodies(line, 3), bodies(line, 5)) == ([10], [10])
        line.write(initial_window(24))
        assert [line.response(stream).body for stream in (3, 5)] == [REASON, REASON]


def test_a_window_may_be_negative(server, device):
    """Section 6.9.2: data already sent counts against the smaller window."""
    with Line(server, device, settings=[(INITIAL_WINDOW_SIZE, 10)]) as line:
        line.write(line.push_on(**REJECTED))
        synchronize(line)
        assert bodies(line) == [10]
        line.write(initial_window(0) + update(STREAM, 10))
        synchronize(line)
        assert bodies(line) == [10], "the window is of 0 bytes now, it was of -10"
        line.write(update(STREAM, 1))
        synchronize(line)
        assert bodies(line) == [10, 1]
        line.write(initial_window(100))
        assert line.response(STREAM).body == REASON


def test_the_last_of_several_values_counts(server, device):
    """Section 6.5.3: 100, then 1."""
    with Line(server, device) as line:
        line.write(frame(SETTINGS, 0, 0, setting((INITIAL_WINDOW_SIZE, 100), (INITIAL_WINDOW_SIZE, 1)))
                   + line.push_on(**REJECTED))
        synchronize(line)
        assert bodies(line) == [1]


def test_a_response_without_a_body_needs_no_window(server, device):
    """Section 5.2.1: flow control applies only to DATA."""
    with Line(server, device, settings=[(INITIAL_WINDOW_SIZE, 0)]) as line:
        line.write(line.push_on())
        assert line.response(STREAM).status == 200


def test_the_connections_window_is_for_all_streams_together(server, device):
    """At most 65 535 bytes of response bodies; each stream's own window would allow as many."""
    with Line(server, device) as line:
        request = line.request(flags=WHOLE, **REJECTED)[9:]
        streams = range(3, 3 + 2 * 2800, 2)
        for start in range(0, len(streams), 200):
            line.write(b"".join(frame(HEADERS, WHOLE, stream, request) for stream in streams[start:start + 200]))
            synchronize(line)
        assert sum(len(line.responses[stream].body) for stream in streams) == 65535
        line.write(line.push_on(9001))
        assert line.response(9001).status == 200, "a response without a body needs no window"
        line.write(update(0, 2800 * 24 - 65535))
        assert {line.response(stream).body for stream in streams} == {REASON}


# The server's window

class Sender:
    """Sends DATA within the connection's window and waits when it is exhausted: if the server leaks window, the
    test times out.
    """

    def __init__(self, line):
        self.line = line
        self.window = 65535 - len(BODY)
        self.seen = 0

    def send(self, data):
        size = len(data) - 9
        while True:
            for one in self.line.frames[self.seen:]:
                if isinstance(one, WindowUpdateFrame) and one.stream_id == 0:
                    self.window += one.window_increment
            self.seen = len(self.line.frames)
            if self.window >= size:
                break
            self.line.receive()
        self.window -= size
        self.line.write(data)


def of_a_push(line, sender, stream):
    line.write(line.request(stream))
    sender.send(frame(DATA, END_STREAM, stream, b"x" * 4000))


def of_padding(line, sender, stream):
    line.write(line.request(stream))
    for _ in range(15):
        sender.send(frame(DATA, PADDED, stream, padded(b"", 255)))
    sender.send(frame(DATA, PADDED | END_STREAM, stream, padded(BODY, 200)))


def of_a_malformed_request(line, sender, stream):
    line.write(line.request(stream, extra=[("Bad", "1")]))
    sender.send(frame(DATA, END_STREAM, stream, b"x" * 4000))


def of_a_wrong_length(line, sender, stream):
    line.write(line.request(stream, extra=[("content-length", "5")]))
    sender.send(frame(DATA, 0, stream, b"x" * 4000))


def of_a_stream_that_was_reset(line, sender, stream):
    line.write(line.request(stream, extra=[("content-length", "1")]))
    sender.send(frame(DATA, 0, stream, b"xx"))
    synchronize(line)
    sender.send(frame(DATA, END_STREAM, stream, b"x" * 4000))


def of_a_request_taken_back(line, sender, stream):
    line.write(line.request(stream))
    sender.send(frame(DATA, 0, stream, b"x" * 4000))
    line.write(frame(RST_STREAM, 0, stream, number(8)))


def of_a_request_that_is_too_large(line, sender, stream):
    line.write(line.request(stream, extra=[("x-fill", "x" * 9000)]))
    sender.send(frame(DATA, END_STREAM, stream, b"x" * 4000))


@pytest.mark.parametrize("how", [
    of_a_push, of_padding, of_a_malformed_request, of_a_wrong_length, of_a_stream_that_was_reset,
    of_a_request_taken_back, of_a_request_that_is_too_large,
], ids=lambda how: "5.2 " + how.__name__.replace("_", " "))
def test_the_connections_window_is_given_back_for_data(server, device, how):
    """Sends 200 000 bytes of each kind on one connection: nothing of its window of 65 535 may be lost."""
    with Line(server, device) as line:
        sender = Sender(line)
        for stream in range(3, 103, 2):
            how(line, sender, stream)
        line.write(line.push_on(1003))
        assert line.response(1003).status == 200


OVERRUNS = {
    "6.9.1 by a byte": (lambda line: line.request() + frame(DATA, END_STREAM, STREAM, b"x" * 101),
                        stream_error("FLOW_CONTROL_ERROR")),
    "6.9.1 by padding": (lambda line: line.request() + frame(DATA, END_STREAM | PADDED, STREAM, padded(b"x" * 50, 50)),
                         stream_error("FLOW_CONTROL_ERROR")),
    "6.9.1 not: as much as there is": (lambda line: line.push_on(body=b"x" * 100), SERVED),
    "6.9.1 not: an empty frame behind it":
        (lambda line: line.request() + frame(DATA, 0, STREAM, b"x" * 100) + frame(DATA, END_STREAM, STREAM), SERVED),
}


@table(OVERRUNS)
def test_more_than_the_servers_window(mock, faults, device, say, right):
    """The server's window of 65 535 bytes is renewed before a frame could exceed it, so a fault reduces it to 100."""
    faults.add({"settings": {"initial_window_size": 100}}, at="settings")
    with Line(mock, device, fresh=True) as line:
        line.settings()
        line.ping()
        line.write(line.push_on(1))
        assert line.response(1).status == 200
        line.write(say(line))
        assert line.reaction() in right

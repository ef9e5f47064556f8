"""HTTP/2 violations and the server's reactions to them: frames as bytes with arbitrary length, flags and content,
and reactions as strings for the tables of expected results.

`block` writes header blocks as literals without indexing and without Huffman coding, so their meaning depends
neither on order nor on the connection, and a test may append a representation of its own.
"""

import collections
import struct

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import GoAwayFrame, RstStreamFrame

from support.wire import PREFACE, Response, Closed, Wire, push_headers, tls_socket

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
UNKNOWN = 0xBE
KINDS = {
    "DATA": DATA, "HEADERS": HEADERS, "PRIORITY": PRIORITY, "RST_STREAM": RST_STREAM, "SETTINGS": SETTINGS,
    "PUSH_PROMISE": PUSH_PROMISE, "PING": PING, "GOAWAY": GOAWAY, "WINDOW_UPDATE": WINDOW_UPDATE,
    "CONTINUATION": CONTINUATION, "an unknown frame": UNKNOWN,
}

# Flags
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20
WHOLE = END_STREAM | END_HEADERS  # a request without a body

# Settings
(HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE,
 MAX_HEADER_LIST_SIZE) = range(1, 7)

BODY = b'{"aps":{"alert":"hello"}}'
OPENED = 1  # the stream of the push answered before the test: closed
STREAM = 3  # the stream the tests use: idle

# Reactions
GOES_ON = "goes on"
CLOSED = "closed"


def connection_error(*codes):
    """Returns the reactions for a connection error: GOAWAY with one of these codes, then the end of the connection
    (RFC 9113 section 5.4.1).
    """
    return {f"GOAWAY {code}" for code in codes}


def stream_error(*codes):
    """Returns the reactions for a stream error: RST_STREAM with one of these codes. Section 5.4.1 allows a server
    to treat it as a connection error instead.
    """
    return {f"RST_STREAM {code}" for code in codes} | connection_error(*codes)


def answered(*statuses):
    """Returns the reactions for a response with one of these statuses."""
    return {f"answered {status}" for status in statuses}


SERVED = answered(200)
# Section 8.1.1. A malformed push must not affect the provider's other pushes on the connection, so a connection
# error is not accepted here.
MALFORMED = {"RST_STREAM PROTOCOL_ERROR"}


def table(cases):
    """Returns a parametrization by a dict: id, (what is sent, the correct reactions)."""
    return pytest.mark.parametrize("say, right", cases.values(), ids=cases.keys())


def frame(kind, flags=0, stream=0, payload=b"", *, length=None):
    """Returns a frame. `stream` may have the reserved bit set; `length` overrides the length in the header."""
    length = len(payload) if length is None else length
    return struct.pack(">I", length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def number(value, size=4):
    return value.to_bytes(size, "big")


def setting(*pairs):
    """Returns the payload of SETTINGS."""
    return b"".join(struct.pack(">HI", *pair) for pair in pairs)


def padded(payload, padding, claimed=None):
    """Returns a payload with padding. `claimed` overrides the pad length field."""
    return bytes([padding if claimed is None else claimed]) + payload + b"\0" * padding


def priority(depends_on, weight=15, exclusive=False):
    return struct.pack(">IB", depends_on | (0x80000000 if exclusive else 0), weight)


def integer(value, prefix, pattern=0):
    """Returns an HPACK integer (RFC 7541 section 5.1) in the low `prefix` bits, with `pattern` in the others."""
    most = (1 << prefix) - 1
    if value < most:
        return bytes([pattern | value])
    out, value = [pattern | most], value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes([*out, value])


def text(value):
    """Returns an HPACK string without Huffman coding."""
    value = value if isinstance(value, bytes) else value.encode()
    return integer(len(value), 7) + value


def field(name, value):
    """Returns one header field as a literal without indexing."""
    return b"\0" + text(name) + text(value)


def block(fields):
    return b"".join(field(name, value) for name, value in fields)


class Line(Wire):
    """A connection for one violation. Unless it is `fresh`, a push was answered on it before (stream 1), so that
    the server allows many streams; its dynamic table is empty nevertheless.
    """

    def __init__(self, server, device, *, preface=True, settings=None, fresh=False):
        super().__init__(tls_socket(server), preface=False)
        self.responses = collections.defaultdict(Response)
        self.server, self.device = server, device
        if preface:
            self.write(PREFACE + frame(SETTINGS, payload=setting(*(settings or []))))
        if preface and not fresh:
            self.next_stream = STREAM
            self.write(self.push_on(OPENED))
            assert self.response(OPENED).status == 200

    # Requests

    def fields(self, *extra, **changes):
        """Returns the header list of a valid push, or of one with `changes`, as `push_headers`."""
        return push_headers(self.server, self.device, *extra, **changes)

    def request(self, stream=STREAM, flags=END_HEADERS, *, extra=(), more=b"", **changes):
        """Returns HEADERS of a push: a valid push's fields, followed by the fields `extra` and the bytes `more`."""
        return frame(HEADERS, flags, stream, block(self.fields(*extra, **changes)) + more)

    def push_on(self, stream=STREAM, body=BODY, **changes):
        """Returns a push in HEADERS and DATA."""
        return self.request(stream, **changes) + frame(DATA, END_STREAM, stream, body)

    # Reactions

    def reaction(self, stream=STREAM):
        """Returns the server's reaction to everything sent so far: GOAWAY and the end, RST_STREAM or a response on
        `stream`, or none of these. If the connection stays open, a push on it must be answered with 200.

        The acknowledgement of one PING proves that everything before it was read. That of a second PING proves that
        the reaction was sent, because acknowledgements may overtake other frames.
        """
        try:
            self.ping(b"was read")
            self.ping(b"was sent")
        except Closed:
            return self._end()
        assert not self.goaways, f"{self.goaways}, and the connection goes on"
        resets = {one.stream_id: one.error_code for one in self.frames if isinstance(one, RstStreamFrame)}
        assert set(resets) <= {stream}, f"{resets}: reset for what happened on {stream}"
        response = self.responses[stream]
        self.next_stream = 1001
        assert self.push(self.fields()).status == 200, "the connection lives but does not serve"
        if stream in resets and response.ended_by is None:
            return f"RST_STREAM {code_name(resets[stream])}"
        return GOES_ON if response.status is None else f"answered {response.status}"

    @property
    def goaways(self):
        return [one for one in self.frames if isinstance(one, GoAwayFrame)]

    def _end(self):
        if not self.closed:
            self.read_to_end()
        if not self.goaways:
            return CLOSED
        assert len(self.goaways) == 1, self.goaways
        goaway = self.goaways[0]
        assert goaway.additional_data, "a GOAWAY without a word why"
        return f"GOAWAY {code_name(goaway.error_code)}"


def code_name(code):
    return ErrorCodes(code).name


def in_one_piece(data):
    return [data]


def frame_by_frame(data):
    pieces = []
    while data:
        size = 9 + int.from_bytes(data[:3], "big")
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def by_seven_bytes(data):
    """Cuts the bytes so that each frame header arrives in two or three pieces."""
    return [data[at:at + 7] for at in range(0, len(data), 7)]


def check(server, device, say, right, *, stream=STREAM, pieces=in_one_piece, **how):
    """Sends what `say(line)` returns on a new connection, cut by `pieces`. The reaction on `stream` must be one of
    `right`.
    """
    with Line(server, device, **how) as line:
        try:
            for piece in pieces(say(line)):
                line.write(piece)
        except Closed:
            pass  # closed while sending: frames sent before the close can still be read
        reaction = line.reaction(stream)
        assert reaction in right, f"{reaction}, where {' or '.join(sorted(right))} is right"

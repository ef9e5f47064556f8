"""A low-level HTTP/2 client: it keeps every received frame, and tests control every frame it sends.

Built on hyperframe (frames) and hpack (header blocks) alone, so that it can also send what a conforming client
never would.
"""

import select
import socket
import ssl

import hpack
from hyperframe.frame import (
    ContinuationFrame, DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
TIMEOUT = 20  # seconds for anything that must arrive

NO_ERROR = 0
PROTOCOL_ERROR = 1
STREAM_CLOSED = 5
REFUSED_STREAM = 7
CANCEL = 8


class Closed(Exception):
    """The server closed the connection before the expected frame arrived."""


class Response:
    """The response on one stream."""

    def __init__(self):
        self.headers = None  # [(name, value)] as text, in order
        self.data = []  # the bytes of each DATA frame
        self.ended_by = None  # "HEADERS" or "DATA": the frame with END_STREAM
        self.reset = None  # the code of RST_STREAM

    @property
    def finished(self):
        return self.ended_by is not None or self.reset is not None

    def header(self, name):
        return next((value for key, value in self.headers or [] if key == name), None)

    @property
    def names(self):
        return [name for name, _ in self.headers]

    @property
    def status(self):
        return None if self.headers is None else int(self.header(":status"))

    @property
    def body(self):
        return b"".join(self.data)

    def __repr__(self):
        return f"Response({self.headers}, {self.data}, ended_by={self.ended_by}, reset={self.reset})"


def client_context(ca, *, alpn=("h2",), version=None, certificate=None):
    """Returns a TLS context that trusts only `ca`. An empty `alpn` disables ALPN. `version`: the only TLS version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ca)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if certificate is not None:
        context.load_cert_chain(*map(str, certificate))
    return context


def tls_socket(server, *, alpn=("h2",), version=None, certificate=None, host="127.0.0.1", port=None, name="localhost",
               context=None, session=None):
    """Returns a TLS connection to the server on which no HTTP/2 frame has been sent."""
    context = context or client_context(server.ca, alpn=alpn, version=version, certificate=certificate)
    plain = socket.create_connection((host, port or server.port), timeout=TIMEOUT)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain, server_hostname=name, session=session)


def read_until_closed(sock):
    """Reads a socket until the server closes it; returns the data, and "fin" or "reset"."""
    data = b""
    try:
        while chunk := sock.recv(65536):
            data += chunk
    except ConnectionResetError:
        return data, "reset"
    return data, "fin"


class Wire:
    """A connection. Receiving acknowledges SETTINGS and PING as HTTP/2 requires, unless `acknowledge` is false."""

    def __init__(self, sock, *, preface=True, acknowledge=True, settings=None):
        self.sock = sock
        self.acknowledge = acknowledge
        self.frames = []  # all received frames, in order
        self.closed = False
        self.responses = {}
        self.next_stream = 1
        self._goaways_returned = 0
        self._buffer = b""
        self._encoder = hpack.Encoder()
        self._decoder = hpack.Decoder()
        self._window = 65535
        self._windows = {}
        self._initial_window = 65535
        if preface:
            self.write(PREFACE + SettingsFrame(settings=settings or {}).serialize())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    # Sending

    def write(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError) as error:
            raise Closed(f"while writing {len(data)} bytes: {error}") from error

    def send(self, *frames):
        self.write(b"".join(frame.serialize() for frame in frames))

    def header_frames(self, stream, headers, *, end_stream):
        """Returns HEADERS and as many CONTINUATION frames as the block needs. Names and values are sent unchanged."""
        block = self._encoder.encode(headers, huffman=False)
        pieces = [block[i:i + 16384] for i in range(0, len(block), 16384)] or [b""]
        first = HeadersFrame(stream, pieces[0])
        if end_stream:
            first.flags.add("END_STREAM")
        frames = [first, *(ContinuationFrame(stream, piece) for piece in pieces[1:])]
        frames[-1].flags.add("END_HEADERS")
        return frames

    def next_stream_id(self):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.responses[stream] = Response()
        self._windows[stream] = self._initial_window
        return stream

    def request_frames(self, headers, body=b"", *, end_stream=True):
        """Returns a stream id and the frames of a request whose body fits the flow-control window."""
        stream = self.next_stream_id()
        frames = self.header_frames(stream, headers, end_stream=end_stream and not body)
        pieces = [body[i:i + 16384] for i in range(0, len(body), 16384)]
        for index, piece in enumerate(pieces):
            data = DataFrame(stream, piece)
            if end_stream and index == len(pieces) - 1:
                data.flags.add("END_STREAM")
            frames.append(data)
        self._window -= len(body)
        self._windows[stream] -= len(body)
        return stream, frames

    def open(self, headers, body=b"", *, end_stream=True):
        """Sends a request in one write; returns its stream id."""
        stream, frames = self.request_frames(headers, body, end_stream=end_stream)
        self.send(*frames)
        return stream

    def push(self, headers, body=b'{"aps":{"alert":"hello"}}'):
        """Sends a request and waits for its response."""
        return self.response(self.open(headers, body))

    def upload(self, headers, body):
        """Sends a long body as flow control allows, and stops as soon as the server has responded."""
        stream = self.next_stream_id()
        self.send(*self.header_frames(stream, headers, end_stream=False))
        at = 0
        while at < len(body) and not self.responses[stream].finished:
            room = min(self._window, self._windows[stream], 16384, len(body) - at)
            if room <= 0 or self._readable():
                self.receive()
                continue
            frame = DataFrame(stream, body[at:at + room])
            at += room
            if at == len(body):
                frame.flags.add("END_STREAM")
            self.send(frame)
            self._window -= room
            self._windows[stream] -= room
        return self.response(stream)

    def _readable(self):
        if self._buffer or (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending()):
            return True
        ready, _, _ = select.select([self.sock], [], [], 0)
        return bool(ready)

    # Receiving

    def _read_exactly(self, count):
        while len(self._buffer) < count:
            try:
                chunk = self.sock.recv(65536)
            except (ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
                chunk = b""
            if not chunk:
                self.closed = True
                raise Closed(f"after {self.frames}, {self._buffer!r}")
            self._buffer += chunk
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def receive(self):
        """Returns the next frame; raises `Closed` at the end of the connection."""
        head = self._read_exactly(9)
        frame, length = Frame.parse_frame_header(memoryview(head))
        frame.parse_body(memoryview(self._read_exactly(length)))
        self.frames.append(frame)
        self._apply(frame)
        return frame

    def drain(self):
        """Receives what has already arrived, without waiting for more."""
        while self._readable():
            self.receive()

    def _apply(self, frame):
        if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self._initial_window = frame.settings.get(SettingsFrame.INITIAL_WINDOW_SIZE, self._initial_window)
            if self.acknowledge:
                self.send(SettingsFrame(flags=["ACK"]))
        elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
            self.send(PingFrame(opaque_data=frame.opaque_data, flags=["ACK"]))
        elif isinstance(frame, WindowUpdateFrame):
            if frame.stream_id == 0:
                self._window += frame.window_increment
            elif frame.stream_id in self._windows:
                self._windows[frame.stream_id] += frame.window_increment
        elif isinstance(frame, HeadersFrame):
            assert "END_HEADERS" in frame.flags, "a response's header block is one frame"
            response = self.responses[frame.stream_id]
            response.headers = [(str(name), str(value)) for name, value in self._decoder.decode(frame.data)]
            if "END_STREAM" in frame.flags:
                response.ended_by = "HEADERS"
        elif isinstance(frame, DataFrame):
            response = self.responses[frame.stream_id]
            response.data.append(bytes(frame.data))
            if "END_STREAM" in frame.flags:
                response.ended_by = "DATA"
        elif isinstance(frame, RstStreamFrame) and frame.stream_id in self.responses:
            self.responses[frame.stream_id].reset = frame.error_code

    def until(self, wanted):
        """Receives frames until one satisfies `wanted`, and returns it."""
        while True:
            frame = self.receive()
            if wanted(frame):
                return frame

    def response(self, stream):
        """Waits for the response on a stream to be complete and returns it."""
        while not self.responses[stream].finished:
            self.receive()
        return self.responses[stream]

    def goaway(self):
        """Returns the next GOAWAY, including one received while waiting for something else."""
        while True:
            received = [frame for frame in self.frames if isinstance(frame, GoAwayFrame)]
            if len(received) > self._goaways_returned:
                self._goaways_returned += 1
                return received[self._goaways_returned - 1]
            self.receive()

    def settings(self):
        """Returns the server's next SETTINGS (no ACK)."""
        return self.until(lambda frame: isinstance(frame, SettingsFrame) and "ACK" not in frame.flags)

    def ping(self, data=b"12345678"):
        """Sends a PING and waits for its ACK."""
        self.send(PingFrame(opaque_data=data))
        return self.until(lambda frame: isinstance(frame, PingFrame) and "ACK" in frame.flags)

    def read_to_end(self):
        """Receives until the server closes; returns all frames."""
        try:
            while True:
                self.receive()
        except Closed:
            return self.frames

    def own_settings(self):
        """Returns all received SETTINGS that are not ACKs."""
        return [frame for frame in self.frames if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags]


def connect(server, *, preface=True, acknowledge=True, settings=None, **tls):
    """Returns a connection on which the preface has been sent."""
    return Wire(tls_socket(server, **tls), preface=preface, acknowledge=acknowledge, settings=settings)


def push_headers(server, device, *extra, **changes):
    """Returns the header list of an alert push. `changes`: header names with `_` for `-` (`path_`, `method_` for
    the pseudo headers), and a value, or None to omit the header; `extra`: further (name, value) pairs, appended
    unchanged.
    """
    headers = {
        "method_": "POST", "scheme_": "https", "path_": f"/3/device/{device}", "authority_": server.authority,
        "authorization": server.bearer, "apns_topic": "com.example.app", "apns_push_type": "alert",
    }
    headers.update(changes)
    listed = []
    for name, value in headers.items():
        if value is not None:
            listed.append((":" + name[:-1] if name.endswith("_") else name.replace("_", "-"), value))
    return listed + list(extra)

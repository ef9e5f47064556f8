"""A relay between clients and the server that ends TLS on both sides and records every HTTP/2 frame."""

import asyncio
import dataclasses
import datetime
import socket
import ssl
import struct
import threading
import time

import hpack
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hyperframe.frame import (
    ContinuationFrame, DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame,
    WindowUpdateFrame,
)

from support.wire import PREFACE, client_context

CLIENT, SERVER = "client", "server"
FIN, RESET = "FIN", "RESET"  # how a connection ends, besides the frames
HEARTBEAT = 0.02  # seconds
CLOSE_TIME = 3  # seconds that clients have at the end of a run to close their connections
HELD_TIME = 5  # seconds after which a close that the other side does not answer becomes a reset


@dataclasses.dataclass(frozen=True)
class Event:
    """A frame, or the end of one direction of a connection (`FIN`, `RESET`), when the relay received it.

    `side` sent it. `at` is in seconds of this machine's monotonic clock, `connection` counts from 1.
    """

    at: float
    connection: int
    side: str
    kind: str
    stream: int = 0
    ends_stream: bool = False
    is_ack: bool = False
    headers: dict | None = None
    data: bytes = b""
    code: int | None = None
    last_stream: int | None = None
    settings: dict | None = None

    def __str__(self):
        words = [self.kind, f"stream {self.stream}" if self.stream else ""]
        if self.headers is not None:
            words += [self.headers.get(":status") or self.headers.get(":path", "")[-8:], self.headers.get("apns-id", "")[:8]]
        if self.data:
            words.append(self.data.decode(errors="replace")[:60])
        if self.code is not None:
            words.append(f"code {self.code}")
        if self.last_stream is not None:
            words.append(f"last stream {self.last_stream}")
        if self.settings:
            words.append(f"{self.settings}")
        words += ["ACK"] * self.is_ack + ["END_STREAM"] * self.ends_stream
        return " ".join(filter(None, words))


class FrameReader:
    """Reads the frames that one side sends, and notes them in `events`."""

    def __init__(self, events, connection, side):
        self._events, self._connection, self.side = events, connection, side
        self._data = b""
        self._preface = len(PREFACE) if side == CLIENT else 0
        self._decoder = hpack.Decoder()
        self._decoder.max_allowed_table_size = 65536
        self._headers = None  # HEADERS whose CONTINUATION is missing

    def note(self, kind, **details):
        self._events.append(Event(time.monotonic(), self._connection, self.side, kind, **details))

    def read(self, data):
        self._data += data
        if self._preface and len(self._data) >= self._preface:
            self._data, self._preface = self._data[self._preface:], 0
        while not self._preface and len(self._data) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self._data[:9]))
            if len(self._data) < 9 + length:
                return
            frame.parse_body(memoryview(self._data[9:9 + length]))
            self._data = self._data[9 + length:]
            self._read_frame(frame)

    def _read_frame(self, frame):
        kind = {RstStreamFrame: "RST_STREAM", WindowUpdateFrame: "WINDOW_UPDATE"}.get(
            type(frame), type(frame).__name__.removesuffix("Frame").upper())
        details = {"stream": frame.stream_id, "is_ack": "ACK" in frame.flags}
        if isinstance(frame, HeadersFrame | ContinuationFrame):
            return self._read_block(frame)
        if isinstance(frame, DataFrame):
            details |= {"data": bytes(frame.data), "ends_stream": "END_STREAM" in frame.flags}
        elif isinstance(frame, RstStreamFrame):
            details |= {"code": frame.error_code}
        elif isinstance(frame, GoAwayFrame):
            details |= {"code": frame.error_code, "last_stream": frame.last_stream_id, "data": bytes(frame.additional_data)}
        elif isinstance(frame, SettingsFrame):
            details |= {"settings": dict(frame.settings)}
        elif isinstance(frame, PingFrame):
            details |= {"data": bytes(frame.opaque_data)}
        self.note(kind, **details)

    def _read_block(self, frame):
        if isinstance(frame, HeadersFrame):
            self._headers = (frame.stream_id, "END_STREAM" in frame.flags, b"")
        stream, ends_stream, block = self._headers
        self._headers = (stream, ends_stream, block + bytes(frame.data))
        if "END_HEADERS" in frame.flags:
            fields = {str(name): str(value) for name, value in self._decoder.decode(self._headers[2])}
            self.note("HEADERS", stream=stream, ends_stream=ends_stream, headers=fields)
            self._headers = None


class Side(asyncio.Protocol):
    """One side of a relayed connection. What it receives goes to the other side, also how the connection ends."""

    def __init__(self, reader):
        self.reader = reader
        self.other = None
        self.transport = None
        self.early = []  # received before the other side was there
        self.is_over = False

    def connection_made(self, transport):
        self.transport = transport
        if sock := transport.get_extra_info("socket"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.reader.read(data)
        if self.other is None:
            self.early.append(data)
        elif not self.other.is_over:
            self.other.transport.write(data)

    def connection_lost(self, error):
        if not self.is_over:
            self.is_over = True
            error = error if isinstance(error, ConnectionError) else None
            self.reader.note(RESET if error else FIN)
            if self.other is not None:
                self.other.end(error)

    def end(self, error):
        if self.is_over:
            return
        self.is_over = True
        if error:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        else:
            self.transport.close()
            asyncio.get_running_loop().call_later(HELD_TIME, self.transport.abort)


class Raw(asyncio.Protocol):
    """A connection that was accepted and is not read before its TLS handshake."""

    def __init__(self, relay):
        self.relay = relay

    def connection_made(self, transport):
        transport.pause_reading()
        self.relay.begin(transport, self)

    def data_received(self, data):
        pass


class Relay:
    """Listens on `port` and relays each connection to a new one to the server. Clients find the server's own certificate, or,
    if the server presents one that is invalid, another invalid one.
    """

    def __init__(self, server):
        self.server = server
        self.events = []
        self.lag = 0  # the longest time in seconds by which frames may have been recorded late
        self.ports = {}  # the client's port that the server sees: the number of the connection
        self._valid = self._context(f"{server.certs}/server.pem", f"{server.certs}/server-key.pem")
        self._invalid = self._context(*untrusted_certificate(server.directory))
        self._upstream = client_context(server.ca)
        self._tasks = set()
        self._sides = []
        self._connections = 0

    def __enter__(self):
        """Starts the relay in a thread of its own, so that nothing but the frames determines when they are recorded."""
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(ready)))
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_):
        """Waits until the clients have closed their connections, or closes them."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join()

    async def _run(self, ready):
        self._loop, self._is_over = asyncio.get_running_loop(), asyncio.Event()
        listener = await self._loop.create_server(lambda: Raw(self), "127.0.0.1", 0)
        self.port = listener.sockets[0].getsockname()[1]
        ready.set()
        measuring = asyncio.ensure_future(self._measure_lag())
        await self._is_over.wait()
        measuring.cancel()
        listener.close()
        for task in self._tasks:
            task.cancel()
        deadline = time.monotonic() + CLOSE_TIME
        while time.monotonic() < deadline and not all(side.is_over for side in self._sides):
            await asyncio.sleep(0.01)
        for side in self._sides:
            if not side.is_over and side.reader.side == CLIENT:
                side.reader.note(FIN)
            side.end(None)
        await asyncio.sleep(0.01)

    async def _measure_lag(self):
        """Measures how late this thread runs on a busy machine."""
        while True:
            due = time.monotonic() + HEARTBEAT
            await asyncio.sleep(HEARTBEAT)
            self.lag = max(self.lag, time.monotonic() - due)

    def begin(self, transport, raw):
        self._connections += 1
        task = asyncio.ensure_future(self._relay(self._connections, transport, raw))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relay(self, number, raw_transport, raw):
        loop = asyncio.get_running_loop()
        client, server = (Side(FrameReader(self.events, number, side)) for side in (CLIENT, SERVER))
        context = self._valid
        try:
            try:
                await loop.create_connection(
                    lambda: server, "127.0.0.1", self.server.port, ssl=self._upstream, server_hostname="localhost")
                self.ports[server.transport.get_extra_info("sockname")[1]] = number
                self._sides.append(server)
            except ssl.SSLCertVerificationError:
                context = self._invalid
            client.transport = await loop.start_tls(raw_transport, client, context, server_side=True)
        except OSError:
            raw_transport.abort()
            if server.transport:
                server.end(None)
        except asyncio.CancelledError:
            raw_transport.abort()
            raise
        else:
            self._sides.append(client)
            self._join(client, server)

    def _join(self, client, server):
        for side, other in ((client, server), (server, client)):
            side.other = other
            for data in side.early:
                other.transport.write(data)
        for side, other in ((client, server), (server, client)):
            if side.is_over:
                other.end(None)

    @staticmethod
    def _context(certificate, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2"])
        return context


def untrusted_certificate(folder):
    """Writes a certificate that its own key signed; returns the paths of the certificate and of the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1)
    ).add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False).sign(key, hashes.SHA256())
    paths = folder / "untrusted.pem", folder / "untrusted-key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return paths

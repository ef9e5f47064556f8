"""Sets faults on a running server and compares its records of them with what a client observed.

Test modules that set faults have their own server (`mock`) and remove the faults after each test (`faults`).
"""

import contextlib
import dataclasses
import secrets
import socket
import ssl

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import pytest
from hyperframe.frame import GoAwayFrame, HeadersFrame

from support.server import Server, stop_cleanly, wait_until
from support.wire import TIMEOUT, Wire, client_context, push_headers, tls_socket

BODY = b'{"aps":{"alert":"hello"}}'
EVERY_STREAM = 2**31 - 1
SHORT = 0.4  # seconds without data that count as silence; no assertion requires anything to be faster

# Protocol.md, section 7.2: all reasons with their statuses.
REASONS = [
    (400, "BadCollapseId"), (400, "BadDeviceToken"), (400, "BadExpirationDate"), (400, "BadMessageId"),
    (400, "BadPriority"), (400, "BadTopic"), (400, "DeviceTokenNotForTopic"), (400, "DuplicateHeaders"),
    (400, "IdleTimeout"), (400, "InvalidPushType"), (400, "MissingDeviceToken"), (400, "MissingTopic"),
    (400, "PayloadEmpty"), (400, "TopicDisallowed"), (403, "BadCertificate"), (403, "BadCertificateEnvironment"),
    (403, "BadEnvironmentKeyIdInToken"), (403, "BadEnvironmentKeyInToken"), (403, "ExpiredProviderToken"),
    (403, "Forbidden"), (403, "InvalidProviderToken"), (403, "MissingProviderToken"), (403, "UnrelatedKeyIdInToken"),
    (404, "BadPath"), (405, "MethodNotAllowed"), (410, "ExpiredToken"), (410, "Unregistered"),
    (413, "PayloadTooLarge"), (429, "TooManyProviderTokenUpdates"), (429, "TooManyRequests"),
    (500, "InternalServerError"), (503, "ServiceUnavailable"), (503, "Shutdown"),
]

# RFC 9113 section 7, by number.
CODES = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
]


def new_device():
    return secrets.token_hex(32)


# Setting faults

class Faults:
    """The faults of one server."""

    def __init__(self, server):
        self.server = server

    def add(self, do, **fields):
        """Adds a rule and returns its name. `do` is the action; the rule's other members, including `name`, are in
        `fields`.
        """
        return self.server.api("POST", "/rules", {"do": do, **fields})["name"]

    def remove(self, name):
        self.server.api("DELETE", f"/rules/{name}")

    def clear(self):
        self.server.api("POST", "/reset", {"rules": True, "profile": True, "counters": True})

    def use(self, rules, *, name="of-a-test", seed=None, params=None, **fields):
        """Activates a profile with these rules; returns the response of `PUT /profile`."""
        self.server.api("PUT", f"/profiles/{name}", {"name": name, "rules": rules, **fields})
        chosen = {"name": name, "seed": seed, "params": params}
        return self.server.api("PUT", "/profile", {key: value for key, value in chosen.items() if value is not None})

    def explain(self, rule):
        return self.server.api("GET", f"/rules/{rule}/explain")

    def fired(self, rule):
        return self.server.api("GET", f"/rules/{rule}")["fired"]


@pytest.fixture(scope="module")
def mock(binary, certs):
    """The module's own server, with seed 7."""
    running = Server(binary, certs, "--seed", "7")
    yield running
    stop_cleanly(running)


@pytest.fixture
def faults(mock):
    """The server's faults. After the test they are removed and an ordinary push must be accepted: whatever happened
    to one connection, the server keeps working.
    """
    mine = Faults(mock)
    yield mine
    mock.api("POST", "/faults/resume")
    mine.clear()
    serves(mock)


def serves(server):
    """Asserts that an ordinary push on a new connection is answered with 200 and accepted."""
    device = new_device()
    with line(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    record = server.record(device)
    assert (record["outcome"], record["fault"]) == ("accepted", None)


# Records

@dataclasses.dataclass
class FaultSummary:
    """The members of a push's record that describe its fault. The defaults are those of a push that an action at
    the request made fail and that APNs would have accepted. The outcome follows from the others unless it is given.
    """

    action: str | None
    outcome: str | None = None
    accepted: bool = False
    status: int | None = None
    reason: str | None = None
    reset: str | None = None
    goaway: dict | None = None
    closed: str | None = None
    verdict: int | None = 200

    def __post_init__(self):
        if self.outcome is None:
            if self.status is not None:
                self.outcome = "accepted" if self.accepted else "rejected"
            elif self.reset == "REFUSED_STREAM" or self.goaway:
                self.outcome = "unprocessed"
            else:
                self.outcome = "response_lost" if self.accepted else "unanswered"

    @staticmethod
    def of(record):
        served, fault, verdict = record["served"], record["fault"], record["verdict"]
        return FaultSummary(
            fault and fault["action"], record["outcome"], record["accepted"], served["status"], served["reason"],
            served["reset"], served["goaway"], served["closed"], verdict and verdict["status"])


ACCEPTED = FaultSummary(None, "accepted", True, 200)


def fault_summary(server, device):
    """Returns the story of the device's only record."""
    return FaultSummary.of(server.record(device))


def await_fault_summary(server, device, expected):
    """Waits until the device has one record and its story is `expected`, for events of which the client is not
    notified.
    """
    def fault_summaries():
        return [FaultSummary.of(record) for record in server.pushes(device_token=device)]

    wait_until(lambda: fault_summaries() == [expected], lambda: f"{expected}, but {fault_summaries()}")


def timeline(server, wire):
    """Returns the connection's events as [(event, detail)], and its state."""
    port = wire.sock.getsockname()[1]
    items = server.api("GET", "/connections")["items"]
    mine = [item for item in items if item["client"].endswith(f":{port}")]
    return [(event["event"], event["detail"]) for event in mine[-1]["events"]], mine[-1]["state"]


def closed(server, wire):
    """Waits until the server's record of the connection is closed; returns its events as [(event, detail)]."""
    wait_until(lambda: timeline(server, wire)[1] == "closed", lambda: timeline(server, wire))
    return timeline(server, wire)[0]


# Clients

class Line:
    """A TLS connection that distinguishes a reset from an end of file, which Python's own TLS sockets report alike.
    Implements the part of a socket that `Wire` uses.
    """

    def __init__(self, sock, context, name):
        self.sock = sock
        self.name = sock.getsockname()
        self.ended = None  # "fin" or "reset", once the kernel has reported it
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_out()
                self._fetch()
            except ssl.SSLError:
                self._send_out()
                raise
        self._send_out()

    def _send_out(self):
        try:
            if data := self._outgoing.read():
                self.sock.sendall(data)
        except ConnectionResetError:  # a further write after a FIN would raise BrokenPipeError instead
            self.ended = "reset"
            raise

    def _fetch(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            self.ended = "reset"
            raise
        if data:
            self._incoming.write(data)
        else:
            self.ended = "fin"
            self._incoming.write_eof()

    def recv(self, _):
        """Returns all data that can be read now, so that none stays in a buffer that `select` does not see."""
        read = b""
        while True:
            try:
                piece = self.tls.read(65536)
                read += piece
                if not piece:
                    return read
            except ssl.SSLWantReadError:
                if read:
                    return read
                self._send_out()
                self._fetch()
            except ssl.SSLEOFError:
                return read

    def sendall(self, data):
        self.tls.write(data)
        self._send_out()

    def read_to_end(self):
        """Reads and ignores what follows the end of TLS until the kernel reports how the connection ended."""
        with contextlib.suppress(ConnectionResetError):
            while self.ended is None:
                self._fetch()
        return self.ended

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def fileno(self):
        return self.sock.fileno()

    def getsockname(self):
        return self.name  # works after the end of the connection too

    def getpeercert(self):
        return self.tls.getpeercert()

    def close(self):
        self.sock.close()


def line(server, *, preface=True, acknowledge=True, settings=None, host="127.0.0.1", port=None, name="localhost",
         source=None, **options):
    """Connects as `wire.connect`, from the address `source`; afterwards `ending` returns how the connection ended."""
    sock = socket.create_connection(
        (host, port or server.port), timeout=TIMEOUT, source_address=source and (source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tls = Line(sock, options.pop("context", None) or client_context(server.ca, **options), name)
    return Wire(tls, preface=preface, acknowledge=acknowledge, settings=settings)


def widened(server, **options):
    """Returns a connection that allows many streams, because one push was accepted on it."""
    wire = line(server, **options)
    assert wire.push(push_headers(server, new_device())).status == 200
    return wire


def ending(wire):
    """Reads to the end of the connection; returns "fin" or "reset"."""
    wire.read_to_end()
    return wire.sock.read_to_end()


def pushed(wire, server, device, body=BODY, **changes):
    """Opens a stream with a push without waiting for the response; returns the stream id."""
    return wire.open(push_headers(server, device, **changes), body)


def is_silent(wire, seconds=SHORT):
    """Returns whether only connection-level frames (SETTINGS, WINDOW_UPDATE) arrive for this long."""
    before = len(wire.frames)
    wire.sock.settimeout(seconds)
    try:
        while True:
            wire.receive()
    except TimeoutError:
        return not [frame for frame in wire.frames[before:] if frame.stream_id or isinstance(frame, GoAwayFrame)]
    finally:
        wire.sock.settimeout(TIMEOUT)


def responses_in_order(wire):
    """Returns the streams that were answered, in the order of their HEADERS."""
    return [frame.stream_id for frame in wire.frames if isinstance(frame, HeadersFrame)]


class Provider:
    """A provider written with the library h2 in the usual way: it respects the server's limits and trusts its
    frames.
    """

    def __init__(self, server, **tls):
        self.server = server
        self.sock = tls_socket(server, **tls)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.statuses = {}  # by stream
        self.bodies = {}
        self.resets = {}  # error codes by stream
        self.ended = set()
        self.limits = []  # each MAX_CONCURRENT_STREAMS the server sent
        self.goaway = None  # (code, last stream, debug data)
        self.closed = False
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def flush(self):
        if data := self.h2.data_to_send():
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                self.sock.sendall(data)

    def open(self, device, body=BODY, **changes):
        """Queues a push and returns its stream. Raises `h2.exceptions.TooManyStreamsError` beyond the limit."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, push_headers(self.server, device, **changes))
        self.h2.send_data(stream, body, end_stream=True)
        return stream

    def pump(self):
        """Reads once and processes the received events."""
        self.flush()
        try:
            data = self.sock.recv(65536)
        except (ConnectionResetError, ssl.SSLError):
            data = b""
        if not data:
            self.closed = True
            return
        for event in self.h2.receive_data(data):
            self._take(event)
        self.flush()

    def _take(self, event):
        match event:
            case h2.events.ResponseReceived():
                self.statuses[event.stream_id] = int(dict(event.headers)[":status"])
            case h2.events.DataReceived():
                self.bodies[event.stream_id] = self.bodies.get(event.stream_id, b"") + event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                self.ended.add(event.stream_id)
            case h2.events.StreamReset():
                self.resets[event.stream_id] = int(event.error_code)
                self.ended.add(event.stream_id)
            case h2.events.RemoteSettingsChanged():
                changed = event.changed_settings.get(h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS)
                if changed is not None:
                    self.limits.append(changed.new_value)
            case h2.events.ConnectionTerminated():
                self.goaway = (int(event.error_code), event.last_stream_id, event.additional_data)

    def until(self, truth):
        """Reads until `truth()` or the end of the connection."""
        self.flush()
        while not truth() and not self.closed:
            self.pump()
        return self

    def push(self, device, body=BODY, **changes):
        """Sends a push and waits for the end of its stream; returns the status, or None if the stream was reset or
        lost.
        """
        stream = self.open(device, body, **changes)
        self.until(lambda: stream in self.ended or self.goaway)
        return self.statuses.get(stream)


def warmed(server, **tls):
    """Returns a provider that may open many streams, because one of its pushes was accepted."""
    provider = Provider(server, **tls)
    assert provider.push(new_device()) == 200
    provider.until(lambda: 1000 in provider.limits)
    return provider

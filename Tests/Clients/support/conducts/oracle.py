"""What happened to each push, from the frames between the clients and the server: pure functions.

The frames are recorded between the two, so their order in opposite directions is not certain, nor are times that are close to a
limit. Where that matters, a result is a set of possible values, or a pair of sets (`Expected`).
"""

import dataclasses
import json

from support.conducts.relay import CLIENT, FIN, RESET, SERVER

RACE = 0.1  # seconds in which frames of opposite directions may have crossed
REFUSED_STREAM = 7
MAX_CONCURRENT_STREAMS = 3


@dataclasses.dataclass
class Connection:
    """A connection. `ended_by`: the side that ended it first; `is_orderly`: by a close, not by a reset; `lag`: the seconds by which
    the relay, and the server, may have received frames late, because the machine was busy.
    """

    number: int
    opened_at: float
    lag: float = 0
    ended_by: str | None = None
    is_orderly: bool = False
    ended_at: float | None = None
    left_at: float | None = None  # when the client sent GOAWAY
    goaways: list = dataclasses.field(default_factory=list)  # (at, last stream)
    settings: list = dataclasses.field(default_factory=list)  # MAX_CONCURRENT_STREAMS of each SETTINGS of the server, or None
    limits: list = dataclasses.field(default_factory=list)  # (when the client acknowledged the limit, the limit)
    client_frames: list = dataclasses.field(default_factory=list)  # times
    pings: dict = dataclasses.field(default_factory=dict)  # data of the server's PINGs: when they were sent
    ping_acks: list = dataclasses.field(default_factory=list)  # (when the PING was sent, when it was acknowledged)

    @property
    def race(self):
        return RACE + self.lag

    @property
    def is_ended_by_server(self):
        """Whether the server closed the connection, or the client did after a GOAWAY."""
        return self.ended_by == SERVER or self.ended_by == CLIENT and bool(self.goaways)


@dataclasses.dataclass
class Attempt:
    """A stream. Times are None for what did not happen."""

    connection: Connection
    stream: int
    headers: dict
    opened_at: float
    push: object = None  # what identifies the push
    content: bytes = b""  # the body of the request
    complete_at: float | None = None  # the request
    status: int | None = None
    body: bytes = b""
    responded_at: float | None = None  # END_STREAM of the response
    reset_at: float | None = None  # by the server
    reset_code: int | None = None
    canceled_at: float | None = None

    @property
    def key(self):
        return self.connection.number, self.stream

    @property
    def apns_id(self):
        return self.headers.get("apns-id")

    @property
    def target(self):
        return self.headers[":path"], self.headers.get("apns-topic")

    @property
    def token(self):
        return self.headers.get("authorization")

    @property
    def reason(self):
        try:
            return json.loads(self.body).get("reason")
        except (ValueError, AttributeError):
            return None

    @property
    def is_malformed(self):
        """Whether `content-length` differs from the length of the body (RFC 9113, section 8.1.1)."""
        length = self.headers.get("content-length")
        return self.complete_at is not None and length is not None and int(length) != len(self.content)

    @property
    def is_answered(self):
        return self.responded_at is not None


def read(events, numbers, lag=0):
    """Returns the connections and the attempts, in the order in which they were opened. `numbers`: {apns-id: n}; `lag` as in
    `Connection`.

    A push is identified by `n` in its payload, or, if a request was incomplete or malformed, by its `apns-id`. A complete
    request with another payload, such as the empty one of a client that cancels, is another push.
    """
    connections, attempts = {}, {}
    for event in events:
        connection = connections.setdefault(event.connection, Connection(event.connection, event.at, lag))
        if event.kind in (FIN, RESET):
            if connection.ended_by is None:
                connection.ended_by, connection.ended_at = event.side, event.at
                connection.is_orderly = event.kind == FIN
        elif event.side == CLIENT:
            connection.client_frames.append(event.at)
            if event.kind == "GOAWAY" and connection.ended_by is None:
                connection.left_at = event.at
            _read_client_frame(event, connection, attempts)
        else:
            _read_server_frame(event, connection, attempts)
    for attempt in attempts.values():
        attempt.push = numbers.get(attempt.apns_id)
        if attempt.complete_at is not None and not attempt.is_malformed and attempt.push != _number(attempt.content):
            attempt.push = f"{attempt.content} to {attempt.target}"
    return list(connections.values()), sorted(attempts.values(), key=lambda attempt: attempt.opened_at)


def _number(content):
    try:
        return json.loads(content)["n"]
    except (ValueError, KeyError, TypeError):
        return None


def _read_client_frame(event, connection, attempts):
    key = event.connection, event.stream
    if event.kind == "HEADERS":
        attempts[key] = Attempt(connection, event.stream, event.headers, event.at)
    attempt = attempts.get(key)
    if attempt is not None and event.kind == "DATA":
        attempt.content += event.data
    if attempt is not None and event.ends_stream:
        attempt.complete_at = event.at
    elif attempt is not None and event.kind == "RST_STREAM":
        attempt.canceled_at = event.at
    elif event.kind == "SETTINGS" and event.is_ack and connection.settings:
        if (limit := connection.settings.pop(0)) is not None:
            connection.limits.append((event.at, limit))
    elif event.kind == "PING" and event.is_ack and event.data in connection.pings:
        connection.ping_acks.append((connection.pings[event.data], event.at))


def _read_server_frame(event, connection, attempts):
    attempt = attempts.get((event.connection, event.stream))
    if event.kind == "GOAWAY":
        connection.goaways.append((event.at, event.last_stream))
    elif event.kind == "SETTINGS" and not event.is_ack:
        connection.settings.append((event.settings or {}).get(MAX_CONCURRENT_STREAMS))
    elif event.kind == "PING" and not event.is_ack:
        connection.pings[event.data] = event.at
    elif attempt is None:
        return
    elif event.kind == "RST_STREAM" and attempt.reset_at is None:
        attempt.reset_at, attempt.reset_code = event.at, event.code
    elif event.kind == "HEADERS":
        attempt.status = int(event.headers[":status"])
    elif event.kind == "DATA":
        attempt.body += event.data
    if attempt is not None and event.ends_stream:
        attempt.responded_at = event.at


# One attempt

def endings(attempt):
    """Returns the possible endings."""
    if attempt.is_answered:
        return {"response"}
    server, client = _server_ending(attempt), _client_ending(attempt)
    if attempt.is_malformed:
        return {"malformed"} | _before_malformed(attempt, server)
    if server is None and client is None:
        return {"pending"}
    if client is None or server is not None and server[0] <= client[0]:
        # What the relay received first from the server was sent before the server received the client's end.
        possible = {server[1]}
    else:
        possible = {client[1]}
        if server is not None and server[0] - client[0] <= attempt.connection.race:
            possible.add(server[1])
    return possible | (_lost_on_the_way(attempt) if possible == {"disconnected"} else set())


def _before_malformed(attempt, server):
    """Returns what may have happened before the server read the end of a malformed request."""
    if server is None or server[0] - attempt.complete_at > attempt.connection.race:
        return set()
    return {"refused"} if server[1] == "refused" else {"incomplete"} if server[1] == "disconnected" else set()


def _lost_on_the_way(attempt):
    """Returns what may have happened instead of `disconnected` without reaching the relay. It reads nothing after the client's
    close, a reset destroys what was sent before it, and the server reads nothing after its own close.
    """
    connection = attempt.connection
    found = set()
    if connection.ended_by == CLIENT or not connection.is_orderly:
        found.add("response")
    if connection.ended_by == SERVER and connection.ended_at - attempt.complete_at <= connection.race:
        found.add("incomplete")
    return found


def _server_ending(attempt):
    found = []
    if attempt.reset_at is not None:
        found.append((attempt.reset_at, "refused" if attempt.reset_code == REFUSED_STREAM else "reset"))
    found += [(max(at, attempt.opened_at), "refused") for at, last in attempt.connection.goaways if last < attempt.stream][:1]
    if attempt.connection.ended_by == SERVER:
        found.append((attempt.connection.ended_at, _closed(attempt)))
    return min(found, key=lambda end: end[0], default=None)


def _client_ending(attempt):
    found = []
    if attempt.canceled_at is not None:
        found.append((attempt.canceled_at, "cancelled"))
    if attempt.connection.ended_by == CLIENT:
        found.append((attempt.connection.ended_at, _closed(attempt)))
    return min(found, key=lambda end: end[0], default=None)


def _closed(attempt):
    return "disconnected" if attempt.complete_at is not None else "incomplete"


def decisions(attempt, ending):
    """Returns what APNs may have done with an attempt that ended so. Without a response the frames do not show it."""
    if attempt.is_answered:
        return {"accepted" if attempt.status < 300 else "rejected"}
    if ending in ("refused", "incomplete", "malformed") or attempt.complete_at is None:
        return {"not_processed"}
    if ending == "response":
        return {"accepted", "rejected"}
    if attempt.status is not None:
        return {"accepted" if attempt.status < 300 else "rejected"}
    return {"accepted", "rejected", "not_processed"}


def outcome(decision, ending):
    """Returns the outcome, one word."""
    if ending == "pending":
        return "pending"
    if ending in ("incomplete", "malformed"):
        return ending
    if ending == "refused":
        return "unprocessed"
    if ending == "response":
        return decision
    return "unanswered" if decision == "not_processed" else "response_lost"


def is_permanent(attempt):
    """Whether the response says that the push must not be sent again as it is."""
    return (attempt.is_answered and 400 <= attempt.status < 500 and attempt.status not in (408, 425, 429)
            and attempt.reason not in ("ExpiredProviderToken", "IdleTimeout"))


def is_temporary(attempt):
    return attempt.is_answered and (attempt.status in (408, 425, 429) or attempt.status >= 500)


@dataclasses.dataclass
class Known:
    """An attempt whose decision and ending are known."""

    attempt: Attempt
    decision: str
    ending: str

    @property
    def outcome(self):
        return outcome(self.decision, self.ending)

    @property
    def is_accepted(self):
        return self.decision == "accepted"


def end_of(attempt):
    """Returns when the attempt ended; None if it did not."""
    ends = [attempt.responded_at, attempt.reset_at, attempt.canceled_at, attempt.connection.ended_at]
    ends += [max(at, attempt.opened_at) for at, last in attempt.connection.goaways if last < attempt.stream]
    return min((at for at in ends if at is not None), default=None)

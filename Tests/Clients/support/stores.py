"""Stores: flags for a server that keeps its inbox in an SQLite file or in a PostgreSQL database, the pushes there as other
programs read them, and pushes of every kind.

A place is the path of a file or a `PostgresInbox`.
"""

import contextlib
import http.client
import secrets
import socket
import sqlite3
import time
import uuid

from support.certificates import provider_certificate
from support.postgres import PostgresInbox, shared
from support.server import wait_until
from support.wire import Closed, connect, push_headers

BODY = b'{"aps":{"alert":"hello"}}'


def new_place(store, folder):
    """Returns a place for a new inbox: for `sqlite` in this folder, for `postgres` in the shared database."""
    return folder / "inbox.db" if store == "sqlite" else shared().new_inbox()


def value(place, memory_records=None):
    """Returns the value of `--store`. With few records in memory, queries read the file or the database."""
    if isinstance(place, PostgresInbox):
        return place.url(memory_records=memory_records) if memory_records else place.url()
    return f"sqlite:{place}?memory_records={memory_records}" if memory_records else f"sqlite:{place}"


def flags(place, *more, memory_records=None):
    """Returns the flags of a server with this place."""
    return ["--store", value(place, memory_records), *more]


def pushes_view(place, sql="SELECT * FROM pushes ORDER BY seq", *arguments):
    """Returns rows of the documented view `pushes`, as another program reads them while the server runs. Each `?` in the
    SQL is replaced by an argument.
    """
    if isinstance(place, PostgresInbox):
        return place.view(sql, *arguments)
    with contextlib.closing(sqlite3.connect(f"file:{place}?mode=ro", uri=True, timeout=10)) as db:
        db.row_factory = sqlite3.Row
        db.text_factory = lambda text: text.decode(errors="replace")
        return [dict(row) for row in db.execute(sql, arguments)]


def execute(place, sql):
    """Executes a command in the database, while no server uses it."""
    if isinstance(place, PostgresInbox):
        place.execute(sql)
        return
    with contextlib.closing(sqlite3.connect(place, timeout=10)) as db, db:
        db.execute(sql)


@contextlib.contextmanager
def exclusive_lock(path):
    """Holds a lock with which no other program can write the file."""
    with contextlib.closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            db.execute("ROLLBACK")


def everything(server, **query):
    """Returns all records of all kinds, oldest first."""
    items, after = [], 0
    while after is not None:
        page = server.api("GET", "/pushes", kind="*", limit=1000, after=after, **query)
        items += page["items"]
        after = page["next"]
    return items


def seqs(server, **query):
    return [record["seq"] for record in server.pushes(limit=1000, **query)]


def load(server, count, *, streams=50, device=None, body=BODY, seconds=60, **changes):
    """Sends this many pushes over one connection, `streams` at a time; returns their apns-ids with the statuses that
    were received, in the order of sending. Ends when the server closes the connection. Until a push was accepted, a
    connection is allowed one stream.
    """
    statuses, accepted, started = {}, False, time.monotonic()
    with connect(server) as wire, contextlib.suppress(Closed, OSError):
        wire.settings()
        while len(statuses) < count:
            assert time.monotonic() < started + seconds, f"only {len(statuses)} pushes within {seconds} s"
            batch, frames = {}, []
            for _ in range(min(streams if accepted else 1, count - len(statuses))):
                apns_id = str(uuid.uuid4())
                statuses[apns_id] = None
                batch[apns_id], request = wire.request_frames(
                    push_headers(server, device or secrets.token_hex(32), apns_id=apns_id, **changes), body)
                frames += request
            wire.send(*frames)
            for apns_id, stream in batch.items():
                statuses[apns_id] = wire.response(stream).status
                accepted = accepted or statuses[apns_id] == 200
    return statuses


# Pushes of every kind

#: Header fields and bodies of rejected pushes, by the reason.
REJECTIONS = [
    ("MissingTopic", {"apns_topic": None}, BODY), ("BadTopic", {"apns_topic": "with spaces"}, BODY),
    ("MissingProviderToken", {"authorization": None}, BODY),
    ("InvalidProviderToken", {"authorization": "bearer a.b.c"}, BODY),
    ("BadMessageId", {"apns_id": "no-uuid"}, BODY), ("BadPriority", {"apns_priority": "7"}, BODY),
    ("BadExpirationDate", {"apns_expiration": "tomorrow"}, BODY), ("InvalidPushType", {"apns_push_type": "toast"}, BODY),
    ("BadCollapseId", {"apns_collapse_id": "x" * 65}, BODY), ("PayloadEmpty", {}, b""),
    ("PayloadTooLarge", {}, b'{"aps":{"alert":"%s"}}' % (b"x" * 6000)),
    ("BadPath", {"path_": "/3/devices/ab"}, BODY), ("MissingDeviceToken", {"path_": "/3/device/"}, BODY),
    ("BadDeviceToken", {"path_": "/3/device/xyz"}, BODY), ("MethodNotAllowed", {"method_": "GET"}, b""),
    ("MethodNotAllowed", {"method_": "HEAD"}, b""), ("MethodNotAllowed", {"method_": "PUT"}, BODY),
]

#: Header fields and bodies of accepted pushes that are hard to store.
UNUSUAL = [
    ({}, b"no JSON"), ({}, b"\xff\xfe\x00\x01"), ({}, b'{"aps": {\n "alert": "line\\u0000s"}}\n'), ({}, b"{}"),
    ({}, '{"aps":{"alert":"\N{PARTY POPPER} für dich"},"a/b":[1,true,null,1e400]}'.encode()),
    ({"apns_collapse_id": "score"}, BODY), ({"apns_collapse_id": "score"}, BODY),
    ({"x_bytes": b"\xff\x80"}, BODY), ({"x_empty": ""}, BODY), ({"x_long": "y" * 3000}, BODY),
    ({"apns_topic": "com.acme.shop"}, b'{"aps":{"badge":12}}'), ({"apns_expiration": "0", "apns_priority": "5"}, BODY),
    ({"apns_push_type": "background", "apns_priority": "5"}, b'{"aps":{"content-available":1}}'),
    ({"apns_push_type": None}, BODY), ({"authorization": "duplicate"}, BODY), ({"x_trace": "order 66"}, BODY),
]

#: The actions of rules, each for a device of its own.
ACTIONS = [
    {"respond": {"status": 503}}, {"respond": {"status": 429, "reason": "TooManyRequests"}},
    {"respond": {"status": 503, "reason": "Teapot", "unreal": True}}, {"reset_stream": {"code": "REFUSED_STREAM"}},
    {"goaway": {}},
    {"goaway": {"code": "INTERNAL_ERROR", "debug": "out", "close_after": "0s"}}, {"close": {}}, {"reset_connection": {}},
    {"delay": {"fixed": "30ms"}},
]


def push_every_kind(server, folder):
    """Sends pushes of every kind: accepted, rejected, faulted, delayed, aborted, broadcast, and with a certificate."""
    with connect(server) as wire:
        wire.settings()
        for changes, body in UNUSUAL:
            if changes.get("authorization") == "duplicate":
                wire.push(push_headers(server, "ab" * 32, ("authorization", server.bearer)), body)
            else:
                wire.push(push_headers(server, "ab" * 32, **changes), body)
        for _, changes, body in REJECTIONS:
            wire.push(push_headers(server, "cd" * 32, **changes), body)
        wire.push(push_headers(server, "Ef" * 32), BODY)
        wire.push(push_headers(server, "ef" * 32, apns_id=str(uuid.uuid4()).upper()), BODY)
    push_to_devices(server)
    push_with_faults(server)
    push_broadcasts(server)
    push_over_http_1(server)
    pair = provider_certificate(server.certs, folder)
    with connect(server, certificate=pair) as wire:
        wire.push(push_headers(server, "12" * 32, authorization=None, apns_topic=None))
        wire.push(push_headers(server, "12" * 32, authorization=None, apns_topic="com.example.other"))


def push_to_devices(server):
    """Pushes to registered devices and magic tokens."""
    gone, offline = secrets.token_hex(32), secrets.token_hex(32)
    server.api("PUT", f"/devices/{gone}", {"state": "unregistered"})
    server.api("PUT", "/fixtures", {
        "apps": [{"bundle_id": "com.example.app", "broadcast": True}],
        "devices": [{"id": "anna", "state": "offline", "apps": [
            {"bundle_id": "com.example.app", "tokens": {"alert": offline}}]}]})
    with connect(server) as wire:
        wire.settings()
        for device in (gone, gone, offline, "feedfacefeedface41000002" + "0" * 40, "feedfacefeedface05030001" + "0" * 40,
                       "feedfacefeedface05030001" + "0" * 40):
            wire.push(push_headers(server, device))
        wire.push(push_headers(server, offline, apns_expiration="0"))


def push_with_faults(server):
    """Pushes that rules and a profile affect."""
    for number, action in enumerate(ACTIONS, 1):
        device = f"{number:02}" * 32
        server.api("POST", "/rules", {"name": f"rule-{number}", "when": {"device_token": device}, "do": action})
        with connect(server) as wire, contextlib.suppress(Closed, OSError):
            wire.push(push_headers(server, device))
    server.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 1, "streak": 1}})
    with connect(server) as wire:
        for _ in range(2):
            wire.push(push_headers(server, "77" * 32))
    server.api("DELETE", "/profile")
    # Its client leaves before the response.
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": "99" * 32}, "do": {"delay": {"fixed": "1m"}}})
    with connect(server) as wire:
        wire.settings()
        wire.open(push_headers(server, "99" * 32), BODY)
        wire.ping()
        wire.sock.unwrap().shutdown(socket.SHUT_RDWR)


def push_over_http_1(server):
    """Sends a push in plain text, if the server has a listener for it."""
    for listener in server.facts["apns_plain"]:
        connection = http.client.HTTPConnection(listener["host"], listener["port"], timeout=20)
        connection.request("POST", f"/3/device/{'13' * 32}", BODY, {
            "authorization": server.bearer, "apns-topic": "com.example.app", "apns-push-type": "alert"})
        connection.getresponse().read()
        connection.close()


def push_broadcasts(server, app="com.example.app"):
    """Creates a channel and sends a broadcast to it."""
    with connect(server) as wire:
        fields = [(":scheme", "https"), (":authority", server.authority), ("authorization", server.bearer)]
        made = wire.push([(":method", "POST"), (":path", f"/1/apps/{app}/channels"), *fields],
                         b'{"message-storage-policy":1,"push-type":"LiveActivity"}')
        channel = made.header("apns-channel-id") or "dHN0LXNyY2gtY2hubA=="
        for path in (f"/4/broadcasts/apps/{app}", "/4/broadcasts/apps/"):
            wire.push([(":method", "POST"), (":path", path), *fields, ("apns-channel-id", channel),
                       ("apns-push-type", "liveactivity"), ("apns-priority", "10"), ("apns-expiration", "0")], BODY)


def status(server):
    return server.api("GET", "/status")


def metric(server, name):
    """Returns the value of a metric without labels."""
    lines = server.request("GET", "/metrics").body.decode().splitlines()
    (line,) = (line for line in lines if line.startswith(name + " "))
    return float(line.split()[-1])


PAUSES = {
    "before the commit": "TRIGGER pause BEFORE UPDATE ON contents",
    "in the commit": "CONSTRAINT TRIGGER pause AFTER UPDATE ON contents DEFERRABLE INITIALLY DEFERRED",
}


@contextlib.contextmanager
def pausing(inbox, when, seconds=0.6):
    """Lets each transaction that writes pushes pause after it has copied them; yields a function that waits until one does."""
    inbox.execute(f"""
        CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END $$;
        CREATE {PAUSES[when]} FOR EACH ROW EXECUTE FUNCTION pause()""")
    query = "COMMIT" if when == "in the commit" else "UPDATE contents%"
    try:
        yield lambda: wait_until(lambda: inbox.postgres.rows(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE ?", query), f"it pauses {when}", 10)
    finally:
        inbox.execute("DROP FUNCTION pause() CASCADE")

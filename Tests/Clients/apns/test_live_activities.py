"""Live Activities: pushes that a device ignores although APNs accepts them, activities that pushes start, update and end, and the
streams in which a test follows them. Also pushes to passes and managed devices.
"""

import datetime
import json
import socket
import time

import pytest

from support.server import Server, stop_cleanly
from support.streams import NotificationStream
from support.wire import connect, push_headers

APP = "com.acme.ride"
START, ALERT, PASS = "5a01" * 16, "a1e7" * 16, "9a55" * 16
FIXTURES = {"devices": [
    {"id": "anna", "apps": [
        {"bundle_id": APP, "environment": "sandbox", "tokens": {"alert": ALERT, "liveactivity_start": START}},
        {"bundle_id": "pass.com.acme.card", "environment": "sandbox", "tokens": {"alert": PASS}}]},
    {"id": "bert", "apps": [{"bundle_id": APP, "environment": "sandbox", "tokens": {"alert": "be47" * 16}}]}]}


def content(event, /, age=0, **members):
    """Returns the `aps` of a valid push; None removes a member."""
    aps = {"timestamp": int(time.time()) - age, "event": event, "content-state": {"eta": "14:05"}}
    if event == "start":
        aps |= {"attributes-type": "Ride", "attributes": {"id": 7}, "alert": {"title": "Off", "body": "we go"}}
    return {name: value for name, value in (aps | members).items() if value is not None}


class Provider:
    """Sends Live Activity pushes on one connection."""

    def __init__(self, server, wire):
        self.server, self.wire = server, wire

    def push(self, token, aps, status=200, **changes):
        """Sends a push and returns its record."""
        headers = {"apns_topic": APP + ".push-type.liveactivity", "apns_push_type": "liveactivity", **changes}
        payload = aps if isinstance(aps, bytes) else json.dumps({"aps": aps}).encode()
        response = self.wire.push(push_headers(self.server, token, **headers), payload)
        assert response.status == status, response.body
        return self.server.pushes(apns_id=response.header("apns-id"))[-1]

    def delivery(self, record):
        delivery = self.server.api("GET", f"/pushes/{record['seq']}/delivery")
        return delivery["state"], delivery["shown"], delivery["reason"]

    def explanation(self, record):
        (finding,) = self.server.api("GET", f"/pushes/{record['seq']}/explain")["findings"]
        return finding["finding"], finding["explanation"]


@pytest.fixture
def ride(start):
    """A provider of a server with the fixtures."""
    server = start()
    server.api("PUT", "/fixtures", FIXTURES)
    with connect(server) as wire:
        yield Provider(server, wire)


def activities(server, device="anna"):
    return server.api("GET", f"/devices/{device}")["activities"]


# What a device ignores


@pytest.mark.parametrize(("event", "members", "words"), [
    ("update", {"timestamp": None}, "aps.timestamp is missing"),
    ("update", {"timestamp": "now"}, "aps.timestamp is not a number"),
    ("update", {"timestamp": lambda: int(time.time() * 1000)}, "aps.timestamp is a time in milliseconds"),
    ("start", {"timestamp": lambda: int(time.time() * 1000)}, "aps.timestamp is a time in milliseconds"),
    ("end", {"timestamp": lambda: int(time.time() * 1000)}, "aps.timestamp is a time in milliseconds"),
    ("update", {"timestamp": lambda: int(time.time()) + 8 * 3600 + 60}, "more than 8 hours ahead"),
    ("update", {"timestamp": lambda: int(time.time()) - 8 * 3600 - 60}, "more than 8 hours ago"),
    ("update", {"timestamp": lambda: int(time.time()) - 978_307_200}, "counts from 2001"),
    ("update", {"event": "updated"}, "aps.event is"), ("update", {"event": None}, "aps.event is missing"),
    ("update", {"content-state": None}, "aps.content-state is missing"),
    ("update", {"content-state": "x"}, "aps.content-state is not an object"),
    ("end", {"content-state": None}, "aps.content-state is missing"),
    ("start", {"attributes-type": None}, "aps.attributes-type is missing"),
    ("start", {"attributes": []}, "aps.attributes is not an object"),
    ("start", {"alert": None}, "aps.alert is missing"), ("start", {"alert": {}}, "aps.alert has neither title nor body"),
    ("update", {"stale-date": "2026-01-01"}, "aps.stale-date is not a number"),
    ("update", {"stale-date": lambda: int(time.time() * 1000)}, "aps.stale-date is a time in milliseconds"),
    ("update", {"stale-date": 300}, "is a duration, not a UNIX time"),
    ("end", {"dismissal-date": lambda: int(time.time() * 1000)}, "aps.dismissal-date is a time in milliseconds"),
    ("update", {"relevance-score": "1"}, "aps.relevance-score is not a number"),
    ("start", {"input-push-token": True}, "aps.input-push-token is not the number 1"),
    ("start", {"input-push-channel": ""}, "aps.input-push-channel is not a string"),
])
def test_a_device_ignores(ride, device, event, members, words):
    aps = content(event, **{name: value() if callable(value) else value for name, value in members.items()})
    for token in (device, START):
        record = ride.push(token, aps)
        assert record["findings"] == ["would-not-show"]
        kind, explanation = ride.explanation(record)
        assert kind == "would-not-show" and words in explanation, explanation
    assert ride.delivery(record) == ("Delivered to Device", False, explanation)
    assert activities(ride.server) == []
    assert ride.server.api("GET", "/devices/anna/notifications")["items"] == []


@pytest.mark.parametrize("aps", [
    content("start"), content("update"), content("end"), content("end", **{"dismissal-date": 1}), content("end", age=86_400),
    content("update", alert={}), content("start", alert={"title": {"loc-key": "x"}})])
def test_a_valid_push_has_no_finding(ride, device, aps):
    assert ride.push(device, aps)["findings"] == []


def test_an_update_that_is_older_than_the_last_one(ride, device):
    """The order is known for device tokens that are registered and for others."""
    token = ride.server.api("POST", "/devices/anna/start-activity", {"bundle_id": APP})["tokens"]["liveactivity"]
    for token in (token, device):
        first, second = ride.push(token, content("update")), ride.push(token, content("update", age=10))
        assert (first["findings"], second["findings"]) == ([], ["would-not-show"])
        _, explanation = ride.explanation(second)
        assert "is older than" in explanation and f"(push {first['seq']})" in explanation
        assert ride.push(token, content("update"))["findings"] == [], "the ignored one does not count"
    for _ in range(2):
        ended = ride.push(device, content("end"))
        assert ended["findings"] == []
    late = ride.push(device, content("update"))
    assert ride.explanation(late) == (
        "would-not-show", f"the Live Activity has ended, so that the device ignores the event update (push {ended['seq']})")
    assert ride.server.pushes(finding="would-not-show")[-1]["seq"] == late["seq"]


# The life of an activity


@pytest.mark.timeout(60)
def test_a_push_starts_an_activity_and_others_update_and_end_it(ride):
    server = ride.server
    with NotificationStream(server, "anna") as stream:
        started = ride.push(START, content("start"))
        assert started["findings"] == [] and ride.delivery(started) == ("Delivered to Device", True, None)
        assert [stream.next()[0] for _ in range(1)] == ["notification"]
        name, event = stream.next()
        token = event["token"]
        assert (name, event) == ("activity.started", {
            "event": "activity.started", "device": "anna", "seq": started["seq"], "bundle_id": APP, "environment": "sandbox",
            "at": event["at"], "token": token, "attributes_type": "Ride"})
        (activity,) = activities(server)
        assert activity == {
            "token": token, "bundle_id": APP, "environment": "sandbox", "attributes_type": "Ride",
            "started_at": activity["started_at"], "started_by": started["seq"], "dismissed_at": None}

        updated = ride.push(token, content("update", **{"content-state": {"eta": "14:20"}}))
        assert stream.next()[1]["seq"] == updated["seq"]
        (shown,) = server.api("GET", "/devices/anna/notifications")["items"]
        assert (shown["seq"], shown["activity"]) == (updated["seq"], token)

        rotated = server.api("POST", f"/devices/{token}/rotate-activity-token")["tokens"]["liveactivity"]
        name, event = stream.next()
        assert (name, event["token"], event["former_token"], event["seq"]) == ("activity.rotated", rotated, token, None)
        assert ride.push(token, content("update"), status=410)["verdict"]["reason"] == "ExpiredToken"
        assert ride.push(rotated, content("update"))["findings"] == []
        stream.next()

        ended = ride.push(rotated, content("end"))
        assert stream.next()[1]["seq"] == ended["seq"]
        name, event = stream.next()
        assert (name, event["token"], event["seq"]) == ("activity.ended", rotated, ended["seq"])
        assert event["dismissed_at"] == event["at"]
        assert ride.push(rotated, content("update"), status=410)["verdict"]["reason"] == "ExpiredToken"
        assert activities(server) == [] and server.api("GET", "/devices/anna/notifications")["items"] == []


def test_an_activity_stays_until_its_dismissal_date(ride):
    server = ride.server
    ride.push(START, content("start"))
    (activity,) = activities(server)
    token, date = activity["token"], int(time.time()) + 600
    ended = ride.push(token, content("end", **{"dismissal-date": date}))
    assert ended["findings"] == [] and ride.delivery(ended)[1] is True
    dismissed = datetime.datetime.fromisoformat(activities(server)[0]["dismissed_at"]).timestamp()
    assert dismissed == date
    record = ride.push(token, content("update"))
    assert ride.explanation(record)[0] == "would-not-show" and "has ended" in ride.explanation(record)[1]
    assert ride.delivery(record)[:2] == ("Delivered to Device", False)
    assert [item["seq"] for item in server.api("GET", "/devices/anna/notifications")["items"]] == [ended["seq"]]
    server.api("POST", "/clock/advance", {"by": "10m"})
    assert server.api("GET", f"/devices/{token}")["state"] == "expired"
    assert activities(server) == [] and server.api("GET", "/devices/anna/notifications")["items"] == []
    response = ride.wire.push(push_headers(
        server, token, apns_topic=APP + ".push-type.liveactivity", apns_push_type="liveactivity"), b"{}")
    assert json.loads(response.body) == {"reason": "ExpiredToken", "timestamp": date * 1000}


def test_the_two_kinds_of_token_are_mixed_up(ride):
    ride.push(START, content("start"))
    token = activities(ride.server)[0]["token"]
    for target, event, words in [
            (START, "update", "was sent to a push-to-start token"), (START, "end", "was sent to a push-to-start token"),
            (token, "start", "was sent to the token of an activity")]:
        record = ride.push(target, content(event))
        assert record["findings"] == ["would-not-show"] and words in ride.explanation(record)[1]
        assert ride.delivery(record)[:2] == ("Delivered to Device", False)
    assert len(activities(ride.server)) == 1


def test_mistakes_with_activities(ride):
    server = ride.server
    for token, status, words in [
            (START, 400, "is not that of a Live Activity"), ("ffff", 404, "is not registered"), ("x", 400, "is not a device token")]:
        response = server.request("POST", f"/api/v1/devices/{token}/rotate-activity-token", {})
        assert response.status == status and words in response.json["detail"], response.body
    token = server.api("POST", "/devices/anna/start-activity", {"bundle_id": APP})["tokens"]["liveactivity"]
    assert server.request("POST", "/api/v1/devices/bert/rotate-activity-token", {"token": token}).status == 404
    server.api("POST", "/devices/anna/end-activity", {"token": token})
    response = server.request("POST", f"/api/v1/devices/{token}/rotate-activity-token", {})
    assert response.status == 409 and "has ended" in response.json["detail"]


def test_the_same_seed_gives_the_same_activity_tokens(start):
    tokens = []
    for _ in range(2):
        server = start("--seed", "7")
        server.api("PUT", "/fixtures", FIXTURES)
        with connect(server) as wire:
            Provider(server, wire).push(START, content("start"))
        tokens.append(activities(server)[0]["token"])
    assert tokens[0] == tokens[1] and len(tokens[0]) == 160


def test_activities_survive_a_restart(binary, certs, tmp_path):
    flags = ("--store", f"sqlite:{tmp_path / 'inbox.db'}")
    first = Server(binary, certs, *flags)
    try:
        first.api("PUT", "/fixtures", FIXTURES)
        with connect(first) as wire:
            ride = Provider(first, wire)
            ride.push(START, content("start"))
            (activity,) = activities(first)
            shown = ride.push(activity["token"], content("update"))
    finally:
        stop_cleanly(first)
    second = Server(binary, certs, *flags)
    try:
        assert [(one["token"], one["attributes_type"], one["started_by"]) for one in activities(second)] == [
            (activity["token"], "Ride", activity["started_by"])]
        items = second.api("GET", "/devices/anna/notifications")["items"]
        assert [(item["seq"], item["activity"]) for item in items] == [(shown["seq"], activity["token"])]
        with connect(second) as wire:
            ride = Provider(second, wire)
            assert ride.push(activity["token"], content("update", age=60))["findings"] == ["would-not-show"]
            ride.push(activity["token"], content("end"))
            ride.push(activity["token"], content("update"), status=410)
            ride.push(START, content("start"))
        assert activities(second)[0]["token"] != activity["token"]
    finally:
        stop_cleanly(second)


# Streams of all devices


@pytest.mark.timeout(60)
def test_one_stream_for_all_devices(ride):
    server = ride.server
    with NotificationStream(server) as everything, NotificationStream(server, query="?event=activity.started&device=an*") as some, \
            NotificationStream(server, query="?push_type=alert&bundle_id=com.acme.*&environment=sandbox") as alerts:
        started = ride.push(START, content("start"))
        other = ride.push("be47" * 16, {"alert": "x"}, apns_topic=APP, apns_push_type="alert")
        ride.push("ffff" * 16, {"alert": "not registered"}, apns_topic=APP, apns_push_type="alert")
        server.api("POST", "/devices/bert/start-activity", {"bundle_id": APP})
        events = [everything.next() for _ in range(4)]
        assert [(name, event["device"], event["seq"]) for name, event in events] == [
            ("notification", "anna", started["seq"]), ("activity.started", "anna", started["seq"]),
            ("notification", "bert", other["seq"]), ("activity.started", "bert", None)]
        assert some.next() == events[1]
        assert alerts.next() == events[2]
        server.process.terminate()
        for stream in (everything, some, alerts):
            assert stream.next() == ("end", {"message": "the server stops"})


@pytest.mark.timeout(60)
def test_a_stream_of_all_devices_survives_a_reset(ride):
    with NotificationStream(ride.server, query="?device=anna") as stream:
        ride.server.api("POST", "/reset", {"devices": True})
        ride.server.api("PUT", "/fixtures", FIXTURES)
        assert ride.push(ALERT, {"alert": "x"}, apns_topic=APP, apns_push_type="alert")["seq"] == stream.next()[1]["seq"]


@pytest.mark.parametrize(("query", "words"), [
    ("devise=anna", "device"), ("event=started", "activity.started"), ("event=", "event cannot be"),
    ("environment=prod", "production"), ("push_type=alrt", "alert"), ("device=a&device=b", "2 times")])
def test_mistakes_in_the_query_of_a_stream(server, query, words):
    response = server.request("GET", f"/api/v1/devices/notifications/stream?{query}")
    assert response.status == 400 and words in json.dumps(response.json), response.body


def test_the_number_of_streams_of_all_devices_is_limited(start):
    server = start()
    for _ in range(20):
        assert server.request("HEAD", "/api/v1/devices/notifications/stream").status == 200, "it does not count"
    streams = [NotificationStream(server) for _ in range(16)]
    try:
        response = server.request("GET", "/api/v1/devices/notifications/stream")
        assert response.status == 503 and "16 requests" in response.json["detail"]
    finally:
        for stream in streams:
            stream.__exit__()
    # Streams whose clients are gone do not count.
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.create_connection((server.admin_host, server.admin_port), timeout=5) as again:
            again.sendall(b"GET /api/v1/devices/notifications/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
            if b" 200 " in again.recv(100):
                return
        time.sleep(0.1)
    pytest.fail("no stream became free")


def test_no_device_is_called_notifications(server):
    """The path of the stream of all devices would hide it."""
    response = server.request("PUT", "/api/v1/fixtures", {"devices": [{"id": "notifications"}]})
    assert response.status == 422 and "is not the id of a device" in response.body.decode()
    response = server.request("POST", "/api/v1/devices/notifications/install", {"bundle_id": APP})
    assert response.status == 400 and "is not the id of a device" in response.body.decode()
    for path in ("", "/notifications", "/notifications/stream"):
        assert server.request("GET", f"/api/v1/devices/notifications{path}").status == 404, path


@pytest.mark.timeout(120)
def test_a_slow_reader_loses_the_oldest_events(ride):
    """The server keeps 1000 events for a reader of a device, and says how many are missing."""
    server, count = ride.server, 6000
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((server.admin_host, server.admin_port))
        slow.sendall(b"GET /api/v1/devices/anna/notifications/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert b" 200 " in slow.recv(100)
        body = json.dumps({"aps": {"alert": "x" * 3900}}).encode()
        ride.wire.push(push_headers(server, ALERT, apns_topic=APP), body)
        for _ in range(count // 10):
            streams = [ride.wire.open(push_headers(server, ALERT, apns_topic=APP), body) for _ in range(10)]
            assert {ride.wire.response(stream).status for stream in streams} == {200}
        slow.settimeout(20)
        received = b""
        while b"event: gap\n" not in received or b"\n\n" not in received.split(b"event: gap\n")[1]:
            received += slow.recv(1 << 16)
    missed = json.loads(received.split(b"event: gap\ndata: ")[1].split(b"\n")[0])["missed"]
    assert 0 < missed <= count - 1000


# Passes and managed devices


@pytest.mark.parametrize("push_type", [None, "alert", "background"])
@pytest.mark.parametrize("payload", [b"{}", b'{"aps":{}}', b'{"aps":{"alert":"Your gate has changed"}}'])
def test_a_push_to_a_pass(ride, push_type, payload):
    """Wallet fetches the pass, whatever the push says, and shows no notification."""
    record = ride.push(PASS, payload, apns_topic="pass.com.acme.card", apns_push_type=push_type)
    assert record["findings"] == []
    state, shown, reason = ride.delivery(record)
    assert (state, shown) == ("Delivered to Device", False) and "Wallet" in reason and "alert" in reason
    assert ride.server.api("GET", "/devices/anna/notifications")["items"] == []


@pytest.mark.parametrize(("topic", "payload", "expected"), [
    ("com.apple.mgmt.External.1", b'{"mdm":"magic"}', []), ("com.apple.mgmt.External.1", b"{}", ["would-not-show"]),
    ("com.apple.mgmt.External.1", b'{"aps":{"alert":"x"}}', ["would-not-show"]),
    ("web.com.example", b'{"aps":{"alert":"x"}}', []), ("web.com.example", b"{}", ["would-not-show"]),
    (APP, b'{"aps":{"alert":"x"}}', ["missing-push-type"])])
def test_only_apps_need_a_push_type(ride, device, topic, payload, expected):
    assert ride.push(device, payload, apns_topic=topic, apns_push_type=None)["findings"] == expected


def test_what_pushes_without_notification_show(ride):
    silent = ride.push(ALERT, {"content-available": 1}, apns_topic=APP, apns_push_type="background", apns_priority="5")
    assert ride.delivery(silent) == ("Delivered to Device", None, None), "it is for the app"
    broken = ride.push(ALERT, {"content-available": 1}, apns_topic=APP, apns_push_type="background")
    assert ride.delivery(broken)[1] is False and "priority" in ride.delivery(broken)[2]
    ride.server.api("POST", "/devices/anna/offline")
    stored = ride.push(ALERT, {"alert": "x"}, apns_topic=APP, apns_push_type="alert")
    assert ride.delivery(stored) == ("Stored - Device Offline", None, None)
    ride.server.api("POST", "/devices/anna/online")
    assert ride.delivery(stored) == ("Delivered to Device (From Storage)", True, None)

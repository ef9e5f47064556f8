"""The incidents of Incidents.md about devices, topics, delivery and broadcast. Each test is named after its thread."""

import json
import time
import uuid

from support import drivers
from support.careful import CarefulProvider
from support.drivers import Push
from support.incidents import findings, listener
from support.naive import Naive, Purger
from support.wire import connect, push_headers

ALERT = {"aps": {"alert": "hello"}}


def served(server, **query):
    """Returns (status, reason) of each push, in the order of arrival."""
    return [(record["served"]["status"], record["served"]["reason"]) for record in server.pushes(**query)]


def test_aldero_io_faxdash_250(incident):
    """A provider sends all pushes to production, and gives up every device after the first BadDeviceToken. Another
    selects the listener by the environment of the token.
    """
    server = incident.start()
    tokens = incident.tokens("phones.yaml")
    developer, customer = tokens["developer-phone", "alert"], tokens["customer-phone", "alert"]
    sandbox, production = listener(server, 0), listener(server, 1)

    purger = Purger(production)
    purger.run([Push(developer, {**ALERT, "n": 0}), Push(customer, {**ALERT, "n": 1})])
    assert served(server, device_token=developer) == [(400, "BadDeviceToken")]
    assert (purger.delivered, purger.failed) == ([1], [0])
    assert purger.dropped == {developer, customer}, "it has lost a device to which it can push"
    assert server.record(customer)["environment"] == "production"

    reverse = Naive(sandbox)
    reverse.run([Push(customer, {**ALERT, "n": 2})])
    assert served(server, device_token=customer)[1:] == [(400, "BadDeviceToken")]

    alarmed = CarefulProvider(production)
    alarmed.run([Push(developer, {**ALERT, "n": 3})])
    assert len(alarmed.alarms) == 1 and "environment" in alarmed.alarms[0]

    server.api("POST", "/reset", {"inbox": True})
    for view, token in ((sandbox, developer), (production, customer)):
        careful = CarefulProvider(view)
        careful.run([Push(token, {**ALERT, "n": 4})])
        assert careful.delivered == [4]
    assert server.record(developer)["environment"] == "sandbox"
    assert findings(server) == set()


def test_node_apn_node_apn_479(incident, device):
    """A provider on Node's http2 with a mistyped topic learns it from its first users' pushes. Another tests the topic
    when it starts, with a push to the device token of 64 zeros.
    """
    server = incident.start()
    shown = incident.run()
    assert [line.split()[0] for line in shown.splitlines() if line[:3].isdigit()] == 4 * ["400"], shown
    assert served(server) == [(400, "BadDeviceToken")] + 3 * [(400, "TopicDisallowed")]

    def starts(topic):
        """Returns whether the provider's test of its configuration succeeds."""
        return drivers.node(server, Push(64 * "0", ALERT, topic=topic)).reason == "BadDeviceToken"

    for topic in ("com.example.ap", "<com.example.app>", "MOCKTEAM01.com.example.app"):
        reply = drivers.node(server, Push(device, ALERT, topic=topic))
        assert (reply.status, reply.reason) == (400, "TopicDisallowed"), topic
        assert not starts(topic)
    assert starts("com.example.app")
    assert drivers.node(server, Push(device, ALERT)).status == 200


def test_pr0ger_pyapns2_134(incident):
    """aioapns, used with one token for everything, cannot send a VoIP push. With the token of each push type it can."""
    server = incident.start()
    tokens = incident.tokens("phone.yaml")
    alert, voip = tokens["phone", "alert"], tokens["phone", "voip"]

    def push(token, kind):
        topic = "com.example.app" if kind == "alert" else "com.example.app.voip"
        apns_id = f"0a1b2c3d-0000-4000-8000-{len(server.pushes()):012}"
        reply = drivers.ALL["aioapns"](server, Push(token, ALERT, topic=topic, push_type=kind, apns_id=apns_id))
        return int(reply.status), reply.reason

    assert push(alert, "alert") == (200, None)
    assert push(alert, "voip") == (400, "DeviceTokenNotForTopic")
    assert push(voip, "voip") == (200, None)


def test_parse_community_parse_server_push_adapter_14(incident, device):
    """Expirations in milliseconds, microseconds and nanoseconds are kept, and are findings. One in seconds is none."""
    server = incident.start()
    shown = incident.run()
    assert "expiration-in-milliseconds" in shown and "in milliseconds, which APNs takes for seconds" in shown, shown
    (record,) = server.pushes()
    now = time.time()
    assert 0 <= now - int(record["apns"]["expiration"]) / 1000 < 60, record["apns"]
    with connect(server) as wire:
        wire.settings()
        expected = {}
        for number, expiration in enumerate((int(now * 1e6), int(now * 1e9), 10 ** 25, int(now + 3600))):
            token = f"{number + 1:064x}"
            assert wire.push(push_headers(server, token, apns_expiration=str(expiration))).status == 200
            expected[token] = str(expiration)
        assert wire.push(push_headers(server, device, apns_expiration=f"{now + 60:.3f}")).status == 400
    records = {token: server.record(token) for token in expected}
    kept = [record["apns"]["expiration"] for record in records.values()]
    assert kept[:3] == list(expected.values())[:3] and kept[3].startswith("20"), kept
    assert [record["findings"] for record in records.values()] == 2 * [["expiration-in-milliseconds"]] + [[], []]


def test_element_hq_sygnal_301(incident):
    """A provider decodes a token in hexadecimal as base64. Another sends it as it is."""
    server = incident.start()
    token = incident.tokens("one-phone.yaml")["phone", "alert"]
    shown = incident.run()
    assert "probable-mistake" in shown and "was decoded as base64, although it is hexadecimal" in shown, shown
    server.api("POST", "/reset", {"inbox": True})
    careful = CarefulProvider(server)
    careful.run([Push(token, {**ALERT, "n": 0})])
    assert careful.delivered == [0]
    assert findings(server) == set()


def test_grafana_oncall_1646(incident, device):
    """Members of two payloads are in a wrong place, or have a wrong type. Those of another are right."""
    server = incident.start()
    incident.run()
    assert [record["findings"] for record in server.pushes()] == 2 * [["probable-mistake"]]
    found = server.api("GET", "/findings")["items"][0]["records"]
    assert {record["explanation"] for record in found} == {
        '"interruption-level" in the payload has no effect: write aps.interruption-level',
        "critical in aps.sound is true: write the number 1",
    }
    server.api("POST", "/reset", {"inbox": True})
    right = {"aps": {"alert": "Down", "interruption-level": "critical", "sound": {"name": "x", "critical": 1}}, "n": 0}
    Naive(server).run([Push(device, right)])
    assert findings(server) == set()


def test_home_assistant_mobile_apps_fcm_push_337(incident):
    """A provider sends a push to the other environment after BadDeviceToken, which is no mistake. Another sends it to the same
    one again.
    """
    server = incident.start()
    token = incident.tokens("tester.yaml")["tester-phone", "alert"]
    # One connection each: more of them would be a finding of their own.
    to_sandbox, to_production = Naive(listener(server, 0)), Naive(listener(server, 1))
    for pushes in ([Push(token, {**ALERT, "n": 1})], [Push(token, {**ALERT, "n": 2}, apns_id=str(uuid.uuid4()))]):
        to_production.run(pushes)
        to_sandbox.run(pushes)
    assert served(server) == 2 * [(400, "BadDeviceToken"), (200, None)]
    assert [record["environment"] for record in server.pushes()] == 2 * ["production", "sandbox"]
    assert findings(server) == set()

    repeated = Push(token, {**ALERT, "n": 3}, apns_id=str(uuid.uuid4()))
    for _ in range(2):
        to_production.run([repeated])
    assert findings(server) == {"retried-permanent"}


def test_edamov_pushok_148(incident):
    """Passes accept any push type, and `{}`. Nothing is shown on the device, and nothing is a finding."""
    server = incident.start()
    shown = incident.run()
    assert shown.count("pass.com.example.coupon") == 2, shown
    token = "ce52" * 16
    server.api("PUT", "/fixtures", {"devices": [
        {"id": "phone", "apps": [{"bundle_id": "pass.com.example.coupon", "tokens": {"alert": token}}]}]})
    with connect(server) as wire:
        for kind in (None, "alert", "background", "voip"):
            for body in (b"{}", b'{"aps":{"alert":"changed"}}'):
                changes = {"apns_topic": "pass.com.example.coupon", "apns_push_type": kind}
                assert wire.push(push_headers(server, token, **changes), body).status == 200, kind
    assert findings(server) == set()
    assert server.api("GET", "/devices/phone/notifications")["items"] == []
    delivery = server.api("GET", f"/pushes/{server.pushes(device_token=token)[1]['seq']}/delivery")
    assert delivery["shown"] is False and "Wallet" in delivery["reason"], delivery


def test_home_assistant_mobile_apps_fcm_push_331(incident):
    """A provider sends three messages to a phone that is offline, and its user reads only one. Another sends them
    with one collapse id, so that the last one covers the others.
    """
    server = incident.start()
    token = incident.tokens("phone.yaml")["phone", "alert"]
    incident.run()
    naive = Naive(server)
    naive.run([Push(token, {"aps": {"alert": f"message {n}"}, "n": n}) for n in range(3)])
    assert naive.delivered == [0, 1, 2], "APNs accepts them all"
    assert server.pushes()[-1]["delivery"] == "Stored - Device Offline"

    shown = incident.run()
    assert "message 2" in shown and "message 0" not in shown and "message 1" not in shown, shown
    first, second, last = server.pushes()
    assert last["delivery"] == "Delivered to Device (From Storage)"
    for record in (first, second):
        assert record["delivery"] == "Stored - Device Offline"
        assert "overwritten-in-storage" in record["findings"]
    history = [event["state"] for event in server.api("GET", f"/pushes/{last['seq']}/delivery")["events"]]
    assert history == ["Received by APNs", "Stored - Device Offline", "Delivered to Device (From Storage)"]

    server.api("POST", "/devices/phone/offline")
    careful = CarefulProvider(server)
    careful.run([
        Push(token, {"aps": {"alert": f"{n} new messages"}, "n": n}, collapse_id="messages") for n in range(3, 6)])
    assert careful.delivered == [3, 4, 5]
    shown = incident.repeat()
    assert "5 new messages" in shown and "4 new messages" not in shown, shown


def activity_push(token, event, timestamp, **members):
    """Returns a Live Activity push."""
    aps = {"timestamp": timestamp, "event": event, "content-state": {"eta": "14:05"}, **members}
    return Push(token, {"aps": aps, "n": 0}, topic="com.example.app.push-type.liveactivity", push_type="liveactivity")


def test_kylebrowning_apnswift_232(incident, device):
    """Dates in milliseconds and since 2001, and a start without text: 200 and ignored. A push with dates in seconds is shown."""
    server = incident.start()
    shown = incident.run()
    assert "aps.alert has neither title nor body" in shown, shown
    found = server.api("GET", "/findings")["items"][0]["records"]
    assert any("aps.timestamp is a time in milliseconds" in one["explanation"] for one in found), found
    assert [record["findings"] for record in server.pushes()] == [["would-not-show"]] * 2
    now = int(time.time())
    naive = Naive(server)
    naive.run([activity_push(device, "update", now - 978_307_200)])
    assert naive.delivered == [0], "APNs accepts it"
    assert server.record(device)["findings"] == ["would-not-show"]
    careful = CarefulProvider(server)
    careful.run([activity_push(f"{device[:-2]}00", "update", now)])
    assert careful.delivered == [0] and server.record(f"{device[:-2]}00")["findings"] == []


def test_kisimediade_capacitor_live_activity_13(incident):
    """A provider that knows only the push-to-start token sends updates to it. Another uses the token that the app reports."""
    server = incident.start()
    start = incident.tokens("rider.yaml")["rider", "liveactivity_start"]
    now = int(time.time())
    texts = {"attributes-type": "Ride", "attributes": {"id": 7}, "alert": {"title": "Off", "body": "we go"}}
    naive = Naive(server)
    naive.run([activity_push(start, "start", now, **texts)])
    naive.run([activity_push(start, "update", now)])
    shown = incident.run()
    assert "attributes_type: Ride" in shown and "was sent to a push-to-start token" in shown, shown
    (activity,) = server.api("GET", "/devices/rider")["activities"]

    careful = CarefulProvider(server)
    careful.run([activity_push(activity["token"], "update", now)])
    assert server.record(activity["token"])["findings"] == []
    rotated = server.api("POST", f"/devices/{activity['token']}/rotate-activity-token")["tokens"]["liveactivity"]
    careful.run([activity_push(rotated, "end", now)])
    assert server.record(rotated)["findings"] == [] and server.api("GET", "/devices/rider")["activities"] == []


def test_istornz_flutter_live_activities_155(incident):
    """A provider sends one push for each user. Another reaches all of them with one broadcast, which also works from
    a client written by hand; without `apns-expiration` it is rejected.
    """
    server = incident.start()
    tokens = incident.tokens("match.yaml")
    update = {"aps": {"timestamp": int(time.time()), "event": "update", "content-state": {"score": "1:1"}}}
    naive = Naive(server)
    naive.run([
        Push(token, {**update, "n": n}, topic="com.example.app.push-type.liveactivity", push_type="liveactivity")
        for n, token in enumerate(tokens.values())])
    assert len(naive.delivered) == len(tokens) == 2

    answer = incident.run()
    assert "HTTP/2 200" in answer and "apns-request-id: " in answer, answer
    (record,) = server.pushes(kind="broadcast")
    assert (record["kind"], record["accepted"]) == ("broadcast", True)
    assert len(server.pushes()) == 2, "a broadcast is one request, and not listed among the pushes"
    for device in ("anna", "ben"):
        assert '"2:1"' in json.dumps(server.api("GET", f"/devices/{device}/notifications"))

    with connect(server) as wire:
        response = wire.push(
            push_headers(
                server, "", ("apns-channel-id", "bWF0Y2gtMjAyNi0xMS0yNQ=="), path_="/4/broadcasts/apps/com.example.app",
                apns_topic=None, apns_push_type="liveactivity"),
            json.dumps(update).encode())
    assert (response.status, response.body) == (400, b'{"reason":"BadExpirationDate"}')

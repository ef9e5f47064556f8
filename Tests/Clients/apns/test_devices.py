"""Registered devices: which pushes they accept, what becomes of accepted pushes, what devices show and receive."""

import datetime
import json
import time
import uuid

import pytest

from support.streams import NotificationStream
from support.tokens import foreign_key
from support.wire import connect, push_headers

APP = "com.acme.app"
ALERT, VOIP, OTHER, PRODUCTION, BERT = (f"{number:064x}" for number in range(0xA1, 0xA6))
FIXTURES = {
    "devices": [
        {"id": "anna", "apps": [
            {"bundle_id": APP, "environment": "sandbox", "tokens": {"alert": ALERT, "voip": VOIP}},
            {"bundle_id": "com.other", "environment": "sandbox", "tokens": {"alert": OTHER}}]},
        {"id": "bert", "apps": [
            {"bundle_id": APP, "environment": "production", "tokens": {"alert": PRODUCTION}},
            {"bundle_id": APP, "environment": "sandbox", "tokens": {"alert": BERT}}]},
    ],
}
NOON = "2030-01-01T12:00:00.000Z"
NOON_SECONDS = 1893499200
ZEROS = "0" * 64


@pytest.fixture
def serve(start, tmp_path):
    """Starts a server with `FIXTURES` and further flags; `settings` are those of `apns:` in the configuration file."""
    def starter(*flags, settings=None, **options):
        fixtures = tmp_path / "fixtures.json"
        fixtures.write_text(json.dumps(FIXTURES))
        if settings:
            config = tmp_path / "config.yaml"
            config.write_text(json.dumps({"apns": settings}))
            flags += ("--config", config)
        return start("--fixtures", fixtures, *flags, **options)
    return starter


BODY = b'{"aps":{"alert":"x"}}'
ACTIVITY = {"topic": APP + ".push-type.liveactivity", "apns_push_type": "liveactivity"}
START = b'{"aps":{"event":"start","timestamp":%d,"content-state":{},"attributes-type":"Ride","attributes":{},"alert":{"title":"x"}}}' \
    % NOON_SECONDS


class Provider:
    """Pushes on one connection."""

    def __init__(self, server, wire):
        self.server, self.wire = server, wire
        self.issued, self.bearer = 0, None

    def authorization(self):
        """Returns a provider token that is valid by the server's clock, the same for 50 minutes."""
        now = datetime.datetime.fromisoformat(self.server.api("GET", "/clock")["now"]).timestamp()
        if not 0 <= now - self.issued < 3000:
            self.issued, self.bearer = int(now), "bearer " + self.server.token(issued_at=int(now))
        return self.bearer

    def push(self, token=ALERT, topic=APP, body=BODY, **changes):
        """Sends a push and returns the response, with its JSON as `answer`."""
        headers = push_headers(
            self.server, token, **{"apns_topic": topic, "authorization": self.authorization(), **changes})
        response = self.wire.push(headers, body)
        response.answer = json.loads(response.body) if response.body else {}
        return response

    def accepted(self, *args, **changes):
        """Sends a push that is accepted; returns its `seq`."""
        response = self.push(*args, **changes)
        assert response.status == 200, response.answer
        return self.server.pushes(apns_id=response.header("apns-id"))[-1]["seq"]

    def rejected(self, *args, **changes):
        response = self.push(*args, **changes)
        return response.status, response.answer["reason"]


@pytest.fixture
def anna(serve):
    """A provider of a server with the fixtures, whose clock is frozen at noon."""
    server = serve()
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(server) as wire:
        yield Provider(server, wire)


def states(server, seq):
    """Returns the delivery log of a push without times."""
    return [event["state"] for event in server.api("GET", f"/pushes/{seq}/delivery")["events"]]


def act(server, device, action, **body):
    return server.api("POST", f"/devices/{device}/{action}", body)


def findings(server, seq):
    return server.api("GET", f"/pushes/{seq}")["findings"]


# Which pushes are accepted


def test_a_token_is_bound_to_its_app(anna):
    assert anna.push().status == 200
    assert anna.rejected(topic="com.other") == (400, "DeviceTokenNotForTopic")
    assert anna.push(OTHER, "com.other").status == 200
    assert anna.push(VOIP, APP + ".voip", apns_push_type="voip").status == 200
    assert anna.rejected(VOIP) == (400, "TopicDisallowed")
    assert anna.rejected(topic=APP + ".voip", apns_push_type="voip") == (400, "DeviceTokenNotForTopic")


def test_a_token_is_bound_to_its_environment(serve):
    server = serve(apns=("127.0.0.1:0=sandbox", "127.0.0.1:0=production"))
    for number, (own, other) in enumerate([(BERT, PRODUCTION), (PRODUCTION, BERT)]):
        server.port = server.listeners[number][1]
        with connect(server) as wire:
            provider = Provider(server, wire)
            assert provider.push(own).status == 200
            assert provider.rejected(other) == (400, "BadDeviceToken")


@pytest.mark.parametrize(("rules", "status"), [("apple", 400), ("strict", 400), ("lenient", 200)])
def test_64_zeros_are_a_probe_of_the_credential(serve, rules, status):
    server = serve("--rules", rules)
    with connect(server) as wire:
        response = wire.push(push_headers(server, ZEROS))
        assert response.status == status
        if status == 400:
            assert b"BadDeviceToken" in response.body
        bad = "bearer " + server.token(key=foreign_key())
        assert wire.push(push_headers(server, ZEROS, authorization=bad)).status == 403
    server.api("PUT", f"/devices/{ZEROS}", {})
    with connect(server) as wire:
        assert wire.push(push_headers(server, ZEROS)).status == 200, "unless it is registered"


def test_only_known_devices(serve, device):
    server = serve("--devices", "known")
    with connect(server) as wire:
        provider = Provider(server, wire)
        assert provider.push().status == 200
        assert provider.rejected(device) == (400, "BadDeviceToken")
        server.api("PUT", f"/devices/{device}", {})
        assert provider.push(device).status == 200
    explanation = server.api("GET", "/pushes", device_token=device)["items"][0]
    assert explanation["outcome"] == "rejected"


# What becomes of an accepted push


def test_an_online_device_gets_it(anna):
    seq = anna.accepted()
    assert states(anna.server, seq) == ["Received by APNs", "Delivered to Device"]
    assert anna.server.api("GET", f"/pushes/{seq}")["delivery"] == "Delivered to Device"


def test_a_token_that_is_not_registered_has_no_delivery(anna, device):
    seq = anna.accepted(device)
    delivery = anna.server.api("GET", f"/pushes/{seq}/delivery")
    assert (delivery["device"], delivery["state"], delivery["events"]) == (None, None, [])
    assert "not registered" in delivery["message"]


def test_one_push_for_each_app_is_stored(anna):
    act(anna.server, "anna", "offline")
    first, second, other = anna.accepted(), anna.accepted(), anna.accepted(OTHER, "com.other")
    stored = ["Received by APNs", "Stored - Device Offline"]
    assert [states(anna.server, seq) for seq in (first, second, other)] == [stored] * 3
    assert "overwritten-in-storage" in findings(anna.server, first)
    assert anna.server.api("GET", "/devices/anna/notifications")["stored"] == [second, other]
    assert act(anna.server, "anna", "online")["stored"] == 0
    delivered = [*stored, "Delivered to Device (From Storage)"]
    assert [states(anna.server, seq) for seq in (first, second, other)] == [stored, delivered, delivered]
    assert anna.server.pushes(delivery="delivered*storage*")[0]["seq"] == second
    shown = anna.server.api("GET", "/devices/anna/notifications")["items"]
    assert {item["seq"] for item in shown} == {second, other}


@pytest.mark.parametrize(("expiration", "advance", "state"), [
    ("0", None, "Discarded - Expired"), ("300", None, "Discarded - Expired"),
    (str(NOON_SECONDS - 1), None, "Discarded - Expired"), (str(NOON_SECONDS + 60), "1m", "Discarded - Expired"),
    (str(NOON_SECONDS + 60), "59s", "Delivered to Device (From Storage)"),
    (None, "719h", "Delivered to Device (From Storage)"), (None, "720h", "Discarded - Expired"),
    (str(NOON_SECONDS + 90 * 86400), "720h", "Discarded - Expired"),
])
def test_a_stored_push_expires_by_the_clock(anna, expiration, advance, state):
    act(anna.server, "anna", "offline")
    seq = anna.accepted(apns_expiration=expiration)
    if advance:
        assert states(anna.server, seq)[-1] == "Stored - Device Offline"
        anna.server.api("POST", "/clock/advance", {"by": advance})
        act(anna.server, "anna", "online")
    assert states(anna.server, seq)[-1] == state
    act(anna.server, "anna", "online")
    assert states(anna.server, seq)[-1] == state


def test_restricted_power_holds_what_is_not_urgent(anna):
    act(anna.server, "anna", "restrict-power")
    assert states(anna.server, anna.accepted())[-1] == "Delivered to Device"
    held = anna.accepted(apns_priority="5")
    assert states(anna.server, held)[-1] == "Stored - Power Considerations"
    act(anna.server, "anna", "online")
    assert states(anna.server, held)[-1] == "Delivered to Device (From Storage)"


def test_disabled_notifications_are_discarded_for_ever(anna):
    act(anna.server, "anna", "disable", bundle_id=APP)
    for _ in range(3):
        assert states(anna.server, anna.accepted())[-1] == "Discarded - Disabled"
        anna.server.api("POST", "/clock/advance", {"by": "240h"})
    act(anna.server, "anna", "enable", bundle_id=APP)
    assert states(anna.server, anna.accepted())[-1] == "Delivered to Device"


def test_disabling_discards_what_is_stored(anna):
    act(anna.server, "anna", "offline")
    seq = anna.accepted()
    act(anna.server, "anna", "disable", bundle_id=APP)
    act(anna.server, "anna", "online")
    assert states(anna.server, seq)[-1] == "Discarded - Disabled (From Storage)"


def test_a_removed_app_is_noticed_with_the_next_push(anna):
    act(anna.server, "anna", "uninstall", bundle_id=APP)
    anna.server.api("POST", "/clock/advance", {"by": "1h"})
    assert states(anna.server, anna.accepted())[-1] == "Discarded - Token Unregistered"
    response = anna.push()
    assert (response.status, response.answer["reason"]) == (410, "Unregistered")
    assert response.answer["timestamp"] == (NOON_SECONDS + 3600) * 1000, "when APNs learnt it, not the removal"
    assert anna.push(OTHER, "com.other").status == 200, "the other app stays"


def test_the_410_is_late_on_request(serve):
    server = serve(settings={"unregistered_delay": "10m"})
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(server) as wire:
        provider = Provider(server, wire)
        act(server, "anna", "uninstall", bundle_id=APP)
        provider.accepted()
        server.api("POST", "/clock/advance", {"by": "9m59s"})
        assert states(server, provider.accepted())[-1] == "Discarded - Token Unregistered"
        server.api("POST", "/clock/advance", {"by": "1s"})
        assert provider.rejected() == (410, "Unregistered")


def test_a_reinstalled_app_has_new_tokens(anna):
    first = act(anna.server, "anna", "reinstall", bundle_id=APP)["tokens"]
    assert set(first) == {"alert", "voip"} and first["alert"] not in (ALERT, VOIP)
    assert states(anna.server, anna.accepted(first["alert"]))[-1] == "Delivered to Device"
    anna.accepted(ALERT)
    assert anna.rejected(ALERT) == (410, "Unregistered")
    act(anna.server, "anna", "uninstall", bundle_id=APP)
    second = act(anna.server, "anna", "install", bundle_id=APP)["tokens"]
    assert second["alert"] != first["alert"]
    assert anna.rejected(ALERT) == (410, "Unregistered"), "the old one stays dead"


def test_the_same_seed_gives_the_same_tokens(serve):
    tokens = [act(serve("--seed", "7"), "carl", "install", bundle_id=APP)["tokens"] for _ in range(2)]
    assert tokens[0] == tokens[1]
    assert act(serve("--seed", "8"), "carl", "install", bundle_id=APP)["tokens"] != tokens[0]


def test_the_token_of_a_live_activity_ends_with_it(anna):
    (kind, token), = act(anna.server, "anna", "start-activity", bundle_id=APP)["tokens"].items()
    assert kind == "liveactivity" and len(token) == 160
    activity = {"topic": APP + ".push-type.liveactivity", "apns_push_type": "liveactivity"}
    body = b'{"aps":{"event":"update","content-state":{},"timestamp":%d}}' % NOON_SECONDS
    seq = anna.accepted(token, body=body, **activity)
    shown = anna.server.api("GET", "/devices/anna/notifications")["items"]
    assert [item["seq"] for item in shown] == [seq]
    anna.server.api("POST", "/clock/advance", {"by": "5m"})
    assert anna.server.api("POST", f"/devices/{token}/end-activity")["state"] == "expired"
    response = anna.push(token, body=body, **activity)
    assert (response.status, response.answer) == (
        410, {"reason": "ExpiredToken", "timestamp": (NOON_SECONDS + 300) * 1000})


def test_a_burst_overwrites_what_is_not_acknowledged(serve):
    server = serve(settings={"online_queue": 1})
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(server) as wire:
        provider = Provider(server, wire)
        burst = [provider.accepted() for _ in range(3)]
    assert [states(server, seq)[-1] for seq in burst] == ["Received by APNs"] * 3
    server.api("POST", "/clock/advance", {"by": "1s"})
    assert [states(server, seq)[-1] for seq in burst] == ["Received by APNs"] * 2 + ["Delivered to Device"]
    assert ["overwritten-before-ack" in findings(server, seq) for seq in burst] == [True, True, False]


@pytest.mark.parametrize(("setting", "kind", "body"), [
    ("push_to_start_budget", "liveactivity_start", START),
    ("live_activity_budget", "liveactivity", b'{"aps":{"event":"update","timestamp":1}}'),
])
def test_budgets_of_live_activities(serve, setting, kind, body):
    server = serve(settings={setting: "10/1h"})
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    changes = ACTIVITY
    if kind == "liveactivity":
        token = act(server, "anna", "start-activity", bundle_id=APP)["tokens"]["liveactivity"]
    else:
        token = act(server, "carl", "install", bundle_id=APP, push_types=kind)["tokens"][kind]
    with connect(server) as wire:
        provider = Provider(server, wire)
        seqs = [provider.accepted(token, body=body, **changes) for _ in range(11)]
        assert ["background-budget" in findings(server, seq) for seq in seqs] == [False] * 10 + [True]
        server.api("POST", "/clock/advance", {"by": "1h"})
        assert "background-budget" not in findings(server, provider.accepted(token, body=body, **changes))


# Background pushes


SILENT = {"body": b'{"aps":{"content-available":1}}', "apns_push_type": "background", "apns_priority": "5"}
HELD, RELEASED = "Stored - Power Considerations", "Delivered to Device (From Storage)"


def test_over_the_budget_the_newest_background_push_is_held(serve):
    server = serve(settings={"background_budget": "3/1h"})
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(server) as wire, NotificationStream(server, "anna") as stream:
        provider = Provider(server, wire)
        seqs = [provider.accepted(**SILENT) for _ in range(5)]
        assert [states(server, seq)[-1] for seq in seqs] == ["Delivered to Device"] * 3 + [HELD] * 2
        assert ["background-budget" in findings(server, seq) for seq in seqs] == [False] * 3 + [True] * 2
        assert "overwritten-in-storage" in findings(server, seqs[3])
        assert server.api("GET", "/devices/anna/notifications")["stored"] == seqs[4:]
        assert server.pushes(delivery="stored*")[-1]["seq"] == seqs[4]
        server.api("POST", "/clock/advance", {"by": "1h"})
        assert [states(server, seq)[-1] for seq in seqs[3:]] == [HELD, RELEASED]
        assert [stream.next()[1]["seq"] for _ in range(4)] == [*seqs[:3], seqs[4]]
        # The one that was held counts for the next hour.
        assert [states(server, provider.accepted(**SILENT))[-1] for _ in range(3)] == ["Delivered to Device"] * 2 + [HELD]
        act(server, "anna", "launch", bundle_id=APP)
        assert server.api("GET", "/devices/anna/notifications")["stored"] == []


def test_a_force_quit_app_gets_the_newest_background_push_when_it_is_launched(anna):
    server = anna.server
    assert act(server, "anna", "force-quit", bundle_id=APP)["apps"][0]["state"] == "force_quit"
    seqs = [anna.accepted(**SILENT) for _ in range(3)]
    assert [states(server, seq)[-1] for seq in seqs] == [HELD] * 3
    assert all("background-budget" not in findings(server, seq) for seq in seqs), "no mistake of the provider"
    assert states(server, anna.accepted())[-1] == "Delivered to Device", "alerts are shown"
    server.api("POST", "/clock/advance", {"by": "120h"})
    assert states(server, seqs[-1])[-1] == HELD
    saved = server.request("GET", "/api/v1/fixtures").body
    assert act(server, "anna", "launch", bundle_id=APP)["apps"][0]["state"] == "enabled"
    assert [states(server, seq)[-1] for seq in seqs] == [HELD] * 2 + [RELEASED]
    assert states(server, anna.accepted(**SILENT))[-1] == "Delivered to Device"
    assert server.request("PUT", "/api/v1/fixtures", json.loads(saved)).status == 200
    assert server.api("GET", "/devices/anna")["apps"][0]["state"] == "force_quit"


def test_force_quit_drops_what_is_held(serve):
    server = serve(settings={"background_budget": "1/1h"})
    with connect(server) as wire:
        provider = Provider(server, wire)
        held = [provider.accepted(**SILENT) for _ in range(2)][1]
        act(server, "anna", "force-quit", bundle_id=APP)
        act(server, "anna", "launch", bundle_id=APP)
        server.api("POST", "/clock/advance", {"by": "2h"})
        assert states(server, held) == ["Received by APNs", HELD]
        act(server, "anna", "uninstall", bundle_id=APP)
        refused = server.request("POST", "/api/v1/devices/anna/launch", {"bundle_id": APP})
        assert refused.status == 409 and "was removed" in refused.json["detail"]


def test_background_pushes_do_not_need_the_permission(anna):
    server = anna.server
    act(server, "anna", "disable", bundle_id=APP)
    assert states(server, anna.accepted(**SILENT))[-1] == "Delivered to Device"
    assert states(server, anna.accepted(VOIP, APP + ".voip", apns_push_type="voip"))[-1] == "Delivered to Device"
    act(server, "anna", "offline")
    silent, alert = anna.accepted(**SILENT), anna.accepted()
    assert states(server, alert)[-1] == "Discarded - Disabled"
    act(server, "anna", "online")
    assert states(server, silent)[-1] == RELEASED


# What a device shows


def test_a_device_keeps_the_newest_64(anna):
    seqs = [anna.accepted(body=b'{"aps":{"alert":"%d"}}' % number) for number in range(70)]
    shown = anna.server.api("GET", "/devices/anna/notifications")["items"]
    assert [item["seq"] for item in shown] == seqs[-64:]
    assert anna.server.api("GET", "/devices/anna")["shown"] == 64
    seqs.append(anna.accepted())
    shown = anna.server.api("GET", "/devices/anna/notifications")["items"]
    assert [item["seq"] for item in shown] == seqs[-64:]


def test_a_newer_push_with_the_same_collapse_id_replaces_the_shown_one(anna):
    alerts = [b'{"aps":{"alert":"%d","badge":%d}}' % (number, number) for number in range(3)]
    first = anna.accepted(body=alerts[0], apns_collapse_id="score")
    second = anna.accepted(body=alerts[1])
    third = anna.accepted(body=alerts[2], apns_collapse_id="score")
    anna.accepted(body=b'{"aps":{"badge":9}}')
    anna.accepted(body=b'{"aps":{"content-available":1}}', apns_push_type="background", apns_priority="5")
    shown = anna.server.api("GET", "/devices/anna/notifications")
    assert [item["seq"] for item in shown["items"]] == [second, third] and first not in shown["items"]
    assert shown["items"][1] == {
        "seq": third, "bundle_id": APP, "environment": "sandbox", "activity": None, "apns_id": shown["items"][1]["apns_id"],
        "push_type": "alert", "collapse_id": "score", "payload": {"aps": {"alert": "2", "badge": 2}}}
    assert shown["badges"] == {APP: 9}
    anna.server.api("DELETE", f"/pushes?apns_id={shown['items'][0]['apns_id']}")
    assert [item["seq"] for item in anna.server.api("GET", "/devices/anna/notifications")["items"]] == [third]


@pytest.mark.timeout(60)
def test_a_push_reaches_a_listener_of_its_device(anna):
    server = anna.server
    with NotificationStream(server, "anna") as stream:
        anna.accepted(BERT)
        body = b'{"aps":{"alert":"Hello"},"order":7}'
        seq = anna.accepted(body=body, apns_collapse_id="c")
        name, data = stream.next()
        assert name == "notification"
        assert data == {
            "event": "notification", "device": "anna", "seq": seq, "bundle_id": APP, "environment": "sandbox",
            "state": "Delivered to Device", "at": NOON,
            "apns_id": data["apns_id"], "push_type": "alert", "collapse_id": "c",
            "payload": {"Simulator Target Bundle": APP, **json.loads(body)}}
        assert server.request("GET", f"/api/v1/pushes/{seq}/apns").json == data["payload"]
        act(server, "anna", "offline")
        stored = anna.accepted()
        act(server, "anna", "online")
        assert stream.next()[1]["seq"] == stored
        background = anna.accepted(
            body=b'{"aps":{"content-available":1}}', apns_push_type="background", apns_priority="5")
        assert stream.next()[1]["seq"] == background, "what is not shown is received as well"


@pytest.mark.timeout(60)
def test_a_stream_survives_a_reset_and_ends_with_the_server(serve):
    server = serve()
    with NotificationStream(server, "anna") as stream:
        server.api("POST", "/reset")
        with connect(server) as wire:
            Provider(server, wire).accepted()
        assert stream.next()[0] == "notification"
        server.process.terminate()
        assert stream.next() == ("end", {"message": "the server stops"})
        assert server.wait() == 0


# The delivery log by id


def test_the_delivery_of_a_push_is_found_by_its_ids(anna):
    first, second = anna.push(), anna.push(OTHER, "com.other", apns_id=str(uuid.uuid4()))
    for response, token in ((first, ALERT), (second, OTHER)):
        for name in ("apns-unique-id", "apns-id"):
            query = {name.replace("-", "_"): response.header(name)}
            (delivery,) = anna.server.api("GET", "/deliveries", **query)["items"]
            assert delivery["apns_unique_id"] == response.header("apns-unique-id")
            assert delivery["device"] == "anna" and delivery["state"] == "Delivered to Device"
            assert anna.server.pushes(device_token=token)[-1]["seq"] == delivery["seq"]
    assert anna.server.api("GET", "/deliveries", apns_unique_id=str(uuid.uuid4()))["items"] == []


@pytest.mark.parametrize(("by", "is_kept"), [("167h59m", True), ("168h", False), ("720h", False)])
def test_the_log_is_kept_for_seven_days(anna, by, is_kept):
    response = anna.push()
    seq = anna.server.pushes(apns_id=response.header("apns-id"))[-1]["seq"]
    anna.server.api("POST", "/clock/advance", {"by": by})
    (delivery,) = anna.server.api("GET", "/deliveries", apns_unique_id=response.header("apns-unique-id"))["items"]
    assert delivery == anna.server.api("GET", f"/pushes/{seq}/delivery")
    assert delivery["state"] == "Delivered to Device", "the record stays"
    assert len(delivery["events"]) == (2 if is_kept else 0)
    assert ("7 days" in (delivery["message"] or "")) != is_kept


def test_the_log_is_kept_for_seven_days_after_its_last_entry(anna):
    act(anna.server, "anna", "offline")
    seq = anna.accepted()
    anna.server.api("POST", "/clock/advance", {"by": "719h"})
    act(anna.server, "anna", "online")
    assert states(anna.server, seq) == ["Received by APNs", "Stored - Device Offline", RELEASED]
    anna.server.api("POST", "/clock/advance", {"by": "168h"})
    assert states(anna.server, seq) == []


# The registry


def test_a_list_of_many_tokens_is_read_page_by_page(start, tmp_path):
    path = tmp_path / "many.json"
    path.write_text(json.dumps({"devices": [
        {"id": f"d-{number}", "apps": [{"bundle_id": APP, "tokens": {"alert": f"{number:08x}"}}]}
        for number in range(2500)]}))
    server = start("--fixtures", path)
    found, after = [], {}
    while True:
        page = server.api("GET", "/devices", **after)
        assert page["total"] == 2500
        found += [(item["device"], item["token"]) for item in page["items"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert found == [(f"d-{number}", f"{number:08x}") for number in range(2500)]
    assert server.api("GET", "/devices", limit=7)["next"] == "7"


def test_a_reset_restores_the_fixtures(anna):
    server = anna.server
    before = server.request("GET", "/api/v1/fixtures").body
    act(server, "anna", "offline")
    act(server, "bert", "uninstall", bundle_id=APP, environment="sandbox")
    act(server, "carl", "install", bundle_id=APP)
    server.api("DELETE", "/devices/bert")
    stored = anna.accepted()
    assert server.request("GET", "/api/v1/fixtures").body != before
    server.api("POST", "/reset", {"keep": ["devices", "clock"]})
    assert server.api("GET", "/devices/anna")["state"] == "offline"
    server.api("POST", "/reset", {"devices": True})
    assert server.request("GET", "/api/v1/fixtures").body == before
    assert server.api("GET", "/devices/anna/notifications")["stored"] == [] and stored
    assert states(server, anna.accepted())[-1] == "Delivered to Device"


def test_a_single_token_of_a_device_can_be_unregistered(anna):
    shown = anna.server.api("PUT", f"/devices/{ALERT}", {"state": "unregistered", "since": NOON})
    assert (shown["device"], shown["topic"], shown["state"]) == ("anna", APP, "unregistered")
    assert anna.rejected() == (410, "Unregistered"), "at once"
    assert anna.server.api("GET", f"/devices/{ALERT}") == shown
    anna.server.api("PUT", f"/devices/{ALERT}", {})
    assert anna.push().status == 200


def test_a_delayed_push_to_a_device_that_a_reset_removes(start):
    """The device is gone when the push is accepted."""
    server = start()
    server.api("PUT", "/fixtures", FIXTURES)
    server.api("POST", "/rules", {"name": "later", "do": {"delay": {"fixed": "500ms"}}})
    with connect(server) as wire:
        stream = wire.open(push_headers(server, ALERT, apns_topic=APP), b"{}")
        wire.ping()
        server.api("POST", "/reset", {})
        assert server.api("GET", "/devices")["items"] == []
        wire.response(stream)
    assert server.api("GET", "/status")["phase"] == "ready"


# Many devices at once


MANY = 600


def many_devices(server, state):
    """Registers devices whose tokens are the numbers from 1; returns the tokens."""
    tokens = [f"{number:064x}" for number in range(1, MANY + 1)]
    server.api("PUT", "/fixtures", {
        "apps": [{"bundle_id": APP, "team_id": server.team_id, "broadcast": True}],
        "devices": [{"id": f"phone-{number}", "state": state, "apps": [
            {"bundle_id": APP, "environment": "sandbox", "tokens": {"alert": token}}]}
            for number, token in enumerate(tokens, 1)],
        "channels": [{"bundle_id": APP, "environment": "sandbox", "id": "dHN0", "message_storage_policy": 0}]})
    return tokens


@pytest.mark.parametrize("flags", [(), ("--store", "sqlite:{folder}/inbox.db")], ids=["memory", "sqlite"])
def test_many_stored_pushes_expire_before_the_clock_is_confirmed(start, tmp_path, flags):
    server = start(*(flag.format(folder=tmp_path) for flag in flags))
    tokens = many_devices(server, "offline")
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(server) as wire:
        provider, expiration = Provider(server, wire), str(NOON_SECONDS + 60)
        assert provider.push(tokens[0], apns_expiration=expiration).status == 200
        for first in range(1, MANY, 50):
            streams = [wire.open(push_headers(server, token, apns_topic=APP, authorization=provider.bearer, apns_expiration=expiration), BODY)
                       for token in tokens[first:first + 50]]
            assert {wire.response(stream).status for stream in streams} == {200}
        server.api("POST", "/clock/advance", {"by": "59s"})
        assert server.api("GET", "/pushes", delivery="Stored*", limit=0)["matched"] == MANY
        server.api("POST", "/clock/advance", {"by": "1s"})
        found = server.api("GET", "/pushes", delivery="Discarded - Expired", limit=0)
        assert found["matched"] == MANY
        assert server.api("GET", "/devices/phone-1")["stored"] == 0
        assert provider.push(tokens[0]).status == 200


def test_many_subscribers_have_a_broadcast_when_it_is_answered(start):
    server = start()
    many_devices(server, "online")
    for number in range(1, MANY + 1):
        server.api("POST", f"/devices/phone-{number}/subscriptions", {"channel": "dHN0"})
    with connect(server) as wire:
        for count in (1, 2):
            headers = [(":method", "POST"), (":scheme", "https"), (":path", f"/4/broadcasts/apps/{APP}"),
                       (":authority", server.authority), ("authorization", server.bearer), ("apns-channel-id", "dHN0"),
                       ("apns-push-type", "liveactivity"), ("apns-priority", "10"), ("apns-expiration", "0")]
            body = b'{"aps":{"timestamp":%d,"event":"update","content-state":{"score":%d}}}' % (time.time(), count)
            assert wire.push(headers, body).status == 200
            for number in (MANY, 1):
                shown = server.api("GET", f"/devices/phone-{number}/notifications")["items"]
                assert shown[-1]["payload"]["aps"]["content-state"] == {"score": count}

"""The finding `probable-mistake`: what resembles something that the server knows, and was probably meant as that."""

import base64
import json
import urllib.parse

import pytest

from support.wire import connect, push_headers

TOKEN = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"
RAW = bytes.fromhex(TOKEN)
ALERT = {"aps": {"alert": "hello"}}


@pytest.fixture(scope="module")
def known(binary, certs, tmp_path_factory):
    """A server that knows one device with one token, and the app com.example.app."""
    from support.server import Server, stop_cleanly

    fixtures = tmp_path_factory.mktemp("known") / "phone.yaml"
    fixtures.write_text(f"""
apps:
  - {{bundle_id: com.example.app, team_id: MOCKTEAM01}}
devices:
  - id: phone
    apps:
      - bundle_id: com.example.app
        environment: sandbox
        tokens: {{alert: "{TOKEN}"}}
""")
    running = Server(binary, certs, "--fixtures", fixtures)
    yield running
    stop_cleanly(running)


def push(server, token=TOKEN, *extra, payload=ALERT, **changes):
    """Sends a push; returns its record and the explanation of its finding, if it has one."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    with connect(server) as wire:
        wire.push(push_headers(server, token, *extra, **changes), body)
    (record,) = server.api("GET", "/pushes", order="desc", limit=1)["items"]
    findings = server.api("GET", f"/pushes/{record['seq']}/explain")["findings"]
    texts = [finding["explanation"] for finding in findings if finding["finding"] == "probable-mistake"]
    assert ("probable-mistake" in record["findings"]) == bool(texts)
    return record, texts[0] if texts else None


DISTORTED = {
    "decoded as base64": (base64.b64decode(TOKEN).hex(), 200, "was decoded as base64, although it is hexadecimal"),
    "hexadecimal twice": (TOKEN.encode().hex(), 200, "is encoded in hexadecimal twice"),
    "base64 in hexadecimal": (base64.b64encode(RAW).hex(), 200, "is the base64 form of its bytes, encoded in hexadecimal"),
    "cut": (TOKEN[:32], 200, "was cut at its end, after 32 of 64 digits"),
    "without the first byte": (TOKEN[2:], 200, "lacks its first 2 of 64 digits"),
    "with a line break in hexadecimal": (TOKEN + "0a", 200, "has something after its end"),
    "base64": (urllib.parse.quote(base64.b64encode(RAW), safe=""), 400, "is encoded in base64 instead of hexadecimal"),
    "bytes": (urllib.parse.quote(RAW, safe=""), 400, "was sent as bytes instead of in hexadecimal"),
    "printed": (f"<{TOKEN[:32]}%20{TOKEN[32:]}>", 400, "is written with spaces, brackets or quotation marks"),
}


@pytest.mark.parametrize(("received", "status", "words"), DISTORTED.values(), ids=DISTORTED)
def test_a_distorted_device_token(known, received, status, words):
    record, text = push(known, received)
    assert record["verdict"]["status"] == status
    assert text.startswith(f"the device token is not registered, and is probably 740f…ad, which is: the token {words}")
    assert record["seq"] in [other["seq"] for other in known.pushes(finding="probable-mistake")]


def test_a_registered_token_and_an_unlike_one(known, device):
    assert push(known)[1] is None
    assert push(known, device)[1] is None


def test_unknown_tokens_are_refused_and_named(start, tmp_path):
    fixtures = tmp_path / "one.yaml"
    fixtures.write_text(f"""devices: [{{id: phone, apps: [{{bundle_id: com.example.app, tokens: {{alert: "{TOKEN}"}}}}]}}]""")
    server = start("--fixtures", fixtures, "--devices", "known")
    record, text = push(server, TOKEN[:60])
    assert record["verdict"]["reason"] == "BadDeviceToken" and "was cut at its end" in text


@pytest.mark.parametrize(("topic", "meant"), [
    ("com.example.ap", "com.example.app"), ("com.exmaple.app", "com.example.app"), ("com.example.App", "com.example.app"),
    ("com.example.app.vOip", "com.example.app.voip"),
])
def test_a_topic_that_resembles_a_known_one(known, device, topic, meant):
    record, text = push(known, device, apns_topic=topic, apns_push_type=None)
    assert record["accepted"]
    assert f'differs by a letter or by case from "{meant}", which it knows' in text


@pytest.mark.parametrize("topic", ["com.example.app", "com.example.app.voip", "com.example.app2", "com.example.other"])
def test_other_topics(known, device, topic):
    assert push(known, device, apns_topic=topic, apns_push_type=None)[1] is None


def test_topics_of_keys_are_known(start, device):
    server = start()
    body = {"team_id": server.team_id, "public_key": public_key(server), "team_topics": ["com.acme.shop"]}
    assert push(server, device, apns_topic="com.acme.shpo")[1] is None
    server.api("PUT", "/keys/OWNKEY0001", body)
    assert '"com.acme.shop"' in push(server, device, apns_topic="com.acme.shpo")[1]
    server.api("DELETE", "/keys/OWNKEY0001")
    assert push(server, device, apns_topic="com.acme.shpo")[1] is None


def public_key(server):
    from support.tokens import public_half

    return public_half(server.key)


@pytest.mark.parametrize(("field", "meant"), [
    ("apns-expiry", "apns-expiration"), ("apns-prio", None), ("apns-collapse", None), ("apns-collapseid", "apns-collapse-id"),
    ("apns_priority", "apns-priority"),
])
def test_a_header_field_that_resembles_one_of_apns(known, field, meant):
    text = push(known, TOKEN, (field, "5"))[1]
    assert text == (meant and f'the header field "{field}" is not one of APNs, which ignores it: write {meant}')


def test_a_missing_topic_names_the_field_that_was_sent(known):
    record, text = push(known, TOKEN, ("apns_topic", "com.example.app"), apns_topic=None)
    assert record["verdict"]["checks"][-1]["detail"].endswith('; "apns_topic" is not that field')


@pytest.mark.parametrize(("path", "words"), [
    ("/4/broadcast/apps/com.example.app", '/4/broadcasts/apps/{bundle id}: "broadcast" must be "broadcasts"'),
    (f"/3/devices/{TOKEN}", '/3/device/{device token}: "devices" must be "device"'),
    ("/1/app/com.example.app/channels", '/1/apps/{bundle id}/channels: "app" must be "apps"'),
])
def test_a_path_one_segment_off(known, path, words):
    record, _ = push(known, path_=path)
    assert record["verdict"]["reason"] == "BadPath"
    assert words in record["verdict"]["checks"][-1]["detail"]


@pytest.mark.parametrize(("payload", "text"), [
    ({**ALERT, "interruption-level": "critical"},
     '"interruption-level" in the payload has no effect: write aps.interruption-level'),
    ({"aps": {"alert": {"title": "a", "thread_identifier": "t"}}},
     '"thread_identifier" in aps.alert has no effect: write aps.thread-id'),
    ({"aps": {"alert": "a", "mutableContent": 1}}, '"mutableContent" in aps has no effect: write aps.mutable-content'),
    ({"aps": {"alert": "a", "sound": {"critical": True, "name": "x"}}},
     "critical in aps.sound is true: write the number 1"),
    ({**ALERT, "title": "mine", "threadId": "mine"}, None),
])
def test_members_of_the_payload(known, payload, text):
    assert push(known, payload=payload)[1] == text


def test_a_byte_order_mark(known):
    body = "\ufeff".encode() + json.dumps(ALERT).encode()
    record, _ = push(known, payload=body)
    assert "would-not-show" in record["findings"]
    assert record["request"]["payload_error"] == (
        "the body is not JSON: a byte order mark, which JSON must not begin with, at byte 0")


def test_a_check_names_all_beside_other_names(known):
    answer = known.request("POST", "/api/v1/check", {"fail_on_findings": ["all", "hot-retry"]})
    assert (answer.status, answer.json["detail"]) == (400, 'fail_on_findings cannot have "all"')
    assert answer.json["hint"] == "A list has names only. For all findings, use true instead of the list."

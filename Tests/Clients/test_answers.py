"""Answers as APNs gives them, byte for byte: header set, identifiers, error bodies, and the reasons end to end."""

import re
import time
import uuid

import pytest

from support import tokens
from support.wire import connect, push_headers

UPPER_UUID = re.compile(r"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}")
LOWER_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def test_an_accepted_sandbox_push_is_three_headers_and_nothing_else(server, device):
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device))
    assert answer.names == [":status", "apns-id", "apns-unique-id"]
    assert answer.status == 200
    assert (answer.ended_by, answer.data, answer.reset) == ("HEADERS", [], None)
    assert UPPER_UUID.fullmatch(answer.header("apns-id"))
    assert LOWER_UUID.fullmatch(answer.header("apns-unique-id"))


def test_production_sends_no_unique_id(start, device):
    server = start("--environment", "production")
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device))
    assert (answer.status, answer.names) == (200, [":status", "apns-id"])


def test_a_rejection_is_two_headers_and_one_data_frame(server, device):
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device, apns_priority="7"))
    assert answer.names == [":status", "apns-id"]
    assert (answer.ended_by, answer.data) == ("DATA", [b'{"reason":"BadPriority"}'])


def test_generated_ids_differ_and_stand_in_the_record(server, device):
    with connect(server) as wire:
        answers = [wire.push(push_headers(server, device)) for _ in range(3)]
    ids = [answer.header("apns-id") for answer in answers]
    assert len(set(ids)) == 3
    assert len({answer.header("apns-unique-id") for answer in answers}) == 3
    records = server.pushes(device_token=device)
    assert [record["apns"]["id"] for record in records] == ids
    assert {record["apns"]["id_origin"] for record in records} == {"server"}


@pytest.mark.parametrize("changes", [{}, {"apns_priority": "7"}, {"authorization": None}],
                         ids=["accepted", "rejected", "forbidden"])
@pytest.mark.parametrize("spelling", [str.lower, str.upper, lambda text: text[:18].upper() + text[18:]],
                         ids=["lower", "upper", "mixed"])
def test_a_given_id_comes_back_byte_for_byte(server, device, changes, spelling):
    apns_id = spelling(str(uuid.uuid4()))
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, apns_id=apns_id, **changes)).header("apns-id") == apns_id
    assert server.record(device)["apns"]["id"] == apns_id
    assert len(server.pushes(apns_id=apns_id.swapcase())) == 1, "ids are compared without case"


def test_a_malformed_id_is_replaced_by_a_fresh_one(server, device):
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device, apns_id="not-a-uuid"))
    assert (answer.status, answer.body) == (400, b'{"reason":"BadMessageId"}')
    assert UPPER_UUID.fullmatch(answer.header("apns-id"))


@pytest.mark.parametrize(("state", "reason"), [("unregistered", "Unregistered"), ("expired", "ExpiredToken")])
def test_a_dead_device_is_410_with_integer_milliseconds(server, device, state, reason):
    server.api("PUT", f"/devices/{device}", {"state": state, "since": "2016-02-08T22:26:55.990Z"})
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device))
    assert answer.status == 410
    assert answer.data == [b'{"reason":"%s","timestamp":1454970415990}' % reason.encode()]


LONG = "x" * 65
SIZES = [
    ("com.example.app", "alert", 4096, 200), ("com.example.app", "alert", 4097, 413),
    ("com.example.app.voip", "voip", 5120, 200), ("com.example.app.voip", "voip", 5121, 413),
]


@pytest.mark.parametrize(("topic", "push_type", "size", "status"), SIZES)
def test_the_payload_limit_is_exact(server, device, topic, push_type, size, status):
    body = b'{"aps":{"alert":"%s"}}' % (b"x" * (size - 20))
    assert len(body) == size
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device, apns_topic=topic, apns_push_type=push_type), body)
    assert answer.status == status
    assert answer.body == (b"" if status == 200 else b'{"reason":"PayloadTooLarge"}')
    assert server.record(device)["request"]["size"] == {"bytes": size, "limit": 5120 if push_type == "voip" else 4096}


REJECTIONS = [
    ("method before path and credentials", {"method_": "GET", "path_": "/", "authorization": None}, 405,
     "MethodNotAllowed"),
    ("path before credentials", {"path_": "/2/device/aa", "authorization": None}, 404, "BadPath"),
    ("credentials before the device token", {"path_": "/3/device/", "authorization": None}, 403,
     "MissingProviderToken"),
    ("an empty credential", {"authorization": ""}, 403, "MissingProviderToken"),
    ("a token that is none", {"authorization": "bearer nonsense"}, 403, "InvalidProviderToken"),
    ("no device token", {"path_": "/3/device/"}, 400, "MissingDeviceToken"),
    ("device token not hexadecimal", {"path_": "/3/device/zz"}, 400, "BadDeviceToken"),
    ("device token of odd length", {"path_": "/3/device/abc"}, 400, "BadDeviceToken"),
    ("a bad percent escape", {"path_": "/3/device/%zz%"}, 400, "BadDeviceToken"),
    ("expiration", {"apns_expiration": "tomorrow"}, 400, "BadExpirationDate"),
    ("priority", {"apns_priority": "7"}, 400, "BadPriority"),
    ("collapse id of 65 bytes", {"apns_collapse_id": LONG}, 400, "BadCollapseId"),
    ("collapse id of 33 two-byte letters", {"apns_collapse_id": "ü" * 33}, 400, "BadCollapseId"),
    ("push type", {"apns_push_type": "carrier-pigeon"}, 400, "InvalidPushType"),
    ("id before expiration", {"apns_id": "1", "apns_expiration": "x"}, 400, "BadMessageId"),
    ("no topic", {"apns_topic": None}, 400, "MissingTopic"),
    ("an empty topic", {"apns_topic": ""}, 400, "MissingTopic"),
    ("a topic with a space", {"apns_topic": "com example"}, 400, "BadTopic"),
    ("a topic of 256 bytes", {"apns_topic": "a" * 256}, 400, "BadTopic"),
    ("a suffix of another type", {"apns_topic": "com.example.app.voip"}, 400, "InvalidPushType"),
]


@pytest.mark.parametrize(("changes", "status", "reason"), [row[1:] for row in REJECTIONS],
                         ids=[row[0] for row in REJECTIONS])
def test_a_rejection_names_its_reason(server, device, changes, status, reason):
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device, **{"apns_id": str(uuid.uuid4()), **changes}))
    assert (answer.status, answer.data) == (status, [b'{"reason":"%s"}' % reason.encode()])


def test_an_empty_body_is_rejected(server, device):
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device), b"")
    assert (answer.status, answer.data) == (400, [b'{"reason":"PayloadEmpty"}'])


@pytest.mark.parametrize(("twice", "status"), [("apns-topic", 400), ("apns-push-type", 400), ("x-mine", 400),
                                               ("cookie", 200)])
def test_a_repeated_header_is_rejected_and_a_cookie_is_not(server, device, twice, status):
    pairs = [(twice, "com.example.app")] * (1 if twice.startswith("apns-") else 2)
    with connect(server) as wire:
        answer = wire.push(push_headers(server, device, *pairs))
    assert answer.status == status
    assert answer.body == (b"" if status == 200 else b'{"reason":"DuplicateHeaders"}')


def test_unknown_headers_and_any_content_type_are_ignored(server, device):
    extra = [("x-unknown", "1"), ("content-type", "application/x-www-form-urlencoded"), ("accept-encoding", "gzip")]
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, *extra)).status == 200


def test_host_does_instead_of_authority(server, device):
    """aioapns sends `host` and no `:authority`."""
    with connect(server) as wire:
        headers = push_headers(server, device, ("host", "api.sandbox.push.apple.com"), authority_=None)
        assert wire.push(headers).status == 200


@pytest.mark.parametrize("length", [64, 108, 160, 400])
def test_device_tokens_have_no_fixed_length_and_no_case(server, device, length):
    token = (device * 7)[:length]
    with connect(server) as wire:
        assert wire.push(push_headers(server, token.upper())).status == 200
    assert server.record(token)["request"]["device_token"] == token


def variants(server):
    facts = {"key": server.key, "key_id": server.key_id, "team_id": server.team_id}
    fresh = server.token()
    head, body, signature = fresh.split(".")
    unsigned = tokens.base64url(b'{"alg":"none"}')
    return {
        "capital Bearer": ("Bearer " + fresh, 200),
        "DER signature": ("bearer " + tokens.der_signed_token(**facts), 200),
        "padding": (f"bearer {head}.{body}.{signature}==", 200),
        "float iat": ("bearer " + server.token(claims={"iat": float(int(time.time())) + 0.5}), 200),
        "iat as a string": ("bearer " + server.token(claims={"iat": str(int(time.time()))}), 200),
        "extra claims": ("bearer " + server.token(claims={"aud": "x", "nested": {"a": [1]}}), 200),
        "unknown key id": ("bearer " + server.token(key_id="OTHERKEY01"), 403),
        "other team": ("bearer " + server.token(team_id="OTHERTEAM1"), 403),
        "foreign key": ("bearer " + server.token(key=tokens.foreign_key()), 403),
        "changed claims": (f"bearer {head}.{tokens.base64url(b'{}')}.{signature}", 403),
        "unsigned": (f"bearer {unsigned}.{body}.", 403),
        "two parts": (f"bearer {head}.{body}", 403),
        "another scheme": ("basic " + fresh, 403),
    }


VARIANTS = [
    "capital Bearer", "DER signature", "padding", "float iat", "iat as a string", "extra claims", "unknown key id",
    "other team", "foreign key", "changed claims", "unsigned", "two parts", "another scheme",
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_provider_tokens_as_the_libraries_make_them(server, device, variant):
    authorization, status = variants(server)[variant]
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization=authorization)).status == status

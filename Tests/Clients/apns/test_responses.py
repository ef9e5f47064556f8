"""Responses exactly as APNs sends them: header sets, identifiers, error bodies, and the reasons end to end."""

import re
import uuid

import pytest
from hyperframe.frame import DataFrame, HeadersFrame

from support import tokens
from support.wire import connect, push_headers

UPPER_UUID = re.compile(r"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}")
LOWER_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def test_production_sends_no_unique_id(start, device):
    server = start("--environment", "production")
    with connect(server) as wire:
        response = wire.push(push_headers(server, device))
    assert (response.status, response.names) == (200, [":status", "apns-id"])


def test_generated_ids_differ_and_are_recorded(server, device):
    with connect(server) as wire:
        responses = [wire.push(push_headers(server, device)) for _ in range(3)]
    ids = [response.header("apns-id") for response in responses]
    assert len(set(ids)) == 3
    assert len({response.header("apns-unique-id") for response in responses}) == 3
    records = server.pushes(device_token=device)
    assert [record["apns"]["id"] for record in records] == ids
    assert {record["apns"]["id_origin"] for record in records} == {"server"}


def test_a_malformed_id_is_replaced_by_a_fresh_one(server, device):
    with connect(server) as wire:
        response = wire.push(push_headers(server, device, apns_id="not-a-uuid"))
    assert (response.status, response.body) == (400, b'{"reason":"BadMessageId"}')
    assert UPPER_UUID.fullmatch(response.header("apns-id"))


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
        response = wire.push(push_headers(server, device, apns_topic=topic, apns_push_type=push_type), body)
    assert response.status == status
    assert response.body == (b"" if status == 200 else b'{"reason":"PayloadTooLarge"}')
    assert server.record(device)["request"]["size"] == {"bytes": size, "limit": 5120 if push_type == "voip" else 4096}


REJECTIONS = [
    ("method before path and credentials", {"method_": "GET", "path_": "/", "authorization": None}, 405,
     "MethodNotAllowed"),
    ("path before credentials", {"path_": "/2/device/aa", "authorization": None}, 404, "BadPath"),
    ("broadcasts, no credential", {"path_": "/4/broadcasts/apps/com.example.app", "authorization": None}, 403,
     "MissingProviderToken"),
    ("broadcasts", {"path_": "/4/broadcasts/apps/com.example.app"}, 400, "MissingChannelId"),
    ("broadcasts by GET", {"method_": "GET", "path_": "/4/broadcasts/apps/com.example.app", "authorization": None}, 405,
     "MethodNotAllowed"),
    ("channels by GET, no credential", {"method_": "GET", "path_": "/1/apps/x/channels", "authorization": None}, 403,
     "MissingProviderToken"),
    ("channels", {"method_": "GET", "path_": "/1/apps/x/channels"}, 400, "MissingChannelId"),
    ("channels by PUT, no credential", {"method_": "PUT", "path_": "/1/apps/x/channels", "authorization": None}, 405,
     "MethodNotAllowed"),
    ("64 zeros", {"path_": "/3/device/" + "0" * 64}, 400, "BadDeviceToken"),
    ("a topic in angle brackets", {"apns_topic": "<com.example.app>"}, 400, "TopicDisallowed"),
    ("a topic with a team id", {"apns_topic": "MOCKTEAM01.com.example.app"}, 400, "TopicDisallowed"),
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
        response = wire.push(push_headers(server, device, **{"apns_id": str(uuid.uuid4()), **changes}))
    assert (response.status, response.data) == (status, [b'{"reason":"%s"}' % reason.encode()])


def test_an_empty_body_is_rejected(server, device):
    with connect(server) as wire:
        response = wire.push(push_headers(server, device), b"")
    assert (response.status, response.data) == (400, [b'{"reason":"PayloadEmpty"}'])


@pytest.mark.parametrize(("twice", "status"), [("apns-topic", 400), ("apns-push-type", 400), ("x-mine", 400),
                                               ("cookie", 200)])
def test_a_repeated_header_is_rejected_and_a_cookie_is_not(server, device, twice, status):
    pairs = [(twice, "com.example.app")] * (1 if twice.startswith("apns-") else 2)
    with connect(server) as wire:
        response = wire.push(push_headers(server, device, *pairs))
    assert response.status == status
    assert response.body == (b"" if status == 200 else b'{"reason":"DuplicateHeaders"}')


def test_unknown_headers_and_any_content_type_are_ignored(server, device):
    extra = [("x-unknown", "1"), ("content-type", "application/x-www-form-urlencoded"), ("accept-encoding", "gzip")]
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, *extra)).status == 200


FORGERIES = [
    ("unknown key id", lambda server: server.token(key_id="OTHERKEY01")),
    ("other team", lambda server: server.token(team_id="OTHERTEAM1")),
    ("foreign key", lambda server: server.token(key=tokens.foreign_key())),
    ("changed claims", lambda server: "{0}.e30.{2}".format(*server.token().split("."))),
    ("unsigned", lambda server: tokens.base64url(b'{"alg":"none"}') + ".{1}.".format(*server.token().split("."))),
    ("two parts", lambda server: server.token().rpartition(".")[0]),
]


@pytest.mark.parametrize("make", [row[1] for row in FORGERIES], ids=[row[0] for row in FORGERIES])
def test_invalid_provider_tokens(server, device, make):
    with connect(server) as wire:
        response = wire.push(push_headers(server, device, authorization="bearer " + make(server)))
    assert (response.status, response.data) == (403, [b'{"reason":"InvalidProviderToken"}'])


def test_another_scheme_than_bearer_is_refused(server, device):
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization="basic " + server.token())).status == 403


@pytest.mark.parametrize("value", ["100-continue", "100-Continue"])
def test_expect_100_continue_gets_a_100_response(server, device, value):
    """RFC 9110, section 10.1.1."""
    with connect(server) as wire:
        stream = wire.open(push_headers(server, device, ("expect", value)), end_stream=False)
        wire.until(lambda frame: isinstance(frame, HeadersFrame))
        response = wire.responses[stream]
        assert (response.headers, response.finished) == ([(":status", "100")], False)
        wire.send(DataFrame(stream, b'{"aps":{"alert":"asked for"}}', flags=["END_STREAM"]))
        assert wire.response(stream).status == 200
    assert server.record(device)["served"]["status"] == 200


@pytest.mark.parametrize(("expectation", "body"), [("100-continue", b""), ("something else", b"{}")])
def test_no_100_response_in_other_cases(server, device, expectation, body):
    """No 100 response after the end of the stream, nor for an unknown expectation."""
    with connect(server) as wire:
        wire.push(push_headers(server, device, ("expect", expectation)), body)
        assert sum(isinstance(frame, HeadersFrame) for frame in wire.frames) == 1

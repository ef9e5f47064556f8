"""Broadcasts and channel management, with requests in the forms of Apple's samples and of provider libraries."""

import base64
import contextlib
import json
import re
import secrets
import uuid

import pytest
from hyperframe.frame import DataFrame, WindowUpdateFrame

from support.wire import connect

APP = "com.example.app"
NEW = b'{"message-storage-policy":1,"push-type":"LiveActivity"}'
UPDATE = b'{"aps":{"timestamp":1700000000,"event":"update","content-state":{"score":1}}}'
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Channels:
    """Requests about the channels of an app, on one connection."""

    def __init__(self, server, wire, app=APP):
        self.server, self.wire, self.app = server, wire, app

    def headers(self, method, path, **more):
        fields = {":method": method, ":scheme": "https", ":path": path, ":authority": self.server.authority,
                  "authorization": self.server.bearer}
        fields.update({name.replace("_", "-"): value for name, value in more.items()})
        return [(name, value) for name, value in fields.items() if value is not None]

    def call(self, method, what="channels", body=b"", **more):
        return self.wire.push(self.headers(method, f"/1/apps/{self.app}/{what}", **more), body)

    def create(self, body=NEW, **more):
        response = self.call("POST", body=body, **more)
        assert response.status == 201, response
        return response.header("apns-channel-id")

    def listed(self):
        return json.loads(self.call("GET", "all-channels").body)["channels"]

    def send(self, channel, body=UPDATE, path=None, **more):
        fields = {"apns_channel_id": channel, "apns_push_type": "liveactivity", "apns_priority": "10",
                  "apns_expiration": "0", **more}
        return self.wire.push(self.headers("POST", path or f"/4/broadcasts/apps/{self.app}", **fields), body)


@pytest.fixture
def channels(server):
    """An app of its own for the test, on the shared server."""
    with connect(server) as wire:
        yield Channels(server, wire, f"com.example.b{secrets.token_hex(6)}")


@contextlib.contextmanager
def on(server, app=APP, **settings):
    with connect(server, **settings) as wire:
        yield Channels(server, wire, app)


def reason(response):
    return response.status, json.loads(response.body)["reason"]


def records(channels, **query):
    return channels.server.pushes(topic=channels.app, **{"kind": "*", **query})


def test_life_of_a_channel(channels):
    made = channels.call("POST", body=NEW)
    assert (made.status, made.body) == (201, b"")
    assert UUID.fullmatch(made.header("apns-request-id"))
    assert made.header("apns-id") is None and made.header("apns-unique-id") is None
    channel = made.header("apns-channel-id")
    assert len(base64.b64decode(channel, validate=True)) == 16
    read = channels.call("GET", apns_channel_id=channel)
    assert read.status == 200
    assert json.loads(read.body) == {"message-storage-policy": 1, "push-type": "LiveActivity"}
    listed = channels.call("GET", "all-channels")
    assert (listed.status, json.loads(listed.body)) == (200, {"channels": [channel]})
    sent = channels.send(channel)
    assert (sent.status, sent.body) == (200, b"")
    assert UUID.fullmatch(sent.header("apns-request-id")) and sent.header("apns-unique-id")
    gone = channels.call("DELETE", apns_channel_id=channel)
    assert (gone.status, gone.body) == (204, b"") and UUID.fullmatch(gone.header("apns-request-id"))
    assert reason(channels.send(channel)) == (400, "ChannelNotRegistered")
    assert reason(channels.call("DELETE", apns_channel_id=channel)) == (400, "ChannelNotRegistered")
    assert channels.listed() == []
    kinds = [(one["kind"], one["served"]["status"]) for one in records(channels)]
    assert kinds == [("channel", 201), ("channel", 200), ("channel", 200), ("broadcast", 200), ("channel", 204),
                     ("broadcast", 400), ("channel", 400), ("channel", 200)]
    assert records(channels, kind="broadcast")[0]["verdict"]["status"] == 200
    assert channels.server.pushes(topic=channels.app) == [], "lists have pushes only, unless the query names the kind"


def test_node_apn(channels):
    """@parse/node-apn: content-length, an empty DATA frame, several requests at once, no expiration."""
    channel = channels.create(content_type="application/json", content_length=str(len(NEW)))
    wire, streams = channels.wire, []
    for what, method in (("channels", "GET"), ("all-channels", "GET"), ("channels", "DELETE")):
        stream = wire.next_stream_id()
        end = DataFrame(stream, b"")
        end.flags.add("END_STREAM")
        headers = channels.headers(method, f"/1/apps/{channels.app}/{what}", apns_channel_id=channel)
        wire.send(*wire.header_frames(stream, headers, end_stream=False), end)
        streams.append(stream)
    assert [wire.response(stream).status for stream in streams] == [200, 200, 204]
    assert wire.response(streams[2]).body == b""
    channel = channels.create()
    assert reason(channels.send(channel, apns_expiration=None)) == (400, "BadExpirationDate")
    record = records(channels, kind="broadcast")[0]
    assert record["findings"] == ["broadcast-without-expiration"]


def test_body_of_a_read_request_is_ignored(channels):
    """APNSwift sends `{}` with GET and DELETE."""
    channel = channels.create()
    for body in (b"{}", b"null"):
        assert channels.call("GET", body=body, apns_channel_id=channel).status == 200
    assert channels.call("GET", "all-channels", body=b"{}").status == 200
    assert channels.call("DELETE", body=b"{}", apns_channel_id=channel).status == 204


def test_apnswift_broadcast(channels):
    channel = channels.create(body=b'{"push-type":"LiveActivity","message-storage-policy":0}')
    sent = channels.send(channel, apns_request_id=str(uuid.uuid4()).upper(), apns_topic="ignored", apns_priority=None)
    assert sent.status == 200


def test_request_id(channels):
    identifier = str(uuid.uuid4())
    for given in (identifier, identifier.upper()):
        response = channels.call("GET", "all-channels", apns_request_id=given)
        assert response.header("apns-request-id") == given
    assert channels.call("GET", "all-channels", apns_id=identifier).header("apns-request-id") == identifier
    assert reason(channels.call("GET", "all-channels", apns_request_id="x")) == (400, "BadMessageId")
    assert reason(channels.call("GET", "all-channels", apns_id="x")) == (400, "BadMessageId")


@pytest.mark.parametrize(("changes", "expected"), [
    ({"apns_channel_id": None}, "MissingChannelId"),
    ({"apns_channel_id": "not base64"}, "BadChannelId"),
    ({"apns_channel_id": "AAAAAAAAAAAAAAAAAAAAAA=="}, "ChannelNotRegistered"),
    ({"apns_push_type": None}, "MissingPushType"),
    ({"apns_push_type": "alert"}, "InvalidPushType"),
    ({"apns_expiration": None}, "BadExpirationDate"),
    ({"apns_expiration": "soon"}, "BadExpirationDate"),
    ({"apns_priority": "7"}, "BadPriority"),
    ({"body": b""}, "PayloadEmpty"),
    ({"body": b"x" * 5121}, "PayloadTooLarge"),
    ({"path": f"/4/broadcasts/apps/{APP}.voip"}, "TopicDisallowed"),
])
def test_rejected_broadcasts(channels, changes, expected):
    changes = dict(changes)
    channel = changes.pop("apns_channel_id", "") if "apns_channel_id" in changes else channels.create()
    response = channels.send(channel, **changes)
    assert reason(response) == (413 if expected == "PayloadTooLarge" else 400, expected)
    assert UUID.fullmatch(response.header("apns-request-id"))


@pytest.mark.parametrize(("body", "expected"), [
    (b"", "PayloadEmpty"), (b"{", "BadRequestPayload"), (b"[]", "BadRequestPayload"),
    (b'{"push-type":"LiveActivity"}', "MissingChannelQueueSize"),
    (b'{"message-storage-policy":2,"push-type":"LiveActivity"}', "MissingChannelQueueSize"),
    (b'{"message-storage-policy":1}', "MissingPushType"),
    (b'{"message-storage-policy":1,"push-type":"alert"}', "InvalidPushType"),
    (b'{"message-storage-policy":1,"push-type":"LiveActivity","name":"x"}', "BadRequestParams"),
])
def test_rejected_channels(channels, body, expected):
    assert reason(channels.call("POST", body=body)) == (400, expected)
    assert channels.listed() == []


def test_storage_policy_0_needs_expiration_0(channels):
    channel = channels.create(body=NEW.replace(b"1", b"0", 1))
    assert reason(channels.send(channel, apns_expiration="2000000000")) == (400, "BadExpirationDate")
    assert channels.send(channel, apns_expiration="0").status == 200


def test_environments_have_channels_of_their_own(start):
    server = start(apns=("127.0.0.1:0", "127.0.0.1:0=production"))
    with on(server) as sandbox, on(server, port=server.listeners[1][1]) as production:
        channel = sandbox.create()
        assert production.listed() == []
        assert reason(production.send(channel)) == (400, "ChannelNotRegistered")
        other = production.create()
        sent = production.send(other)
        assert sent.status == 200 and sent.header("apns-unique-id") is None
        assert (sandbox.listed(), production.listed()) == ([channel], [other])


def test_ids_are_repeatable(start):
    made = []
    for _ in range(2):
        with on(start("--seed", "7")) as channels:
            made.append([channels.create() for _ in range(3)])
    assert made[0] == made[1] and len(set(made[0])) == 3


def test_limit(start):
    server = start()
    with on(server, settings={4: 1_000_000}) as channels:
        wire = channels.wire
        wire.send(WindowUpdateFrame(0, window_increment=1_000_000))  # for the list of all channels
        headers = channels.headers("POST", f"/1/apps/{APP}/channels")
        for _ in range(100):
            for stream in [wire.open(headers, NEW) for _ in range(100)]:
                assert wire.response(stream).status == 201
        assert reason(channels.call("POST", body=NEW)) == (400, "CannotCreateChannelConfig")
        ids = channels.listed()
        assert len(set(ids)) == 10_000
        channels.call("DELETE", apns_channel_id=ids[0])
        assert channels.create() not in ids


def test_known_apps(start):
    server = start("--topics", "known")
    server.api("PUT", "/fixtures", {"apps": [
        {"bundle_id": APP, "team_id": server.team_id, "broadcast": True},
        {"bundle_id": "com.example.plain", "team_id": server.team_id},
        {"bundle_id": "com.example.other", "team_id": "OTHERTEAM1", "broadcast": True}]})
    with connect(server) as wire:
        answers = {app: Channels(server, wire, app).call("POST", body=NEW) for app in (
            APP, "com.example.plain", "com.example.other", "com.example.unknown")}
    assert answers.pop(APP).status == 201
    assert [reason(answer) for answer in answers.values()] == [
        (400, "FeatureNotEnabled"), (403, "TopicMismatch"), (403, "TopicMismatch")]


def test_rules_of_a_kind(start):
    server = start("--profile", "channel-limit?limit=1")
    with on(server) as channels:
        channel = channels.create()
        assert reason(channels.call("POST", body=NEW)) == (400, "CannotCreateChannelConfig")
        assert channels.listed() == [channel]
        server.api("PUT", "/profile", {"name": "broadcast-flaky", "params": {"rate": 1}})
        assert reason(channels.send(channel)) == (503, "ServiceUnavailable")
        assert channels.send(channel).status == 200
        assert channels.listed() == [channel]


def test_commands(channels):
    server = channels.server
    made = server.command("channel", "create", channels.app)
    assert made.returncode == 0, made.stderr
    channel = made.stdout.strip()
    assert channels.listed() == [channel]
    assert channel in server.command("channel", "ls", channels.app).stdout
    assert channels.send(channel).status == 200
    assert server.command("channel", "rm", channel).returncode == 0
    assert channels.listed() == []
    assert server.api("GET", "/channels", bundle_id=channels.app)["items"] == []


def test_exported_and_imported(channels, start):
    channel = channels.create()
    channels.send(channel)
    channels.call("DELETE", apns_channel_id=channel)
    exported = channels.server.request("GET", "/api/v1/export", topic=channels.app, kind="*").body
    other = start()
    other.request("POST", "/api/v1/import", exported, headers={"content-type": "application/x-ndjson"})
    assert [one["verdict"]["status"] for one in other.pushes(kind="*")] == [201, 200, 204]

"""Broadcasts and channel management, with requests in the forms of Apple's samples and of provider libraries."""

import base64
import contextlib
import datetime
import http.client
import json
import re
import secrets
import time
import uuid

import pytest
from hyperframe.frame import DataFrame, WindowUpdateFrame

from support import drivers, tokens
from support.server import clean_environment
from support.wire import TIMEOUT, connect

APP = "com.example.app"
NEW = b'{"message-storage-policy":1,"push-type":"LiveActivity"}'
UPDATE = b'{"aps":{"timestamp":%d,"event":"update","content-state":{"score":1}}}' % time.time()
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


def pushy(channels, method, what="channels", body=b"", *, authorization=None, channel=None):
    """Returns a request as Pushy's branch for channel management sends it: no content-type, no content-length, a DATA
    frame only for a body. `authorization` is absent except on the request for which Pushy creates a provider token.
    """
    fields = [(":method", method), (":authority", "localhost"), (":path", f"/1/apps/{channels.app}/{what}"),
              (":scheme", "https"), ("apns-channel-id", channel), ("authorization", authorization)]
    return channels.wire.push([(name, value) for name, value in fields if value is not None], body)


def test_pushy(server):
    """Pushy connects without ALPN, begins with stream 3, signs in DER, requires exactly 201, 200 and 204, and reads the
    policy as an integer and the list of channels as an array of strings.
    """
    bearer = "bearer " + tokens.der_signed_token(key=server.key, key_id=server.key_id, team_id=server.team_id)
    with on(server, f"com.example.b{secrets.token_hex(6)}", alpn=()) as channels:
        channels.wire.next_stream = 3
        made = pushy(channels, "POST", body=b'{"push-type":"LiveActivity","message-storage-policy":1}',
                     authorization=bearer)
        assert (made.status, made.body, made.ended_by) == (201, b"", "HEADERS")
        channel = made.header("apns-channel-id")
        read = pushy(channels, "GET", channel=channel, authorization=bearer)
        assert (read.status, len(read.data)) == (200, 1)
        configuration = json.loads(read.body)
        assert configuration == {"message-storage-policy": 1, "push-type": "LiveActivity"}
        assert type(configuration["message-storage-policy"]) is int
        listed = pushy(channels, "GET", "all-channels", authorization=bearer)
        assert (listed.status, len(listed.data), json.loads(listed.body)) == (200, 1, {"channels": [channel]})
        deleted = pushy(channels, "DELETE", channel=channel, authorization=bearer)
        assert (deleted.status, deleted.body, deleted.ended_by) == (204, b"", "HEADERS")
        assert all(UUID.fullmatch(one.header("apns-request-id")) for one in (made, read, listed, deleted))
    assert [one["findings"] for one in records(channels)] == [[]] * 4


def test_pushys_second_request_without_authorization(server):
    """The provider token of the first request on a connection does not count for the following ones."""
    with on(server, f"com.example.b{secrets.token_hex(6)}", alpn=()) as channels:
        channel = pushy(channels, "POST", body=NEW, authorization=server.bearer).header("apns-channel-id")
        for method, what, named in (
            ("GET", "channels", channel), ("GET", "all-channels", None), ("DELETE", "channels", channel),
        ):
            refused = pushy(channels, method, what, channel=named)
            assert reason(refused) == (403, "MissingProviderToken")
            assert len(refused.data) == 1, "Pushy drops a body of several frames"
            assert UUID.fullmatch(refused.header("apns-request-id"))
        assert channels.listed() == [channel], "nothing is deleted"


class HTTP1:
    """Requests about the channels of an app over HTTP/1.1, on one connection of Python's http.client."""

    def __init__(self, server, app):
        self.server, self.app = server, app
        self.connection = http.client.HTTPConnection("127.0.0.1", server.facts["apns_plain"][0]["port"], TIMEOUT)

    def call(self, method, path, body=None, **more):
        """Returns the response, with its body read as `content`. A header whose value is None is not sent."""
        fields = {"authorization": self.server.bearer, **{key.replace("_", "-"): value for key, value in more.items()}}
        self.connection.request(
            method, path, body, {name: value for name, value in fields.items() if value is not None})
        response = self.connection.getresponse()
        response.content = response.read()
        assert response.version == 11
        return response

    def channels(self, method, body=None, *, what="channels", **more):
        return self.call(method, f"/1/apps/{self.app}/{what}", body, **more)

    def send(self, channel, body=UPDATE, **more):
        return self.call("POST", f"/4/broadcasts/apps/{self.app}", body, **{
            "apns_channel_id": channel, "apns_push_type": "liveactivity", "apns_priority": "10",
            "apns_expiration": "0", **more})


@pytest.fixture
def plain(start):
    """An app on a cleartext listener, with a device that is subscribed to nothing yet."""
    server = start("--apns-plain", "127.0.0.1:0")
    server.api("PUT", "/fixtures", {
        "apps": [{"bundle_id": APP, "team_id": server.team_id, "broadcast": True},
                 {"bundle_id": "com.example.plain", "team_id": server.team_id}],
        "devices": [{"id": "anna", "apps": [{"bundle_id": APP, "tokens": {"liveactivity": "ab01"}}]}]})
    client = HTTP1(server, APP)
    yield client
    client.connection.close()


def test_a_device_ignores_a_broadcast_in_milliseconds(plain):
    """It goes on showing the one before."""
    server = plain.server
    channel = plain.channels("POST", NEW).headers["apns-channel-id"]
    server.api("POST", "/devices/anna/subscriptions", {"channel": channel})
    in_milliseconds = UPDATE.replace(b',"event"', b'000,"event"').replace(b'"score":1', b'"score":2')
    for body, found in ((UPDATE, False), (in_milliseconds, True)):
        assert plain.send(channel, body).status == 200
        assert ("would-not-show" in server.pushes(kind="broadcast")[-1]["findings"]) == found
        shown = server.api("GET", "/devices/anna/notifications")["items"]
        assert [item["payload"]["aps"]["content-state"] for item in shown] == [{"score": 1}]


def test_http1_has_the_same_responses(plain):
    server = plain.server
    made = plain.channels("POST", NEW)
    assert (made.status, made.content, made.headers["content-length"]) == (201, b"", "0")
    channel = made.headers["apns-channel-id"]
    assert len(base64.b64decode(channel, validate=True)) == 16
    read = plain.channels("GET", apns_channel_id=channel)
    assert (read.status, json.loads(read.content)) == (200, {"message-storage-policy": 1, "push-type": "LiveActivity"})
    listed = plain.channels("GET", what="all-channels")
    assert (listed.status, json.loads(listed.content)) == (200, {"channels": [channel]})
    server.api("POST", "/devices/anna/subscriptions", {"channel": channel})
    sent = plain.send(channel)
    assert (sent.status, sent.content) == (200, b"") and sent.headers["apns-unique-id"]
    shown = server.api("GET", "/devices/anna/notifications")["items"]
    assert [item["payload"]["aps"]["content-state"] for item in shown] == [{"score": 1}], "the device has received it"
    deleted = plain.channels("DELETE", apns_channel_id=channel)
    assert (deleted.status, deleted.content) == (204, b"")
    assert deleted.headers["content-length"] is None, "RFC 9110, section 8.6: no Content-Length in a 204"
    assert plain.channels("GET", what="all-channels").content == b'{"channels":[]}'
    assert all(UUID.fullmatch(one.headers["apns-request-id"]) for one in (made, read, listed, sent, deleted))

    found = server.pushes(kind="*")
    assert [(one["kind"], one["served"]["status"]) for one in found] == [
        ("channel", 201), ("channel", 200), ("channel", 200), ("broadcast", 200), ("channel", 204), ("channel", 200)]
    assert {one["connection"]["http"] for one in found} == {"http/1.1"}
    assert len({one["connection"]["id"] for one in found}) == 1, "the connection is kept"
    assert all("not-http2" in one["findings"] for one in found)


@pytest.mark.parametrize(("flag", "protocol", "http"), [
    ("--http1.1", "HTTP/1.1", "http/1.1"), ("--http2-prior-knowledge", "HTTP/2", "h2")])
def test_curl_without_tls(plain, flag, protocol, http):
    server = plain.server
    channel = plain.channels("POST", NEW).headers["apns-channel-id"]

    def curl(path, *arguments):
        return drivers.finished(
            [drivers.tool("curl"), "-sSi", flag, "-H", f"authorization: {server.bearer}", *arguments,
             f"http://127.0.0.1:{server.facts['apns_plain'][0]['port']}{path}"], env=clean_environment())

    sent = curl(f"/4/broadcasts/apps/{APP}", "-H", f"apns-channel-id: {channel}", "-H", "apns-push-type: liveactivity",
                "-H", "apns-expiration: 0", "-d", UPDATE.decode())
    assert sent.startswith(f"{protocol} 200") and "\napns-request-id: " in sent, sent
    refused = curl(f"/1/apps/{APP}/channels", "-H", "apns-channel-id: AAAA", "-X", "DELETE")
    assert refused.startswith(f"{protocol} 400") and refused.endswith('\n{"reason":"ChannelNotRegistered"}'), refused
    found = server.pushes(kind="*")[1:]
    assert [(one["kind"], one["connection"]["http"], "not-http2" in one["findings"]) for one in found] == [
        (kind, http, http == "http/1.1") for kind in ("broadcast", "channel")]


@pytest.mark.parametrize(("changes", "expected"), [
    ({"authorization": None}, (403, "MissingProviderToken")),
    ({"authorization": "bearer x.y.z"}, (403, "InvalidProviderToken")),
    ({"apns_request_id": "x"}, (400, "BadMessageId")),
    ({"apns_channel_id": None}, (400, "MissingChannelId")),
    ({"apns_channel_id": "A="}, (400, "BadChannelId")),
    ({"apns_channel_id": "AAAA"}, (400, "ChannelNotRegistered")),
    ({"apns_push_type": None}, (400, "MissingPushType")),
    ({"apns_push_type": "alert"}, (400, "InvalidPushType")),
    ({"apns_expiration": None}, (400, "BadExpirationDate")),
    ({"apns_priority": "7"}, (400, "BadPriority")),
    ({"body": b""}, (400, "PayloadEmpty")),
    ({"body": b"x" * 5121}, (413, "PayloadTooLarge")),
])
def test_http1_rejected_broadcasts(plain, changes, expected):
    channel = plain.channels("POST", NEW).headers["apns-channel-id"]
    rejected = plain.send(changes.get("apns_channel_id", channel), **{
        name: value for name, value in changes.items() if name != "apns_channel_id"})
    assert (rejected.status, json.loads(rejected.content)) == (expected[0], {"reason": expected[1]})
    assert UUID.fullmatch(rejected.headers["apns-request-id"])
    assert plain.send(channel).status == 200, "the connection still serves"


@pytest.mark.parametrize(("app", "method", "body", "expected"), [
    (APP, "POST", b"", (400, "PayloadEmpty")), (APP, "POST", b"{", (400, "BadRequestPayload")),
    (APP, "POST", b'{"push-type":"LiveActivity"}', (400, "MissingChannelQueueSize")),
    (APP, "POST", NEW.replace(b"}", b',"name":"x"}'), (400, "BadRequestParams")),
    (APP, "GET", None, (400, "MissingChannelId")), (APP, "DELETE", None, (400, "MissingChannelId")),
    (APP, "PUT", NEW, (405, "MethodNotAllowed")), (APP + ".voip", "POST", NEW, (400, "TopicDisallowed")),
    ("com.example.plain", "POST", NEW, (400, "FeatureNotEnabled")),
])
def test_http1_rejected_channels(plain, app, method, body, expected):
    plain.app = app
    rejected = plain.channels(method, body)
    assert (rejected.status, json.loads(rejected.content)) == (expected[0], {"reason": expected[1]})
    assert UUID.fullmatch(rejected.headers["apns-request-id"])
    plain.app = APP
    assert plain.channels("GET", what="all-channels").content == b'{"channels":[]}'


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


# The explanations of the finding channel-request-form: of a channel that is created, and of a broadcast with a push type.
FORM_SENTENCES = (
    'the body creates the channel in another form than {"message-storage-policy":1,"push-type":"LiveActivity"}: a policy as a string or '
    'another case of the push type, which rules "strict" reject',
    'apns-push-type is "{}": Apple\'s samples have liveactivity, and rules "strict" reject another case')


@pytest.mark.parametrize("rules", ["apple", "lenient", "strict"])
def test_undocumented_forms(start, rules):
    """The forms in the README of @parse/node-apn and in Apple's texts: the table of RuleModes.md."""
    server = start("--rules", rules)
    with on(server) as channels:
        bodies = NEW.replace(b"1", b'"1"'), NEW.replace(b"LiveActivity", b"liveactivity")
        made = [channels.call("POST", body=body) for body in bodies]
        channel = channels.create()
        sent = [channels.send(channel, apns_push_type=kind) for kind in ("LiveActivity", "Liveactivity")]
        assert channels.send(channel).status == 200
        if rules == "strict":
            assert [reason(response) for response in made + sent] == [
                (400, "BadRequestParams"), *[(400, "InvalidPushType")] * 3]
            assert channels.listed() == [channel]
        else:
            assert [response.status for response in made + sent] == [201, 201, 200, 200]
            for response in made:
                read = channels.call("GET", apns_channel_id=response.header("apns-channel-id"))
                assert json.loads(read.body) == {"message-storage-policy": 1, "push-type": "LiveActivity"}
    found = [item for item in server.api("GET", "/findings", kind="*")["items"] if item["finding"] == "channel-request-form"]
    if rules != "lenient":
        assert [item["count"] for item in found] == ([4] if rules == "apple" else [])
    if rules == "apple":
        created, of_type = FORM_SENTENCES
        assert {record["explanation"] for record in found[0]["records"]} == {
            created, *(of_type.format(kind) for kind in ("LiveActivity", "Liveactivity"))}


def test_a_channel_belongs_to_its_app(server):
    """Another app's channel is not registered, although the credential is valid for both apps."""
    first, second = (f"com.example.b{secrets.token_hex(6)}" for _ in range(2))
    with on(server, first) as own, on(server, second) as other:
        channel = own.create()
        for response in (other.send(channel), *(other.call(method, apns_channel_id=channel) for method in (
                "GET", "DELETE"))):
            assert reason(response) == (400, "ChannelNotRegistered")
        assert (own.listed(), other.listed()) == ([channel], [])
        assert own.send(channel).status == 200


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


def test_the_order_of_priority_lookup_and_expiration(channels):
    """Priority, then the channel, then the expiration, which depends on it."""
    channel, wrong = channels.create(), {"apns_priority": "7", "apns_channel_id": "AAAA", "apns_expiration": "soon"}
    answers = []
    for name, right in (("apns_priority", "10"), ("apns_channel_id", channel), ("apns_expiration", "0")):
        answers.append(reason(channels.send(channel, **wrong)))
        wrong[name] = right
    assert answers == [(400, "BadPriority"), (400, "ChannelNotRegistered"), (400, "BadExpirationDate")]
    assert channels.send(channel, **wrong).status == 200


def test_a_stored_broadcast_expires(start):
    server = start()
    server.api("PUT", "/fixtures", {
        "apps": [{"bundle_id": APP, "broadcast": True}],
        "devices": [{"id": name, "state": "offline", "apps": [{"bundle_id": APP, "environment": "sandbox"}]}
                    for name in ("anna", "bert")],
        "channels": [{"bundle_id": APP, "environment": "sandbox", "id": "dHN0", "message_storage_policy": 1}]})
    for name in ("anna", "bert"):
        server.api("POST", f"/devices/{name}/subscriptions", {"channel": "dHN0"})
    server.api("PUT", "/clock", {"mode": "frozen"})
    now = int(datetime.datetime.fromisoformat(server.api("GET", "/clock")["now"]).timestamp())
    with on(server) as channels:
        assert channels.send("dHN0", apns_expiration=str(now + 60)).status == 200
    (record,) = server.pushes(kind="broadcast")

    def states(device):
        events = server.api("GET", f"/pushes/{record['seq']}/delivery")["events"]
        return [event["state"] for event in events if event.get("device") == device]

    server.api("POST", "/clock/advance", {"by": "50s"})
    server.api("POST", "/devices/bert/online")
    server.api("POST", "/clock/advance", {"by": "10s"})
    assert states("anna") == ["Stored - Device Offline", "Discarded - Expired"]
    assert states("bert") == ["Stored - Device Offline", "Delivered to Device (From Storage)"]
    server.api("POST", "/devices/anna/online")
    assert states("anna")[-1] == "Discarded - Expired"
    assert server.api("GET", "/devices/anna/notifications")["items"] == []


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

"""The smallest input that causes each finding, as the page Findings.md names it."""

import json
import re
import time
import uuid

import httpx
import pytest

from support import tokens
from support.documents import PAGES
from support.drivers import Push
from support.faults import line, new_device
from support.naive import Trusting
from support.server import wait_until
from support.wire import connect, push_headers

APP = "com.example.app"
PAUSE = 0.15  # seconds; longer than the interval that counts as an immediate retry
CROSSING = 0.6  # seconds after which a stream can no longer have crossed a GOAWAY
INPUTS = {}  # finding: (what the page says, the flags of the server, the function that sends it)


def smallest(finding, text, *flags, **settings):
    """Registers an input: its text on the page, and flags of the server and settings of `apns:` that it needs."""

    def register(function):
        INPUTS[finding] = text, flags, settings, function
        return function

    return register


class Provider:
    """A client with a low-level connection to a server in which an app and a device are registered."""

    def __init__(self, server):
        self.server, self.device = server, new_device()
        server.api("PUT", "/fixtures", {
            "apps": [{"bundle_id": APP, "team_id": server.team_id, "broadcast": True}],
            "devices": [{"id": "phone", "apps": [{"bundle_id": APP, "tokens": {"alert": self.device}}]}]})

    def connect(self, **more):
        return connect(self.server, **more)

    def push(self, wire, body=b'{"aps":{"alert":"hello"}}', **changes):
        """Sends a push and waits for its response; returns its status, or None."""
        return wire.push(push_headers(self.server, self.device, **changes), body).status

    def pushes(self, count, *, pause=0, **changes):
        """Sends equal pushes on one connection."""
        with self.connect() as wire:
            for number in range(count):
                time.sleep(pause if number else 0)
                self.push(wire, **changes)

    def fail(self, times):
        """Lets the next pushes be answered with 503."""
        self.server.api("POST", "/rules", {
            "name": "down", "trigger": {"times": times}, "do": {"respond": {"status": 503}}})

    def bearer(self, age):
        """Returns the `authorization` of a token that is `age` seconds old."""
        return "bearer " + self.server.token(issued_at=int(time.time()) - age)

    def found(self):
        return {item["finding"] for item in self.server.api("GET", "/findings", kind="*")["items"]}


# Retries

@smallest("retried-permanent", "the same push twice, without `apns-topic`")
def retried_permanent(provider):
    provider.pushes(2, apns_topic=None)


@smallest("retried-410", "the same push twice, to a token with the state `unregistered` (`apns-mock device unregister`)")
def retried_410(provider):
    provider.server.api("PUT", f"/devices/{provider.device}", {"topic": APP, "state": "unregistered"})
    provider.pushes(2)


@smallest("hot-retry", "the same push twice, the first one answered with 503 and `retry-after: 5`")
def hot_retry(provider):
    provider.server.api("POST", "/rules", {
        "name": "down", "trigger": {"times": 1},
        "do": {"respond": {"status": 503, "headers": {"retry-after": "5"}}}})
    provider.pushes(2)


@smallest("no-backoff", "the same push four times, answered with 503, with three delays of which none is longer than the first")
def no_backoff(provider):
    provider.fail(4)
    with provider.connect() as wire:
        for pause in (0, 1, 0.3, 0.3):
            time.sleep(pause)
            provider.push(wire)


@smallest("abandoned", "a push that is answered with 503, and a minute by the server's clock without another one")
def abandoned(provider):
    provider.fail(1)
    provider.pushes(1)
    provider.server.api("POST", "/clock/advance", {"by": "61s"})


@smallest("duplicate", "a push whose response is lost, and the same push with another `apns-id`")
def duplicate(provider):
    provider.server.api("POST", "/rules", {
        "name": "lost", "at": "response", "trigger": {"times": 1}, "do": {"lose_answer": {"end_with": "reset_stream"}}})
    provider.pushes(2, pause=PAUSE)


@smallest("blind-resend", "the same push twice with one `apns-id`, the second one after the response to the first")
def blind_resend(provider):
    provider.pushes(2, pause=PAUSE, apns_id=str(uuid.uuid4()))


# Provider tokens

@smallest("jwt-churn", "two pushes on a connection, with provider tokens of different `iat`")
def jwt_churn(provider):
    with provider.connect() as wire:
        for age in (10, 0):
            provider.push(wire, authorization=provider.bearer(age))


@smallest("jwt-stale", "two pushes with a provider token that is more than an hour old, 100 ms apart")
def jwt_stale(provider):
    expired = provider.bearer(3700)
    with provider.connect() as wire:
        for text in (b"1", b"2"):
            provider.push(wire, b'{"aps":{"alert":"%s"}}' % text, authorization=expired)
            time.sleep(PAUSE)


@smallest(
    "token-per-process", "a push on each of two connections, with provider tokens of different `iat`, and 100 ms later another "
    "on the first")
def token_per_process(provider):
    with provider.connect() as one, provider.connect() as other:
        provider.push(one, authorization=(first := provider.bearer(60)))
        provider.push(other, authorization=provider.bearer(0))
        time.sleep(2 * PAUSE)
        provider.push(one, authorization=first)


@smallest("jwt-alg", "a push with a provider token whose `alg` is ES512, over a P-256 key")
def jwt_alg(provider):
    server = provider.server
    token = tokens.es512_token(key=server.key, key_id=server.key_id, team_id=server.team_id)
    provider.pushes(1, authorization=f"bearer {token}")


@smallest("ignored-token", "a push with `authorization` on a connection with a client certificate")
def ignored_token(provider):
    with provider.connect(certificate=provider.certificate) as wire:
        provider.push(wire)


# Connections

@smallest("after-goaway", "a request half a second after GOAWAY, on the same connection")
def after_goaway(provider):
    with provider.connect() as wire:
        provider.push(wire)
        provider.server.api("POST", "/connections/goaway", {"all": True, "close_after": "never"})
        wire.goaway()
        time.sleep(CROSSING)
        wire.open(push_headers(provider.server, provider.device), b"{}")
        wire.ping()


@smallest("excess-streams", "two requests at once on a new connection, whose first limit is one stream")
def excess_streams(provider):
    with provider.connect() as wire:
        wire.settings()
        wire.ping()  # The limit has been acknowledged.
        for _ in range(2):
            wire.open(push_headers(provider.server, provider.device), end_stream=False)
        wire.goaway()


@smallest("window-never-opened", "rejected pushes with 65,536 bytes of responses on a connection, and no WINDOW_UPDATE")
def window_never_opened(provider):
    rejected = new_device()
    provider.server.api("PUT", f"/devices/{rejected}", {"state": "unregistered"})
    with provider.connect() as wire:
        provider.push(wire)
        headers = push_headers(provider.server, rejected)
        open_streams = []
        for _ in range(30):
            requests = [wire.request_frames(headers, b"{}") for _ in range(100)]
            wire.send(*(frame for _, frames in requests for frame in frames))
            wire.ping()
            wire.ping()
            open_streams += [stream for stream, _ in requests if not wire.responses[stream].finished]
            if open_streams:
                break
        assert open_streams


@smallest("connection-churn", "five connections within a minute, each with one push and closed by the client")
def connection_churn(provider):
    for _ in range(5):
        with line(provider.server) as wire:
            provider.push(wire, authorization=provider.server.bearer)


@smallest("malformed-request", "a header field with a capital letter")
def malformed_request(provider):
    with provider.connect() as wire:
        wire.push(push_headers(provider.server, provider.device, ("X-A", "1")))


@smallest("trusted-anything", "a push under the profile `tls-bad-certificate`")
def trusted_anything(provider):
    provider.server.api("PUT", "/profile", {"name": "tls-bad-certificate"})
    trusting = Trusting(provider.server)
    trusting.run([Push(provider.device, {"aps": {"alert": "hello"}, "n": 0})])
    trusting.client.close()


@smallest("not-http2", "a push over HTTP/1.1 to a cleartext listener", "--apns-plain", "127.0.0.1:0")
def not_http2(provider):
    port = json.loads(provider.server.port_file.read_text())["apns_plain"][0]["port"]
    headers = {name: value for name, value in push_headers(provider.server, provider.device) if name[0] != ":"}
    with httpx.Client(trust_env=False) as client:
        client.post(f"http://127.0.0.1:{port}/3/device/{provider.device}", headers=headers, content=b'{"aps":{"alert":"hello"}}')


# The push itself

@smallest("near-limit", "a payload of 3,687 bytes")
def near_limit(provider):
    start, end = b'{"aps":{"alert":"', b'"}}'
    body = start + b"x" * (3687 - len(start) - len(end)) + end
    provider.device = new_device()
    with provider.connect() as wire:
        provider.push(wire, body[:len(start)] + body[len(start) + 1:])
        assert provider.found() == set()
        provider.push(wire, body)


@smallest("would-not-show", "the payload `{}`")
def would_not_show(provider):
    with provider.connect() as wire:
        provider.push(wire, b"{}")


@smallest("missing-push-type", "a push without `apns-push-type`")
def missing_push_type(provider):
    provider.pushes(1, apns_push_type=None)


@smallest("past-expiration", "`apns-expiration: 1`")
def past_expiration(provider):
    provider.pushes(1, apns_expiration="1")


@smallest("expiration-in-milliseconds", "`apns-expiration` with the present time in milliseconds")
def expiration_in_milliseconds(provider):
    provider.pushes(1, apns_expiration=str(int(time.time() * 1000)))


@smallest("probable-mistake", "the header field `apns-expiry`")
def probable_mistake(provider):
    provider.pushes(1, apns_expiry="0")


# Devices

@smallest("not-stored", "`apns-expiration: 0` to a device that is offline")
def not_stored(provider):
    provider.server.api("POST", "/devices/phone/offline")
    provider.pushes(1, apns_expiration="0")


@smallest("overwritten-in-storage", "two pushes to a device that is offline")
def overwritten_in_storage(provider):
    provider.server.api("POST", "/devices/phone/offline")
    with provider.connect() as wire:
        for text in (b"1", b"2"):
            provider.push(wire, b'{"aps":{"alert":"%s"}}' % text)


@smallest("overwritten-before-ack", "two pushes to a device within a second, with `online_queue: 1`", online_queue=1)
def overwritten_before_ack(provider):
    provider.server.api("PUT", "/clock", {"mode": "frozen"})
    with provider.connect() as wire:
        for text in (b"1", b"2"):
            provider.push(wire, b'{"aps":{"alert":"%s"}}' % text)


@smallest("background-budget", "two background pushes within an hour, with `background_budget: 1/1h`", background_budget="1/1h")
def background_budget(provider):
    with provider.connect() as wire:
        for text in (b"1", b"2"):
            body = b'{"aps":{"content-available":1},"n":%s}' % text
            provider.push(wire, body, apns_push_type="background", apns_priority="5")


# Channels

def channel_request(provider, wire, path, body, **changes):
    headers = push_headers(
        provider.server, "", path_=path, apns_topic=None, **{"apns_push_type": None, **changes})
    return wire.push(headers, body)


@smallest("channel-request-form", "a channel with `\"message-storage-policy\": \"1\"`")
def channel_request_form(provider):
    with provider.connect() as wire:
        body = b'{"message-storage-policy":"1","push-type":"LiveActivity"}'
        assert channel_request(provider, wire, f"/1/apps/{APP}/channels", body).status == 201


@smallest("broadcast-without-expiration", "a broadcast without `apns-expiration`")
def broadcast_without_expiration(provider):
    with provider.connect() as wire:
        body = b'{"message-storage-policy":1,"push-type":"LiveActivity"}'
        channel = channel_request(provider, wire, f"/1/apps/{APP}/channels", body).header("apns-channel-id")
        body = b'{"aps":{"timestamp":%d,"event":"update","content-state":{}}}' % time.time()
        response = channel_request(
            provider, wire, f"/4/broadcasts/apps/{APP}", body, apns_channel_id=channel, apns_push_type="liveactivity")
        assert response.status == 400


@pytest.mark.parametrize("finding", INPUTS)
def test_the_smallest_input_causes_the_finding(start, tmp_path, certificate, finding):
    _, flags, settings, send = INPUTS[finding]
    if settings:
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"apns": settings}))
        flags += "--config", config
    provider = Provider(start(*flags))
    provider.certificate = certificate
    assert provider.found() == set()
    send(provider)
    # Some are known only after the end of a connection.
    wait_until(lambda: finding in provider.found(), lambda: f"{finding}, but {provider.found()}")
    assert provider.found() - ALSO.get(finding, set()) == {finding}


#: What an input causes besides: each response that waits is the same push again.
ALSO = {"window-never-opened": {"retried-410"}}


def test_the_page_has_all_inputs():
    page = (PAGES / "Findings.md").read_text()
    _, text = page.split("## Smallest inputs\n")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", text.split("\n## ")[0], re.MULTILINE))
    assert rows == {finding: text for finding, (text, *_) in INPUTS.items()}
    kinds = re.findall(r"^\| `([a-z0-9-]+)` \|", page.split("## The kinds\n")[1].split("\n## ")[0].split("### ")[0], re.MULTILINE)
    assert sorted(kinds) == sorted(rows)

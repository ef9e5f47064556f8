"""Behavior of real provider libraries that breaks other APNs replacements: thirteen cases, with the tests named
after them.

If a library is not available here, its bytes are reproduced frame by frame; test_real_clients.py uses the libraries
themselves.
"""

import json
import socket
import ssl
import uuid

import pytest
from hyperframe.frame import SettingsFrame

from support import drivers, tokens
from support.certificates import provider_certificate
from support.drivers import Push
from support.server import clean_environment
from support.way import APPLE, Way
from support.wire import NO_ERROR, REFUSED_STREAM, client_context, connect, push_headers, tls_socket

ALERT = {"aps": {"alert": "hello"}}
BODY = json.dumps(ALERT).encode()
TLS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


# 1. Pushy, aioapns, apnotic and rpush open TLS without ALPN and send the HTTP/2 preface at once.

@TLS
def test_trap_01_no_alpn(server, device, version):
    with connect(server, version=version, alpn=()) as wire:
        assert wire.sock.selected_alpn_protocol() is None
        assert wire.push(push_headers(server, device)).status == 200


# 2. The first SETTINGS allows one stream; a client may open hundreds before it has read that, and they must be
# answered.

@pytest.mark.parametrize("count", [1, 100, 200, 1000], ids=["apns4erl, apnotic", "rpush", "node-apn", "aioapns"])
def test_trap_02_streams_opened_before_the_limit_was_acknowledged_are_served(server, device, count):
    with connect(server, acknowledge=False) as wire:
        requests = [wire.request_frames(push_headers(server, device), b"{}") for _ in range(count)]
        wire.send(*(frame for _, frames in requests for frame in frames))
        assert [wire.response(stream).status for stream, _ in requests] == [200] * count
        wire.send(SettingsFrame(flags=["ACK"]), SettingsFrame(flags=["ACK"]))
        assert wire.push(push_headers(server, device)).status == 200
    assert server.api("GET", "/pushes", device_token=device, limit=1)["matched"] == count + 1


def test_trap_02_one_stream_too_many_after_the_acknowledgement_ends_the_connection(server, device):
    with connect(server) as wire:
        wire.settings()
        wire.ping()  # its ACK proves that the SETTINGS ACK sent before it has been read
        wire.open(push_headers(server, device), end_stream=False)
        wire.ping()
        wire.open(push_headers(server, device), end_stream=False)
        goaway = wire.goaway()
        assert goaway.error_code == REFUSED_STREAM
        assert "stream" in goaway.additional_data.decode("ascii").lower()
        wire.read_to_end()
        assert wire.closed


@pytest.mark.parametrize("mode", ["token", "certificate"])
def test_trap_02_node_opens_two_hundred_streams_at_once(server, certificate, device, mode):
    """node-apn uses Node's http2."""
    push = Push(device, ALERT, certificate=certificate if mode == "certificate" else None)
    assert drivers.node(server, push, Way(streams=200)).statuses == [200] * 200
    assert server.api("GET", "/pushes", device_token=device, accepted="true", limit=1)["matched"] == 200


def test_trap_02_h2load_opens_a_hundred_streams_on_each_of_eight_connections(server, device):
    """With a token: h2load does not support client certificates."""
    payload = server.directory / "payload.json"
    payload.write_text(json.dumps(ALERT))
    headers = [f"--header={name}: {value}" for name, value in Push(device, ALERT).headers(server).items()]
    text = drivers.finished(
        [drivers.tool("h2load"), "--requests=8000", "--clients=8", "--max-concurrent-streams=100", f"--data={payload}",
         *headers, f"{server.url}/3/device/{device}"], env=clean_environment(SSL_CERT_FILE=server.ca))
    assert "8000 succeeded, 0 failed" in text and "8000 2xx" in text, text
    assert server.api("GET", "/pushes", device_token=device, accepted="true", limit=1)["matched"] == 8000


# 3. a2, hapns, fitomad and ApnsPHP write `Bearer`.

@pytest.mark.parametrize("scheme", ["bearer", "Bearer"])
def test_trap_03_either_spelling_of_bearer(server, device, scheme):
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization=f"{scheme} {server.token()}")).status == 200


# 4. JSON Web Tokens as the libraries write them, and the rules under which they are valid.

TOKENS = [
    ("extra header typ (PyJWT)", lambda facts: tokens.provider_token(**facts), "apple strict lenient"),
    ("extra claims", lambda facts: tokens.provider_token(**facts, claims={"aud": "x"}), "apple strict lenient"),
    ("DER signature (Pushy, apnotic, a2)", lambda facts: tokens.der_signed_token(**facts), "apple lenient"),
    ("standard base64 with padding (a2, dotAPNS, CorePush)", lambda facts: tokens.standard_base64_token(**facts),
     "apple lenient"),
    ("iat as text (APNSwift, kalyke)", lambda facts: tokens.provider_token(**facts, issued_at=str(tokens.now())),
     "apple lenient"),
    ("iat with a fraction (PyAPNs2)", lambda facts: tokens.provider_token(**facts, issued_at=tokens.now() + 0.5),
     "apple lenient"),
    ("ES512 over the P-256 key (pushok)", lambda facts: tokens.es512_token(**facts), "apple lenient"),
]


@pytest.mark.parametrize("rules", ["apple", "strict", "lenient"])
@pytest.mark.parametrize(("make", "accepting"), [row[1:] for row in TOKENS], ids=[row[0] for row in TOKENS])
def test_trap_04_tokens_in_the_wild(server, start, device, make, accepting, rules):
    one = server if rules == "apple" else start("--rules", rules)
    token = make({"key": one.key, "key_id": one.key_id, "team_id": one.team_id})
    with connect(one) as wire:
        response = wire.push(push_headers(one, device, authorization=f"bearer {token}"))
    expected = (200, []) if rules in accepting.split() else (403, [b'{"reason":"InvalidProviderToken"}'])
    assert (response.status, response.data) == expected


# 5. aioapns finds its request by the response's `apns-id` and hangs otherwise.

@pytest.mark.parametrize("changes", [{}, {"apns_priority": "7"}, {"authorization": None}],
                         ids=["accepted", "rejected", "forbidden"])
@pytest.mark.parametrize("spelling", [str.lower, str.upper, lambda text: text[:18].upper() + text[18:]],
                         ids=["lower", "upper", "mixed"])
def test_trap_05_an_id_is_returned_byte_for_byte(server, device, changes, spelling):
    apns_id = spelling(str(uuid.uuid4()))
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, apns_id=apns_id, **changes)).header("apns-id") == apns_id
    assert server.record(device)["apns"]["id"] == apns_id
    assert len(server.pushes(apns_id=apns_id.swapcase())) == 1, "ids are compared without case"


@pytest.mark.parametrize("changes", [{}, {"apns_priority": "7"}], ids=["accepted", "rejected"])
def test_trap_05_a_generated_id_is_upper_case(server, device, changes):
    with connect(server) as wire:
        apns_id = wire.push(push_headers(server, device, **changes)).header("apns-id")
    assert uuid.UUID(apns_id) and apns_id == apns_id.upper()


# 6. Pushy drops a response whose body is not one DATA frame with END_STREAM; aioapns and rpush parse each chunk.

def test_trap_06_an_error_body_is_one_data_frame(server, device):
    with connect(server) as wire:
        response = wire.push(push_headers(server, device, apns_priority="7"))
    assert response.names == [":status", "apns-id"]
    assert (response.ended_by, response.data) == ("DATA", [b'{"reason":"BadPriority"}'])


# 7. PyAPNs2 crashes on a 410 without `timestamp`.

@pytest.mark.parametrize(("state", "reason"), [("unregistered", "Unregistered"), ("expired", "ExpiredToken")])
def test_trap_07_a_410_has_a_timestamp_in_whole_milliseconds(server, device, state, reason):
    server.api("PUT", f"/devices/{device}", {"state": state, "since": "2016-02-08T22:26:55.990Z"})
    with connect(server) as wire:
        response = wire.push(push_headers(server, device))
    assert (response.status, response.data) == (410, [b'{"reason":"%s","timestamp":1454970415990}' % reason.encode()])


# 8. The response to an accepted push is HEADERS alone.

def test_trap_08_a_200_has_its_id_no_body_and_ends_with_its_headers(server, device):
    with connect(server) as wire:
        response = wire.push(push_headers(server, device))
    assert response.names == [":status", "apns-id", "apns-unique-id"]
    assert (response.status, response.ended_by, response.data, response.reset) == (200, "HEADERS", [], None)


# 9. Requests with unusual or without optional header fields.

SPARE = [
    ("aioapns: host and no :authority", [("host", APPLE)], {"authority_": None}),
    ("node-apn: :authority without a port", [], {"authority_": "localhost"}),
    ("content-length and user-agent", [("content-length", str(len(BODY))), ("user-agent", "provider/1.0")], {}),
]


@pytest.mark.parametrize(("extra", "changes"), [row[1:] for row in SPARE], ids=[row[0] for row in SPARE])
def test_trap_09_headers_that_are_not_there(server, device, extra, changes):
    with connect(server) as wire:
        response = wire.push(push_headers(server, device, *extra, **changes), BODY)
    assert response.status == 200


@TLS
def test_trap_09_no_server_name_in_tls(server, device, version):
    context = client_context(server.ca, version=version)
    context.check_hostname = False
    with connect(server, context=context, name=None) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    assert server.record(device)["connection"]["sni"] is None


def test_trap_09_pushys_first_stream_is_three(server, device):
    with connect(server) as wire:
        wire.next_stream = 3
        assert wire.push(push_headers(server, device)).status == 200


PUSHY_HEADERS = [
    "apns-expiration", "apns-collapse-id", "apns-priority", "apns-push-type", "apns-topic", "apns-id", "authorization"]


@pytest.mark.parametrize("omitted", [
    (), ("apns-collapse-id", "apns-id"), ("apns-collapse-id", "apns-priority", "apns-push-type", "apns-id")],
    ids=["everything", "the usual", "nothing optional"])
def test_trap_09_pushys_request(server, device, omitted):
    """Pushy: no ALPN, stream 3 first, `:authority` before `:path` and `:scheme`, an expiration always, the provider token
    last and signed in DER, the apns-id in lower case, and no content-length, content-type or user-agent.
    """
    apns_id = str(uuid.uuid4())
    bearer = "bearer " + tokens.der_signed_token(key=server.key, key_id=server.key_id, team_id=server.team_id)
    values = dict(zip(PUSHY_HEADERS, ["0", "score", "10", "alert", "com.example.app", apns_id, bearer]))
    fields = [(name, value) for name, value in values.items() if name not in omitted]

    def request(path):
        return [(":method", "POST"), (":authority", "localhost"), (":path", path), (":scheme", "https"), *fields]

    with connect(server, alpn=()) as wire:
        wire.next_stream = 3
        for stream in (3, 5):
            response = wire.push(request(f"/3/device/{device}"), BODY)
            assert (response.status, response.ended_by) == (200, "HEADERS")
            returned = response.header("apns-id")
            assert uuid.UUID(returned) and (returned == apns_id or "apns-id" in omitted)
            assert uuid.UUID(response.header("apns-unique-id"))
            assert wire.responses[stream] is response
        rejected = wire.push(request("/3/device/zz"), BODY)
        assert rejected.status == 400 and rejected.data == [b'{"reason":"BadDeviceToken"}']
    record = server.pushes(device_token=device)[0]
    shown = [name for name, _ in record["request"]["headers"] if not name.startswith(":")]
    assert shown == [name for name, _ in fields], "in the order in which they were sent"
    assert record["apns"]["expiration"] == "1970-01-01T00:00:00.000Z" and record["request"]["payload"] == ALERT
    assert record["apns"]["collapse_id"] == (None if omitted else "score")


# 10. apns-* headers that libraries send or omit.

def test_trap_10_priority_one_no_push_type_and_expiration_zero(server, device):
    """hapns, PyAPNs2, Pushy and rpush, in this order."""
    with connect(server) as wire:
        for changes in ({"apns_priority": "1"}, {"apns_push_type": None}, {"apns_expiration": "0"}):
            assert wire.push(push_headers(server, device, **changes)).status == 200, changes
    priority, push_type, expiration = (record["apns"] for record in server.pushes(device_token=device))
    assert (priority["priority"], push_type["push_type"], expiration["expiration"]) == (
        1, None, "1970-01-01T00:00:00.000Z")


def test_trap_10_no_apns_header_at_all(server, tmp_path, device):
    """buford, with a certificate for one topic."""
    pair = provider_certificate(server.certs, tmp_path)
    bare = {"authorization": None, "apns_topic": None, "apns_push_type": None}
    with connect(server, certificate=pair) as wire:
        assert wire.push(push_headers(server, device, **bare)).status == 200
    assert server.record(device)["apns"]["topic"] == "com.example.app"


# 11. Device tokens have no fixed length.

@pytest.mark.parametrize("length", [64, 108, 160, 200, 400])
def test_trap_11_device_tokens_have_no_fixed_length_and_no_case(server, device, length):
    token = (device * 7)[:length]
    with connect(server) as wire:
        assert wire.push(push_headers(server, token.upper())).status == 200
    assert server.record(token)["request"]["device_token"] == token


# 12. After a GOAWAY aioapns fails, and apnotic waits for its timeout, until the TCP connection is closed.

@pytest.fixture
def soon_idle(start, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("apns:\n  idle_timeout: 1s\n")
    return start("--config", config)


def test_trap_12_the_connection_is_closed_after_a_goaway(soon_idle, device):
    with connect(soon_idle) as wire:
        assert wire.push(push_headers(soon_idle, device)).status == 200
        goaway = wire.goaway()
        assert (goaway.error_code, goaway.last_stream_id) == (NO_ERROR, 1)
        assert goaway.additional_data == b'{"reason":"IdleTimeout"}'
        wire.read_to_end()
        assert wire.closed


def test_trap_12_aioapns_pushes_again_after_a_goaway(soon_idle, device):
    reply = drivers.ALL["aioapns"](soon_idle, Push(device, ALERT, apns_id=str(uuid.uuid4())), Way(connections=2))
    assert (reply.status, reply.alpn) == (200, None)
    records = soon_idle.pushes(device_token=device, accepted="true")
    assert len({record["connection"]["id"] for record in records}) == 2


# 13. Clients that connect to an IP address or to Apple's host names.

@pytest.mark.parametrize("name", [
    "localhost", "127.0.0.1", "::1", "apns-mock", "host.docker.internal", "api.push.apple.com",
    "api.sandbox.push.apple.com", "api.development.push.apple.com", "api-broadcast.push.apple.com",
    "api-manage-broadcast.sandbox.push.apple.com", socket.gethostname(),
])
def test_trap_13_the_certificate_bears_every_name_clients_use(server, name):
    with tls_socket(server, name=name) as sock:
        assert sock.getpeercert()["subjectAltName"]


@pytest.mark.parametrize("host", ["api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com"])
def test_trap_13_a_client_that_knows_only_apples_name(server, device, host):
    reply = drivers.curl(
        server, Push(device, ALERT), Way(host=host, port=443), "--connect-to", f"{host}:443:127.0.0.1:{server.port}")
    assert reply.status == 200
    assert server.record(device)["connection"]["sni"] == host

"""Every client delivers an alert, a background push and rejected ones, and the inbox has them as they were sent."""

import pathlib
import uuid

import pytest

from support import drivers
from support.drivers import Push
from support.server import clean_environment

ALERT = {"aps": {"alert": {"title": "Grüße", "body": "It has shipped"}, "sound": "default"}, "order": 17}
BACKGROUND = {"aps": {"content-available": 1}, "sync": "inbox"}

every_client = pytest.mark.parametrize("client", drivers.ALL.values(), ids=drivers.ALL.keys())


@every_client
@pytest.mark.parametrize(
    ("payload", "push_type", "priority"),
    [(ALERT, "alert", 10), (BACKGROUND, "background", 5)], ids=["alert", "background"])
def test_an_accepted_push_is_answered_and_found(server, device, client, payload, push_type, priority):
    apns_id = str(uuid.uuid4())
    reply = client(server, Push(device, payload, push_type=push_type, priority=priority, apns_id=apns_id))
    assert (reply.status, reply.reason, reply.apns_id) == (200, None, apns_id)

    record = server.record(device)
    assert record["accepted"] is True
    assert record["outcome"] == "accepted"
    assert record["attempt"] == 1
    assert record["request"]["method"] == "POST"
    assert record["request"]["path"] == f"/3/device/{device}"
    assert record["request"]["device_token"] == device
    assert record["request"]["payload"] == payload
    assert record["request"]["payload_error"] is None
    assert record["request"]["size"]["limit"] == 4096
    assert record["apns"]["id"] == apns_id
    assert record["apns"]["id_origin"] == "client"
    assert record["apns"]["topic"] == "com.example.app"
    assert record["apns"]["push_type"] == push_type
    assert record["apns"]["priority"] == priority
    assert record["apns"]["collapse_id"] is None
    assert record["auth"]["kind"] == "token"
    assert record["auth"]["team_id"] == server.team_id
    assert record["auth"]["key_id"] == server.key_id
    assert record["auth"]["signature"] == "valid"
    assert record["connection"]["tls"] == "TLSv1.3"
    assert record["connection"]["sni"] == "localhost"
    assert record["verdict"]["status"] == record["served"]["status"] == 200
    assert record["verdict"]["reason"] is record["served"]["reason"] is None
    assert all(check["ok"] for check in record["verdict"]["checks"])


@every_client
def test_a_push_the_rules_reject_is_answered_and_found(server, device, client):
    apns_id = str(uuid.uuid4())
    reply = client(server, Push(device, ALERT, apns_id=apns_id, collapse_id="c" * 65))
    assert (reply.status, reply.reason, reply.apns_id) == (400, "BadCollapseId", apns_id)

    record = server.record(device)
    assert record["accepted"] is False
    assert record["outcome"] == "rejected"
    assert record["apns"]["id"] == apns_id
    assert record["request"]["payload"] == ALERT
    assert (record["served"]["status"], record["served"]["reason"]) == (400, "BadCollapseId")
    assert (record["verdict"]["status"], record["verdict"]["reason"]) == (400, "BadCollapseId")
    assert [check["ok"] for check in record["verdict"]["checks"]][-1] is False


@every_client
def test_a_dead_device_is_reported_with_its_time(server, device, client):
    server.api("PUT", f"/devices/{device}", {"state": "unregistered", "since": "2026-01-02T03:04:05.678Z"})
    reply = client(server, Push(device, ALERT, apns_id=str(uuid.uuid4())))
    assert (reply.status, reply.reason, reply.timestamp) == (410, "Unregistered", 1767323045678)
    assert server.record(device)["served"]["reason"] == "Unregistered"


@every_client
def test_a_provider_certificate_is_enough(server, device, client):
    folder = pathlib.Path(server.certs)
    certificate = (folder / "client.pem", folder / "client-key.pem")
    reply = client(server, Push(device, ALERT, apns_id=str(uuid.uuid4()), certificate=certificate))
    assert (reply.status, reply.reason) == (200, None)

    record = server.record(device)
    assert record["accepted"] is True
    assert record["auth"]["kind"] == "certificate"
    assert record["apns"]["topic"] == "com.example.app"


@pytest.mark.parametrize("host", ["api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com"])
def test_a_client_that_cannot_be_pointed_elsewhere_finds_apples_names(server, device, host):
    class Elsewhere:
        url = f"https://{host}:443"
        ca, bearer = server.ca, server.bearer

    reply = drivers.curl(Elsewhere, Push(device, ALERT), "--connect-to", f"{host}:443:127.0.0.1:{server.port}")
    assert reply.status == 200
    assert server.record(device)["connection"]["sni"] == host


@pytest.mark.parametrize("flag", ["--tlsv1.2", "--tlsv1.3"])
def test_curl_speaks_either_version_of_tls(server, device, flag):
    assert drivers.curl(server, Push(device, ALERT), flag, "--tls-max", flag.removeprefix("--tlsv")).status == 200
    assert server.record(device)["connection"]["tls"] == "TLSv" + flag.removeprefix("--tlsv")


def test_a_client_without_alpn_is_served(server, device):
    """aioapns, Pushy, apnotic and rpush offer no ALPN; here curl, so that TLS is not Python's."""
    assert drivers.curl(server, Push(device, ALERT), "--no-alpn", "--http2-prior-knowledge").status == 200
    assert server.record(device)["accepted"] is True


def test_eight_connections_with_a_hundred_streams_each(server, device):
    """h2load opens its hundred streams before it has read that one is allowed."""
    payload = server.directory / "payload.json"
    payload.write_text(Push(device, ALERT).body)
    headers = [f"--header={name}: {value}" for name, value in Push(device, ALERT).headers(server).items()]
    text = drivers.finished(
        [drivers.tool("h2load"), "--requests=8000", "--clients=8", "--max-concurrent-streams=100", f"--data={payload}",
         *headers, f"{server.url}/3/device/{device}"], env=clean_environment(SSL_CERT_FILE=server.ca))
    assert "8000 succeeded, 0 failed" in text and "8000 2xx" in text, text
    assert server.api("GET", "/pushes", device_token=device, accepted="true", limit=1)["matched"] == 8000

"""Every client delivers an alert, a background push and rejected ones, and the inbox has them as they were sent; then
each goes every way that it can."""

import uuid

import pytest

from support import drivers
from support.drivers import Push
from support.way import APPLE, Way

ALERT = {"aps": {"alert": {"title": "Grüße", "body": "It has shipped"}, "sound": "default"}, "order": 17}
BACKGROUND = {"aps": {"content-available": 1}, "sync": "inbox"}

every_client = pytest.mark.parametrize("client", drivers.ALL)


def pushed(client, server, push):
    """The reply of a client, which must name the push as it was named."""
    reply = drivers.ALL[client](server, push)
    assert reply.apns_id == push.apns_id
    return reply


@every_client
@pytest.mark.parametrize(
    ("payload", "push_type", "priority"),
    [(ALERT, "alert", 10), (BACKGROUND, "background", 5)], ids=["alert", "background"])
def test_an_accepted_push_is_answered_and_found(server_for, device, client, payload, push_type, priority):
    apns_id = str(uuid.uuid4())
    server = server_for(client)
    reply = pushed(client, server, Push(device, payload, push_type=push_type, priority=priority, apns_id=apns_id))
    assert (reply.status, reply.reason) == (200, None)

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
    if client in drivers.NAMELESS:
        assert record["apns"]["id_origin"] == "server"
    else:
        assert (record["apns"]["id"], record["apns"]["id_origin"]) == (apns_id, "client")
    assert record["apns"]["topic"] == "com.example.app"
    assert record["apns"]["push_type"] == push_type
    assert record["apns"]["priority"] == priority
    assert record["apns"]["collapse_id"] is None
    assert record["auth"]["kind"] == "token"
    assert record["auth"]["team_id"] == server.team_id
    assert record["auth"]["key_id"] == server.key_id
    assert record["auth"]["signature"] == "valid"
    assert record["connection"]["tls"] == "TLSv1.3"
    assert record["connection"]["sni"] == server.way.host
    assert record["verdict"]["status"] == record["served"]["status"] == 200
    assert record["verdict"]["reason"] is record["served"]["reason"] is None
    assert all(check["ok"] for check in record["verdict"]["checks"])


@every_client
def test_a_push_the_rules_reject_is_answered_and_found(server_for, device, client):
    apns_id = str(uuid.uuid4())
    server = server_for(client)
    reply = pushed(client, server, Push(device, ALERT, apns_id=apns_id, collapse_id="c" * 65))
    assert (reply.status, reply.reason) == (400, "BadCollapseId")

    record = server.record(device)
    assert record["accepted"] is False
    assert record["outcome"] == "rejected"
    assert client in drivers.NAMELESS or record["apns"]["id"] == apns_id
    assert record["request"]["payload"] == ALERT
    assert (record["served"]["status"], record["served"]["reason"]) == (400, "BadCollapseId")
    assert (record["verdict"]["status"], record["verdict"]["reason"]) == (400, "BadCollapseId")
    assert [check["ok"] for check in record["verdict"]["checks"]][-1] is False


@every_client
def test_a_dead_device_is_reported_with_its_time(server_for, device, client):
    server = server_for(client)
    server.api("PUT", f"/devices/{device}", {"state": "unregistered", "since": "2026-01-02T03:04:05.678Z"})
    reply = pushed(client, server, Push(device, ALERT, apns_id=str(uuid.uuid4())))
    assert (reply.status, reply.reason, reply.timestamp) == (410, "Unregistered", 1767323045678)
    assert server.record(device)["served"]["reason"] == "Unregistered"


# Ways to a server. What a client cannot be told is left out: nghttp and apns2 have no setting for TLS, httpx and nghttp
# insist on ALPN, kalyke knows one host only, and so on. aioapns never offers ALPN.
MATRIX = """
| client  | as it is | TLS 1.2 | TLS 1.3 | no ALPN | saved session | IPv6 | Apple's name, own resolver | hosts file |
|---------|----------|---------|---------|---------|---------------|------|----------------------------|------------|
| curl    | yes      | yes     | yes     | yes     |               | yes  | yes                        | yes        |
| nghttp  | yes      |         |         |         |               | yes  |                            | yes        |
| httpx   | yes      | yes     | yes     |         |               | yes  | yes                        | yes        |
| aioapns | yes      | yes     | yes     | yes     |               | yes  |                            | yes        |
| apns2   | yes      |         |         |         |               |      |                            | yes        |
| kalyke  |          |         |         |         |               |      |                            | yes        |
| node    | yes      | yes     | yes     | yes     | yes           | yes  | yes                        | yes        |
| php     | yes      | yes     | yes     | yes     | yes           | yes  | yes                        | yes        |
"""

WAYS = {
    "as it is": Way(), "TLS 1.2": Way(tls="1.2"), "TLS 1.3": Way(tls="1.3"), "no ALPN": Way(alpn=False),
    "saved session": Way(connections=2), "Apple's name, own resolver": Way(host=APPLE, address="127.0.0.1"),
    "IPv6": None, "hosts file": None,  # these two belong to servers of their own
}


def cells():
    """(client, way) of each "yes" in the matrix."""
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in MATRIX.strip().splitlines()]
    return [(row[0], way) for row in rows for way, said in zip(head, row) if said == "yes"]


@pytest.mark.parametrize("mode", ["token", "certificate"])
@pytest.mark.parametrize(("client", "way"), cells())
def test_every_client_goes_every_way_it_can(request, server, certificate, device, client, way, mode):
    own = {"IPv6": "ipv6_server", "hosts file": "apple_server"}.get(way)
    server = request.getfixturevalue(own) if own else server
    push = Push(device, ALERT, apns_id=str(uuid.uuid4()))
    if mode == "certificate":
        push.certificate = certificate
        if client == "kalyke":  # it takes certificates for VoIP alone
            push.topic, push.push_type = "com.example.app.voip", "voip"
    reply = drivers.ALL[client](server, push, WAYS[way])
    assert (reply.status, reply.reason, reply.apns_id) == (200, None, push.apns_id)

    records = server.pushes(device_token=device)
    assert [record["accepted"] for record in records] == [True] * (2 if way == "saved session" else 1)
    assert len({record["connection"]["id"] for record in records}) == len(records)
    connection = records[0]["connection"]
    assert records[0]["auth"]["kind"] == mode
    assert connection["tls"] == ("TLSv1.2" if way == "TLS 1.2" else "TLSv1.3")
    if way == "no ALPN":
        assert reply.alpn is None or reply.alpn is drivers.ANY
    if way in ("hosts file", "Apple's name, own resolver"):
        assert connection["sni"] == APPLE
    if way == "IPv6":
        assert connection["client"].startswith("[::1]:")

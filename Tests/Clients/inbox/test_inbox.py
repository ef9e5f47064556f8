"""Reading the inbox over the admin API: filters, single records, their exact bytes, deletion, limits, health."""

import hashlib
import re
import secrets
import ssl
import uuid

import pytest

from support.server import Server, stop_cleanly
from support.wire import connect, push_headers


@pytest.fixture(scope="module")
def inbox(binary, certs):
    """A server whose inbox holds six known pushes, and their properties."""
    server = Server(binary, certs)
    one, two, three = (secrets.token_hex(32) for _ in range(3))
    apns_id = str(uuid.uuid4())
    server.api("PUT", f"/devices/{three}", {"state": "unregistered"})
    with connect(server) as wire:
        wire.push(push_headers(server, one))
        wire.push(push_headers(server, one, apns_push_type="background", apns_priority="5"))
        wire.push(push_headers(server, two, apns_topic="com.example.other"))
        wire.push(push_headers(server, two, apns_priority="7"))
        wire.push(push_headers(server, three, apns_id=apns_id))
        wire.push(push_headers(server, three, authorization="bearer a.b.c"))
    yield server, {"one": one, "two": two, "three": three, "id": apns_id}
    stop_cleanly(server)


def numbers(server, **query):
    return [record["seq"] for record in server.pushes(**query)]


def test_six_pushes_are_in_order(inbox):
    server, _ = inbox
    page = server.api("GET", "/pushes")
    assert [record["seq"] for record in page["items"]] == [1, 2, 3, 4, 5, 6]
    assert (page["matched"], page["total"], page["evicted"], page["complete"]) == (6, 6, 0, True)


FILTERS = [
    ({"device_token": "one"}, [1, 2]), ({"device_token": ["one", "two"]}, [1, 2, 3, 4]),
    ({"topic": "com.example.other"}, [3]), ({"topic": "com.example.app"}, [1, 2, 4, 5, 6]),
    ({"status": "200"}, [1, 2, 3]), ({"status": "400"}, [4]), ({"status": ["403", "410"]}, [5, 6]),
    ({"reason": "BadPriority"}, [4]), ({"reason": "Unregistered"}, [5]), ({"reason": "InvalidProviderToken"}, [6]),
    ({"outcome": "accepted"}, [1, 2, 3]), ({"outcome": "rejected"}, [4, 5, 6]),
    ({"accepted": "true"}, [1, 2, 3]), ({"accepted": "false"}, [4, 5, 6]),
    ({"push_type": "background"}, [2]), ({"apns_id": "id"}, [5]),
    ({"after": "2", "order": "desc"}, [6, 5, 4, 3]), ({"after": "4"}, [5, 6]), ({"limit": "2"}, [1, 2]),
    ({"after": "2", "limit": "2"}, [3, 4]), ({"after": str(2**63 - 1), "limit": "0"}, []), ({"before": "0"}, []),
    ({"after": str(2**63 - 1), "before": str(2**63 - 1), "order": "desc"}, []),
    ({"accepted": "true", "device_token": "two"}, [3]), ({"status": "200", "reason": "BadPriority"}, []),
    ({"since": "2020-01-01T00:00:00Z"}, [1, 2, 3, 4, 5, 6]), ({"since": "2120-01-01T00:00:00.000Z"}, []),
]


@pytest.mark.parametrize(("query", "expected"), FILTERS, ids=[str(row[0]) for row in FILTERS])
def test_filters(inbox, query, expected):
    server, names = inbox
    query = {
        field: [names.get(value, value) for value in values] if isinstance(values, list) else names.get(values, values)
        for field, values in query.items()
    }
    assert numbers(server, **query) == expected


def test_a_device_token_and_an_id_are_found_in_any_case(inbox):
    server, names = inbox
    assert numbers(server, device_token=names["one"].upper()) == [1, 2]
    assert numbers(server, apns_id=names["id"].upper()) == [5]


def test_pages_follow_one_another(inbox):
    server, _ = inbox
    seen, after = [], 0
    while True:
        page = server.api("GET", "/pushes", limit=4, after=after)
        seen += [record["seq"] for record in page["items"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == [1, 2, 3, 4, 5, 6]


def test_one_record_by_number_and_by_id(inbox):
    server, names = inbox
    record = server.api("GET", "/pushes/5")
    assert "attempts" not in record
    assert record["served"]["status"] == 410
    assert record["apns"]["id"] == names["id"]
    assert server.api("GET", "/pushes/" + names["id"])["seq"] == 5
    assert server.request("GET", "/api/v1/pushes/7").status == 404
    assert server.request("GET", f"/api/v1/pushes/{uuid.uuid4()}").status == 404
    assert server.request("GET", "/api/v1/pushes/none").status in (400, 404)


def test_the_record_has_the_documented_members(inbox):
    server, names = inbox
    record = server.api("GET", "/pushes/4")
    assert set(record) >= {
        "seq", "accepted", "outcome", "listener", "received_at", "finished_at", "push_key", "attempt", "connection",
        "request", "apns", "auth", "verdict", "fault", "served", "findings",
    }
    time = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
    assert time.fullmatch(record["received_at"]) and time.fullmatch(record["finished_at"])
    assert set(record["connection"]) >= {"id", "stream", "client", "sni", "tls"}
    assert re.fullmatch(r"c\d+", record["connection"]["id"])
    assert re.fullmatch(r"127\.0\.0\.1:\d+", record["connection"]["client"])
    assert record["connection"]["stream"] == 7
    assert record["fault"] is None
    headers = dict(record["request"]["headers"])
    assert headers["apns-priority"] == "7" and headers["apns-topic"] == "com.example.app"
    checks = record["verdict"]["checks"]
    assert checks[0] == {"check": "method", "ok": True}
    assert [check["ok"] for check in checks] == [True] * (len(checks) - 1) + [False]
    assert 0 < record["served"]["latency_ms"] < 60_000


def test_attempts_of_one_push_are_counted(start):
    server = start()
    device, apns_id = secrets.token_hex(32), str(uuid.uuid4())
    with connect(server) as wire:
        for _ in range(2):
            wire.push(push_headers(server, device, apns_id=apns_id, apns_priority="7"))
        wire.push(push_headers(server, device, apns_id=apns_id))
        wire.push(push_headers(server, device, apns_id=apns_id), b'{"aps":{}}')
    newest = server.api("GET", "/pushes/" + apns_id.upper())
    assert (newest["seq"], newest["attempts"]) == (4, [1, 2, 3, 4])
    assert server.request("GET", f"/api/v1/pushes/{apns_id}/payload").body == b'{"aps":{}}'


@pytest.mark.parametrize(("body", "type"), [
    (b'{ "aps" : {"alert":"\xc3\xbc"},\r\n "a":1.0 }  ', "application/json"),
    (b"<script>alert(1)</script>", "application/octet-stream"), (b"x" * 4096, "application/octet-stream"),
    (b"", "application/octet-stream"),
], ids=["JSON", "HTML", "long", "empty"])
def test_the_exact_bytes_of_a_body(server, device, body, type):
    with connect(server) as wire:
        wire.push(push_headers(server, device), body)
    response = server.request("GET", f"/api/v1/pushes/{server.record(device)['seq']}/payload")
    assert (response.body, response.headers["content-type"]) == (body, type)
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_long_body_is_stored_in_part(server, device):
    body = b'{"aps":{"alert":"%s"}}' % (b"x" * 9000)
    with connect(server) as wire:
        assert wire.push(push_headers(server, device), body).status == 413
    record = server.record(device)
    payload = server.request("GET", f"/api/v1/pushes/{record['seq']}/payload").body
    assert record["request"]["size"]["bytes"] == len(body)
    assert payload == body[:5120]


def test_a_query_is_percent_decoded(server, device):
    with connect(server) as wire:
        wire.push(push_headers(server, device, apns_topic="com.acme.a&b c+d"))
    for query in ("topic=com.acme.a%26b%20c%2Bd", "topic=com.acme.a%26b+c%2bd", "%74opic=*%26*", "&&topic=com*&"):
        assert server.request("GET", f"/api/v1/pushes?device_token={device}&{query}").json["matched"] == 1, query


def test_a_push_is_readable_before_its_response_arrives(server):
    """Reads the inbox right after each response, without polling."""
    with connect(server) as wire:
        for _ in range(200):
            device = secrets.token_hex(32)
            wire.push(push_headers(server, device))
            assert server.record(device)["accepted"] is True


def test_deleting_needs_a_scope(start):
    server = start()
    device, other = secrets.token_hex(32), secrets.token_hex(32)
    with connect(server) as wire:
        for target in (device, device, other):
            wire.push(push_headers(server, target))
    refused = server.request("DELETE", "/api/v1/pushes")
    assert refused.status == 400 and "all" in str(refused.json)
    assert server.api("DELETE", "/pushes", device_token=device) == {"deleted": 2}
    assert [record["request"]["device_token"] for record in server.pushes()] == [other]
    assert server.api("DELETE", "/pushes", all="true") == {"deleted": 1}
    assert server.pushes() == []


def test_deleted_numbers_are_not_used_again(start, device):
    server = start()
    with connect(server) as wire:
        for topic in ("a", "b", "a", "b"):
            wire.push(push_headers(server, device, apns_topic=topic))
        assert server.api("DELETE", "/pushes", topic="a", before=3) == {"deleted": 1}
        assert server.api("DELETE", "/pushes", after=3) == {"deleted": 1}
        assert numbers(server) == [2, 3]
        assert server.api("DELETE", "/pushes", all="true") == {"deleted": 2}
        wire.push(push_headers(server, device))
    assert numbers(server) == [5]


def test_a_reset_empties_the_inbox_and_numbers_go_on(start, device):
    server = start()
    with connect(server) as wire:
        wire.push(push_headers(server, device))
        server.api("POST", "/reset", {})
        assert server.pushes() == []
        wire.push(push_headers(server, device))
    assert server.record(device)["accepted"] is True


@pytest.mark.parametrize(("flag", "value"), [("--max-records", "10"), ("--max-bytes", "16KiB")])
def test_the_oldest_records_are_evicted_first_and_counted(start, device, flag, value):
    server = start(flag, value)
    with connect(server) as wire:
        for _ in range(50):
            wire.push(push_headers(server, device), b'{"aps":{"alert":"%s"}}' % (b"x" * 1000))
    page = server.api("GET", "/pushes", limit=1000)
    kept = [record["seq"] for record in page["items"]]
    assert page["evicted"] > 0 and page["total"] == len(kept) == 50 - page["evicted"]
    assert kept == list(range(51 - len(kept), 51)) and kept
    assert page["complete"] is False
    assert f"{page['evicted']} were evicted" in server.request("GET", "/api/v1/pushes/1").json["hint"]
    if flag == "--max-records":
        assert len(kept) == 10


def test_health_status_and_the_certificate(server):
    assert server.request("GET", "/livez").status == 200
    assert server.request("GET", "/readyz").status == 200
    pem = server.request("GET", "/ca.pem").body.decode()
    assert pem == open(server.ca).read()
    status = server.api("GET", "/status")
    fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    assert fingerprint in str(status).lower().replace(":", "")
    assert str(server.port) in str(status) and str(server.facts["seed"]) in str(status)

"""Pushes with unusual contents are kept, whatever the database can compare, index or store in a text."""

import json
import secrets

import pytest

from support import stores
from support.server import Server, stop_cleanly
from support.wire import connect, push_headers

LONG = secrets.token_hex(4000)  # longer than an entry of an index of PostgreSQL, and not compressible


def send(server, *extra, body=b'{"aps":{"alert":"hello"}}', device=None, **changes):
    device = device or secrets.token_hex(32)
    with connect(server) as wire:
        return device, wire.push(push_headers(server, device, *extra, **changes), body).status


def assert_kept(server, *devices):
    """The records are in the database, and the next push is too."""
    later, status = send(server)
    assert status == 200
    assert [server.record(device)["request"]["device_token"] for device in (*devices, later)] == [*devices, later]
    status = server.api("GET", "/status")["store"]
    assert status["problem"] is None, status


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(request, binary, certs, tmp_path_factory):
    place = stores.new_place(request.param, tmp_path_factory.mktemp("unusual"))
    running = Server(binary, certs, *stores.flags(place, "--durable", "answer", memory_records=4))
    try:
        yield running
        stop_cleanly(running)
    finally:
        running.kill()


@pytest.mark.parametrize("field", ["apns_topic", "apns_collapse_id", "apns_push_type", "apns_id", "apns_priority"])
@pytest.mark.parametrize("value", [b"\xff\xfe", "ä😀".encode(), b"a\xc3", LONG.encode(), b"x" * 3000],
                         ids=["no-utf-8", "utf-8", "cut-utf-8", "long", "repeated"])
def test_header_fields(server, field, value):
    device, _ = send(server, **{field: value})
    assert_kept(server, device)


@pytest.mark.parametrize("year", ["0000", "1700", "2263", "2300", "9999"])
def test_imported_times(server, year):
    """A time far from now exceeds the range of a 64-bit number of nanoseconds."""
    device, _ = send(server)
    exported = json.loads(server.request("GET", "/api/v1/export", device_token=device).body)
    record = {**exported, "received_at": f"{year}-01-01T00:00:00.000Z"}
    body = json.dumps(record).encode()
    answer = server.request("POST", "/api/v1/import", body, headers={"content-type": "application/x-ndjson"})
    assert answer.status == 200, answer.body
    assert_kept(server)
    assert [record["received_at"][:4] for record in server.pushes(device_token=device)][1:] == [year]


@pytest.mark.parametrize("body", [b"", b"\0", b"\xff" * 100, b'"\\u0000"', b'{"a":"\\ud800"}', LONG.encode()],
                         ids=["empty", "zero", "no-utf-8", "escaped-zero", "half-pair", "long"])
def test_bodies(server, body):
    device, _ = send(server, body=body)
    assert_kept(server, device)


def test_a_long_reason(server):
    device = secrets.token_hex(32)
    server.api("POST", "/rules", {
        "name": "long", "when": {"device_token": device},
        "do": {"respond": {"status": 503, "reason": LONG, "unreal": True}}})
    assert send(server, device=device)[1] == 503
    assert_kept(server, device)
    assert server.record(device)["served"]["reason"] == LONG
    assert len(server.pushes(q=f"reason:{LONG[:100]}*")) == 1


def test_a_long_device_token(server):
    device = "ab" * 200
    send(server, device=device)
    assert_kept(server, device)

"""The server's clock and its devices: the 20- and 60-minute rules within milliseconds, and 410 on demand."""

import datetime
import re
import secrets

import pytest

from support import tokens
from support.wire import connect, push_headers

NOON = "2030-01-01T12:00:00.000Z"
NOON_SECONDS = int(datetime.datetime(2030, 1, 1, 12, tzinfo=datetime.timezone.utc).timestamp())


@pytest.fixture
def noon(start):
    """A server whose clock is frozen at noon."""
    server = start()
    assert server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})["mode"] == "frozen"
    return server


def status_and_reason(response):
    return response.status, response.body.decode().removeprefix('{"reason":"').removesuffix('"}')


class Provider:
    """One connection and the tokens sent on it."""

    def __init__(self, server, wire, device):
        self.server, self.wire, self.device = server, wire, device

    def push(self, issued_at, **changes):
        authorization = "bearer " + self.server.token(issued_at=issued_at, **changes)
        headers = push_headers(self.server, self.device, authorization=authorization)
        return status_and_reason(self.wire.push(headers))

    def push_again(self, token):
        return status_and_reason(self.wire.push(push_headers(self.server, self.device, authorization=token)))


def advance(server, by):
    return server.api("POST", "/clock/advance", {"by": by})


def test_a_provider_token_is_good_for_exactly_an_hour(noon, device):
    token = "bearer " + noon.token(issued_at=NOON_SECONDS)
    with connect(noon) as wire:
        provider = Provider(noon, wire, device)
        assert provider.push_again(token) == (200, "")
        advance(noon, "1h")
        assert provider.push_again(token) == (200, "")
        advance(noon, "1s")
        assert provider.push_again(token) == (403, "ExpiredProviderToken")
    assert noon.pushes(device_token=device)[-1]["auth"]["age_ms"] == 3_601_000


@pytest.mark.parametrize(("rules", "ahead", "status"), [
    ("apple", 3600, 200), ("apple", 3601, 403), ("strict", 300, 200), ("strict", 301, 403), ("lenient", 7200, 200),
])
def test_tokens_issued_in_the_future(start, device, rules, ahead, status):
    server = start("--rules", rules)
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(server) as wire:
        response = Provider(server, wire, device).push(NOON_SECONDS + ahead)
    assert response == (status, "" if status == 200 else "ExpiredProviderToken")


def test_too_many_tokens_block_the_connection_for_twenty_minutes(noon, device):
    first = "bearer " + noon.token(issued_at=NOON_SECONDS)
    with connect(noon) as wire, connect(noon) as another:
        provider = Provider(noon, wire, device)
        assert provider.push_again(first) == (200, "")
        assert provider.push(NOON_SECONDS - 60) == (200, ""), "one change is free"
        assert provider.push(NOON_SECONDS - 120) == (429, "TooManyProviderTokenUpdates")
        assert provider.push_again(first) == (429, "TooManyProviderTokenUpdates"), "the connection is latched"
        assert provider.push_again("bearer a.b.c") == (429, "TooManyProviderTokenUpdates"), "which hides other faults"
        assert Provider(noon, another, device).push_again(first) == (200, ""), "another connection is not"
        advance(noon, "19m59s")
        assert provider.push_again(first) == (429, "TooManyProviderTokenUpdates")
        advance(noon, "1s")
        assert provider.push_again(first) == (200, "")


def test_a_new_token_every_twenty_minutes_is_accepted(noon, device):
    with connect(noon) as wire:
        provider = Provider(noon, wire, device)
        for turn in range(6):
            assert provider.push(NOON_SECONDS + turn * 1200) == (200, ""), f"after {turn * 20} minutes"
            advance(noon, "20m")


def test_records_are_dated_by_the_servers_clock(noon, device):
    with connect(noon) as wire:
        Provider(noon, wire, device).push(NOON_SECONDS)
        advance(noon, "90s")
        Provider(noon, wire, device).push(NOON_SECONDS)
    first, second = noon.pushes(device_token=device)
    assert first["received_at"] == NOON
    assert second["received_at"] == "2030-01-01T12:01:30.000Z"
    assert first["auth"]["issued_at"] == NOON
    assert [record["seq"] for record in noon.pushes(since="2030-01-01T12:01:00Z")] == [second["seq"]]
    assert [record["seq"] for record in noon.pushes(until="2030-01-01T12:01:00Z")] == [first["seq"]]


def test_the_clock_over_the_api(start):
    server = start()
    assert server.api("GET", "/clock")["mode"] == "real"
    frozen = server.api("PUT", "/clock", {"mode": "frozen"})
    assert frozen["mode"] == "frozen"
    assert server.api("GET", "/clock")["now"] == frozen["now"], "the clock does not advance"
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    moved = advance(server, "1h30m")
    assert (moved["mode"], moved["now"]) == ("frozen", "2030-01-01T13:30:00.000Z")
    assert advance(server, "-1.5s")["now"] == "2030-01-01T13:29:58.500Z"
    assert server.api("PUT", "/clock", {"mode": "frozen"})["now"] == "2030-01-01T13:29:58.500Z"
    assert server.api("PUT", "/clock", {"mode": "real"})["mode"] == "real"
    now = datetime.datetime.fromisoformat(server.api("GET", "/clock")["now"].replace("Z", "+00:00"))
    assert abs(now - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=1)


@pytest.mark.parametrize(("flags", "by", "rejects"), [
    ((), "0s", False), ((), "1h", False), ((), "1h1s", True), ((), "-1h", False), ((), "-1h1s", True),
    (("--rules", "strict"), "-5m1s", True), (("--rules", "strict"), "-5m", False),
    (("--rules", "lenient"), "-50h", False),
])
def test_the_clock_says_whether_new_provider_tokens_are_expired(start, flags, by, rejects):
    server = start(*flags)
    moved = advance(server, by)
    assert moved["rejects_new_tokens"] is rejects
    assert moved == {**server.api("GET", "/clock"), "now": moved["now"]}
    # The offset is exact while the clock runs.
    assert f"{moved['offset_ms'] // 1000} s" == f"{seconds(by)} s"
    real = server.api("PUT", "/clock", {"mode": "real"})
    assert (real["offset_ms"], real["rejects_new_tokens"]) == (0, False)


def seconds(duration):
    sign = -1 if duration.startswith("-") else 1
    return sign * sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+)([hms])", duration))


@pytest.mark.parametrize(("by", "words"), [("61m", "61 min ahead of the machine's"), ("-61m", "61 min behind the machine's")])
def test_a_new_provider_token_under_a_moved_clock_is_explained(start, device, by, words):
    server = start()
    advance(server, by)
    with connect(server) as wire:
        for _ in range(2):
            assert status_and_reason(wire.push(push_headers(server, device))) == (403, "ExpiredProviderToken")
    for record in server.pushes(device_token=device):
        detail = next(check["detail"] for check in record["verdict"]["checks"] if not check["ok"])
        assert words in detail and "apns-mock clock real" in detail and "profile expired-jwt-403" in detail
        assert detail in server.api("GET", f"/pushes/{record['seq']}/explain")["text"]
    server.api("PUT", "/clock", {"mode": "real"})
    with connect(server) as wire:
        assert status_and_reason(wire.push(push_headers(server, device))) == (200, "")


def test_an_expired_token_under_a_clock_that_is_moved_a_little_is_explained_without_it(start, device):
    server = start()
    advance(server, "30m")
    old = "bearer " + server.token(issued_at=tokens.now() - 31 * 60)
    with connect(server) as wire:
        assert status_and_reason(wire.push(push_headers(server, device, authorization=old))) == (403, "ExpiredProviderToken")
    checks = server.record(device)["verdict"]["checks"]
    assert "clock real" not in next(check["detail"] for check in checks if not check["ok"])


def push_once(server, device, **changes):
    with connect(server) as wire:
        return wire.push(push_headers(server, device, **changes))


def test_a_device_is_unregistered_and_registered_again(server, device):
    assert push_once(server, device).status == 200
    server.api("PUT", f"/devices/{device}", {"state": "unregistered", "since": "2026-05-06T07:08:09.010Z"})
    assert push_once(server, device.upper()).body == b'{"reason":"Unregistered","timestamp":1778051289010}'
    assert server.api("GET", f"/devices/{device.upper()}")["state"] == "unregistered"
    server.api("PUT", f"/devices/{device}", {"state": "online"})
    assert push_once(server, device).status == 200
    server.api("PUT", f"/devices/{device}", {"state": "expired"})
    assert push_once(server, device).body.startswith(b'{"reason":"ExpiredToken","timestamp":1')
    server.api("DELETE", f"/devices/{device}")
    assert push_once(server, device).status == 200
    assert server.request("GET", f"/api/v1/devices/{device}").status == 404


# What a token without a device has.
ALONE = {
    "device": None, "bundle_id": None, "kind": None, "device_state": None, "app_state": None, "source": None,
    "stored": 0, "shown": 0}


def test_devices_over_the_api(noon):
    created = noon.request("PUT", "/api/v1/devices/AB12", {"state": "unregistered", "topic": "com.acme.app"})
    assert (created.status, created.headers["location"]) == (201, "/api/v1/devices/ab12")
    assert created.json == {
        "token": "ab12", "topic": "com.acme.app", "environment": None, "state": "unregistered", "since": NOON, **ALONE}
    changed = noon.request("PUT", "/api/v1/devices/ab12", {
        "token": "Ab12", "state": "expired", "environment": "production", "since": "2026-01-01T00:00:00Z"})
    assert changed.status == 200
    assert changed.json == {
        "token": "ab12", "topic": None, "environment": "production", "state": "expired",
        "since": "2026-01-01T00:00:00.000Z", **ALONE}
    assert noon.api("GET", "/devices/aB12") == changed.json
    assert noon.api("POST", "/devices", {"token": "00FF"})["state"] == "online"
    listed = noon.api("GET", "/devices")
    assert ([item["token"] for item in listed["items"]], listed["total"]) == (["ab12", "00ff"], 2)
    removed = noon.request("DELETE", "/api/v1/devices/ab12")
    assert (removed.status, removed.body) == (204, b"")
    assert noon.request("GET", "/api/v1/devices/ab12").status == 404


def test_a_device_belongs_to_a_topic(server, device):
    server.api("PUT", f"/devices/{device}", {"topic": "com.example.app"})
    assert server.api("GET", f"/devices/{device}")["state"] == "online", "by default"
    assert push_once(server, device).status == 200
    response = push_once(server, device, apns_topic="com.example.other")
    assert status_and_reason(response) == (400, "DeviceTokenNotForTopic")


def test_a_device_of_the_other_environment_is_a_bad_device_token(server, device):
    server.api("PUT", f"/devices/{device}", {"environment": "production"})
    assert status_and_reason(push_once(server, device)) == (400, "BadDeviceToken")


def test_an_unregistered_device_has_the_current_time_by_default(noon, device):
    noon.api("PUT", f"/devices/{device}", {"state": "unregistered"})
    authorization = "bearer " + noon.token(issued_at=NOON_SECONDS)
    response = push_once(noon, device, authorization=authorization)
    assert response.body == b'{"reason":"Unregistered","timestamp":%d}' % (NOON_SECONDS * 1000)


def test_devices_are_listed_and_removed_by_a_reset(start):
    server = start()
    tokens = sorted(secrets.token_hex(32) for _ in range(3))
    for token in tokens:
        server.api("PUT", f"/devices/{token}", {"state": "unregistered"})
    listed = server.api("GET", "/devices")["items"]
    assert sorted(entry["token"] for entry in listed) == tokens
    server.api("POST", "/reset", {"keep": ["devices"]})
    assert len(server.api("GET", "/devices")["items"]) == 3
    server.api("POST", "/reset", {"devices": True})
    assert server.api("GET", "/devices")["items"] == []

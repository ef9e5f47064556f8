"""What a server was set to and has counted, after another one has continued its inbox: one that is started again with the same
file, and a standby.
"""

import json
import os
import secrets
import signal
import threading
import zlib

import pytest

from support import stores
from support.selection import some
from support.server import Server
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds

RULE = {"name": "down", "when": {"topic": "com.acme.down"}, "do": {"respond": {"status": 503, "reason": "Shutdown"}}}


def pytest_generate_tests(metafunc):
    """Each test with all three ways in which a server ends and another one continues; with two of them unless all tests run."""
    if "succession" in metafunc.fixturenames:
        first = zlib.crc32(metafunc.function.__name__.encode()) % 3
        metafunc.parametrize("succession", some(["restart", "kill", "takeover"], 2, first), indirect=True)


@pytest.fixture
def succession(request, binary, certs, tmp_path, postgres):
    """`succession(*flags)` starts a server; its `next(*flags)` is the server that continues its inbox."""
    place = postgres.new_inbox() if request.param == "takeover" else tmp_path / "inbox.db"
    running = []

    class Successor(Server):
        def __init__(self, *flags, role="active"):
            self.flags = flags
            super().__init__(binary, certs, *stores.flags(place), "--durable", "answer", *flags, role=role)
            running.append(self)

        def next(self, *flags):
            flags = flags or self.flags
            if request.param == "takeover":
                standby = Successor(*flags, role="standby")
                self.signal(signal.SIGKILL)
                standby.await_role("active", 20)
                return standby
            if request.param == "kill":
                self.kill()
            else:
                assert self.stop() == 0
            return Successor(*flags)

    yield Successor
    for server in running:
        server.kill()


def push(server, device=None, **changes):
    with connect(server) as client:
        response = client.push(push_headers(server, device or secrets.token_hex(32), **changes))
        return response.status


def test_the_profile_and_rules_go_on(succession):
    former = succession("--profile", "healthy", "--seed", "7")
    former.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 1}, "seed": 99})
    former.api("PATCH", "/profile/params", {"rate": 0.999})
    former.api("POST", "/rules", RULE)
    former.api("POST", "/rules", {"when": {"topic": "com.acme.none"}, "do": {"pass": {}}, "ttl": "1h"})
    former.api("PUT", "/profiles/mine", {"rules": [{"name": "gone", "do": {"respond": {"status": 500}}}]})
    assert push(former, apns_topic="com.acme.down") == 503
    before = [former.api("GET", path) for path in ("/profile", "/rules", "/profiles/mine")]
    server = former.next()
    after = [server.api("GET", path) for path in ("/profile", "/rules", "/profiles/mine")]
    for state in (*before, *after):
        for rule in state.get("items", []):
            left = rule.pop("ends_in_ms")
            assert left is None or 3500_000 < left <= 3600_000
            del rule["looked_at"], rule["fired"]  # not kept for a rule that does not count
    assert before[1]["items"] == after[1]["items"] and before[2] == after[2]
    for key in ("name", "seed", "params"):
        assert before[0][key] == after[0][key], key
    assert push(server, apns_topic="com.acme.down") == 503
    server.api("DELETE", "/rules/down")
    server.api("PUT", "/profile", {"name": "mine"})
    server = server.next()
    assert [rule["name"] for rule in server.api("GET", "/rules")["items"]] == ["rule-1"]
    assert push(server) == 500
    assert server.api("POST", "/rules", {"when": {"topic": "com.acme.none"}, "do": {"pass": {}}})["name"] == "rule-2"
    server.api("POST", "/reset", {})
    server = server.next()
    assert server.api("GET", "/profile")["name"] == "healthy" and server.api("GET", "/profile")["seed"] == 7
    assert server.api("GET", "/rules")["total"] == 0 and push(server) == 200


def test_a_pause_goes_on(succession):
    former = succession()
    former.api("POST", "/rules", RULE)
    former.api("POST", "/faults/halt", {})
    assert push(former.next(), apns_topic="com.acme.down") == 200


def test_another_profile_at_the_start_is_used(succession):
    former = succession("--profile", "healthy")
    former.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 1}})
    former.api("POST", "/rules", RULE)
    server = former.next("--profile", "unregistered-410")
    assert server.api("GET", "/profile")["name"] == "unregistered-410"
    assert server.api("GET", "/rules")["total"] == 1
    assert server.logged("of its faults only added rules go on")


def test_counts_go_on(succession):
    """The third push that a rule counts is the first one of the next server; with a device token as the key, too."""
    former = succession()
    former.api("POST", "/rules", {"name": "three", "trigger": {"first": 3}, "do": {"respond": {"status": 429}}})
    former.api("POST", "/rules", {
        "name": "each", "when": {"topic": "com.acme.each"}, "trigger": {"times": 1, "times_per": "device_token"},
        "do": {"respond": {"status": 500}}})
    device = secrets.token_hex(32)
    assert [push(former) for _ in range(2)] == [429] * 2
    assert push(former, device, apns_topic="com.acme.each") == 500
    server = former.next()
    fired = {rule["name"]: rule["fired"] for rule in server.api("GET", "/rules")["items"]}
    assert fired == {"three": 2, "each": 1}
    assert push(server, device, apns_topic="com.acme.each") == 429
    assert [push(server) for _ in range(2)] == [200] * 2
    server.api("POST", "/reset", {"counters": True})
    server = server.next()
    assert push(server) == 429 and push(server, device, apns_topic="com.acme.each") == 500


def test_attempts_go_on(succession):
    """A push that the former server rejected is not sent for the first time."""
    former, device = succession(), secrets.token_hex(32)
    former.api("POST", "/rules", {"name": "down", "do": {"respond": {"status": 503}}})
    assert [push(former, device), push(former, device)] == [503] * 2
    former.api("DELETE", "/rules/down")
    server = former.next()
    assert push(server, device) == 200 and push(server, device) == 200
    assert [record["attempt"] for record in server.pushes(device_token=device)] == [1, 2, 3, 1]


@pytest.mark.parametrize("change", ["freeze", "advance"])
def test_the_clock_goes_on(succession, change):
    former = succession()
    if change == "freeze":
        former.api("PUT", "/clock", {"mode": "frozen", "now": "2031-05-06T07:08:09.123Z"})
        assert former.next().api("GET", "/clock")["now"] == "2031-05-06T07:08:09.123Z"
        return
    former.api("POST", "/clock/advance", {"by": "26h"})
    server = former.next()
    assert abs(server.api("GET", "/clock")["offset_ms"] - 26 * 3600_000) < 1000
    server.api("PUT", "/clock", {"mode": "real"})
    assert server.next().api("GET", "/clock")["offset_ms"] == 0


def test_keys_go_on(succession):
    former = succession()
    key = {"team_id": "OTHERTEAM1", "public_key": PUBLIC_KEY, "topics": ["com.acme.app"]}
    former.api("PUT", "/keys/OTHERKEY01", key)
    former.api("DELETE", f"/keys/{former.api('GET', '/keys')['items'][0]['key_id']}")
    before = former.api("GET", "/keys")["items"]
    assert former.next().api("GET", "/keys")["items"] == before


PUBLIC_KEY = """-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
-----END PUBLIC KEY-----
"""


@pytest.fixture
def fixtures(tmp_path):
    path = tmp_path / "fixtures.json"
    path.write_text(json.dumps({
        "apps": [{"bundle_id": "com.example.app", "team_id": "MOCKTEAM01"}],
        "devices": [
            {"id": name, "apps": [{
                "bundle_id": "com.example.app", "environment": "sandbox", "tokens": {"alert": name.encode().hex() * 4}}]}
            for name in ("first", "other")]}))
    return path


def described(server):
    """The devices, tokens and channels of a server."""
    tokens = server.api("GET", "/devices", limit=100)["items"]
    fixtures = server.api("GET", "/fixtures")
    fixtures["devices"].sort(key=lambda device: device["id"])
    return fixtures, sorted(tokens, key=lambda token: token["token"])


def device_states(server):
    return {device["id"]: device["state"] for device in described(server)[0]["devices"]}


def test_devices_and_channels_go_on(succession, fixtures):
    former = succession("--fixtures", str(fixtures))
    former.api("POST", "/devices/first/offline", {})
    former.api("DELETE", "/devices/other")
    former.api("PUT", "/fixtures", {"devices": [{"id": "third", "apps": [
        {"bundle_id": "com.acme.app", "environment": "sandbox", "tokens": {"alert": "cdef" * 16}}]}]})
    single = secrets.token_hex(32)
    former.api("PUT", f"/devices/{single}", {"state": "unregistered", "since": "2024-05-06T07:08:09Z"})
    before = described(former)
    server = former.next()
    assert described(server) == before
    assert push(server, b"other".hex() * 4) == 200, "it is not registered, so the server knows nothing of it"
    assert push(server, single) == 410
    server.api("POST", "/reset", {"devices": True, "channels": True})
    server = server.next()
    assert device_states(server) == {"first": "online", "other": "online"}


def test_what_devices_store_and_show_goes_on(succession, fixtures):
    """A device that was offline gets what the former server has stored for it, the newest push for each app, and its subscriptions
    go on."""
    former = succession("--fixtures", str(fixtures))
    first, other = (name.encode().hex() * 4 for name in ("first", "other"))
    former.api("POST", "/devices/first/offline", {})
    assert [push(former, device) for device in (first, other, first)] == [200] * 3
    channel = former.api("POST", "/channels", {"bundle_id": "com.example.app", "environment": "sandbox"})
    former.api("POST", "/devices/other/subscriptions", {"channel": channel["id"]})
    server = former.next()
    before, shown, newest = server.pushes()
    assert [one["delivery"] for one in (before, newest)] == ["Stored - Device Offline"] * 2
    assert [one["seq"] for one in server.api("GET", "/devices/other/notifications")["items"]] == [shown["seq"]]
    assert len(server.api("GET", "/devices/other/subscriptions")["items"]) == 1
    server.api("POST", "/devices/first/online", {})
    assert [one["seq"] for one in server.api("GET", "/devices/first/notifications")["items"]] == [newest["seq"]]
    assert server.pushes()[-1]["delivery"] == "Delivered to Device (From Storage)"
    server = server.next()
    server.api("POST", "/devices/first/offline", {})
    server.api("POST", "/devices/first/online", {})
    assert [one["seq"] for one in server.api("GET", "/devices/first/notifications")["items"]] == [newest["seq"]]


HOSTILE = {
    "clock": ['{"frozenAt":%d,"offset":0}' % ((1 << 63) - 1), '{"offset":-%d}' % (1 << 63), "[]", '{"offset":1e400}'],
    "generated": ['{"deviceTokens":%d,"channels":%d}' % ((1 << 64) - 1, (1 << 64) - 1), "{}"],
    "device/" + "x" * 300: ['{"state":"online","apps":[]}'],
    "device/first": ['{"state":"broken","apps":[]}', '{"state":"online","apps":[{"state":"enabled","tokens":[{"token":"ab","state":"expired","since":%d}],'
                     '"channels":["x"],"removalDetectedAt":-%d}]}' % ((1 << 63) - 1, 1 << 63)],
    "token/zz": ["removed", '{"apps":[{"state":"removed","tokens":[],"channels":[]}]}'],
    "channel/sandbox": ["1"], "channel/sandbox/com.acme/x": ["99999999999999999999", "7"], "app/": ["{}", '{"teamID":"","hasBroadcast":true}'],
    "key/x": ['{"teamID":"x","publicKey":"nothing"}'], "count/a": ["1"], "count//down/0/matched/1": ["-5", str((1 << 63) - 1)],
    "profile/../x": ["rules: ["], "profile/mine": ["rules: [{do: confidential}]"],
    "faults": ["confidential", json.dumps({
        "start": "confidential", "profile": {"name": "x", "text": "confidential: 1", "origin": {"inline": {}}},
        "parameters": {}, "seed": (1 << 64) - 1, "activatedAt": -(1 << 63), "endsAt": (1 << 63) - 1, "isPaused": True,
        "isChanged": True, "generatedNames": (1 << 63) - 1,
        "rules": [{"text": "confidential", "addedAt": 1}, {"text": '{"do": {"pass": {}}}', "addedAt": (1 << 63) - 1, "endsAt": -(1 << 63)}]})],
    "nothing": ["x"],
}


def test_rows_that_another_program_has_written_are_no_danger(start, tmp_path, fixtures):
    """The server starts, answers, and never logs what a row contains."""
    path = tmp_path / "inbox.db"
    flags = (*stores.flags(path), "--fixtures", str(fixtures))
    assert start(*flags).stop() == 0
    for number in range(2):
        for name, values in HOSTILE.items():
            stores.execute(path, f"INSERT OR REPLACE INTO state VALUES ('{name}', '{values[number % len(values)]}')")
        server = start(*flags)
        server.api("POST", "/devices/third/install", {"bundle_id": "com.example.app"})
        server.api("POST", "/channels", {"bundle_id": "com.example.app", "environment": "sandbox"})
        server.api("POST", "/rules", {"trigger": {"first": 1}, "do": {"pass": {}}})
        server.api("PUT", "/clock", {"mode": "real"})
        assert push(server) == 200
        for part in ("/devices", "/fixtures", "/channels", "/keys", "/rules", "/profile", "/clock", "/status"):
            server.api("GET", part)
        server.api("POST", "/reset", {})
        assert server.stop() == 0
        assert "confidential" not in server.log()


def test_other_fixtures_at_the_start_are_used(succession, fixtures, tmp_path):
    former = succession("--fixtures", str(fixtures))
    former.api("POST", "/devices/first/offline", {})
    others = tmp_path / "others.json"
    others.write_text(fixtures.read_text().replace('"other"', '"second"'))
    server = former.next("--fixtures", str(others))
    assert device_states(server) == {"first": "online", "second": "online"}


def test_no_verdict_is_wrong_because_the_server_ended(succession):
    """A push whose response the end of the server may have destroyed may be sent again; one that was rejected and is sent again in
    time is resolved.
    """
    former, device, lost = succession(), secrets.token_hex(32), secrets.token_hex(32)
    former.api("POST", "/rules", {"name": "down", "when": {"device_token": lost}, "do": {"respond": {"status": 503}}})
    assert push(former, lost) == 503
    with connect(former) as wire:
        assert wire.push(push_headers(former, device)).status == 200
        server = former.next()
    assert not nothing_lost(server)
    server.api("DELETE", "/rules/down")
    assert push(server, device) == push(server, lost) == 200
    assert nothing_lost(server)
    found = {one["finding"] for one in server.api("GET", "/findings")["items"]}
    assert "duplicate" in found and "blind-resend" not in found


def nothing_lost(server):
    return server.request("POST", "/api/v1/verify", {"nothing_lost": True, "expect": []}).json["nothing_lost"]["passed"]


def test_fixtures_from_a_pipe_are_compared(start, tmp_path, fixtures):
    """A pipe can be read only once."""
    pipe, text = tmp_path / "pipe", fixtures.read_text()
    os.mkfifo(pipe)
    for written, state in ((text, "online"), (text, "offline"), (text.replace('"other"', '"second"'), "online")):
        threading.Thread(target=pipe.write_text, args=(written,), daemon=True).start()
        server = start(*stores.flags(tmp_path / "inbox.db"), "--fixtures", str(pipe))
        assert device_states(server)["first"] == state
        server.api("POST", "/devices/first/offline", {})
        assert server.stop() == 0

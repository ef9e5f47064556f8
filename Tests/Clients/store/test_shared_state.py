"""Two servers that share an inbox in PostgreSQL: what is configured on one over the admin API is active on both when the
request is answered, and a server that starts later has it too.
"""

import concurrent.futures
import json
import os
import secrets
import signal
import time

import pytest
from hyperframe.frame import GoAwayFrame

from support import stores
from support.selection import some
from support.server import Server, stop_cleanly, wait_until
from support.tokens import foreign_key, public_half
from support.wire import connect, push_headers

APP = "com.example.app"
NOON = "2030-01-01T12:00:00.000Z"
NOON_SECONDS = 1893499200
KEY = "OWNKEY0001"
ALWAYS_503 = {"name": "flaky-503", "params": {"rate": 1, "streak": 1}}
PROFILE = b"""
name: closed-shop
summary: No push is accepted
rules:
- name: closed
  do: {respond: {status: 503, reason: Shutdown}}
"""


@pytest.fixture
def late(start, inbox):
    """Starts a further server."""
    return lambda *flags: start(*stores.flags(inbox, *flags, memory_records=8))


@pytest.fixture
def servers(late):
    return [late(), late()]


@pytest.fixture(params=some(["on the first", "on the second"], 1, first=1))
def directed(request, servers):
    """The two servers: the first is configured, and the second is looked at."""
    return servers if request.param == "on the first" else servers[::-1]


def push(server, device=None, **changes):
    """Sends a push; returns the status and the reason."""
    with connect(server) as wire:
        return pushed(wire, server, device, **changes)


def pushed(wire, server, device=None, **changes):
    response = wire.push(push_headers(server, device or secrets.token_hex(32), **changes))
    return response.status, json.loads(response.body)["reason"] if response.body else None


# Faults


def test_a_profile(directed):
    server, other = directed
    with connect(other) as wire:
        for _ in range(5):
            server.api("PUT", "/profile", ALWAYS_503)
            assert pushed(wire, other)[0] == 503
            server.api("DELETE", "/profile")
            assert pushed(wire, other) == (200, None)


@pytest.mark.long
def test_a_profile_and_its_parameters_are_shown(directed):
    server, other = directed
    server.api("PUT", "/profile", ALWAYS_503)
    assert other.api("GET", "/profile") == server.api("GET", "/profile")
    assert stores.status(other)["profile"] == stores.status(server)["profile"] != "healthy"
    assert stores.status(other)["seed"] == stores.status(server)["seed"], "with the same seed the same pushes fail"


@pytest.mark.long
def test_a_parameter_of_a_profile(directed):
    server, other = directed
    server.api("PUT", "/profile", ALWAYS_503)
    with connect(other) as wire:
        assert pushed(wire, other)[0] == 503
        server.api("PATCH", "/profile/params", {"rate": 0})
        assert pushed(wire, other) == (200, None)
        other.api("PATCH", "/profile/params", {"rate": 1})
        assert push(server)[0] == 503


@pytest.mark.long
def test_an_uploaded_profile(directed):
    server, other = directed
    assert upload(server, PROFILE) in (200, 201)
    server.api("PUT", "/profile", {"name": "closed-shop"})
    assert push(other) == (503, "Shutdown")
    assert "closed-shop" in [one["name"] for one in other.api("GET", "/profiles")["items"]]


@pytest.mark.long
def test_a_pause_of_faults(directed):
    server, other = directed
    server.api("PUT", "/profile", ALWAYS_503)
    server.api("POST", "/faults/halt")
    assert push(other) == (200, None) and stores.status(other)["halted"]
    other.api("POST", "/faults/resume")
    assert push(server)[0] == 503


@pytest.mark.long
def test_a_rule(directed, device):
    server, other = directed
    with connect(other) as wire:
        for status in (503, 429):
            server.api("POST", "/rules", {
                "name": "fault", "when": {"device_token": device}, "do": {"respond": {"status": status}}})
            assert pushed(wire, other, device)[0] == status
            assert pushed(wire, other) == (200, None)
        (listed,) = other.api("GET", "/rules")["items"]
        assert listed["name"] == "fault" and listed["do"]["respond"]["status"] == 429
        assert stores.status(other)["added_rules"] == 1
        server.api("DELETE", "/rules/fault")
        assert pushed(wire, other, device) == (200, None)


def test_rules_that_both_add(servers):
    """Neither removes those of the other."""
    devices = [secrets.token_hex(32) for _ in range(10)]
    for number, device in enumerate(devices):
        servers[number % 2].api("POST", "/rules", {
            "name": f"rule-{number}", "when": {"device_token": device}, "do": {"respond": {"status": 503}}})
    for server in servers:
        assert {one["name"] for one in server.api("GET", "/rules")["items"]} == {f"rule-{number}" for number in range(10)}
        with connect(server) as wire:
            assert {pushed(wire, server, device)[0] for device in devices} == {503}
            assert pushed(wire, server) == (200, None)


# The clock and credentials


@pytest.mark.long
def test_the_clock(directed):
    server, other = directed
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    assert clock(other) == clock(server) and clock(other)["now"] == NOON
    token = "bearer " + other.token(issued_at=NOON_SECONDS)
    with connect(other) as wire:
        assert pushed(wire, other, authorization=token) == (200, None)
        server.api("POST", "/clock/advance", {"by": "1h"})
        assert pushed(wire, other, authorization=token) == (200, None)
        server.api("POST", "/clock/advance", {"by": "1s"})
        assert pushed(wire, other, authorization=token) == (403, "ExpiredProviderToken")
    assert [record["received_at"] for record in server.pushes()] == [
        NOON, NOON.replace("12:", "13:"), NOON.replace("12:00:00", "13:00:01")]
    other.api("PUT", "/clock", {"mode": "real"})
    assert server.api("GET", "/clock")["mode"] == "real" and push(server) == (200, None)


def test_advances_on_both_add_up(servers):
    servers[0].api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    for number in range(10):
        servers[number % 2].api("POST", "/clock/advance", {"by": "1m"})
    for server in servers:
        assert server.api("GET", "/clock")["now"] == NOON.replace("12:00", "12:10")


def test_a_provider_key(directed):
    server, other = directed
    pem = foreign_key()
    token = "bearer " + other.token(key=pem, key_id=KEY)
    with connect(other) as wire:
        server.api("PUT", f"/keys/{KEY}", {"team_id": server.team_id, "public_key": public_half(pem)})
        assert pushed(wire, other, authorization=token) == (200, None)
        assert KEY in [one["key_id"] for one in other.api("GET", "/keys")["items"]]
        server.api("DELETE", f"/keys/{KEY}")
        assert pushed(wire, other, authorization=token)[0] == 403
    assert KEY not in [one["key_id"] for one in other.api("GET", "/keys")["items"]]


# Devices and channels


def test_an_unregistered_device(directed, device):
    server, other = directed
    with connect(other) as wire:
        assert pushed(wire, other, device) == (200, None)
        server.api("PUT", f"/devices/{device}", {"state": "unregistered"})
        assert pushed(wire, other, device) == (410, "Unregistered")
        assert other.api("GET", f"/devices/{device}") == server.api("GET", f"/devices/{device}")
        other.api("DELETE", f"/devices/{device}")
        assert push(server, device) == (200, None)


def fixtures(device):
    return {"apps": [{"bundle_id": APP, "broadcast": True}],
            "devices": [{"id": "anna", "state": "online", "apps": [{"bundle_id": APP, "tokens": {"alert": device}}]}]}


def test_fixtures_and_actions_on_devices(directed, device):
    server, other = directed
    server.api("PUT", "/fixtures", fixtures(device))
    assert other.request("GET", "/api/v1/fixtures").body == server.request("GET", "/api/v1/fixtures").body
    assert push(other, device) == (200, None)
    other.api("POST", "/devices/anna/uninstall", {"bundle_id": APP})
    for one in directed:
        push(one, device)  # a server learns from a push that the app is gone
        assert push(one, device) == (410, "Unregistered")


@pytest.mark.long
def test_an_app_that_is_found_to_be_gone(directed, device):
    """What one server learns from a push, the other knows."""
    server, other = directed
    server.api("PUT", "/fixtures", fixtures(device))
    server.api("POST", "/devices/anna/uninstall", {"bundle_id": APP})
    push(server, device)
    assert other.api("GET", "/devices/anna") == server.api("GET", "/devices/anna")
    assert push(server, device) == push(other, device) == (410, "Unregistered")
    assert other.api("GET", "/devices/anna") == server.api("GET", "/devices/anna")


@pytest.mark.long
def test_what_a_device_shows(directed, device):
    """Of the pushes to both servers."""
    server, other = directed
    server.api("PUT", "/fixtures", fixtures(device))
    for one in directed:
        assert push(one, device) == (200, None)
    shown = [one.api("GET", "/devices/anna/notifications")["items"] for one in directed]
    assert len(shown[0]) == len(shown[1]) == 2


@pytest.mark.long
def test_a_notification_that_replaces_another(directed, device):
    """With the same collapse id, on the other server."""
    server, other = directed
    server.api("PUT", "/fixtures", fixtures(device))
    for one in directed:
        assert push(one, device, apns_collapse_id="score") == (200, None)
        shown = [[each["seq"] for each in notifications(every)] for every in directed]
        assert shown[0] == shown[1] == [one.pushes(device_token=device)[-1]["seq"]]


@pytest.mark.long
def test_a_stored_push_that_another_replaces(directed, device):
    """APNs stores one push for an app: the device gets the newer one, and the older one has a finding."""
    server, other = directed
    server.api("PUT", "/fixtures", fixtures(device))
    server.api("POST", "/devices/anna/offline", {})
    for one in directed:
        assert push(one, device) == (200, None)
        assert stored(server) == stored(other)
    _, second = other.pushes(device_token=device)
    for one in directed:
        assert stored(one) == [second["seq"]]
        assert "overwritten-in-storage" in one.pushes(device_token=device)[0]["findings"]
    server.api("POST", "/devices/anna/online", {})
    for one in directed:
        assert [each["seq"] for each in notifications(one)] == [second["seq"]] and not stored(one)


def test_a_delayed_push(directed, device):
    """The other server delivers it when it is accepted."""
    server, other = directed
    server.api("PUT", "/fixtures", fixtures(device))
    server.api("POST", "/rules", {"name": "later", "do": {"delay": {"fixed": "500ms"}}})
    with connect(server) as wire:
        wire.open(push_headers(server, device), b'{"aps":{"alert":"late"}}')
        wire.ping()
        wait_until(lambda: other.record(device)["outcome"] == "pending", lambda: other.record(device), 5)
        assert not notifications(other)
        wait_until(lambda: len(notifications(other)) == 1, lambda: notifications(other), 5)
    assert notifications(server) == notifications(other)


DELAYS = {
    "answered": {"do": {"delay": {"fixed": "4s"}}},
    "answer lost": {"at": "response", "do": {"hang": {"for": "4s", "end_with": "reset_stream"}}},
}


@pytest.mark.long
@pytest.mark.parametrize("what", ["stored", "shown"])
@pytest.mark.parametrize("delay", some(DELAYS, 1))
def test_a_delayed_push_that_another_overtakes(servers, device, what, delay):
    """It arrived earlier on one server and is accepted later, so both servers keep it and not the other one."""
    server, other = servers
    server.api("PUT", "/fixtures", fixtures(device))
    if what == "stored":
        server.api("POST", "/devices/anna/offline", {})
    server.api("POST", "/rules", {"name": "late", "when": {"priority": 5}, **DELAYS[delay]})
    with connect(server) as wire:
        late = wire.open(
            push_headers(server, device, apns_collapse_id="score", apns_priority="5"), b'{"aps":{"alert":"late"}}')
        wire.ping()
        assert push(other, device, apns_collapse_id="score") == (200, None)
        delayed, quick = [one["seq"] for one in server.pushes(device_token=device)]
        assert (kept(server, what), kept(other, what)) == ([quick], [quick])
        assert wire.response(late).status == (200 if delay == "answered" else None)
    assert server.pushes(device_token=device)[0]["accepted"]
    assert (kept(server, what), kept(other, what)) == ([delayed], [delayed])


def kept(server, what):
    return stored(server) if what == "stored" else [each["seq"] for each in notifications(server)]


def notifications(server):
    return server.api("GET", "/devices/anna/notifications")["items"]


def stored(server):
    return server.api("GET", "/devices/anna/notifications")["stored"]


@pytest.mark.long
def test_a_device_that_is_offline(directed, device):
    server, other = directed
    server.api("PUT", "/fixtures", fixtures(device))
    server.api("POST", "/devices/anna/offline", {})
    assert push(other, device) == (200, None)
    assert server.record(device)["delivery"] == "Stored - Device Offline"
    server.api("POST", "/devices/anna/online", {})
    for one in directed:
        wait_until(lambda: one.record(device)["delivery"] == "Delivered to Device (From Storage)",
                   lambda: one.record(device), 5)


def broadcast(server, channel):
    with connect(server) as wire:
        response = wire.push([
            (":method", "POST"), (":scheme", "https"), (":path", f"/4/broadcasts/apps/{APP}"),
            (":authority", server.authority), ("authorization", server.bearer), ("apns-channel-id", channel),
            ("apns-push-type", "liveactivity"), ("apns-priority", "10"), ("apns-expiration", "0")],
            b'{"aps":{"timestamp":1700000000,"event":"update","content-state":{"score":1}}}')
    return response.status


def channel_ids(server):
    return [one["id"] for one in server.api("GET", "/channels")["items"]]


def test_a_channel(directed):
    server, other = directed
    channel = server.api("POST", "/channels", {"bundle_id": APP})["id"]
    assert channel_ids(other) == [channel]
    assert broadcast(other, channel) == 200
    server.api("DELETE", "/channels", bundle_id=APP, id=channel)
    assert channel_ids(other) == [] and broadcast(other, channel) != 200


def manage_channel(wire, server, method, channel=None):
    """A provider's request about one channel."""
    more = [("apns-channel-id", channel)] if channel else []
    body = b'{"message-storage-policy":1,"push-type":"LiveActivity"}' if method == "POST" else b""
    return wire.push([(":method", method), (":scheme", "https"), (":path", f"/1/apps/{APP}/channels"),
                      (":authority", server.authority), ("authorization", server.bearer), *more], body)


def created_channel(server):
    with connect(server) as wire:
        made = manage_channel(wire, server, "POST")
    assert made.status == 201
    return made.header("apns-channel-id")


def removed(server, channel):
    with connect(server) as wire:
        return manage_channel(wire, server, "DELETE", channel).status == 204


@pytest.mark.long
@pytest.mark.parametrize("durable", ["soon", "answer"])
def test_a_channel_that_a_provider_creates(late, durable):
    """The response leaves when the other server knows it."""
    server, other = late("--durable", durable), late("--durable", durable)
    for _ in range(10):
        channel = created_channel(server)
        assert broadcast(other, channel) == 200
        assert removed(other, channel) and broadcast(server, channel) == 400
    assert channel_ids(other) == channel_ids(server) == []


@pytest.mark.long
def test_channels_that_both_create_at_the_same_time(servers):
    """Neither waits for the other one forever."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        channels = list(pool.map(created_channel, servers * 20))
        assert sorted(channel_ids(servers[0])) == sorted(channel_ids(servers[1])) == sorted(channels)
        assert all(pool.map(removed, servers[::-1] * 20, channels))
    assert channel_ids(servers[0]) == channel_ids(servers[1]) == []


@pytest.mark.long
def test_a_channel_that_is_created_while_another_server_is_frozen(servers):
    """The frozen server is not waited for any longer than for a request of the admin API."""
    server, other = servers
    os.kill(other.process.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            channels = list(pool.map(created_later, [server] * 4, (0, 0.1, 0.2, 0.3)))
        assert time.monotonic() - began < 5, "they do not wait one after the other"
        assert broadcast(server, channels[-1]) == 200
    finally:
        os.kill(other.process.pid, signal.SIGCONT)
    wait_until(lambda: sorted(channel_ids(other)) == sorted(channels), "the other server knows the channels", 10)


def created_later(server, seconds):
    time.sleep(seconds)
    return created_channel(server)


@pytest.mark.long
def test_a_channel_that_a_provider_creates_and_removes_while_postgres_is_slow(servers, inbox):
    """The servers execute both in the order in which PostgreSQL has them, and the server that answered does not create the
    channel again in the meantime.
    """
    server, other = servers
    with (stores.pausing(inbox, "in the commit") as until_paused, connect(server) as wire, connect(server) as second,
          concurrent.futures.ThreadPoolExecutor(1) as pool):
        channel = created_channel(server)
        assert broadcast(other, channel) == 200
        until_paused()
        removal = pool.submit(manage_channel, wire, server, "DELETE", channel)
        # Before the response, which waits until the other server has removed it too.
        wait_until(lambda: manage_channel(second, server, "GET", channel).status == 400, "it is gone", 5)
        while not removal.done():
            assert manage_channel(second, server, "GET", channel).status == 400
            time.sleep(0.02)
        assert removal.result().status == 204 and broadcast(other, channel) == 400
    assert channel_ids(server) == channel_ids(other) == []
    restored = {"bundle_id": APP, "id": channel}
    assert other.api("POST", "/channels", restored)["id"] == channel
    assert channel_ids(server) == channel_ids(other) == [channel]


@pytest.mark.long
def test_a_broadcast_while_another_server_removes_the_channel(servers, inbox, device):
    """The server that removes it learns of the broadcast later, and shows it on the device nevertheless."""
    server, other = servers
    server.api("PUT", "/fixtures", fixtures(device))
    channel = created_channel(server)
    server.api("POST", "/devices/anna/subscriptions", {"channel": channel})
    with stores.pausing(inbox, "in the commit") as until_paused:
        assert broadcast(other, channel) == 200
        until_paused()
        assert removed(server, channel)
    assert len(notifications(server)) == len(notifications(other)) == 1
    assert all(one.api("GET", "/devices/anna/subscriptions")["items"] == [] for one in servers)


# Connections


@pytest.mark.long
def test_a_command_that_names_a_connection_of_another_server(directed):
    server, other = directed
    with connect(other) as wire:
        assert pushed(wire, other) == (200, None)
        name = other.pushes()[-1]["connection"]["id"]
        assert server.api("POST", "/connections/close", {"connection": name}) == {"connections": []}
        wire.sock.settimeout(3)
        wire.read_to_end()
        assert wire.closed
    push(server)
    own = server.pushes()[-1]["connection"]["id"]
    unknown = f"c{int(own[1:]) + 1000}"
    assert server.request("POST", "/api/v1/connections/close", {"connection": unknown}).status == 404


@pytest.mark.long
@pytest.mark.parametrize("what", ["goaway", "close", "reset"])
def test_an_end_of_all_connections(directed, what):
    """Connections belong to a server, but the request reaches those of all servers."""
    server, other = directed
    with connect(server) as own, connect(other) as foreign:
        for one, wire in ((server, own), (other, foreign)):
            assert pushed(wire, one) == (200, None)
        server.api("POST", f"/connections/{what}", {"all": True})
        for wire in (own, foreign):
            wire.sock.settimeout(3)
            frames = wire.read_to_end() if what != "goaway" else [wire.until(lambda frame: isinstance(frame, GoAwayFrame))]
            assert what == "goaway" or wire.closed, frames
    for one in directed:
        assert push(one) == (200, None)


# Reset


def configure(server, other, device):
    """Changes everything that can be shared; pushes to both."""
    pem = foreign_key()
    server.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 0, "streak": 7}})
    server.api("POST", "/rules", {"name": "fault", "when": {"device_token": "aa" * 32}, "do": {"respond": {"status": 429}}})
    server.api("PUT", "/fixtures", fixtures(device))
    server.api("PUT", f"/devices/{'bb' * 32}", {"state": "unregistered"})
    channel = server.api("POST", "/channels", {"bundle_id": APP})["id"]
    server.api("PUT", f"/keys/{KEY}", {"team_id": server.team_id, "public_key": public_half(pem)})
    server.api("POST", "/clock/advance", {"by": "5m"})
    server.api("PUT", "/clock", {"mode": "frozen"})
    for one in (server, other):
        assert push(one)[0] == 200
    return pem, channel


def clock(server):
    """Returns the clock but the member that changes while it is frozen."""
    return {name: value for name, value in server.api("GET", "/clock").items() if name != "offset_ms"}


def assert_configured(server, reference, pem, channel):
    """A server has the state of another one, and applies it."""
    assert clock(server) == clock(reference)
    for path in ("/keys", "/channels", "/devices", "/fixtures"):
        assert server.api("GET", path) == reference.api("GET", path), path
    profiles = [{**one.api("GET", "/profile"), "rules": None} for one in (server, reference)]  # its rules have counters
    assert profiles[0] == profiles[1]
    assert [one["name"] for one in server.api("GET", "/rules")["items"]] == ["fault"]
    now = server.api("GET", "/clock")
    assert now["mode"] == "frozen"
    assert push(server, "aa" * 32)[0] == 429
    assert push(server, "bb" * 32) == (410, "Unregistered")
    assert push(server, authorization="bearer " + server.token(key=pem, key_id=KEY)) == (200, None)
    assert channel_ids(server) == [channel] and broadcast(server, channel) == 200


def test_a_reset_of_everything(directed, device):
    server, other = directed
    untouched = {path: other.request("GET", "/api/v1" + path).body
                 for path in ("/profile", "/rules", "/channels", "/devices", "/fixtures", "/pushes")}
    configure(server, other, device)
    server.api("POST", "/reset", {})
    for path, body in untouched.items():
        assert other.request("GET", "/api/v1" + path).body == body, path
    assert other.api("GET", "/clock")["mode"] == "real"
    assert KEY in [one["key_id"] for one in other.api("GET", "/keys")["items"]], "trusted keys stay"
    assert push(other, "aa" * 32) == push(other, "bb" * 32) == (200, None)
    assert len(server.pushes()) == 2 == len(other.pushes())


@pytest.mark.long
@pytest.mark.parametrize("part", ["inbox", "rules", "profile", "clock", "devices", "channels"])
def test_a_reset_of_a_part(directed, device, part):
    server, other = directed
    configure(server, other, device)
    server.api("POST", "/reset", {part: True})
    found = {
        "inbox": other.pushes() == [], "rules": other.api("GET", "/rules")["total"] == 0,
        "profile": other.api("GET", "/profile")["name"] == "healthy", "clock": other.api("GET", "/clock")["mode"] == "real",
        "devices": other.api("GET", "/devices")["total"] == 0, "channels": channel_ids(other) == [],
    }
    assert found == {name: name == part for name in found}


@pytest.mark.long
def test_a_reset_of_a_scope(directed):
    server, other = directed
    for one in directed:
        push(one, apns_topic="com.example.mine")
        push(one)
    server.api("POST", "/reset", {"scope": "topic:com.example.mine"})
    for one in (other, server):
        assert [record["apns"]["topic"] for record in one.pushes()] == [APP] * 2


def upload(server, profile):
    return server.request(
        "PUT", "/api/v1/profiles/closed-shop", profile, headers={"content-type": "application/yaml"}).status


@pytest.mark.long
def test_what_a_later_server_need_not_execute_is_forgotten(servers, late, inbox):
    """A suite that runs for weeks resets the inbox, and uploads its profile and its key, before each test."""
    for number in range(5):
        for server in servers:
            server.api("POST", "/reset", {"inbox": True})
            assert upload(server, PROFILE) in (200, 201)
            server.api("PUT", f"/keys/{KEY}", {"team_id": "OWNTEAM001", "public_key": public_half(foreign_key())})
    # An invalid one replaces nothing.
    assert upload(servers[0], b"rules: 7") == 422
    kept = inbox.postgres.rows(
        "SELECT kind, body FROM message WHERE kind IN ('state', 'lasting') ORDER BY number", schema=inbox.schema)
    assert len(kept) == 3, kept
    server = late()
    assert server.api("GET", "/profiles/closed-shop")["name"] == "closed-shop"
    assert [each["key_id"] for each in server.api("GET", "/keys")["items"]].count(KEY) == 1


def test_what_cannot_be_executed_is_not_stored(servers, late, inbox):
    """Large fixtures with a mistake would be read again by each server that starts, and the database has no NUL in texts."""
    broken = json.dumps({**json.loads(servers[0].request("GET", "/api/v1/fixtures").body), "devices": [{"id": "x" * 5000, "what": 1}]})
    for path, body, status in [
            ("/fixtures", broken, 422), ("/fixtures", "apps: [" + "x" * 5000, 422), ("/fixtures", '{"apps": [], "x": "\0"}', 400),
            ("/profiles/closed-shop", PROFILE.decode() + "\0", 400), ("/profiles/closed-shop", "\0", 400)]:
        response = servers[0].request("PUT", "/api/v1" + path, body.encode(), headers={"content-type": "application/yaml"})
        assert response.status == status, (path, response.body)
    kept = inbox.postgres.rows("SELECT body FROM message", schema=inbox.schema)
    assert not [body for body in kept if "xxxxx" in str(body) or "u0000" in str(body)]
    assert upload(servers[1], PROFILE) == 201
    assert upload(servers[0], PROFILE) == 200, "what replaces an upload can be noted"
    assert late().api("GET", "/profiles/closed-shop")["name"] == "closed-shop"


@pytest.mark.long
def test_what_expires_does_so_at_the_same_time_on_a_server_that_starts_later(servers, late):
    """It does not begin again with its whole time."""
    servers[0].api("POST", "/rules", {"name": "down", "do": {"respond": {"status": 503}}, "ttl": "4s"})
    servers[0].api("PUT", "/profile", {**ALWAYS_503, "ttl": "4s"})
    time.sleep(3)
    third = late()
    time.sleep(1.5)
    for one in (*servers, third):
        assert one.api("GET", "/rules")["items"] == [] and one.api("GET", "/profile")["name"] == "healthy"
    assert push(third) == (200, None)


@pytest.mark.long
@pytest.mark.parametrize("path", ["/api/v1/reset/", "//api/v1/reset"])
def test_a_reset_of_a_scope_is_not_repeated_by_a_server_that_starts_later(servers, late, path):
    """However the path is written."""
    push(servers[0])
    assert servers[0].request("POST", path, {"scope": f"topic:{APP}"}).status == 200
    push(servers[0])
    third = late()
    for one in (*servers, third):
        assert [record["seq"] for record in one.pushes()] == [2]


@pytest.mark.long
def test_attempts_begin_anew_after_a_reset(directed, device):
    server, other = directed
    apns_id = "12345678-1234-4234-8234-123456789ABC"
    for one in directed:
        assert push(one, device, apns_id=apns_id, apns_priority="7")[0] == 400
    server.api("POST", "/reset", {})
    assert push(other, device, apns_id=apns_id, apns_priority="7")[0] == 400
    assert server.record(device)["attempt"] == 1


# Servers that come and go


@pytest.mark.long
def test_a_server_that_starts_later(directed, late, device):
    server, other = directed
    pem, channel = configure(server, other, device)
    third = late()
    assert_configured(third, server, pem, channel)
    third.api("POST", "/reset", {"rules": True})
    assert push(server, "aa" * 32) == (200, None)


@pytest.mark.long
def test_the_state_outlives_the_server_that_set_it(directed, late, device):
    server, other = directed
    pem, channel = configure(server, other, device)
    assert server.stop() == 0
    third = late()
    assert_configured(third, other, pem, channel)


def test_the_state_survives_the_kill_of_the_server_that_set_it(binary, certs, inbox, device):
    first, second = (Server(binary, certs, *stores.flags(inbox, memory_records=8)) for _ in range(2))
    third = None
    try:
        pem, channel = configure(first, second, device)
        first.kill()
        third = Server(binary, certs, *stores.flags(inbox, memory_records=8))
        assert_configured(third, second, pem, channel)
        third.api("POST", "/clock/advance", {"by": "1m"})
        assert clock(second) == clock(third), "no request waits for the killed server"
        stop_cleanly(second)
        stop_cleanly(third)
    finally:
        for one in (first, second, third):
            if one:
                one.kill()


@pytest.mark.long
def test_servers_of_other_schemas_are_not_affected(servers, start, postgres, device):
    separate = start(*stores.flags(postgres.new_inbox()))
    with connect(separate) as wire:
        assert pushed(wire, separate) == (200, None)
        configure(*servers, device)
        servers[0].api("POST", "/connections/goaway", {"all": True})
        assert pushed(wire, separate, "aa" * 32) == pushed(wire, separate, "bb" * 32) == (200, None)
        wire.drain()
        assert not [frame for frame in wire.frames if isinstance(frame, GoAwayFrame)]
    assert separate.api("GET", "/clock")["mode"] == "real" and separate.api("GET", "/profile")["name"] == "healthy"

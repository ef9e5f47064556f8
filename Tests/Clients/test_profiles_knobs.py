"""The names and parameters of the built-in fault profiles; a changed parameter takes effect at the next push."""

import json
import ssl

import pytest

from support.campaigns import campaign, under  # noqa: F401 (a fixture)
from support.naive import Naive
from support.wire import connect, push_headers

KNOBS = {
    "healthy": [], "flaky-503": ["rate", "streak"], "rate-limited-429": ["limit", "per", "burst"],
    "unregistered-410": ["rate", "gone_for"], "expired-jwt-403": ["max_age"], "token-update-storm": [],
    "bad-token-400": ["rate"], "wrong-environment-key": ["spelling"], "brownout": ["p50", "ramp"],
    "goaway-storm": ["streams", "grace"], "connection-reset": ["rate"], "shutdown-rolling": ["every", "drain"],
    "tls-handshake-stall": ["hold"], "tls-bad-certificate": ["use"], "single-stream": ["max"], "stream-throttle": [],
    "half-open": [], "ack-lost": ["rate"], "odd-answers": [], "chaos-mix": ["intensity"],
}
NOON, NOON_SECONDS = "2030-01-01T12:00:00.000Z", 1893499200


def turn(server, **knobs):
    return server.api("PATCH", "/profile/params", knobs)


@pytest.fixture
def pushing(device):
    """`pushing(server, wire)`: a function that pushes on that connection and returns the status and the reason."""

    def made(server, wire):
        def push(**changes):
            answer = wire.push(push_headers(server, device, **changes))
            return answer.status, json.loads(answer.body)["reason"] if answer.body else None

        return push

    return made


def test_every_profile_is_listed_with_its_summary_and_knobs(start):
    server = start()
    listed = server.api("GET", "/profiles")
    items = {item["name"]: item for item in listed["items"]}
    assert {name: [knob["name"] for knob in item["params"]] for name, item in items.items()} == KNOBS
    assert (listed["total"], listed["problems"]) == (len(KNOBS), [])
    for name, item in items.items():
        assert item["summary"] and item["origin"] == "built-in", name
        for knob in item["params"]:
            assert knob["help"] and knob["type"] and knob["value"] == knob["default"], (name, knob)
    assert [name for name, item in items.items() if item["active"]] == ["healthy"]


@pytest.mark.parametrize("name", KNOBS)
def test_every_knob_takes_its_default_and_the_ends_of_its_range(under, name):
    server = under(name)
    for knob in server.api("GET", "/profile")["knobs"]:
        ends = {"probability": [0, 1]}.get(knob["type"], [])
        for value in [*(knob[end] for end in ("min", "max") if end in knob), *ends, knob["default"]]:
            shown = turn(server, **{knob["name"]: value})
            assert shown["params"][knob["name"]] == value
            assert [one["value"] for one in shown["knobs"] if one["name"] == knob["name"]] == [value]
    assert server.api("GET", "/profile")["reference"].partition("?")[0] == name


def test_a_knob_that_is_turned_shows_at_the_next_push_of_an_open_connection(under, pushing):
    server = under("flaky-503?rate=0&streak=10")
    with connect(server) as wire:
        push = pushing(server, wire)
        assert push() == (200, None)
        assert turn(server, rate=1)["reference"].startswith("flaky-503?")
        assert push() == (503, "ServiceUnavailable")
        turn(server, rate=0)
        assert push() == (200, None)


def test_a_knob_that_is_turned_leaves_the_others_as_they_are(under):
    server = under("rate-limited-429?limit=3&burst=4")
    assert turn(server, per="2s")["params"] == {"limit": 3, "per": "2s", "burst": 4}
    assert turn(server, limit=None)["params"] == {"limit": 5, "per": "2s", "burst": 4}, "null is the default"
    assert server.api("GET", "/profile")["params"] == {"limit": 5, "per": "2s", "burst": 4}
    chosen = server.api("PUT", "/profile", {"name": "rate-limited-429"})
    assert chosen["params"] == {"limit": 5, "per": "1s", "burst": 5}, "chosen anew it has its defaults"


def test_a_count_that_is_turned(under, pushing):
    server = under("goaway-storm?streams=100&grace=0s")
    with connect(server) as wire:
        push = pushing(server, wire)
        assert [push() for _ in range(3)] == [(200, None)] * 3
        turn(server, streams=2)
        wire.open(push_headers(server, "ab" * 32), b"{}")
        wire.open(push_headers(server, "ab" * 32), b"{}")
        assert json.loads(wire.goaway().additional_data) == {"reason": "Shutdown"}
        wire.read_to_end()


def test_a_duration_that_is_turned(under, pushing):
    """`max_age` is used in a condition and in the profile's APNs settings; a change applies to both."""
    server = under("expired-jwt-403?max_age=30s")
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    old = "bearer " + server.token(issued_at=NOON_SECONDS - 40)
    with connect(server) as wire:
        push = pushing(server, wire)
        assert push(authorization=old) == (403, "ExpiredProviderToken")
        turn(server, max_age="50s")
        assert push(authorization=old) == (200, None)


def test_a_text_that_is_turned(under, pushing):
    server = under("wrong-environment-key")
    with connect(server) as wire:
        push = pushing(server, wire)
        assert push() == (403, "BadEnvironmentKeyInToken")
        turn(server, spelling="BadEnvironmentKeyIdInToken")
        assert push() == (403, "BadEnvironmentKeyIdInToken")


def test_a_knob_of_handshakes_shows_at_the_next_connection(under):
    server = under("tls-bad-certificate?use=expired")
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        connect(server)
    turn(server, use="wrong_name")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        connect(server)
    server.api("DELETE", "/profile")
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ab" * 32)).status == 200


def test_a_knob_of_settings_shows_at_the_next_connection(under, device):
    server = under("single-stream?max=2")
    for most in (2, 5):
        turn(server, max=most)
        with connect(server) as wire:
            assert wire.push(push_headers(server, device)).status == 200
            assert [frame.settings[3] for frame in wire.own_settings()] == [most]


@pytest.mark.parametrize(("knobs", "told"), [
    ({"rate": 20}, "rate"), ({"rate": "much"}, "rate"), ({"streak": 0}, "streak"), ({"streak": 1.5}, "streak"),
    ({"rat": 0.5}, 'did you mean "rate"?'),
])
def test_a_knob_that_cannot_be_turned_so_says_why_and_stays(under, pushing, knobs, told):
    server = under("flaky-503?rate=1&streak=2")
    before = server.api("GET", "/profile")["params"]
    for method, path, body in (
        ("PATCH", "/api/v1/profile/params", knobs),
        ("PUT", "/api/v1/profile", {"name": "flaky-503", "params": knobs}),
    ):
        answer = server.request(method, path, body)
        assert answer.status == 422, answer.body
        assert told in json.dumps(answer.json["problems"]).replace('\\"', '"')
    assert server.api("GET", "/profile")["params"] == before
    with connect(server) as wire:
        assert pushing(server, wire)() == (503, "ServiceUnavailable")


def test_the_flag_takes_a_profile_with_knobs_and_the_status_says_so(start):
    server = start("--profile", "bad-token-400?rate=1", "--seed", "5")
    chosen = server.api("GET", "/profile")
    assert (chosen["name"], chosen["params"], chosen["seed"]) == ("bad-token-400", {"rate": 1}, 5)
    assert server.api("GET", "/status")["profile"] == chosen["reference"]
    naive = Naive(server)
    naive.run(campaign(3))
    assert naive.failed == [0, 1, 2]

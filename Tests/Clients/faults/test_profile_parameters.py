"""The names and parameters of the built-in fault profiles; a changed parameter takes effect at the next push."""

import json
import ssl

import pytest

from support.campaigns import campaign, under  # noqa: F401 (a fixture)
from support.naive import Naive
from support.wire import connect, push_headers

PARAMETERS = {
    "healthy": [], "flaky-503": ["rate", "streak"], "retry-after": ["rate", "wait"],
    "rate-limited-429": ["limit", "per", "burst"],
    "unregistered-410": ["rate", "gone_for"], "expired-jwt-403": ["max_age"], "token-update-storm": [],
    "bad-token-400": ["rate"], "wrong-environment-key": ["spelling"], "brownout": ["p50", "ramp"],
    "goaway-storm": ["streams", "grace"], "connection-reset": ["rate"], "shutdown-rolling": ["every", "drain"],
    "tls-handshake-stall": ["hold"], "tls-bad-certificate": ["use"], "single-stream": ["max"], "stream-throttle": [],
    "half-open": [], "ack-lost": ["rate"], "odd-answers": [], "chaos-mix": ["intensity"],
    "channel-limit": ["limit"], "broadcast-flaky": ["rate", "streak"],
}
NOON, NOON_SECONDS = "2030-01-01T12:00:00.000Z", 1893499200


def change(server, **parameters):
    return server.api("PATCH", "/profile/params", parameters)


@pytest.fixture
def pushing(device):
    """`pushing(server, wire)`: a function that pushes on that connection and returns the status and the reason."""

    def made(server, wire):
        def push(**changes):
            response = wire.push(push_headers(server, device, **changes))
            return response.status, json.loads(response.body)["reason"] if response.body else None

        return push

    return made


def test_every_profile_is_listed_with_its_summary_and_parameters(start):
    server = start()
    listed = server.api("GET", "/profiles")
    items = {item["name"]: item for item in listed["items"]}
    assert {name: [parameter["name"] for parameter in item["params"]] for name, item in items.items()} == PARAMETERS
    assert (listed["total"], listed["problems"]) == (len(PARAMETERS), [])
    for name, item in items.items():
        assert item["summary"] and item["origin"] == "built-in", name
        for parameter in item["params"]:
            assert parameter["help"] and parameter["type"] and parameter["value"] == parameter["default"], (name, parameter)
    assert [name for name, item in items.items() if item["active"]] == ["healthy"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_accepts_its_default_and_the_limits_of_its_range(under, name):
    server = under(name)
    for parameter in server.api("GET", "/profile")["knobs"]:
        ends = {"probability": [0, 1]}.get(parameter["type"], [])
        for value in [*(parameter[end] for end in ("min", "max") if end in parameter), *ends, parameter["default"]]:
            shown = change(server, **{parameter["name"]: value})
            assert shown["params"][parameter["name"]] == value
            assert [one["value"] for one in shown["knobs"] if one["name"] == parameter["name"]] == [value]
    assert server.api("GET", "/profile")["reference"].partition("?")[0] == name


def test_a_changed_parameter_applies_at_the_next_push_of_an_open_connection(under, pushing):
    server = under("flaky-503?rate=0&streak=10")
    with connect(server) as wire:
        push = pushing(server, wire)
        assert push() == (200, None)
        assert change(server, rate=1)["reference"].startswith("flaky-503?")
        assert push() == (503, "ServiceUnavailable")
        change(server, rate=0)
        assert push() == (200, None)


def test_a_changed_parameter_does_not_change_others(under):
    server = under("rate-limited-429?limit=3&burst=4")
    assert change(server, per="2s")["params"] == {"limit": 3, "per": "2s", "burst": 4}
    assert change(server, limit=None)["params"] == {"limit": 5, "per": "2s", "burst": 4}, "null is the default"
    assert server.api("GET", "/profile")["params"] == {"limit": 5, "per": "2s", "burst": 4}
    chosen = server.api("PUT", "/profile", {"name": "rate-limited-429"})
    assert chosen["params"] == {"limit": 5, "per": "1s", "burst": 5}, "chosen anew it has its defaults"


def test_a_changed_count(under, pushing):
    server = under("goaway-storm?streams=100&grace=0s")
    with connect(server) as wire:
        push = pushing(server, wire)
        assert [push() for _ in range(3)] == [(200, None)] * 3
        change(server, streams=2)
        wire.open(push_headers(server, "ab" * 32), b"{}")
        wire.open(push_headers(server, "ab" * 32), b"{}")
        assert json.loads(wire.goaway().additional_data) == {"reason": "Shutdown"}
        wire.read_to_end()


def test_a_changed_duration(under, pushing):
    """`max_age` is used in a condition and in the profile's APNs settings; a change applies to both."""
    server = under("expired-jwt-403?max_age=30s")
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    old = "bearer " + server.token(issued_at=NOON_SECONDS - 40)
    with connect(server) as wire:
        push = pushing(server, wire)
        assert push(authorization=old) == (403, "ExpiredProviderToken")
        change(server, max_age="50s")
        assert push(authorization=old) == (200, None)


def test_a_changed_string(under, pushing):
    server = under("wrong-environment-key")
    with connect(server) as wire:
        push = pushing(server, wire)
        assert push() == (403, "BadEnvironmentKeyInToken")
        change(server, spelling="BadEnvironmentKeyIdInToken")
        assert push() == (403, "BadEnvironmentKeyIdInToken")


def test_a_parameter_of_handshakes_applies_at_the_next_connection(under):
    server = under("tls-bad-certificate?use=expired")
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        connect(server)
    change(server, use="wrong_name")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        connect(server)
    server.api("DELETE", "/profile")
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ab" * 32)).status == 200


def test_a_parameter_of_settings_applies_at_the_next_connection(under, device):
    server = under("single-stream?max=2")
    for most in (2, 5):
        change(server, max=most)
        with connect(server) as wire:
            assert wire.push(push_headers(server, device)).status == 200
            assert [frame.settings[3] for frame in wire.own_settings()] == [most]


@pytest.mark.parametrize(("parameters", "message"), [
    ({"rate": 20}, "rate"), ({"rate": "much"}, "rate"), ({"streak": 0}, "streak"), ({"streak": 1.5}, "streak"),
    ({"rat": 0.5}, 'did you mean "rate"?'),
])
def test_an_invalid_value_is_explained_and_changes_nothing(under, pushing, parameters, message):
    server = under("flaky-503?rate=1&streak=2")
    before = server.api("GET", "/profile")["params"]
    for method, path, body in (
        ("PATCH", "/api/v1/profile/params", parameters),
        ("PUT", "/api/v1/profile", {"name": "flaky-503", "params": parameters}),
    ):
        response = server.request(method, path, body)
        assert response.status == 422, response.body
        assert message in json.dumps(response.json["problems"]).replace('\\"', '"')
    assert server.api("GET", "/profile")["params"] == before
    with connect(server) as wire:
        assert pushing(server, wire)() == (503, "ServiceUnavailable")


def test_the_flag_accepts_a_profile_with_parameters(start):
    server = start("--profile", "bad-token-400?rate=1", "--seed", "5")
    chosen = server.api("GET", "/profile")
    assert (chosen["name"], chosen["params"], chosen["seed"]) == ("bad-token-400", {"rate": 1}, 5)
    assert server.api("GET", "/status")["profile"] == chosen["reference"]
    naive = Naive(server)
    naive.run(campaign(3))
    assert naive.failed == [0, 1, 2]

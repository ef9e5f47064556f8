"""The settings under `apns:` in the configuration file, each observed by a client."""

import secrets

import pytest
from hyperframe.frame import DataFrame, RstStreamFrame, SettingsFrame

from support.server import run
from support.tokens import public_half
from support.wire import REFUSED_STREAM, STREAM_CLOSED, connect, push_headers

NOON = "2030-01-01T12:00:00.000Z"
NOON_SECONDS = 1893499200
MAX_CONCURRENT_STREAMS = SettingsFrame.MAX_CONCURRENT_STREAMS


@pytest.fixture
def configured(start, tmp_path):
    """Starts a server with these lines in the `apns:` map and its clock frozen at noon."""

    def starter(*lines):
        config = tmp_path / "config.yaml"
        config.write_text("apns:\n" + "".join(f"  {line}\n" for line in lines))
        server = start("--config", config)
        server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
        return server

    return starter


def resets(wire):
    """Returns the streams the server reset, with the codes."""
    return {(frame.stream_id, frame.error_code) for frame in wire.frames if isinstance(frame, RstStreamFrame)}


def pushing(server, wire, device):
    """Returns a function that pushes with a token of a given age in seconds and returns the status and the reason."""

    def push(age=0, **changes):
        authorization = "bearer " + server.token(issued_at=NOON_SECONDS - age)
        response = wire.push(push_headers(server, device, **{"authorization": authorization, **changes}))
        return response.status, response.body.decode().removeprefix('{"reason":"').split('"')[0]

    return push


@pytest.mark.parametrize(("age", "expected"), [(600, (200, "")), (601, (403, "ExpiredProviderToken"))])
def test_token_max_age(configured, device, age, expected):
    server = configured("token_max_age: 10m")
    with connect(server) as wire:
        assert pushing(server, wire, device)(age) == expected


@pytest.mark.parametrize(("age", "expected"), [(-60, (200, "")), (-61, (403, "ExpiredProviderToken"))])
def test_token_future(configured, device, age, expected):
    server = configured("token_future: 1m")
    with connect(server) as wire:
        assert pushing(server, wire, device)(age) == expected


def test_free_token_updates(configured, device):
    server = configured("free_token_updates: 3")
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert [push(age)[0] for age in range(6)] == [200, 200, 200, 200, 429, 429]


def test_token_update_interval(configured, device):
    server = configured("token_update_interval: 1m", "free_token_updates: 0")
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert push(0) == (200, "")
        server.api("POST", "/clock/advance", {"by": "1m"})
        assert push(1) == (200, "")
        server.api("POST", "/clock/advance", {"by": "59s"})
        assert push(2) == (429, "TooManyProviderTokenUpdates")


TOO_MANY = (429, "TooManyProviderTokenUpdates")


@pytest.mark.parametrize(("scope", "free", "expected"), [
    ("connection", 0, [(200, "")] * 5), ("team", 0, [(200, "")] + [TOO_MANY] * 4),
    ("connection", 1, [(200, "")] * 5), ("team", 1, [(200, "")] * 3 + [TOO_MANY] * 2),
])
def test_token_update_scope(configured, device, scope, free, expected):
    """Two connections of a team with a provider token each, and a third connection with a third token. With `team`, the
    429 also blocks the tokens and connections that were accepted before, but not another team.
    """
    server = configured(f"token_update_scope: {scope}", f"free_token_updates: {free}")
    server.api("PUT", "/keys/OTHERKEY01", {"team_id": "OTHERTEAM1", "public_key": public_half(server.key)})
    with connect(server) as first, connect(server) as second, connect(server) as third, connect(server) as foreign:
        pushes = [pushing(server, wire, device) for wire in (first, second, third)]
        answers = [pushes[0](0), pushes[1](1), pushes[0](0), pushes[2](2), pushes[0](0)]
        assert answers == expected
        other = server.token(issued_at=NOON_SECONDS - 3, key_id="OTHERKEY01", team_id="OTHERTEAM1")
        assert pushing(server, foreign, device)(authorization="bearer " + other) == (200, "")
        with connect(server) as new:
            assert pushing(server, new, device)(0) == expected[-1], "a new connection does not help"
        server.api("POST", "/clock/advance", {"by": "20m"})
        assert [push(0) for push in pushes] == [(200, "")] * 3


@pytest.mark.parametrize(("line", "words"), [
    ("token_update_scope: teem", ['token_update_scope: "teem" is invalid', "expected connection or team"]),
    ("token_update_scop: team", ['unknown setting "token_update_scop"', "did you mean token_update_scope?"]),
])
def test_a_misspelt_scope_prevents_the_start(binary, certs, tmp_path, line, words):
    config = tmp_path / "config.yaml"
    config.write_text(f"apns:\n  {line}\n")
    done = run(binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, "--config", config)
    assert done.returncode == 2
    for word in (f"{config}:2:3: ", *words):
        assert word in done.stderr


def test_first_streams_and_max_streams(configured, device):
    server = configured("first_streams: 7", "max_streams: 77")
    with connect(server) as wire:
        assert pushing(server, wire, device)()[0] == 200
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [7, 77]


def test_throttle_on_4xx(configured, device):
    server = configured("throttle_on_4xx: on")
    gone = secrets.token_hex(32)
    server.api("PUT", f"/devices/{gone}", {"state": "unregistered"})
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert push()[0] == 200
        assert push(path_=f"/3/device/{gone}")[0] == 410
        wire.ping()
        assert len(wire.own_settings()) == 2, "a 410 never throttles"
        assert push(apns_priority="7")[0] == 400
        assert push()[0] == 200
        wire.ping()
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1, 1000, 1, 1000]



@pytest.mark.parametrize("headers", [None, {"retry-after": "1"}], ids=["plain", "with a header"])
def test_throttle_on_4xx_of_a_fault(configured, device, headers):
    """The valid token raises the connection's stream limit, and the injected response throttles it, whatever its
    form.
    """
    server = configured("throttle_on_4xx: on")
    response = {"status": 429, "reason": "TooManyRequests"} | ({"headers": headers} if headers else {})
    server.api("POST", "/rules", {"trigger": {"first": 1, "times_per": "push"}, "do": {"respond": response}})
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert push() == (429, "TooManyRequests")
        assert push()[0] == 200
        wire.ping()
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1, 1000, 1, 1000]


def test_throttle_on_4xx_refuses_the_other_open_streams(configured, device):
    """Protocol.md, section 9.1: REFUSED_STREAM for streams that are open when the limit drops, STREAM_CLOSED for
    late frames.
    """
    server = configured("throttle_on_4xx: on")
    slow = secrets.token_hex(32)
    server.api("POST", "/rules", {"when": {"device_token": slow}, "do": {"delay": {"fixed": "60s"}}})
    with connect(server) as wire:
        token = "bearer " + server.token(issued_at=NOON_SECONDS)
        headers = push_headers(server, device, authorization=token)
        assert wire.push(headers).status == 200
        partial = wire.open(headers, end_stream=False)
        delayed = wire.open(push_headers(server, slow, authorization=token), b"{}")
        wire.ping()
        rejected = wire.push(push_headers(server, device, authorization=token, apns_priority="7"))
        assert (rejected.status, rejected.body) == (400, b'{"reason":"BadPriority"}')
        wire.ping()
        assert resets(wire) == {(partial, REFUSED_STREAM), (delayed, REFUSED_STREAM)}
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1, 1000, 1]
        wire.send(DataFrame(partial, b"{"))
        wire.send(DataFrame(partial, b"}", flags=["END_STREAM"]))
        wire.until(lambda frame: isinstance(frame, RstStreamFrame))
        assert resets(wire) == {(partial, REFUSED_STREAM), (delayed, REFUSED_STREAM), (partial, STREAM_CLOSED)}
        assert wire.push(headers).status == 200
        wire.ping()
        assert wire.own_settings()[-1].settings == {MAX_CONCURRENT_STREAMS: 1000}
    refused = [record for record in server.pushes() if record["served"]["reset"] == "REFUSED_STREAM"]
    assert sorted(record["connection"]["stream"] for record in refused) == sorted([partial, delayed])
    assert all(record["accepted"] is False for record in refused)


def test_without_throttle_on_4xx_a_rejection_does_not_affect_other_streams(configured, device):
    server = configured("throttle_on_4xx: off")
    with connect(server) as wire:
        token = "bearer " + server.token(issued_at=NOON_SECONDS)
        headers = push_headers(server, device, authorization=token)
        assert wire.push(headers).status == 200
        stream = wire.open(headers, end_stream=False)
        assert wire.push(push_headers(server, device, authorization=token, apns_priority="7")).status == 400
        wire.send(DataFrame(stream, b"{}", flags=["END_STREAM"]))
        assert wire.response(stream).status == 200


@pytest.mark.parametrize(("line", "statuses"), [
    ("token_max_age: 1h", [403, 403, 403]), ("expired_token_closes: on", [403, 403, 403]),
    ("expired_token_closes: off", [403, 200, 200]),
])
def test_expired_token_closes(configured, device, line, statuses):
    server = configured(line)
    with connect(server) as wire, connect(server) as another:
        push = pushing(server, wire, device)
        responses = [push(age) for age in (3601, 0, 0)]
        assert [status for status, _ in responses] == statuses
        assert all(reason == "ExpiredProviderToken" for status, reason in responses if status == 403)
        assert pushing(server, another, device)()[0] == 200, "another connection is free"


def test_a_profile_sets_expired_token_closes(start, tmp_path, device):
    profile = tmp_path / "open.yaml"
    profile.write_text("name: open\nsummary: A new token is accepted\napns: {expired_token_closes: off}\n")
    server = start("--profile", profile)
    server.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert [push(age)[0] for age in (3601, 0)] == [403, 200]


def test_an_injected_expired_token_does_not_close(configured, device):
    server = configured("expired_token_closes: on")
    response = {"status": 403, "reason": "ExpiredProviderToken"}
    server.api("POST", "/rules", {"trigger": {"first": 1}, "do": {"respond": response}})
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert push() == (403, "ExpiredProviderToken")
        assert push()[0] == 200


def test_error_content_type(configured, device):
    server = configured("error_content_type: on")
    with connect(server) as wire:
        token = "bearer " + server.token(issued_at=NOON_SECONDS)
        rejected = wire.push(push_headers(server, device, authorization=token, apns_priority="7"))
        assert rejected.names == [":status", "apns-id", "content-type"]
        assert rejected.header("content-type") == "application/json"
        accepted = wire.push(push_headers(server, device, authorization=token))
        assert accepted.names == [":status", "apns-id", "apns-unique-id"]


def test_device_rate(configured, device):
    server = configured("device_rate: 2/1h")
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert [push() for _ in range(3)] == [(200, ""), (200, ""), (429, "TooManyRequests")]
        assert push(path_=f"/3/device/{device.upper()}") == (429, "TooManyRequests"), "the same device"
        assert push(path_=f"/3/device/{secrets.token_hex(32)}") == (200, ""), "another device"


def test_errors_before_goaway(configured, device):
    server = configured("errors_before_goaway: 3")
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert [push(apns_priority="7")[0] for _ in range(3)] == [400, 400, 400]
        assert wire.goaway().last_stream_id == 5
        wire.read_to_end()
        assert wire.closed


def test_unregistered_after(configured, device):
    server = configured("unregistered_after: 1m")
    server.api("PUT", f"/devices/{device}", {"state": "unregistered"})
    with connect(server) as wire:
        push = pushing(server, wire, device)
        assert push() == (200, "")
        server.api("POST", "/clock/advance", {"by": "1m"})
        assert push() == (410, "Unregistered")


@pytest.mark.parametrize(("spelling", "line"), [
    ("BadEnvironmentKeyInToken", "first_streams: 1"),
    ("BadEnvironmentKeyIdInToken", "environment_key_reason: BadEnvironmentKeyIdInToken"),
])
def test_environment_key_reason(configured, device, spelling, line):
    server = configured(line)
    key = {"team_id": server.team_id, "environment": "production", "public_key": public_half(server.key)}
    server.api("PUT", "/keys/SCOPEDKEY1", key)
    with connect(server) as wire:
        token = server.token(issued_at=NOON_SECONDS, key_id="SCOPEDKEY1")
        response = wire.push(push_headers(server, device, authorization="bearer " + token))
        assert response.data == [b'{"reason":"%s"}' % spelling.encode()]
        server.api("DELETE", "/keys/SCOPEDKEY1")

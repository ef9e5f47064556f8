"""The built-in fault profiles that change responses. For each, a provider with the bug that the profile is meant to
find shows the bug, and a careful provider does not. Profiles for connections: test_connection_profiles.py.
"""

import datetime
import email.utils
import json
import time

import pytest

from support.campaigns import (  # noqa: F401 (a fixture)
    again, attempts, campaign, device, faulted, growing, numbers, once, records, served, shown, under,
)
from support.careful import CarefulProvider
from support.naive import Forgetful, Hasty, Listed, Literal, Minter, Naive, Purger, Spender
from support.wire import connect, push_headers


def moment(text):
    """Parses a time as the API writes it."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_healthy(under):
    """healthy: no faults; even a provider without retries delivers everything."""
    server = under("healthy")
    pushes = campaign(20)
    for provider in (Naive(server), CarefulProvider(server)):
        provider.run(pushes)
        assert set(provider.delivered) == numbers(pushes)
        assert served(server) == {(200, None): 20}
        assert shown(server) == once(pushes)
        again(server)


def test_retry_after(under):
    """retry-after: one provider ignores the header and sends again at once; one waits as each response asks."""
    server = under("retry-after?rate=1&wait=1s")
    begin = time.time()
    with connect(server) as wire:
        headers = push_headers(server, device(1))
        first, second, third = (wire.push(headers, b'{"aps":{"alert":"hasty"}}') for _ in range(3))
    assert [first.status, second.status, third.status] == [503, 503, 200]
    assert first.header("retry-after") == "1"
    date = email.utils.parsedate_to_datetime(second.header("retry-after")).timestamp()
    assert begin + 1 <= date <= time.time() + 2
    items = {item["finding"]: item for item in server.api("GET", "/findings")["items"]}
    assert items["hot-retry"]["count"] == 2
    assert all("retry-after requires 1s" in record["explanation"] for record in items["hot-retry"]["records"])
    again(server)

    with connect(server) as wire:
        headers = push_headers(server, device(2))
        for _ in range(3):
            response = wire.push(headers, b'{"aps":{"alert":"patient"}}')
            text = response.header("retry-after")
            if text:
                until = time.time() + int(text) if text.isdigit() else email.utils.parsedate_to_datetime(text).timestamp()
                time.sleep(max(0, until - time.time()) + 0.02)
    assert response.status == 200
    assert "hot-retry" not in json.dumps(server.api("GET", "/findings"))


def test_flaky_503(under):
    """flaky-503: one provider gives up at the first 503, one retries three times without a pause; both lose pushes."""
    server = under("flaky-503?rate=0.5&streak=4")
    pushes = campaign(20)

    gives_up = Naive(server)
    gives_up.run(pushes)
    unlucky = faulted(server)
    assert 0 < len(unlucky) < 20
    assert set(gives_up.failed) == unlucky
    assert shown(server) == once(push for push in pushes if push.payload["n"] not in unlucky)
    again(server)

    hasty = Hasty(server)
    hasty.run(pushes)
    assert faulted(server) == unlucky, "the same seed decides the same"
    assert set(hasty.failed) == unlucky
    assert {n: count for n, count in attempts(server).items() if n in unlucky} == {n: 4 for n in unlucky}
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert faulted(server) == unlucky
    assert shown(server) == once(pushes)
    assert set(careful.pauses) == unlucky
    assert all(len(pauses) == 4 and growing(pauses) for pauses in careful.pauses.values())
    for n, found in records(server).items():
        times = [moment(record["received_at"]) for record in found]
        gaps = [(later - earlier).total_seconds() for earlier, later in zip(times, times[1:])]
        pauses = careful.pauses.get(n, [])
        assert all(gap > pause - 0.01 for gap, pause in zip(gaps, pauses)), (n, gaps, pauses)


def test_rate_limited_429(under):
    """rate-limited-429: a provider retries at once for a device token over its rate limit, and loses the excess
    pushes.
    """
    pushes = campaign(8, devices=[0, 0, 0, 0, 1, 2, 3, 4])

    server = under("rate-limited-429?limit=1&per=1h&burst=2")
    hasty = Hasty(server)
    hasty.run(pushes)
    assert set(hasty.failed) == {2, 3}
    assert served(server) == {(200, None): 6, (429, "TooManyRequests"): 2 * 4}

    server = under("rate-limited-429?limit=1&per=1s&burst=2")
    careful = CarefulProvider(server)
    careful.run(pushes)
    assert shown(server) == once(pushes)
    slowed = set(careful.pauses)
    assert slowed and slowed <= {2, 3}, "only the busy token is slowed down"
    assert all(growing(pauses) for pauses in careful.pauses.values())
    last = max(found[-1]["seq"] for n, found in records(server).items() if n in slowed)
    others = [found for n, found in records(server).items() if n >= 4]
    assert all(len(found) == 1 and found[0]["seq"] < last for found in others), "the others did not wait for it"


def test_unregistered_410_is_not_sent_to_again(under):
    """unregistered-410: a provider retries a 410 at once, and sends to the token again in its next campaign."""
    server = under("unregistered-410?rate=0.5")
    first, second = campaign(20), [push for push in campaign(20, start=20, devices=range(20))]

    hasty = Hasty(server)
    hasty.run(first)
    hasty.run(second)
    gone = {n for n in faulted(server) if n < 20}
    assert 0 < len(gone) < 20
    assert all(attempts(server)[n] == attempts(server)[n + 20] == 4 for n in gone)
    again(server)

    careful = CarefulProvider(server)
    careful.run(first)
    careful.run(second)
    assert careful.dropped == {device(n) for n in gone}
    assert served(server)[410, "Unregistered"] == len(gone)
    assert not set(attempts(server)) & {n + 20 for n in gone}
    assert shown(server) == once(push for push in first + second if push.payload["n"] % 20 not in gone)


def test_unregistered_410_keeps_later_registrations(under):
    """unregistered-410: a provider drops a token without comparing the timestamp, although the app registered it
    again.
    """
    server = under("unregistered-410?rate=1&gone_for=1h")
    now = datetime.datetime.now(datetime.timezone.utc).timestamp() * 1000
    registered = {device(0): now - 2 * 3600_000, device(1): now}
    forgetful, careful = Forgetful(server), CarefulProvider(server, registered=registered)
    for provider in (forgetful, careful):
        provider.run(campaign(2))
    assert forgetful.dropped == {device(0), device(1)}
    assert careful.dropped == {device(0)}

    server.api("PATCH", "/profile/params", {"rate": 0})
    again(server)
    later = campaign(2, start=2, devices=[0, 1])
    forgetful.run(later)
    assert shown(server) == {}, "no device is reached"
    careful.run(later)
    assert shown(server) == {3: 1}


@pytest.fixture
def noon(under):
    """`noon(reference)`: a server whose clock is frozen at noon, and a function that returns its time for a
    provider.
    """

    def starter(reference):
        server = under(reference)
        server.api("PUT", "/clock", {"mode": "frozen", "now": "2030-01-01T12:00:00.000Z"})

        def clock():
            return moment(server.api("GET", "/clock")["now"]).timestamp()

        return server, clock

    return starter


def test_expired_jwt_403(noon):
    """expired-jwt-403: one provider keeps its provider token until it is restarted, one makes a token for each
    request.
    """
    server, clock = noon("expired-jwt-403?max_age=30s")
    first, second = campaign(10), campaign(10, start=10)

    forgetful = Naive(server, clock=clock)
    forgetful.run(first)
    server.api("POST", "/clock/advance", {"by": "31s"})
    forgetful.run(second)
    assert served(server) == {(200, None): 10, (403, "ExpiredProviderToken"): 10}
    assert set(forgetful.failed) == numbers(second)
    again(server)

    spender = Spender(server, clock=clock)
    spender.run(first)
    assert spender.tokens == 10
    assert served(server)[429, "TooManyProviderTokenUpdates"] > 0
    assert spender.failed, "a token for each request is one too many"
    again(server)

    careful = CarefulProvider(server, clock=clock)
    careful.run(first)
    server.api("POST", "/clock/advance", {"by": "31s"})
    careful.run(second)
    assert shown(server) == once(first + second)
    assert careful.tokens == 2
    stale = [found for found in records(server).values() if found[0]["served"]["status"] == 403]
    assert stale, "the old token was refused"
    for refused, resent in stale:
        assert refused["served"]["reason"] == "ExpiredProviderToken" and resent["served"]["status"] == 200
        assert refused["connection"]["id"] != resent["connection"]["id"]


def test_token_update_storm(under):
    """token-update-storm: a provider responds to TooManyProviderTokenUpdates with another provider token, and
    delivers nothing.
    """
    server = under("token-update-storm")
    pushes = campaign(5)

    minter = Minter(server)
    minter.run(pushes)
    assert minter.tokens > 1
    assert not minter.delivered
    assert served(server) == {(429, "TooManyProviderTokenUpdates"): 5 * 4}
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert shown(server) == once(pushes)
    assert attempts(server) == {n: 2 for n in numbers(pushes)}
    assert careful.tokens == 1
    assert set(careful.pauses) == numbers(pushes)


def test_bad_token_400(under):
    """bad-token-400: one provider retries the same push, one drops all device tokens because of some bad ones."""
    server = under("bad-token-400?rate=0.3")
    first, second = campaign(20), campaign(20, start=20, devices=range(20))

    hasty = Hasty(server)
    hasty.run(first)
    bad = faulted(server)
    assert 0 < len(bad) < 20
    assert {n: count for n, count in attempts(server).items() if count > 1} == {n: 4 for n in bad}
    again(server)

    purger = Purger(server)
    purger.run(first)
    purger.run(second)
    assert not set(attempts(server)) & numbers(second), "no device is reached any more"
    again(server)

    careful = CarefulProvider(server)
    careful.run(first)
    careful.run(second)
    assert careful.dropped == {device(n) for n in bad}
    assert served(server)[400, "BadDeviceToken"] == len(bad)
    assert shown(server) == once(push for push in first + second if push.payload["n"] % 20 not in bad)
    assert len(careful.alarms) == len(bad) and "environment" in careful.alarms[0]


@pytest.mark.parametrize("spelling", ["BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken"])
def test_wrong_environment_key(under, spelling):
    """wrong-environment-key: a provider raises an error for a reason that is not in its list, which ends its
    campaign.
    """
    server = under(f"wrong-environment-key?spelling={spelling}")
    pushes = campaign(10)

    with pytest.raises(ValueError, match=spelling):
        Listed(server).run(pushes)
    assert attempts(server) == {0: 1}
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert careful.halted and len(careful.alarms) == 1 and spelling in careful.alarms[0]
    assert not careful.dropped and numbers(careful.waiting) == numbers(pushes)
    refused = served(server)
    assert set(refused) == {(403, spelling)}
    careful.run(campaign(10, start=10))
    assert served(server) == refused, "nothing is sent until the provider is fixed"

    server.api("DELETE", "/profile")
    kept = careful.resume()
    careful.run(kept)
    assert shown(server) == once(kept) and len(kept) == 20


def test_ack_lost(under):
    """ack-lost: a provider resends a push whose response was lost as a new notification, which is then shown twice."""
    server = under("ack-lost?rate=0.5")
    pushes = campaign(20)

    hasty = Hasty(server)
    hasty.run(pushes)
    unlucky = faulted(server)
    assert 0 < len(unlucky) < 20
    assert set(hasty.delivered) == numbers(pushes)
    assert shown(server) == {n: 2 if n in unlucky else 1 for n in numbers(pushes)}
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert faulted(server) == unlucky
    assert set(careful.delivered) == numbers(pushes)
    assert shown(server) == once(pushes)
    assert set(careful.pauses) == unlucky


def test_odd_answers(under):
    """odd-answers: a provider parses responses too strictly, and fails on four valid variations."""
    server = under("odd-answers")
    # Each variation affects one push in ten, so among this many pushes all of them occur, whatever the draws.
    pushes = campaign(100, apns_id="0a1b2c3d-0000-4000-8000-00000000abcd")

    literal = Literal(server)
    literal.run(pushes)
    messages = {str(error) for error in literal.surprises.values()}
    assert "'ReasonOfTheFuture' is not a valid KnownReason" in messages
    assert "'0A1B2C3D-0000-4000-8000-00000000ABCD'" in messages, "an id in capitals is unknown"
    halves = [error.doc for error in literal.surprises.values() if isinstance(error, json.JSONDecodeError)]
    assert "" in halves, "an empty body"
    assert any(half and '{"reason":"ServiceUnavailable"}'.startswith(half) for half in halves), "half a body"
    again(server)

    careful = CarefulProvider(server)
    careful.run(campaign(100))
    unknown = set(records(server, status=400))
    assert unknown and careful.failed == {n: "400 ReasonOfTheFuture" for n in unknown}
    assert not careful.dropped and len(careful.alarms) == len(unknown)
    assert shown(server) == once(push for push in pushes if push.payload["n"] not in unknown)
    assert {(500, "InternalServerError"), (503, "ServiceUnavailable")} <= set(served(server))

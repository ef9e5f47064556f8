"""Tests of `provider.py` with the pytest plugin of apns-mock, under five fault profiles."""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from provider import Provider

PAYLOAD = {"aps": {"alert": {"title": "Welcome"}}}
# Always the same device tokens, so that a seed always gives the same faults.
TOKENS = [f"{number:064x}" for number in range(1, 41)]


class Clock:
    """The clock of the provider, which moves together with that of the server."""

    def __init__(self, apns):
        self.apns, self.offset = apns, 0

    def __call__(self):
        return time.time() + self.offset

    def advance(self, seconds):
        self.apns.clock.advance(seconds)
        self.offset += seconds


@pytest.fixture
def clock(apns):
    return Clock(apns)


@pytest.fixture
def devices():
    """Devices that were registered a minute ago."""
    return dict.fromkeys(TOKENS, time.time() - 60)


@pytest.fixture
def run(apns, clock, devices):
    """`run(steps)` calls `steps(provider)`, a coroutine function, with a provider for the server."""

    async def call(steps):
        settings = apns.settings
        provider = Provider(
            settings.url, Path(settings.key).read_text(), settings.key_id, settings.team_id, ca=settings.ca,
            devices=devices, first_delay=0.15, now=clock)
        async with aclosing(provider):
            return await steps(provider)

    return lambda steps: asyncio.run(call(steps))


async def send(provider, tokens=TOKENS):
    """Sends a push to each device; returns the results."""
    for token in tokens:
        provider.enqueue(token, PAYLOAD, "com.example.app")
    return await provider.send_queue()


def provider_tokens(apns):
    """The dates of the provider tokens that were used."""
    return {push["auth"]["issued_at"] for push in apns.pushes()}


@pytest.mark.apns(profile="healthy", fail_on_findings=True)
def test_every_push_is_accepted_once(apns, run):
    results = run(send)
    assert {(result.status, result.attempts) for result in results} == {(200, 1)}
    welcome = {"match": {"payload": {"/aps/alert/title": "Welcome"}}, "count": {"exactly": 40}, "outcome": "accepted"}
    apns.verify({"expect": [welcome], "no_others": True})
    assert len(provider_tokens(apns)) == 1


@pytest.mark.apns(profile="healthy", fail_on_findings=True)
def test_provider_token_is_renewed_before_it_expires(apns, run, clock):
    async def steps(provider):
        await send(provider, TOKENS[:20])
        clock.advance(55 * 60)
        await send(provider, TOKENS[20:])

    run(steps)
    assert len(apns.wait(count=40, status=200)) == 40
    assert len(provider_tokens(apns)) == 2


@pytest.mark.apns(profile="flaky-503?rate=0.3", seed=7, fail_on_findings=True)
def test_unavailable_service_is_retried_with_backoff(apns, run):
    results = run(send)
    assert {result.status for result in results} == {200}
    retries = {"min": 1, "max": 4, "min_first_delay": "150ms", "growing": True, "finally": "accepted"}
    apns.verify([{"name": "retry policy", "match": {"rule": "flaky"}, "retries": retries}])
    apns.wait(count=40, accepted=True)
    apns.assert_nothing_lost()


@pytest.mark.apns(profile="unregistered-410?rate=0.3&gone_for=10s", seed=7, fail_on_findings=True)
def test_unregistered_devices_are_removed(apns, run, devices):
    registered_again = TOKENS[0]
    apns.device(registered_again).unregistered(since="2026-01-02T03:04:05.678Z")
    results = run(send)
    gone = {result.notification.device_token for result in results if result.reason == "Unregistered"}
    assert registered_again in gone and len(gone) > 1
    assert set(devices) == set(TOKENS) - gone | {registered_again}
    apns.verify([{"name": "no retries", "match": {"status": 410}, "retries": {"max": 0}}])
    apns.assert_nothing_lost()


@pytest.mark.apns(fail_on_findings=True)
def test_bad_device_token_is_removed(apns, run, devices):
    apns.rule({"when": {"device_token": TOKENS[0]}, "do": {"respond": {"reason": "BadDeviceToken"}}})
    results = run(send)
    assert [result.attempts for result in results if result.reason == "BadDeviceToken"] == [1]
    assert set(devices) == set(TOKENS[1:])


@pytest.mark.apns(profile="expired-jwt-403?max_age=30s", fail_on_findings=True)
def test_expired_provider_token_is_renewed_once(apns, run, clock):
    async def steps(provider):
        await send(provider, TOKENS[:20])
        clock.advance(31)
        (first,) = await send(provider, TOKENS[20:21])
        return first, await send(provider, TOKENS[21:])

    first, others = run(steps)
    assert (first.status, first.attempts) == (200, 2)
    assert {(result.status, result.attempts) for result in others} == {(200, 1)}
    apns.wait(count="=1", reason="ExpiredProviderToken")
    apns.wait(count=40, accepted=True)
    assert len(provider_tokens(apns)) == 2
    apns.assert_nothing_lost()


@pytest.mark.apns(profile="goaway-storm?streams=7", fail_on_findings=["after-goaway", "hot-retry", "duplicate"])
def test_pushes_survive_goaway(apns, run):
    results = run(send)
    assert {result.status for result in results} == {200}
    assert len({push["connection"]["id"] for push in apns.pushes()}) > 5
    apns.wait(count=40, accepted=True)
    apns.assert_nothing_lost()

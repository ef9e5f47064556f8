"""The built-in fault profiles that affect connections or delay or suppress responses; for the others see
test_profiles.py. For each, a provider with the bug that the profile is meant to find shows the bug, and a
careful provider does not.
"""

import asyncio
import re
import time

import httpx
import pytest

from support.campaigns import (  # noqa: F401 (a fixture)
    SEED, again, at_work, attempts, campaign, end_all_connections, faulted, growing, numbers, once, records, served, shown,
    under,
)
from support.careful import CarefulProvider
from support.server import wait_until
from support.naive import Careless, Flooder, Hasty, Hopeful, Naive, Trusting


def events(server):
    """Returns the names of each connection's events, oldest connection first."""
    items = sorted(server.api("GET", "/connections")["items"], key=lambda item: item["number"])
    return [[event["event"] for event in item["events"]] for item in items]


def test_brownout(under):
    """brownout: a provider has no deadline. All its workers wait, and further pushes are not even sent."""
    server = under("brownout?p50=10s&ramp=1s")
    pushes = campaign(12)
    time.sleep(1.1)  # the ramp is over: every response is slow

    patient = Naive(server, timeout=None)
    with at_work(4) as workers:
        waiting = [workers.submit(patient.deliver, push) for push in pushes]
        wait_until(lambda: len(attempts(server, outcome="pending")) == 4, "four pushes that wait")
        time.sleep(0.5)
        stuck = set(attempts(server))
        assert len(stuck) == 4 and not any(one.done() for one in waiting)
        server.api("DELETE", "/profile")
        time.sleep(0.5)
        assert set(attempts(server)) == stuck, "the end of the brownout does not free them"
        # Four workers that open a new connection at once would send too many streams on it: httpx learns the limit late.
        unsent = [push for push, one in zip(pushes, waiting) if one.cancel()]
        end_all_connections(server)
        assert {n for n, one in enumerate(waiting) if not one.cancelled() and one.exception()} == stuck
    assert len(unsent) == 8 and all(patient.deliver(push) for push in unsent)
    again(server)

    server.api("PUT", "/profile", {"name": "brownout?p50=10s&ramp=1s", "seed": SEED})
    time.sleep(1.1)
    careful = CarefulProvider(server, deadline=0.3, width=8)
    with at_work() as worker:
        done = worker.submit(careful.run, pushes)
        wait_until(lambda: careful.unanswered >= 12, "twelve attempts in vain")
        server.api("DELETE", "/profile")
        done.result()
    assert set(careful.delivered) == numbers(pushes)
    assert shown(server) == once(pushes)
    assert careful.narrowest == 1 < careful.limit, "it sends less, then more again"
    assert all(growing(pauses) for pauses in careful.pauses.values())


def test_goaway_storm(under):
    """goaway-storm: a provider keeps using the connection after GOAWAY, and loses the streams above the last one."""
    server = under("goaway-storm?streams=5&grace=1s")
    pushes = campaign(23)

    flooder = Flooder(server)
    flooder.run(pushes)
    assert flooder.delivered == [0, 1, 2, 3]
    assert shown(server) == once(pushes[:4])
    assert len(attempts(server)) > 5 and len(events(server)) == 1, "it continued on the dead connection"
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert set(careful.delivered) == numbers(pushes)
    assert attempts(server, accepted="true") == once(pushes), "only what was not processed was sent again"
    assert careful.connections_opened >= 6


def test_connection_reset(under):
    """connection-reset: for one provider the reset ends the campaign; another resends pushes that had been
    accepted.
    """
    server = under("connection-reset?rate=0.3")
    pushes = campaign(30)

    naive = Naive(server)
    with pytest.raises(httpx.TransportError):
        naive.run(pushes)
    assert len(attempts(server)) < 30, "the rest was never sent"
    again(server)

    hasty = Hasty(server)
    hasty.run(pushes)
    met, taken = faulted(server), set(records(server, q="is:faulted accepted:true"))
    assert taken and met - taken
    assert shown(server) == {n: 2 if n in taken else 1 for n in numbers(pushes)}
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert faulted(server) == met
    assert set(careful.delivered) == numbers(pushes)
    assert shown(server) == once(pushes)
    assert careful.reconnect_pauses and min(careful.reconnect_pauses) > 0


def test_shutdown_rolling(under):
    """shutdown-rolling: a provider treats 503 Shutdown as the push's final result, and keeps using the connection
    that shuts down.
    """
    server = under("shutdown-rolling?every=2s&drain=1s")

    naive = [Naive(server) for _ in range(3)]
    count = 0
    while not all(len(one.failed) > 1 for one in naive):
        for one, push in zip(naive, campaign(3, start=count)):
            one.run([push])
        count += 3
        time.sleep(0.02)
    lost = {n for one in naive for n in one.failed}
    assert served(server)[503, "Shutdown"] == len(lost)
    assert shown(server) == {n: 1 for n in range(count) if n not in lost}

    server = under("shutdown-rolling?every=2s&drain=1s")
    careful = CarefulProvider(server, connections=3)
    pushes = []

    async def until_all_have_moved():
        async with careful:
            while careful.connections_opened < 6:
                pushes.extend(more := campaign(3, start=len(pushes)))
                await careful.deliver(more)
                await asyncio.sleep(0.02)

    asyncio.run(until_all_have_moved())
    assert careful.shutdowns > 0
    assert set(careful.delivered) == numbers(pushes)
    assert shown(server) == once(pushes)
    pauses = careful.reconnect_pauses
    assert len(set(pauses)) == len(pauses) >= 3, "not all at the same moment"


def test_tls_handshake_stall(under):
    """tls-handshake-stall: a provider has no deadline for its handshake."""
    server = under("tls-handshake-stall?hold=10m")
    pushes = campaign(5)

    with at_work() as worker:
        done = worker.submit(Naive(server, timeout=None).run, pushes)
        wait_until(lambda: any("fault" in one for one in events(server)), lambda: events(server))
        time.sleep(0.5)
        assert not done.done() and not attempts(server)
        end_all_connections(server)
        assert isinstance(done.exception(), httpx.TransportError)
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert shown(server) == once(pushes)
    assert len(careful.reconnect_pauses) >= 3 and growing(careful.reconnect_pauses)


@pytest.mark.parametrize(("use", "why"), [
    ("expired", "expired"), ("wrong_name", "Hostname mismatch"), ("untrusted", "issuer|self-signed"),
])
def test_tls_bad_certificate(under, use, why):
    """tls-bad-certificate: a provider accepts any certificate, and sends its provider token to any server."""
    server = under(f"tls-bad-certificate?use={use}")
    pushes = campaign(5)

    trusting = Trusting(server)
    trusting.run(pushes)
    assert shown(server) == once(pushes)
    assert findings(server)["trusted-anything"] == 1, "once for each connection"
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert attempts(server) == {}
    assert "trusted-anything" not in findings(server)
    assert len(careful.alarms) == 1 and re.search(why, careful.alarms[0]), careful.alarms
    assert numbers(careful.waiting) == numbers(pushes)


@pytest.mark.parametrize("most", [1, 3])
def test_single_stream(under, most):
    """single-stream: one provider assumes that the first response permits a thousand streams; another waits until
    it may use two.
    """
    server = under(f"single-stream?max={most}")
    pushes = campaign(20)

    flooder = Flooder(server)
    flooder.run(pushes)
    assert len(flooder.delivered) < 20
    assert "goaway" in events(server)[0]
    again(server)

    if most == 1:
        hopeful = Hopeful(server)
        with at_work() as worker:
            done = worker.submit(hopeful.run, pushes)
            wait_until(lambda: hopeful.delivered, "the first response")
            time.sleep(0.5)
            assert attempts(server) == {0: 1} and not done.done()
            end_all_connections(server)
            done.result()
        assert hopeful.delivered == [0]
        again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert attempts(server) == once(pushes)
    assert careful.connections_opened == 1


def test_stream_throttle(under):
    """stream-throttle: a provider keeps using five streams after SETTINGS has limited it to one."""
    server = under("stream-throttle")
    pushes = campaign(30)

    flooder = Flooder(server, width=5)
    flooder.run(pushes)
    assert len(attempts(server)) < 30, "the connection was ended before all were sent"
    assert "goaway" in events(server)[0]
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert shown(server) == once(pushes)
    assert careful.connections_opened == 1
    assert served(server)[429, "TooManyRequests"] >= 3


def test_half_open(under):
    """half-open: a provider has no deadline for its requests and waits on a connection whose peer is silent."""
    server = under("half-open")
    pushes = campaign(25)

    with at_work() as worker:
        done = worker.submit(Naive(server, timeout=None).run, pushes)
        wait_until(lambda: attempts(server, outcome="pending"), "a push that waits")
        time.sleep(0.5)
        assert set(attempts(server)) == set(range(11)) and not done.done()
        end_all_connections(server)
        assert isinstance(done.exception(), httpx.TransportError)
    again(server)

    careful = CarefulProvider(server, deadline=0.3)
    careful.run(pushes)
    assert set(careful.delivered) == numbers(pushes)
    assert shown(server) == once(pushes)
    assert careful.connections_opened >= 3


def test_chaos_mix(under):
    """chaos-mix: a provider without retries loses pushes, one with blind retries duplicates them."""
    server = under("chaos-mix?intensity=0.5")
    pushes = campaign(60)

    careless = Careless(server, timeout=0.3)
    careless.run(pushes)
    assert careless.failed
    assert len(shown(server)) < 60
    again(server)

    hasty = Hasty(server, timeout=0.3)
    hasty.run(pushes)
    assert max(shown(server).values()) > 1
    again(server)

    careful = CarefulProvider(server, deadline=0.3, width=20)
    careful.run(pushes)
    assert set(careful.delivered) == numbers(pushes)
    assert shown(server) == once(pushes)
    assert sum(attempts(server, accepted="true").values()) < 2 * 60, "few were taken twice"
    met = set(served(server))
    assert {(503, "ServiceUnavailable"), (500, "InternalServerError"), (429, "TooManyRequests")} <= met

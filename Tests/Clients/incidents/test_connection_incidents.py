"""The incidents of Incidents.md about connections, streams and responses. Each test is named after its thread."""

import asyncio
import ssl
import time

import httpx
import pytest

from support import drivers
from support.campaigns import (
    again, at_work, attempts, campaign, device, end_all_connections, faulted, numbers, once, served, shown,
)
from support.careful import CarefulProvider
from support.incidents import NodeProvider, Stubborn, events, findings
from support.naive import Flooder, Hasty, Listed, Naive
from support.server import wait_until
from support.wire import REFUSED_STREAM, client_context, connect, push_headers

CROSSING = 0.6  # seconds after which a stream can no longer have crossed a GOAWAY
SETTLED = 0.5  # seconds after which a provider that waits would have continued


def reaches(server, number, count=1):
    """Returns whether the server has this many records of a device."""
    return len(server.pushes(device_token=device(number))) == count


def test_docnr_clave_14(incident):
    """A provider on Node's http2 keeps a session that has received GOAWAY, because it is not destroyed. Another watches
    for GOAWAY. A third ignores the frame.
    """
    server = incident.start()
    incident.run()

    def meets_goaway(provider, goaway):
        assert provider.push(device(0)) == 200
        provider.send(device(1))
        wait_until(lambda: reaches(server, 1), "the push without a response")
        goaway()

    with NodeProvider(server) as naive:
        meets_goaway(naive, incident.run)
        wait_until(lambda: naive.push(device(2)) == "ERR_HTTP2_GOAWAY_SESSION", "GOAWAY has been read")
        assert [naive.push(device(n)) for n in range(3, 6)] == ["ERR_HTTP2_GOAWAY_SESSION"] * 3
        assert not any(reaches(server, n) for n in range(3, 6)), "they are lost, and so are all that follow"
    again(server)

    with NodeProvider(server, watches=True) as careful:
        meets_goaway(careful, incident.repeat)
        for n in range(2, 6):
            careful.send(device(n))
        assert sorted(careful.result() for _ in range(5)) == sorted((device(n), 200) for n in range(1, 6))
    assert all(server.pushes(device_token=device(n), accepted="true") for n in range(6))
    assert findings(server) == set()
    again(server)

    with connect(server) as wire:
        assert wire.push(push_headers(server, device(0))).status == 200
        incident.repeat()
        wire.goaway()
        time.sleep(CROSSING)
        wire.open(push_headers(server, device(1)), b"{}")
        wire.ping()
        assert server.record(device(1))["accepted"] is False
        assert findings(server) == {"after-goaway"}


def test_fatal1ty_aioapns_63(incident):
    """A provider sends a push again and again while the connection shuts down. Another reconnects after a pause."""
    server = incident.start()
    incident.run()

    stubborn, count = Stubborn(server), 0
    while not server.api("GET", "/pushes", q="attempt:>9", limit=1)["matched"]:
        stubborn.run(campaign(1, start=count))
        count += 1
    assert server.api("GET", "/pushes", reason="Shutdown", status=503, limit=1)["matched"] > 0
    assert any('{"reason":"Shutdown"}' in detail for detail in events(server, "goaway"))
    assert "hot-retry" in findings(server)
    again(server)

    careful, pushes = CarefulProvider(server), []

    async def until_it_has_moved():
        async with careful:
            while careful.shutdowns == 0 or careful.connections_opened < 2:
                pushes.extend(more := campaign(1, start=len(pushes)))
                await careful.deliver(more)
                await asyncio.sleep(0.02)

    asyncio.run(until_it_has_moved())
    assert shown(server) == once(pushes)
    assert max(attempts(server).values()) < 10
    assert "hot-retry" not in findings(server)


def test_node_apn_node_apn_685(incident):
    """A provider on Node's http2 opens a stream after GOAWAY, and ends with an error that nothing catches. Another
    continues on a new session.
    """
    server = incident.start()
    incident.run()

    def meets_goaway(provider):
        for n in range(2):
            provider.send(device(n))
            wait_until(lambda: reaches(server, n), "the push with a late response")
        provider.send(device(2))

    with NodeProvider(server, catches=False) as naive:
        meets_goaway(naive)
        assert naive.result() == (device(2), REFUSED_STREAM)
        naive.send(device(3))
        assert "ERR_HTTP2_GOAWAY_SESSION" in naive.crash()
    again(server)

    with NodeProvider(server, watches=True) as careful:
        meets_goaway(careful)
        assert careful.result() == (device(2), 200)
        careful.send(device(3))
        assert sorted(careful.result() for _ in range(3)) == sorted((device(n), 200) for n in (0, 1, 3))
    for n in range(4):
        assert len(server.pushes(device_token=device(n), accepted="true")) == 1
    assert findings(server) == set()


def test_kylebrowning_apnswift_93(incident):
    """A provider waits for a response that never comes, and sends nothing more. Another has a deadline."""
    server = incident.start()
    incident.run()
    pushes = campaign(10)

    with at_work() as worker:
        done = worker.submit(Naive(server, timeout=None).run, pushes)
        wait_until(lambda: attempts(server, outcome="pending"), "a push that waits")
        time.sleep(SETTLED)
        assert set(attempts(server)) == set(range(4)) and not done.done()
        end_all_connections(server)
        assert isinstance(done.exception(), httpx.TransportError)
    again(server)

    careful = CarefulProvider(server, deadline=0.3)
    careful.run(pushes)
    assert careful.unanswered == 1
    assert shown(server) == once(pushes)
    assert careful.connections_opened == 1, "the connection still acknowledges PING"


def test_sideshow_apns2_20(incident):
    """A provider without a limit for the TLS handshake waits for it. curl with one delivers at its fourth attempt."""
    server = incident.start()
    incident.run()

    with at_work() as worker:
        done = worker.submit(Naive(server, timeout=None).run, campaign(1))
        wait_until(lambda: events(server, "fault"), "a handshake that waits")
        time.sleep(SETTLED)
        assert not done.done() and not attempts(server)
        end_all_connections(server)
        assert isinstance(done.exception(), httpx.TransportError)
    again(server)

    (push,) = campaign(1)
    flags = ["--connect-timeout", "1", "--retry", "5", "--retry-delay", "1"]
    assert drivers.curl(server, push, None, *flags).status == 200
    assert attempts(server) == {0: 1}
    again(server)

    careful = CarefulProvider(server)
    careful.run([push])
    assert shown(server) == once([push])
    assert len(careful.reconnect_pauses) >= 3


def test_sideshow_apns2_24(incident):
    """A provider waits for a response on a connection that died while it was idle. Another notices it with a deadline
    and a PING, and a third keeps the connection alive with PINGs.
    """
    server = incident.start()
    incident.run()
    first, second = campaign(1), campaign(3, start=1)

    def dead(count=1):
        return lambda: len(events(server, "fault")) == count

    naive = Naive(server, timeout=None)
    naive.run(first)
    wait_until(dead(), "the connection dies")
    with at_work() as worker:
        done = worker.submit(naive.run, second)
        time.sleep(SETTLED)
        assert attempts(server) == {0: 1} and not done.done(), "the first push after the pause is lost"
        end_all_connections(server)
        assert isinstance(done.exception(), httpx.TransportError)
    again(server)

    careful = CarefulProvider(server, deadline=0.3)

    async def pushes_idles_and_pushes():
        async with careful:
            await careful.deliver(first)
            while not dead(2)():
                await asyncio.sleep(0.1)
            await careful.deliver(second)

    asyncio.run(pushes_idles_and_pushes())
    assert shown(server) == once(first + second)
    assert careful.unanswered > 0 and careful.connections_opened == 2

    with connect(server) as wire:
        assert wire.push(push_headers(server, device(9))).status == 200
        for _ in range(8):
            time.sleep(0.4)
            wire.ping()
        assert wire.push(push_headers(server, device(9))).status == 200
    assert dead(2)(), "the connection has survived"


def test_jchambers_pushy_732(incident):
    """A provider keeps five streams open although SETTINGS allows one. Another follows SETTINGS in both directions."""
    server = incident.start()
    incident.run()
    pushes = campaign(30)

    flooder = Flooder(server, width=5)
    flooder.run(pushes)
    assert len(attempts(server)) < 30, "its connection is ended before all are sent"
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert shown(server) == once(pushes)
    assert careful.connections_opened == 1
    limits = [int(detail.removeprefix("max_concurrent_streams=")) for detail in events(server, "settings")]
    changes = list(zip(limits, limits[1:]))
    assert changes.count((1000, 1)) >= 3 and changes.count((1, 1000)) >= 3, limits


def test_jchambers_pushy_356(incident):
    """A provider opens more streams than SETTINGS allows, and loses its connection. Another waits for a free one."""
    server = incident.start()
    incident.run()
    pushes = campaign(20)

    flooder = Flooder(server)
    flooder.run(pushes)
    assert len(flooder.delivered) < 20
    (goaway,) = events(server, "goaway")
    assert goaway.startswith("REFUSED_STREAM") and "active streams" in goaway
    wait_until(lambda: findings(server), "the connection has ended")
    assert "excess-streams" in incident.run()
    again(server)

    careful = CarefulProvider(server, width=20)
    careful.run(pushes)
    assert shown(server) == once(pushes)
    assert careful.connections_opened == 1
    assert findings(server) == set()


def test_edamov_pushok_169(incident):
    """A provider loses the pushes that a connection refuses after its fiftieth. Another sends them on a new one."""
    server = incident.start()
    incident.run()
    pushes = campaign(120)

    with pytest.raises(httpx.RemoteProtocolError, match="REFUSED_STREAM|StreamReset"):
        Naive(server).run(pushes)
    assert shown(server) == once(pushes[:50]), "an exception ends the batch"
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert shown(server) == once(pushes)
    assert set(careful.delivered) == numbers(pushes)
    assert careful.connections_opened == 3
    assert findings(server) == set()


def test_kylebrowning_apnswift_229(incident):
    """A provider raises an error for a reason that is not in its list. Another stops and reports the reason."""
    server = incident.start()
    incident.run()
    pushes = campaign(5)

    with pytest.raises(ValueError, match="BadEnvironmentKeyInToken"):
        Listed(server).run(pushes)
    assert served(server) == {(403, "BadEnvironmentKeyInToken"): 1}
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert len(careful.alarms) == 1 and "BadEnvironmentKeyInToken" in careful.alarms[0]
    assert numbers(careful.waiting) == numbers(pushes) and not careful.dropped


def test_jchambers_pushy_794(incident):
    """A provider sends a push whose response was lost as a new notification. Another uses the same `apns-id`."""
    server = incident.start()
    incident.run()
    pushes = campaign(20)

    hasty = Hasty(server)
    hasty.run(pushes)
    twice = {n for n, count in shown(server).items() if count == 2}
    assert twice == faulted(server) and 0 < len(twice) < 20
    assert "duplicate" in findings(server)
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert faulted(server) == twice, "the same responses are lost"
    assert shown(server) == once(pushes)
    assert "duplicate" not in findings(server)


def test_jchambers_pushy_1093(incident):
    """Providers that trust the old root, the new one and both, before and after the server's switch."""
    server = incident.start()
    incident.run()
    trust = {
        "old": incident.folder / "Certs/ca.pem", "new": incident.folder / "Certs/ca-next.pem",
        "both": incident.folder / "both.pem"}

    def reached():
        """Returns the providers that can connect and push."""
        found = set()
        for name, ca in trust.items():
            try:
                with connect(server, context=client_context(ca)) as wire:
                    assert wire.push(push_headers(server, device(0))).status == 200
                    found.add(name)
            except ssl.SSLCertVerificationError as error:
                assert "certificate verify failed" in str(error)
        return found

    assert reached() == {"old", "both"}
    with connect(server) as open_before, connect(server) as other:
        assert other.push(push_headers(server, device(1))).status == 200
        incident.run()
        assert b"Shutdown" in other.goaway().additional_data
        assert reached() == {"new", "both"}, "the chain has changed"
        assert b"Shutdown" in open_before.goaway().additional_data, "a connection stays open until GOAWAY"
    server.api("POST", "/reset", {})
    assert reached() == {"old", "both"}, "a reset switches back"

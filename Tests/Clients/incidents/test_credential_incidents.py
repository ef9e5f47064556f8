"""The incidents of Incidents.md about provider tokens and keys. Each test is named after its thread."""

import asyncio
import time

from support.campaigns import again, attempts, campaign, numbers, once, records, served, shown
from support.careful import CarefulProvider, frame_headers
from support.incidents import clock, events, findings, with_key
from support.naive import Minter, Naive, Purger, Spender
from support.server import wait_until
from support.wire import REFUSED_STREAM, connect

MINUTES = 60  # seconds
REACTION = 0.15  # seconds after a response, from which a finding considers it known to the provider


def deliver_despite_alarms(provider, pushes):
    """Runs a campaign. After each alarm, tries again with the retained pushes after a growing pause."""
    pause = 0.1
    provider.run(pushes)
    while provider.waiting:
        time.sleep(pause)
        pause *= 2
        provider.run(provider.resume())


class Renewing(Naive):
    """Renews its provider token when that is 40 minutes old."""

    _made = 0

    def token(self):
        if self.clock() - self._made > 40 * MINUTES:
            self._token, self._made = None, self.clock()
        return super().token()


def test_jchambers_pushy_476(incident):
    """A provider never hears of the pushes that are open when its token expires. Another sends them again with a new
    token, on a new connection.
    """
    server = incident.start()
    incident.run()
    first, opened, late = campaign(1), campaign(8, start=1), campaign(1, start=9)

    def waiting():
        return attempts(server, outcome="pending") == once(opened)

    with connect(server) as wire:
        def send(push):
            return wire.open(frame_headers(server, push), push.body.encode())

        assert wire.response(send(first[0])).status == 200
        streams = [send(push) for push in opened]
        wait_until(waiting, "eight open pushes")
        incident.run()
        assert wire.response(send(late[0])).body == b'{"reason":"ExpiredProviderToken"}'
        assert [wire.response(stream).reset for stream in streams] == [REFUSED_STREAM] * 8
        assert [wire.responses[stream].status for stream in streams] == [None] * 8
    assert events(server, "settings") == [f"max_concurrent_streams={limit}" for limit in (1, 1000, 1)]
    assert shown(server) == once(first)
    again(server)

    careful = CarefulProvider(server, clock=clock(server))

    async def until_it_has_expired():
        async with careful:
            await careful.deliver(first)
            held = asyncio.ensure_future(careful.deliver(opened))
            while not waiting():
                await asyncio.sleep(0.05)
            incident.repeat()
            await careful.deliver(late)
            await held

    asyncio.run(until_it_has_expired())
    assert shown(server) == once(first + opened + late)
    assert (careful.tokens, careful.connections_opened) == (2, 2)


def test_sideshow_apns2_132(incident):
    """Workers that share a connection make a token each. Others share one token."""
    server = incident.start()

    workers = Spender(server)
    workers.run(campaign(5))
    assert served(server) == {(200, None): 2, (429, "TooManyProviderTokenUpdates"): 3}
    assert "jwt-churn" in incident.run()
    again(server)

    careful = CarefulProvider(server, width=50)
    careful.run(campaign(50))
    assert shown(server) == once(campaign(50))
    assert careful.tokens == 1
    assert findings(server) == set()


def test_andrewbarba_apns2_44(incident):
    """A provider renews its token by a timer, ten minutes after the first one. Another renews it by its age."""
    server = incident.start()
    incident.run()

    naive = Naive(server, clock=clock(server))
    naive.run(campaign(1))
    incident.run()
    naive._token = None  # the timer
    naive.run(campaign(3, start=1))
    assert served(server) == {(200, None): 1, (429, "TooManyProviderTokenUpdates"): 3}
    again(server)

    renewing = Renewing(server, clock=clock(server))
    for start in range(6):  # 50 minutes
        renewing.run(campaign(1, start=start))
        incident.repeat()
    assert shown(server) == once(campaign(6))
    assert renewing.tokens == 2
    assert findings(server) == set()


def test_pr0ger_pyapns2_85(incident):
    """Two processes of a provider have a token each. Two others share one."""
    server = incident.start()
    pods = Naive(server, clock=lambda: time.time() - 1 * MINUTES), Naive(server)
    for n, pod in enumerate(pods):
        pod.run(campaign(1, start=n))
    # More than the time within which a connection may still use its former token.
    time.sleep(0.3)
    pods[0].run(campaign(1, start=2))
    assert findings(server) == {"token-per-process"}
    for pod in pods:
        pod.client.close()
    again(server)
    incident.run()

    pods = Naive(server, clock=lambda: time.time() - 1 * MINUTES), Naive(server)
    for n, pod in enumerate(pods):
        pod.run(campaign(1, start=n))
    assert (pods[0].delivered, pods[1].failed) == ([0], [1])
    assert served(server)[429, "TooManyProviderTokenUpdates"] == 1
    for pod in pods:
        pod.client.close()
    server.api("POST", "/clock/advance", {"by": "21m"})
    again(server)

    pods = Naive(server, clock=clock(server)), Naive(server)
    pods[1]._token = pods[0].token()
    for n, pod in enumerate(pods):
        pod.run(campaign(1, start=n))
    assert shown(server) == once(campaign(2))
    assert findings(server) == set()


def test_node_apn_node_apn_590(incident):
    """A provider whose clock is ahead makes one token after the other. Another reports its clock."""
    server = incident.start()
    incident.run()
    pushes = campaign(3)

    minter = Minter(server)
    minter.run(pushes)
    assert served(server) == {(403, "ExpiredProviderToken"): 3 * 4}
    assert minter.tokens == 3 * 4 and not minter.delivered
    explained = server.command("get", server.pushes()[0]["seq"], "--explain").stdout
    assert "in the future" in explained and "check the clock" in explained, explained
    again(server)

    careful = CarefulProvider(server)
    careful.run(pushes)
    assert len(careful.alarms) == 1 and "clock" in careful.alarms[0]
    assert careful.tokens == 1 and numbers(careful.waiting) == numbers(pushes)
    server.api("PUT", "/clock", {"mode": "real"})
    careful.run(careful.resume())
    assert shown(server) == once(pushes)


def test_node_apn_node_apn_496(incident):
    """A provider never renews its token. Another renews it once it is rejected, a third before."""
    server = incident.start()
    first, second = campaign(5), campaign(5, start=5)

    forgetful = Naive(server, clock=clock(server))
    forgetful.run(first)
    incident.run()
    forgetful.run(second)
    time.sleep(REACTION)
    forgetful.run(campaign(1, start=10))
    assert served(server) == {(200, None): 5, (403, "ExpiredProviderToken"): 6}
    assert "jwt-stale" in findings(server)
    again(server)

    careful = CarefulProvider(server, width=1, clock=clock(server))
    careful.run(first)
    incident.repeat()
    careful.run(second)
    assert shown(server) == once(first + second)
    assert careful.tokens == 2
    assert findings(server) == set()
    again(server)

    renewing = Renewing(server, clock=clock(server))
    renewing.run(first)
    incident.repeat()
    renewing.run(second)
    assert served(server) == {(200, None): 10}


def test_vapor_jwt_103(incident):
    """A token whose signature lacks a byte is not blamed on the key. Tokens with 64 bytes are accepted."""
    server = incident.start()
    shown = incident.run()
    assert "403 InvalidProviderToken" in shown and "the provider token's signature has 63 bytes" in shown, shown
    again(server)
    careful = CarefulProvider(server)
    careful.run(campaign(3))
    assert (careful.delivered, findings(server)) == ([0, 1, 2], set())


def test_micromdm_micromdm_559(incident):
    """A certificate with another private key is reported. With its own, the push is accepted."""
    server = incident.start()
    shown = incident.run()
    assert "the private key in other-key.pem does not belong to the certificate in Certs/client.pem" in shown, shown
    certs = incident.folder / "Certs"
    done = server.command("send", 64 * "c", "--cert", certs / "client.pem", "--cert-key", certs / "client-key.pem")
    assert (done.returncode, findings(server)) == (0, set()), done.stderr


def test_novuhq_novu_2341(incident):
    """A key with escaped line breaks is reported. Once they are restored, it signs."""
    server = incident.start()
    shown = incident.run()
    assert "the private key has the two characters \\n where line breaks must be" in shown, shown
    text = (incident.folder / "escaped.p8").read_text()
    restored = incident.folder / "restored.p8"
    restored.write_text(text.replace("\\n", "\n"))
    careful = CarefulProvider(with_key(server, restored, server.key_id, server.team_id))
    careful.run(campaign(1))
    assert (careful.delivered, findings(server)) == ([0], set())


def test_jerryliurui_live_activities_demo_nba_score_1(incident):
    """A provider token beside a certificate is ignored. Alone, it is used."""
    server = incident.start()
    shown = incident.run()
    assert "TopicDisallowed" in shown and "ignored-token" in shown, shown
    again(server)
    careful = CarefulProvider(server)
    careful.run(campaign(1))
    assert (careful.delivered, findings(server)) == ([0], set())


def test_andrewbarba_apns2_90(incident):
    """A provider sends the pushes of two teams on one connection. Another has a connection for each team."""
    server = incident.start()
    incident.run()
    second = with_key(server, incident.folder / "AuthKey_SECONDKEY2.p8", "SECONDKEY2", "SECONDTEAM")

    naive = Naive(server)
    naive.run(campaign(2))
    naive._token = second.token()
    naive.run(campaign(2, start=2))
    assert (naive.delivered, naive.failed) == ([0, 1], [2, 3])
    assert served(server) == {(200, None): 2, (403, "InvalidProviderToken"): 2}
    again(server)

    for start, team in enumerate((server, second)):
        careful = CarefulProvider(team)
        careful.run(campaign(2, start=2 * start))
        assert careful.connections_opened == 1
    assert shown(server) == once(campaign(4))


def test_sideshow_apns2_102(incident):
    """A provider gives up the pushes that its new key cannot send yet. Another keeps them."""
    server = incident.start()
    incident.run()
    new = with_key(server, incident.folder / "AuthKey_NEWKEY0001.p8", "NEWKEY0001", server.team_id)
    pushes = campaign(5)

    naive = Naive(new)
    naive.run(pushes)
    assert (naive.failed, naive.delivered) == ([0, 1, 2], [3, 4])
    assert served(server)[403, "InvalidProviderToken"] == 3
    assert Naive(server).deliver(campaign(1, start=9)[0]), "the other key is known"
    again(server)

    careful = CarefulProvider(new)
    deliver_despite_alarms(careful, pushes)
    assert served(server)[403, "InvalidProviderToken"] == 3
    assert shown(server) == once(pushes)
    assert careful.tokens == 1 and "InvalidProviderToken" in careful.alarms[0]


def test_ostinelli_apnotic_109(incident):
    """A provider drops all device tokens in an outbreak. Another waits for its end."""
    server = incident.start()
    incident.run()
    pushes = campaign(5)

    purger = Purger(server)
    purger.run(pushes)
    assert served(server) == {(403, "InvalidProviderToken"): 5}
    assert purger.dropped == {push.device for push in pushes}, "it reaches no device any more"
    again(server)

    incident.repeat()
    careful = CarefulProvider(server)
    deliver_despite_alarms(careful, pushes)
    assert len(careful.alarms) > 1 and not careful.dropped and careful.tokens == 1
    assert shown(server) == once(pushes)
    rejected = [found for found in records(server).values() if len(found) > 1]
    assert rejected and all(found[-1]["served"]["status"] == 200 for found in rejected)

"""A store that fails while the server runs, with `--store-failure drop`: pushes are answered as usual, and the losses are
counted.
"""

import json
import time

import pytest

from support import stores
from support.failing_stores import FrozenPostgres, fail, ids, push_once, readiness, recover_with_pushes
from support.server import wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(120)

INCONCLUSIVE = 5


def test_pushes_are_answered_and_the_losses_counted(failure, start):
    server = start(*stores.flags(failure.place, "--store-failure", "drop", memory_records=2))
    before = [push_once(server)[1] for _ in range(5)]
    wait_until(lambda: len(stores.pushes_view(failure.place)) == 5, "the pushes are written")
    during = fail(server, failure)[0]
    for _ in range(10):
        status, apns_id, _ = push_once(server)
        assert status == 200
        during.append(apns_id)
    during += recover_with_pushes(server, failure)
    after = [push_once(server)[1] for _ in range(5)]
    kept = ids(server)
    assert kept[:5] == before and kept[-5:] == after
    assert set(kept) <= {*before, *during, *after}
    lost = 10 + len(during) - len(kept)  # 10: those before and after
    status = stores.status(server)["store"]
    assert (status["lost"], status["refused"], status["problem"]) == (lost, 0, None)
    if isinstance(failure, FrozenPostgres) and lost == 0:
        return  # It answered again before the server gave up.
    assert lost > 0
    assert stores.metric(server, "apns_mock_store_lost_records_total") == lost
    page = server.api("GET", "/pushes")
    assert (page["evicted"], page["complete"], page["total"]) == (lost, False, len(kept))
    assert any(f"{lost} pushes were lost" in warning for warning in stores.status(server)["warnings"])


def test_the_log_says_once_that_pushes_are_dropped(failure, start):
    """Also if nothing has to be stored between two pushes, which a full disk allows."""
    server = start(*stores.flags(failure.place, "--store-failure", "drop"))
    push_once(server)
    fail(server, failure)
    for _ in range(4):
        time.sleep(0.6)  # longer than the server waits before it tries again
        assert push_once(server)[0] == 200
    recover_with_pushes(server, failure)
    push_once(server)
    lines = wait_until(lambda: [line for line in server.log().splitlines() if " the store " in line][1:], "it says so", 10)
    assert len(lines) == 1 and "works again" in lines[0], server.log()


def test_the_store_recovers_without_a_push(start, lock):
    """A load balancer sends no pushes to a server that is not ready."""
    server = start(*stores.flags(lock.place, "--store-failure", "drop"))
    push_once(server)
    fail(server, lock)
    wait_until(lambda: stores.metric(server, "apns_mock_store_waiting_records") == 0, "all waiting pushes are lost", 10)
    lock.end()
    wait_until(lambda: readiness(server)[0] == 200, "the server is ready again", 5)


def test_counts_of_a_server_with_losses_are_inconclusive(start, lock):
    server = start(*stores.flags(lock.place, "--store-failure", "drop"))
    push_once(server)
    fail(server, lock)
    # The pushes of the failure are lost.
    wait_until(lambda: stores.status(server)["store"]["lost"], "pushes are lost", 10)
    recover_with_pushes(server, lock)
    waited = server.command("wait", "topic:com.example.unused", "--count", "0", "--timeout", "100ms", "--settle", "0s")
    assert waited.returncode == INCONCLUSIVE, waited
    document = json.dumps({"expect": [{"match": "topic:com.example.unused", "count": 0}]})
    verified = server.command("verify", "-", input=document)
    assert verified.returncode == INCONCLUSIVE, verified


def test_durable_answers_go_on_while_pushes_are_dropped(outage, start):
    server = start(*stores.flags(outage.place, "--store-failure", "drop", "--durable", "answer"))
    push_once(server)
    fail(server, outage)
    began = time.monotonic()
    with connect(server) as wire:
        for _ in range(3):
            assert wire.push(push_headers(server, "ab" * 32)).status == 200
    assert time.monotonic() - began < 10
    recover_with_pushes(server, outage)
    assert push_once(server)[0] == 200


def test_the_losses_are_remembered_after_a_restart(start, lock):
    server = start(*stores.flags(lock.place, "--store-failure", "drop"))
    push_once(server)
    fail(server, lock)
    wait_until(lambda: stores.status(server)["store"]["lost"], "pushes are lost", 10)
    recover_with_pushes(server, lock)
    push_once(server)
    lost = stores.status(server)["store"]["lost"]
    assert server.stop() == 0
    page = start(*stores.flags(lock.place)).api("GET", "/pushes")
    assert (page["evicted"], page["complete"]) == (lost, False)

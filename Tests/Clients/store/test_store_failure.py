"""A store that fails while the server runs, because another program locks the file, the disk is full or the database does not
respond: pushes are answered 503 until it works again, and nothing that was answered is lost.
"""

import contextlib
import http.client
import json
import threading
import time

import pytest

from support import stores
from support.failing_stores import DETECTION, fail, ids, push_once, readiness, recover
from support.server import Server, wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(120)


# Refusing


def test_pushes_are_refused_until_the_store_works_again(failure, start):
    server = start(*stores.flags(failure.place, memory_records=2))
    before = [push_once(server)[1] for _ in range(5)]
    acknowledged, refused = fail(server, failure)
    for _ in range(5):
        status, apns_id, body = push_once(server)
        assert (status, body) == (503, b'{"reason":"ServiceUnavailable"}') and apns_id
    refused += 5
    recover(server, failure)
    after = [push_once(server) for _ in range(5)]
    assert [status for status, _, _ in after] == [200] * 5
    assert ids(server) == before + acknowledged + [apns_id for _, apns_id, _ in after]
    status = stores.status(server)["store"]
    assert (status["lost"], status["refused"], status["problem"]) == (0, refused, None)
    wait_until(lambda: len(stores.pushes_view(failure.place)) == len(ids(server)), "everything is written", 10)
    page = server.api("GET", "/pushes")
    assert page["complete"] and page["evicted"] == 0


@pytest.mark.parametrize("policy", ["refuse", "drop"])
def test_requests_that_the_store_must_make_are_refused(outage, start, policy):
    server = start(*stores.flags(outage.place, "--store-failure", policy))
    push_once(server)
    exported = server.request("GET", "/api/v1/export").body
    fail(server, outage)
    answer = server.request("POST", "/api/v1/import", exported, headers={"content-type": "application/x-ndjson"})
    assert answer.status == 503 and outage.says in answer.json["detail"], answer.body
    assert server.request("DELETE", "/api/v1/pushes?all=true").status == 503
    recover(server, outage)
    answer = server.request("POST", "/api/v1/import", exported, headers={"content-type": "application/x-ndjson"})
    assert answer.status == 200 and answer.json["imported"] == 1, answer.body
    assert answer.json["first_seq"] == stores.seqs(server)[-1]


def test_the_failure_is_shown_everywhere(failure, start):
    server = start(*stores.flags(failure.place))
    push_once(server)
    assert readiness(server) == (200, {"status": "ready"})
    fail(server, failure)
    waiting = stores.metric(server, "apns_mock_store_waiting_records")
    assert (0 < stores.metric(server, "apns_mock_store_lag_seconds") < 60) == (waiting > 0), f"{waiting} wait"
    code, said = readiness(server)
    assert code == 503 and said["status"] != "ready" and failure.says in said["problem"]
    assert server.request("GET", "/livez").status == 200, "a restart would not repair the disk"
    status = stores.status(server)
    assert failure.says in status["store"]["problem"]
    assert any("the store" in warning and failure.says in warning for warning in status["warnings"])
    assert stores.metric(server, "apns_mock_store_working") == 0
    assert stores.metric(server, "apns_mock_store_refused_pushes_total") == status["store"]["refused"] > 0
    recover(server, failure)
    assert stores.metric(server, "apns_mock_store_working") == 1
    wait_until(lambda: stores.metric(server, "apns_mock_store_lag_seconds") == 0, "everything is written", 10)
    assert stores.metric(server, "apns_mock_store_lost_records_total") == 0


def test_a_failure_and_its_end_are_logged_once(failure, start):
    server = start(*stores.flags(failure.place))
    push_once(server)
    fail(server, failure)
    for _ in range(3):
        push_once(server)
        time.sleep(0.2)
    recover(server, failure)
    server.logged("works again")
    lines = [line for line in server.log().splitlines() if " the store " in line]
    assert len(lines) == 2, lines
    assert str(failure.place) in lines[0] and failure.says in lines[0] and "503" in lines[0]


def test_a_failure_is_detected_again_after_a_recovery(start, lock):
    server = start(*stores.flags(lock.place))
    acknowledged = []
    for _ in range(3):
        acknowledged += fail(server, lock)[0]
        recover(server, lock)
    assert ids(server) == acknowledged
    assert len(server.logged("the store", "works again")) <= 3


def test_a_failure_is_detected_within_about_a_second(outage, start):
    server = start(*stores.flags(outage.place))
    push_once(server)
    with connect(server) as wire:
        outage.begin()
        # Its answer may have to wait until the database confirms that the server is the active one.
        wire.open(push_headers(server, "ab" * 32), b"{}")
        wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", 3)  # three times as long, for busy machines
        recover(server, outage)


def test_the_inbox_can_be_read_while_the_store_fails(start, lock):
    server = start(*stores.flags(lock.place, memory_records=2))
    before = [push_once(server)[1] for _ in range(5)]
    acknowledged, _ = fail(server, lock)
    assert ids(server) == before + acknowledged, "what is not written yet is found too"
    count = len(before + acknowledged)
    waited = server.api("GET", "/pushes/wait", count=f"={count}", timeout="0s")
    assert waited["satisfied"] and waited["complete"]
    verified = server.request("POST", "/api/v1/verify", {"expect": [{"match": "status:200", "count": {"exactly": count}}]})
    assert verified.status == 200


def test_a_short_lock_is_no_failure(start, lock):
    """Backups and queries of other programs lock the file for moments."""
    server = start(*stores.flags(lock.place))
    with connect(server) as wire:
        for _ in range(3):
            lock.begin()
            assert wire.push(push_headers(server, "ab" * 32)).status == 200
            time.sleep(0.1)
            lock.end()
            time.sleep(0.1)
    assert "fails" not in server.log() and stores.status(server)["store"]["problem"] is None


def test_a_reader_of_the_file_is_no_failure(start, lock):
    """A long read transaction of another program does not keep the server from writing."""
    server = start(*stores.flags(lock.place, "--durable", "answer"))
    push_once(server)
    with contextlib.closing(stores.sqlite3.connect(lock.place, isolation_level=None)) as db:
        db.execute("BEGIN")
        assert db.execute("SELECT count(*) FROM pushes").fetchone() == (1,)
        assert set(stores.load(server, 300).values()) == {200}
        assert db.execute("SELECT count(*) FROM pushes").fetchone() == (1,)
    assert len(stores.pushes_view(lock.place)) == 301


@pytest.fixture
def delayed(start, lock, device):
    """A server whose store fails, and whose delayed push, the only one that is written, was answered after that."""
    server = start(*stores.flags(lock.place, memory_records=1))
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "2s"}}})
    with connect(server) as wire:
        wire.settings()
        stream = wire.open(push_headers(server, device), b"{}")
        wait_until(lambda: stores.pushes_view(lock.place), "the push is written")
        push_once(server)  # so that the delayed push leaves memory
        wait_until(lambda: len(stores.pushes_view(lock.place)) == 2, "the second push is written")
        fail(server, lock)
        assert wire.response(stream).status == 200
        yield server


def test_a_delayed_push_that_ends_during_the_failure_has_its_outcome_afterwards(delayed, lock, device):
    recover(delayed, lock)
    wait_until(lambda: stores.pushes_view(lock.place)[0]["outcome"] == "accepted", "the outcome is written", 10)
    record = delayed.record(device)
    assert (record["outcome"], record["served"]["status"]) == ("accepted", 200)


def test_a_delayed_push_that_ends_during_the_failure_has_its_outcome_at_once(delayed, device):
    """Its client has the answer, so the next query finds it."""
    assert delayed.api("GET", "/pushes/1")["outcome"] == "accepted"
    assert delayed.record(device)["outcome"] == "accepted"


def test_requests_of_all_kinds_are_refused(start, lock):
    server = start("--apns-plain", "127.0.0.1:0", *stores.flags(lock.place))
    acknowledged, _ = fail(server, lock)
    (listener,) = server.facts["apns_plain"]
    plain = http.client.HTTPConnection(listener["host"], listener["port"], timeout=20)
    plain.request("POST", "/3/device/" + "ab" * 32, b"{}", {"authorization": server.bearer, "apns-topic": "com.example.app"})
    assert plain.getresponse().status == 503
    plain.close()
    with connect(server) as wire:
        wire.settings()
        fields = [(":scheme", "https"), (":authority", server.authority), ("authorization", server.bearer)]
        for headers in (
                [(":method", "GET"), (":path", "/1/apps/com.example.app/all-channels"), *fields],
                [(":method", "POST"), (":path", "/4/broadcasts/apps/com.example.app"), *fields],
                push_headers(server, "ab" * 32, apns_topic=None), push_headers(server, "ab" * 32, method_="HEAD"),
                push_headers(server, "feedfacefeedface41000000" + "0" * 40)):
            response = wire.push(headers, b"")
            assert response.status == 503, (headers, response)
        assert response.body == b'{"reason":"ServiceUnavailable"}'
    assert ids(server) == acknowledged


def test_a_reset_during_the_failure_holds(start, lock):
    server = start(*stores.flags(lock.place, memory_records=1))
    for _ in range(3):
        push_once(server)
    fail(server, lock)
    response = server.request("POST", "/api/v1/reset", {"inbox": True})
    assert response.status == 503 and "after a restart" in response.json["detail"]
    assert ids(server) == []
    recover(server, lock)
    assert ids(server) == []
    assert push_once(server)[0] == 200
    wait_until(lambda: len(stores.pushes_view(lock.place)) == 1, lambda: stores.pushes_view(lock.place), 10)


# Durable answers


def test_a_durable_answer_waits_for_the_end_of_the_failure(start, lock):
    server = start(*stores.flags(lock.place, "--durable", "answer"))
    push_once(server)
    lock.begin()
    with connect(server) as wire:
        stream = wire.open(push_headers(server, "ab" * 32), b"{}")
        wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
        wire.drain()
        assert not wire.responses[stream].finished, "the push is not written"
        assert push_once(server)[0] == 503
        recover(server, lock)
        assert wire.response(stream).status == 200
    assert len(ids(server)) == 2 == len(stores.pushes_view(lock.place))


def test_pushes_behind_waiting_answers_are_refused_too(start, lock):
    """Providers use one connection for everything; on it, too, pushes are answered 503 during the failure."""
    server = start(*stores.flags(lock.place, "--durable", "answer"))
    with connect(server) as wire:
        # The same header fields again and again, which an encoder would refer to.
        for _ in range(3):
            wire.push(push_headers(server, "ab" * 32))
        lock.begin()
        accepted = [wire.open(push_headers(server, "ab" * 32), b"{}") for _ in range(40)]
        rejected = [wire.open(push_headers(server, "invalid"), b"{}") for _ in range(20)]
        wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
        refused = [wire.open(push_headers(server, "cd" * 32), b"{}") for _ in range(40)]
        try:
            wait_until(lambda: wire.drain() or all(wire.responses[stream].finished for stream in refused),
                       "the later pushes are answered", 5)
            wire.ping()
            assert not any(wire.responses[stream].finished for stream in accepted + rejected)
        finally:
            recover(server, lock)
        assert {wire.response(stream).status for stream in accepted} == {200}
        assert {json.loads(wire.response(stream).body)["reason"] for stream in rejected} == {"BadDeviceToken"}
        assert {json.loads(wire.response(stream).body)["reason"] for stream in refused} == {"ServiceUnavailable"}
        assert wire.push(push_headers(server, "ef" * 32)).status == 200
    assert len(ids(server)) == 64


def test_a_push_behind_a_delayed_push_is_refused_too(start, lock):
    """No response waits, but the record of the delayed push does."""
    server = start(*stores.flags(lock.place, "--durable", "answer"))
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": "ab" * 32}, "do": {"delay": {"fixed": "1m"}}})
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ef" * 32)).status == 200
        lock.begin()
        wire.open(push_headers(server, "ab" * 32), b"{}")
        wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
        try:
            assert wire.push(push_headers(server, "cd" * 32)).status == 503
        finally:
            recover(server, lock)
    assert len(ids(server)) == 2


def test_answers_that_wait_at_the_end_of_a_server_are_forgotten(binary, certs, lock):
    server = Server(binary, certs, *stores.flags(lock.place, "--durable", "answer", "--shutdown-timeout", "1s"))
    try:
        with connect(server) as wire:
            assert wire.push(push_headers(server, "ef" * 32)).status == 200
            lock.begin()
            wire.open(push_headers(server, "ab" * 32), b"{}")
            wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
            server.signal()
            assert server.wait(40) == 1
        assert "EventLoop" not in server.log(), server.log()
    finally:
        server.kill()


def test_the_end_of_a_server_whose_store_fails_is_prompt_and_names_the_loss(binary, certs, lock):
    """Pushes that were answered but cannot be written are lost: the log states how many."""
    server = Server(binary, certs, *stores.flags(lock.place))
    try:
        acknowledged, _ = fail(server, lock)
        began = time.monotonic()
        server.signal()
        code = server.wait(40)
        assert time.monotonic() - began < 20
        lost = [line for line in server.log().splitlines() if "lost" in line]
        assert len(acknowledged) > 1 and any(f" {len(acknowledged)} pushes" in line for line in lost), lost
        assert code == 1, "as with --export-on-exit"
    finally:
        server.kill()


# Under load


@pytest.mark.parametrize("durable", ["soon", "answer"])
def test_a_failure_under_load_loses_no_acknowledged_push(start, lock, durable):
    server = start(*stores.flags(lock.place, "--durable", durable, memory_records=8))
    push_once(server)
    over, results = threading.Event(), []

    def provide():
        while not over.is_set():
            results.append(stores.load(server, 60, streams=20))
            time.sleep(0.02)

    threads = [threading.Thread(target=provide, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.3)
        lock.begin()
        wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
        time.sleep(0.5)
        recover(server, lock)
        time.sleep(0.3)
    finally:
        over.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    statuses = {apns_id: status for result in results for apns_id, status in result.items()}
    assert set(statuses.values()) <= {200, 503}
    assert sorted(apns_id for apns_id, status in statuses.items() if status == 200) == sorted(ids(server)[1:])
    assert stores.status(server)["store"]["refused"] == list(statuses.values()).count(503)

"""Two servers that share an inbox in PostgreSQL: each sees the pushes that were sent to the other, with the same records, in
the same order, as soon as they were answered.
"""

import concurrent.futures
import contextlib
import json
import secrets
import signal
import subprocess
import threading
import time
import uuid

import pytest

from support import stores
from support.event_stream import events
from support.postgres import environment, program
from support.selection import some
from support.server import Server, stop_cleanly, wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(180)  # for slow machines; normally each takes seconds

FEW = 8  # records in memory
SECONDS = 90
PROPAGATION = 0.5  # seconds after which the other server knows the attempts of a push; normally milliseconds


@pytest.fixture
def pair(start, inbox):
    """Two servers with the same inbox, of which one answers when the database has committed."""
    return [start(*stores.flags(inbox, "--durable", durable, memory_records=FEW)) for durable in ("soon", "answer")]


@pytest.fixture(params=some(["to the first", "to the second"], 1))
def directed(request, pair):
    """The two servers: pushes are sent to the first and looked for on the second."""
    return pair if request.param == "to the first" else pair[::-1]


def push(server, device, count=1, **changes):
    """Sends this many pushes over one connection; returns their statuses."""
    with connect(server) as wire:
        return [wire.push(push_headers(server, device, **changes)).status for _ in range(count)]


@contextlib.contextmanager
def delayed(server, device, delay="1s"):
    """Yields a function that returns the response to a delayed push."""
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": delay}}})
    with connect(server) as wire:
        wire.settings()
        stream = wire.open(push_headers(server, device), b"{}")
        wire.ping()
        yield lambda: wire.response(stream)


# Visibility


@pytest.mark.parametrize("durable", ["soon", "answer"])
def test_a_push_is_found_on_the_other_server_at_once(start, inbox, durable):
    pair = [start(*stores.flags(inbox, "--durable", durable, memory_records=FEW)) for _ in range(2)]
    with connect(pair[0]) as first, connect(pair[1]) as second:
        for number in range(60):
            (server, wire), other = ((pair[0], first), pair[1]) if number % 2 else ((pair[1], second), pair[0])
            device = secrets.token_hex(32)
            apns_id = wire.push(push_headers(server, device)).header("apns-id")
            record = other.record(device)
            assert (record["apns"]["id"], record["outcome"]) == (apns_id, "accepted")
            assert other.api("GET", f"/pushes/{record['seq']}")["request"]["device_token"] == device
            assert server.record(device) == record
            assert [one["seq"] for one in other.pushes(apns_id=apns_id)] == [record["seq"]]
    assert stores.seqs(pair[0]) == stores.seqs(pair[1]) and len(stores.seqs(pair[0])) == 60


def test_a_push_is_found_on_the_other_server_under_load(directed):
    server, other = directed
    with concurrent.futures.ThreadPoolExecutor(2) as pool, connect(server) as wire:
        loads = [pool.submit(stores.load, one, 1_000, streams=20) for one in directed]
        for _ in range(60):
            device = secrets.token_hex(32)
            apns_id = wire.push(push_headers(server, device)).header("apns-id")
            assert other.record(device)["apns"]["id"] == apns_id
        for load in loads:
            assert set(load.result(SECONDS).values()) == {200}


def test_the_newest_page_of_the_other_server_has_the_push(directed):
    """Without a filter, so that the push is the last one of the page."""
    server, other = directed
    with connect(server) as wire:
        for number in range(1, 31):
            apns_id = wire.push(push_headers(server, "ab" * 32)).header("apns-id")
            page = other.api("GET", "/pushes", order="desc", limit=1)
            assert [record["apns"]["id"] for record in page["items"]] == [apns_id]
            assert (page["total"], page["matched"]) == (number, number)
            assert stores.status(other)["inbox"]["last_seq"] == page["items"][0]["seq"]


def test_both_have_the_same_records(pair, inbox):
    """Also those that are in the memory of one server."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for load in [pool.submit(stores.load, server, 500, streams=20) for server in pair]:
            assert set(load.result(SECONDS).values()) == {200}
    first, second = map(stores.everything, pair)
    assert first == second and len(first) == 1_000
    seqs = [record["seq"] for record in first]
    assert seqs == sorted(set(seqs))
    assert len({record["apns"]["id"] for record in first}) == 1_000
    exports = [server.request("GET", "/api/v1/export").body for server in pair]
    assert exports[0] == exports[1] and len(exports[0].splitlines()) == 1_000
    wait_until(lambda: len(stores.pushes_view(inbox, "SELECT seq FROM pushes")) == 1_000, "all are written", 10)
    assert [row["seq"] for row in stores.pushes_view(inbox, "SELECT seq FROM pushes ORDER BY seq")] == seqs


def test_records_of_every_kind_are_the_same(start, inbox, tmp_path):
    """The first server has all of them in memory, the second none."""
    settings = ["--seed", "7", "--apns-plain", "127.0.0.1:0"]
    first = start(*settings, *stores.flags(inbox, memory_records=1_000))
    second = start(*settings, *stores.flags(inbox, memory_records=1))
    stores.push_every_kind(first, tmp_path)
    wait_until(lambda: first.pushes(q="is:pending") == [], "all have ended")
    records = stores.everything(first)
    assert len(records) > 40 and stores.everything(second) == records
    for record in records[::5]:
        path = f"/api/v1/pushes/{record['seq']}"
        assert second.request("GET", path).body == first.request("GET", path).body
        assert second.request("GET", path + "/payload").body == first.request("GET", path + "/payload").body
    for query in ("status:4*", "text:für", "payload./aps/badge:12", "is:retry", "kind:*", "token:ABAB*", "rule:rule-*"):
        assert stores.seqs(second, q=query) == stores.seqs(first, q=query) != []


def test_ids_and_names_are_not_used_twice(start, inbox):
    """Servers behind a balancer have the same settings, thus the same seed."""
    pair = [start("--seed", "7", *stores.flags(inbox)) for _ in range(2)]
    for server in pair:
        for _ in range(2):
            push(server, "ab" * 32, 3)
    records = stores.everything(pair[0])
    assert len({record["apns"]["id"] for record in records}) == 12
    assert len({record["connection"]["id"] for record in records}) == 4


def test_an_import_is_seen_on_the_other_server(directed, device):
    server, other = directed
    push(server, device, 2)
    export = server.request("GET", "/api/v1/export").body
    done = server.request("POST", "/api/v1/import", export, headers={"content-type": "application/x-ndjson"})
    assert done.status == 200
    assert len(other.pushes(device_token=device)) == 4
    assert stores.everything(other) == stores.everything(server)


def test_an_inbox_of_another_schema_is_separate(start, postgres, device):
    one, other = (start(*stores.flags(postgres.new_inbox())) for _ in range(2))
    push(one, device)
    assert len(one.pushes()) == 1 and other.pushes() == []
    other.api("POST", "/reset", {})
    assert len(one.pushes()) == 1


# Readers that follow


def follow_pages(server, count, over):
    """Reads page after page in ascending order; returns the `seq` values in the order in which they were seen."""
    seen = []
    while len(seen) < count:
        assert not over.is_set()
        page = server.api("GET", "/pushes", after=seen[-1] if seen else 0, limit=97, fields="seq")
        seen += [record["seq"] for record in page["items"]]
    return seen


def follow_waits(server, count, over):
    seen = []
    while len(seen) < count:
        assert not over.is_set()
        waited = server.api("GET", "/pushes/wait", after=seen[-1] if seen else 0, count=1, timeout="10s")
        assert waited["satisfied"] and waited["complete"], waited["message"]
        seen += [item["seq"] for item in waited["items"]]
    return seen


@pytest.mark.parametrize("durable", ["soon", "answer"])
def test_each_push_is_seen_once_and_in_order_on_both(start, inbox, durable):
    """A reader never passes a push that is committed later."""
    pair = [start(*stores.flags(inbox, "--durable", durable, memory_records=FEW)) for _ in range(2)]
    count, over = 2_000, threading.Event()
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(8) as pool:
        streams = [stack.enter_context(events(server)) for server in pair]
        reading = [pool.submit(reader, server, count, over) for server in pair for reader in (follow_pages, follow_waits)]
        try:
            for load in [pool.submit(stores.load, server, count // 4, streams=20) for server in pair * 2]:
                assert set(load.result(SECONDS).values()) == {200}
            expected = stores.seqs(pair[0]) + stores.seqs(pair[0], after=stores.seqs(pair[0])[-1])
            assert len(expected) == count
            for one in reading:
                assert one.result(SECONDS) == expected, "a reader saw a push twice, in another order or not at all"
            for stream in streams:
                stream.until(lambda: len(stream.of("push")) >= count or stream.of("gap"), lambda: len(stream.events))
                assert [record["seq"] for record in stream.of("push")] == expected
        finally:
            over.set()


# Waits, events, verification, findings


def test_a_wait_is_satisfied_by_a_push_to_the_other_server(directed, device):
    server, other = directed
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.api, "GET", "/pushes/wait", device_token=device, count=2, timeout="10s")
        time.sleep(0.3)
        began = time.monotonic()
        push(server, device, 2)
        waited = waiting.result(SECONDS)
        assert waited["satisfied"] and waited["complete"] and len(waited["items"]) == 2, waited["message"]
        assert time.monotonic() - began < 3, "the other server is notified"


def test_a_wait_counts_pushes_to_both(pair, device):
    for server in pair:
        push(server, device, 3)
    for server in pair:
        waited = server.api("GET", "/pushes/wait", device_token=device, count="=6", timeout="0s")
        assert waited["satisfied"] and waited["complete"], waited["message"]


def test_events_of_the_other_server_arrive(directed, device):
    server, other = directed
    with events(other) as stream, events(server) as own:
        push(server, device, 20)
        stream.until(lambda: len(stream.of("push")) >= 20, lambda: stream.events[-3:])
        own.until(lambda: len(own.of("push")) >= 20, lambda: own.events[-3:])
        assert stream.of("push") == own.of("push") and not stream.of("gap")


def test_verification_counts_pushes_to_both(pair, device):
    for server in pair:
        push(server, device, 2)
    for server in pair:
        for count, status in ((4, 200), (2, 412)):
            document = {"expect": [{"match": {"device_token": device}, "count": {"exactly": count}}]}
            assert server.request("POST", "/api/v1/verify", document).status == status


def kinds(server):
    return {item["finding"]: item["count"] for item in server.api("GET", "/findings")["items"]}


def test_findings_of_the_other_server_are_shown(directed, device):
    server, other = directed
    push(server, device, apns_push_type=None)
    assert kinds(server) == kinds(other) == {"missing-push-type": 1}
    assert [record["seq"] for record in other.pushes(q="finding:missing-push-type")] == [1]


def test_a_retry_on_the_other_server_causes_a_finding(directed, device):
    server, other = directed
    assert push(server, device, apns_priority="7") == [400]
    time.sleep(PROPAGATION)
    assert push(other, device, apns_priority="7") == [400]
    for one in (other, server):
        wait_until(lambda: kinds(one) == {"retried-permanent": 1}, lambda: kinds(one), 5)


# Attempts


def test_attempts_continue_on_the_other_server(pair, device):
    apns_id, attempts = str(uuid.uuid4()), []
    for server in pair * 2:
        assert push(server, device, apns_id=apns_id, apns_priority="7") == [400]
        time.sleep(PROPAGATION)
        attempts.append(server.pushes(device_token=device)[-1]["attempt"])
    assert attempts == [1, 2, 3, 4]
    for server in pair:
        assert [record["attempt"] for record in server.pushes(device_token=device)] == attempts
        assert len(server.api("GET", f"/pushes/{apns_id}")["attempts"]) == 4
        assert len(stores.seqs(server, q=f"token:{device} is:retry")) == 3


def test_a_push_whose_answer_was_lost_is_retried_on_the_other_server(pair, device):
    """The fault happens once: the server that gets the retry knows that the provider had no answer."""
    (server, other), apns_id = pair, str(uuid.uuid4())
    server.api("PUT", "/profile", {"name": "ack-lost", "params": {"rate": 1}})
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, apns_id=apns_id)).reset is not None
    time.sleep(PROPAGATION)
    assert push(other, device, apns_id=apns_id) == [200]
    for one in pair:
        assert [record["attempt"] for record in one.pushes(device_token=device)] == [1, 2]


# Changes and removal


def test_a_delayed_push_has_its_outcome_on_the_other_server(directed, inbox, device):
    server, other = directed
    with events(other) as stream, concurrent.futures.ThreadPoolExecutor(1) as pool, delayed(server, device) as response:
        waiting = pool.submit(other.api, "GET", "/pushes/wait", device_token=device, status=200, timeout="1m")
        wait_until(lambda: other.pushes(device_token=device), "the pending push is found", 5)
        assert other.record(device)["outcome"] == "pending" and other.pushes(q="is:pending") == [other.record(device)]
        assert response().status == 200
        record = other.record(device)
        assert (record["outcome"], record["accepted"], record["served"]["status"]) == ("accepted", True, 200)
        assert other.pushes(q="is:pending") == [] and record == server.record(device)
        assert waiting.result(SECONDS)["satisfied"]
        stream.until(lambda: stream.of("push.updated"), lambda: stream.events[-3:])
        assert stream.of("push.updated") == [record]
    wait_until(lambda: stores.pushes_view(inbox)[0]["outcome"] == "accepted", "the outcome is written", 5)


def test_a_push_whose_client_leaves_is_aborted_on_the_other_server(directed, device):
    server, other = directed
    with delayed(server, device, "1m"):
        pass
    wait_until(lambda: [one["outcome"] for one in other.pushes(device_token=device)] == ["unanswered"], "unanswered", 10)


def store_for_device(server, device):
    """Sends a push to a device that is offline."""
    server.api("PUT", "/fixtures", {
        "apps": [{"bundle_id": "com.example.app"}],
        "devices": [{"id": "anna", "state": "offline", "apps": [
            {"bundle_id": "com.example.app", "tokens": {"alert": device}}]}]})
    assert push(server, device) == [200]


def test_a_delivery_changes_on_the_other_server(directed, device):
    server, other = directed
    store_for_device(server, device)
    assert other.record(device)["delivery"] == "Stored - Device Offline"
    server.api("POST", "/devices/anna/online", {})
    assert other.record(device)["delivery"] == "Delivered to Device (From Storage)"


def test_the_answer_to_a_request_waits_until_its_change_is_committed(pair, inbox, device):
    """Queries of other servers do not wait for a server whose answers wait for the database."""
    server = pair[1]
    store_for_device(server, device)
    sleeping = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE ?"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        lock = pool.submit(inbox.execute, f"SELECT 1 FROM {inbox}.push FOR UPDATE; SELECT pg_sleep(1)")
        wait_until(lambda: inbox.postgres.rows(sleeping, f"%{inbox}.push%"), "the record is locked", 10)
        server.api("POST", "/devices/anna/online", {})
        assert stores.pushes_view(inbox)[0]["delivery"] == "Delivered to Device (From Storage)"
        lock.result()


@pytest.mark.parametrize("how", ["filter", "all"])
def test_deleted_pushes_are_gone_on_the_other_server(directed, inbox, how):
    server, other = directed
    gone = secrets.token_hex(32)
    for one in directed:
        push(one, gone, 10)
    kept = [] if how == "all" else [secrets.token_hex(32)]
    for device in kept:
        push(server, device)
    seqs = stores.seqs(other, device_token=gone)
    deleted = server.api("DELETE", "/pushes", **({"all": "true"} if how == "all" else {"device_token": gone}))
    assert deleted == {"deleted": 20}
    for one in (other, server):
        page = one.api("GET", "/pushes")
        assert [record["request"]["device_token"] for record in page["items"]] == kept
        assert (page["total"], page["evicted"], page["complete"]) == (len(kept), 0, True)
        assert one.request("GET", f"/api/v1/pushes/{seqs[-1]}").status == 404
        assert one.pushes(device_token=gone) == []
    wait_until(lambda: len(stores.pushes_view(inbox)) == len(kept), lambda: stores.pushes_view(inbox), 5)


def test_a_deleted_delayed_push_does_not_return_with_its_outcome(directed, inbox, device):
    """It is deleted on the server that does not have its connection."""
    server, other = directed
    with delayed(server, device, "700ms") as response:
        wait_until(lambda: other.pushes(device_token=device), "the pending push is found", 5)
        assert other.api("DELETE", "/pushes", device_token=device) == {"deleted": 1}
        assert response().status == 200
    push(server, "ab" * 32)
    for one in directed:
        assert one.pushes(device_token=device) == []
    wait_until(lambda: len(stores.pushes_view(inbox)) == 1, lambda: stores.pushes_view(inbox), 5)


def test_a_limit_applies_to_both(start, inbox):
    pair = [start(*stores.flags(inbox, "--max-records", "50", memory_records=FEW)) for _ in range(2)]
    for server in pair * 2:
        stores.load(server, 50, streams=10)
    newest = stores.seqs(pair[0])
    for server in pair:
        wait_until(lambda: server.api("GET", "/pushes")["total"] == 50, lambda: server.api("GET", "/pushes")["total"], 10)
        page = server.api("GET", "/pushes", limit=1000)
        assert [record["seq"] for record in page["items"]] == newest[-50:]
        assert (page["evicted"], page["complete"]) == (150, False)
    wait_until(lambda: len(stores.pushes_view(inbox, "SELECT seq FROM pushes")) == 50, "the others are removed", 10)


# The servers


def test_the_status_lists_the_servers(pair):
    for server in pair:
        listed = stores.status(server)["store"]["servers"]
        assert sorted(one["durable"] for one in listed) == ["answer", "soon"]
        assert len({one["id"] for one in listed}) == 2 and all(isinstance(one["id"], int) for one in listed)


def test_a_server_that_ends_is_not_listed(pair):
    assert pair[0].stop() == 0
    assert [one["durable"] for one in stores.status(pair[1])["store"]["servers"]] == ["answer"]
    began = time.monotonic()
    push(pair[1], "ab" * 32, 5)
    assert len(pair[1].pushes()) == 5 and time.monotonic() - began < 5, "no query waits for the other server"


def test_a_killed_server_is_not_listed_and_its_pending_pushes_are_aborted(binary, certs, inbox, device):
    survivor, killed = (Server(binary, certs, *stores.flags(inbox, memory_records=FEW)) for _ in range(2))
    try:
        with delayed(killed, device, "1m"):
            wait_until(lambda: survivor.pushes(device_token=device), "the pending push is found", 5)
            killed.kill()
        # Until the database has noticed, queries may wait.
        wait_until(lambda: len(stores.status(survivor)["store"]["servers"]) == 1, lambda: stores.status(survivor), 15)
        wait_until(lambda: survivor.record(device)["outcome"] == "unknown", lambda: survivor.record(device), 15)
        began = time.monotonic()
        assert push(survivor, "ab" * 32, 5) == [200] * 5
        assert len(survivor.pushes(device_token="ab" * 32)) == 5 and time.monotonic() - began < 5
        stop_cleanly(survivor)
    finally:
        survivor.kill()
        killed.kill()


def test_servers_of_former_days_are_forgotten(binary, certs, start, inbox):
    """Also one that lives on, because its machine has slept: it is known again when it wakes."""
    def known():
        return inbox.postgres.rows("SELECT id FROM server ORDER BY id", schema=inbox.schema)

    killed = Server(binary, certs, *stores.flags(inbox))
    killed.kill()
    server = start(*stores.flags(inbox))
    wait_until(lambda: len(stores.status(server)["store"]["servers"]) == 1, lambda: stores.status(server), 15)
    inbox.execute("UPDATE server SET seen_at = now() - interval '25 hours' WHERE id = (SELECT min(id) FROM server)")
    other = start(*stores.flags(inbox))  # it tidies up when it starts
    wait_until(lambda: len(known()) == 2, known, 10)
    inbox.execute("DELETE FROM server WHERE id = (SELECT min(id) FROM server)")
    wait_until(lambda: len(known()) == 2, known, 10)
    assert push(server, "ab" * 32) == [200] and len(other.pushes()) == 1
    server.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 1, "streak": 1}})
    assert push(other, "ab" * 32) == [503]


def is_answered(server):
    try:
        return server.request("GET", "/api/v1/pushes").status == 200
    except OSError:  # after 15 s
        return False


def test_a_frozen_server_does_not_block_the_other_one_forever(pair):
    """A machine that does not respond: queries on the other server wait some seconds for what it may have buffered."""
    push(pair[0], "ab" * 32)
    pair[0].signal(signal.SIGSTOP)
    try:
        assert push(pair[1], "cd" * 32) == [200]
        wait_until(lambda: is_answered(pair[1]), "a query is answered", 30)
    finally:
        pair[0].signal(signal.SIGCONT)
    wait_until(lambda: len(pair[0].pushes()) == 2, lambda: pair[0].pushes(), 30)


def is_locked(inbox):
    """Whether a transaction has locked the row for which writers wait."""
    return inbox.postgres.rows(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE ? AND wait_event = 'ClientRead' AND state = 'active'",
        f"%COPY {inbox.schema}.name%") != []


def test_a_server_that_stops_while_it_writes_does_not_block_the_other_ones(pair, inbox):
    """Its machine has stopped in the middle of a batch, so its connection has the lock for which all others wait."""
    stopped = subprocess.Popen(
        [program("psql"), "--no-psqlrc", "--quiet", inbox.postgres.url()], stdin=subprocess.PIPE, text=True, env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        stopped.stdin.write(f"""
            BEGIN; SELECT last_seq FROM {inbox.schema}.contents FOR UPDATE;
            COPY {inbox.schema}.name FROM STDIN;
            """)
        stopped.stdin.flush()
        wait_until(lambda: is_locked(inbox), "the lock is not held", 10)
        assert push(pair[0], "ab" * 32) == [200]
        wait_until(lambda: stores.status(pair[0])["store"]["problem"], "nothing is wrong", 10)
        wait_until(lambda: not stores.status(pair[0])["store"]["problem"], lambda: stores.status(pair[0]), 30)
        assert [push(server, "cd" * 32) for server in pair] == [[200], [200]]
        assert [len(server.pushes()) for server in pair] == [3, 3]
    finally:
        stopped.kill()
        stopped.communicate()


def test_commands_list_pushes_to_the_other_server(directed, device):
    server, other = directed
    push(server, device)
    listed = other.command("ls", "--json")
    assert listed.returncode == 0 and json.loads(listed.stdout)["request"]["device_token"] == device, listed


# Findings


def test_findings_about_connections_are_on_both_servers(pair):
    """A client that opens a connection for each push, and a balancer that gives every second one to the other server."""
    devices = [secrets.token_hex(32) for _ in range(10)]
    for number, device in enumerate(devices):
        assert push(pair[number % 2], device) == [200]
    for server in pair:
        wait_until(lambda: "connection-churn" in server.record(devices[-1])["findings"],
                   lambda: server.api("GET", "/findings"), 10)
    # Only one client is meant, and it uses one provider token.
    first, second = (server.api("GET", "/findings")["items"] for server in pair)
    assert first == second and [item["finding"] for item in first] == ["connection-churn"]

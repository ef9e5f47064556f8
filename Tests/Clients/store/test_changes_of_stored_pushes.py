"""Changes of pushes that have left memory, and their removal: the store, queries, waits and event streams agree."""

import concurrent.futures
import contextlib
import http.client
import secrets
import socket
import threading
import time

import pytest

from support import stores
from support.event_stream import events
from support.selection import ALL, some
from support.server import wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(180)  # for slow machines; normally each takes seconds

FEW = 8  # records in memory
SECONDS = 90


@pytest.fixture
def server(start, place):
    return start(*stores.flags(place, memory_records=FEW))


# Outcomes


def test_a_delayed_push_has_its_outcome_after_it_left_memory(server, place, device):
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "1s"}}})
    with events(server) as stream, concurrent.futures.ThreadPoolExecutor(1) as pool, connect(server) as wire:
        wire.settings()
        answer = wire.open(push_headers(server, device), b"{}")
        wire.ping()
        waiting = pool.submit(server.api, "GET", "/pushes/wait", device_token=device, status=200, timeout="1m")
        stores.load(server, 5 * FEW, streams=5)
        assert server.pushes(q="is:pending") == [server.record(device)]
        wait_until(lambda: [row["outcome"] for row in stores.pushes_view(place)][:1] == ["pending"], "it is written", 5)
        assert wire.response(answer).status == 200
        record = server.record(device)
        assert (record["outcome"], record["accepted"], record["served"]["status"]) == ("accepted", True, 200)
        assert record["fault"]["action"] == "delay" and record["finished_at"] > record["received_at"]
        assert server.api("GET", f"/pushes/{record['seq']}") == record
        assert server.pushes(q="is:pending") == []
        assert waiting.result(SECONDS)["satisfied"]
        stream.until(lambda: stream.of("push.updated"), lambda: stream.events[-3:])
        assert stream.of("push.updated") == [record]
    wait_until(lambda: [row["outcome"] for row in stores.pushes_view(place)][:1] == ["accepted"], "the outcome is written", 5)
    (row,) = stores.pushes_view(place, "SELECT * FROM pushes WHERE seq = ?", record["seq"])
    assert (row["status"], row["accepted"], row["rule"]) == (200, 1, "slow") and row["finished_at"]


def test_many_delayed_pushes_have_their_outcomes(server, place, device):
    """They end at different times, while others arrive."""
    server.api("POST", "/rules", {
        "name": "slow", "when": {"device_token": device}, "do": {"delay": {"uniform": {"min": "50ms", "max": "900ms"}}}})
    with events(server) as stream, concurrent.futures.ThreadPoolExecutor(1) as pool:
        load = pool.submit(stores.load, server, 1_500, streams=20)
        statuses = stores.load(server, 200, streams=60, device=device)
        assert set(statuses.values()) == {200} == set(load.result(SECONDS).values())
        records = server.pushes(device_token=device, limit=1000)
        assert {record["outcome"] for record in records} == {"accepted"} and len(records) == 200
        # A push that ends before a shared store has it arrives in its final state.
        seqs = {record["seq"] for record in records}
        ended = lambda: {record["seq"] for event in ("push", "push.updated") for record in stream.of(event)
                         if record["outcome"] == "accepted"} & seqs
        stream.until(lambda: ended() == seqs or stream.of("gap"), lambda: len(stream.events))
        assert ended() == seqs
        assert {record["outcome"] for record in stream.of("push.updated")} == {"accepted"}
    outcomes = "SELECT DISTINCT outcome FROM pushes"
    wait_until(lambda: stores.pushes_view(place, outcomes) == [{"outcome": "accepted"}], "all outcomes are written", 10)
    assert len(stores.pushes_view(place)) == 1_700


def test_a_push_whose_client_leaves_is_aborted_after_it_left_memory(server, place, device):
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "1m"}}})
    with connect(server) as wire:
        wire.settings()
        wire.open(push_headers(server, device), b"{}")
        wire.ping()
        stores.load(server, 5 * FEW, streams=5)
    wait_until(lambda: server.record(device)["outcome"] == "unanswered", lambda: server.record(device), 10)
    wait_until(lambda: [row["outcome"] for row in stores.pushes_view(place)][:1] == ["unanswered"], lambda: stores.pushes_view(place), 10)


def test_a_delivery_changes_after_the_push_left_memory(server, place, device):
    server.api("PUT", "/fixtures", {
        "apps": [{"bundle_id": "com.example.app"}],
        "devices": [{"id": "anna", "state": "offline", "apps": [
            {"bundle_id": "com.example.app", "tokens": {"alert": device}}]}]})
    with events(server) as stream:
        with connect(server) as wire:
            assert wire.push(push_headers(server, device)).status == 200
        stores.load(server, 5 * FEW, streams=5)
        assert server.record(device)["delivery"] == "Stored - Device Offline"
        # Otherwise one event may tell both.
        stream.until(lambda: stream.of("push"), lambda: stream.events[-3:])
        server.api("POST", "/devices/anna/online", {})
        record = server.record(device)
        assert record["delivery"] == "Delivered to Device (From Storage)"
        assert [one["seq"] for one in server.pushes(delivery="delivered*storage*")] == [record["seq"]]
        assert server.pushes(q="delivery:stored*") == []
        stream.until(lambda: stream.of("push.updated"), lambda: stream.events[-3:])
        assert stream.of("push.updated")[-1]["delivery"] == record["delivery"]
    wait_until(lambda: [row["delivery"] for row in stores.pushes_view(place)][:1] == [record["delivery"]], "the delivery is written", 5)


# Removal while pushes arrive


def test_deletion_while_pushes_arrive(server, place):
    """Pushes of one topic are deleted again and again; those of the other are all there."""
    over, deleted = threading.Event(), []

    def delete():
        while not over.is_set():
            deleted.append(server.api("DELETE", "/pushes", topic="com.example.gone")["deleted"])

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        deleting = pool.submit(delete)
        try:
            gone = pool.submit(stores.load, server, 800, streams=10, apns_topic="com.example.gone")
            kept = pool.submit(stores.load, server, 800, streams=10)
            assert set(gone.result(SECONDS).values()) == {200} == set(kept.result(SECONDS).values())
        finally:
            over.set()
        deleting.result(SECONDS)
    delete = server.api("DELETE", "/pushes", topic="com.example.gone")["deleted"]
    assert sum(deleted) + delete == 800
    page = server.api("GET", "/pushes", limit=1000)
    assert (page["total"], len(page["items"]), page["evicted"]) == (800, 800, 0)
    assert {record["apns"]["topic"] for record in page["items"]} == {"com.example.app"}
    wait_until(lambda: len(stores.pushes_view(place, "SELECT seq FROM pushes")) == 800, "the store has the same", 5)


def test_resets_while_pushes_arrive(server, place):
    """After a reset has been answered, no push that was answered before it is there."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool, connect(server) as wire:
        load = pool.submit(stores.load, server, 2_000, streams=20)
        for _ in range(10):
            device = secrets.token_hex(32)
            assert wire.push(push_headers(server, device)).status == 200
            server.api("POST", "/reset", {"inbox": True})
            assert server.pushes(device_token=device) == []
            found = stores.seqs(server)
            assert found == [] or found == list(range(found[0], found[-1] + 1))
            time.sleep(0.02)
        assert set(load.result(SECONDS).values()) == {200}
    server.api("POST", "/reset", {"inbox": True})
    assert stores.seqs(server) == [] == stores.pushes_view(place)
    page = server.api("GET", "/pushes")
    assert (page["total"], page["evicted"], page["complete"]) == (0, 0, True)


@pytest.mark.parametrize("how", ["delete", "reset"])
def test_a_removed_delayed_push_does_not_return_with_its_outcome(server, place, device, how):
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "700ms"}}})
    with connect(server) as wire:
        wire.settings()
        answer = wire.open(push_headers(server, device), b"{}")
        wire.ping()
        stores.load(server, 5 * FEW, streams=5)
        if how == "delete":
            assert server.api("DELETE", "/pushes", device_token=device) == {"deleted": 1}
        else:
            server.api("POST", "/reset", {"inbox": True})
        assert wire.response(answer).status == 200
    stores.load(server, 5, streams=5)
    assert server.pushes(device_token=device) == [] and server.request("GET", "/api/v1/pushes/1").status == 404
    wait_until(lambda: len(stores.pushes_view(place)) == server.api("GET", "/pushes")["total"], "the store has the same", 5)
    assert 1 not in [row["seq"] for row in stores.pushes_view(place)]


def test_an_export_is_whole_or_fails_when_the_inbox_is_emptied(server):
    """With an inbox in memory, the export contains all pushes of its beginning."""
    body = b'{"aps":{"alert":"%s"}}' % (b"x" * 3_000)
    assert set(stores.load(server, 2_000, streams=10, body=body).values()) == {200}
    with socket.socket() as sock:
        sock.settimeout(SECONDS)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((server.admin_host, server.admin_port))
        sock.sendall(b"GET /api/v1/export HTTP/1.1\r\nhost: localhost\r\n\r\n")
        response = http.client.HTTPResponse(sock)
        response.begin()
        lines = [response.readline()]
        server.api("POST", "/reset", {"inbox": True})
        with contextlib.suppress(http.client.IncompleteRead, OSError):
            lines += response.read().splitlines()
            assert len(lines) == 2_000, f"{len(lines)} of 2000 pushes, and no error"


#: What depends on all pushes, and its number of matches in the answer.
COUNTS = {
    "verify": ("POST", "/verify", lambda body: body["expectations"][0]["matched"]),
    "wait": ("GET", "/pushes/wait?q=text:hello&count=0&timeout=0s", lambda body: body["matched"]),
    "list": ("GET", "/pushes?q=text:hello&count=exact", lambda body: body["matched"]),
    "statistics": ("GET", "/stats?q=text:hello", lambda body: body["matched"]),
    "findings": ("GET", "/findings", lambda body: body["total"]),
}


@pytest.mark.parametrize("way", some(COUNTS, 2))
def test_a_reset_during_queries_makes_them_begin_again(server, way):
    """None of them fails, and each counts the pushes before the reset or those after it."""
    count, clients = 2_000, 8
    method, path, matches = COUNTS[way]
    document = {"expect": [{"match": "text:hello", "count": {"exactly": count}}], "no_findings": ["missing-push-type"]}

    def ask(delay):
        time.sleep(delay)
        return server.request(method, "/api/v1" + path, document if method == "POST" else None)

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for _ in range(4 if ALL else 2):
            stores.load(server, count, apns_push_type=None)
            running = [pool.submit(ask, number / 200) for number in range(clients)]
            time.sleep(0.02)
            server.api("POST", "/reset")
            for answer in (one.result(SECONDS) for one in running):
                assert answer.status in ((200, 412) if method == "POST" else (200,)), answer.body
                assert matches(answer.json) in (0, count), answer.json

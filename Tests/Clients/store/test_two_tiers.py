"""The newest pushes are in memory, the others in the file or the database: readers see each push exactly once and in
order, whatever moves out of memory while they read.
"""

import concurrent.futures
import contextlib
import json
import secrets
import socket
import subprocess
import threading
import time

import pytest

from support import stores
from support.event_stream import events
from support.selection import ALL, some
from support.server import clean_environment, wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(180)  # for slow machines; normally each takes seconds

PUSHES = 3_000 if ALL else 600
FEW = 8  # records in memory
SECONDS = 90  # until a reader must have seen everything


@pytest.fixture
def server(start, place):
    return start(*stores.flags(place, memory_records=FEW))


# Readers while pushes arrive: each returns the `seq` values in the order in which it saw them.


def follow_pages(server, over):
    """Reads page after page in ascending order."""
    seen, after = [], 0
    while len(seen) < PUSHES:
        assert not over.is_set()
        page = server.api("GET", "/pushes", after=after, limit=97, fields="seq")
        seen += [record["seq"] for record in page["items"]]
        after = seen[-1] if seen else 0
    return seen


def follow_waits(server, over):
    """Waits for the next push again and again."""
    seen, after = [], 0
    while len(seen) < PUSHES:
        assert not over.is_set()
        response = server.api("GET", "/pushes/wait", after=after, count=1, timeout="10s")
        assert response["satisfied"] and response["complete"], (after, response["message"])
        assert response["items"], "satisfied by no push"
        seen += [item["seq"] for item in response["items"]]  # not more than a page
        after = seen[-1]
    return seen


def repeat_whole_reads(server, over):
    """Reads everything repeatedly; each time it must be all pushes up to the newest."""
    count = 0
    while count < PUSHES:
        assert not over.is_set()
        export = server.request("GET", "/api/v1/export").body
        found = [json.loads(line)["seq"] for line in export.splitlines()]
        assert found == list(range(1, len(found) + 1)), "the export has a gap"
        newest = [record["seq"] for record in server.pushes(order="desc", limit=200)]
        assert newest == list(range(len(newest) and newest[0], max(len(newest) and newest[0] - 200, 0), -1))
        assert len(newest) == 200 or newest == [] or newest[-1] == 1
        assert not newest or newest[0] >= len(found) >= count, "a push has disappeared"
        count = len(found)
    return list(range(1, count + 1))


def repeat_queries(server, over):
    """Queries of columns, headers and payloads, each of which matches every push."""
    queries, number, count = ("status:200 text:hello", "topic:com.example.*", "payload./aps/alert:hello",
                              "!header.x-unused:*", "is:first"), 0, 0
    while count < PUSHES:
        assert not over.is_set()
        number += 1
        query, after = queries[number % len(queries)], max(count - 500, 0)
        page = server.api("GET", "/pushes", q=query, after=after, limit=1000, fields="seq")
        found = [record["seq"] for record in page["items"]]
        if found:
            assert found == list(range(after + 1, found[-1] + 1))
            assert found[-1] >= count
            count = found[-1]
    return list(range(1, count + 1))


@pytest.mark.parametrize("durable", some(["soon", "answer"], 1))
def test_each_push_is_seen_once_and_in_order(start, place, durable):
    server, over = start(*stores.flags(place, "--durable", durable, memory_records=FEW)), threading.Event()
    readers = [follow_pages, follow_waits, repeat_whole_reads, repeat_queries]
    with events(server) as stream, concurrent.futures.ThreadPoolExecutor(8) as pool:
        reading = [pool.submit(reader, server, over) for reader in readers]
        try:
            loads = [pool.submit(stores.load, server, PUSHES // 3, streams=20) for _ in range(3)]
            for one in loads:
                assert set(one.result(SECONDS).values()) == {200}
            for one in reading:
                assert one.result(SECONDS) == list(range(1, PUSHES + 1)), "a reader saw a push twice or not at all"
            stream.until(lambda: len(stream.of("push")) >= PUSHES or stream.of("gap"), lambda: len(stream.events))
            assert [record["seq"] for record in stream.of("push")] == list(range(1, PUSHES + 1))
        finally:
            over.set()
    assert stores.seqs(server, after=PUSHES - 500) == list(range(PUSHES - 499, PUSHES + 1))
    wait_until(lambda: len(stores.pushes_view(place, "SELECT seq FROM pushes")) == PUSHES, "all are written")


def test_tail_prints_each_push_once(server, tmp_path):
    out = tmp_path / "tail"
    with open(out, "wb") as file:
        tail = subprocess.Popen(
            [str(server.binary), "tail", "--port-file", str(server.port_file), "--json"], stdout=file,
            stderr=subprocess.DEVNULL, env=clean_environment())
    try:
        # `tail` does not report when it has started.
        with connect(server) as wire:
            wait_until(lambda: wire.push(push_headers(server, "ab" * 32)) and out.stat().st_size, "tail prints")
        last = stores.seqs(server, order="desc")[0] + 1_000
        assert set(stores.load(server, 1_000).values()) == {200}

        def printed():
            return [json.loads(line)["seq"] for line in out.read_text().splitlines(keepends=True) if line.endswith("\n")]

        wait_until(lambda: printed()[-1:] == [last], lambda: printed()[-3:])
        assert printed() == list(range(printed()[0], last + 1))
    finally:
        tail.kill()
        tail.wait()


def test_a_push_is_found_as_soon_as_its_answer_arrives(start, place):
    """Also while many others leave memory."""
    server = start(*stores.flags(place, memory_records=1))
    with concurrent.futures.ThreadPoolExecutor(1) as pool, connect(server) as wire:
        load = pool.submit(stores.load, server, 2_000, streams=20)
        for _ in range(100):
            device = secrets.token_hex(32)
            apns_id = wire.push(push_headers(server, device)).header("apns-id")
            assert server.record(device)["apns"]["id"] == apns_id
            assert server.api("GET", f"/pushes/{apns_id}")["request"]["device_token"] == device
        assert set(load.result(SECONDS).values()) == {200}


def test_exports_whose_clients_do_not_read_leave_others_alone(server):
    """The number of readers of a store is limited; a client that stalls must not occupy one."""
    body = b'{"aps":{"alert":"%s"}}' % (b"x" * 3_000)
    assert set(stores.load(server, 1_500, streams=10, body=body).values()) == {200}
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            sock = stack.enter_context(socket.socket())
            sock.settimeout(SECONDS)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((server.admin_host, server.admin_port))
            sock.sendall(b"GET /api/v1/export HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert sock.recv(64).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert server.pushes(q="after:10 before:12 text:xxx")[0]["seq"] == 11
        assert set(stores.load(server, 200).values()) == {200}
        assert server.api("GET", "/pushes", q="after:1500", limit=1)["matched"] == 200
        assert time.monotonic() - began < 40


def test_counts_of_many_pushes(server):
    """A page tells more than 10,000 matches only on request; a question for the count alone is one."""
    accepted = 0
    while accepted < 10_100:  # on a busy machine, the database may seem to fail for a moment
        accepted += list(stores.load(server, 10_100 - accepted).values()).count(200)
    for query, matched in (({"limit": 1}, None), ({"limit": 1, "order": "desc"}, None), ({"limit": 0}, 10_100),
                           ({"limit": 1, "count": "exact"}, 10_100), ({"limit": 1, "after": 101}, 9_999),
                           ({"limit": 0, "status": 200, "count": "exact"}, 10_100), ({"limit": 5, "status": 410}, 0)):
        assert server.api("GET", "/pushes", **query)["matched"] == matched, query


# Findings


def test_findings_about_connections_whose_pushes_left_memory(server, device):
    """The analysis reads their records from the database, and knows how their connections have ended."""
    for _ in range(5):
        with connect(server) as wire:
            assert wire.push(push_headers(server, device)).status == 200
    stores.load(server, 5 * FEW)
    wait_until(lambda: "connection-churn" in server.pushes(device_token=device)[-1]["findings"],
               lambda: server.api("GET", "/findings"), 10)

"""Two servers behind a TCP load balancer, with one inbox: a client that does not know which server has its connection finds
each push on both as soon as it was answered.

`APNS_MOCK_ALL_TESTS=1` looks for every push, not for a tenth of them.
"""

import concurrent.futures
import contextlib
import http.client
import json
import secrets
import threading
import time
import uuid

import pytest

from support import stores
from support.balancer import balancer, documented_balancer, proxy_to
from support.selection import ALL
from support.server import Server, stop_cleanly, wait_until
from support.wire import Closed, connect, push_headers

pytestmark = pytest.mark.timeout(900 if ALL else 240)  # for slow machines; normally each takes seconds

CONNECTIONS = 8
BATCHES, STREAMS = 25 if ALL else 4, 50  # for each connection
CHECKED = STREAMS if ALL else 5  # pushes of each batch that are looked for on both servers
TOTAL = CONNECTIONS * BATCHES * STREAMS
SECONDS = 600 if ALL else 120


@pytest.fixture
def balanced(start, inbox):
    """Two servers, and the port of the balancer."""
    pair = [start(*stores.flags(inbox, memory_records=100)) for _ in range(2)]
    with balancer(*pair) as port:
        yield pair, port


class Reader:
    """Admin API requests of one thread, on one connection for each server."""

    def __init__(self, servers):
        self.connections = [http.client.HTTPConnection(one.admin_host, one.admin_port, timeout=60) for one in servers]

    def find(self, **query):
        """Returns for each server the items of the page that the query finds."""
        path = "/api/v1/pushes?" + "&".join(f"{name}={value}" for name, value in query.items())
        for connection in self.connections:
            connection.request("GET", path)
        pages = []
        for connection in self.connections:
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
            pages.append(json.loads(body)["items"])
        return pages

    def close(self):
        for connection in self.connections:
            connection.close()


def push_and_look(pair, port):
    """Pushes over one connection, and looks for some of the pushes directly after their answers; returns the ids of all."""
    ids = []
    with connect(pair[0], port=port) as wire, contextlib.closing(Reader(pair)) as reader:
        ids.append(wire.push(push_headers(pair[0], secrets.token_hex(32))).header("apns-id"))
        for _ in range(BATCHES):
            devices = {}
            for _ in range(STREAMS if len(ids) > 1 else STREAMS - 1):
                device = secrets.token_hex(32)
                devices[wire.open(push_headers(pair[0], device), stores.BODY)] = device
            for number, (stream, device) in enumerate(devices.items()):
                response = wire.response(stream)
                assert response.status == 200
                ids.append(response.header("apns-id"))
                if number % (STREAMS // CHECKED) == 0:
                    for items in reader.find(device_token=device, fields="apns.id"):
                        assert [record["apns"]["id"] for record in items] == [ids[-1]], f"{len(ids)} pushes were answered"
    return ids


def test_each_push_is_found_on_both_servers_directly_after_its_answer(balanced):
    pair, port = balanced
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        pushing = [pool.submit(push_and_look, pair, port) for _ in range(CONNECTIONS)]
        ids = sorted(apns_id for one in pushing for apns_id in one.result(SECONDS))
    assert len(set(ids)) == TOTAL
    exports = [[json.loads(line) for line in server.request("GET", "/api/v1/export").body.splitlines()] for server in pair]
    assert exports[0] == exports[1]
    assert sorted(record["apns"]["id"] for record in exports[0]) == ids
    seqs = [record["seq"] for record in exports[0]]
    assert seqs == sorted(set(seqs))
    for server in pair:
        page = server.api("GET", "/pushes", limit=1)
        assert (page["total"], page["evicted"], page["complete"]) == (TOTAL, 0, True)
        written = stores.metric(server, "apns_mock_store_written_records_total")
        assert 0 < written < TOTAL, "the balancer uses both"


class Writer(threading.Thread):
    """Pushes one after the other, until it is stopped: not so many that readers of all pages never come to an end."""

    def __init__(self, server, port):
        super().__init__(daemon=True)
        self.server, self.port = server, port
        self.over = threading.Event()
        self.answered = []  # [(id, when it was sent)], appended when the answer has arrived
        self.error = None

    def run(self):
        try:
            with connect(self.server, port=self.port) as wire:
                while not self.over.is_set():
                    sent = time.monotonic()
                    response = wire.push(push_headers(self.server, secrets.token_hex(32)))
                    assert response.status == 200, response
                    self.answered.append((response.header("apns-id"), sent))
                    time.sleep(0.02)
        except Exception as error:  # raised in the test's thread
            self.error = error


def found(server):
    return {record["apns"]["id"] for record in stores.everything(server, fields="apns.id")}


@pytest.mark.long
def test_resets_while_both_are_written_to(balanced):
    """After a reset has been answered, no server shows a push that was answered before it, and none is lost that was sent
    after it.
    """
    pair, port = balanced
    writers = [Writer(pair[0], port) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        for number in range(6):
            count = sum(len(one.answered) for one in writers)
            wait_until(lambda: sum(len(one.answered) for one in writers) > count + 50 or any(one.error for one in writers),
                       "pushes are answered")
            before = {apns_id for one in writers for apns_id, _ in list(one.answered)}
            pair[number % 2].api("POST", "/reset", {} if number % 3 else {"inbox": True})
            reset = time.monotonic()
            for server in (pair[(number + 1) % 2], pair[number % 2]):
                assert not before & found(server), "a push that was answered before the reset"
            time.sleep(0.1)
            after = {apns_id for one in writers for apns_id, sent in list(one.answered) if sent > reset}
            assert after
            for server in pair:
                assert after <= found(server), "a push that was sent after the reset is missing"
                assert not before & found(server)
    finally:
        for writer in writers:
            writer.over.set()
    for writer in writers:
        writer.join(30)
        assert not writer.is_alive() and writer.error is None, writer.error
    after = {apns_id for one in writers for apns_id, sent in one.answered if sent > reset}
    assert after <= found(pair[0]) and found(pair[0]) == found(pair[1])
    assert all(server.api("GET", "/pushes")["complete"] for server in pair)


@pytest.mark.long
def test_a_clock_move_while_both_are_written_to(balanced):
    """After the clock was moved, both servers judge each push by the new time."""
    pair, port = balanced
    over, judged = threading.Event(), []  # [(when it was sent, when it was answered, the status)]

    def provide():
        with connect(pair[0], port=port) as wire:
            while not over.is_set():
                sent = time.monotonic()
                status = wire.push(push_headers(pair[0], secrets.token_hex(32))).status
                judged.append((sent, time.monotonic(), status))

    with concurrent.futures.ThreadPoolExecutor() as pool:
        providers = [pool.submit(provide) for _ in range(4)]
        try:
            wait_until(lambda: len(judged) > 200 or any(one.done() for one in providers), "pushes are answered")
            begun = time.monotonic()
            pair[0].api("POST", "/clock/advance", {"by": "2h"})
            moved, count = time.monotonic(), len(judged)
            wait_until(lambda: len(judged) > count + 200 or any(one.done() for one in providers), "more pushes are answered")
        finally:
            over.set()
        for one in providers:
            one.result(30)
    assert {status for _, answered, status in judged if answered < begun} == {200}
    assert {status for sent, _, status in judged if sent > moved} == {403}, "the provider token has expired"
    for server in pair:
        assert stores.metric(server, "apns_mock_store_written_records_total") > 50, "the balancer uses both"


def test_the_documented_health_check(start, inbox):
    """A server that cannot use its store gets no connections, until it can."""
    with proxy_to(inbox.postgres.port) as proxy:
        url = inbox.postgres.url(tcp=True, schema=inbox.schema).replace(f":{inbox.postgres.port}/", f":{proxy.port}/")
        first, second = start("--store", url), start(*stores.flags(inbox))
        with documented_balancer(first, second) as port:

            def statuses(count=10):
                found = []
                for _ in range(count):
                    with connect(first, port=port) as wire:
                        found.append(wire.push(push_headers(first, secrets.token_hex(32))).status)
                return found

            assert set(statuses()) == {200}
            assert stores.metric(first, "apns_mock_connections_opened_total") > 0
            proxy.interrupt()
            wait_until(lambda: first.request("GET", "/readyz").status == 503, "the failure is detected", 10)
            wait_until(lambda: set(statuses()) == {200}, "the server is out of service", 30)
            assert set(statuses(30)) == {200}
            proxy.restore()
            wait_until(lambda: first.request("GET", "/readyz").status == 200, "the server is ready again", 15)
            opened = stores.metric(first, "apns_mock_connections_opened_total")
            wait_until(lambda: statuses() and stores.metric(first, "apns_mock_connections_opened_total") > opened,
                       "the server is in service again", 30)
        assert first.stop() == 0, "everything is written"


def test_a_client_that_reconnects_continues_on_the_other_server(balanced, device):
    """A push that is repeated on a new connection is its next attempt, wherever that connection leads."""
    pair, port = balanced
    apns_id = str(uuid.uuid4())
    for _ in range(6):
        with connect(pair[0], port=port) as wire:
            assert wire.push(push_headers(pair[0], device, apns_id=apns_id, apns_priority="7")).status == 400
        # A query finds what the other server has answered, and by then its attempts are known too.
        for server in pair:
            server.pushes()
    for server in pair:
        assert [record["attempt"] for record in server.pushes(device_token=device)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.long
def test_a_rolling_restart_loses_no_push(binary, certs, inbox):
    """Each server is stopped and replaced while clients push with `--durable soon`."""
    running = [Server(binary, certs, *stores.flags(inbox, memory_records=8)) for _ in range(2)]
    acknowledged, over = [], threading.Event()
    try:
        with balancer(*running) as port:
            def provide():
                while not over.is_set():
                    with contextlib.suppress(Closed, OSError), connect(running[0], port=port) as wire:
                        wire.settings()
                        for _ in range(200):
                            response = wire.push(push_headers(running[0], secrets.token_hex(32)))
                            if response.status == 200:
                                acknowledged.append(response.header("apns-id"))

            threads = [threading.Thread(target=provide, daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                for number in range(2):
                    count = len(acknowledged)
                    wait_until(lambda: len(acknowledged) > count + 200, "pushes are answered")
                    old = running[number]
                    assert old.stop() == 0, old.log()[-2000:]
                    running[number] = Server(
                        binary, certs, *stores.flags(inbox, memory_records=8), apns=(f"127.0.0.1:{old.port}",))
                count = len(acknowledged)
                wait_until(lambda: len(acknowledged) > count + 200, "pushes are answered")
            finally:
                over.set()
                for thread in threads:
                    thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        for server in running:
            ids = [record["apns"]["id"] for record in stores.everything(server, fields="apns.id")]
            assert len(ids) == len(set(ids)) and set(acknowledged) <= set(ids)
        for server in running:
            stop_cleanly(server)
    finally:
        for server in running:
            server.kill()

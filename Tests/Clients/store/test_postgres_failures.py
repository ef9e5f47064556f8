"""PostgreSQL that fails while a server runs: no acknowledged push is missing afterwards, and none is there twice.

`APNS_MOCK_ALL_TESTS=1` repeats the kills more often. What is the same for every store is in test_store_failure.py.
"""

import contextlib
import json
import secrets
import shutil
import subprocess
import threading
import time

import pytest

from support import stores
from support.balancer import proxy_to, slow_proxy_to
from support.failing_stores import (
    DETECTION, FrozenPostgres, FullPostgres, KilledPostgres, StoppedPostgres, fail, ids, push_once, readiness, recover,
)
from support.postgres import ADMINISTRATOR, OWNER
from support.selection import ALL, some
from support.server import Server, wait_until
from support.wire import connect, push_headers

ROUNDS = 50 if ALL else 1

GIVING_UP = 8  # seconds after which a server has given up a connection; it does after six

pytestmark = pytest.mark.timeout(1_800 if ALL else 180)  # for slow machines; normally each takes seconds


def outage(kind):
    @pytest.fixture
    def made(tmp_path):
        one = kind(tmp_path)
        try:
            yield one
        finally:
            one.end()
            one.close()

    return made


stopped, killed, frozen = outage(StoppedPostgres), outage(KilledPostgres), outage(FrozenPostgres)
full = outage(FullPostgres)


@pytest.fixture(params=some(["stopped", "frozen"], 1))
def any_outage(request):
    return request.getfixturevalue(request.param)


# Detection and recovery


def test_a_failure_is_detected_without_a_push(start, stopped):
    """A load balancer that asks for readiness sends no more connections."""
    server = start(*stores.flags(stopped.place))
    push_once(server)
    stopped.begin()
    wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
    assert server.request("GET", "/livez").status == 200
    recover(server, stopped)


def test_commands_name_the_failure(start, stopped):
    """Not that the server has stopped."""
    server = start(*stores.flags(stopped.place))
    push_once(server)
    stopped.begin()
    wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
    for command in (["wait", "status:200", "--timeout", "1s"], ["verify", "-"], ["ls"]):
        done = server.command(*command, input="{nothing_lost: true}")
        assert done.returncode == 1 and "the store of the inbox fails" in done.stderr, (command, done)
    recover(server, stopped)


@pytest.mark.parametrize("outage", ["stopped", "killed", "frozen"])
def test_a_failure_is_detected_again_after_a_recovery(request, start, outage):
    outage = request.getfixturevalue(outage)
    server, acknowledged = start(*stores.flags(outage.place, "--durable", "answer")), []
    for _ in range(2):
        acknowledged.append(push_once(server)[1])
        outage.begin()
        wait_until(lambda: push_later(server) == 503, "a push is refused", 30)
        recover(server, outage)
    assert set(acknowledged) <= set(ids(server))
    assert len(server.logged("the store", "works again", count=2)) == 2


def push_later(server):
    """Sends a push whose answer may wait for the end of the failure; returns its status, if it comes soon."""
    with connect(server) as wire:
        wire.settings()
        stream = wire.open(push_headers(server, secrets.token_hex(32)), b"{}")
        deadline = time.monotonic() + 0.3
        while not wire.responses[stream].finished and time.monotonic() < deadline:
            wire.drain()
            time.sleep(0.01)
        return wire.responses[stream].status


def test_a_failure_is_logged_once_however_often_the_server_tries_again(start, stopped):
    server = start(*stores.flags(stopped.place))
    push_once(server)
    fail(server, stopped)
    time.sleep(1)  # four attempts
    recover(server, stopped)
    server.logged("works again")
    lines = [line for line in server.log().splitlines() if " the store " in line]
    assert len(lines) == 2, lines


def test_queries_during_a_failure_are_answered_in_full_or_not_at_all(start, any_outage):
    server = start(*stores.flags(any_outage.place, memory_records=2))
    before = [push_once(server)[1] for _ in range(5)]
    acknowledged, _ = fail(server, any_outage)
    for path in ("/pushes", "/pushes/1", "/pushes/wait?count=1&timeout=0s", "/export"):
        response = server.request("GET", "/api/v1" + path)
        if response.status == 503:
            assert response.json["detail"]
            continue
        assert response.status == 200, (path, response.body)
        found = [json.loads(line) for line in response.body.splitlines()] if path == "/export" else response.json
        match path.partition("?")[0]:
            case "/pushes":
                assert [record["apns"]["id"] for record in found["items"]] == before + acknowledged
            case "/export":
                assert [record["apns"]["id"] for record in found] == before + acknowledged
            case "/pushes/1":
                assert found["apns"]["id"] == before[0]
            case _:
                assert found["satisfied"] and found["complete"], found
    recover(server, any_outage)
    assert ids(server) == before + acknowledged


def test_ended_sessions_are_no_loss(start, postgres):
    """An administrator or a proxy may end sessions at any time."""
    inbox = postgres.new_inbox()
    server, acknowledged = start(*stores.flags(inbox, memory_records=2)), []
    for _ in range(3):
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ? AND pid <> pg_backend_pid()", OWNER,
            user=ADMINISTRATOR)
        for _ in range(10):
            status, apns_id, _ = push_once(server)
            assert status == 200, server.log()
            acknowledged.append(apns_id)
        assert ids(server) == acknowledged
        # A new connection was enough.
        assert " fails" not in server.log()


def test_a_commit_without_an_answer_is_not_repeated(start, inbox):
    """The database has committed, and the connection is given up before that is known."""
    with proxy_to(inbox.postgres.port) as proxy:
        url = inbox.postgres.url(tcp=True, schema=inbox.schema).replace(f":{inbox.postgres.port}/", f":{proxy.port}/")
        server = start("--store", url, "--durable", "answer")
        before = push_once(server)[1]
        ids(server)
        with connect(server) as wire:
            with stores.pausing(inbox, "in the commit") as until_paused:
                stream = wire.open(push_headers(server, "ab" * 32), stores.BODY)
                until_paused()
                proxy.interrupt()
                wait_until(lambda: len(stores.pushes_view(inbox)) == 2, "the database has committed", 10)
            time.sleep(GIVING_UP)
            assert readiness(server)[0] == 503
            proxy.restore()
            assert wire.response(stream).status == 200
        wait_until(lambda: readiness(server)[0] == 200, "the server is ready again", 15)
        after = push_once(server)[1]
        found = ids(server)
        assert (found[0], found[2:]) == (before, [after])
        assert [row["apns_id"] for row in stores.pushes_view(inbox)] == found


@pytest.mark.long
def test_many_connections_at_once_are_no_failure(start, inbox):
    """Each of them is a row too, and each command takes ten milliseconds."""
    with slow_proxy_to(inbox.postgres.port, 0.005) as port, contextlib.ExitStack() as connections:
        url = inbox.postgres.url(tcp=True, schema=inbox.schema).replace(f":{inbox.postgres.port}/", f":{port}/")
        server = start("--store", url)
        wires = [connections.enter_context(connect(server)) for _ in range(300)]
        for wire in wires:
            wire.open(push_headers(server, secrets.token_hex(32)), stores.BODY)
        assert {wire.response(1).status for wire in wires} == {200}
        assert len(ids(server)) == 300
        assert " fails" not in server.log()


@pytest.mark.long
def test_another_isolation_level(start, inbox):
    """A role or a database may have a default that lets transactions fail that wait for each other."""
    server = start("--store", inbox.url(options="-c default_transaction_isolation=serializable"), "--durable", "answer")
    stores.load(server, 2_000)
    assert server.api("GET", "/pushes", limit=1)["total"] == 2_000
    assert " fails" not in server.log()


@pytest.mark.long
@pytest.mark.serial
def test_memory_stays_flat_while_the_database_is_slower_than_the_load(start, inbox, tmp_path):
    """Answers wait when 10,000 pushes wait to be written."""
    if shutil.which("h2load") is None:
        pytest.skip("no h2load on this machine, which makes the load: apt-get install nghttp2-client")
    server = start(*stores.flags(inbox, memory_records=100))
    if server.resident_bytes() is None:
        pytest.skip("this system does not show the memory of a process")
    body = tmp_path / "body"
    body.write_bytes(stores.BODY + b" " * 3_000)
    push_once(server)
    before, sizes, waiting = server.resident_bytes(), [], []
    with stores.pausing(inbox, "before the commit", 0.3):
        load = subprocess.Popen(
            ["h2load", "-n", "60000", "-c", "8", "-m", "100", "-d", str(body), "-H", f"authorization: {server.bearer}",
             "-H", "apns-topic: com.example.app", "-H", "apns-push-type: alert", f"{server.url}/3/device/{'ab12' * 16}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while load.poll() is None:
            sizes.append(server.resident_bytes() - before)
            waiting.append(stores.metric(server, "apns_mock_store_waiting_records"))
            time.sleep(0.05)
    report = load.stdout.read()
    assert "60000 done, 60000 succeeded" in report and "60000 2xx" in report, report
    assert 9_000 < max(waiting) < 12_000
    # All pushes together would take 220 MiB.
    assert max(sizes) < 100 * 2**20, f"{max(sizes) / 2**20:.0f} MiB"


@contextlib.contextmanager
def locked_table(inbox):
    """Holds a lock of another client with which servers cannot write."""
    session = inbox.postgres.open_session()
    session.execute(f"BEGIN; LOCK TABLE {inbox.schema}.push IN EXCLUSIVE MODE")
    try:
        yield
    finally:
        session.execute("COMMIT")


def test_a_table_that_another_client_locks(start, inbox):
    server = start(*stores.flags(inbox))
    before, acknowledged = push_once(server)[1], []
    wait_until(lambda: stores.pushes_view(inbox), "the push is written")
    with locked_table(inbox):
        deadline = time.monotonic() + DETECTION
        while (answer := push_once(server))[0] == 200:
            acknowledged.append(answer[1])
            assert time.monotonic() < deadline
        assert answer[0] == 503 and readiness(server)[0] == 503
    wait_until(lambda: readiness(server)[0] == 200, "the server is ready again", 15)
    assert ids(server) == [before, *acknowledged]


def test_a_delayed_push_that_ends_during_the_failure_has_its_outcome_afterwards(start, stopped, device):
    server = start(*stores.flags(stopped.place, memory_records=1))
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "2s"}}})
    with connect(server) as wire:
        wire.settings()
        stream, opened = wire.open(push_headers(server, device), b"{}"), time.monotonic()
        wait_until(lambda: stores.pushes_view(stopped.place), "the push is written")
        push_once(server)
        wait_until(lambda: len(stores.pushes_view(stopped.place)) == 2, "the second push is written")
        fail(server, stopped)
        time.sleep(max(0, opened + 2.1 - time.monotonic()))
        # The response waits until the server is known to be the active one.
        recover(server, stopped)
        assert wire.response(stream).status == 200
    wait_until(lambda: stores.pushes_view(stopped.place)[0]["outcome"] == "accepted",
               lambda: stores.pushes_view(stopped.place)[0], 10)
    assert (server.record(device)["outcome"], server.record(device)["served"]["status"]) == ("accepted", 200)


@pytest.mark.parametrize("outage", ["stopped", "frozen"])
def test_a_durable_answer_waits_for_the_end_of_the_failure(request, start, outage):
    outage = request.getfixturevalue(outage)
    server = start(*stores.flags(outage.place, "--durable", "answer"))
    push_once(server)
    outage.begin()
    with connect(server) as wire:
        stream = wire.open(push_headers(server, "ab" * 32), b"{}")
        wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
        wire.drain()
        # The failure may have been detected before the push arrived.
        refused = wire.responses[stream].finished
        assert not refused or wire.responses[stream].status == 503
        assert push_once(server)[0] == 503
        recover(server, outage)
        assert wire.response(stream).status == (503 if refused else 200)
    wait_until(lambda: len(ids(server)) == 2 - refused == len(stores.pushes_view(outage.place)), lambda: ids(server), 10)


@pytest.mark.long
def test_the_end_of_a_server_whose_store_fails_is_prompt_and_names_the_loss(binary, certs, any_outage):
    server = Server(binary, certs, *stores.flags(any_outage.place))
    try:
        acknowledged, _ = fail(server, any_outage)
        began = time.monotonic()
        server.signal()
        code = server.wait(40)
        assert time.monotonic() - began < 20
        lost = [line for line in server.log().splitlines() if "lost" in line]
        # The failure may have been detected before the first push.
        assert any(f" {len(acknowledged)} pushes" in line for line in lost) == bool(acknowledged), lost
        assert code == (1 if acknowledged else 0), "as with --export-on-exit"
    finally:
        server.kill()


# Dropping


# Under load


class Load:
    """Pushes to a server, on new connections again and again."""

    def __init__(self, server, count=2):
        self.over, self.results = threading.Event(), []
        self.threads = [threading.Thread(target=self.provide, args=(server,), daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def provide(self, server):
        while not self.over.is_set():
            self.results.append(stores.load(server, 60, streams=20))
            time.sleep(0.02)

    def stop(self):
        """Returns all ids with the statuses that were received."""
        self.over.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()
        return {apns_id: status for result in self.results for apns_id, status in result.items()}


def assert_all_there_once(server, statuses):
    """What was acknowledged is there once, and nothing that was refused."""
    assert set(statuses.values()) <= {200, 503}
    acknowledged = sorted(apns_id for apns_id, status in statuses.items() if status == 200)
    assert sorted(ids(server)) == acknowledged
    assert stores.status(server)["store"]["refused"] == list(statuses.values()).count(503)


@pytest.mark.parametrize(("durable", "outage"), [
    ("answer", "killed"), ("soon", "stopped"),
    *(pytest.param(*case, marks=pytest.mark.long) for case in [("answer", "stopped"), ("answer", "frozen"), ("soon", "frozen")]),
])
def test_a_failure_under_load_loses_no_acknowledged_push(request, start, durable, outage):
    """After a kill of the database, as after a power failure, only `answer` promises that."""
    outage = request.getfixturevalue(outage)
    server = start(*stores.flags(outage.place, "--durable", durable, memory_records=8))
    load = Load(server, 4)
    try:
        for _ in range(ROUNDS):
            time.sleep(0.3)
            outage.begin()
            wait_until(lambda: readiness(server)[0] == 503, "the failure is detected", DETECTION)
            time.sleep(0.2)
            outage.end()
            wait_until(lambda: readiness(server)[0] == 200, "the server is ready again", 15)
        time.sleep(0.3)
    finally:
        statuses = load.stop()
    assert list(statuses.values()).count(200) > 100
    assert_all_there_once(server, statuses)


@pytest.mark.long
def test_under_load_each_dropped_push_is_counted(start, any_outage):
    server = start(*stores.flags(any_outage.place, "--store-failure", "drop", memory_records=8))
    load = Load(server, 4)
    try:
        time.sleep(0.5)
        any_outage.begin()
        wait_until(lambda: stores.status(server)["store"]["lost"], "pushes are lost", 15)
        any_outage.end()
        wait_until(lambda: readiness(server)[0] == 200, "the server is ready again", 15)
        time.sleep(0.5)
    finally:
        statuses = load.stop()
    kept = ids(server)
    lost = stores.status(server)["store"]["lost"]
    assert set(statuses.values()) == {200} and set(kept) <= set(statuses)
    assert len(set(kept)) == len(kept) >= len(statuses) - lost
    # Pushes count as lost if the database does not confirm that it has them, which it may have.
    assert len(kept) + lost == len(statuses) or isinstance(any_outage, FrozenPostgres)


@pytest.mark.long
def test_a_device_acknowledges_a_push_during_a_failure(start, stopped, tmp_path):
    """The push has left memory by then, so the server cannot read it before the failure ends."""
    config, device = tmp_path / "config.yaml", secrets.token_hex(32)
    config.write_text(json.dumps({"apns": {"online_queue": 1, "acknowledge_after": "4s"}}))
    server = start("--config", config, *stores.flags(stopped.place, memory_records=8))
    server.api("PUT", "/fixtures", {
        "devices": [{"id": "phone", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": device}}]}]})
    with connect(server) as wire:
        assert wire.push(push_headers(server, device), stores.BODY).status == 200
    stores.load(server, 40)
    before = server.record(device)["delivery"]
    stopped.begin()
    time.sleep(5)  # the time of the acknowledgement
    recover(server, stopped)
    wait_until(lambda: server.record(device)["delivery"] != before, lambda: server.record(device), 10)
    assert server.record(device)["delivery"] == "Delivered to Device"


@pytest.mark.long
def test_a_kill_of_a_database_whose_disk_is_full(start, full):
    server = start(*stores.flags(full.place, "--durable", "answer", memory_records=8))
    load = Load(server)
    try:
        time.sleep(0.5)
        full.begin()
        wait_until(lambda: readiness(server)[0] == 503, "the full disk is noticed", 30)
        full.postgres.kill()
        full.end()
        full.postgres.start()
        wait_until(lambda: readiness(server)[0] == 200, "the server is ready again", 15)
        time.sleep(0.5)
    finally:
        statuses = load.stop()
    assert list(statuses.values()).count(200) > 100
    assert_all_there_once(server, statuses)

"""Servers with one inbox in PostgreSQL: one is active, the others are standbys, of which one takes over when it ends, stops or
is cut off. No push that was acknowledged with `--durable answer` is missing afterwards, and none is there twice.

`APNS_MOCK_ALL_TESTS=1` repeats the takeovers more often.
"""

import contextlib
import secrets
import signal
import socket
import subprocess
import time

import pytest

from support import stores
from support.balancer import proxy_to
from support.durability import Provider, assert_each_is_there_once
from support.failing_stores import ids, push_once
from support.postgres import ADMINISTRATOR
from support.selection import ALL
from support.server import Server, run, wait_until
from support.wire import Closed, connect, push_headers

pytestmark = pytest.mark.timeout(600 if ALL else 180)  # for slow machines; normally each takes seconds

ROUNDS = 10 if ALL else 1
#: Seconds until another server is ready after the end of a process, and after a stop or a cut.
AFTER_END, AFTER_STOP = 2, 4
SLOW = 3  # seconds more on a machine that other tests load

#: Findings that a client would be blamed for that repeats what the end of a server may have destroyed.
WRONG = {"blind-resend", "hot-retry", "connection-churn"}

ADVERTISED = "http://active.example:8197"


@pytest.fixture
def servers(binary, certs, inbox):
    """`servers(role, *flags)` starts a server with the inbox, which may end in any way."""
    running = []

    def starter(role, *flags, url=None):
        store = ["--store", url] if url else stores.flags(inbox)
        running.append(Server(binary, certs, *store, *flags, role=role))
        return running[-1]

    yield starter
    for server in running:
        server.signal(signal.SIGCONT)
        server.kill()


def role(server):
    """Returns the status of a server; None while it opens its admin listener again in a takeover."""
    with contextlib.suppress(OSError):
        return server.request("GET", "/readyz").json["status"]


# Standby


def test_a_standby_answers_health_checks_and_names_the_active_server(servers):
    active = servers("active", "--advertise", ADVERTISED + "/")
    standby = servers("standby")
    assert (role(active), role(standby)) == ("ready", "standby")
    assert standby.request("GET", "/livez").status == 200 and standby.request("GET", "/readyz").status == 503
    assert stores.metric(standby, "apns_mock_ready") == 0 and stores.metric(active, "apns_mock_ready") == 1
    for method, path in (("GET", "/api/v1/pushes?limit=1"), ("POST", "/api/v1/reset"), ("GET", "/"), ("GET", "/nothing")):
        answer = standby.request(method, path, {} if method == "POST" else None)
        assert answer.status == 503 and ADVERTISED in answer.json["hint"], (path, answer.body)
        assert answer.headers["location"] == ADVERTISED + path
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(standby.listeners[0], timeout=5)
    assert (active.facts["role"], standby.facts["role"], standby.facts["seed"]) == ("active", "standby", None)
    assert standby.command("healthcheck").returncode == 4 and standby.command("healthcheck", "--live").returncode == 0
    shown = standby.command("ls")
    assert shown.returncode != 0 and ADVERTISED in shown.stderr, shown
    assert standby.stop() == 0


def test_without_a_url_a_standby_asks_for_one(servers):
    """The address of the listener is a loopback address."""
    servers("active")
    answer = servers("standby").request("GET", "/api/v1/pushes")
    assert answer.status == 503 and "--advertise" in answer.json["hint"] and answer.headers["location"] is None


def test_a_standby_ends_with_its_standard_input(binary, certs, servers, inbox, tmp_path):
    servers("active")
    port_file = tmp_path / "ports.json"
    started = subprocess.Popen(
        [binary, "serve", "--exit-on-stdin-close", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs,
         "--port-file", port_file, *stores.flags(inbox)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(port_file.exists, "the standby is ready")
    _, log = started.communicate(timeout=30)  # closes the standard input
    assert started.returncode == 0 and "standby" in log and not port_file.exists(), log


def test_an_address_of_a_standby_is_reserved(binary, certs, servers, inbox):
    active = servers("active")
    done = run(binary, "serve", "--apns", f"127.0.0.1:{active.port}", "--admin", "127.0.0.1:0", "--certs", certs,
               *stores.flags(inbox))
    assert done.returncode == 6 and "already in use" in done.stderr, done


def test_exec_does_not_stand_by(binary, certs, servers, inbox):
    servers("active")
    done = run(binary, "exec", "--certs", certs, *stores.flags(inbox), "--", "true")
    assert done.returncode == 2 and "another server is active" in done.stderr and "schema=NAME" in done.stderr, done


# Takeover


@contextlib.contextmanager
def load(server, providers=10):
    """Pushes while the context is open; yields the providers. Their connections end with the server."""
    threads = [Provider(server) for _ in range(providers)]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(len(one.acknowledged) for one in threads) > 100 or any(one.error for one in threads),
               "pushes are answered", 60)
    yield threads
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive() and thread.error is None and not thread.other, (thread.error, thread.other)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL", "SIGSTOP"])
def test_a_takeover_under_load(servers, inbox, how):
    active, acknowledged = servers("active", "--durable", "answer"), set()
    limit = AFTER_STOP if how == "SIGSTOP" else AFTER_END
    active.api("POST", "/rules", {
        "name": "odd", "when": {"topic": "com.acme.odd"}, "trigger": {"every": 2}, "do": {"respond": {"status": 429}}})
    for number in range(1, ROUNDS + 1):
        assert push_once(active, apns_topic="com.acme.odd")[0] == (200 if number % 2 else 429)
        standby = servers("standby", "--durable", "answer")
        with load(active) as providers:
            active.signal(signal.Signals[how])
            began = time.monotonic()
            if how == "SIGTERM":
                assert active.wait() == 0
                began = time.monotonic()
            standby.await_role("active", limit + SLOW)
            took = time.monotonic() - began
            assert role(standby) == "ready"
            before = ids(standby)
            if how == "SIGSTOP":
                active.signal(signal.SIGCONT)
                assert active.wait() == 1
                assert "another server has taken over" in active.log()
        assert took < limit + SLOW
        acknowledged |= set().union(*(one.acknowledged for one in providers))
        acknowledged.add(push_once(standby)[1])
        assert ids(standby)[:-1] == before, "nothing was written by the former server"
        assert_each_is_there_once(standby, inbox, acknowledged)
        seqs = [record["seq"] for record in stores.everything(standby)]
        assert seqs == sorted(set(seqs))
        (rule,) = standby.api("GET", "/rules")["items"]
        assert rule["fired"] == number // 2
        # No client was to blame for anything.
        assert WRONG.isdisjoint(one["finding"] for one in standby.api("GET", "/findings")["items"])
        active = standby


def test_a_woken_server_answers_nothing(servers, inbox):
    """Not even to a push that arrived while it was stopped, or to a query."""
    active, standby = servers("active"), servers("standby")
    with connect(active) as wire, socket.create_connection((active.admin_host, active.admin_port)) as admin:
        assert wire.push(push_headers(active, "ab" * 32)).status == 200
        wait_until(lambda: len(stores.pushes_view(inbox)) == 1, "the push is written")
        active.signal(signal.SIGSTOP)
        stream = wire.open(push_headers(active, "cd" * 32), stores.BODY)
        admin.sendall(b"GET /api/v1/pushes HTTP/1.1\r\nHost: localhost\r\n\r\n")
        standby.await_role("active", AFTER_STOP + SLOW)
        active.signal(signal.SIGCONT)
        with pytest.raises((Closed, OSError)):
            wire.response(stream)
        assert not wire.responses[stream].status
        admin.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert b" 200 " not in admin.recv(4096)
    assert active.wait() == 1
    assert not active.port_file.exists()
    assert len(ids(standby)) == 1 == len(stores.pushes_view(inbox))


def test_one_of_two_standbys_takes_over(servers):
    flags = ["--durable", "answer"]
    active, standbys = servers("active", *flags), [servers("standby", *flags) for _ in range(2)]
    for _ in range(2):
        active.kill()
        wait_until(lambda: any(role(one) == "ready" for one in standbys), "one takes over", AFTER_END + SLOW)
        active = next(one for one in standbys if role(one) == "ready")
        active.await_role("active")
        standbys.remove(active)
        assert all(role(one) == "standby" for one in standbys)
        assert push_once(active)[0] == 200
    assert len(ids(active)) == 2


def test_addresses_are_the_same_after_a_takeover(servers):
    active, standby = servers("active"), servers("standby", "--apns-plain", "127.0.0.1:0", "--manage", "127.0.0.1:0")
    assert active.stop() == 0
    standby.await_role("active", AFTER_END + SLOW)
    facts = standby.read_facts()
    for name in ("apns", "apns_plain", "manage", "admin"):
        assert facts[name] == standby.facts[name], name
    assert push_once(standby)[0] == 200


def test_an_end_of_the_session_with_the_lock(servers, inbox):
    """Either server may be the active one afterwards, but only one, and with all that was acknowledged."""
    pair = [servers("active", "--durable", "answer"), servers("standby", "--durable", "answer")]
    acknowledged = [push_once(pair[0])[1] for _ in range(3)]
    inbox.postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted", user=ADMINISTRATOR)
    time.sleep(1)

    def active():
        running = [one for one in pair if one.process.poll() is None]
        ready = [one for one in running if role(one) == "ready"]
        assert len(ready) <= 1
        return ready[0] if ready else None

    server = wait_until(active, "one is active", AFTER_END + SLOW)
    server.await_role("active")
    acknowledged.append(push_once(server)[1])
    assert ids(server) == acknowledged


def test_a_server_without_the_network_is_replaced(servers, inbox):
    """Nothing arrives from the database or at it, and no connection ends."""
    with proxy_to(inbox.postgres.port) as proxy:
        url = inbox.postgres.url(tcp=True, schema=inbox.schema).replace(f":{inbox.postgres.port}/", f":{proxy.port}/")
        cut_off, standby = servers("active", "--durable", "answer", url=url), servers("standby", "--durable", "answer")
        acknowledged = [push_once(cut_off)[1]]
        proxy.interrupt()
        with connect(cut_off) as wire:
            stream = wire.open(push_headers(cut_off, secrets.token_hex(32)), stores.BODY)
            standby.await_role("active", AFTER_STOP + SLOW)
            acknowledged.append(push_once(standby)[1])
            proxy.restore()
            assert cut_off.wait() == 1
            with contextlib.suppress(Closed, OSError):
                assert wire.response(stream).status == 503, "it is not acknowledged"
        assert ids(standby) == acknowledged


@pytest.mark.parametrize("when", stores.PAUSES)
def test_a_kill_between_copy_and_commit(servers, inbox, when):
    """What was not acknowledged is there once or not at all."""
    killed, standby = servers("active", "--durable", "answer"), servers("standby")
    before = push_once(killed)[1]
    with stores.pausing(inbox, when) as until_paused, connect(killed) as wire:
        wire.open(push_headers(killed, "ab" * 32), stores.BODY)
        until_paused()
        killed.kill()
    standby.await_role("active")
    after = push_once(standby)[1]
    found = ids(standby)
    assert found[0] == before and found[-1] == after and len(found) == (3 if when == "in the commit" else 2)


def test_an_inbox_of_another_schema_is_separate(servers, start, postgres, device):
    """Its server is active too."""
    one, other = servers("active"), start(*stores.flags(postgres.new_inbox()))
    with connect(one) as wire:
        assert wire.push(push_headers(one, device)).status == 200
    assert len(one.pushes()) == 1 and other.pushes() == []
    other.api("POST", "/reset", {})
    assert len(one.pushes()) == 1

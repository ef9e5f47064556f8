"""Limits of a store: `--max-records`, `--max-bytes` and `--retain` remove the oldest pushes, from the file or the database
too, and every response counts them.
"""

import contextlib
import secrets
import sqlite3
import time

import pytest

from support import stores
from support.postgres import PostgresInbox
from support.server import wait_until
from support.wire import connect, push_headers

INCONCLUSIVE = 5
BODY = b'{"aps":{"alert":"%s"}}' % (b"x" * 3_000)


def push(server, count=1):
    """Sends pushes, which are recorded even if the clock makes the provider token expire."""
    with connect(server) as wire:
        for _ in range(count):
            assert wire.push(push_headers(server, secrets.token_hex(32))).status in (200, 403)


def advance(server, by):
    server.api("POST", "/clock/advance", {"by": by})


def until_removed(server, place, expected, seconds=30):
    """Waits until the inbox and the store have these `seq` values only, and the inbox has counted what was removed."""
    wait_until(lambda: stores.seqs(server) == expected, lambda: f"{expected}, but {stores.seqs(server)}", seconds)
    wait_until(lambda: server.api("GET", "/pushes", limit=0)["total"] == len(expected), "the removed ones are counted")
    stored = [row["seq"] for row in stores.pushes_view(place, "SELECT seq FROM pushes ORDER BY seq")]
    assert stored == expected


# The number of pushes


@pytest.mark.parametrize("memory_records", [1, 20, 200, None])
def test_the_newest_pushes_stay(start, place, memory_records):
    server = start(*stores.flags(place, "--max-records", "50", memory_records=memory_records))
    stores.load(server, 130, streams=10)
    page = server.api("GET", "/pushes", limit=1000)
    assert [record["seq"] for record in page["items"]] == list(range(81, 131))
    assert (page["total"], page["matched"], page["evicted"], page["complete"]) == (50, 50, 80, False)
    until_removed(server, place, list(range(81, 131)))
    assert server.request("GET", "/api/v1/pushes/80").status == 404
    assert server.api("GET", "/pushes/81")["seq"] == 81
    status = stores.status(server)
    assert status["limits"]["max_records"] == 50 and status["inbox"]["last_seq"] == 130


def test_there_is_no_limit_without_a_flag(start, place):
    server = start(*stores.flags(place, memory_records=1))
    assert stores.status(server)["limits"] == {"max_records": None, "max_bytes": None, "record": "all"}


def test_the_count_of_evicted_pushes_persists(start, place):
    server = start(*stores.flags(place, "--max-records", "10", memory_records=1))
    stores.load(server, 25, streams=5)
    until_removed(server, place, list(range(16, 26)))
    assert server.stop() == 0
    server = start(*stores.flags(place, memory_records=1))
    page = server.api("GET", "/pushes")
    assert (page["evicted"], page["complete"], page["total"]) == (15, False, 10)
    assert server.api("GET", "/pushes", after=15)["complete"], "none is missing after the cursor"
    assert not server.api("GET", "/pushes", after=14)["complete"]
    stores.load(server, 5, streams=5)
    assert server.api("GET", "/pushes")["total"] == 15
    waited = server.command("wait", "topic:com.example.unused", "--count", "0", "--timeout", "0s", "--settle", "0s")
    assert waited.returncode == INCONCLUSIVE, waited


def test_connections_and_tokens_of_removed_pushes_are_removed(start, place):
    """Otherwise an inbox that lasts grows. The newest ones stay, because a server may still refer to them."""
    flags = stores.flags(place, "--max-records", "10", memory_records=1)
    server = start(*flags)
    for _ in range(5):
        push(server)
    assert server.stop() == 0
    # As if many connections and tokens had followed.
    if isinstance(place, PostgresInbox):
        place.execute("SELECT setval('connection_id_seq', 2000000), setval('provider_token_id_seq', 2000000)")
    else:
        with contextlib.closing(sqlite3.connect(place)) as db, db:
            for table in ("connection", "provider_token"):
                db.execute(f"INSERT INTO {table} (id) VALUES (2000000)")
    server = start(*flags)
    push(server, 20)
    until_removed(server, place, list(range(16, 26)))
    connections = [record["connection"] for record in server.pushes()]
    assert server.stop() == 0
    server = start(*flags)
    for table in ("connection", "provider_token"):
        rows = f"SELECT id FROM {table} WHERE id < 2000000"
        wait_until(lambda: stores.pushes_view(place, rows) == [], lambda: stores.pushes_view(place, rows), 10)
    assert [record["connection"] for record in server.pushes()] == connections and connections[0]["client"]


def test_a_reset_sets_the_count_of_evicted_pushes_to_zero(start, place):
    server = start(*stores.flags(place, "--max-records", "10", memory_records=1))
    stores.load(server, 25, streams=5)
    until_removed(server, place, list(range(16, 26)))
    server.api("POST", "/reset", {"inbox": True})
    push(server, 3)
    assert server.stop() == 0
    page = start(*stores.flags(place)).api("GET", "/pushes")
    assert [record["seq"] for record in page["items"]] == [26, 27, 28]
    assert (page["evicted"], page["complete"]) == (0, True)


def test_deleted_pushes_make_room(start, place):
    server = start(*stores.flags(place, "--max-records", "20", memory_records=1))
    stores.load(server, 20, streams=5)
    assert server.api("DELETE", "/pushes", q="after:5 before:16") == {"deleted": 10}
    stores.load(server, 12, streams=5)
    until_removed(server, place, [3, 4, 5, *range(16, 33)])
    page = server.api("GET", "/pushes")
    assert (page["evicted"], page["total"]) == (2, 20)


def test_a_smaller_limit_after_a_restart_removes_many_pushes(start, place):
    """More than one transaction removes at a time."""
    server = start(*stores.flags(place))
    assert set(stores.load(server, 5_000, streams=100).values()) == {200}
    assert server.stop() == 0
    server = start(*stores.flags(place, "--max-records", "100", memory_records=10))
    push(server)
    until_removed(server, place, list(range(4_902, 5_002)))
    page = server.api("GET", "/pushes")
    assert (page["total"], page["evicted"], page["complete"]) == (100, 4_901, False)
    token = server.pushes(after=5_000)[0]["request"]["device_token"]
    assert [record["seq"] for record in server.pushes(device_token=token)] == [5_001]


def test_the_file_does_not_grow_beyond_the_limit(start, tmp_path):
    place = tmp_path / "inbox.db"
    server = start(*stores.flags(place, "--max-records", "100", memory_records=8))
    for _ in range(5):
        assert set(stores.load(server, 400, body=BODY, streams=10).values()) == {200}
    until_removed(server, place, list(range(1_901, 2_001)))
    assert server.stop() == 0
    # 100 pushes of 3 KB, and those of the last batches, which were removed after they were written.
    assert place.stat().st_size < 4 << 20, "removed pushes leave room for the next ones"


# The size


@pytest.mark.parametrize("memory_records", [1, None])
def test_the_size_of_all_pushes_is_limited(start, place, memory_records):
    server = start(*stores.flags(place, "--max-bytes", "64KiB", memory_records=memory_records))
    stores.load(server, 100, body=BODY, streams=10)
    page = server.api("GET", "/pushes", limit=1000)
    kept = [record["seq"] for record in page["items"]]
    assert 10 <= len(kept) <= 21 and kept == list(range(101 - len(kept), 101))
    assert (page["total"], page["evicted"], page["complete"]) == (len(kept), 100 - len(kept), False)
    until_removed(server, place, kept)
    assert server.stop() == 0
    again = start(*stores.flags(place, "--max-bytes", "64KiB", memory_records=1))
    push(again)
    assert stores.seqs(again)[-2:] == [100, 101] and len(stores.seqs(again)) in (len(kept), len(kept) + 1)


def test_a_push_larger_than_the_limit_stays_alone(start, place):
    server = start(*stores.flags(place, "--max-bytes", "1KiB", memory_records=1))
    with connect(server) as wire:
        for _ in range(3):
            assert wire.push(push_headers(server, "ab" * 32), BODY).status == 200
    until_removed(server, place, [3])


def test_both_limits_apply(start, place):
    server = start(*stores.flags(place, "--max-bytes", "64KiB", "--max-records", "5", memory_records=1))
    stores.load(server, 20, streams=5)
    until_removed(server, place, list(range(16, 21)))


# The age


def test_pushes_beyond_the_age_are_removed(start, place):
    """A push of exactly the age stays. The server checks the age every ten seconds, also if no push arrives."""
    server = start(*stores.flags(place, "--retain", "1h", memory_records=1))
    server.api("PUT", "/clock", {"mode": "frozen"})
    push(server, 5)
    advance(server, "1ms")
    push(server, 3)
    advance(server, "40m")
    push(server, 5)
    advance(server, "20m")
    until_removed(server, place, list(range(6, 14)))
    page = server.api("GET", "/pushes")
    assert (page["total"], page["evicted"], page["complete"]) == (8, 5, False)
    assert stores.status(server)["store"]["retain_ms"] == 3_600_000


def test_pushes_that_age_while_no_server_runs_are_removed(start, place):
    server = start(*stores.flags(place))
    advance(server, "-170h")
    push(server, 5)
    advance(server, "3h")
    push(server, 5)
    server.api("PUT", "/clock", {"mode": "real"})
    assert server.stop() == 0
    server = start(*stores.flags(place, "--retain", "7d"))
    until_removed(server, place, list(range(6, 11)))
    assert server.api("GET", "/pushes")["evicted"] == 5
    assert server.stop() == 0
    assert start(*stores.flags(place)).api("GET", "/pushes")["evicted"] == 5


def test_pushes_from_a_clock_that_was_ahead_keep_no_older_ones(start, place):
    """They are removed together with older ones behind them, not only years later."""
    server = start(*stores.flags(place, "--retain", "1h", memory_records=1))
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2036-01-01T12:00:00Z"})
    push(server, 3)
    server.api("PUT", "/clock", {"mode": "real"})
    push(server, 3)
    advance(server, "2h")
    push(server)
    until_removed(server, place, [7])
    assert server.api("GET", "/pushes")["evicted"] == 6


def test_many_old_pushes_are_removed(start, place):
    """More than one transaction removes at a time."""
    server = start(*stores.flags(place))
    advance(server, "-48h")
    token = "bearer " + server.token(issued_at=int(time.time()) - 48 * 3600)
    assert set(stores.load(server, 4_500, streams=100, authorization=token).values()) == {200}
    advance(server, "48h")
    push(server)
    assert server.stop() == 0
    server = start(*stores.flags(place, "--retain", "24h", memory_records=8))
    until_removed(server, place, [4_501])
    assert server.api("GET", "/pushes")["evicted"] == 4_500


def test_a_delayed_push_that_is_removed_before_its_response(start, place, device):
    """The client gets its response; nothing of the push is left."""
    server = start(*stores.flags(place, "--max-records", "5", memory_records=1))
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "700ms"}}})
    with connect(server) as wire:
        wire.settings()
        stream = wire.open(push_headers(server, device), b"{}")
        wire.ping()
        stores.load(server, 20, streams=5)
        until_removed(server, place, list(range(17, 22)))
        assert wire.response(stream).status == 200
    push(server)
    assert server.request("GET", "/api/v1/pushes/1").status == 404
    until_removed(server, place, list(range(18, 23)))
    assert server.api("GET", "/pushes")["total"] == 5

"""The documented view `pushes` of the file, which other programs query, and counts of a large file."""

import contextlib
import sqlite3
import subprocess
import sys

import pytest

from support import stores
from support.server import Server, stop_cleanly, wait_until

COLUMNS = [
    "seq", "received_at", "finished_at", "kind", "outcome", "accepted", "status", "reason", "delivery", "attempt",
    "push_key", "device_token", "topic", "push_type", "priority", "collapse_id", "apns_id", "rule", "latency_ms",
    "payload_size", "connection", "stream", "listener", "environment", "client", "key_id", "team_id", "verdict_reason",
    "detail", "payload",
]


@pytest.fixture(scope="module")
def compared(binary, certs, tmp_path_factory):
    """The records of pushes of every kind, and the rows of the view while the server runs."""
    folder = tmp_path_factory.mktemp("view")
    path = folder / "inbox.db"
    server = Server(binary, certs, "--seed", "7", "--apns-plain", "127.0.0.1:0", *stores.flags(path))
    try:
        stores.push_every_kind(server, folder)
        records = stores.everything(server)
        wait_until(lambda: len(stores.pushes_view(path)) == len(records), "all are written")
        wait_until(lambda: not stores.pushes_view(path, "SELECT 1 FROM pushes WHERE outcome = 'pending'"), "all have ended")
        yield server, path, stores.everything(server), stores.pushes_view(path)
        stop_cleanly(server)
    finally:
        server.kill()


def test_the_columns_are_those_documented(compared):
    """They stay the same in later versions; new ones may follow."""
    assert list(compared[3][0])[:len(COLUMNS)] == COLUMNS


def test_rows_are_those_of_the_records(compared):
    _, _, records, rows = compared

    def of_record(record):
        request, auth, served = record["request"], record["auth"], record["served"]
        return {
            "seq": record["seq"], "received_at": record["received_at"], "finished_at": record["finished_at"],
            "kind": record["kind"], "outcome": record["outcome"], "accepted": int(record["accepted"]),
            "status": served["status"], "reason": served["reason"], "delivery": record["delivery"],
            "attempt": record["attempt"], "push_key": record["push_key"].removeprefix("0x"),
            "device_token": request["device_token"], "payload_size": request["size"]["bytes"],
            "connection": record["connection"]["id"], "stream": record["connection"]["stream"],
            "listener": record["listener"], "environment": record["environment"], "client": record["connection"]["client"],
            "rule": record["fault"] and record["fault"]["rule"], "topic": record["apns"]["topic"],
            "push_type": record["apns"]["push_type"], "apns_id": record["apns"]["id"],
            "collapse_id": record["apns"]["collapse_id"],
            "key_id": auth.get("key_id"), "team_id": auth.get("team_id") if auth["kind"] == "token" else None,
        }

    for record, row in zip(records, rows, strict=True):
        expected = of_record(record)
        assert {name: row[name] for name in expected} == expected


def test_all_rows_can_be_read_as_text(compared):
    """Programs such as Datasette read all columns."""
    with contextlib.closing(sqlite3.connect(compared[1], timeout=10)) as db:
        assert len(db.execute("SELECT * FROM pushes").fetchall()) == len(compared[2])


def test_payloads_can_be_queried_as_json(compared):
    found = stores.pushes_view(
        compared[1], "SELECT seq FROM pushes WHERE json_valid(payload) AND payload->>'$.aps.badge' = 12")
    assert [row["seq"] for row in found] == [
        record["seq"] for record in compared[0].pushes(q="payload./aps/badge:12", kind="*")]


def test_the_view_can_be_grouped_while_the_server_runs(compared):
    rows = stores.pushes_view(compared[1], "SELECT outcome, count(*) AS number FROM pushes GROUP BY outcome")
    records = compared[2]
    assert {row["outcome"]: row["number"] for row in rows} == {
        outcome: [record["outcome"] for record in records].count(outcome) for outcome in
        {record["outcome"] for record in records}}


def test_no_signature_of_a_provider_token_is_stored(compared):
    """Of the three parts of a token, the third authenticates."""
    server, path, _, _ = compared
    signature = server.bearer.rsplit(".", 1)[1].encode()
    for one in path.parent.glob("inbox.db*"):
        assert signature not in one.read_bytes(), one.name


def test_other_users_cannot_write_the_file(compared):
    mode = compared[1].stat().st_mode & 0o777
    assert mode & 0o002 == 0, oct(mode)


def test_the_view_cannot_be_changed(compared):
    with contextlib.closing(sqlite3.connect(compared[1], timeout=10)) as db, pytest.raises(sqlite3.Error, match="view"):
        db.execute("DELETE FROM pushes")


def test_another_process_reads_the_view(compared):
    script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM pushes').fetchone()[0])"
    done = subprocess.run([sys.executable, "-c", script, str(compared[1])], capture_output=True, text=True, timeout=20)
    assert int(done.stdout) == len(compared[2]), done.stderr
    assert compared[0].api("GET", "/status")["store"]["problem"] is None


# Counts


def test_matches_in_a_large_file_are_counted_on_request(start, tmp_path):
    server = start(*stores.flags(tmp_path / "inbox.db", memory_records=100))
    assert set(stores.load(server, 10_500, streams=200, body=b"{}").values()) == {200}
    page = server.api("GET", "/pushes", limit=2, q="status:200")
    assert page["matched"] in (None, 10_500) and page["total"] == 10_500 and page["next"]
    assert server.api("GET", "/pushes", limit=2, q="status:200", count="exact")["matched"] == 10_500
    assert server.api("GET", "/pushes", limit=2, q="status:200 after:10000")["matched"] == 500
    newest = server.api("GET", "/pushes", limit=2, order="desc", q="text:aps-unused !status:200")
    assert (newest["matched"], newest["items"], newest["next"]) == (0, [], None)
    assert server.api("GET", "/pushes/wait", count="=10500", timeout="0s")["satisfied"]

"""The documented view `pushes` of the file or the database, which other programs query, and counts of a large inbox."""

import contextlib
import datetime
import sqlite3
import subprocess
import sys

import pytest

from support import stores
from support.postgres import PostgresInbox
from support.selection import some
from support.server import Server, stop_cleanly, wait_until

COLUMNS = [
    "seq", "received_at", "finished_at", "kind", "outcome", "accepted", "status", "reason", "delivery", "attempt",
    "push_key", "device_token", "topic", "push_type", "priority", "collapse_id", "apns_id", "rule", "latency_ms",
    "payload_size", "connection", "stream", "listener", "environment", "client", "key_id", "team_id", "verdict_reason",
    "detail", "payload",
]


@pytest.fixture(scope="module", params=some(["sqlite", "postgres"], 1))
def compared(request, binary, certs, tmp_path_factory):
    """The records of pushes of every kind, and the rows of the view while the server runs."""
    folder = tmp_path_factory.mktemp("view")
    place = stores.new_place(request.param, folder)
    server = Server(binary, certs, "--seed", "7", "--apns-plain", "127.0.0.1:0", *stores.flags(place))
    try:
        stores.push_every_kind(server, folder)
        records = stores.everything(server)
        wait_until(lambda: len(stores.pushes_view(place)) == len(records), "all are written")
        wait_until(lambda: not stores.pushes_view(place, "SELECT 1 FROM pushes WHERE outcome = 'pending'"), "all have ended")
        yield server, place, stores.everything(server), stores.pushes_view(place)
        stop_cleanly(server)
    finally:
        server.kill()


@pytest.fixture
def file(compared):
    """The file, for what only a file has."""
    if isinstance(compared[1], PostgresInbox):
        pytest.skip("this is about the file")
    return compared[1]


def as_instant(text):
    return text and datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(datetime.timezone.utc)


def test_the_columns_are_those_documented(compared):
    """They stay the same in later versions; new ones may follow."""
    assert list(compared[3][0])[:len(COLUMNS)] == COLUMNS


def test_rows_are_those_of_the_records(compared):
    _, _, records, rows = compared

    def of_record(record):
        request, auth, served = record["request"], record["auth"], record["served"]
        return {
            "seq": record["seq"], "received_at": as_instant(record["received_at"]),
            "finished_at": as_instant(record["finished_at"]),
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
        row = {**row, **{name: as_instant(row[name]) for name in ("received_at", "finished_at")}}
        assert {name: row[name] for name in expected} == expected


def test_payloads_are_those_of_the_records(compared):
    server, _, records, rows = compared
    for record, row in zip(records, rows, strict=True):
        payload = row["payload"].encode() if isinstance(row["payload"], str) else row["payload"] or b""
        if b"\xff" not in payload and "\N{REPLACEMENT CHARACTER}" not in str(row["payload"]):
            assert payload == server.request("GET", f"/api/v1/pushes/{record['seq']}/payload").body


def test_all_rows_can_be_read_as_text(compared, file):
    """Programs such as Datasette read all columns."""
    with contextlib.closing(sqlite3.connect(file, timeout=10)) as db:
        assert len(db.execute("SELECT * FROM pushes").fetchall()) == len(compared[2])


def test_payloads_can_be_queried_as_json(compared):
    query = "SELECT seq FROM pushes WHERE json_valid(payload) AND payload->>'$.aps.badge' = 12"
    if isinstance(compared[1], PostgresInbox):
        query = "SELECT seq FROM pushes WHERE topic = 'com.acme.shop' AND "\
            "(convert_from(payload, 'UTF8')::jsonb #>> '{aps,badge}')::int = 12"
    found = stores.pushes_view(compared[1], query)
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
    server, place, _, _ = compared
    signature = server.bearer.rsplit(".", 1)[1].encode()
    if isinstance(place, PostgresInbox):
        dump = place.dump()
        assert b"com.acme.shop" in dump and signature not in dump and signature.hex().encode() not in dump
    else:
        for one in place.parent.glob("inbox.db*"):
            assert signature not in one.read_bytes(), one.name


def test_other_users_cannot_write_the_file(file):
    mode = file.stat().st_mode & 0o777
    assert mode & 0o002 == 0, oct(mode)


def test_the_view_cannot_be_changed(compared):
    if isinstance(compared[1], PostgresInbox):
        with pytest.raises(AssertionError, match="view"):
            compared[1].execute("DELETE FROM pushes")
        return
    with contextlib.closing(sqlite3.connect(compared[1], timeout=10)) as db, pytest.raises(sqlite3.Error, match="view"):
        db.execute("DELETE FROM pushes")


def test_another_process_reads_the_view(compared, file):
    script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM pushes').fetchone()[0])"
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, timeout=20)
    assert int(done.stdout) == len(compared[2]), done.stderr
    assert compared[0].api("GET", "/status")["store"]["problem"] is None


# Counts


@pytest.mark.long
def test_matches_in_a_large_inbox_are_counted_on_request(start, place):
    server = start(*stores.flags(place, memory_records=100))
    assert set(stores.load(server, 10_500, streams=200, body=b"{}").values()) == {200}
    page = server.api("GET", "/pushes", limit=2, q="status:200")
    assert page["matched"] in (None, 10_500) and page["total"] == 10_500 and page["next"]
    assert server.api("GET", "/pushes", limit=2, q="status:200", count="exact")["matched"] == 10_500
    assert server.api("GET", "/pushes", limit=2, q="status:200 after:10000")["matched"] == 500
    newest = server.api("GET", "/pushes", limit=2, order="desc", q="text:aps-unused !status:200")
    assert (newest["matched"], newest["items"], newest["next"]) == (0, [], None)
    assert server.api("GET", "/pushes/wait", count="=10500", timeout="0s")["satisfied"]

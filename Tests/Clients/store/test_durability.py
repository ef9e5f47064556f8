"""Which pushes are in the store after a kill, SIGTERM, or an answer: `--durable answer` loses no acknowledged push, and
`--durable soon` none if the server can end.

`APNS_MOCK_ALL_TESTS=1` repeats the kills more often.
"""

import contextlib
import secrets
import shutil
import signal
import sqlite3
import threading
import time

import pytest
from hyperframe.frame import HeadersFrame

from support import stores
from support.durability import DELAYED, Provider, acknowledged_under_load, assert_each_is_there_once
from support.failing_stores import FullDisk, FullPostgres
from support.postgres import PostgresInbox
from support.selection import ALL, some
from support.server import Server, wait_until
from support.wire import Closed, connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds

SERIES = 10 if ALL else 1  # of kills with the same inbox
LOADS = some([40, 300, 1, 150, 500], 3)  # the pushes of a server before its kill


def is_shared(place):
    return isinstance(place, PostgresInbox)


def outcomes(server):
    return {record["outcome"] for record in stores.everything(server, fields="outcome")}


@pytest.mark.parametrize("series", range(SERIES))
def test_a_kill_loses_no_acknowledged_push(binary, certs, place, series):
    """Each server continues the inbox that the one before left behind."""
    acknowledged = set()
    for number, pushes in enumerate(LOADS):
        server = Server(binary, certs, *stores.flags(place, "--durable", "answer", memory_records=[8, None][number % 2]))
        try:
            if number:
                assert_each_is_there_once(server, place, acknowledged)
            server.api("POST", "/rules", {
                "name": "slow", "when": {"device_token": DELAYED}, "do": {"delay": {"fixed": "20ms"}}})
            new = acknowledged_under_load(server, pushes, server.process.kill)
            assert not new & acknowledged
            acknowledged |= new
        finally:
            server.kill()
    server = Server(binary, certs, *stores.flags(place, memory_records=1))
    try:
        assert_each_is_there_once(server, place, acknowledged)
        # A server that shares an inbox first has to find out that the other one has gone.
        timeout = 10 if is_shared(place) else 0
        wait_until(lambda: outcomes(server) <= {"accepted", "unknown"}, lambda: outcomes(server), timeout)
        assert server.stop() == 0
    finally:
        server.kill()


class LargerDisk(FullDisk):
    """One that the load alone does not fill."""

    size = "32m"


@pytest.mark.parametrize("kind", [LargerDisk, FullPostgres])
def test_a_kill_while_the_disk_is_full_loses_no_acknowledged_push(binary, certs, tmp_path, kind):
    failure = kind(tmp_path)
    try:
        server = Server(binary, certs, *stores.flags(failure.place, "--durable", "answer", memory_records=8))
        providers = [Provider(server) for _ in range(3)]
        try:
            for one in providers:
                one.start()
            wait_until(lambda: sum(len(one.acknowledged) for one in providers) >= 100, "the load does not come up", 60)
            failure.begin()
            wait_until(lambda: stores.metric(server, "apns_mock_store_working") == 0, "the full disk is not noticed", 30)
        finally:
            server.kill()
        for one in providers:
            one.join(30)
            assert not one.is_alive() and one.error is None and set(one.other) <= {503}
        failure.end()
        again = Server(binary, certs, *stores.flags(failure.place, memory_records=8))
        try:
            assert_each_is_there_once(again, failure.place, set().union(*(one.acknowledged for one in providers)))
            assert again.stop() == 0
        finally:
            again.kill()
    finally:
        failure.end()
        failure.close()


@pytest.mark.parametrize("durable", ["soon", "answer"])
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_under_load_loses_no_push(binary, certs, place, durable, number):
    server = Server(binary, certs, *stores.flags(place, "--durable", durable, memory_records=8))

    def end():
        server.signal(number)
        assert server.wait(40) == 0, server.log()[-2000:]

    acknowledged = acknowledged_under_load(server, 1_000, end)
    again = Server(binary, certs, *stores.flags(place, memory_records=8))
    try:
        assert_each_is_there_once(again, place, acknowledged)
        assert again.stop() == 0
    finally:
        again.kill()


def test_the_file_alone_has_all_pushes_after_an_orderly_end(binary, certs, tmp_path):
    """A copy of the file without those that SQLite keeps beside it is complete, for example as an artifact of CI."""
    path, copy = tmp_path / "inbox.db", tmp_path / "copy.db"
    server = Server(binary, certs, *stores.flags(path))
    try:
        stores.load(server, 100)
        assert server.stop() == 0
    finally:
        server.kill()
    shutil.copy(path, copy)
    assert len(stores.pushes_view(copy)) == 100


def test_a_push_is_stored_when_its_answer_arrives(start, place):
    server = start(*stores.flags(place, "--durable", "answer"))
    with connect(server) as wire:
        for number in range(1, 101 if ALL else 31):
            response = wire.push(push_headers(server, secrets.token_hex(32)))
            assert response.status == 200
            (row,) = stores.pushes_view(place, "SELECT * FROM pushes WHERE apns_id = ?", response.header("apns-id"))
            assert (row["seq"], row["status"], row["outcome"]) == (number, 200, "accepted")


def test_concurrent_pushes_are_stored_when_their_answers_arrive(start, place):
    server = start(*stores.flags(place, "--durable", "answer"))
    with connect(server) as wire:
        wire.push(push_headers(server, DELAYED))
        for _ in range(10 if ALL else 3):
            wanted = [wire.open(push_headers(server, secrets.token_hex(32)), stores.BODY) for _ in range(50)]
            while wanted:
                frame = wire.receive()
                if isinstance(frame, HeadersFrame):
                    wanted.remove(frame.stream_id)
                    apns_id = wire.responses[frame.stream_id].header("apns-id")
                    assert stores.pushes_view(place, "SELECT seq FROM pushes WHERE apns_id = ?", apns_id)


@pytest.mark.parametrize(("changes", "body", "status"), [
    ({"apns_topic": None}, stores.BODY, 400), ({"authorization": None}, stores.BODY, 403), ({"method_": "HEAD"}, b"", 405),
    ({}, b'{"aps":"%s"}' % (b"x" * 6000), 413),
], ids=str)
def test_a_rejected_push_is_stored_when_its_answer_arrives(start, place, changes, body, status):
    server = start(*stores.flags(place, "--durable", "answer"))
    with connect(server) as wire:
        for number in range(1, 6):
            assert wire.push(push_headers(server, "ab" * 32, **changes), body).status == status
            assert [row["status"] for row in stores.pushes_view(place)] == [status] * number


@pytest.mark.parametrize("action", [
    {"respond": {"status": 503}}, {"delay": {"fixed": "50ms"}}, {"reset_stream": {}}, {"goaway": {}}, {"close": {}},
], ids=lambda action: next(iter(action)))
def test_the_outcome_of_a_faulted_push_is_stored_when_the_client_sees_it(start, place, device, action):
    server = start(*stores.flags(place, "--durable", "answer"))
    server.api("POST", "/rules", {"name": "fault", "when": {"device_token": device}, "do": action})
    with connect(server) as wire:
        try:
            status = wire.push(push_headers(server, device)).status
        except (Closed, OSError):
            status = None
        (row,) = stores.pushes_view(place)
        assert row["status"] == status and row["outcome"] == ({"delay": "accepted", "respond": "rejected", "goaway": "unprocessed"}.get(next(iter(action)), "unanswered"))


def test_a_backup_of_the_file_under_load_is_a_whole_inbox(start, tmp_path):
    """The backup that the documentation shows."""
    path, copy = tmp_path / "inbox.db", tmp_path / "copy.db"
    server, results = start(*stores.flags(path, "--durable", "answer")), []
    load = threading.Thread(target=lambda: results.append(stores.load(server, 2_000)), daemon=True)
    load.start()
    wait_until(lambda: stores.status(server)["store"]["records_written"] > 300, "the load does not come up")
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as source:
        source.execute("VACUUM INTO ?", [str(copy)])
    load.join(60)
    assert set(results[0].values()) == {200} and stores.status(server)["store"]["problem"] is None
    copied = stores.everything(start(*stores.flags(copy, memory_records=1)))
    assert len(copied) > 300 and copied == stores.everything(server, before=len(copied) + 1)


def test_an_answer_over_http_1_comes_after_the_commit(start, place):
    server = start("--apns-plain", "127.0.0.1:0", *stores.flags(place, "--durable", "answer"))
    for number in range(1, 21 if ALL else 9):
        stores.push_over_http_1(server)
        assert len(stores.pushes_view(place)) == number


def test_answers_about_channels_and_broadcasts_come_after_the_commit(start, place):
    server = start(*stores.flags(place, "--durable", "answer"))
    stores.push_broadcasts(server)
    assert [row["kind"] for row in stores.pushes_view(place)] == ["channel", "broadcast", "broadcast"]


def test_without_the_flag_pushes_are_stored_soon(start, place):
    server = start(*stores.flags(place))
    stores.load(server, 200)
    began = time.monotonic()
    wait_until(lambda: len(stores.pushes_view(place)) == 200, "the pushes are written", 10)
    assert time.monotonic() - began < 5
    status = stores.status(server)["store"]
    assert (status["durable"], status["records_written"], status["problem"]) == ("soon", 200, None)
    wait_until(lambda: stores.metric(server, "apns_mock_store_written_records_total") == 200, "they count as written", 10)
    assert stores.metric(server, "apns_mock_store_waiting_records") == 0
    assert stores.metric(server, "apns_mock_store_working") == 1

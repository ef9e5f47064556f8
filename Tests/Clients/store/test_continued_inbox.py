"""A server that continues the inbox of a store: numbers and names go on, nothing is used twice, and removed
pushes stay removed.
"""

import secrets

import pytest

from support import stores
from support.server import Server, wait_until
from support.wire import connect, push_headers



def push(server, count=1, device=None, **changes):
    """Sends this many pushes over one connection; returns the apns-ids of the responses."""
    with connect(server) as wire:
        responses = [wire.push(push_headers(server, device or secrets.token_hex(32), **changes)) for _ in range(count)]
    return [response.header("apns-id") for response in responses]


@pytest.fixture
def restart(start, place):
    """`restart(former)` stops a server and starts the next one with the same inbox, with one record in memory."""
    def starter(former=None, *flags, memory_records=1):
        if former is not None:
            assert former.stop() == 0, former.log()[-2000:]
        return start(*stores.flags(place, *flags, memory_records=memory_records))

    return starter


def connections(server):
    return {record["connection"]["id"] for record in stores.everything(server)}


def test_seq_continues(restart):
    server = restart()
    push(server, 5)
    server = restart(server)
    assert stores.status(server)["inbox"]["last_seq"] == 5
    push(server, 2)
    server = restart(server)
    push(server)
    assert stores.seqs(server) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_seq_continues_after_the_newest_pushes_were_removed(restart):
    server = restart()
    push(server, 3)
    server.api("DELETE", "/pushes", q="after:1")
    server = restart(server)
    push(server)
    server.api("POST", "/reset", {"inbox": True})
    server = restart(server)
    push(server)
    assert stores.seqs(server) == [5]


def test_names_of_connections_are_not_used_again(restart):
    server, seen = restart(), set()
    for _ in range(3):
        before = set(seen)
        for _ in range(2):
            push(server)
        names = connections(server)
        assert len(names - before) == 2 and names >= before
        seen = names
        server = restart(server)
    assert len(seen) == 6


def test_names_of_connections_are_not_used_again_after_the_inbox_was_emptied(restart, place):
    server = restart()
    push(server)
    (former,) = connections(server)
    wait_until(lambda: stores.pushes_view(place), "the push is written")
    server.api("POST", "/reset", {"inbox": True})
    server = restart(server)
    push(server)
    assert former not in connections(server)


def test_the_name_of_a_connection_without_a_push_is_not_used_again(restart):
    """The log of the first server names it."""
    server = restart()
    push(server)
    connect(server).close()
    wait_until(lambda: "c2" in {one["id"] for one in server.api("GET", "/connections")["items"]}, "the connection")
    server = restart(server)
    push(server)
    assert "c2" not in connections(server) and len(connections(server)) == 2


def test_generated_apns_ids_are_not_repeated_with_the_same_seed(restart):
    server, ids = restart(None, "--seed", "7"), []
    for _ in range(3):
        ids += push(server, 4)
        server = restart(server, "--seed", "7")
    assert len(set(ids)) == 12
    assert [record["apns"]["id"] for record in stores.everything(server)] == ids


def test_generated_apns_ids_of_pushes_that_are_not_recorded_are_not_repeated(restart):
    server = restart(None, "--seed", "7", "--record", "counters")
    ids = push(server, 3)
    server = restart(server, "--seed", "7")
    assert len({*ids, *push(server, 3)}) == 6


def test_generated_apns_ids_are_not_repeated_after_a_reset(restart, place):
    server = restart(None, "--seed", "7")
    ids = push(server, 3)
    wait_until(lambda: len(stores.pushes_view(place)) == 3, "the pushes are written")
    server.api("POST", "/reset", {"inbox": True, "counters": True, "rules": True})
    server = restart(server, "--seed", "7")
    assert len({*ids, *push(server, 3)}) == 6


def test_a_pending_push_is_aborted_by_the_end_of_the_server(restart, binary, certs, place, device):
    server = Server(binary, certs, *stores.flags(place))
    try:
        server.api("POST", "/rules", {"name": "slow", "do": {"delay": {"fixed": "1m"}}})
        with connect(server) as wire:
            wire.open(push_headers(server, device), b"{}")
            wait_until(lambda: stores.pushes_view(place), "the push is written")
            assert server.record(device)["outcome"] == "pending"
            server.kill()
    finally:
        server.kill()
    server = restart()
    record = server.record(device)
    assert record["outcome"] == "unknown", record
    assert record["served"]["status"] is None and record["finished_at"]
    assert not record["accepted"]


def test_a_delayed_push_keeps_its_outcome(restart, device):
    server = restart()
    server.api("POST", "/rules", {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "200ms"}}})
    with connect(server) as wire:
        wire.settings()
        stream = wire.open(push_headers(server, device), b"{}")
        push(server, 3)
        assert wire.response(stream).status == 200
    before = server.record(device)
    assert before["outcome"] == "accepted"
    assert restart(server).record(device) == before


def test_deleted_pushes_stay_deleted(restart):
    server, gone = restart(), secrets.token_hex(32)
    push(server, 2)
    push(server, 3, gone)
    push(server, 2)
    assert server.api("DELETE", "/pushes", device_token=gone) == {"deleted": 3}
    assert stores.seqs(server) == [1, 2, 6, 7]
    server = restart(server)
    assert stores.seqs(server) == [1, 2, 6, 7]
    assert server.api("DELETE", "/pushes", q="before:2") == {"deleted": 1}
    assert server.request("GET", "/api/v1/pushes/3").status == 404
    page = restart(server).api("GET", "/pushes")
    assert [record["seq"] for record in page["items"]] == [2, 6, 7]
    assert (page["total"], page["matched"], page["evicted"], page["complete"]) == (3, 3, 0, True)


@pytest.mark.parametrize("how", ["reset", "all"])
def test_an_emptied_inbox_stays_empty(restart, binary, certs, place, how):
    """Even if the server is killed as soon as it has answered."""
    former = restart()
    push(former, 20)
    assert former.stop() == 0
    server = Server(binary, certs, *stores.flags(place, memory_records=1))
    try:
        push(server, 3)
        if how == "reset":
            server.api("POST", "/reset", {"inbox": True})
        else:
            assert server.api("DELETE", "/pushes", all="true") == {"deleted": 23}
        assert stores.seqs(server) == [] and stores.pushes_view(place) == []
    finally:
        server.kill()
    server = restart()
    assert stores.seqs(server) == []
    push(server, 2)
    first, second = stores.seqs(server)
    assert first > 23 and second == first + 1, "after a kill there may be a gap, because numbers are reserved"
    page = server.api("GET", "/pushes")
    assert (page["total"], page["evicted"], page["complete"]) == (2, 0, True)


def test_a_reset_of_a_scope_removes_only_its_pushes(restart):
    server = restart()
    push(server, 3, apns_topic="com.example.mine")
    push(server, 2)
    server = restart(server)
    server.api("POST", "/reset", {"scope": "topic:com.example.mine"})
    assert stores.seqs(server) == [4, 5] == stores.seqs(restart(server))


def test_an_import_is_kept(restart, device):
    server = restart()
    push(server, 2, device)
    export = server.request("GET", "/api/v1/export").body
    done = server.request("POST", "/api/v1/import", export, headers={"content-type": "application/x-ndjson"})
    assert done.status == 200
    before = stores.everything(server)
    assert len(before) == 4
    assert stores.everything(restart(server)) == before


def test_the_export_on_exit_contains_the_pushes_of_all_runs(restart, tmp_path):
    export = tmp_path / "inbox.ndjson"
    server = restart()
    push(server, 5)
    server = restart(server, "--export-on-exit", export)
    push(server, 4)
    assert server.stop() == 0
    assert len(export.read_text().splitlines()) == 9

"""A view of several servers while these push, are reset, appear and disappear, and while their database is slow or stops."""

import secrets
import threading
import time

import pytest

from support import stores
from support.many_schemas import changing_tables, push, responses, servers, slow, stored, viewing
from support.postgres import disposable
from support.selection import ALL
from support.server import wait_until

PUSHES = 1500 if ALL else 250  # of each server


def test_findings_are_those_of_each_server(binary, certs, postgres, tmp_path):
    """A push that one server receives twice has a finding; one that two servers receive has none."""
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1", f"{prefix}_2"]) as started:
        one, two = started.values()
        gone, other = ("feedfacefeedface41000002" + digit * 40 for digit in "01")
        for server in (one, two):
            assert push(server, gone).status == 410
        for _ in range(2):
            assert push(two, other).status == 410
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            stored(viewer, 4)
            expected = {(item["finding"], case["seq"]) for item in two.api("GET", "/findings")["items"] for case in item["records"]}
            assert expected and one.api("GET", "/findings")["total"] == 0
            found = viewer.api("GET", "/findings")["items"]
            assert {(item["finding"], case["server"], case["server_seq"]) for item in found for case in item["records"]} == {
                (finding, f"{prefix}_2", seq) for finding, seq in expected}
            evidence = [viewer.api("GET", f"/pushes/{seq}") for seq in found[0]["records"][0]["evidence"]]
            assert [(record["server"], record["server_seq"]) for record in evidence] == [(f"{prefix}_2", 2), (f"{prefix}_2", 3)]


def test_schemas_that_appear_and_disappear_are_noticed(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1"]) as started:
        push(started[f"{prefix}_1"])
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            first = stored(viewer, 1)
            with servers(binary, certs, postgres, [f"{prefix}_2"]) as more:
                device = secrets.token_hex(32)
                result = {}
                waiting = threading.Thread(
                    target=lambda: result.update(viewer.api("GET", "/pushes/wait", device_token=device, timeout="20s")))
                waiting.start()
                push(more[f"{prefix}_2"], device)
                waiting.join()
                assert result["satisfied"] and result["items"][0]["server"] == f"{prefix}_2"
                assert more[f"{prefix}_2"].stop() == 0
            both = stored(viewer, 2)
            assert both[:1] == first, "numbers stay the same"
            assert viewer.api("GET", "/status")["servers"] == [f"{prefix}_1", f"{prefix}_2"]
            wait_until(lambda: f"the schema {prefix}_2 was added" in viewer.log(), "a line in the log")
            postgres.execute(f'DROP SCHEMA "{prefix}_2" CASCADE')
            wait_until(lambda: viewer.api("GET", "/status")["servers"] == [f"{prefix}_1"], "the schema is gone")
            assert stores.everything(viewer) == first
            assert viewer.logged(f"the schema {prefix}_2 was removed")


def test_a_view_of_schemas_that_are_written(binary, certs, postgres, tmp_path):
    """No push is missing or twice in pages that are read while three servers write."""
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_{n}" for n in (1, 2, 3)]) as started:
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            loads = [threading.Thread(target=stores.load, args=(server, PUSHES)) for server in started.values()]
            for one in loads:
                one.start()
            seen, after = {}, 0
            while any(one.is_alive() for one in loads) or len(seen) < 3 * PUSHES:
                page = viewer.api("GET", "/pushes", limit=1000, after=after, fields="seq,server,server_seq,apns.id")
                for record in page["items"]:
                    key = (record["server"], record["server_seq"])
                    assert key not in seen, f"{key} is twice"
                    seen[key] = record["seq"]
                after = page["items"][-1]["seq"] if page["items"] else after
                if not any(one.is_alive() for one in loads) and not page["items"]:
                    break
            for one in loads:
                one.join()
            records = stored(viewer, 3 * PUSHES)
            assert len(seen) == 3 * PUSHES
            # The numbers that clients saw stay.
            assert {(one["server"], one["server_seq"]): one["seq"] for one in records} == seen
            times = [one["received_at"] for one in records]
            assert sum(one > other for one, other in zip(times, times[1:])) < 0.3 * PUSHES, "far from the order of arrival"


def test_a_reset_of_one_server_removes_its_pushes(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1", f"{prefix}_2"]) as started:
        for server in started.values():
            push(server)
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            stored(viewer, 2)
            started[f"{prefix}_1"].api("POST", "/reset")
            wait_until(lambda: [one["server"] for one in stores.everything(viewer)] == [f"{prefix}_2"], "one push")


@pytest.mark.parametrize("pattern", ["*", "1"])
def test_no_finding_follows_from_pushes_before_a_reset(binary, certs, postgres, tmp_path, pattern):
    """Of the server that was reset; the finding of another one stays."""
    prefix = f"load{secrets.token_hex(4)}"
    gone = "feedfacefeedface41000002" + "0" * 40
    with servers(binary, certs, postgres, [f"{prefix}_1", f"{prefix}_2"]) as started:
        one, two = started.values()
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_{pattern}") as viewer:
            def names():
                return {case["seq"] for item in viewer.api("GET", "/findings")["items"] if "410" in item["finding"] for case in item["records"]}

            for server in (one, two):
                assert push(server, gone).status == 410
            assert push(two, gone).status == 410
            of_two = {f"{prefix}_2:2"} if pattern == "*" else set()
            stored(viewer, 3 if pattern == "*" else 1)
            wait_until(lambda: names() == of_two, "the finding of the second server")
            one.api("POST", "/reset")
            assert push(one, gone).status == 410
            assert one.api("GET", "/findings")["total"] == 0
            wait_until(lambda: one.api("GET", "/status")["store"]["records_written"] == 2, "it is written")
            wait_until(lambda: any(each["server_seq"] == 2 for each in viewer.pushes(limit=1000) if each.get("server") == f"{prefix}_1")
                       or [each["seq"] for each in viewer.pushes()] == [2], "the view has it")
            assert names() == of_two
            # One that follows from the push after the reset.
            assert push(one, gone).status == 410
            expected = of_two | ({f"{prefix}_1:3"} if pattern == "*" else {3})
            wait_until(lambda: names() == expected, "the finding on the last push")


def test_findings_are_complete_when_nothing_is_missing_any_more(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    gone = "feedfacefeedface41000002" + "0" * 40
    with servers(binary, certs, postgres, [f"{prefix}_1", f"{prefix}_2"]) as started:
        one, two = started.values()
        for server in (one, two):
            assert push(server, gone).status == 410
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            stored(viewer, 2)
            assert viewer.api("GET", "/findings")["complete"]
            with changing_tables(postgres, f"{prefix}_2"):
                wait_until(lambda: viewer.api("GET", "/status")["warnings"], "a warning")
                assert push(one, gone).status == 410
                wait_until(lambda: viewer.api("GET", "/findings")["total"], "the finding of the server that can be read")
                assert not viewer.api("GET", "/findings")["complete"]
            assert push(two, gone).status == 410
            wait_until(lambda: viewer.api("GET", "/findings")["complete"], "it is complete")
            wait_until(lambda: {case["seq"] for item in viewer.api("GET", "/findings")["items"] if "410" in item["finding"]
                                for case in item["records"]} == {f"{prefix}_1:2", f"{prefix}_2:2"}, "the findings of both")


def test_a_view_goes_on_when_the_database_works_again(binary, certs, tmp_path):
    database, prefix = disposable(), f"load{secrets.token_hex(4)}"
    with servers(binary, certs, database, [f"{prefix}_1", f"{prefix}_2"]) as started:
        for server in started.values():
            push(server)
        with viewing(binary, tmp_path / "view", database, f"{prefix}_*") as viewer:
            before = stored(viewer, 2)
            database.stop("immediate")
            wait_until(lambda: viewer.request("GET", "/readyz").status == 503, "it is not ready")
            assert viewer.request("GET", "/api/v1/pushes").status == 503
            assert viewer.request("GET", "/livez").status == 200
            database.start()
            wait_until(lambda: viewer.request("GET", "/readyz").status == 200, "it is ready")
            assert stores.everything(viewer) == before


def test_a_name_is_the_same_push_after_others_were_removed(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    names = [f"{prefix}_1", f"{prefix}_2"]
    with servers(binary, certs, postgres, names) as started:
        for _ in range(5):
            for server in started.values():
                push(server)
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            before = {one["seq"]: one["request"]["device_token"] for one in stored(viewer, 10)}
            gone = f"{names[0]}:2"
            following = [name for name in before][[name for name in before].index(gone) + 1:]
            started[names[0]].api("DELETE", "/pushes", device_token=before[gone])
            wait_until(lambda: viewer.api("GET", "/status")["inbox"]["records"] == 9, "one is removed")
            # A page that ended with it goes on at the same place.
            assert [one["seq"] for one in viewer.pushes(limit=1000, after=gone)] == following
            # Another view derives the order from those that are left.
            (tmp_path / "later").mkdir()
            with viewing(binary, tmp_path / "later", postgres, f"{prefix}_*") as later:
                for one in (viewer, later):
                    assert one.request("GET", f"/api/v1/pushes/{gone}").status == 404
                    for name, device in before.items():
                        if name != gone:
                            assert one.api("GET", f"/pushes/{name}")["request"]["device_token"] == device


def test_servers_with_different_settings(binary, certs, postgres, tmp_path):
    """The view shows what each server decided, whatever its rules, retention and durability."""
    prefix = f"load{secrets.token_hex(4)}"
    first = [f"{prefix}_1"]
    with servers(binary, certs, postgres, first, "--durable", "answer", "--max-records", "2") as strict, \
            servers(binary, certs, postgres, [f"{prefix}_2"], "--rules", "lenient") as lenient:
        for _ in range(5):
            push(strict[f"{prefix}_1"])
        push(lenient[f"{prefix}_2"])
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            wait_until(lambda: viewer.api("GET", "/status")["inbox"]["records"] == 3, "the oldest are evicted")
            page = viewer.api("GET", "/pushes", limit=1000)
            assert [(one["server"], one["server_seq"]) for one in page["items"]] == [
                (f"{prefix}_1", 4), (f"{prefix}_1", 5), (f"{prefix}_2", 1)]
            assert page["evicted"] == 3 and not page["complete"]
            assert viewer.api("GET", "/pushes", after=page["items"][0]["seq"])["complete"]


def assert_is_alive(viewer):
    for path in ("/livez", "/readyz"):
        started_at = time.monotonic()
        viewer.request("GET", path)
        assert time.monotonic() - started_at < 1, f"{path} waits for the database"


def test_health_does_not_wait_for_the_database(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1", f"{prefix}_2"]) as started:
        for server in started.values():
            for _ in range(5):
                push(server)
            assert server.stop() == 0
        for name in started:
            slow(postgres, name, 0.2)
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            found, threads = responses(viewer, ["/api/v1/pushes"], 3)
            deadline = time.monotonic() + 40
            while any(one.is_alive() for one in threads):
                assert_is_alive(viewer)
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert [(one.status, len(one.json["items"])) for one in found] == [(200, 10)] * 3


def test_a_database_that_stops(binary, certs, tmp_path):
    """Requests that need it are answered 503, all others at once."""
    database, prefix = disposable(), f"load{secrets.token_hex(4)}"
    with servers(binary, certs, database, [f"{prefix}_1", f"{prefix}_2"]) as started:
        for server in started.values():
            push(server)
        with viewing(binary, tmp_path / "view", database, f"{prefix}_*") as viewer:
            before = stored(viewer, 2)
            database.pause()
            try:
                paths = [f"/api/v1/{path}" for path in (
                    "pushes", f"pushes/{prefix}_1:1", "pushes/wait?timeout=1s", "export", "stats", "findings")]
                found, threads = responses(viewer, paths, 2)
                deadline = time.monotonic() + 30
                while any(one.is_alive() for one in threads):
                    assert_is_alive(viewer)
                    assert time.monotonic() < deadline, "requests wait one after the other"
                    time.sleep(0.1)
                assert [one.status for one in found] == [503] * 12, found
                assert viewer.request("GET", "/readyz").status == 503
                assert "cannot be read" in viewer.api("GET", "/status")["warnings"][0] and viewer.logged("cannot be read")
            finally:
                database.resume()
            wait_until(lambda: viewer.request("GET", "/readyz").status == 200, "it is ready")
            wait_until(lambda: viewer.request("GET", "/api/v1/pushes").status == 200, "lists are answered")
            assert stores.everything(viewer) == before

"""Runs of test suites in a view of several servers: each server has its own, and the view has those of all."""

import json
import secrets

import pytest

from support import stores
from support.many_schemas import push, servers, stored, viewing
from support.server import run, wait_until
from support.wire import connect, push_headers

GONE = "feedfacefeedface41000002" + "0" * 40


def suite(server, name, *, pushes, outcome="passed"):
    """Records a run with a test and these pushes, the first two to a device that is gone, the others of the run alone."""
    one = server.api("POST", "/runs", {"name": name, "labels": {"suite": name}})["id"]
    test = server.api("POST", f"/runs/{one}/tests", {"name": f"test_{name}"})["number"]
    with connect(server) as wire:
        for number in range(pushes):
            if number == 2:
                server.api("PATCH", f"/runs/{one}/tests/{test}", {"outcome": outcome, "message": "expected 200"})
            device, status = (GONE, 410) if number < 2 else (secrets.token_hex(32), 200)
            assert wire.push(push_headers(server, device), stores.BODY).status == status
    server.api("PATCH", f"/runs/{one}", {"ended": True})
    return one


@pytest.fixture(scope="module")
def viewed(binary, certs, postgres, tmp_path_factory):
    """Two servers, of which the second has two runs, and a view of both."""
    prefix = f"runs{secrets.token_hex(4)}"
    one, two = f"{prefix}_1", f"{prefix}_2"
    with servers(binary, certs, postgres, [one, two]) as started:
        push(started[one])
        assert suite(started[two], "orders", pushes=4) == "r1"
        assert suite(started[one], "billing", pushes=3, outcome="failed") == "r1"
        assert suite(started[two], "later", pushes=3) == "r2"
        with viewing(binary, tmp_path_factory.mktemp("view"), postgres, f"{prefix}_*") as viewer:
            stored(viewer, 11)
            wait_until(lambda: [item["state"] for item in viewer.api("GET", "/runs")["items"]] == ["ended"] * 3, "all runs have ended")
            yield started, viewer, one, two


def test_the_view_lists_the_runs_of_all_servers(viewed):
    started, viewer, one, two = viewed
    listed = viewer.api("GET", "/runs")
    assert [(item["id"], item["server"], item["name"]) for item in listed["items"]] == [
        (f"{two}:r2", two, "later"), (f"{one}:r1", one, "billing"), (f"{two}:r1", two, "orders")]
    assert listed["total"] == 3
    for item in listed["items"]:
        own = started[item["server"]].api("GET", f"/runs/{item['id'].partition(':')[2]}")
        seen = viewer.api("GET", f"/runs/{item['id']}")
        assert seen == {**own, "id": item["id"], "server": item["server"], "tests": [{**test, "run": item["id"]} for test in own["tests"]]}
    done = viewer.command("run", "ls")
    assert done.returncode == 0 and all(f"{name}:r1" in done.stdout for name in (one, two)), done
    for unknown in ("r1", f"{one}:r2", f"{one}:", "other:r1", f"{one}:r1:r1"):
        assert viewer.request("GET", f"/api/v1/runs/{unknown}").status == 404, unknown
    assert viewer.request("POST", "/api/v1/runs", {"name": "mine"}).status in (403, 404, 405)


def test_a_push_belongs_to_a_run_of_its_server(viewed):
    started, viewer, one, two = viewed
    for record in stores.everything(viewer):
        (own,) = started[record["server"]].pushes(seqs=record["server_seq"])
        assert record["run"] == (own["run"] and f"{record['server']}:{own['run']}") and record["test"] == own["test"]
    for query, count in [(f"run:{one}:r1", 3), (f"run:{two}:r1", 4), (f"run:{two}:*", 7), ("run:*:r1", 7), ("!run:*", 1), ("run:r1", 0),
                         ("test:test_orders", 2), ("test:*", 6)]:
        assert viewer.api("GET", "/pushes", q=query)["matched"] == count, query
        assert viewer.api("GET", "/stats", q=query)["matched"] == count, query
    verified = viewer.api("POST", "/verify", {"scope": f"run:{two}:r1", "expect": [{"match": "status:200", "count": 2}]})
    assert verified["passed"], verified


def test_a_report_is_that_of_the_server_with_other_names(viewed):
    started, viewer, one, two = viewed

    def renamed(value, server):
        """Returns a report with the numbers of the server's pushes and runs as the view names them, if it has a server, and without
        the sentences that name pushes.
        """
        if isinstance(value, list):
            return [renamed(item, server) for item in value]
        if not isinstance(value, dict):
            return value
        value = {name: f"{server}:{item}" if server and name in ("seq", "run") else renamed(item, server)
                 for name, item in value.items() if name != "explanation"}
        return {**value, "id": f"{server}:{value['id']}", "server": server} if server and value.get("kind") == "run" else value

    for server, run_id in [(one, "r1"), (two, "r1"), (two, "r2")]:
        own = started[server].api("GET", f"/runs/{run_id}/report", format="json")
        assert own["pushes"] >= 3 and own["findings"] and any(item["records"] for item in own["findings"])
        seen = viewer.api("GET", f"/runs/{server}:{run_id}/report", format="json")
        assert renamed(seen, None) == renamed(own, server)
    assert viewer.api("GET", f"/runs/{one}:r1/report", format="json")["failures"][0]["nearest"][0]["seq"].startswith(f"{one}:")
    text = viewer.request("GET", f"/api/v1/runs/{one}:r1/report?format=markdown").body.decode()
    assert "billing" in text and f"push {one}:" in text
    done = viewer.command("run", "show", f"{one}:r1")
    assert done.returncode == 0 and f"push {one}:" in done.stdout, done
    done = viewer.command("run", "compare", f"{two}:r1", f"{two}:r2")
    assert done.returncode == 0 and "pushes: 4 → 3" in done.stdout, done


def test_exports_of_a_view_keep_its_runs(viewed, binary, tmp_path):
    """Those of one run, and of all; a report made of them says the same."""
    _, viewer, one, two = viewed
    for path, runs in [(f"runs/{two}:r1/report?format=ndjson", [f"{two}:r1"]), ("export", [f"{two}:r1", f"{one}:r1", f"{two}:r2"])]:
        lines = [json.loads(line) for line in viewer.request("GET", f"/api/v1/{path}").body.splitlines()]
        assert [line["id"] for line in lines if line.get("kind") == "run"] == runs + runs, "again behind the pushes"
        numbers = [line["seq"] for line in lines if "seq" in line]
        assert numbers == sorted(set(numbers)) and all(isinstance(number, int) for number in numbers)
        exported = tmp_path / "run.ndjson"
        exported.write_text("\n".join(json.dumps(line) for line in lines))
        done = run(binary, "report", exported, "-o", tmp_path / "report.html")
        assert done.returncode == 0 and (tmp_path / "report.html").stat().st_size > 10_000, done
        assert "lacks pushes" not in done.stdout and "not in this report" not in done.stdout
    html = viewer.request("GET", f"/api/v1/runs/{two}:r1/report").body
    assert html.startswith(b"<!doctype html>") and f'"id":"{two}:r1"'.encode() in html


def test_changes_of_runs_are_noticed(viewed, postgres):
    started, viewer, one, _ = viewed
    run_id = started[one].api("POST", "/runs", {"name": "open"})["id"]
    wait_until(lambda: viewer.request("GET", f"/api/v1/runs/{one}:{run_id}").status == 200, "the view has the run")
    push(started[one])
    wait_until(lambda: viewer.api("GET", "/pushes", q=f"run:{one}:{run_id}")["matched"] == 1, "the view has its push")
    started[one].api("PATCH", f"/runs/{run_id}", {"ended": True, "outcome": "failed"})
    wait_until(lambda: viewer.api("GET", f"/runs/{one}:{run_id}")["outcome"] == "failed", "the view has its outcome")


def test_a_view_of_one_schema_keeps_the_names_of_runs(viewed, binary, postgres, tmp_path):
    started, _, _, two = viewed
    with viewing(binary, tmp_path / "view", postgres, two) as viewer:
        assert [item["id"] for item in viewer.api("GET", "/runs")["items"]] == ["r2", "r1"]
        assert viewer.api("GET", "/runs/r1") == started[two].api("GET", "/runs/r1")
        assert viewer.api("GET", "/pushes", q="run:r1")["matched"] == 4


def test_damaged_runs_are_left_out(viewed, binary, postgres, tmp_path):
    """Whatever the rows contain: they are those of another program, or of a newer version."""
    started, _, one, two = viewed
    schema = f"{two}b"
    with servers(binary, started[one].certs, postgres, [schema]) as more:
        assert suite(more[schema], "kept", pushes=2) == "r1"
        assert more[schema].stop() == 0
        rows = {"run/r2": "{", "run/r3": "[]", "run/r4": '{"kind":"run","id":"../x","name":"n","started_at":"2026-01-01T00:00:00Z"}',
                "run/r5/1": '{"kind":"test","run":"r5"}', "run/": "x", "run/r6": "7", "run/r7": '{"kind":"run","id":"r7","name":7}'}
        for name, value in rows.items():
            postgres.execute(f"INSERT INTO {schema}.state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
        with viewing(binary, tmp_path / "view", postgres, f"{two}*") as viewer:
            assert [item["id"] for item in viewer.api("GET", "/runs")["items"]] == [f"{schema}:r1", f"{two}:r2", f"{two}:r1"]

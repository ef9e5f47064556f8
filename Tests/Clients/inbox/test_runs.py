"""Runs of test suites: which pushes belong to which run and test, in queries, exports, imports and reports."""

import concurrent.futures
import json

import pytest

from support.faults import new_device
from support.server import Server, run, stop_cleanly
from support.wire import connect, push_headers

MINE, OTHERS = "com.example.app", "com.example.app.voip"
BODY = b'{"aps":{"alert":"in a run"}}'
DOWN = {"name": "down", "do": {"respond": {"status": 503}}}


@pytest.fixture(scope="module")
def server(binary, certs):
    running = Server(binary, certs)
    yield running
    stop_cleanly(running)


@pytest.fixture
def quiet(server):
    """A server without pushes and without open runs."""
    for one in server.api("GET", "/runs")["items"]:
        if one["state"] == "running":
            server.api("PATCH", f"/runs/{one['id']}", {"ended": True})
    server.api("POST", "/reset")
    return server


def start(server, **members):
    return server.request("POST", "/api/v1/runs", members).json["id"]


def start_test(server, run_id, name, **members):
    return server.request("POST", f"/api/v1/runs/{run_id}/tests", {"name": name, **members}).json["number"]


def end_test(server, run_id, number, outcome="passed", **members):
    return server.api("PATCH", f"/runs/{run_id}/tests/{number}", {"outcome": outcome, **members})


def end(server, run_id, **members):
    return server.api("PATCH", f"/runs/{run_id}", {"ended": True, **members})


def send(server, topic=MINE, device=None):
    """Sends a push; returns its status."""
    kind = "voip" if topic == OTHERS else "alert"
    with connect(server) as wire:
        headers = push_headers(server, device or new_device(), apns_topic=topic, apns_push_type=kind)
        return wire.response(wire.open(headers, BODY)).status


def owners(server, **query):
    return [(one["run"], one["test"]) for one in server.api("GET", "/pushes", **query)["items"]]


def report(server, run_id, **query):
    return server.api("GET", f"/runs/{run_id}/report", format="json", **query)


def test_pushes_belong_to_the_test_that_is_open(quiet):
    send(quiet)
    one = start(quiet, name="suite")
    send(quiet)
    first = start_test(quiet, one, "test_first")
    send(quiet)
    end_test(quiet, one, first)
    second = start_test(quiet, one, "test_second")
    send(quiet)
    end_test(quiet, one, second, "failed", message="expected 2 pushes")
    ended = end(quiet, one)
    send(quiet)
    assert owners(quiet) == [(None, None), (one, None), (one, "test_first"), (one, "test_second"), (None, None)]
    assert (ended["state"], ended["outcome"]) == ("ended", "failed")
    assert ended["test_counts"] == {"total": 2, "passed": 1, "failed": 1, "skipped": 0, "interrupted": 0, "running": 0}


def test_runs_and_tests_are_fields_of_queries(quiet):
    one = start(quiet, name="suite")
    number = start_test(quiet, one, "tests/test_retry.py::test_503[a b]")
    send(quiet)
    end_test(quiet, one, number)
    send(quiet)
    end(quiet, one)
    send(quiet)
    assert quiet.api("GET", "/pushes", q=f"run:{one}")["matched"] == 2
    assert quiet.api("GET", "/pushes", q="test:*retry*")["matched"] == 1
    assert quiet.api("GET", "/pushes", q="!test:*")["matched"] == 2
    assert quiet.api("GET", "/pushes", test="tests/test_retry.py::test_503[a b]")["matched"] == 1
    assert quiet.api("GET", "/stats", q="test:*retry*")["matched"] == 1
    assert quiet.api("GET", "/pushes", q="!run:*", fields="seq,run,test")["items"] == [
        {"seq": quiet.api("GET", "/status")["inbox"]["last_seq"], "run": None, "test": None}]
    verified = quiet.api("POST", "/verify", {
        "scope": f"run:{one}", "expect": [{"match": f"topic:{MINE}", "count": {"exactly": 2}}]})
    assert verified["passed"]


def test_rules_cannot_use_runs(quiet):
    answer = quiet.request("POST", "/api/v1/rules", {"when": {"q": "run:r1"}, "do": {"respond": {"status": 503}}})
    assert answer.status == 422 and "run is not available to rules" in answer.body.decode()


def test_parallel_tests_with_scopes_keep_their_pushes(quiet):
    one = start(quiet, name="parallel")
    mine = start_test(quiet, one, "mine", scope=f"topic:{MINE}")
    others = start_test(quiet, one, "others", scope=f"topic:{OTHERS}")
    send(quiet, MINE)
    send(quiet, OTHERS)
    end_test(quiet, one, mine)
    send(quiet, MINE)
    end_test(quiet, one, others)
    assert owners(quiet) == [(one, "mine"), (one, "others"), (one, None)]


def test_rules_of_a_scope_affect_only_its_pushes(quiet):
    added = quiet.request("POST", "/api/v1/rules", {**DOWN, "scope": f"topic:{MINE}"})
    assert added.status == 201 and (added.json["scope"], added.json["run"]) == (f"topic:{MINE}", None)
    assert (send(quiet, MINE), send(quiet, OTHERS)) == (503, 200)
    # A reset of the other suite leaves the rule, a reset of its own removes it.
    quiet.api("POST", "/reset", {"scope": f"topic:{OTHERS}"})
    assert (send(quiet, MINE), send(quiet, OTHERS)) == (503, 200)
    quiet.api("POST", "/reset", {"scope": f"topic:{MINE}"})
    assert send(quiet, MINE) == 200 and quiet.api("GET", "/rules")["total"] == 0


def test_profiles_of_two_scopes_are_active_at_the_same_time(quiet):
    def use(name, **members):
        return quiet.api("PUT", "/profile", {"name": name, **members})

    use("flaky-503?rate=1", scope=f"topic:{MINE}")
    bound = use("flaky-503?rate=1", scope=f"topic:{OTHERS}")
    assert bound["name"] == "healthy" and [one["scope"] for one in bound["bound"]] == [f"topic:{OTHERS}", f"topic:{MINE}"]
    assert (send(quiet, MINE), send(quiet, OTHERS)) == (503, 503)
    use("unregistered-410?rate=1", scope=f"topic:{MINE}")
    assert (send(quiet, MINE), send(quiet, OTHERS)) == (410, 503)
    quiet.api("DELETE", "/profile", scope=f"topic:{MINE}")
    assert (send(quiet, MINE), send(quiet, OTHERS)) == (200, 503)
    # Its rules are seen and removed as others.
    (rule,) = quiet.api("GET", "/rules")["items"]
    assert rule["profile"].startswith("flaky-503") and rule["name"].startswith("flaky-503-")
    quiet.api("POST", "/reset", {"rules": True})
    assert send(quiet, OTHERS) == 200


def test_rules_of_a_run_end_with_it(quiet):
    one, other = start(quiet, scope=f"topic:{MINE}"), start(quiet, scope=f"topic:{OTHERS}")
    quiet.api("POST", "/rules", {**DOWN, "run": one})
    quiet.api("PUT", "/profile", {"name": "unregistered-410?rate=1", "run": other})
    assert (send(quiet, MINE), send(quiet, OTHERS)) == (503, 410)
    end(quiet, one)
    assert (send(quiet, MINE), send(quiet, OTHERS)) == (200, 410)
    end(quiet, other)
    assert send(quiet, OTHERS) == 200 and quiet.api("GET", "/rules")["total"] == 0


def test_rules_of_a_run_without_scope_are_suspended_while_another_is_open(quiet):
    one = start(quiet)
    quiet.api("POST", "/rules", {**DOWN, "run": one})
    assert send(quiet) == 503
    other = start(quiet)
    assert send(quiet) == 200 and owners(quiet)[-1] == (None, None)
    end(quiet, other)
    assert send(quiet) == 503 and owners(quiet)[-1] == (one, None)
    end(quiet, one)
    assert send(quiet) == 200


def test_rules_of_a_run_apply_inside_a_run_that_contains_it(quiet):
    """The run of `exec` has a command, and is open as long as the program runs."""
    outer = start(quiet, command="apns-mock exec -- make test")
    inner = start(quiet)
    quiet.api("POST", "/rules", {**DOWN, "run": inner})
    assert send(quiet) == 503 and owners(quiet)[-1] == (inner, None)
    end(quiet, inner)
    assert send(quiet) == 200 and owners(quiet)[-1] == (outer, None)
    quiet.api("POST", "/rules", {**DOWN, "run": outer})
    assert send(quiet) == 503
    other = start(quiet)
    assert send(quiet) == 200
    end(quiet, other)
    end(quiet, outer)


def test_the_run_that_contains_others_stays_open(quiet):
    outer = start(quiet, command="apns-mock exec -- make test")
    many = [start(quiet) for _ in range(256)]
    states = {one["id"]: one["state"] for one in quiet.api("GET", "/runs", limit=1000)["items"]}
    assert (states[outer], states[many[0]], states[many[-1]]) == ("running", "interrupted", "running")
    quiet.api("POST", "/reset")


def test_rules_of_a_run_without_scope_do_not_meet_pushes_of_another(quiet):
    one = start(quiet)
    quiet.api("POST", "/rules", {**DOWN, "run": one})
    other = start(quiet, scope=f"topic:{OTHERS}")
    assert send(quiet, OTHERS) == 200 and owners(quiet)[-1] == (other, None)
    end(quiet, other)
    assert send(quiet, OTHERS) == 503


def test_the_scope_of_a_run_with_rules_does_not_change(quiet):
    one = start(quiet)
    quiet.api("POST", "/rules", {**DOWN, "run": one})
    refused = quiet.request("PATCH", f"/api/v1/runs/{one}", {"scope": f"topic:{MINE}"})
    assert refused.status == 409 and "bound" in refused.json["detail"]
    assert quiet.request("PATCH", f"/api/v1/runs/{one}", {"name": "suite"}).status == 200
    quiet.api("POST", "/reset", {"rules": True})
    assert quiet.request("PATCH", f"/api/v1/runs/{one}", {"scope": f"topic:{MINE}"}).status == 200


@pytest.mark.parametrize("method, path, body, words", [
    ("POST", "/rules", {**DOWN, "run": "r999"}, "open run"),
    ("POST", "/rules", {**DOWN, "scope": ""}, "scope"),
    ("POST", "/rules", {**DOWN, "scope": "status:503"}, "not available to rules"),
    ("POST", "/rules", {"at": "tls", "scope": "topic:x", "do": "close"}, "not available at tls"),
    ("PUT", "/profile", {"name": "flaky-503", "run": "r999"}, "open run"),
    ("PUT", "/profile", {"name": "flaky-503", "scope": "outcome:accepted"}, "not available to rules"),
    ("PUT", "/profile", {"name": "flaky-503", "scope": "topic:x", "seed": 7}, "all pushes"),
    ("PUT", "/profile", {"name": "half-open", "scope": "topic:x"}, "request or response"),
    ("DELETE", "/profile?scpe=x", None, "unknown parameter"),
])
def test_what_cannot_be_bound(quiet, method, path, body, words):
    answer = quiet.request(method, "/api/v1" + path, body)
    assert answer.status in (400, 422) and words in answer.body.decode(), answer.body
    assert quiet.api("GET", "/rules")["total"] == 0


def test_rules_of_a_scope_survive_a_restart_and_those_of_a_run_end(binary, certs, tmp_path):
    store = ("--store", f"sqlite:{tmp_path / 'inbox.db'}")
    server = Server(binary, certs, *store)
    one = start(server)
    server.api("POST", "/rules", {**DOWN, "scope": f"topic:{MINE}"})
    server.api("POST", "/rules", {"name": "of-run", "do": {"respond": {"status": 500}}, "run": one})
    server.api("PUT", "/profile", {"name": "unregistered-410?rate=1", "scope": f"topic:{OTHERS}"})
    stop_cleanly(server)
    server = Server(binary, certs, *store)
    assert (send(server, MINE), send(server, OTHERS)) == (503, 410)
    assert [one["scope"] for one in server.api("GET", "/profile")["bound"]] == [f"topic:{OTHERS}"]
    assert all(rule["run"] is None for rule in server.api("GET", "/rules")["items"])
    stop_cleanly(server)


def test_tests_of_the_same_name_have_their_own_pushes(quiet):
    one = start(quiet, name="suite")
    for count in (1, 2):
        number = start_test(quiet, one, "test_same")
        for _ in range(count):
            send(quiet)
        end_test(quiet, one, number, "failed" if count == 1 else "passed")
    end(quiet, one)
    result = report(quiet, one)
    assert [(test["number"], test["pushes"]) for test in result["tests"]] == [(1, 1), (2, 2)]
    assert [(failure["name"], failure["pushes"]) for failure in result["failures"]] == [("test_same", 1)]
    export = quiet.request("GET", "/api/v1/export", q=f"run:{one}").body
    lines = [json.loads(line) for line in export.splitlines()]
    assert [line["test_number"] for line in lines if "seq" in line] == [1, 2, 2]


def test_a_report_delays_nothing_and_many_are_refused(quiet):
    one = start(quiet, name="suite")
    send(quiet)
    end(quiet, one)
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = [pool.submit(quiet.request, "GET", f"/api/v1/runs/{one}/report") for _ in range(40)]
        health = [quiet.request("GET", "/readyz").status for _ in range(3)]
        statuses = {answer.result().status for answer in answers}
    assert health == [200] * 3 and statuses <= {200, 503} and 200 in statuses
    assert quiet.request("GET", f"/api/v1/runs/{one}/report", format="ndjson").body.count(b"\n") == 3


def test_parallel_tests_without_scopes_share_the_run(quiet):
    one = start(quiet, name="parallel")
    first, second = start_test(quiet, one, "first"), start_test(quiet, one, "second")
    send(quiet)
    end_test(quiet, one, first)
    send(quiet)
    end_test(quiet, one, second)
    assert owners(quiet) == [(one, None), (one, "second")]


def test_two_runs_at_the_same_time(quiet):
    one, other = start(quiet, name="one", scope=f"topic:{MINE}"), start(quiet, name="other", scope=f"topic:{OTHERS}")
    start_test(quiet, one, "a")
    start_test(quiet, other, "b")
    send(quiet, MINE)
    send(quiet, OTHERS)
    assert owners(quiet) == [(one, "a"), (other, "b")]
    third, fourth = start(quiet, name="third"), start(quiet, name="fourth")
    end(quiet, one), end(quiet, other)
    send(quiet)
    end(quiet, third)
    send(quiet)
    assert owners(quiet)[2:] == [(None, None), (fourth, None)]


def test_a_reset_keeps_the_pushes_of_the_report(quiet):
    one = start(quiet, name="suite")
    for name in ("test_a", "test_b"):
        number = start_test(quiet, one, name)
        quiet.api("POST", "/reset")
        quiet.api("POST", "/rules", DOWN)
        assert send(quiet) == 503
        end_test(quiet, one, number, "failed", message="expected an accepted push")
    end(quiet, one)
    assert quiet.api("GET", "/pushes")["matched"] == 1
    result = report(quiet, one)
    assert result["pushes"] == 2 and result["lost"]["count"] == 2
    assert [(failure["name"], failure["pushes"]) for failure in result["failures"]] == [("test_a", 1), ("test_b", 1)]
    assert [failure["nearest"][0]["response"] for failure in result["failures"]] == ["503 ServiceUnavailable"] * 2
    assert {finding["finding"] for finding in result["findings"]} >= {"abandoned"}
    assert result["outcome"] == "failed" and result["verdict"].startswith("2 of 2 tests failed; 2 pushes lost")


def test_a_comparison_says_what_is_new_and_fixed(quiet):
    device = new_device()
    runs = []
    for is_down in (False, True, False):
        one = start(quiet, name="suite")
        number = start_test(quiet, one, "test_delivery")
        quiet.api("POST", "/reset")
        if is_down:
            quiet.api("POST", "/rules", DOWN)
        send(quiet, device=device)
        end_test(quiet, one, number, "failed" if is_down else "passed")
        end(quiet, one)
        runs.append(one)
    worse = report(quiet, runs[1], baseline=runs[0])["baseline"]
    assert worse["tests"]["new"] == ["test_delivery"] and "abandoned" in worse["findings"]["new"]
    assert len(worse["lost"]["new"]) == 1 and worse["reasons"] == {"503 ServiceUnavailable": {"old": 0, "new": 1}}
    better = report(quiet, runs[2], baseline=runs[1])["baseline"]
    assert better["tests"]["fixed"] == ["test_delivery"] and len(better["lost"]["fixed"]) == 1
    text = quiet.request("GET", f"/api/v1/runs/{runs[1]}/report", format="markdown", baseline=runs[0]).body.decode()
    assert f"### Since {runs[0]}" in text and "failed tests: new 1: test\\_delivery" in text


def test_exports_and_imports_keep_runs(quiet, tmp_path):
    one = start(quiet, name="suite", labels={"commit": "ab12"})
    number = start_test(quiet, one, "test_a")
    send(quiet)
    end_test(quiet, one, number, "failed", message="why")
    send(quiet)
    end(quiet, one)
    export = quiet.request("GET", "/api/v1/export", q=f"run:{one}").body
    lines = [json.loads(line) for line in export.splitlines()]
    assert [line.get("test") for line in lines if "seq" in line] == ["test_a", None]
    quiet.api("POST", "/reset")
    send(quiet)
    quiet.request("POST", "/api/v1/import", export, headers={"content-type": "application/x-ndjson"})
    imported = quiet.api("GET", "/runs")["items"][0]
    shown = quiet.api("GET", f"/runs/{imported['id']}")
    assert shown["labels"] == {"commit": "ab12"} and shown["tests"][0]["message"] == "why"
    found = owners(quiet, q="run:*")
    assert found[-2:] == [(imported["id"], "test_a"), (imported["id"], None)]


def test_a_run_survives_a_restart_with_a_store(binary, certs, tmp_path):
    server = Server(binary, certs, "--store", f"sqlite:{tmp_path / 'inbox.db'}")
    one = start(server, name="suite")
    number = start_test(server, one, "test_a")
    send(server)
    end_test(server, one, number)
    start_test(server, one, "test_killed")
    send(server)
    stop_cleanly(server)
    server = Server(binary, certs, "--store", f"sqlite:{tmp_path / 'inbox.db'}")
    shown = server.api("GET", f"/runs/{one}")
    assert (shown["state"], shown["outcome"]) == ("interrupted", "interrupted")
    assert [test["outcome"] for test in shown["tests"]] == ["passed", "interrupted"]
    send(server)
    assert owners(server) == [(one, "test_a"), (one, "test_killed"), (None, None)]
    assert start(server, name="next") != one
    stop_cleanly(server)


def test_an_inbox_has_an_id_that_its_store_keeps(binary, certs, tmp_path):
    ids = []
    for store in (["--store", f"sqlite:{tmp_path / 'inbox.db'}"], ["--store", f"sqlite:{tmp_path / 'inbox.db'}"], []):
        server = Server(binary, certs, *store)
        ids.append(server.api("GET", "/status")["inbox"]["id"])
        stop_cleanly(server)
    assert ids[0] == ids[1] != ids[2] and all(len(id) == 8 for id in ids)


def test_a_changed_clock_is_noted_in_open_runs(quiet):
    one = start(quiet, name="suite")
    quiet.api("POST", "/clock/advance", {"by": "61m"})
    quiet.api("PUT", "/clock", {"mode": "real"})
    assert "advanced by 1h1m" in quiet.api("GET", f"/runs/{one}")["notes"][0]


def test_long_and_hostile_names_are_cut_and_kept_as_text(quiet):
    one = start(quiet, name="é" * 10_000, labels={f"l{number}": "v" * 5000 for number in range(80)})
    start_test(quiet, one, "<script>alert(1)</script>" + "x" * 10_000)
    shown = end(quiet, one)
    assert len(shown["name"].encode()) <= 1000 and shown["name"].endswith("…") and len(shown["labels"]) == 50
    assert shown["tests"][0]["name"].startswith("<script>") and len(shown["tests"][0]["name"].encode()) <= 1000
    text = quiet.request("GET", f"/api/v1/runs/{one}/report", format="markdown").body.decode()
    assert "<script>" not in text


def test_too_many_open_tests_are_interrupted(quiet):
    one = start(quiet, name="suite")
    for number in range(258):
        start_test(quiet, one, f"test_{number}")
    outcomes = [test["outcome"] for test in quiet.api("GET", f"/runs/{one}")["tests"]]
    assert outcomes[:3] == ["interrupted", "interrupted", None] and outcomes[3:] == [None] * 255


@pytest.mark.parametrize("method, path, body, words", [
    ("POST", "/runs", {"scope": "tpic:x"}, "unknown field"),
    ("POST", "/runs", {"scope": "finding:*"}, "not available"),
    ("POST", "/runs", {"scope": "run:r1"}, "not available"),
    ("POST", "/runs", {"nmae": "x"}, "Did you mean name"),
    ("POST", "/runs", {"outcome": "green"}, "passed, failed, skipped"),
    ("POST", "/runs", {"labels": {"a": [1]}}, "scalar"),
    ("POST", "/runs/r1/tests", {}, "lacks name"),
    ("PATCH", "/runs/r1/tests/1", {}, "lacks outcome"),
    ("GET", "/runs/{run}/report?format=pdf", None, "markdown"),
    ("GET", "/runs/{run}/report?bseline=r1", None, "unknown parameter"),
])
def test_invalid_requests(quiet, method, path, body, words):
    answer = quiet.request(method, "/api/v1" + path.replace("{run}", start(quiet)), body)
    assert answer.status == 400 and words in answer.body.decode()


@pytest.mark.parametrize("method, path, body", [
    ("GET", "/runs/r999", None), ("PATCH", "/runs/nothing", {}), ("POST", "/runs/r999/tests", {"name": "x"}),
    ("PATCH", "/runs/r999/tests/1", {"outcome": "passed"}), ("GET", "/runs/r999/report", None),
])
def test_unknown_runs(quiet, method, path, body):
    assert quiet.request(method, "/api/v1" + path, body).status == 404


def test_commands(quiet, binary, tmp_path):
    def command(*arguments):
        result = run(binary, "run", *arguments, "--admin", f"127.0.0.1:{quiet.admin_port}", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    one = command("start", "ci 4711", "--label", "suite=billing")
    send(quiet)
    assert command("end", one) == f"{one} passed"
    assert command("ls").splitlines()[0].split("\t")[0::4] == [one, "ci 4711"]
    assert "suite billing" in command("show", one)
    assert f"Since {one}" in command("compare", one, one)

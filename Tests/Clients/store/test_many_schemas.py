"""`apns-mock view 'postgres://…?schema=load_*'`: one read-only inbox over servers that share nothing but the database."""

import contextlib
import json
import secrets
import threading
import time

import pytest

from cli.test_view import Viewer
from support import stores
from support.postgres import ADMINISTRATOR, Postgres, PostgresInbox
from support.server import Server, clean_environment, run, wait_until
from support.wire import connect, push_headers


@contextlib.contextmanager
def servers(binary, certs, postgres, names, *flags):
    """Runs a server for each schema."""
    started = {}
    try:
        for name in names:
            started[name] = Server(binary, certs, "--store", PostgresInbox(postgres, name).url(), *flags)
        yield started
    finally:
        for one in started.values():
            one.kill()


@contextlib.contextmanager
def viewing(binary, folder, postgres, pattern):
    folder.mkdir(exist_ok=True)
    viewer = Viewer(binary, folder, postgres.url(schema=pattern))
    try:
        yield viewer
        assert viewer.process.poll() is None, viewer.log()
    finally:
        viewer.kill()


def push(server, device=None, body=stores.BODY, **changes):
    with connect(server) as wire:
        return wire.push(push_headers(server, device or secrets.token_hex(32), **changes), body)


def stored(viewer, count):
    """Waits until the servers have written this many pushes, and returns them, oldest first."""
    wait_until(lambda: viewer.api("GET", "/status")["inbox"]["records"] >= count, f"{count} pushes")
    return stores.everything(viewer)


@pytest.fixture(scope="module")
def prefix():
    return f"load{secrets.token_hex(4)}"


@pytest.fixture(scope="module")
def filled(binary, certs, postgres, prefix, tmp_path_factory):
    """Three servers, a view of them, and the device tokens in the order in which they were pushed to."""
    names = [f"{prefix}_{number}" for number in (1, 2, 3)]
    with servers(binary, certs, postgres, names) as started:
        order = []
        # Not in turn, so that the numbers of the servers differ.
        for index in [0, 0, 1, 2, 0, 1, 1, 1, 2, 0, 0, 0, 0, 2, 1]:
            device = secrets.token_hex(32)
            name = names[index]
            assert push(started[name], device, body=json.dumps({"aps": {"alert": f"From {name}"}}).encode()).status == 200
            order.append((name, device))
            time.sleep(0.003)
        with viewing(binary, tmp_path_factory.mktemp("view"), postgres, f"{prefix}_*") as viewer:
            stored(viewer, len(order))
            yield started, viewer, order


def test_pushes_are_in_the_order_of_arrival(filled):
    _, viewer, order = filled
    records = viewer.api("GET", "/pushes", limit=1000)
    assert [(one["server"], one["request"]["device_token"]) for one in records["items"]] == order
    assert records["matched"] == records["total"] == len(order) and records["complete"]
    names = [one["seq"] for one in records["items"]]
    assert names == [f"{one['server']}:{one['server_seq']}" for one in records["items"]] and len(set(names)) == len(names)
    newest = viewer.api("GET", "/pushes", limit=4, order="desc")["items"]
    assert [one["request"]["device_token"] for one in newest] == [device for _, device in order[:-5:-1]]


def test_each_server_numbers_its_pushes(filled):
    started, viewer, order = filled
    for record in viewer.pushes(limit=1000):
        assert record["server_seq"] == started[record["server"]].record(record["request"]["device_token"])["seq"]
        name = f"{record['server']}:{record['server_seq']}"
        assert viewer.api("GET", f"/pushes/{name}") == viewer.api("GET", f"/pushes/{record['seq']}") == record
        assert viewer.api("GET", f"/pushes/{record['apns']['id']}")["server_seq"] == record["server_seq"]
    for unknown in (f"{order[0][0]}:99999", "other:1", f"{order[0][0]}:", f"{order[0][0]}:1:2", ":1", f"{order[0][0]}:0", "1"):
        assert viewer.request("GET", f"/api/v1/pushes/{unknown}").status == 404


def test_pages_have_each_push_once(filled):
    _, viewer, order = filled
    for direction, cursor in (("asc", "after"), ("desc", "before")):
        found, query = [], {}
        while True:
            page = viewer.api("GET", "/pushes", limit=2, order=direction, fields="seq,request.device_token", **query)
            found += [one["request"]["device_token"] for one in page["items"]]
            if page["next"] is None:
                break
            query = {cursor: page["next"]}
        assert found == [device for _, device in order][::1 if direction == "asc" else -1]


def test_a_push_is_a_cursor(filled):
    _, viewer, order = filled
    names = [one["seq"] for one in viewer.pushes(limit=1000)]
    for index, name in enumerate(names):
        assert [one["seq"] for one in viewer.pushes(limit=1000, after=name)] == names[index + 1:]
        assert [one["seq"] for one in viewer.pushes(limit=1000, before=name)] == names[:index]
    assert [one["seq"] for one in viewer.pushes(limit=1000, q=f"after:{names[3]} before:{names[7]}")] == names[4:7]
    assert len(viewer.pushes(limit=1000, after=0)) == len(names)
    page = viewer.api("GET", "/pushes", limit=2, within="5s")
    assert page["next"] == names[1] and "last_seq" not in page
    # A number would be one of the view's own, which nobody knows.
    for query in ("after=3", "before=3", "seqs=3", "after=-1", "after=other:3", "before=load_1", f"after={order[0][0]}:99999", "seqs=1-3"):
        refused = viewer.request("GET", f"/api/v1/pushes?{query}")
        assert refused.status == 400 and "load_1:4711" in refused.json["hint"], (query, refused.body)


def test_a_verification_begins_after_a_push(filled):
    _, viewer, order = filled
    names = [one["seq"] for one in viewer.pushes(limit=1000)]
    for after, count in [(0, len(names)), (names[3], len(names) - 4), (names[-1], 0)]:
        body = {"after": after, "expect": [{"match": {}, "count": count}], "no_others": True}
        assert viewer.request("POST", "/api/v1/verify", body).json["passed"], after
    for after in (3, "3", -1, "other:3", "load_1", f"{order[0][0]}:99999", [names[3]], {}, True):
        refused = viewer.request("POST", "/api/v1/verify", {"after": after, "no_others": True})
        assert refused.status == 400 and b"load_1:4711" in refused.body and b"/after" in refused.body, (after, refused.body)


def test_a_wait_goes_on_after_a_push(filled):
    _, viewer, order = filled
    names = [one["seq"] for one in viewer.pushes(limit=1000)]
    result = viewer.api("GET", "/pushes/wait", count=3, after=names[-4], timeout="5s")
    assert result["satisfied"] and [one["seq"] for one in result["items"]] == names[-3:] and result["seq"] == names[-1]
    assert not viewer.api("GET", "/pushes/wait", after=result["seq"], timeout="300ms")["satisfied"]
    done = viewer.command("wait", "--after", names[-2], "--timeout", "5s")
    assert done.returncode == 0 and names[-1] in done.stdout, done
    done = viewer.command("ls", "--after", names[-3])
    assert done.returncode == 0 and names[-2] in done.stdout and names[-3] not in done.stdout, done


def test_no_number_of_the_view_is_shown(filled):
    """In what the API answers, each `seq` is that of a server, or names the server."""
    _, viewer, order = filled
    known = {one["seq"] for one in viewer.pushes(limit=1000)}

    def check(value, path):
        if isinstance(value, dict):
            for name, member in value.items():
                if name in ("seq", "next", "last_seq", "first_seq", "by"):
                    assert member is None or member in known, (path, name, member)
                if name in ("seqs", "evidence", "attempts"):
                    assert all(one in known for one in member), (path, name, member)
                check(member, f"{path}.{name}")
        elif isinstance(value, list):
            for one in value:
                check(one, path)

    device = order[0][1]
    name = viewer.pushes(device_token=device)[0]["seq"]
    for path in ("pushes?limit=3", "pushes?limit=3&order=desc", "pushes/seqs?sort=size", f"pushes/{name}", f"pushes/{name}/explain",
                 "pushes/wait?count=100&timeout=0s", "findings", "status", "stats"):
        check(viewer.request("GET", f"/api/v1/{path}").json, path)
    body = {"expect": [{"match": f"device_token:{device}", "count": 2}], "no_others": True}
    report = viewer.request("POST", "/api/v1/verify", body).json
    check(report, "verify")
    assert report["expectations"][0]["seqs"] == [name] and f"seq {order[-1][0]}:" in report["text"]


def test_queries_find_pushes_of_all_servers(filled):
    _, viewer, order = filled
    name, device = order[4]
    assert [one["server"] for one in viewer.pushes(device_token=device)] == [name]
    found = viewer.pushes(search=f'"from {name}"', limit=1000)
    assert {one["server"] for one in found} == {name} and len(found) == sum(one == name for one, _ in order)
    assert viewer.api("GET", "/pushes", status="200", limit=0)["matched"] == len(order)
    assert viewer.pushes(status="410") == []
    chosen = [one["seq"] for one in viewer.pushes(limit=1000)][3:6]
    assert [one["seq"] for one in viewer.pushes(seqs=",".join(reversed(chosen)))] == chosen
    order_of = viewer.api("GET", "/pushes/seqs", sort="device_token")["seqs"]
    tokens = {one["seq"]: one["request"]["device_token"] for one in viewer.pushes(limit=1000)}
    assert [tokens[seq] for seq in order_of] == sorted(tokens.values())


def test_statistics_and_counts_are_added_up(filled):
    started, viewer, order = filled
    total = sum(server.api("GET", "/status")["inbox"]["records"] for server in started.values())
    status = viewer.api("GET", "/status")
    assert status["inbox"]["records"] == total == len(order) and status["servers"] == sorted(started)
    statistics = viewer.api("GET", "/stats")
    assert statistics["status"]["counts"] == {"200": total}


def test_the_export_has_all_pushes_and_their_servers(filled, binary, tmp_path):
    _, viewer, order = filled
    lines = viewer.request("GET", "/api/v1/export").body.decode().splitlines()
    assert [(json.loads(line)["server"], json.loads(line)["request"]["device_token"]) for line in lines] == order
    (tmp_path / "all.ndjson").write_text("\n".join(lines))
    again = Viewer(binary, tmp_path, tmp_path / "all.ndjson")
    try:
        assert [one["request"]["device_token"] for one in again.pushes(limit=1000)] == [device for _, device in order]
    finally:
        again.kill()


def test_commands_show_the_server_of_a_push(filled):
    _, viewer, order = filled
    done = viewer.command("ls")
    assert done.returncode == 0 and f"{order[0][0]}:1" in done.stdout, done
    done = viewer.command("get", f"{order[0][0]}:1")
    assert done.returncode == 0 and order[0][1] in done.stdout, done


def test_a_view_is_read_only(filled):
    _, viewer, _ = filled
    refused = viewer.request("DELETE", "/api/v1/pushes", all="true")
    assert refused.status == 403 and "read only" in refused.json["detail"], refused.body


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
            loads = [threading.Thread(target=stores.load, args=(server, 1500)) for server in started.values()]
            for one in loads:
                one.start()
            seen, after = {}, 0
            while any(one.is_alive() for one in loads) or len(seen) < 4500:
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
            records = stored(viewer, 4500)
            assert len(seen) == 4500
            # The numbers that clients saw stay.
            assert {(one["server"], one["server_seq"]): one["seq"] for one in records} == seen
            times = [one["received_at"] for one in records]
            assert sum(one > other for one, other in zip(times, times[1:])) < 450, "far from the order of arrival"


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
            # As a server that changes its tables for a newer version.
            migration = threading.Thread(target=postgres.execute, args=(
                f'ALTER TABLE "{prefix}_2".push ADD COLUMN later text; SELECT pg_sleep(3)',))
            migration.start()
            wait_until(lambda: viewer.api("GET", "/status")["warnings"], "a warning")
            assert push(one, gone).status == 410
            wait_until(lambda: viewer.api("GET", "/findings")["total"], "the finding of the server that can be read")
            assert not viewer.api("GET", "/findings")["complete"]
            migration.join()
            assert push(two, gone).status == 410
            wait_until(lambda: viewer.api("GET", "/findings")["complete"], "it is complete")
            wait_until(lambda: {case["seq"] for item in viewer.api("GET", "/findings")["items"] if "410" in item["finding"]
                                for case in item["records"]} == {f"{prefix}_1:2", f"{prefix}_2:2"}, "the findings of both")


def test_a_view_goes_on_when_the_database_works_again(binary, certs, tmp_path):
    with Postgres() as database, servers(binary, certs, database, ["load_1", "load_2"]) as started:
        for server in started.values():
            push(server)
        with viewing(binary, tmp_path / "view", database, "load_*") as viewer:
            before = stored(viewer, 2)
            database.stop("immediate")
            wait_until(lambda: viewer.request("GET", "/readyz").status == 503, "it is not ready")
            assert viewer.request("GET", "/api/v1/pushes").status == 503
            assert viewer.request("GET", "/livez").status == 200
            database.start()
            wait_until(lambda: viewer.request("GET", "/readyz").status == 200, "it is ready")
            assert stores.everything(viewer) == before


def test_one_schema_keeps_its_numbers(filled, binary, postgres, tmp_path):
    started, _, order = filled
    name = order[0][0]
    with viewing(binary, tmp_path / "view", postgres, name) as viewer:
        records = viewer.pushes(limit=1000)
        assert [one["seq"] for one in records] == [one["seq"] for one in started[name].pushes(limit=1000)]
        assert "server" not in records[0]


# Bad input


def refused(binary, *arguments):
    done = run(binary, *arguments, environment=clean_environment())
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done
    return done.stderr


def test_a_pattern_that_matches_nothing(binary, postgres):
    message = refused(binary, "view", postgres.url(schema="nothing_*"), "--admin", "127.0.0.1:0")
    assert "no schema of an inbox matches nothing_*" in message and "schema=nothing_1" in message


def test_a_pattern_of_a_server(serve, postgres):
    message = serve("--store", postgres.url(schema="load_*"))
    assert "a server writes one schema" in message and "apns-mock view" in message


@pytest.mark.parametrize("pattern", ["Load_*", "load-*", 'load"*', "", "pg_*"])
def test_an_invalid_pattern(binary, postgres, pattern):
    message = refused(binary, "view", postgres.url(schema=pattern), "--admin", "127.0.0.1:0")
    assert "schema=NAME" in message


@pytest.mark.parametrize(("version", "says"), [(999, "newer version"), (2, "older version")])
def test_a_schema_of_another_version(binary, certs, postgres, tmp_path, version, says):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1"]) as started:
        push(started[f"{prefix}_1"])
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            stored(viewer, 1)
            # Noticed while the view runs: the other schema is still shown.
            postgres.execute(f'CREATE SCHEMA "{prefix}_2"')
            for table in ("contents", "push"):
                postgres.execute(f'CREATE TABLE "{prefix}_2".{table} (LIKE "{prefix}_1".{table} INCLUDING ALL)')
            postgres.execute(
                f'INSERT INTO "{prefix}_2".contents SELECT * FROM "{prefix}_1".contents; '
                f'UPDATE "{prefix}_2".contents SET version = {version}')
            wait_until(lambda: any(says in one for one in viewer.api("GET", "/status")["warnings"]), "a warning")
            assert len(stores.everything(viewer)) == 1 and viewer.logged(says)
        message = refused(binary, "view", postgres.url(schema=f"{prefix}_*"), "--admin", "127.0.0.1:0")
        assert f"{prefix}_2" in message and says in message


def test_a_schema_in_migration_is_left_out_until_it_is_ready(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1", f"{prefix}_2"]) as started:
        for server in started.values():
            push(server)
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            before = stored(viewer, 2)
            # As a server that changes its tables for a newer version.
            migration = threading.Thread(target=postgres.execute, args=(
                f'ALTER TABLE "{prefix}_2".push ADD COLUMN later text; SELECT pg_sleep(5)',))
            migration.start()
            wait_until(lambda: viewer.api("GET", "/status")["warnings"], "a warning")
            started_at = time.monotonic()
            assert [one["server"] for one in stores.everything(viewer)] == [f"{prefix}_1"]
            assert f"the schema {prefix}_2 are being changed" in viewer.api("GET", "/status")["warnings"][0]
            assert time.monotonic() - started_at < 3, "requests do not wait for the migration"
            assert not viewer.api("GET", "/pushes")["complete"]
            started_at = time.monotonic()
            for _ in range(8):
                viewer.api("GET", "/status")
            assert time.monotonic() - started_at < 1.5, "no request waits for a schema that is known to be locked"
            message = refused(binary, "view", postgres.url(schema=f"{prefix}_*"), "--admin", "127.0.0.1:0")
            assert "wait until its server is ready" in message
            migration.join()
            wait_until(lambda: not viewer.api("GET", "/status")["warnings"], "no warning")
            assert stores.everything(viewer) == before


def test_schemas_that_others_made_are_left_out(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1"]) as started:
        push(started[f"{prefix}_1"])
        postgres.execute(f'CREATE SCHEMA "{prefix}_empty"; CREATE SCHEMA "{prefix}_other"; CREATE TABLE "{prefix}_other".push (a int)')
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            stored(viewer, 1)
            assert viewer.api("GET", "/status")["servers"] == [f"{prefix}_1"]
        postgres.execute(f'CREATE TABLE "{prefix}_other".contents (a int)')
        message = refused(binary, "view", postgres.url(schema=f"{prefix}_*"), "--admin", "127.0.0.1:0")
        assert f"the schema {prefix}_other has tables of another program" in message


def copied(postgres, source, schema):
    """Creates a schema with the tables of another one, whatever its name."""
    quoted = '"' + schema.replace('"', '""') + '"'
    postgres.execute(f"CREATE SCHEMA {quoted}")
    for table in ("contents", "push", "connection", "provider_token", "check_list", "name"):
        postgres.execute(f'CREATE TABLE {quoted}.{table} (LIKE "{source}".{table} INCLUDING ALL)')
    postgres.execute(f'INSERT INTO {quoted}.contents SELECT * FROM "{source}".contents')
    return quoted


@pytest.mark.parametrize("name", ['x"', 'x".contents; DROP TABLE proof; --', "x:1", "X", "x\nready", "x-1"])
def test_a_schema_with_a_name_that_no_server_uses(binary, certs, postgres, tmp_path, name):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1"]) as started:
        push(started[f"{prefix}_1"])
        copied(postgres, f"{prefix}_1", f"{prefix}_{name}")
        # Neither when it starts nor later.
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            assert len(stored(viewer, 1)) == 1
            status = viewer.api("GET", "/status")
            assert status["servers"] == [f"{prefix}_1"] and "a name that no server uses" in status["warnings"][0]
            wait_until(lambda: "a name that no server uses" in viewer.log(), "a line in the log")
            assert viewer.api("GET", "/pushes")["complete"]


def test_a_schema_whose_tables_may_not_be_read(binary, certs, postgres, tmp_path):
    prefix = f"load{secrets.token_hex(4)}"
    names = [f"{prefix}_1", f"{prefix}_2"]
    postgres.execute(f"CREATE ROLE {prefix} LOGIN", user=ADMINISTRATOR)
    with servers(binary, certs, postgres, names) as started:
        for name in names:
            push(started[name])
            postgres.execute(f"GRANT USAGE ON SCHEMA {name} TO {prefix}; GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {prefix}")
        viewer = Viewer(binary, tmp_path, postgres.url(schema=f"{prefix}_*", user=prefix))
        try:
            before = stored(viewer, 2)
            assert viewer.api("GET", "/pushes")["complete"]
            for table in ("push", "contents", "name"):
                postgres.execute(f"REVOKE SELECT ON {names[1]}.{table} FROM {prefix}")
                wait_until(lambda: viewer.api("GET", "/status")["warnings"], "a warning")
                assert "GRANT USAGE ON SCHEMA and SELECT" in viewer.api("GET", "/status")["warnings"][0]
                # Its pushes are missing, whatever is asked for.
                for query in ({}, {"device_token": before[1]["request"]["device_token"]}, {"search": "absent"}, {"limit": 0}):
                    page = viewer.api("GET", "/pushes", **query)
                    assert not page["complete"] and {one["server"] for one in page["items"]} <= {names[0]}, (query, page)
                assert not viewer.api("GET", "/stats")["complete"]
                postgres.execute(f"GRANT SELECT ON {names[1]}.{table} TO {prefix}")
                wait_until(lambda: not viewer.api("GET", "/status")["warnings"], "no warning")
                assert viewer.api("GET", "/pushes")["complete"] and stores.everything(viewer) == before
        finally:
            viewer.kill()


def slow(postgres, schema, seconds):
    """Makes the database take this long for each row of a push that it reads."""
    postgres.execute(
        f"CREATE FUNCTION {schema}.slow() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep({seconds}); RETURN true; END $$;"
        f"ALTER TABLE {schema}.push ENABLE ROW LEVEL SECURITY; ALTER TABLE {schema}.push FORCE ROW LEVEL SECURITY;"
        f"CREATE POLICY slow ON {schema}.push USING ({schema}.slow())")


def responses(viewer, paths, count):
    """Sends requests at the same time; returns the list of their responses, which is filled later, and the threads."""
    found = []
    threads = [threading.Thread(target=lambda path=path: found.append(viewer.request("GET", path)), daemon=True)
               for path in paths for _ in range(count)]
    for one in threads:
        one.start()
    return found, threads


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
            slow(postgres, name, 0.4)
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            found, threads = responses(viewer, ["/api/v1/pushes"], 3)
            deadline = time.monotonic() + 40
            while any(one.is_alive() for one in threads):
                assert_is_alive(viewer)
                assert time.monotonic() < deadline
            assert [(one.status, len(one.json["items"])) for one in found] == [(200, 10)] * 3


def test_a_database_that_stops(binary, certs, tmp_path):
    """Requests that need it are answered 503, all others at once."""
    with Postgres() as database, servers(binary, certs, database, ["load_1", "load_2"]) as started:
        for server in started.values():
            push(server)
        with viewing(binary, tmp_path / "view", database, "load_*") as viewer:
            before = stored(viewer, 2)
            database.pause()
            try:
                paths = [f"/api/v1/{path}" for path in (
                    "pushes", "pushes/load_1:1", "pushes/wait?timeout=1s", "export", "stats", "findings")]
                found, threads = responses(viewer, paths, 8)
                deadline = time.monotonic() + 30
                while any(one.is_alive() for one in threads):
                    assert_is_alive(viewer)
                    assert time.monotonic() < deadline, "requests wait one after the other"
                    time.sleep(0.1)
                assert [one.status for one in found] == [503] * 48, found
                assert viewer.request("GET", "/readyz").status == 503
                assert "cannot be read" in viewer.api("GET", "/status")["warnings"][0] and viewer.logged("cannot be read")
            finally:
                database.resume()
            wait_until(lambda: viewer.request("GET", "/readyz").status == 200, "it is ready")
            wait_until(lambda: viewer.request("GET", "/api/v1/pushes").status == 200, "lists are answered")
            assert stores.everything(viewer) == before


def test_damaged_pushes_are_left_out(binary, certs, postgres, tmp_path):
    """Also by several requests at the same time that read them slowly, and by a search for a text that a damaged row lacks."""
    prefix = f"load{secrets.token_hex(4)}"
    name = f"{prefix}_1"
    with servers(binary, certs, postgres, [name]) as started:
        for _ in range(4):
            push(started[name])
        assert started[name].stop() == 0
        postgres.execute(f"UPDATE {name}.push SET payload = NULL WHERE seq = 2; UPDATE {name}.push SET headers = NULL WHERE seq = 3")
        slow(postgres, name, 0.3)
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            found, threads = responses(viewer, ["/api/v1/pushes"], 4)
            for one in threads:
                one.join(30)
            assert len(found) == 4, "requests wait for each other"
            for one in found:
                assert not one.json["complete"] and [item["server_seq"] for item in one.json["items"]] == [1, 4]
            postgres.execute(f"ALTER TABLE {name}.push DISABLE ROW LEVEL SECURITY")
            for text in ("absent", "hello"):
                assert not viewer.api("GET", "/pushes", search=text)["complete"], text
            assert viewer.api("GET", f"/pushes/{name}:4")["server_seq"] == 4
            assert viewer.request("GET", f"/api/v1/pushes/{name}:2").status == 503


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


def test_a_view_of_schemas_has_no_limit_of_memory(binary, postgres):
    message = refused(binary, "view", postgres.url(schema="load_*"), "--admin", "127.0.0.1:0", "--max-bytes", "1MiB")
    assert "--max-bytes" in message and "omit it with a URL" in message


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

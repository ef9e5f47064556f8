"""Views of schemas that are missing, of other programs or versions, being changed, or damaged."""

import contextlib
import http.client
import secrets

import pytest

from cli.test_view import Viewer
from support import stores
from support.many_schemas import changing_tables, push, responses, servers, slow, stored, viewing
from support.postgres import ADMINISTRATOR
from support.selection import some
from support.server import clean_environment, run, wait_until


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


@pytest.mark.parametrize("pattern", ["Load_*", "load-*", 'load"*', "", "pg_*", "load_%", "load_?", "load_1,load_2", "l" * 64])
def test_an_invalid_pattern(binary, postgres, pattern):
    message = refused(binary, "view", postgres.url(schema=pattern), "--admin", "127.0.0.1:0")
    assert "schema=NAME" in message


def test_two_schemas_in_a_url(binary, serve, postgres):
    """Not one of them without a word."""
    url = postgres.url(schema="load_1") + "&schema=load_2"
    assert "expected schema only once" in refused(binary, "view", url, "--admin", "127.0.0.1:0")
    assert "expected schema only once" in serve("--store", url)


@pytest.mark.parametrize(("url", "says"), [
    ("sqlite:inbox.db", "start a server with --store sqlite:inbox.db"), ("postgres:/db/inbox?schema=load_*", "expected postgres://"),
    ("postgresql:inbox", "expected postgres://"),
])
def test_other_urls(binary, url, says):
    assert says in refused(binary, "view", url, "--admin", "127.0.0.1:0")


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
            # No request waits until it ends.
            with changing_tables(postgres, f"{prefix}_2"):
                wait_until(lambda: viewer.api("GET", "/status")["warnings"], "a warning")
                assert [one["server"] for one in stores.everything(viewer)] == [f"{prefix}_1"]
                assert f"the schema {prefix}_2 are being changed" in viewer.api("GET", "/status")["warnings"][0]
                assert not viewer.api("GET", "/pushes")["complete"]
                message = refused(binary, "view", postgres.url(schema=f"{prefix}_*"), "--admin", "127.0.0.1:0")
                assert "wait until its server is ready" in message
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


HUGE, LOW = 2**63 - 1, -2**63

#: What others can have made of a schema, in which `S` is its name, with a part of the sentence about it.
DAMAGES = [
    (f"UPDATE S.contents SET last_seq = {HUGE}", "last_seq is out of range"),
    ("UPDATE S.contents SET last_seq = -5", "last_seq is out of range"),
    (f"UPDATE S.contents SET last_seq = {LOW}, count = {LOW}", "last_seq is out of range"),
    ("UPDATE S.contents SET last_seq = 4503599627370495", "last_seq is out of range"),
    (f"UPDATE S.contents SET count = {HUGE}", "count is out of range"),
    (f"UPDATE S.contents SET evicted = {HUGE}, last_evicted = {HUGE}", "evicted is out of range"),
    ("UPDATE S.contents SET emptied_through = last_seq + 1", "emptied_through is out of range"),
    ("ALTER TABLE S.contents ALTER count DROP NOT NULL; UPDATE S.contents SET count = NULL", "count is missing"),
    (f"UPDATE S.push SET seq = {HUGE} WHERE seq = 1", "seq is out of range"),
    ("DELETE FROM S.contents", "0 rows in place of one"),
    ("INSERT INTO S.contents SELECT * FROM S.contents", "2 rows in place of one"),
    ("ALTER TABLE S.contents ALTER count TYPE text", "tables of another program"),
    ("ALTER TABLE S.contents ALTER last_seq TYPE numeric", "tables of another program"),
    ("DROP VIEW S.pushes; ALTER TABLE S.push DROP COLUMN topic", "tables of another program"),
    ("ALTER TABLE S.connection RENAME TO connections", "tables of another program"),
    ("DROP TABLE S.state", "tables of another program"),
]


@pytest.mark.parametrize(("sql", "says"), some(DAMAGES, 8), ids=lambda value: value[:40])
def test_a_damaged_schema_is_left_out(binary, view_of_two, postgres, sql, says):
    """A view neither crashes nor shows wrong numbers because of one schema, and shows the others."""
    viewer, one, two, before = view_of_two
    postgres.execute(sql.replace("S.", f"{two}."))
    wait_until(lambda: viewer.api("GET", "/status")["warnings"], "a warning")
    (warning,) = viewer.api("GET", "/status")["warnings"]
    assert two in warning and says in warning, warning
    page = viewer.api("GET", "/pushes")
    assert not page["complete"] and page["items"] == before
    assert viewer.request("GET", "/readyz").status == 200 and viewer.process.poll() is None
    message = refused(binary, "view", postgres.url(schema=f"{one[:-1]}*"), "--admin", "127.0.0.1:0")
    assert two in message and says in message


@pytest.mark.parametrize("sql", some([
    f"UPDATE S.push SET seq = {LOW} WHERE seq = 1", "UPDATE S.push SET received_at = NULL",
    f"UPDATE S.push SET received_at = {HUGE}", f"UPDATE S.push SET received_at = {LOW}", f"UPDATE S.block SET first_seq = {HUGE}",
    f"UPDATE S.block SET first_seq = {LOW}", "DROP TABLE S.epoch",
], 4), ids=lambda value: value[:40])
def test_a_view_of_damaged_rows_goes_on(view_of_two, postgres, sql):
    viewer, one, two, before = view_of_two
    postgres.execute(sql.replace("S.", f"{two}."))
    for path in ("pushes", "pushes?order=desc", "pushes?since=-1h", f"pushes?device_token={'ab' * 32}", f"pushes?after={two}:1", "stats", "findings",
                 "export", "pushes/seqs?sort=latency", "pushes?search=hello", f"pushes/{two}:1", "pushes/wait?timeout=0s"):
        # An export that fails has no end.
        with contextlib.suppress(http.client.IncompleteRead):
            assert viewer.request("GET", f"/api/v1/{path}").status in (200, 400, 404, 503), path
        assert viewer.process.poll() is None, viewer.log()
    assert before[0] in viewer.api("GET", "/pushes")["items"]


@pytest.fixture
def view_of_two(binary, certs, postgres, tmp_path):
    """A view of two schemas, the names of these, and the pushes of the first one."""
    prefix = f"load{secrets.token_hex(4)}"
    one, two = f"{prefix}_1", f"{prefix}_2"
    with servers(binary, certs, postgres, [one, two]) as started:
        for server in started.values():
            for _ in range(2):
                push(server)
            assert server.stop() == 0
    with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
        yield viewer, one, two, [record for record in stored(viewer, 4) if record["server"] == one]


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


def test_a_view_of_schemas_has_no_limit_of_memory(binary, postgres):
    message = refused(binary, "view", postgres.url(schema="load_*"), "--admin", "127.0.0.1:0", "--max-bytes", "1MiB")
    assert "--max-bytes" in message and "omit it with a URL" in message


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

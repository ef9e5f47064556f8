"""Databases and URLs that a server refuses: one sentence that names the repair, exit code 2, and the database unchanged; and
URLs that it uses.
"""

import concurrent.futures
import contextlib
import os
import re
import shutil
import socket
import socketserver
import struct
import subprocess
import threading
import urllib.parse

import pytest

from support import stores
from support.postgres import ADMINISTRATOR, GUARDED, PASSWORD, disposable
from support.refusals import refusal, run_serve
from support.server import Server, wait_until
from support.wire import connect, push_headers


def push_once(server):
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ab" * 32)).status == 200


def assert_no_secret(text):
    for secret in (PASSWORD, urllib.parse.quote(PASSWORD, safe=""), urllib.parse.quote(PASSWORD)):
        assert secret not in text


# Invalid URLs


@pytest.mark.parametrize(("value", "says"), [
    ("postgre://localhost/inbox", "postgres://"), ("postgres:/inbox", "postgres://"), ("postgres:inbox", "postgres://"),
    ("postgres", "postgres://"), ("pg://localhost/inbox", "postgres://"), ("Postgres://localhost/inbox", "postgres://"),
    ("postgres://localhost/inbox?schem=mine", "schem"), ("postgres://localhost/inbox?memory=5", "memory"),
    ("postgres://localhost/inbox?memory_records=0", "memory_records"),
    ("postgres://localhost/inbox?memory_records=many", "memory_records"),
    ("postgres://localhost/inbox?memory_records=", "memory_records"), ("postgres://localhost/inbox?schema=", "schema"),
    ("postgres://localhost:port/inbox", "port"), ("postgres://localhost:99999/inbox", "port"),
    ("postgres://local%zzhost/inbox", "%"), ("postgres://localhost/inbox?schema=%00", "schema"),
    ("postgres://[::1/inbox", "]"), (f"postgres://localhost/inbox?schema={'x' * 64}", "schema"),
    ("postgres://localhost/inbox?schema=pg_mine", "schema"), ("postgres://localhost/inbox?schema=Mixed%20Case", "schema"),
    ("postgres://localhost/inbox?schema=quo%22te", "schema"), ("postgres://localhost/inbox?schema=a%3Bb", "schema"),
])
def test_an_invalid_url(serve, value, says):
    message = serve("--store", value)
    assert "--store" in message and says in message.replace(f'"{value}"', ""), message


@pytest.mark.parametrize("url", [
    "postgres://me:{}@localhost/inbox?schem=mine", "postgres://me:{}@localhost/inbox?schema=Mine",
    "postgres://localhost/inbox?memory_records=0&password={}", "postgre://me:{}@localhost/inbox", "postgres:me:{}@localhost/inbox",
])
def test_a_misspelled_url_with_a_password_does_not_repeat_it(serve, url):
    message = serve("--store", url.format(urllib.parse.quote(PASSWORD, safe="")))
    assert_no_secret(message)
    assert "localhost/inbox" in message or "schem" in message, message


@pytest.mark.parametrize("url", [
    "postgres://me:Pw%Secret1@localhost/inbox", "postgres://localhost/inbox?user=me&password=Pw%Secret1",
    "postgres://me:Pw%00Secret1@localhost/inbox", "postgres://me:Pw@Secret1@localhost/inbox",
    "postgres://me:Pw/Secret1@localhost/inbox", "postgres://me:Pw?Secret1@localhost/inbox",
])
def test_a_password_with_unescaped_characters(serve, url):
    message = serve("--store", url)
    assert "Secret1" not in message and "Pw" not in message and "%25, %40, %2F and %3F" in message, message


@pytest.mark.parametrize("parameter", ["sslmode=requir", "service=none"])
def test_an_invalid_value_of_a_parameter_of_libpq(serve, parameter):
    assert_helpful(serve("--store", f"postgres://localhost/inbox?{parameter}"), parameter.split("=")[1], "the URL has the form")


# Databases that cannot be used


def assert_helpful(message, *says):
    """The sentence has these words and names the repair, and no password."""
    assert all(words in message for words in says), message
    assert re.search(r": (check|choose|correct|create|drop|set|start|the URL|update|use)\b", message), message
    assert_no_secret(message)


def test_an_address_without_a_listener(serve):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        assert_helpful(serve("--store", f"postgres://me@127.0.0.1:{port}/inbox"), "127.0.0.1", str(port))


def test_a_folder_without_a_socket(serve, tmp_path):
    assert_helpful(serve("--store", f"postgres:///inbox?host={tmp_path}"), str(tmp_path))


def test_an_unknown_host(serve):
    assert_helpful(serve("--store", "postgres://me@nowhere.invalid/inbox"), "nowhere.invalid")


def test_a_host_that_does_not_answer(serve):
    """The start of a server must not wait forever."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        assert_helpful(serve("--store", f"postgres://me@127.0.0.1:{silent.getsockname()[1]}/inbox"), "127.0.0.1")


def test_a_wrong_password(serve, postgres):
    assert_helpful(serve("--store", postgres.url(user=GUARDED, password="wrong-" + PASSWORD)), "password", GUARDED)


def test_a_missing_password(serve, postgres):
    assert_helpful(serve("--store", postgres.url(user=GUARDED)), "password")


def test_an_unknown_user(serve, postgres):
    assert_helpful(serve("--store", postgres.url(user="no_such_user")), "no_such_user")


def test_a_missing_database(serve, postgres):
    assert_helpful(serve("--store", postgres.url(database="no_such_database")), "no_such_database", "create")


def test_a_database_that_the_user_may_not_use(serve, postgres):
    postgres.execute("CREATE DATABASE closed TEMPLATE template0", user=ADMINISTRATOR)
    postgres.execute("REVOKE CONNECT ON DATABASE closed FROM PUBLIC", user=ADMINISTRATOR)
    assert_helpful(serve("--store", postgres.url(database="closed")), "permission denied", "rights")


def test_a_database_that_can_only_be_read(serve, inbox):
    assert_helpful(serve("--store", inbox.url(options="-c default_transaction_read_only=on")), "read-only", "primary")


def test_a_database_without_free_connections(serve, postgres):
    postgres.execute("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0", user=ADMINISTRATOR)
    assert_helpful(serve("--store", postgres.url(user="crowded")), "too many connections", "max_connections")


def test_a_database_with_another_encoding(serve, postgres):
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' OWNER apns_mock", user=ADMINISTRATOR)
    assert_helpful(serve("--store", postgres.url(database="latin")), "LATIN1", "create one with createdb --encoding UTF8")


class OldPostgres(socketserver.BaseRequestHandler):
    """Answers a client as PostgreSQL 13 does, with success to each command."""

    def handle(self):
        for number in iter(self.begin, 196608):  # requests for encryption, until one for version 3 of the protocol
            assert number in (80877103, 80877104)
            self.request.sendall(b"N")
        self.send(b"R", struct.pack("!I", 0))
        self.send(b"S", b"server_version\x0013.22\x00")
        self.send(b"Z", b"I")
        while kind := self.request.recv(1):
            if b"SHOW transaction_read_only" in self.body():
                self.send(b"T", struct.pack("!h5sihihih", 1, b"name\x00", 0, 0, 25, -1, -1, 0))
                self.send(b"D", struct.pack("!hi3s", 1, 3, b"off"))
            if kind in b"QS":  # a simple query, or the end of others
                self.send(b"C", b"SET\x00")
                self.send(b"Z", b"I")

    def begin(self):
        return struct.unpack("!I", self.body()[:4])[0]

    def body(self):
        return self.request.recv(struct.unpack("!I", self.request.recv(4, socket.MSG_WAITALL))[0] - 4, socket.MSG_WAITALL)

    def send(self, kind, body):
        self.request.sendall(kind + struct.pack("!I", len(body) + 4) + body)


def test_an_old_postgresql(serve):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), OldPostgres) as old:
        threading.Thread(target=old.serve_forever, daemon=True).start()
        try:
            assert_helpful(serve("--store", f"postgres://me@127.0.0.1:{old.server_address[1]}/inbox"), "PostgreSQL 13 is too old")
        finally:
            old.shutdown()


def test_a_machine_without_libpq(binary, certs, tmp_path, inbox):
    """The program runs without this library, and says what is missing when it is needed."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ldconfig"):
        pytest.skip("hiding a library is for root on Linux")
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    (library,) = re.findall(r"libpq\.so\.5 .*=> (/\S+)", listed)
    hidden = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', library]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounting is for root, and not even for root everywhere")
    done = run_serve(binary, certs, tmp_path, *stores.flags(inbox), prefix=hidden)
    assert "libpq" in refusal(done) and "apt-get install libpq5" in refusal(done)


def test_a_schema_that_the_user_may_not_create(serve, postgres):
    postgres.execute("CREATE ROLE reader LOGIN", user=ADMINISTRATOR)
    postgres.execute("REVOKE CREATE ON DATABASE inbox FROM reader", user=ADMINISTRATOR)
    message = serve("--store", postgres.url(user="reader", schema="not_allowed"))
    assert_helpful(message, "permission denied", "rights")


def test_a_schema_of_another_user(serve, start, inbox, postgres):
    push_once(start(*stores.flags(inbox)))
    assert_helpful(serve("--store", postgres.url(user=GUARDED, password=PASSWORD, schema=inbox.schema)), inbox.schema)


# Schemas that cannot be used


@pytest.fixture
def refused(serve, inbox):
    """`refused(*says)`: the schema is refused and does not change."""
    def dump():
        tables = inbox.postgres.rows(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = ? ORDER BY 1", inbox.schema)
        columns = inbox.postgres.rows(
            "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = ? "
            "ORDER BY table_name, ordinal_position", inbox.schema)
        content = [inbox.execute(f"SELECT * FROM {table['table_name']} ORDER BY 1") for table in tables]
        objects = inbox.postgres.rows(
            "SELECT relname, relkind FROM pg_class WHERE relnamespace = ?::regnamespace ORDER BY relname", inbox.schema)
        return tables, columns, content, objects

    def check(*says):
        before = dump()
        assert_helpful(serve(*stores.flags(inbox)), inbox.schema, *says)
        assert dump() == before

    return check


@pytest.mark.parametrize("tables", [
    "CREATE TABLE push (id integer); INSERT INTO push VALUES (1)",
    "CREATE TABLE push (id integer); CREATE TABLE contents (id integer); INSERT INTO contents VALUES (1)",
    "CREATE TABLE push (id integer, outcome text, received_at bigint); CREATE TABLE contents (version integer); "
    "INSERT INTO contents VALUES (1)",
    "CREATE VIEW pushes AS SELECT 1 AS seq", "CREATE VIEW push AS SELECT 1 AS seq",
    "CREATE TABLE contents (version text); INSERT INTO contents VALUES ('one')",
], ids=["push", "both", "same columns", "pushes", "view", "contents"])
def test_a_schema_of_another_program(inbox, refused, tables):
    inbox.postgres.execute(f"CREATE SCHEMA {inbox.schema}")
    inbox.execute(tables)
    refused("another program")


def test_a_schema_of_a_newer_version(start, inbox, refused):
    server = start(*stores.flags(inbox))
    push_once(server)
    assert server.stop() == 0
    inbox.execute("UPDATE contents SET version = 99")
    refused("newer version", "99")


# The tables of version 4, to which several servers wrote.
TO_FOURTH_VERSION = """
    DROP TABLE epoch; DROP TABLE block; DROP INDEX push_pending; ALTER TABLE push ADD COLUMN server integer NOT NULL DEFAULT 1;
    CREATE INDEX push_pending ON push (server) WHERE outcome = 'pending';
    ALTER TABLE contents DROP COLUMN reserved_seq, DROP COLUMN last_batch,
      ADD COLUMN last_message bigint NOT NULL DEFAULT 7, ADD COLUMN removed_through bigint NOT NULL DEFAULT 0;
    CREATE TABLE server (id serial PRIMARY KEY, durable text); CREATE TABLE message (number bigint PRIMARY KEY, body text);
    INSERT INTO server (durable) VALUES ('soon'); INSERT INTO message VALUES (7, 'x'); UPDATE contents SET version = 4
"""


def test_a_schema_of_an_older_version_is_changed(start, inbox):
    first = start(*stores.flags(inbox))
    for _ in range(3):
        push_once(first)
    before = stores.everything(first)
    assert first.stop() == 0
    inbox.execute(TO_FOURTH_VERSION)
    second = start(*stores.flags(inbox))
    assert inbox.execute("SELECT version FROM contents") == "7"
    assert second.logged("changing the tables")
    assert [record["apns"] for record in stores.everything(second)] == [record["apns"] for record in before]
    push_once(second)
    assert stores.seqs(second) == [1, 2, 3, 4]
    assert len(second.pushes(since="-1h")) == 4, "their times are known"


def test_a_schema_of_a_version_that_was_not_released(start, inbox, refused):
    server = start(*stores.flags(inbox))
    push_once(server)
    assert server.stop() == 0
    inbox.execute("UPDATE contents SET version = 3")
    refused("format 3", "not released")


def test_an_empty_schema_is_used(start, inbox):
    inbox.postgres.execute(f"CREATE SCHEMA {inbox.schema}")
    push_once(start(*stores.flags(inbox)))
    wait_until(lambda: len(stores.pushes_view(inbox)) == 1, "the push is written")


def test_a_schema_with_tables_of_other_names_is_used(start, inbox):
    """Such as `public`, which people use for everything."""
    inbox.postgres.execute(f"CREATE SCHEMA {inbox.schema}")
    inbox.execute("CREATE TABLE bookmarks (url text); INSERT INTO bookmarks VALUES ('https://example.com')")
    push_once(start(*stores.flags(inbox)))
    wait_until(lambda: len(stores.pushes_view(inbox)) == 1, "the push is written")
    assert inbox.execute("SELECT url FROM bookmarks") == "https://example.com"


# Valid URLs


def test_a_url_with_host_and_port(start, postgres):
    server = start("--store", postgres.url(tcp=True, schema="by_address"))
    push_once(server)
    assert stores.seqs(server) == [1]


def test_a_password_is_used_and_shown_nowhere(start, postgres):
    server = start("--store", postgres.url(tcp=True, user=GUARDED, password=PASSWORD, schema="guarded"))
    push_once(server)
    status = server.request("GET", "/api/v1/status").body.decode()
    place = stores.status(server)["store"]["place"]
    assert place.startswith("postgres") and GUARDED in place and "guarded" in place and f"127.0.0.1:{postgres.port}" in place
    for text in (status, server.log(), server.output(), server.request("GET", "/metrics").body.decode()):
        assert_no_secret(text)


def test_a_password_in_a_parameter_is_shown_nowhere(start, postgres):
    server = start("--store", postgres.url(tcp=True, user=GUARDED, password=None, schema="guarded_too") + (
        "&password=" + urllib.parse.quote(PASSWORD, safe="")))
    push_once(server)
    for text in (server.request("GET", "/api/v1/status").body.decode(), server.log(), server.output()):
        assert_no_secret(text)


def test_the_other_scheme(start, inbox):
    server = start("--store", inbox.url().replace("postgres://", "postgresql://"))
    push_once(server)
    wait_until(lambda: len(stores.pushes_view(inbox)) == 1, "the push is written")


def test_the_default_schema(start, postgres):
    push_once(start("--store", postgres.url(tcp=True)))
    wait_until(lambda: postgres.execute("SELECT count(*) FROM apns_mock.pushes") == "1", "the push is written")


@pytest.mark.parametrize("schema", ["select", "with_1_digit", "_", "x" * 63])
def test_a_schema_with_an_unusual_name(start, postgres, schema):
    server = start("--store", postgres.url(schema=schema, memory_records=1))
    push_once(server)
    quoted = '"' + schema.replace('"', '""') + '"'
    wait_until(lambda: postgres.execute(f"SELECT count(*) FROM {quoted}.pushes") == "1", "the push is written")
    assert server.stop() == 0
    assert stores.seqs(start("--store", postgres.url(schema=schema, memory_records=1))) == [1]


def test_parameters_of_libpq(start, inbox):
    parameters = {"application_name": "team inbox", "connect_timeout": 5, "options": "-c statement_timeout=60000"}
    push_once(start("--store", inbox.url(**parameters)))
    wait_until(lambda: len(stores.pushes_view(inbox)) == 1, "the push is written")
    assert inbox.postgres.execute("SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'team inbox'") == "t"


def test_settings_of_the_database_that_lose_commits_are_reported(start, postgres):
    options = "-c synchronous_commit=off"
    unsafe = start("--store", postgres.new_inbox().url(options=options), "--durable", "answer")
    assert unsafe.logged("synchronous_commit = off")
    soon = start("--store", postgres.new_inbox().url(options=options))
    safe = start("--store", postgres.new_inbox().url(), "--durable", "answer")
    for server in (soon, safe):
        push_once(server)
        assert "synchronous_commit" not in server.log()


def test_the_settings_by_variables(start, inbox):
    server = start(environment={"APNS_MOCK_STORE": inbox.url(), "APNS_MOCK_DURABLE": "answer",
                                "APNS_MOCK_STORE_FAILURE": "drop", "APNS_MOCK_RETAIN": "2d"})
    push_once(server)
    store = stores.status(server)["store"]
    assert (store["durable"], store["on_failure"]) == ("answer", "drop") and store["retain_ms"] == 172_800_000
    assert store["records_written"] == 1 == len(stores.pushes_view(inbox))


def test_the_settings_in_a_file(start, inbox, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(f"store: {inbox.url(memory_records=2)}\ndurable: answer\nmax_records: 3\n")
    server = start("--config", config)
    for _ in range(5):
        push_once(server)
    wait_until(lambda: stores.seqs(server) == [3, 4, 5], lambda: stores.seqs(server), 10)


# Several servers that start


def test_servers_that_start_at_the_same_time(binary, certs, inbox):
    """One of them creates the schema, and the others are standbys."""
    running = []
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running += list(pool.map(lambda _: Server(binary, certs, *stores.flags(inbox), role=None), range(4)))
        wait_until(lambda: sorted(one.request("GET", "/readyz").json["status"] for one in running)
                   == ["ready", "standby", "standby", "standby"], "one is active")
        (active,) = (one for one in running if one.request("GET", "/readyz").status == 200)
        push_once(active)
        for server in running:
            assert server.stop() == 0
    finally:
        for server in running:
            server.kill()


# Locks


def test_a_user_who_may_not_lock(serve):
    postgres = disposable()
    function = "FUNCTION pg_try_advisory_lock(int, int)"
    postgres.execute(f"REVOKE EXECUTE ON {function} FROM PUBLIC", user=ADMINISTRATOR)
    try:
        assert_helpful(serve(*stores.flags(postgres.new_inbox())), "pg_try_advisory_lock", "rights")
    finally:
        postgres.execute(f"GRANT EXECUTE ON {function} TO PUBLIC", user=ADMINISTRATOR)


class Pooler(socketserver.BaseRequestHandler):
    """Forwards a connection, and sends the client an invented id of the database process, as poolers do."""

    def handle(self):
        with socket.create_connection(("127.0.0.1", self.server.database)) as far:
            def answer():
                while data := far.recv(1 << 16):
                    start = data.find(b"K\x00\x00\x00\x0c")
                    self.request.sendall(data if start < 0 else data[:start + 5] + bytes(4) + data[start + 9:])

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            with contextlib.suppress(OSError):
                while data := self.request.recv(1 << 16):
                    far.sendall(data)
            far.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def test_a_pooler(serve, inbox):
    """It may give the session with the lock to another client."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Pooler) as pooler:
        pooler.database = inbox.postgres.port
        threading.Thread(target=pooler.serve_forever, daemon=True).start()
        url = inbox.postgres.url(tcp=True, schema=inbox.schema).replace(
            f":{inbox.postgres.port}/", f":{pooler.server_address[1]}/")
        message = serve("--store", url)
        pooler.shutdown()
    assert "pooler" in message and "PostgreSQL itself" in message, message

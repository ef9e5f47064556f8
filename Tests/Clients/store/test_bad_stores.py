"""Files and settings that a server refuses: one sentence that names the repair, exit code 2, and the file unchanged."""

import os
import re
import shutil
import sqlite3
import subprocess

import pytest

from support import stores
from support.server import Server, clean_environment, privilege_drop, wait_until
from support.wire import connect, push_headers

USAGE = 2


def run_serve(binary, certs, folder, *flags):
    """Runs `serve` as an ordinary user until it ends. It must not become ready. `folder`: a temporary one."""
    ports, log = folder / "ports.json", folder / "log"
    with open(log, "wb") as stderr, subprocess.Popen(
        [*privilege_drop(), str(binary), "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", str(certs),
         "--port-file", str(ports), *map(str, flags)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, env=clean_environment(),
            cwd=folder) as process:
        try:
            wait_until(lambda: process.poll() is not None or ports.exists(), "the program neither ends nor is ready", 20)
            assert not ports.exists(), f"the server has started:\n{log.read_text()}"
        finally:
            process.kill()
        output = process.communicate(timeout=20)[0]
    return subprocess.CompletedProcess(process.args, process.returncode, output, log.read_text())


def refusal(done):
    """Returns the sentence with which the program refused its settings."""
    assert done.returncode == USAGE, (done.returncode, done.stderr[-2000:])
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    assert "Fatal" not in done.stderr and done.stdout == ""
    return lines[0]


def names_repair(message):
    """Returns whether the sentence names a repair."""
    return re.search(r": (stop|choose|use|the folder must|.*(remove|free|move|restore))", message) is not None


@pytest.fixture(scope="module")
def filled(binary, certs, tmp_path_factory):
    """A file with 300 pushes, as an orderly end leaves it."""
    path = tmp_path_factory.mktemp("filled") / "inbox.db"
    server = Server(binary, certs, *stores.flags(path))
    try:
        stores.load(server, 300)
        assert server.stop() == 0
    finally:
        server.kill()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return path


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "inbox.db"


@pytest.fixture
def serve(binary, certs, tmp_path_factory):
    """`serve(*flags)` runs the program, which must refuse the flags; returns its sentence."""
    return lambda *flags: refusal(run_serve(binary, certs, tmp_path_factory.mktemp("run"), *flags))


@pytest.fixture
def refused(serve):
    """`refused(path, *says)`: the file is refused, and it does not change, and nothing is beside it but files for locks."""
    def check(path, *says):
        before = path.read_bytes()
        names = {one.name for one in path.parent.iterdir()}
        message = serve(*stores.flags(path))
        assert str(path) in message and names_repair(message), message
        assert all(words in message for words in says), message
        assert path.read_bytes() == before
        new = {one.name for one in path.parent.iterdir()} - names
        assert new <= {path.name + suffix for suffix in (".lock", "-wal", "-shm")}, new
        assert path.name + "-wal" not in new or (path.parent / (path.name + "-wal")).stat().st_size == 0

    return check


# Other files


@pytest.mark.parametrize("content", [
    b"no database\n" * 100, b"\x00" * 8192, b"shopping list\n", b"\n" * 600, b"SQLite format 3\x00", b"SQLite format 3\x00" + b"\xff" * 4080,
], ids=["text", "zeros", "short text", "medium text", "header", "garbage"])
def test_a_file_that_is_no_database(refused, path, content):
    path.write_bytes(content)
    refused(path, "no SQLite database")


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program(refused, path, journal):
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA journal_mode = {journal}")
        db.executescript("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('https://example.com');")
    db.close()
    refused(path, "another program")


def test_a_database_of_another_program_with_a_table_of_the_same_name(refused, path):
    with sqlite3.connect(path) as db:
        db.executescript("CREATE TABLE push (id INTEGER); CREATE TABLE other (id INTEGER)")
    db.close()
    refused(path, "another program")


@pytest.mark.xfail(strict=True, reason="SQLiteStore.contents subscripts rows: a missing column is a fatal error of GRDB")
def test_a_database_of_another_program_with_all_the_names(refused, path):
    """Its tables have other columns."""
    with sqlite3.connect(path) as db:
        db.executescript("""
            CREATE TABLE push (id INTEGER, outcome TEXT, finished_at INTEGER, received_at INTEGER);
            CREATE TABLE contents (id INTEGER); INSERT INTO contents VALUES (1);
            PRAGMA user_version = 1;""")
    db.close()
    refused(path)


@pytest.mark.xfail(strict=True, reason="SQLiteStore.checkFile accepts it: 'failed: no such table: push', without a repair")
def test_a_database_without_tables_but_with_a_version(refused, path):
    """A program that has created its file and no table yet."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 1")
    db.close()
    refused(path)


def test_a_file_of_a_newer_version(refused, path, filled):
    shutil.copy(filled, path)
    with sqlite3.connect(path) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute(f"PRAGMA user_version = {version + 1}")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    refused(path, "newer version", str(version + 1))


def test_an_empty_file_is_used(binary, certs, start, path, device):
    """Such as `mktemp` creates."""
    path.touch()
    server = start(*stores.flags(path))
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    assert server.record(device)["seq"] == 1


# Damaged files


@pytest.mark.parametrize("size", [4096, 20_000, 0.9])
def test_a_truncated_file(refused, path, filled, size):
    content = filled.read_bytes()
    path.write_bytes(content[:int(size * len(content)) if size < 1 else size])
    refused(path, "damaged")


def test_a_file_with_an_overwritten_schema(refused, path, filled):
    content = bytearray(filled.read_bytes())
    content[200:4096] = os.urandom(3896)
    path.write_bytes(content)
    refused(path, "damaged")


@pytest.mark.xfail(strict=True, reason="SQLiteStore.init ends pending pushes before it has read the newest block")
def test_a_file_with_overwritten_pages_of_the_newest_pushes(refused, path, filled):
    content = bytearray(filled.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle:middle + 3 * 4096] = b"\xaa" * 3 * 4096
    path.write_bytes(content)
    refused(path, "damaged")


@pytest.fixture(scope="module")
def damaged(binary, certs, tmp_path_factory):
    """A server on a file whose pages with old pushes are overwritten, which it does not read at the start."""
    path = tmp_path_factory.mktemp("damaged") / "inbox.db"
    server = Server(binary, certs, *stores.flags(path))
    try:
        assert set(stores.load(server, 5_000, streams=100).values()) == {200}
        assert server.stop() == 0
    finally:
        server.kill()
    content = bytearray(path.read_bytes())
    content[40 * 4096:60 * 4096] = b"\xaa" * 20 * 4096
    path.write_bytes(content)
    server = Server(binary, certs, *stores.flags(path, memory_records=10))
    try:
        yield server
    finally:
        server.kill()


@pytest.mark.parametrize("path", [
    "/pushes?limit=1000", "/pushes?limit=1000&q=text:hello", "/pushes?topic=com.example.unused&count=exact",
    "/pushes/seqs", "/stats?topic=com.example.*",
])
def test_a_request_that_meets_damaged_pages_is_an_error(damaged, path):
    """Never an incomplete result that looks like a whole one."""
    response = damaged.request("GET", "/api/v1" + path)
    assert response.status in (500, 503), (response.status, response.body[:300])
    assert response.headers["content-type"].startswith("application/problem+json")
    assert damaged.request("GET", "/livez").status == 200


def test_a_wait_that_meets_damaged_pages_is_inconclusive(damaged):
    response = damaged.request("GET", "/api/v1/pushes/wait", topic="com.example.unused", count=0, timeout="0s")
    assert response.status in (500, 503) or not response.json["satisfied"] and not response.json["complete"], response.body


def test_a_verification_that_meets_damaged_pages_is_no_success(damaged):
    response = damaged.request(
        "POST", "/api/v1/verify", {"expect": [{"match": "topic:com.example.unused", "count": {"exactly": 0}}]})
    assert response.status in (500, 503) or response.json.get("inconclusive"), response.body[:300]


def test_an_export_that_meets_damaged_pages_is_no_success(damaged, tmp_path):
    done = damaged.command("export", "--output", tmp_path / "inbox.ndjson")
    assert done.returncode != 0, done.stderr
    assert done.stderr.startswith("error: ") and not list(tmp_path.glob("*.ndjson"))


def test_pushes_are_recorded_beside_damaged_pages(damaged, device):
    with connect(damaged) as wire:
        assert wire.push(push_headers(damaged, device)).status == 200
    assert damaged.pushes(after=5_000)[-1]["request"]["device_token"] == device


# Folders and permissions

ordinary_user = pytest.mark.skipif(
    os.geteuid() == 0 and not privilege_drop(), reason="root may write everywhere")


@pytest.fixture
def read_only(path):
    """The folder of the store, in which only root may write."""
    path.parent.chmod(0o555)
    yield path.parent
    path.parent.chmod(0o755)


@ordinary_user
def test_a_new_file_in_a_read_only_folder(serve, path, read_only):
    message = serve(*stores.flags(path))
    assert "cannot write" in message and str(path) in message and "folder" in message
    assert list(read_only.iterdir()) == []


@ordinary_user
def test_a_file_in_a_read_only_folder(serve, path, filled):
    shutil.copy(filled, path)
    path.parent.chmod(0o555)
    try:
        before = path.read_bytes()
        message = serve(*stores.flags(path))
        assert "cannot write" in message and "folder" in message
        assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
    finally:
        path.parent.chmod(0o755)


@ordinary_user
def test_a_read_only_file(refused, path, filled):
    shutil.copy(filled, path)
    path.chmod(0o444)
    refused(path, "cannot write")


def test_a_missing_folder(serve, tmp_path):
    message = serve(*stores.flags(tmp_path / "nowhere" / "inbox.db"))
    assert "cannot write" in message and "the folder must exist" in message
    assert list(tmp_path.iterdir()) == []


def test_a_folder(serve, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    message = serve(*stores.flags(folder))
    assert str(folder) in message
    assert list(folder.iterdir()) == []


def test_a_file_in_place_of_a_folder(serve, tmp_path):
    (tmp_path / "file").write_text("what was there before")
    message = serve(*stores.flags(tmp_path / "file" / "inbox.db"))
    assert "cannot write" in message
    assert (tmp_path / "file").read_text() == "what was there before"


# Settings


@pytest.mark.parametrize(("value", "says"), [
    ("sqlite", "sqlite:FILE"), ("sqlite:", "sqlite:FILE"), ("sqlit:inbox.db", "sqlite:FILE"), ("inbox.db", "sqlite:FILE"),
    ("sqlite://inbox.db", "sqlite:FILE"), ("sqlite::memory:", "sqlite:FILE"), ("SQLITE:inbox.db", "sqlite:FILE"),
    ("postgres://localhost/inbox", "sqlite:FILE"), ("disk", "memory"), ("", "memory"),
    ("sqlite:inbox.db?memory=5", "memory_records"), ("sqlite:inbox.db?memory_records=", "memory_records"),
    ("sqlite:inbox.db?memory_records=0", "memory_records"), ("sqlite:inbox.db?memory_records=-1", "memory_records"),
    ("sqlite:inbox.db?memory_records=many", "memory_records"), ("sqlite:inbox.db?memory_records=5&x=1", "memory_records"),
    ("sqlite:inbox.db?", "memory_records"),
])
def test_an_invalid_store(serve, value, says):
    message = serve("--store", value)
    assert "--store" in message and says in message


@pytest.mark.parametrize(("flags", "says"), [
    (["--durable", "always"], "answer"), (["--store-failure", "ignore"], "refuse"), (["--retain", "soon"], "--retain"),
    (["--retain", "7"], "--retain"), (["--retain=-1h"], "--retain"), (["--max-records", "0"], "--max-records"),
    (["--max-bytes", "few"], "--max-bytes"),
])
def test_an_invalid_setting_of_the_store(serve, path, flags, says):
    message = serve(*stores.flags(path, *flags))
    assert says in message
    assert not path.exists(), "the file is created only if all settings are valid"


@pytest.mark.xfail(strict=True, reason="StoreSettings does not check it: the flags are ignored")
@pytest.mark.parametrize("flags", [["--durable", "answer"], ["--store-failure", "drop"], ["--retain", "1h"]])
def test_a_setting_of_a_store_without_a_store(serve, flags):
    """The inbox in memory ignores it, which nobody would notice."""
    message = serve(*flags)
    assert flags[0] in message and "--store" in message


# Two servers


def test_a_second_server_on_the_same_file(serve, start, path, device):
    server = start(*stores.flags(path))
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        message = serve(*stores.flags(path))
        assert str(path) in message and "stop it" in message
        assert wire.push(push_headers(server, device)).status == 200
    assert stores.seqs(server) == [1, 2]
    assert stores.status(server)["store"]["problem"] is None


@pytest.mark.xfail(strict=True, reason="FileLock locks PATH.lock without resolving symbolic links: both servers write")
def test_a_second_server_on_a_link_to_the_same_file(serve, start, path):
    server = start(*stores.flags(path))
    stores.load(server, 10)
    link = path.parent / "link.db"
    link.symlink_to(path)
    message = serve(*stores.flags(link))
    assert "stop it" in message


def test_the_file_of_a_killed_server_is_free(binary, certs, start, path):
    former = Server(binary, certs, *stores.flags(path))
    stores.load(former, 10)
    former.kill()
    server = start(*stores.flags(path))
    stores.load(server, 10)
    assert stores.seqs(server)[-1] <= 20


def test_a_file_that_another_program_has_locked(serve, path, filled):
    shutil.copy(filled, path)
    with stores.exclusive_lock(path):
        message = serve(*stores.flags(path))
    assert str(path) in message and "another program" in message

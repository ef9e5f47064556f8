"""Files and settings that a server refuses: one sentence that names the repair, exit code 2, and the file unchanged."""

import os
import shutil
import sqlite3

import pytest

from support import stores
from support.failing_stores import FullDisk
from support.server import Server, privilege_drop
from support.wire import connect, push_headers


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "inbox.db"


# Other files


@pytest.mark.parametrize("content", [
    b"no database\n" * 100, b"\x00" * 8192, b"shopping list\n", b"\n" * 600, b"SQLite format 3\x00",
    b"SQLite format 3\x00" + b"\xff" * 4080,
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


def test_a_database_of_another_program_with_all_the_names(refused, path):
    """Its tables have other columns."""
    with sqlite3.connect(path) as db:
        db.executescript("""
            CREATE TABLE push (id INTEGER, outcome TEXT, finished_at INTEGER, received_at INTEGER);
            CREATE TABLE contents (id INTEGER); INSERT INTO contents VALUES (1);
            PRAGMA user_version = 1;""")
    db.close()
    refused(path)


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


def test_a_file_of_an_older_version_is_changed_after_a_copy(start, path, filled):
    shutil.copy(filled, path)
    with sqlite3.connect(path) as db:
        db.executescript("DROP TABLE state; DROP INDEX push_of_storage; PRAGMA user_version = 4")
    db.close()
    server = start(*stores.flags(path))
    assert server.api("GET", "/pushes", limit=0, status=200)["matched"] == 300
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ab" * 32)).status == 200
    assert server.stop() == 0
    for file, version, count, tables in ((path, 5, 301, 2), (path.with_name(path.name + ".version4"), 4, 300, 0)):
        with sqlite3.connect(file) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (version,)
            assert db.execute("SELECT count(*) FROM pushes").fetchone() == (count,)
            found = db.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('state', 'push_of_storage')")
            assert found.fetchone() == (tables,)
        db.close()


def test_a_file_of_a_version_that_was_not_released(refused, path, filled):
    shutil.copy(filled, path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 3")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    refused(path, "format 3", "not released")


def test_an_empty_file_is_used(binary, certs, start, path, device):
    """Such as `mktemp` creates."""
    path.touch()
    server = start(*stores.flags(path))
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    assert server.record(device)["seq"] == 1


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


def test_a_full_disk_at_the_start(serve, tmp_path):
    failure = FullDisk(tmp_path)
    try:
        failure.begin()
        assert "full" in serve(*stores.flags(failure.place))
        assert [one.name for one in failure.folder.iterdir()] == ["ballast"]
    finally:
        failure.end()
        failure.close()


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


def test_a_second_server_on_a_link_to_the_same_file(serve, start, path):
    server = start(*stores.flags(path))
    stores.load(server, 10)
    link = path.parent / "link.db"
    link.symlink_to(path)
    message = serve(*stores.flags(link))
    assert "stop it" in message


def test_a_second_server_on_a_link_to_a_file_that_was_missing(serve, start, path):
    link = path.parent / "link.db"
    link.symlink_to(path)
    server = start(*stores.flags(link))
    stores.load(server, 10)
    for name in (link, path):
        assert "stop it" in serve(*stores.flags(name))
    assert len(stores.seqs(server)) == 10


def test_the_file_of_a_killed_server_is_free(binary, certs, start, path):
    former = Server(binary, certs, *stores.flags(path))
    stores.load(former, 10)
    former.kill()
    server = start(*stores.flags(path))
    stores.load(server, 10)
    found = stores.seqs(server)
    assert 10 <= len(found) <= 20 and found == sorted(set(found)), "there may be a gap after a kill"


def test_a_file_that_another_program_has_locked(serve, path, filled):
    shutil.copy(filled, path)
    with stores.exclusive_lock(path):
        message = serve(*stores.flags(path))
    assert str(path) in message and "another program" in message


def test_a_second_server_on_a_uri_of_the_same_file(serve, start, path):
    """`file:` is a part of the name, so it is another file."""
    start(*stores.flags(path))
    message = serve("--store", f"sqlite:file:{path}")
    assert "file:" in message and "folder" in message, message


def test_a_pipe(serve, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    message = serve("--store", f"sqlite:{pipe}")
    assert str(pipe) in message and "not a file" in message, message
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("pipe")] == ["pipe"]

"""Fixtures: places for an inbox, files and databases that a server refuses, and ways in which a store fails while the server
runs.
"""

import contextlib
import sqlite3

import pytest

from support import postgres as databases, stores
from support.failing_stores import FrozenPostgres, FullDisk, FullPostgres, Lock, StoppedPostgres
from support.refusals import names_repair, refusal, run_serve
from support.selection import some
from support.server import Server


@pytest.fixture(scope="session")
def postgres():
    """The PostgreSQL that the tests of this process share. A test that stops it starts one of its own."""
    return databases.shared()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where an inbox can be: a file, which does not exist yet, or a schema in a database, likewise."""
    return stores.new_place(request.param, tmp_path)


@pytest.fixture
def inbox(postgres):
    """An inbox in PostgreSQL, for several servers. The first server creates it."""
    return postgres.new_inbox()


@contextlib.contextmanager
def way_to_fail(kind, folder):
    made = kind(folder)
    try:
        yield made
    finally:
        made.end()
        made.close()


@pytest.fixture(params=some([Lock, FullDisk, StoppedPostgres, FrozenPostgres, FullPostgres], 2))
def failure(request, tmp_path):
    with way_to_fail(request.param, tmp_path) as made:
        yield made


@pytest.fixture(params=[Lock, StoppedPostgres, FrozenPostgres])
def outage(request, tmp_path):
    """A failure that begins at once, whatever is written."""
    with way_to_fail(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def lock(tmp_path):
    made = Lock(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="session")
def filled(binary, certs, tmp_path_factory):
    """A file with 300 pushes, as an orderly end leaves it."""
    path = tmp_path_factory.mktemp("filled") / "inbox.db"
    server = Server(binary, certs, *stores.flags(path))
    try:
        stores.load(server, 300)
        assert server.stop() == 0
    finally:
        server.kill()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def serve(binary, certs, tmp_path_factory):
    """`serve(*flags)` runs the program, which must refuse the flags; returns its sentence."""
    return lambda *flags: refusal(run_serve(binary, certs, tmp_path_factory.mktemp("run"), *flags))


@pytest.fixture
def refused(serve):
    """`refused(path, *says)`: the file is refused, and it does not change, and nothing is beside it but SQLite's files."""
    def check(path, *says):
        before = path.read_bytes()
        names = {one.name for one in path.parent.iterdir()}
        message = serve(*stores.flags(path))
        assert str(path) in message and names_repair(message), message
        assert all(words in message for words in says), message
        assert path.read_bytes() == before
        new = {one.name for one in path.parent.iterdir()} - names
        assert new <= {path.name + suffix for suffix in ("-wal", "-shm")}, new
        assert path.name + "-wal" not in new or (path.parent / (path.name + "-wal")).stat().st_size == 0

    return check

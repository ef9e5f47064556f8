"""Servers that share nothing but a database, each with a schema of its own, and a view of them."""

import contextlib
import secrets
import threading

from cli.test_view import Viewer
from support import stores
from support.postgres import PostgresInbox
from support.server import Server, wait_until
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


@contextlib.contextmanager
def changing_tables(postgres, schema):
    """Changes the tables of a schema, as a server does for a newer version, in a transaction that is open in the body."""
    session = postgres.open_session()
    session.execute(f'BEGIN; ALTER TABLE "{schema}".push ADD COLUMN later text')
    yield
    session.execute("COMMIT")


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

"""Makes the store of a server fail while it runs, and recover."""

import contextlib
import math
import secrets
import shutil
import subprocess
import time

import pytest

from support import stores
from support.postgres import ADMINISTRATOR, Postgres, disposable
from support.server import wait_until
from support.wire import connect, push_headers

DETECTION = 6  # seconds until the failure must be detected; normally half a second


class Failure:
    """A way in which a store fails. `place`: the inbox; `says`: part of the reason that the server states."""

    #: The seconds after the beginning in which each push is answered.
    answers_for = math.inf

    def begin(self):
        pass

    def end(self):
        """Ends the failure, unless it has not begun or has ended."""

    def close(self):
        """Removes what the failure needs."""


class Lock(Failure):
    """Another program that has locked the file."""

    says = "locked"

    def __init__(self, folder):
        self.place = folder / "inbox.db"
        self.lock = None

    def begin(self):
        self.lock = stores.exclusive_lock(self.place)
        self.lock.__enter__()

    def end(self):
        if self.lock:
            self.lock.__exit__(None, None, None)
            self.lock = None


class FullDisk(Failure):
    """A small file system that another file fills."""

    says = "full"

    size = "2m"

    def __init__(self, folder):
        self.folder = folder / "disk"
        mount(self.folder, self.size)
        self.place = self.folder / "inbox.db"

    def begin(self):
        fill(self.folder)

    def end(self):
        (self.folder / "ballast").unlink(missing_ok=True)

    def close(self):
        unmount(self.folder)


class StoppedPostgres(Failure):
    """A database that is shut down in an orderly way, and started again."""

    says = "check that PostgreSQL runs"

    def __init__(self, _):
        self.postgres = disposable()
        self.place = self.postgres.new_inbox()

    def begin(self):
        self.postgres.stop("fast")

    def end(self):
        if self.postgres.process is None:
            self.postgres.start()


class KilledPostgres(StoppedPostgres):
    """A database whose processes are killed."""

    def begin(self):
        self.postgres.kill()


class FrozenPostgres(StoppedPostgres):
    """A database that does not respond, while its connections stay open: a stopped machine or a broken network."""

    says = ""
    # Afterwards, and until the failure is detected, a push may wait: the database has not confirmed for a second that the
    # server is the active one.
    answers_for = 0.3

    def begin(self):
        self.postgres.pause()

    def end(self):
        self.postgres.resume()


class FullPostgres(Failure):
    """A database whose tables are on a small file system that another file fills."""

    says = "space"

    def __init__(self, folder):
        self.postgres = Postgres()
        self.folder = self.postgres.folder / "disk"
        try:
            mount(self.folder, "4m")
            shutil.chown(self.folder, ADMINISTRATOR)
            self.postgres.execute(f"CREATE TABLESPACE small LOCATION '{self.folder}'", user=ADMINISTRATOR)
            self.postgres.execute("GRANT CREATE ON TABLESPACE small TO public", user=ADMINISTRATOR)
            self.place = self.postgres.new_inbox(options="-c default_tablespace=small")
        except BaseException:
            self.close()
            raise

    def begin(self):
        fill(self.folder)

    def end(self):
        (self.folder / "ballast").unlink(missing_ok=True)

    def close(self):
        self.postgres.stop("immediate")
        if self.folder.is_mount():
            unmount(self.folder)
        self.postgres.close()


def mount(folder, size):
    """Mounts a file system of this size at a new folder, which every user may write."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if done.returncode != 0:
        pytest.skip("mounting a file system is for root, and not even for root everywhere")


def unmount(folder):
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    with open(folder / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def push_once(server, **changes):
    """Sends a push on a new connection; returns its status and its apns-id."""
    with connect(server) as wire:
        return push_on(wire, server, **changes)


def push_on(wire, server, **changes):
    """Sends a push on a connection; returns its status and its apns-id."""
    response = wire.push(push_headers(server, secrets.token_hex(32), **changes), b"{}" + b" " * 3000)
    return response.status, response.header("apns-id"), response.body


def fail(server, failure):
    """Begins the failure and pushes until the server has detected it; returns the ids of acknowledged pushes, and how many
    were refused.
    """
    acknowledged, refused = [], 0
    with contextlib.ExitStack() as connections:
        wire = connections.enter_context(connect(server))
        wire.sock.settimeout(5)
        failure.begin()
        began = time.monotonic()
        while (is_ready := readiness(server)[0] == 200) or not refused and stores.status(server)["store"]["on_failure"] == "refuse":
            assert time.monotonic() < began + DETECTION, f"no failure after {len(acknowledged)} pushes:\n{server.log()[-2000:]}"
            if is_ready and time.monotonic() > began + failure.answers_for:
                time.sleep(0.02)
                continue
            try:
                status, apns_id, _ = push_on(wire, server)
            except TimeoutError:
                # The database ended its session at this moment: the answer waits until the server knows again that it is the active one.
                wire = connections.enter_context(connect(server))
                continue
            if status == 200:
                acknowledged.append(apns_id)
            else:
                assert status == 503
                refused += 1
    return acknowledged, refused


def readiness(server):
    response = server.request("GET", "/readyz")
    return response.status, response.json


def recover(server, failure):
    failure.end()
    wait_until(lambda: readiness(server)[0] == 200, "the server is ready again", 15)


def recover_with_pushes(server, failure):
    """Ends the failure and pushes until the server is ready; returns the ids of the pushes. Some of them may be lost."""
    failure.end()
    return [wait_until(lambda: push_once(server)[1], "a push is answered")] + [
        push_once(server)[1] for _ in iter(lambda: readiness(server)[0], 200)]


def ids(server):
    return [record["apns"]["id"] for record in stores.everything(server, fields="apns.id")]

"""Makes the store of a server fail while it runs, and recover."""

import contextlib
import secrets
import subprocess
import time

import pytest

from support import stores
from support.server import wait_until
from support.wire import connect, push_headers

DETECTION = 6  # seconds until the failure must be detected; normally half a second


class Lock:
    """Another program that has locked the file."""

    says = "locked"

    def __init__(self, folder):
        self.path = folder / "inbox.db"
        self.lock = None

    def begin(self):
        self.lock = stores.exclusive_lock(self.path)
        self.lock.__enter__()

    def end(self):
        if self.lock:
            self.lock.__exit__(None, None, None)
            self.lock = None


class FullDisk:
    """A small file system that another file fills."""

    says = "full"

    def __init__(self, folder):
        self.folder = folder / "disk"
        self.folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(self.folder)],
                          capture_output=True).returncode != 0:
            pytest.skip("mounting a file system is for root, and not even for root everywhere")
        self.path = self.folder / "inbox.db"

    def begin(self):
        with open(self.folder / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))

    def end(self):
        (self.folder / "ballast").unlink(missing_ok=True)

    def close(self):
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


def push_once(server, **changes):
    """Sends a push on a new connection; returns its status and its apns-id."""
    with connect(server) as wire:
        response = wire.push(push_headers(server, secrets.token_hex(32), **changes), b"{}" + b" " * 3000)
    return response.status, response.header("apns-id"), response.body


def fail(server, failure):
    """Begins the failure and pushes until the server has detected it; returns the ids of acknowledged pushes, and how many
    were refused.
    """
    failure.begin()
    deadline, acknowledged, refused = time.monotonic() + DETECTION, [], 0
    while readiness(server)[0] == 200 or not refused and stores.status(server)["store"]["on_failure"] == "refuse":
        assert time.monotonic() < deadline, f"no failure after {len(acknowledged)} pushes:\n{server.log()[-2000:]}"
        status, apns_id, _ = push_once(server)
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

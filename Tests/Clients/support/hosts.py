"""A machine where Apple's host name leads elsewhere: a hosts file in a mount namespace that one command lives in."""

import contextlib
import random
import shutil
import socket
import subprocess
import sys

import pytest

from support.way import APPLE, Way

MOUNT = 'mount --bind "$0" /etc/hosts && exec "$@"'


def with_hosts_file(path):
    """The words before a command that give it `path` as /etc/hosts; skips where this machine does not allow that."""
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None:
        pytest.skip("a hosts file for one command needs the mount namespaces of Linux and `unshare`")
    for identity in ([], ["--map-root-user"]):
        words = ["unshare", "--mount", *identity, "sh", "-c", MOUNT, str(path)]
        if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return tuple(words)
    pytest.skip("this user may not make a mount namespace, which a hosts file for one command needs")


def free_https_address():
    """A loopback address whose port 443 is free; skips where there is none. Libraries without a port setting need it."""
    problem = None
    for _ in range(8):
        address = f"127.{random.randint(64, 127)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
        with contextlib.closing(socket.socket()) as sock:
            try:
                sock.bind((address, 443))
                return address
            except OSError as error:
                problem = error
    pytest.skip(f"no loopback address with a port 443 to listen on: {problem}")


def apple_here(address, folder):
    """The way of a client that knows Apple's sandbox host and port 443 alone, when the server is at `address`."""
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{address} {APPLE}\n")
    return Way(host=APPLE, port=443, hosts_file=with_hosts_file(hosts))

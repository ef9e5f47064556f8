"""Redirects Apple's host name for a single command, with a hosts file in a mount namespace."""

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
    """Returns a command prefix that replaces /etc/hosts with `path`; skips the test where the machine does not
    allow that.
    """
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None:
        pytest.skip("a hosts file for one command needs the mount namespaces of Linux and `unshare`")
    for identity in ([], ["--map-root-user"]):
        words = ["unshare", "--mount", *identity, "sh", "-c", MOUNT, str(path)]
        if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return tuple(words)
    pytest.skip("this user may not make a mount namespace, which a hosts file for one command needs")


def free_https_address():
    """Returns a loopback address whose port 443 is free, for libraries without a port setting; skips the test if
    there is none.
    """
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
    """Returns the way for a client that only connects to Apple's sandbox host and port 443, with the server at
    `address`.
    """
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{address} {APPLE}\n")
    return Way(host=APPLE, port=443, hosts_file=with_hosts_file(hosts))

"""The Django applications in `providers/applications`, run as programs of their own with a database of their own."""

import contextlib
import pathlib
import shutil
import sqlite3
import subprocess
import sys

import pytest

from support.server import clean_environment

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "providers" / "applications" / "manage.py"


def packages():
    """Returns the folder of Django and the applications, which is separate from the other libraries because they need
    an older aioapns.
    """
    folder = pathlib.Path(sys.prefix) / "applications"
    if not folder.exists():
        pytest.skip(f"Django and its applications are not in {folder}; `make test-clients` puts them there")
    return folder


class Shop:
    """The shop, which sends its pushes to one server. `database` may be an empty file or a copy of another shop's."""

    def __init__(self, server, database):
        self.server = server
        self.database = database

    def run(self, *arguments, timeout=60):
        """Runs one command of the shop to its end; returns a `CompletedProcess` with text."""
        environment = clean_environment(
            PYTHONPATH=str(packages()), PYTHONDONTWRITEBYTECODE="1", NO_PROXY="*", SSL_CERT_FILE=self.server.ca,
            SHOP_DATABASE=str(self.database), SHOP_APNS_HOST="localhost", SHOP_APNS_PORT=str(self.server.port),
            SHOP_APNS_KEY=self.server.key_path, SHOP_APNS_KEY_ID=self.server.key_id,
            SHOP_APNS_TEAM_ID=self.server.team_id)
        return subprocess.run(
            [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=timeout,
            env=environment)

    def succeed(self, *arguments):
        """Runs one command, which must succeed; returns its standard output."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def rows(self, query):
        """Returns the rows that a query finds in the database."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(query).fetchall()

    def copy(self, server, database):
        """Returns a shop with a copy of this one's database."""
        shutil.copyfile(self.database, database)
        return Shop(server, database)

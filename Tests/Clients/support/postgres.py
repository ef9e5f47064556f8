"""A private PostgreSQL in a temporary folder, reached over a Unix socket, and inboxes in it."""

import atexit
import contextlib
import ctypes
import ctypes.util
import functools
import json
import os
import pathlib
import pwd
import random
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

PACKAGE = "PostgreSQL is not on this machine: apt-get install postgresql"
START_TIMEOUT = 60  # seconds until the database accepts connections, also after a crash
STOP_TIMEOUT = 30

ADMINISTRATOR = "postgres"
OWNER = "apns_mock"  # the role of the servers, which is no superuser
GUARDED = "guarded"  # a role that needs a password
PASSWORD = "s3cret/p@ss word"
DATABASE = "inbox"

CONFIGURATION = """
listen_addresses = '{listen}'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 200
shared_buffers = 32MB
max_wal_size = 256MB
fsync = {fsync}
log_min_messages = warning
timezone = 'America/New_York'
"""  # a time zone other than UTC, because times in the inbox do not depend on it

AUTHENTICATION = f"""
local all {GUARDED} scram-sha-256
host all {GUARDED} 127.0.0.1/32 scram-sha-256
local all all trust
host all all 127.0.0.1/32 trust
"""

ROLES = f"""
CREATE ROLE {OWNER} LOGIN;
CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}';
CREATE DATABASE {DATABASE} OWNER {OWNER};
GRANT CREATE ON DATABASE {DATABASE} TO {GUARDED};
"""


@functools.cache
def program(name):
    """Returns the path of a program of PostgreSQL. Debian keeps those of a server outside the path."""
    folders = []
    if shutil.which("pg_config"):
        found = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, timeout=20)
        folders.append(pathlib.Path(found.stdout.strip()))
    folders += sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: float(one.parent.name), reverse=True)
    for folder in folders:
        if all((folder / needed).is_file() for needed in ("postgres", "initdb", "psql")):
            return str(folder / name)
    raise AssertionError(PACKAGE)


@functools.cache
def as_user():
    """Returns a command prefix for PostgreSQL, which refuses to run as root. On Linux its processes end with this one."""
    setpriv, prefix = shutil.which("setpriv"), []
    if os.geteuid() == 0:
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            raise AssertionError(f"root cannot run PostgreSQL, and there is no user `postgres`. {PACKAGE}") from None
        if not setpriv:
            return ["runuser", "-u", account.pw_name, "--"]
        prefix = ["--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups"]
    return [setpriv, *prefix, "--pdeathsig", "QUIT", "--"] if setpriv else []


def environment(**variables):
    """Returns this process's environment without libpq's variables, plus the given ones."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PG")}, **variables}


@functools.cache
def libpq():
    """Returns PostgreSQL's client library."""
    library = ctypes.CDLL(ctypes.util.find_library("pq") or os.path.join(
        subprocess.run(["pg_config", "--libdir"], capture_output=True, text=True, check=True).stdout.strip(), "libpq.dylib"))
    for name in ("PQconnectdb", "PQgetResult"):
        getattr(library, name).restype = ctypes.c_void_p
    for name in ("PQerrorMessage", "PQresultErrorMessage", "PQgetvalue"):
        getattr(library, name).restype = ctypes.c_char_p
    return library


class SessionLost(Exception):
    """The database has ended a session. A statement that `was_sent` may have been executed."""

    def __init__(self, problem, *, was_sent):
        super().__init__(problem)
        self.was_sent = was_sent


class Session:
    """A connection to a database, which one thread uses. A process of psql for each statement would take twenty times as long."""

    def __init__(self, url):
        self.schema, self.finish = None, libpq().PQfinish
        self.handle = ctypes.c_void_p(libpq().PQconnectdb(url.encode()))
        if libpq().PQstatus(self.handle) != 0:
            raise AssertionError(libpq().PQerrorMessage(self.handle).decode())
        self.execute("SET timezone TO 'UTC'; SET client_min_messages TO error")

    def __del__(self):
        self.finish(self.handle)

    def execute(self, sql, schema=None, timeout=60):
        """Executes SQL, all of it in one transaction; returns the rows of the last statement as psql prints them."""
        if schema not in (None, self.schema):
            self._execute(f'SET search_path TO "{schema}"', timeout)
            self.schema = schema
        return self._execute(sql, timeout)

    def _execute(self, sql, timeout):
        # What the database sends on its own is the end of the session.
        if select.select([libpq().PQsocket(self.handle)], [], [], 0)[0]:
            raise SessionLost("the database has ended the session", was_sent=False)
        if libpq().PQsendQuery(self.handle, sql.encode()) != 1:
            raise SessionLost(libpq().PQerrorMessage(self.handle).decode(), was_sent=False)
        text, problem, deadline = "", None, time.monotonic() + timeout
        while result := self._result(sql, deadline):
            rows, columns = libpq().PQntuples(result), libpq().PQnfields(result)
            text = "\n".join("|".join(libpq().PQgetvalue(result, row, column).decode(errors="replace") for column in range(columns))
                             for row in range(rows))
            if libpq().PQresultStatus(result) not in (1, 2):  # a command, and rows
                problem = problem or libpq().PQresultErrorMessage(result).decode()
            libpq().PQclear(result)
        if problem and any(words in problem for words in ("terminating connection", "closed the connection")):
            raise SessionLost(problem, was_sent=True)
        assert problem is None, f"{sql}: {problem}"
        return text

    def _result(self, sql, deadline):
        """Returns the next result of what was sent; None after the last one. Waits in Python, which handles signals."""
        while libpq().PQisBusy(self.handle):
            readable, _, _ = select.select([libpq().PQsocket(self.handle)], [], [], max(0, deadline - time.monotonic()))
            assert readable, f"the database does not answer: {sql}"
            libpq().PQconsumeInput(self.handle)
        return ctypes.c_void_p(libpq().PQgetResult(self.handle))


def literal(value):
    """Returns a value as SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def with_arguments(sql, arguments):
    """Replaces each `?` by a literal."""
    first, *others = sql.split("?")
    return first + "".join(literal(value) + part for value, part in zip(arguments, others, strict=True))


class Postgres:
    """A PostgreSQL of its own. Nothing of it is left when this process ends, however it ends on Linux."""

    def __init__(self, *, fsync=True, port=None):
        """With a `port`, it also listens on 127.0.0.1."""
        # The path of a Unix socket has at most 103 bytes, so the folder cannot be among those of the tests.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="apns-mock-pg-", dir="/tmp"))
        atexit.register(self.close)
        self.port = port or 5432
        self.data = self.folder / "data"
        self.log_path = self.folder / "log"
        self.process = None
        self.sessions = threading.local()
        self.folder.chmod(0o755)  # servers run without root's privileges
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        made = subprocess.run(
            [*as_user(), program("initdb"), "--pgdata", str(self.data), "--username", ADMINISTRATOR, "--auth", "trust",
             "--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"],
            capture_output=True, text=True, timeout=120, cwd=self.folder, env=environment())
        assert made.returncode == 0, f"initdb: {made.stderr}"
        with open(self.data / "postgresql.conf", "a") as file:
            file.write(CONFIGURATION.format(
                listen="127.0.0.1" if port else "", port=self.port, folder=self.folder, fsync="on" if fsync else "off"))
        (self.data / "pg_hba.conf").write_text(AUTHENTICATION)
        self.start()
        for statement in ROLES.strip().splitlines():
            self.execute(statement, user=ADMINISTRATOR, database="postgres")

    def log(self):
        return self.log_path.read_text(errors="replace")

    # Processes

    def start(self):
        """Starts the database and waits until it accepts connections."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*as_user(), program("postgres"), "-D", str(self.data)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=environment())
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                self.open_session(user=ADMINISTRATOR, database="postgres")
                return
            except AssertionError:
                assert self.process.poll() is None, f"PostgreSQL ended with {self.process.returncode}:\n{self.log()[-2000:]}"
                assert time.monotonic() < deadline, f"PostgreSQL does not accept connections:\n{self.log()[-2000:]}"
                time.sleep(0.02)

    def stop(self, mode="fast"):
        """Stops the database. `mode`, as of `pg_ctl`: `smart` waits for clients, `fast` ends their sessions, `immediate`
        leaves recovery to the next start.
        """
        if self.process is None:
            return
        self.resume()
        self.process.send_signal({"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
        try:
            self.process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.process = None

    def processes(self):
        """Returns the ids of all processes, that of the first one first."""
        return [self.process.pid, *_children(self.process.pid)]

    def signal_all(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        """Kills all processes at once, as the loss of the machine does, except that the disk has what was written."""
        if self.process is None:
            return
        self.pause()  # so that no process is started while the others are killed
        pids = self.processes()
        self.signal_all(signal.SIGKILL)
        self.process.wait()
        self.process = None
        deadline = time.monotonic() + STOP_TIMEOUT
        while any(_is_running(pid) for pid in pids):
            assert time.monotonic() < deadline, "a killed process of PostgreSQL does not end"
            time.sleep(0.01)

    def pause(self):
        """Stops the processes from running, as a machine that does not respond. Connections stay open."""
        self.process.send_signal(signal.SIGSTOP)
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        if self.process is not None:
            self.signal_all(signal.SIGCONT)

    def close(self):
        """Stops the database and removes its files."""
        atexit.unregister(self.close)
        try:
            self.stop("immediate")
        finally:
            if self.process is not None:
                self.kill()
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Statements

    def execute(self, sql, *arguments, user=OWNER, database=DATABASE, schema="public"):
        """Executes SQL in one transaction and returns what psql prints. Each `?` is replaced by an argument."""
        sql = with_arguments(sql, arguments) if arguments else sql
        # A session belongs to a thread.
        sessions = self.sessions.__dict__
        while True:
            is_new = (user, database) not in sessions
            try:
                if is_new:
                    sessions[user, database] = self.open_session(user=user, database=database)
                return sessions[user, database].execute(sql, schema=schema).strip()
            except SessionLost as lost:
                # A test has ended all sessions, or the database was started again.
                sessions.pop((user, database), None)
                if is_new or lost.was_sent:
                    raise

    def open_session(self, *, user=OWNER, database=DATABASE):
        return Session(self.url(database=database, user=user, connect_timeout=10))

    def rows(self, sql, *arguments, **connection):
        """Returns the rows of a query."""
        found = self.execute(
            f"SELECT coalesce(json_agg(found), '[]') FROM ({with_arguments(sql, arguments)}) AS found", **connection)
        return json.loads(found)

    def url(self, *, database=DATABASE, user=OWNER, password=None, tcp=False, **parameters):
        """Returns a URL of libpq, with further parameters."""
        credentials = user if password is None else f"{user}:{urllib.parse.quote(password, safe='')}"
        address = f"127.0.0.1:{self.port}" if tcp else ""
        if not tcp:
            parameters = {"host": self.folder, "port": self.port, **parameters}
        query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote, safe="/")
        return f"postgres://{credentials}@{address}/{database}" + (f"?{query}" if query else "")

    def new_inbox(self, **parameters):
        """Returns an inbox of its own, with further parameters of the URL; the server creates its schema."""
        return PostgresInbox(self, f"inbox_{secrets.token_hex(6)}", **parameters)


class PostgresInbox:
    """An inbox in a schema of its own."""

    def __init__(self, postgres, schema, **parameters):
        self.postgres = postgres
        self.schema = schema
        self.parameters = parameters

    def __str__(self):
        return self.schema

    def url(self, **parameters):
        return self.postgres.url(schema=self.schema, **self.parameters, **parameters)

    def execute(self, sql, *arguments):
        return self.postgres.execute(sql, *arguments, schema=self.schema)

    def dump(self):
        """Returns the tables as SQL."""
        return subprocess.run(
            [program("pg_dump"), "--no-password", "--schema", self.schema, self.postgres.url()], check=True,
            capture_output=True, timeout=60, env=environment()).stdout

    def view(self, sql, *arguments):
        """Returns rows of a query, in which the view is `pushes`; the payload as bytes."""
        rows = self.postgres.rows(sql, *arguments, schema=self.schema)
        for row in rows:
            if row.get("payload") is not None:
                row["payload"] = bytes.fromhex(row["payload"].removeprefix("\\x"))
        return rows


def free_port():
    """Returns a port on 127.0.0.1 that is free and that the system does not give to clients."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@functools.cache
def shared():
    """Returns the PostgreSQL that the tests of this process share; starts it at the first call. It also listens on
    127.0.0.1.
    """
    return Postgres(port=free_port())


@functools.cache
def disposable():
    """Returns another PostgreSQL of this process, which tests stop and start again."""
    return Postgres()


def close_all():
    """Closes the databases of this process."""
    for one in (shared, disposable):
        if one.cache_info().currsize:
            one().close()
            one.cache_clear()


def _children(parent):
    """Returns the ids of the child processes."""
    if pathlib.Path("/proc/self/stat").exists():
        pids = [int(one.name) for one in pathlib.Path("/proc").iterdir() if one.name.isdigit()]
        return [pid for pid in pids if _state(pid)[1] == str(parent)]
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True, timeout=20)
    pairs = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, found in pairs if found == str(parent)]


def _state(pid):
    """Returns the state of a process and the id of its parent, as Linux shows them."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except OSError:
        return ["X", None]


def _is_running(pid):
    """Returns whether a process exists that has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not pathlib.Path("/proc/self/stat").exists() or _state(pid)[0] not in "XZ"

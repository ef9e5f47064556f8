"""Stores under measurement: SQLite files, PostgreSQL schemas, the servers that write to them, and views of schemas."""

import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

import loads
from servers import BadRun, MockProcess, ServerProcess
from workloads import Mock, Push

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Tests/Clients"))
from support import postgres

# The rows of a bare insert's transaction.
BATCH = 1000
# The size of the store's pages in a file, in bytes.
PAGE_SIZE = 32_768
# One call of h2load sends this many pushes, which have the same payload.
PORTION = 100_000


class SQLite:
    """An inbox in a file."""

    writes = "bare insert"

    def __init__(self, path):
        self.path = path.with_suffix(".db")

    def value(self):
        return f"sqlite:{self.path}"

    @staticmethod
    def prepare():
        pass

    def await_quiet(self):
        os.sync()

    def cpu_seconds(self):
        return 0

    def megabytes(self):
        return self.path.stat().st_size / 1e6

    def write_bare(self, count):
        return insert_bare(self.path, count)

    def remove(self):
        for file in self.path.parent.glob(f"{self.path.name}*"):
            file.unlink()


class PostgreSQL:
    """An inbox in a schema of a PostgreSQL that this program starts."""

    writes = "bare COPY"

    def __init__(self, path):
        self.inbox = postgres.shared().new_inbox()

    @staticmethod
    def prepare():
        """Configures the database for load, so that filling does not take hours, and lets it collect statistics soon."""
        database = postgres.shared()
        for setting in ("max_wal_size = '4GB'", "checkpoint_timeout = '15min'", "shared_buffers = '512MB'", "autovacuum_naptime = '5s'"):
            database.execute(f"ALTER SYSTEM SET {setting}", user=postgres.ADMINISTRATOR)
        database.stop()
        database.start()

    def await_quiet(self):
        """Waits until the database does nothing by itself, at most ten minutes."""
        os.sync()
        self.inbox.postgres.execute("CHECKPOINT", user=postgres.ADMINISTRATOR)
        deadline = time.monotonic() + 600
        busy = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"
        quiet = 0
        while quiet < 15 and time.monotonic() < deadline:
            time.sleep(1)
            quiet = 0 if int(self.inbox.postgres.execute(busy, user=postgres.ADMINISTRATOR)) else quiet + 1

    def value(self):
        return self.inbox.url()

    def cpu_seconds(self):
        """Returns the CPU time so far of all processes of the database."""
        ticks = 0
        for number, pid in enumerate(postgres.shared().processes()):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            # Those of the first process include its children that have ended.
            ticks += sum(int(field) for field in fields[11:15 if number == 0 else 13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def megabytes(self):
        return int(self.inbox.execute("SELECT pg_total_relation_size('push')")) / 1e6

    def write_bare(self, count):
        """Returns the CPU microseconds of psql, which only passes on what it reads, for a COPY of a row in batches."""
        self.inbox.execute("CREATE TABLE copied (LIKE push)")
        with tempfile.NamedTemporaryFile() as file:
            columns = f"SELECT * FROM push ORDER BY seq DESC LIMIT {BATCH}"
            self.psql(f"\\copy ({columns}) TO '{file.name}' (FORMAT binary)")
            copy = f"\\copy copied FROM '{file.name}' (FORMAT binary)"
            began = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.psql(*[copy] * (count // BATCH))
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (ended.ru_utime - began.ru_utime + ended.ru_stime - began.ru_stime) * 1e6 / (count // BATCH * BATCH)

    def psql(self, *commands):
        subprocess.run([postgres.program("psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", postgres.shared().url()],
                       input="\n".join(commands), text=True, check=True, timeout=300,
                       env=postgres.environment(PGOPTIONS=f"-c search_path={self.inbox}"))

    def remove(self):
        self.inbox.postgres.execute(f"DROP SCHEMA {self.inbox} CASCADE")


STORES = {"sqlite": SQLite, "postgres": PostgreSQL}


class PeakMemory:
    """A server whose peak of resident memory is read."""

    def reset_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_megabytes(self):
        """Returns the most resident memory since the last reset."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


class StoreServer(PeakMemory, MockProcess):
    """A server with a store, or without if it is None."""

    def __init__(self, store, durable, name, binary, folder, cores, flags=()):
        settings = () if store is None else ("--store", store.value(), "--durable", durable)
        super().__init__(Mock(flags=(*settings, *flags)), name, binary, folder, cores)

    def get_ready(self):
        super().get_ready()
        self.records_at_start = self.api("GET", "/status")["inbox"]["records"]

    def writer_seconds(self):
        """Returns the CPU time so far of the thread that writes to the store."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/metrics", timeout=10) as response:
            found = re.search(r"^apns_mock_store_cpu_seconds_total (\S+)", response.read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0

    def await_written(self):
        """Waits until the store has all records."""
        status = self.api("GET", "/status")
        received = status["inbox"]["records"] - self.records_at_start
        deadline = time.monotonic() + 60
        while status["store"] and status["store"]["records_written"] < received:
            if time.monotonic() > deadline:
                raise BadRun("the store does not get all records")
            time.sleep(0.02)
            status = self.api("GET", "/status")


def insert_bare(file, count):
    """Returns the CPU microseconds that SQLite takes to insert a row, for the rows of a file, into one like it."""
    copy = file.with_suffix(".copy")
    source = sqlite3.connect(file)
    columns = [row[1] for row in source.execute("PRAGMA table_info(push)")]
    rows = source.execute("SELECT * FROM push ORDER BY seq DESC LIMIT ?", (count,)).fetchall()[::-1]
    schema = [row[0] for row in source.execute("SELECT sql FROM sqlite_master WHERE tbl_name = 'push' AND sql NOT NULL")]
    source.close()
    target = sqlite3.connect(copy, isolation_level=None)
    target.executescript(f"PRAGMA page_size = {PAGE_SIZE}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
                         f"PRAGMA wal_autocheckpoint = {4000 * 4096 // PAGE_SIZE}; "
                         + ";".join(schema))
    # The rows come from a table in memory, so that only SQLite's own work is measured.
    target.execute("ATTACH ':memory:' AS origin")
    target.execute(f"CREATE TABLE origin.push ({', '.join(columns)})")
    target.executemany(f"INSERT INTO origin.push VALUES ({', '.join('?' * len(columns))})", rows)
    began = time.thread_time()
    for start in range(0, count, BATCH):
        target.execute("INSERT INTO main.push SELECT * FROM origin.push WHERE rowid > ? AND rowid <= ?",
                       (start, start + BATCH))
    seconds = time.thread_time() - began
    target.close()
    copy.unlink()
    return seconds * 1e6 / count


class Viewer(PeakMemory, ServerProcess):
    """`apns-mock view` of several schemas."""

    api = MockProcess.api

    def __init__(self, url, binary, folder, cores):
        ports = folder / "view.json"
        ports.unlink(missing_ok=True)
        plain = {name: value for name, value in os.environ.items() if not name.startswith("APNS_MOCK_")}
        self.start([binary, "view", url, "--admin", "127.0.0.1:0", "--port-file", ports], cores, env=plain,
                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_until(ports.exists, 60)
        self.ready_after = time.monotonic() - self.began
        self.admin_port = json.loads(ports.read_text())["admin"]["port"]


def fill(store, name, count, arguments, folder, deadline):
    """Starts a server on a store and sends pushes to it until it has this many records, or the deadline has passed.

    Returns: the number of records, which is less after the deadline, and the first record.
    """
    cores = sorted(os.sched_getaffinity(0))
    server = StoreServer(store, "soon", f"{name.replace(' ', '-')}-fill", arguments.binary, folder, {cores[0]})
    try:
        server.get_ready()
        present = server.inbox()["records"]
        load = loads.Load(Push(bytes=arguments.bytes, connections=4, devices=20_000), PORTION, arguments.binary, folder, {cores[-1]})
        # Payloads other than those of an earlier call.
        load.payloads = itertools.count(present)
        began, start = time.monotonic(), present
        while present < count and time.monotonic() < deadline:
            portion = min(PORTION, count - present)
            # A provider token is valid for an hour.
            load.h2load(server, load.token(), portion)
            present += portion
            speed = (present - start) / (time.monotonic() - began)
            show(f"{name}: {present:,} of {count:,} records, {speed:,.0f} a second, {(count - present) / speed / 60:.0f} min left")
        server.await_written()
        found = server.inbox()["records"]
        if found != present:
            raise BadRun(f"{name} has {found:,} records instead of {present:,}")
        return present, server.api("GET", "/pushes", limit=1, order="asc")["items"][0]
    finally:
        server.stop()


def require_disk(folder, count, size):
    """Raises BadRun if the disk of a folder does not have what this many records with payloads of this size need."""
    needed = count * (size + 1500)
    if shutil.disk_usage(folder).free < needed:
        raise BadRun(f"{folder} needs {needed / 1e9:.0f} GB for {count:,} records: set TMPDIR to a larger disk, or use fewer --records")


def read_for(server, path, seconds):
    """Reads a response for at most this long.

    Returns: the size of what was read in megabytes, and whether that is all.
    """
    began, size = time.monotonic(), 0
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/v1{path}", timeout=seconds) as response:
        while piece := response.read1(1 << 20):
            size += len(piece)
            if time.monotonic() - began > seconds:
                return size / 1e6, False
    return size / 1e6, True


def show(text):
    """Prints how far the measurement is."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)

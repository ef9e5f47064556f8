#!/usr/bin/env python3
"""Measures what an inbox in an SQLite file or in PostgreSQL costs, and how long queries over a large one take.

Compares servers with `--store`, `--durable soon` and `answer`, with one whose inbox is in memory: the CPU time of the event
loops, that of the thread that writes, compared with bare inserts (SQLite) or COPY (PostgreSQL) of the same rows, that of
PostgreSQL, and the pushes a second. Then fills a store and queries it. Benchmarks/README.md explains the figures.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import loads
from bench import positive, run
from servers import BadRun, MockProcess
from workloads import Mock, Push

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Tests/Clients"))
from support import postgres

CONNECTIONS, STREAMS = 8, 100
# The rows of a bare insert's transaction.
BATCH = 1000
# The size of the store's pages in a file, in bytes.
PAGE_SIZE = 32_768
LIMITS = {"loops": 1.25, "writer": 1.3, "sqlite start": 300, "postgres start": 1000, "exact": 50, "time": 500, "view": 100}
# The device token and the payloads of the large file differ; one call of h2load sends one payload.
PORTION = 100_000
# Conditions that nothing meets, so that all contents are searched: without case, with digits, with case, in header fields.
SEARCHES = [{"text": "nothing"}, {"text": "no-12345"}, {"payload./aps/alert": "nothing"}, {"header.x-nothing": "1"}]


class SQLite:
    """An inbox in a file."""

    writes = "bare insert"
    also_writes = "  pages of 32 KB"

    def __init__(self, path):
        self.path = path.with_suffix(".db")

    def value(self):
        return f"sqlite:{self.path}"

    def cpu_seconds(self):
        return 0

    def megabytes(self):
        return self.path.stat().st_size / 1e6

    def write_bare(self, count):
        return insert_bare(self.path, count)

    def write_bare_like_store(self, count):
        """Returns the same with pages of the store's size, which need fewer instructions."""
        return insert_bare(self.path, count, PAGE_SIZE)

    def remove(self):
        self.path.unlink()


class PostgreSQL:
    """An inbox in a schema of a PostgreSQL that this program starts."""

    writes = "bare COPY"
    also_writes = None

    def __init__(self, path):
        self.inbox = postgres.shared().new_inbox()

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


class StoreServer(MockProcess):
    """A server with a store, or without if it is None."""

    def __init__(self, store, durable, name, binary, folder, cores, flags=()):
        settings = () if store is None else ("--store", store.value(), "--durable", durable)
        super().__init__(Mock(flags=(*settings, *flags)), name, binary, folder, cores)

    def writer_seconds(self):
        """Returns the CPU time so far of the thread that writes to the store."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/metrics", timeout=10) as response:
            found = re.search(r"^apns_mock_store_cpu_seconds_total (\S+)", response.read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0

    def await_written(self):
        """Waits until the store has all records."""
        status = self.api("GET", "/status")
        last = status["inbox"]["last_seq"]
        deadline = time.monotonic() + 60
        while status["store"] and status["store"]["records_written"] < last:
            if time.monotonic() > deadline:
                raise BadRun("the store does not get all records")
            time.sleep(0.02)
            status = self.api("GET", "/status")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--pushes", type=positive, default=100_000, help="pushes a run (default 100000)")
    parser.add_argument("--runs", type=positive, default=5)
    parser.add_argument("--stores", nargs="+", choices=list(STORES), default=list(STORES))
    parser.add_argument("--records", type=int, default=1_000_000,
                        help="records in the store that is queried (default a million; 0 to query none)")
    parser.add_argument("--queries-only", action="store_true", help="do not compare what pushes cost")
    parser.add_argument("--schemas", type=int, default=0,
                        help="also fill this many schemas with a part of the records each, and query a view of them")
    parser.add_argument("--bytes", type=positive, default=1024, help="size of a payload")
    parser.add_argument("--check", action="store_true", help="fail if a figure exceeds its limit")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="apns-mock-store-", dir=os.environ.get("TMPDIR")) as folder:
        folder = pathlib.Path(folder)
        exceeded = [] if arguments.queries_only else compare(arguments, folder)
        for name in arguments.stores if arguments.records else ():
            exceeded += query(arguments, folder, name)
        if arguments.schemas:
            exceeded += view(arguments, folder)
    if exceeded:
        print(f"limit exceeded: {', '.join(exceeded)}")
        sys.exit(1 if arguments.check else 0)


def compare(arguments, folder):
    """Prints what pushes cost with each kind of inbox; returns which limits are exceeded."""
    cores = sorted(os.sched_getaffinity(0))
    push = Push(bytes=arguments.bytes, connections=CONNECTIONS, streams=STREAMS, devices=20_000)
    kinds = [(None, None), *((name, durable) for name in arguments.stores for durable in ("soon", "answer"))]
    figures, bare = {kind: [] for kind in kinds}, {name: [] for name in arguments.stores}
    alike = {name: [] for name in arguments.stores}
    for number in range(arguments.runs):
        for (kind, durable), found in figures.items():
            name = f"{kind}-{durable}-{number}"
            store = STORES[kind](folder / name) if kind else None
            server = StoreServer(store, durable, name, arguments.binary, folder, {cores[0]})
            try:
                server.get_ready()
                load = loads.Load(push, arguments.pushes, arguments.binary, folder, {cores[-1]})
                load.h2load(server, load.tokens[0], arguments.pushes // 10)
                server.await_written()
                found.append(measure(server, store, load, arguments.pushes))
            finally:
                server.stop()
            if store:
                if durable == "soon":
                    bare[kind].append(store.write_bare(arguments.pushes))
                    if store.also_writes:
                        alike[kind].append(store.write_bare_like_store(arguments.pushes))
                store.remove()
    memory = median(figures[None, None], "loops")
    print(f"{arguments.pushes:,} pushes of {arguments.bytes} bytes, {CONNECTIONS} connections, {STREAMS} streams each, "
          f"median of {arguments.runs} runs; server on one core, load on another")
    print(f"{'inbox':16}{'loops µs/push':>15}{'ratio':>7}{'writer µs/push':>16}{'to bare':>9}{'database µs':>13}{'pushes/s':>10}{'MB':>7}")
    exceeded = []
    for (kind, durable), found in figures.items():
        loops, writer = median(found, "loops"), median(found, "writer")
        if kind:
            exceeded += above(f"{kind} {durable} loops", loops / memory, LIMITS["loops"])
            exceeded += above(f"{kind} {durable} writer", writer / statistics.median(bare[kind]), LIMITS["writer"])
        print(f"{f'{kind} {durable}' if kind else 'memory':16}{loops:15.2f}{loops / memory:7.2f}"
              + (f"{writer:16.2f}{writer / statistics.median(bare[kind]):9.2f}{median(found, 'database'):13.2f}" if kind else f"{'':38}")
              + f"{median(found, 'speed'):10,.0f}{median(found, 'resident'):7.0f}")
    for kind, times in bare.items():
        print(f"{STORES[kind].writes:16}{'':22}{statistics.median(times):16.2f}")
        if alike[kind]:
            print(f"{STORES[kind].also_writes:16}{'':22}{statistics.median(alike[kind]):16.2f}")
    return exceeded


def above(name, figure, limit):
    """Returns the name of a figure and its limit in a list, empty if the figure is not above it."""
    return [f"{name} {figure:.2f} > {limit}"] if figure > limit else []


def median(figures, name):
    return statistics.median(each[name] for each in figures)


def measure(server, store, load, pushes):
    database = store.cpu_seconds() if store else 0
    loops, writer, began = server.loop_seconds(), server.writer_seconds(), time.monotonic()
    load.h2load(server, load.tokens[0], pushes)
    server.await_written()
    seconds = time.monotonic() - began
    return {"loops": (server.loop_seconds() - loops) * 1e6 / pushes,
            "writer": (server.writer_seconds() - writer) * 1e6 / pushes, "speed": pushes / seconds,
            "database": ((store.cpu_seconds() if store else 0) - database) * 1e6 / pushes,
            "resident": server.resident_bytes() / 1e6}


def insert_bare(file, count, page_size=4096):
    """Returns the CPU microseconds that SQLite takes to insert a row, for the rows of a file, into one like it with pages
    of this size, by default SQLite's own."""
    copy = file.with_suffix(".copy")
    source = sqlite3.connect(file)
    columns = [row[1] for row in source.execute("PRAGMA table_info(push)")]
    rows = source.execute("SELECT * FROM push ORDER BY seq DESC LIMIT ?", (count,)).fetchall()[::-1]
    schema = [row[0] for row in source.execute("SELECT sql FROM sqlite_master WHERE tbl_name = 'push' AND sql NOT NULL")]
    source.close()
    target = sqlite3.connect(copy, isolation_level=None)
    target.executescript(f"PRAGMA page_size = {page_size}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
                         f"PRAGMA wal_autocheckpoint = {4000 * 4096 // page_size}; "
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


def query(arguments, folder, name):
    """Fills a store, starts a server on it, and prints how long queries take; returns which limits are exceeded."""
    cores = sorted(os.sched_getaffinity(0))
    push = Push(bytes=arguments.bytes, connections=4, devices=20_000)
    store = STORES[name](folder / f"{name}-large")
    server = StoreServer(store, "soon", f"{name}-fill", arguments.binary, folder, {cores[0]})
    try:
        server.get_ready()
        load = loads.Load(push, PORTION, arguments.binary, folder, {cores[-1]})
        for _ in range(max(1, arguments.records // PORTION)):
            load.h2load(server, load.tokens[0], PORTION)
        server.await_written()
        first = server.api("GET", "/pushes", limit=1, order="asc")["items"][0]
        peak = server.resident_bytes()
    finally:
        server.stop()
    server = StoreServer(store, "soon", f"{name}-query", arguments.binary, folder, set(cores))
    try:
        server.get_ready()
        count = server.inbox()["records"]
        print(f"\n{count:,} records in {name}, {store.megabytes() / 1000:.1f} GB; start to ready "
              f"{server.ready_after * 1000:.0f} ms; {peak / 1e6:.0f} MB resident after filling")
        print(f"{'ms':>8}  query")
        exceeded = above(f"{name} start", server.ready_after * 1000, LIMITS[f"{name} start"])
        middle, later = (server.api("GET", "/pushes", after=first["seq"] + count // 2 + more, limit=1)["items"][0]["received_at"]
                         for more in (0, min(1000, count // 4)))
        for limit, conditions in (
                ("exact", {"order": "desc"}), ("exact", {"device_token": first["request"]["device_token"]}),
                ("exact", {"apns_id": first["apns"]["id"]}), ("exact", {"push_key": first["push_key"]}),
                ("exact", {"status": 200, "order": "desc"}), ("exact", {"topic": "com.example.app", "order": "desc"}),
                ("time", {"until": middle, "order": "desc"}), ("time", {"since": middle}),
                ("time", {"since": middle, "until": later, "order": "desc"}), (None, {"status": 410, "order": "desc"}),
                (None, {"text": "hello"}), (None, {"payload./aps/badge": 3}), *((None, each) for each in SEARCHES)):
            milliseconds = show(server, conditions, arguments.runs, count * arguments.bytes)
            if limit:
                exceeded += above(f"{name} {' '.join(conditions)}", milliseconds, LIMITS[limit])
        print(f"{server.resident_bytes() / 1e6:.0f} MB resident after the queries")
        show_large(server)
        return exceeded
    finally:
        server.stop()
        store.remove()


def show_large(server):
    """Prints how long a sort and an export take, and the memory after each: neither grows with the number of records."""
    for path in ("/pushes/seqs?sort=device_token", "/export"):
        began, size = time.perf_counter(), 0
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/v1{path}", timeout=3600) as response:
                while piece := response.read(1 << 20):
                    size += len(piece)
        except urllib.error.HTTPError as error:
            print(f"{'':8}  {path}: {error.code}")
            continue
        print(f"{(time.perf_counter() - began) * 1000:8.0f}  {path}: {size / 1e6:,.0f} MB; "
              f"{server.resident_bytes() / 1e6:.0f} MB resident", flush=True)


class Viewer:
    """`apns-mock view` of several schemas."""

    def __init__(self, url, binary, folder):
        ports = folder / "view.json"
        self.process = subprocess.Popen(
            [binary, "view", url, "--admin", "127.0.0.1:0", "--port-file", ports], stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not ports.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise BadRun("the view does not start")
            time.sleep(0.01)
        self.admin_port = json.loads(ports.read_text())["admin"]["port"]

    api = MockProcess.api

    def stop(self):
        self.process.terminate()
        self.process.wait()


def view(arguments, folder):
    """Fills schemas of one database by a server each, and prints how long queries of a view of all take."""
    cores = set(os.sched_getaffinity(0))
    push = Push(bytes=arguments.bytes, connections=4, devices=20_000)
    stores, exceeded = [], []
    try:
        for number in range(1, arguments.schemas + 1):
            stores.append(PostgreSQL(folder / f"load-{number}"))
            stores[-1].inbox.schema = f"load_{number}"
            server = StoreServer(stores[-1], "soon", f"load-{number}", arguments.binary, folder, cores)
            try:
                server.get_ready()
                load = loads.Load(push, PORTION, arguments.binary, folder, cores)
                for _ in range(max(1, arguments.records // arguments.schemas // PORTION)):
                    load.h2load(server, load.tokens[0], min(PORTION, arguments.records // arguments.schemas))
                server.await_written()
                newest = server.api("GET", "/pushes", limit=1, order="desc")["items"][0]
            finally:
                server.stop()
        server = Viewer(stores[0].value().replace("schema=load_1", "schema=load_*"), arguments.binary, folder)
        try:
            count = server.api("GET", "/status")["inbox"]["records"]
            print(f"\n{count:,} records in {arguments.schemas} schemas")
            print(f"{'ms':>8}  query")
            for limit, conditions in (
                    ("view", {"order": "desc"}), ("view", {"device_token": newest["request"]["device_token"]}),
                    ("view", {"apns_id": newest["apns"]["id"]}), *((None, each) for each in SEARCHES)):
                milliseconds = show(server, conditions, arguments.runs, count * arguments.bytes)
                if limit:
                    exceeded += above(f"view {' '.join(conditions)}", milliseconds, LIMITS[limit])
        finally:
            server.stop()
        return exceeded
    finally:
        for store in stores:
            store.remove()


def show(server, conditions, runs, size):
    """Prints and returns how many milliseconds a query takes; a search through payloads of this size in bytes, its speed."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        page = server.api("GET", "/pushes", **conditions)
        times.append((time.perf_counter() - began) * 1000)
        if times[-1] > 5000:
            break
    print(f"{statistics.median(times):8.0f}  {urllib.parse.urlencode(conditions, safe='/')}: {len(page['items'])} "
          f"of {page['matched']}" + (f"; {size / statistics.median(times) / 1000:,.0f} MB/s" if conditions in SEARCHES else ""), flush=True)
    return statistics.median(times)


if __name__ == "__main__":
    run(main)

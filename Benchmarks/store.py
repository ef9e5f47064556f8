#!/usr/bin/env python3
"""Measures what an inbox in an SQLite file or in PostgreSQL costs, and how long queries over a large one take.

Compares servers with `--store`, `--durable soon` and `answer`, with one whose inbox is in memory: the CPU time of the event
loops, that of the thread that writes, compared with bare inserts (SQLite) or COPY (PostgreSQL) of the same rows, that of
PostgreSQL, and the pushes a second. Then fills a store and queries it, and schemas of several servers and queries a view of them.
Prints the progress to stderr and at the end one table with the limit of each figure. Benchmarks/README.md explains the figures.
"""

import argparse
import contextlib
import dataclasses
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

import loads
from bench import positive, run
from servers import BadRun
from stores import STORES, StoreServer, Viewer, fill, read_for, require_disk, show
from workloads import Push

CONNECTIONS, STREAMS = 8, 100
# At most this many times the CPU time of the event loops without a store, and of bare inserts or COPY.
LOOPS, WRITER = 1.1, {"sqlite": 1.2, "postgres": 2.0}
# Milliseconds until a server is ready; for one record or the newest page; for a time range; and the same in a view of schemas.
READY, EXACT, TIME_RANGE, VIEW = {"sqlite": 300, "postgres": 1000}, 50, 500, 100
# Megabytes of payloads a second that a search for a text or a value reads at least.
SEARCH_SPEED = 500
# Conditions that nothing meets, so that all contents are searched: without case, with digits, with case, in header fields.
SEARCHES = [{"text": "nothing"}, {"text": "no-12345"}, {"search": "nothing"}, {"payload./aps/alert": "nothing"},
            {"header.x-nothing": "1"}]
# Seconds after which no further run of a query is measured, and for which a sort or an export is read.
SLOW, LONG = 5, 60


@dataclasses.dataclass
class Figure:
    """A line of the table."""

    name: str
    value: float
    unit: str
    limit: float = None
    is_least: bool = False
    note: str = ""

    @property
    def is_exceeded(self):
        # A measurement that failed has no value: it is not a number.
        return self.limit is not None and not (self.value >= self.limit if self.is_least else self.value <= self.limit)

    def __str__(self):
        digits = 2 if self.unit in ("×", "µs") else 0
        bound = "" if self.limit is None else f"{'≥' if self.is_least else '≤'} {self.limit:,.{1 if self.unit == '×' else 0}f}"
        verdict = "" if self.limit is None else "exceeded" if self.is_exceeded else "ok"
        return f"{self.name:52}{self.value:12,.{digits}f} {self.unit:5}{bound:>9}  {verdict:9}{self.note}".rstrip()


class Table(list):
    """The figures so far; each one is also shown when it is added."""

    def add(self, *values, **named):
        self.append(Figure(*values, **named))
        show(str(self[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--pushes", type=positive, default=100_000, help="pushes a run (default 100000)")
    parser.add_argument("--runs", type=positive, default=5)
    parser.add_argument("--stores", nargs="+", choices=list(STORES), default=list(STORES))
    parser.add_argument("--records", type=int, default=1_000_000,
                        help="records in the store that is queried (default a million; 0 to query none)")
    parser.add_argument("--queries-only", action="store_true", help="do not compare what pushes cost")
    parser.add_argument("--schemas", type=int, default=0, help="also fill this many schemas and query a view of them")
    parser.add_argument("--schema-records", type=positive, default=1_000_000, help="records in each schema (default a million)")
    parser.add_argument("--fill-minutes", type=positive, default=60,
                        help="stop filling a store or all schemas after this time and measure what there is (default 60)")
    parser.add_argument("--bytes", type=positive, default=1024, help="size of a payload")
    parser.add_argument("--check", action="store_true", help="fail if a figure exceeds its limit")
    arguments = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory(prefix="apns-mock-store-", dir=os.environ.get("TMPDIR")) as folder:
        folder = pathlib.Path(folder)
        try:
            if not arguments.queries_only:
                compare(table, arguments, folder)
            for name in arguments.stores if arguments.records else ():
                query(table, arguments, folder, name)
            if arguments.schemas:
                view(table, arguments, folder)
        finally:
            # Also what was measured before a failure.
            print("\n".join(map(str, table)))
    exceeded = [figure.name for figure in table if figure.is_exceeded]
    if exceeded:
        print(f"limit exceeded: {', '.join(exceeded)}")
        sys.exit(1 if arguments.check else 0)


def compare(table, arguments, folder):
    """Measures what pushes cost with each kind of inbox."""
    cores = sorted(os.sched_getaffinity(0))
    push = Push(bytes=arguments.bytes, connections=CONNECTIONS, streams=STREAMS, devices=20_000)
    kinds = [(None, None), *((name, durable) for name in arguments.stores for durable in ("soon", "answer"))]
    figures, bare = {kind: [] for kind in kinds}, {name: [] for name in arguments.stores}
    for number in range(arguments.runs):
        for (kind, durable), found in figures.items():
            name = f"{kind or 'memory'}-{durable}-{number}"
            show(f"{arguments.pushes:,} pushes, {name}, {number + 1} of {arguments.runs}")
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
                store.remove()
    memory = median(figures[None, None], "loops")
    for (kind, durable), found in figures.items():
        name = f"{kind}, {durable}" if kind else "memory"
        loops = median(found, "loops")
        table.add(f"{name}: event loops per push", loops, "µs",
                  note=f"{median(found, 'speed'):,.0f} pushes/s, {median(found, 'resident'):.0f} MB, median of {arguments.runs}")
        if kind:
            writer, inserts = median(found, "writer"), statistics.median(bare[kind])
            table.add(f"{name}: event loops to memory", loops / memory, "×", LOOPS)
            table.add(f"{name}: writing thread to {STORES[kind].writes}", writer / inserts, "×", WRITER[kind],
                      note=f"{writer:.2f} to {inserts:.2f} µs; database {median(found, 'database'):.2f} µs")


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


def query(table, arguments, folder, name):
    """Fills a store and measures queries: the memory of long ones already with a tenth of the records."""
    STORES[name].prepare()
    store = STORES[name](folder / f"{name}-large")
    deadline = time.monotonic() + arguments.fill_minutes * 60
    try:
        require_disk(folder, arguments.records, arguments.bytes)
        tenth, _ = fill(store, name, max(1, arguments.records // 10), arguments, folder, deadline)
        _, server = start(store, name, arguments, folder, 1)
        try:
            former = dict(memory(server))
        finally:
            server.stop()
        count, first = fill(store, name, arguments.records, arguments, folder, deadline)
        store.await_quiet()
        times, server = start(store, name, arguments, folder, arguments.runs)
        try:
            table.add(f"{name}: ready", statistics.median(times), "ms", READY[name],
                      note=f"{count:,} records, {store.megabytes() / 1000:.1f} GB; {', '.join(f'{each:.0f}' for each in times)}")
            for limit, conditions in queries(server, first, count):
                milliseconds(table, name, server, conditions, arguments.runs, limit)
            for conditions in SEARCHES:
                speed(table, name, server, conditions, arguments.runs, count * arguments.bytes)
            for path, peak in memory(server):
                # Flat: a quarter and a little more than with a tenth of the records, of which the caches are not full yet.
                table.add(f"{name}: memory of {path}", peak, "MB", former[path] * 1.25 + 16, note=f"{former[path]:.0f} MB with {tenth:,}")
        finally:
            server.stop()
    finally:
        store.remove()


def start(store, name, arguments, folder, runs):
    """Starts a server on a store several times.

    Returns: the milliseconds until it was ready each time, and the last server.
    """
    times = []
    for number in range(runs):
        server = StoreServer(store, "soon", f"{name}-query", arguments.binary, folder, set(os.sched_getaffinity(0)))
        try:
            server.get_ready()
        except BadRun:
            server.stop()
            raise
        times.append(server.ready_after * 1000)
        if number + 1 < runs:
            server.stop()
    return times, server


def queries(server, first, count):
    """Returns conditions that find pushes of a large inbox, each with its limit."""
    middle, later = (server.api("GET", "/pushes", after=first["seq"] + count // 2 + more, limit=1)["items"][0]["received_at"]
                     for more in (0, min(1000, count // 4)))
    return [
        (EXACT, {"order": "desc"}), (EXACT, {"device_token": first["request"]["device_token"]}),
        (EXACT, {"apns_id": first["apns"]["id"]}), (EXACT, {"push_key": first["push_key"]}),
        (TIME_RANGE, {"until": middle, "order": "desc"}), (TIME_RANGE, {"since": middle}),
        (TIME_RANGE, {"since": middle, "until": later, "order": "desc"}),
        (None, {"status": 200, "order": "desc"}), (None, {"topic": "com.example.app", "order": "desc"})]


def timed(server, conditions, runs):
    """Sends a query several times, fewer if it is slow; returns the median in milliseconds and the response."""
    times = []
    while len(times) < runs and not (times and times[-1] > SLOW * 1000):
        began = time.perf_counter()
        page = server.api("GET", "/pushes", **conditions)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times), page


def described(conditions):
    return ", ".join(f"{name} {str(value)[:12]}" for name, value in conditions.items())


def milliseconds(table, name, server, conditions, runs, limit):
    """Measures a query that finds something."""
    with reported(table, f"{name}: {described(conditions)}", "ms", limit):
        taken, page = timed(server, conditions, runs)
        if not page["items"]:
            raise BadRun("nothing is found")
        table.add(f"{name}: {described(conditions)}", taken, "ms", limit, note=f"{len(page['items'])} of {page['matched']}")


def speed(table, name, server, conditions, runs, size, limit=SEARCH_SPEED):
    """Measures the megabytes a second of a query that reads all payloads, of this size in bytes, and finds nothing."""
    with reported(table, f"{name}: {described(conditions)}", "MB/s", limit):
        taken, page = timed(server, conditions, runs)
        if page["items"] or not page["complete"]:
            raise BadRun(f"{len(page['items'])} found, complete: {page['complete']}")
        table.add(f"{name}: {described(conditions)}", size / taken / 1000, "MB/s", limit, is_least=True, note=f"{taken:,.0f} ms")


@contextlib.contextmanager
def reported(table, name, unit, limit):
    """Adds a line for a measurement that fails, so that a long run goes on with the others."""
    try:
        yield
    except (BadRun, OSError) as problem:
        table.add(name, math.nan, unit, limit, note=str(problem))


def memory(server):
    """Yields queries, sorts and exports that read all records, and the most resident memory in megabytes during each."""
    for path in ("/pushes?limit=1000", "/pushes?text=nothing", "/pushes/seqs?sort=device_token", "/pushes/seqs?sort=size&order=desc",
                 "/stats", "/export"):
        server.reset_peak()
        try:
            size, is_all = read_for(server, path, LONG)
            show(f"{path}: {size:,.1f} MB read" + ("" if is_all else f", the rest not within {LONG} s"))
        except OSError as problem:
            show(f"{path}: {problem}")
        yield path, server.peak_megabytes()


def view(table, arguments, folder):
    """Fills schemas of one database by a server each and measures queries of a view of all."""
    cores, stores = set(os.sched_getaffinity(0)), []
    PostgreSQL = STORES["postgres"]
    PostgreSQL.prepare()
    deadline = time.monotonic() + arguments.fill_minutes * 60
    try:
        require_disk(folder, arguments.schemas * arguments.schema_records, arguments.bytes)
        count = 0
        for number in range(1, arguments.schemas + 1):
            stores.append(PostgreSQL(folder / f"load-{number}"))
            stores[-1].inbox.schema = f"load_{number}"
            filled, first = fill(stores[-1], f"schema {number} of {arguments.schemas}", arguments.schema_records, arguments, folder, deadline)
            count += filled
        stores[-1].await_quiet()
        server = Viewer(stores[0].value(), arguments.binary, folder, cores)
        try:
            size = server.api("GET", "/status")["inbox"]["records"] * arguments.bytes
            for conditions in SEARCHES:
                speed(table, "one schema", server, conditions, arguments.runs, size)
            alone, former = {str(each): table[-len(SEARCHES) + number].value for number, each in enumerate(SEARCHES)}, dict(memory(server))
        finally:
            server.stop()
        server = Viewer(stores[0].value().replace("schema=load_1", "schema=load_*"), arguments.binary, folder, cores)
        name = f"{arguments.schemas} schemas"
        try:
            found = server.api("GET", "/status")["inbox"]["records"]
            if found != count:
                raise BadRun(f"the view has {found:,} records instead of {count:,}")
            table.add(f"{name}: ready", server.ready_after * 1000, "ms", note=f"{count:,} records")
            for conditions in ({"order": "desc"}, {"device_token": first["request"]["device_token"]}, {"apns_id": first["apns"]["id"]}):
                milliseconds(table, name, server, conditions, arguments.runs, VIEW)
            for conditions in SEARCHES:
                # At least as fast as the schemas one after the other; on more cores than a search of one needs, faster.
                speed(table, name, server, conditions, arguments.runs, count * arguments.bytes, limit=alone[str(conditions)])
            for path, peak in memory(server):
                # A buffer for each schema.
                table.add(f"{name}: memory of {path}", peak, "MB", former[path] * 1.25 + 4 * arguments.schemas,
                          note=f"{former[path]:.0f} MB with one schema")
        finally:
            server.stop()
    finally:
        for store in stores:
            store.remove()


if __name__ == "__main__":
    run(main)

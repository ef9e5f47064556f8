"""Measures what an idle server, an idle connection and an open wait cost."""

import dataclasses
import os
import statistics
import time

import idle
import provider
from contest import compare, start
from report import Row
from servers import allow_descriptors
from waits import Waits

# The targets: KB per idle connection, MB of an idle server, ms from its start until it is ready, ms from a push's
# response to the response of its wait.
MOST_KB, MOST_MB, MOST_START, MOST_DELAY = 20, 9, 25, 2
# Waits whose pushes are sent in each run.
SAMPLES = 300


def waits(trial):
    """Measures the delay of a wait's response, and the CPU time of other pushes while the waits are open."""
    workload = trial.workload
    allow_descriptors(2 * workload.waits)
    sides = start(trial, workload.ours, workload.theirs)
    load = trial.load()
    trial.progress("warming up")
    for _, server, _ in sides:
        load.fill(server)
    server = sides[0][1]
    connection = provider.connect(server.port, trial.folder / "Certs/ca.pem", workload.push)
    trial.progress("opening waits")
    with Waits(server, workload.waits) as waiting:
        opened, delays = waiting.opened, []
        about = workload.about.replace(f"{workload.waits:,}", f"{opened:,}")
        trial.workload = dataclasses.replace(workload, about=about)
        rows = compare(trial, load, sides)
        for run in range(trial.runs):
            trial.progress(f"waits, run {run + 1} of {trial.runs}")
            delays.append(sorted(waiting.delay(connection, load.tokens[0]) for _ in range(SAMPLES)))
    connection.close()
    slowest = [times[int(len(times) * 0.99)] * 1000 for times in delays]
    rows.append(Row.absolute(
        "waits-delay", f"from a push's response to the one of its wait, with {opened:,} waits (99th percentile)", "ms",
        slowest, MOST_DELAY, waits=opened, median_ms=round(statistics.median(sum(delays, [])) * 1000, 3)))
    # A server with a limit of 20,000 open files allows 9,744.
    if opened < workload.waits * 0.95:
        for row in rows:
            row.missed = f"only {opened:,} of {workload.waits:,} waits"
    return rows


def idle_connection(trial):
    """Measures a new server in each run, because memory of closed connections is used again."""
    count, kilobytes = trial.workload.push.connections, []
    allow_descriptors(count + idle.SERVER_RESERVE)
    for run in range(trial.runs):
        trial.progress(f"run {run + 1} of {trial.runs}")
        server = trial.start(trial.workload.ours, f"run-{run}")
        figures = idle.measure(server, trial.folder / "Certs/ca.pem", count, trial.place.load)
        kilobytes.append(figures["idle_kb"])
        server.stop()
    about = f"resident memory per idle connection, with {count:,} of them"
    return [Row.absolute("idle-connection", about, "KB", kilobytes, MOST_KB)]


def start_server(trial):
    megabytes, milliseconds = [], []
    for run in range(trial.runs):
        trial.progress(f"run {run + 1} of {trial.runs}")
        server = trial.start(trial.workload.ours, f"run-{run}", os.sched_getaffinity(0))
        time.sleep(0.5)
        milliseconds.append(server.ready_after * 1000)
        megabytes.append(server.resident_bytes() / 1e6)
        server.stop()
    return [Row.absolute("idle-server", "resident memory after the start", "MB", megabytes, MOST_MB),
            Row.absolute("start", "from the start of the process until it is ready", "ms", milliseconds, MOST_START)]

"""Measures two servers on one core, with the load on another core. They take turns."""

import contextlib
import dataclasses
import os
import time

from readers import Readers
from report import Row
from servers import BadRun, available_memory, touch_memory

# The maximum number of bytes a recorded push may use beyond its own data.
MOST_BYTES = 250
# The maximum number of milliseconds for a query over all records of the grown inbox.
MOST_MILLISECONDS = 300


def duel(trial):
    sides = start(trial, trial.workload.ours, trial.workload.theirs)
    load = trial.load()
    trial.progress("warming up")
    for _, server, _ in sides:
        load.fill(server)
    return compare(trial, load, sides)


def start(trial, *sides):
    """Starts the servers; returns each with its side of the workload and a list for its figures."""
    return [(side, trial.start(side, name), []) for side, name in zip(sides, ("ours", "theirs"))]


def compare(trial, load, sides):
    """Runs the workload on both servers in turn; returns a row for each of its figures."""
    for run in range(trial.runs):
        trial.progress(f"run {run + 1} of {trial.runs}")
        load.prepare(run)
        # Each round starts with the server that ended the previous one, so that neither always goes first. A server
        # with faults goes first, because the other one's connections send as many pushes as its connections did.
        for side, server, figures in sides if run % 2 == 0 or load.push.is_tracked else reversed(sides):
            readers = getattr(side, "readers", None)
            with Readers(server.admin_port, trial.place.reader, readers) if readers else contextlib.nullcontext():
                figures.append(load.run(server))
    return Row.duel(trial.workload, *(figures for _, _, figures in sides))


def growing(trial):
    """Measures a server whose inbox evicts nothing; with memory that was used before also the memory per record and
    the time of queries over all records.
    """
    workload, runs, pushes = trial.workload, trial.runs, trial.workload.pushes
    records = (runs + 1) * pushes
    needed = records * (2 * workload.push.bytes + 1000)
    if available_memory() < needed:
        return [Row.without_figures(workload, skipped=f"needs {needed >> 20} MiB of free memory")]
    flags = ("--max-records", str(records), "--max-bytes", str(needed))
    sides = start(trial, dataclasses.replace(workload.ours, flags=flags), workload.theirs)
    ours = sides[0][1]
    load = trial.load()
    trial.progress("warming up")
    for _, server, _ in sides:
        load.run(server)
    mark, resident, texts = ours.mark(), ours.resident_bytes(), []
    for run in range(runs):
        trial.progress(f"run {run + 1} of {runs}")
        if not workload.has_fresh_memory:
            touch_memory(needed // (runs + 1))
        for _, server, figures in sides if run % 2 == 0 else reversed(sides):
            # The inbox is not queried between runs, because queries allocate memory too.
            figures.append(load.send(server))
            if server is ours:
                texts.append(load.number)
    grown = (ours.resident_bytes() - resident) / (pushes * runs)
    trial.progress("checking the inbox")
    ours.verify(mark, pushes * runs)
    rows = Row.duel(workload, *(figures for _, _, figures in sides))
    if workload.has_fresh_memory:
        return rows
    newest = ours.api("GET", "/pushes", limit=1, order="desc")["items"][0]
    own = own_bytes(newest, load.tokens[0])
    rows.append(Row.absolute(
        "growing-memory", f"bytes of a record beyond its own {own}", "B", [grown - own], MOST_BYTES,
        resident_bytes=round(grown, 1), own_bytes=own))
    return rows + searches(trial, ours, records, texts)


def searches(trial, server, records, texts):
    """Measures queries whose conditions read every record, on all cores as for a user.

    Parameter `texts`: the numbers at the beginning of the alerts of the runs; each run's query selects another one.
    """
    server.move(os.sched_getaffinity(0))
    kinds = {"search-text": ("a text", 'text:"%08daaaa"'),
             "search-payload": ("a payload pointer", "payload./aps/alert:%08d*"),
             "search-header": ("a header field", "header.user-agent:provider/%d*")}
    rows = []
    for name, (condition, query) in kinds.items():
        trial.progress(name)
        times = []
        for text in texts:
            began = time.monotonic()
            matched = server.api("GET", "/pushes", q=query % text, limit=1)["matched"]
            times.append((time.monotonic() - began) * 1000)
            # No push has this header field.
            if matched != (0 if name == "search-header" else trial.workload.pushes):
                raise BadRun(f"{query % text} matched {matched} pushes")
        about = f"query for {condition} over {records:,} records"
        rows.append(Row.absolute(name, about, "ms", times, MOST_MILLISECONDS, query=query))
    return rows


def own_bytes(record, token):
    """Returns the size of a record's own data: names and values of the header fields, the body and the assigned
    apns-id.
    """
    request = record["request"]
    fields = dict(request["headers"]) | {":method": request["method"], ":path": request["path"]}
    # The record does not contain the token's signature.
    fields["authorization"] = f"bearer {token}"
    headers = sum(len(name) + len(value) for name, value in fields.items())
    return headers + request["size"]["bytes"] + len(record["apns"]["id"])

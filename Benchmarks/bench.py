#!/usr/bin/env python3
"""Measures the server CPU time per push of apns-mock and compares it with nghttpd's for the same requests, and what
queries, waits and idle connections cost.

Both servers are pinned to one core and the load to another, and they take turns. Every push's response and record is
checked afterwards; the measurement fails if one differs from what is expected. Benchmarks/README.md explains the
figures.
"""

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import contest
import report
import resources
from servers import BadRun, touch_memory
from trial import Trial
from workloads import WORKLOADS

MEASURES = {"duel": contest.duel, "growing": contest.growing, "waits": resources.waits,
            "idle_connection": resources.idle_connection, "start_server": resources.start_server}
# More than two servers with a full inbox need.
TOUCHED_MEMORY = 1 << 30


def main():
    arguments = parse()
    if arguments.list:
        for workload in WORKLOADS:
            print(f"{workload.name:20}{workload.about}")
        return
    check_machine(arguments)
    # With --json - the table goes to stderr, so that stdout holds only JSON.
    table = sys.stderr if arguments.json == "-" else sys.stdout
    # Measured before the first run, so that the reported machine load does not include the benchmark's own.
    about = report.circumstances()
    print(report.HEAD, file=table)
    rows, chosen = [], choose(arguments)
    for number, workload in enumerate(chosen, 1):
        progress = functools.partial(show_progress, f"[{number}/{len(chosen)}] {workload.name}: ")
        try:
            new = measure(workload, arguments.runs, arguments.binary, progress)
        except (BadRun, subprocess.SubprocessError) as problem:
            new = [report.Row.without_figures(workload, failed=str(problem))]
        show_progress("", "")
        for row in new:
            print(row.line(), file=table, flush=True)
        rows += new
    for line in report.closing(rows):
        print(line, file=table)
    if arguments.json:
        versions = {"apns_mock": report.version(arguments.binary), "nghttpd": report.version("nghttpd")}
        summary = about | versions | {"workloads": [row.json() for row in rows]}
        write(json.dumps(summary, indent=1), arguments.json)
    sys.exit(complaint(rows, arguments))


def measure(workload, runs, binary, progress):
    """Measures a workload, and once more if the spread of a row with a target is wide.

    Returns: the rows of the report; of two measurements those with the narrower spread.
    Raises: BadRun if a push was not answered or recorded as expected.
    """
    if len(os.sched_getaffinity(0)) < workload.cores:
        return [report.Row.without_figures(workload, skipped=f"needs at least {workload.cores} cores")]
    rows = measure_once(workload, runs, binary, progress)
    if not any(row.is_wide and row.target is not None for row in rows):
        return rows
    again = measure_once(workload, runs, binary, lambda text: progress(f"again, {text}"))
    rows = [min(both, key=lambda row: row.width) for both in zip(rows, again)]
    for row in rows:
        row.is_measured_again = True
    return rows


def measure_once(workload, runs, binary, progress):
    if not workload.has_fresh_memory:
        touch_memory(TOUCHED_MEMORY)
    with Trial(workload, runs, binary, progress) as trial:
        return MEASURES[workload.measure](trial)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--list", action="store_true", help="list the workloads, measure nothing")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=[each.name for each in WORKLOADS], help="these workloads alone")
    parser.add_argument("--runs", type=positive, default=7, help="counted runs of each server (default 7)")
    parser.add_argument("--pushes", type=positive, help="pushes a run (default: as the workload says)")
    parser.add_argument("--connections", type=positive, help="this and the next two vary the workloads that are named, "
                        "or token alone")
    parser.add_argument("--streams", type=positive, help="streams at once on each connection")
    parser.add_argument("--bytes", type=positive, help="size of the payload")
    parser.add_argument("--check", action="store_true", help="fail if a median misses its target")
    parser.add_argument("--limit", type=float, help="fail if the median of a ratio of costs is above this")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write JSON as well; - prints it")
    return parser.parse_args()


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def check_machine(arguments):
    for tool in ("h2load", "nghttpd"):
        if shutil.which(tool) is None:
            sys.exit(f"bench: {tool} is not installed: apt-get install nghttp2-client nghttp2-server")
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        sys.exit("bench: this needs Linux and two cores, one for the servers and one for what they have to bear")
    if shutil.which(arguments.binary) is None:
        sys.exit(f"bench: there is no program {arguments.binary}: build it with make build-optimized")
    # Checked before measuring rather than minutes later.
    if arguments.json and not pathlib.Path(arguments.json).parent.is_dir():
        sys.exit(f"bench: cannot write {arguments.json}: there is no such folder")


def choose(arguments):
    varied = {name: getattr(arguments, name) for name in ("connections", "streams", "bytes")}
    varied = {name: value for name, value in varied.items() if value is not None}
    names = arguments.only or (["token"] if varied else None)
    chosen = [each for each in WORKLOADS if names is None or each.name in names]
    if varied:
        chosen = [dataclasses.replace(each, push=dataclasses.replace(each.push, **varied)) for each in chosen]
    if arguments.pushes:
        chosen = [dataclasses.replace(each, pushes=arguments.pushes) for each in chosen]
        # Pushes that are compared with their records have a device each.
        chosen = [dataclasses.replace(each, push=dataclasses.replace(each.push, devices=each.pushes))
                  if each.push.is_tracked else each for each in chosen]
    return chosen


def show_progress(where, text):
    """Shows the progress if stderr is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{where}{text}", end="", file=sys.stderr, flush=True)


def write(text, where):
    if where == "-":
        print(text)
    else:
        pathlib.Path(where).write_text(text + "\n")


def complaint(rows, arguments):
    """Returns why the result counts as a failure, or None."""
    failed = [row for row in rows if row.failed]
    if failed:
        return "\n".join(f"bench: {row.name}: {row.failed}" for row in failed)
    if arguments.check and any(row.verdict in ("above", "below") for row in rows):
        return "bench: not every target is met"
    limit = float("inf") if arguments.limit is None else arguments.limit
    above = [row.name for row in rows if row.ratio and not row.is_least and row.ratio["median"] > limit]
    if above:
        return f"bench: the median ratio is above {arguments.limit:g}: {', '.join(above)}"
    return None


def run(program):
    """Runs a program and turns SIGTERM into a regular exit, so that no server process is left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        program()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run(main)

#!/usr/bin/env python3
"""Measures how long queries over a large inbox take, from the request to the response.

Fills a server with pushes that have payloads of 1 KB, then sends each query several times. Benchmarks/README.md
explains the figures.
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time
import urllib.parse

import loads
from bench import positive, run
from servers import MockProcess
from workloads import Mock, Push

# Conditions on text, payload and headers: no match, and matches in every push.
QUERIES = [
    {"text": "hello"}, {"search": "order hello"}, {"payload./aps/alert/title": "Hello"}, {"payload./aps/badge": "3"},
    {"header.apns-collapse-id": "x"}, {"header.x-request": "x"}, {"text": "com.example"},
    {"header.apns-priority": "10"}, {"payload./aps/alert": "0*"}]
# Calls of h2load; each sends a different payload.
PORTIONS = 50


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--pushes", type=positive, default=1_000_000)
    parser.add_argument("--runs", type=positive, default=5)
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="apns-mock-queries-") as folder:
        folder = pathlib.Path(folder)
        side = Mock(flags=("--max-records", str(arguments.pushes), "--max-bytes", f"{arguments.pushes * 4}KiB"))
        server = MockProcess(side, "queries", arguments.binary, folder, {cores[0]})
        try:
            server.get_ready()
            load = loads.Load(
                Push(connections=4, devices=20_000), arguments.pushes, arguments.binary, folder, {cores[-1]})
            for _ in range(PORTIONS):
                load.h2load(server, load.tokens[0], arguments.pushes // PORTIONS)
            print(f"{'ms':>8} {'fastest':>8} {'matched':>8}  query over {server.inbox()['records']:,} pushes")
            for query in QUERIES:
                measure(server, query, arguments.runs)
        finally:
            server.stop()


def measure(server, query, runs):
    """Prints the median and the fastest time of a query."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        page = server.api("GET", "/pushes", **query)
        times.append((time.perf_counter() - began) * 1000)
    print(f"{statistics.median(times):8.0f} {min(times):8.0f} {page['matched']:8}  "
          f"{urllib.parse.urlencode(query, safe='/')}", flush=True)


if __name__ == "__main__":
    run(main)

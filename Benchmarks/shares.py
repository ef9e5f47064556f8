#!/usr/bin/env python3
"""Measures which part of the CPU time of a push the kernel, OpenSSL, libnghttp2, the C library and the program take.

Samples both servers with `perf` while they process the same pushes. The last column is the floor: what kernel, OpenSSL,
libnghttp2 and C library take in apns-mock, compared with all that nghttpd takes. Benchmarks/README.md explains the
figures.
"""

import argparse
import collections
import re
import shutil
import statistics
import subprocess
import sys

from bench import positive, run, show_progress
from servers import BadRun
from trial import Trial
from workloads import WORKLOADS

PARTS = ("kernel", "OpenSSL", "libnghttp2", "C library", "program")
LIBRARIES = (("[kernel", "kernel"), ("libcrypto", "OpenSSL"), ("libssl", "OpenSSL"), ("libnghttp2", "libnghttp2"),
             ("libc.", "C library"), ("libm.", "C library"), ("ld-linux", "C library"), ("[vdso]", "C library"))


def main():
    arguments = parse()
    for tool, package in (("perf", "linux-perf"), ("nghttpd", "nghttp2-server"), ("h2load", "nghttp2-client")):
        if shutil.which(tool) is None:
            sys.exit(f"shares: {tool} is not installed: apt-get install {package}")
    print(f"{'microseconds per push':31}{'total':>8}" + "".join(f"{part:>12}" for part in PARTS) + f"{'floor':>8}")
    for workload in (each for each in WORKLOADS if each.name in arguments.only):
        try:
            measure(workload, arguments)
        except (BadRun, subprocess.SubprocessError) as problem:
            sys.exit(f"shares: {workload.name}: {problem}")


def parse():
    against_nghttpd = [each.name for each in WORKLOADS if each.figures == ("cpu_us",) and each.measure == "duel"
                       and type(each.theirs).__name__ == "Nghttpd"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=against_nghttpd, default=against_nghttpd,
                        help="these workloads of bench.py (default: all that are compared with nghttpd)")
    parser.add_argument("--runs", type=positive, default=5, help="counted runs of each server (default 5)")
    return parser.parse_args()


def measure(workload, arguments):
    def progress(text):
        show_progress(f"{workload.name}: ", text)

    with Trial(workload, arguments.runs, arguments.binary, progress) as trial:
        servers = [trial.start(workload.ours, "ours"), trial.start(workload.theirs, "theirs")]
        load = trial.load()
        progress("warming up")
        for server in servers:
            load.fill(server)
        costs = ([], [])
        samples = (collections.Counter(), collections.Counter())
        for number in range(arguments.runs):
            progress(f"run {number + 1} of {arguments.runs}")
            load.prepare(number)
            for server, cost, found in zip(servers, costs, samples):
                cost.append(load.run(server)["cpu_us"])
                found.update(sampled(server, load, trial.folder / "perf.data"))
    progress("")
    ours, theirs = (statistics.median(cost) for cost in costs)
    shares = [{part: found[part] / max(1, sum(found.values())) for part in PARTS} for found in samples]
    floor = ours * (1 - shares[0]["program"]) / theirs
    print(line(workload.name, "apns-mock", ours, shares[0]) + f"{floor:8.2f}")
    print(line("", "nghttpd", theirs, shares[1]), flush=True)


def line(name, server, cost, shares):
    return f"{name:20}{server:11}{cost:8.2f}" + "".join(f"{cost * shares[part]:12.2f}" for part in PARTS)


def sampled(server, load, file):
    """Runs the workload once more under perf; returns the number of samples of each part."""
    perf = subprocess.Popen(
        ["perf", "record", "-F", "4999", "-o", file, "-p", str(server.process.pid)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        load.send(server)
    finally:
        perf.terminate()
        perf.wait(30)
    report = subprocess.run(
        ["perf", "report", "-i", file, "--no-children", "--sort", "dso", "--stdio", "-n", "-g", "none"], check=True,
        capture_output=True, text=True, timeout=120)
    counts = collections.Counter()
    for samples, library in re.findall(r"^\s*[\d.]+%\s+(\d+)\s+(\S+)", report.stdout, re.MULTILINE):
        counts[next((part for start, part in LIBRARIES if library.startswith(start)), "program")] += int(samples)
    return counts


if __name__ == "__main__":
    run(main)

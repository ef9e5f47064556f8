#!/usr/bin/env python3
"""Counts the user-space instructions per push of apns-mock and compares them with nghttpd's for the same requests.

CPU time varies with the other load on the machine; instruction counts do not. Both servers run under callgrind and
receive the same pushes. Instructions executed in the kernel are not counted. Benchmarks/README.md explains the figures.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from bench import positive, run, show_progress
from loads import Load
from servers import BadRun, MockProcess, NghttpdProcess, ServerProcess
from workloads import WORKLOADS, Nghttpd

# Valgrind writes to the signal mask it is passed, and libdispatch's is in read-only memory.
SIGSUSPEND = "#include <signal.h>\n#include <unistd.h>\nint sigsuspend(const sigset_t *mask) { for (;;) pause(); }\n"


def main():
    arguments = parse()
    for tool, package in (("valgrind", "valgrind"), ("nghttpd", "nghttp2-server"), ("h2load", "nghttp2-client"),
                          ("cc", "gcc"), ("strip", "binutils")):
        if shutil.which(tool) is None:
            sys.exit(f"instructions: {tool} is not installed: apt-get install {package}")
    if shutil.which(arguments.binary) is None:
        sys.exit(f"instructions: there is no program {arguments.binary}: build it with make build-optimized")
    print(f"{'':16}{'ours':>10}{'theirs':>10}{'ratio':>8}   instructions per push")
    for workload in (each for each in WORKLOADS if each.name in arguments.only):
        try:
            ours, theirs = count(workload, arguments.pushes, arguments.binary)
        except (BadRun, subprocess.SubprocessError) as problem:
            sys.exit(f"instructions: {workload.name}: {problem}")
        print(line(workload.name, sum(ours.values()), sum(theirs.values())), flush=True)
        if arguments.by_library:
            for library in sorted(ours | theirs, key=lambda name: -max(ours[name], theirs[name])):
                if max(ours[library], theirs[library]) >= 50:
                    print(line(f"  {library[:13]}", ours[library], theirs[library]), flush=True)


def parse():
    # Workloads that reuse their connections and whose servers do nothing else.
    plain = [each.name for each in WORKLOADS if each.figures == ("cpu_us",) and each.ours.threads == 1
             and each.measure == "duel" and each.push.is_plain]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=plain,
                        default=["token", "403-one", "410", "413"], help="these workloads of bench.py")
    parser.add_argument("--pushes", type=positive, default=2000, help="pushes of the first count; the second has three times as many")
    parser.add_argument("--by-library", action="store_true", help="also what each library takes")
    return parser.parse_args()


def line(name, ours, theirs):
    ratio = f"{ours / theirs:8.2f}" if theirs else ""
    return f"{name:16}{ours:10,.0f}{theirs:10,.0f}{ratio}"


def count(workload, pushes, binary):
    """Counts instructions for both servers.

    Returns: instructions per push by library, for ours and theirs.
    """
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apns-mock-instructions-")))
        subprocess.run([binary, "certs", "--certs", folder / "Certs"], check=True, capture_output=True)
        # Not every valgrind can read the debug information that the Swift compiler writes.
        program = folder / "apns-mock"
        subprocess.run(["strip", "--strip-debug", "-o", program, binary], check=True)
        (folder / "sigsuspend.c").write_text(SIGSUSPEND)
        preloaded = folder / "sigsuspend.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", preloaded, folder / "sigsuspend.c"], check=True)
        ServerProcess.wrapper = (
            "env", f"LD_PRELOAD={preloaded}", "valgrind", "--tool=callgrind", "--instr-atstart=no",
            f"--callgrind-out-file={folder}/callgrind.%p")
        cores = sorted(os.sched_getaffinity(0))
        load = Load(workload.push, pushes, binary, folder, {cores[-1]})
        counts = []
        for name, side in (("ours", workload.ours), ("theirs", workload.theirs)):
            if isinstance(side, Nghttpd):
                server = NghttpdProcess(side, workload.push.paths, folder, {cores[0]})
            else:
                server = MockProcess(side, name, program, folder, {cores[0]})
            stack.callback(server.stop)
            server.get_ready()
            show_progress(f"{workload.name}: ", f"warming up {name}")
            load.fill(server)
            show_progress(f"{workload.name}: ", f"counting {name}")
            counts.append(of_a_push(server, load, pushes, folder))
        show_progress("", "")
        return counts


def of_a_push(server, load, pushes, folder):
    control(server, "-i", "on")
    totals = []
    # Both totals include the connection and its handshake, so their difference is the cost of the pushes alone.
    for number, share in enumerate((1, 3), 1):
        load.h2load(server, load.tokens[0], share * pushes)
        control(server, "-d")
        totals.append(by_library(folder / f"callgrind.{server.process.pid}.{number}"))
    control(server, "-i", "off")
    few, many = totals
    return collections.Counter({name: (many[name] - few[name]) / (2 * pushes) for name in many})


def control(server, *order):
    subprocess.run(["callgrind_control", *order, str(server.process.pid)], check=True, capture_output=True, timeout=60)


def by_library(dump):
    """Sums callgrind's counts per function by the file the function is in.

    In callgrind's format a name is written once with a number and referred to by that number from then on. The line
    after `calls=` is the inclusive cost of the callee, which is counted at the callee itself.
    """
    names, totals, library, is_call = {}, collections.Counter(), "", False
    for text in dump.read_text().splitlines():
        if text.startswith(("ob=", "cob=")):
            kind, _, rest = text.partition("=")
            number, _, name = rest.partition(" ")
            if name:
                names[number] = pathlib.Path(name).name.partition(".so")[0]
            if kind == "ob":
                library = names[number]
        elif text.startswith("calls="):
            is_call = True
        elif text[:1] in "+-*0123456789" and text:
            if not is_call:
                totals[library] += int(text.split()[1])
            is_call = False
    return totals


if __name__ == "__main__":
    run(main)

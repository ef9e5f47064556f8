"""Measures a workload: two servers on one core, h2load on another, taking turns."""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import tempfile

import report
from loads import Load
from readers import Readers
from servers import BadRun, MockProcess, NghttpdProcess
from workloads import Mock


@dataclasses.dataclass
class Place:
    """The machine's cores and the processes they are assigned to."""

    server: set
    load: set
    reader: set

    @classmethod
    def of(cls, workload):
        cores = sorted(os.sched_getaffinity(0))
        if workload.has_wide_server and len(cores) >= 4:
            return cls(set(cores[:2]), set(cores[3:]) if workload.ours.is_read else set(cores[2:]), {cores[2]})
        # With a third core, readers disturb neither the server nor the load generator.
        return cls({cores[0]}, {cores[-1]}, {cores[1]})


def measure(workload, runs, binary, progress):
    """Measures one workload.

    Returns: the rows of the report.
    Raises: BadRun if a push was not answered or recorded as expected.
    """
    if len(os.sched_getaffinity(0)) < workload.cores:
        reason = f"not visible here: needs at least {workload.cores} cores"
        return [report.Row.without_figures(workload, skipped=reason)]
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apns-mock-bench-")))
        subprocess.run([binary, "certs", "--certs", folder / "Certs"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        if workload.parts:
            return growth(workload, runs, binary, folder, stack, progress)
        return duel(workload, runs, binary, folder, stack, progress)


def duel(workload, runs, binary, folder, stack, progress):
    place = Place.of(workload)
    sides = []
    for name, side in (("ours", workload.ours), ("theirs", workload.theirs)):
        if isinstance(side, Mock):
            server = MockProcess(side, name, binary, folder, place.server)
        else:
            server = NghttpdProcess(side, workload.push.paths, folder, place.server)
        stack.callback(server.stop)
        server.get_ready()
        sides.append((side, server, []))
    load = Load(workload.push, workload.pushes, binary, folder, place.load)
    progress("warming up")
    for _, server, _ in sides:
        load.fill(server)
    for run in range(runs):
        progress(f"run {run + 1} of {runs}")
        load.prepare(run)
        # Each round starts with the server that ended the previous one, so that neither always goes first.
        for side, server, figures in sides if run % 2 == 0 else reversed(sides):
            reading = isinstance(side, Mock) and side.is_read
            with Readers(server.admin_port, place.reader) if reading else contextlib.nullcontext():
                figures.append(load.run(server))
    return report.Row.duel(workload, load.pushes, *(figures for _, _, figures in sides))


def growth(workload, runs, binary, folder, stack, progress):
    """Measures an inbox that drops nothing: the cost of its last part compared with its first, and the memory per
    record.

    About a minute separates the two parts. In that time the machine's load may change, and memory that the inbox
    grows by can become more expensive to allocate. For this reason a second, younger server runs the first part,
    alternating with the last part of the older server.
    """
    place, pushes = Place.of(workload), workload.pushes * runs * workload.parts
    needed = pushes * (2 * workload.push.bytes + 1000)
    if available_memory() < needed:
        return [report.Row.without_figures(workload, skipped=f"needs {needed >> 20} MiB of free memory")]
    flags = ("--max-records", str(pushes + workload.pushes), "--max-bytes", f"{needed}")
    load = Load(workload.push, workload.pushes, binary, folder, place.load)
    servers = []
    for side, name in ((workload.ours, "ours"), (workload.theirs, "theirs")):
        server = MockProcess(dataclasses.replace(side, flags=flags), name, binary, folder, place.server)
        stack.callback(server.stop)
        server.get_ready()
        servers.append(server)
    old, young = servers
    progress("warming up")
    load.run(old)
    mark, resident, parts = old.mark(), old.resident_bytes(), []
    for part in range(1, workload.parts):
        progress(f"part {part} of {workload.parts}")
        # The inbox is not queried between parts, because queries allocate memory too.
        parts.append([load.send(old)["cpu_us"] for _ in range(runs)])
    progress(f"part {workload.parts} of {workload.parts}")
    load.run(young)
    last = []
    for run in range(runs):
        costs = {server: load.send(server)["cpu_us"] for server in (servers if run % 2 == 0 else reversed(servers))}
        last.append((costs[old], costs[young]))
    grown = old.resident_bytes() - resident
    progress("looking at the inboxes")
    old.verify(mark, pushes)
    young.verify(workload.pushes, workload.pushes * runs)
    newest = old.api("GET", "/pushes", limit=1, order="desc")["items"][0]
    return report.Row.growth(workload, pushes, parts, last, grown / pushes, own_bytes(newest, load.tokens[0]))


def available_memory():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


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

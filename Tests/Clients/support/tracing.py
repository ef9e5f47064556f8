"""The system calls with which a server opens connections, seen by strace."""

import subprocess
import threading

import pytest

from . import drivers


def network_calls(server, folder, work):
    """Returns the lines of strace for the `connect`, `sendto` and `socket` calls of a server while `work` runs."""
    trace = folder / "trace"
    tracer = subprocess.Popen(
        [drivers.tool("strace"), "-f", "-e", "trace=connect,sendto,socket", "-o", str(trace), "-p", str(server.process.pid)],
        stderr=subprocess.PIPE, text=True)
    first = tracer.stderr.readline()
    if "attached" not in first:
        tracer.wait()
        pytest.skip(f"strace cannot attach: {first.strip()}")
    threading.Thread(target=tracer.stderr.read, daemon=True).start()
    try:
        work()
    finally:
        tracer.terminate()
        tracer.wait()
    calls = trace.read_text().splitlines()
    assert any("sendto(" in call for call in calls), "the trace has the responses"
    return calls

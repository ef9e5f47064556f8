#!/usr/bin/env python3
"""Measures how long a server takes to load a fixture file with many devices, and how much memory they need.

Prints the seconds of CPU and of waiting from the start of the process until it is ready, and the resident memory per
device, compared with a server without devices. Benchmarks/README.md explains the figures.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

from bench import positive, run
from servers import MockProcess
from workloads import Mock


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--devices", type=positive, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="apns-mock-devices-") as folder:
        folder = pathlib.Path(folder)
        subprocess.run([arguments.binary, "certs", "--certs", folder / "Certs"], check=True, capture_output=True)
        empty, full = (measure(arguments.binary, folder, count) for count in (0, arguments.devices))
    print(f"{arguments.devices:,} devices: ready after {full['seconds']:.1f} s ({full['cpu']:.1f} s CPU), "
          f"{full['resident'] / 1e6:.0f} MB resident, {empty['resident'] / 1e6:.0f} MB without devices, "
          f"{(full['resident'] - empty['resident']) / arguments.devices:.0f} bytes per device; "
          f"at most {full['peak'] / 1e6:.0f} MB while loading")


def measure(binary, folder, devices):
    """Starts a server; returns what it used by the time it was ready."""
    server = MockProcess(Mock(registered=devices), f"server-{devices}", binary, folder, os.sched_getaffinity(0))
    try:
        server.get_ready()
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        memory = {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in status)
                  if name in ("VmHWM", "VmRSS")}
        return {"seconds": server.ready_after, "cpu": server.cpu_seconds(), "resident": memory["VmRSS"],
                "peak": memory["VmHWM"]}
    finally:
        server.stop()


if __name__ == "__main__":
    run(main)

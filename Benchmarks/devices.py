#!/usr/bin/env python3
"""Measures how long a server takes to load a fixture file with many devices, and how much memory they need.

Prints the seconds of CPU and of waiting from the start of the process until it is ready, and the resident memory per
device, compared with a server without devices. Benchmarks/README.md explains the figures.
"""

import argparse
import pathlib
import subprocess
import tempfile
import time

from bench import positive, run
from servers import write_fixtures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/apns-mock")
    parser.add_argument("--devices", type=positive, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="apns-mock-devices-") as folder:
        folder = pathlib.Path(folder)
        subprocess.run([arguments.binary, "certs", "--certs", folder / "Certs"], check=True, capture_output=True)
        empty = measure(arguments.binary, folder, [])
        fixtures = folder / "fixtures.json"
        write_fixtures(fixtures, arguments.devices)
        full = measure(arguments.binary, folder, ["--fixtures", fixtures])
    print(f"{arguments.devices:,} devices: ready after {full['seconds']:.1f} s ({full['cpu']:.1f} s CPU), "
          f"{full['resident'] / 1e6:.0f} MB resident, {empty['resident'] / 1e6:.0f} MB without devices, "
          f"{(full['resident'] - empty['resident']) / arguments.devices:.0f} bytes per device; "
          f"at most {full['peak'] / 1e6:.0f} MB while loading")


def measure(binary, folder, flags):
    """Starts a server; returns what it used by the time it was ready."""
    ports = folder / "ports.json"
    begin = time.monotonic()
    process = subprocess.Popen(
        [binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", folder / "Certs", "--port-file",
         ports, "--log-level", "error", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not ports.exists():
            if process.poll() is not None:
                raise SystemExit(f"devices: the server ended with {process.returncode}")
            time.sleep(0.01)
        seconds = time.monotonic() - begin
        status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines())
        cpu = time.clock_gettime(~process.pid << 3 | 2)
        # Pages of the mapped file are not the server's memory: the system drops them when it needs the space.
        memory = {name: int(status[name].split()[0]) * 1024 for name in ("VmHWM", "RssAnon", "VmRSS")}
        return {"seconds": seconds, "cpu": cpu, "resident": memory["VmRSS"], "peak": memory["VmHWM"]}
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    run(main)

#!/usr/bin/env python3
"""Server CPU per push of apns-mock against nghttpd, for the same requests from h2load, in one run.

Both servers are pinned to one core and h2load to another, and they take turns, so that a machine that slows down slows
both. CPU time is what the kernel counted for the server's threads. Every push is verified and recorded by apns-mock; a
run in which any request was not answered 200 fails.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

DEVICE_TOKEN = "ab" * 32


def main():
    arguments = parse()
    for tool in ("h2load", "nghttpd"):
        if shutil.which(tool) is None:
            sys.exit(f"bench: {tool} is not installed: apt-get install nghttp2-client nghttp2-server")
    cores = sorted(os.sched_getaffinity(0))
    server_core, client_core = cores[0], cores[-1]
    with tempfile.TemporaryDirectory(prefix="apns-mock-bench-") as folder:
        folder = pathlib.Path(folder)
        payload = folder / "payload.json"
        payload.write_text(padded_alert(arguments.bytes))
        with ApnsMock(arguments.binary, folder, server_core) as mock, Nghttpd(folder, server_core) as other:
            token = mock.provider_token()
            ours, theirs = [], []
            # One more than is counted: the first warms both up.
            for run in range(arguments.runs + 1):
                progress(f"run {run} of {arguments.runs}" if run else "warming up")
                for server, figures in ((mock, ours), (other, theirs)):
                    figure = load(server, arguments, token, payload, client_core)
                    if run:
                        figures.append(figure)
            progress("")
            recorded = mock.recorded()
        report(arguments, ours, theirs, recorded)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/apns-mock")
    parser.add_argument("--pushes", type=int, default=100_000, help="pushes a run (default 100000)")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each server (default 5)")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--streams", type=int, default=100, help="streams at once on each connection (default 100)")
    parser.add_argument("--bytes", type=int, default=1024, help="size of the payload (default 1024)")
    parser.add_argument("--limit", type=float, help="fail if the median ratio is above this")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser.parse_args()


def padded_alert(size):
    frame = '{"aps":{"alert":""}}'
    return frame.replace('""', '"' + "a" * (size - len(frame)) + '"')


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class Server:
    """A server process, pinned to one core, stopped by its process id."""

    def start(self, command, core, **options):
        self.process = subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, {core}), **options)

    def cpu_seconds(self):
        total = 0
        for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
        return total / 1e9

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ApnsMock(Server):
    def __init__(self, binary, folder, core):
        self.binary, self.certs, self.port_file = binary, folder / "Certs", folder / "ports.json"
        self.start(
            [binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--threads", "1",
             "--certs", self.certs, "--port-file", self.port_file, "--log-level", "error"],
            core, stderr=subprocess.DEVNULL)
        wait_until(self.port_file.exists, "apns-mock did not get ready")
        self.ports = json.loads(self.port_file.read_text())
        self.port = self.ports["apns"][0]["port"]

    def provider_token(self):
        command = [self.binary, "token", "provider", "--certs", self.certs]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def recorded(self):
        url = f"http://127.0.0.1:{self.ports['admin']['port']}/api/v1/pushes?limit=1&accepted=true"
        page = json.load(urllib.request.urlopen(url, timeout=30))
        return page["matched"] + page["evicted"]


class Nghttpd(Server):
    def __init__(self, folder, core):
        document = folder / "documents" / "3" / "device" / DEVICE_TOKEN
        document.parent.mkdir(parents=True)
        document.touch()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start(
            ["nghttpd", "-n1", "-a", "127.0.0.1", "-d", folder / "documents", str(self.port),
             folder / "Certs" / "server-key.pem", folder / "Certs" / "server.pem"],
            core, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.answers, "nghttpd did not get ready")

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def wait_until(condition, complaint):
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("bench: " + complaint)
        time.sleep(0.01)


def load(server, arguments, token, payload, core):
    before = server.cpu_seconds()
    result = subprocess.run(
        ["h2load", "-n", str(arguments.pushes), "-c", str(arguments.connections), "-m", str(arguments.streams),
         "-d", payload, "-H", f"authorization: bearer {token}", "-H", "apns-topic: com.example.app",
         "-H", "apns-push-type: alert", "-H", "apns-priority: 10", "-H", "apns-expiration: 0",
         f"https://127.0.0.1:{server.port}/3/device/{DEVICE_TOKEN}"],
        check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core})).stdout
    spent = server.cpu_seconds() - before
    succeeded = re.search(r"status codes: (\d+) 2xx", result)
    if succeeded is None or int(succeeded[1]) != arguments.pushes:
        sys.exit("bench: not every request was answered 200:\n" + result)
    return {"cpu_us": spent / arguments.pushes * 1e6, "per_second": float(re.search(r"([\d.]+) req/s", result)[1])}


def report(arguments, ours, theirs, recorded):
    expected = arguments.pushes * (arguments.runs + 1)
    if recorded != expected:
        sys.exit(f"bench: {recorded} pushes recorded as accepted, {expected} sent")
    ratios = [a["cpu_us"] / b["cpu_us"] for a, b in zip(ours, theirs)]
    summary = {
        "workload": f"{arguments.bytes} B by token, {arguments.connections} connection(s) x {arguments.streams} streams, 1 thread",
        "pushes": arguments.pushes, "runs": arguments.runs, "recorded": recorded,
        "apns_mock_cpu_us": spread(f["cpu_us"] for f in ours), "nghttpd_cpu_us": spread(f["cpu_us"] for f in theirs),
        "ratio": spread(ratios),
    }
    if arguments.json:
        print(json.dumps(summary))
    else:
        print(summary["workload"])
        print(f"{'':24}{'min':>8}{'median':>8}{'max':>8}")
        for name, key in (("apns-mock, CPU us/push", "apns_mock_cpu_us"), ("nghttpd, CPU us/request", "nghttpd_cpu_us"),
                          ("ratio", "ratio")):
            print(f"{name:24}" + "".join(f"{summary[key][which]:8.2f}" for which in ("min", "median", "max")))
        print(f"recorded: {recorded} accepted pushes")
    if arguments.limit is not None and summary["ratio"]["median"] > arguments.limit:
        sys.exit(f"bench: the median ratio {summary['ratio']['median']:.2f} is above {arguments.limit}")


def spread(values):
    values = sorted(values)
    return {"min": round(values[0], 3), "median": round(statistics.median(values), 3), "max": round(values[-1], 3)}


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures the delay between a push's response and the response to a wait for that push, under concurrent waits and load.

One thread polls both sockets at once. The delay is the time from the first byte received for the push to the first byte
received for the wait, and zero if the wait's byte comes first. Run it with the client tests' Python on an idle machine:
.build/clients/bin/python Benchmarks/waits.py
"""

import argparse
import json
import pathlib
import select
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Clients"))

from support.server import Server  # noqa: E402
from support.wire import connect, push_headers  # noqa: E402

BODY = b'{"aps":{"alert":"hello"}}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / ".build/release/apns-mock")
    parser.add_argument("--waiters", type=int, default=300, help="waits at once (default 300)")
    parser.add_argument("--samples", type=int, default=3000, help="waits that end by a push of theirs (default 3000)")
    parser.add_argument("--load", type=int, default=1000, help="other pushes a second (default 1000; 0 for none)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a line")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="apns-mock-bench-") as certs:
        server = Server(pathlib.Path(arguments.binary).resolve(), certs)
        others = Load(server, arguments.load)
        try:
            began, before = time.monotonic(), newest(server)
            gaps = sorted(sample(server, arguments.waiters, arguments.samples))
            pushes = (newest(server) - before - len(gaps)) / (time.monotonic() - began)
        finally:
            others.stop()
            server.stop()
    summary = {
        "waiters": arguments.waiters, "other_pushes_per_second": round(pushes), "samples": len(gaps),
        **{name: round(gaps[min(len(gaps) - 1, int(len(gaps) * share))] * 1000, 3)
           for name, share in (("median_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99), ("max_ms", 1))},
    }
    print(json.dumps(summary) if arguments.json else ", ".join(f"{key} {value}" for key, value in summary.items()))


class Load:
    """Pushes to one device at a given rate per second, sent by h2load."""

    def __init__(self, server, rate):
        self.process = rate and subprocess.Popen(
            ["h2load", "-D", "100000", "-c", "4", "-m", "10", f"--rps={max(1, rate // 4)}", "-d", self.payload(server),
             "-H", f"authorization: {server.bearer}", "-H", "apns-topic: com.example.load", "-H", "apns-push-type: alert",
             f"https://127.0.0.1:{server.port}/3/device/{'cd' * 32}"],
            stdout=subprocess.DEVNULL)

    @staticmethod
    def payload(server):
        path = server.directory / "payload.json"
        path.write_bytes(BODY)
        return path

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def newest(server):
    return server.api("GET", "/status")["inbox"]["last_seq"]


def begin_wait(server, device):
    waiter = socket.create_connection((server.admin_host, server.admin_port))
    waiter.sendall(b"GET /api/v1/pushes/wait?device_token=%s&timeout=5m&after=%d HTTP/1.1\r\nhost: localhost\r\n\r\n"
                   % (device.encode(), newest(server)))
    return waiter


def sample(server, count, samples):
    devices = [f"{number:064x}" for number in range(1, count + 1)]
    waiters = [begin_wait(server, device) for device in devices]
    with connect(server) as wire:
        wire.push(push_headers(server, "ab" * 32), BODY)
        for number in range(samples):
            waiter, device = waiters[number % count], devices[number % count]
            headers = push_headers(server, device)
            stream = wire.open(headers, BODY)
            seen = {}
            while len(seen) < 2:
                ready, _, _ = select.select([one for one in (wire.sock, waiter) if one not in seen], [], [], 20)
                now = time.perf_counter()
                if not ready:
                    sys.exit("nothing came within 20 s")
                seen |= {one: now for one in ready}
            assert wire.response(stream).status == 200
            yield max(0, seen[waiter] - seen[wire.sock])
            assert waiter.recv(65536).startswith(b"HTTP/1.1 200 ")
            waiter.close()
            waiters[number % count] = begin_wait(server, device)
    for waiter in waiters:
        waiter.close()


if __name__ == "__main__":
    main()

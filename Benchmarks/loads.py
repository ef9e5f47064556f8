"""The load on the servers: pushes from h2load or from this process, with provider tokens made beforehand."""

import bisect
import collections
import concurrent.futures
import itertools
import os
import re
import subprocess
import time

import provider
from servers import BadRun

# Pushes that fill an inbox are sent in batches of this size; three of them fill one of default size.
PORTION = 35_000


class Load:
    """A workload's requests, sent by h2load on the given cores."""

    def __init__(self, push, pushes, binary, folder, cores):
        self.push, self.binary, self.folder, self.cores = push, binary, folder, cores
        self.calls = max(1, pushes // (push.each_connection or pushes))
        self.each_call = push.each_connection or pushes
        self.pushes = self.calls * self.each_call
        self.payload, self.payloads = folder / "payload.json", itertools.count()
        self.tokens = [self.token()]
        # The number of pushes that each connection of the latest tracked run sent and the server recorded.
        self.lives = []

    def token(self, issued_at="0s"):
        command = [self.binary, "token", "provider", "--certs", self.folder / "Certs", "--issued-at", issued_at]
        token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        if not self.push.is_forged:
            return token
        signed, signature = token.rsplit(".", 1)
        return f"{signed}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"

    def prepare(self, run):
        """Makes the provider tokens of a run; both servers get the same ones.

        If each connection has its own token, no two tokens have the same time of issue. On a single connection all
        have the same: APNs accepts a different token there only after 20 minutes, but tokens with equal claims are
        the same token, whatever their signature.
        """
        if self.push.has_fresh_tokens:
            # A token may be an hour old. More distinct tokens are not needed; this keeps the age valid if more are
            # requested.
            times = [f"-{age % 3000 + 1}s" for age in range(run * self.calls, (run + 1) * self.calls)]
        elif self.push.each_token:
            times = [str(int(time.time()))] * (self.pushes // self.push.each_token)
        else:
            return
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.tokens = list(pool.map(self.token, times))

    def fill(self, server):
        """Warms a server up and pushes until its inbox is full, the steady state of a server that runs for long."""
        while True:
            mark = server.mark()
            self.h2load(server, self.tokens[0], PORTION)
            server.verify(mark, PORTION)
            if server.is_full:
                return server.select_profile()

    def run(self, server):
        """Sends all pushes, verifies that each is answered and recorded as expected, and returns what they cost the
        server.
        """
        mark = server.mark()
        figures = self.send(server)
        if not (self.push.is_tracked and server.profile):
            server.verify(mark, figures["pushes"])
        return figures

    def send(self, server):
        mark = server.mark() if server.profile else None
        cpu, loops, began = server.cpu_seconds(), server.loop_seconds(), time.monotonic()
        pushes, speeds, ends = self.pushes, [], None
        if self.push.each_token or self.push.each_connection == 1:
            ends = self.provide(server, [self.each_call] * self.calls)
        elif self.push.is_tracked:
            ends = self.provide(server, [self.pushes] if server.profile else self.lives)
        else:
            tokens = itertools.islice(itertools.cycle(self.tokens), self.calls)
            speeds = [self.h2load(server, token, self.each_call) for token in tokens]
        cpu, loops, took = server.cpu_seconds() - cpu, server.loop_seconds() - loops, time.monotonic() - began
        if ends is not None:
            pushes = self.check(server, mark, *ends)
        return {"pushes": pushes, "cpu_us": cpu / pushes * 1e6, "loops_us": loops / pushes * 1e6,
                "per_second": speeds[0] if len(speeds) == 1 else pushes / took}

    def h2load(self, server, token, pushes):
        """Sends this many pushes and returns how many completed per second."""
        # A different text each time: an identical payload would be recorded as a further attempt at the earlier
        # pushes.
        self.number = next(self.payloads)
        self.payload.write_text(padded_alert(self.number, self.push.bytes))
        command = ["h2load", "-n", str(pushes), "-c", str(self.push.connections), "-m", str(self.push.streams),
                   "-t", str(self.push.threads), "-d", self.payload, "-H", f"authorization: bearer {token}",
                   "-H", f"apns-topic: {self.push.topic}", "-H", "apns-push-type: alert", "-H", "apns-priority: 10",
                   "-H", "apns-expiration: 0", *self.addresses(server)]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=300,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores))
        counts = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", ended.stdout)
        kinds = {status // 100 for status in server.statuses}
        if counts is None or sum(int(counts[kind - 1]) for kind in kinds) != pushes:
            expected = " or ".join(map(str, server.statuses))
            raise BadRun(f"not every request was answered {expected}:\n{ended.stdout}{ended.stderr}")
        return float(re.search(r"([\d.]+) req/s", ended.stdout)[1])

    def provide(self, server, lives):
        """Sends the pushes from this process, on the load generator's cores; see `provider.send`."""
        if self.push.connections != 1:
            raise BadRun("this workload uses one connection at a time")
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cores)
        try:
            return provider.send(server.port, self.folder / "Certs/ca.pem", self.push, self.tokens,
                                 padded_alert(next(self.payloads), self.push.bytes).encode(), lives)
        except (OSError, ValueError) as problem:
            raise BadRun(str(problem)) from None
        finally:
            os.sched_setaffinity(0, cores)

    def check(self, server, mark, ends, begins):
        """Checks how each push ended, with faults by comparison with its record.

        Returns: the number of pushes that the server processed.
        """
        if not server.profile:
            if set(ends.values()) != {"accepted"}:
                raise BadRun(f"not every push was accepted: {collections.Counter(ends.values())}")
            return len(ends)
        devices = (path.rpartition("/")[2] for path in self.push.paths)
        recorded = server.compare(mark, dict(zip(devices, (ends[number] for number in range(len(ends))))))
        connections = collections.Counter(bisect.bisect(begins, int(device, 16) - 1) for device in recorded)
        self.lives = list(connections.values())
        return len(recorded)

    def addresses(self, server):
        origin, paths = f"https://127.0.0.1:{server.port}", self.push.paths
        if len(paths) == 1:
            return [origin + paths[0]]
        listed = self.folder / f"addresses-{server.port}"
        if not listed.exists():
            listed.write_text("".join(f"{origin}{path}\n" for path in paths))
        return ["-i", listed]


def padded_alert(number, size):
    text = '{"aps":{"alert":"%08d"}}' % number
    return text.replace('"}}', "a" * (size - len(text)) + '"}}')

"""The load on the servers: pushes from h2load, with provider tokens made beforehand."""

import concurrent.futures
import itertools
import os
import re
import subprocess
import time

import resigning
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
                return

    def run(self, server):
        """Sends all pushes, verifies that each is answered and recorded as expected, and returns what they cost the
        server.
        """
        mark = server.mark()
        figures = self.send(server)
        server.verify(mark, self.pushes)
        return figures

    def send(self, server):
        cpu, loops, began = server.cpu_seconds(), server.loop_seconds(), time.monotonic()
        if self.push.each_token:
            self.resign(server)
            speeds = []
        else:
            tokens = itertools.islice(itertools.cycle(self.tokens), self.calls)
            speeds = [self.h2load(server, token, self.each_call) for token in tokens]
        cpu, loops, took = server.cpu_seconds() - cpu, server.loop_seconds() - loops, time.monotonic() - began
        return {"cpu_us": cpu / self.pushes * 1e6, "loops_us": loops / self.pushes * 1e6,
                "per_second": speeds[0] if len(speeds) == 1 else self.pushes / took}

    def h2load(self, server, token, pushes):
        """Sends this many pushes and returns how many completed per second."""
        # A different text each time: an identical payload would be recorded as a further attempt at the earlier
        # pushes.
        self.payload.write_text(padded_alert(next(self.payloads), self.push.bytes))
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

    def resign(self, server):
        """Sends the pushes from this process, on the load generator's cores."""
        if self.push.connections != 1:
            raise BadRun("a JWT is signed anew on one connection alone")
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cores)
        try:
            resigning.send(server.port, self.folder / "Certs/ca.pem", self.push, self.tokens,
                           padded_alert(next(self.payloads), self.push.bytes).encode())
        except (OSError, ValueError) as problem:
            raise BadRun(str(problem)) from None
        finally:
            os.sched_setaffinity(0, cores)

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

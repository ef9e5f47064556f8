"""A soak test with all kinds of traffic at once: `Soak.run` returns the failures.

Memory is the resident set. It grows at the beginning because of malloc's arenas and tables that are still filling,
so growth is the slope of a regression line through the last two thirds.
"""

import collections
import contextlib
import json
import random
import signal
import statistics
import subprocess
import tempfile
import threading
import time

from support.attack import MEBIBYTE, descriptors
from support.mixed_traffic import all_actors
from support.server import Server, wait_until
from support.wire import connect, push_headers

RECORDS = 3_000  # few, so that records are continuously dropped for newer ones
CHECKED_AT_END = 200  # how many of the latest acknowledged pushes must be in the export at the end


class Soak:
    """A soak of `seconds` against a new server. `rate`: pushes per second. `report_progress(text)` is called with the progress
    twice a second.
    """

    def __init__(self, binary, certs, *, seconds, rate=80, seed=None, growth=16 * MEBIBYTE, limit=192 * MEBIBYTE,
                 report_progress=lambda text: None):
        self.seconds, self.rate, self.growth, self.limit, self.report_progress = seconds, rate, growth, limit, report_progress
        self.seed = random.getrandbits(32) if seed is None else seed
        self.folder = tempfile.TemporaryDirectory(prefix="apns-mock-soak-")
        self.export = f"{self.folder.name}/inbox.ndjson"
        self.server = Server(
            binary, certs, "--max-records", RECORDS, "--seed", self.seed, "--export-on-exit", self.export,
            "--log-format", "json")
        self.over = threading.Event()
        self.failures = []
        self.pushes = self.checked = self.resets = 0
        self.acknowledged = collections.deque(maxlen=CHECKED_AT_END)  # (id, how often it was sent), verified to be in the inbox
        self.samples = []  # (seconds, resident bytes, descriptors)
        self.memory = "memory: not measured on this machine"
        self.warnings = collections.Counter()
        self._lock = threading.Lock()

    def fail(self, words):
        self.failures.append(words)
        self.over.set()

    def report(self):
        """Yields the lines of the report, apart from the failures."""
        yield f"{self.pushes} pushes by the provider that checks them, {self.checked} acknowledged ones found"
        yield self.memory
        for message, count in self.warnings.most_common():
            yield f"{count} x warning: {message}"

    # Used by the actors

    def newest(self):
        return self.server.api("GET", "/status")["inbox"]["last_seq"]

    def check(self, acknowledged, resets):
        """Checks that each of these pushes, {id: how often it was sent}, is in the inbox and not there more often,
        unless the inbox was reset in between. `resets`: the value of `self.resets` before the first of them.
        """
        if not acknowledged:
            return
        found = collections.Counter(
            record["apns"]["id"] for record in self.server.pushes(apns_id=list(acknowledged), status=200, limit=1000))
        with self._lock:
            if resets % 2 or self.resets != resets:
                return
            self.find_missing(acknowledged.items(), found, "inbox")
            self.checked += len(acknowledged)
            self.acknowledged.extend(acknowledged.items())

    def find_missing(self, acknowledged, found, place):
        wrong = [f"{apns_id} sent {sent}, there {found[apns_id]} times" for apns_id, sent in acknowledged
                 if not 1 <= found[apns_id] <= sent]
        if wrong:
            self.fail(f"acknowledged, but not as often in the {place}: {', '.join(wrong)}")

    @contextlib.contextmanager
    def resetting(self):
        """While this is entered the inbox is reset and `resets` is odd."""
        for _ in range(2):
            with self._lock:
                self.resets += 1
                self.acknowledged.clear()
            if self.resets % 2:
                yield

    # The run

    def run(self):
        """Runs the soak and returns the failures."""
        actors = all_actors(self)
        try:
            self.fill()
            for actor in actors:
                actor.start()
            self.sample()
            self.over.set()
            for actor in actors:
                actor.join(60)
                if actor.is_alive():
                    self.failures.append(f"{actor.name} hangs")
            self.failures += [f"{actor.name} did nothing" for actor in actors if actor.steps == 0 and actor.pause < 10]
            if not self.failures:
                self.evaluate()
            self.end()
        finally:
            self.over.set()
            self.server.kill()
            self.folder.cleanup()
        return self.failures

    def fill(self):
        """Fills the inbox, so that it is full from the beginning."""
        with connect(self.server) as wire:
            for _ in range(RECORDS // 100 + 1):
                wire.push(push_headers(self.server, "ef" * 32))
                for stream in [wire.open(push_headers(self.server, "ef" * 32), b"{}") for _ in range(99)]:
                    wire.response(stream)

    def sample(self):
        began = time.monotonic()
        self.descriptors = descriptors(self.server)
        while (at := time.monotonic() - began) < self.seconds and not self.over.wait(0.5):
            if self.server.process.poll() is not None:
                return  # reported by `end`
            memory, opened = self.server.resident_bytes(), descriptors(self.server)
            if memory is not None:
                self.samples.append((at, memory, opened))
            shown = f", {memory / MEBIBYTE:.1f} MiB, {opened} descriptors" if memory else ""
            self.report_progress(f"{clock(at)} of {clock(self.seconds)}, {self.pushes} pushes, {self.checked} checked{shown}")

    def evaluate(self):
        """Checks memory and descriptors with a regression line through the last two thirds, when tables and buffers
        have reached their full size.
        """
        if len(self.samples) < 12:
            return
        counted = [sample for sample in self.samples if sample[0] >= self.seconds / 3]
        slope, _ = statistics.linear_regression(*zip(*((at, memory) for at, memory, _ in counted)))
        grown, limit = slope * self.seconds * 2 / 3, max(memory for _, memory, _ in self.samples)
        self.memory = (
            f"memory: {counted[0][1] / MEBIBYTE:.1f} to {counted[-1][1] / MEBIBYTE:.1f} MiB over {clock(self.seconds * 2 / 3)} "
            f"(a line through it grows by {grown / MEBIBYTE:+.1f}), at most {limit / MEBIBYTE:.1f} MiB and "
            f"{max(opened for _, _, opened in self.samples)} descriptors")
        if grown > self.growth:
            self.failures.append(f"{self.memory}; it may grow by {self.growth / MEBIBYTE:.0f} MiB")
        if limit > self.limit:
            self.failures.append(f"{self.memory}; {self.limit / MEBIBYTE:.0f} MiB are the most there may be")

    def end(self):
        """Checks after the last client has disconnected: descriptors are as before, the server exits with 0, and no
        acknowledged push is missing from its export.
        """
        if (code := self.server.process.poll()) is not None:
            self.failures.append(f"the server ended with {code} by itself:\n{self.server.log()[-4000:]}")
            return
        try:
            if self.descriptors is not None:
                allowed = 10 if Server.default_store else 2  # connections to a database stay open
                wait_until(lambda: descriptors(self.server) <= self.descriptors + allowed, "descriptors are left open", 60)
            self.server.signal(signal.SIGTERM)
            code = self.server.wait(60)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            self.failures.append(f"{error}: {descriptors(self.server)} descriptors, {self.descriptors} before")
            return
        if code != 0:
            self.failures.append(f"the server ended with {code}:\n{self.server.log()[-4000:]}")
            return
        log = [json.loads(line) for line in self.server.log().splitlines()]
        self.failures += [f"log: {line}" for line in log if line["level"] in ("error", "critical")][:10]
        self.warnings = collections.Counter(line["message"] for line in log if line["level"] == "warning")
        with open(self.export) as lines:
            kept = collections.Counter(
                record["apns"]["id"] for record in map(json.loads, lines) if record["served"]["status"] == 200)
        self.find_missing(self.acknowledged, kept, "export")


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

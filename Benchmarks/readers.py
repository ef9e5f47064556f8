"""Clients that read the inbox while pushes arrive."""

import collections
import http.client
import itertools
import json
import os
import socket
import threading
import time

from servers import BadRun
from workloads import DEVICE

# What the web UI requests for its list (Page/modules/records.js, groups.js, panels/overview.js), without a search.
LIST = ("/pushes?order=desc&limit=100&fields=seq,outcome,accepted,attempt,push_key,received_at,connection.id,"
        "request.payload,request.device_token,request.size,apns.id,apns.topic,apns.push_type,apns.priority,"
        "apns.collapse_id,served,fault.rule,findings")
GROUPS = ("/stats", "/findings", "/pushes?q=finding:*&limit=0")
OVERVIEW = "/stats?buckets=90"
# How often per second it loads the list again if events are missing; every fourth time it loads the overview again.
PAGE_RATE = 2
# Query of the other reader, once per second.
QUERY = f"/pushes?limit=50&device_token={DEVICE}"

# Hard readers: filters that examine every record, in turn, and how many of them and of waits are requested per second.
HARD_QUERIES = ["order=desc", f"device_token={DEVICE}", "status=410", "topic=com.example.*&push_type=background",
                "text=order+shipped"]
HARD_RATE = 20


class Readers:
    """Threads on the given cores that read from the admin listener until the end of the `with` block: with `usual` an
    open web UI, a client that follows all events as `apns-mock tail` does, and one query per second; with `hard` one
    that follows all events, and 20 lists and 20 waits per second.
    """

    def __init__(self, port, cores, kind):
        self.port, self.cores = port, cores
        self.ended, self.has_gap, self.problem = threading.Event(), threading.Event(), None
        self.streams = []
        parts = {"usual": [self.page, self.events, self.events, self.query],
                 "hard": [self.events, self.list, self.wait]}[kind]
        # What each part has read: bytes of events, numbers of responses.
        self.counts = collections.Counter()
        self.parts = {part.__name__ for part in parts}
        self.threads = [threading.Thread(target=self.work, args=[part]) for part in parts]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        deadline = time.monotonic() + 30
        # The event streams are open, and the page is loaded, before the pushes begin.
        while self.parts - self.counts.keys() and not self.problem and time.monotonic() < deadline:
            time.sleep(0.01)
        self.begun = dict(self.counts)
        return self

    def __exit__(self, *problem):
        self.ended.set()
        for stream in self.streams:
            stream.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for stream in self.streams:
            stream.close()
        if problem == (None, None, None) and (self.problem or self.counts["events"] == self.begun["events"]):
            raise BadRun(f"the inbox could not be read: {self.problem or 'no event came'}")

    def work(self, part):
        # On Linux this sets the affinity of the calling thread only.
        os.sched_setaffinity(0, self.cores)
        try:
            for read in part():
                self.counts[part.__name__] += read
        except (OSError, http.client.HTTPException, ValueError) as problem:
            if not self.ended.is_set():
                self.problem = problem

    def open(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", f"/api/v1{path}")
        return connection

    def ask(self, path):
        connection = self.open(path)
        try:
            return json.load(connection.getresponse())
        finally:
            connection.close()

    def events(self):
        # Without http.client, whose decoding of chunks would slow the load generator down on the same core.
        stream = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.streams.append(stream)
        stream.sendall(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        while part := stream.recv(1 << 20):
            if b"event: gap" in part:
                self.has_gap.set()
            yield len(part)

    def page(self):
        self.load_list()
        for path in ("/clock", "/profile", "/rules", *GROUPS):
            self.ask(path)
        for tick in self.paced(itertools.count(), PAGE_RATE):
            if self.has_gap.is_set():
                self.has_gap.clear()
                self.load_list()
            if tick % 4 == 0:
                self.ask(OVERVIEW)
            yield 1

    def load_list(self):
        items = self.ask(LIST)["items"]
        if items:
            self.ask(f"/pushes/seqs?sort=seq&order=desc&before={items[-1]['seq']}")

    def query(self):
        for path in self.paced(itertools.repeat(QUERY), 1):
            self.ask(path)
            yield 1

    def list(self):
        for query in self.paced(itertools.cycle(HARD_QUERIES), HARD_RATE):
            self.ask(f"/pushes?limit=50&{query}")
            yield 1

    def wait(self):
        for _ in self.paced(itertools.repeat(None), HARD_RATE):
            newest = self.ask("/status")["inbox"]["last_seq"]
            self.ask(f"/pushes/wait?after={newest}&timeout=1s")
            yield 1

    def paced(self, things, rate):
        for thing in things:
            began = time.monotonic()
            yield thing
            if self.ended.wait(max(0, 1 / rate - (time.monotonic() - began))):
                return

"""Clients that read the inbox while pushes arrive: one lists, one waits, one follows the events."""

import http.client
import itertools
import json
import os
import socket
import threading
import time

from servers import BadRun
from workloads import DEVICE

# The queries in turn: the newest pushes, as the page lists them, and filters that examine every record.
QUERIES = ["order=desc", f"device_token={DEVICE}", "status=410", "topic=com.example.*&push_type=background",
           "text=order+shipped"]
# The maximum numbers of lists and of waits requested per second.
RATE = 20


class Readers:
    """Three threads on the given cores that read from the admin listener until the end of the `with` block."""

    def __init__(self, port, cores):
        self.port, self.cores = port, cores
        self.ended = threading.Event()
        self.lists = self.waits = self.event_bytes = 0
        self.problem = None

    def __enter__(self):
        self.stream = self.open("/events")
        # Saved here because the connection drops its reference once the response has begun.
        self.socket = self.stream.sock
        self.threads = [threading.Thread(target=self.work, args=[part]) for part in (self.list, self.wait, self.follow)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *problem):
        self.ended.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        if problem == (None, None, None) and not (self.lists and self.waits and self.event_bytes):
            raise BadRun(f"the inbox could not be read: {self.problem or 'nothing came'}")

    def work(self, part):
        # On Linux this sets the affinity of the calling thread only.
        os.sched_setaffinity(0, self.cores)
        try:
            part()
        except (OSError, http.client.HTTPException, ValueError) as problem:
            if not self.ended.is_set():
                self.problem = problem

    def open(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", f"/api/v1{path}")
        return connection

    def list(self):
        for query in self.paced(itertools.cycle(QUERIES)):
            self.ask(f"/pushes?limit=50&{query}")
            self.lists += 1

    def wait(self):
        for _ in self.paced(itertools.repeat(None)):
            newest = self.ask("/status")["inbox"]["last_seq"]
            self.ask(f"/pushes/wait?after={newest}&timeout=1s")
            self.waits += 1

    def follow(self):
        response = self.stream.getresponse()
        while part := response.read1(1 << 20):
            self.event_bytes += len(part)

    def paced(self, things):
        for thing in things:
            began = time.monotonic()
            yield thing
            if self.ended.wait(max(0, 1 / RATE - (time.monotonic() - began))):
                return

    def ask(self, path):
        connection = self.open(path)
        try:
            return json.load(connection.getresponse())
        finally:
            connection.close()

"""Mixed traffic for a soak: providers, aborted connections, readers of the admin API, and changes to faults and
state.

An error that an actor detects ends the soak; the expected effects of a fault are not errors.
"""

import random
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
import uuid

from support.wire import Closed, connect, push_headers, tls_socket

BATCH = 20  # concurrent pushes; fewer than the conditions a filter may have
TIMEOUT = 1  # seconds a provider waits for the responses to a batch; some faults delay them longer

CLIENT_ERRORS = (Closed, OSError, ssl.SSLError)  # what a fault may cause at a client


class Actor(threading.Thread):
    """Repeats its `step`, with a pause after each, until the soak is over."""

    pause = 1.0

    def __init__(self, soak):
        super().__init__(daemon=True, name=type(self).__name__)
        self.soak = soak
        self.server = soak.server
        self.random = random.Random(f"{soak.seed} {self.name}")
        self.steps = 0

    def run(self):
        try:
            while not self.soak.over.wait(self.pause):
                self.step()
                self.steps += 1
        except Exception as error:  # raised by the soak, in the thread that runs it
            self.soak.fail(f"{self.name}, step {self.steps}: {error!r}")


class Provider(Actor):
    """Pushes batches over connections that it keeps for a while, and checks after each batch that every push
    answered with 200 is in the inbox, and not more often than it was sent.
    """

    def __init__(self, soak):
        super().__init__(soak)
        self.pause = BATCH / soak.rate
        self.devices = [f"{self.random.getrandbits(256):064x}" for _ in range(200)]
        self.wire = None
        self.again = []

    def step(self):
        if self.wire is None or self.random.random() < 0.05:
            self.disconnect()
        resets = self.soak.resets
        try:
            if self.wire is None:
                self.wire = connect(self.server)
                self.wire.push(push_headers(self.server, self.random.choice(self.devices)))  # enables 1000 streams
            acknowledged = self.batch()
        except CLIENT_ERRORS:
            self.disconnect()
            return
        self.soak.check(acknowledged, resets)

    def disconnect(self):
        if self.wire is not None:
            self.wire.close()
            self.wire = None

    def batch(self):
        """Sends a batch; returns the pushes answered with 200: {id: how often it was sent}. Retryable ones are part
        of the next batch.
        """
        requests = self.again[:BATCH]
        while len(requests) < BATCH:
            requests.append((str(uuid.UUID(int=self.random.getrandbits(128))), 1, self.request()))
        self.again = []
        responses = []
        for apns_id, _, (device, changes, body) in requests:
            stream = self.wire.open(push_headers(self.server, device, apns_id=apns_id, **changes), body)
            responses.append(self.wire.responses[stream])
        self.soak.pushes += BATCH
        deadline = time.monotonic() + TIMEOUT
        try:
            while not all(response.finished for response in responses) and time.monotonic() < deadline:
                select.select([self.wire.sock], [], [], max(0, deadline - time.monotonic()))
                self.wire.drain()
        except CLIENT_ERRORS:
            self.disconnect()
        acknowledged = {}
        for (apns_id, sent, request), response in zip(requests, responses):
            if response.status == 200:
                acknowledged[apns_id] = sent
            elif sent < 4 and response.status in (None, 429, 500, 503):
                self.again.append((apns_id, sent + 1, request))
        return acknowledged

    def request(self):
        """Returns device, headers and body; about a quarter are rejected."""
        device = self.random.choice(self.devices)
        changes, body = {}, b'{"aps":{"alert":"soak","badge":%d}}' % self.random.randrange(100)
        match self.random.randrange(20):
            case 0: changes = {"apns_topic": None}
            case 1: changes = {"authorization": None}
            case 2: device = "not-a-device"
            case 3: body = b'{"aps":{"alert":"%s"}}' % (b"x" * 5_000)
            case 4: body = b""
            case 5: changes, body = {"apns_push_type": "background", "apns_priority": "5"}, b'{"aps":{"content-available":1}}'
            case 6: body = b'{"aps":{"alert":"%s"}}' % (b"y" * 3_000)
            case 7: body = b"no JSON"
        return device, changes, body


class IncompleteClient(Actor):
    """Connections that end without a served request, of each kind in turn."""

    pause = 0.25

    def step(self):
        try:
            (self.plain, self.half_a_greeting, self.greeting, self.reset_after_a_push)[self.steps % 4]()
        except CLIENT_ERRORS:
            pass  # faults apply to these connections as well

    def tcp(self):
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=5)

    def plain(self):
        self.tcp().close()

    def half_a_greeting(self):
        with self.tcp() as sock:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01")
            reset(sock)

    def greeting(self):
        tls_socket(self.server).close()

    def reset_after_a_push(self):
        with connect(self.server) as wire:
            wire.open(push_headers(self.server, "ab" * 32), b"{}")
            reset(wire.sock)


def reset(sock):
    """Makes closing the socket a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Reader(Actor):
    """Sends one admin request after another. None may fail."""

    pause = 0.3

    def step(self):
        reads = (
            ("/pushes", {"limit": 50, "order": "desc", "q": "status:200 type:alert larger:1K"}),
            ("/pushes", {"payload./aps/badge": 7, "topic": "com.example.*"}), ("/stats", {}), ("/findings", {}),
            ("/connections", {}), ("/status", {}), ("/profiles", {}), ("/rules", {}), ("/devices", {}),
            ("/pushes/wait", {"count": 1, "after": self.soak.newest(), "timeout": "2s"}),
            ("/pushes/wait", {"topic": "com.example.unused", "timeout": "300ms"}),
            ("/pushes/wait", {"count": 0, "topic": "com.example.unused", "settle": "100ms"}),
            ("/export", {"format": "json"}), ("/export", {"format": "json", "q": "!status:200"}),
        )
        path, query = reads[self.steps % len(reads)]
        self.server.api("GET", path, **query)
        for path in ("/metrics", "/", "/openapi.json", "/readyz"):
            response = self.server.request("GET", path)
            assert response.status == 200, f"{path}: {response.status}"
        verified = self.server.request(
            "POST", "/api/v1/verify", {"expect": [{"match": {"topic": "com.example.unused"}, "count": {"exactly": 0}}]})
        assert verified.status == 200 or verified.json.get("inconclusive"), verified.body  # inconclusive because pushes were dropped


class Follower(Actor):
    """Follows the events for a while and disconnects abruptly, or requests an export and does not read it."""

    def step(self):
        path = ("/api/v1/events", "/api/v1/events?status=503", "/api/v1/export")[self.steps % 3]
        with socket.create_connection((self.server.admin_host, self.server.admin_port), timeout=20) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            assert sock.recv(64).startswith(b"HTTP/1.1 200 "), path
            leaving = time.monotonic() + self.random.uniform(0, 3)
            while "events" in path and time.monotonic() < leaving and not self.soak.over.is_set():
                if select.select([sock], [], [], 0.1)[0] and not sock.recv(65536):
                    raise AssertionError(f"{path} ended")
            if self.steps % 2:
                reset(sock)


class Changer(Actor):
    """Enables and disables faults and changes everything else that may change while a server runs."""

    def step(self):
        api, device = self.server.api, f"{self.steps // 13 % 50 + 1:064x}"  # the same device throughout a round of changes
        changes = (
            lambda: api("PUT", "/profile", {"name": "chaos-mix", "params": {"intensity": 0.3}}),
            lambda: api("POST", "/rules", {"name": "soon-gone", "ttl": "2s", "do": {"respond": {"status": 429}},
                                           "when": {"device_token": device}}),
            lambda: api("PUT", f"/devices/{device}", {"state": "unregistered"}),
            lambda: api("POST", "/clock/advance", {"by": "30s"}),
            lambda: api("DELETE", "/profile"),
            lambda: api("POST", "/profiles/reload", {}),
            lambda: api("PUT", "/clock", {"mode": "real"}),
            lambda: api("DELETE", f"/devices/{device}"),
            lambda: api("POST", "/connections/goaway", {"all": True}),
            lambda: self.server.request("DELETE", "/api/v1/pushes", topic="com.example.unused"),
            lambda: api("POST", "/reset", {"counters": True, "rules": True}),
            lambda: api("POST", "/connections/close", {"all": True}),
            self.reset_the_inbox,
        )
        changes[self.steps % len(changes)]()

    def reset_the_inbox(self):
        with self.soak.resetting():
            self.server.api("POST", "/reset", {"inbox": True, "rules": True, "counters": True})


class Crowd(Actor):
    """Many connections at once from an independent client, h2load."""

    pause = 10

    def step(self):
        payload = self.server.directory / "payload.json"
        payload.write_bytes(b'{"aps":{"alert":"crowd"}}')
        subprocess.run(
            ["h2load", "-n", "200", "-c", "10", "-m", "10", "-d", str(payload), "-N", "2", "-T", "5",
             "-H", f"authorization: {self.server.bearer}", "-H", "apns-topic: com.example.crowd",
             "-H", "apns-push-type: alert", f"https://127.0.0.1:{self.server.port}/3/device/{'cd' * 32}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def all_actors(soak):
    """Returns one actor of each kind available on this machine."""
    kinds = [Provider, IncompleteClient, Reader, Follower, Changer]
    return [kind(soak) for kind in (kinds + [Crowd] if shutil.which("h2load") else kinds)]

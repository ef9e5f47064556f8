#!/usr/bin/env python3
"""Measures how long pushes wait while a server changes the deliveries of many devices at once.

Sends a push every few milliseconds on four connections in turn. At the same time 60,000 stored pushes expire together, with the inbox
in memory and in an SQLite file, and a broadcast goes to 40,000 subscribers. Prints the slowest push of each case, beside that
of a server that does nothing else. All records and devices are checked afterwards.
"""

import argparse
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import threading
import time

import provider
import wire
from bench import positive, run
from servers import BadRun, MockProcess
from wire import DATA, END_HEADERS, END_STREAM, HEADERS, frame, text
from workloads import TOPIC, Mock, Push

# Milliseconds for a push beside the change of many deliveries, on two quiet cores.
LIMIT = 100
STORED, SUBSCRIBERS = 60_000, 40_000
CONNECTIONS = 4
INTERVAL = 0.002
# Seconds before and after each case in which pushes are measured too.
MARGIN = 1
# Seconds after which pushes expire by themselves; sending them must take less.
LIFETIME = 60
CHANNEL = "dHN0LXNyY2gtY2hubA=="
PAYLOAD = b'{"aps":{"alert":"x"}}'
UPDATE = b'{"aps":{"timestamp":1700000000,"event":"update","content-state":{"score":1}}}'


def figures(binary, stored=STORED, subscribers=SUBSCRIBERS):
    """Measures all cases.

    Returns: for each figure its name, the measured value, and the limit; an empty text without one.
    Raises: BadRun if a delivery was not changed as expected.
    """
    return list(measured(binary, stored, subscribers))


def measured(binary, stored, subscribers):
    """Yields the same figures as soon as they are measured."""
    with tempfile.TemporaryDirectory(prefix="apns-mock-loops-") as folder:
        folder = pathlib.Path(folder)
        subprocess.run([binary, "certs", "--certs", folder / "Certs"], check=True, capture_output=True)
        yield from expire(binary, folder, "memory", (), stored)
        yield from expire(binary, folder, "SQLite", ("--store", f"sqlite:{folder / 'inbox.db'}"), stored)
        yield from expire(binary, folder, "SQLite, --durable answer",
                          ("--store", f"sqlite:{folder / 'durable.db'}", "--durable", "answer"), stored)
        yield from expire(binary, folder, "SQLite, by themselves", ("--store", f"sqlite:{folder / 'timer.db'}"), stored,
                          moves_clock=False)
        yield from broadcast(binary, folder, subscribers)


class Server:
    """A server with numbered devices of one app, whose tokens are the numbers from 1, and one more that is online."""

    def __init__(self, binary, folder, devices, state, flags=()):
        self.folder, self.count = folder, devices
        fixtures = folder / "fixtures.json"
        described = [{"id": f"phone-{number}", "state": state if number <= devices else "online", "apps": [
            {"bundle_id": TOPIC, "environment": "sandbox", "tokens": {"alert": f"{number:064x}"}}]}
            for number in range(1, devices + 2)]
        fixtures.write_text(json.dumps({
            "apps": [{"bundle_id": TOPIC, "team_id": "MOCKTEAM01", "broadcast": True}], "devices": described,
            "channels": [{"bundle_id": TOPIC, "environment": "sandbox", "id": CHANNEL, "message_storage_policy": 0}]}))
        side = Mock(threads=2, flags=("--fixtures", fixtures, "--max-records", "1000000", *flags))
        self.process = MockProcess(side, f"loops-{time.monotonic_ns()}", binary, folder, os.sched_getaffinity(0))
        command = [binary, "token", "provider", "--certs", folder / "Certs"]
        self.token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def __enter__(self):
        try:
            self.process.get_ready()
        except BaseException:
            self.process.stop()
            raise
        return self

    def __exit__(self, *_):
        self.process.stop()

    def connect(self, expiration="0"):
        return provider.connect(
            self.process.port, self.folder / "Certs/ca.pem", Push(topic=TOPIC), expiration=expiration)

    def api(self, method, path, body=None, **query):
        return self.process.api(method, path, body, **query)


class Probe:
    """Pushes one after the other until the end of the `with` block, and notes how long each took."""

    def __init__(self, server):
        self.server, self.ended, self.problem, self.times = server, threading.Event(), None, []
        self.path = f"/3/device/{server.count + 1:064x}"
        self.connections = [server.connect() for _ in range(CONNECTIONS)]
        self.thread = threading.Thread(target=self.work)

    def __enter__(self):
        self.thread.start()
        time.sleep(MARGIN)
        return self

    def __exit__(self, *problem):
        if problem == (None, None, None):
            time.sleep(MARGIN)
        self.ended.set()
        self.thread.join()
        for connection in self.connections:
            connection.close()
        if problem == (None, None, None) and self.problem:
            refused = self.server.api("GET", "/pushes", accepted="false", fields="served", limit=1)["items"]
            raise BadRun(f"a push beside the measured work failed: {self.problem} {refused}")

    def work(self):
        try:
            number = 0
            while not self.ended.wait(INTERVAL):
                connection = self.connections[number % CONNECTIONS]
                began = time.perf_counter()
                connection.push(number, self.path, self.server.token, PAYLOAD)
                connection.finish()
                self.times.append(time.perf_counter() - began)
                if connection.ends[number] != "accepted":
                    raise ValueError(f"it was {connection.ends[number]}")
                number += 1
        except (OSError, ValueError) as problem:
            self.problem = problem

    @property
    def slowest(self):
        """The milliseconds of the slowest push."""
        return f"{max(self.times) * 1000:.1f} ms"


def expire(binary, folder, name, flags, count, moves_clock=True):
    """Measures the expiry of `count` pushes that are stored for devices that are offline.

    Parameter `moves_clock`: whether they expire because the server's clock is moved, and not because time passes.
    """
    with Server(binary, folder, count, "offline", flags) as server:
        with Probe(server) as idle:
            pass
        expiration = int(time.time()) + (1800 if moves_clock else LIFETIME)
        sender = server.connect(expiration=str(expiration))
        for number in range(1, count + 1):
            sender.push(number, f"/3/device/{number:064x}", server.token, PAYLOAD)
        sender.finish()
        sender.close()
        if set(sender.ends.values()) != {"accepted"}:
            raise BadRun("a push to a device that is offline was not accepted")
        matched(server, count, delivery="Stored - Device Offline")
        if not moves_clock:
            time.sleep(max(0, expiration - time.time() - 2 * MARGIN))
        with Probe(server) as busy:
            began = time.monotonic()
            if moves_clock:
                # Less than the age of a provider token.
                server.api("POST", "/clock/advance", {"by": "40m"})
            else:
                time.sleep(max(0, expiration - time.time()))
                began = time.monotonic()
                await_expiry(server, count)
            seconds = time.monotonic() - began
        matched(server, count, delivery="Discarded - Expired")
        matched(server, len(idle.times) + len(busy.times), delivery="Delivered to Device")
        return [(f"no other work ({name}): slowest push", idle.slowest, ""),
                (f"{count:,} expiries at once ({name}): slowest push", busy.slowest, f"{LIMIT} ms"),
                (f"{count:,} expiries at once ({name}): until all records are changed", f"{seconds:.2f} s", "")]


def await_expiry(server, count):
    deadline = time.monotonic() + 60
    while server.api("GET", "/pushes", limit=0, delivery="Discarded - Expired")["matched"] < count:
        if time.monotonic() > deadline:
            raise BadRun("the pushes did not expire within a minute")
        time.sleep(0.5)


def matched(server, count, **query):
    found = server.api("GET", "/pushes", limit=0, **query)["matched"]
    if found != count:
        raise BadRun(f"{found} pushes have {query}, expected {count}")


def broadcast(binary, folder, count):
    """Measures broadcasts to `count` subscribers."""
    with Server(binary, folder, count, "online") as server:
        admin = http.client.HTTPConnection("127.0.0.1", server.process.admin_port, timeout=60)
        for number in range(1, count + 1):
            admin.request("POST", f"/api/v1/devices/phone-{number}/subscriptions", json.dumps({"channel": CHANNEL}),
                          {"content-type": "application/json"})
            response = admin.getresponse()
            response.read()
            if response.status != 200:
                raise BadRun(f"subscribing failed: {response.status}")
        admin.close()
        with Probe(server) as idle:
            pass
        rounds = 5
        with Probe(server) as busy:
            for _ in range(rounds):
                send_broadcast(server)
                time.sleep(0.3)
        shown = server.api("GET", f"/devices/phone-{count}/notifications")["items"]
        sent = server.api("GET", "/pushes", kind="broadcast", order="desc")["items"]
        if len(sent) != rounds or [one["seq"] for one in shown] != [sent[0]["seq"]]:
            raise BadRun(f"the last subscriber does not show the last of {rounds} broadcasts")
        return [("no other work (before the broadcasts): slowest push", idle.slowest, ""),
                (f"a broadcast to {count:,} subscribers: slowest push", busy.slowest, f"{LIMIT} ms")]


class Broadcaster(wire.Connection):
    """Sends one broadcast."""

    status = None

    def note(self, kind, flags, stream, content):
        if kind == HEADERS and stream == 1:
            self.status = provider.first_field(content)

    def send_one(self, server):
        fields = [(":method", "POST"), (":scheme", "https"), (":path", f"/4/broadcasts/apps/{TOPIC}"),
                  (":authority", "localhost"), ("authorization", "bearer " + server.token),
                  ("apns-channel-id", CHANNEL), ("apns-push-type", "liveactivity"), ("apns-priority", "10"),
                  ("apns-expiration", "0"), ("content-length", str(len(UPDATE)))]
        block = b"".join(b"\x10" + text(name) + text(value) for name, value in fields)
        self.send(frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, UPDATE))
        self.await_frame(lambda kind, flags: kind in (HEADERS, DATA) and flags & END_STREAM)
        if self.status != provider.OK:
            raise BadRun("a broadcast was not accepted")


def send_broadcast(server):
    context = ssl.create_default_context(cafile=server.folder / "Certs/ca.pem")
    context.set_alpn_protocols(["h2"])
    connection = Broadcaster(context, server.process.port)
    connection.send_one(server)
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--stored", type=positive, default=STORED, help="the stored pushes that expire at once")
    parser.add_argument("--subscribers", type=positive, default=SUBSCRIBERS)
    arguments = parser.parse_args()
    for name, value, limit in measured(arguments.binary, arguments.stored, arguments.subscribers):
        print(f"{name:72}{value:>12}{'  limit ' + limit if limit else ''}", flush=True)


if __name__ == "__main__":
    run(main)

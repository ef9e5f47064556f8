#!/usr/bin/env python3
"""Measures what an open connection costs apns-mock: memory while idle, and CPU time to accept it compared with nghttpd.

Opens many TLS connections at once, first to nghttpd and then to apns-mock, with each server on one core and the clients
on the others. A few connections are opened and closed beforehand, so that the code that serves them is in memory.
Memory is the growth of the server's resident set divided by the number of connections, measured twice: when all have
exchanged SETTINGS, and when each has also sent a push and is idle again. The second figure includes the records of these
pushes. CPU time is what the kernel accounts to the server process from the first connection to the last SETTINGS.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

from loads import Load, padded_alert
from servers import BadRun, MockProcess, NghttpdProcess, allow_descriptors
from wire import DATA, END_HEADERS, END_STREAM, HEADERS, Connection, frame, text
from workloads import Mock, Nghttpd, Push

CLIENTS = 16
# The server needs one descriptor per connection, plus these for its listeners, files and admin API
# (Connections.swift).
SERVER_RESERVE = 1100


def main():
    arguments = parse()
    if shutil.which("nghttpd") is None:
        sys.exit("idle: nghttpd is not installed: apt-get install nghttp2-server")
    allow_descriptors(arguments.connections + SERVER_RESERVE)
    cores = sorted(os.sched_getaffinity(0))
    client_cores = set(cores[1:]) or {cores[0]}
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apns-mock-idle-")))
        subprocess.run([arguments.binary, "certs", "--certs", folder / "Certs"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        push = Push(bytes=arguments.bytes)
        mock = MockProcess(Mock(), "mock", arguments.binary, folder, {cores[0]})
        stack.callback(mock.stop)
        other = NghttpdProcess(Nghttpd(), push.paths, folder, {cores[0]})
        stack.callback(other.stop)
        mock.get_ready()
        other.get_ready()
        authority = folder / "Certs" / "ca.pem"
        token = Load(push, 1, arguments.binary, folder, client_cores).tokens[0]
        theirs = measure(other, authority, arguments.connections, client_cores)
        ours = measure(mock, authority, arguments.connections, client_cores, request(token, push))
        mock.verify(0, arguments.connections + CLIENTS)
    report(arguments, ours, theirs)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/dist-parts/system/apns-mock")
    parser.add_argument("--connections", type=int, default=10_000, help="open at once (default 10000)")
    parser.add_argument("--bytes", type=int, default=256, help="size of each connection's one payload (default 256)")
    parser.add_argument("--limit", type=float, help="fail above so many KB a connection, idle or after its push")
    parser.add_argument("--accept-limit", type=float, help="fail if accepting costs more than this many times nghttpd's CPU")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser.parse_args()


def measure(server, authority, count, cores, push=None):
    """Returns one server's figures: CPU time per accepted connection and bytes per connection."""
    with Crowd(server.port, authority, CLIENTS, cores) as crowd:
        crowd.do("open")
        if push:
            crowd.do(push)
    with Crowd(server.port, authority, count, cores) as crowd:
        memory, cpu = server.resident_bytes(), server.cpu_seconds()
        crowd.do("open")
        figures = {"accept_cpu_us": (server.cpu_seconds() - cpu) / count * 1e6}
        figures["idle_kb"] = (settled(server) - memory) / count / 1000
        if push:
            crowd.do(push)
            figures["after_push_kb"] = (settled(server) - memory) / count / 1000
    return {name: round(figure, 2) for name, figure in figures.items()}


def settled(server):
    """Returns the server's resident memory once it is idle."""
    time.sleep(1)
    return server.resident_bytes()


class Crowd:
    """Processes that hold the client side of the connections."""

    def __init__(self, port, authority, count, cores):
        context = multiprocessing.get_context("fork")
        self.members = []
        for index in range(CLIENTS):
            mine, theirs = context.Pipe()
            share = count // CLIENTS + (index < count % CLIENTS)
            process = context.Process(target=member, args=(theirs, port, authority, share, cores), daemon=True)
            process.start()
            theirs.close()
            self.members.append((process, mine))
        self.await_results()

    def do(self, command):
        for _, pipe in self.members:
            pipe.send(command)
        self.await_results()

    def await_results(self):
        for _, pipe in self.members:
            try:
                error = pipe.recv()
            except EOFError:
                error = "ended"
            if error:
                raise BadRun(f"a client {error}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, _ in self.members:
            process.kill()
            process.join()


def member(pipe, port, authority, count, cores):
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    connections = []
    pipe.send(None)
    while True:
        command = pipe.recv()
        try:
            if command == "open":
                connections = [Connection(context, port) for _ in range(count)]
            else:
                for connection in connections:
                    connection.send(command)
                    connection.await_frame(lambda kind, flags: kind in (HEADERS, DATA) and flags & END_STREAM)
            pipe.send(None)
        except (OSError, ValueError) as error:
            pipe.send(f"failed at its connection {len(connections) + 1} of {count}: {error}")


def request(token, push):
    """Returns a push as frames. Its fields enter the dynamic table, as with real clients, so both peers keep them."""
    fields = [(":method", "POST"), (":scheme", "https"), (":path", push.paths[0]), (":authority", "localhost"),
              ("authorization", "bearer " + token), ("apns-topic", push.topic), ("apns-push-type", "alert"),
              ("apns-priority", "10"), ("content-length", str(push.bytes))]
    block = b"".join(b"\x40" + text(name) + text(value) for name, value in fields)
    return frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, padded_alert(0, push.bytes).encode())


def report(arguments, ours, theirs):
    ratio = round(ours["accept_cpu_us"] / theirs["accept_cpu_us"], 3)
    summary = {"connections": arguments.connections, "apns_mock": ours, "nghttpd": theirs, "accept_ratio": ratio}
    if arguments.json:
        print(json.dumps(summary))
    else:
        print(f"{arguments.connections} connections\n{'':32}{'apns-mock':>12}{'nghttpd':>12}")
        for name, key in (("idle, KB/connection", "idle_kb"), ("after one push, KB/connection", "after_push_kb"),
                          ("accepting, CPU us/connection", "accept_cpu_us")):
            print(f"{name:32}" + "".join(f"{figures.get(key, '-'):>12}" for figures in (ours, theirs)))
        print(f"{'accepting, ratio':32}{ratio:12}")
    maximum = max(ours["idle_kb"], ours["after_push_kb"])
    if arguments.limit is not None and maximum > arguments.limit:
        sys.exit(f"idle: {maximum} KB a connection is above {arguments.limit}")
    if arguments.accept_limit is not None and ratio > arguments.accept_limit:
        sys.exit(f"idle: accepting costs {ratio} times nghttpd's CPU, above {arguments.accept_limit}")


if __name__ == "__main__":
    try:
        main()
    except BadRun as run:
        sys.exit(f"idle: {run}")

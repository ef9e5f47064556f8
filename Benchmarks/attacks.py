#!/usr/bin/env python3
"""Attacks a running program from outside and prints what each attack costs: memory, and the time of a health check beside
it. SECURITY.md says which limits hold.

    make attacks [ATTACK_ARGS="--only sorts"] [PROGRAM=…]

It attacks the program of the packages; set PROGRAM to another one to compare. It needs 4 GB of memory, up to 20,000 open
files and two quiet cores. Ends with status 1 if a limit is exceeded.
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import pathlib
import re
import resource
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "Tests/Clients"))

from support.server import Server  # noqa: E402
from support.wire import connect, push_headers  # noqa: E402

MEBIBYTE = 1 << 20
ROWS = []


def row(name, value, unit, limit):
    """Prints a figure; `limit` is its maximum."""
    ROWS.append(value <= limit)
    print(f"{name:62}{value:9.1f} {unit:4} at most {limit:g}{'' if value <= limit else '   EXCEEDED'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / ".build/dist-parts/system/apns-mock", type=pathlib.Path)
    parser.add_argument("--only", default="", help="run the attacks whose name contains this")
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, hard), hard))
    with tempfile.TemporaryDirectory() as folder:
        certs = pathlib.Path(folder) / "certs"
        for attack in (foreign_pages, unread_waits, unfinished_uploads, sorts, mixture, edited_stores, unread_exports, waits_in_motion, sends,
                       descriptions, connection_lists, event_loops):
            if arguments.only in attack.__name__:
                attack(arguments.binary.resolve(), certs)
    sys.exit(0 if all(ROWS) else 1)


@contextlib.contextmanager
def running(binary, certs, *flags, files=None):
    if files:
        shell = pathlib.Path(tempfile.mkdtemp()) / "apns-mock"
        shell.write_text(f'#!/bin/sh\nulimit -n {files}\nexec "{binary}" "$@"\n')
        shell.chmod(0o755)
        binary = shell
    server = Server(binary, certs, *flags)
    try:
        yield server
    finally:
        server.kill()


def fill(server, count, payload=b'{"aps":{"alert":"%s"}}' % (b"x" * 600)):
    """Brings pushes into the inbox: some are sent, and their export is imported until there are enough."""
    sent = min(count, 5000)
    with connect(server) as wire:
        for number in range(1, sent + 1):
            wire.push(push_headers(server, f"{number:064x}"), payload)
    export = server.request("GET", "/api/v1/export").body
    for _ in range(count // sent - 1):
        answer = server.request("POST", "/api/v1/import", export, headers={"content-type": "application/x-ndjson"})
        assert answer.status == 200, answer.body[:300]


def asking(server, target, method="GET", body=b"", length=None, type="application/json", receive=4096):
    """Opens a connection, sends a request and leaves its response unread."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    sock.settimeout(20)
    sock.connect((server.admin_host, server.admin_port))
    head = f"{method} {target} HTTP/1.1\r\nhost: localhost\r\n"
    if method != "GET":
        head += f"content-type: {type}\r\ncontent-length: {len(body) if length is None else length}\r\n"
    with contextlib.suppress(OSError):
        sock.sendall(head.encode() + b"\r\n" + body)
    return sock


def close(sockets):
    for sock in sockets:
        sock.close()


class Health:
    """Asks for `/livez` again and again, on a new connection each time, in a process of its own; `worst` is the longest time
    in seconds, at least that of the last answer.
    """

    def __init__(self, server):
        self.times, self.done = multiprocessing.Queue(), multiprocessing.Event()
        self.process = multiprocessing.Process(target=self._ask, args=((server.admin_host, server.admin_port),), daemon=True)

    def _ask(self, address):
        worst, answers = 0.0, 0
        while not self.done.wait(0.05):
            began = time.monotonic()
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=60) as sock:
                sock.settimeout(60)
                sock.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                answers += sock.recv(64).startswith(b"HTTP/1.1 200")
            worst = max(worst, time.monotonic() - began)
        self.times.put(worst if answers else 60.0)

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.worst = self.times.get()
        self.process.join()


class Memory(threading.Thread):
    """Watches the memory of a server above what it uses at the beginning, in MiB."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.done = server, threading.Event()
        self.base = server.resident_bytes()
        self.peak = 0.0

    @property
    def now(self):
        return (self.server.resident_bytes() - self.base) / MEBIBYTE

    def run(self):
        # Until the server has ended, at the latest.
        with contextlib.suppress(OSError):
            while not self.done.wait(0.02):
                self.peak = max(self.peak, self.now)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()


def given_back(memory, name):
    time.sleep(10)
    row(f"{name}: ten seconds after they have ended", memory.now, "MiB", 100)


# What web pages of another origin can do


def foreign_pages(binary, certs):
    with running(binary, certs) as server:
        with connect(server) as wire:
            wire.push(push_headers(server, "ab" * 32))
        served = 0
        paths = [re.sub(r"\{\w+\}", "1", path) for path, item in server.request("GET", "/openapi.json").json["paths"].items()
                 if "get" in item and path not in ("/", "/ca.pem", "/livez", "/readyz") and not path.startswith("/page/")]
        for path in paths:
            for target in (f"/{path}", f"//{path}", path.replace("/", "//"), f"/.{path}", f"/page/..{path}", f"{path}/"):
                for field in ("origin: https://evil.example", "sec-fetch-site: cross-site"):
                    with socket.create_connection((server.admin_host, server.admin_port), timeout=20) as sock:
                        sock.sendall(f"GET {target} HTTP/1.1\r\nhost: localhost\r\n{field}\r\nconnection: close\r\n\r\n".encode())
                        answer = sock.recv(65536)
                    served += answer.split(b" ")[1] != b"403"
        row("requests of a foreign page that are not refused", served, "", 0)


# Memory


def unread_waits(binary, certs):
    with running(binary, certs, "--max-records", "200000", "--max-bytes", "2GiB") as server:
        fill(server, 20_000)
        with Memory(server) as memory:
            sockets = [asking(server, "/api/v1/pushes/wait?count=1000&timeout=0s") for _ in range(1500)]
            time.sleep(5)
            row("1,500 unread answers of waits", memory.peak, "MiB", 300)
            close(sockets)
            given_back(memory, "unread waits")


def unfinished_uploads(binary, certs):
    with running(binary, certs) as server:
        piece = b" " * MEBIBYTE
        with Memory(server) as memory:
            sockets = []
            for number in range(80):
                method, path = ("PUT", "/api/v1/fixtures") if number % 2 else ("POST", "/api/v1/fixtures/lint")
                sock = asking(server, path, method, b"{", 60 * MEBIBYTE)
                sockets.append(sock)
                with contextlib.suppress(OSError):
                    sock.settimeout(0.5)
                    for _ in range(58):
                        sock.sendall(piece)
            row("80 uploads of fixtures, unfinished", memory.peak, "MiB", 300)
            close(sockets)
            given_back(memory, "uploads")


def sorts(binary, certs):
    with running(binary, certs, "--max-records", "1000000", "--max-bytes", "4GiB") as server:
        fill(server, 600_000)
        with Health(server) as health, Memory(server) as memory:
            sockets = [asking(server, f"/api/v1/pushes/seqs?sort={field}") for field in ("device_token", "topic", "size") * 16]
            time.sleep(20)
            row("48 sorts of 600,000 pushes", memory.peak, "MiB", 300)
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(60)
            row("  SIGTERM beside them", time.monotonic() - began, "s", 3)
            health.done.set()
            close(sockets)
        row("  /livez beside them", health.worst, "s", 1)


def mixture(binary, certs):
    """2,000 requests of every endpoint, whose answers nobody reads, with bodies as large as they may be."""
    with running(binary, certs, "--max-records", "200000", "--max-bytes", "2GiB") as server:
        fill(server, 60_000)
        operations = [(method.upper(), re.sub(r"\{\w+\}", "1", path))
                      for path, item in server.request("GET", "/openapi.json").json["paths"].items()
                      for method in ("get", "put", "post", "patch", "delete") if method in item]
        operations = [entry for entry in operations if entry[1] not in ("/api/v1/reset", "/api/v1/import")]
        # What is computed once and kept, such as the findings, is not part of the requests.
        for method, path in operations:
            if method == "GET" and "stream" not in path and path not in ("/api/v1/events", "/api/v1/pushes/wait"):
                server.request("GET", path)
        bodies = [b'{"a":[' + b"1," * 500_000 + b"1]}", b"{" + b",".join(b'"%d":{}' % n for n in range(90_000)) + b"}",
                  b"[" * 900_000]
        with Health(server) as health, Memory(server) as memory:
            sockets = []
            for number in range(2000):
                method, path = operations[number % len(operations)]
                query = "?limit=1000" if path in ("/api/v1/pushes", "/api/v1/devices", "/api/v1/deliveries") else ""
                if path == "/api/v1/pushes/wait":
                    query = "?count=1000000&timeout=20s"
                body = bodies[number % 3] if method in ("PUT", "POST", "PATCH") else b""
                sockets.append(asking(server, path + query, method, body[:MEBIBYTE - 10]))
            time.sleep(5)
            row("2,000 requests of any endpoint, unread", memory.peak, "MiB", 300)
            close(sockets)
            given_back(memory, "2,000 requests")
        row("  /livez beside them", health.worst, "s", 1)


# Files that another program has edited


def edited_stores(binary, certs):
    """Edits each cell of the newest row of each table, starts a server with the file, and reads everything."""
    with tempfile.TemporaryDirectory() as folder:
        whole, path = pathlib.Path(folder) / "whole.db", pathlib.Path(folder) / "inbox.db"
        with running(binary, certs, "--store", f"sqlite:{whole}") as server:
            fill(server, 20)
            server.stop()
        with contextlib.closing(sqlite3.connect(whole)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
            cells = [(table, column[1]) for table in tables for column in database.execute(f"PRAGMA table_info({table})")]
        crashes = files = 0
        for table, column in cells:
            for value in ("NULL", "'text'", "X'00FF'", str(1 << 62), "-1", "1.5"):
                shutil.copy(whole, path)
                with contextlib.closing(sqlite3.connect(path)) as database, contextlib.suppress(sqlite3.Error):
                    database.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT max(rowid) FROM {table})")
                    database.commit()
                files += 1
                crashes += crashes_with(binary, certs, path)
        row(f"crashes, {files} files with an edited cell", crashes, "", 0)


def crashes_with(binary, certs, path):
    """Returns whether a server with this file crashes, at its start or when everything is read."""
    try:
        server = Server(binary, certs, "--store", f"sqlite:{path}")
    except AssertionError as refusal:
        return "ended with 2 " not in str(refusal)
    try:
        for target in ("/pushes?kind=*&limit=1000", "/pushes?q=text:x", "/pushes/seqs?sort=latency", "/findings", "/stats", "/export"):
            with contextlib.suppress(http.client.HTTPException, ConnectionError):
                server.request("GET", "/api/v1" + target)
        return server.process.poll() is not None
    finally:
        server.kill()


# Health checks


def unread_exports(binary, certs):
    with running(binary, certs, files=1024) as server:
        fill(server, 20_000)
        sockets = [asking(server, "/api/v1/export") for _ in range(256)]
        with Health(server) as health:
            time.sleep(10)
        row("256 unread exports at 1,024 open files: /livez", health.worst, "s", 1)
        time.sleep(35)
        with socket.create_connection((server.admin_host, server.admin_port)) as sock:
            sock.sendall(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            row("  refused requests after 45 seconds", 0 if sock.recv(64).startswith(b"HTTP/1.1 200") else 1, "", 0)
        close(sockets)


def beside(server, name, requests, at_once, awaits_answers=True):
    """Opens connections for the requests, `at_once` at a time, and prints the time of a health check beside them."""
    with Health(server) as health:
        open_sockets = []
        for arguments in requests:
            open_sockets.append(asking(server, *arguments, receive=1 << 16))
            if len(open_sockets) >= at_once:
                open_sockets.pop(0).close()
        for sock in open_sockets if awaits_answers else ():
            with contextlib.suppress(OSError):
                sock.recv(1)
        close(open_sockets)
    row(f"{name}: /livez", health.worst, "s", 1)


def waits_in_motion(binary, certs):
    with running(binary, certs) as server:
        fill(server, 1000)
        target = "/api/v1/pushes/wait?count=100000&timeout=30s"
        beside(server, "10,000 waits being opened and closed", [(target,)] * 10_000, 500, awaits_answers=False)


def sends(binary, certs):
    with running(binary, certs) as server:
        body = json.dumps({"token": "ab" * 32, "headers": {"apns-topic": "com.example.app"}, "payload": {"aps": {}}}).encode()
        beside(server, "3,000 sends", [("/api/v1/send", "POST", body)] * 3000, 3000)


def descriptions(binary, certs):
    with running(binary, certs) as server:
        beside(server, "2,000 descriptions", [("/openapi.json",)] * 2000, 2000)


def connection_lists(binary, certs):
    with running(binary, certs) as server:
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(connect(server))
            for _ in range(1999):
                stack.enter_context(connect(server, context=first.sock.context))
            beside(server, "200 lists of 2,000 open connections", [("/api/v1/connections",)] * 200, 200)


def event_loops(binary, _):
    import attacks_event_loops

    for name, value, limit in attacks_event_loops.figures(str(binary)):
        print(f"{name:62}{value:>14} at most {limit}", flush=True)


if __name__ == "__main__":
    main()

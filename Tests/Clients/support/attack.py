"""Checks that an attack leaves other clients' responses, memory, processor time, descriptors and the log
unaffected.
"""

import contextlib
import os
import pathlib
import re
import secrets
import threading

from hyperframe.frame import GoAwayFrame

from support.server import Server, wait_until
from support.wire import Closed, connect, push_headers

MEBIBYTE = 1 << 20
ENHANCE_YOUR_CALM = 11


class Bystander(threading.Thread):
    """A provider that pushes continuously on its own connection, with a pause of `interval` seconds after each response. `end` returns
    the statuses it received.
    """

    def __init__(self, server, interval=0.005):
        super().__init__(daemon=True)
        self.server = server
        self.interval = interval
        self.device = secrets.token_hex(32)
        self.statuses = []
        self.error = None
        self._leaving = threading.Event()

    def run(self):
        try:
            with connect(self.server) as wire:
                while not self._leaving.wait(self.interval):
                    self.statuses.append(wire.push(push_headers(self.server, self.device)).status)
        except Exception as error:  # raised by `end`, in the test's thread
            self.error = error

    def end(self):
        self._leaving.set()
        self.join()
        if self.error:
            raise AssertionError(f"the bystander got {len(self.statuses)} responses, then: {self.error!r}")
        return self.statuses


def processor_seconds(server):
    """Returns the process's CPU time so far in seconds; None on systems without /proc."""
    stat = pathlib.Path(f"/proc/{server.process.pid}/stat")
    if not stat.exists():
        return None
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(server):
    """Returns the number of files and sockets the process has open; None on systems without /proc."""
    folder = pathlib.Path(f"/proc/{server.process.pid}/fd")
    return len(list(folder.iterdir())) if folder.exists() else None


def peak_bytes(server):
    """Returns the process's peak memory since `forget_peak`; None on systems without /proc."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        return None
    return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) * 1024


def reset_peak(server):
    with contextlib.suppress(OSError):  # not allowed everywhere: then the peak is that of the whole life
        pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


@contextlib.contextmanager
def unharmed(server, *, memory=32 * MEBIBYTE, processor=20, responses=3, interval=0.005):
    """Runs an attack (the body) beside a bystander and checks its effects: the bystander gets 200 for every push
    and at least `responses` responses, the server never uses more than `memory` bytes beyond what it used before,
    spends at most `processor` seconds, and has no more descriptors open at the end. The limit in seconds allows
    for a machine a tenth as fast as today's and is still far below what a busy loop takes.
    """
    bystander = Bystander(server, interval)
    bystander.start()
    wait_until(lambda: bystander.statuses or bystander.error, "the bystander has no response")
    reset_peak(server)
    held, spent, opened = server.resident_bytes(), processor_seconds(server), descriptors(server)
    before = len(bystander.statuses)
    try:
        yield bystander
        wait_until(lambda: len(bystander.statuses) >= before + responses or bystander.error, "the bystander gets no more responses")
        if held is not None:
            assert peak_bytes(server) - held < memory, "memory"
            assert processor_seconds(server) - spent < processor, "processor"
            # Connections to a database stay open.
            opened += 8 if Server.default_store else 0
            wait_until(lambda: descriptors(server) <= opened, f"{descriptors(server)} descriptors open, {opened} before")
    finally:
        statuses = bystander.end()
    assert set(statuses) == {200}


def name_of(sock):
    """Returns the server's name for the client on this socket: its address and port."""
    host, port = sock.getsockname()[:2]
    return f"{host}:{port}"


def client_log(server, client, count=1):
    """Returns the log lines about a client once there are `count`. Normal operation is not logged, so all of them
    report problems.
    """
    return [line for line in server.logged(client, count=count) if re.search(rf"\b{re.escape(client)}\b", line)]


def storm(wire, chunk, limit=24 * MEBIBYTE):
    """Writes `chunk` repeatedly until the server closes the connection or `limit` bytes are sent. The server must
    then have closed. Returns the GOAWAY frames it sent.
    """
    sent = 0
    try:
        while sent < limit and not goaways(wire):
            wire.write(chunk)
            sent += len(chunk)
            wire.drain()
    except Closed:
        pass  # closed while writing: frames sent before the close can still be read
    wire.read_to_end()
    assert wire.closed
    return goaways(wire)


def goaways(wire):
    return [frame for frame in wire.frames if isinstance(frame, GoAwayFrame)]

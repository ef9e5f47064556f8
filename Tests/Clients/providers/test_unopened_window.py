"""A client that never opens its flow-control window, as aioapns: it reads response bodies and returns no credit for
them, so after 65,535 bytes of bodies on one connection the server cannot send it any more.
"""

import json
import pathlib
import subprocess
import sys

import httpx
import pytest
from hyperframe.frame import DataFrame

from support.attack import ENHANCE_YOUR_CALM, MEBIBYTE, goaways
from support.selection import ALL
from support.server import clean_environment, wait_until
from support.wire import client_context, connect, push_headers

WINDOW = 65_535  # bytes of all response bodies on a connection without WINDOW_UPDATE (RFC 9113 section 6.9.2)
FINDING = "window-never-opened"
PUSHES = 3_000
BURST = 100  # concurrent pushes; with the streams that are blocked, fewer than the 1,000 that the server allows
BLOCKED = 800  # streams that are blocked at least
# Seconds in which the server must close a blocked connection: it does after five seconds without input.
TIMEOUT = 30
AIOAPNS_TIMEOUT = 180  # seconds for all pushes with aioapns, which waits on each connection until the server closes it
# Blocked connections, one after the other, until the server's memory has its size, and then while it must keep it.
# Measured: the first ones add 2 MiB each, most of it for their records; after the eighth nothing is added.
WARMING = 8
ROUNDS = 16 if ALL else 10
GROWTH = ROUNDS * MEBIBYTE // 2

pytestmark = pytest.mark.timeout(2 * AIOAPNS_TIMEOUT)


@pytest.fixture
def server(start, device):
    """A server in which `device` is unregistered. Its inbox is small, so that it is full after few connections."""
    server = start("--max-records", "4000", "--log-level", "error")
    server.api("PUT", f"/devices/{device}", {"state": "unregistered"})
    return server


def data_bytes(wire):
    """Returns the bytes of all DATA frames that were received."""
    return sum(frame.flow_controlled_length for frame in wire.frames if isinstance(frame, DataFrame))


def fill_window(server, wire, device):
    """Sends pushes to an unregistered device until the window is used up and many responses wait for it. Returns the
    streams of these responses; their header fields have arrived.
    """
    assert wire.push(push_headers(server, "ab" * 32)).status == 200  # many streams from here on
    headers = push_headers(server, device)
    blocked = []
    while len(blocked) < BLOCKED:
        requests = [wire.request_frames(headers, b"{}") for _ in range(BURST)]
        wire.send(*(frame for _, frames in requests for frame in frames))
        streams = blocked + [stream for stream, _ in requests]
        while any(wire.responses[stream].headers is None for stream in streams):
            wire.receive()
        # Every body for which there is window has been sent before these two.
        wire.ping()
        wire.ping()
        blocked = [stream for stream in streams if not wire.responses[stream].finished]
    return blocked


def found(server):
    """Returns the finding, or None."""
    return next((item for item in server.api("GET", "/findings")["items"] if item["finding"] == FINDING), None)


def connections_of(server, item):
    """Returns the connections of all pushes that a finding names."""
    seqs = {seq for record in item["records"] for seq in [record["seq"], *record["evidence"]]}
    return {server.api("GET", f"/pushes/{seq}")["connection"]["id"] for seq in seqs}


def test_a_connection_whose_window_is_never_opened_is_closed(server, device):
    with connect(server) as wire:
        blocked = fill_window(server, wire, device)
        body = wire.responses[3].body
        assert json.loads(body)["reason"] == "Unregistered"
        assert WINDOW - len(body) < data_bytes(wire) <= WINDOW
        assert {wire.responses[stream].status for stream in blocked} == {410}

        wire.sock.settimeout(TIMEOUT)
        wire.read_to_end()
        (goaway,) = goaways(wire)
        assert wire.closed and goaway.error_code == ENHANCE_YOUR_CALM
        assert b"WINDOW_UPDATE" in goaway.additional_data
        assert data_bytes(wire) <= WINDOW
    item = wait_until(lambda: found(server), f"no finding {FINDING}")
    record = server.pushes(device_token=device, limit=1)[0]
    assert connections_of(server, item) == {record["connection"]["id"]}


def test_a_client_that_opens_its_window_causes_no_finding(server, device):
    """httpx returns credit for what it reads."""
    with httpx.Client(http2=True, verify=client_context(server.ca), base_url=server.url,
                      trust_env=False) as client:
        headers = {"authorization": server.bearer, "apns-topic": "com.example.app"}
        statuses = [
            client.post(f"/3/device/{device}", headers=headers, content=b"{}").status_code for _ in range(1_500)]
    assert set(statuses) == {410}
    assert found(server) is None


def test_blocked_responses_do_not_accumulate(server, device):
    """Each connection blocks, and its client closes it."""
    if server.resident_bytes() is None:
        pytest.skip("only Linux reports the memory of a process")

    def block(count):
        for _ in range(count):
            with connect(server) as wire:
                fill_window(server, wire, device)
        return server.resident_bytes("RssAnon")

    before = block(WARMING)
    growth = block(ROUNDS) - before
    assert growth < GROWTH, f"{growth / MEBIBYTE:.1f} MiB for {ROUNDS} connections"


@pytest.mark.long
def test_aioapns_gets_three_thousand_rejections(server, device):
    """It stops reading a connection whose window is used up, closes it, and sends the rest on another."""
    described = {
        "port": server.port, "ca": server.ca, "key": server.key_path,
        "key_id": server.key_id, "team_id": server.team_id, "accepted": "ab" * 32, "rejected": device,
        "count": PUSHES, "seconds": AIOAPNS_TIMEOUT}
    program = pathlib.Path(__file__).parent / "applications" / "aioapns_burst.py"
    done = subprocess.run(
        [sys.executable, str(program)], input=json.dumps(described), capture_output=True, text=True,
        timeout=AIOAPNS_TIMEOUT + 30, env=clean_environment(NO_PROXY="*"))
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert (report["first"], report["outcomes"]) == ("200", {"410": PUSHES, "waiting": 0})
    assert len(report["received"]) > 1 and max(report["received"]) <= WINDOW
    assert max(report["received"]) > WINDOW - 100, "no window was used up"
    item = wait_until(lambda: found(server), f"no finding {FINDING}")
    assert len(connections_of(server, item)) >= 1

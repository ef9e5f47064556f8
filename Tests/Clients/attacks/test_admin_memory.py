"""Clients of the admin API that send large bodies without an end, or do not read their responses, use a bounded amount of
memory together.
"""

import contextlib
import json
import select
import socket
import time

import pytest

from support.attack import MEBIBYTE, unharmed
from support.server import wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds

JSON = {"content-type": "application/json"}


def ask(server, target, method="GET", length=None):
    """Sends the head of a request and returns the connection; reads nothing."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(20)
    sock.connect((server.admin_host, server.admin_port))
    fields = "" if length is None else f"content-type: application/json\r\ncontent-length: {length}\r\n"
    sock.sendall(f"{method} {target} HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n".encode())
    return sock


@contextlib.contextmanager
def closing(sockets):
    try:
        yield sockets
    finally:
        for sock in sockets:
            sock.close()


@pytest.fixture
def full(start):
    """A server with 2,000 pushes of 2 KB."""
    server = start()
    payload = b'{"aps":{"alert":"%s"}}' % (b"x" * 2000)
    with connect(server) as wire:
        assert wire.push(push_headers(server, f"{1:064x}"), payload).status == 200
        # Together with what the server has not yet acknowledged, ten fit into the window.
        for first in range(2, 2001, 10):
            streams = [wire.open(push_headers(server, f"{number:064x}"), payload) for number in range(first, min(first + 10, 2001))]
            assert {wire.response(stream).status for stream in streams} == {200}
    return server


@pytest.mark.parametrize(("method", "path"), [("PUT", "/api/v1/fixtures"), ("POST", "/api/v1/fixtures/lint")])
def test_bodies_without_an_end_share_a_budget(start, method, path):
    """What does not fit into the budget is refused at once, and fits again after the other uploads have ended."""
    server = start()
    with unharmed(server, memory=300 * MEBIBYTE), closing([]) as uploads:
        for _ in range(2):
            uploads.append(ask(server, path, method, 62 * MEBIBYTE))
            for _ in range(61):
                uploads[-1].sendall(b" " * MEBIBYTE)

        def refused():
            response = server.request(method, path, b" " * (7 * MEBIBYTE), headers=JSON)
            return response.status == 503 and response

        # The server may still have to read the uploads.
        response = wait_until(refused, "a body over the budget is not refused")
        assert "128 MiB" in response.json["detail"] and response.headers["retry-after"] == "1"
        # Small bodies still fit.
        assert server.request("PUT", "/api/v1/clock", {"now": None}).status in (200, 400)
        uploads.pop().close()
        wait_until(lambda: server.request(method, path, b'{"devices":[]}' + b" " * (7 * MEBIBYTE), headers=JSON).status != 503,
                   "the memory of an upload that has ended is not available again")


@pytest.mark.parametrize("target", [
    "/api/v1/pushes/wait?count=1000&timeout=0s", "/api/v1/pushes?limit=1000", "/api/v1/export", "/openapi.json",
])
def test_unread_responses_use_little_memory(full, target):
    with unharmed(full, memory=64 * MEBIBYTE), closing([ask(full, target) for _ in range(100)]):
        time.sleep(2)  # a fixed time for the measurement: the responses would be made in this time


def test_many_sorts_take_turns(full):
    fields = ["device_token", "topic", "size", "latency"]
    with unharmed(full, memory=64 * MEBIBYTE):
        with closing([ask(full, f"/api/v1/pushes/seqs?sort={field}&order=desc") for field in fields * 10]):
            seqs = full.api("GET", "/pushes/seqs", sort="device_token", order="desc")["seqs"]
        # The bystander's pushes are newer.
        assert [seq for seq in seqs if seq <= 2000] == list(range(2000, 0, -1))


@pytest.mark.long
def test_verifications_of_retries_share_a_budget(full):
    """Each keeps the attempts of all pushes while it waits. What does not fit is refused, and fits again after others have ended."""
    export = full.request("GET", "/api/v1/export").body
    for _ in range(9):
        assert full.request("POST", "/api/v1/import", export, headers={"content-type": "application/x-ndjson"}).status == 200
    body = json.dumps({"timeout": "60s", "expect": [{"count": 1_000_000, "retries": {"max": 3}}]}).encode()
    with unharmed(full, memory=200 * MEBIBYTE), closing([]) as waiting:
        for _ in range(60):
            waiting.append(ask(full, "/api/v1/verify", "POST", len(body)))
            waiting[-1].sendall(body)
        refused = wait_until(lambda: select.select(waiting, [], [], 0)[0], "no verification over the budget is refused", timeout=60)
        assert all(sock.recv(64).startswith(b"HTTP/1.1 503 ") for sock in refused) and len(refused) < 30
        for sock in waiting:
            sock.close()
        quick = {"timeout": "0s", "expect": [{"retries": {"max": 3}}]}
        wait_until(lambda: full.request("POST", "/api/v1/verify", quick).status == 200,
                   "the memory of verifications that have ended is not available again")

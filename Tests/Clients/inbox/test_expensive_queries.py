"""Expensive queries do not delay health checks and signals."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import time

import pytest

from support.selection import ALL
from support.server import Server

NUMBER = 3000
MANY = 12_000  # With 4 KB each, 100 conditions on text exceed the work budget.
CLIENTS = 24 if ALL else 8
TIMEOUT = 120  # seconds, for slow machines
# Seconds. On an idle machine it takes milliseconds, and behind the queries it would take minutes.
HEALTH_LIMIT = 5
# Seconds from SIGTERM to the end, including the export. On an idle machine it takes one, and behind the queries minutes.
END_LIMIT = 90

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("h2load") is None, reason="no h2load, which makes the pushes (nghttp2-client)"),
]


def conditions(number, field="text"):
    return "&".join(f"{field}=nothing-{index}" for index in range(number))


def filled(binary, certs, directory, pinned=False, number=NUMBER):
    """Returns a server with `number` pushes of 4 KB in its inbox, which it exports when it ends."""
    cores = os.sched_getaffinity(0)
    if pinned:
        os.sched_setaffinity(0, {min(cores)})
    try:
        server = Server(
            binary, certs, "--export-on-exit", directory / "export.ndjson", "--shutdown-timeout", "1s")
    finally:
        os.sched_setaffinity(0, cores)
    body = directory / "body"
    body.write_text('{"aps":{"alert":{"title":"One of many","body":"' + "Text " * 790 + '"}}}')
    subprocess.run(
        ["h2load", "-n", str(number), "-c", "1", "-m", "100", "-d", str(body), "-H", f"authorization: {server.bearer}",
         "-H", "apns-topic: com.example.app", "-H", "apns-push-type: alert", f"{server.url}/3/device/{'ab12' * 16}"],
        check=True, capture_output=True, timeout=TIMEOUT)
    return server


@pytest.fixture(scope="module")
def crowded(binary, certs, tmp_path_factory):
    """A server whose inbox exceeds the work budget of 100 conditions on text."""
    server = filled(binary, certs, tmp_path_factory.mktemp("crowded"), number=MANY)
    yield server
    server.kill()


def health(server):
    """Returns the response time of `/livez` in seconds."""
    start = time.monotonic()
    connection = http.client.HTTPConnection(server.admin_host, server.admin_port, timeout=10)
    connection.request("GET", "/livez")
    assert connection.getresponse().status == 200
    connection.close()
    return time.monotonic() - start


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned to a core here")
@pytest.mark.parametrize("leave, pinned", [(True, True), (False, False)], ids=["leave-one-core", "stay"])
def test_health_checks_and_signals_do_not_wait_for_queries(binary, certs, tmp_path, leave, pinned):
    server = filled(binary, certs, tmp_path, pinned)
    clients = []
    try:
        for _ in range(CLIENTS):
            client = socket.create_connection((server.admin_host, server.admin_port))
            client.sendall(f"GET /api/v1/pushes?{conditions(100)} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            clients.append(client)
        time.sleep(0.5)
        if leave:
            for client in clients:
                client.close()
        for _ in range(3):
            assert health(server) < HEALTH_LIMIT
        start = time.monotonic()
        server.signal()
        assert server.wait(TIMEOUT) == 0
        assert time.monotonic() - start < END_LIMIT
        lines = (tmp_path / "export.ndjson").read_text().splitlines()
        assert sum("seq" in json.loads(line) for line in lines) == NUMBER
    finally:
        for client in clients:
            client.close()
        server.kill()


@pytest.mark.parametrize("path", ["pushes", "findings", "stats", "export"])
def test_a_query_beyond_the_work_budget_is_refused(crowded, path):
    response = crowded.request("GET", f"/api/v1/{path}?{conditions(100)}")
    assert response.status == 400
    assert "100 conditions" in response.json["detail"] and "topic" in response.json["hint"]
    # With conditions on other fields, or cursors, the query is within the budget.
    for narrow in ["topic=com.example.other", f"after={NUMBER}&before={NUMBER + 3}", "before=3"]:
        assert crowded.request("GET", f"/api/v1/{path}?{conditions(99)}&{narrow}").status == 200


def test_nothing_is_deleted_by_a_query_beyond_the_work_budget(crowded):
    assert crowded.request("DELETE", f"/api/v1/pushes?{conditions(100, '!text')}").status == 400
    assert crowded.request("GET", "/api/v1/pushes?limit=0").json["total"] == MANY
    assert crowded.request("DELETE", f"/api/v1/pushes?{conditions(99, '!text')}&before=3").json == {"deleted": 2}
    assert crowded.request("GET", "/api/v1/pushes?limit=0").json["total"] == MANY - 2

"""Damaged files: refused at the start if the damage is found there, otherwise an error for each request that reads it."""

import contextlib
import os
import sqlite3

import pytest

from support import stores
from support.server import Server, wait_until
from support.wire import connect, push_headers


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "inbox.db"


def page_size(content):
    """Returns the size of a page of an SQLite file, in bytes."""
    return int.from_bytes(content[16:18], "big")


@pytest.mark.parametrize("size", [4096, 20_000, 40_000, 0.9])
def test_a_truncated_file(refused, path, filled, size):
    content = filled.read_bytes()
    path.write_bytes(content[:int(size * len(content)) if size < 1 else size])
    refused(path, "damaged")


def test_a_file_with_an_overwritten_schema(refused, path, filled):
    content = bytearray(filled.read_bytes())
    size = page_size(content)
    content[200:size] = os.urandom(size - 200)
    path.write_bytes(content)
    refused(path, "damaged")


@pytest.mark.parametrize("table", ["contents", "state", None], ids=["totals", "state", "newest pushes"])
def test_a_file_with_overwritten_pages(refused, path, filled, table):
    content = bytearray(filled.read_bytes())
    size = page_size(content)
    first, count = int(len(content) * 0.85) // size * size, 3
    if table:
        with contextlib.closing(sqlite3.connect(filled)) as db:
            (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        first, count = (page - 1) * size, 1
    content[first:first + count * size] = b"\xaa" * count * size
    path.write_bytes(content)
    refused(path, "damaged")


@pytest.fixture(scope="module")
def damaged_content(binary, certs, tmp_path_factory):
    """A file whose pages with old pushes are overwritten, which a server does not read at the start."""
    path = tmp_path_factory.mktemp("damaged") / "inbox.db"
    server = Server(binary, certs, *stores.flags(path))
    try:
        assert set(stores.load(server, 5_000, streams=100).values()) == {200}
        assert server.stop() == 0
    finally:
        server.kill()
    content = bytearray(path.read_bytes())
    size = page_size(content)
    first = len(content) // 5 // size * size
    content[first:first + 6 * size] = b"\xaa" * 6 * size
    return content


@pytest.fixture(scope="module")
def damaged(binary, certs, damaged_content, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / "inbox.db"
    path.write_bytes(damaged_content)
    server = Server(binary, certs, *stores.flags(path, memory_records=10))
    try:
        yield server
    finally:
        server.kill()


@pytest.mark.parametrize("path", [
    "/pushes?limit=1000", "/pushes?limit=1000&q=text:hello", "/pushes?topic=com.example.unused&count=exact",
    "/pushes/seqs", "/stats?topic=com.example.*",
])
def test_a_request_that_meets_damaged_pages_is_an_error(damaged, path):
    """Never an incomplete result that looks like a whole one."""
    response = damaged.request("GET", "/api/v1" + path)
    assert response.status in (500, 503), (response.status, response.body[:300])
    assert response.headers["content-type"].startswith("application/problem+json")
    assert damaged.request("GET", "/livez").status == 200


def test_a_wait_that_meets_damaged_pages_is_inconclusive(damaged):
    response = damaged.request("GET", "/api/v1/pushes/wait", topic="com.example.unused", count=0, timeout="0s")
    assert response.status in (500, 503) or not response.json["satisfied"] and not response.json["complete"], response.body


def test_a_verification_that_meets_damaged_pages_is_no_success(damaged):
    response = damaged.request(
        "POST", "/api/v1/verify", {"expect": [{"match": "topic:com.example.unused", "count": {"exactly": 0}}]})
    assert response.status in (500, 503) or response.json.get("inconclusive"), response.body[:300]


def test_an_export_that_meets_damaged_pages_is_no_success(damaged, tmp_path):
    done = damaged.command("export", "--output", tmp_path / "inbox.ndjson")
    assert done.returncode != 0, done.stderr
    assert done.stderr.startswith("error: ") and not list(tmp_path.glob("*.ndjson"))


def test_pushes_are_recorded_beside_damaged_pages(damaged, device):
    with connect(damaged) as wire:
        assert wire.push(push_headers(damaged, device)).status == 200
    assert damaged.pushes(after=5_000)[-1]["request"]["device_token"] == device


@pytest.mark.parametrize("part", ["", "/payload", "/explain", "/curl", "/delivery"])
def test_a_push_in_a_damaged_page_is_an_error(damaged, part):
    """It is not reported as missing."""
    statuses = [damaged.request("GET", f"/api/v1/pushes/{seq}{part}").status for seq in range(1, 5_000, 25)]
    assert set(statuses) == {200, 503}, statuses


def test_a_server_that_cannot_remove_old_pushes_names_the_repair(start, path, damaged_content, device):
    path.write_bytes(damaged_content)
    server = start(*stores.flags(path, "--max-records", "100"))
    wait_until(lambda: stores.status(server)["store"]["problem"], "the damage was not found")
    problem = stores.status(server)["store"]["problem"]
    assert "is damaged" in problem and f"apns-mock store repair {path}" in problem, problem
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 503
    assert server.logged(problem)

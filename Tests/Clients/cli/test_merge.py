"""`apns-mock merge`: the exports and metrics of servers that share nothing become one."""

import json
import secrets

import pytest

from support.server import run
from support.wire import connect, push_headers

DONE, USAGE = 0, 2


@pytest.fixture
def servers(start):
    """Two servers, to which five pushes go in turns, the first of them to the first server."""
    servers = [start(), start()]
    for number in range(5):
        with connect(servers[number % 2]) as wire:
            assert wire.push(push_headers(servers[number % 2], secrets.token_hex(32))).status == 200
    return servers


@pytest.fixture
def exports(servers, tmp_path):
    paths = [tmp_path / f"{number}.ndjson" for number in (1, 2)]
    for server, path in zip(servers, paths):
        assert server.command("export", "--output", path).returncode == DONE
    return paths


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_exports_are_merged_in_order_of_arrival(binary, exports, start, tmp_path):
    done = run(binary, "merge", *exports)
    assert (done.returncode, done.stderr) == (DONE, "5 records of 2 exports merged\n")
    records = lines(done.stdout)
    assert [record["seq"] for record in records] == [1, 2, 3, 4, 5]
    assert [record["connection"]["id"].partition("-")[0] for record in records] == ["1", "2", "1", "2", "1"]
    originals = sorted(sum((lines(path.read_text()) for path in exports), []), key=lambda each: each["received_at"])
    for record, original in zip(records, originals):
        assert record["connection"].pop("id").endswith(original["connection"].pop("id"))
        record["seq"] = original["seq"]
    assert records == originals

    merged = tmp_path / "all.ndjson"
    assert run(binary, "merge", *exports, "--output", merged).returncode == DONE
    assert merged.read_text() == done.stdout
    other = start()
    assert other.command("import", merged).returncode == DONE
    assert other.api("GET", "/pushes")["matched"] == 5


def test_one_export_can_be_standard_input(binary, exports):
    done = run(binary, "merge", "-", exports[1], input=exports[0].read_text())
    assert done.returncode == DONE and len(lines(done.stdout)) == 5


def test_metrics_are_added_up(binary, servers, tmp_path):
    paths = [tmp_path / f"{number}.prom" for number in (1, 2)]
    for server, path in zip(servers, paths):
        path.write_bytes(server.request("GET", "/metrics").body)
    done = run(binary, "merge", *paths)
    assert (done.returncode, done.stderr) == (DONE, "")
    found = done.stdout.splitlines()
    assert 'apns_mock_pushes_total{outcome="accepted",status="200",reason=""} 5' in found
    assert "apns_mock_ready 1" in found and "apns_mock_inbox_records 5" in found
    assert found.count("# TYPE apns_mock_pushes_total counter") == 1


@pytest.mark.parametrize(("content", "message"), [
    (None, "cannot be read: No such file or directory"), ("{}", ":1: no record of a push: seq is missing"),
    ('{"seq":1', ":1: the record that begins here is incomplete"), ("# TYPE a gauge\na 1\n", "merge exports and metrics"),
])
def test_a_file_that_cannot_be_merged_changes_nothing(binary, exports, tmp_path, content, message):
    other, output = tmp_path / "other", tmp_path / "output"
    if content is not None:
        other.write_text(content)
    output.write_text("before")
    done = run(binary, "merge", exports[0], other, "--output", output)
    assert done.returncode == USAGE and message in done.stderr and str(other) in done.stderr
    assert output.read_text() == "before" and len(list(tmp_path.glob("output*"))) == 1


def test_metrics_with_a_line_that_is_none_are_rejected(binary, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<html>\n")
    done = run(binary, "merge", path)
    assert done.returncode == USAGE and f"{path}:1: expected a metric" in done.stderr

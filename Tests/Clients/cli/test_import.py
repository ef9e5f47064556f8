"""`apns-mock import` and `POST /api/v1/import`: an export of one server becomes part of the inbox of another."""

import json
import secrets

import pytest

from support.server import Server, run, stop_cleanly
from support.wire import connect, push_headers

TOPIC = "com.example.exported"
DONE, USAGE, UNREACHABLE = 0, 2, 4


@pytest.fixture(scope="module")
def exported(binary, certs, tmp_path_factory):
    """The export of a server with accepted, rejected and failed pushes of one topic, and its records and findings."""
    server = Server(binary, certs, "--seed", "7")
    gone, failing = secrets.token_hex(32), secrets.token_hex(32)
    try:
        server.api("PUT", f"/devices/{gone}", {"state": "unregistered"})
        server.api("POST", "/rules", {
            "name": "down", "when": {"device_token": failing}, "trigger": {"times": 1},
            "do": {"respond": {"status": 503, "reason": "ServiceUnavailable"}}})
        with connect(server) as wire:
            for device, changes in [
                    ("ab" * 32, {}), ("cd" * 32, {"apns_priority": "7"}), (gone, {}), (gone, {}), (failing, {}),
                    (failing, {}), ("ef" * 32, {"apns_push_type": None})]:
                wire.push(push_headers(server, device, apns_topic=TOPIC, **changes))
        server.api("DELETE", "/pushes?q=status:400")  # seq 2: an export may have gaps
        path = tmp_path_factory.mktemp("export") / "run.ndjson"
        path.write_bytes(server.request("GET", "/api/v1/export").body)
        records, findings = server.pushes(), server.api("GET", "/findings")["items"]
    finally:
        stop_cleanly(server)
    assert [record["served"]["status"] for record in records] == [200, 410, 410, 503, 200, 200]
    return path, records, findings


@pytest.fixture
def live(start, device):
    """A server with two pushes of its own."""
    server = start()
    with connect(server) as wire:
        for _ in range(2):
            assert wire.push(push_headers(server, device)).status == 200
    return server


def post(server, body, content_type="application/x-ndjson", **query):
    return server.request("POST", "/api/v1/import", body, headers={"content-type": content_type}, **query)


def without_seq(records):
    return [{name: value for name, value in record.items() if name != "seq"} for record in records]


def kinds(findings):
    return {item["finding"]: item["count"] for item in findings}


def as_array(path):
    return b"[\n" + b",\n".join(path.read_bytes().splitlines()) + b"\n]\n"


@pytest.mark.parametrize("form", ["lines", "array", "standard input", "request"])
def test_an_export_becomes_part_of_the_inbox(live, exported, tmp_path, device, form):
    path, records, _ = exported
    count = len(records)
    if form == "request":
        response = post(live, path.read_bytes())
        assert response.status == 200, response.body
        assert response.json == {"imported": count, "first_seq": 3, "last_seq": count + 2}
    else:
        source = path
        if form == "array":
            source = tmp_path / "run.json"
            source.write_bytes(as_array(path))
        stdin = path.read_text() if form == "standard input" else None
        done = live.command("import", source if stdin is None else "-", input=stdin)
        assert (done.returncode, done.stderr) == (DONE, "")
        assert done.stdout == f"{count} pushes imported: seq 3 to {count + 2}\n"
    page = live.api("GET", "/pushes")
    assert [record["seq"] for record in page["items"]] == list(range(1, count + 3)), "the numbering continues"
    assert (page["matched"], page["total"], page["evicted"]) == (count + 2, count + 2, 0)
    # The connections are none of this server's.
    for record in page["items"][2:]:
        record["connection"]["id"] = record["connection"]["id"].removeprefix("import 3: ")
    assert without_seq(page["items"][2:]) == without_seq(records)
    assert live.pushes(connection="import 3: " + records[0]["connection"]["id"])
    assert live.api("GET", "/pushes/3")["request"] == records[0]["request"]
    with connect(live) as wire:
        assert wire.push(push_headers(live, device)).status == 200
    assert live.pushes(device_token=device)[-1]["seq"] == count + 3


@pytest.fixture
def imported(live, exported):
    """A server with its own two pushes and those of the export."""
    response = post(live, exported[0].read_bytes())
    assert response.status == 200, response.body
    return live


def test_queries_find_imported_pushes(imported, exported):
    _, records, _ = exported
    numbers = {status: [index + 3 for index, record in enumerate(records) if record["served"]["status"] == status]
               for status in (200, 410, 503)}
    for query, expected in [
            ("status:410", numbers[410]), ("reason:ServiceUnavailable", numbers[503]), ("rule:down", numbers[503]),
            (f"topic:{TOPIC} status:200", numbers[200]), (f"!topic:{TOPIC}", [1, 2]), ("attempt:2", [5, 7])]:
        assert [record["seq"] for record in imported.pushes(q=query)] == expected, query
    waited = imported.api("GET", "/pushes/wait", q=f"topic:{TOPIC}", count=f"={len(records)}", timeout="1s")
    assert waited["satisfied"]
    document = {"expect": [{"match": f"topic:{TOPIC} status:410", "count": {"exactly": 2}}]}
    report = imported.request("POST", "/api/v1/verify", document)
    assert report.status == 200, report.json["text"]


def test_findings_about_imported_pushes_are_those_of_the_run(imported, exported):
    _, records, findings = exported
    assert {"retried-410", "missing-push-type"} <= kinds(findings).keys()
    live = imported.api("GET", "/findings", topic=TOPIC)["items"]
    assert kinds(live) == kinds(findings)
    (retried,) = [item for item in live if item["finding"] == "retried-410"]
    (record,) = retried["records"]
    assert (record["seq"], record["evidence"]) == (5, [5])
    assert record["explanation"].endswith("The export does not contain the evidence.")
    for record, original in zip(imported.pushes(topic=TOPIC), records, strict=True):
        assert record["findings"] == original["findings"]


def test_a_push_after_an_import_is_not_an_attempt_of_an_imported_one(imported):
    """The export has a push with the same device, topic and payload."""
    with connect(imported) as wire:
        assert wire.push(push_headers(imported, "ab" * 32, apns_topic=TOPIC)).status == 200
    former, record = imported.pushes(device_token="ab" * 32)
    assert former["request"]["payload"] == record["request"]["payload"]
    assert (record["attempt"], record["findings"]) == (1, [])


def test_an_export_of_the_importing_server_has_all_pushes(imported, exported, start):
    again = start()
    response = post(again, imported.request("GET", "/api/v1/export").body, connections="own")
    assert response.json == {"imported": len(exported[1]) + 2, "first_seq": 1, "last_seq": len(exported[1]) + 2}
    assert again.pushes() == imported.pushes()


def test_an_empty_export_adds_nothing(live, tmp_path):
    empty = tmp_path / "empty.ndjson"
    empty.touch()
    done = live.command("import", empty)
    assert (done.returncode, done.stdout) == (DONE, "0 pushes imported\n")
    assert post(live, b"[]").json == {"imported": 0, "first_seq": None, "last_seq": None}
    assert live.api("GET", "/pushes", limit=1)["total"] == 2


BAD_LINES = [
    ("hello\n", 1, "expected a record of a push"),
    ("{line}\n{{\"seq\": 2}}\n", 2, "no record of a push: outcome is missing"),
    ("{line}\n{half}", 2, "the record that begins here is incomplete"),
    ("{line}\n{line}\n", 2, "seq 1 follows seq 1"),
    ("[{line},\n", 2, "the list of records has no end"),
    ('{line}\n{{"seq": "\\ud800"}}\n', 2, "half of a surrogate pair before here, at column 16"),
    ('{line}\n\n {{"seq": 2,\n"x": "é\udcff"}}\n', 4, "not UTF-8 at column 8"),
]


@pytest.mark.parametrize(("text", "line", "reason"), BAD_LINES, ids=[row[2] for row in BAD_LINES])
def test_a_bad_line_is_named_and_nothing_is_imported(live, exported, tmp_path, text, line, reason):
    record = exported[0].read_text().splitlines()[0]
    bad = tmp_path / "bad.ndjson"
    bad.write_text(text.format(line=record, half=record[:300]), errors="surrogateescape")
    response = post(live, bad.read_bytes())
    assert response.status == 400
    assert f"line {line} of the export: {reason}" in response.json["detail"]
    done = live.command("import", bad)
    assert done.returncode == USAGE
    assert f"line {line} of the export: {reason}" in done.stderr
    for command in ("view", "merge") if "column" in reason else ("view",):
        done = run(live.binary, command, bad)
        assert done.returncode == USAGE and f"{bad}:{line}: {reason}" in done.stderr, done.stderr
    assert live.api("GET", "/pushes", limit=1)["total"] == 2


def test_invalid_imports_are_reported(binary, live, exported, start, tmp_path):
    path, records, _ = exported
    assert post(live, path.read_bytes(), "text/csv").status == 415
    assert live.request("GET", "/api/v1/import").status == 405
    small = start("--max-records", "2")
    full = post(small, path.read_bytes())
    assert full.status == 413 and f"{len(records)} pushes" in full.json["detail"], full.body
    assert small.api("GET", "/pushes", limit=1)["total"] == 0
    missing = live.command("import", tmp_path / "missing.ndjson")
    assert missing.returncode == USAGE and "missing.ndjson" in missing.stderr
    stopped = start()
    stopped.stop()
    assert stopped.command("import", path).returncode in (USAGE, UNREACHABLE)
    assert live.api("GET", "/pushes", limit=1)["total"] == 2


def test_the_result_can_be_printed_as_json(live, exported):
    done = live.command("import", exported[0], "--json")
    assert json.loads(done.stdout) == {"imported": len(exported[1]), "first_seq": 3, "last_seq": len(exported[1]) + 2}

"""What the web UI uses of the API: exports as HAR and CSV, searches for words, lists of records, sorting, dry runs."""

import csv
import io
import json
import stat
import urllib.parse

import pytest

from support.browser import Provider
from support.server import Server
from support.wire import connect, push_headers


@pytest.fixture
def furnished(start, provider, device):
    """A server with six pushes: accepted, hostile, not JSON, rejected, too large, reset by a fault."""
    server = start()
    one = provider(server)
    one.push(device, {"aps": {"alert": "Order shipped"}}, apns_collapse_id="c")
    one.push(device, json.dumps({"aps": {"alert": '=1+1,"x"\n'}}), apns_collapse_id='=cmd|" /C calc"!A0')
    one.push(device, "no JSON")
    one.push("ab12" * 16, {"aps": {"alert": "Order paid"}}, topic="")
    one.push(device, {"aps": {"alert": "x" * 5000}}, topic="com.example.other")
    server.api("POST", "/rules", {"name": "reset", "do": {"reset_stream": {"code": "INTERNAL_ERROR"}}})
    with pytest.raises(Exception):
        one.push(device, {"aps": {"alert": "Reset"}})
    assert len(server.pushes()) == 6
    return server


# Exports


# The required members of HAR 1.2 (its sections 2 and 3) and their types.
LOG = {"version": str, "creator": dict, "entries": list}
ENTRY = {"startedDateTime": str, "time": (int, float), "request": dict, "response": dict, "cache": dict, "timings": dict}
REQUEST = {"method": str, "url": str, "httpVersion": str, "cookies": list, "headers": list, "queryString": list, "headersSize": int, "bodySize": int}
RESPONSE = {"status": int, "statusText": str, "httpVersion": str, "cookies": list, "headers": list, "content": dict, "redirectURL": str,
            "headersSize": int, "bodySize": int}


def check(value, members):
    for name, type in members.items():
        assert isinstance(value[name], type), f"{name}: {value[name]!r}"


def test_an_export_is_a_valid_http_archive(furnished):
    response = furnished.request("GET", "/api/v1/export", format="har")
    assert response.headers["content-type"] == "application/json"
    log = response.json["log"]
    check(log, LOG)
    check(log["creator"], {"name": str, "version": str})
    assert log["version"] == "1.2" and len(log["entries"]) == 6
    for entry, record in zip(log["entries"], furnished.pushes()):
        check(entry, ENTRY)
        check(entry["request"], REQUEST)
        check(entry["response"], RESPONSE)
        check(entry["response"]["content"], {"size": int, "mimeType": str})
        check(entry["request"]["postData"], {"mimeType": str, "text": str, "params": list})
        check(entry["timings"], {"send": (int, float), "wait": (int, float), "receive": (int, float)})
        for header in entry["request"]["headers"] + entry["response"]["headers"]:
            check(header, {"name": str, "value": str})
        assert entry["startedDateTime"] == record["received_at"]
        url = urllib.parse.urlsplit(entry["request"]["url"])
        assert url.scheme == "https" and url.path == f"/3/device/{record['request']['device_token']}"
        assert entry["response"]["status"] == (record["served"]["status"] or 0)
        assert entry["_apns_mock"]["seq"] == record["seq"]
    assert log["entries"][0]["request"]["postData"]["text"] == '{"aps": {"alert": "Order shipped"}}'
    assert log["entries"][3]["response"]["content"]["text"] == '{"reason":"MissingTopic"}'
    assert "INTERNAL_ERROR" in log["entries"][5]["response"]["_error"]
    signature = furnished.bearer.rsplit(".", 1)[1]
    assert signature not in response.body.decode()
    empty = furnished.request("GET", "/api/v1/export", format="har", status="599").json
    assert empty["log"]["entries"] == []


def test_a_path_that_no_url_can_have_is_encoded(start):
    server = start()
    server.api("POST", "/send", {"token": "a<b>\"{}|\\^`", "headers": {"apns-topic": "com.example.app"}, "payload": "{}"})
    entry = server.request("GET", "/api/v1/export", format="har").json["log"]["entries"][0]
    assert entry["request"]["url"].endswith("/3/device/a%3Cb%3E%22%7B%7D%7C%5C%5E%60")


def test_an_export_is_a_table_without_formulas(furnished):
    response = furnished.request("GET", "/api/v1/export", format="csv")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    text = response.body.decode()
    assert text.endswith("\r\n")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    records = furnished.pushes()
    assert [int(row["seq"]) for row in rows] == [record["seq"] for record in records]
    for row, record in zip(rows, records):
        assert row["status"] == str(record["served"]["status"] or "") and row["reason"] == (record["served"]["reason"] or "")
        assert row["topic"] == (record["apns"]["topic"] or "") and row["outcome"] == record["outcome"]
        assert row["findings"].split() == record["findings"]
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), "a spreadsheet evaluates it"
    assert rows[1]["collapse_id"] == "'" + records[1]["apns"]["collapse_id"]
    assert json.loads(rows[1]["payload"]) == records[1]["request"]["payload"]
    assert rows[2]["payload"] == "" and rows[0]["payload"].startswith("{")


FORMULAS = [
    "=1", "+1", "-1", "@SUM(A1)", "|x", "＝1", "＋1", "－1", "＠SUM(A1)", "｜x", "﹦1", "﹢1", "﹣1", "﹫x", "⁼1", "⁺1", "⁻1", "₌1", "₊1", "₋1", "−1",
    "﬩1", "\u00a0=1", "\u3000＝1", "\u200b=1", "\ufeff=1", "\u2028=1"]
TEXTS = ["a=1", "1-1", "’=1", "é", "　x", "$=1"]


def test_no_form_of_a_formula_is_in_a_table(server, device):
    """Spreadsheets take some characters for the sign that they resemble, and leave out invisible ones before it."""
    with connect(server) as wire:
        for text in FORMULAS + TEXTS:
            wire.push(push_headers(server, device, apns_collapse_id=text.encode()))
    response = server.request("GET", "/api/v1/export", format="csv", device_token=device)
    cells = [row["collapse_id"] for row in csv.DictReader(io.StringIO(response.body.decode(), newline=""))]
    assert cells == [f"'{text}" for text in FORMULAS] + TEXTS


RAW = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"a\x80b", b"\xf0\x9f\x98", b"\xe2\x80\xa6"]


def test_every_export_is_valid_whatever_a_provider_sent(start, device, tmp_path):
    """Header fields and bodies of any bytes: each export is UTF-8 and JSON, and can be imported."""
    server = start()
    with connect(server) as wire:
        for raw in RAW:
            for name in ("apns_topic", "apns_collapse_id", "apns_id", "apns_push_type", "apns_priority", "apns_expiration"):
                wire.push(push_headers(server, device, **{name: raw}))
            for name in ("x-raw", "cookie", "user-agent", "authorization", "apns-request-id"):
                wire.push(push_headers(server, device, (name, raw)))
            for path in (b"/3/device/" + raw, b"/" + raw, b"/1/apps/" + raw + b"/channels", b"/3/device/ab?x=" + raw):
                wire.push(push_headers(server, device, path_=path))
            for body in (raw, b'"' + raw + b'"', b'{"aps":{"alert":"' + raw + b'"}}', b'{"' + raw + b'":1}'):
                wire.push(push_headers(server, device), body)
        for body in (b'{"aps":"\\ud800"}', b'{"aps":"\\udc00\\ud800"}', b'"\0"', b'"\\u0000"', b"\xef\xbb\xbf{}"):
            wire.push(push_headers(server, device), body)
    count = server.api("GET", "/pushes", kind="*", limit=1)["total"]
    assert count >= len(RAW) * 15
    bodies = {name: server.request("GET", "/api/v1/export", format=name, kind="*").body for name in ("ndjson", "json", "har", "csv")}
    texts = {name: body.decode("utf-8", errors="strict") for name, body in bodies.items()}
    lines = [json.loads(line) for line in texts["ndjson"].splitlines()]
    assert len(lines) == count and json.loads(texts["json"]) == lines
    assert len(json.loads(texts["har"])["log"]["entries"]) == count
    assert len(list(csv.DictReader(io.StringIO(texts["csv"], newline="")))) == count
    for text in texts.values():
        assert not any(0xd800 <= ord(character) < 0xe000 for character in text)
    json.dumps(lines, ensure_ascii=False).encode()
    json.dumps(json.loads(texts["har"]), ensure_ascii=False).encode()
    again = start()
    done = again.request("POST", "/api/v1/import", bodies["ndjson"], headers={"content-type": "application/x-ndjson"},
                         connections="own")
    assert done.status == 200, done.body
    assert again.request("GET", "/api/v1/export", kind="*").body == bodies["ndjson"]


@pytest.mark.parametrize("format", ["har", "csv", "ndjson", "json"])
def test_the_command_writes_all_formats(furnished, format, tmp_path):
    file = tmp_path / "export"
    done = furnished.command("export", "status:400", "--format", format, "--output", str(file))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "it contains payloads and device tokens"
    assert file.read_bytes() == furnished.request("GET", "/api/v1/export", format=format, q="status:400").body
    wrong = furnished.command("export", "--format", "xml")
    assert wrong.returncode == 2 and "ndjson, json, har or csv" in wrong.stderr
    assert furnished.request("GET", "/api/v1/export", format="xml").status == 400


# Searches


@pytest.mark.parametrize(("search", "expected"), [
    ("order", [1, 4]), ("ORDER shipped", [1]), ("shipped order", [1]), ("order !paid", [1]), ('"order sh"', [1]), ("order status:400", [4]),
    ("order paid shipped", []), ("", [1, 2, 3, 4, 5, 6]), ("order text:shipped text:paid", [1, 4]),
])
def test_all_words_of_a_search_must_occur(furnished, search, expected):
    assert [record["seq"] for record in furnished.pushes(search=search)] == expected
    assert furnished.api("GET", "/stats", search=search)["matched"] == len(expected)


@pytest.mark.parametrize("search", ["stauts:503", "a:b", '"open', "x " * 101])
def test_an_invalid_search_is_an_error(furnished, search):
    response = furnished.request("GET", "/api/v1/pushes", search=search)
    assert response.status == 400 and response.json["hint"]


def test_records_are_selected_by_a_list(furnished):
    assert [record["seq"] for record in furnished.pushes(seqs="2-3,5,900")] == [2, 3, 5]
    assert [record["seq"] for record in furnished.pushes(seqs="1-6", status="400")] == [4]
    assert furnished.api("DELETE", "/pushes", seqs="2,4-5") == {"deleted": 3}
    assert [record["seq"] for record in furnished.pushes()] == [1, 3, 6]
    many = ",".join(str(2 * number) for number in range(1, 2001))
    assert furnished.api("GET", "/pushes", seqs=many)["matched"] == 1
    for invalid in ("", "x", "3-1", "1,1", "2,1", "-1", "1-", "1,,2", "99999999999999999999", many + ",5000"):
        response = furnished.request("GET", "/api/v1/pushes", seqs=invalid)
        assert response.status == 400 and "ascending" in response.json["hint"], invalid


@pytest.mark.parametrize(("sort", "order", "expected"), [
    ("seq", "asc", [1, 2, 3, 4, 5, 6]), ("seq", "desc", [6, 5, 4, 3, 2, 1]), ("size", "asc", None), ("size", "desc", None),
    # Without a value last; among equal values the newest first.
    ("status", "asc", [3, 2, 1, 4, 5, 6]), ("status", "desc", [5, 4, 3, 2, 1, 6]),
    ("reason", "asc", [4, 5, 6, 3, 2, 1]), ("outcome", "asc", [3, 2, 1, 5, 4, 6]),
])
def test_records_are_sorted(furnished, sort, order, expected):
    found = furnished.api("GET", "/pushes/seqs", sort=sort, order=order)
    if expected is None:
        by_size = sorted(furnished.pushes(), key=lambda record: (record["request"]["size"]["bytes"] * (1 if order == "asc" else -1), -record["seq"]))
        expected = [record["seq"] for record in by_size]
    assert found == {"seqs": expected, "matched": 6, "total": 6, "evicted": 0}


def test_a_sorted_list_is_filtered(furnished):
    assert furnished.api("GET", "/pushes/seqs", sort="topic", search="order")["seqs"] == [4, 1]
    assert furnished.api("GET", "/pushes/seqs", order="desc", before=3)["seqs"] == [2, 1]
    for query in ({"sort": "nonsense"}, {"order": "up"}, {"sort": ["seq", "size"]}, {"limit": 3}):
        assert furnished.request("GET", "/api/v1/pushes/seqs", **query).status == 400, query


def test_attempts_are_grouped_by_push(start, provider, device):
    """A list has the newest matching attempt of each push, whichever condition finds it; a deletion takes all of them."""
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one, other = provider(server), "ab12" * 16
    assert [one.alert(device, "Again") for _ in range(3)] == [503, 503, 200]
    assert [one.alert(other, "Twice") for _ in range(2)] == [503, 503]
    # The same content once more is another push.
    assert one.alert(device, "Again") == 503

    def grouped(**query):
        page = server.api("GET", "/pushes/seqs", group="push", order="desc", **query)
        assert page["matched"] == len(page["seqs"])
        return page["seqs"], page["attempts"]

    assert grouped() == ([6, 5, 3], 6)
    assert grouped(q="status:503") == ([6, 5, 2], 5)
    assert grouped(q="attempt:2") == ([5, 2], 2)
    assert grouped(q="is:faulted") == ([6, 5, 2], 5)
    assert grouped(q="finding:hot-retry")[0] == [5, 3]
    assert grouped(status="200", sort="attempt") == ([3], 1)
    assert grouped(status="410") == ([], 0)

    def whole(**query):
        return [record["seq"] for record in server.pushes(attempts="all", **query)]

    assert whole(status="200") == [1, 2, 3] and whole(seqs="5") == [4, 5] and whole(seqs="6") == [6] and whole(status="410") == []
    for query in ({"group": "topic"}, {"attempts": "none"}):
        assert server.request("GET", "/api/v1/pushes/seqs", **query).status == 400, query
    assert server.request("DELETE", "/api/v1/pushes", attempts="all").status == 400, "no push is selected"
    exported = server.request("GET", "/api/v1/export", seqs="3", attempts="all").body
    assert server.request("DELETE", "/api/v1/pushes", seqs="3", attempts="all").json == {"deleted": 3}
    assert server.request("POST", "/api/v1/import", exported, connections="own").status == 200
    assert grouped() == ([9, 6, 5], 6)
    # An attempt that was removed alone, and restored with a new number, belongs to its push again.
    exported = server.request("GET", "/api/v1/export", seqs="4").body
    server.request("DELETE", "/api/v1/pushes", seqs="4")
    assert server.request("POST", "/api/v1/import", exported, connections="own").status == 200
    assert grouped() == ([9, 6, 5], 6) and whole(seqs="5") == [5, 10]


@pytest.mark.parametrize(("search", "expected"), [
    ("503", [2, 3]), ("!503", [1, 4, 5, 6]), ("serviceunavailable", [2]), ("REJECTED", [2, 4]), ("Refused", [2]), ("would-not-show", [6]),
    ("shipping", [1]), ("nightly", [1]), ("sandbox", [1, 2, 3, 4, 5, 6]), ("MOCKTEAM01", [1, 2, 3, 4, 5, 6]), ("offline", [5]), ("STORED", [5]), ('"503"', [3]), ("50*", [3]), ("refused order", []), ("order 503", [3]),
])
def test_a_word_finds_what_people_read_of_a_push(words, search, expected):
    assert [record["seq"] for record in words.pushes(search=search)] == expected


@pytest.fixture(scope="module")
def words(binary, certs):
    """A server with six pushes: in a test named `test_shipping`, answered by the rule `refused`, about order 503, rejected, to a device that is
    offline, and one that shows nothing.
    """
    server, device = Server(binary, certs), "cd34" * 16
    one = Provider(server)
    run = server.request("POST", "/api/v1/runs", {"name": "nightly"}).json["id"]
    number = server.request("POST", f"/api/v1/runs/{run}/tests", {"name": "test_shipping"}).json["number"]
    one.push(device, {"aps": {"alert": "Hello"}})
    server.api("PATCH", f"/runs/{run}/tests/{number}", {"outcome": "passed"})
    server.api("PATCH", f"/runs/{run}", {"ended": True})
    server.api("POST", "/rules", {"name": "refused", "do": {"respond": {"status": 503}}})
    one.push(device, {"aps": {"alert": "Late"}})
    server.api("DELETE", "/rules/refused")
    one.push(device, {"aps": {"alert": "order 503"}})
    one.push(device, {"aps": {"alert": "None"}}, topic="")
    server.request("PUT", "/api/v1/fixtures", {"apps": [{"bundle_id": "com.example.app", "team_id": "MOCKTEAM01"}], "devices": [{"id": "anna", "state": "offline",
        "apps": [{"bundle_id": "com.example.app", "environment": "sandbox", "tokens": {"alert": "ef56" * 16}}]}]})
    one.push("ef56" * 16, {"aps": {"alert": "Later"}})
    one.push(device, {"aps": {}})
    one.close()
    yield server
    assert server.stop() == 0


def test_records_are_left_out(words):
    assert [record["seq"] for record in words.pushes(**{"!seqs": "2-3"})] == [1, 4, 5, 6]
    assert [record["seq"] for record in words.pushes(**{"!seqs": "1"}, seqs="1-2")] == [2]
    assert words.request("GET", "/api/v1/pushes", **{"!seqs": "2,1"}).status == 400


def test_cursors_in_a_search_and_beside_it_both_apply(furnished):
    assert [record["seq"] for record in furnished.pushes(search="after:2 before:5", before=6, after=1)] == [3, 4]
    assert [record["seq"] for record in furnished.pushes(search="after:1 before:6", before=5, after=2)] == [3, 4]


# Dry runs


def test_a_dry_run_sends_nothing(furnished, device):
    draft = {"token": device, "headers": {"apns-topic": "com.example.app", "apns-push-type": "alert"}, "payload": '{"aps":{"alert":"x"}}', "dry_run": True}
    before = furnished.api("GET", "/pushes", limit=0)["total"]
    result = furnished.api("POST", "/send", draft)
    assert result["outcome"] == "not_sent" and result["status"] == 200 and result["reason"] is None and result["payload_error"] is None
    assert all(check["ok"] for check in result["checks"]) and result["size"] == {"bytes": 21, "limit": 4096}
    rejected = furnished.api("POST", "/send", {**draft, "headers": {**draft["headers"], "apns-priority": "7"}})
    assert (rejected["status"], rejected["reason"]) == (400, "BadPriority") and "7" in rejected["checks"][-1]["detail"]
    assert furnished.api("POST", "/send", {**draft, "payload": '{"a" 1}'})["payload_error"].endswith("at byte 5")
    furnished.api("PUT", f"/devices/{device}", {"state": "unregistered"})
    assert furnished.api("POST", "/send", draft)["reason"] == "Unregistered"
    assert furnished.api("GET", "/pushes", limit=0)["total"] == before
    large = furnished.api("POST", "/send", {**draft, "headers": {**draft["headers"], "x-large": "x" * 8000}})
    assert (large["status"], [check["check"] for check in large["checks"]]) == (431, ["header_list_size"])
    refused = furnished.request("POST", "/api/v1/send", {**draft, "headers": {**draft["headers"], "connection": "close"}})
    assert refused.status == 400 and "headers.connection" in refused.json["detail"]
    # The verdict is that of the push that is then sent.
    furnished.api("DELETE", "/rules/reset")
    sent = furnished.api("POST", "/send", {**draft, "dry_run": False})
    assert (sent["outcome"], sent["reason"]) == ("answered", "Unregistered")


def test_a_dry_run_predicts_the_delivery(server):
    """Each state of a device and of its app."""
    token, base = "5ee4" * 16, {"apns-topic": "com.predicted.app", "apns-push-type": "alert"}
    silent = {"apns-topic": "com.predicted.app", "apns-push-type": "background", "apns-priority": "5"}
    for device, app, headers, expected in (
            ("online", "enabled", base, ("Delivered to Device", None)), ("online", "disabled", base, ("Discarded - Disabled", None)),
            ("online", "disabled", silent, ("Delivered to Device", None)), ("online", "removed", base, ("Discarded - Token Unregistered", None)),
            ("offline", "enabled", base, ("Stored - Device Offline", None)), ("offline", "enabled", {**base, "apns-expiration": "0"}, ("Discarded - Expired", None)),
            ("power_restricted", "enabled", base, ("Delivered to Device", None)), ("power_restricted", "enabled", {**base, "apns-priority": "5"}, ("Stored - Power Considerations", "power_restricted")),
            ("online", "force_quit", base, ("Delivered to Device", None)), ("online", "force_quit", silent, ("Stored - Power Considerations", "force_quit"))):
        server.api("PUT", "/fixtures", {"devices": [{"id": "predicted", "state": device, "apps": [{"bundle_id": "com.predicted.app", "state": app, "tokens": {"alert": token}}]}]})
        draft = {"token": token, "headers": headers, "payload": {"aps": {"alert": "x"} if headers is not silent else {"content-available": 1}}}
        found = server.api("POST", "/send", {**draft, "dry_run": True})
        assert (found["accepted"], found["delivery"], found["held_by"]) == (True, *expected), (device, app, headers)
        # It is what happens.
        sent = server.api("POST", "/send", draft)
        assert server.api("GET", f"/pushes/{sent['apns_id']}")["delivery"] == expected[0], (device, app, headers)
    server.api("DELETE", "/devices/predicted")
    assert server.api("POST", "/send", {**draft, "dry_run": True})["delivery"] is None


@pytest.mark.parametrize(("rule", "response", "accepted"), [
    ({"respond": {"status": 503, "reason": "Shutdown"}}, {"ending": "response", "status": 503, "reason": "Shutdown", "delay_ms": 0}, False),
    ({"respond": {"status": 200}}, {"ending": "response", "status": 200, "reason": None, "delay_ms": 0}, True),
    ({"delay": {"fixed": "2s"}}, {"ending": "response", "status": 200, "reason": None, "delay_ms": 2000}, True),
    ({"reset_stream": {}}, {"ending": "reset", "status": None, "reason": None, "delay_ms": 0}, False),
    ({"close": {}}, {"ending": "disconnected", "status": None, "reason": None, "delay_ms": 0}, False),
    ({"lose_answer": {}}, {"ending": "pending", "status": None, "reason": None, "delay_ms": 0}, True),
])
def test_a_dry_run_predicts_the_rules(server, device, rule, response, accepted):
    [action] = rule
    at = {"at": "response"} if action == "lose_answer" else {}
    server.api("POST", "/rules", {"name": "first", **at, "when": {"device_token": device}, "do": rule, "trigger": {"times": 1}})
    draft = {"token": device, "headers": {"apns-topic": "com.example.app", "apns-push-type": "alert"}, "payload": {"aps": {"alert": "x"}}}
    try:
        for _ in range(2):
            found = server.api("POST", "/send", {**draft, "dry_run": True})
            assert [(one["rule"], one["action"]) for one in found["rules"]] == [("first", action)]
            assert (found["response"], found["accepted"], found["status"]) == (response, accepted, 200)
        counts = server.api("GET", "/rules")["items"][0]
        assert (counts["looked_at"], counts["fired"]) == (0, 0), "a prediction counts nothing"
        if action == "respond":
            # A rule that is exhausted does not fire again.
            assert server.api("POST", "/send", draft)["status"] == response["status"]
            assert server.api("POST", "/send", {**draft, "dry_run": True})["rules"] == []
    finally:
        server.api("DELETE", "/rules/first")

"""The inbox in a store after a restart: every record, export, query, wait and verification is the same as before,
when the records were in memory.
"""

import csv
import io
import json
import re
import types
import uuid

import pytest

from support import stores
from support.selection import some
from support.server import Server, stop_cleanly
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for busy machines: the traffic takes half a minute on an idle one

FIELDS = ("seq,accepted,outcome,delivery,listener,kind,environment,received_at,finished_at,push_key,attempt,connection,"
          "request,apns,auth,verdict,fault,served")
FORMATS = ["ndjson", "json", "har", "csv"]
ALL = "?kind=*&limit=1000"

#: Findings that compare a push with others. They depend on how connections have ended, which ends with the server.
COMPARING = {"retried-permanent", "retried-410", "hot-retry", "connection-churn"}

QUERIES = [
    "", "kind:*", "kind:broadcast", "!kind:push", "kind:push kind:channel",
    "token:{accepted}", "token:ABAB*", "!token:{accepted}", "token:efefefef*", "token:feedface*", "token:*00",
    "!token:*", "token:nothing",
    "topic:com.acme.shop", "topic:com.acme.*", "!topic:com.example.app", "topic:COM.ACME.SHOP", "!topic:*", "topic:*.*.app",
    "status:410", "status:4*", "status:400..409", "status:>=500", "!status:200", "!status:*", "status:410 status:503",
    "reason:Unregistered", "reason:Bad*", "!reason:*", "!reason:Bad* status:400", "reason:Teapot",
    "is:faulted", "outcome:rejected", "outcome:unanswered", "decision:rejected", "ending:response", "!ending:response", "!outcome:accepted", "outcome:pending", "accepted:true", "accepted:false",
    'delivery:"Stored - Device Offline"', "delivery:stored*", "!delivery:*", "delivery:*",
    "type:background", "type:toast", "!type:alert", "!type:*", "priority:5", "priority:<10", "!priority:10", "priority:7",
    "id:{id}", "id:no-uuid", "collapse:score", "!collapse:*", "attempt:2", "attempt:>1", "is:retry", "is:first",
    "is:duplicate", "is:pending", "!is:retry", "push_key:{push_key}", "!push_key:{push_key}",
    "rule:rule-1", "rule:rule-*", "!rule:*", "profile:flaky-503", "!profile:*", "finding:would-not-show",
    "finding:missing-push-type", "connection:c1", "connection:c*", "!connection:c1", "listener:0", "listener:>0",
    "environment:sandbox", "environment:production", "key_id:MOCKKEY001", "team_id:MOCKTEAM01", "!key_id:*",
    "since:-1h", "until:-1h", "since:2020-01-01T00:00:00Z until:2090-01-01T00:00:00Z", "!since:-1h",
    "size:>3K", "larger:100", "smaller:20", "size:0", "size:1..30", "!size:25",
    "text:für", 'text:"order 66"', "text:HELLO", "!text:hello", "text:com.acme", "text:p*y",
    "payload./aps/badge:12", "payload./aps/badge:>3", "payload./aps/alert:hello", "!payload./aps/alert:*",
    "payload./a~1b/1:true", "payload./a~1b/2:null", "payload./aps/content-available:*",
    "header.x-trace:order*", "header.apns-priority:<6", "!header.apns-topic:*", "header.x-empty:*",
    "after:10 before:20", "after:10 status:400", "before:5 is:first", "after:1000",
    "status:400 !reason:BadTopic topic:com.example.* text:hello", "token:ABAB* payload./aps/badge:*",
]

VERIFICATIONS = [
    {"expect": [{"match": "status:410", "count": {"exactly": 3}},
                {"match": "topic:com.acme.shop", "count": {"exactly": 1}}]},
    {"expect": [{"match": "status:410", "count": {"exactly": 17}}]},
    {"expect": [{"match": 'payload./aps/alert:hello token:ABAB*', "count": {"at_least": 2}}]},
    {"expect": [{"match": "topic:com.example.unused"}]},
]

# Lists in which the attempts of a push are one row, and selections of all attempts of the pushes that match.
GROUPED = [f"/pushes/seqs?group=push&q={query}" for query in ("", "status:200", "is:faulted", "attempt:2", "status:4*")] + [
    "/pushes?attempts=all&limit=1000&fields=seq&q=attempt:2", "/pushes?attempts=all&limit=0&search=503"]

WAITS = [
    {"status": "410", "count": "=3"}, {"reason": "Bad*", "count": "2"}, {"q": "text:für"}, {"after": "5", "count": "20"},
    {"topic": "com.example.unused", "count": "0"}, {"topic": "com.acme.shop", "status": "410"},
    {"kind": "*", "count": "=3", "q": "is:first status:4*"},
]


def get(server, path):
    response = server.request("GET", "/api/v1" + path)
    assert response.status == 200, f"{path}: {response.body}"
    return response.body


def without_findings(body):
    """Returns JSON without its lists of findings, and CSV without that column."""
    if body.startswith(b"seq,"):
        return [{**row, "findings": None} for row in csv.DictReader(io.StringIO(body.decode(), newline=""))]
    return re.sub(rb'"_?findings":\[[^]]*\]', b"", body)


def verify(server, document):
    response = server.request("POST", "/api/v1/verify", document)
    assert response.status in (200, 409, 412, 422), response.body
    return response.status, without_findings(response.body)


def wait(server, query):
    response = server.request("GET", "/api/v1/pushes/wait", timeout="0s", **query)
    assert response.status == 200, response.body
    return without_findings(response.body)


def answers(server, names):
    """Returns what the admin API shows of the inbox."""
    def found(query, **more):
        return [record["seq"] for record in server.pushes(q=query.format(**names), limit=1000, **more)]

    return types.SimpleNamespace(
        records=get(server, f"/pushes{ALL}&fields={FIELDS}"),
        findings={record["seq"]: set(record["findings"]) for record in stores.everything(server)},
        exports={name: without_findings(get(server, f"/export?kind=*&format={name}")) for name in FORMATS},
        queries={query: found(query) for query in QUERIES},
        verified=[verify(server, document) for document in VERIFICATIONS],
        waited=[wait(server, query) for query in WAITS],
        stats=get(server, "/stats"), grouped=[get(server, path) for path in GROUPED], attempts=get(server, f"/pushes/{names['retried']}"),
    )


@pytest.fixture(scope="module", params=some(["sqlite", "postgres"], 1, first=1))
def restarted(request, binary, certs, tmp_path_factory):
    """A server that was restarted with the inbox with pushes of every kind and keeps one record in memory; its answers, and
    those of the server before, which kept all records in memory.
    """
    folder = tmp_path_factory.mktemp("restart")
    place, retried = stores.new_place(request.param, folder), str(uuid.uuid4())
    settings = ["--seed", "7", "--apns-plain", "127.0.0.1:0"]
    first = Server(binary, certs, *settings, *stores.flags(place))
    try:
        stores.push_every_kind(first, folder)
        with connect(first) as wire:
            for _ in range(3):
                wire.push(push_headers(first, "fe" * 32, apns_id=retried))
        records = stores.everything(first)
        names = {"accepted": "ab" * 32, "retried": retried, "push_key": records[0]["push_key"],
                 "id": next(record["apns"]["id"] for record in records if record["fault"])}
        before = answers(first, names)
    finally:
        stop_cleanly(first)
    second = Server(binary, certs, *settings, *stores.flags(place, memory_records=1))
    try:
        yield types.SimpleNamespace(
            store=request.param, server=second, before=before, after=answers(second, names), names=names)
    finally:
        stop_cleanly(second)


def test_the_traffic_contains_every_kind(restarted):
    records = json.loads(restarted.before.records)["items"]
    assert {record["outcome"] for record in records} == {"accepted", "rejected", "unanswered", "unprocessed"}
    assert {record["kind"] for record in records} == {"push", "broadcast", "channel"}
    assert {reason for reason, _, _ in stores.REJECTIONS} <= {record["served"]["reason"] for record in records}
    actions = {next(iter(action)) for action in stores.ACTIONS}
    assert actions <= {record["fault"]["action"] for record in records if record["fault"]}
    assert {"token", "certificate"} <= {record["auth"]["kind"] for record in records}
    assert {"http/1.1", "h2"} == {record["connection"]["http"] for record in records}


def test_records_are_the_same_byte_for_byte(restarted):
    assert restarted.after.records == restarted.before.records


def test_each_record_is_the_same_by_its_seq(restarted):
    for record in json.loads(restarted.before.records)["items"]:
        seen = restarted.server.api("GET", f"/pushes/{record['seq']}")
        assert {name: seen[name] for name in record} == record


def test_findings_that_compare_pushes_are_about_those_since_the_start(restarted):
    before, after = restarted.before.findings, restarted.after.findings
    others = {seq: names - COMPARING for seq, names in before.items()}
    if restarted.store == "sqlite":
        assert after == others
    assert {seq: names - COMPARING for seq, names in after.items()} == others
    assert all(names <= before[seq] for seq, names in after.items())
    assert any(names & COMPARING for names in before.values())


@pytest.mark.parametrize("name", FORMATS)
def test_exports_are_the_same(restarted, name):
    assert restarted.after.exports[name] == restarted.before.exports[name]


def test_queries_find_the_same_pushes(restarted):
    assert restarted.after.queries == restarted.before.queries


def test_queries_find_the_same_pushes_newest_first(restarted):
    for query in some(QUERIES, 40):
        found = restarted.server.pushes(q=query.format(**restarted.names), limit=1000, order="desc")
        assert [record["seq"] for record in found] == restarted.after.queries[query][::-1], query


def test_waits_and_verifications_have_the_same_result(restarted):
    assert restarted.after.waited == restarted.before.waited
    assert restarted.after.verified == restarted.before.verified


INCONCLUSIVE = 5


@pytest.mark.parametrize("requirement", ["nothing_lost", "no_findings"])
def test_what_was_not_analyzed_is_not_passed(start, place, requirement):
    """A push that was answered 503 more than ten minutes before the restart, and never repeated."""
    server = start(*stores.flags(place))
    server.api("POST", "/rules", {"name": "down", "do": {"respond": {"status": 503}}})
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ab" * 32)).status == 503
    last = stores.status(server)["inbox"]["last_seq"]
    if requirement == "nothing_lost":
        assert server.command("verify", "-", input="{nothing_lost: true}").returncode == 1
    assert server.stop() == 0
    stores.execute(place, f"UPDATE push SET arrived_ns = arrived_ns - {11 * 60 * 10**9}")
    server = start(*stores.flags(place))
    verified = server.command("verify", "-", input=f"{{{requirement}: true}}")
    assert verified.returncode == INCONCLUSIVE and "before its start" in verified.stderr, verified
    report = server.request("POST", "/api/v1/verify", {requirement: True}).json
    assert (report["passed"], report["complete"], report["analyzed"]) == (False, False, False)
    checked = server.request("POST", "/api/v1/check", {"fail_on_findings": True})
    assert checked.status == 412 and "before its start" in checked.json["text"]
    assert (checked.json["inconclusive"], checked.json["analyzed"], checked.json["findings"]) == (True, False, [])
    assert server.request("POST", "/api/v1/check", {"fail_on_rejected": True}).status == 200, "it needs no analysis"
    # Later pushes, those of another scope, and requirements about counts are not concerned.
    for document in ({requirement: True, "after": last}, {requirement: True, "scope": "topic:com.example.other"},
                     {"expect": [{"match": "status:503", "count": 1}]}):
        assert server.api("POST", "/verify", document)["passed"], document
    server.api("POST", "/reset")
    assert server.api("POST", "/verify", {requirement: True})["passed"]


def test_attempts_of_an_id_are_the_same(restarted):
    before, after = json.loads(restarted.before.attempts), json.loads(restarted.after.attempts)
    assert before["attempts"] == after["attempts"] and len(after["attempts"]) == 3


def test_grouped_attempts_are_the_same(restarted):
    assert restarted.after.grouped == restarted.before.grouped
    pushes, retried = (json.loads(restarted.after.grouped[index]) for index in (0, -2))
    assert pushes["matched"] == len(pushes["seqs"]) < pushes["attempts"] and retried["matched"] > 2


def test_statistics_are_the_same(restarted):
    assert json.loads(restarted.after.stats) == json.loads(restarted.before.stats)


@pytest.mark.parametrize(("order", "cursor"), [("asc", "after"), ("desc", "before")])
@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_pages_cover_the_inbox_once(restarted, order, cursor, limit):
    seen, query = [], {}
    while True:
        page = restarted.server.api("GET", "/pushes", kind="*", order=order, limit=limit, fields="seq", **query)
        seen += [record["seq"] for record in page["items"]]
        if page["next"] is None:
            break
        query = {cursor: page["next"]}
    expected = [record["seq"] for record in json.loads(restarted.before.records)["items"]]
    assert seen == (expected if order == "asc" else expected[::-1])


def test_the_payload_and_the_curl_command_are_served(restarted):
    for record in json.loads(restarted.before.records)["items"][:6]:
        seq = record["seq"]
        assert len(get(restarted.server, f"/pushes/{seq}/payload")) == record["request"]["size"]["bytes"]
        assert b"curl" in get(restarted.server, f"/pushes/{seq}/curl")

"""The query language end to end: pushes arrive over HTTP/2; queries are sent to the admin API and given to
commands, in both forms.
"""

import json
import secrets
import uuid

import pytest

from support.server import Server, stop_cleanly
from support.wire import connect, push_headers

DONE, USAGE = 0, 2


@pytest.fixture(scope="module")
def inbox(binary, certs):
    """A server whose inbox holds eight known pushes, and their properties."""
    server = Server(binary, certs)
    one, two, gone = (secrets.token_hex(32) for _ in range(3))
    apns_id = str(uuid.uuid4())
    server.api("PUT", f"/devices/{gone}", {"state": "unregistered"})
    order = (b'{"aps": {"alert": {"title": "Order shipped", "body": "F\\u00fcr dich"}, "badge": 4}, '
             b'"a/b": [1, true, null]}')
    pushes = [
        (push_headers(server, one, apns_collapse_id="score"), order),  # 1
        (push_headers(server, one, apns_collapse_id="score"), order),  # 2: the same push again
        (push_headers(server, two, apns_push_type="background", apns_priority="5"),  # 3
         b'{"aps": {"content-available": 1}, "badge": "4"}'),
        (push_headers(server, two, apns_topic="com.acme.shop"), b'{"aps": {"badge": 12}}'),  # 4
        (push_headers(server, two, apns_priority="7", x_trace="order 66"), b'{"aps": {"badge": 2}}'),  # 5: a 400
        (push_headers(server, two, apns_priority="7", x_trace="order 66"), b'{"aps": {"badge": 2}}'),  # 6: its retry
        (push_headers(server, gone, apns_id=apns_id), b'{"aps": {"alert": "hi"}}'),  # 7: a 410
        (push_headers(server, one), b'{"aps":{}}' + b" " * 2000),  # 8
    ]
    with connect(server) as wire:
        for headers, body in pushes:
            wire.push(headers, body)
    yield server, {"one": one, "two": two, "gone": gone, "id": apns_id}
    stop_cleanly(server)


def numbers(server, **query):
    return [record["seq"] for record in server.pushes(**query)]


QUERIES = [
    ("", [1, 2, 3, 4, 5, 6, 7, 8]),
    ("status:410", [7]), ("status:410 status:400", [5, 6, 7]), ("status>=400", [5, 6, 7]), ("status:400..409", [5, 6]),
    ("!status:2*", [5, 6, 7]), ("status:4* !status:410", [5, 6]), ("outcome:rejected reason:Unreg*", [7]),
    ("topic:com.acme.*", [4]), ("!topic:com.example.app", [4]), ("type:background", [3]), ("!type:alert", [3]),
    ("token:{one}", [1, 2, 8]), ("id:{id}", [7]), ("collapse:score", [1, 2]), ("!collapse_id:*", [3, 4, 5, 6, 7, 8]),
    ("priority:5", [3]), ("priority:<10", [3]), ("attempt:>1", [6]), ("is:retry", [6]), ("is:duplicate", [2]),
    ("accepted:true is:first !is:duplicate", [1, 3, 4, 8]), ("is:pending", []),
    ("larger:1.5K", [8]), ("size:>1.5K", [8]), ("smaller:30", [4, 5, 6, 7]), ("size_gt:2000 size_lt:3KiB", [8]),
    ("since:-5m", [1, 2, 3, 4, 5, 6, 7, 8]), ("until:-5m", []), ("since:2020-01-01T00:00:00Z after:6", [7, 8]),
    ("finding:would-not-show", [8]), ("key_id:MOCKKEY001 team_id:MOCKTEAM01 status:410", [7]),
    ("listener:0 connection:c* before:3", [1, 2]), ("rule:* ", []),
    ("payload./aps/badge:>3", [1, 2, 4]), ("payload./aps/badge:3..9", [1, 2]),
    ("payload./aps/badge:*", [1, 2, 4, 5, 6]),
    ("!payload./aps/badge:*", [3, 7, 8]), ("payload./aps/alert:*", [1, 2, 7]), ("payload./aps/alert:hi", [7]),
    ('payload./aps/alert/title:"Order shipped"', [1, 2]), ("payload./aps/alert/title:Order*", [1, 2]),
    ("payload./aps/alert/title:order*", []), ("payload./aps/alert/body:Für*", [1, 2]), ("payload./badge:4", [3]),
    ('payload./badge:"4"', [3]), ('payload./aps/badge:"4"', []), ("payload./a~1b/1:true", [1, 2]),
    ("payload./a~1b/2:null", [1, 2]), ("payload./a~1b/3:*", []),
    ('text:"order shipped"', [1, 2]), ("text:order", [1, 2, 5, 6]), ("text:für", [1, 2]), ('text:"ORDER 66"', [5, 6]),
    ("header.x-trace:order*", [5, 6]), ('header.x-trace:"order 66"', [5, 6]), ("header.apns-priority:<6", [3]),
    ("status:410 topic:com.acme.* ", []),
    ('status:200 topic:com.example.* !type:background larger:0.1K text:"order shipped" payload./aps/badge:>3', [1, 2]),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=[row[0] for row in QUERIES])
def test_queries(inbox, query, expected):
    server, names = inbox
    query = query.replace("{one}", names["one"].upper()).replace("{id}", names["id"].upper())
    assert numbers(server, q=query) == expected


PARAMETERS = [
    ("status=410", [7]), ("status=410&status=400", [5, 6, 7]), ("status=%3E%3D400", [5, 6, 7]),
    ("status=>=400", [5, 6, 7]),
    ("!status=2*", [5, 6, 7]), ("status=!2*", [5, 6, 7]), ("type=background", [3]), ("larger=1.5K", [8]),
    ("payload./aps/badge=>3", [1, 2, 4]), ("payload./aps/alert/title=Order+shipped", [1, 2]),
    ("payload.%2Faps%2Falert%2Ftitle=Order%20shipped", [1, 2]), ("!payload./aps/badge=*", [3, 7, 8]),
    ("header.x-trace=order+66", [5, 6]), ("text=order+shipped", [1, 2]), ("since=-5m&is=retry", [6]),
    ("finding=would-not-show", [8]), ("is=duplicate", [2]), ("q=status:4*&!status=410", [5, 6]),
    ("q=status:410&q=status:400", [5, 6, 7]), ("q=", [1, 2, 3, 4, 5, 6, 7, 8]),
]


@pytest.mark.parametrize(("query", "expected"), PARAMETERS, ids=[row[0] for row in PARAMETERS])
def test_parameters(inbox, query, expected):
    server, _ = inbox
    response = server.request("GET", "/api/v1/pushes?" + query)
    assert response.status == 200, response.body
    assert [record["seq"] for record in response.json["items"]] == expected


MISTAKES = [
    ("topik:com.acme.*", 1, "topik:com.acme.*", "did you mean topic?"),
    ("status:410 topik:x", 12, "topik:x", "did you mean topic?"),
    ("status:410 !colour:red", 12, "!colour:red", "payload./pointer"),
    ("status:410 order", 12, "order", "text:order"),
    ("is:retry status:abc", 10, "status:abc", "whole number"),
    ('is:retry text:"order shipped', 10, 'text:"order shipped', '\\"'),
    ("Größe:>3 status:1", 1, "Größe:>3", "size"),
    ("since:yesterday", 1, "since:yesterday", "-5m"),
    ("larger:3.5X", 1, "larger:3.5X", "KiB"),
    ("payload.aps:1", 1, "payload.aps:1", "payload./aps/alert/title"),
    ("is:retri", 1, "is:retri", "Did you mean retry?"),
    ("priority:>3 priority:<8", 13, "priority:<8", "4..7"),
]


@pytest.mark.parametrize(("query", "column", "word", "hint"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_an_error_names_the_column(inbox, query, column, word, hint):
    server, _ = inbox
    for method in ("GET", "DELETE"):
        response = server.request(method, "/api/v1/pushes", q=query)
        assert response.status == 400
        assert response.headers["content-type"].startswith("application/problem+json")
        problem = response.json
        assert (problem["column"], problem["word"]) == (column, word)
        assert f"column {column}" in problem["detail"] and word in problem["detail"]
        assert hint in problem["hint"], problem["hint"]
    assert len(server.pushes()) == 8


@pytest.mark.parametrize("query", [
    "x" * 5000, "status:410 " * 101, "text:" + "a*" * 3000, '"' * 4000, "payload." + "/a" * 40 + ":1", "\x00:1",
    "!" * 4000,
], ids=["long", "many", "stars", "quotes", "deep", "zero", "negations"])
def test_hostile_queries_are_refused_at_once(inbox, query):
    server, _ = inbox
    response = server.request("GET", "/api/v1/pushes", q=query)
    assert response.status == 400
    assert response.json["hint"] and len(response.body) < 3000


def test_two_hundred_wildcards_are_fast(inbox):
    server, _ = inbox
    assert numbers(server, q="text:" + "s*" * 200 + "zzz") == []
    assert numbers(server, q="topic:" + "*" * 200) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_fields_select_members(inbox):
    server, names = inbox
    items = server.pushes(q="status:410", fields="seq,apns.topic,served.status,request.size.bytes,fault.rule")
    assert items == [{
        "seq": 7, "apns": {"topic": "com.example.app"}, "served": {"status": 410},
        "request": {"size": {"bytes": len('{"aps": {"alert": "hi"}}')}}, "fault": None,
    }]
    assert server.pushes(q="status:410", fields=["seq", "apns.id"]) == [{"seq": 7, "apns": {"id": names["id"]}}]
    whole = server.pushes(q="status:410")[0]
    for name, value in whole.items():
        assert server.pushes(q="status:410", fields=name) == [{name: value}]
    refused = server.request("GET", "/api/v1/pushes", fields="seq,apns.topik")
    assert refused.status == 400
    assert "apns.topik" in refused.json["detail"]
    assert "apns.topic" in refused.json["hint"] and " more." in refused.json["hint"]


COMMANDS = [
    (["status:410"], [7]), (["status:4* !status:410"], [5, 6]), (["status:4*", "!status:410"], [5, 6]),
    (["status=400", "is:retry"], [6]), (["topic=com.acme.*"], [4]), (['text:"order shipped"', "after:1"], [2]),
    (["!type:alert"], [3]), (["payload./aps/badge:>3", "--limit", "2"], [2, 4]), ([], [1, 2, 3, 4, 5, 6, 7, 8]),
]


@pytest.mark.parametrize(("arguments", "expected"), COMMANDS, ids=[" ".join(row[0]) for row in COMMANDS])
def test_ls_accepts_a_query(inbox, arguments, expected):
    server, _ = inbox
    listed = server.command("ls", "--json", *arguments)
    assert listed.returncode == DONE, listed.stderr
    assert [json.loads(line)["seq"] for line in listed.stdout.splitlines()] == expected


@pytest.mark.parametrize("command", ["ls", "rm"])
def test_a_command_names_the_column(inbox, command):
    server, _ = inbox
    done = server.command(command, "status:410 topik:x")
    assert done.returncode == USAGE
    assert "column 12" in done.stderr and "topik:x" in done.stderr and "did you mean topic?" in done.stderr
    assert done.stdout == ""


def test_removing_by_query(start):
    server = start()
    first, second = secrets.token_hex(32), secrets.token_hex(32)
    with connect(server) as wire:
        for device in (first, first, second, first):
            wire.push(push_headers(server, device), b'{"aps": {"badge": 1}}')
    # An empty query deletes nothing.
    for query in ("q=", "q=%20", "after=0"):
        response = server.request("DELETE", "/api/v1/pushes?" + query)
        assert response.status == 400 and "all=true" in response.json["hint"]
    for words in ([""], [" ", ""]):
        assert server.command("rm", *words).returncode == USAGE
    assert len(server.pushes()) == 4
    assert server.api("DELETE", "/pushes", q="is:duplicate payload./aps/badge:1") == {"deleted": 2}
    assert numbers(server) == [1, 3]
    removed = server.command("rm", f"token:{second}", "--json")
    assert removed.returncode == DONE and json.loads(removed.stdout) == {"deleted": 1}
    assert numbers(server) == [1]


def test_relative_times_go_by_the_servers_clock(start):
    server = start()
    with connect(server) as wire:
        wire.push(push_headers(server, secrets.token_hex(32)))
        assert numbers(server, q="since:-5m") == [1]
        server.api("POST", "/clock/advance", {"by": "10m"})
        wire.push(push_headers(server, secrets.token_hex(32)))
    assert numbers(server, q="since:-5m") == [2]
    assert numbers(server, q="until:-5m") == [1]
    assert numbers(server, since="-1h") == [1, 2]

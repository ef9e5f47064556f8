"""Scopes: several test suites share a server, and each resets, verifies and analyzes only its own pushes."""

import pytest

from support.faults import new_device
from support.server import Server, stop_cleanly
from support.wire import connect, push_headers

MINE, OTHERS = "com.example.app", "com.example.app.voip"
SCOPE = f"topic:{MINE}"
BODY = b'{"aps":{"alert":"scoped"}}'


@pytest.fixture(scope="module")
def server(binary, certs):
    running = Server(binary, certs)
    yield running
    stop_cleanly(running)


@pytest.fixture
def shared(server):
    """A server without records and faults, which two suites use: one sends alerts, the other VoIP pushes."""
    server.api("POST", "/reset")
    return server


def send(server, topic, device=None, body=BODY):
    """Sends a push of one suite; returns its status."""
    kind = "voip" if topic == OTHERS else "alert"
    with connect(server) as wire:
        headers = push_headers(server, device or new_device(), apns_topic=topic, apns_push_type=kind)
        return wire.response(wire.open(headers, body)).status


def topics(server, **query):
    return [record["apns"]["topic"] for record in server.api("GET", "/pushes", **query)["items"]]


def problem(server, method, path, body=None, **query):
    """Sends an invalid request; returns its detail and hint."""
    response = server.request(method, f"/api/v1{path}", body, **query)
    assert response.status == 400, response.body
    return response.json["detail"] + " " + response.json["hint"]


def verify(server, document):
    """Returns the status and the report of a verification."""
    response = server.request("POST", "/api/v1/verify", document)
    return response.status, response.json


def test_a_reset_removes_only_the_pushes_in_the_scope(shared):
    for topic in (MINE, OTHERS, MINE):
        assert send(shared, topic) == 200
    result = shared.api("POST", "/reset", {"scope": SCOPE})
    assert result == {"reset": ["inbox"], "scope": SCOPE, "deleted": 2}
    assert topics(shared) == [OTHERS]


def test_a_reset_keeps_rules_devices_and_the_clock(shared):
    device = new_device()
    shared.api("POST", "/devices", {"token": device, "state": "unregistered"})
    shared.api("POST", "/rules", {"name": "mine", "do": {"respond": {"status": 503}}, "when": {"device_token": "ab"}})
    shared.api("PUT", "/clock", {"mode": "frozen"})
    shared.api("POST", "/reset", {"scope": SCOPE})
    assert shared.api("GET", f"/devices/{device}")["state"] == "unregistered"
    assert [rule["name"] for rule in shared.api("GET", "/rules")["items"]] == ["mine"]
    assert shared.api("GET", "/clock")["mode"] == "frozen"


def test_a_reset_restarts_the_attempts_of_the_scope_only(shared):
    shared.api("POST", "/rules", {"do": {"respond": {"status": 503}}, "trigger": {"first": 2}})
    mine, theirs = new_device(), new_device()
    assert [send(shared, MINE, mine), send(shared, OTHERS, theirs)] == [503, 503]
    shared.api("POST", "/reset", {"scope": SCOPE})
    shared.api("POST", "/reset", {"rules": True})
    assert [send(shared, MINE, mine), send(shared, OTHERS, theirs)] == [200, 200]
    attempts = {token: [r["attempt"] for r in shared.api("GET", "/pushes", device_token=token)["items"]]
                for token in (mine, theirs)}
    assert attempts == {mine: [1], theirs: [1, 2]}


def test_a_reset_forgets_the_scope_in_the_findings(shared):
    """The 410 of a former test must not turn the first push of the next one into a finding."""
    device = new_device()
    shared.api("POST", "/devices", {"token": device, "state": "unregistered"})
    assert send(shared, MINE, device) == 410
    assert shared.api("GET", "/findings")["total"] == 0
    shared.api("POST", "/reset", {"scope": SCOPE})
    assert send(shared, MINE, device) == 410
    assert shared.api("GET", "/findings")["total"] == 0
    assert send(shared, MINE, device) == 410
    assert [item["finding"] for item in shared.api("GET", "/findings")["items"]] == ["retried-410"]


def test_findings_of_a_scope(shared):
    device = new_device()
    shared.api("POST", "/devices", {"token": device, "state": "unregistered"})
    for _ in range(2):
        assert send(shared, OTHERS, device) == 410
    assert shared.api("GET", "/findings", scope=SCOPE)["total"] == 0
    assert shared.api("GET", "/findings", scope=f"topic:{OTHERS}")["total"] == 1
    # A filter restricts the scope further and cannot widen it.
    assert shared.api("GET", "/findings", scope=SCOPE, topic=OTHERS)["total"] == 0


@pytest.mark.parametrize("expected", [
    {"expect": [{"match": {"payload": {"/aps/alert": "scoped"}}, "count": {"exactly": 1}}]},
    {"expect": [{"match": f"topic:{MINE}", "count": {"exactly": 1}}], "no_others": True},
    {"nothing_lost": True},
    {"no_findings": True},
])
def test_a_verification_sees_only_its_scope(shared, expected):
    """Outside of the scope: a lost push, a finding, and a push that would count."""
    device = new_device()
    shared.api("POST", "/rules", {"do": {"respond": {"status": 503}}, "when": {"topic": OTHERS}})
    assert send(shared, MINE) == 200
    for _ in range(2):
        assert send(shared, OTHERS, device) == 503
    assert verify(shared, expected)[0] == 412, "without a scope it must fail"
    status, report = verify(shared, {**expected, "scope": SCOPE})
    assert status == 200, report["text"]


def test_a_failed_verification_reports_no_similar_push_of_another_scope(shared):
    assert send(shared, OTHERS) == 200
    status, report = verify(shared, {
        "scope": SCOPE, "expect": [{"match": {"payload": {"/aps/alert": "scoped"}}, "count": {"exactly": 1}}],
    })
    assert status == 412
    assert report["expectations"][0]["nearest"] == []


def test_a_wait_counts_only_its_scope(shared):
    assert send(shared, OTHERS) == 200
    result = shared.api("GET", "/pushes/wait", scope=SCOPE, status="200", timeout="50ms")
    assert (result["satisfied"], result["matched"], result["nearest"]) == (False, 0, [])
    assert send(shared, MINE) == 200
    result = shared.api("GET", "/pushes/wait", scope=SCOPE, status="200")
    assert [item["apns"]["topic"] for item in result["items"]] == [MINE]


def test_lists_and_exports_of_a_scope(shared):
    for topic in (MINE, OTHERS):
        assert send(shared, topic) == 200
    assert topics(shared, scope=SCOPE) == [MINE]
    assert topics(shared, scope=SCOPE, topic=OTHERS) == []
    assert shared.request("GET", "/api/v1/export", scope=SCOPE).body.count(b"\n") == 1
    assert shared.api("DELETE", "/pushes", scope=SCOPE) == {"deleted": 1}


def test_all_attempts_are_those_of_the_scope(shared):
    shared.api("POST", "/rules", {"when": {"attempt": 1}, "do": {"respond": {"status": 503}}})
    with connect(shared) as wire:
        device = new_device()
        statuses = [wire.push(push_headers(shared, device, ("x-suite", suite)), BODY).status for suite in "ab"]
    assert statuses == [503, 200]
    assert len(shared.api("GET", "/pushes/seqs", q="status:503", attempts="all")["seqs"]) == 2
    assert len(shared.api("GET", "/pushes/seqs", q="status:503", attempts="all", scope="header.x-suite:a")["seqs"]) == 1


@pytest.mark.parametrize("method, path", [("POST", "/reset"), ("POST", "/verify"), ("GET", "/findings")])
@pytest.mark.parametrize("scope, says", [
    ("", "topic:com.example.app"), ("  ", "topic:com.example.app"),
    ("topik:com.example.app", "topic"), ("com.example.app status:", "status"),
])
def test_an_invalid_scope_is_an_error(shared, method, path, scope, says):
    """An empty scope must not mean all pushes."""
    if method == "GET":
        assert says in problem(shared, method, path, scope=scope)
    else:
        assert says in problem(shared, method, path, {"scope": scope, **({"nothing_lost": True} if path == "/verify" else {})})


def test_a_scope_excludes_other_parts_of_a_reset(shared):
    assert "scope excludes other members" in problem(shared, "POST", "/reset", {"scope": SCOPE, "clock": True})


def test_the_commands_have_a_flag_for_the_scope(shared):
    for topic in (MINE, OTHERS):
        assert send(shared, topic) == 200
    assert "COM" not in shared.command("findings", "--scope", SCOPE).stdout
    assert shared.command("wait", "--scope", SCOPE, "--count", "==1").returncode == 0
    check = '{"scope": "topic:none", "expect": [{"match": {"status": 200}, "count": {"exactly": 1}}]}'
    assert shared.command("verify", "-", "--scope", SCOPE, input=check).returncode == 0
    assert shared.command("verify", "-", input=check).returncode == 1
    result = shared.command("reset", "--scope", SCOPE)
    assert (result.returncode, result.stdout.strip()) == (0, "reset: inbox, 1 push removed")
    assert topics(shared) == [OTHERS]

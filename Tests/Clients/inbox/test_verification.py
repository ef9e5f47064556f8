"""Verification of expectations against the inbox: over HTTP and with the command, under faults."""

import concurrent.futures
import json
import time
import xml.etree.ElementTree

import pytest

from support.server import run
from support.wire import connect, push_headers

DONE, FAILED, USAGE, UNREACHABLE, INCONCLUSIVE = 0, 1, 2, 4, 5
TOPIC = "com.example.app"
ALWAYS = "flaky-503?rate=1&streak=2"


def alert(title, **aps):
    return json.dumps({"aps": {"alert": {"title": title}, **aps}}).encode()


def push(server, device, *bodies, **changes):
    """Sends pushes over one connection; returns their statuses."""
    with connect(server) as wire:
        return [wire.push(push_headers(server, device, **changes), body).status for body in bodies]


def retrying(server, device, pauses, body=alert("again")):
    """Sends a push, and again after each pause while the response is 503; returns the statuses."""
    statuses = push(server, device, body)
    for pause in pauses:
        if statuses[-1] == 503:
            time.sleep(pause)
            statuses += push(server, device, body)
    return statuses


def verify(server, device=None, **document):
    """Returns the response to a verification. With `device`, only the pushes to that device count, for the shared
    server.
    """
    for expectation in document.get("expect", []):
        if device:
            expectation.setdefault("match", {})["device_token"] = device
    response = server.request("POST", "/api/v1/verify", document)
    assert response.status in (200, 412), response.body
    assert response.json["passed"] == (response.status == 200)
    return response.json


@pytest.fixture
def under(start):
    """Starts a server with a fault profile."""
    return lambda profile: start("--profile", profile, "--seed", "7")


# Counts and near misses


def test_a_near_miss_is_explained(server, device):
    push(server, device, alert("Hello"), alert("Welcome "), alert("Bye"))
    expectation = {
        "name": "welcome push", "match": {"topic": TOPIC, "payload": {"/aps/alert/title": "Welcome"}},
        "count": {"exactly": 1}, "outcome": "accepted"}
    found = verify(server, device, expect=[expectation])
    seq = server.pushes(device_token=device)[1]["seq"]
    assert not found["passed"] and not found["inconclusive"]
    nearest = found["expectations"][0]["nearest"]
    assert nearest[0]["seq"] == seq and nearest[0]["met"] == 3 and nearest[0]["of"] == 4 and len(nearest) == 3
    lines = found["text"].splitlines()
    assert lines[0] == "✗ welcome push: expected exactly 1 accepted, found 0"
    assert lines[1].startswith(f"  nearest: seq {seq}, 3 of 4 criteria")
    assert '    /aps/alert/title  ✗ wanted "Welcome", found "Welcome "   ← trailing space' in lines
    push(server, device, alert("Welcome"))
    assert verify(server, device, expect=[expectation])["passed"]


def test_a_number_does_not_match_a_string(server, device):
    push(server, device, alert("x", badge="3"))
    for value, passed in [(3, False), ("3", True)]:
        found = verify(server, device, expect=[{"match": {"payload": {"/aps/badge": value}}}])
        assert found["passed"] is passed
    hints = [
        row["hint"] for near in verify(server, device, expect=[{"match": {"payload": {"/aps/badge": 3}}}])[
            "expectations"][0]["nearest"] for row in near["criteria"]]
    assert "a string, not a number" in hints


def test_verification_waits_for_pushes(server, device):
    with concurrent.futures.ThreadPoolExecutor() as threads:
        began = time.monotonic()
        waiting = threads.submit(verify, server, device, expect=[{"count": {"at_least": 2}}], timeout="14s")
        push(server, device, alert("a"), alert("b"))
        assert waiting.result()["passed"]
        assert time.monotonic() - began < 13, "it does not wait for the end"


def test_zero_pushes_require_the_full_time(server, device):
    began = time.monotonic()
    assert verify(server, device, expect=[{"count": 0}], timeout="300ms")["passed"]
    assert time.monotonic() - began >= 0.3
    assert verify(server, device, expect=[{"count": 0}], timeout="1m", settle="200ms")["passed"]


@pytest.mark.parametrize("place", ["expect", "scope"])
def test_duplicates_cannot_be_awaited(server, device, place):
    """What is a duplicate is decided once, by the pushes that are there."""
    push(server, device, alert("a"), alert("a"))
    expected = {"match": f"token:{device}", "count": {"exactly": 1}}
    if place == "expect":
        expected["match"] += " is:duplicate"
        document = {"expect": [expected]}
    else:
        document = {"expect": [expected], "scope": f"token:{device} is:duplicate"}
    assert server.request("POST", "/api/v1/verify", document).status == 200
    refused = server.request("POST", "/api/v1/verify", {**document, "timeout": "1s"})
    assert refused.status == 400 and "not in a wait" in str(refused.json)


def test_order_and_others(start, device):
    server = start()
    push(server, device, alert("first"), alert("second"), alert("third"))
    expect = [
        {"name": title, "match": {"payload": {"/aps/alert/title": title}}} for title in ("first", "second")]
    assert verify(server, expect=expect, order=["first", "second"])["passed"]
    assert verify(server, expect=expect, order=["second", "first"])["order"]["passed"] is False
    others = verify(server, expect=expect, no_others=True)["no_others"]
    assert not others["passed"] and others["seqs"] == [3] and device in others["text"]


# Retries under faults

POLICY = {
    "name": "retry policy", "match": {"rule": "flaky"}, "count": {"at_least": 1},
    "retries": {"max": 3, "min_first_delay": "200ms", "growing": True, "finally": "accepted"}}


def criteria(found):
    return {row["criterion"]: row for row in found["expectations"][0]["criteria"]}


def test_a_provider_that_retries_well(under, device):
    server = under(ALWAYS)
    assert retrying(server, device, [0.25, 0.5, 1.6]) == [503, 503, 200]
    found = verify(server, expect=[POLICY])
    assert found["passed"], found["text"]
    assert criteria(found)["retries.max"]["found"] == "2 retries"
    assert found["profile"] == ALWAYS and found["seed"] == 7


@pytest.mark.parametrize(("pauses", "wrong"), [
    ([0, 0.4], {"retries.min_first_delay"}), ([0.3, 0.1], {"retries.growing"}), ([0.25], {"retries.finally"}),
    ([], {"retries.finally"}),
])
def test_a_provider_that_does_not_retry_well(under, device, pauses, wrong):
    server = under(ALWAYS)
    retrying(server, device, pauses)
    found = verify(server, expect=[POLICY])
    assert {name for name, row in criteria(found).items() if not row["passed"]} == wrong, found["text"]
    assert not found["passed"]


def test_a_provider_that_retries_without_end(under, device):
    server = under("flaky-503?rate=1&streak=6")
    assert retrying(server, device, [0] * 5) == [503] * 6
    row = criteria(verify(server, expect=[POLICY]))["retries.max"]
    assert not row["passed"] and row["found"] == "5 retries" and row["hint"].startswith("seq 1, 2, 3, 4, 5")


def test_nothing_is_lost(under, device, tmp_path):
    server = under(ALWAYS)
    push(server, device, alert("again"))
    found = verify(server, nothing_lost=True)
    assert not found["passed"] and found["nothing_lost"]["seqs"] == [1], found["text"]
    assert found["nothing_lost"]["text"].startswith("✗ nothing_lost: wanted none lost, found 1 lost\n    seq 1: ")
    (tmp_path / "expected.yaml").write_text("nothing_lost: true\n")
    done = server.command("verify", str(tmp_path / "expected.yaml"), "--junit", str(tmp_path / "verify.xml"))
    assert done.returncode == FAILED and "seq 1: " in done.stdout
    (case,) = xml.etree.ElementTree.parse(tmp_path / "verify.xml").getroot().iter("testcase")
    assert case.get("name") == "nothing_lost" and "seq 1: " in case.find("failure").text
    assert retrying(server, device, [0.1, 0.1]) == [503, 200]
    assert verify(server, nothing_lost=True)["passed"]


def test_a_retry_policy_needs_a_push(under):
    server = under(ALWAYS)
    policy = {key: value for key, value in POLICY.items() if key != "count"}
    found = verify(server, expect=[policy])
    assert not found["passed"] and "no push matched" in found["text"], found["text"]
    assert verify(server, expect=[{**policy, "allow_none": True}])["passed"]
    assert verify(server, expect=[{**policy, "count": {"at_most": 3}}])["passed"]


def test_the_clock_of_the_server_does_not_change_delays(under, device):
    server = under(ALWAYS)
    server.command("clock", "freeze")
    push(server, device, alert("again"))
    time.sleep(0.25)
    server.api("POST", "/clock/advance", {"by": "1h"})
    push(server, device, alert("again"))
    row = criteria(verify(server, expect=[POLICY]))["retries.min_first_delay"]
    assert row["passed"] and "h" not in row["found"], row


def test_verification_waits_for_a_late_retry(under, device):
    server = under("flaky-503?rate=1")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        assert push(server, device, alert("again")) == [503]
        waiting = threads.submit(verify, server, expect=[POLICY], timeout="14s", settle="100ms")
        time.sleep(0.3)
        assert push(server, device, alert("again")) == [200]
        assert waiting.result()["passed"]


def test_excluded_findings(under, device):
    server = under("healthy")
    push(server, device, alert("x"), apns_push_type=None)
    assert verify(server, no_findings=["near-limit"])["passed"]
    found = verify(server, no_findings=["missing-push-type", "near-limit"])["no_findings"]
    assert not found["passed"] and found["findings"][0]["finding"] == "missing-push-type"
    assert found["findings"][0]["evidence"] == [1]
    assert not verify(server, no_findings=True)["passed"]


# The window


def test_evicted_pushes_make_the_result_inconclusive(start, device, tmp_path):
    server = start("--max-records", "2")
    push(server, device, *[alert(str(number)) for number in range(3)])
    found = verify(server, expect=[{}])
    assert found["inconclusive"] and found["evicted"] == 1 and found["complete"] is False
    assert verify(server, expect=[{"count": 2}], after=1)["passed"]
    file = tmp_path / "expect.json"
    file.write_text('{"expect": [{}]}')
    done = server.command("verify", file)
    assert done.returncode == INCONCLUSIVE and "--max-records" in done.stderr
    assert server.command("reset").returncode == DONE
    push(server, device, alert("anew"))
    assert server.command("verify", file).returncode == DONE


# The command

YAML = """
timeout: 0s
expect:
  - name: welcome push
    match:
      topic: com.example.app
      device_token: DEVICE
      payload: {/aps/alert/title: Welcome}
    count: {exactly: 1}
    outcome: accepted
  - name: none to others
    match: "topic:com.other.*"
    count: 0
order: [welcome push]
"""


def test_the_command_prints_the_report(server, device, tmp_path):
    file = tmp_path / "expect.yaml"
    file.write_text(YAML.replace("DEVICE", device))
    push(server, device, alert("Welcome "))
    done = server.command("verify", file)
    assert done.returncode == FAILED
    assert done.stdout.startswith("✗ welcome push: expected exactly 1 accepted, found 0\n")
    assert "← trailing space" in done.stdout and "window complete: yes" in done.stdout.splitlines()[-1]
    assert done.stderr == "error: 2 of 3 checks failed\n"
    push(server, device, alert("Welcome"))
    done = server.command("verify", "-", input=file.read_text())
    assert done.returncode == DONE and done.stderr == "", done.stdout
    assert done.stdout.startswith("✓ welcome push: expected exactly 1 accepted, found 1\n")
    done = server.command("verify", file, "--json")
    assert json.loads(done.stdout)["passed"] is True and done.stdout.count("\n") == 1


def test_the_command_waits(server, device):
    document = json.dumps({"expect": [{"match": {"device_token": device}}]})
    with concurrent.futures.ThreadPoolExecutor() as threads:
        waiting = threads.submit(server.command, "verify", "-", "--timeout", "20s", input=document)
        push(server, device, alert("late"))
        assert waiting.result().returncode == DONE
    assert server.command("verify", "-", "--timeout", "1h", input=document).returncode == USAGE


@pytest.mark.parametrize(("text", "lines"), [
    ("expect:\n  - macth: {}\n    count: many\norder: [x]\n",
     ['error: FILE:2:5: /expect/0/macth: unknown. Did you mean "match"?',
      'error: FILE:3:5: /expect/0/count: "many" is a string, expected a whole number', 'error: FILE:4:9: /order/0: no expectation is called "x"']),
    ('{"expect": [],\n "tiemout": "1s"}', ["error: FILE:2:2: /tiemout: "]),
    ("expect: [\n", ["error: FILE:2:1: invalid YAML"]), ("", ["error: FILE: the file is empty"]),
    ("{}", ["error: FILE:1:1: there are no expectations"]),
])
def test_the_command_reports_every_mistake_with_its_line(server, tmp_path, text, lines):
    file = tmp_path / "expect.yaml"
    file.write_text(text)
    done = server.command("verify", file)
    assert done.returncode == USAGE and done.stdout == ""
    reported = done.stderr.replace(str(file), "FILE").splitlines()
    assert len(reported) == len(lines) and all(line.startswith(start) for line, start in zip(reported, lines)), reported


def test_the_command_needs_file_and_server(server, binary, tmp_path):
    assert server.command("verify", tmp_path / "missing.yaml").returncode == USAGE
    assert server.command("verify").returncode == USAGE
    done = run(binary, "verify", "-", "--admin", "127.0.0.1:1", input='{"expect": []}')
    assert done.returncode == UNREACHABLE


def test_the_server_stops_during_the_wait(binary, start, device):
    server = start()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        waiting = threads.submit(
            server.command, "verify", "-", "--timeout", "25s", input='{"expect": [{"count": {"at_least": 9}}]}')
        time.sleep(0.5)
        assert server.stop() == 0
        assert waiting.result().returncode == UNREACHABLE


# JUnit


def test_the_junit_file(under, device, tmp_path):
    server = under(ALWAYS)
    title = 'odd ]]> <b> & " \u0000\u001b\u0007 \ufffe \U0001f600 title\r\n'
    push(server, device, alert(title))
    report = tmp_path / "junit.xml"
    document = {
        "expect": [
            {"name": "it came", "match": {"device_token": device}},
            {"name": "odd <&\"]]>\u0001", "match": {"device_token": device, "payload": {"/aps/alert/title": title + "x"}}}],
        "order": ["it came"], "no_others": True, "no_findings": ["near-limit"]}
    done = server.command("verify", "-", "--junit", report, input=json.dumps(document))
    assert done.returncode == FAILED
    suites = xml.etree.ElementTree.parse(report).getroot()
    assert suites.tag == "testsuites" and suites.get("tests") == "5" and suites.get("failures") == "1"
    suite, = suites
    assert suite.tag == "testsuite" and suite.get("errors") == "0"
    assert {found.get("name"): found.get("value") for found in suite.find("properties")} == {
        "seed": "7", "profile": ALWAYS}
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases][0::2] == ["it came", "order", "no_findings"]
    failed = [case for case in cases if case.find("failure") is not None]
    assert len(failed) == 1 and failed[0].get("name").startswith('odd <&"]]>')
    failure = failed[0].find("failure")
    assert "\n" in failure.text and "]]>" in failure.text and failure.get("message") == failure.text.split("\n")[0]
    assert server.command("verify", "-", "--junit", "/missing/folder/x.xml", input='{"expect": []}').returncode == USAGE

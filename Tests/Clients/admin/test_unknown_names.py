"""A misspelled name of a rule, finding, reason or profile would match nothing, so a test that uses it would pass
without checking anything. Every filter and expectation rejects it with a suggestion.
"""

import json
import subprocess

import pytest

from support.server import clean_environment, run

USAGE = 2
UNKNOWN = [
    ("rule", "flakey", "flaky"), ("profile", "flaky-504", "flaky-503"), ("reason", "BadDeviceTokn", "BadDeviceToken"),
    ("finding", "hot-retries", "hot-retry"), ("!reason", "badtopic", "BadTopic"), ("rule", "magik-4100", "magic-4100"),
]
IDS = [f"{name}={value}" for name, value, _ in UNKNOWN]
PATHS = [("GET", "/pushes"), ("GET", "/pushes/wait"), ("GET", "/events"), ("GET", "/stats"), ("GET", "/findings"),
         ("GET", "/export"), ("DELETE", "/pushes")]


@pytest.mark.parametrize(("method", "path"), PATHS, ids=[" ".join(row) for row in PATHS])
@pytest.mark.parametrize(("name", "value", "guess"), UNKNOWN, ids=IDS)
def test_an_unknown_name_in_a_filter_is_an_error_with_a_guess(server, method, path, name, value, guess):
    response = server.request(method, f"/api/v1{path}", **{name: value})
    assert response.status == 400, response.body
    assert f'"{value}"' in response.json["detail"] and f"Did you mean {guess}?" in response.json["hint"]
    response = server.request(method, f"/api/v1{path}", q=f"{name}:{value}")
    assert response.status == 400 and response.json["hint"].startswith(f"Did you mean {guess}?")


@pytest.mark.parametrize("query", [
    "rule:flaky", "profile:flaky-503", "profile:healthy", "reason:Unregistered", "finding:hot-retry", "rule:magic-4100",
    "rule:nothing*", "reason:*", "profile:no-such-*", "finding:*", "!rule:*",
])
def test_built_in_names_are_known_before_any_push(start, query):
    server = start()
    assert server.api("GET", "/pushes", q=query)["items"] == []


def test_names_of_added_rules_stay_known_after_removal(start):
    server = start()
    assert server.request("GET", "/api/v1/pushes", rule="mine").status == 400
    server.api("PUT", "/rules/mine", {"do": {"respond": {"status": 503, "reason": "OutOfOrder"}}})
    for query in ("rule:mine", "reason:OutOfOrder"):
        assert server.api("GET", "/pushes", q=query)["items"] == []
    server.api("DELETE", "/rules/mine")
    assert server.api("GET", "/pushes", rule="mine")["items"] == []
    assert server.request("GET", "/api/v1/pushes", rule="mime").json["hint"].startswith("Did you mean mine?")


def test_names_of_stored_profiles_are_known_until_removal(start):
    server = start()
    text = b"name: own\nrules:\n  - name: own-rule\n    do: {respond: {status: 500, reason: OwnReason}}\n"
    assert server.request("GET", "/api/v1/pushes", rule="own-rule").status == 400
    stored = server.request("PUT", "/api/v1/profiles/own", text, headers={"content-type": "application/yaml"})
    assert stored.status == 201, stored.body
    for query in ("rule:own-rule", "profile:own", "reason:OwnReason"):
        assert server.api("GET", "/pushes", q=query)["items"] == []
    server.api("DELETE", "/profiles/own")
    assert server.request("GET", "/api/v1/pushes", rule="own-rule").status == 400


MISSPELT = [
    ({"expect": [{"match": {"rule": "flakey"}, "count": {"exactly": 0}}]}, "/expect/0/match/rule", "flaky"),
    ({"expect": [{"match": "reason:BadTopc", "count": 0}]}, "/expect/0/match", "BadTopic"),
    ({"expect": [{"match": {"finding": ["hot-retry", "jwt-chrun"]}, "count": 0}]}, "/expect/0/match/finding/1",
     "jwt-churn"),
    ({"expect": [{"reason": "Unregisterd", "count": 0}]}, "/expect/0/reason", "Unregistered"),
    ({"expect": [{"outcome": "acepted", "count": 0}]}, "/expect/0/outcome", "accepted"),
    ({"no_findings": ["hot-retri"]}, "/no_findings/0", "hot-retry"),
]


@pytest.mark.parametrize(("document", "pointer", "guess"), MISSPELT, ids=[row[1] for row in MISSPELT])
def test_an_unknown_name_in_an_expectation_is_an_error_with_its_place(server, document, pointer, guess):
    response = server.request("POST", "/api/v1/verify", document)
    assert response.status == 400, response.body
    text = json.dumps(response.json).replace('\\"', "")
    assert pointer in text and f"Did you mean {guess}?" in text


def test_commands_reject_unknown_names(server, tmp_path):
    expected = tmp_path / "expected.yaml"
    expected.write_text("expect:\n  - match: {rule: flakey}\n    count: 0\n")
    for command in (["ls", "rule:flakey"], ["wait", "reason:BadTopc", "--count", "0"], ["verify", expected],
                    ["rm", "profile:helthy"], ["findings", "finding:hot-retries"]):
        done = server.command(*command)
        assert done.returncode == USAGE and "did you mean" in done.stderr.lower(), (command, done.stderr)


def test_exec_checks_names_after_the_program_which_may_add_them(binary, certs, tmp_path):
    expected, rule = tmp_path / "expected.yaml", tmp_path / "rule.yaml"
    expected.write_text("expect:\n  - match: {rule: mime}\n    count: 0\n")
    rule.write_text("name: mine\ndo: {respond: {status: 503, reason: ServiceUnavailable}}\n")
    command = ["exec", "--certs", certs, "--verify", expected, "--", "sh", "-ec"]
    environment = {"MOCK": str(binary), "RULE": str(rule)}
    add = '"$MOCK" rule add "$RULE"'
    done = run(binary, *command, add, environment=environment)
    assert done.returncode == USAGE and "Did you mean mine?" in done.stderr, done.stderr
    assert run(binary, *command, f"{add}; exit 3", environment=environment).returncode == 3
    expected.write_text(expected.read_text().replace("mime", "mine"))
    done = run(binary, *command, add, environment=environment)
    assert done.returncode == 0, done.stderr


def test_a_view_accepts_any_name(start, device, tmp_path):
    """Names are not checked, because the viewed export may be from a server with other rules."""
    server = start()
    assert server.command("send", device, "--topic", "com.example.app").returncode == 0
    export = tmp_path / "run.ndjson"
    export.write_text(server.command("export").stdout)
    ports = tmp_path / "view.json"
    view = subprocess.Popen(
        [server.binary, "view", export, "--admin", "127.0.0.1:0", "--port-file", ports], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, env=clean_environment())
    try:
        healthy = run(server.binary, "healthcheck", "--wait", "--port-file", ports)
        assert healthy.returncode == 0, healthy.stderr
        done = run(server.binary, "ls", "rule:somebody-elses", "--port-file", ports)
        assert (done.returncode, done.stdout.count("com.example.app")) == (0, 0), done.stderr
    finally:
        view.terminate()
        view.wait(20)

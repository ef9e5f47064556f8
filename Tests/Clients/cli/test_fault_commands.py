"""Faults on the command line: set at the start and while the server runs, checked without a server. Each is
verified with a real push.
"""

import json
import os
import pty
import re
import signal
import subprocess

import pytest

from support import ROOT
from support.server import clean_environment, run, wait_until
from support.wire import connect, push_headers

DONE, UNEXPECTED, USAGE, UNREACHABLE = 0, 1, 2, 4
PROFILES = ROOT / "FaultProfiles"
TIMEOUT = 20

ALWAYS_503 = "name: mine\nrules:\n  - name: down\n    do: {respond: {status: 503}}\n"
ALWAYS_500 = "name: mine\nrules:\n  - name: broken\n    do: {respond: {status: 500}}\n"
SPOILT = "name: spoilt\nrules:\n  - name: r\n    trigger: {probabilty: 0.5}\n    do: {respnd: {status: 503}}\n"
SPOILT_LINES = [
    (4, 15, 'rules[0].trigger.probabilty: unknown, did you mean "probability"?'),
    (5, 10, 'rules[0].do.respnd: unknown, did you mean "respond"?'),
]


@pytest.fixture
def written(tmp_path):
    """Writes a file and returns its path."""

    def writer(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return writer


@pytest.fixture
def serve(binary, certs, tmp_path):
    """Runs a `serve` command that is expected to fail."""

    def runner(*flags, environment=None):
        return run(
            binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs,
            "--port-file", tmp_path / "never.json", *flags, environment=environment, timeout=20)

    return runner


def status(server, device):
    """Returns the status of one push."""
    with connect(server) as wire:
        return wire.push(push_headers(server, device)).status


def done(server, *arguments, **settings):
    """Runs a command that must succeed; returns its standard output."""
    ran = server.command(*arguments, **settings)
    assert ran.returncode == DONE, (ran.returncode, ran.stderr)
    return ran.stdout


def active_profile(server):
    return server.api("GET", "/profile")


# At the start


@pytest.mark.parametrize("way", ["flag", "variable", "inline", "file", "variable file", "folder", "config"])
def test_a_profile_is_chosen_at_the_start(start, written, device, way):
    path = written("profiles/mine.yaml", ALWAYS_503)
    config = written("config.yaml", f"profiles: {path.parent}\nprofile: mine\n")
    flags, environment = {
        "flag": (["--profile", "flaky-503?rate=1"], {}),
        "variable": ([], {"APNS_MOCK_PROFILE": "flaky-503?rate=1"}),
        "inline": ([], {"APNS_MOCK_PROFILE_INLINE": ALWAYS_503}),
        "file": (["--profile", path], {}),
        "variable file": ([], {"APNS_MOCK_PROFILE": str(path)}),
        "folder": (["--profiles", path.parent], {"APNS_MOCK_PROFILE": "mine"}),
        "config": (["--config", config], {}),
    }[way]
    server = start(*flags, environment=environment)
    assert status(server, device) == 503
    name = "flaky-503" if way in ("flag", "variable") else "mine"
    assert server.record(device)["fault"]["profile"] == name
    reported = next(line for line in server.logged("profile ") if line.strip().startswith("profile"))
    assert name in reported and f"seed {active_profile(server)['seed']}" in reported


def test_the_flag_wins_over_the_variable_and_that_over_the_file(start, written):
    config = written("config.yaml", "profile: brownout\n")
    server = start("--config", config, environment={"APNS_MOCK_PROFILE": "ack-lost"})
    assert active_profile(server)["reference"] == "ack-lost"
    server = start("--profile", "half-open", environment={"APNS_MOCK_PROFILE_INLINE": ALWAYS_503})
    assert active_profile(server)["reference"] == "half-open"


@pytest.mark.parametrize(("flags", "environment", "seed"), [
    (["--seed", "3"], {"APNS_MOCK_SEED": "2"}, 3), ([], {"APNS_MOCK_SEED": "2"}, 2), ([], {}, 1),
])
def test_seed_precedence(start, written, flags, environment, seed):
    path = written("mine.yaml", "seed: 1\n" + ALWAYS_503)
    server = start("--profile", path, *flags, environment=environment)
    assert active_profile(server)["seed"] == seed
    assert server.logged(f"mine, seed {seed}")


def test_the_report_as_json_has_the_profile(start):
    server = start("--profile", "flaky-503?rate=0.5", "--log-format", "json", "--seed", "7")
    ready = next(line for line in map(json.loads, server.logged('"ready"')) if line["message"] == "ready")
    assert (ready["profile"], ready["profile_seed"]) == ("flaky-503?rate=0.5", "7")


@pytest.mark.parametrize("way", ["flag", "folder", "variable"])
def test_an_invalid_profile_is_2_with_every_location(serve, written, way):
    path = written("profiles/spoilt.yaml", SPOILT)
    flags, environment = {
        "flag": (["--profile", path], {}), "folder": (["--profiles", path.parent], {}),
        "variable": ([], {"APNS_MOCK_PROFILE_INLINE": SPOILT}),
    }[way]
    ran = serve(*flags, environment=environment)
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    file = "APNS_MOCK_PROFILE_INLINE" if way == "variable" else path
    assert ran.stderr.splitlines() == [f"error: {file}:{line}:{column}: {words}" for line, column, words in SPOILT_LINES]


@pytest.mark.parametrize(("flags", "environment", "words"), [
    (["--profile", "flaky-504"], {}, ["--profile", "flaky-504", "flaky-503"]),
    (["--profile", "flaky-503?rate=7"], {}, ["--profile", "rate", "0..1"]),
    (["--profile", "flaky-503?rte=1"], {}, ["--profile", "rte", "rate"]),
    (["--profile", "./none.yaml"], {}, ["--profile", "./none.yaml", "No such file"]),
    (["--profiles", "/does/not/exist"], {}, ["--profiles", "/does/not/exist"]),
    ([], {"APNS_MOCK_PROFILE": "flaky-504"}, ["APNS_MOCK_PROFILE", "flaky-503"]),
    ([], {"APNS_MOCK_PROFILE": "brownout", "APNS_MOCK_PROFILE_INLINE": ALWAYS_503}, ["both", "only one"]),
    ([], {"APNS_MOCK_MAGIC_TOKENS": "maybe"}, ["APNS_MOCK_MAGIC_TOKENS", "0 or 1"]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_an_invalid_choice_is_one_line_and_2(serve, flags, environment, words):
    ran = serve(*flags, environment=environment)
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    lines = ran.stderr.splitlines()
    assert len(lines) == 1 and all(word in lines[0] for word in words), lines


def test_a_file_that_replaces_a_built_in_profile_is_a_notice(start, written, device):
    path = written("profiles/flaky-503.yaml", "rules:\n  - name: own\n    do: {respond: {status: 500}}\n")
    server = start("--profiles", path.parent, "--profile", "flaky-503")
    notice = server.logged("notice", str(path))
    assert "built-in" in notice[0]
    assert status(server, device) == 500


def test_variables_of_faults_cause_no_warning(start):
    server = start(environment={
        "APNS_MOCK_PROFILE": "healthy", "APNS_MOCK_MAGIC_TOKENS": "1", "APNS_MOCK_PROFILES": str(PROFILES)})
    assert "no effect" not in server.log()


# While the server runs


def test_use_set_and_off_apply_to_the_next_push(start, device):
    server = start()
    assert status(server, device) == 200
    assert "flaky-503?rate=1, seed 7" in done(server, "profile", "use", "flaky-503?rate=1", "--seed", "7")
    assert status(server, device[::-1]) == 503
    sent = server.command("send", device, "--topic", "com.example.app", "--payload", '{"aps":{"badge":1}}')
    assert (sent.returncode, "503 ServiceUnavailable" in sent.stdout) == (UNEXPECTED, True)
    assert done(server, "profile", "set", "rate=0").startswith("flaky-503?rate=0, seed 7")
    assert status(server, device) == 200
    assert done(server, "profile", "off").startswith("healthy, seed")
    assert active_profile(server)["name"] == "healthy"


def test_an_open_connection_gets_the_new_profile(start, device):
    server = start()
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        done(server, "profile", "use", "flaky-503?rate=1")
        assert wire.push(push_headers(server, device[::-1])).status == 503


def test_a_profile_with_a_ttl_ends(start, device):
    server = start()
    assert "ends in" in done(server, "profile", "use", "flaky-503?rate=1", "--ttl", "1h")
    assert status(server, device) == 503
    done(server, "profile", "use", "flaky-503?rate=1", "--ttl", "1ms")
    wait_until(lambda: active_profile(server)["name"] == "healthy", "the profile's end")
    assert status(server, device) == 200


def test_a_file_is_sent_and_used(start, written, device):
    server = start()
    path = written("some.yaml", ALWAYS_503)
    done(server, "profile", "use", path)
    assert status(server, device) == 503
    listed = [line.split("\t") for line in done(server, "profile", "ls").splitlines()]
    assert [row[:2] for row in listed if row[0] in ("mine", "healthy")] == [["healthy", "-"], ["mine", "active"]]
    bad = server.command("profile", "use", written("spoilt.yaml", SPOILT))
    assert bad.returncode == USAGE
    assert len(bad.stderr.splitlines()) == 2 and f"{path.parent}/spoilt.yaml:4:15: " in bad.stderr
    assert active_profile(server)["name"] == "mine"


@pytest.mark.parametrize(("arguments", "word"), [
    (["profile", "use", "flaky-504"], "flaky-503"), (["profile", "use", "flaky-503?rate=7"], "rate"),
    (["profile", "set", "speed=1"], "speed"), (["profile", "set", "speed"], "PARAMETER=VALUE"),
    (["profile", "use", "healthy", "--ttl", "5"], "--ttl"), (["rule", "add", "{}"], "do"),
    (["rule", "add", "{"], "rule"), (["rule", "add", "/does/not/exist.yaml"], "/does/not/exist.yaml"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_a_mistake_while_it_runs_is_2(server, arguments, word):
    ran = server.command(*arguments)
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    assert word in ran.stderr


def test_sighup_reads_the_folder_again_and_a_bad_file_keeps_the_old_one(start, written, device):
    path = written("profiles/mine.yaml", ALWAYS_503)
    server = start("--profiles", path.parent, "--profile", "mine")
    assert status(server, device) == 503
    written("profiles/mine.yaml", ALWAYS_500)
    server.signal(signal.SIGHUP)
    wait_until(lambda: status(server, device) == 500, "the new rule")
    written("profiles/mine.yaml", SPOILT.replace("spoilt", "mine"))
    server.signal(signal.SIGHUP)
    assert server.logged(f"{path}:4:15: ")
    assert server.logged(f"{path}:5:10: ")
    assert status(server, device) == 500
    again = server.command("profile", "reload")
    assert again.returncode == USAGE and f"{path}:4:15: " in again.stderr
    written("profiles/mine.yaml", ALWAYS_503)
    again = server.command("profile", "reload")
    assert (again.returncode, again.stderr) == (DONE, "")
    assert status(server, device) == 503


def test_sighup_reads_a_profile_that_is_a_file_again(start, device, written):
    path = written("mine.yaml", ALWAYS_503)
    server = start("--profile", str(path))
    assert status(server, device) == 503
    written("mine.yaml", ALWAYS_500)
    server.signal(signal.SIGHUP)
    wait_until(lambda: status(server, device) == 500, "the new rule")


def test_sighup_without_a_folder_changes_nothing(start, device):
    server = start()
    for _ in range(3):
        server.signal(signal.SIGHUP)
    assert status(server, device) == 200


def test_faults_are_paused_and_resumed(start, device):
    server = start("--profile", "flaky-503?rate=1")
    assert status(server, device) == 503
    done(server, "faults", "pause")
    assert status(server, device) == 200
    assert "paused" in done(server, "profile", "show")
    done(server, "faults", "resume")
    assert status(server, device[::-1]) == 503


RULE = {"name": "down", "do": {"respond": {"status": 503}}}


@pytest.mark.parametrize("form", ["json", "file", "stdin"])
def test_rules_are_added_listed_and_removed(start, written, device, form):
    server = start()
    text = json.dumps(RULE) if form == "json" else "# a rule\nname: down\ndo: {respond: {status: 503}}\n"
    argument = {"json": text, "file": written("rule.yaml", text), "stdin": "-"}[form]
    assert "down" in done(server, "rule", "add", argument, input=text if form == "stdin" else None)
    assert status(server, device) == 503
    assert done(server, "rule", "ls") == "down\trequest\trespond\t1\t1\t-\n"
    done(server, "rule", "rm", "down")
    assert status(server, device) == 200
    assert done(server, "rule", "ls") == ""
    gone = server.command("rule", "rm", "down")
    assert gone.returncode == UNEXPECTED and "down" in gone.stderr


def test_a_rule_with_a_ttl_ends(start, device):
    server = start()
    done(server, "rule", "add", json.dumps({"name": "stays", "do": {"delay": {"fixed": "1ms"}}}))
    assert "ends in" in done(server, "rule", "add", json.dumps({**RULE, "ttl": "1ms"}), "--ttl", "1h")
    assert status(server, device) == 503
    done(server, "rule", "add", json.dumps({**RULE, "ttl": "1h"}), "--ttl", "100ms")
    wait_until(lambda: done(server, "rule", "ls").startswith("stays\t"), "the rule's end")
    assert status(server, device) == 200


def test_an_invalid_rule_is_2_with_every_location(start, written):
    server = start()
    path = written("rule.yaml", "trigger: {probabilty: 1}\ndo: {respnd: {}}\n")
    ran = server.command("rule", "add", path)
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    places = [re.fullmatch(r"error: (.+?): .*", line)[1] for line in ran.stderr.splitlines()]
    assert places == [f"{path}:1:11", f"{path}:2:6"]
    assert done(server, "rule", "ls") == ""


def test_explain_reports_why_a_rule_did_not_fire(start, device):
    server = start()
    rule = {"name": "topic-down", "when": {"topic": "com.example.App"}, "do": {"respond": {"status": 503}}}
    done(server, "rule", "add", json.dumps(rule))
    assert status(server, device) == 200
    for command in (["rule", "explain", "topic-down"], ["rule", "explain"]):
        text = done(server, *command)
        assert 'rule "topic-down": 1 push evaluated, 0 fired' in text
        assert re.search(r'topic +0 of 1 match.*"com\.example\.app" \(1, differs by case\)', text)
    unknown = server.command("rule", "explain", "topic-dwn")
    assert unknown.returncode == UNEXPECTED and "topic-down" in unknown.stderr


def test_explain_without_any_rule(start):
    ran = start().command("rule", "explain")
    assert (ran.returncode, ran.stdout) == (DONE, "") and "no rule" in ran.stderr


def test_reset_of_named_scopes(start, device):
    server = start("--profile", "flaky-503?rate=1")
    status(server, device)
    done(server, "profile", "use", "unregistered-410")
    done(server, "rule", "add", json.dumps(RULE))
    done(server, "clock", "freeze")
    assert done(server, "reset", "--profile", "--clock") == "reset: profile, clock\n"
    assert (active_profile(server)["name"], active_profile(server)["params"]["rate"]) == ("flaky-503", 1), "that of the start"
    assert server.api("GET", "/clock")["mode"] == "real"
    assert len(server.pushes()) == 1 and done(server, "rule", "ls") != ""
    done(server, "reset")
    assert server.pushes() == [] and done(server, "rule", "ls") == ""


JSON_COMMANDS = [
    ["profile", "ls"], ["profile", "show"], ["profile", "show", "flaky-503"], ["profile", "use", "flaky-503?rate=1"],
    ["profile", "off"], ["profile", "set", "rate=0.5"], ["rule", "explain"],
    ["profile", "reload"], ["rule", "add", json.dumps(RULE)], ["rule", "ls"], ["rule", "explain", "down"],
    ["rule", "rm", "down"], ["faults", "pause"], ["faults", "resume"], ["reset"],
]


@pytest.mark.parametrize("command", JSON_COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_json_is_one_object_or_one_a_line(start, command):
    server = start("--profile", "flaky-503")
    done(server, "rule", "add", json.dumps(RULE))
    lines = done(server, *command, "--json").splitlines()
    assert lines and all(isinstance(json.loads(line), dict) for line in lines)


def test_ls_is_a_table_on_a_terminal_only(binary, server):
    plain = done(server, "profile", "ls").splitlines()
    assert len(plain) == len(list(PROFILES.glob("*.yaml")))
    assert plain[0].split("\t")[:4] == ["healthy", "active", "-", "built-in"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(binary), "profile", "ls", "--port-file", str(server.port_file)], stdout=theirs,
        env=clean_environment(NO_COLOR="1"))
    os.close(theirs)
    shown = b""
    while b"chaos-mix" not in shown:
        shown += os.read(ours, 65536)
    process.wait(TIMEOUT)
    assert shown.decode().split()[:4] == ["NAME", "STATE", "PARAMETERS", "ORIGIN"]


@pytest.mark.parametrize("command", [["profile", "ls"], ["profile", "show"], ["profile", "show", "healthy"],
                                     ["profile", "use", "healthy"], ["profile", "off"], ["rule", "explain"],
                                     ["rule", "ls"], ["faults", "pause"], ["faults", "resume"], ["reset"]], ids=" ".join)
def test_an_unreachable_server_is_4(binary, command):
    ran = run(binary, *command, "--admin", "127.0.0.1:1")
    assert (ran.returncode, ran.stdout) == (UNREACHABLE, "")
    assert len(ran.stderr.splitlines()) == 1 and "127.0.0.1:1" in ran.stderr


# Without a server


def test_lint_finds_nothing_in_the_built_in_profiles(binary):
    files = sorted(PROFILES.glob("*.yaml"))
    ran = run(binary, "profile", "lint", *files)
    assert (ran.returncode, ran.stderr) == (DONE, "")
    assert len(ran.stdout.splitlines()) == len(files)


def test_lint_reports_all_problems_of_all_files(binary, written):
    first, second = written("a.yaml", SPOILT), written("b.yaml", SPOILT)
    ran = run(binary, "profile", "lint", first, written("good.yaml", ALWAYS_503), second)
    assert ran.returncode == USAGE
    assert ran.stderr.splitlines() == [
        f"error: {path}:{line}:{column}: {words}" for path in (first, second) for line, column, words in SPOILT_LINES]
    linted = run(binary, "profile", "lint", "--json", first)
    assert (linted.returncode, linted.stderr) == (USAGE, "")
    report = json.loads(linted.stdout)
    assert report["valid"] is False and [problem["line"] for problem in report["problems"]] == [4, 5]


def test_lint_of_a_warning_is_0(binary, written):
    path = written("odd.yaml", "params: {idle: {type: int, default: 1}}\nrules: []\n")
    ran = run(binary, "profile", "lint", path)
    assert ran.returncode == DONE
    assert f"{path}:1:10: warning: " in ran.stderr


def test_lint_reads_standard_input(binary):
    ran = run(binary, "profile", "lint", "-", input=SPOILT)
    assert ran.returncode == USAGE and ":4:15: " in ran.stderr


def test_simulate_is_repeatable(binary, written):
    command = ["profile", "simulate", "chaos-mix", "--pushes", "2000", "--seed", "7"]
    first, second, other = run(binary, *command), run(binary, *command), run(binary, *command[:-1], "8")
    assert first.returncode == DONE and first.stdout == second.stdout != other.stdout
    assert re.match(r"profile chaos-mix, seed 7: 2000 pushes, \d+ connections\n", first.stdout)
    result = json.loads(run(binary, *command, "--json").stdout)
    assert sum(result["outcomes"].values()) == result["pushes"] == 2000
    certain = run(binary, "profile", "simulate", written("mine.yaml", ALWAYS_503), "--pushes", "10", "--json")
    assert json.loads(certain.stdout)["outcomes"] == {"503 ServiceUnavailable": 10}


def test_simulate_finds_the_profiles_of_a_folder(binary, written):
    folder = written("profiles/x.yaml", ALWAYS_503).parent
    ran = run(binary, "profile", "simulate", "mine", "--pushes", "10", "--profiles", folder)
    assert ran.returncode == DONE
    ran = run(binary, "profile", "simulate", "mine", "--pushes", "10", environment={"APNS_MOCK_PROFILES": str(folder)})
    assert ran.returncode == DONE
    ran = run(binary, "profile", "simulate", "mine", "--pushes", "10")
    assert ran.returncode == USAGE and 'unknown profile "mine"' in ran.stderr


def test_show_without_a_server(binary, written, tmp_path):
    nowhere = {"APNS_MOCK_PORT_FILE": str(tmp_path / "none.json")}
    ran = run(binary, "profile", "show", "flaky-503", "--source", environment=nowhere)
    assert (ran.returncode, ran.stdout) == (DONE, (PROFILES / "flaky-503.yaml").read_text())
    path = written("some.yaml", ALWAYS_503)
    shown = run(binary, "profile", "show", path, environment=nowhere)
    assert shown.returncode == DONE and "mine" in shown.stdout and str(path) in shown.stdout


def test_show_is_the_same_with_and_without_a_server(binary, server, tmp_path):
    there = json.loads(done(server, "profile", "show", "flaky-503", "--json"))
    nowhere = {"APNS_MOCK_PORT_FILE": str(tmp_path / "none.json")}
    alone = json.loads(run(binary, "profile", "show", "flaky-503", "--json", environment=nowhere).stdout)
    assert alone == there
    text = done(server, "profile", "show", "flaky-503")
    assert text == run(binary, "profile", "show", "flaky-503", environment=nowhere).stdout
    assert re.search(r"\nrate +probability +0\.2 +- +\w.*\nstreak +int +1 +1\.\.10 +\w", text)
    assert done(server, "profile", "show", "flaky-503", "--source") == (PROFILES / "flaky-503.yaml").read_text()


def test_schema_is_that_of_the_server(binary, server):
    ran = run(binary, "profile", "schema")
    assert ran.returncode == DONE
    assert json.loads(ran.stdout) == server.request("GET", "/schema/fault-profile.json").json
    assert len(run(binary, "profile", "schema", "--json").stdout.splitlines()) == 1


# Magic device tokens

MAGIC = {"4000": (400, "BadDeviceToken"), "4100:24": (410, "Unregistered"), "4290": (429, "TooManyRequests"),
         "5030": (503, "ServiceUnavailable"), "5031": (503, "Shutdown")}


@pytest.mark.parametrize("code", MAGIC)
def test_magic_tokens_have_their_outcome(binary, server, code):
    token = run(binary, "token", "device", "--magic", code).stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", token)
    with connect(server) as wire:
        response = wire.push(push_headers(server, token))
    assert (response.status, json.loads(response.body)["reason"]) == MAGIC[code]


@pytest.mark.parametrize(("flags", "environment"), [(["--no-magic-tokens"], {}), ([], {"APNS_MOCK_MAGIC_TOKENS": "0"})])
def test_magic_tokens_can_be_switched_off(binary, start, flags, environment):
    token = run(binary, "token", "device", "--magic", "5030").stdout.strip()
    assert status(start(*flags, environment=environment), token) == 200


def test_a_magic_token_counts_attempts_until_reset(binary, start):
    server = start()
    token = run(binary, "token", "device", "--magic", "0503:2").stdout.strip()
    assert [status(server, token) for _ in range(4)] == [503, 503, 200, 200]
    done(server, "reset", "--counters")
    assert status(server, token) == 503


def test_every_magic_token_is_listed_with_a_token_of_its_own(binary):
    rows = [line.split("\t") for line in run(binary, "token", "device", "--list").stdout.splitlines()]
    assert len(rows) == 21 and all(row[2].startswith("feedfacefeedface" + row[0]) for row in rows)
    listed = run(binary, "token", "device", "--list", "--json").stdout.splitlines()
    assert [json.loads(line)["token"] for line in listed] == [row[2] for row in rows]


@pytest.mark.parametrize(("flags", "word"), [
    (["--magic", "41"], "4100"), (["--magic", "4100:x"], "9999"), (["--magic", "4100", "--list"], "--list"),
    (["--magic", "4100", "--length", "160"], "--length"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_an_invalid_magic_token_is_2(binary, flags, word):
    ran = run(binary, "token", "device", *flags)
    assert (ran.returncode, ran.stdout) == (USAGE, "") and word in ran.stderr


def test_send_reports_a_reset_connection(binary, server):
    token = run(binary, "token", "device", "--magic", "0903").stdout.strip()
    sent = server.command("send", token, "--topic", "com.example.app")
    assert sent.returncode == UNEXPECTED and "without a response" in sent.stderr

"""The commands: exit codes, one-line errors, data on stdout and diagnostics on stderr, `--json` everywhere."""

import json
import os
import pty
import shutil
import socket
import subprocess

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from support.server import Server, clean_environment, run
from support.wire import connect, push_headers

DONE, UNEXPECTED, USAGE, UNREACHABLE, PORT_IN_USE = 0, 1, 2, 4, 6


@pytest.fixture
def serve(binary, certs, tmp_path):
    """Runs a `serve` command that is expected to fail."""

    def runner(*flags, environment=None, certs=certs):
        return run(
            binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs,
            "--port-file", tmp_path / "never.json", *flags, environment=environment, timeout=20)

    return runner


def one_line(done, code, *words):
    """Asserts that the command failed with this code and one line on stderr that contains the words."""
    assert done.returncode == code, (done.returncode, done.stderr)
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    matching = [line for line in lines if all(word.lower() in line.lower() for word in words)]
    assert matching, f"no line of {lines} has all of {words}"
    assert "Fatal error" not in done.stderr and "Stack dump" not in done.stderr
    return lines


BAD_VALUES = [
    (["--apns", "nowhere"], "--apns"), (["--apns", "127.0.0.1:99999"], "--apns"),
    (["--apns", "127.0.0.1"], "--apns"), (["--admin", "localhost:x"], "--admin"),
    (["--environment", "staging"], "--environment"), (["--rules", "kind"], "--rules"),
    (["--max-records", "-1"], "--max-records"), (["--max-records", "many"], "--max-records"),
    (["--max-bytes", "12 parsecs"], "--max-bytes"), (["--threads", "0"], "--threads"),
    (["--shutdown-timeout", "5"], "--shutdown-timeout"), (["--seed", "x"], "--seed"),
    (["--log-level", "loud"], "--log-level"), (["--log-format", "xml"], "--log-format"),
    (["--config", "/does/not/exist.yaml"], "/does/not/exist.yaml"),
]


@pytest.mark.parametrize(("flags", "word"), BAD_VALUES, ids=[" ".join(row[0]) for row in BAD_VALUES])
def test_a_bad_value_is_one_line_and_2(serve, flags, word):
    one_line(serve(*flags), USAGE, word)


@pytest.mark.parametrize(("variable", "value"), [
    ("APNS_MOCK_RULES", "kind"), ("APNS_MOCK_MAX_BYTES", "12 parsecs"), ("APNS_MOCK_THREADS", "zero"),
    ("APNS_MOCK_ENVIRONMENT", "prod"), ("APNS_MOCK_SHUTDOWN_TIMEOUT", "soon"), ("APNS_MOCK_APNS", "127.0.0.1:0,x"),
])
def test_a_bad_variable_is_an_error_never_a_default(serve, variable, value):
    one_line(serve(environment={variable: value}), USAGE, variable)


def test_an_unknown_flag_is_usage_with_a_guess(serve):
    done = serve("--environmnt", "sandbox")
    assert done.returncode == USAGE
    assert "--environment" in done.stderr


def test_an_unknown_variable_is_a_warning_with_a_guess(start):
    server = start(environment={"APNS_MOCK_ENVIROMENT": "production"})
    assert server.facts["environment"] == "sandbox"
    warned = server.logged("APNS_MOCK_ENVIROMENT")
    assert "APNS_MOCK_ENVIRONMENT" in warned[0]


def test_flag_beats_variable_beats_file_beats_default(start, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("environment: production\nseed: 1\nmax_records: 7\n")
    server = start("--config", config, "--seed", "3", environment={"APNS_MOCK_SEED": "2",
                                                                   "APNS_MOCK_ENVIRONMENT": "sandbox"})
    assert (server.facts["seed"], server.facts["environment"]) == (3, "sandbox")
    assert "7" in str(server.api("GET", "/status"))


@pytest.mark.parametrize(("text", "word"), [
    ("apns: {idle_timeot: 1s}\n", "idle_timeot"), ("apns: {idle_timeout: 1}\n", "idle_timeout"),
    ("apns: [\n", "config.yaml"), ("colour: blue\n", "colour"), ("rules: kind\n", "rules"),
    ("apns: {max_streams: 0}\n", "max_streams"), ("- 1\n", "config.yaml"),
])
def test_a_bad_configuration_file_is_one_line_and_2(serve, tmp_path, text, word):
    config = tmp_path / "config.yaml"
    config.write_text(text)
    one_line(serve("--config", config), USAGE, word)


@pytest.mark.parametrize("flag", ["--apns", "--admin"])
def test_a_port_in_use_is_6_and_names_the_address(serve, flag):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        one_line(serve(flag, address), PORT_IN_USE, address)


@pytest.fixture
def copied(start, tmp_path):
    """A folder of certificates that the test may damage."""
    folder = tmp_path / "certs"
    assert start(certs=folder).stop() == 0
    return folder


SPOILT = [
    ("server-key.pem", "client-key.pem"), ("ca-key.pem", "client-key.pem"), ("server.pem", None),
    ("server-key.pem", None), ("ca.pem", None), ("AuthKey_MOCKKEY001.p8", None), ("provider.yaml", None),
]


@pytest.mark.parametrize(("name", "instead"), SPOILT,
                         ids=[f"{name} {'of another' if instead else 'junk'}" for name, instead in SPOILT])
def test_a_mismatched_or_unreadable_key_is_one_line_and_2(serve, copied, name, instead):
    if instead:
        shutil.copy(copied / instead, copied / name)
    else:
        (copied / name).write_text("-----BEGIN JUNK-----\n{[\n")
    one_line(serve(certs=copied), USAGE, name)


def test_a_file_without_end_is_one_line_and_2(serve):
    one_line(serve("--config", "/dev/zero"), USAGE, "/dev/zero: is larger than 64 MiB")


def test_control_characters_in_a_file_do_not_reach_the_terminal(serve, tmp_path):
    folder = tmp_path / "Certs"
    folder.mkdir()
    (folder / "provider.yaml").write_text("keys:\n  \x1b]0;x\x07\x1b[31mred: \x01\n")
    done = serve(certs=folder)
    assert done.returncode == USAGE and not set(done.stderr) & set("\x1b\x07\x01"), done.stderr


def test_a_folder_that_cannot_be_written_is_one_line_and_2(serve, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    one_line(serve(certs=blocked / "certs"), USAGE, str(blocked))


@pytest.mark.parametrize("command", [["ls"], ["get", "1"], ["rm", "--all"], ["clock", "show"], ["healthcheck"],
                                     ["send", "ab" * 32]], ids=lambda command: command[0])
def test_no_server_is_4_in_one_line(binary, command):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        done = run(binary, *command, "--admin", address)
    one_line(done, UNREACHABLE, address)


def test_a_missing_port_file_is_4_and_named(binary, tmp_path):
    one_line(run(binary, "ls", "--port-file", tmp_path / "none.json"), UNREACHABLE, "none.json")


def verified(server, token):
    key = serialization.load_pem_private_key(server.key.encode(), password=None).public_key()
    claims = jwt.decode(token, key, algorithms=["ES256"])
    assert claims["iss"] == server.team_id
    assert jwt.get_unverified_header(token)["kid"] == server.key_id
    return claims


def test_token_provider_prints_a_token_that_the_server_accepts(server, binary, certs, device):
    done = run(binary, "token", "provider", "--certs", certs)
    assert (done.returncode, done.stderr) == (DONE, "")
    token = done.stdout.strip()
    assert done.stdout == token + "\n"
    verified(server, token)
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization="bearer " + token)).status == 200


@pytest.mark.parametrize(("flags", "length"), [([], 64), (["--length", "64"], 64), (["--length", "160"], 160)])
def test_token_device_prints_hexadecimal(binary, flags, length):
    first, second = (run(binary, "token", "device", *flags) for _ in range(2))
    assert first.returncode == DONE
    token = first.stdout.strip()
    assert len(token) == length and set(token) <= set("0123456789abcdef")
    assert first.stdout != second.stdout


def test_send_uses_the_apns_listener(server, device):
    done = server.command("send", device, "--topic", "com.example.app", "--payload", '{"aps":{"badge":3}}')
    assert done.returncode == DONE, done.stderr
    assert "200" in done.stdout
    record = server.record(device)
    assert record["request"]["payload"] == {"aps": {"badge": 3}}
    assert record["apns"]["id"] in done.stdout


@pytest.mark.parametrize("form", ["file", "stdin"])
def test_send_reads_the_payload_from_files_and_standard_input(server, device, tmp_path, form):
    payload = tmp_path / "payload.json"
    payload.write_text('{"aps":{"badge":4}}')
    flags = ["--payload", payload if form == "file" else "-"]
    done = server.command("send", device, *flags, input=payload.read_text() if form == "stdin" else None)
    assert done.returncode == DONE, done.stderr
    assert server.record(device)["request"]["payload"] == {"aps": {"badge": 4}}


def test_send_reports_a_rejection(server, device):
    done = server.command(
        "send", device, "--topic", "com.example.app", "--push-type", "background", "--priority", "7")
    assert done.returncode == UNEXPECTED
    assert "400" in done.stdout and "BadPriority" in done.stdout
    record = server.record(device)
    assert record["served"]["reason"] == "BadPriority"
    failed = next(check for check in record["verdict"]["checks"] if not check["ok"])
    assert done.stderr == f"{failed['detail']}\nto see all checks and rules: apns-mock get {record['seq']} --explain\n"


def test_send_as_json_has_the_cause_and_the_number(server, device):
    done = server.command("send", device, "--topic", "com.example.app", "--priority", "7", "--json")
    record = server.record(device)
    result = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (UNEXPECTED, "")
    assert (result["reason"], result["seq"]) == ("BadPriority", record["seq"]) and "priority" in result["detail"]
    accepted = json.loads(server.command("send", device, "--topic", "com.example.app", "--json").stdout)
    assert (accepted["status"], accepted["seq"], accepted["detail"]) == (200, record["seq"] + 1, None)


def test_send_explains_a_push_that_a_rule_affects(start, device):
    server = start()
    server.api("POST", "/rules", {"name": "down", "do": {"respond": {"status": 503}}, "trigger": {"first": 1}})
    server.api("POST", "/rules", {"name": "reset", "do": {"reset_stream": {}}, "trigger": {"after": 1}})
    done = server.command("send", device, "--topic", "com.example.app")
    assert done.returncode == UNEXPECTED and "Rule reset fired" not in done.stderr
    assert "Rule down fired" in done.stderr and "apns-mock get 1 --explain" in done.stderr, done.stderr
    done = server.command("send", device, "--topic", "com.example.app")
    assert done.returncode == UNEXPECTED and done.stderr.endswith("apns-mock get 2 --explain\n"), done.stderr


def test_send_to_a_server_without_admin_api_reports_the_response_alone(server, device, tmp_path):
    done = run(
        server.binary, "send", device, "--topic", "com.example.app", "--priority", "7", "--apns", server.authority,
        "--certs", server.certs, "--admin", "127.0.0.1:1")
    assert done.returncode == UNEXPECTED and "BadPriority" in done.stdout
    assert done.stderr == ""


def test_get_is_text_for_people_and_json_on_request(start, device):
    server = start()
    with connect(server) as wire:
        wire.push(push_headers(server, device, apns_priority="7"), b'{"aps":{"alert":"hi"},"n":{"a":[1,2]}}')
    seq = server.record(device)["seq"]
    shown = server.command("get", seq).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert shown.startswith(f"push {seq}, attempt 1: rejected\nAPNs would respond with 400 BadPriority: ")
    assert ["path", f"/3/device/{device}"] in lines and ["apns-priority", "7"] in lines
    assert ["method", "ok"] in lines and any(line[:2] == ["priority", "failed:"] for line in lines)
    assert '"alert": "hi"' in shown and "null" not in shown
    assert json.loads(server.command("get", seq, "--json").stdout) == server.api("GET", f"/pushes/{seq}")

    shown = server.command("get", seq, "--explain").stdout
    paragraphs = shown.split("\n\n")
    assert [paragraph.split("\n")[0].split(",")[0] for paragraph in paragraphs] == [f"push {seq}", "checks", "advice"]
    explained = server.api("GET", f"/pushes/{seq}/explain")
    assert explained["text"] in paragraphs[0] and explained["advice"] in paragraphs[-1]
    for check in explained["verdict"]["checks"]:
        assert f"  {check['check']} " in paragraphs[1]
    assert json.loads(server.command("get", seq, "--explain", "--json").stdout) == explained


def test_get_explain_shows_rules_and_findings(start, device):
    server = start()
    server.api("POST", "/rules", {"name": "missed", "when": {"topic": "com.other"}, "do": {"respond": {"status": 503}}})
    server.api("POST", "/rules", {"name": "gone", "do": {"respond": {"status": 410}}})
    for _ in range(2):
        server.command("send", device, "--topic", "com.example.app")
    shown = server.command("get", 2, "--explain").stdout
    paragraphs = {paragraph.split("\n")[0]: paragraph for paragraph in shown.split("\n\n")}
    assert "  gone: fired. Rule gone fired (action respond)." in paragraphs["rules"]
    assert "findings" in paragraphs and "retried-410: " in paragraphs["findings"]


def sent(server, device, count):
    with connect(server) as wire:
        for _ in range(count):
            wire.push(push_headers(server, device))


def test_ls_get_and_rm(start, device):
    server = start()
    sent(server, device, 3)
    listed = server.command("ls")
    assert listed.returncode == DONE
    assert len(listed.stdout.splitlines()) >= 3 and "com.example.app" in listed.stdout
    got = server.command("get", "2")
    assert got.returncode == DONE and device in got.stdout
    missing = server.command("get", "99")
    assert missing.returncode not in (DONE, UNREACHABLE) and "99" in missing.stderr and missing.stdout == ""
    assert server.command("rm").returncode == USAGE, "deleting needs a scope"
    assert len(server.pushes()) == 3
    assert server.command("rm", "--all").returncode == DONE
    assert server.pushes() == []


def test_clock_by_command(start):
    server = start()
    assert server.command("clock", "freeze").returncode == DONE
    before = server.api("GET", "/clock")
    assert before["mode"] == "frozen"
    assert server.command("clock", "advance", "1h").returncode == DONE
    after = server.api("GET", "/clock")
    assert before["now"][11:13] != after["now"][11:13]
    assert after["now"] in server.command("clock", "show").stdout
    assert server.command("clock", "advance", "soon").returncode == USAGE
    assert server.command("clock", "real").returncode == DONE
    assert server.api("GET", "/clock")["mode"] == "real"


def test_clock_says_that_new_provider_tokens_are_expired(start):
    server = start()
    done = server.command("clock", "advance", "59m")
    assert (done.returncode, done.stderr) == (DONE, "")
    done = server.command("clock", "advance", "2m")
    assert done.returncode == DONE
    assert "403 ExpiredProviderToken" in done.stderr and "apns-mock clock real" in done.stderr
    assert "apns-mock profile use expired-jwt-403" in done.stderr
    shown = json.loads(server.command("clock", "show", "--json").stdout)
    assert (shown["offset_ms"], shown["rejects_new_tokens"]) == (61 * 60_000, True)
    assert server.command("clock", "real").stderr == ""


def test_healthcheck_and_version(server, binary):
    assert server.command("healthcheck").returncode == DONE
    done = run(binary, "version")
    assert done.returncode == DONE and done.stdout.strip()


JSON_COMMANDS = [
    ["ls"], ["get", "1"], ["clock", "show"], ["clock", "freeze"], ["clock", "advance", "1s"], ["clock", "real"],
    ["send", "ab" * 32, "--topic", "com.example.app"], ["healthcheck"], ["rm", "--all"],
]


@pytest.mark.parametrize("command", JSON_COMMANDS, ids=" ".join)
def test_json_is_one_object_or_one_a_line(start, device, command):
    server = start()
    sent(server, device, 2)
    done = server.command(*command, "--json")
    assert done.returncode == DONE, done.stderr
    lines = done.stdout.splitlines()
    assert lines and all(isinstance(json.loads(line), dict) for line in lines)
    if command == ["ls"]:
        assert [json.loads(line)["seq"] for line in lines] == [1, 2]


@pytest.mark.parametrize("command", [["version"], ["token", "device"], ["token", "provider"], ["certs"]], ids=" ".join)
def test_json_without_a_server(binary, certs, server, command):
    flags = ["--certs", certs] if command[-1] in ("provider", "certs") else []
    done = run(binary, *command, *flags, "--json")
    assert done.returncode == DONE, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_certs_creates_the_same_files_as_serve(binary, tmp_path):
    folder = tmp_path / "certs"
    assert run(binary, "certs", "--certs", folder).returncode == DONE
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "ca.pem" in made and "AuthKey_MOCKKEY001.p8" in made
    assert run(binary, "certs", "--certs", folder).returncode == DONE
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == made


def test_serve_is_the_default_command(binary, certs, tmp_path):
    done = run(binary, "--apns", "nowhere", "--certs", certs)
    one_line(done, USAGE, "--apns")


@pytest.mark.parametrize("command", [["--help"], ["serve", "--help"], ["send", "--help"], ["clock", "--help"],
                                     ["help", "ls"]], ids=" ".join)
def test_help_is_data(binary, command):
    done = run(binary, *command)
    assert (done.returncode, done.stderr) == (DONE, "")
    assert "USAGE" in done.stdout.upper()


def test_a_closed_pipe_is_no_crash(server, binary, device):
    """`apns-mock ls | head -1`."""
    sent(server, device, 50)
    process = subprocess.Popen(
        [str(binary), "ls", "--json", "--port-file", str(server.port_file)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=clean_environment())
    process.stdout.close()
    words = process.stderr.read()
    process.wait(20)
    assert b"Fatal" not in words and b"Stack dump" not in words


@pytest.mark.parametrize(("command", "words"), [
    (["stats"], ['unknown command "stats"', "Commands: serve, exec,"]), (["clokc", "show"], ["did you mean clock?"]),
    (["clock", "advnace", "5m"], ['unknown command "clock advnace"', "did you mean advance?", "show, freeze"]),
    (["profile", "lits"], ["Commands: ls"]), (["help", "nosuch"], ['unknown command "nosuch"', "Commands: serve"]),
    (["help", "clokc"], ["did you mean clock?"]), (["help", "clock", "advnace"], ["did you mean advance?"]),
    (["help", "ls", "more"], ["has no subcommands"]), (["stats", "--json"], ['unknown command "stats"']),
    (["halt"], ["use `apns-mock faults pause`"]), (["resume"], ["use `apns-mock faults resume`"]),
    (["profile", "explain", "down"], ["use `apns-mock rule explain`"]), (["config", "sample"], ["use `apns-mock config`"]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_an_unknown_command_is_usage_with_a_guess(binary, command, words):
    done = run(binary, *command)
    assert (done.returncode, done.stdout) == (USAGE, "")
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize("command", [["help"], ["help", "clock"], ["help", "clock", "advance"], ["help", "serve"],
                                     ["clock", "advance", "--help"]], ids=" ".join)
def test_help_of_a_command(binary, command):
    done = run(binary, *command)
    assert (done.returncode, done.stderr) == (DONE, "") and "USAGE" in done.stdout


@pytest.mark.parametrize(("flags", "guess"), [
    (["--port", "2197"], "--apns 127.0.0.1:2197"), (["--port=99"], "--apns 127.0.0.1:99"),
    (["--port", "x"], "--apns HOST:PORT")], ids=str)
def test_a_port_is_the_flag_apns(serve, flags, guess):
    one_line(serve(*flags), USAGE, "--port", guess)


@pytest.mark.parametrize("arguments", [["-5m"], ["--", "-5m"], ["-5m", "--json"], ["--json", "-5m"]], ids=" ".join)
def test_the_clock_can_be_set_back(start, arguments):
    server = start()
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2030-01-01T12:00:00Z"})
    # After two dashes a flag would be parsed as an argument.
    done = run(server.binary, "clock", "advance", *arguments, environment={"APNS_MOCK_PORT_FILE": str(server.port_file)})
    assert done.returncode == DONE, done.stderr
    assert server.api("GET", "/clock")["now"] == "2030-01-01T11:55:00.000Z"


@pytest.mark.parametrize("arguments", [["-5"], ["--nothing"], ["1s", "2s"], [], ["1s", "--no-such"]], ids=" ".join)
def test_an_invalid_duration_does_not_change_the_clock(start, arguments):
    server = start()
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2030-01-01T12:00:00Z"})
    assert server.command("clock", "advance", *arguments).returncode == USAGE
    assert server.api("GET", "/clock")["now"] == "2030-01-01T12:00:00.000Z"


@pytest.mark.parametrize(("action", "words"), [
    ({"reset_stream": {"code": "REFUSED_STREAM"}}, "the server reset the stream without a response: REFUSED_STREAM (0x7)"),
    ({"reset_stream": {"code": "INTERNAL_ERROR"}}, "the server reset the stream without a response: INTERNAL_ERROR (0x2)"),
    ({"goaway": {"code": "ENHANCE_YOUR_CALM"}}, "GOAWAY ENHANCE_YOUR_CALM (0xb)"),
], ids=str)
def test_send_names_http2_errors(start, device, action, words):
    server = start()
    response = server.request("POST", "/api/v1/rules", {"do": action})
    assert response.status == 201, response.body
    done = server.command("send", device, "--topic", "com.example.app")
    assert done.returncode == UNEXPECTED and words in done.stderr, done.stderr


def test_the_admin_token_is_a_flag(start, binary):
    server = start("--admin-token", "open-sesame")
    admin = ["--admin", f"127.0.0.1:{server.admin_port}"]
    assert run(binary, "ls", *admin).returncode == USAGE
    assert run(binary, "ls", *admin, "--admin-token", "open-sesame").returncode == DONE
    wrong = {"APNS_MOCK_ADMIN_TOKEN": "wrong"}
    assert run(binary, "ls", *admin, environment=wrong).returncode == USAGE
    done = run(binary, "clock", "show", *admin, "--admin-token", "open-sesame", environment=wrong)
    assert done.returncode == DONE, "the flag beats the variable"
    port_file = ["--port-file", server.port_file]
    assert run(binary, "reset", *port_file).returncode == DONE
    assert run(binary, "reset", *port_file, "--admin-token", "wrong").returncode == USAGE, "and the port file"


@pytest.mark.parametrize(("shell", "check"), [("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_completion_is_a_script(binary, tmp_path, shell, check):
    done = run(binary, "completion", shell)
    assert (done.returncode, done.stderr) == (DONE, "")
    assert "apns-mock" in done.stdout and "healthcheck" in done.stdout and "max-records" in done.stdout
    script = tmp_path / "script"
    script.write_text(done.stdout)
    if shutil.which(shell):
        assert subprocess.run([shell, *check, script], capture_output=True).returncode == 0
    assert run(binary, "completion", "tcsh").returncode == USAGE


def test_the_sample_configuration_is_one(start, binary, tmp_path):
    done = run(binary, "config")
    assert (done.returncode, done.stderr) == (DONE, "")
    config = tmp_path / "sample.yaml"
    config.write_text(done.stdout)
    plain, sampled = start(), start("--config", config)
    assert sampled.logged("apns") and "warning" not in sampled.log()
    for path in ("/status", "/profile"):
        one, other = plain.api("GET", path), sampled.api("GET", path)
        for facts in (one, other):
            for name in ("uptime_ms", "seed", "addresses", "activated_at", "store"):
                facts.pop(name, None)
            facts.get("inbox", {}).pop("id", None)
            if Server.default_store:
                facts.pop("limits", None)  # a database has no default limit of bytes
        assert one == other
    # Each commented-out line is a valid example.
    config.write_text("\n".join(
        line.replace("# ", "", 1) if line.lstrip().startswith("# ") and ": " in line and line.split(": ")[0].strip(" #") in (
            "seed", "threads", "token_future", "port_file", "export_on_exit", "admin_token") else line
        for line in done.stdout.splitlines()))
    assert start("--config", config).api


def test_a_missing_path_gets_a_short_hint(server):
    response = server.request("GET", "/api/v1/pushs")
    assert response.status == 404
    assert response.json["hint"] == "Did you mean /api/v1/pushes? /openapi.json lists the paths."
    assert len(server.request("GET", "/nothing/like/it").json["hint"]) < 80


HOSTILE = "C1 \u009b31m \u0085 bidi \u202e\u2066 zero \u200b\u200d\ufeff line \u2028"


@pytest.mark.parametrize("command", [["get", "1"], ["get", "1", "--json"], ["ls", "--json"], ["export"],
                                     ["get", "1", "--payload"], ["get", "1", "--explain"], ["ls"]], ids=" ".join)
def test_a_terminal_gets_no_control_characters(start, device, command):
    server = start()
    payload = json.dumps({"aps": {"alert": HOSTILE}}, ensure_ascii=False)
    assert server.command("send", device, "--topic", "com.example.app", "--payload", payload).returncode == DONE
    piped = server.command(*command).stdout
    shown = on_terminal([server.binary, *command, "--port-file", server.port_file])
    for character in "\u009b\u0085\u202e\u2066\u200b\u200d\ufeff\u2028":
        assert character not in shown, hex(ord(character))
    if command[0] != "ls" or "--json" in command:
        if "--explain" not in command:
            assert "\\u202E" in shown and "\u202e" in piped
    if "--json" in command or command == ["export"]:
        for line in shown.splitlines():
            json.loads(line)
    if command[-1] in ("--payload", "--json"):
        assert json.loads(shown) == json.loads(piped)


def on_terminal(command):
    """Returns the output of a command whose stdout is a terminal, with the program's own line breaks."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL,
        env=clean_environment(NO_COLOR="1"))
    os.close(writer)
    written = b""
    try:
        while piece := os.read(reader, 65536):
            written += piece
    except OSError:  # the end of the terminal's output on Linux
        pass
    os.close(reader)
    assert process.wait(30) == 0
    return written.decode().replace("\r\n", "\n")


def test_reset_by_command(start):
    server = start("--profile", "flaky-503?rate=0.5", "--seed", "7")
    before = server.api("GET", "/profile")
    server.api("PUT", "/profile", {"name": "healthy"})
    server.api("POST", "/faults/halt")
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2030-01-01T12:00:00Z"})
    server.api("POST", "/rules", {"do": {"respond": {"status": 500}}})
    assert server.command("reset", "--keep", "profile", "--keep", "rules").returncode == DONE
    assert server.api("GET", "/clock")["mode"] == "real"
    assert server.api("GET", "/profile")["name"] == "healthy" and server.api("GET", "/profile")["halted"] is True
    done = server.command("reset")
    assert done.stdout == "reset: inbox, rules, profile, counters, clock, devices, channels\n"
    after = server.api("GET", "/profile")
    assert {**after, "activated_at": None} == {**before, "activated_at": None}
    assert server.api("GET", "/rules")["items"] == []
    done = server.command("reset", "--keep", "profil")
    assert done.returncode == USAGE and "Did you mean profile?" in done.stderr

"""What people try first on the command line: the error names what to change."""

import os
import pty
import subprocess

import pytest

from support.server import clean_environment, run
from support.wire import connect, push_headers

USAGE = 2


def mistake(binary, *arguments, **options):
    done = run(binary, *arguments, **options)
    assert done.returncode == USAGE, (done.returncode, done.stdout, done.stderr)
    return done.stderr


@pytest.mark.parametrize("flag", ["--apns", "--apns-plain", "--admin", "--manage", "--proxy"])
@pytest.mark.parametrize("port", ["99999", "-1", "65536"])
def test_a_port_out_of_range_is_named(binary, flag, port):
    assert "a port from 0 to 65535" in mistake(binary, "serve", flag, f"127.0.0.1:{port}")


def test_a_port_out_of_range_is_named_for_every_command_and_form(binary):
    for arguments in [["serve", "--apns", "[::1]:70000=production"], ["ls", "--admin", "127.0.0.1:70000"],
                      ["send", "ab", "--apns", "127.0.0.1:70000"], ["doctor", "--apns", "localhost:70000"]]:
        assert "a port from 0 to 65535" in mistake(binary, *arguments), arguments
    environment = clean_environment(APNS_MOCK_ADMIN="127.0.0.1:70000")
    assert "APNS_MOCK_ADMIN" in mistake(binary, "ls", environment=environment)
    assert "HOST:PORT" in mistake(binary, "serve", "--apns", "127.0.0.1:x")


def test_a_url_in_place_of_an_address_is_named(binary):
    for arguments in [["serve", "--admin", "http://127.0.0.1:8197"], ["send", "ab", "--apns", "https://localhost:2197"]]:
        assert "HOST:PORT without a scheme" in mistake(binary, *arguments), arguments


@pytest.mark.parametrize(("text", "words"), [
    ("flaky-503?rate=30%", "did you mean 0.3, without the percent sign?"), ("flaky-503?rate=30", "did you mean 0.3?"),
    ("flaky-503?rate=30%25", "did you mean 0.3, without the percent sign?"),
    ("flaky-503?streak=3%25", "remove the percent sign"),
    ("flaky-503?rate=.3", "did you mean 0.3?"), ("flaky-503?rate=0,3", "did you mean 0.3?"),
])
def test_a_percent_sign_in_a_reference_is_named(binary, text, words):
    assert words in mistake(binary, "serve", "--profile", text)


@pytest.mark.parametrize(("rule", "words"), [
    ("trigger: {probability: 30%}", "did you mean 0.3, without the percent sign?"),
    ("trigger: {first: 3%}", "remove the percent sign"),
    ("trigger: {over_limit: {limit: 5%, per: 1s}}", "remove the percent sign"),
])
def test_a_percent_sign_in_a_profile_is_named(binary, tmp_path, rule, words):
    path = tmp_path / "p.yaml"
    path.write_text(f"name: p\nrules:\n  - {{{rule}, do: {{close: {{}}}}}}\n")
    assert words in mistake(binary, "profile", "lint", path)


def test_a_percent_sign_in_a_running_server_is_named(server, binary):
    server.command("profile", "use", "flaky-503")
    done = server.command("profile", "set", "rate=30%")
    assert done.returncode == USAGE and "0.3, without the percent sign" in done.stderr
    server.command("profile", "off")


@pytest.mark.parametrize(("text", "place", "words"), [
    ("name: x\nrules:\n\t- name: a\n", "3:1", "a tab in the indentation, indent with spaces"),
    ("name: x\nrules:\n  - name: a\n \t do: {close: {}}\n", "4:2", "a tab in the indentation, indent with spaces"),
    ("name: x\nsummary: @x\n", "2:10", "a value cannot begin with @, put it in quotation marks"),
    ("name: x\nsummary: `x`\n", "2:10", "a value cannot begin with `"),
    ("name: x\nsummary: a: b\n", "2:11", "put a text with a colon in quotation marks"),
])
@pytest.mark.parametrize("command", [["profile", "lint"], ["fixtures", "lint"], ["verify", "--file"]], ids=" ".join)
def test_what_yaml_cannot_read_is_named(binary, tmp_path, command, text, place, words):
    if command[0] == "verify":
        command = ["verify"]
    path = tmp_path / "x.yaml"
    path.write_text(text)
    error = mistake(binary, *command, path)
    assert f"{path}:{place}: invalid YAML: " in error and words in error, error


@pytest.mark.parametrize("text", ['{"name": "x", // a comment\n "rules": []}\n', '{"name": "x" /* one line */ y}\n'])
def test_a_comment_in_json_is_named(binary, tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    for command in [["profile", "lint"], ["verify"]]:
        assert "remove comments: JSON has none" in mistake(binary, *command, path), command


@pytest.mark.parametrize("command", ["ls", "tail", "wait", "findings", "export"])
@pytest.mark.parametrize(("arguments", "hint"), [
    (["--since", "-5m"], "since:-5m"), (["--since", "-1h"], "since:-1h"), (["--since", "-1h30m"], "since:-1h30m"), (["--since=-5m"], "since:-5m"), (["--topic", "com.x"], "topic:com.x"),
    (["--push-type", "voip"], "push_type:voip"),
])
def test_an_option_that_is_a_condition_gets_a_hint(binary, command, arguments, hint):
    assert f"A condition is an argument without --: {hint}" in mistake(binary, command, *arguments)


@pytest.mark.parametrize(("arguments", "hint"), [
    ("send ab -cacert x", "Did you mean '--ca'?"), ("send --kid x", "Did you mean '--key-id'?"), ("ls -n 5", "Did you mean '--limit'?"),
    ("profile use flaky-503 --rate 0.3", "'flaky-503?rate=0.3'"), ("profile off --rate 3", ""),
])
def test_an_option_of_another_tool_gets_the_one_of_this(binary, arguments, hint):
    """UnknownOptionTests has the others."""
    option = next(word for word in arguments.split() if word.startswith("-"))
    first = mistake(binary, *arguments.split()).splitlines()[0]
    assert first.startswith(f"error: Unknown option '{option}'") and first.endswith(hint or "'"), first


def test_other_unknown_options_get_no_such_hint(binary):
    for arguments in [["ls", "--sins", "5"], ["clock", "show", "--since", "5m"]]:
        assert "without --" not in mistake(binary, *arguments)


def test_names_of_commands_elsewhere_get_a_hint(binary):
    for name, command in {"list": "ls", "push": "send", "start": "serve", "logs": "tail"}.items():
        assert f"use `apns-mock {command}`" in mistake(binary, name)


def test_a_duration_without_its_sign_gets_a_hint(server):
    for field in ["since", "until"]:
        assert f"Did you mean {field}:-5m?" in server.command("ls", f"{field}:5m").stderr


def test_what_is_not_there_is_named(server, tmp_path):
    done = server.command("profile", "use", "./missing.yaml")
    assert done.returncode == USAGE and "check the path" in done.stderr and "permissions" not in done.stderr
    assert "specify JSON text, a file" in server.command("send", "ab12", "--payload", "").stderr
    assert "JSON text begins with a brace" in server.command("send", "ab12", "--payload", "hello").stderr
    assert "without @" in server.command("send", "ab12", "--payload", "@body.json").stderr


def test_a_port_file_on_the_command_line_counts_more_than_variables(server, start, device):
    other = start()
    environment = clean_environment(APNS_MOCK_APNS=f"127.0.0.1:{server.port}", APNS_MOCK_ADMIN=f"127.0.0.1:{server.admin_port}")
    for command in [["send", device], ["doctor"]]:
        done = run(server.binary, *command, "--port-file", other.port_file, environment=environment)
        assert done.returncode == 0, done.stderr
    assert len(other.pushes()) == 2


def test_a_rule_on_the_command_line_needs_no_braces(server):
    done = server.command("rule", "add", "do: {delay: {fixed: 1ms}}", "--ttl", "1s")
    server.api("POST", "/reset", {"rules": True})
    assert done.returncode == 0 and "delay at request" in done.stdout, done.stderr


def test_usual_paths_of_health_checks_get_a_hint(server):
    for path, hint in {"/healthz": "/readyz", "/health": "/readyz", "/ready": "/readyz", "/live": "/livez",
                       "/swagger.json": "/openapi.json", "/api/v1/metrics": "/metrics", "/pushes": "/api/v1/pushes"}.items():
        response = server.request("GET", path)
        assert response.status == 404 and response.json["hint"].startswith(f"Did you mean {hint}? "), path


@pytest.mark.parametrize(("body", "reason"), [
    ('{"aps": {"alert": "x"}', "byte"), ("[1]", "it is not an object"), ("", "byte"), ('{"aps": NaN}', "byte"),
])
def test_send_warns_about_a_payload_that_is_no_json_object(server, device, tmp_path, body, reason):
    path = tmp_path / "payload.json"
    path.write_text(body)
    done = server.command("send", device, "--payload", path)
    assert "warning: the payload is not a JSON object, which APNs requires: " in done.stderr and reason in done.stderr
    assert "warning" not in server.command("send", device, "--payload", '{"aps": {}}').stderr


def test_send_signs_with_another_key_and_trusts_another_ca(start, binary, certs, device, tmp_path):
    server = start()
    key = tmp_path / "AuthKey_ABC123DEFG.p8"
    key.write_bytes((certs / "AuthKey_MOCKKEY001.p8").read_bytes())
    flags = ["--key", key, "--team-id", "TEAM123456", "--ca", certs / "ca.pem"]
    done = server.command("send", device, *flags)
    assert done.returncode == 1 and "403 InvalidProviderToken" in done.stdout
    assert server.pushes()[-1]["auth"]["key_id"] == "ABC123DEFG"
    done = server.command("send", device, "--key", key, "--key-id", "MOCKKEY001", "--team-id", "MOCKTEAM01")
    assert done.returncode == 0, done.stderr
    other = tmp_path / "other"
    run(binary, "certs", "--certs", other)
    done = server.command("send", device, "--ca", other / "ca.pem")
    assert done.returncode != 0 and "certificate" in done.stderr
    unnamed = tmp_path / "key.p8"
    unnamed.write_bytes(key.read_bytes())
    assert "specify it with --key-id" in server.command("send", device, "--key", unnamed).stderr
    done = server.command("send", device, "--cert", certs / "client.pem", "--key", certs / "client-key.pem")
    assert done.returncode == USAGE and "the key of --cert is --cert-key FILE" in done.stderr


PKCS12 = "convert .p12 and .pfx: openssl pkcs12 -in FILE -nodes"


def test_send_reads_one_file_with_certificate_and_key(server, certs, device, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes((certs / "client.pem").read_bytes() + (certs / "client-key.pem").read_bytes())
    done = server.command("send", device, "--cert", both)
    assert done.returncode == 0, done.stderr


def test_a_binary_file_in_place_of_pem_is_named(server, certs):
    binary = certs / "client.p12"
    for flags in [["--cert", binary], ["--cert", binary, "--cert-key", certs / "client-key.pem"], ["--ca", binary],
                  ["--cert", certs / "client.pem", "--cert-key", binary], ["--key", binary, "--key-id", "ABC"]]:
        assert PKCS12 in server.command("send", "ab12", *flags).stderr, flags


@pytest.mark.parametrize("value", ["30s", "soon", "-1", "Wed, 21 Oct 2015", "2030-01-01T00:00:00Z"])
def test_lint_knows_what_retry_after_needs(binary, tmp_path, value):
    path = tmp_path / "p.yaml"
    path.write_text(f'name: p\nrules:\n  - do: {{respond: {{status: 503, headers: {{Retry-After: "{value}"}}}}}}\n')
    done = run(binary, "profile", "lint", path)
    assert done.returncode == 0 and "is neither a number of seconds nor a date" in done.stderr


@pytest.mark.parametrize("value", ["30", "0", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_lint_accepts_what_retry_after_may_be(binary, tmp_path, value):
    path = tmp_path / "p.yaml"
    path.write_text(f'name: p\nrules:\n  - do: {{respond: {{status: 503, headers: {{Retry-After: "{value}"}}}}}}\n')
    assert run(binary, "profile", "lint", path).stderr == ""


def test_long_lists_of_a_command_name_the_near_ones(binary, tmp_path):
    settings = tmp_path / "mock.yaml"
    settings.write_text("webhook_address: x\nstoree: x\napns: {foo: 1}\n")
    lines = mistake(binary, "serve", "--config", settings).splitlines()
    assert "the settings are webhook, webhook_ca, webhook_filter, webhook_payload, webhook_anywhere, apns and 41 more" in lines[0]
    assert lines[1].endswith('unknown setting "storee": did you mean store?') and " and 17 more" in lines[2]
    assert " more" in mistake(binary, "profile", "show", "nosuch") and " more" in mistake(binary, "env", "--library", "nosuch")
    assert " more" in mistake(binary, "nosuch") and " more" in mistake(binary, "profile", "lint", settings)
    assert max(len(line) for line in lines) < 300


def test_the_libraries_are_listed(binary):
    done = run(binary, "env", "--library", "list")
    assert done.returncode == 0 and {"aioapns", "Pushy"} <= set(done.stdout.splitlines())


def test_long_lists_say_how_many_more(server):
    known = server.request("GET", "/api/v1/pushes", q="rule:nosuchrule").json["hint"]
    assert "The known names are " in known or "is not checked" in known
    for number in range(60):
        server.api("PUT", f"/rules/rule-{number:02}", {"when": {"topic": "none"}, "do": {"close": {}}})
    assert "rule-40 and 40 more" in server.request("DELETE", "/api/v1/rules/xxxxxxxxxxxx").json["hint"]
    assert " more. " in server.request("GET", "/api/v1/pushes", q="rule:zzzzzzzzzz").json["hint"]
    server.api("POST", "/reset", {"rules": True})


def test_device_tokens_are_registered_and_unregistered(start, device):
    server = start()
    assert server.command("device", "register", device, "--topic", "com.example.app").returncode == 0
    assert server.command("send", device).stdout.startswith("200 ")
    assert server.command("device", "unregister", device).returncode == 0
    assert server.command("send", device).stdout.startswith("410 Unregistered")
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2030-01-01T12:00:00Z"})
    for words in [["--since=-2h"], ["--since", "-2h"], ["--since", "2030-01-01T10:00:00Z"], ["--since", "1893492000"]]:
        assert "since 2030-01-01T10:00:00" in server.command("device", "unregister", device, *words).stdout, words
    assert "--since: \"soon\" is not a time" in server.command("device", "unregister", device, "--since", "soon").stderr


# profile new

FAULTS = {"503": 503, "retry-after": 503, "429": 429, "410": 410, "delay": 200, "lost": None, "reset": None, "goaway": None}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_new_profile_does_what_was_chosen(start, binary, device, tmp_path, fault):
    done = run(binary, "profile", "new", "mine", "--fault", fault, "--often", "first:1", "--pushes", "topic:com.example.app",
               cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mine.yaml\n"), done.stderr
    assert run(binary, "profile", "lint", tmp_path / "mine.yaml").stderr == ""
    text = (tmp_path / "mine.yaml").read_text()
    assert text.count("#") >= 6 and "profile simulate" in text
    server = start("--profile", tmp_path / "mine.yaml")
    done = server.command("send", device)
    expected = FAULTS[fault]
    assert done.stdout.startswith(f"{expected} ") if expected else done.returncode == 1
    record, = server.pushes()
    assert record["fault"]["rule"] == fault
    assert server.command("send", device).stdout.startswith("200 ")


def test_how_often_a_new_profile_fires(start, binary, device, tmp_path):
    def sent(often, count):
        path = tmp_path / f"{often.replace(':', '')}.yaml"
        assert run(binary, "profile", "new", "mine", "--fault", "503", "--often", often, "--output", path).returncode == 0
        server = start("--profile", path)
        with connect(server) as wire:
            return [wire.push(push_headers(server, device), b'{"aps":{}}').status for _ in range(count)]

    assert sent("always", 2) == [503, 503]
    assert sent("first:3", 5) == [503, 503, 503, 200, 200]
    assert sent("every:2", 4).count(503) == 2
    assert sent("attempts:2", 3) == [503, 503, 200]
    assert 503 not in sent("0", 3)


def test_a_new_profile_replaces_no_file(binary, tmp_path):
    (tmp_path / "mine.yaml").write_text("kept")
    assert "exists" in mistake(binary, "profile", "new", "mine", "--fault", "503", cwd=tmp_path)
    assert (tmp_path / "mine.yaml").read_text() == "kept"
    for arguments, words in [(["x"], "--fault is missing: 503 ("), (["x", "--fault", "53"], "Did you mean 503?"),
                             (["x", "--fault", "503", "--often", "30%"], "did you mean 0.3, without the percent sign?"),
                             (["x", "--fault", "503", "--pushes", "topik:x"], "topik"),
                             (["../x", "--fault", "503"], "name")]:
        assert words in mistake(binary, "profile", "new", *arguments, cwd=tmp_path, input=""), arguments
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_a_new_profile_asks_three_questions_on_a_terminal(binary, tmp_path):
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [binary, "profile", "new", "asked"], stdin=child, stdout=child, stderr=child, cwd=tmp_path, env=clean_environment())
    os.close(child)
    shown = b""
    for question, answer in [(b"What happens?", b"430\n"), (b"What happens?", b"429\n"), (b"To which pushes?", b"topik:x\n"),
                             (b"To which pushes?", b"topic:com.example.*\n"), (b"How often?", b"30%\n"), (b"How often?", b"\n")]:
        while question not in shown or not shown.rstrip(b" ").endswith(b"]"):
            shown += os.read(parent, 4096)
        os.write(parent, answer)
        shown = b""
    assert process.wait(20) == 0
    os.close(parent)
    text = (tmp_path / "asked.yaml").read_text()
    assert 'when: {q: "topic:com.example.*"}' in text and "TooManyRequests" in text and "default: 0.2" in text


# Exit of `exec` with files


def test_exec_writes_a_report_and_junit(binary, certs, device, tmp_path):
    done = run(binary, "exec", "--certs", certs, "--report", tmp_path / "r.html", "--junit", tmp_path / "r.xml", "--", binary,
               "send", device)
    assert done.returncode == 0, done.stderr
    assert "<testsuite" in (tmp_path / "r.xml").read_text() and "<html" in (tmp_path / "r.html").read_text().lower()

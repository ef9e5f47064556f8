"""`apns-mock exec`: runs a program with its own server."""

import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from support import ROOT
from support.server import clean_environment, run

TIMEOUT = 60  # seconds for anything that must happen


@pytest.fixture
def place(tmp_path):
    """A working directory with a folder for temporary files, which must be empty after the test."""
    (tmp_path / "tmp").mkdir()
    yield tmp_path
    assert list((tmp_path / "tmp").iterdir()) == [], "left behind"


@pytest.fixture
def ex(binary, certs, place):
    """`ex(*flags, program=[…])` runs a program to its end."""

    def runner(*flags, program, environment=None, timeout=TIMEOUT, **more):
        return run(
            binary, "exec", "--certs", certs, *flags, "--", *program, cwd=place, timeout=timeout,
            environment={"TMPDIR": str(place / "tmp"), "MOCK": str(binary), **(environment or {})}, **more)

    return runner


@pytest.fixture
def started(binary, certs, place):
    """`started(*flags, program=[…])` starts a program and waits until it has created the file `up`."""
    running = []

    def starter(*flags, program, **more):
        process = subprocess.Popen(
            [str(binary), "exec", "--certs", str(certs), *flags, "--", *program], cwd=place, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=clean_environment(TMPDIR=str(place / "tmp"), MOCK=str(binary)), **more)
        running.append(process)
        await_file(place / "up", process)
        return process

    yield starter
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


def await_file(path, process=None):
    deadline = time.monotonic() + TIMEOUT
    while not path.exists():
        assert process is None or process.poll() is None, f"ended with {process.returncode}: {process.stderr.read()}"
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.005)


def is_running(pid):
    """Returns whether a process is running; a zombie is not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_end(pid):
    deadline = time.monotonic() + TIMEOUT
    while is_running(pid):
        assert time.monotonic() < deadline, f"{pid} runs on"
        time.sleep(0.01)


PUSH = '"$MOCK" send $("$MOCK" token device) --topic com.example.app'


def test_the_program_finds_everything_in_its_environment(ex, binary):
    done = ex(program=["env"], environment={"OTHER": "kept"})
    assert done.returncode == 0 and done.stderr == "apns-mock: 0 pushes\n"
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert found["OTHER"] == "kept"
    ours = {name: value for name, value in found.items() if name.startswith("APNS_MOCK_")}
    assert set(ours) == {
        "APNS_MOCK_APNS", "APNS_MOCK_APNS_PLAIN", "APNS_MOCK_PROXY", "APNS_MOCK_ADMIN", "APNS_MOCK_PORT_FILE", "APNS_MOCK_CA", "APNS_MOCK_KEY",
        "APNS_MOCK_KEY_ID", "APNS_MOCK_TEAM_ID", "APNS_MOCK_RUN", "APNS_MOCK_EXPORTS",
        "APNS_MOCK_SEED", "APNS_MOCK_BINARY"}
    assert (ours["APNS_MOCK_KEY_ID"], ours["APNS_MOCK_TEAM_ID"]) == ("MOCKKEY001", "MOCKTEAM01")
    assert os.path.samefile(ours["APNS_MOCK_BINARY"], binary)
    for name in ("CA", "KEY", "PORT_FILE"):
        assert os.path.isabs(ours[f"APNS_MOCK_{name}"])
    assert ours["APNS_MOCK_APNS"] not in ("127.0.0.1:2197", ours["APNS_MOCK_ADMIN"])
    assert not os.path.exists(ours["APNS_MOCK_PORT_FILE"])


def test_commands_in_the_program_find_the_server_without_flags(ex):
    done = ex(program=["sh", "-ec", f'{PUSH}; "$MOCK" ls --json; "$MOCK" healthcheck; "$MOCK" doctor'])
    assert done.returncode == 0, done.stderr
    assert '"com.example.app"' in done.stdout
    assert [line for line in done.stderr.splitlines() if line.startswith("apns-mock:")] == [
        "apns-mock: 2 pushes: 2 accepted"]
    assert "warning" not in done.stderr and "unknown" not in done.stderr


def test_a_flag_of_an_address_wins_over_the_variables(ex):
    result = ex(program=["sh", "-c", '"$MOCK" ls --admin 127.0.0.1:1'])
    assert result.returncode == 4 and "127.0.0.1:1" in result.stderr, result


def test_a_server_in_the_program_does_not_warn_about_variables(ex):
    done = ex(program=["sh", "-c", 'exec "$MOCK" serve --config /nowhere'])
    assert "unknown variable" not in done.stderr and done.returncode == 2


def test_standard_streams_are_the_programs(ex):
    done = ex(program=["cat"], input="one\ntwo\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n", "apns-mock: 0 pushes\n")


@pytest.mark.parametrize(("program", "code", "words"), [
    (["true"], 0, ""), (["sh", "-c", "exit 77"], 77, ""), (["sh", "-c", "exit 255"], 255, ""),
    (["sh", "-c", "kill -SEGV $$"], 139, "apns-mock: sh was killed by signal 11"),
    (["no-such-program-here"], 127, "error: no-such-program-here: no such program in PATH"),
    (["./nothing"], 127, "error: ./nothing: no such program"), (["/"], 126, "error: /: permission denied"),
    ([__file__], 126, f"error: {__file__}: permission denied"),
])
def test_the_exit_code_is_the_programs(ex, program, code, words):
    done = ex(program=program)
    assert done.returncode == code
    assert words in done.stderr


def test_a_program_has_to_be_named(binary):
    for arguments in ([], ["--"], ["true"]):
        done = run(binary, "exec", *arguments)
        assert done.returncode == 2 and "after --" in done.stderr, done.stderr


def test_flags_of_serve_are_flags_of_exec(ex, place):
    config = place / "config.yaml"
    config.write_text("apns: {listen: '127.0.0.1:1', token_max_age: 10m}\nport_file: nowhere.json\nrules: lenient\n")
    done = ex(
        "--config", config, "--rules", "strict", "--profile", "flaky-503?rate=1", "--seed", "7", "--apns", "127.0.0.1:0",
        "--apns", "127.0.0.1:0", "--port-file", "ports.json", "--admin-token", "auto",
        program=["sh", "-c", f'{PUSH}; "$MOCK" ls --json; cat ports.json; echo; env'],
        environment={"APNS_MOCK_PORT_FILE": "other.json", "APNS_MOCK_APNS": "127.0.0.1:1"})
    assert done.returncode == 0, done.stderr
    # `send` exits with 1 if a push is not accepted, and the shell continues.
    assert "503 ServiceUnavailable" in done.stdout
    assert done.stderr.endswith("apns-mock: 1 push: 1 rejected; 1 faulted by profile flaky-503?rate=1, seed 7\n")
    facts = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"pid"'))
    assert len(facts["apns"]) == 2 and facts["admin_token"] and facts["seed"] == 7
    assert f"APNS_MOCK_ADMIN_TOKEN={facts['admin_token']}\n" in done.stdout
    listeners = ",".join(f"{one['host']}:{one['port']}" for one in facts["apns"])
    assert f"APNS_MOCK_APNS={listeners}\n" in done.stdout
    assert f"APNS_MOCK_PORT_FILE={place / 'ports.json'}\n" in done.stdout
    assert not (place / "ports.json").exists() and not (place / "other.json").exists()


def test_settings_are_checked_before_the_program_starts(ex, place):
    done = ex("--rules", "odd", program=["touch", "started"])
    assert done.returncode == 2 and "--rules" in done.stderr
    done = ex("--export", "no/folder/out.ndjson", program=["touch", "started"])
    assert done.returncode == 2 and "--export: no/folder/out.ndjson: the folder is not writable" in done.stderr
    assert not (place / "started").exists()


def test_the_summary_can_be_a_log_line(ex):
    done = ex("--log-format", "json", program=["sh", "-c", PUSH])
    line = json.loads(done.stderr.splitlines()[-1])
    assert line["message"] == "summary" and line["pushes"] == 1 and line["accepted"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_a_program_that_does_not_know_it(started, number):
    process = started(program=["sh", "-c", "echo $$ > pid; touch up; exec sleep 600"])
    process.send_signal(number)
    words = process.communicate(timeout=TIMEOUT)[1]
    assert process.returncode == 128 + number
    assert words == "apns-mock: 0 pushes\n"


def test_a_signal_is_passed_on_once_and_the_program_decides(started, place):
    process = started("--export", "out.ndjson", program=["sh", "-c", f"""
        trap 'echo TERM' TERM; touch up
        while ! [ -e signaled ]; do sleep 0.05; done
        {PUSH} > /dev/null; exit 9"""])
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "TERM\n"
    (place / "signaled").touch()
    rest, words = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, rest) == (9, "")
    assert words == "apns-mock: 1 push: 1 accepted\n"
    assert [json.loads(line).get("seq") for line in (place / "out.ndjson").read_text().splitlines()] == [None, 1, None]


def test_a_second_signal_ends_everything(started, place):
    process = started("--port-file", "ports.json", program=["sh", "-c", """
        trap 'touch first' INT TERM; echo $$ > pid; touch up
        while :; do sleep 0.05; done"""])
    process.send_signal(signal.SIGTERM)
    await_file(place / "first")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    await_end(int((place / "pid").read_text()))
    assert not (place / "ports.json").exists()


def test_timeout_sends_its_signal_twice_but_counts_once(binary, certs, place):
    """`timeout` signals the process and then its process group."""
    done = subprocess.run(
        ["timeout", "3", str(binary), "exec", "--certs", str(certs), "--export", "out.ndjson", "--", "sh", "-c",
         "trap 'sleep 0.7; exit 5' TERM; while :; do sleep 0.05; done"],
        cwd=place, capture_output=True, text=True, timeout=TIMEOUT, env=clean_environment(TMPDIR=str(place / "tmp")))
    assert done.returncode == 124
    # `timeout` waits only for our process: the export, written at the end, shows that the process was not killed
    # early.
    await_file(place / "out.ndjson")


def test_the_program_starts_with_default_signal_handling(ex):
    done = ex(program=["grep", "^Sig", "/proc/self/status"])
    if done.returncode != 0:
        pytest.skip("this system does not report signals")
    masks = {name: int(mask, 16) for name, mask in (line.split(":") for line in done.stdout.splitlines()) if name != "SigQ"}
    of_ours = sum(1 << (number - 1) for number in (
        signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD))
    assert masks["SigBlk"] == 0 and masks["SigIgn"] & of_ours == 0 and masks["SigCgt"] & of_ours == 0


def test_ignored_signals_stay_ignored(started, place):
    """As under `nohup`."""
    process = started(
        program=["sh", "-c", "touch up; while ! [ -e signaled ]; do sleep 0.05; done; exit 3"],
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    (place / "signaled").touch()
    process.communicate(timeout=TIMEOUT)
    assert process.returncode == 3


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not report open files")
def test_the_program_has_no_files_but_those_that_were_passed_on(binary, certs, place):
    reader, writer = os.pipe()
    script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')))"

    def files(command):
        done = subprocess.run(
            [*command, sys.executable, "-c", script], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT, env=clean_environment(TMPDIR=str(place / "tmp")), pass_fds=[writer])
        return done.stdout

    expected = files(["env"])
    assert str(writer) in expected
    assert files([str(binary), "exec", "--certs", str(certs), "--"]) == expected
    os.close(reader)
    os.close(writer)


def test_a_terminal_interrupts_the_program_once(binary, certs, place):
    """The terminal sends Ctrl-C to the whole foreground process group: if exec forwarded it too, the program would
    get it twice.
    """
    script = place / "program.py"
    script.write_text("""
import signal, sys, time
count = 0
def interrupted(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, interrupted)
print("up", flush=True)
deadline = time.monotonic() + 600
while count == 0 and time.monotonic() < deadline: time.sleep(0.05)
time.sleep(1)
print("interrupted", count, flush=True)
sys.exit(40 + count)
""")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place)
        os.execve(
            str(binary), [str(binary), "exec", "--certs", str(certs), "--", sys.executable, str(script)],
            clean_environment(TMPDIR=str(place / "tmp")))
    shown = b""

    def read_until(wanted):
        nonlocal shown
        deadline = time.monotonic() + TIMEOUT
        while wanted not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 4096)

    try:
        read_until(b"up")
        os.write(terminal, b"\x03")
        read_until(b"interrupted 1")
        read_until(b"0 pushes")
        # Closing the terminal before the program ends would send another signal.
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 41


def test_the_export_contains_the_pushes(ex, place):
    done = ex("--export", "out.ndjson", program=["sh", "-c", f"{PUSH}; {PUSH}; exit 4"])
    assert done.returncode == 4
    _, *records, run = [json.loads(line) for line in (place / "out.ndjson").read_text().splitlines()]
    assert (run["kind"], run["outcome"]) == ("run", "failed")
    assert [record["seq"] for record in records] == [1, 2]
    assert ex("--export", "out.json", program=["true"]).returncode == 0
    assert [(one["kind"], one.get("pushes")) for one in json.loads((place / "out.json").read_text())] == [("run", None), ("run", 0)]
    both = ex("--export", "a", "--export-on-exit", "b", program=["true"])
    assert both.returncode == 2 and "specify one" in both.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no disk that is always full")
def test_a_failed_export_is_reported(ex):
    done = ex("--export", "/dev/full", program=["sh", "-c", PUSH])
    assert done.returncode == 1
    assert "apns-mock: --export: /dev/full: cannot be written: No space left on device; the inbox (" in done.stderr
    assert os.stat("/dev/full").st_rdev, "it is still what it was"
    assert ex("--export", "/dev/full", program=["sh", "-c", "exit 6"]).returncode == 6


def test_a_server_in_the_program_uses_addresses_of_its_own(ex, certs):
    """As the client libraries do: the variables name the listeners of `exec`, which are in use."""
    serve = '"$MOCK" serve --apns 127.0.0.1:0 --admin 127.0.0.1:0 --certs "$0" --exit-on-stdin-close </dev/null && test -s "$APNS_MOCK_PORT_FILE"'
    result = ex("--apns-plain", "127.0.0.1:0", "--proxy", "127.0.0.1:0", "--manage", "127.0.0.1:0", "--port-file", "ports.json",
                program=["sh", "-c", serve, certs])
    assert result.returncode == 0, result.stderr


def test_a_run_of_the_program_has_its_pushes(ex):
    result = ex(program=["sh", "-c", """
        send() { "$MOCK" send "$("$MOCK" token device)" --topic com.example.app >/dev/null; }
        send; run=$("$MOCK" run start mine); send; send; "$MOCK" run end "$run" >/dev/null; send
        "$MOCK" ls "run:$run" | wc -l; "$MOCK" ls "run:$APNS_MOCK_RUN" | wc -l"""])
    assert result.stdout.split() == ["2", "2"], result


def test_one_in_another(ex):
    """The addresses of the outer server do not configure the inner one."""
    done = ex(program=["sh", "-ec", f"""
        {PUSH}
        "$MOCK" exec --certs "$(dirname "$APNS_MOCK_CA")" -- sh -c '{PUSH}; {PUSH}; "$MOCK" ls --json' > inner
        "$MOCK" ls --json"""])
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines()] == [
        "apns-mock: 2 pushes: 2 accepted", "apns-mock: 1 push: 1 accepted"]
    assert len(done.stdout.splitlines()) == 2


def test_many_at_once(binary, certs, place):
    processes = [
        subprocess.Popen(
            [str(binary), "exec", "--certs", str(certs), "--", "sh", "-c", f"{PUSH} && exit {number}"], cwd=place,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=clean_environment(TMPDIR=str(place / "tmp"), MOCK=str(binary)))
        for number in range(6)]
    assert [process.wait(timeout=TIMEOUT) for process in processes] == list(range(6))


# Checks after the program has ended

EXPECTED = """
expect:
  - name: welcome
    match: {topic: com.example.app}
    count: {exactly: 1}
    outcome: accepted
"""


@pytest.mark.parametrize(("script", "flags", "code", "words"), [
    (PUSH, [], 0, []),
    (f"{PUSH}; {PUSH}", [], 1, ["expected.yaml:", "✗ welcome: expected exactly 1 accepted, found 2"]),
    (f"{PUSH}; {PUSH}; exit 7", [], 7, ["✗ welcome: expected exactly 1 accepted, found 2"]),
    ("true", [], 1, ["✗ welcome: expected exactly 1 accepted, found 0"]),
    (f"{PUSH}; {PUSH}; {PUSH}", ["--max-records", "2"], 5, ["inconclusive"]),
])
def test_expectations_are_verified(ex, place, script, flags, code, words):
    (place / "expected.yaml").write_text(EXPECTED)
    done = ex("--verify", "expected.yaml", *flags, program=["sh", "-c", script])
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr
    assert ("✗" in done.stderr or "inconclusive" in done.stderr) == bool(words)
    assert "✗" not in done.stdout


def test_expectations_are_parsed_before_the_program_starts(ex, place):
    (place / "expected.yaml").write_text("expect:\n  - match: {topik: com.example.app}\n")
    done = ex("--verify", "expected.yaml", program=["touch", "started"])
    assert done.returncode == 2 and done.stderr.startswith("error: expected.yaml:2:"), done.stderr
    assert ex("--verify", "nowhere.yaml", program=["touch", "started"]).returncode == 2
    assert ex("--verify", "-", program=["touch", "started"]).returncode == 2
    done = ex("--fail-on-findings", "hot-retries", program=["touch", "started"])
    assert done.returncode == 2 and "did you mean hot-retry?" in done.stderr
    for names in "all,hot-retry", "hot-retry, all":
        done = ex("--fail-on-findings", names, program=["touch", "started"])
        assert done.returncode == 2 and f'"{names}" is invalid: expected all without other names' in done.stderr
    assert not (place / "started").exists()


BARE = '"$MOCK" send $("$MOCK" token device) --topic com.example.app --payload "{}"'


@pytest.mark.parametrize(("script", "names", "code", "words"), [
    (PUSH, "all", 0, []), (BARE, "all", 1, ["finding would-not-show, push 1: "]),
    (BARE, "hot-retry, would-not-show", 1, ["finding would-not-show, push 1: "]), (BARE, "hot-retry", 0, []),
    (f"{BARE}; exit 3", "all", 3, ["finding would-not-show, push 1: "]),
])
def test_findings_can_fail_a_run(ex, script, names, code, words):
    done = ex("--fail-on-findings", names, program=["sh", "-c", script])
    assert done.returncode == code, done.stderr
    for word in words:
        assert f"apns-mock: {word}" in done.stderr
    assert ("finding would" in done.stderr) == bool(words)
    summary = done.stderr.splitlines()[-1]
    assert summary == "apns-mock: 1 push: 1 accepted" + ("; findings: 1 would-not-show" if BARE in script else "")


BAD = '"$MOCK" send $("$MOCK" token device) --topic com.example.app --priority 7 || true'


@pytest.mark.parametrize(("script", "code"), [(PUSH, 0), (f"{BAD}; {PUSH}; {BAD}", 1), (f"{BAD}; exit 3", 3)])
def test_rejected_pushes_can_fail_a_run(ex, script, code):
    done = ex("--fail-on-rejected", program=["sh", "-c", script])
    assert done.returncode == code, done.stderr
    seqs = "1, 3" if code == 1 else "1"
    words = f'apns-mock: rejected with 400 BadPriority, push {seqs}: apns-priority "7" is not one of 10, 5 and 1\n'
    assert (words in done.stderr) == bool(code)


def test_the_response_of_a_fault_is_no_rejection(ex):
    done = ex("--fail-on-rejected", "--profile", "flaky-503?rate=1", program=["sh", "-c", f"{PUSH} || true"])
    assert done.returncode == 0, done.stderr


# A provider that abandons a push after as many attempts as its argument says.
PROVIDER = """
import os, subprocess, sys
from types import SimpleNamespace
from support.wire import connect, push_headers
token = subprocess.run([os.environ["MOCK"], "token", "provider"], capture_output=True, text=True, check=True).stdout.strip()
port = int(os.environ["APNS_MOCK_APNS"].rsplit(":", 1)[1])
server = SimpleNamespace(ca=os.environ["APNS_MOCK_CA"], port=port, authority="localhost", bearer="bearer " + token)
with connect(server) as wire:
    print([wire.push(push_headers(server, "ab12" * 16)).status for _ in range(int(sys.argv[1]))])
"""


@pytest.mark.parametrize(("attempts", "statuses", "code"), [(1, [503], 1), (2, [503, 200], 0)])
def test_an_abandoned_push_fails_a_run_at_once(ex, attempts, statuses, code):
    """The program ends right after its last response: the check does not wait for `abandoned_after`."""
    done = ex(
        "--fail-on-findings", "abandoned", "--profile", "flaky-503?rate=1&streak=1",
        program=[sys.executable, "-c", PROVIDER, str(attempts)],
        environment={"PYTHONPATH": str(ROOT / "Tests/Clients")})
    assert done.stdout.strip() == str(statuses), done.stderr
    assert done.returncode == code, done.stderr
    assert ("finding abandoned, push 1: attempt 1 was answered 503" in done.stderr) == bool(code)


def test_findings_that_are_inconclusive(ex):
    done = ex("--fail-on-findings", "all", "--max-records", "1", program=["sh", "-c", f"{PUSH}; {PUSH}"])
    assert done.returncode == 5 and "findings are inconclusive" in done.stderr
    done = ex("--fail-on-findings", "all", "--max-records", "1", program=["sh", "-c", f"{BARE}; {BARE}"])
    assert done.returncode == 1, "a certain failure takes precedence over an inconclusive result"


def test_exec_waits_for_expectations(ex, place):
    """A push from a background process of the program."""
    (place / "expected.yaml").write_text("timeout: 30s\n" + EXPECTED.replace("exactly", "at_least"))
    done = ex("--verify", "expected.yaml", program=[
        "sh", "-c", f"(sleep 0.5; {PUSH}) > /dev/null 2>&1 &"])
    assert done.returncode == 0, done.stderr


def test_a_stopped_run_is_not_verified(started, place):
    (place / "expected.yaml").write_text("timeout: 5m\n" + EXPECTED)
    process = started(
        "--verify", "expected.yaml", program=["sh", "-c", "trap 'exit 0' TERM; touch up; while :; do sleep 0.05; done"])
    process.send_signal(signal.SIGTERM)
    words = process.communicate(timeout=TIMEOUT)[1]
    assert process.returncode == 0 and words == "apns-mock: 0 pushes\n"


def test_a_signal_while_it_verifies_ends_it(started, place):
    (place / "expected.yaml").write_text("timeout: 5m\n" + EXPECTED)
    process = started(
        "--verify", "expected.yaml", "--port-file", "ports.json", program=["sh", "-c", "echo $$ > pid; touch up"])
    await_end(int((place / "pid").read_text()))
    # The program has ended; whether exec has already noticed it does not affect the result.
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT)
    assert process.returncode in (0, 128 + signal.SIGTERM)
    assert not (place / "ports.json").exists()


def test_certificates_are_created_in_the_temporary_folder(binary, place):
    """Nothing remains in the working directory, and every file is at the path in the environment while the program
    runs.
    """
    environment = {"TMPDIR": str(place / "tmp"), "MOCK": str(binary)}
    script = f'{PUSH}; test -s "$APNS_MOCK_CERTS/client.pem"; "$MOCK" certs --json; echo "$APNS_MOCK_CA"'
    done = run(binary, "exec", "--", "sh", "-ec", script, cwd=place, timeout=TIMEOUT, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(str(place / "tmp"))
    assert json.loads(done.stdout.splitlines()[-2])["folder"].startswith(str(place / "tmp"))
    assert [path.name for path in place.iterdir()] == ["tmp"]


def test_a_given_certificate_folder_is_kept(binary, place):
    environment = {"TMPDIR": str(place / "tmp"), "MOCK": str(binary), "APNS_MOCK_CERTS": "kept"}
    done = run(binary, "exec", "--", "sh", "-ec", PUSH, cwd=place, timeout=TIMEOUT, environment=environment)
    assert done.returncode == 0, done.stderr
    assert (place / "kept" / "ca.pem").exists()


def test_help_shows_the_defaults_of_exec(binary):
    words = run(binary, "exec", "--help").stdout
    assert "2197" not in words and "8197" not in words
    assert "(default: a free port)" in words
    assert "2197" in run(binary, "serve", "--help").stdout


@pytest.mark.parametrize(("flags", "script", "code"), [
    (["--fail-on-findings", "all"], "true", 1), (["--fail-on-findings", "hot-retry"], "true", 1),
    (["--fail-on-findings", "all", "--allow-no-pushes"], "true", 0), (["--fail-on-findings", "all"], "exit 3", 3),
    (["--fail-on-findings", "all", "--allow-no-pushes"], f"{PUSH}", 0), (["--allow-no-pushes"], "true", 2),
    (["--fail-on-rejected"], "true", 1), (["--fail-on-rejected", "--allow-no-pushes"], "true", 0),
])
def test_a_run_without_pushes_is_inconclusive(ex, flags, script, code):
    done = ex(*flags, program=["sh", "-c", script])
    assert done.returncode == code, done.stderr
    assert ("no push arrived" in done.stderr) == ("--allow-no-pushes" not in flags)

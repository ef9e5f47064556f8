"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from apns_mock import Client
from apns_mock.server import find_program
from test_process import environment

PROVIDER = """
import ssl, time
import httpx, jwt, pytest


class Provider:
    delay = 0.15

    def send(self, settings, tokens, retries=5):
        tokens = [f"{number:064x}" for number in range(1, tokens + 1)] if isinstance(tokens, int) else tokens
        with open(settings.key) as key:
            token = jwt.encode({"iss": settings.team_id, "iat": int(time.time())}, key.read(), algorithm="ES256",
                               headers={"kid": settings.key_id})
        headers = {"authorization": f"bearer {token}", "apns-topic": settings.topic, "apns-push-type": "alert"}
        context = ssl.create_default_context(cafile=settings.ca)
        with httpx.Client(
                http2=True, base_url=settings.url, verify=context, trust_env=False, headers=headers) as client:
            for device_token in tokens:
                for attempt in range(1 + retries):
                    response = client.post(f"/3/device/{device_token}", json={"aps": {"alert": "Hello"}})
                    if response.status_code != 503:
                        break
                    time.sleep(self.delay * 2**attempt)


@pytest.fixture
def provider():
    return Provider()
"""


@pytest.fixture(autouse=True)
def provider_in_conftest(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(PROVIDER)


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    """Runs pytest in a process of its own, as a user does."""
    pytester.makepyfile(source)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=100)


def test_example_of_the_documentation(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        @pytest.mark.apns(profile="flaky-503?rate=0.3", seed=7, fail_on_findings=True)
        def test_retries(apns, provider):
            provider.send(apns.settings, tokens=20)
            apns.wait(count=20, accepted=True); apns.assert_nothing_lost()
            assert 0 < len(apns.pushes(rule="flaky")) < 20
        """)
    result.assert_outcomes(passed=1)


def test_each_test_starts_with_a_reset_server(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        @pytest.mark.apns(profile="flaky-503?rate=1")
        def test_first(apns, provider):
            provider.send(apns.settings, tokens=1, retries=0)
            assert apns.pushes(status=503)

        def test_second(apns, apns_server, provider):
            assert apns is apns_server
            assert apns.pushes() == []
            provider.send(apns.settings, tokens=1)
            assert apns.pushes(status=200)
        """)
    result.assert_outcomes(passed=2)


def test_same_seed_gives_the_same_faults(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        faults = []

        @pytest.mark.apns(profile="flaky-503?rate=0.5", seed=7)
        @pytest.mark.parametrize("run", range(2))
        def test_marker(apns, provider, run):
            provider.send(apns.settings, tokens=20, retries=0)
            faults.append([push["request"]["device_token"] for push in apns.pushes(status=503)])

        @pytest.mark.apns(profile="flaky-503?rate=0.5")
        def test_option(apns, provider):
            test_marker(apns, provider, 2)

        def test_all_are_equal():
            assert len(faults) == 3 and faults[0] == faults[1] == faults[2] and 0 < len(faults[0]) < 20
        """, "--apns-mock-seed", "7")
    result.assert_outcomes(passed=4)


def test_markers_of_module_class_and_test_are_combined(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        pytestmark = pytest.mark.apns(profile="flaky-503?rate=1", seed=1)

        @pytest.mark.apns(seed=2)
        class TestClass:
            @pytest.mark.apns(seed=3)
            def test_method(self, apns):
                active = apns.request("GET", "/profile")
                assert (active["reference"], active["seed"]) == ("flaky-503?rate=1", 3)

            def test_other(self, apns):
                assert apns.request("GET", "/profile")["seed"] == 2

        def test_function(apns):
            assert apns.request("GET", "/profile")["seed"] == 1
        """)
    result.assert_outcomes(passed=3)


def test_failed_test_shows_the_inbox(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        @pytest.mark.apns(profile="flaky-503?rate=1", seed=7)
        def test_gives_up(apns, provider):
            provider.send(apns.settings, tokens=["ab12" * 16], retries=1)
            provider.delay = 0
            provider.send(apns.settings, tokens=["cd34" * 16], retries=1)
            apns.wait(count=3, accepted=True, timeout=0.2)
        """, "--apns-mock-export", "exported")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        ">       apns.wait(count=3, accepted=True, timeout=0.2)",
        "E       apns_mock.errors.WaitError: wanted at least 3, and 2 pushes match after 200ms",
        "E         nearest: push 3, * with 503 ServiceUnavailable",
        "E           accepted: wanted true, found false",
        "*- apns-mock -*",
        "apns-mock: seed 7, profile flaky-503?rate=1, 4 pushes",
        "not accepted:",
        "  1  ??:??:??.???  ab12…12  com.example.app  attempt 1  503 ServiceUnavailable  rule flaky",
        "  3  ??:??:??.???  cd34…34  com.example.app  attempt 1  503 ServiceUnavailable  rule flaky",
        "accepted:",
        "  2  ??:??:??.???  ab12…12  com.example.app  attempt 2  200",
        "  4  ??:??:??.???  cd34…34  com.example.app  attempt 2  200",
        "findings:",
        "  hot-retry, push 4: *",
        "To inspect the pushes: apns-mock view exported/test_failed_test_shows_the_inbox.py_test_gives_up.ndjson",
    ], consecutive=False)
    (exported,) = (pytester.path / "exported").iterdir()
    records = [json.loads(line) for line in exported.read_text().splitlines()]
    assert [record["attempt"] for record in records if "seq" in record] == [1, 2, 1, 2]


def test_long_inbox_is_shortened(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        def test_many(apns, provider):
            provider.send(apns.settings, tokens=60)
            assert not apns.pushes()
        """)
    result.stdout.fnmatch_lines(
        ["apns-mock: seed *, profile healthy, 60 pushes", "accepted, the last 50 of 60:", "  11 *", "  60 *"])
    result.stdout.no_fnmatch_line("  10 *")


@pytest.mark.parametrize("value, fails", [("True", True), ("['retried-410']", True), ("['jwt-churn']", False)])
def test_findings_fail_a_test(pytester: pytest.Pytester, value: str, fails: bool) -> None:
    result = run(pytester, f"""
        import pytest

        @pytest.mark.apns(fail_on_findings={value})
        def test_repeats(apns, provider):
            apns.device("ab12" * 16).unregistered()
            provider.send(apns.settings, tokens=["ab12" * 16] * 2)
        """)
    result.assert_outcomes(failed=int(fails), passed=int(not fails))
    if fails:
        result.stdout.fnmatch_lines(["*finding retried-410, push 2: *", "*- apns-mock -*", "findings:"])
        result.stdout.no_fnmatch_line("*Traceback*")


def test_abandoned_push_fails_a_test_at_once(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        @pytest.mark.apns(profile="flaky-503?rate=1", fail_on_findings=["abandoned"])
        def test_gives_up(apns, provider):
            provider.send(apns.settings, tokens=["ab12" * 16], retries=0)
        """)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*finding abandoned, push 1: *"])


@pytest.mark.parametrize("value", [True, False])
def test_rejected_push_fails_a_test(pytester: pytest.Pytester, value: bool) -> None:
    result = run(pytester, f"""
        import pytest

        @pytest.mark.apns(fail_on_rejected={value})
        def test_rejected(apns, provider):
            apns.device("ab12" * 16).unregistered()
            provider.send(apns.settings, tokens=["ab12" * 16])
        """)
    result.assert_outcomes(failed=int(value), passed=int(not value))
    if value:
        result.stdout.fnmatch_lines(["*rejected with 410 Unregistered, push 1: device token ab12…12 has been unregistered*"])


@pytest.mark.parametrize("arguments, message", [
    ("fail_on_rejected='all'", "needs True or False as fail_on_rejected, not 'all'"),
    ("profil='healthy'", "has no argument 'profil', did you mean 'profile'?"),
    ("colour=1", "has no argument 'colour'"),
    ("'healthy'", "has only keyword arguments, and 'healthy' has no name"),
    ("profile=7", "needs a string such as 'flaky-503?rate=0.3' as profile, not 7"),
    ("seed='7'", "needs a number of at least 0 as seed, not '7'"),
    ("fail_on_findings='hot-retry'", "needs True, False or a list of names of findings as fail_on_findings, *"),
    ("profile='flaky-504'", 'apns-mock responded with 422 * unknown profile "flaky-504". Did you mean flaky-503?*'),
    ("profile='flaky-503?rat=1'", "apns-mock responded with 422 *rat*"),
])
def test_wrong_marker_is_an_error(pytester: pytest.Pytester, arguments: str, message: str) -> None:
    result = run(pytester, f"""
        import pytest

        @pytest.mark.apns({arguments})
        def test_without_fixture():
            pass
        """)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{message}"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_misspelled_finding_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        @pytest.mark.apns(fail_on_findings=["hot-retri"])
        def test_misspelled():
            pass
        """)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Did you mean hot-retry?*"])


def test_each_xdist_worker_has_a_server(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import os, pytest

        @pytest.mark.parametrize("number", range(8))
        def test_parallel(apns, provider, number, tmp_path_factory):
            apns.wait(count=0, settle="20ms")
            provider.send(apns.settings, tokens=5)
            assert len(apns.wait(count="=5", settle="50ms")) == 5
            shared = tmp_path_factory.getbasetemp().parent / "servers"
            with shared.open("a") as file:
                file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {apns.admin_url}\\n")
        """, "-n", "2", "--basetemp", str(pytester.path / "base"))
    result.assert_outcomes(passed=8)
    used = set((pytester.path / "base" / "servers").read_text().splitlines())
    assert {line.split()[0] for line in used} == {"gw0", "gw1"}
    assert len({line.split()[1] for line in used}) == 2


def test_report_of_a_failed_test_in_an_xdist_worker(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        def test_fails(apns, provider):
            provider.send(apns.settings, tokens=1)
            assert apns.pushes() == []
        """, "-n", "2")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*- apns-mock -*", "apns-mock: seed *, profile healthy, 1 push", "  1 * 200", "findings: none"])


def test_server_killed_during_a_test(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import os, signal

        def test_killed(apns):
            os.kill(apns.pid, signal.SIGKILL)
            apns.pushes()

        def test_next(apns):
            pass
        """)
    result.assert_outcomes(failed=1, errors=2)
    result.stdout.fnmatch_lines([
        "*ERROR at setup of test_next*", "The apns-mock server (pid *) exited with signal 9 (SIGKILL)*",
        "*ERROR at teardown of test_next*", "The apns-mock server (pid *) exited with signal 9 (SIGKILL)*",
        ">       apns.pushes()", "E *ServerExitedError: The apns-mock server (pid *) exited with signal 9 (SIGKILL)*",
        "*- apns-mock -*", "The apns-mock server (pid *) exited with signal 9 (SIGKILL)*"])


def test_missing_program(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_any(apns): pass", "--apns-mock-binary", "nowhere/apns-mock")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*/nowhere/apns-mock, which the argument names as the program *, is not a file*"])


def test_arguments_of_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\napns_mock_arguments = --rules strict --environment production\n")
    result = run(pytester, """
        def test_status(apns):
            status = apns.status()
            assert (status["rules"], status["environment"]) == ("strict", "production")
        """)
    result.assert_outcomes(passed=1)


def test_no_server_without_a_test_that_uses_it(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APNS_MOCK_BINARY", "/nowhere")
    # The plugin of pytest-asyncio has a warning of its own.
    result = run(pytester, "def test_other(): pass", "--strict-markers", "-W", "error", "-p", "no:asyncio")
    result.assert_outcomes(passed=1)


def test_running_server_is_used(
    pytester: pytest.Pytester, server: Client, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    source = "def test_send(apns, provider): provider.send(apns.settings, tokens=3); assert apns.pid is None"
    run(pytester, source).assert_outcomes(passed=1)
    assert len(server.pushes()) == 3
    result = run(pytester, source, "-n", "2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["The workers of pytest-xdist would reset each other's pushes*unset the variable*"])
    result = run(pytester, source, "--apns-mock-seed", "7")
    result.stdout.fnmatch_lines(["--apns-mock-seed start a server, but APNS_MOCK_ADMIN names a running one: *"])


def test_stale_variables_of_a_server(
    pytester: pytest.Pytester, server: Client, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    server.stop()
    result = run(pytester, "def test_any(apns): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([
        "The apns-mock server at http://127.0.0.1:* did not respond (*Connection refused): start it, or correct "
        "APNS_MOCK_ADMIN; without that variable each test session starts a server of its own."])


def test_interrupted_run_leaves_no_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import os, signal

        def test_interrupted(apns):
            print(apns.pid)
            os.kill(os.getpid(), signal.SIGINT)
        """)
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-q"], cwd=pytester.path, capture_output=True, text=True, timeout=60)
    (pid,) = [line for line in result.stdout.splitlines() if line.isdigit()]
    assert "KeyboardInterrupt" in result.stdout
    assert not Path(f"/proc/{pid}").exists()


def test_unittest_class_with_the_marker(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import unittest
        import pytest

        @pytest.mark.apns(profile="flaky-503")
        class Case(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def use_server(self, apns):
                self.apns = apns

            def test_profile(self):
                assert self.apns.status()["profile"].startswith("flaky-503")
        """)
    result.assert_outcomes(passed=1)


LOST = """
    import pytest

    @pytest.mark.apns(profile="flaky-503?rate=1", seed=7)
    def test_lost(apns, provider):
        provider.send(apns.settings, tokens=1, retries=0)
        apns.assert_nothing_lost()

    def test_wrong_count(apns, provider):
        provider.send(apns.settings, tokens=1, retries=0)
        assert len(apns.pushes()) == 2, "expected two pushes"

    @pytest.mark.skip
    def test_skipped(apns):
        pass

    def test_good(apns, provider):
        provider.send(apns.settings, tokens=3)
    """


IN_OTHER_PROCESSES = """
    import marshal, os
    from _pytest.runner import runtestprotocol

    def pytest_runtest_protocol(item, nextitem):
        hook, (source, target) = item.config.hook, os.pipe()
        if os.fork() == 0:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            with open(target, "wb") as file:
                marshal.dump([hook.pytest_report_to_serializable(config=item.config, report=one) for one in reports], file)
            os._exit(0)
        os.close(target)
        with open(source, "rb") as file:
            for data in marshal.load(file):
                report = hook.pytest_report_from_serializable(config=item.config, data=data)
                item.ihook.pytest_runtest_logreport(report=report)
        os.wait()
        return True
    """


@pytest.mark.parametrize("conftest, arguments, outcomes", [
    (IN_OTHER_PROCESSES, [], ["passed", "failed"]), ("", ["--setup-only"], ["skipped", "skipped"])])
def test_outcomes_of_tests_in_other_processes_and_of_tests_that_are_only_set_up(
    pytester: pytest.Pytester, conftest: str, arguments: list[str], outcomes: list[str],
) -> None:
    pytester.makeconftest(conftest)
    pytester.makepyfile("""
        def test_good(apns):
            pass

        def test_bad(apns):
            assert apns.pushes(), "expected a push"
        """)
    suite = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    command = [find_program(), "exec", "--report", "report.html", "--", *suite]
    subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=100, check=False)
    report = summary(pytester.path / "report.html")
    assert [test["outcome"] for test in report["tests"]] == outcomes
    assert all("expected a push" in failure["message"] for failure in report["failures"])


def summary(path: Path) -> dict[str, object]:
    return json.loads(path.read_text().split('id="summary">', 1)[1].split("</script>", 1)[0])


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_report(pytester: pytest.Pytester, workers: list[str]) -> None:
    if workers:
        pytest.importorskip("xdist")
    result = run(pytester, LOST, "--apns-mock-report=report.html", *workers)
    result.assert_outcomes(passed=1, failed=2, skipped=1)
    report = summary(pytester.path / "report.html")
    name = "test_report.py"
    # A worker that has not started its server does not record a test that uses none.
    assert {(test["name"], test["outcome"], test["pushes"]) for test in report["tests"]} - {(f"{name}::test_skipped", "skipped", 0)} == {
        (f"{name}::test_lost", "failed", 1), (f"{name}::test_wrong_count", "failed", 1), (f"{name}::test_good", "passed", 3)}
    failures = {failure["name"].split("::")[1]: failure for failure in report["failures"]}
    assert "none lost" in failures["test_lost"]["message"] or "nothing_lost" in failures["test_lost"]["message"]
    assert failures["test_lost"]["nearest"][0]["response"] == "503 ServiceUnavailable"
    assert "expected two pushes" in failures["test_wrong_count"]["message"]
    assert report["lost"]["count"] == 1 and report["pushes"] == 5
    assert "--apns-mock-seed" in report["command"]
    result.stdout.fnmatch_lines(["*apns-mock: report report.html: 2 of * tests failed; 1 push lost*"])


def test_report_with_a_baseline(pytester: pytest.Pytester) -> None:
    run(pytester, LOST, "--apns-mock-report=old.html", "-k", "good")
    run(pytester, LOST, "--apns-mock-report=new.html", "--apns-mock-baseline=old.html")
    found = summary(pytester.path / "new.html")["baseline"]
    assert sorted(name.split("::")[1] for name in found["tests"]["new"]) == ["test_lost", "test_wrong_count"]


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_report_under_exec(pytester: pytest.Pytester, workers: list[str]) -> None:
    if workers:
        pytest.importorskip("xdist")
    pytester.makepyfile(LOST)
    suite = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers]
    command = [find_program(), "exec", "--report", "report.html", "--", *suite]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1, done.stderr
    report = summary(pytester.path / "report.html")
    # A worker that has not started its server does not record a test that uses none.
    outcomes = sorted(test["outcome"] for test in report["tests"] if test["outcome"] != "skipped" or not workers)
    assert outcomes == sorted(["failed", "failed", "passed"] + ([] if workers else ["skipped"]))
    assert report["pushes"] == 5 and len(report["runs"]) == (3 if workers else 1)
    assert report["lost"]["count"] == 1 and report["command"].startswith("apns-mock exec ")
    if workers:
        # The same seed repeats what all workers did.
        assert len({run["seed"] for run in report["runs"][1:]}) == 1
    assert "worst finding: abandoned (1 push): " in done.stderr and "to repeat the run: " in done.stderr


def recorded(pytester: pytest.Pytester, source: str, *arguments: str) -> list[tuple[str, str, str]]:
    """Runs tests under `apns-mock exec`; returns names, outcomes and messages of the recorded tests."""
    pytester.makepyfile(test_it=source)
    suite = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    command = [find_program(), "exec", "--export", "run.ndjson", "--", *suite]
    subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=100, check=False)
    lines = [json.loads(line) for line in (pytester.path / "run.ndjson").read_text().splitlines()]
    return [(line["name"].removeprefix("test_it.py::"), line["outcome"], line["message"] or "")
            for line in lines if line.get("kind") == "test"]


FLAKY = """
    attempts = []

    def test_always(apns):
        assert 0, "never passes"

    def test_flaky(apns, provider):
        attempts.append(1)
        provider.send(apns.settings, tokens=1)
        assert len(attempts) == 2, "passes later"
    """


def test_each_repetition_of_a_test_is_a_test_and_only_the_last_one_counts(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_rerunfailures")
    tests = recorded(pytester, FLAKY, "--reruns=2")
    assert [(name, outcome) for name, outcome, _ in tests] == [
        ("test_always", "skipped"), ("test_always #2", "skipped"), ("test_always #3", "failed"), ("test_flaky", "skipped"),
        ("test_flaky #2", "passed")]
    assert [message.splitlines()[0] for _, _, message in tests[2:4]] == [
        "AssertionError: never passes", "repeated, because it has failed: AssertionError: passes later"]


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_report_with_repetitions(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytest.importorskip("pytest_rerunfailures")
    if workers:
        pytest.importorskip("xdist")
    result = run(pytester, FLAKY, "--apns-mock-report=report.html", "--reruns=1", *workers)
    result.assert_outcomes(passed=1, failed=1)
    report = summary(pytester.path / "report.html")
    found = {(test["name"].split("::")[1], test["outcome"], test["pushes"]) for test in report["tests"]}
    assert found == {
        ("test_always", "skipped", 0), ("test_always #2", "failed", 0), ("test_flaky", "skipped", 1),
        ("test_flaky #2", "passed", 1)}
    assert report["duplicates"]["count"] == 0


def test_subtests_that_fail_fail_their_test(pytester: pytest.Pytester) -> None:
    source = """
        def test_some(apns, subtests):
            for number in range(2):
                with subtests.test(number=number):
                    assert number == 0, "one is wrong"
        """
    for arguments in [[], ["--reruns=0"]]:
        if arguments:
            pytest.importorskip("pytest_rerunfailures")
        ((name, outcome, message),) = recorded(pytester, source, *arguments)
        assert (name, outcome) == ("test_some", "failed") and "one is wrong" in message


def test_messages_of_tests_that_fail_or_are_skipped(pytester: pytest.Pytester) -> None:
    tests = recorded(pytester, """
        import pytest

        def fail():
            assert 0, "in a function"

        def test_fails(apns):

            fail()

        @pytest.mark.skip(reason="not today")
        def test_skipped():
            pass

        @pytest.mark.xfail(reason="known defect")
        def test_expected(apns):
            assert 0

        @pytest.fixture
        def broken():
            yield
            raise ValueError("cannot clean up")

        def test_torn_down(apns, broken):
            pass
        """)
    assert tests == [
        ("test_fails", "failed", "AssertionError: in a function\nassert 0\ntest_it.py:4"),
        ("test_skipped", "skipped", "Skipped: not today"), ("test_expected", "skipped", "known defect"),
        ("test_torn_down", "failed", "ValueError: cannot clean up\ntest_it.py:21")]


def test_last_test_that_fails_at_its_end_is_in_the_report(pytester: pytest.Pytester) -> None:
    result = run(pytester, """
        import pytest

        @pytest.fixture
        def broken():
            yield
            raise ValueError("cannot clean up")

        def test_last(apns, broken):
            pass
        """, "--apns-mock-report=report.html")
    result.assert_outcomes(passed=1, errors=1)
    (failure,) = summary(pytester.path / "report.html")["failures"]
    assert failure["message"].startswith("ValueError: cannot clean up\n")

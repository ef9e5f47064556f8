"""The pytest plugin: the fixtures `apns` and `apns_server`, the marker `apns`, and a section of failure reports."""

from __future__ import annotations

import difflib
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

import pytest

from . import client as clients
from .aio import AsyncClient
from .client import Client
from .errors import APNsMockError, VerificationError
from .runs import Run, write_report

MARKER = "apns(profile=None, seed=None, fail_on_findings=False, fail_on_rejected=False)"
_client_key = pytest.StashKey[Client]()
_run_key = pytest.StashKey[Run]()
_folder_key = pytest.StashKey[Path]()
_seed_key = pytest.StashKey[int]()
_outcome_key = pytest.StashKey["tuple[Optional[str], Optional[str]]"]()
_server_key = pytest.StashKey[Client]()
_test_key = pytest.StashKey["tuple[str, int]"]()


class MarkerError(APNsMockError):
    """A marker has an unknown argument, or a value of the wrong type."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"The marker {MARKER} {problem}")


@dataclass(frozen=True)
class MarkerOptions:
    """The arguments of the markers of one test."""

    profile: Optional[str] = None
    seed: Optional[int] = None
    fail_on_findings: Union[bool, list[str]] = False
    fail_on_rejected: bool = False

    @classmethod
    def of(cls, item: pytest.Item) -> MarkerOptions:
        """Returns the arguments of all `apns` markers of a test; those of the closest marker have precedence.

        Raises MarkerError for an unknown argument or a value of the wrong type.
        """
        arguments: dict[str, Any] = {}
        for marker in reversed(list(item.iter_markers("apns"))):
            if marker.args:
                raise MarkerError(f"has only keyword arguments, and {marker.args[0]!r} has no name")
            arguments.update(marker.kwargs)
        for name in arguments:
            if name not in cls.__dataclass_fields__:
                guess = difflib.get_close_matches(name, cls.__dataclass_fields__, 1)
                raise MarkerError(f"has no argument {name!r}" + (f", did you mean {guess[0]!r}?" if guess else ""))
        options = cls(**arguments)
        options._check_types()
        return options

    def _check_types(self) -> None:
        names = self.fail_on_findings
        if self.profile is not None and not isinstance(self.profile, str):
            raise MarkerError(f"needs a string such as 'flaky-503?rate=0.3' as profile, not {self.profile!r}")
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0):
            raise MarkerError(f"needs a number of at least 0 as seed, not {self.seed!r}")
        is_list = isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names)
        if not isinstance(names, bool) and not is_list:
            raise MarkerError(f"needs True, False or a list of names of findings as fail_on_findings, not {names!r}")
        if not isinstance(self.fail_on_rejected, bool):
            raise MarkerError(f"needs True or False as fail_on_rejected, not {self.fail_on_rejected!r}")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("apns-mock", "apns-mock, a server that replaces Apple's push service in tests")
    group.addoption(
        "--apns-mock-binary", metavar="PROGRAM",
        help="the program apns-mock; by default APNS_MOCK_BINARY, the one of the installed package, or from PATH")
    group.addoption(
        "--apns-mock-seed", metavar="N", type=int,
        help="the seed of the server, to repeat a failed run; markers may override it")
    group.addoption(
        "--apns-mock-export", metavar="DIR",
        help="write the pushes of each failed test to a file in this folder, which `apns-mock view` opens")
    group.addoption(
        "--apns-mock-report", metavar="FILE",
        help="write the report of the session to this file: one HTML file with the failed tests and all pushes")
    group.addoption(
        "--apns-mock-baseline", metavar="FILE",
        help="compare the report with this older report or export: what is new, fixed, unchanged")
    parser.addini("apns_mock_arguments", "further flags of `apns-mock serve`, such as --rules strict", type="args")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}: use the fixture `apns`; activate the fault profile with the seed; fail if the server has findings "
        "about the provider (True for any, or a list of names), or if APNs' rules rejected a push")
    config.pluginmanager.register(_Outcomes(config), "apns-mock-outcomes")
    if config.getoption("--apns-mock-report") and not hasattr(config, "workerinput"):
        config.stash[_folder_key] = Path(tempfile.mkdtemp(prefix="apns-mock-"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Passes a worker of pytest-xdist the folder for the export of its run, and a seed, which is the same for all."""
    if _seed_key not in node.config.stash:
        node.config.stash[_seed_key] = random.randrange(1_000_000)
    node.workerinput["apns_mock_seed"] = node.config.stash[_seed_key]
    folder = node.config.stash.get(_folder_key, None)
    node.workerinput["apns_mock_folder"] = None if folder is None else str(folder)


@pytest.fixture(scope="session")
def apns_server(request: pytest.FixtureRequest) -> Iterator[Client]:
    """The server of this session or xdist worker, which the fixture `apns` resets before each test."""
    stash = request.config.stash
    if _server_key not in stash:
        with _errors_without_traceback():
            stash[_server_key] = _connect(request.config) if _joins(request.config) else _start(request.config)
    if _run_key not in stash:
        stash[_run_key] = _start_run(request.config, stash[_server_key])
        _start_test(request.config)
    server = stash[_server_key]
    yield server
    # The end of the session stops the server, because the last test can still fail, and can be repeated.
    if server._process is not None and server._process.exit_description() is not None:
        with _errors_without_traceback():
            server.stop()


@pytest.fixture
def apns(request: pytest.FixtureRequest, apns_server: Client) -> Client:
    """The server, reset before the test, with the profile and the seed of the marker `apns`."""
    with _errors_without_traceback():
        options = MarkerOptions.of(request.node)
        request.node.stash[_client_key] = apns_server
        apns_server.reset()
        if options.profile is not None or options.seed is not None:
            profile = options.profile or str(apns_server.status()["profile"])
            apns_server.profile(profile, seed=options.seed)
    return apns_server


@pytest.fixture
def apns_async(apns: Client) -> AsyncClient:
    """The same as `apns` with methods to await, for tests of pytest-asyncio and anyio."""
    return AsyncClient(apns)


@pytest.fixture(autouse=True)
def _apns_of_marker(request: pytest.FixtureRequest) -> None:
    """Requests the fixture `apns` for a test that has only the marker."""
    if request.node.get_closest_marker("apns"):
        request.getfixturevalue("apns")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    item.config.stash[_test_key] = (item.nodeid, 1)
    run = item.config.stash.get(_run_key, None)
    if run is None and os.environ.get("APNS_MOCK_RUN") and _joins(item.config):
        try:
            run = item.config.stash[_run_key] = _start_run(item.config, clients.connect())
        except APNsMockError:
            pass  # The fixture reports it, if a test uses it.
    _start_test(item.config)
    result = yield
    _end_test(item.config)
    return result


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    # pytest has torn down the fixtures that an interrupted session left.
    _finish_run(session.config)
    server = session.config.stash.get(_server_key, None)
    if server is not None:
        try:
            server.stop()
        except APNsMockError as error:
            print(f"apns-mock: {error}", file=sys.stderr)
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
    folder = session.config.stash.get(_folder_key, None)
    if folder is None:
        return
    output = session.config.getoption("--apns-mock-report")
    try:
        exports = sorted(folder.glob("*.ndjson"))
        message = "no test used the server, so there is no report"
        if exports:
            verdict = write_report(
                exports, output, baseline=session.config.getoption("--apns-mock-baseline"),
                binary=session.config.getoption("--apns-mock-binary"))
            message = f"report {output}: {verdict}"
    except APNsMockError as error:
        message = str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"\napns-mock: {message}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    client = item.stash.get(_client_key, None)
    if client is not None:
        options = MarkerOptions.of(item)
        with _errors_without_traceback():
            client.check(fail_on_findings=options.fail_on_findings, fail_on_rejected=options.fail_on_rejected)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.excinfo is not None:
        vars(report)["apns_mock_message"] = f"{call.excinfo.exconly()}\n{_location(item, call.excinfo)}"
    client = item.stash.get(_client_key, None)
    if client is not None and report.failed:
        folder = item.config.getoption("--apns-mock-export")
        exported = _export(client, Path(folder), item.nodeid) if folder and report.when == "call" else ""
        report.sections.append(("apns-mock", _describe(client) + exported))
    return report


class _Outcomes:
    """Notes how the present test has ended so far, from its reports: it may run in another process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._has_ended = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.outcome) == "rerun":
            self._repeat_test(report)
            return
        known = self.config.stash.get(_outcome_key, (None, None))[0]
        # A plugin that repeats failed tests reports the same test again. Subtests are reported even before `setup` if a
        # plugin reports a test at its end.
        if report.when == "setup" and self._has_ended:
            self.config.stash[_outcome_key] = (None, None)
            known = None
        self._has_ended = report.when == "teardown"
        # A failure of any phase is a failure of the test.
        if known == "failed" or (known is not None and report.passed):
            return
        if report.when == "call" or not report.passed:
            self.config.stash[_outcome_key] = (report.outcome, _message(report))
        elif report.when == "setup" and self.config.getoption("setuponly", False):
            self.config.stash[_outcome_key] = ("skipped", None)

    def _repeat_test(self, report: pytest.TestReport) -> None:
        """Ends a test that pytest-rerunfailures repeats: only the outcome of the last attempt counts."""
        run = self.config.stash.get(_run_key, None)
        name, attempt = self.config.stash.get(_test_key, ("", 1))
        # Several phases of one attempt can have failed.
        if run is None or attempt > getattr(report, "rerun", attempt) + 1:
            return
        self.config.stash[_outcome_key] = (None, None)
        run.end_test("skipped", f"repeated, because it has failed: {_message(report)}")
        self.config.stash[_test_key] = (name, attempt + 1)
        _start_test(self.config)


def _message(report: pytest.TestReport) -> Optional[str]:
    """Returns why a test has failed or was skipped."""
    if report.passed:
        return None
    message = getattr(report, "apns_mock_message", None) or getattr(report, "wasxfail", None)
    if message is None and isinstance(report.longrepr, tuple):
        message = report.longrepr[2]
    return str(report.longrepr) if message is None else str(message)


def _location(item: pytest.Item, failure: pytest.ExceptionInfo[BaseException]) -> str:
    """Returns the last line of the test's file in the traceback of a failure, or the first line of the test."""
    path, first, _ = item.location
    lines = [entry.lineno for entry in failure.traceback if Path(entry.path) == item.path]
    return f"{path}:{(lines[-1] if lines else first or 0) + 1}"


def _start_run(config: pytest.Config, client: Client) -> Run:
    arguments = list(getattr(config, "workerinput", {}).get("mainargv", [])[1:] or config.invocation_params.args)
    words = ["pytest", *map(str, arguments)]
    if not _joins(config) and not any(word.startswith("--apns-mock-seed") for word in words):
        words += ["--apns-mock-seed", str(client.status()["seed"])]
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return Run(client, shlex.join(words[:1 + len(arguments)]), command=shlex.join(words),
               labels={"worker": worker} if worker else None, joins=_joins(config))


def _start_test(config: pytest.Config) -> None:
    run = config.stash.get(_run_key, None)
    if run is not None:
        name, attempt = config.stash[_test_key]
        run.start_test(name if attempt == 1 else f"{name} #{attempt}")


def _end_test(config: pytest.Config) -> None:
    run = config.stash.get(_run_key, None)
    outcome, message = config.stash.get(_outcome_key, (None, None))
    config.stash[_outcome_key] = (None, None)
    if run is not None:
        # Without an outcome, Ctrl-C or `pytest.exit` has ended the test: neither makes a report.
        run.end_test(outcome or "interrupted", message)


def _finish_run(config: pytest.Config) -> None:
    """Ends the run, and exports it for the report."""
    run = config.stash.get(_run_key, None)
    if run is None:
        return
    _end_test(config)
    run.end()
    folder = config.stash.get(_folder_key, None) or getattr(config, "workerinput", {}).get("apns_mock_folder")
    if folder and run.id:
        try:
            run.export(Path(folder) / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.ndjson")
        except (APNsMockError, OSError) as error:
            print(f"apns-mock: the pushes for the report could not be exported: {error}", file=sys.stderr)


def _describe(client: Client) -> str:
    """Returns the report of the server, or why it cannot be read."""
    try:
        return client.report()
    except APNsMockError as error:
        return str(error)


@contextmanager
def _errors_without_traceback() -> Iterator[None]:
    """Reports an error of the client as its message: a traceback would show only this module."""
    try:
        yield
    except (APNsMockError, VerificationError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _joins(config: pytest.Config) -> bool:
    """Whether the tests use the running server that APNS_MOCK_ADMIN names.

    Under `exec`, each of several workers starts its own server, because they would reset each other's pushes; `exec` adds
    these servers to its report.
    """
    if not os.environ.get("APNS_MOCK_ADMIN"):
        return False
    return not os.environ.get("APNS_MOCK_EXPORTS") or getattr(config, "workerinput", {}).get("workercount", 1) == 1


def _start(config: pytest.Config) -> Client:
    arguments = list(config.getini("apns_mock_arguments"))
    seed = config.getoption("--apns-mock-seed")
    if seed is None and "--seed" not in arguments and not os.environ.get("APNS_MOCK_SEED"):
        seed = getattr(config, "workerinput", {}).get("apns_mock_seed")
    if seed is not None:
        arguments += ["--seed", str(seed)]
    return clients.start(*arguments, binary=config.getoption("--apns-mock-binary"))


def _connect(config: pytest.Config) -> Client:
    """Returns the running server that APNS_MOCK_ADMIN names, unless the configuration needs a server of its own."""
    used = [name for name in ("--apns-mock-binary", "--apns-mock-seed") if config.getoption(name) is not None]
    used += ["apns_mock_arguments"] if config.getini("apns_mock_arguments") else []
    if used:
        raise APNsMockError(
            f"{' and '.join(used)} start a server, but APNS_MOCK_ADMIN names a running one: omit the options, or unset "
            "the variable.")
    if getattr(config, "workerinput", {}).get("workercount", 1) > 1:
        raise APNsMockError(
            "The workers of pytest-xdist would reset each other's pushes on the server that APNS_MOCK_ADMIN names: "
            "unset the variable, so that each worker starts its own server, or run the tests with -n0.")
    return clients.connect()


def _export(client: Client, folder: Path, test: str) -> str:
    """Exports the inbox; returns a line that says where it is, or why it could not be exported."""
    path = folder / (re.sub(r"[^\w.-]+", "_", test) + ".ndjson")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        client.export(path)
    except (APNsMockError, OSError) as error:
        return f"\nThe pushes could not be exported: {error}"
    return f"\nTo inspect the pushes: apns-mock view {path}"

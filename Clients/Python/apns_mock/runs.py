"""Records the tests of a session on a server: which pushes belong to which test, and how it ended."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union
from urllib.parse import quote

from .client import Client
from .errors import APNsMockError
from .server import find_program

# Hides the frames of this module in the tracebacks of pytest.
__tracebackhide__ = True

#: For each label of a run the variables of the usual CI systems.
CI_VARIABLES = {
    "commit": ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT", "CIRCLE_SHA1", "BUILD_SOURCEVERSION"),
    "branch": ("GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "GIT_BRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH"),
    "build": ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_NUMBER", "BUILDKITE_BUILD_NUMBER", "CIRCLE_BUILD_NUM"),
    "job": ("GITHUB_JOB", "CI_JOB_NAME", "JOB_NAME", "CIRCLE_JOB"),
}


class Run:
    """A run of a test suite on a server. Pushes belong to the test that is open alone, or whose scope matches them.

    Under `apns-mock exec` it is the run that `exec` has started and ends. A failure to record never fails a test.
    """

    def __init__(self, client: Client, name: str, *, command: Optional[str] = None,
                 labels: Optional[Mapping[str, str]] = None, joins: bool = True) -> None:
        """Starts a run, or with `joins` that of `exec` if there is one."""
        self.client = client
        self._number: Optional[int] = None
        self._ended = False
        #: The id, such as "r1"; empty if the run could not be recorded.
        self.id = os.environ.get("APNS_MOCK_RUN", "") if joins and os.environ.get("APNS_MOCK_ADMIN") else ""
        self._is_own = not self.id
        if self._is_own:
            body = {"name": name, "command": command, "labels": {**ci_labels(), **(labels or {})}}
            self.id = (self._send("POST", "/runs", body) or {}).get("id", "")

    def start_test(self, name: str, *, scope: Optional[str] = None) -> None:
        """Starts a test, and ends the one before as interrupted if nothing has ended it."""
        if self._number is not None:
            self.end_test("interrupted")
        body = {"name": name, "scope": scope or self.client.scope}
        self._number = (self._send("POST", f"/runs/{quote(self.id)}/tests", body) or {}).get("number")

    def end_test(self, outcome: str, message: Optional[str] = None) -> None:
        """Ends the test as "passed", "failed" or "skipped"."""
        number, self._number = self._number, None
        if number is not None:
            self._send("PATCH", f"/runs/{quote(self.id)}/tests/{number}", {"outcome": outcome, "message": message})

    def end(self, outcome: Optional[str] = None) -> None:
        """Ends the run, unless `exec` will do it. Without an outcome it has failed if a test has."""
        if self._number is not None:
            self.end_test("interrupted")
        if self._is_own and not self._ended:
            self._ended = True
            self._send("PATCH", f"/runs/{quote(self.id)}", {"ended": True, "outcome": outcome})

    def export(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the run and its pushes, also those that resets have removed, to a file for `apns-mock report`."""
        _, body = self.client._send("GET", f"/runs/{quote(self.id)}/report", query=[("format", "ndjson")])
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(body)

    def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        if not self.id and path != "/runs":
            return None
        try:
            return self.client.request(method, path, {name: value for name, value in body.items() if value is not None})
        except APNsMockError:
            # The test itself fails if the server has exited.
            return None


def ci_labels() -> dict[str, str]:
    """Returns the labels of a run from the variables of the usual CI systems."""
    found = {label: next((os.environ[name] for name in names if os.environ.get(name)), None)
             for label, names in CI_VARIABLES.items()}
    return {label: value for label, value in found.items() if value is not None}


def write_report(
    exports: Sequence[Path], output: Union[str, os.PathLike[str]], *, baseline: Optional[str] = None,
    binary: Optional[str] = None,
) -> str:
    """Writes the report of exported runs; returns the result in a sentence.

    Raises APNsMockError if the program cannot write it.
    """
    arguments = [find_program(binary), "report", *map(str, exports), "-o", os.fspath(output)]
    arguments += ["--baseline", baseline] if baseline else []
    result = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        raise APNsMockError(f"The report could not be written: {result.stderr.strip()}")
    return result.stdout.strip()

"""The jobs with a release of the page "In a test run and in CI": their commands, with the built packages as the release."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from debian_root import DebianRoot
from support import ARCHITECTURE, DIST, ROOT, run, served

PAGE = ROOT / "Documentation/InCI.md"
# What the jobs test: the target `test` of a project.
MAKEFILE = "test:\n\tapns-mock send $$(apns-mock token device) --topic com.example.app\n"

# The job for GitHub names the tarball, and the one for GitLab the Debian package, of this architecture.
pytestmark = pytest.mark.skipif(ARCHITECTURE != "x86_64", reason="the jobs of the page are for x86_64")


def job(file: str) -> dict[str, Any]:
    """Returns the job `test` of the page that installs a release and is for this file."""
    for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        if text.startswith(f"# {file}\n") and "MOCK_RELEASE" in text:
            document = yaml.safe_load(text)
            return document.get("jobs", document)["test"]
    raise AssertionError(f"{PAGE.name} has no job with a release for {file}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


def github_step(name: str) -> str:
    return next(step["run"] for step in job(".github/workflows/test.yml")["steps"] if step.get("name") == name)


def github_environment(folder: Path, release: str) -> dict[str, str]:
    (folder / "path").touch()
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "RUNNER_TEMP": str(folder), "GITHUB_PATH": str(folder / "path"),
            "MOCK_RELEASE": release}


def assert_run_and_report(output: str, report: str) -> None:
    """Asserts that the tests have passed with one push, and that the file that the job keeps after a failure is a report of them."""
    assert "1 push: 1 accepted" in output and "warning" not in output
    assert "<title>" in report and "apns-mock" in report


def test_github_installs_a_release_and_runs_the_tests(tmp_path: Path, project: Path) -> None:
    with served(DIST) as release:
        environment = github_environment(tmp_path, release)
        run("bash", "-euo", "pipefail", "-c", github_step("Install apns-mock"), cwd=project, env=environment)
    environment["PATH"] = (tmp_path / "path").read_text().strip() + ":" + environment["PATH"]
    output = run("bash", "-euo", "pipefail", "-c", github_step("Test"), cwd=project, env=environment)
    assert_run_and_report(output, (project / "report.html").read_text())


def test_github_refuses_a_wrong_checksum(tmp_path: Path, project: Path) -> None:
    release = tmp_path / "release"
    release.mkdir()
    (tarball,) = DIST.glob("*.tar.gz")
    shutil.copy(DIST / "SHA256SUMS", release)
    (release / tarball.name).write_bytes(tarball.read_bytes()[:-1])
    with served(release) as url:
        output = run("bash", "-euo", "pipefail", "-c", github_step("Install apns-mock"), cwd=project,
                     env=github_environment(tmp_path, url), status=1)
    assert f"{tarball.name}: FAILED" in output
    assert (tmp_path / "path").read_text() == ""


def test_gitlab_installs_a_release_and_runs_the_tests(debian: DebianRoot, project: Path) -> None:
    lines = [line for part in ("before_script", "script") for line in job(".gitlab-ci.yml")[part]]
    script = "\n".join(lines)
    with served(DIST) as release:
        output = debian.run(
            f"cp -R /project /builds\ncd /builds\nexport MOCK_RELEASE={release}\n{script}\ncat report.html",
            folders={"/project": project})
    assert_run_and_report(*output.split("<!doctype html>"))

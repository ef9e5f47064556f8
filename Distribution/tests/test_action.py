"""The scripts of the GitHub Action, with the files and variables that a runner provides."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support import ARCHITECTURE, DIST, ROOT, TARBALL, VERSION, run, served

SCRIPTS = ROOT / "Distribution/action"
REPOSITORY = "acme/apns-mock"


@dataclass
class Runner:
    """A job on a runner. Steps see the PATH and the environment that earlier steps set."""

    folder: Path
    server: str
    environment: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)

    def step(self, script: str, *, status: int = 0, **inputs: str) -> tuple[str, dict[str, str]]:
        """Runs a script and returns its output and the outputs of the step."""
        files = {name: self.folder / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH")}
        for file in files.values():
            file.write_text("")
        environment = {
            "PATH": ":".join([*self.path, os.environ["PATH"]]), "HOME": str(self.folder), "RUNNER_OS": "Linux",
            "RUNNER_ARCH": {"x86_64": "X64", "aarch64": "ARM64"}[ARCHITECTURE],
            "RUNNER_TEMP": str(self.folder / "temp"),
            "RUNNER_TOOL_CACHE": str(self.folder / "tools"), "GITHUB_SERVER_URL": self.server,
            "GITHUB_REPOSITORY": "other/project", "INPUT_REPOSITORY": REPOSITORY, "INPUT_VERSION": "",
            "INPUT_ARGUMENTS": "", **{name: str(file) for name, file in files.items()}, **self.environment, **inputs,
        }
        output = run("bash", "-c", 'exec "$0"', SCRIPTS / script, env=environment, status=status)
        values = {name: dict(line.split("=", 1) for line in files[name].read_text().splitlines())
                  for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
        self.environment.update(values["GITHUB_ENV"])
        self.path += files["GITHUB_PATH"].read_text().splitlines()
        return output, values["GITHUB_OUTPUT"]

    @property
    def topics(self) -> list[str]:
        """The topics of the pushes in the file that the action uploads."""
        records = map(json.loads, (self.folder / "temp/apns-mock/inbox.ndjson").read_text().splitlines())
        return [record["apns"]["topic"] for record in records if record["kind"] not in ("run", "test")]


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The folder of one release and the URL of a server that has it where GitHub has it."""
    folder = tmp_path / "site" / REPOSITORY / "releases/download" / f"v{VERSION}"
    folder.mkdir(parents=True)
    for name in ("SHA256SUMS", TARBALL.name):
        (folder / name).symlink_to(DIST / name)
    with served(tmp_path / "site") as url:
        yield folder, url


@pytest.fixture
def runner(tmp_path: Path, releases: tuple[Path, str]) -> Iterator[Runner]:
    (tmp_path / "temp").mkdir()
    runner = Runner(tmp_path, releases[1])
    yield runner
    if (tmp_path / "temp/apns-mock/ports.json").exists():
        runner.step("stop")


def send(runner: Runner) -> str:
    """Sends a push as a later step of the job would, which finds the server in the environment."""
    environment = {"PATH": ":".join([*runner.path, os.environ["PATH"]]), **runner.environment}
    return run("bash", "-c", 'apns-mock send "$(apns-mock token device)" --topic com.example.app', env=environment)


def test_installs_the_release_of_the_action(runner: Runner) -> None:
    output, _ = runner.step("install")
    assert f"apns-mock {VERSION} is installed" in output
    assert len(runner.path) == 1


def test_installs_a_cached_release_without_a_download(runner: Runner, releases: tuple[Path, str]) -> None:
    runner.step("install")
    (releases[0] / "SHA256SUMS").unlink()
    runner.step("install", INPUT_VERSION=f"v{VERSION}")


def test_refuses_a_wrong_checksum(runner: Runner, releases: tuple[Path, str]) -> None:
    sums = (releases[0] / "SHA256SUMS").read_text()
    (releases[0] / "SHA256SUMS").unlink()
    wrong = re.sub("^.", lambda first: "1" if first[0] == "0" else "0", sums, flags=re.MULTILINE)
    (releases[0] / "SHA256SUMS").write_text(wrong)
    output, _ = runner.step("install", status=1)
    assert f"::error::the checksum of {TARBALL.name} differs from SHA256SUMS" in output
    assert not (runner.folder / "tools").exists()


def test_names_a_release_without_this_architecture(runner: Runner, releases: tuple[Path, str]) -> None:
    (releases[0] / TARBALL.name).unlink()
    output, _ = runner.step("install", status=1)
    assert "::error::cannot download" in output and TARBALL.name in output


@pytest.mark.parametrize(("variable", "value"), [("RUNNER_OS", "macOS"), ("RUNNER_ARCH", "X86")])
def test_names_what_is_not_supported(runner: Runner, variable: str, value: str) -> None:
    output, _ = runner.step("install", status=1, **{variable: value})
    assert re.search(f"::error::apns-mock has .*{value}.* build from source", output)


def test_starts_a_server_for_later_steps_and_keeps_its_inbox(runner: Runner) -> None:
    runner.step("install")
    _, outputs = runner.step("start", INPUT_ARGUMENTS="--profile=flaky-503?rate=0\n\n--seed=7\n")
    assert outputs["apns"] == runner.environment["APNS_MOCK_APNS"]
    assert Path(outputs["ca"]).read_text().startswith("-----BEGIN CERTIFICATE-----")
    assert Path(outputs["key"]).exists() and outputs["key-id"] and outputs["team-id"]
    assert json.loads(Path(outputs["port-file"]).read_text())["seed"] == 7
    assert send(runner).startswith("200")
    output, _ = runner.step("stop")
    assert "ended with 1 pushes" in output
    assert runner.topics == ["com.example.app"]


def test_start_and_stop_work_again(runner: Runner) -> None:
    runner.step("install")
    runner.step("start")
    output, _ = runner.step("start", status=1)
    assert "::error::this job has a running apns-mock already" in output
    runner.step("stop")
    runner.step("start")
    assert send(runner).startswith("200")


def test_masks_a_generated_admin_token(runner: Runner) -> None:
    runner.step("install")
    output, _ = runner.step("start", INPUT_ARGUMENTS="--admin-token=auto")
    assert f"::add-mask::{runner.environment['APNS_MOCK_ADMIN_TOKEN']}\n" in output
    assert send(runner).startswith("200")


def test_shows_why_a_server_does_not_start(runner: Runner) -> None:
    runner.step("install")
    output, _ = runner.step("start", status=1, INPUT_ARGUMENTS="--profile=no-such-profile")
    assert "no-such-profile" in output and "::error::apns-mock did not start" in output


def test_stop_without_a_server_is_a_warning(runner: Runner) -> None:
    output, _ = runner.step("stop")
    assert "::warning::there is no server to stop" in output


def test_runs_a_command_and_keeps_the_inbox_if_it_fails(runner: Runner) -> None:
    runner.step("install")
    command = 'apns-mock send "$(apns-mock token device)" --topic com.acme.app\nfalse\necho not reached'
    output, _ = runner.step("run", status=1, INPUT_RUN=command, INPUT_ARGUMENTS="--seed=7")
    assert "200 apns-id" in output and "not reached" not in output.split("to repeat the run")[0]
    assert runner.topics == ["com.acme.app"]


def test_every_step_of_the_action_is_a_tested_script() -> None:
    commands = re.findall(r"^ *run: (.*)$", (ROOT / "action.yml").read_text(), re.MULTILINE)
    names = ["install", "start", "run", "stop"]
    assert commands == [f"'\"$GITHUB_ACTION_PATH/Distribution/action/{name}\"'" for name in names]
    assert sorted(path.name for path in SCRIPTS.iterdir()) == sorted(names)


def test_actions_are_pinned_to_commits() -> None:
    for path in [ROOT / "action.yml", *(ROOT / ".github/workflows").iterdir()]:
        for reference in re.findall(r"uses: (actions/.*)", path.read_text()):
            pinned = re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", reference)
            assert pinned, f"{path.name}: {reference}"

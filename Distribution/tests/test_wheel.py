"""The Python wheel: from `pip install` in a new environment to an accepted push."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from support import DIST, SEND_ONE_PUSH, VERSION, run

# What a user writes. The push is sent by the program, so that no HTTP/2 library is needed.
SUITE = """
    import subprocess

    import apns_mock
    import pytest


    @pytest.mark.apns(profile="healthy", seed=7, fail_on_findings=True)
    def test_a_push_is_accepted(apns):
        subprocess.run(
            ["apns-mock", "send", apns_mock.device_token(), "--topic", apns.settings.topic, "--apns",
             f"{apns.settings.host}:{apns.settings.port}", "--certs", str(apns.settings.ca).rpartition("/")[0]],
            check=True)
        apns.wait(count=1, accepted=True)
        apns.assert_nothing_lost()
    """


@pytest.fixture(scope="module")
def wheel() -> Path:
    wheels = list(DIST.glob(f"apns_mock-{VERSION}-py3-none-*.whl"))
    assert len(wheels) == 1, wheels
    return wheels[0]


def test_from_pip_install_to_an_accepted_push_in_ten_seconds(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv/bin"
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path)}
    began = time.monotonic()
    run(programs / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel, env=environment)
    output = run(
        "bash", "-euc", f"apns-mock version; {SEND_ONE_PUSH}", programs / "apns-mock", env=environment, cwd=tmp_path)
    elapsed = time.monotonic() - began
    assert f"apns-mock {VERSION}\n" in output and "1 push: 1 accepted" in output
    print(f"pip install to the first accepted push: {elapsed:.1f} s")
    assert elapsed <= 10


def test_the_pytest_plugin_runs_a_suite(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv/bin"
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "pytest==9.2.0", timeout=120)
    run(*pip, "--no-index", "--no-deps", wheel)
    (tmp_path / "test_suite.py").write_text(textwrap.dedent(SUITE))
    environment = {**os.environ, "PATH": f"{programs}:/usr/bin:/bin"}
    output = run(programs / "python", "-m", "pytest", "-q", "test_suite.py", cwd=tmp_path, env=environment)
    assert "1 passed" in output

"""The examples run as their README says."""

import shutil
import sys

from support import ROOT
from support.server import run

EXAMPLES = ROOT / "Examples"


def test_the_tests_of_the_python_provider_pass(binary, certs, tmp_path):
    folder = shutil.copytree(EXAMPLES / "python", tmp_path / "python")
    done = run(
        binary, "exec", "--certs", certs, "--", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_the_python_provider_sends_a_push(binary, certs):
    done = run(binary, "exec", "--certs", certs, "--fail-on-findings", "all", "--",
               sys.executable, EXAMPLES / "python" / "provider.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("200 ")


def test_the_python_provider_retries_a_503(binary, certs):
    done = run(binary, "exec", "--certs", certs, "--profile", "flaky-503?rate=1", "--",
               sys.executable, EXAMPLES / "python" / "provider.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("200 ") and "2 pushes: 1 accepted, 1 faulted" in done.stderr

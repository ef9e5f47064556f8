"""The Python example as a program. `make examples` runs the suites of all examples."""

import sys

from support import ROOT
from support.server import run

EXAMPLES = ROOT / "Examples"


def test_the_python_provider_sends_a_push(binary, certs):
    done = run(binary, "exec", "--certs", certs, "--fail-on-findings", "all", "--",
               sys.executable, EXAMPLES / "python" / "provider.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("200 ")


def test_the_python_provider_retries_a_503(binary, certs):
    done = run(binary, "exec", "--certs", certs, "--profile", "flaky-503?rate=1", "--",
               sys.executable, EXAMPLES / "python" / "provider.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("200 ") and "2 pushes: 1 accepted, 1 rejected; 1 faulted" in done.stderr

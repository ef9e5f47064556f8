"""Paths of the packages, and functions that run programs with a time limit."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DIST = ROOT / ".build/dist"
VERSION = (ROOT / "VERSION").read_text().strip()
ARCHITECTURE = platform.machine()
FOLDER = f"apns-mock-{VERSION}-linux-{ARCHITECTURE}"
TARBALL = DIST / f"{FOLDER}.tar.gz"
BILL_OF_MATERIALS = DIST / f"{FOLDER}.cdx.json"


def run(
    *command: str | Path, timeout: float = 60, cwd: Path | None = None, env: Mapping[str, str] | None = None,
    status: int = 0,
) -> str:
    """Runs a program in a process group of its own and returns its output, both streams.

    Ends the group if the time limit is exceeded, and fails if the exit status is another than expected.
    """
    with subprocess.Popen(
        [str(argument) for argument in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            print(output)
            raise
    assert process.returncode == status, f"{command_line(command)}: exit status {process.returncode}\n{output}"
    return output


def command_line(command: Sequence[str | Path]) -> str:
    """Returns the command for a message, shortened."""
    text = " ".join(str(argument) for argument in command)
    return text if len(text) <= 200 else text[:200] + " …"


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves the files of a folder without logging."""

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serves a folder on a free port, and gives the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def needed_libraries(program: Path) -> set[str]:
    """Returns the names of the shared libraries that are loaded with the program, without versions."""
    lines = run("ldd", program).splitlines()
    names = {line.split()[0].rpartition("/")[2].partition(".so")[0] for line in lines}
    return names - {"linux-vdso", "ld-linux-x86-64", "ld-linux-aarch64"}


# Sends a push to a server of its own and checks that it is in the inbox. The argument is the program.
SEND_ONE_PUSH = """
"$0" exec -- sh -euc '
  "$0" send "$("$0" token device)" --topic com.example.app
  test "$("$0" wait --count 1 --timeout 5s --json | wc -l)" -ge 1
' "$0"
"""

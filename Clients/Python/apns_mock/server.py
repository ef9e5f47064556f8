"""Finds the program apns-mock and runs it as a child process."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import signal
import site
import subprocess
import sysconfig
import tempfile
import time
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from .errors import ProgramError, ServerExitedError, StartError

# Hides the frames of this module in the tracebacks of pytest.
__tracebackhide__ = True

PROGRAM = "apns-mock"
#: Seconds between two checks whether the server is ready.
POLL_INTERVAL = 0.01
#: Seconds that a server may take to shut down before it is killed. Its own limit for open streams is 5 seconds.
SHUTDOWN_TIMEOUT = 15.0
#: The number of lines of the server's output that an error quotes.
MAX_LINES = 10
#: Values of `e_machine` in the header of an ELF file.
ELF_MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
#: Names that operating systems use for the same architecture.
MACHINE_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}


def find_program(binary: Optional[Union[str, os.PathLike[str]]] = None) -> str:
    """Returns the path of the program: `binary`, else APNS_MOCK_BINARY, else the one of this package, else from PATH.

    Raises ProgramError if `binary` or APNS_MOCK_BINARY names no file, or if no program was found.
    """
    origin, named = "the argument", binary
    if named is None:
        origin, named = "APNS_MOCK_BINARY", os.environ.get("APNS_MOCK_BINARY") or None
    if named is not None:
        path = os.path.abspath(named)
        if not os.path.isfile(path):
            raise ProgramError(
                f"{path}, which {origin} names as the program apns-mock, is not a file: correct the path, "
                "or omit it to use the program of this package or of PATH.")
        return path
    folders = list(_script_folders())
    for folder in folders:
        path = os.path.join(folder, PROGRAM)
        if os.path.isfile(path):
            return path
    found = shutil.which(PROGRAM)
    if found is None:
        raise ProgramError(
            f"The program apns-mock was found neither in {' nor in '.join(folders)} nor in PATH: install the wheel "
            "that contains it, add its folder to PATH, or set APNS_MOCK_BINARY to its path.")
    return os.path.abspath(found)


def _script_folders() -> Iterable[str]:
    """Returns the folders into which pip may have installed the program: those of the environment, of the user, and
    of `pip install --target`.
    """
    target = Path(__file__).parents[1] / "bin"
    folders = [sysconfig.get_path("scripts"), os.path.join(site.getuserbase(), "bin"), str(target)]
    return dict.fromkeys(folders)


class ServerProcess:
    """A server on free loopback ports, with certificates of its own in a temporary folder.

    The server also exits when its standard input is closed, so it does not outlive the process that started it.
    """

    def __init__(self, program: str, arguments: Sequence[str] = (), *, timeout: float = 30.0) -> None:
        """Starts `program` and waits until it is ready.

        `arguments` are further flags of `apns-mock serve`; `timeout` is in seconds. Raises ProgramError or StartError.
        """
        self.program = program
        folder = Path(tempfile.mkdtemp(prefix="apns-mock-"))
        self._errors = folder / "stderr.txt"
        port_file = folder / "ports.json"
        command = [
            program, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", str(folder),
            "--port-file", str(port_file), "--exit-on-stdin-close", *arguments]
        try:
            with open(self._errors, "wb") as errors:
                # A session of its own keeps Ctrl-C of a terminal away from the server until the tests have ended.
                self._process = subprocess.Popen(
                    command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors,
                    start_new_session=True)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            raise ProgramError(_describe_failed_execution(program, error)) from error
        self._stop = weakref.finalize(self, _stop, self._process, folder, self._errors, os.getpid())
        try:
            #: The content of the port file.
            self.ports: dict[str, Any] = self._wait_until_ready(port_file, timeout)
        except BaseException:
            self._stop()
            raise

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    def stop(self) -> None:
        """Shuts the server down and removes its temporary folder. Does nothing the second time.

        Raises ServerExitedError if the server had exited before, or did not shut down properly.
        """
        failure = self._stop()
        if failure is not None:
            raise ServerExitedError(failure)

    def exit_description(self, timeout: float = 0.0) -> Optional[str]:
        """Returns a sentence about how the server ended and its last output, or None if it is still running.

        Waits up to `timeout` seconds for the end of a server that has closed its connections.
        """
        if not self._stop.alive:
            return f"The apns-mock server (pid {self.pid}) was stopped before this call: start another one."
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return _describe_exit(self.pid, status, self._errors)

    def _wait_until_ready(self, port_file: Path, timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        while not port_file.exists():
            status = self._process.poll()
            if status is not None:
                raise StartError(self._describe_failed_start(status))
            if time.monotonic() > deadline:
                raise StartError(
                    f"The server {self.program} was not ready after {timeout:g} seconds; raise the timeout, or find "
                    f"the cause in its output{_last_output(self._errors)}")
            time.sleep(POLL_INTERVAL)
        return json.loads(port_file.read_text())

    def _describe_failed_start(self, status: int) -> str:
        causes = {
            2: "because of an error in its configuration; correct the flag or the APNS_MOCK_ variable that it names",
            6: "because a port is in use; use port 0, or stop the program that uses it",
        }
        cause = causes.get(status, f"and exited with {_describe_status(status)}")
        return f"The server {self.program} did not start {cause}{_last_output(self._errors, 'error:')}"



def _stop(process: subprocess.Popen[bytes], folder: Path, errors: Path, owner: int) -> Optional[str]:
    """Stops the server and removes its folder; returns a sentence about how it ended, or None if it ended properly."""
    # After a fork, the child process must not stop the server of its parent.
    if os.getpid() != owner:
        return None
    process.terminate()
    try:
        status = process.wait(SHUTDOWN_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    if process.stdin is not None:
        process.stdin.close()
    failure = None if status == 0 else _describe_exit(process.pid, status, errors)
    shutil.rmtree(folder, ignore_errors=True)
    return failure


def _describe_exit(pid: int, status: int, errors: Path) -> str:
    return f"The apns-mock server (pid {pid}) exited with {_describe_status(status)}{_last_output(errors)}"


def _last_output(errors: Path, first: str = "") -> str:
    """Returns the end of a sentence with the last lines that the server wrote to standard error: those from the last
    line that begins with `first`, if there is one.
    """
    lines = errors.read_text(errors="replace").strip().splitlines()[-MAX_LINES:]
    starts = [index for index, line in enumerate(lines) if line.startswith(first)] if first else []
    output = lines[starts[-1]:] if starts else lines
    return "".join([":", *(f"\n  {line}" for line in output)]) if output else " (it wrote no diagnostics)."


def _describe_status(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


def _describe_failed_execution(program: str, error: OSError) -> str:
    remedy = "or set APNS_MOCK_BINARY to a program built on this machine."
    if isinstance(error, PermissionError):
        return f"{program} is not executable: run `chmod +x {program}`, {remedy}"
    machine = platform.machine().lower()
    machine = MACHINE_ALIASES.get(machine, machine)
    if error.errno == errno.ENOEXEC:
        built_for = _elf_machine(program)
        what = f"is a Linux program for {built_for}" if built_for else "is not a Linux program"
        return (f"{program} {what} and cannot run on this machine ({platform.system()} {machine}): install the wheel "
                f"for {machine}, {remedy}")
    if isinstance(error, FileNotFoundError):
        return (f"{program} needs glibc, whose dynamic linker is missing on this machine: use a Linux distribution "
                f"with glibc, {remedy}")
    return f"{program} cannot be executed ({error.strerror}): install the wheel for {machine}, {remedy}"


def _elf_machine(program: str) -> Optional[str]:
    """Returns the architecture that an ELF file was built for, or None for other files."""
    with open(program, "rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[:4] != b"\x7fELF":
        return None
    machine = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    return ELF_MACHINES.get(machine, f"architecture {machine}")

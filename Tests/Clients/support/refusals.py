"""Runs `serve` with settings that it must refuse."""

import re
import subprocess

from support.server import clean_environment, privilege_drop, wait_until

USAGE = 2


def run_serve(binary, certs, folder, *flags, prefix=()):
    """Runs `serve` as an ordinary user until it ends. It must not become ready. `folder`: a temporary one; `prefix`: a command
    that runs it.
    """
    ports, log = folder / "ports.json", folder / "log"
    with open(log, "wb") as stderr, subprocess.Popen(
        [*prefix, *privilege_drop(), str(binary), "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", str(certs),
         "--port-file", str(ports), *map(str, flags)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, env=clean_environment(),
            cwd=folder) as process:
        try:
            wait_until(lambda: process.poll() is not None or ports.exists(), "the program neither ends nor is ready", 20)
            assert not ports.exists(), f"the server has started:\n{log.read_text()}"
        finally:
            process.kill()
        output = process.communicate(timeout=20)[0]
    return subprocess.CompletedProcess(process.args, process.returncode, output, log.read_text())


def refusal(done):
    """Returns the sentence with which the program refused its settings."""
    assert done.returncode == USAGE, (done.returncode, done.stderr[-2000:])
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    assert "Fatal" not in done.stderr and done.stdout == ""
    return lines[0]


def names_repair(message):
    """Returns whether the sentence names a repair."""
    return re.search(r": (stop|choose|use|the folder must|.*(remove|free|move|restore))", message) is not None

"""Completion in real shells: commands, flags, and the values of arguments."""

import os
import pty
import re
import shutil
import subprocess
import time

import pytest

from support.selection import some
from support.server import clean_environment, run

BASH = r"""
source "$SCRIPT"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
_apns-mock apns-mock "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""

# zsh completes in an interactive shell only, and lists the candidates here instead of inserting them.
ZSH = r"""
PS1='' PS2='' RPS1=''
autoload -Uz compinit && compinit -u -D
source "$SCRIPT"
compdef _apns-mock apns-mock
LISTMAX=0
zstyle ':completion:*' list-prompt ''
bindkey '^I' list-choices
stty -echo cols 200 rows 500
print READ''Y
"""

FISH = "source $SCRIPT; stty cols 200 rows 50; echo READ''Y\n"


def completed(words, expected, shell, binary, script, folder):
    """Returns what the shell completes after these words; the last one is being typed."""
    environment = clean_environment(
        SCRIPT=str(script), PATH=f"{binary.parent}:{os.environ['PATH']}", TERM="xterm", HOME=str(folder))
    line = " ".join(words)
    if shell == "zsh":
        return shown(["zsh", "-f", "-i"], ZSH, line + "\t", expected, environment, folder)
    if shell == "fish":
        return shown(["fish", "--no-config", "-i"], FISH, line + "\t", expected, environment, folder)
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", *words], env=environment, cwd=folder, capture_output=True, text=True,
        timeout=20)
    return [line.strip() for line in done.stdout.splitlines()]


def shown(command, setup, keys, expected, environment, folder):
    """Returns the words that an interactive shell shows after these keys, among them the typed ones. Waits for the expected words."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execve(shutil.which(command[0]), command, environment)
    os.set_blocking(terminal, False)

    def read(is_end):
        text, end, last = "", time.monotonic() + 20, time.monotonic()
        while time.monotonic() < end and not is_end(text, time.monotonic() - last):
            try:
                text += os.read(terminal, 65536).decode(errors="replace")
                last = time.monotonic()
            except BlockingIOError:
                time.sleep(0.02)
        return text

    try:
        os.write(terminal, setup.replace("\n", "\r").encode())
        read(lambda text, silence: "READY" in text and silence > 0.2)
        os.write(terminal, keys.encode())
        text = read(lambda text, silence: all(word in text for word in expected) and silence > 0.3)
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]", " ", text).split()


SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture(params=SHELLS)
def complete(request, binary, tmp_path):
    """Completes the words of a command line in one of the shells."""
    shell = request.param
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / f"completion.{shell}"
    script.write_text(run(binary, "completion", shell).stdout)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("mine.yaml", "notes.txt", "run.ndjson"):
        (folder / name).write_text("")
    (folder / "certs").mkdir()
    return lambda words, expected: completed(["apns-mock", *words], expected, shell, binary, script, folder)


VALUES = [
    (["hea"], ["healthcheck"], ["serve"]),
    (["rule", ""], ["add", "ls", "rm", "explain"], ["serve"]),
    (["serve", "--max-"], ["--max-records", "--max-bytes", "--max-devices"], ["--rules"]),
    (["serve", "--rules", ""], ["apple", "strict", "lenient"], ["mine.yaml"]),
    (["serve", "--profile", "flaky"], ["flaky-503"], ["healthy", "mine.yaml"]),
    (["profile", "use", ""], ["flaky-503", "mine.yaml"], ["notes.txt"]),
    (["exec", "--fail-on-findings", "after"], ["after-goaway"], ["all"]),
    (["env", "--library", "aio"], ["aioapns"], ["node-apn"]),
    (["env", "--shell", ""], ["bash", "fish", "dotenv", "json"], ["mine.yaml"]),
    (["export", "--format", ""], ["ndjson", "json", "har", "csv"], ["mine.yaml"]),
    (["send", "00", "--push-type", "back"], ["background"], ["alert"]),
    (["view", "ru"], ["run.ndjson"], ["notes.txt"]),
    (["profile", "lint", "m"], ["mine.yaml"], ["notes.txt"]),
]


# Each value in one of the shells at least, or in all of them if all tests run.
@pytest.mark.parametrize(
    ("complete", "words", "expected", "absent"),
    [(shell, *case) for number, shell in enumerate(SHELLS) for case in some(VALUES, 5, number)], indirect=["complete"],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_values_are_completed(complete, words, expected, absent):
    offered = complete(words, expected)
    assert all(word in offered for word in expected), offered
    assert not any(word in offered for word in absent), offered

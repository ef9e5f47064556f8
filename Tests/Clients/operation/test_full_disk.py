"""Full disks and blocked pipes: each command reports a write error in one line and with its exit code, a file is
never replaced by an incomplete one, and a server whose log cannot be written continues to serve.
"""

import fcntl
import json
import os
import pathlib
import re
import resource
import secrets
import select
import socket
import subprocess
import sys
import time

import pytest

from support.server import Server, clean_environment, run, wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(120)

FULL = pathlib.Path("/dev/full")
full_device = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
prlimit = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux changes the limits of another process")


def push(server, count=1):
    """Sends this many pushes, which are accepted but would not be displayed."""
    with connect(server) as wire:
        for _ in range(count):
            assert wire.push(push_headers(server, secrets.token_hex(32)), b"{}").status == 200


@pytest.fixture(scope="module")
def filled(server):
    """The shared server with some pushes in its inbox."""
    push(server, 20)
    return server


def in_shell(text, server, **more):
    """Runs `text` in a shell, with the program as `$mock` and the options for the server as `$at`."""
    variables = clean_environment(mock=str(server.binary), at=f"--port-file={server.port_file}", **more)
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, env=variables, timeout=60)


# Standard output

@full_device
@pytest.mark.parametrize("command", [
    "ls $at", "ls --json $at", "export $at", "get 1 $at", "findings $at", "profile ls $at", "profile show chaos-mix $at",
    "token provider $at", "clock show $at", "verify - $at <<< '{expect: []}'", "verify --json - $at <<< '{expect: []}'",
    "version", "openapi", "token device", "--help", "profile schema",
])
def test_unwritten_data_is_an_error(filled, command):
    """`apns-mock export > file` must not leave an incomplete file with exit code 0."""
    done = in_shell(f'"$mock" {command} > /dev/full', filled)
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == "error: cannot write to standard output: No space left on device; free space, or redirect the output"


@full_device
def test_another_error_keeps_its_exit_code(filled):
    done = in_shell('"$mock" verify - $at > /dev/full <<< \'{expect: [{match: "topic:com.example.unused"}]}\'', filled)
    assert done.returncode == 1 and "standard output" in done.stderr
    done = in_shell('"$mock" wait topic:com.example.unused --timeout 10ms $at > /dev/full', filled)
    assert done.returncode == 3


@pytest.mark.parametrize("command", ["export", "ls"])
def test_a_closed_reader_is_no_error(filled, command):
    done = in_shell(f'"$mock" {command} $at | head -1 > /dev/null; exit ${{PIPESTATUS[0]}}', filled)
    assert done.returncode == 0 and "error" not in done.stderr


def test_a_nonblocking_pipe_gets_all_data(binary):
    """The pipe may be non-blocking because another program shares it; its reader is slow."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with open(ours, "rb") as pipe, subprocess.Popen([str(binary), "openapi"], stdout=theirs, env=clean_environment()) as process:
        os.close(theirs)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)  # it has filled the pipe and waits
        output = pipe.read()
        assert process.wait(30) == 0
    assert json.loads(output)["openapi"]


def test_a_closed_standard_output_is_an_error(filled):
    """The connection to the server must not get the closed descriptor's number, and the data with it."""
    done = in_shell('"$mock" export $at >&-', filled)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cannot write to standard output: Bad file descriptor" in done.stderr


@pytest.mark.parametrize("streams", ["2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_diagnostics_that_cannot_be_written_change_nothing(filled, streams):
    if "full" in streams and not FULL.exists():
        pytest.skip("no /dev/full")
    assert in_shell(f'"$mock" nonsense {streams}', filled).returncode == 2
    assert in_shell(f'"$mock" rm topic:com.example.unused $at {streams}', filled).returncode == (1 if ">&- " in streams else 0)


# Files


@pytest.fixture
def crowded(binary, tmp_path):
    """The program in a shell that may write at most 1 KiB (two blocks) to a file."""
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\ntrap "" XFSZ\nulimit -f 2\nexec "{binary}" "$@"\n')
    shell.chmod(0o755)
    return shell


@pytest.mark.parametrize("command", ["export --output", "verify - --junit"])
def test_an_existing_file_stays_complete(filled, crowded, tmp_path, command):
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "file"
    path.write_text("what was there before\n")
    expectations = json.dumps({"expect": [
        {"name": f"{number} " * 40, "match": f"topic:com.example.unused{number}"} for number in range(50)]})
    done = run(crowded, *command.split(), path, "--port-file", filled.port_file, input=expectations)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"error: {path}: cannot be written: File too large; free space on that file system, or name another file")
    assert path.read_text() == "what was there before\n" and list(folder.iterdir()) == [path]


@pytest.mark.parametrize(("place", "reason"), [
    ("", "Is a directory"), ("/nowhere/file", "No such file"), ("/file/file", "Not a directory"),
    pytest.param("full", "No space left", marks=full_device),
])
@pytest.mark.parametrize("command", ["export --output", "verify - --junit"])
def test_an_invalid_path_is_reported_with_its_correction(filled, tmp_path, command, place, reason):
    (tmp_path / "file").touch()
    path = FULL if place == "full" else f"{tmp_path}{place}"
    done = run(filled.binary, *command.split(), path, "--port-file", filled.port_file, input="{expect: []}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert f"{path}: cannot be written: {reason}" in done.stderr and "; " in done.stderr


@pytest.fixture
def full_disk(binary, tmp_path):
    """The program in a shell that may not write a single byte to a file. As on a full disk, files can be created
    but stay empty; pipes work.
    """
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\ntrap "" XFSZ\nulimit -f 0\nexec "{binary}" "$@"\n')
    shell.chmod(0o755)
    return shell


def test_a_full_disk_for_the_port_file_is_reported(full_disk, certs, server, tmp_path):
    """`server` has created the certificates."""
    folder = tmp_path / "run"
    folder.mkdir()
    done = run(full_disk, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, "--port-file",
               folder / "ports.json")
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "ports.json" in last and "too large" in last, done.stderr
    assert list(folder.iterdir()) == [], "half a file is left"


def test_a_full_disk_for_the_certificates_is_reported(full_disk, tmp_path):
    done = run(full_disk, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", tmp_path / "certs")
    assert done.returncode in (1, 2), done.stderr
    assert str(tmp_path / "certs") in done.stderr and "too large" in done.stderr, done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.parametrize("place", ["file/ports.json", "nowhere/ports.json", "."])
def test_an_invalid_port_file_is_an_error_at_the_start(binary, certs, server, tmp_path, place):
    (tmp_path / "file").touch()
    done = run(binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", server.certs,
               "--port-file", tmp_path / place)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2 and last.startswith("error: --port-file: ") and "cannot be written" in last, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("command", ["certs", "serve --apns 127.0.0.1:0 --admin 127.0.0.1:0"])
def test_certificates_that_cannot_be_created_are_an_error(binary, tmp_path, command):
    (tmp_path / "file").touch()
    done = run(binary, *command.split(), "--certs", tmp_path / "file" / "certs")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert str(tmp_path / "file") in done.stderr and "Not a directory" in done.stderr


def test_a_key_that_cannot_be_stored_leaves_the_list_unchanged(full_disk, binary, tmp_path):
    folder = tmp_path / "certs"
    assert run(binary, "certs", "--certs", folder).returncode == 0
    listed = folder / "provider.yaml"
    before = listed.read_bytes()
    key = folder / "AuthKey_MOCKKEY001.p8"
    done = run(full_disk, "key", "add", key, "--key-id", "ABCDEFGHIJ", "--team-id", "ABCDEFGHIJ", "--certs", folder,
               environment={"APNS_MOCK_ADMIN": "127.0.0.1:1"})
    assert done.returncode == 2 and "File too large" in done.stderr and "free space on that file system" in done.stderr, done.stderr
    assert listed.read_bytes() == before and not list(folder.glob("*.tmp"))


@prlimit
def test_an_inbox_that_cannot_be_written_is_reported_with_its_count(binary, certs, tmp_path):
    """The disk is full when the server ends: exit code 1, and the existing file stays unchanged."""
    folder = tmp_path / "out"
    folder.mkdir()
    export = folder / "inbox.ndjson"
    export.write_text("what was there before\n")
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\ntrap "" XFSZ\nexec "{binary}" "$@"\n')
    shell.chmod(0o755)
    server = Server(shell, certs, "--store", "memory", "--export-on-exit", export)
    try:
        push(server, 30)
        limit = len(server.log_path.read_bytes()) + 8192  # allows further log lines
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        assert server.stop() == 1
        last = server.log().splitlines()[-1]
        assert last == f"error: --export-on-exit: {export}: cannot be written: File too large; the inbox (30 pushes) is lost"
    finally:
        server.kill()
    assert export.read_text() == "what was there before\n" and list(folder.iterdir()) == [export]


@pytest.fixture
def small_disk(tmp_path):
    """A separate file system of half a mebibyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True).returncode != 0:
        pytest.skip("mounting a file system is for root, and not even for root everywhere")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_fills_while_the_server_runs(binary, certs, small_disk, tmp_path):
    """The log and the export are on the full disk: the server continues to serve, and at its end reports the loss
    on the stream that still works.
    """
    log, export = small_disk / "log", small_disk / "inbox.ndjson"
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\nexec "{binary}" "$@" 2>"{log}"\n')
    shell.chmod(0o755)
    server = Server(shell, certs, "--export-on-exit", export)
    try:
        push(server)
        with open(small_disk / "ballast", "wb", buffering=0) as ballast, pytest.raises(OSError):
            while True:
                ballast.write(bytes(4096))
        push(server, 100)
        assert server.api("GET", "/status")["inbox"]["last_seq"] == 101
        assert server.stop() == 1
    finally:
        server.kill()
    assert sorted(path.name for path in small_disk.iterdir()) == ["ballast", "log"]


# Logs without a reader


@full_device
def test_logs_that_cannot_be_written_do_not_stop_the_server(binary, certs, tmp_path, device):
    """Both streams are /dev/full: the server serves and exits with 0."""
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\nexec "{binary}" "$@" >/dev/full 2>/dev/full\n')
    shell.chmod(0o755)
    server = Server(shell, certs, "--log-level", "debug")
    try:
        for _ in range(20):
            with connect(server) as wire:
                assert wire.push(push_headers(server, device)).status == 200
        assert server.stop() == 0
    finally:
        server.kill()


@pytest.fixture
def unread_log(binary, certs, tmp_path):
    """A server whose standard error is an unread pipe of 8 KiB, as test runners often leave it, and the pipe's
    other end.
    """
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 8192)
    shell = tmp_path / "apns-mock"
    shell.write_text(f'#!/bin/sh\nexec "{binary}" "$@" 2>"{fifo}"\n')
    shell.chmod(0o755)
    server = Server(shell, certs, "--log-level", "debug")
    try:
        yield server, reading
    finally:
        server.kill()
        os.close(reading)


small_pipes = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has pipes as small as one likes")


@small_pipes
def test_log_lines_wait_for_a_reader_that_pauses(unread_log):
    """Lines that do not fit into the pipe are queued without blocking the server: none is lost."""
    server, reading = unread_log
    for _ in range(300):
        push(server)
    time.sleep(0.5)
    output = []

    def is_complete():
        output.append(read_all(reading))
        return b"".join(output).count(b", open connection=") == 300

    wait_until(is_complete, "lines are missing", 10)
    assert b"dropped" not in b"".join(output) and len(b"".join(output)) > 2 * 8192
    assert server.stop() == 0


@small_pipes
def test_a_server_whose_log_is_not_read_continues_to_serve(unread_log):
    """Lines that exceed the pipe and the queue are dropped, and their number is logged in their place."""
    server, reading = unread_log
    for _ in range(8000):  # each is a line of more than 140 bytes
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
    push(server)
    output = []

    def is_logged():
        output.append(read_all(reading))
        return b" log lines were dropped because standard error was not read" in b"".join(output)

    wait_until(is_logged, "the gap is not logged")
    lines = b"".join(output).splitlines()
    assert len(b"".join(output)) > 1 << 20
    plain = [line for line in lines if b"plain text" in line]
    assert len(plain) > 5000
    assert all(re.fullmatch(rb"\S+ (debug|notice) +127.*connection=c\d+", line) for line in plain), "a line is torn"
    assert server.stop() == 0


@small_pipes
def test_a_server_whose_log_is_not_read_ends_in_time(unread_log):
    """At shutdown queued lines are written if the pipe is read, and dropped after a second otherwise."""
    server, _ = unread_log
    for _ in range(300):
        push(server)
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 10


def read_all(descriptor):
    """Returns what a pipe contains now."""
    pieces = []
    while select.select([descriptor], [], [], 0)[0] and (piece := os.read(descriptor, 65536)):
        pieces.append(piece)
    return b"".join(pieces)


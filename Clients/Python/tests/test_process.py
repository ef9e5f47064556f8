"""Starting, finding and losing the server, and the messages when that fails."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import apns_mock
from apns_mock import APNsMockError, Client, ProgramError, ServerExitedError, StartError
from apns_mock.server import find_program
from conftest import Send

INSTALLED = Path(sysconfig.get_path("scripts")) / "apns-mock"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool], timeout: float = 20.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.01)


def program_file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def test_program_of_the_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APNS_MOCK_BINARY", raising=False)
    monkeypatch.setenv("PATH", "")
    assert find_program() == str(INSTALLED)


def test_order_in_which_the_program_is_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = program_file(tmp_path / "named", b"")
    in_path = program_file(tmp_path / "apns-mock", b"")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("APNS_MOCK_BINARY", str(named))
    assert find_program() == str(named)
    assert find_program(in_path) == str(in_path)
    monkeypatch.delenv("APNS_MOCK_BINARY")
    monkeypatch.setattr("apns_mock.server._script_folders", lambda: [str(tmp_path / "other")])
    assert find_program() == str(in_path)


def test_missing_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("APNS_MOCK_BINARY", str(tmp_path / "none"))
    with pytest.raises(ProgramError, match="/none, which APNS_MOCK_BINARY names .* is not a file"):
        apns_mock.start()
    monkeypatch.delenv("APNS_MOCK_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("apns_mock.server._script_folders", lambda: [str(tmp_path / "scripts")])
    with pytest.raises(ProgramError, match="found neither in .*/scripts nor in PATH: install the wheel"):
        apns_mock.start()


def test_program_for_another_architecture(tmp_path: Path) -> None:
    header = bytearray(INSTALLED.read_bytes()[:4096])
    other, name = (183, "aarch64") if platform.machine() == "x86_64" else (62, "x86_64")
    header[18:20] = other.to_bytes(2, "little")
    program = program_file(tmp_path / "apns-mock", bytes(header))
    with pytest.raises(ProgramError) as caught:
        apns_mock.start(binary=program)
    assert f"is a Linux program for {name} and cannot run on this machine" in str(caught.value)
    assert f"install the wheel for {platform.machine()}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_that_is_no_program(tmp_path: Path) -> None:
    program = program_file(tmp_path / "apns-mock", b"\x00\x01")
    with pytest.raises(ProgramError, match="is not a Linux program and cannot run"):
        apns_mock.start(binary=program)
    program.chmod(0o644)
    with pytest.raises(ProgramError, match="is not executable: run `chmod"):
        apns_mock.start(binary=program)


def test_missing_dynamic_linker(tmp_path: Path) -> None:
    program = program_file(tmp_path / "apns-mock", b"#!/nowhere/ld-linux.so\n")
    with pytest.raises(ProgramError, match="needs glibc"):
        apns_mock.start(binary=program)


def test_port_in_use() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StartError, match="did not start because a port is in use; use port 0") as caught:
            apns_mock.start("--apns", f"127.0.0.1:{port}")
        assert str(port) in str(caught.value)


def test_error_in_the_configuration() -> None:
    with pytest.raises(StartError, match="because of an error in its configuration") as caught:
        apns_mock.start("--profile", "flaky-504")
    assert 'did you mean "flaky-503"?' in str(caught.value)


def test_server_that_is_not_ready_in_time(tmp_path: Path) -> None:
    program = program_file(tmp_path / "apns-mock", b"#!/bin/sh\necho starting >&2\nread line\n")
    with pytest.raises(StartError, match="was not ready after 0.2 seconds.*\n  starting"):
        apns_mock.start(binary=program, timeout=0.2)


def test_no_files_remain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(StartError):
        apns_mock.start("--unknown-flag")
    with pytest.raises(ValueError, match="null byte"):
        apns_mock.start("--profile", "a\0b")
    with apns_mock.start() as server:
        assert server.pid and is_running(server.pid)
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    assert not is_running(server.pid)
    with pytest.raises(ServerExitedError, match="was stopped before this call"):
        server.status()
    server.stop()


def test_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = "import apns_mock, signal; server = apns_mock.start(); print(server.pid, flush=True); signal.pause()"
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=variables) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    wait_until(lambda: not is_running(pid))


def test_server_killed_during_a_call() -> None:
    server = apns_mock.start()
    assert server.pid
    threading.Timer(0.3, os.kill, [server.pid, signal.SIGKILL]).start()
    with pytest.raises(ServerExitedError, match=rf"\(pid {server.pid}\) exited with signal 9 \(SIGKILL\)"):
        server.wait(count=1)
    with pytest.raises(ServerExitedError, match="SIGKILL"):
        server.assert_nothing_lost()
    with pytest.raises(ServerExitedError, match="SIGKILL"):
        server.stop()
    server.stop()


def test_end_of_the_server_does_not_hide_another_error() -> None:
    with pytest.raises(ZeroDivisionError), apns_mock.start() as server:
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        raise ZeroDivisionError
    with pytest.raises(ServerExitedError, match="SIGKILL"), apns_mock.start() as server:
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)


def test_incompatible_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("0.0.9", "1.1.0"):
        monkeypatch.setattr("apns_mock._version.VERSION", version)
        with pytest.raises(ProgramError, match=rf"has version \S+, and this Python package has {version}: install"):
            apns_mock.start()


def environment(server: Client) -> dict[str, str]:
    """The variables that `apns-mock exec` would set."""
    settings = server.settings
    values = {
        "ADMIN": server.admin_url.removeprefix("http://"), "APNS": f"{settings.host}:{settings.port}",
        "CA": settings.ca, "KEY": settings.key, "KEY_ID": settings.key_id, "TEAM_ID": settings.team_id}
    return {f"APNS_MOCK_{name}": value for name, value in values.items()}


def test_connect_to_a_running_server(server: Client, send: Send, tmp_path: Path) -> None:
    connected = apns_mock.connect(environment(server))
    assert connected.settings == server.settings
    send(connected.settings, apns_mock.device_token())
    connected.wait(count=1)
    connected.stop()
    assert len(server.pushes()) == 1, "a server that was not started by the client keeps running"

    ports = tmp_path / "ports.json"
    ports.write_text(json.dumps({
        "admin": {"host": "127.0.0.1", "port": int(server.admin_url.rpartition(":")[2])},
        "apns": [{"host": server.settings.host, "port": server.settings.port}], "ca": server.settings.ca,
        "key": server.settings.key, "key_id": "MOCKKEY001", "team_id": "MOCKTEAM01", "admin_token": None}))
    assert apns_mock.connect({"APNS_MOCK_PORT_FILE": str(ports)}).settings == server.settings


def test_connect_inside_exec(tmp_path: Path) -> None:
    script = "import apns_mock; client = apns_mock.connect(); print(client.status()['phase'], client.settings.url)"
    result = subprocess.run(
        [find_program(), "exec", "--admin-token", "auto", "--", sys.executable, "-c", script], capture_output=True,
        text=True, timeout=60)
    assert result.stdout.startswith("ready https://127.0.0.1:"), result.stderr


def test_admin_token_is_sent_and_required(server: Client) -> None:
    with apns_mock.start("--admin-token", "secret") as protected:
        assert protected.status()["phase"] == "ready"
        with pytest.raises(APNsMockError, match="401"):
            apns_mock.connect(environment(protected))
        assert apns_mock.connect({**environment(protected), "APNS_MOCK_ADMIN_TOKEN": "secret"}).pushes() == []


def test_stale_environment(server: Client, tmp_path: Path) -> None:
    variables = environment(server)
    server.stop()
    with pytest.raises(APNsMockError, match="did not respond .*: start it, or correct APNS_MOCK_ADMIN"):
        apns_mock.connect(variables)
    with pytest.raises(APNsMockError, match="cannot be read .* has probably exited"):
        apns_mock.connect({"APNS_MOCK_PORT_FILE": str(tmp_path / "ports.json")})


def test_incomplete_environment() -> None:
    with pytest.raises(APNsMockError, match="needs APNS_MOCK_APNS, APNS_MOCK_CA, APNS_MOCK_KEY, .*apns-mock exec"):
        apns_mock.connect({"APNS_MOCK_ADMIN": "127.0.0.1:1"})
    with pytest.raises(APNsMockError, match="must be an address such as 127.0.0.1:2197"):
        names = ("ADMIN", "APNS", "CA", "KEY", "KEY_ID", "TEAM_ID")
        apns_mock.connect({f"APNS_MOCK_{name}": "nonsense" for name in names})


def test_module_runs_the_program() -> None:
    result = subprocess.run([sys.executable, "-m", "apns_mock", "version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"apns-mock {apns_mock.__version__}\n"


def test_ctrl_c_does_not_stop_the_server_before_the_tests(tmp_path: Path) -> None:
    script = (
        "import apns_mock, signal, sys\n"
        "with apns_mock.start() as server:\n"
        "    try:\n"
        "        print(server.pid, flush=True)\n"
        "        signal.pause()\n"
        "    except KeyboardInterrupt:\n"
        "        print(server.status()['phase'])\n")
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout.read() == "ready\n"
    assert not is_running(pid)


def test_version_of_the_package() -> None:
    version_file = Path(__file__).parents[3] / "VERSION"
    if version_file.exists():
        assert version_file.read_text().strip() == apns_mock.__version__
    assert shutil.which("apns-mock", path=str(INSTALLED.parent))

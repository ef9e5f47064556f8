"""Startup, port file, idle connections, and shutdown."""

import contextlib
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import pytest
from hyperframe.frame import DataFrame, GoAwayFrame

from support.server import REPEATED, Server, clean_environment, run, wait_until
from support.wire import NO_ERROR, connect, push_headers


def test_the_port_file_contains_addresses_and_paths(server):
    facts = server.facts
    assert set(facts) == {
        "pid", "apns", "apns_plain", "proxy", "manage", "admin", "ca", "key_id", "team_id", "key", "environment", "seed",
        "admin_token", "role",
    }
    assert facts["pid"] == server.process.pid
    assert (facts["key_id"], facts["team_id"]) == ("MOCKKEY001", "MOCKTEAM01")
    assert facts["environment"] == "sandbox" and isinstance(facts["seed"], int) and facts["admin_token"] is None
    for path in (facts["ca"], facts["key"]):
        assert os.path.isabs(path) and pathlib.Path(path).is_file()
    assert stat.S_IMODE(server.port_file.stat().st_mode) == 0o600


def test_the_first_start_creates_the_files_and_the_second_keeps_them(binary, tmp_path):
    certs = tmp_path / "certs"
    contents = []
    for _ in range(2):
        server = Server(binary, certs)
        assert server.stop() == 0
        contents.append({path.name: path.read_bytes() for path in certs.iterdir() if path.name != "README.md"})
    assert set(contents[0]) >= {
        "ca.pem", "ca-key.pem", "server.pem", "server-key.pem", "AuthKey_MOCKKEY001.p8", "client.pem",
        "client-key.pem", "client.p12", "provider.yaml",
    }
    assert contents[0] == contents[1]
    assert contents[0][".gitignore"] == b"*\n"


def test_new_keys_are_ignored_by_git_even_if_the_start_fails(binary, tmp_path):
    certs = tmp_path / "a" / "certs"
    done = run(binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, "--fixtures", tmp_path / "missing.yaml")
    assert done.returncode == 2 and "missing.yaml" in done.stderr
    assert (certs / "ca-key.pem").exists() and (certs / ".gitignore").read_text() == "*\n"
    assert not (certs.parent / ".gitignore").exists()
    for name in ("ca-key.pem", "server-key.pem", "AuthKey_MOCKKEY001.p8", "client-key.pem", "client.p12"):
        assert stat.S_IMODE((certs / name).stat().st_mode) == 0o600, name


def test_a_connection_without_requests_is_idle(start, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("apns: {idle_timeout: 1s}\n")
    with connect(start("--config", config)) as wire:
        assert wire.goaway().additional_data == b'{"reason":"IdleTimeout"}'


def test_sigterm_sends_goaway_twice_and_exits_with_zero(start, device):
    server = start()
    with connect(server) as wire:
        for _ in range(3):
            assert wire.push(push_headers(server, device)).status == 200
        server.signal(signal.SIGTERM)
        wire.read_to_end()
    goodbyes = [frame for frame in wire.frames if isinstance(frame, GoAwayFrame)]
    assert [(frame.last_stream_id, frame.error_code) for frame in goodbyes] == [(2**31 - 1, NO_ERROR), (5, NO_ERROR)]
    assert server.wait() == 0
    assert not server.port_file.exists()


def test_an_open_request_is_finished_before_the_end(start, device):
    server = start()
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        stream = wire.open(push_headers(server, device), end_stream=False)
        wire.ping()
        server.signal(signal.SIGTERM)
        assert wire.goaway().last_stream_id == 2**31 - 1
        assert server.request("GET", "/readyz").status == 503
        wire.send(DataFrame(stream, b'{"aps":{"alert":"late"}}', flags=["END_STREAM"]))
        assert wire.response(stream).status == 200
        wire.read_to_end()
    assert server.wait() == 0


def test_an_open_request_of_a_draining_connection_is_finished_before_the_end(start, device, tmp_path):
    """The server receives SIGTERM after it sent GOAWAY `IdleTimeout` on the connection."""
    config = tmp_path / "config.yaml"
    config.write_text("apns: {idle_timeout: 1s}\n")
    server = start("--config", config)
    with connect(server) as wire:
        stream = wire.open(push_headers(server, device), end_stream=False)
        assert wire.goaway().additional_data == b'{"reason":"IdleTimeout"}'
        server.signal(signal.SIGTERM)
        while server.request("GET", "/readyz").status != 503:
            time.sleep(0.01)
        time.sleep(0.2)
        wire.send(DataFrame(stream, b'{"aps":{"alert":"late"}}', flags=["END_STREAM"]))
        assert wire.response(stream).status == 200
        wire.read_to_end()
    assert server.wait() == 0


def test_shutdown_does_not_wait_longer_than_its_timeout(start, device):
    server = start("--shutdown-timeout", "300ms")
    with connect(server) as wire:
        wire.open(push_headers(server, device), end_stream=False)
        wire.ping()
        server.signal(signal.SIGTERM)
        wire.read_to_end()
        assert server.wait() == 0


def test_a_second_signal_ends_at_once(binary, certs, device):
    server = Server(binary, certs, "--shutdown-timeout", "1m")
    try:
        with connect(server) as wire:
            wire.open(push_headers(server, device), end_stream=False)
            wire.ping()
            server.signal(signal.SIGTERM)
            wire.goaway()
            time.sleep(REPEATED)
            server.signal(signal.SIGTERM)
            assert server.wait() == 130
    finally:
        server.kill()


def test_a_signal_that_arrives_twice_at_once_is_one(binary, certs, tmp_path):
    """As from `timeout`, which signals the program and then its process group."""
    export = tmp_path / "inbox.ndjson"
    server = Server(binary, certs, "--export-on-exit", export)
    try:
        with connect(server) as wire:
            wire.push(push_headers(server, "ab" * 32))
        for _ in range(2):
            server.signal(signal.SIGTERM)
        assert server.wait() == 0
    finally:
        server.kill()
    assert len(export.read_text().splitlines()) == 1
    assert stat.S_IMODE(export.stat().st_mode) == 0o600, "it contains payloads and device tokens"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_fixtures_are_loaded_ends_at_once(binary, certs, tmp_path, number):
    """The file takes a second or more to load, and the signal arrives as soon as it is mapped into memory."""
    fixtures, port_file = tmp_path / "fixtures.json", tmp_path / "ports.json"
    with fixtures.open("w") as file:
        file.write('{"apps": [{"bundle_id": "com.example.app", "team_id": "MOCKTEAM01"}], "devices": [')
        for phone in range(300_000):
            app = f'{{"bundle_id": "com.example.app", "environment": "sandbox", "tokens": {{"alert": "{phone:064x}"}}}}'
            file.write(f'{"," if phone else ""}{{"id": "phone-{phone}", "apps": [{app}]}}')
        file.write("]}")
    process = subprocess.Popen(
        [binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, "--port-file", port_file,
         "--fixtures", fixtures], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        wait_until(lambda: str(fixtures) in maps.read_text(), "the file is loaded")
        process.send_signal(number)
        assert process.wait(10) == 128 + number
        assert not port_file.exists()
        assert "stopped" not in process.stderr.read(), "it does not start first"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.serial
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_without_open_requests_shutdown_takes_less_than_a_second(binary, certs, device, number):
    """The best of three attempts, so that a busy machine does not fail the test."""
    took = []
    for _ in range(3):
        server = Server(binary, certs)
        try:
            with connect(server) as wire:
                assert wire.push(push_headers(server, device)).status == 200
                began = time.monotonic()
                server.signal(number)
                assert server.wait() == 0
                took.append(time.monotonic() - began)
        finally:
            server.kill()
        if took[-1] < 1:
            return
    raise AssertionError(f"it took {took} seconds")


@pytest.mark.parametrize("end", ["close", "kill"])
def test_the_end_of_standard_input_stops_the_server(binary, certs, tmp_path, end):
    """A test suite that is killed leaves no server behind: only it holds the other end of the pipe."""
    port_file = tmp_path / "ports.json"
    serve = [str(binary), "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", str(certs),
             "--port-file", str(port_file), "--exit-on-stdin-close"]
    holder = (
        "import subprocess, sys\n"
        f"server = subprocess.Popen({serve!r}, stdin=subprocess.PIPE)\n"
        "print(server.pid, flush=True)\n"
        "server.stdin.write(b'input is ignored')\n"
        "server.stdin.flush()\n"
        "sys.stdin.read()\n"
        "server.stdin.close()\n"
        "sys.exit(server.wait())\n")
    suite = subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    pid = int(suite.stdout.readline())
    try:
        wait_until(port_file.exists, "the server is ready")
        if end == "close":
            suite.stdin.close()
            assert suite.wait(10) == 0
        else:
            suite.kill()
            suite.wait(10)
        wait_until(lambda: not port_file.exists() and not pathlib.Path(f"/proc/{pid}/exe").exists(), "the server has ended")
    finally:
        suite.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_silent_client_does_not_delay_the_end(start):
    """A client that neither reads nor closes its side after the GOAWAY."""
    server = start("--shutdown-timeout", "1m")
    with connect(server) as wire:
        wire.settings()
        server.signal(signal.SIGTERM)
        assert server.wait(20) == 0


def test_a_server_starts_after_a_crash(binary, certs, tmp_path):
    """The port file of a server that was killed is recognized as stale."""
    server = Server(binary, certs)
    server.process.kill()
    server.process.wait()
    assert server.port_file.exists()
    done = run(binary, "healthcheck", "--port-file", server.port_file)
    assert done.returncode == 4, done.stderr


def test_no_port_file_without_the_admin_listener(server, binary, certs, tmp_path):
    """Ready means both listeners: if the admin port is in use, no port file may be written."""
    port_file = tmp_path / "ports.json"
    done = run(
        binary, "serve", "--apns", "127.0.0.1:0", "--admin", f"127.0.0.1:{server.admin_port}", "--certs", certs,
        "--port-file", port_file)
    assert done.returncode == 6
    assert not port_file.exists()


def test_healthcheck_waits_for_a_server_that_is_about_to_start(binary, certs, tmp_path):
    port_file = tmp_path / "ports.json"
    arguments = [str(binary), "healthcheck", "--wait", "--timeout", "30s", "--port-file", str(port_file)]
    waiting = subprocess.Popen(arguments, env=clean_environment(), stdout=subprocess.DEVNULL)
    server = subprocess.Popen(
        [str(binary), "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", str(certs),
         "--port-file", str(port_file)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert waiting.wait(40) == 0
        assert json.loads(port_file.read_text())["pid"] == server.pid
    finally:
        waiting.kill()
        server.terminate()
        assert server.wait(20) == 0

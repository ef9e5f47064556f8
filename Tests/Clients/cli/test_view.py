"""`apns-mock view`: a read-only view of an exported inbox, whose own export is identical byte for byte."""

import json
import pathlib
import signal
import socket
import subprocess
import threading
import time
import uuid

import pytest
from hyperframe.frame import RstStreamFrame

from support.server import START_TIMEOUT, Server, clean_environment, run, stop_cleanly, wait_until
from support.wire import Closed, connect, push_headers

ANSWERED, UNANSWERED = "answered", "unanswered"


class Viewer:
    """A running view."""

    def __init__(self, binary, directory, path, *flags, input=None):
        self.binary = binary
        self.port_file = directory / "view.json"
        self.log_path = directory / "view.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [str(binary), "view", str(path), "--admin", "127.0.0.1:0", "--port-file", str(self.port_file), *flags],
                stdin=input if input is not None else subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                cwd=directory, env=clean_environment())
        deadline = time.monotonic() + START_TIMEOUT
        while not self.port_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(self.log())
            time.sleep(0.005)
        self.facts = json.loads(self.port_file.read_text())
        self.admin_host, self.admin_port = self.facts["admin"]["host"], self.facts["admin"]["port"]

    request, api, pushes, command, logged = Server.request, Server.api, Server.pushes, Server.command, Server.logged

    def log(self):
        return self.log_path.read_text()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=START_TIMEOUT)
        assert not self.port_file.exists()
        return code

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def view(binary, tmp_path):
    """`view(path)` shows an export."""
    running = []

    def viewer(path, *flags, **more):
        running.append(Viewer(binary, tmp_path, path, *flags, **more))
        return running[-1]

    yield viewer
    for one in running:
        try:
            assert one.process.poll() is not None or one.stop() == 0, one.log()
        finally:
            one.kill()


def device(number):
    return f"{number + 1:064x}"


def fill(server, certificate):
    """Creates every kind of record."""
    def rule(number, do, **fields):
        server.api("POST", "/rules", {"name": f"r{number}", "when": {"device_token": device(number)}, "do": do, **fields})

    rule(100, {"respond": {"status": 503, "reason": "ServiceUnavailable"}}, trigger={"probability": 0.999999})
    server.api("POST", "/rules", {
        "name": "slowly", "at": "response", "when": {"device_token": device(100)}, "do": {"delay": {"fixed": "1ms"}}})
    rule(101, {"respond": {"status": 418, "reason": "Teapot\u202e\U0001f600", "unreal": True}})
    rule(102, {"reset_stream": {"code": "REFUSED_STREAM"}})
    rule(103, {"reset_connection": {}})
    rule(104, {"goaway": {"debug": "{\"reason\":\"Shutdown\"}"}})
    rule(105, {"lose_answer": {"end_with": "reset_stream"}}, at="response")
    rule(106, {"close": {}})
    rule(107, {"hang": {"for": "4m"}})
    rule(108, {"hang": {"for": "4m"}})
    rule(109, {"hang": {"for": "4m"}})
    server.api("PUT", f"/devices/{device(20)}", {"state": "unregistered", "since": "2026-01-01T00:00:00.000Z"})
    plain = [
        ({}, b'{"aps":{"alert":"hello"}}'), ({"apns_priority": "7"}, b'{"aps":{}}'), ({"authorization": None}, b'{"aps":{}}'),
        ({"authorization": "bearer a.b"}, b"{}"), ({"authorization": "Basic cGFzc3dvcmQ="}, b"{}"), ({}, b""),
        ({}, b"no json"), ({}, b'"\xff\xfe"'), ({}, b"\x00"), ({}, b' {"aps": 1}\n'), ({}, b'{\r\n\t"aps": {}\n}'),
        ({}, b"null"), ({}, '{"é":"\\u00e9\\ud83d\\ude00😀","big":123456789012345678901234567890,"big":1.0e2}'.encode()),
        ({}, b"[" * 500 + b"]" * 500), ({}, b'{"aps":"' + b"x" * 4080 + b'"}'), ({}, b'{"aps":"' + b"x" * 6000 + b'"}'),
        ({"apns_id": str(uuid.uuid4())}, b"{}"), ({"apns_id": "no id"}, b"{}"),
        ({"apns_expiration": "1893456000", "apns_collapse_id": "ü" * 20}, b"{}"),
        ({"apns_push_type": None, "apns_topic": ""}, b"{}"), ({}, b'{"aps":{"alert":"to 20"}}'),
        ({"path_": "/3/device/" + "É" * 8}, b"{}"), ({"path_": "/elsewhere"}, b"{}"), ({"method_": "GET"}, b"{}"),
        ({"x_note": "a…"}, b"{}"), ({"apns_push_type": "voip", "apns_topic": "com.example.app.voip"}, b"{}"),
        ({"apns_push_type": None}, b'{"aps":{"alert":"x"}}'),
    ]
    with connect(server) as wire:
        for number, (changes, body) in enumerate(plain):
            wire.push(push_headers(server, device(number), **changes), body)
        wire.push(push_headers(server, device(50), ("apns-topic", "twice"), ("x-a", "1"), ("x-a", "2"), ("x-a", "")), b"{}")
        wire.push(push_headers(server, device(51), (b"x-bytes", b"a\xffb")), b"{}")
        wire.push(push_headers(server, device(52), (b"apns-collapse-id", b"\x80\x81")), b"{}")
        wire.push(push_headers(server, device(0)), plain[0][1])  # The same push again,
        wire.push(push_headers(server, device(100)), b"{}")
        wire.push(push_headers(server, device(100)), b"{}")  # and a retry.
        wire.push(push_headers(server, device(101)), b"{}")
        wire.push(push_headers(server, "feedfacefeedface4100" + "0" * 44), b"{}")
    for number in (102, 103, 104, 105, 106):
        with connect(server) as wire:
            wire.open(push_headers(server, device(number)), b"{}")
            wait_until(lambda: server.pushes(device_token=device(number)), "the push is there")
    with connect(server) as wire:  # A body longer than the server reads.
        try:
            wire.upload(push_headers(server, device(60)), b"[" + b"1," * 40000 + b"1]")
        except Closed:
            pass
    with connect(server, certificate=certificate) as wire:
        wire.push(push_headers(server, device(61), authorization=None), b"{}")
        wire.push(push_headers(server, device(62), authorization=None, apns_topic=None), b"{}")
        wire.push(push_headers(server, device(63), authorization=None, apns_topic="com.other.app"), b"{}")
    with connect(server) as wire:  # Canceled by the client, while held and before complete.
        held = wire.open(push_headers(server, device(107)), b"{}")
        wait_until(lambda: server.pushes(device_token=device(107)), "it is held")
        wire.send(RstStreamFrame(held, error_code=8))
        half = wire.open(push_headers(server, device(64)), b"{", end_stream=False)
        wire.send(RstStreamFrame(half, error_code=8))
        wire.ping()
    wait_until(lambda: server.pushes(device_token=device(107), outcome="unanswered"), "it has ended")
    return connect(server), connect(server)  # For pushes that stay pending.


@pytest.fixture(scope="module")
def export(binary, certs, certificate, tmp_path_factory):
    """The export of a server with every kind of record, made while pushes are pending, and its records."""
    server = Server(binary, certs, "--seed", "7")
    try:
        for wire, number in zip(fill(server, certificate), (108, 109)):
            wire.open(push_headers(server, device(number)), b"{}")
            wait_until(lambda: server.pushes(device_token=device(number), outcome="pending"), "it is pending")
        server.api("DELETE", f"/pushes?device_token={device(2)}")  # Sequence numbers may have gaps.
        path = tmp_path_factory.mktemp("export") / "run.ndjson"
        path.write_bytes(server.request("GET", "/api/v1/export").body)
        records = server.pushes(limit=1000)
    finally:
        stop_cleanly(server)
    return path, records


def test_every_kind_of_record_is_there(export):
    """Verifies the precondition of the other tests."""
    _, records = export
    assert {record["outcome"] for record in records} == {"accepted", "rejected", "response_lost", "unanswered", "unprocessed", "pending"}
    assert {record["served"]["reset"] for record in records} >= {None, "REFUSED_STREAM"}
    assert {record["served"]["closed"] for record in records} == {None, "fin", "reset"}
    assert any(record["served"]["goaway"] for record in records)
    assert {record["auth"]["kind"] for record in records} == {"none", "token", "certificate"}
    assert {record["auth"]["signature"] for record in records} >= {None, "valid"}
    assert any(record["verdict"] is None for record in records)
    assert any(len((record["fault"] or {}).get("also", [])) == 1 and record["fault"]["draw"] for record in records)
    assert any(record["attempt"] == 2 for record in records)
    assert any("headers_base64" in record["request"] for record in records)
    assert sum("body_base64" in record["request"] for record in records) >= 5
    assert any(record["request"]["size"]["bytes"] > 60000 for record in records)
    assert {finding for record in records for finding in record["findings"]} >= {"would-not-show", "missing-push-type"}


@pytest.mark.parametrize("form", ["ndjson", "json"])
def test_a_view_returns_the_imported_records(export, view, tmp_path, form):
    path, records = export
    if form == "json":
        source = tmp_path / "run.json"
        source.write_text("[\n" + ",\n".join(path.read_text().splitlines()) + "\n]\n")
    else:
        source = path
    viewer = view(source)
    assert viewer.request("GET", f"/api/v1/export?format={form}").body == source.read_bytes()
    assert viewer.pushes(limit=1000) == records
    for record in records:
        assert viewer.api("GET", f"/pushes/{record['seq']}") == record
    out = tmp_path / "out"
    assert viewer.command("export", "--format", form, "--output", out).returncode == 0
    assert out.read_bytes() == source.read_bytes()


def test_bodies_are_as_they_came(export, view):
    path, _ = export
    viewer = view(path)

    def body(number):
        (record,) = viewer.pushes(device_token=device(number), limit=1)
        return viewer.request("GET", f"/api/v1/pushes/{record['seq']}/payload").body

    assert body(6) == b"no json" and body(7) == b'"\xff\xfe"' and body(9) == b' {"aps": 1}\n'
    assert body(10) == b'{\r\n\t"aps": {}\n}' and body(5) == b"" and len(body(60)) == 5120


def test_findings_and_expectations_are_those_of_the_run(export, view, tmp_path):
    path, records = export
    viewer = view(path)
    sequences = {}
    for record in records:
        for finding in record["findings"]:
            sequences.setdefault(finding, []).append(record["seq"])
    assert len(sequences) >= 3
    items = viewer.api("GET", "/findings")["items"]
    assert {item["finding"]: item["count"] for item in items} == {name: len(seqs) for name, seqs in sequences.items()}
    for name, seqs in sequences.items():
        assert [record["seq"] for record in viewer.pushes(q=f"finding:{name}", limit=1000, fields="seq")] == seqs
    for record in records:
        explained = viewer.api("GET", f"/pushes/{record['seq']}/explain")
        assert [finding["finding"] for finding in explained["findings"]] == record["findings"]
        assert len(explained["rules"]) == len((record["fault"] or {}).get("also", [])) + bool(record["fault"])
    expected = tmp_path / "expected.yaml"
    for count, code in ((1, 0), (2, 1)):
        expected.write_text(f"{{timeout: 1m, expect: [{{match: 'status:418', count: {{exactly: {count}}}}}]}}")
        began = time.monotonic()
        run = viewer.command("verify", expected)
        assert run.returncode == code
        assert run.stdout.splitlines()[-1] == "  window complete: yes (0 evicted)", "an export contains no seed"
        assert time.monotonic() - began < 20, "no push can arrive, so it does not wait"


def test_commands_work_on_it(export, view, tmp_path):
    path, records = export
    viewer = view(path)
    accepted = [str(record["seq"]) for record in records if record["outcome"] == "accepted"]
    listed = viewer.command("ls", "outcome:accepted", "--limit", "1000")
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == accepted
    assert json.loads(viewer.command("get", accepted[0], "--json").stdout)["seq"] == int(accepted[0])
    assert viewer.command("get", accepted[0], "--curl").stdout.startswith("curl -i --http2")
    assert json.loads(viewer.command("get", accepted[0], "--apns").stdout)["Simulator Target Bundle"] == "com.example.app"
    assert viewer.command("healthcheck").returncode == 0
    assert viewer.command("wait", "status:418").returncode == 0
    began = time.monotonic()
    done = viewer.command("wait", "status:419", "--timeout", "1m")
    assert done.returncode == 3 and time.monotonic() - began < 20, "no push can arrive, so it does not wait"
    assert viewer.command("wait", "status:419", "--count", "0", "--settle", "30s", "--timeout", "1m").returncode == 0
    counted = run(
        viewer.binary, "ls", "rule:slowly", "--json", environment={"APNS_MOCK_ADMIN": f"127.0.0.1:{viewer.admin_port}"})
    assert len(counted.stdout.splitlines()) == 2
    for command in (["rm", "--all"], ["reset"], ["profile", "use", "flaky-503"], ["faults", "pause"], ["clock", "freeze"]):
        done = viewer.command(*command)
        assert done.returncode == 1 and f"this is a view of {path}, read only" in done.stderr, (command, done.stderr)
    assert len(viewer.pushes(limit=1000)) == len(records)


CHANGES = [
    ("DELETE", "/api/v1/pushes?all=true"), ("POST", "/api/v1/send"), ("POST", "/api/v1/reset"),
    ("PUT", "/api/v1/profile"), ("DELETE", "/api/v1/profile"), ("PATCH", "/api/v1/profile/params"),
    ("POST", "/api/v1/rules"), ("PUT", "/api/v1/rules/x"), ("DELETE", "/api/v1/rules/x"), ("POST", "/api/v1/faults/halt"),
    ("POST", "/api/v1/connections/close"), ("PUT", "/api/v1/devices/ab"), ("PUT", "/api/v1/keys/AB"),
    ("PUT", "/api/v1/clock"), ("POST", "/api/v1/clock/advance"), ("POST", "/api/v1/nothing"), ("PUT", "/"),
]


def test_nothing_can_be_changed(export, view):
    path, _ = export
    viewer = view(path)
    for method, route in CHANGES:
        response = viewer.request(method, route, {})
        assert response.status == 403, (method, route)
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json["detail"] == f"this is a view of {path}, read only"
        assert response.json["hint"]
    assert viewer.request("GET", "/api/v1/profile").status == 404
    assert viewer.request("GET", "/ca.pem").status == 404
    status = viewer.api("GET", "/status")
    assert status["view"] == str(path) and status["addresses"]["apns"] == [] and status["seed"] is None
    assert viewer.facts["apns"] == [] and viewer.facts["ca"] is None
    assert str(path) in viewer.request("GET", "/").body.decode()
    foreign = viewer.request("GET", "/api/v1/pushes", headers={"host": "evil.example"})
    assert foreign.status == 403


def test_events_are_silent_and_end_with_the_view(export, view):
    viewer = view(export[0])
    connection = socket.create_connection((viewer.admin_host, viewer.admin_port), timeout=20)
    connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
    output = b""
    while b": apns-mock events" not in output:
        output += connection.recv(4096)
    assert viewer.stop() == 0
    while piece := connection.recv(4096):
        output += piece
    assert b"event: end" in output and b"event: push" not in output


def test_standard_input_can_be_viewed(export, view):
    path, records = export
    with open(path, "rb") as source:
        viewer = view("-", input=source)
    assert len(viewer.pushes(limit=1000)) == len(records)
    assert viewer.api("GET", "/status")["view"] == "standard input"


@pytest.mark.parametrize(("text", "words"), [
    ("hello\n", "{path}:1: expected a record of a push"),
    ("{line}\n{{\"seq\": 2}}\n", "{path}:2: no record of a push: outcome is missing"),
    ("{line}\n{half}", "{path}:2: the record that begins here is incomplete"),
    ("{half}\n{line}\n", "{path}:1: "),
    ("{line}\n{line}\n", "{path}:2: seq 1 follows seq 1"),
    ("[{line},\n", "{path}:2: the list of records has no end"),
])
def test_a_bad_line_is_named(binary, export, tmp_path, text, words):
    line = export[0].read_text().splitlines()[0]
    path = tmp_path / "bad.ndjson"
    path.write_text(text.format(line=line, half=line[:300]))
    done = run(binary, "view", path, "--admin", "127.0.0.1:0")
    assert done.returncode == 2
    assert done.stderr.startswith("error: " + words.format(path=path)), done.stderr


def test_invalid_exports_are_reported(binary, export, tmp_path, server):
    path = str(export[0])
    for arguments, code, words in [
        ([tmp_path / "nowhere"], 2, "nowhere: cannot be read: No such file"), ([tmp_path], 2, "cannot be read"),
        ([path, "--max-bytes", "many"], 2, "--max-bytes"), ([path, "--max-bytes", "1KiB"], 2, "more than 1024 bytes"),
        ([path, "--admin", f"127.0.0.1:{server.admin_port}"], 6, "in use"),
        ([path, "--admin", "127.0.0.1:0", "--port-file", tmp_path / "no" / "folder"], 2, "--port-file"),
    ]:
        done = run(binary, "view", *arguments)
        assert done.returncode == code and words in done.stderr, (arguments, done.stderr)


def test_an_admin_token_is_required(binary, export, tmp_path):
    port_file = tmp_path / "view.json"
    process = subprocess.Popen(
        [str(binary), "view", str(export[0]), "--admin", "127.0.0.1:0", "--port-file", str(port_file)],
        stderr=subprocess.DEVNULL, env=clean_environment(APNS_MOCK_ADMIN_TOKEN="open"))
    try:
        wait_until(port_file.exists, "it is ready")
        assert json.loads(port_file.read_text())["admin_token"] == "open"
        assert run(binary, "ls", "--port-file", port_file).returncode == 0
        address = "{host}:{port}".format(**json.loads(port_file.read_text())["admin"])
        assert "token" in run(binary, "ls", "--admin", address).stderr
    finally:
        process.kill()
        process.wait()


def test_nothing_acknowledged_is_lost_under_load(binary, certs, tmp_path):
    """SIGTERM while several clients push: every push answered with 200 is in the file."""
    path = tmp_path / "out.ndjson"
    server = Server(binary, certs, "--export-on-exit", path)
    acknowledged = []

    def push(number):
        try:
            with connect(server) as wire:
                for index in range(10_000):
                    one = device(number * 100_000 + index)
                    if wire.push(push_headers(server, one), b"{}").status == 200:
                        acknowledged.append(one)
        except (Closed, OSError):
            pass

    threads = [threading.Thread(target=push, args=(number,)) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) > 400, "pushes are on their way")
        server.signal()
        for thread in threads:
            thread.join()
        assert server.wait(60) == 0
    finally:
        server.kill()
    written = {json.loads(line)["request"]["device_token"] for line in path.read_text().splitlines()}
    assert set(acknowledged) <= written
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_reported(binary, certs):
    server = Server(binary, certs, "--export-on-exit", "/dev/full")
    try:
        with connect(server) as wire:
            wire.push(push_headers(server, device(1)))
        server.signal()
        assert server.wait() == 1
        assert "--export-on-exit: /dev/full: cannot be written: No space left on device" in server.log()
    finally:
        server.kill()


def test_the_page_of_a_view_is_the_report(view, server, tmp_path, browser):
    """Its content security policy is that of the report, whose script is in the page."""
    with connect(server) as wire:
        wire.push(push_headers(server, device(1)), b'{"aps":{"alert":"Hello"}}')
    path = tmp_path / "inbox.ndjson"
    path.write_bytes(server.request("GET", "/api/v1/export").body)
    viewer = view(path)
    context = browser.browser.new_context()
    try:
        page = context.new_page()
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"http://{viewer.admin_host}:{viewer.admin_port}/")
        page.locator("body[data-state=ready]").wait_for()
        assert "push" in page.locator(".report").inner_text() and not complaints, complaints
    finally:
        context.close()

"""Waiting for pushes, following events, exporting the inbox: over the admin API and with the commands."""

import concurrent.futures
import contextlib
import json
import os
import secrets
import shlex
import signal
import socket
import struct
import subprocess
import threading
import types

import pytest

from support.server import Server, clean_environment, run, wait_until
from support.wire import connect, push_headers


def later(work):
    """Runs a function in a thread; `.result()` waits for it."""
    executor = concurrent.futures.ThreadPoolExecutor(1)
    future = executor.submit(work)
    executor.shutdown(wait=False)
    return future


def push(server, device, count=1, **changes):
    """Sends this many pushes over one connection; all must be accepted."""
    with connect(server) as wire:
        for _ in range(count):
            assert wire.push(push_headers(server, device, **changes)).status == 200


def wait(server, **query):
    return server.request("GET", "/api/v1/pushes/wait", **query)


class Events:
    """An event stream as curl prints it, read line by line in a separate thread."""

    def __init__(self, server, query="", *flags):
        url = f"http://{server.admin_host}:{server.admin_port}/api/v1/events{query}"
        self.process = subprocess.Popen(
            ["curl", "-sN", *flags, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=clean_environment())
        self.events = []
        self.id = None
        self.changed = threading.Condition()
        self.over = False
        threading.Thread(target=self._read, daemon=True).start()
        self.until(lambda: self.id is not None or flags or "last_event_id" in query)

    def _read(self):
        event = {}
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            with self.changed:
                self.id = event.get("id", self.id)
                if "data" in event:
                    self.events.append((event.get("event"), json.loads(event["data"]), event.get("id")))
                self.changed.notify_all()
            event = {}
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def until(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, timeout=60), self.events

    def until_event(self, event_name, /, **members):
        """Waits for an event with this name whose data has these members."""
        def found():
            return any(
                event == event_name and all(data.get(key) == value for key, value in members.items())
                for event, data, _ in self.events)
        self.until(found)

    def named(self, name):
        return [data for event, data, _ in self.events if event == name]

    def close(self):
        self.process.terminate()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# Waiting


def test_a_wait_is_satisfied_by_recorded_pushes(server, device):
    push(server, device, 3)
    response = wait(server, device_token=device, count=3).json
    assert response["satisfied"] and response["matched"] == 3
    assert len(response["items"]) == 3 and response["nearest"] == []
    assert (response["complete"], response["evicted"]) == (True, 0)
    assert response["seq"] >= response["items"][-1]["seq"]


def test_a_wait_is_satisfied_by_new_pushes(server, device):
    waiting = later(lambda: wait(server, device_token=device, count=2, timeout="1m").json)
    push(server, device, 2)
    response = waiting.result()
    assert response["satisfied"]
    following = wait(server, device_token=device, after=response["seq"], timeout="0s").json
    assert not following["satisfied"] and following["matched"] == 0


def test_a_push_counts_as_soon_as_its_response_arrives(server, device):
    with connect(server) as wire:
        for number in range(1, 21):
            assert wire.push(push_headers(server, device)).status == 200
            assert wait(server, device_token=device, timeout="0s", **{"count": f"={number}"}).json["satisfied"]


def test_a_wait_for_no_push(server, device):
    assert wait(server, device_token=device, count=0, settle="100ms").json["satisfied"]
    push(server, device)
    response = wait(server, device_token=device, count=0, settle="10s", strict=1)
    assert response.status == 412
    assert not response.json["satisfied"] and response.json["matched"] == 1


@pytest.mark.parametrize(("count", "satisfied"), [("2", True), ("=2", False), ("=3", True), ("4", False)])
def test_exactly_and_at_least(server, device, count, satisfied):
    push(server, device, 3)
    response = wait(server, device_token=device, count=count, timeout="50ms", settle="20ms").json
    assert response["satisfied"] == satisfied, response["message"]


@pytest.mark.parametrize(("query", "status", "satisfied"), [
    ({"timeout": "0s"}, 200, False), ({"timeout": "0s", "strict": "1"}, 412, False),
    ({"timeout": "0s", "strict": "0"}, 200, False), ({"count": "0", "strict": "1"}, 200, True),
    ({"count": "=0", "settle": "20ms", "strict": "true"}, 200, True),
], ids=str)
def test_a_timeout_is_an_error_only_on_request(server, device, query, status, satisfied):
    response = wait(server, device_token=device, **query)
    assert (response.status, response.headers["content-type"]) == (status, "application/json")
    assert response.json["satisfied"] is satisfied and response.json["message"]


def test_a_timeout_names_the_nearest_pushes(server, device):
    push(server, device)
    response = wait(server, device_token=device, status="410", timeout="0s").json
    assert not response["satisfied"]
    nearest = response["nearest"][0]
    assert [(each["criterion"], each["wanted"], each["found"], each["passed"]) for each in nearest["criteria"]] == [
        ("device_token", f'"{device}"', device, True), ("status", "410", "200", False)]
    assert nearest["advice"] is None


def test_a_single_condition_names_the_nearest_pushes(server, device):
    push(server, device)
    response = wait(server, device_token=f"{device}ff", timeout="0s").json
    assert [len(each["criteria"]) for each in response["nearest"]] == [1] * len(response["nearest"]) != []
    assert f"device_token: wanted \"{device}ff\"" in response["text"]


@pytest.mark.parametrize("name", ["search", "seqs"])
def test_conditions_that_verify_lacks_name_no_push(server, device, name):
    push(server, device)
    response = wait(server, timeout="0s", count="1000000", **{name: "1"}).json
    assert response["nearest"] == [] and response["text"] == response["message"]


def test_nearest_pushes_with_several_values_of_a_condition(server, device):
    push(server, device)
    response = server.api("GET", f"/pushes/wait?device_token={device}&status=410&status=429&timeout=0s&q=!topic:a")
    assert [each["criterion"] for each in response["nearest"][0]["criteria"] if not each["passed"]] == ["status"]
    assert "status: wanted 410 or 429, found 200" in response["text"]


def test_a_delayed_push_counts_with_its_final_outcome(start, device):
    server = start("--seed", "1")
    rule = {"name": "slow", "when": {"device_token": device}, "do": {"delay": {"fixed": "300ms"}}}
    server.api("POST", "/rules", rule)
    waiting = later(lambda: wait(server, device_token=device, status=200, timeout="1m").json)
    pending = later(lambda: wait(server, device_token=device, **{"is": "pending"}, timeout="1m").json)
    push(server, device)
    assert pending.result()["satisfied"]
    assert waiting.result()["satisfied"]


def test_hundreds_of_concurrent_waits(start):
    server = start()
    devices = [secrets.token_hex(32) for _ in range(200)]
    with concurrent.futures.ThreadPoolExecutor(len(devices)) as pool:
        waits = [pool.submit(lambda one=one: wait(server, device_token=one, timeout="1m").json) for one in devices]
        with connect(server) as wire:
            for one in devices:
                assert wire.push(push_headers(server, one)).status == 200
        for one, response in zip(devices, waits):
            assert [item["request"]["device_token"] for item in response.result()["items"]] == [one]


def test_shutdown_ends_a_wait_with_a_reason(binary, certs):
    server = Server(binary, certs)
    try:
        waiting = later(lambda: wait(server, timeout="5m"))
        with Events(server) as events:
            wait_until(lambda: b"\napns_mock_waits 1\n" in server.request("GET", "/metrics").body, "the wait")
            server.signal(signal.SIGTERM)
            response = waiting.result()
            assert response.status == 503 and "the server stops" in response.json["detail"] and response.json["hint"]
            events.until_event("end", message="the server stops")
        assert server.wait() == 0
    finally:
        server.kill()


def test_a_wait_ends_with_its_client(start):
    """Long before its timeout: an aborted test run must not leave waits behind."""
    server = start()

    def waits():
        text = server.request("GET", "/metrics").body.decode()
        return int(text.split("\napns_mock_waits ")[1].split()[0])

    clients = []
    for number in range(5):
        client = socket.create_connection((server.admin_host, server.admin_port), timeout=15)
        client.sendall(b"GET /api/v1/pushes/wait?timeout=5m HTTP/1.1\r\nhost: localhost\r\n\r\n")
        clients.append(client)
        while waits() != number + 1:
            pass
    clients[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for number, client in enumerate(clients):
        client.close()
        while waits() != 4 - number:
            pass


@pytest.mark.parametrize("path", ["/api/v1/pushes/wait?timeout=0s", "/api/v1/pushes/wait?timeout=100ms", "/api/v1/events"])
def test_a_missing_body_does_not_affect_other_clients(binary, certs, path):
    """The server responds without the body, continues to serve, and exits with 0 when it is stopped."""
    server = Server(binary, certs)
    try:
        with socket.create_connection((server.admin_host, server.admin_port), timeout=15) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
            assert server.request("GET", "/livez").status == 200
            assert server.stop() == 0
    finally:
        server.kill()


# Events


def test_events_report_pushes(server, device):
    other = secrets.token_hex(32)
    with Events(server, f"?device_token={device}") as events:
        push(server, other)
        push(server, device, 2)
        events.until(lambda: len(events.named("push")) == 2)
        assert [data["request"]["device_token"] for data in events.named("push")] == [device, device]
        ids = [int(number) for _, _, number in events.events]
        assert ids == sorted(set(ids))


def test_a_delayed_push_causes_two_events(start, device):
    server = start()
    server.api("POST", "/rules", {"name": "slow", "do": {"delay": {"fixed": "300ms"}}})
    with Events(server) as events:
        push(server, device)
        events.until_event("push.updated", outcome="accepted")
        first, = events.named("push")
        assert first["outcome"] == "pending"
        assert [data["seq"] for data in events.named("push.updated")] == [first["seq"]]


def test_events_report_everything_else(start, device):
    server = start()
    with Events(server) as events:
        push(server, device)
        events.until_event("connection", event="accepted")
        events.until_event("connection", event="closed")
        server.api("POST", "/rules", {"name": "mine", "do": {"respond": {"reason": "ServiceUnavailable"}}})
        events.until_event("rule", name="mine", change="added")
        server.api("DELETE", "/rules/mine")
        events.until_event("rule", name="mine", change="removed")
        server.api("PUT", "/profile", {"name": "flaky-503"})
        events.until_event("profile", name="flaky-503")
        server.api("POST", "/faults/halt")
        events.until_event("profile", halted=True)
        server.api("POST", "/reset")
        events.until_event("reset")


def test_a_reader_resumes_after_the_last_event(server, device):
    with Events(server) as events:
        push(server, device)
        events.until(lambda: len(events.named("push")) >= 1)
        last = events.events[-1][2]
    push(server, device, 2)
    with Events(server, "?last_event_id=0", "-H", f"Last-Event-ID: {last}") as events:
        events.until(lambda: len([one for one in events.named("push")
                                  if one["request"]["device_token"] == device]) == 2)
        assert events.named("gap") == []
    with Events(server, f"?last_event_id={last}&device_token={device}") as events:
        events.until(lambda: len(events.named("push")) == 2)
    with Events(server, "?last_event_id=999999999") as events:
        events.until_event("gap")
    with Events(server, "", "-H", "Last-Event-ID: x") as events:
        events.until_event("gap")


def test_foreign_origins_cannot_read_events(server):
    origin = {"Origin": "https://evil.example"}
    for path in ("/api/v1/events", "/api/v1/events?topic=a", "/api/v1/export"):
        response = server.request("GET", path, headers=origin)
        assert response.status == 403
        assert "access-control-allow-origin" not in response.headers
    for path in ("/api/v1/events/", "//api/v1/events"):
        assert server.request("GET", path, headers=origin).status in (403, 404)


def test_a_client_that_does_not_read_does_not_delay_others(start, device):
    server = start()
    with Events(server) as stuck:
        stuck.process.send_signal(signal.SIGSTOP)
        with connect(server) as wire:
            for _ in range(3000):
                assert wire.push(push_headers(server, device)).status == 200
        assert wait(server, count=3000, timeout="1m").json["satisfied"]
        stuck.process.send_signal(signal.SIGCONT)
        stuck.until(lambda: stuck.named("push") and stuck.named("push")[-1]["seq"] == 3000)
        pushes = stuck.named("push")
        if len(pushes) < 3000:
            assert stuck.named("gap")


# Export


def exported(records):
    """Returns records as an export has them: with the format of their members."""
    return [record | {"format": 2} for record in records]


def test_the_inbox_is_exported(server, device):
    push(server, device, 3)
    response = server.request("GET", "/api/v1/export", device_token=device)
    records = [json.loads(line) for line in response.body.splitlines()]
    assert records == exported(server.pushes(device_token=device))
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.headers["transfer-encoding"] == "chunked"
    array = server.request("GET", "/api/v1/export", format="json", device_token=device)
    assert array.json == records and array.headers["content-type"] == "application/json"


def test_a_push_is_sent_again_by_its_curl_command(server, device, tmp_path):
    push(server, device, apns_collapse_id="it's one")
    record = server.record(device)
    shown = server.request("GET", f"/api/v1/pushes/{record['seq']}/curl")
    assert shown.headers["content-type"] == "text/plain; charset=utf-8"
    assert "${TOKEN:-$(apns-mock token provider --certs " in shown.body.decode()
    command = server.command("get", record["seq"], "--curl")
    assert command.returncode == 0, command.stderr
    assert command.stdout == shown.body.decode()
    done = subprocess.run(
        ["sh", "-c", command.stdout], capture_output=True, text=True, timeout=30,
        env={**clean_environment(), "TOKEN": server.token()})
    assert "HTTP/2 200" in done.stdout, done.stdout + done.stderr
    again = server.pushes(device_token=device)[-1]
    assert again["seq"] > record["seq"]
    for part in ("payload", "path"):
        assert again["request"][part] == record["request"][part]
    assert again["apns"]["collapse_id"] == "it's one" and again["apns"]["topic"] == record["apns"]["topic"]


def test_a_push_is_a_file_for_the_simulator(server, device):
    push(server, device)
    record = server.record(device)
    done = server.command("get", record["seq"], "--apns")
    assert json.loads(done.stdout) == {
        "Simulator Target Bundle": record["apns"]["topic"], **record["request"]["payload"]}


@pytest.mark.parametrize("name", ["inbox.ndjson", "inbox.json"])
def test_the_inbox_is_written_at_the_end(binary, certs, device, tmp_path, name):
    path = tmp_path / name
    server = Server(binary, certs, environment={"APNS_MOCK_EXPORT_ON_EXIT": str(path)})
    try:
        push(server, device, 2)
        records = server.pushes()
        assert not path.exists()
        assert server.stop() == 0
    finally:
        server.kill()
    text = path.read_text()
    assert (json.loads(text) if name.endswith("json") and "nd" not in name
            else [json.loads(line) for line in text.splitlines()]) == exported(records)
    assert list(tmp_path.iterdir()) == [path]


def test_an_inbox_that_cannot_be_written_is_a_failure(binary, certs, device, tmp_path):
    done = run(binary, "serve", "--certs", certs, "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0",
               "--export-on-exit", tmp_path / "nowhere" / "inbox.ndjson")
    assert done.returncode == 2
    assert "--export-on-exit" in done.stderr and "nowhere" in done.stderr
    folder = tmp_path / "goes"
    folder.mkdir()
    server = Server(binary, certs, "--export-on-exit", folder / "inbox.ndjson")
    try:
        push(server, device)
        folder.rmdir()
        server.signal()
        assert server.wait() == 1
        assert "--export-on-exit" in server.log()
        assert not server.port_file.exists()
    finally:
        server.kill()


# Commands


def test_wait_prints_the_pushes(server, device):
    push(server, device, 2)
    done = server.command("wait", f"device_token={device}", "--count", "2")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2 and device in done.stdout
    assert "2 pushes match" in done.stderr
    as_json = json.loads(server.command("wait", f"device_token:{device}", "--json").stdout)
    assert as_json["satisfied"] and len(as_json["items"]) == 2


@pytest.mark.parametrize(("arguments", "code"), [
    (["--count", "3", "--timeout", "50ms"], 3), (["--count", "==1", "--timeout", "50ms"], 3),
    (["--count==2"], 0), (["--count", "0", "--timeout", "50ms"], 3), (["--count", "0", "topic:nothing.like.it"], 0),
    (["--count", "many"], 2), (["--timeout", "soon"], 2), (["--timeout", "1h"], 2), (["--settle", "x"], 2),
    (["colour:blue"], 2), (["--count", "==2", "--settle", "50ms"], 0),
])
def test_exit_codes_of_wait(server, device, arguments, code):
    push(server, device, 2)
    done = server.command("wait", f"device_token={device}", *arguments)
    assert done.returncode == code, done.stderr
    assert bool(done.stderr)


def test_wait_reports_an_inconclusive_result(start, device):
    server = start("--max-records", "2")
    push(server, device, 5)
    done = server.command("wait", "--count", "4", "--timeout", "0s")
    assert done.returncode == 5
    assert "inconclusive" in done.stderr
    assert server.command("wait", "--count", "==2", "--after", "3").returncode == 0


def test_wait_without_a_server(binary):
    assert run(binary, "wait", "--admin", "127.0.0.1:1").returncode == 4


def test_tail_follows(start, device):
    server = start()
    tail = subprocess.Popen(
        [str(server.binary), "tail", "--port-file", str(server.port_file), f"device_token={device}", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())
    try:
        lines = later(lambda: [json.loads(tail.stdout.readline()) for _ in range(2)])
        # `tail` does not report when it has started, and it omits earlier pushes.
        while not lines.done():
            push(server, device)
        assert all(line["request"]["device_token"] == device for line in lines.result())
        server.signal(signal.SIGTERM)
        _, words = tail.communicate(timeout=20)
        assert tail.returncode == 0 and "the server is stopping" in words
        assert server.wait() == 0
    finally:
        tail.kill()


class Tail:
    """`tail --json` as a process, whose lines are read in a thread."""

    def __init__(self, server, *flags):
        self.process = subprocess.Popen(
            [str(server.binary), "tail", "--port-file", str(server.port_file), "--json", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())
        self.lines = []
        self.words = []
        self.changed = threading.Condition()
        for stream, into in [(self.process.stdout, self.lines), (self.process.stderr, self.words)]:
            threading.Thread(target=self._read, args=(stream, into), daemon=True).start()

    def _read(self, stream, into):
        for line in stream:
            with self.changed:
                into.append(line.rstrip("\n"))
                self.changed.notify_all()

    def until(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, timeout=20), (self.lines, self.words)

    def begin(self, server, device):
        """Pushes until the first line appears, because `tail` does not report when it has started."""
        while not self.lines:
            push(server, device)

    def sequence(self):
        return [json.loads(line)["seq"] for line in self.lines]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Line:
    """A proxy in front of the server's admin listener, on its own port, whose connections can be cut."""

    def __init__(self, server):
        self.server = server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                inside, _ = self.listener.accept()
                outside = socket.create_connection((self.server.admin_host, self.server.admin_port))
                self.open += [inside, outside]
                for source, target in [(inside, outside), (outside, inside)]:
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)

    def cut(self):
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self.open = []

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


def through(line, tmp_path):
    """Returns an object with the members that `Tail` needs of a server, connected through a line."""
    path = tmp_path / "ports.json"
    path.write_text(json.dumps({**line.server.facts, "admin": {"host": "127.0.0.1", "port": line.port}}))
    return types.SimpleNamespace(binary=line.server.binary, port_file=path)


def test_tail_reconnects(start, device, tmp_path):
    server = start()
    line = Line(server)
    with Tail(through(line, tmp_path), f"device_token={device}") as tail:
        tail.begin(server, device)
        for _ in range(3):
            line.cut()
            # While `tail` is disconnected pushes arrive, and none is missed.
            push(server, device, 2)
            last = server.pushes(device_token=device)[-1]["seq"]
            tail.until(lambda: last in tail.sequence())
        assert tail.sequence() == sorted(set(tail.sequence()))
        first = tail.sequence()[0]
        assert tail.sequence() == [one["seq"] for one in server.pushes(device_token=device) if one["seq"] >= first]
        assert sum("trying to reconnect" in words for words in tail.words) == 3
        assert sum("reconnected" in words for words in tail.words) == 3
        server.signal(signal.SIGTERM)
        assert tail.process.wait(timeout=20) == 0
    line.close()


def test_tail_ends_when_it_cannot_reconnect(start, device, tmp_path):
    server = start()
    line = Line(server)
    with Tail(through(line, tmp_path), "--retry", "500ms") as tail:
        tail.begin(server, device)
        line.close()
        assert tail.process.wait(timeout=20) == 4
        tail.until(lambda: any(words.startswith("error:") for words in tail.words))
    assert server.command("tail", "--retry", "soon").returncode == 2


def test_tail_finds_a_restarted_server(binary, certs, device):
    """`tail` finds the new address in the port file, and reports the missed pushes as a gap."""
    server = Server(binary, certs)
    try:
        with Tail(server) as tail:
            tail.begin(server, device)
            server.kill()
            tail.until(lambda: any("trying to reconnect" in words for words in tail.words))
            before = len(tail.lines)
            again = Server(binary, certs)
            try:
                again.port_file.replace(server.port_file)
                while len(tail.lines) == before:
                    push(again, device)
                assert any("missed" in words for words in tail.words)
            finally:
                again.kill()
    finally:
        server.kill()


def test_tail_ends_with_its_reader(start, device):
    server = start()
    command = " ".join(map(shlex.quote, [str(server.binary), "tail", "--port-file", str(server.port_file)]))
    tail = subprocess.Popen(["sh", "-c", f"{command} | head -n 1"], stdout=subprocess.PIPE, text=True,
                            env=clean_environment())
    try:
        while tail.poll() is None:
            push(server, device)
        assert device in tail.stdout.read()
    finally:
        tail.kill()


def test_export_writes_a_file(server, device, tmp_path):
    push(server, device, 2)
    path = tmp_path / "inbox.ndjson"
    done = server.command("export", f"device_token={device}", "--output", path)
    assert done.returncode == 0, done.stderr
    printed = server.command("export", f"device_token={device}")
    assert path.read_text() == printed.stdout
    assert [json.loads(line) for line in printed.stdout.splitlines()] == exported(server.pushes(device_token=device))
    array = server.command("export", f"device_token={device}", "--format", "json")
    assert json.loads(array.stdout) == exported(server.pushes(device_token=device))


def test_a_failed_export_leaves_no_file(server, tmp_path):
    path = tmp_path / "inbox.ndjson"
    path.write_text("before")
    assert server.command("export", "colour:blue", "--output", path).returncode == 2
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["inbox.ndjson"]
    assert server.command("export", "--format", "xml").returncode == 2

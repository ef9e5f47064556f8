"""The conformance vectors of all client libraries, see Clients/Conformance/README.md."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Callable, Optional
from urllib.parse import parse_qs, urlsplit

import pytest

from apns_mock import APNsMockError, Client, RequestError, Settings, VerificationError, WaitError, start
from conftest import Send

FOLDER = Path(__file__).parents[2] / "Conformance"
#: What differs between two runs of the same vector: times, and the ids that the server generates.
TIMES = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", "2026-01-01T00:00:00Z"),
    (r"\d\d:\d\d:\d\d\.\d{3}", "00:00:00.000"),
    (r"\d+(\.\d+)?m?s earlier", "1ms earlier"),
    (r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", "00000000-0000-0000-0000-000000000000"),
]
#: The members of a record in a canned response.
RECORD_MEMBERS = {"seq", "accepted", "outcome", "received_at", "attempt"}
ERRORS = {"expectation": (WaitError, VerificationError), "request": (RequestError,), "client": (APNsMockError,)}


def vectors(name: str) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in json.loads((FOLDER / name).read_text("utf-8"))]


class FakeServer:
    """Responds to each request with the response of the next exchange."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        self.remaining = list(exchanges)
        self.problems: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"] or 0))
                response = fake.respond(self.command, self.path, body)
                content = response.get("text", "").encode() if "text" in response else json.dumps(response["body"]).encode()
                self.send_response(response["status"])
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def respond(self, method: str, target: str, body: bytes) -> dict[str, Any]:
        if not self.remaining:
            self.problems.append(f"unexpected request {method} {target}")
            return {"status": 599, "text": ""}
        wanted, response = self.remaining[0]["request"], self.remaining.pop(0)["response"]
        url = urlsplit(target)
        found: dict[str, Any] = {"method": method, "path": url.path}
        if url.query:
            found["query"] = parse_qs(url.query, keep_blank_values=True)
        if body:
            found.update({"text": body.decode()} if "text" in wanted else {"body": json.loads(body)})
        if found != wanted:
            self.problems.append(f"wanted {wanted}, found {found}")
        return dict(response)


@pytest.fixture
def client_of() -> Iterator[Callable[[FakeServer], Client]]:
    servers: list[HTTPServer] = []

    def connect(fake: FakeServer) -> Client:
        servers.append(fake.server)
        host, port = "127.0.0.1", fake.server.server_port
        return Client(f"{host}:{port}", Settings(host, port, f"https://{host}:{port}", "", "", "", ""))

    yield connect
    for server in servers:
        server.shutdown()
        server.server_close()


def call(client: Client, name: str, arguments: Mapping[str, Any], folder: Path) -> Any:
    """Makes the call of a vector; returns its result as a JSON value."""

    def seconds(member: str) -> Optional[timedelta]:
        return timedelta(milliseconds=arguments[member]) if member in arguments else None

    def time(member: str) -> Optional[datetime]:
        return datetime.fromisoformat(arguments[member].replace("Z", "+00:00")) if member in arguments else None

    query, filters = arguments.get("query"), arguments.get("filter", {})
    file = folder / "pushes.ndjson"
    if name == "reset":
        client.reset(keep=arguments.get("keep", ()))
    elif name == "profile":
        client.profile(arguments["reference"], seed=arguments.get("seed"))
    elif name == "rule":
        client.rule(arguments["rule"], ttl=seconds("ttl_ms"))
    elif name == "device":
        device = client.device(arguments["token"])
        if arguments["state"] == "online":
            device.online()
        else:
            getattr(device, arguments["state"])(time("since"))
    elif name == "clock_freeze":
        client.clock.freeze(time("now"))
    elif name == "clock_advance":
        client.clock.advance(timedelta(milliseconds=arguments["by_ms"]))
    elif name == "clock_real":
        client.clock.real()
    elif name == "pushes":
        return [push["seq"] for push in client.pushes(query, **filters)]
    elif name == "wait":
        ((bound, number),) = arguments["count"].items()
        count = f"={number}" if bound == "exactly" and number else number
        timeout, settle = seconds("timeout_ms"), seconds("settle_ms")
        return [push["seq"] for push in client.wait(query, count=count, timeout=timeout, settle=settle, **filters)]
    elif name == "verify":
        client.verify(arguments.get("document") or arguments["expectations"])
    elif name == "assert_nothing_lost":
        client.assert_nothing_lost()
    elif name == "check":
        client.check(**arguments)
    elif name == "findings":
        return [finding["finding"] for finding in client.findings(query, **filters)]
    elif name == "report":
        return client.report()
    elif name == "export":
        client.export(file, query, **filters)
        return file.read_text("utf-8")
    elif name == "import":
        file.write_text(arguments["text"], "utf-8")
        client.import_(file)
    else:
        pytest.fail(f"the Python client has no call {name!r}", pytrace=False)
    return None


def check(vector: Mapping[str, Any], client: Client, folder: Path) -> None:
    """Makes the call of a vector; compares its result or its error."""
    if "scope" in vector:
        client = client.scoped(vector["scope"])
    error = vector.get("error")
    if error is None:
        assert call(client, vector["call"], vector["arguments"], folder) == vector.get("result")
        return
    with pytest.raises(ERRORS[error["kind"]]) as caught:
        call(client, vector["call"], vector["arguments"], folder)
    assert str(caught.value) == error["text"]


@pytest.mark.parametrize("vector", vectors("requests.json") + vectors("inbox.json"))
def test_client_conforms(vector: dict[str, Any], client_of: Callable[[FakeServer], Client], tmp_path: Path) -> None:
    fake = FakeServer(vector["exchanges"])
    check(vector, client_of(fake), tmp_path)
    assert fake.problems == []
    assert fake.remaining == [], "requests that the client did not make"


def test_unknown_call_names_call_and_client(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="the Python client has no call 'subscribe'"):
        call(Client("127.0.0.1:1", Settings("", 0, "", "", "", "", "")), "subscribe", {}, tmp_path)


@pytest.mark.parametrize("vector", vectors("inbox.json"))
def test_responses_are_those_of_the_server(vector: dict[str, Any], send: Send) -> None:
    """The canned responses of `inbox.json` are what the server responds after the pushes of the vector."""
    given = vector["given"]
    with start("--seed", "7", "--profile", given.get("profile", "healthy")) as server:
        for token in given.get("unregistered", []):
            server.device(token).unregistered()
        for push in given["pushes"]:
            send(server.settings, push["device_token"], headers=push.get("headers", {}), **push.get("aps", {}))
        (exchange,) = vector["exchanges"]
        request, response = exchange["request"], exchange["response"]
        query = [(name, value) for name, values in request.get("query", {}).items() for value in values]
        status = 412 if request["method"] == "POST" and "error" in vector else 200
        found = server.request(
            request["method"], request["path"].removeprefix("/api/v1"), request.get("body"), query=query,
            accepted=[status])
    body = {name: canned(found[name]) for name in response["body"]}
    if os.environ.get("UPDATE_VECTORS"):
        update(vector["name"], body)
    else:
        assert (body, status) == (response["body"], response["status"])


def canned(value: Any) -> Any:
    """Returns a value of a response as `inbox.json` has it: without what differs between runs, and records shortened."""
    if isinstance(value, dict):
        return {name: canned(each) for name, each in value.items() if "push_key" not in value or name in RECORD_MEMBERS}
    if isinstance(value, list):
        return [canned(each) for each in value]
    if isinstance(value, str):
        for pattern, replacement in TIMES:
            value = re.sub(pattern, replacement, value)
    return value


def update(name: str, body: dict[str, Any]) -> None:
    """Replaces the response of a vector in `inbox.json`, and the text of its error or of its result."""
    file = FOLDER / "inbox.json"
    all_vectors = json.loads(file.read_text("utf-8"))
    (vector,) = [each for each in all_vectors if each["name"] == name]
    vector["exchanges"][0]["response"]["body"] = body
    if "error" in vector:
        vector["error"]["text"] = body["text"]
    elif isinstance(vector.get("result"), str):
        vector["result"] = body["text"]
    file.write_text("[\n" + ",\n".join(map(written, all_vectors)) + "\n]\n", "utf-8")


def written(vector: dict[str, Any]) -> str:
    """Returns a vector as text with one member per line."""
    lines = []
    for name, value in vector.items():
        text = json.dumps(value, ensure_ascii=False)
        if name == "exchanges":
            (exchange,) = value
            parts = [f'"{part}": {json.dumps(exchange[part], ensure_ascii=False)}' for part in ("request", "response")]
            text = "[\n      {" + ",\n       ".join(parts) + "}\n    ]"
        lines.append(f'    "{name}": {text}')
    return "  {\n" + ",\n".join(lines) + "\n  }"

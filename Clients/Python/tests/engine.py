"""A stand-in for a container engine: the part of Docker's HTTP API that Testcontainers uses for one container, whose
command runs as a process of this machine."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional

ID = "a" * 64
APNS_PORT, ADMIN_PORT = 2197, 8197


class Engine(ThreadingHTTPServer):
    """The engine. `created` is the request that created the container."""

    daemon_threads = True

    def __init__(self, program: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.program = program
        self.folder = Path(tempfile.mkdtemp(prefix="apns-mock-engine-"))
        self.created: dict[str, Any] = {}
        self.process: Optional[subprocess.Popen[bytes]] = None
        self.removed = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        return f"tcp://127.0.0.1:{self.server_port}"

    def run(self) -> None:
        """Runs the command of the container."""
        command = self.created.get("Cmd") or ["serve"]
        environment = dict(each.split("=", 1) for each in self.created.get("Env") or [])
        self.process = subprocess.Popen(
            [self.program, *command, "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", self.folder / "certs",
             "--port-file", self.folder / "ports.json"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ports(self) -> dict[str, Any]:
        """The ports of the process, once it has opened them."""
        if self.process is None:
            return {}
        deadline = time.monotonic() + 20
        while not (self.folder / "ports.json").exists() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            bound = json.loads((self.folder / "ports.json").read_text())
        except FileNotFoundError:
            return {}
        numbers = {APNS_PORT: bound["apns"][0]["port"], ADMIN_PORT: bound["admin"]["port"]}
        return {f"{port}/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(number)}] for port, number in numbers.items()}

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None


class Handler(BaseHTTPRequestHandler):
    server: Engine

    def _handle(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        path = re.sub(r"^/v[0-9.]+", "", self.path.split("?")[0])
        engine = self.server
        if self.command == "POST" and path == "/containers/create":
            engine.created = json.loads(body)
            self._respond(201, {"Id": ID, "Warnings": []})
        elif self.command == "POST" and path.endswith("/start"):
            engine.run()
            self._respond(204)
        elif self.command == "DELETE":
            engine.end()
            engine.removed = True
            self._respond(204)
        elif path.endswith("/archive"):
            name = self.path.split("path=")[1].replace("%2F", "/").removeprefix("/certs/")
            file = engine.folder / "certs" / name
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w") as tar:
                tar.add(file, name)
            self._respond(200, archive.getvalue(), {"X-Docker-Container-Path-Stat": "e30="})
        elif path.endswith("/logs"):
            self._respond(200, b"")
        elif path.startswith("/containers/"):
            container = {
                "Id": ID, "Name": "/apns-mock", "State": {"Status": "running", "Running": True},
                "Config": {"Tty": False}, "HostConfig": {"NetworkMode": "bridge"},
                "NetworkSettings": {"Ports": engine.ports(), "Networks": {}}}
            self._respond(200, [container] if path == "/containers/json" else container)
        elif path == "/version":
            self._respond(200, {"ApiVersion": "1.44", "MinAPIVersion": "1.24", "Version": "25", "Os": "linux"})
        else:
            self._respond(200, {})

    do_GET = do_POST = do_DELETE = _handle

    def _respond(self, status: int, content: Any = b"", headers: Optional[dict[str, str]] = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json" if not isinstance(content, bytes) else "application/x-tar")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

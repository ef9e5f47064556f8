"""HTTP/2 clients behind one interface: by hand, httpx, Node's http2, Go's net/http, curl.

A carrier has one connection at a time for all requests, as far as its library decides that, and after `retire()` a new one
for the next request. `send` returns a `Reply` or raises a `NoReply`.
"""

import asyncio
import itertools
import json
import pathlib
import shutil
import subprocess
import tempfile

import httpx

from support.conducts.hand import HandConnection
from support.conducts.results import Lost, Manners, Refused, Reply, Unconnected, Untrusted
from support.server import clean_environment
from support.wire import client_context

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "programs"
DEADLINE = 1.0  # seconds for a request
ERRORS = {"refused": Refused, "lost": Lost, "unconnected": Unconnected, "untrusted": Untrusted}
BATCH_TIME = 0.03  # seconds for which curl's requests are collected


class Hand:
    """`hand.HandConnection`."""

    def __init__(self, port, ca, manners=Manners()):
        self._port, self._ca, self._manners = port, ca, manners
        self._connection = None
        self._all = []
        self._opening = asyncio.Lock()

    async def send(self, request):
        if request.own_connection:
            connection = await self._connect()
            try:
                return await connection.send(request, DEADLINE)
            finally:
                connection.close()
        async with self._opening:
            if self._connection is None or not self._connection.usable:
                self._connection = await self._connect()
            connection = self._connection
        return await connection.send(request, DEADLINE)

    async def _connect(self):
        self._all.append(await HandConnection.connect(self._port, self._ca, self._manners))
        return self._all[-1]

    def retire(self):
        if self._connection is not None:
            self._connection.retire()
            self._connection = None

    async def close(self):
        for connection in self._all:
            connection.close()


class Httpx:
    """httpx, which reports every failure of HTTP/2 as a protocol error with h2's event as its text."""

    def __init__(self, port, ca):
        self._url = f"https://localhost:{port}"
        self._context = client_context(ca)
        self._clients = []
        self._client = None

    async def send(self, request):
        if request.own_connection:
            async with self._new() as client:
                return await self._send(client, request)
        if self._client is None:
            self._client = self._new()
            self._clients.append(self._client)
        return await self._send(self._client, request)

    def _new(self):
        return httpx.AsyncClient(http1=False, http2=True, verify=self._context, timeout=DEADLINE, trust_env=False)

    async def _send(self, client, request):
        async def body():
            await asyncio.sleep(request.apart)
            yield request.body

        post = client.post(self._url + request.path, headers=request.headers, content=body() if request.apart else request.body)
        try:
            response = await asyncio.wait_for(post, request.cancel_after or 2 * DEADLINE)
        except httpx.ConnectError as error:
            raise (Untrusted if "CERTIFICATE_VERIFY_FAILED" in str(error) else Unconnected)(str(error)) from None
        except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unconnected(repr(error)) from None
        except Exception as error:
            # Also errors of h2, and httpx's own (RuntimeError, KeyError, ValueError) if a stream ends at a bad moment.
            raise (Refused if "error_code:7" in str(error) else Lost)(repr(error)) from None
        return Reply(response.status_code, response.content)

    def retire(self):
        self._client = None

    async def close(self):
        for client in self._clients:
            await client.aclose()


class Program:
    """A program that reads requests as lines of JSON and writes their results as such lines, in any order."""

    def __init__(self, port, ca, *command):
        self._description = {"url": f"https://localhost:{port}", "ca": str(ca), "deadline_ms": 1000 * DEADLINE}
        self._command = command
        self._process = None
        self._waiting = {}
        self._numbers = itertools.count()
        self._starting = asyncio.Lock()

    async def send(self, request):
        async with self._starting:
            if self._process is None or self._reading.done():
                self._process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment(NO_PROXY="*"))
                self._reading = asyncio.ensure_future(self._read())
                self._write(self._description)
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._write({
            "id": number, "path": request.path, "headers": request.headers, "body": request.body.decode(),
            "cancel_ms": 1000 * (request.cancel_after or 0), "apart_ms": 1000 * (request.apart or 0),
            "own_connection": request.own_connection,
        })
        try:
            result = await self._waiting[number]
        finally:
            del self._waiting[number]
        if error := result.get("error"):
            raise ERRORS[error](result.get("detail"))
        return Reply(result["status"], result["body"].encode())

    def _write(self, line):
        self._process.stdin.write(json.dumps(line).encode() + b"\n")

    async def _read(self):
        while line := await self._process.stdout.readline():
            result = json.loads(line)
            if (waiting := self._waiting.get(result["id"])) and not waiting.done():
                waiting.set_result(result)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Lost("the program ended"))

    def retire(self):
        if self._process is not None:
            self._write({"retire": True})

    async def close(self):
        if self._process is None:
            return
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._reading.cancel()


class Curl:
    """curl: the requests of a short time are sent by one process, in parallel on one connection."""

    def __init__(self, port, ca):
        self._url, self._ca = f"https://localhost:{port}", ca
        self._batch = []
        self._folder = tempfile.TemporaryDirectory(prefix="apns-mock-curl-")
        self._numbers = itertools.count()

    async def send(self, request):
        result = asyncio.get_running_loop().create_future()
        if request.own_connection:
            await self._run([(request, result)])
        else:
            self._batch.append((request, result))
            if len(self._batch) == 1:
                asyncio.get_running_loop().call_later(BATCH_TIME, self._flush)
        return await result

    def _flush(self):
        batch, self._batch = self._batch, []
        self._running = asyncio.ensure_future(self._run(batch))

    async def _run(self, batch):
        bodies = [f"{self._folder.name}/{next(self._numbers)}" for _ in batch]
        transfers = []
        for index, ((request, _), body) in enumerate(zip(batch, bodies)):
            lines = [f"url = {self._url}{request.path}", f"cacert = {self._ca}", "http2", f"max-time = {DEADLINE}",
                     f"data-binary = {json.dumps(request.body.decode())}", f"output = {body}",
                     f'write-out = "{index} %{{http_code}} %{{exitcode}} %{{errormsg}}\\n"', 'header = "content-type:"']
            lines += [f'header = "{name}: {value}"' for name, value in request.headers.items()]
            transfers.append("\n".join(lines))
        process = await asyncio.create_subprocess_exec(
            "curl", "--silent", "--parallel", "--config", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=clean_environment(NO_PROXY="*"))
        text, _ = await process.communicate("\nnext\n".join(transfers).encode())
        for line in text.decode().splitlines():
            index, status, code, *message = line.split(" ", 3)
            _, result = batch[int(index)]
            if not result.done():
                self._set(result, int(status), int(code), " ".join(message), bodies[int(index)])
        for _, result in batch:
            if not result.done():
                result.set_exception(Lost("curl said nothing"))

    @staticmethod
    def _set(result, status, code, message, body):
        if code == 0:
            path = pathlib.Path(body)
            result.set_result(Reply(status, path.read_bytes() if path.exists() else b""))
        else:
            kind = {60: Untrusted, 7: Unconnected, 35: Unconnected}.get(code, Lost)
            result.set_exception(kind(f"curl {code}: {message}"))

    def retire(self):
        """Every batch has its own connection."""

    async def close(self):
        self._folder.cleanup()


def missing():
    """Returns the carriers whose program this machine does not have."""
    return [name for name in ("node", "go", "curl") if shutil.which(name) is None]


def go_program(folder):
    """Compiles the program in Go, unless that was done before; returns its path."""
    source, target = PROGRAMS / "carrier.go", pathlib.Path(folder) / "go-carrier"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as new:
            subprocess.run(["go", "build", "-o", f"{new}/carrier", str(source)], check=True)
            pathlib.Path(f"{new}/carrier").replace(target)
    return target


def carrier(name, port, ca, manners, folder):
    """Returns the carrier with this name. `folder`: where compiled programs are kept."""
    return {
        "hand": lambda: Hand(port, ca, manners),
        "httpx": lambda: Httpx(port, ca),
        "node": lambda: Program(port, ca, "node", str(PROGRAMS / "carrier.mjs")),
        "go": lambda: Program(port, ca, str(go_program(folder))),
        "curl": lambda: Curl(port, ca),
    }[name]()

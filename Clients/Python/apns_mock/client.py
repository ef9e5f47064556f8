"""The client of the admin API."""

from __future__ import annotations

import asyncio
import copy
import http.client
import json
import os
import re
import secrets
import socket
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, Union, cast
from urllib.parse import quote, urlencode, urlsplit

from . import _version
from .errors import (
    APNsMockError, BlockingError, ProgramError, RequestError, ServerExitedError, VerificationError, WaitError)
from .records import Finding, Push
from .server import ServerProcess, find_program

# Hides the frames of this module in the tracebacks of pytest.
__tracebackhide__ = True

#: A duration: seconds, a timedelta, or a text such as "1.5s" or "61m".
Duration = Union[float, str, timedelta]
#: A condition on a field of a push. A list means any of its values.
FilterValue = Union[str, int, float, bool, datetime, timedelta, Sequence[Union[str, int, float, bool, datetime, timedelta]]]

#: Seconds that a request may take. Requests that wait on the server have its maximum of five minutes in addition.
REQUEST_TIMEOUT = 30.0
WAITING_REQUEST_TIMEOUT = 300.0 + REQUEST_TIMEOUT
#: The largest page of records that the server returns.
PAGE_SIZE = 1000


@dataclass(frozen=True)
class Settings:
    """What a provider needs to send pushes to the server."""

    #: The address and port of the APNs listener.
    host: str
    port: int
    #: `https://HOST:PORT`
    url: str
    #: The path of the certificate authority to trust, a PEM file.
    ca: str
    #: The path of the provider key, a `.p8` file, and its ids.
    key: str
    key_id: str
    team_id: str
    #: A topic that the provider key and the provider certificate are valid for.
    topic: str = "com.example.app"


class OpenRequests:
    """The connections of one call, so that another thread can end it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._has_ended = False

    def add(self, connection: socket.socket) -> None:
        """Adds the connection of a request. Raises OSError after `end`."""
        with self._lock:
            if self._has_ended:
                raise OSError("the call was cancelled")
            self._sockets.append(connection)

    def end(self) -> None:
        """Ends all requests, also those that are added later."""
        with self._lock:
            self._has_ended = True
            for connection in self._sockets:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # The request has ended.


class Device:
    """The state of one device token."""

    def __init__(self, client: Client, token: str) -> None:
        self._client = client
        self.token = token

    def online(self) -> None:
        """Accepts pushes to the device again."""
        self._set("online", None)

    def unregistered(self, since: Optional[Union[str, datetime]] = None) -> None:
        """Answers pushes to the device with 410 `Unregistered` and the timestamp `since`, by default the present."""
        self._set("unregistered", since)

    def expired(self, since: Optional[Union[str, datetime]] = None) -> None:
        """Answers pushes to the device with 410 `ExpiredToken` and the timestamp `since`, by default the present."""
        self._set("expired", since)

    def _set(self, state: str, since: Optional[Union[str, datetime]]) -> None:
        body = {"state": state} if since is None else {"state": state, "since": _time(since)}
        self._client.request("PUT", f"/devices/{quote(self.token, safe='')}", body)


class Clock:
    """The clock of the server. It determines the age of provider tokens and the times of records."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def freeze(self, now: Optional[Union[str, datetime]] = None) -> None:
        """Stops the clock, at `now` or at its current time."""
        body = {"mode": "frozen"} if now is None else {"mode": "frozen", "now": _time(now)}
        self._client.request("PUT", "/clock", body)

    def advance(self, by: Duration) -> None:
        """Moves the clock forward, for example by "61m"."""
        self._client.request("POST", "/clock/advance", {"by": _duration(by)})

    def real(self) -> None:
        """Returns to the time of the machine."""
        self._client.request("PUT", "/clock", {"mode": "real"})


class Client:
    """A client of one server. `start` and `connect` create it; its methods may be called from several threads.

    Every method raises RequestError if the server rejects the request, for example because a filter is misspelled, and
    ServerExitedError if the server has exited.
    """

    def __init__(
        self, admin: str, settings: Settings, *, admin_token: Optional[str] = None,
        process: Optional[ServerProcess] = None,
    ) -> None:
        #: The address of the web UI and the admin API, `http://HOST:PORT`.
        self.admin_url = admin if "://" in admin else f"http://{admin}"
        #: What the provider under test needs to send pushes to the server.
        self.settings = settings
        #: The query that `scoped` restricts this client to, or None.
        self.scope: Optional[str] = None
        self._admin_token = admin_token
        self._process = process
        self._requests: Optional[OpenRequests] = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType],
    ) -> None:
        try:
            self.stop()
        except ServerExitedError:
            # The error that ends the `with` statement usually has the same cause.
            if error is None:
                raise

    @property
    def pid(self) -> Optional[int]:
        """The process id of the server, or None if `connect` found it."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """Stops the server, if `start` started it, and removes its temporary folder.

        Raises ServerExitedError if the server had exited before, or did not shut down properly.
        """
        if self._process:
            self._process.stop()

    def scoped(self, scope: str) -> Client:
        """Returns this client restricted to the pushes that the query `scope` matches, such as "topic:com.acme.w3".

        `reset`, `pushes`, `wait`, `verify`, `check`, `findings`, `assert_nothing_lost`, `assert_no_findings`, `report`
        and `export` then neither count nor remove other pushes. Profile, rules, devices and clock belong to the whole
        server.
        """
        scoped = copy.copy(self)
        scoped.scope = self._scope(scope)
        return scoped

    # Control

    def reset(self, *, keep: Union[str, Sequence[str]] = (), scope: Optional[str] = None) -> None:
        """Restores the state after the start: inbox, rules, profile, counters, clock and devices, except `keep`.

        With a scope, only the pushes in the scope are removed.
        """
        body: dict[str, Any] = {"keep": keep if isinstance(keep, str) else list(keep)} if keep else {}
        self.request("POST", "/reset", self._with_scope(body, scope))

    def profile(self, reference: str, *, seed: Optional[int] = None) -> None:
        """Activates a fault profile, such as "flaky-503?rate=0.3". The same `seed` gives the same faults."""
        self.request("PUT", "/profile", {"name": reference} if seed is None else {"name": reference, "seed": seed})

    def rule(self, rule: Mapping[str, Any], *, ttl: Optional[Duration] = None) -> dict[str, Any]:
        """Adds a fault rule, such as `{"do": {"respond": {"status": 503}}}`; returns it with its name.

        With `ttl`, the rule is removed after that time.
        """
        added = self.request("POST", "/rules", {**rule, **({} if ttl is None else {"ttl": _duration(ttl)})})
        return cast("dict[str, Any]", added)

    def device(self, token: str) -> Device:
        """Returns the device with this token, to change its state."""
        return Device(self, token)

    @property
    def clock(self) -> Clock:
        """The clock of the server."""
        return Clock(self)

    def status(self) -> dict[str, Any]:
        """Returns the version, seed, active profile, addresses and limits of the server."""
        return cast("dict[str, Any]", self.request("GET", "/status"))

    # Inbox

    def pushes(
        self, /, query: Optional[str] = None, *, scope: Optional[str] = None, **filters: FilterValue,
    ) -> list[Push]:
        """Returns the pushes that match, in order of arrival (with `order="desc"` the newest first).

        `query` is a text such as "status:410 topic:com.acme.*"; `filters` are fields such as `status=410` and
        `device_token=token`. A field that is a Python keyword has an underscore at its end: `is_="retry"`. All
        conditions must hold. `limit` is the maximum number of pushes.

        Raises APNsMockError if the inbox was too small to keep all pushes.
        """
        remaining = filters.pop("limit", None)
        if remaining is not None and (isinstance(remaining, bool) or not isinstance(remaining, int) or remaining < 0):
            raise ValueError(f"limit must be a number of pushes, and it is {remaining!r}")
        cursor = "before" if filters.get("order") == "desc" else "after"
        parameters = self._filter(query, scope, filters)
        pushes: list[Push] = []
        while True:
            size = PAGE_SIZE if remaining is None else min(PAGE_SIZE, remaining - len(pushes))
            page = self.request("GET", "/pushes", query=[*parameters, ("limit", str(size))])
            if not page["complete"] and remaining is None:
                raise APNsMockError(
                    f"{page['evicted']} pushes are missing because the inbox is full: start the server with a larger "
                    "--max-records or --max-bytes.")
            pushes.extend(page["items"])
            if page["next"] is None or len(pushes) == remaining:
                return pushes
            parameters = [(name, value) for name, value in parameters if name != cursor]
            parameters.append((cursor, str(page["next"])))

    def wait(
        self, /, query: Optional[str] = None, *, count: Union[int, str] = 1, timeout: Optional[Duration] = None,
        settle: Optional[Duration] = None, scope: Optional[str] = None, **filters: FilterValue,
    ) -> list[Push]:
        """Waits until `count` or more pushes match; returns all that match. For filters see `pushes`.

        `count="=3"` means exactly three, and `count=0` with `settle` that no push arrives for that time. The server
        responds as soon as the last push is in the inbox.

        The method blocks. In the thread of an event loop it only looks at what has arrived, because a provider in the
        same loop could not send: use `apns_mock.aio` and `await` there. Raises BlockingError if pushes are missing.

        Raises WaitError after `timeout`, by default 10 seconds, at most five minutes. The error names the nearest
        pushes with the wanted and the found values.
        """
        parameters = self._filter(query, scope, filters)
        waiting = [("count", str(count))]
        loop = None if timeout is not None and _is_zero(timeout) else running_event_loop()
        if loop is not None and settle is not None:
            raise BlockingError("wait", loop)
        for name, each in (("timeout", 0 if loop else timeout), ("settle", settle)):
            waiting += [] if each is None else [(name, _duration(each))]
        result = self.request("GET", "/pushes/wait", query=parameters + waiting, timeout=WAITING_REQUEST_TIMEOUT)
        if not result["satisfied"]:
            raise BlockingError("wait", loop) if loop else WaitError(result["text"])
        if len(result["items"]) < result["matched"]:
            return self.pushes(query, scope=scope, **filters)
        return cast("list[Push]", result["items"])

    def verify(
        self, expectations: Union[Mapping[str, Any], Iterable[Mapping[str, Any]]], *, scope: Optional[str] = None,
    ) -> dict[str, Any]:
        """Compares the pushes since the last reset with a list of expectations or a whole document of `verify`.

        Returns the report. Raises VerificationError with the text of the report if an expectation is not met. With a
        `timeout` it blocks as `wait` does, and raises BlockingError in the thread of an event loop.
        """
        document: dict[str, Any] = (
            dict(expectations) if isinstance(expectations, Mapping) else {"expect": list(expectations)})
        for name in ("timeout", "settle"):
            # The server rejects other types.
            if isinstance(document.get(name), (int, float, timedelta)) and not isinstance(document[name], bool):
                document[name] = _duration(document[name])
        timeout = document.get("timeout")
        waits = isinstance(timeout, str) and not _is_zero(timeout)
        loop = running_event_loop() if waits else None
        if loop is not None:
            document = {name: value for name, value in document.items() if name not in ("timeout", "settle")}
        report = self.request(
            "POST", "/verify", self._with_scope(document, scope), timeout=WAITING_REQUEST_TIMEOUT, accepted=(200, 412))
        if not report["passed"]:
            raise BlockingError("verify", loop) if loop else VerificationError(report["text"])
        return cast("dict[str, Any]", report)

    def assert_nothing_lost(self, *, scope: Optional[str] = None) -> None:
        """Raises VerificationError unless the last attempt of every push was accepted or permanently rejected."""
        self.verify({"nothing_lost": True}, scope=scope)

    def assert_no_findings(self, *names: str, scope: Optional[str] = None) -> None:
        """Raises VerificationError if the server has findings about the provider: those with these names, or any."""
        self.verify({"no_findings": list(names) or True}, scope=scope)

    def check(
        self, *, fail_on_findings: Union[bool, Sequence[str]] = False, fail_on_rejected: bool = False,
        scope: Optional[str] = None,
    ) -> None:
        """Checks the provider at the end of a test, when no further attempt of a push can follow.

        `fail_on_findings` is True for any finding, or a list of names; every push that could still be retried counts as
        `abandoned`. `fail_on_rejected` fails for pushes that APNs' rules rejected.

        Raises VerificationError with a line for each finding, and for each reason with the correction.
        """
        names = fail_on_findings if isinstance(fail_on_findings, bool) else list(fail_on_findings)
        body: dict[str, Any] = {"fail_on_findings": names} if names else {}
        if fail_on_rejected:
            body["fail_on_rejected"] = True
        if not body:
            return
        result = self.request("POST", "/check", self._with_scope(body, scope), accepted=(200, 412))
        if not result["passed"]:
            raise VerificationError(result["text"])

    def report(self, *, scope: Optional[str] = None) -> str:
        """Returns the text that describes a failed test.

        It has the seed, the profile, the newest pushes, those that were not accepted first, and the findings.
        """
        return str(self.request("GET", "/report", query=self._filter(None, scope, {}))["text"])

    def findings(
        self, /, query: Optional[str] = None, *, scope: Optional[str] = None, **filters: FilterValue,
    ) -> list[Finding]:
        """Returns the mistakes of the provider, with the pushes that prove them. For filters see `pushes`."""
        items = self.request("GET", "/findings", query=self._filter(query, scope, filters))["items"]
        return cast("list[Finding]", items)

    def export(
        self, /, path: Union[str, os.PathLike[str]], query: Optional[str] = None, *, scope: Optional[str] = None,
        **filters: FilterValue,
    ) -> None:
        """Writes the pushes that match to a file, one JSON record per line. `apns-mock view FILE` opens it.

        Only the current user can read a new file, because it contains payloads and device tokens.
        """
        _, body = self._send("GET", "/export", query=self._filter(query, scope, filters))
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(body)

    def import_(self, path: Union[str, os.PathLike[str]]) -> dict[str, Any]:
        """Adds the pushes of an exported file to the inbox; returns the response of the server."""
        _, body = self._send("POST", "/import", Path(path).read_bytes(), "application/x-ndjson")
        return cast("dict[str, Any]", json.loads(body))

    # Requests

    def request(
        self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, *,
        query: Sequence[tuple[str, str]] = (), timeout: float = REQUEST_TIMEOUT, accepted: Sequence[int] = (200, 201),
    ) -> Any:
        """Sends a request to a path of the admin API below `/api/v1`; returns the JSON value of the response.

        The body may have values of the types timedelta and datetime.

        Raises RequestError if the status is not in `accepted`.
        """
        content = None if body is None else json.dumps(body, default=_json).encode()
        _, response = self._send(method, path, content, "application/json", query, timeout, accepted)
        return json.loads(response)

    def _send(
        self, method: str, path: str, body: Optional[bytes] = None, content_type: str = "application/json",
        query: Sequence[tuple[str, str]] = (), timeout: float = REQUEST_TIMEOUT, accepted: Sequence[int] = (200, 201),
    ) -> tuple[int, bytes]:
        headers = {"content-type": content_type} if body is not None else {}
        if self._admin_token:
            headers["authorization"] = f"Bearer {self._admin_token}"
        target = f"/api/v1{path}" + (f"?{urlencode(query)}" if query else "")
        address = urlsplit(self.admin_url)
        try:
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
        except (ValueError, http.client.InvalidURL) as error:
            raise APNsMockError(
                f"{self.admin_url} is not the address of an admin API such as 127.0.0.1:8197: correct APNS_MOCK_ADMIN."
            ) from error
        try:
            connection.connect()
            if self._requests is not None:
                self._requests.add(connection.sock)
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._failure(error) from error
        finally:
            connection.close()
        if response.status not in accepted:
            raise RequestError(_describe_problem(method, path, response.status, content), response.status)
        return response.status, content

    def _failure(self, error: Exception) -> APNsMockError:
        """Returns the error for a request without a response."""
        ended = self._process.exit_description(timeout=1.0) if self._process else None
        if ended is not None:
            return ServerExitedError(ended)
        return APNsMockError(
            f"The apns-mock server at {self.admin_url} did not respond ({error or type(error).__name__}): start it, "
            "or correct APNS_MOCK_ADMIN; without that variable each test session starts a server of its own.")

    def _scope(self, scope: Optional[str]) -> Optional[str]:
        if scope is not None and self.scope is not None:
            raise ValueError(f"This client is restricted to the scope {self.scope!r}: omit the scope {scope!r}, or use "
                             "the client that it was made from.")
        return self.scope if scope is None else scope

    def _with_scope(self, body: Mapping[str, Any], scope: Optional[str]) -> dict[str, Any]:
        applied = self._scope(scope)
        return dict(body) if applied is None else {**body, "scope": applied}

    def _filter(
        self, query: Optional[str], scope: Optional[str], filters: Mapping[str, FilterValue],
    ) -> list[tuple[str, str]]:
        parameters = [] if query is None else [("q", query)]
        for name, value in filters.items():
            values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            parameters.extend((name.rstrip("_"), _text(each)) for each in values)
        applied = self._scope(scope)
        return parameters if applied is None else [*parameters, ("scope", applied)]


def start(
    *arguments: str, binary: Optional[Union[str, os.PathLike[str]]] = None, timeout: Duration = 30.0,
) -> Client:
    """Starts a server on free ports; waits until it is ready. `arguments` are further flags of `apns-mock serve`.

    The program is `binary`, else APNS_MOCK_BINARY, else the one of this package, else from PATH. Stop the server with
    `stop`, or use the result in a `with` statement; otherwise it ends with this process.

    Raises ProgramError or StartError.
    """
    process = ServerProcess(find_program(binary), arguments, timeout=seconds(timeout))
    try:
        ports = process.ports
        client = Client(
            _address(ports["admin"]), _settings(_address(ports["apns"][0]), ports), admin_token=ports["admin_token"],
            process=process)
        _check_version(client, process.program)
    except BaseException:
        process.stop()
        raise
    return client


def connect(environment: Optional[Mapping[str, str]] = None) -> Client:
    """Returns a client of a running server, such as the one that `apns-mock exec` started for this process.

    Reads the variables that `exec` sets from `environment`, by default that of the process: APNS_MOCK_ADMIN and
    APNS_MOCK_APNS, APNS_MOCK_CA, APNS_MOCK_KEY, APNS_MOCK_KEY_ID, APNS_MOCK_TEAM_ID and APNS_MOCK_ADMIN_TOKEN. The file
    that APNS_MOCK_PORT_FILE names has the values of absent variables.

    Raises APNsMockError if a value is missing, or if no server responds.
    """
    variables = os.environ if environment is None else environment
    ports = _read_port_file(variables["APNS_MOCK_PORT_FILE"]) if variables.get("APNS_MOCK_PORT_FILE") else {}
    values = {
        "admin": _address(ports["admin"]) if ports.get("admin") else None,
        "apns": _address(ports["apns"][0]) if ports.get("apns") else None,
        **{name: ports.get(name) for name in ("ca", "key", "key_id", "team_id", "admin_token")},
    }
    for name in values:
        values[name] = variables.get(f"APNS_MOCK_{name.upper()}") or values[name]
    missing = [f"APNS_MOCK_{name.upper()}" for name, value in values.items() if not value and name != "admin_token"]
    if missing:
        raise APNsMockError(
            f"connect() needs {', '.join(missing)}: run the tests with `apns-mock exec -- COMMAND`, which sets these "
            "variables, or set APNS_MOCK_PORT_FILE to the port file of a running server.")
    apns = str(values["apns"]).split(",")[0]
    client = Client(str(values["admin"]), _settings(apns, values), admin_token=values["admin_token"])
    _check_version(client, client.admin_url)
    return client


def running_event_loop() -> Optional[str]:
    """Returns "asyncio" or "trio" if the present thread runs a task of that library, else None."""
    try:
        # Without a task, another library runs the loop beside synchronous code, as the synchronous Playwright does.
        return "asyncio" if asyncio.current_task() is not None else None
    except RuntimeError:
        trio = sys.modules.get("trio")
        return "trio" if trio is not None and trio.lowlevel.in_trio_run() else None


def device_token() -> str:
    """Returns a random device token of 64 hexadecimal digits."""
    return secrets.token_hex(32)


def _read_port_file(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise APNsMockError(
            f"The port file {path}, which APNS_MOCK_PORT_FILE names, cannot be read ({error}): the server that wrote "
            "it has probably exited; start it again, or unset the variable.") from error


def _settings(apns: str, values: Mapping[str, Any]) -> Settings:
    address = urlsplit(f"https://{apns}")
    if not address.hostname or not address.port:
        raise APNsMockError(f"APNS_MOCK_APNS is {apns!r}: it must be an address such as 127.0.0.1:2197.")
    return Settings(
        address.hostname, address.port, f"https://{apns}", values["ca"], values["key"], values["key_id"],
        values["team_id"])


def _check_version(client: Client, origin: str) -> None:
    """Raises ProgramError if the server's version is incompatible: another major version, or for 0.x minor version."""
    server = str(client.status()["version"])
    if _compatibility(server) != _compatibility(_version.VERSION):
        raise ProgramError(
            f"The server {origin} has version {server}, and this Python package has {_version.VERSION}: install the "
            f"package apns-mock {server}, or use a server of version {_version.VERSION}.")


def _compatibility(version: str) -> list[str]:
    """Returns the parts of a version that compatible versions share."""
    parts = re.findall(r"[0-9]+", version)
    return parts[:2] if parts[:1] == ["0"] else parts[:1]


def _address(endpoint: Mapping[str, Any]) -> str:
    host = str(endpoint["host"])
    return f"[{host}]:{endpoint['port']}" if ":" in host else f"{host}:{endpoint['port']}"


def seconds(value: Duration) -> float:
    """Returns a duration in seconds. Raises ValueError for a text that is none."""
    if not isinstance(value, str):
        return value.total_seconds() if isinstance(value, timedelta) else value
    parts = re.findall(r"([0-9.]+)(ms|s|m|h|d)", value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError(f"{value!r} is not a duration such as '500ms', '30s' or '2m'")
    return sum(float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit] for number, unit in parts)


def _duration(value: Duration) -> str:
    return value if isinstance(value, str) else f"{seconds(value) * 1000:.3f}".rstrip("0").rstrip(".") + "ms"


def _is_zero(value: Duration) -> bool:
    return re.fullmatch(r"0+(\.0+)?[a-z]*", _duration(value)) is not None


def _json(value: object) -> str:
    """Returns the text for a value that JSON does not have. Raises TypeError as `json.dumps` does."""
    if isinstance(value, (timedelta, datetime)):
        return _text(value)
    raise TypeError(f"{value!r} cannot be part of a request: use values of JSON, datetime or timedelta")


def _time(value: Union[str, datetime]) -> str:
    if isinstance(value, str):
        return value
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return _duration(value)
    return _time(value) if isinstance(value, datetime) else str(value)


def _describe_problem(method: str, path: str, status: int, content: bytes) -> str:
    """Returns the message for a problem document (RFC 9457), or for any other response."""
    try:
        problem = json.loads(content)
        message = _sentence(problem["detail"], problem.get("hint"))
        details = [_sentence(each["message"], each.get("hint")) for each in problem.get("problems") or []]
    except (ValueError, KeyError, TypeError):
        message, details = content.decode(errors="replace")[:200] or "no explanation", []
    lines = [f"apns-mock responded with {status} to {method} /api/v1{path}: {message}"]
    return "\n  ".join(lines + (details if len(details) > 1 else []))


def _sentence(message: str, hint: Optional[str]) -> str:
    return f"{message}. {hint}" if hint else message

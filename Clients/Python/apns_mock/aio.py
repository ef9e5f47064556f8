"""The client for asynchronous code, with asyncio or trio: the methods of `apns_mock.Client`, to be awaited.

    from apns_mock import aio

    async with await aio.start() as apns:
        await send_welcome(apns.settings)  # your code
        await apns.wait(count=1, accepted=True)

The pytest plugin has the fixture `apns_async`, for tests of pytest-asyncio and anyio.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import os
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

from . import client as clients
from .client import Client, Clock, Device, Duration, OpenRequests, Settings, running_event_loop
from .errors import APNsMockError, ServerExitedError

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")

__all__ = ["AsyncClient", "AsyncClock", "AsyncDevice", "connect", "start"]
# Hides the frames of this module in the tracebacks of pytest.
__tracebackhide__ = True

R = TypeVar("R")


def _awaited(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Returns a method that calls one of the synchronous client, in a thread. Cancelling it ends its request."""

    @functools.wraps(method)
    async def call(self: Any, /, *arguments: P.args, **options: P.kwargs) -> R:
        requests = OpenRequests()
        client = copy.copy(self._client)
        client._requests = requests
        try:
            return await _in_thread(functools.partial(method, self._target(client), *arguments, **options))
        except (APNsMockError, AssertionError) as error:
            # Otherwise pytest would show the frames of the thread.
            raise error.with_traceback(None)
        except BaseException:
            requests.end()
            raise

    return call


async def _in_thread(function: Callable[[], R]) -> R:
    """Calls a function in a thread of its own: the threads of the loop's executor are few, and the user's code needs them, too."""
    if running_event_loop() != "trio":
        executor = ThreadPoolExecutor(1, thread_name_prefix="apns-mock")
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, function)
        finally:
            executor.shutdown(wait=False)
    import trio

    result: R = await trio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
    return result


class AsyncDevice:
    """The state of one device token."""

    def __init__(self, client: Client, token: str) -> None:
        self._client = client
        self.token = token

    def _target(self, client: Client) -> Device:
        return Device(client, self.token)

    online = _awaited(Device.online)
    unregistered = _awaited(Device.unregistered)
    expired = _awaited(Device.expired)


class AsyncClock:
    """The clock of the server. It determines the age of provider tokens and the times of records."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _target(self, client: Client) -> Clock:
        return Clock(client)

    freeze = _awaited(Clock.freeze)
    advance = _awaited(Clock.advance)
    real = _awaited(Clock.real)


class AsyncClient:
    """A client of one server whose methods are awaited. `start` and `connect` create it; `AsyncClient(client)` has the
    server of a synchronous client.

    The methods raise the errors of `Client`. `wait` leaves the event loop free, so a provider in the same loop sends.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def _target(self, client: Client) -> Client:
        return client

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType],
    ) -> None:
        try:
            # Not in a thread: a cancelled task stops its server too.
            self._client.stop()
        except ServerExitedError:
            # The error that ends the `with` statement usually has the same cause.
            if error is None:
                raise

    @property
    def admin_url(self) -> str:
        """The address of the web UI and the admin API, `http://HOST:PORT`."""
        return self._client.admin_url

    @property
    def settings(self) -> Settings:
        """What the provider under test needs to send pushes to the server."""
        return self._client.settings

    @property
    def scope(self) -> Optional[str]:
        """The query that `scoped` restricts this client to, or None."""
        return self._client.scope

    @property
    def pid(self) -> Optional[int]:
        """The process id of the server, or None if `connect` found it."""
        return self._client.pid

    @property
    def clock(self) -> AsyncClock:
        """The clock of the server."""
        return AsyncClock(self._client)

    def device(self, token: str) -> AsyncDevice:
        """Returns the device with this token, to change its state."""
        return AsyncDevice(self._client, token)

    def scoped(self, scope: str) -> AsyncClient:
        """Returns this client restricted to the pushes that the query `scope` matches; see `Client.scoped`."""
        return AsyncClient(self._client.scoped(scope))

    stop = _awaited(Client.stop)
    reset = _awaited(Client.reset)
    profile = _awaited(Client.profile)
    rule = _awaited(Client.rule)
    status = _awaited(Client.status)
    pushes = _awaited(Client.pushes)
    wait = _awaited(Client.wait)
    verify = _awaited(Client.verify)
    assert_nothing_lost = _awaited(Client.assert_nothing_lost)
    assert_no_findings = _awaited(Client.assert_no_findings)
    check = _awaited(Client.check)
    report = _awaited(Client.report)
    findings = _awaited(Client.findings)
    export = _awaited(Client.export)
    import_ = _awaited(Client.import_)
    request = _awaited(Client.request)


async def start(
    *arguments: str, binary: Optional[Union[str, os.PathLike[str]]] = None, timeout: Duration = 30.0,
) -> AsyncClient:
    """Starts a server on free ports; waits until it is ready. See `apns_mock.start`."""
    return AsyncClient(await _in_thread(functools.partial(clients.start, *arguments, binary=binary, timeout=timeout)))


async def connect(environment: Optional[Mapping[str, str]] = None) -> AsyncClient:
    """Returns a client of a running server. See `apns_mock.connect`."""
    return AsyncClient(await _in_thread(functools.partial(clients.connect, environment)))

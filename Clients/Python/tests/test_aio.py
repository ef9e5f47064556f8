"""The asynchronous client, with asyncio and trio, and its fixture in tests of pytest-asyncio and anyio."""

from __future__ import annotations

import asyncio
import inspect
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import httpx
import jwt
import pytest
import trio

import apns_mock
from apns_mock import aio

TOKEN = "ab12"
#: Runs an asynchronous function with each library.
LIBRARIES: list[Callable[[Callable[[], Awaitable[None]]], object]] = [
    lambda function: asyncio.run(function()), lambda function: trio.run(function)]
libraries = pytest.mark.parametrize("run", LIBRARIES, ids=["asyncio", "trio"])


async def send(settings: apns_mock.Settings, token: str = TOKEN) -> int:
    """Sends one push in the event loop of the caller; returns the status of the response."""
    with open(settings.key) as key:
        provider_token = jwt.encode(
            {"iss": settings.team_id, "iat": int(time.time())}, key.read(), algorithm="ES256",
            headers={"kid": settings.key_id})
    context = ssl.create_default_context(cafile=settings.ca)
    async with httpx.AsyncClient(http2=True, verify=context, trust_env=False) as client:
        response = await client.post(
            f"{settings.url}/3/device/{token}", json={"aps": {"alert": "Hello"}},
            headers={"authorization": f"bearer {provider_token}", "apns-topic": settings.topic,
                     "apns-push-type": "alert"})
    return response.status_code


@pytest.mark.parametrize("synchronous, asynchronous", [
    (apns_mock.Client, aio.AsyncClient), (apns_mock.Device, aio.AsyncDevice), (apns_mock.Clock, aio.AsyncClock)])
def test_the_surface_is_the_same(synchronous: type, asynchronous: type) -> None:
    names = {name for name in dir(synchronous) if not name.startswith("_")}
    # These are attributes of instances of the synchronous client.
    attributes = {"admin_url", "scope", "settings"}
    assert names == {name for name in dir(asynchronous) if not name.startswith("_")} - attributes
    for name in names:
        method, awaited = getattr(synchronous, name), getattr(asynchronous, name)
        if inspect.iscoroutinefunction(awaited):
            assert inspect.signature(awaited) == inspect.signature(method)
            assert awaited.__doc__ == method.__doc__
        else:
            assert isinstance(method, property) or name in ("scoped", "device")


@libraries
def test_a_server_is_used_and_stopped(run: Callable[..., object]) -> None:
    async def use() -> None:
        async with await aio.start() as apns:
            await apns.profile("flaky-503?rate=1", seed=7)
            assert await send(apns.settings) == 503
            await apns.reset()
            await apns.device(TOKEN).unregistered()
            assert await send(apns.settings) == 410
            await apns.clock.advance("61m")
            assert [push["served"]["status"] for push in await apns.scoped(f"token:{TOKEN}").pushes()] == [410]
            assert [finding["finding"] for finding in await apns.findings()] == []
            pids.append(apns.pid)
            with pytest.raises(apns_mock.VerificationError):
                await apns.verify([{"match": "status:200"}])

    pids: list[object] = []
    run(use)
    assert not Path(f"/proc/{pids[0]}").exists()


@libraries
def test_a_wait_lets_the_provider_in_the_same_loop_send(run: Callable[..., object], server: apns_mock.Client) -> None:
    async def use() -> None:
        apns = aio.AsyncClient(server)
        if run is LIBRARIES[0]:
            sending = asyncio.ensure_future(send(apns.settings))
            pushes = await apns.wait(count=1, timeout="5s")
            assert await sending == 200
        else:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send, apns.settings)
                pushes = await apns.wait(count=1, timeout="5s")
        assert [push["request"]["device_token"] for push in pushes] == [TOKEN]

    run(use)


@libraries
def test_a_cancelled_wait_ends_at_once(run: Callable[..., object], server: apns_mock.Client) -> None:
    async def use() -> None:
        apns = aio.AsyncClient(server)
        if run is LIBRARIES[0]:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(apns.wait(count=1, timeout="5m"), 0.05)
        else:
            with trio.move_on_after(0.05) as scope:
                await apns.wait(count=1, timeout="5m")
            assert scope.cancelled_caught
        assert await apns.pushes() == []

    started = time.monotonic()
    # Leaving the loop of asyncio waits for its threads.
    run(use)
    assert time.monotonic() - started < 10


@libraries
@pytest.mark.parametrize("call", [
    lambda apns: apns.wait(count=1), lambda apns: apns.wait(count=0, settle="1s"),
    lambda apns: apns.verify({"expect": [{"match": "status:200"}], "timeout": "5m"})])
def test_a_blocking_call_in_a_loop_says_so_at_once(
    run: Callable[..., object], call: Callable[[apns_mock.Client], object], server: apns_mock.Client,
) -> None:
    async def use() -> None:
        started = time.monotonic()
        with pytest.raises(apns_mock.BlockingError, match=r"would block the event loop of (asyncio|trio).*apns_async"):
            call(server)
        assert time.monotonic() - started < 5

    run(use)


@libraries
def test_a_call_that_need_not_wait_is_allowed_in_a_loop(run: Callable[..., object], server: apns_mock.Client) -> None:
    async def use() -> None:
        assert await send(server.settings) == 200
        assert len(server.wait(count=1)) == 1
        server.verify({"expect": [{"match": "status:200"}], "timeout": "5m"})
        for timeout in (0, "0s", timedelta(0)):
            with pytest.raises(apns_mock.WaitError, match="no push matches"):
                server.wait("status:410", timeout=timeout)

    run(use)


SUITE = """
import pytest
from apns_mock import Client, Push, aio
from test_aio import send

@pytest.mark.{marker}
@pytest.mark.apns(profile="flaky-503?rate=1", seed=7)
async def test_waits(apns_async: aio.AsyncClient) -> None:
    await send(apns_async.settings)
    pushes = await apns_async.wait(status=503, timeout="5s")
    push: Push = pushes[0]
    environment: str = push["environment"]
    assert (environment, push["kind"], push["delivery"]) == ("sandbox", "push", None)
    assert push["connection"]["http"] == "h2"

@pytest.mark.{marker}
async def test_starts_empty(apns_async: aio.AsyncClient, apns: Client) -> None:
    assert await apns_async.pushes() == [] == apns.pushes()

@pytest.mark.{marker}
async def test_blocks(apns: Client) -> None:
    apns.wait(count=1)

@pytest.mark.{marker}
async def test_fails(apns_async: aio.AsyncClient) -> None:
    await apns_async.wait("status:200", timeout=0)
"""


@pytest.mark.parametrize("marker, passed", [("asyncio", 2), ("anyio", 4)])
def test_fixtures_of_asynchronous_tests(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, marker: str, passed: int,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.makepyfile(SUITE.format(marker=marker))
    if marker == "anyio":
        pytester.makeconftest("""
            import pytest

            @pytest.fixture(params=["asyncio", "trio"])
            def anyio_backend(request): return request.param
            """)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=passed, failed=passed)
    result.stdout.fnmatch_lines(["*BlockingError: wait() would block the event loop of asyncio*"])
    result.stdout.fnmatch_lines(["*WaitError: wanted at least 1, and no push matches after 0s"])
    # Only the frame of the test is shown.
    assert "apns_mock/client.py" not in result.stdout.str().replace("\\", "/")
    assert "apns_mock/aio.py" not in result.stdout.str() and "concurrent/futures" not in result.stdout.str()


def test_the_types_of_a_users_test_are_complete(tmp_path: Path) -> None:
    test = tmp_path / "test_user.py"
    test.write_text(SUITE.format(marker="asyncio").replace("from test_aio import send", "from provider import send"))
    (tmp_path / "provider.py").write_text(
        "import apns_mock\nasync def send(settings: apns_mock.Settings) -> int: return settings.port\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), test.name]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    test.write_text(test.read_text().replace("environment: str", "environment: int"))
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Incompatible types" in result.stdout


def test_waits_leave_threads_to_the_code_of_the_user(server: apns_mock.Client) -> None:
    """The executor of asyncio has few threads; as many waits would otherwise stop everything else that needs one."""
    async def use() -> None:
        waiting = [asyncio.create_task(aio.AsyncClient(server).wait("status:200", timeout="20s")) for _ in range(40)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 10) == 7
        assert await send(server.settings) == 200
        assert {len(await task) for task in waiting} == {1}

    asyncio.run(use())


def test_synchronous_code_beside_a_loop_may_wait(server: apns_mock.Client) -> None:
    """The synchronous Playwright runs an event loop in the thread of the test, in which no task is current."""
    loop = asyncio.new_event_loop()
    found: list[apns_mock.WaitError] = []

    def use() -> None:
        try:
            server.wait("status:410", timeout=0.01)
        except apns_mock.WaitError as error:
            found.append(error)
        finally:
            loop.stop()

    loop.call_soon(use)
    loop.run_forever()
    loop.close()
    assert len(found) == 1

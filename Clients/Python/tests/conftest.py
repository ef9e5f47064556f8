"""Fixtures of the package's own tests. They run in an environment with the wheel, whose program is the server."""

from __future__ import annotations

import signal
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import httpx
import jwt
import pytest

import apns_mock

pytest_plugins = ["pytester"]

# A shell starts background jobs with SIGINT ignored, which the processes of these tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

Send = Callable[..., httpx.Response]


@pytest.fixture(autouse=True)
def no_running_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the variables of a server that the tests may have been started with."""
    for name in ("ADMIN", "APNS", "PORT_FILE", "CA", "KEY", "KEY_ID", "TEAM_ID", "ADMIN_TOKEN", "RUN"):
        monkeypatch.delenv(f"APNS_MOCK_{name}", raising=False)


@pytest.fixture
def server() -> Iterator[apns_mock.Client]:
    """A server of the test's own."""
    with apns_mock.start() as running:
        yield running


@pytest.fixture
def send() -> Iterator[Send]:
    """`send(settings, token)` sends one push; returns the response."""
    clients: dict[str, httpx.Client] = {}

    def send(
        settings: apns_mock.Settings, token: str, topic: str = "com.example.app",
        headers: Mapping[str, str] = MappingProxyType({}), **aps: object,
    ) -> httpx.Response:
        if settings.url not in clients:
            with open(settings.key) as key:
                provider_token = jwt.encode(
                    {"iss": settings.team_id, "iat": int(time.time())}, key.read(), algorithm="ES256",
                    headers={"kid": settings.key_id})
            clients[settings.url] = httpx.Client(
                base_url=settings.url, http2=True, verify=ssl.create_default_context(cafile=settings.ca),
                trust_env=False, headers={"authorization": f"bearer {provider_token}", "apns-push-type": "alert"})
        return clients[settings.url].post(
            f"/3/device/{token}", json={"aps": aps or {"alert": "Hello"}}, headers={"apns-topic": topic, **headers})

    yield send
    for client in clients.values():
        client.close()

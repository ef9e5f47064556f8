"""Tests of `provider.py` against apns-mock: `apns-mock exec -- python -m pytest`."""

import asyncio
import os
import secrets

import httpx
import pytest

from provider import Provider

TOPIC = "com.example.app"


class Mock:
    """The admin API of the server that `apns-mock exec` started."""

    def __init__(self):
        self.api = httpx.Client(base_url=f"http://{os.environ['APNS_MOCK_ADMIN']}/api/v1", trust_env=False)

    def request(self, method, path, **settings):
        return self.api.request(method, path, **settings).raise_for_status().json()

    def pushes(self, query):
        return self.request("GET", "/pushes", params={"q": query})["items"]

    def verify(self, *expectations):
        """Fails with a description of what differs unless the pushes since the reset are as expected."""
        report = self.api.post("/verify", json={"expect": expectations}).json()
        assert report["passed"], report["text"]


@pytest.fixture
def mock():
    """The server, reset before each test."""
    mock = Mock()
    mock.request("POST", "/reset")
    yield mock
    mock.api.close()


@pytest.fixture
def device():
    return secrets.token_hex(32)


def send(device, count=1, **settings):
    """Sends `count` welcome pushes one after the other. Returns the responses and the provider."""

    async def run():
        async with Provider.from_environment(first_pause=0.15, **settings) as provider:
            payload = {"aps": {"alert": {"title": "Welcome"}}}
            return [await provider.send(device, payload, TOPIC) for _ in range(count)], provider

    return asyncio.run(run())


def test_welcome_push_is_accepted(mock, device):
    (response,), _ = send(device)
    assert response.status_code == 200
    (push,) = mock.pushes(f"token:{device} payload./aps/alert/title:Welcome")
    assert push["accepted"] and push["apns"]["id"].lower() == response.headers["apns-id"].lower()


def test_unregistered_device_is_dropped(mock, device):
    mock.request("PUT", f"/devices/{device}", json={"state": "unregistered"})
    (response,), provider = send(device)
    assert (response.status_code, response.json()["reason"]) == (410, "Unregistered")
    assert provider.unregistered == {device}
    assert len(mock.pushes(f"token:{device}")) == 1, "a 410 is not retried"


def test_provider_token_is_reused(mock, device):
    send(device, count=5)
    assert mock.request("GET", "/findings")["items"] == []


def test_unavailable_service_is_retried_with_backoff(mock, device):
    mock.request("PUT", "/profile", json={"name": "flaky-503", "params": {"rate": 1, "streak": 2}, "seed": 7})
    (response,), _ = send(device)
    assert response.status_code == 200
    retries = {"max": 3, "min_first_delay": "100ms", "growing": True, "finally": "accepted"}
    mock.verify({"match": {"device_token": device}, "retries": retries})

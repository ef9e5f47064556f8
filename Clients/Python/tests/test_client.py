"""The client against a server of its own."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import apns_mock
from apns_mock import Client, VerificationError, device_token
from conftest import Send


def test_settings_are_what_a_provider_needs(server: Client, send: Send) -> None:
    settings = server.settings
    assert settings.url == f"https://{settings.host}:{settings.port}"
    assert (settings.key_id, settings.team_id, settings.topic) == ("MOCKKEY001", "MOCKTEAM01", "com.example.app")
    assert send(settings, device_token()).status_code == 200


def test_pushes_are_filtered(server: Client, send: Send) -> None:
    first, second = device_token(), device_token()
    send(server.settings, first, badge=1)
    send(server.settings, second, badge=2)
    send(server.settings, second, topic="com.example.other", badge=3)
    assert [push["request"]["device_token"] for push in server.pushes()] == [first, second, second]
    assert [push["seq"] for push in server.pushes(device_token=second, topic="com.example.app")] == [2]
    assert [push["seq"] for push in server.pushes("topic:com.example.*", accepted=True, order="desc")] == [3, 2, 1]
    assert [push["seq"] for push in server.pushes(device_token=[first, second], is_="first")] == [1, 2, 3]
    assert [push["seq"] for push in server.pushes(**{"payload./aps/badge": ">1"})] == [2, 3]
    assert [push["seq"] for push in server.pushes(limit=2)] == [1, 2]
    assert server.pushes(since=datetime.now(timezone.utc) + timedelta(minutes=1)) == []


def test_all_pages_are_read(server: Client, send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        send(server.settings, device_token())
    monkeypatch.setattr("apns_mock.client.PAGE_SIZE", 2)
    assert [push["seq"] for push in server.pushes()] == [1, 2, 3, 4, 5]
    assert [push["seq"] for push in server.pushes(order="desc")] == [5, 4, 3, 2, 1]
    assert [push["seq"] for push in server.pushes(limit=3, after=1)] == [2, 3, 4]


def test_wait_returns_as_soon_as_the_push_arrives(server: Client, send: Send) -> None:
    token = device_token()
    thread = threading.Thread(target=lambda: (server.wait("is:first", count=1), send(server.settings, token, badge=2)))
    thread.start()
    send(server.settings, token)
    started = time.monotonic()
    pushes = server.wait(count=2, device_token=token, accepted=True)
    assert time.monotonic() - started < 5
    assert [push["apns"]["topic"] for push in pushes] == ["com.example.app"] * 2
    thread.join()


def test_durations_may_be_timedeltas_wherever_they_are(server: Client, send: Send) -> None:
    second = timedelta(seconds=1)
    send(server.settings, device_token())
    server.rule({"name": "slow", "do": {"delay": {"fixed": timedelta(milliseconds=1)}}}, ttl=second)
    server.verify({"expect": [{"count": 1}], "timeout": second, "settle": timedelta(milliseconds=1)})
    server.verify({"expect": [{"count": 1}], "timeout": 1, "settle": 0.001})
    server.verify([{"match": {"since": datetime.now(timezone.utc) - second * 60}, "count": 1}])
    assert len(server.wait(count=1, timeout=second, since=-second * 60)) == len(server.pushes(since=-second * 60)) == 1
    server.clock.advance(second)
    with pytest.raises(TypeError, match="cannot be part of a request"):
        server.verify({"timeout": object()})


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("1.5s", 1.5), ("1h30m", 5400), (timedelta(minutes=1), 60), (2, 2)])
def test_durations_in_seconds(text: apns_mock.client.Duration, seconds: float) -> None:
    assert apns_mock.client.seconds(text) == seconds
    with pytest.raises(ValueError, match="is not a duration"):
        apns_mock.client.seconds("soon")


def test_clock_expires_a_provider_token(server: Client, send: Send) -> None:
    assert send(server.settings, device_token()).status_code == 200
    server.clock.freeze()
    server.clock.advance(timedelta(minutes=61))
    assert send(server.settings, device_token()).json()["reason"] == "ExpiredProviderToken"
    server.clock.real()
    server.clock.freeze("2030-01-01T12:00:00.000Z")
    clock = server.request("GET", "/clock")
    assert (clock["mode"], clock["now"]) == ("frozen", "2030-01-01T12:00:00.000Z")
    server.clock.advance("1.5s")
    server.clock.advance(0.25)
    assert server.request("GET", "/clock")["now"] == "2030-01-01T12:00:01.750Z"


def test_arguments_that_no_request_can_have(server: Client) -> None:
    with pytest.raises(ValueError, match="limit must be a number"):
        server.pushes(limit="3")
    with pytest.raises(ValueError, match="restricted"):
        server.scoped("topic:com.example.app").pushes(scope="topic:com.example.other")


def test_no_findings(server: Client, send: Send) -> None:
    token = device_token()
    server.device(token).unregistered()
    send(server.settings, token)
    server.assert_no_findings()
    send(server.settings, token)
    server.assert_no_findings("hot-retry", "jwt-churn")
    with pytest.raises(VerificationError, match="retried-410"):
        server.assert_no_findings("retried-410")


def test_export_and_import(server: Client, send: Send, tmp_path: Path) -> None:
    token = device_token()
    send(server.settings, token)
    send(server.settings, device_token())
    server.export(tmp_path / "run.ndjson", device_token=token)
    assert (tmp_path / "run.ndjson").stat().st_mode & 0o777 == 0o600, "it contains payloads and device tokens"
    server.reset()
    server.import_(tmp_path / "run.ndjson")
    (push,) = server.pushes()
    assert push["request"]["device_token"] == token


def test_device_tokens_are_valid_and_differ() -> None:
    tokens = {device_token() for _ in range(100)}
    assert len(tokens) == 100 and all(len(bytes.fromhex(token)) == 32 for token in tokens)

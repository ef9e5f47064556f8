"""The client against a server of its own."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import apns_mock
from apns_mock import Client, RequestError, VerificationError, WaitError, device_token
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


def test_misspelled_filter_is_an_error(server: Client) -> None:
    with pytest.raises(RequestError, match='unknown field "topik".*did you mean topic') as caught:
        server.wait(topik="com.example.app", timeout=0)
    assert caught.value.status == 400
    with pytest.raises(RequestError, match="Did you mean flaky-503"):
        server.profile("flaky-504")
    with pytest.raises(RequestError, match="no_findings.*Did you mean hot-retry"):
        server.assert_no_findings("hot-retri")
    with pytest.raises(ValueError, match="limit must be a number"):
        server.pushes(limit="3")


def test_evicted_pushes_are_not_silently_missing(send: Send) -> None:
    with apns_mock.start("--max-records", "2") as server:
        for _ in range(3):
            send(server.settings, device_token())
        with pytest.raises(apns_mock.APNsMockError, match="1 pushes are missing.*--max-records"):
            server.pushes()


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


def test_wait_for_more_than_a_page(server: Client, send: Send, tmp_path: Path) -> None:
    send(server.settings, device_token())
    exported = tmp_path / "run.ndjson"
    server.export(exported)
    record = json.loads(exported.read_text())
    exported.write_text("".join(json.dumps({**record, "seq": seq}) + "\n" for seq in range(1, 1201)))
    server.import_(exported)
    assert len(server.wait(count=1201)) == 1201


def test_failed_wait_names_the_nearest_push(server: Client, send: Send) -> None:
    token = device_token()
    send(server.settings, token)
    with pytest.raises(WaitError) as caught:
        server.wait(device_token=token, status=410, timeout=timedelta(milliseconds=100))
    assert "no push matches after 100ms" in str(caught.value)
    assert "nearest: push 1 does not meet status (met: device_token)" in str(caught.value)
    with pytest.raises(WaitError, match="1"):
        server.wait(count=0, settle="50ms", timeout=0.1)


def test_reset_restores_everything_but_exceptions(server: Client, send: Send) -> None:
    token = device_token()
    server.profile("flaky-503?rate=1", seed=7)
    server.device(token).unregistered()
    send(server.settings, token)
    server.reset(keep="profile")
    assert server.pushes() == []
    assert send(server.settings, token).status_code == 503, "the device is online and the profile is kept"
    server.reset()
    assert send(server.settings, token).status_code == 200
    assert server.status()["profile"] == "healthy"


def test_profile_with_seed(server: Client) -> None:
    server.profile("flaky-503?rate=0.3", seed=7)
    assert server.status()["profile"] == "flaky-503?rate=0.3"
    assert server.request("GET", "/profile")["seed"] == 7


def test_rule_with_ttl(server: Client, send: Send) -> None:
    rule = server.rule({"name": "down", "do": {"respond": {"status": 503}}}, ttl=60)
    assert rule["name"] == "down" and rule["ends_in"]
    response = send(server.settings, device_token())
    assert (response.status_code, response.json()["reason"]) == (503, "ServiceUnavailable")
    with pytest.raises(RequestError, match="respont.*respond"):
        server.rule({"do": {"respont": {}}})


def test_states_of_a_device(server: Client, send: Send) -> None:
    token = device_token()
    since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    server.device(token).unregistered(since)
    response = send(server.settings, token)
    assert (response.status_code, response.json()["reason"]) == (410, "Unregistered")
    assert response.json()["timestamp"] == since.timestamp() * 1000
    server.device(token).expired()
    assert send(server.settings, token, badge=1).json()["reason"] == "ExpiredToken"
    server.device(token).online()
    assert send(server.settings, token, badge=2).status_code == 200


def test_clock_expires_a_provider_token(server: Client, send: Send) -> None:
    assert send(server.settings, device_token()).status_code == 200
    server.clock.freeze()
    server.clock.advance(timedelta(minutes=61))
    assert send(server.settings, device_token()).json()["reason"] == "ExpiredProviderToken"
    server.clock.real()
    server.clock.freeze("2030-01-01T12:00:00.000Z")
    assert server.request("GET", "/clock") == {"mode": "frozen", "now": "2030-01-01T12:00:00.000Z"}
    server.clock.advance("1.5s")
    server.clock.advance(0.25)
    assert server.request("GET", "/clock")["now"] == "2030-01-01T12:00:01.750Z"


def test_verify_raises_with_the_report(server: Client, send: Send) -> None:
    send(server.settings, device_token(), alert={"title": "Welcome "})
    expectation = {
        "name": "welcome push", "match": {"payload": {"/aps/alert/title": "Welcome"}}, "count": {"exactly": 1}}
    with pytest.raises(VerificationError, match="✗ welcome push: expected exactly 1, found 0") as caught:
        server.verify([expectation])
    assert "← trailing space" in str(caught.value)
    report = server.verify({"expect": [{"match": "topic:com.example.app"}], "no_others": True})
    assert report["passed"]


def test_lost_push(server: Client, send: Send) -> None:
    server.rule({"do": {"respond": {"status": 503}}})
    send(server.settings, device_token())
    with pytest.raises(VerificationError, match="nothing_lost.*1 lost"):
        server.assert_nothing_lost()
    server.reset()
    server.assert_nothing_lost()


def test_findings(server: Client, send: Send) -> None:
    token = device_token()
    server.device(token).unregistered()
    send(server.settings, token)
    server.assert_no_findings()
    send(server.settings, token)
    (finding,) = server.findings()
    assert finding["finding"] == "retried-410" and finding["records"][0]["seq"] == 2
    assert server.findings(device_token=device_token()) == []
    server.assert_no_findings("hot-retry", "jwt-churn")
    with pytest.raises(VerificationError, match="retried-410"):
        server.assert_no_findings("retried-410")


def test_scope_hides_other_pushes(server: Client, send: Send, tmp_path: Path) -> None:
    ours, others = server.scoped("topic:com.example.app"), server.scoped("topic:com.example.other")
    send(server.settings, device_token())
    token = device_token()
    server.device(token).unregistered()
    for _ in range(2):
        send(server.settings, token, topic="com.example.other")
    assert [push["seq"] for push in ours.pushes()] == [1]
    assert [finding["finding"] for finding in others.findings()] == ["retried-410"]
    ours.assert_no_findings()
    ours.verify({"expect": [{"count": 1}], "no_others": True})
    assert len(others.wait(count="=2")) == 2
    others.export(tmp_path / "others.ndjson")
    assert len((tmp_path / "others.ndjson").read_text().splitlines()) == 2
    others.reset()
    assert others.pushes() == [] and len(server.pushes()) == 1
    with pytest.raises(ValueError, match="already|restricted"):
        ours.pushes(scope="topic:com.example.other")


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

"""The module for Testcontainers, with the library and a stand-in for the engine. No container is run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Send
from engine import ADMIN_PORT, Engine

from apns_mock import APNsMockError, StartError
from apns_mock.server import find_program


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    engine = Engine(find_program(None))
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    # The tests may themselves run in a container.
    monkeypatch.setenv("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
    yield engine
    engine.shutdown()
    engine.end()
    shutil.rmtree(engine.folder)


def test_a_container_is_started_used_and_removed(engine: Engine, send: Send) -> None:
    from apns_mock.testcontainers import ApnsMockContainer

    arguments = ("--rules", "strict", "--allow-host=mock.test")
    with ApnsMockContainer(timeout="60s").with_arguments(*arguments).with_env("APNS_MOCK_SAN", "push.test") as container:
        assert engine.created["Image"] == "apns-mock"
        assert engine.created["Cmd"] == ["serve", *arguments, "--allow-host", "127.0.0.1"]
        assert engine.created["Env"] == ["APNS_MOCK_SAN=push.test,127.0.0.1"]
        assert set(engine.created["ExposedPorts"]) == {"2197/tcp", f"{ADMIN_PORT}/tcp"}
        apns = container.get_client()
        assert send(apns.settings, "ab12").status_code == 200
        assert [push["accepted"] for push in apns.wait(count=1)] == [True]
        assert apns.status()["rules"] == "strict"
        folder = Path(apns.settings.ca).parent
    assert engine.removed
    assert not folder.exists()
    with pytest.raises(StartError, match=r"call start\(\)"):
        container.get_client()


def test_a_server_that_does_not_become_ready_is_an_error(engine: Engine) -> None:
    from apns_mock.testcontainers import ApnsMockContainer

    with pytest.raises(APNsMockError, match="not ready in time"):
        ApnsMockContainer(timeout=0.1).with_arguments("--profile", "flaky-504").start()
    assert engine.removed

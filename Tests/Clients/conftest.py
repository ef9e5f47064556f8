"""Fixtures: the program under test, one server for the whole session, further ones with flags of their own."""

import pathlib
import secrets

import pytest

from support.server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--binary", default=".build/release/apns-mock", help="the apns-mock program to test")


@pytest.fixture(scope="session")
def binary(pytestconfig):
    path = (ROOT / pytestconfig.getoption("--binary")).resolve()
    if not path.exists():
        pytest.exit(f"{path} is not there; build it with `make build`, or name another with --binary", 2)
    return path


@pytest.fixture(scope="session")
def certs(tmp_path_factory):
    """One folder of certificates and keys for all servers, filled by the first that starts."""
    return tmp_path_factory.mktemp("certs")


def ended_well(server):
    """Stops a server that still runs; a server that crashed in the meantime fails the test."""
    try:
        assert server.stop() == 0, f"serve ended with {server.process.returncode}:\n{server.log()[-4000:]}"
    finally:
        server.kill()


@pytest.fixture(scope="session")
def server(binary, certs):
    """The shared server with default settings. Tests keep apart by using devices of their own."""
    running = Server(binary, certs)
    yield running
    ended_well(running)


@pytest.fixture
def start(binary, certs):
    """Starts further servers: `start("--rules", "strict")`. Each is stopped after the test and must end with 0."""
    running = []

    def starter(*flags, **settings):
        running.append(Server(binary, settings.pop("certs", certs), *flags, **settings))
        return running[-1]

    yield starter
    for one in running:
        ended_well(one)


@pytest.fixture
def device():
    """A device token nobody else uses."""
    return secrets.token_hex(32)

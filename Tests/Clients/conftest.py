"""Fixtures: the program under test, one server for the whole session, further ones with flags of their own."""

import json
import pathlib
import secrets
import signal
import socket

import pytest

from support import browser as browsers, drivers, hosts
from support.server import Server, run
from support.way import Way

# Whoever starts the tests in the background, or by nohup, has them ignored, and so would every program that they start.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

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


@pytest.fixture(scope="session")
def ipv6_server(binary, certs):
    """A server that listens on ::1."""
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"this machine has no ::1: {error}")
    running = Server(binary, certs, apns=("[::1]:0",))
    running.way = Way(host="::1")
    yield running
    ended_well(running)


@pytest.fixture(scope="session")
def apple_server(binary, certs, tmp_path_factory):
    """A server where Apple's sandbox is for a client: its host name, port 443. Fixed ports are for this one alone; the
    address is of its own."""
    address = hosts.free_https_address()
    way = hosts.apple_here(address, tmp_path_factory.mktemp("hosts"))
    running = Server(binary, certs, apns=(f"{address}:443",))
    running.way = way
    yield running
    ended_well(running)


@pytest.fixture
def server_for(request, server):
    """`server_for(client)`: a server which that client of `drivers.ALL` can be pointed at."""
    return lambda client: request.getfixturevalue("apple_server") if client in drivers.FIXED else server


@pytest.fixture(scope="session")
def certificate(binary, server):
    """A provider certificate for two topics, made by the command for it; the paths of its chain and its key."""
    made = run(
        binary, "certs", "client", "--topic", "com.example.app", "--topic", "com.example.app.voip", "--json",
        "--certs", server.certs)
    assert made.returncode == 0, made.stderr
    paths = json.loads(made.stdout)
    return paths["certificate"], paths["key"]


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


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium for the tests of one file. What drives it may not stay while others want an event loop."""
    pytest.importorskip("playwright", reason="Playwright, which drives the browser, is not installed")
    if browsers.program() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with browsers.running() as running:
        yield running


@pytest.fixture
def look(browser):
    """`look(server, "/?q=…")` opens the page. Afterwards the browser must have had nothing to complain about, and must
    have asked nobody else for anything."""
    views = []

    def open_page(server, path="/", **settings):
        views.append(browsers.View(browser, server, path, **settings))
        return views[-1]

    yield open_page
    for view in views:
        complaints, foreign = list(view.complaints), list(view.foreign)
        view.close()
        assert not complaints, complaints
        assert not foreign, foreign


@pytest.fixture
def provider():
    """`provider(server)` is a provider library with a connection of its own."""
    opened = []

    def connect(server):
        opened.append(browsers.Provider(server))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()

"""Fixtures: the binary under test, a server shared by the session, and further servers with their own flags."""

import json
import re
import secrets
import signal
import socket
import subprocess

import pytest

from support import ROOT, browser as browsers, drivers, hosts, postgres as databases, selection, serial, stores
from support.server import Server, clean_environment, run, stop_cleanly
from support.way import Way

# A shell that starts the tests in the background, or nohup, makes them ignore these signals, and the programs they
# start would inherit that.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# Where servers keep the inbox, unless a test chooses: each in a place of its own. Of a file or a database, nearly nothing is
# in memory.
STORES = {
    "memory": None,
    "sqlite": lambda folder: stores.value(stores.new_place("sqlite", folder), memory_records=8),
    "postgres": lambda folder: stores.value(stores.new_place("postgres", folder), memory_records=8),
}

# The files whose tests share something slow: a browser, or a server on which all slow clients, pushes of every kind or many pushes
# are or were, or providers that run at the same time. In `make test`, all or none of the tests of such a file are `serial`:
# otherwise the worker that runs the file would stop all others.
ONE_WORKER = re.compile(
    r"\bpage/|test_restart\.py|test_simulation\.py|test_store_view\.py|test_slow_clients\.py|test_expensive_queries\.py|"
    r"test_power_loss\.py|test_damaged_files\.py|test_unusual_pushes\.py|test_many_schemas(_runs)?\.py")

#: The seconds from which a test runs before shorter ones.
LONG = 3


def pytest_addoption(parser):
    parser.addoption("--binary", default=".build/release/apns-mock", help="the apns-mock program to test")
    parser.addoption("--store", default="memory", choices=list(STORES),
                     help="where servers keep the inbox, unless a test chooses")
    selection.add_options(parser)


def pytest_configure(config):
    serial.prepare(config)
    selection.prepare(config)
    if chosen := STORES[config.getoption("--store")]:
        Server.default_store = staticmethod(chosen)
    config.add_cleanup(databases.close_all)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Gives each test to the next free worker, except that one worker runs all tests of a file in `ONE_WORKER`. The
    groups of pytest-xdist 3.8 have no effect with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return nodeid.split("::")[0] if ONE_WORKER.search(nodeid) else nodeid

    return Scheduler(config, log)


def pytest_collection_modifyitems(config, items):
    """Moves the tests marked `serial` to the end, and those that take long to the front, so that no worker waits for
    them: the files that one worker runs, then the others, the longest first. All others stay together by file: between two of
    them a worker would end the servers that their file shares, and start others.
    """
    selection.deselect(config, items)

    def position(item):
        duration = selection.duration(item.nodeid)
        return (item.get_closest_marker("serial") is not None, ONE_WORKER.search(item.nodeid) is None,
                -duration if duration >= LONG else 0)

    items.sort(key=position)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Runs a test marked `serial` while the other workers run none. The time it waits for them does not count toward
    its timeout.
    """
    with serial.exclusive(item):
        return (yield)


@pytest.fixture(scope="session")
def binary(pytestconfig):
    path = (ROOT / pytestconfig.getoption("--binary")).resolve()
    if not path.exists():
        pytest.exit(f"{path} is not there; build it with `make build`, or name another with --binary", 2)
    return path


@pytest.fixture(scope="session")
def certs(tmp_path_factory):
    """One folder of certificates and keys for all servers, created by the first that starts."""
    return tmp_path_factory.mktemp("certs")


@pytest.fixture(scope="session")
def server(binary, certs):
    """The shared server with default settings. Tests use their own devices to keep their records apart."""
    running = Server(binary, certs)
    yield running
    stop_cleanly(running)


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
    stop_cleanly(running)


@pytest.fixture(scope="session")
def apple_server(binary, certs, tmp_path_factory):
    """A server at the address that clients expect for Apple's sandbox: its host name, port 443. Only this server
    uses a fixed port, on a loopback address that no other server uses.
    """
    address = hosts.free_https_address()
    way = hosts.apple_here(address, tmp_path_factory.mktemp("hosts"))
    running = Server(binary, certs, apns=(f"{address}:443",))
    running.way = way
    yield running
    stop_cleanly(running)


@pytest.fixture
def server_for(request, server):
    """`server_for(client)`: a server which that client of `drivers.ALL` can connect to."""
    return lambda client: request.getfixturevalue("apple_server") if client in drivers.FIXED else server


@pytest.fixture(scope="session")
def certificate(binary, server):
    """A provider certificate for two topics, made by `certs client`: the paths of its chain and its key."""
    made = run(
        binary, "certs", "client", "--topic", "com.example.app", "--topic", "com.example.app.voip", "--json",
        "--certs", server.certs)
    assert made.returncode == 0, made.stderr
    paths = json.loads(made.stdout)
    return paths["certificate"], paths["key"]


@pytest.fixture
def start(binary, certs):
    """Starts further servers: `start("--rules", "strict")`. Each is stopped after the test and must exit with 0."""
    running = []

    def starter(*flags, **settings):
        running.append(Server(binary, settings.pop("certs", certs), *flags, **settings))
        return running[-1]

    yield starter
    for one in running:
        stop_cleanly(one)


@pytest.fixture
def device():
    """A device token that no other test uses."""
    return secrets.token_hex(32)


@pytest.fixture
def paste(binary, certs, tmp_path):
    """`paste(server, text, *command)` writes a text from the documentation to a file and runs it as a reader would:
    in the folder that contains `Certs`, with the program in the path. Only the default ports are replaced by the
    server's.
    """
    tools = tmp_path / ".build" / "release"
    tools.mkdir(parents=True)
    (tools / "apns-mock").symlink_to(binary)
    (tmp_path / "Certs").symlink_to(certs)

    def paster(server, text, *command, suffix="", **variables):
        if server is not None:
            ports = {"2197": str(server.port), "8197": str(server.admin_port)}
            text = re.sub("2197|8197", lambda found: ports[found[0]], text)
            variables["APNS_MOCK_PORT_FILE"] = str(server.port_file)
        script = tmp_path / f"pasted{suffix}"
        script.write_text(text)
        environment = clean_environment(NO_PROXY="*", **variables)
        environment["PATH"] = f"{tools}:{environment['PATH']}"
        done = subprocess.run(
            [*command, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=40)
        assert done.returncode == 0, f"{text}\nended with {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout

    return paster


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium for the tests of one file. It must end with them: Playwright occupies the thread's event
    loop.
    """
    pytest.importorskip("playwright", reason="Playwright, which drives the browser, is not installed")
    if browsers.program() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with browsers.running() as running:
        yield running


@pytest.fixture
def open_page(browser):
    """`open_page(server, "/?q=…")` opens the page. After the test the browser must have logged no error or warning and
    must have sent no request to another origin.
    """
    views = []

    def view(server, path="/", **settings):
        views.append(browsers.View(browser, server, path, **settings))
        return views[-1]

    yield view
    for opened in views:
        complaints, foreign = list(opened.complaints), list(opened.foreign)
        opened.close()
        assert not complaints, complaints
        assert not foreign, foreign


@pytest.fixture
def provider():
    """`provider(server)` is a provider library with its own connection."""
    opened = []

    def connect(server):
        opened.append(browsers.Provider(server))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()

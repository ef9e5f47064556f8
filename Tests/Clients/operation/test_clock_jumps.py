"""Jumps of the machine's clock and of the server's own: nothing crashes, hangs or ends, and every time stays
representable.
"""

import datetime
import itertools
import shutil
import struct
import subprocess
import threading
import time

import pytest

from support import tokens
from support.attack import Bystander
from support.drivers import PROGRAMS
from support.server import Server, stop_cleanly, wait_until
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(120)

YEAR = 365 * 86_400
# From 2026: small steps, the past, beyond the end of 32-bit time, before 1970, and the far future.
JUMPS = (-60, 3600, 86_400, -3 * YEAR, 20 * YEAR, -60 * YEAR, 500 * YEAR, 0)


class Clock:
    """The machine's clock as one server sees it."""

    def __init__(self, path):
        self.path = path
        self.move(0)

    def move(self, seconds):
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:  # in place: the server has the file mapped
            file.write(struct.pack("=q", seconds))


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler, which makes what moves the clock of one program")
    library = tmp_path_factory.mktemp("shim") / "moved_clock.so"
    made = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(PROGRAMS / "moved_clock.c")],
        capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"what moves the clock of one program cannot be made here: {made.stderr}")
    return library


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path / "moved")


@pytest.fixture
def moved(binary, certs, shim, clock, tmp_path, pytestconfig):
    if pytestconfig.getoption("--store") == "postgres":
        pytest.skip("libpq measures the time to connect by the machine's clock")
    """A server for which `clock` moves the machine's clock. A stale token does not close its connection."""
    config = tmp_path / "config.yaml"
    config.write_text("apns: {expired_token_closes: false}\n")
    server = Server(binary, certs, "--config", config, environment={"LD_PRELOAD": str(shim), "MOVED_CLOCK": str(clock.path)})
    yield server
    stop_cleanly(server)


def shown_year(server):
    return int(server.api("GET", "/clock")["now"][:4])


def test_clock_jumps(moved, clock, device):
    """Pushes, delayed pushes, waits, an event stream and an idle connection continue unaffected; only tokens are
    stale for a time, as they would be for APNs.
    """
    clock.move(20 * YEAR)
    if shown_year(moved) < 2040:
        pytest.skip("this program's clock cannot be moved that way (sanitizers have their own)")
    clock.move(0)
    moved.api("POST", "/rules", {"name": "held", "do": {"delay": {"fixed": "2s"}}, "when": {"device_token": device}})
    waited = []

    def wait():
        began = time.monotonic()
        response = moved.api("GET", "/pushes/wait", topic="com.example.unused", timeout="2s")
        waited.append((response["satisfied"], time.monotonic() - began))

    waiting = threading.Thread(target=wait)
    bystander = Bystander(moved)
    with connect(moved) as idle:
        idle.ping()
        held = idle.open(push_headers(moved, device), b"{}")
        idle.ping()
        began = time.monotonic()
        waiting.start()
        bystander.start()
        for jump in itertools.chain(JUMPS, JUMPS):
            clock.move(jump)
            before = len(bystander.statuses)
            wait_until(lambda: len(bystander.statuses) > before + 2 or bystander.error, f"no response {jump} s from now")
            time.sleep(0.05)  # time for timers that might depend on this clock
        clock.move(0)
        assert idle.response(held).status == 200
        assert 1.9 < time.monotonic() - began < 20, "it was held by monotonic time"
        idle.ping()
        assert idle.push(push_headers(moved, "ab" * 32)).status == 200
    waiting.join(30)
    assert waited and waited[0][0] is False and 1.9 < waited[0][1] < 20
    statuses = bystander.end()
    assert set(statuses) == {200, 403} and statuses[0] == statuses[-1] == 200
    records = moved.pushes(limit=1000)
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1)), "the order is seq"
    assert all(record["received_at"] for record in records)
    assert len({record["received_at"][:4] for record in records}) > 4, "the clock did jump"


def test_start_and_shutdown_in_another_year(binary, shim, clock, tmp_path, device):
    """Certificates are made and tokens validated by the machine's clock, which then goes back while the server
    stops.
    """
    clock.move(3 * YEAR)
    server = Server(binary, tmp_path / "certs", environment={"LD_PRELOAD": str(shim), "MOVED_CLOCK": str(clock.path)})
    try:
        if shown_year(server) < datetime.date.today().year + 2:
            pytest.skip("this program's clock cannot be moved that way (sanitizers have their own)")
        issued_at = tokens.now() + 3 * YEAR
        clock.move(0)
        assert server.command("ls").returncode == 0
        clock.move(3 * YEAR)
        sent = server.command("send", device, "--topic", "com.example.app")
        assert sent.returncode != 0, "for this command's machine the certificate is of the future"
        assert server.command("token", "provider", "--issued-at", str(issued_at)).returncode == 0
        clock.move(-10 * YEAR)
        assert server.stop() == 0
    finally:
        server.kill()


# The server's own clock

EDGES = ("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1969-06-30T23:59:59.999Z", "2038-01-19T03:14:08Z",
         "9999-12-31T23:59:59.999Z")
FAR = "87000000h"  # almost the longest duration allowed, some 9900 years


def assert_that_times_can_be_read(server, device):
    """Sends pushes that are rejected because of their tokens' dates, and requests everything that shows times."""
    with connect(server) as wire:
        for issued_at in (0, -10**18, 10**18, 2**63 - 1, -2**63, 1e300, 10**11):
            token = "bearer " + server.token(issued_at=issued_at)
            assert wire.push(push_headers(server, device, authorization=token)).status == 403
    for path in ("/findings", "/stats", "/connections", "/devices", "/pushes?since=-1h", f"/pushes?until=-{FAR}", "/status"):
        assert server.request("GET", "/api/v1" + path).status == 200, path
    records = server.pushes(device_token=device, order="desc", limit=7)
    assert len(records) == 7 and all(record["received_at"] for record in records)
    assert server.api("GET", "/clock")["now"], "the clock shows no time"


@pytest.mark.parametrize("edge", [*EDGES, None])
def test_clocks_at_the_limits(start, device, edge):
    """Sets the clock and moves it back and forth by thousands of years: it stays within the years that can be
    written.
    """
    server = start()
    server.api("PUT", f"/devices/{device[::-1]}", {"state": "unregistered"})
    if edge:
        server.api("PUT", "/clock", {"mode": "frozen", "now": edge})
    assert_that_times_can_be_read(server, device)
    for way in (FAR, FAR, "-" + FAR, "-" + FAR, "-" + FAR):
        assert server.api("POST", "/clock/advance", {"by": way})["now"], f"no time after {way}"
        assert_that_times_can_be_read(server, device)
    assert shown_year(server) == 0
    server.api("POST", "/clock/advance", {"by": "8760h"})
    assert shown_year(server) in (0, 1), "it moves on from where it was seen"
    server.api("PUT", "/clock", {"mode": "real"})
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200


@pytest.mark.parametrize("now", ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])
def test_a_time_beyond_the_limits_because_of_its_zone_is_an_error(server, now):
    response = server.request("PUT", "/api/v1/clock", {"mode": "frozen", "now": now})
    assert response.status == 400 and response.json["hint"]
    assert server.api("GET", "/clock")["mode"] == "real"


def test_a_clock_that_jumps_ends_no_connection_and_no_wait(start, device, tmp_path):
    """Jumps of years in both directions while pushes arrive: a provider token may be stale for a moment, nothing
    else changes.
    """
    config = tmp_path / "config.yaml"
    config.write_text("apns: {expired_token_closes: false}\n")
    server = start("--config", config)
    server.api("POST", "/rules", {"name": "held", "do": {"delay": {"fixed": "1500ms"}}, "when": {"device_token": device}})
    bystander = Bystander(server)
    bystander.start()
    wait_until(lambda: bystander.statuses or bystander.error, "no response")
    with connect(server) as wire:
        held = wire.open(push_headers(server, device), b"{}")
        wire.ping()
        for year in ("2001", "2099", "1970", "2038", "9999", "2026"):
            before = len(bystander.statuses)
            server.api("PUT", "/clock", {"mode": "frozen", "now": f"{year}-01-19T03:14:08Z"})
            wait_until(lambda: len(bystander.statuses) > before + 2 or bystander.error, f"no response in {year}")
        server.api("PUT", "/clock", {"mode": "real"})
        assert wire.response(held).status == 200, "judged before the first jump, and held by the machine's time"
        before = len(bystander.statuses)
        wait_until(lambda: len(bystander.statuses) > before + 2 or bystander.error, "no response")
        assert wire.push(push_headers(server, "ab" * 32)).status == 200
    statuses = bystander.end()
    assert set(statuses) <= {200, 403} and statuses[0] == statuses[-1] == 200


@pytest.mark.parametrize(("time", "code"), [
    (str(-2**63), 2), (str(2**63 - 1), 2), ("-" + FAR, 0), (FAR, 0), ("0", 0), ("-1", 0), ("9" * 30, 2),
])
def test_tokens_for_any_time(server, time, code):
    done = server.command("token", "provider", f"--issued-at={time}")
    assert done.returncode == code, done.stderr
    assert (done.stdout.count(".") == 2) is (code == 0)

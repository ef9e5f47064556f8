"""What rules count, with two servers that share an inbox in PostgreSQL: the pushes to both servers count."""

import pytest

from support import stores
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(180)  # for slow machines; normally each takes seconds

DEVICE = "ab" * 32
FAIL = {"respond": {"status": 503, "reason": "ServiceUnavailable"}}
STEPS = [{"respond": {"status": 503}}, {"respond": {"status": 429}}, {"respond": {"status": 500}}]


@pytest.fixture
def pair(start, inbox):
    """Two servers with the same inbox, of which one answers when the database has committed."""
    return [start(*stores.flags(inbox, "--durable", durable)) for durable in ("soon", "answer")]


def statuses(servers, devices):
    """Sends a push to each device, to one server after the other, and returns the statuses."""
    received = []
    for number, device in enumerate(devices):
        server, other = servers[number % 2], servers[(number + 1) % 2]
        with connect(server) as wire:
            received.append(wire.push(push_headers(server, device)).status)
        # A query finds what the other server has answered, and by then its counts are known too.
        other.pushes()
    return received


@pytest.mark.parametrize(("rule", "expected"), [
    ({"do": FAIL, "trigger": {"first": 3}}, [503, 503, 503, 200, 200, 200]),
    ({"do": FAIL, "trigger": {"times": 3}}, [503, 503, 503, 200, 200, 200]),
    ({"do": FAIL, "trigger": {"after": 2}}, [200, 200, 503, 503, 503, 503]),
    ({"do": FAIL, "trigger": {"every": 3}}, [200, 200, 503, 200, 200, 503]),
    ({"do": {"sequence": {"on_end": "stay", "steps": STEPS}}}, [503, 429, 500, 500, 500, 500]),
    ({"do": {"sequence": {"on_end": "cycle", "steps": STEPS}}}, [503, 429, 500, 503, 429, 500]),
    ({"do": {"sequence": {"on_end": "pass", "steps": STEPS}}}, [503, 429, 500, 200, 200, 200]),
])
def test_pushes_to_both_servers_count(pair, rule, expected):
    pair[0].api("POST", "/rules", {"name": "counted", **rule})
    assert statuses(pair, [DEVICE] * len(expected)) == expected


@pytest.mark.parametrize("rule", [
    {"do": FAIL, "trigger": {"first": 2, "times_per": "device_token"}},
    {"do": FAIL, "trigger": {"times": 2, "times_per": "device_token"}},
    {"do": {"sequence": {"key": "device_token", "on_end": "pass", "steps": [FAIL, FAIL]}}},
])
def test_counts_of_each_device(pair, rule):
    pair[0].api("POST", "/rules", {"name": "counted", **rule})
    devices = [DEVICE, "CD" * 32, "cd" * 32, DEVICE, DEVICE, "cd" * 32]
    assert statuses(pair, devices) == [503, 503, 503, 503, 200, 200]


@pytest.mark.long
@pytest.mark.parametrize(("code", "status"), [("0503", 503), ("0429", 429)])
def test_magic_device_tokens(pair, code, status):
    """Those whose first two attempts fail."""
    device = f"feedfacefeedface{code}0002".ljust(64, "0")
    assert statuses(pair, [device] * 4) == [status, status, 200, 200]


@pytest.mark.long
def test_counts_begin_again(pair):
    """After a reset of the counters, and for a changed rule of the same name."""
    pair[0].api("POST", "/rules", {"name": "counted", "do": FAIL, "trigger": {"first": 2}})
    assert statuses(pair, [DEVICE] * 3) == [503, 503, 200]
    assert pair[1].command("reset", "--counters").returncode == 0
    assert statuses(pair, [DEVICE] * 3) == [503, 503, 200]
    pair[0].api("PUT", "/rules/counted", {"do": FAIL, "trigger": {"first": 1}})
    assert statuses(pair, [DEVICE] * 2) == [503, 200]


@pytest.mark.long
def test_a_later_server_counts_from_its_start(pair, start, inbox):
    """Also after a reset."""
    pair[0].api("POST", "/reset")
    pair[0].api("POST", "/rules", {"name": "counted", "do": FAIL, "trigger": {"first": 2}})
    assert statuses(pair, [DEVICE]) == [503]
    later = start(*stores.flags(inbox))
    assert statuses([later, pair[1]], [DEVICE] * 3) == [503, 200, 200]

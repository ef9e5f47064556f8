"""`--record`: the inbox keeps a sample of the pushes, or none, and nobody mistakes what is left for everything."""

import secrets

import pytest

from support.wire import connect, push_headers

INCONCLUSIVE = 5


def send(server, devices):
    with connect(server) as wire:
        for device in devices:
            assert wire.push(push_headers(server, device)).status == 200


def accepted(server):
    text = server.request("GET", "/metrics").body.decode()
    (line,) = (line for line in text.splitlines() if line.startswith('apns_mock_pushes_total{outcome="accepted"'))
    return int(line.split()[-1])


@pytest.mark.parametrize(("recording", "least", "most"), [("all", 80, 80), ("sample=1/4", 2, 60), ("counters", 0, 0)])
def test_the_inbox_keeps_what_record_says(start, recording, least, most):
    server = start("--record", recording)
    devices = [secrets.token_hex(32) for _ in range(40)]
    send(server, devices * 2)
    page = server.api("GET", "/pushes", limit=1000)
    kept = [record["request"]["device_token"] for record in page["items"]]
    assert least <= len(kept) <= most
    assert len(kept) + page["evicted"] == 80 and page["complete"] == (recording == "all")
    assert all(kept.count(device) == 2 for device in kept), "all attempts of a push are kept"
    assert accepted(server) == 80
    status = server.api("GET", "/status")
    assert status["limits"]["record"] == recording and status["inbox"]["last_seq"] == 80
    assert any(f"--record {recording}" in warning for warning in status["warnings"]) == (recording != "all")


@pytest.mark.parametrize("recording", ["sample=1/1000000", "counters"])
def test_a_count_of_kept_pushes_is_inconclusive(start, tmp_path, recording):
    server = start("--record", recording)
    send(server, [secrets.token_hex(32)])
    waited = server.command("wait", "--count", "0", "--timeout", "200ms")
    assert waited.returncode == INCONCLUSIVE and "--record all" in waited.stderr, waited
    expected = tmp_path / "expected.yaml"
    expected.write_text("expect:\n  - match: 'status:200'\n    count: 0\n")
    verified = server.command("verify", expected)
    assert verified.returncode == INCONCLUSIVE and "--record all" in verified.stderr, verified


def test_a_push_that_is_not_kept_is_retried_as_one(start, device):
    """Attempts are counted for all pushes: the profile answers the second attempt differently."""
    server = start("--record", "counters", "--profile", "flaky-503?rate=1&streak=1")
    with connect(server) as wire:
        assert [wire.push(push_headers(server, device)).status for _ in range(2)] == [503, 200]

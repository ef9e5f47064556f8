"""The line that the log has for each push at level `debug`, and the trace of a push."""

import json

import pytest

from support.wire import connect, push_headers

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def push(server, device, **changes):
    with connect(server) as wire:
        return wire.push([*push_headers(server, device, **changes), ("traceparent", TRACE)], b'{"aps":{"alert":"secret"}}')


def test_each_push_has_a_line_in_text(start, device):
    server = start("--log-level", "debug")
    push(server, device)
    push(server, device, apns_topic="com.other", apns_push_type="nonsense")
    accepted, = server.logged("push 1: 200")
    rejected, = server.logged("push 2: 400 InvalidPushType")
    for line, words in [(accepted, ["outcome=accepted", "topic=com.example.app"]),
                        (rejected, ["outcome=rejected", "topic=com.other", "push_type=nonsense"])]:
        for word in [*words, "debug", "attempt=1", "connection=c", "latency_ms=", f"traceparent={TRACE}", "apns_id="]:
            assert word in line, line
        assert f"token={device[:4]}…{device[-2:]} " in line
    for line in (accepted, rejected):
        assert device not in line and "secret" not in line and "bearer" not in line.lower()


def test_each_push_has_an_object_in_json(start, device):
    server = start("--log-level", "debug", "--log-format", "json")
    server.api("POST", "/rules", {"name": "slow", "do": {"delay": {"fixed": "50ms"}}})
    push(server, device)
    line = json.loads(server.logged("push 1: 200")[0])
    assert line["level"] == "debug" and line["rule"] == "slow" and line["traceparent"] == TRACE
    assert line["outcome"] == "accepted" and line["attempt"] == 1 and line["latency_ms"] >= 50 and device not in json.dumps(line)


@pytest.mark.parametrize("level", ["info", "notice"])
def test_other_levels_follow_no_push(start, device, level):
    server = start("--log-level", level)
    push(server, device)
    assert "apns_mock_event_streams 0" in server.request("GET", "/metrics").body.decode()
    assert "push 1" not in server.log()


def test_the_last_pushes_are_logged_before_the_end(start, device):
    server = start("--log-level", "debug")
    with connect(server) as wire:
        for _ in range(50):
            wire.push(push_headers(server, device), b"{}")
    server.stop()
    assert sum(": 200" in line or ": 400" in line for line in server.log().splitlines() if " push " in line) == 50


def test_a_trace_is_kept_and_found(start, device):
    server = start()
    push(server, device)
    with connect(server) as wire:
        wire.push(push_headers(server, device), b"{}")
    done = server.command("ls", "--json", "header.traceparent:*4bf92f3577b34da6a3ce929d0e0e4736*")
    record, = map(json.loads, done.stdout.splitlines())
    assert record["seq"] == 1 and ["traceparent", TRACE] in [list(field) for field in record["request"]["headers"]]
    assert server.api("GET", "/pushes", **{"header.traceparent": TRACE})["matched"] == 1
    assert server.api("GET", "/pushes", **{"header.traceparent": TRACE.replace("4b", "4c")})["matched"] == 0

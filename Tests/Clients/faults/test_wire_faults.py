"""The effects of faults on streams and connections, observed by independent clients: GOAWAY, resets, closes, hangs,
SETTINGS, windows, PINGs. The server's records must agree.
"""

import collections
import json
import random
import re
import subprocess
import time

import pytest
from hyperframe.frame import (
    DataFrame, GoAwayFrame, PingFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame,
)

from support import drivers
from support.faults import (  # noqa: F401 (fixtures)
    ACCEPTED, BODY, CODES, EVERY_STREAM, FaultSummary, Faults, Provider, await_fault_summary, closed, ending,
    fault_summary, faults, is_silent, line, mock, new_device, pushed, responses_in_order, timeline, warmed, widened,
)
from support.selection import pairs
from support.server import clean_environment, wait_until
from support.wire import Closed, push_headers

MAX_CONCURRENT_STREAMS = SettingsFrame.MAX_CONCURRENT_STREAMS
INTERNAL_ERROR = CODES.index("INTERNAL_ERROR")


def goaways(wire):
    """Returns all received GOAWAYs as (code, last stream, debug data)."""
    return [(frame.error_code, frame.last_stream_id, frame.additional_data) for frame in wire.frames
            if isinstance(frame, GoAwayFrame)]


def goaway_member(code="NO_ERROR", last=0, debug=""):
    """Returns a GOAWAY as a record contains it."""
    return {"code": code, "last_stream": last, "debug": debug}


# GOAWAY

def test_goaway_names_the_previous_stream_and_the_push_is_not_accepted(mock, faults, device):
    with widened(mock) as wire:
        faults.add({"goaway": {}}, name="goodbye")
        stream = pushed(wire, mock, device)
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, stream - 2, b"")]
        assert wire.responses[stream].headers is None and wire.responses[stream].reset is None
    record = mock.record(device)
    assert FaultSummary.of(record) == FaultSummary("goaway", goaway=goaway_member(last=stream - 2))
    assert record["fault"] == {
        "profile": None, "rule": "goodbye", "action": "goaway", "draw": None, "p": None, "ordinal": 0, "by": None}


@pytest.mark.parametrize(("code", "number", "name"), [
    *((code, number, code) for number, code in enumerate(CODES)), (11, 11, "ENHANCE_YOUR_CALM"), (4242, 4242, "4242"),
    (2**32 - 1, 2**32 - 1, "4294967295"),
])
def test_goaway_with_every_code_by_name_and_by_number(mock, faults, device, code, number, name):
    faults.add({"goaway": {"code": code, "close_after": "0s"}})
    with line(mock) as wire:
        pushed(wire, mock, device)
        assert ending(wire) == "fin"
        assert goaways(wire) == [(number, 0, b"")]
    assert fault_summary(mock, device) == FaultSummary("goaway", goaway=goaway_member(name))


@pytest.mark.parametrize(("debug", "expected"), [
    ("Maximum streams violated", "Maximum streams violated"), ('{"reason":"Shutdown"}', '{"reason":"Shutdown"}'),
    ({"reason": "Shutdown", "timestamp": 1454948015990}, '{"reason":"Shutdown","timestamp":1454948015990}'),
    ("ünï – ☃", "ünï – ☃"), ("x" * 8000, "x" * 8000),
], ids=["text", "JSON as text", "a map", "not ASCII", "long"])
def test_goaway_with_debug_data(mock, faults, device, debug, expected):
    faults.add({"goaway": {"debug": debug, "close_after": "0s"}})
    with line(mock) as wire:
        pushed(wire, mock, device)
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, 0, expected.encode())]
    assert fault_summary(mock, device) == FaultSummary("goaway", goaway=goaway_member(debug=expected))


def test_goaway_twice_first_promises_everything(mock, faults, device):
    with widened(mock) as wire:
        faults.add({"goaway": {"twice": True, "close_after": "0s"}})
        pushed(wire, mock, device)
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, EVERY_STREAM, b""), (0, 1, b"")]
    assert fault_summary(mock, device) == FaultSummary("goaway", goaway=goaway_member(last=1))


def test_goaway_without_close(mock, faults, device):
    """A client that ignores the GOAWAY keeps a connection on which only PING is answered."""
    with widened(mock) as wire:
        rule = faults.add({"goaway": {"close_after": "never"}}, trigger={"times": 1})
        first = pushed(wire, mock, device)
        assert wire.goaway().last_stream_id == first - 2
        later = [new_device() for _ in range(3)]
        streams = [pushed(wire, mock, one) for one in later]
        assert wire.ping(b"are you?").opaque_data == b"are you?"
        assert is_silent(wire)
        assert wire.ping(b"still ??").opaque_data == b"still ??"
        assert [wire.responses[stream].finished for stream in (first, *streams)] == [False] * 4
        assert faults.fired(rule) == 1
        assert [mock.record(one)["accepted"] for one in (device, *later)] == [False] * 4
        assert goaways(wire) == [(0, first - 2, b"")]


def test_goaway_closes_after_its_delay_and_acknowledges_ping_until_then(mock, faults, device):
    with line(mock) as wire:
        faults.add({"goaway": {"close_after": "600ms"}})
        began = time.monotonic()
        pushed(wire, mock, device)
        wire.goaway()
        wire.ping()
        assert ending(wire) == "fin"
        assert time.monotonic() - began >= 0.6


def test_goaway_naming_this_stream_responds_to_it_and_to_none_after_it(mock, faults, device):
    after = new_device()
    with widened(mock) as wire:
        faults.add({"goaway": {"last_stream": "this"}}, trigger={"times": 1})
        stream = pushed(wire, mock, device)
        ignored = pushed(wire, mock, after)
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, stream, b"")]
        assert (wire.responses[stream].status, wire.responses[stream].ended_by) == (200, "HEADERS")
        assert not wire.responses[ignored].finished
    assert fault_summary(mock, device) == FaultSummary("goaway", accepted=True, status=200, goaway=goaway_member(last=stream))
    assert mock.record(after)["accepted"] is False


def test_goaway_naming_all_streams_serves_until_it_closes(mock, faults, device):
    after = new_device()
    with widened(mock) as wire:
        faults.add({"goaway": {"last_stream": "all", "close_after": "3s"}}, trigger={"times": 1})
        stream = pushed(wire, mock, device)
        assert wire.response(stream).status == 200
        assert wire.push(push_headers(mock, after)).status == 200
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, EVERY_STREAM, b"")]
    assert fault_summary(mock, device) == FaultSummary("goaway", accepted=True, status=200, goaway=goaway_member(last=EVERY_STREAM))
    assert fault_summary(mock, after) == ACCEPTED


def test_goaway_at_the_response_responds_to_a_rejected_push(mock, faults, device):
    """At the response the rejection already exists; if the GOAWAY includes this stream, it is sent with its reason."""
    faults.add({"goaway": {"last_stream": "this"}}, at="response", stage="before_validation")
    with line(mock) as wire:
        stream = pushed(wire, mock, device, apns_priority="7")
        assert ending(wire) == "fin"
        assert wire.responses[stream].status == 400
        assert goaways(wire) == [(0, stream, b"")]
    assert fault_summary(mock, device) == FaultSummary(
        "goaway", status=400, reason="BadPriority", goaway=goaway_member(last=stream), verdict=400)


def test_goaway_waits_for_responses_below_the_last_stream(mock, faults, device):
    """A push that is being delayed when the GOAWAY is sent is below its last stream, so it is answered."""
    slow = new_device()
    with widened(mock) as wire:
        faults.add({"delay": {"fixed": "700ms"}}, when={"device_token": slow})
        faults.add({"goaway": {"close_after": "3s"}}, when={"device_token": device})
        held, last = pushed(wire, mock, slow), pushed(wire, mock, device)
        assert wire.goaway().last_stream_id == held
        assert wire.response(held).status == 200
        assert ending(wire) == "fin"
        assert not wire.responses[last].finished
    assert fault_summary(mock, slow).accepted is True
    assert fault_summary(mock, device).accepted is False


BATCH = 100


@pytest.mark.parametrize(("served", "close_after"), pairs([0, 36, 99], ["0s", "1s", "never"]))
def test_repeating_pushes_above_the_last_stream_makes_no_duplicate(
        mock, faults, served, close_after):
    """The library h2 sends a hundred pushes at once, and afterwards resends those above the GOAWAY's last stream."""
    devices = [new_device() for _ in range(BATCH)]
    with warmed(mock) as provider:
        rule = faults.add({"goaway": {"close_after": close_after}}, trigger={"after": served, "first": 1})
        sent = {provider.open(one): one for one in devices}
        provider.until(lambda: provider.goaway)
        code, last, _ = provider.goaway
        assert (code, last) == (0, 1 + 2 * served)
        answered = {stream for stream in provider.ended if stream in sent}
        assert answered == {stream for stream in sent if stream <= last}
        assert {provider.statuses[stream] for stream in answered} <= {200}
    above = [one for stream, one in sent.items() if stream > last]
    assert len(above) == BATCH - served
    assert faults.fired(rule) == 1
    assert not accepted(mock, above), "above the last stream nothing is accepted"
    with warmed(mock) as fresh:
        again = [fresh.open(one) for one in above]
        fresh.until(lambda: fresh.ended.issuperset(again))
        assert {fresh.statuses[stream] for stream in again} == {200}
    assert accepted(mock, devices) == dict.fromkeys(devices, 1), "each push once"


def accepted(server, devices):
    """Returns the numbers of accepted pushes of these devices that have some."""
    newest = server.pushes(accepted="true", order="desc", limit=1000)
    return collections.Counter(record["request"]["device_token"] for record in newest if record["request"]["device_token"] in devices)


def verified(server, devices, **document):
    """Returns the response to a verification whose first expectation is about the pushes to some devices."""
    expectation = {"name": "delivered", "match": {"device_token": devices}, "retries": {"finally": "accepted"}}
    return server.request("POST", "/api/v1/verify", {"expect": [expectation], **document}).json


@pytest.mark.parametrize("close_after", ["0s", "1s"])
def test_an_unprocessed_push_and_its_repetition_are_attempts_of_one_push(mock, faults, close_after):
    """A GOAWAY amid ten pushes: those above its last stream are sent again, and each of them is recorded as one
    push.
    """
    devices = [new_device() for _ in range(10)]
    with widened(mock) as wire:
        faults.add({"goaway": {"close_after": close_after}}, when={"device_token": devices[4]}, trigger={"times": 1})
        requests = [wire.request_frames(push_headers(mock, one), BODY) for one in devices]
        wire.send(*(each for _, frames in requests for each in frames))
        last = wire.goaway().last_stream_id
        wire.read_to_end()
    streams = [stream for stream, _ in requests]
    assert last == streams[3]
    again = [one for stream, one in zip(streams, devices) if stream > last]
    assert len(again) == 6
    report = verified(mock, devices)
    assert not report["passed"], "six are not delivered yet"
    with widened(mock) as wire:
        assert {wire.response(pushed(wire, mock, one)).status for one in again} == {200}
    numbers = {one: [record["attempt"] for record in mock.pushes(device_token=one)] for one in devices}
    assert numbers == {one: [1, 2] if one in again else [1] for one in devices}
    report = verified(mock, devices)
    assert report["passed"], report["text"]


def test_a_refused_stream_and_its_repetition_are_attempts_of_one_push(mock, faults):
    devices = [new_device() for _ in range(3)]
    with widened(mock) as wire:
        faults.add({"reset_stream": {"code": "REFUSED_STREAM"}}, when={"device_token": devices[1]}, trigger={"times": 1})
        streams = [pushed(wire, mock, one) for one in devices]
        assert [wire.response(stream).reset for stream in streams] == [None, 7, None]
        assert wire.response(pushed(wire, mock, devices[1])).status == 200
    assert [record["attempt"] for record in mock.pushes(device_token=devices[1])] == [1, 2]
    assert verified(mock, devices)["passed"]


def test_a_push_whose_response_is_overtaken_by_goaway_keeps_its_number(mock, device):
    """The client does not learn that the push was accepted and sends it again, as attempt 2."""
    with widened(mock) as wire:
        stream, frames = wire.request_frames(push_headers(mock, device), BODY)
        wire.write(b"".join(each.serialize() for each in frames) + bytes([0, 0, 7, 6, 0, 0, 0, 0, 0]) + bytes(7))
        wire.read_to_end()
        assert not wire.responses[stream].headers
    assert mock.record(device)["outcome"] == "response_lost"
    with widened(mock) as wire:
        assert wire.response(pushed(wire, mock, device)).status == 200
        assert wire.response(pushed(wire, mock, device)).status == 200
    assert [record["attempt"] for record in mock.pushes(device_token=device)] == [1, 2, 1]


def test_goaway_while_requests_are_half_sent(mock, faults, device):
    """Streams opened below the last stream are served if their bodies arrive after the GOAWAY."""
    with widened(mock) as wire:
        faults.add({"goaway": {"close_after": "never"}}, when={"device_token": device})
        halves = [wire.open(push_headers(mock, new_device()), end_stream=False) for _ in range(5)]
        trigger = pushed(wire, mock, device)
        assert wire.goaway().last_stream_id == trigger - 2
        for stream in halves:
            wire.send(DataFrame(stream, BODY, flags=["END_STREAM"]))
            assert wire.response(stream).status == 200


@pytest.mark.parametrize("last_stream", ["before_this", "this"])
@pytest.mark.parametrize("held_back", ["by its body", "by a delay", "by a delay at the response"])
def test_goaway_for_an_overtaken_stream_revokes_no_accepted_push(
        mock, faults, device, held_back, last_stream):
    """The push that triggers the GOAWAY completes after pushes on later streams were accepted: with a last stream
    below those, a provider would send them twice.
    """
    later = [new_device() for _ in range(5)]
    with widened(mock) as wire:
        moment = "response" if "response" in held_back else "request"
        faults.add({"goaway": {"last_stream": last_stream}}, when={"device_token": device}, at=moment)
        if "delay" in held_back:
            faults.add({"delay": {"fixed": "500ms"}}, when={"device_token": device}, at=moment)
        if held_back == "by its body":
            trigger = wire.open(push_headers(mock, device), end_stream=False)
        else:
            trigger = pushed(wire, mock, device)
        streams = [pushed(wire, mock, one) for one in later]
        assert {wire.response(stream).status for stream in streams} == {200}
        if held_back == "by its body":
            wire.send(DataFrame(trigger, BODY, flags=["END_STREAM"]))
        last = wire.goaway().last_stream_id
        assert ending(wire) == "fin"
    for stream, one in zip(streams, later):
        assert mock.record(one)["accepted"] is True
        assert stream <= last, "accepted and answered, and then said to be unprocessed"
    # The stream can no longer be above the last stream, so the client must receive the result on the stream itself.
    told_so = wire.responses[trigger]
    assert (told_so.status, told_so.reset) == ((200, None) if mock.record(device)["accepted"] else (None, 7))


def test_goaway_at_the_response_includes_the_push(mock, faults, device):
    with widened(mock) as wire:
        faults.add({"goaway": {}}, at="response")
        stream = pushed(wire, mock, device)
        assert ending(wire) == "fin"
        assert goaways(wire) == [(0, stream - 2, b"")]
    assert fault_summary(mock, device) == FaultSummary("goaway", goaway=goaway_member(last=stream - 2))


@pytest.mark.parametrize("again", [
    {"last_stream": "all"}, {"last_stream": "this"}, {"twice": True},
], ids=["all", "this", "twice"])
def test_goaway_after_goaway_never_names_a_higher_stream(mock, faults, device, again):
    """RFC 9113, section 6.8: the last stream must not increase, because a client may have resent those above it
    elsewhere.
    """
    with widened(mock) as wire:
        faults.add({"goaway": {"close_after": "never"}}, when={"device_token": device})
        pushed(wire, mock, device)
        wire.goaway()
        for _ in range(3):
            pushed(wire, mock, new_device())
        wire.ping()
        mock.api("POST", "/connections/goaway", {"all": True, "close_after": "0s", **again})
        assert ending(wire) == "fin"
        named = [last for _, last, _ in goaways(wire)]
    assert len(named) >= 2 and named == sorted(named, reverse=True)


def test_goaway_and_then_the_server_shuts_down(start, device):
    """The GOAWAY of the shutdown must not name a higher last stream either."""
    server = start()
    with widened(server) as wire:
        Faults(server).add({"goaway": {"close_after": "never"}}, when={"device_token": device})
        pushed(wire, server, device)
        assert wire.goaway().last_stream_id == 1
        pushed(wire, server, new_device())
        wire.ping()
        server.signal()
        wire.read_to_end()
        named = [last for _, last, _ in goaways(wire)]
    assert server.wait() == 0
    assert named == sorted(named, reverse=True)


@pytest.mark.parametrize(("seed", "close_after"), pairs(range(6), ["0s", "300ms", "1s"]))
def test_goaway_is_correct_with_delayed_and_overtaken_pushes(mock, faults, seed, close_after):
    """Pushes with various delays, late bodies, and a GOAWAY triggered by one of them: nothing above the last stream
    is accepted, neither before nor after it; every push below it that was answered with 200 is accepted.
    """
    generator = random.Random(seed)
    devices = [new_device() for _ in range(40)]
    trigger = generator.choice(devices)
    with widened(mock) as wire:
        order = {"code": "NO_ERROR", "close_after": close_after,
                 "last_stream": generator.choice(["before_this", "this"])}
        faults.add({"goaway": order}, when={"device_token": trigger})
        faults.add({"delay": {"uniform": {"min": "0ms", "max": "500ms"}}}, at=generator.choice(["request", "response"]),
                   trigger={"probability": 0.7})
        sent, late = {}, []
        try:
            for one in devices:
                if generator.random() < 0.2:
                    stream = wire.open(push_headers(mock, one), end_stream=False)
                    late.append(stream)
                else:
                    stream = pushed(wire, mock, one)
                sent[stream] = one
            wire.ping()
            for stream in late:
                wire.send(DataFrame(stream, BODY, flags=["END_STREAM"]))
        except Closed:
            pass
        assert ending(wire) == "fin"
        (_, last, _), = goaways(wire)
    closed(mock, wire)
    for stream, one in sent.items():
        records = mock.pushes(device_token=one)
        accepted = [record for record in records if record["accepted"]]
        assert "pending" not in {record["outcome"] for record in records}
        if stream > last:
            assert not accepted and not wire.responses[stream].finished, (stream, last)
        elif wire.responses[stream].status == 200:
            assert len(accepted) == 1
        elif wire.responses[stream].reset == 7:
            assert not accepted, "refused, so it will be sent again"


def test_goaway_is_reported_by_real_clients(mock, faults, device, tmp_path):
    """curl reports an HTTP/2 error; nghttp prints the frame."""
    faults.add({"goaway": {"code": "ENHANCE_YOUR_CALM", "debug": {"reason": "Shutdown"}}})
    done = curl(mock, device)
    assert done.returncode in (16, 56, 92), done.stderr
    text = nghttp(mock, device, tmp_path)
    assert re.search(
        r"recv GOAWAY frame .*\n.*last_stream_id=0, error_code=ENHANCE_YOUR_CALM\(0x0b\), "
        r'opaque_data\(21\)=\[\{"reason":"Shutdown"\}\]', text), text


def test_aioapns_repeats_after_one_goaway(mock, faults, device):
    faults.add({"goaway": {}}, trigger={"times": 1})
    push = drivers.Push(device, {"aps": {"alert": "hello"}}, apns_id="7f7d8b2e-0b1a-4c7d-9a55-0f5b9d9a4d11")
    assert drivers.ALL["aioapns"](mock, push).status == 200
    records = mock.pushes(device_token=device)
    assert [record["accepted"] for record in records] == [False, True]
    assert [record["attempt"] for record in records] == [1, 2]


# Stream resets

def curl(server, device, *flags, body=BODY):
    """Sends a push with curl, which may fail; returns the completed process."""
    push = drivers.Push(device, json.loads(body))
    arguments = [drivers.tool("curl"), "-sS", "--http2", "--cacert", server.ca, "--max-time", "20", "--data", push.body]
    for name, value in push.headers(server).items():
        arguments += ["--header", f"{name}: {value}"]
    return subprocess.run(
        [*arguments, *flags, f"{server.url}/3/device/{device}"], capture_output=True, text=True, timeout=30,
        env=clean_environment(NO_PROXY="*"))


def nghttp(server, device, folder):
    """Returns a push's frames as nghttp prints them."""
    push = drivers.Push(device, {"aps": {}})
    payload = folder / "payload.json"
    payload.write_text(push.body)
    arguments = [drivers.tool("nghttp"), "--verbose", "--no-dep", "--timeout=10", "--data", str(payload)]
    for name, value in push.headers(server).items():
        arguments += ["--header", f"{name}: {value}"]
    done = subprocess.run(
        [*arguments, f"{server.url}/3/device/{device}"], capture_output=True, text=True, timeout=30,
        env=clean_environment(SSL_CERT_FILE=server.ca))
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


@pytest.mark.parametrize(("code", "number", "name"), [
    *((code, number, code) for number, code in enumerate(CODES)), (7, 7, "REFUSED_STREAM"), (4242, 4242, "4242"),
])
def test_reset_stream_with_every_code_by_name_and_by_number(mock, faults, device, code, number, name):
    faults.add({"reset_stream": {"code": code}})
    with line(mock) as wire:
        stream = pushed(wire, mock, device)
        response = wire.response(stream)
        assert (response.reset, response.headers, response.data) == (number, None, [])
        faults.clear()
        assert wire.push(push_headers(mock, new_device())).status == 200, "the connection goes on"
    assert fault_summary(mock, device) == FaultSummary("reset_stream", reset=name)


def test_reset_stream_is_an_internal_error_by_default(mock, faults, device):
    faults.add({"reset_stream": {}})
    with Provider(mock) as provider:
        assert provider.push(device) is None
        assert list(provider.resets.values()) == [INTERNAL_ERROR]
    assert fault_summary(mock, device) == FaultSummary("reset_stream", reset="INTERNAL_ERROR")


def test_reset_stream_at_the_response_follows_an_accepted_push(mock, faults, device):
    faults.add({"reset_stream": {"code": "CANCEL"}}, at="response")
    with line(mock) as wire:
        response = wire.push(push_headers(mock, device))
        assert (response.reset, response.headers) == (CODES.index("CANCEL"), None)
    assert fault_summary(mock, device) == FaultSummary("reset_stream", accepted=True, reset="CANCEL")


def test_reset_stream_is_reported_by_real_clients(mock, faults, device, tmp_path):
    faults.add({"reset_stream": {"code": "HTTP_1_1_REQUIRED"}}, when={"device_token": device})
    text = nghttp(mock, device, tmp_path)
    assert re.search(r"recv RST_STREAM frame .*\n.*error_code=HTTP_1_1_REQUIRED\(0x0d\)", text), text
    other = new_device()
    faults.add({"reset_stream": {}}, when={"device_token": other})
    done = curl(mock, other)
    assert done.returncode == 92 and "INTERNAL_ERROR" in done.stderr, done.stderr


def test_curl_repeats_after_refused_stream(mock, faults, device):
    faults.add({"reset_stream": {"code": "REFUSED_STREAM"}}, trigger={"times": 1})
    done = curl(mock, device, "--write-out", "%{http_code}")
    assert (done.returncode, done.stdout) == (0, "200"), done.stderr
    assert [record["accepted"] for record in mock.pushes(device_token=device)] == [False, True]


def test_some_of_many_streams_are_reset_and_the_others_get_responses(mock, faults):
    """REFUSED_STREAM on every third of a hundred concurrent streams, as observed with APNs when its stream limit
    drops.
    """
    devices = [new_device() for _ in range(BATCH)]
    with warmed(mock) as provider:
        faults.add({"reset_stream": {"code": "REFUSED_STREAM"}}, trigger={"every": 3})
        streams = [provider.open(one) for one in devices]
        provider.until(lambda: provider.ended.issuperset(streams))
        expected = {stream: 7 for index, stream in enumerate(streams, 1) if index % 3 == 0}
        assert provider.resets == expected
        assert all(provider.statuses[stream] == 200 for stream in streams if stream not in expected)
    for stream, one in zip(streams, devices):
        assert mock.record(one)["accepted"] is (stream not in expected)


# Connection resets and closes

@pytest.mark.parametrize("after_accepting", [None, False, True])
def test_reset_connection_is_a_tcp_reset(mock, faults, device, after_accepting):
    fields = {} if after_accepting is None else {"after_accepting": after_accepting}
    with widened(mock) as wire:
        faults.add({"reset_connection": fields})
        stream = pushed(wire, mock, device)
        assert ending(wire) == "reset"
        assert not wire.responses[stream].finished and goaways(wire) == []
    assert fault_summary(mock, device) == FaultSummary("reset_connection", accepted=bool(after_accepting), closed="reset")
    assert closed(mock, wire)[-2:] == [("reset", "TCP RST"), ("closed", "")]


@pytest.mark.parametrize("do", [{"reset_connection": {}}, {"close": {}}], ids=["reset_connection", "close"])
def test_pushes_after_the_end_in_one_batch_have_no_result(mock, faults, do):
    before, last, after = [new_device() for _ in range(20)], new_device(), [new_device() for _ in range(20)]
    with warmed(mock) as provider:
        faults.add(do, when={"device_token": last})
        for one in (*before, last, *after):
            provider.open(one)
        provider.until(lambda: False)
        assert provider.closed
    assert {mock.record(one)["accepted"] for one in before} == {True}
    assert mock.record(last)["accepted"] is False
    late = [record for one in after for record in mock.pushes(device_token=one)]
    assert {(record["accepted"], record["served"]["status"]) for record in late} <= {(False, None)}


def test_a_close_in_the_batch_of_a_goaway_loses_no_response(mock, faults):
    """The rejected push calls for a GOAWAY, and the last push for the end of the connection: all in one read."""
    last = new_device()
    faults.use([{"name": "end", "when": {"device_token": last}, "do": {"close": {}}}], apns={"errors_before_goaway": 1})
    with widened(mock) as wire:
        sent, write = [], wire.write
        wire.write = sent.append
        rejected = wire.open(push_headers(mock, new_device(), apns_priority="7"), b"{}")
        accepted = wire.open(push_headers(mock, new_device()), b"{}")
        wire.open(push_headers(mock, last), b"{}")
        write(b"".join(sent))
        assert ending(wire) == "fin"
        assert (wire.responses[rejected].status, wire.responses[accepted].status) == (400, 200)
        assert len(goaways(wire)) == 1


def test_reset_connection_is_reported_by_curl(mock, faults, device):
    faults.add({"reset_connection": {}})
    done = curl(mock, device)
    # The reset may occur while sending or while receiving.
    assert done.returncode in (55, 56) and "Connection reset by peer" in done.stderr, (done.returncode, done.stderr)


@pytest.mark.parametrize(("moment", "accepted"), [("request", False), ("response", True)])
def test_close_is_a_fin_without_goaway(mock, faults, device, moment, accepted):
    with widened(mock) as wire:
        faults.add({"close": {}}, at=moment)
        stream = pushed(wire, mock, device)
        assert ending(wire) == "fin"
        assert not wire.responses[stream].finished and goaways(wire) == []
        assert timeline(mock, wire)[0].count(("fault", "closed without GOAWAY")) == 1
    assert fault_summary(mock, device) == FaultSummary("close", accepted=accepted, closed="fin")


@pytest.mark.parametrize(("do", "how"), [
    ({"goaway": {"close_after": "0s"}}, "fin"), ({"close": {}}, "fin"), ({"reset_connection": {}}, "reset"),
], ids=["goaway", "close", "reset_connection"])
def test_close_at_connection_ends_it_as_soon_as_it_is_open(mock, faults, do, how):
    faults.add(do, at="connection")
    with line(mock, preface=False) as wire:
        assert ending(wire) == how
        assert [frame.last_stream_id for frame in wire.frames if isinstance(frame, GoAwayFrame)] == (
            [0] if "goaway" in do else [])


@pytest.mark.parametrize(("do", "how"), [
    ({"goaway": {"close_after": "0s"}}, "fin"), ({"close": {}}, "fin"), ({"reset_connection": {}}, "reset"),
], ids=["goaway", "close", "reset_connection"])
def test_a_rule_at_connection_applies_to_open_connections(mock, faults, do, how):
    with widened(mock) as wire:
        faults.add(do, at="connection")
        assert ending(wire) == how
        assert goaways(wire) == ([(0, 1, b"")] if "goaway" in do else [])


def test_after_so_many_streams_the_connection_ends(mock, faults):
    devices = [new_device() for _ in range(20)]
    with widened(mock) as wire:
        faults.add({"goaway": {"close_after": "0s"}}, at="connection", trigger={"after_streams": 11})
        statuses = []
        try:
            for one in devices:
                statuses.append(wire.push(push_headers(mock, one)).status)
        except Closed:
            pass
        assert statuses == [200] * 10
        ((code, last, _),) = goaways(wire)
        assert (code, last) == (0, 1 + 2 * 10)
    for one in devices[10:]:
        assert not mock.pushes(device_token=one, accepted="true")


def test_a_window_ends_connections_when_it_opens_and_not_before(mock, faults, device):
    with widened(mock) as wire:
        began = time.monotonic()
        faults.add({"close": {}}, at="connection", trigger={"window": {"after": "2s", "for": "1s"}})
        assert wire.push(push_headers(mock, device)).status == 200
        assert ending(wire) == "fin"
        assert time.monotonic() - began >= 2


def test_a_window_that_repeats_opens_again(mock, faults):
    """SETTINGS each time: the rule applies to a connection at every start of the window."""
    with widened(mock) as wire:
        faults.add({"settings": {"max_concurrent_streams": 5}}, at="connection",
                   trigger={"window": {"every": "300ms", "for": "100ms"}})
        seen = 0
        while seen < 3:
            if wire.settings().settings == {MAX_CONCURRENT_STREAMS: 5}:
                seen += 1


# Hangs

def test_a_hang_is_pending_and_then_resets_the_stream(mock, faults, device):
    faults.add({"hang": {"for": "2s"}})
    with line(mock) as wire:
        began = time.monotonic()
        stream = pushed(wire, mock, device)
        wire.ping()
        record = mock.record(device)
        assert (record["outcome"], record["accepted"], record["finished_at"]) == ("pending", False, None)
        assert record["fault"]["action"] == "hang"
        assert wire.response(stream).reset == INTERNAL_ERROR
        assert time.monotonic() - began >= 2
    record = mock.record(device)
    assert FaultSummary.of(record) == FaultSummary("hang", reset="INTERNAL_ERROR")
    assert record["finished_at"] is not None


def test_a_hang_that_ends_with_a_response(mock, faults, device):
    """The usual response after a delay: the push was accepted."""
    faults.add({"hang": {"for": "400ms", "end_with": "answer"}})
    with line(mock) as wire:
        began = time.monotonic()
        assert wire.push(push_headers(mock, device)).status == 200
        assert time.monotonic() - began >= 0.4
    assert fault_summary(mock, device) == FaultSummary("hang", accepted=True, status=200)


def test_a_hang_that_ends_with_a_close(mock, faults, device):
    faults.add({"hang": {"for": "400ms", "end_with": "close"}})
    with line(mock) as wire:
        stream = pushed(wire, mock, device)
        assert ending(wire) == "fin"
        assert not wire.responses[stream].finished and goaways(wire) == []
    assert fault_summary(mock, device) == FaultSummary("hang", closed="fin")


def test_a_hang_that_ends_with_nothing(mock, faults, device):
    faults.add({"hang": {"for": "300ms", "end_with": "nothing"}})
    with line(mock) as wire:
        stream = pushed(wire, mock, device)
        wire.ping()
        assert is_silent(wire) and not wire.responses[stream].finished
        assert fault_summary(mock, device) == FaultSummary("hang", "pending")
    await_fault_summary(mock, device, FaultSummary("hang"))


@pytest.mark.parametrize(("moment", "accepted"), [("request", False), ("response", True)])
def test_a_hang_at_the_response_hides_that_the_push_was_accepted(mock, faults, device, moment, accepted):
    faults.add({"hang": {"for": "300ms", "end_with": "reset_stream"}}, at=moment)
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device)).reset == INTERNAL_ERROR
    assert fault_summary(mock, device) == FaultSummary("hang", accepted=accepted, reset="INTERNAL_ERROR")


def test_a_hang_without_end_and_a_client_that_cancels(mock, faults, device):
    faults.add({"hang": {}})
    with line(mock) as wire:
        stream = pushed(wire, mock, device)
        wire.ping()
        assert mock.record(device)["outcome"] == "pending"
        wire.send(RstStreamFrame(stream, error_code=CODES.index("CANCEL")))
        wait_until(lambda: mock.record(device)["outcome"] == "unanswered", "unanswered")
        faults.clear()
        assert wire.push(push_headers(mock, new_device())).status == 200
    assert fault_summary(mock, device) == FaultSummary("hang")


def test_a_hang_and_the_timeout_of_curl(mock, faults, device):
    faults.add({"hang": {"end_with": "nothing"}})
    done = curl(mock, device, "--max-time", "1")
    assert done.returncode == 28, done.stderr
    await_fault_summary(mock, device, FaultSummary("hang"))


def test_a_profile_limits_how_long_anything_hangs(mock, faults, device):
    faults.use([{"name": "stuck", "do": {"hang": {}}}], limits={"max_hold": "300ms"})
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device)).reset == INTERNAL_ERROR
    record = mock.record(device)
    assert FaultSummary.of(record) == FaultSummary("hang", reset="INTERNAL_ERROR")
    assert (record["fault"]["profile"], record["fault"]["rule"]) == ("of-a-test", "stuck")


@pytest.mark.parametrize("end_with", [None, "nothing", "reset_stream"])
def test_a_lost_response_of_an_accepted_push(mock, faults, device, end_with):
    faults.add({"lose_answer": {} if end_with is None else {"end_with": end_with}}, at="response")
    with line(mock) as wire:
        stream = pushed(wire, mock, device)
        if end_with == "reset_stream":
            assert wire.response(stream).reset == INTERNAL_ERROR
        else:
            wire.ping()
            assert is_silent(wire) and not wire.responses[stream].finished
        assert wire.responses[stream].headers is None
    reset = "INTERNAL_ERROR" if end_with == "reset_stream" else None
    await_fault_summary(mock, device, FaultSummary("lose_answer", accepted=True, reset=reset))


def test_a_lost_response_of_a_rejected_push(mock, faults, device):
    faults.add({"lose_answer": {"end_with": "reset_stream"}}, at="response", stage="before_validation")
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device, apns_priority="7")).reset == INTERNAL_ERROR
    assert fault_summary(mock, device) == FaultSummary("lose_answer", "response_lost", reset="INTERNAL_ERROR", verdict=400)


def test_half_open_sends_no_response_and_no_ping(mock, faults, device):
    """TCP acknowledges the data, but the server sends nothing."""
    with widened(mock) as wire:
        faults.add({"hang": {"end_with": "nothing"}})
        faults.add({"ignore_pings": {}}, at="connection")
        wait_until(lambda: any("ignore_pings" in detail for _, detail in timeline(mock, wire)[0]), "ignore_pings")
        pushed(wire, mock, device)
        wire.send(PingFrame(opaque_data=b"hello???"))
        assert is_silent(wire, 1)
        assert timeline(mock, wire)[1] == "open"
        faults.clear()


def test_pings_are_ignored_for_a_time_only(mock, faults):
    with widened(mock) as wire:
        began = time.monotonic()
        faults.add({"ignore_pings": {"for": "2s"}}, at="connection")
        wait_until(lambda: any("ignore_pings" in detail for _, detail in timeline(mock, wire)[0]), "ignore_pings")
        sent = 0
        while not [frame for frame in wire.frames if isinstance(frame, PingFrame)]:
            sent += 1
            wire.send(PingFrame(opaque_data=b"%8d" % sent))
            is_silent(wire, 0.1)
        assert time.monotonic() - began >= 1.9
        answered = [frame.opaque_data for frame in wire.frames if isinstance(frame, PingFrame)]
        assert sent > 1 and answered[0] != b"%8d" % 1, "what was ignored is not made up for"


def outlast(mock, faults, wire, short):
    """Returns when an action that lasts for less than half a second has ended."""
    slow = new_device()
    faults.add({"delay": {"fixed": "1s"}}, when={"device_token": slow}, name="slow")
    began = [detail for _, detail in timeline(mock, wire)[0]].count(f"rule short: {short}")
    assert began == 1
    assert wire.response(pushed(wire, mock, slow)).status == 200


def test_pings_are_ignored_until_the_last_of_two_rules_ends(mock, faults):
    with widened(mock) as wire:
        faults.add({"ignore_pings": {}}, at="connection", name="forever")
        faults.add({"ignore_pings": {"for": "400ms"}}, at="connection", name="short")
        wait_until(lambda: sum("ignore_pings" in detail for _, detail in timeline(mock, wire)[0]) == 2, "both rules")
        outlast(mock, faults, wire, "ignore_pings")
        wire.send(PingFrame(opaque_data=b"hello???"))
        assert is_silent(wire, 1)
        assert not [frame for frame in wire.frames if isinstance(frame, PingFrame)]
        faults.clear()


def test_pings_are_ignored_and_pushes_served(mock, faults, device):
    faults.add({"ignore_pings": {}}, at="connection")
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device)).status == 200
        wire.send(PingFrame(opaque_data=b"hello???"))
        assert wire.push(push_headers(mock, new_device())).status == 200
        assert not [frame for frame in wire.frames if isinstance(frame, PingFrame)]


# SETTINGS

def test_the_first_settings_can_limit_streams_to_one_permanently(mock, faults, device):
    faults.add({"settings": {"max_concurrent_streams": 1}}, at="settings")
    with line(mock) as wire:
        first = wire.settings()
        assert first.settings[MAX_CONCURRENT_STREAMS] == 1
        for _ in range(3):
            assert wire.push(push_headers(mock, new_device())).status == 200
        wire.ping()
        assert [frame.settings.get(MAX_CONCURRENT_STREAMS) for frame in wire.own_settings()] == [1]


def test_a_client_with_a_certificate_is_limited_to_one_stream(mock, faults, certs):
    faults.add({"settings": {"max_concurrent_streams": 1}}, at="settings")
    with Provider(mock, certificate=(certs / "client.pem", certs / "client-key.pem")) as provider:
        assert provider.push(new_device(), authorization=None) == 200
        assert provider.limits == [1]


@pytest.mark.parametrize(("field", "setting", "value"), [
    ("max_concurrent_streams", SettingsFrame.MAX_CONCURRENT_STREAMS, 0),
    ("max_concurrent_streams", SettingsFrame.MAX_CONCURRENT_STREAMS, 452),
    ("initial_window_size", SettingsFrame.INITIAL_WINDOW_SIZE, 0),
    ("initial_window_size", SettingsFrame.INITIAL_WINDOW_SIZE, 2**31 - 1),
    ("max_header_list_size", SettingsFrame.MAX_HEADER_LIST_SIZE, 100),
])
@pytest.mark.parametrize("moment", ["settings", "connection"])
def test_settings_with_other_values(mock, faults, moment, field, setting, value):
    faults.add({"settings": {field: value}}, at=moment)
    with line(mock) as wire:
        wire.ping()
        assert [frame.settings[setting] for frame in wire.own_settings() if setting in frame.settings][-1] == value


def test_settings_drop_to_one_stream_and_rise_again_while_h2_listens(mock, faults):
    with warmed(mock) as provider:
        faults.add({"settings": {"max_concurrent_streams": 1}}, at="connection")
        provider.until(lambda: provider.limits[-1] == 1)
        faults.clear()
        faults.add({"settings": {"max_concurrent_streams": 1000}}, at="connection")
        provider.until(lambda: provider.limits[-1] == 1000)
        assert provider.limits[-3:] == [1000, 1, 1000]
        streams = [provider.open(new_device()) for _ in range(50)]
        provider.until(lambda: provider.ended.issuperset(streams))
        assert {provider.statuses[stream] for stream in streams} == {200}


def test_settings_down_and_up_by_one_rule_each_with_a_time(mock, faults):
    with warmed(mock) as provider:
        faults.add({"settings": {"max_concurrent_streams": 1000, "after": "2s"}}, at="connection")
        began = time.monotonic()
        faults.add({"settings": {"max_concurrent_streams": 1}}, at="connection")
        provider.until(lambda: provider.limits[-3:] == [1000, 1, 1000])
        assert time.monotonic() - began >= 1.5
        assert provider.push(new_device()) == 200


def test_streams_on_their_way_while_the_limit_drops_are_served(mock, faults):
    """A client may not have read the new limit; only streams opened after its acknowledgement exceed the limit."""
    with widened(mock, acknowledge=False) as wire:
        faults.add({"settings": {"max_concurrent_streams": 1}}, at="connection")
        wire.until(lambda frame: isinstance(frame, SettingsFrame) and frame.settings == {MAX_CONCURRENT_STREAMS: 1})
        streams = [pushed(wire, mock, new_device()) for _ in range(50)]
        assert {wire.response(stream).status for stream in streams} == {200}


def opened_without_body(provider, mock, device):
    """Opens a stream with h2 once the server's settings are known, and sends only the headers; returns the stream."""
    provider.until(lambda: provider.limits)
    stream = provider.h2.get_next_available_stream_id()
    provider.h2.send_headers(stream, push_headers(mock, device))
    provider.flush()
    return stream


def test_an_empty_window_withholds_bodies(mock, faults, device):
    """h2 opens the stream and cannot send a byte of its body."""
    faults.add({"settings": {"initial_window_size": 0}}, at="settings")
    with Provider(mock) as provider:
        stream = opened_without_body(provider, mock, device)
        assert provider.h2.local_flow_control_window(stream) == 0
    with line(mock) as wire:
        wire.settings()
        wire.open(push_headers(mock, new_device()), end_stream=False)
        wire.ping()
        assert not [frame for frame in wire.frames if isinstance(frame, WindowUpdateFrame) and frame.stream_id]


def test_an_empty_window_that_opens_later(mock, faults, device):
    """h2 waits for the window, and the push is finally answered."""
    faults.add({"settings": {"initial_window_size": 0}}, at="settings")
    with Provider(mock) as provider:
        stream = opened_without_body(provider, mock, device)
        faults.add({"settings": {"initial_window_size": 65535}}, at="connection")
        provider.until(lambda: provider.h2.local_flow_control_window(stream) >= len(BODY))
        provider.h2.send_data(stream, BODY, end_stream=True)
        provider.until(lambda: stream in provider.ended)
        assert provider.statuses[stream] == 200
    assert fault_summary(mock, device) == ACCEPTED


def test_the_clients_settings_stay_unacknowledged(mock, faults, device):
    faults.add({"settings": {"ack_client": False}}, at="settings")
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device)).status == 200
        wire.ping()
        assert not [frame for frame in wire.frames if isinstance(frame, SettingsFrame) and "ACK" in frame.flags]
    faults.clear()
    with line(mock) as wire:
        assert wire.push(push_headers(mock, new_device())).status == 200
        wire.ping()
        assert [frame for frame in wire.frames if isinstance(frame, SettingsFrame) and "ACK" in frame.flags]


def test_acknowledgements_stop_on_an_open_connection(mock, faults):
    with widened(mock) as wire:
        faults.add({"settings": {"max_concurrent_streams": 7, "ack_client": False}}, at="connection")
        wire.until(lambda frame: isinstance(frame, SettingsFrame) and frame.settings == {MAX_CONCURRENT_STREAMS: 7})
        before = len(wire.frames)
        wire.send(SettingsFrame(settings={SettingsFrame.INITIAL_WINDOW_SIZE: 70000}))
        wire.ping()
        assert not [frame for frame in wire.frames[before:] if isinstance(frame, SettingsFrame)]


# Windows

BIG = b'{"aps":{"alert":"' + b"x" * 4000 + b'"}}'


def sent_until_the_window_is_shut(wire, server, limit=200):
    """Opens pushes of 4 KB until the connection's window is too small for another; returns their streams."""
    streams = []
    while wire._window >= len(BIG) and len(streams) < limit:
        streams.append(pushed(wire, server, new_device(), body=BIG))
        wire.drain()
    return streams


@pytest.mark.parametrize("moment", ["request", "connection"])
def test_a_withheld_window_opens_again(mock, faults, device, moment):
    with widened(mock) as wire:
        began = time.monotonic()
        faults.add({"starve_window": {"for": "3s"}}, at=moment, trigger={"times": 1})
        if moment == "connection":
            wait_until(lambda: any("starve_window" in detail for _, detail in timeline(mock, wire)[0]), "starved")
        streams = sent_until_the_window_is_shut(wire, mock)
        assert len(streams) <= 65535 // len(BIG), "the window was not renewed"
        assert {wire.response(stream).status for stream in streams} == {200}, "what fits is served"
        assert not [frame for frame in wire.frames if isinstance(frame, WindowUpdateFrame) and frame.stream_id == 0]
        wire.until(lambda frame: isinstance(frame, WindowUpdateFrame) and frame.stream_id == 0)
        assert time.monotonic() - began >= 3
        more = [pushed(wire, mock, new_device(), body=BIG) for _ in range(10)]
        assert {wire.response(stream).status for stream in more} == {200}


def test_a_window_withheld_without_end(mock, faults):
    with widened(mock) as wire:
        faults.add({"starve_window": {}})
        for stream in sent_until_the_window_is_shut(wire, mock):
            assert wire.response(stream).status == 200
        assert wire._window < len(BIG)
        wire.ping()
        assert is_silent(wire, 1)
        assert not [frame for frame in wire.frames if isinstance(frame, WindowUpdateFrame) and frame.stream_id == 0]


def test_a_window_is_withheld_until_the_last_of_two_rules_ends(mock, faults):
    with widened(mock) as wire:
        faults.add({"starve_window": {}}, at="connection", name="forever")
        faults.add({"starve_window": {"for": "400ms"}}, at="connection", name="short")
        wait_until(lambda: sum("starve_window" in detail for _, detail in timeline(mock, wire)[0]) == 2, "both rules")
        for _ in range(10):
            assert wire.response(pushed(wire, mock, new_device(), body=BIG)).status == 200
        outlast(mock, faults, wire, "starve_window")
        assert is_silent(wire, 1)
        assert not [frame for frame in wire.frames if isinstance(frame, WindowUpdateFrame) and frame.stream_id == 0]
        faults.clear()


# Draining

def test_drain_responds_with_shutdown_then_sends_goaway(mock, faults, device):
    with widened(mock) as wire:
        began = time.monotonic()
        rule = faults.add({"drain": {"for": "3s"}}, at="connection", trigger={"times": 1})
        wait_until(lambda: any("drain" in detail for _, detail in timeline(mock, wire)[0]), "drain")
        response = wire.push(push_headers(mock, device))
        assert (response.status, response.data) == (503, [b'{"reason":"Shutdown"}'])
        goaway = wire.goaway()
        assert time.monotonic() - began >= 3
        assert (goaway.error_code, goaway.last_stream_id) == (0, 3)
        assert goaway.additional_data == b'{"reason":"Shutdown"}'
        assert ending(wire) == "fin"
    record = mock.record(device)
    assert FaultSummary.of(record) == FaultSummary("respond", status=503, reason="Shutdown")
    assert record["fault"]["rule"] == rule


def test_drain_with_a_custom_response(mock, faults, device):
    with widened(mock) as wire:
        faults.add({"drain": {"for": "2s", "respond": {"status": 503}}}, at="connection", trigger={"times": 1})
        wait_until(lambda: any("drain" in detail for _, detail in timeline(mock, wire)[0]), "drain")
        response = wire.push(push_headers(mock, device))
        assert (response.status, response.data) == (503, [b'{"reason":"ServiceUnavailable"}'])
        assert ending(wire) == "fin"


# Order of responses

def test_delayed_responses_do_not_delay_others(mock, faults):
    slow, quick = new_device(), new_device()
    with widened(mock) as wire:
        faults.add({"delay": {"fixed": "1500ms"}}, when={"device_token": slow})
        first, second = pushed(wire, mock, slow), pushed(wire, mock, quick)
        assert wire.response(second).status == 200
        assert not wire.responses[first].finished
        assert wire.response(first).status == 200
        assert responses_in_order(wire)[-2:] == [second, first]


def test_faults_on_one_connection_do_not_affect_others(mock, faults, device):
    """A GOAWAY, a reset, a close, a hang and a stream reset do not affect another connection."""
    with widened(mock) as neighbor:
        for do in ({"goaway": {}}, {"reset_connection": {}}, {"close": {}}, {"hang": {}}, {"reset_stream": {}}):
            rule = faults.add(do, when={"topic": "com.example.app.voip"})
            with line(mock) as wire:
                pushed(wire, mock, new_device(), apns_topic="com.example.app.voip", apns_push_type="voip")
                assert neighbor.push(push_headers(mock, new_device())).status == 200
            faults.remove(rule)
        assert neighbor.push(push_headers(mock, device)).status == 200

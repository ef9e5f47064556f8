"""Responses that faults change: other statuses and reasons, delays, unusual forms; and magic device tokens, which
contain the response to their pushes.
"""

import json
import re
import time
import uuid

import pytest
from hyperframe.frame import DataFrame, HeadersFrame

from support import drivers
from support.faults import (  # noqa: F401 (fixtures)
    REASONS, FaultSummary, await_fault_summary, ending, fault_summary, faults, is_silent, line, mock, new_device,
    pushed, responses_in_order, widened,
)
from support.server import wait_until
from support.wire import push_headers

HOUR = 3_600_000  # milliseconds


def answered(server, device, **changes):
    """Returns the response to one push on a new connection."""
    with line(server) as wire:
        return wire.push(push_headers(server, device, **changes))


def error_body(response):
    """Returns a response body's JSON. The body must be compact JSON in one DATA frame."""
    assert response.ended_by == "DATA" and len(response.data) == 1, response
    value = json.loads(response.body)
    assert json.dumps(value, separators=(",", ":")).encode() == response.body
    return value


# respond

@pytest.mark.parametrize(("status", "reason"), REASONS, ids=[reason for _, reason in REASONS])
def test_respond_with_every_reason(mock, faults, device, status, reason):
    rule = faults.add({"respond": {"status": status, "reason": reason}})
    response = answered(mock, device)
    assert response.status == status
    assert response.names == [":status", "apns-id"]
    body = error_body(response)
    assert body.pop("reason") == reason
    assert list(body) == (["timestamp"] if status == 410 else [])
    record = mock.record(device)
    assert FaultSummary.of(record) == FaultSummary(
        "respond", "unprocessed" if reason == "IdleTimeout" else "rejected", status=status, reason=reason)
    assert record["fault"]["rule"] == rule
    assert record["verdict"]["reason"] is None
    assert record["apns"]["id"] == response.header("apns-id")
    assert len(mock.pushes(device_token=device, status=status, reason=reason)) == 1, "filters mean what went out"


@pytest.mark.parametrize(("status", "reason"), REASONS, ids=[reason for _, reason in REASONS])
def test_respond_with_a_reason_has_its_status(mock, faults, device, status, reason):
    faults.add({"respond": {"reason": reason}})
    response = answered(mock, device)
    assert (response.status, error_body(response)["reason"]) == (status, reason)


@pytest.mark.parametrize(("status", "reason"), [
    (404, "BadPath"), (405, "MethodNotAllowed"), (410, "Unregistered"), (413, "PayloadTooLarge"),
    (429, "TooManyRequests"), (500, "InternalServerError"), (503, "ServiceUnavailable"),
])
def test_respond_with_a_status_has_its_usual_reason(mock, faults, device, status, reason):
    faults.add({"respond": {"status": status}})
    response = answered(mock, device)
    assert (response.status, error_body(response)["reason"]) == (status, reason)


def test_respond_200_accepts(mock, faults, device):
    faults.add({"respond": {"status": 200}})
    response = answered(mock, device)
    assert (response.status, response.ended_by, response.data) == (200, "HEADERS", [])
    assert response.header("apns-id") and fault_summary(mock, device) == FaultSummary("respond", accepted=True, status=200)


def test_respond_200_to_an_invalid_push_is_not_accepted(mock, faults, device):
    faults.add({"respond": {"status": 200}}, stage="before_validation")
    assert answered(mock, device, apns_priority="7").status == 200
    assert fault_summary(mock, device) == FaultSummary("respond", accepted=True, status=200, verdict=400)


def test_respond_echoes_the_clients_id_and_curl_reads_it(mock, faults, device):
    faults.add({"respond": {"status": 503}})
    apns_id = str(uuid.uuid4())
    reply = drivers.curl(mock, drivers.Push(device, {"aps": {}}, apns_id=apns_id))
    assert (reply.status, reply.reason, reply.apns_id) == (503, "ServiceUnavailable", apns_id)


@pytest.mark.parametrize("client", ["nghttp", "httpx", "aioapns", "node"])
def test_respond_is_read_by_real_clients(mock, faults, device, client):
    faults.add({"respond": {"status": 410, "reason": "Unregistered", "timestamp": "2016-02-08T22:26:55.990Z"}})
    apns_id = str(uuid.uuid4())
    reply = drivers.ALL[client](mock, drivers.Push(device, {"aps": {}}, apns_id=apns_id))
    assert (reply.status, reply.reason, reply.timestamp) == (410, "Unregistered", 1454970415990)


def test_respond_with_headers_of_its_own(mock, faults, device):
    faults.add({"respond": {"status": 429, "headers": {"retry-after": "120", "X-Chaos": "yes"}}})
    response = answered(mock, device)
    assert (response.status, response.header("retry-after"), response.header("x-chaos")) == (429, "120", "yes")
    assert response.names[:2] == [":status", "apns-id"]


@pytest.mark.parametrize(("body", "expected"), [
    ("<html>Bad Gateway</html>", b"<html>Bad Gateway</html>"),
    ({"reason": "ServiceUnavailable", "more": [1, None, True]},
     b'{"reason":"ServiceUnavailable","more":[1,null,true]}'),
    ("ünï", "ünï".encode()),
], ids=["text", "a map", "not ASCII"])
def test_respond_with_a_body_of_its_own(mock, faults, device, body, expected):
    faults.add({"respond": {"status": 503, "body": body}})
    response = answered(mock, device)
    assert (response.status, response.data, response.ended_by) == (503, [expected], "DATA")


def test_respond_with_an_empty_body(mock, faults, device):
    faults.add({"respond": {"status": 503, "body": ""}})
    response = answered(mock, device)
    assert (response.status, response.body) == (503, b"")


def test_respond_with_reasons_unknown_to_apns_requires_unreal(mock, faults, device):
    refused = mock.request("POST", "/api/v1/rules", {"do": {"respond": {"status": 418, "reason": "Teapot"}}})
    assert refused.status == 422
    refused = mock.request("POST", "/api/v1/rules", {"do": {"respond": {"status": 400, "reason": "Unregistered"}}})
    assert refused.status == 422
    faults.add({"respond": {"status": 418, "reason": "Teapot", "unreal": True}})
    response = answered(mock, device)
    assert (response.status, error_body(response)) == (418, {"reason": "Teapot"})
    assert fault_summary(mock, device) == FaultSummary("respond", status=418, reason="Teapot")


@pytest.mark.parametrize("status", [201, 204, 301, 404, 418, 502, 504, 599])
def test_respond_with_unreal_statuses(mock, faults, device, status):
    faults.add({"respond": {"status": status, "reason": "Whatever", "unreal": True}})
    response = answered(mock, device)
    assert response.status == status
    assert fault_summary(mock, device).status == status


def timestamp_of(response):
    value = error_body(response)["timestamp"]
    assert isinstance(value, int)
    return value


@pytest.mark.parametrize(("timestamp", "offset"), [
    (None, 0), ("now", 0), ("-24h", -24 * HOUR), ("-90m", -1.5 * HOUR), ({"ago": "24h"}, -24 * HOUR),
], ids=["absent", "now", "-24h", "-90m", "ago"])
def test_a_410_has_a_timestamp(mock, faults, device, timestamp, offset):
    fields = {} if timestamp is None else {"timestamp": timestamp}
    faults.add({"respond": {"status": 410, "reason": "Unregistered", **fields}})
    before = time.time_ns() // 1_000_000
    value = timestamp_of(answered(mock, device))
    assert before - 1 <= value - offset <= time.time_ns() // 1_000_000 + 1


@pytest.mark.parametrize("timestamp", ["2016-02-08T22:26:55.990Z", "2016-02-08T23:26:55.990+01:00"])
def test_a_410_has_the_given_timestamp(mock, faults, device, timestamp):
    faults.add({"respond": {"status": 410, "reason": "ExpiredToken", "timestamp": timestamp}})
    assert timestamp_of(answered(mock, device)) == 1454970415990


def test_a_410_follows_the_settable_clock(mock, faults, device):
    faults.add({"respond": {"status": 410, "reason": "Unregistered", "timestamp": "-1h"}}, stage="before_validation")
    mock.api("PUT", "/clock", {"mode": "frozen", "now": "2030-01-01T12:00:00.000Z"})
    try:
        assert timestamp_of(answered(mock, device)) == 1893495600000
    finally:
        mock.api("PUT", "/clock", {"mode": "real"})


def test_a_token_update_storm_affects_one_connection(mock, faults, device):
    """429 TooManyProviderTokenUpdates as an injected response."""
    faults.add({"respond": {"status": 429, "reason": "TooManyProviderTokenUpdates"}})
    response = answered(mock, device)
    assert (response.status, error_body(response)["reason"]) == (429, "TooManyProviderTokenUpdates")


# Faults do not hide a malformed push

MALFORMED = [
    ({"apns_priority": "7"}, 400, "BadPriority"), ({"authorization": None}, 403, "MissingProviderToken"),
    ({"apns_topic": None}, 400, "MissingTopic"), ({"method_": "GET"}, 405, "MethodNotAllowed"),
    ({"path_": "/3/nothing"}, 404, "BadPath"),
]


@pytest.mark.parametrize(("changes", "status", "reason"), MALFORMED, ids=[row[2] for row in MALFORMED])
@pytest.mark.parametrize("do", [
    {"respond": {"status": 503}}, {"reset_stream": {}}, {"goaway": {}}, {"close": {}}, {"reset_connection": {}},
    {"hang": {}},
], ids=lambda do: next(iter(do)))
def test_a_malformed_push_is_rejected_without_a_fault(mock, faults, device, changes, status, reason, do):
    faults.add(do)
    headers = push_headers(mock, device, ("apns-collapse-id", device), **changes)
    with line(mock) as wire:
        response = wire.push(headers)
    assert (response.status, error_body(response)["reason"]) == (status, reason)
    record, = mock.pushes(collapse_id=device)
    assert FaultSummary.of(record) == FaultSummary(None, "rejected", status=status, reason=reason, verdict=status)


@pytest.mark.parametrize(("changes", "status", "reason"), MALFORMED, ids=[row[2] for row in MALFORMED])
def test_an_outage_precedes_validation(mock, faults, device, changes, status, reason):
    faults.add({"respond": {"status": 503, "reason": "ServiceUnavailable"}}, stage="before_validation")
    with line(mock) as wire:
        response = wire.push(push_headers(mock, device, ("apns-collapse-id", device), **changes))
    assert (response.status, error_body(response)["reason"]) == (503, "ServiceUnavailable")
    record, = mock.pushes(collapse_id=device)
    assert FaultSummary.of(record) == FaultSummary("respond", status=503, reason="ServiceUnavailable", verdict=status)
    assert record["verdict"]["reason"] == reason, "the verdict of APNs' rules is recorded"


@pytest.mark.parametrize("action", [
    {"respond": {"status": 503, "reason": "ServiceUnavailable"}}, {"respond": {"status": 500, "body": "oops"}},
    {"delay": {"fixed": "50ms"}}, {"split_body": {}}, {"garble_body": {}}, {"truncate_body": {}},
], ids=lambda action: next(iter(action)))
def test_the_faulted_response_to_head_has_no_body(mock, faults, device, action):
    """RFC 9110, section 9.3.2."""
    at = "request" if next(iter(action)) in ("respond", "delay") else "response"
    faults.add(action, at=at, stage="before_validation")
    response = answered(mock, device, method_="HEAD")
    assert (response.data, response.ended_by) == ([], "HEADERS")
    assert response.status == action.get("respond", {"status": 405})["status"]


# delay

DELAYS = [
    ({"fixed": "1s"}, 1), ({"uniform": {"min": "900ms", "max": "1100ms"}}, 0.9),
    ({"lognormal": {"median": "1s", "sigma": 0, "max": "2s"}}, 1),
]


@pytest.mark.parametrize("moment", ["request", "response"])
@pytest.mark.parametrize(("delay", "least"), DELAYS, ids=["fixed", "uniform", "lognormal"])
def test_delay(mock, faults, device, moment, delay, least):
    faults.add({"delay": delay}, at=moment)
    with line(mock) as wire:
        began = time.monotonic()
        stream = pushed(wire, mock, device)
        wire.ping()
        pending = mock.record(device)
        assert (pending["outcome"], pending["finished_at"], pending["served"]["status"]) == ("pending", None, None)
        assert wire.response(stream).status == 200
        assert time.monotonic() - began >= least
    record = mock.record(device)
    assert FaultSummary.of(record) == FaultSummary("delay", "accepted", True, 200)
    assert record["served"]["latency_ms"] >= 1000 * least
    assert record["finished_at"] > record["received_at"]


def test_lognormal_delays_have_a_long_tail_and_an_end(mock, faults):
    """For many concurrent pushes the delays differ, and none exceeds the maximum."""
    faults.add({"delay": {"lognormal": {"median": "50ms", "sigma": 1, "max": "300ms"}}}, at="response", name="tail")
    devices = [new_device() for _ in range(200)]
    with widened(mock) as wire:
        streams = [pushed(wire, mock, one) for one in devices]
        assert {wire.response(stream).status for stream in streams} == {200}
        assert sorted(responses_in_order(wire)[1:]) == streams
        assert responses_in_order(wire)[1:] != streams, "each has a delay of its own"


def test_a_delayed_rejection_is_delayed_at_the_response(mock, faults, device):
    """Rules that only modify a response apply to every response."""
    faults.add({"delay": {"fixed": "400ms"}}, at="response")
    began = time.monotonic()
    response = answered(mock, device, apns_priority="7")
    assert response.status == 400 and time.monotonic() - began >= 0.4
    assert fault_summary(mock, device) == FaultSummary("delay", "rejected", status=400, reason="BadPriority", verdict=400)


def test_delays_add_up_with_the_outcome_of_another_rule(mock, faults, device):
    faults.add({"respond": {"status": 503}}, name="down")
    faults.add({"delay": {"fixed": "300ms"}}, name="slow")
    faults.add({"delay": {"fixed": "300ms"}}, name="slower", at="response")
    began = time.monotonic()
    assert answered(mock, device).status == 503
    assert time.monotonic() - began >= 0.6
    record = mock.record(device)
    assert FaultSummary.of(record) == FaultSummary("respond", status=503, reason="ServiceUnavailable")
    assert record["fault"]["rule"] == "down"
    assert sorted((one["rule"], one["action"]) for one in record["fault"]["also"]) == [
        ("slow", "delay"), ("slower", "delay")]


def test_a_delay_can_end_the_evaluation(mock, faults, device):
    faults.add({"respond": {"status": 503}})
    faults.add({"delay": {"fixed": "100ms"}}, then="stop")
    assert answered(mock, device).status == 200
    assert fault_summary(mock, device) == FaultSummary("delay", "accepted", True, 200)


@pytest.mark.parametrize(("moment", "accepted"), [("request", False), ("response", True)])
@pytest.mark.parametrize("do", [{"delay": {"fixed": "30s"}}, {"hang": {}}], ids=["delay", "hang"])
def test_a_client_that_cancels_a_delayed_push(mock, faults, device, do, moment, accepted):
    """At the response APNs has already accepted the push; at the request it has not."""
    faults.add(do, at=moment)
    with line(mock) as wire:
        pushed(wire, mock, device)
        wire.ping()
        assert mock.record(device)["outcome"] == "pending"
    wait_until(lambda: mock.record(device)["outcome"] in ("unanswered", "response_lost"), "ended")
    assert fault_summary(mock, device) == FaultSummary(next(iter(do)), accepted=accepted)


# Unusual responses

REJECTED = b'{"reason":"BadPriority"}'


def odd(server, device, **changes):
    """Returns the response to a push that APNs rejects, so it has a body."""
    return answered(server, device, apns_priority="7", **changes)


def test_dribble_sends_the_body_in_pieces_with_time_between(mock, faults, device):
    faults.add({"dribble": {"chunks": 4, "over": "2s"}}, at="response")
    with line(mock) as wire:
        times = [time.monotonic()]
        stream = pushed(wire, mock, device, apns_priority="7")
        while not wire.responses[stream].finished:
            frame = wire.receive()
            if isinstance(frame, (HeadersFrame, DataFrame)):
                times.append(time.monotonic())
        response = wire.responses[stream]
        assert (response.status, response.body, len(response.data)) == (400, REJECTED, 4)
        assert times[-1] - times[0] >= 1.4
        assert len([1 for earlier, later in zip(times, times[1:]) if later - earlier >= 0.3]) >= 2, times
    assert fault_summary(mock, device) == FaultSummary("dribble", "rejected", status=400, reason="BadPriority", verdict=400)


def test_dribble_does_not_delay_other_pushes(mock, faults, device):
    """Other streams of the connection are not delayed."""
    with widened(mock) as wire:
        faults.add({"dribble": {"chunks": 3, "over": "3s"}}, at="response", when={"device_token": device})
        slow = pushed(wire, mock, device, apns_priority="7")
        assert wire.push(push_headers(mock, new_device())).status == 200
        assert not wire.responses[slow].finished
        assert wire.response(slow).body == REJECTED


def test_dribble_of_a_response_without_a_body(mock, faults, device):
    faults.add({"dribble": {"chunks": 3, "over": "300ms"}}, at="response")
    response = answered(mock, device)
    assert (response.status, response.body) == (200, b"")
    assert fault_summary(mock, device) == FaultSummary("dribble", "accepted", True, 200)


def test_dribble_with_more_pieces_than_bytes(mock, faults, device):
    faults.add({"dribble": {"chunks": 1000, "over": "300ms"}}, at="response")
    response = odd(mock, device)
    assert (response.status, response.data) == (400, [bytes([byte]) for byte in REJECTED])


def test_split_body(mock, faults, device):
    faults.add({"split_body": {}}, at="response")
    response = odd(mock, device)
    assert (response.status, len(response.data), response.body, response.ended_by) == (400, 2, REJECTED, "DATA")
    assert all(response.data)
    assert fault_summary(mock, device) == FaultSummary("split_body", "rejected", status=400, reason="BadPriority", verdict=400)


def test_truncate_body(mock, faults, device):
    faults.add({"truncate_body": {}}, at="response")
    response = odd(mock, device)
    assert 0 < len(response.body) < len(REJECTED) and REJECTED.startswith(response.body)
    with pytest.raises(ValueError):
        json.loads(response.body)


def test_garble_body(mock, faults, device):
    faults.add({"garble_body": {}}, at="response")
    response = odd(mock, device)
    assert response.body and response.ended_by == "DATA"
    with pytest.raises(ValueError):
        json.loads(response.body)


def test_empty_error_body(mock, faults, device):
    faults.add({"empty_error_body": {}}, at="response")
    response = odd(mock, device)
    assert (response.status, response.data, response.ended_by) == (400, [], "HEADERS")
    assert answered(mock, new_device()).status == 200


@pytest.mark.parametrize("name", ["apns-id", "apns-unique-id"])
def test_drop_header(mock, faults, device, name):
    faults.add({"drop_header": {"name": name}}, at="response")
    response = answered(mock, device)
    assert response.status == 200
    assert response.names == [kept for kept in (":status", "apns-id", "apns-unique-id") if kept != name]


def test_drop_header_in_any_case(mock, faults, device):
    faults.add({"drop_header": {"name": "APNS-ID"}}, at="response")
    assert odd(mock, device).names == [":status"]


@pytest.mark.parametrize(("to", "change"), [("upper_case", str.upper), ("lower_case", str.lower)])
def test_change_id(mock, faults, device, to, change):
    faults.add({"change_id": {"to": to}}, at="response")
    apns_id = "7f7d8b2E-0b1a-4C7d-9a55-0f5b9d9a4d1F"
    response = answered(mock, device, apns_id=apns_id)
    assert response.header("apns-id") == change(apns_id)
    assert mock.record(device)["apns"]["id"] == apns_id


def test_odd_things_add_up(mock, faults, device):
    faults.add({"respond": {"status": 503, "headers": {"x-a": "1"}}})
    for do in ({"split_body": {}}, {"drop_header": {"name": "apns-id"}}, {"delay": {"fixed": "200ms"}}):
        faults.add(do, at="response")
    response = answered(mock, device)
    assert (response.status, response.names, len(response.data)) == (503, [":status", "x-a"], 2)
    assert response.body == b'{"reason":"ServiceUnavailable"}'
    assert len(mock.record(device)["fault"]["also"]) == 3


def test_odd_answers_for_one_reason_alone(mock, faults, device):
    """At the response a rule's condition may refer to the response."""
    faults.add({"empty_error_body": {}}, at="response", when={"reason": "BadPriority"})
    faults.add({"drop_header": {"name": "apns-id"}}, at="response", when={"status": {"gt": 400}})
    with line(mock) as wire:
        rejected = wire.push(push_headers(mock, device, apns_priority="7"))
        forbidden = wire.push(push_headers(mock, new_device(), authorization=None))
        accepted = wire.push(push_headers(mock, new_device()))
    assert (rejected.data, rejected.names) == ([], [":status", "apns-id"])
    assert (forbidden.data, forbidden.names) == ([b'{"reason":"MissingProviderToken"}'], [":status"])
    assert "apns-id" in accepted.names


@pytest.mark.parametrize("client", ["curl", "nghttp", "httpx"])
def test_odd_bodies_reach_real_clients(mock, faults, device, client):
    """Clients reassemble the body."""
    faults.add({"respond": {"status": 503}})
    faults.add({"dribble": {"chunks": 5, "over": "300ms"}}, at="response")
    reply = drivers.ALL[client](mock, drivers.Push(device, {"aps": {}}))
    assert reply.status == 503
    if client != "nghttp":  # it prints the body in pieces, as received
        assert reply.reason == "ServiceUnavailable"


# Several actions

def test_choose_follows_its_weights(mock, faults):
    """With weights of 0.0001 and 10000 the second is practically always chosen."""
    faults.add({"choose": [{"weight": 10000, "respond": {"status": 503}}, {"weight": 0.0001, "reset_stream": {}}]})
    with line(mock) as wire:
        for _ in range(20):
            device = new_device()
            assert wire.push(push_headers(mock, device)).status == 503
            fault = mock.record(device)["fault"]
            assert fault["action"] == "respond"


def test_choose_uses_every_part(mock, faults):
    faults.add({"choose": [
        {"weight": 1, "respond": {"status": 503}}, {"weight": 1, "respond": {"status": 429}}, {"weight": 1, "pass": {}},
    ]})
    devices = [new_device() for _ in range(60)]
    with line(mock) as wire:
        seen = {wire.push(push_headers(mock, one)).status for one in devices}
    assert seen == {503, 429, 200}


@pytest.mark.parametrize(("on_end", "expected"), [
    ("stay", [503, 429, 500, 500, 500, 500, 500]), ("cycle", [503, 429, 500, 503, 429, 500, 503]),
    ("pass", [503, 429, 500, 200, 200, 200, 200]),
])
def test_sequence(mock, faults, on_end, expected):
    faults.add({"sequence": {"on_end": on_end, "steps": [
        {"respond": {"status": 503}}, {"respond": {"status": 429}}, {"respond": {"status": 500}}]}})
    with line(mock) as wire:
        assert [wire.push(push_headers(mock, new_device())).status for _ in expected] == expected


def test_sequence_for_each_device(mock, faults):
    """A sequence with explicit steps, as in the documentation."""
    faults.add({"sequence": {"key": "device_token", "on_end": "stay", "steps": [
        {"respond": {"status": 503}}, {"respond": {"status": 429}}, {"pass": {}}]}})
    one, other = new_device(), new_device()
    with line(mock) as wire:
        statuses = [(name, wire.push(push_headers(mock, device)).status)
                    for name, device in [("a", one), ("a", one), ("b", other), ("a", one), ("b", other), ("a", one)]]
    assert statuses == [("a", 503), ("a", 429), ("b", 503), ("a", 200), ("b", 429), ("a", 200)]


def test_sequence_of_very_different_things(mock, faults):
    faults.add({"sequence": {"steps": [
        {"reset_stream": {"code": "REFUSED_STREAM"}}, {"hang": {"for": "200ms", "end_with": "reset_stream"}},
        {"respond": {"status": 410}}, {"goaway": {"last_stream": "this", "close_after": "0s"}}]}})
    with line(mock) as wire:
        assert wire.push(push_headers(mock, new_device())).reset == 7
        assert wire.push(push_headers(mock, new_device())).reset == 2
        assert wire.push(push_headers(mock, new_device())).status == 410
        stream = pushed(wire, mock, new_device())
        assert ending(wire) == "fin"
        assert wire.responses[stream].status == 200


def test_pass_skips_the_rules_below(mock, faults, device):
    other = new_device()
    faults.add({"respond": {"status": 503}})
    rule = faults.add({"pass": {}}, when={"device_token": device})
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device)).status == 200
        assert wire.push(push_headers(mock, other)).status == 503
    record = mock.record(device)
    assert (record["outcome"], record["accepted"], record["fault"]["rule"]) == ("accepted", True, rule)


def test_the_newest_rule_is_evaluated_first_and_the_first_outcome_wins(mock, faults, device):
    faults.use([{"name": "profile", "do": {"respond": {"status": 500}}}])
    faults.add({"respond": {"status": 503}}, name="older")
    faults.add({"respond": {"status": 429}}, name="newer")
    assert answered(mock, device).status == 429
    faults.remove("newer")
    assert answered(mock, device).status == 503
    faults.remove("older")
    assert answered(mock, device).status == 500
    assert [(record["fault"]["profile"], record["fault"]["rule"]) for record in mock.pushes(device_token=device)] == [
        (None, "newer"), (None, "older"), ("of-a-test", "profile")]


# Magic device tokens

def magic(code, argument=0):
    """Returns a magic device token, whose last 40 digits are arbitrary."""
    return f"feedfacefeedface{code}{argument:04}" + new_device()[:40]


MAGIC = [
    ("4000", 400, "BadDeviceToken"), ("4001", 400, "DeviceTokenNotForTopic"), ("4002", 400, "TopicDisallowed"),
    ("4030", 403, "ExpiredProviderToken"), ("4031", 403, "InvalidProviderToken"), ("4100", 410, "Unregistered"),
    ("4101", 410, "ExpiredToken"), ("4130", 413, "PayloadTooLarge"), ("4290", 429, "TooManyRequests"),
    ("4291", 429, "TooManyProviderTokenUpdates"), ("5000", 500, "InternalServerError"),
    ("5030", 503, "ServiceUnavailable"), ("5031", 503, "Shutdown"),
]


@pytest.mark.parametrize(("code", "status", "reason"), MAGIC, ids=[row[0] for row in MAGIC])
def test_magic_responses(mock, faults, code, status, reason):
    token = magic(code)
    response = answered(mock, token)
    body = error_body(response)
    assert (response.status, body["reason"]) == (status, reason)
    assert ("timestamp" in body) is (status == 410)
    record = mock.record(token)
    assert (FaultSummary.of(record).action, record["served"]["status"], record["accepted"]) == ("respond", status, False)
    assert (record["fault"]["profile"], record["fault"]["rule"]) == (None, f"magic-{code}")


def test_magic_4100_has_a_timestamp_in_the_past(mock, faults):
    for hours in (0, 1, 24, 9999):
        before = time.time_ns() // 1_000_000
        value = timestamp_of(answered(mock, magic("4100", hours)))
        assert before - 1 <= value + hours * HOUR <= time.time_ns() // 1_000_000 + 1


def test_magic_5031_ends_the_connection_after_its_response(mock, faults):
    token = magic("5031")
    with line(mock) as wire:
        stream = pushed(wire, mock, token)
        assert ending(wire) == "fin"
        assert (wire.responses[stream].status, wire.responses[stream].data) == (503, [b'{"reason":"Shutdown"}'])
        assert wire.goaway().last_stream_id == stream
    assert mock.record(token)["served"]["goaway"]["last_stream"] == stream


@pytest.mark.parametrize(("code", "status"), [("0503", 503), ("0429", 429)])
def test_magic_fails_on_the_first_attempts(mock, faults, code, status):
    token = magic(code, 3)
    with line(mock) as wire:
        statuses = [wire.push(push_headers(mock, token)).status for _ in range(5)]
        assert statuses == [status, status, status, 200, 200]
        assert wire.push(push_headers(mock, magic(code, 0))).status == 200
        faults.clear()
        assert wire.push(push_headers(mock, token)).status == status, "a reset of the counters begins anew"
    records = mock.pushes(device_token=token)
    assert [record["accepted"] for record in records] == [False, False, False, True, True, False]


def test_magic_attempts_count_per_device(mock, faults):
    one, other = magic("0503", 1), magic("0503", 1)
    with line(mock) as wire:
        assert [wire.push(push_headers(mock, token)).status for token in (one, other, one, other)] == [
            503, 503, 200, 200]


def test_magic_0001_is_late(mock, faults):
    token = magic("0001", 5)
    began = time.monotonic()
    assert answered(mock, token).status == 200
    assert time.monotonic() - began >= 0.5
    assert mock.record(token)["accepted"] is True


def test_magic_0900_never_responds(mock, faults):
    token = magic("0900")
    with line(mock) as wire:
        stream = pushed(wire, mock, token)
        wire.ping()
        assert is_silent(wire, 1) and not wire.responses[stream].finished
        assert mock.record(token)["outcome"] == "pending"
    await_fault_summary(mock, token, FaultSummary("hang"))


def test_magic_0901_resets_the_stream(mock, faults):
    token = magic("0901")
    assert answered(mock, token).reset == 2
    assert fault_summary(mock, token) == FaultSummary("reset_stream", reset="INTERNAL_ERROR")


def test_magic_0902_sends_goaway_and_refuses_this_stream(mock, faults):
    token = magic("0902")
    with widened(mock) as wire:
        stream = pushed(wire, mock, token)
        assert ending(wire) == "fin"
        assert wire.goaway().last_stream_id == stream - 2
        assert not wire.responses[stream].finished
    assert fault_summary(mock, token) == FaultSummary("goaway", goaway={"code": "NO_ERROR", "last_stream": stream - 2, "debug": ""})


def test_magic_0903_resets_the_connection(mock, faults):
    token = magic("0903")
    with line(mock) as wire:
        pushed(wire, mock, token)
        assert ending(wire) == "reset"
    assert fault_summary(mock, token) == FaultSummary("reset_connection", closed="reset")


def test_magic_0904_loses_the_response(mock, faults):
    token = magic("0904")
    with line(mock) as wire:
        stream = pushed(wire, mock, token)
        wire.ping()
        assert is_silent(wire) and not wire.responses[stream].finished
    await_fault_summary(mock, token, FaultSummary("lose_answer", accepted=True))


def test_magic_tokens_in_capital_letters(mock, faults):
    token = magic("5030").upper()
    assert answered(mock, token).status == 503
    assert mock.record(token)["request"]["device_token"] == token.lower()


@pytest.mark.parametrize("token", [
    "feedfacefeedface" + "9999" + "0000" + "0" * 40, "feedfacefeedface" + "5030" + "0000" + "0" * 42,
    "feedfacefeedface" + "5030" + "000a" + "0" * 40, "feedfacefeedfac0" + "5030" + "0000" + "0" * 40,
], ids=["unknown code", "too long", "argument not decimal", "another marker"])
def test_tokens_that_are_not_magic(mock, faults, token):
    assert answered(mock, token[:-4] + new_device()[:4]).status == 200


def test_magic_malformed_pushes_are_rejected_first(mock, faults):
    assert odd(mock, magic("5030")).status == 400


def test_magic_rules_of_the_user_come_first(mock, faults):
    token = magic("5030")
    faults.add({"respond": {"status": 429}}, when={"device_token": token})
    assert answered(mock, token).status == 429


def test_no_magic(start):
    server = start("--no-magic-tokens")
    with line(server) as wire:
        for code, _, _ in MAGIC:
            assert wire.push(push_headers(server, magic(code))).status == 200


def test_magic_tokens_are_paused(mock, faults):
    token = magic("5030")
    mock.api("POST", "/faults/halt")
    assert answered(mock, token).status == 200
    mock.api("POST", "/faults/resume")
    assert answered(mock, token).status == 503

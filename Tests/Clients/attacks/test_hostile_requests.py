"""Hostile requests: each gets the response APNs would send; its connection and others stay usable."""

import json
import secrets
import time
import uuid

import pytest
from hyperframe.frame import (
    ContinuationFrame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame,
)

from support.conformance import PING, frame
from support.wire import NO_ERROR, PROTOCOL_ERROR, CANCEL, Closed, connect, push_headers

MEBIBYTE = 1 << 20


@pytest.fixture
def wire(server, device):
    """A connection on which a push must still be accepted after the test."""
    with connect(server) as connection:
        assert connection.push(push_headers(server, device)).status == 200
        yield connection
        assert connection.push(push_headers(server, device)).status == 200, "the connection did not survive"


@pytest.fixture
def other():
    """A second device, so that the test's records are separate."""
    return secrets.token_hex(32)


def list_size(headers):
    """Returns the size as MAX_HEADER_LIST_SIZE counts it: 32 bytes more for each field."""
    return sum(len(name.encode()) + len(value.encode()) + 32 for name, value in headers)


def padded(headers, size):
    return headers + [("x-pad", "p" * (size - list_size(headers) - len("x-pad") - 32))]


def test_a_header_list_at_the_limit_is_read(server, wire, other):
    headers = padded(push_headers(server, other), 8000)
    assert list_size(headers) == 8000
    assert wire.push(headers).status == 200


@pytest.mark.parametrize("size", [8001, 20_000, 60_000])
def test_a_header_list_over_the_limit_is_431_without_a_body(server, wire, other, size):
    response = wire.push(padded(push_headers(server, other), size))
    assert (response.status, response.ended_by, response.data) == (431, "HEADERS", [])


def test_many_small_headers_count_as_well(server, wire, other):
    response = wire.push(push_headers(server, other, *((f"x-{index}", "v") for index in range(300))))
    assert (response.status, response.data) == (431, [])


def test_a_provider_token_of_100_kilobytes_ends_its_connection_with_a_reason(server, wire, other):
    """Beyond the hard limit no 431 is required, but the GOAWAY must name the cause for the provider's developer."""
    with connect(server) as hostile:
        hostile.open(push_headers(server, other, authorization="bearer " + "e" * 100_000))
        assert b"header" in hostile.goaway().additional_data
        hostile.read_to_end()
        assert hostile.closed


def test_continuation_without_end_ends_that_connection_in_bounded_memory(server, wire, other):
    before = server.resident_bytes()
    literal = b"\x00\x01x\x7f\xe1\x7e" + b"y" * 16352  # HPACK: the field "x" with a value that fills the frame
    with connect(server) as hostile:
        try:
            hostile.send(HeadersFrame(1, b""))
            for _ in range(4096):  # 64 MiB if all were accepted
                hostile.send(ContinuationFrame(1, literal))
        except Closed:
            pass  # closed while sending
        else:
            hostile.read_to_end()
            assert hostile.closed
    if before is not None:
        assert server.resident_bytes() - before < 24 * MEBIBYTE


def test_a_body_of_a_mebibyte_is_413_before_it_is_complete(server, wire, other):
    response = wire.upload(push_headers(server, other), b"x" * MEBIBYTE)
    assert (response.status, response.data) == (413, [b'{"reason":"PayloadTooLarge"}'])
    while response.reset is None:
        wire.receive()
    assert response.reset == NO_ERROR
    record = server.record(other)
    assert (record["served"]["status"], record["served"]["reason"]) == (413, "PayloadTooLarge")
    assert record["request"]["size"]["limit"] == 4096
    assert record["request"]["size"]["bytes"] > 4096


def test_bodies_too_long_do_not_use_up_the_connections_window(server, wire, other):
    for _ in range(20):
        assert wire.upload(push_headers(server, other), b"x" * 100_000).status == 413


def test_a_body_a_little_too_long_is_413_with_the_stream_ended_normally(server, wire, other):
    response = wire.push(push_headers(server, other), b"x" * 5000)
    assert (response.status, response.data) == (413, [b'{"reason":"PayloadTooLarge"}'])
    wire.ping()
    assert response.reset in (None, NO_ERROR)


def test_an_upper_case_header_name_is_a_stream_error(server, wire, other):
    response = wire.push(push_headers(server, other, ("Apns-Topic", "com.example.app"), apns_topic=None))
    assert (response.headers, response.reset) == (None, PROTOCOL_ERROR)
    record = server.record(other)
    assert (record["outcome"], record["accepted"], record["verdict"]) == ("malformed", False, None)
    assert "Apns-Topic" in record["violation"] and record["findings"] == ["malformed-request"]
    assert (record["served"]["status"], record["served"]["reset"]) == (None, "PROTOCOL_ERROR")


def test_a_push_of_a_disconnected_client_is_recorded(server, wire, other):
    stream = wire.open(push_headers(server, other), end_stream=False)
    wire.send(RstStreamFrame(stream, error_code=CANCEL))
    wire.ping(b"recorded")
    record = server.record(other)
    assert (record["outcome"], record["served"]["status"], record["served"]["reset"]) == ("unanswered", None, None)


@pytest.mark.parametrize("topic", [
    b"com.example\x01app", b"com.example.app\x7f", b"com.example\x00app", b"com.example\tapp", b" com.example.app",
    b"com.example.app ",
], ids=repr)
def test_control_characters_and_spaces_in_the_topic_are_bad_topic(server, wire, other, topic):
    response = wire.push(push_headers(server, other, apns_topic=topic))
    assert (response.status, response.data) == (400, [b'{"reason":"BadTopic"}'])
    assert server.record(other)["served"]["reason"] == "BadTopic"


@pytest.mark.parametrize("path", [b"/3/device/\xff\xfe", b"/3/device/%zz", b"/3/device/%", b"/3/device/../../etc"],
                         ids=repr)
def test_odd_bytes_in_the_path_are_a_bad_device_token(server, wire, path):
    response = wire.push(push_headers(server, "", path_=path))
    assert (response.status, response.data) == (400, [b'{"reason":"BadDeviceToken"}'])


def test_a_query_in_the_path_is_not_part_of_a_device_token(server, wire, other):
    response = wire.push(push_headers(server, other + "?x=1"))
    assert response.status == 400


def test_a_space_after_the_provider_token_gets_a_response(server, wire, other):
    """An HTTP/2 library may reset such a stream itself, which would not show the provider the reason."""
    response = wire.push(push_headers(server, other, authorization=server.bearer + " "))
    assert (response.status, response.data) == (403, [b'{"reason":"InvalidProviderToken"}'])
    assert server.record(other)["served"]["reason"] == "InvalidProviderToken"


NOT_JSON = {
    "invalid UTF-8": b'{"aps":{"alert":"\xff\xfe"}}', "text": b"hello", "half an object": b'{"aps":',
    "nested without end": b"[" * 4000, "nested deep": b"[" * 2000 + b"]" * 2000, "a NUL": b"\x00",
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_a_body_that_is_not_json_is_accepted_as_apns_does_and_noted(server, wire, other, body):
    assert wire.push(push_headers(server, other), body).status == 200
    record = server.record(other)
    assert "would-not-show" in record["findings"]
    assert record["request"]["size"]["bytes"] == len(body)
    exact = server.request("GET", f"/api/v1/pushes/{record['seq']}/payload")
    assert exact.body == body


def test_strict_rules_reject_a_body_that_is_not_json(start, device):
    server = start("--rules", "strict")
    with connect(server) as wire:
        assert wire.push(push_headers(server, device), b"hello").data == [b'{"reason":"PayloadEmpty"}']


def test_odd_json_is_returned_as_json(server, wire, other):
    payload = {"aps": {"alert": "\u2028</script>\u0000😀"}, "n": 12345678901234567890, "f": 1e-7}
    assert wire.push(push_headers(server, other), json.dumps(payload).encode()).status == 200
    assert server.record(other)["request"]["payload"] == payload


def test_repeated_keys_and_big_numbers_do_not_break_the_list(server, wire, other):
    body = b'{"aps":{"badge":1e400},"a":1,"a":2,"big":%s}' % (b"9" * 1000)
    assert wire.push(push_headers(server, other), body).status == 200
    record = server.record(other)
    assert server.request("GET", f"/api/v1/pushes/{record['seq']}/payload").body == body


def test_headers_with_odd_bytes_are_shown_as_valid_json(server, wire, other):
    assert wire.push(push_headers(server, other, (b"x-odd", b"\xff\xc3\x28\"\\"))).status == 200
    assert [name for name, _ in server.record(other)["request"]["headers"]].count("x-odd") == 1


def test_a_wrong_content_length_is_a_stream_error(server, wire, other):
    response = wire.push(push_headers(server, other, ("content-length", "5")), b"0123456789")
    assert (response.headers, response.reset) == (None, PROTOCOL_ERROR)


@pytest.mark.parametrize("trailer", [
    ("x-trailer", "1"), ("apns-priority", "99"), ("apns-topic", "com.example.app"), ("apns-id", str(uuid.uuid4())),
    ("x-pad", "p" * 7900),
], ids=lambda trailer: trailer[0])
def test_trailers_are_ignored(server, wire, other, trailer):
    stream = wire.open(push_headers(server, other), b"{}", end_stream=False)
    wire.send(*wire.header_frames(stream, [trailer], end_stream=True))
    assert wire.response(stream).status == 200
    record = server.record(other)
    names = [name for name, _ in record["request"]["headers"]]
    assert names.count(trailer[0]) == (trailer[0] == "apns-topic"), names
    assert record["apns"]["id"] != trailer[1]


def test_trailers_do_not_replace_missing_headers(server, wire, other):
    stream = wire.open(push_headers(server, other, apns_topic=None), b"{}", end_stream=False)
    wire.send(*wire.header_frames(stream, [("apns-topic", "com.example.app")], end_stream=True))
    response = wire.response(stream)
    assert (response.status, json.loads(response.body)) == (400, {"reason": "MissingTopic"})


@pytest.mark.parametrize("flood", ["reset", "ping", "settings", "empty data"])
def test_a_flood_does_not_affect_other_clients(server, wire, other, flood):
    before = server.resident_bytes()
    with connect(server) as hostile:
        try:
            if flood == "empty data":
                stream = hostile.open(push_headers(server, other), end_stream=False)
            for index in range(20_000):
                if flood == "reset":
                    stream, frames = hostile.request_frames(push_headers(server, other), end_stream=False)
                    hostile.send(*frames, RstStreamFrame(stream, error_code=CANCEL))
                elif flood == "ping":
                    hostile.send(PingFrame(opaque_data=index.to_bytes(8, "big")))
                elif flood == "settings":
                    hostile.send(SettingsFrame(settings={SettingsFrame.INITIAL_WINDOW_SIZE: index}))
                else:
                    hostile.write(b"\x00\x00\x00\x00\x00" + stream.to_bytes(4, "big"))
                if index % 100 == 0:
                    assert wire.push(push_headers(server, other)).status == 200
                hostile.drain()
        except Closed:
            pass  # ending a flood is allowed
    if before is not None:
        assert server.resident_bytes() - before < 64 * MEBIBYTE


def test_a_client_that_never_reads_uses_bounded_memory(server, wire, other):
    """Acknowledgements accumulate if the client does not read: the server must limit them."""
    before = server.resident_bytes()
    pings = PingFrame(opaque_data=b"no reply").serialize() * 1000
    with connect(server) as hostile:
        hostile.sock.settimeout(5)
        try:
            for _ in range(3500):  # 60 MB of PING frames
                hostile.write(pings)
        except (TimeoutError, Closed):
            pass  # the server may stop reading or close
        assert wire.push(push_headers(server, other)).status == 200
        if before is not None:
            assert server.resident_bytes() - before < 32 * MEBIBYTE


def test_a_client_that_reads_late_gets_complete_responses(server, other):
    """24 MB of responses exceed every socket buffer: the rest is sent when the client reads, complete and in order."""
    body = "x" * 60_000
    server.api("POST", "/rules", {
        "name": "long", "do": {"respond": {"status": 503, "body": body}}, "when": {"device_token": other}})
    largest = 2**31 - 1
    with connect(server, settings={SettingsFrame.INITIAL_WINDOW_SIZE: largest}) as late:
        late.send(WindowUpdateFrame(0, window_increment=largest - 65535))
        late.push(push_headers(server, secrets.token_hex(32)))  # 1000 streams from here on
        for _ in range(2):
            requests = [late.request_frames(push_headers(server, other), b"{}") for _ in range(400)]
            late.send(*(frame for _, frames in requests for frame in frames))
            time.sleep(1)
            responses = [late.response(stream) for stream, _ in requests]
            assert {(response.status, response.body) for response in responses} == {(503, body.encode())}
        # Afterwards an ordinary push is answered as before.
        assert late.push(push_headers(server, secrets.token_hex(32))).status == 200
    # The other tests expect a server without rules.
    server.api("DELETE", "/rules/long")


def test_the_same_id_on_every_push_is_a_retry_not_an_error(server, wire, other):
    apns_id = str(uuid.uuid4())
    for _ in range(3):
        assert wire.push(push_headers(server, other, apns_id=apns_id, apns_priority="7")).status == 400
    assert [record["attempt"] for record in server.pushes(device_token=other)] == [1, 2, 3]


def test_goaway_with_a_long_text_from_the_client_is_harmless(server, wire):
    with connect(server) as hostile:
        hostile.send(GoAwayFrame(additional_data=b"x" * 16000))
        hostile.read_to_end()
        assert hostile.closed


@pytest.mark.parametrize("headers", [{}, {"apns_priority": "7"}], ids=["accepted", "rejected"])
def test_a_response_overtaken_by_the_end_of_the_connection_is_not_recorded_as_sent(server, device, other, headers):
    """A push, followed in the same write by a connection error: only GOAWAY is sent, and the record says so."""
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        stream, frames = wire.request_frames(push_headers(server, other, **headers), b'{"aps":{"alert":"hello"}}')
        wire.write(b"".join(each.serialize() for each in frames) + frame(PING, payload=bytes(7)))
        assert wire.goaway().last_stream_id == stream
        wire.read_to_end()
        assert not wire.responses[stream].headers
    assert "goaway" in [event["event"] for event in server.api("GET", "/connections")["items"][-1]["events"]]
    record = server.record(other)
    assert (record["outcome"], record["accepted"]) == ("response_lost", not headers)
    served = record["served"]
    assert (served["status"], served["reason"], served["goaway"]["code"]) == (None, None, "FRAME_SIZE_ERROR")
    assert served["goaway"]["last_stream"] == stream
    assert record["verdict"]["status"] == (400 if headers else 200), "the verdict of APNs' rules is recorded"

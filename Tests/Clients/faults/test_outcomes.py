"""What happened to a push when things break: decision, ending and outcome of each attempt, and the verdicts that follow."""

import pytest
from hyperframe.frame import RstStreamFrame

from support.faults import (  # noqa: F401 (fixtures)
    BODY, faults, line, mock, new_device, pushed, widened,
)
from support.server import wait_until
from support.wire import connect, push_headers

CANCEL, REFUSED_STREAM = 8, 7


@pytest.fixture
def scene(mock, faults):
    """A server without records, faults and findings."""
    mock.api("POST", "/reset", {"inbox": True, "rules": True, "counters": True, "devices": True})
    yield mock
    mock.api("POST", "/reset", {"devices": True})


def end(record):
    return record["decision"], record["ending"], record["outcome"]


def nothing_lost(server):
    """Returns whether no push is lost, and the text of the report."""
    report = server.request("POST", "/api/v1/verify", {"nothing_lost": True, "expect": []}).json
    return report["nothing_lost"]["passed"], report["text"]


def found(server):
    return {item["finding"]: item["count"] for item in server.api("GET", "/findings")["items"]}


@pytest.mark.parametrize(("do", "outcome"), [
    ({"goaway": {"close_after": "0s"}}, "unprocessed"), ({"reset_connection": {}}, "incomplete"), ({"close": {}}, "incomplete"),
])
def test_requests_without_their_data_are_lost(scene, faults, do, outcome):
    """The provider drops what fails: all of its pushes are lost, not only the one for which the rule fired."""
    devices = [new_device() for _ in range(6)]
    with widened(scene) as wire:
        faults.add(do, name="breaks", when={"device_token": devices[0]}, trigger={"times": 1})
        first, frames = wire.request_frames(push_headers(scene, devices[0]), BODY)
        others = [wire.request_frames(push_headers(scene, one), BODY)[1][0] for one in devices[1:]]
        wire.send(frames[0], *others, *frames[1:])
        wire.read_to_end()
    cause = scene.record(devices[0])
    for one in devices[1:]:
        wait_until(lambda: scene.pushes(device_token=one), "it is recorded")
        record = scene.record(one)
        assert record["outcome"] == outcome and record["decision"] == "not_processed"
        assert record["request"]["complete"] is False
        assert (record["fault"]["rule"], record["fault"]["by"]) == ("breaks", cause["seq"])
    assert len(scene.pushes(q="is:faulted rule:breaks")) == 6
    passed, text = nothing_lost(scene)
    assert not passed and "6 lost" in text


def test_complete_requests_behind_a_goaway_name_the_push_that_caused_it(scene, faults):
    devices = [new_device() for _ in range(4)]
    with widened(scene) as wire:
        faults.add({"goaway": {"close_after": "0s"}}, name="leaves", when={"device_token": devices[1]}, trigger={"times": 1})
        requests = [wire.request_frames(push_headers(scene, one), BODY)[1] for one in devices]
        wire.send(*(frame for frames in requests for frame in frames))
        wire.read_to_end()
    records = [scene.record(one) for one in devices]
    assert [end(record)[2] for record in records] == ["accepted", "unprocessed", "unprocessed", "unprocessed"]
    assert [record["fault"] and record["fault"]["by"] for record in records] == [None, None, records[1]["seq"], records[1]["seq"]]
    assert all(record["served"]["goaway"]["last_stream"] < record["connection"]["stream"] for record in records[1:])
    assert not nothing_lost(scene)[0]
    with widened(scene) as wire:
        assert {wire.push(push_headers(scene, one), BODY).status for one in devices[1:]} == {200}
    assert nothing_lost(scene)[0] and found(scene) == {}


@pytest.mark.parametrize("at", ["request", "response"])
def test_a_delayed_push_that_is_refused_is_not_accepted(start, tmp_path, at):
    """A rejection reduces the stream limit, and APNs refuses the other open streams; the client sends them again."""
    config = tmp_path / "config.yaml"
    config.write_text("apns:\n  throttle_on_4xx: on\n")
    server = start("--config", config)
    devices = [new_device() for _ in range(5)]
    server.api("POST", "/rules", {
        "name": "slow", "at": at, "when": {"device_token": {"in": devices}}, "do": {"delay": {"fixed": "1h"}}, "trigger": {"times": 4}})
    with connect(server) as wire:
        warm = wire.push(push_headers(server, new_device()), BODY)
        assert warm.status == 200
        streams = [wire.open(push_headers(server, one), BODY) for one in devices[1:]]
        assert wire.push(push_headers(server, "zz"), BODY).status == 400
        assert {wire.response(stream).reset for stream in streams} == {REFUSED_STREAM}
    for one in devices[1:]:
        record = server.record(one)
        assert end(record) == ("not_processed", "refused", "unprocessed") and not record["accepted"]
    with connect(server) as wire:
        for one in devices[1:]:
            assert wire.push(push_headers(server, one), BODY).status == 200
    assert "duplicate" not in found(server) and nothing_lost(server)[0]


@pytest.mark.parametrize(("at", "decision", "outcome"), [
    ("request", "not_processed", "unanswered"), ("response", "accepted", "response_lost"),
])
@pytest.mark.parametrize("leaves", ["cancels", "disconnects"])
def test_a_client_that_leaves_while_a_push_is_delayed(scene, faults, device, at, decision, outcome, leaves):
    faults.add({"delay": {"fixed": "1h"}}, at=at, when={"device_token": device})
    with widened(scene) as wire:
        stream = pushed(wire, scene, device)
        wait_until(lambda: scene.pushes(device_token=device), "it is recorded")
        assert end(scene.record(device)) == ("pending", "pending", "pending")
        if leaves == "cancels":
            wire.send(RstStreamFrame(stream, error_code=CANCEL))
            wire.ping()
    ending = "cancelled" if leaves == "cancels" else "disconnected"
    wait_until(lambda: end(scene.record(device)) == (decision, ending, outcome), lambda: end(scene.record(device)))
    assert nothing_lost(scene)[0] == (decision == "accepted")


def test_the_push_that_causes_a_goaway_after_its_response_is_accepted(scene, faults, device):
    faults.add({"goaway": {"last_stream": "this"}}, when={"device_token": device})
    with widened(scene) as wire:
        assert wire.push(push_headers(scene, device), BODY).status == 200
    assert end(scene.record(device)) == ("accepted", "response", "accepted")
    expect = [{"match": {"device_token": device}, "retries": {"finally": "accepted"}}]
    assert scene.request("POST", "/api/v1/verify", {"expect": expect}).json["passed"]


def test_accepted_is_the_same_as_the_boolean_at_the_end_of_retries(scene, faults, device):
    faults.add({"lose_answer": {"end_with": "reset_stream"}}, at="response", when={"device_token": device})
    with widened(scene) as wire:
        assert wire.push(push_headers(scene, device), BODY).reset is not None
    assert end(scene.record(device)) == ("accepted", "reset", "response_lost")
    expect = [{"match": {"device_token": device}, "retries": {"finally": "accepted"}}]
    assert scene.request("POST", "/api/v1/verify", {"expect": expect}).json["passed"]
    assert nothing_lost(scene)[0]


def test_a_response_is_one_when_it_is_complete(scene, faults, device):
    """A response in parts: until the last one the attempt has not ended, although the push is accepted or rejected."""
    faults.add({"dribble": {"chunks": 2, "over": "1h"}}, at="response", when={"device_token": device})
    with widened(scene) as wire:
        stream = pushed(wire, scene, device, apns_priority="7")
        wire.until(lambda frame: wire.responses[stream].headers)
        assert end(scene.record(device)) == ("rejected", "pending", "pending")
        wire.send(RstStreamFrame(stream, error_code=CANCEL))
        wire.ping()
    wait_until(lambda: end(scene.record(device)) == ("rejected", "cancelled", "response_lost"), lambda: end(scene.record(device)))


def test_concurrent_pushes_to_an_unregistered_device(scene, device):
    """Five different pushes in one flight: the client could not know the response to the first one."""
    scene.api("PUT", f"/devices/{device}", {"topic": "com.example.app", "state": "unregistered"})
    with widened(scene) as wire:
        streams = [wire.open(push_headers(scene, device), b'{"aps":{"alert":"%d"}}' % number) for number in range(5)]
        assert {wire.response(stream).status for stream in streams} == {410}
    assert found(scene) == {}


def test_a_body_that_is_longer_than_content_length_is_malformed(scene, device):
    body = '{"aps":{"alert":"äü"}}'.encode()
    with widened(scene) as wire:
        response = wire.push(push_headers(scene, device, ("content-length", "22")), body)
        assert response.reset == 1 and response.headers is None
    record = scene.record(device)
    assert end(record) == ("not_processed", "malformed", "malformed")
    assert "content-length" in record["violation"] and "bytes" in record["violation"]
    assert found(scene) == {"malformed-request": 1}
    explanation = scene.api("GET", f"/pushes/{record['seq']}/explain")
    assert "malformed" in explanation["text"] and "retry it" not in explanation["advice"].lower()
    assert len(scene.pushes(q='violation:*content-length*')) == 1
    assert not nothing_lost(scene)[0]


def test_a_device_token_with_spaces_is_a_bad_one(scene):
    with widened(scene) as wire:
        response = wire.push(push_headers(scene, "x", path_="/3/device/<1e2122ba 4ccabb8e>"), BODY)
        assert response.status == 400 and b"BadDeviceToken" in response.body
    record = scene.pushes()[-1]
    assert record["request"]["path"] == "/3/device/<1e2122ba 4ccabb8e>" and record["apns"]["topic"] == "com.example.app"
    assert record["request"]["payload"] and record["outcome"] == "rejected"


@pytest.mark.parametrize(("word", "hint"), [("faulted", "is:faulted"), ("aborted", "response_lost, unanswered or incomplete")])
def test_words_that_exist_no_more_name_the_new_ones(scene, word, hint):
    response = scene.request("GET", f"/api/v1/pushes?outcome={word}")
    assert response.status == 400 and hint in response.json["hint"]
    body = {"expect": [{"match": "topic:*", "retries": {"finally": word}}]}
    response = scene.request("POST", "/api/v1/verify", body)
    assert response.status in (400, 422) and hint in response.body.decode()

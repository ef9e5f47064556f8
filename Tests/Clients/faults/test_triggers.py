"""Which traffic a fault applies to, and how often: conditions, counters, draws, rates, windows, limits. Evaluated
by the server, counted by the clients.
"""

import concurrent.futures
import json
import pathlib
import random
import time
import uuid

import pytest
from hyperframe.frame import PingFrame, RstStreamFrame

from support import tokens
from support.faults import (  # noqa: F401 (fixtures)
    BODY, CODES, Faults, faults, line, mock, new_device, pushed, widened,
)
from support.selection import ALL
from support.server import wait_until
from support.wire import connect, push_headers

DOWN = {"respond": {"status": 503}}


def statuses(wire, server, devices, **changes):
    """Sends one push to each device in turn; returns the statuses."""
    return [wire.push(push_headers(server, one, **changes)).status for one in devices]


def many(count):
    return [new_device() for _ in range(count)]


# Conditions

TOKEN = "ab" * 32
ID = "7f7d8b2e-0b1a-4c7d-9a55-0f5b9d9a4d11"
PAYLOAD = {"aps": {"alert": {"title": "Sale today"}, "badge": 7, "mutable-content": 1}, "a/b": {"m~n": "odd"},
           "list": ["x", {"y": True}], "nothing": None, "empty": "", "number": 1.5}
BOTH = [  # condition, the properties of pushes that match it, the properties of pushes that do not
    ("device_token", TOKEN, {"device": TOKEN}, {"device": "ab" * 31 + "ac"}),
    ("device_token", TOKEN.upper(), {"device": TOKEN}, {"device": "cd" * 32}),
    ("device_token", TOKEN, {"device": TOKEN.upper()}, {"device": "cd" * 32}),
    ("device_token", {"in": ["cd" * 32, TOKEN]}, {"device": TOKEN}, {"device": "ef" * 32}),
    ("device_token", {"prefix": "ABAB"}, {"device": TOKEN}, {"device": "cd" * 32}),
    ("device_token", {"glob": "*abab"}, {"device": TOKEN}, {"device": "cd" * 32}),
    ("topic", "com.example.app", {}, {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}),
    ("topic", {"prefix": "com.example.app."}, {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}, {}),
    ("topic", {"glob": "*.voip"}, {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}, {}),
    ("topic", {"in": ["a.b", "com.example.app"]}, {}, {"apns_topic": "com.example.App"}),
    ("push_type", "background", {"apns_push_type": "background", "apns_priority": "5"}, {}),
    ("push_type", {"in": ["alert", "voip"]}, {}, {"apns_push_type": "background", "apns_priority": "5"}),
    ("push_type", {"present": False}, {"apns_push_type": None}, {}),
    ("priority", 5, {"apns_priority": "5"}, {"apns_priority": "10"}),
    ("priority", 10, {}, {"apns_priority": "5"}),
    ("priority", {"lt": 10}, {"apns_priority": "1"}, {}),
    ("priority", {"gt": 5}, {"apns_priority": "10"}, {"apns_priority": "5"}),
    ("priority", {"in": [1, 5]}, {"apns_priority": "1"}, {}),
    ("collapse_id", "score", {"apns_collapse_id": "score"}, {"apns_collapse_id": "Score"}),
    ("collapse_id", {"present": True}, {"apns_collapse_id": "x"}, {}),
    ("collapse_id", {"present": False}, {}, {"apns_collapse_id": "x"}),
    ("apns_id", ID, {"apns_id": ID}, {"apns_id": "7f7d8b2e-0b1a-4c7d-9a55-0f5b9d9a4d12"}),
    ("apns_id", {"present": False}, {}, {"apns_id": ID}),
    ("payload", {"/aps/alert/title": "Sale today"}, {}, {"body": {"aps": {"alert": {"title": "Sale"}}}}),
    ("payload", {"/aps/alert/title": {"glob": "Sale*"}}, {}, {"body": {"aps": {"alert": {"title": "A Sale"}}}}),
    ("payload", {"/aps/badge": 7}, {}, {"body": {"aps": {"badge": 8}}}),
    ("payload", {"/aps/badge": {"gt": 6, "lt": 8}}, {}, {"body": {"aps": {"badge": 8}}}),
    ("payload", {"/number": {"gt": 1.25}}, {}, {"body": {"aps": {}, "number": 1.25}}),
    ("payload", {"/a~1b/m~0n": "odd"}, {}, {"body": {"aps": {}, "a": {"b": "odd"}}}),
    ("payload", {"/list/1/y": True}, {}, {"body": {"aps": {}, "list": ["x", {"y": False}]}}),
    ("payload", {"/list/0": {"in": ["w", "x"]}}, {}, {"body": {"aps": {}, "list": []}}),
    ("payload", {"/aps/alert": {"present": True}}, {}, {"body": {"aps": {"badge": 1}}}),
    ("payload", {"/aps/alert": {"present": False}}, {"body": {"aps": {"badge": 1}}}, {}),
    ("payload", {"/aps/alert/title": {"prefix": "Sale"}, "/aps/badge": {"lt": 9}}, {},
     {"body": {"aps": {"alert": {"title": "Sale"}, "badge": 9}}}),
    ("header", {"user-agent": {"prefix": "Go-"}}, {"extra": [("user-agent", "Go-http-client/2.0")]},
     {"extra": [("user-agent", "curl/8")]}),
    ("header", {"x-trace": {"present": False}}, {}, {"extra": [("x-trace", "1")]}),
    ("size", {"gt": 1000}, {"body": {"aps": {}, "x": "y" * 1000}}, {}),
    ("size", {"lt": 20}, {"body": {"aps": {}}}, {}),
    ("jwt", {"age": {"gt": "5m"}}, {"issued": -600}, {"issued": -10}),
    ("jwt", {"age": {"lt": "5m"}}, {"issued": -10}, {"issued": -600}),
    ("jwt", {"team_id": "MOCKTEAM01", "key_id": "MOCKKEY001"}, {}, None),
    ("jwt", {"key_id": {"in": ["OTHERKEY01"]}}, None, {}),
    ("client", "127.0.0.1", {}, None),
    ("client", {"glob": "10.*"}, None, {}),
    ("address", "127.0.0.1", {}, None),
    ("address", "127.0.0.0/8", {}, None),
    ("address", "127.*", {}, None),
    ("address", {"in": ["::1", "127.0.0.0/30"]}, {}, None),
    ("address", "10.0.0.0/8", None, {}),
    ("address", "::/0", None, {}),
    ("listener", 0, {}, None),
    ("listener", {"gt": 0}, None, {}),
    ("sni", "localhost", {}, {"sni": "api.push.apple.com"}),
    ("sni", {"glob": "*.push.apple.com"}, {"sni": "api.push.apple.com"}, {}),
    ("certificate", "com.example.app", {"with_certificate": True}, {}),
    ("certificate", {"present": False}, {}, {"with_certificate": True}),
    ("attempt", 1, {}, None),
    ("attempt", {"gt": 1}, None, {}),
    ("not", {"topic": "com.example.app"}, {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}, {}),
    ("not", {"device_token": {"in": [TOKEN, "cd" * 32]}}, {}, {"device": TOKEN}),
    ("not", {"topic": "com.example.app", "priority": 5}, {}, {"apns_priority": "5"}),
    ("not", [{"priority": 1}, {"priority": 5}], {}, {"apns_priority": "5"}),
    ("not", {"not": {"priority": 5}}, {"apns_priority": "5"}, {}),
]


def push_with(server, folder, device=None, body=None, issued=None, sni="localhost", with_certificate=False, extra=(),
              **changes):
    """Sends a push on a new connection; returns its status."""
    if issued is not None:
        changes["authorization"] = "bearer " + server.token(issued_at=tokens.now() + issued)
    certificate = None
    if with_certificate:
        certificate = (folder / "client.pem", folder / "client-key.pem")
        changes["authorization"] = None
    headers = push_headers(server, device or new_device(), *extra, **changes)
    with connect(server, certificate=certificate, name=sni) as wire:
        return wire.push(headers, json.dumps(PAYLOAD if body is None else body).encode()).status


@pytest.mark.parametrize(("subject", "match", "meeting", "other"), BOTH,
                         ids=[f"{row[0]} {json.dumps(row[1])}"[:60] for row in BOTH])
def test_condition(mock, faults, certs, subject, match, meeting, other):
    faults.add(DOWN, when={subject: match})
    if meeting is not None:
        assert push_with(mock, certs, **meeting) == 503
    if other is not None:
        assert push_with(mock, certs, **other) == 200


def test_all_parts_of_a_condition_must_match(mock, faults, device):
    faults.add(DOWN, when={"device_token": device, "priority": 5, "payload": {"/aps/alert": "hello"}})
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device, apns_priority="5")).status == 503
        assert wire.push(push_headers(mock, device)).status == 200
        assert wire.push(push_headers(mock, new_device(), apns_priority="5")).status == 200
        assert wire.push(push_headers(mock, device, apns_priority="5"), b'{"aps":{}}').status == 200


def test_a_condition_in_the_query_language_of_the_inbox(mock, faults, device):
    query = 'topic:com.example.* !type:background attempt:1 payload./aps/alert:"Order *" larger:20'
    faults.add(DOWN, when={"q": query})
    body = json.dumps({"aps": {"alert": "Order shipped"}}).encode()
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device), body).status == 503
        assert wire.push(push_headers(mock, device), body).status == 200, "attempt 2"
        assert wire.push(push_headers(mock, new_device()), BODY).status == 200, "another alert"
        background = push_headers(mock, new_device(), apns_push_type="background", apns_priority="5")
        assert wire.push(background, body).status == 200
    found = mock.pushes(q=query)
    assert [one["served"]["status"] for one in found] == [503]



@pytest.mark.parametrize("body", [b"no JSON", b"{", b"[1,2", b'{"aps":{"alert":"hel', b"\xff\xfe\x00", b"null", b"7"])
def test_a_payload_that_is_not_json_matches_no_condition(mock, faults, device, body):
    faults.add(DOWN, when={"payload": {"/aps/alert": {"present": True}}})
    with line(mock) as wire:
        assert wire.push(push_headers(mock, device), body).status == 200


def test_attempts_of_a_push(mock, faults, device):
    faults.add({"respond": {"status": 429}}, when={"attempt": 1})
    faults.add({"respond": {"status": 500}}, when={"attempt": {"gt": 1, "lt": 4}})
    with line(mock) as wire:
        assert statuses(wire, mock, [device] * 4) == [429, 500, 500, 200]
    assert [record["attempt"] for record in mock.pushes(device_token=device)] == [1, 2, 3, 4]


def test_explain_reports_why_a_rule_did_not_fire(mock, faults):
    rule = faults.add(DOWN, when={"topic": "com.example.App", "priority": 5}, name="topic-down")
    with line(mock) as wire:
        statuses(wire, mock, many(3))
    explanation = faults.explain(rule)
    assert (explanation["looked_at"], explanation["fired"]) == (3, 0)
    assert 'rule "topic-down": 3 pushes evaluated, 0 fired' in explanation["text"]
    assert "differs by case" in explanation["text"]


# Counters

COUNTS = [
    ({"first": 2}, [503, 503, 200, 200, 200, 200]), ({"after": 2}, [200, 200, 503, 503, 503, 503]),
    ({"every": 3}, [200, 200, 503, 200, 200, 503]), ({"times": 2}, [503, 503, 200, 200, 200, 200]),
    ({"after": 1, "first": 2}, [200, 503, 503, 200, 200, 200]),
    ({"after": 1, "every": 2}, [200, 200, 503, 200, 503, 200]),
    ({"every": 2, "times": 2}, [200, 503, 200, 503, 200, 200]), ({"after": 0}, [503] * 6),
]


@pytest.mark.parametrize(("trigger", "expected"), COUNTS, ids=[json.dumps(row[0]) for row in COUNTS])
def test_count(mock, faults, trigger, expected):
    faults.add(DOWN, trigger=trigger)
    with line(mock) as wire:
        assert statuses(wire, mock, many(6)) == expected


@pytest.mark.parametrize(("trigger", "expected"), COUNTS, ids=[json.dumps(row[0]) for row in COUNTS])
def test_count_for_each_device(mock, faults, trigger, expected):
    """Two devices alternate, each with its own count. The payloads differ, so that no push is a retry of another."""
    faults.add(DOWN, trigger={**trigger, "times_per": "device_token"})
    devices = many(2)
    with line(mock) as wire:
        for index, status in enumerate(expected):
            for one in devices:
                body = b'{"aps":{"badge":%d}}' % index
                assert wire.push(push_headers(mock, one), body).status == status, (index, status)


def test_count_only_matching_pushes(mock, faults, device):
    faults.add(DOWN, trigger={"every": 2}, when={"device_token": device})
    with line(mock) as wire:
        assert statuses(wire, mock, [device, *many(3), device, *many(2), device, device]) == [
            200, 200, 200, 200, 503, 200, 200, 200, 503]


def test_the_first_two_attempts_of_each_push_fail(mock, faults):
    faults.add(DOWN, trigger={"first": 2, "times_per": "push"})
    one, other = many(2)
    with line(mock) as wire:
        assert statuses(wire, mock, [one, other, one, one, other, other]) == [503, 503, 503, 200, 503, 200]
        assert statuses(wire, mock, [one] * 3) == [503, 503, 200], "after a success it is a new push"


def test_the_same_push_by_its_apns_id(mock, faults, device):
    """`push_key: apns_id`: a different payload with the same id is the same push."""
    faults.use([{"name": "twice", "trigger": {"first": 2, "times_per": "push"}, "do": DOWN}], push_key="apns_id")
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    with line(mock) as wire:
        seen = [wire.push(push_headers(mock, device, apns_id=one), b'{"aps":{"badge":%d}}' % index).status
                for index, one in enumerate([first, second, first.upper(), first, second, second])]
    assert seen == [503, 503, 503, 200, 503, 200]


def test_count_for_each_topic(mock, faults):
    faults.add(DOWN, trigger={"first": 1, "times_per": "topic"})
    voip = {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}
    with line(mock) as wire:
        assert [wire.push(push_headers(mock, new_device(), **changes)).status for changes in ({}, voip, {}, voip)] == [
            503, 503, 200, 200]


def test_count_for_each_connection(mock, faults):
    faults.add(DOWN, trigger={"every": 3, "times_per": "connection"})
    with line(mock) as one, line(mock) as other:
        assert statuses(one, mock, many(3)) == [200, 200, 503]
        assert statuses(other, mock, many(2)) == [200, 200]
        assert statuses(one, mock, many(3)) == [200, 200, 503]
        assert statuses(other, mock, many(1)) == [503]


def test_after_so_many_streams_of_a_connection(mock, faults):
    faults.add(DOWN, at="request", trigger={"after_streams": 3})
    with line(mock) as one, line(mock) as other:
        seen = statuses(one, mock, many(6))
        assert seen[:2] == [200, 200] and seen[-2:] == [503, 503] and sorted(seen) == seen
        assert statuses(other, mock, many(2)) == [200, 200]


def test_counters_are_reset_and_rules_stay(mock, faults):
    rule = faults.add(DOWN, trigger={"first": 1})
    with line(mock) as wire:
        assert statuses(wire, mock, many(2)) == [503, 200]
        mock.api("POST", "/reset", {"counters": True})
        assert statuses(wire, mock, many(2)) == [503, 200]
    assert faults.fired(rule) == 1


def test_a_reset_of_the_counters_restarts_attempts(mock, faults, device):
    faults.add(DOWN, trigger={"first": 2, "times_per": "push"})
    with line(mock) as wire:
        assert statuses(wire, mock, [device]) == [503]
        mock.api("POST", "/reset", {"counters": True})
        assert statuses(wire, mock, [device] * 3) == [503, 503, 200]


def test_a_rule_sent_again_unchanged_continues_counting(mock, faults):
    with line(mock) as wire:
        for expected in ([503, 503, 200], [200, 200, 200]):
            faults.add(DOWN, name="same", trigger={"first": 2})
            assert statuses(wire, mock, many(3)) == expected
        faults.add(DOWN, name="same", trigger={"first": 1})
        assert statuses(wire, mock, many(2)) == [503, 200], "a changed one begins anew"


# Draws

def draws(server, devices, bodies=(BODY,)):
    """Returns the status of each push by (device, body)."""
    found = {}
    with line(server) as wire:
        for one in devices:
            for body in bodies:
                status = wire.push(push_headers(server, one), body).status
                found[one, body] = status
    return found


@pytest.mark.parametrize(("p", "expected"), [(0, {200}), (1, {503})])
def test_probability_0_and_1_are_exact_and_need_no_draw(mock, faults, p, expected):
    faults.add(DOWN, trigger={"probability": p})
    devices = many(50)
    assert set(draws(mock, devices).values()) == expected
    for one in devices[:5]:
        fault = mock.record(one)["fault"]
        assert fault is None if p == 0 else (fault["draw"], fault["ordinal"]) == (None, 0)


def test_the_record_shows_the_draw(mock, faults):
    faults.add(DOWN, trigger={"probability": 0.5})
    devices = many(60)
    for (one, _), status in draws(mock, devices).items():
        fault = mock.record(one)["fault"]
        if status == 503:
            assert 0 <= fault["draw"] < fault["p"] == 0.5 and fault["ordinal"] == 1, fault
        else:
            assert fault is None


def test_a_draw_for_each_attempt_of_a_push(mock, faults):
    """A push that failed may succeed at its next attempt; the record contains the attempt that the draw was for."""
    faults.add(DOWN, trigger={"probability": 0.5})
    devices = many(40)
    with line(mock) as wire:
        rounds = [statuses(wire, mock, devices) for _ in range(3)]
    fates = list(zip(*rounds))
    assert (503, 503) in {fate[:2] for fate in fates} and (503, 200) in {fate[:2] for fate in fates}
    failed = [record for one in devices for record in mock.pushes(device_token=one) if record["fault"]]
    assert {record["fault"]["ordinal"] for record in failed} >= {1, 2}
    for record in failed:
        assert record["fault"]["ordinal"] == record["attempt"]


def same_for(key, server, wire, values):
    """Sends several pushes with each value; returns the set of statuses for each."""
    seen = {}
    for index in range(4):
        for value in values:
            device, topic = (value, "com.example.app") if key == "device_token" else (new_device(), value)
            body = b'{"aps":{"badge":%d}}' % index
            response = wire.push(push_headers(server, device, apns_topic=topic), body)
            seen.setdefault(value, set()).add(response.status)
    return seen


@pytest.mark.parametrize("key", ["device_token", "topic"])
def test_a_sticky_draw(mock, faults, key):
    """All pushes to one device, or topic, have the same result; the results of different ones differ."""
    faults.add(DOWN, trigger={"probability": 0.5, "draw_per": key})
    values = many(30) if key == "device_token" else [f"com.example.app{index}" for index in range(30)]
    with line(mock) as wire:
        seen = same_for(key, mock, wire, values)
    assert all(len(fates) == 1 for fates in seen.values()), seen
    assert {status for fates in seen.values() for status in fates} == {200, 503}


def test_a_draw_for_each_push_is_the_same_for_its_attempts(mock, faults):
    faults.add(DOWN, trigger={"probability": 0.5, "draw_per": "push"})
    devices = many(30)
    with line(mock) as wire:
        rounds = [statuses(wire, mock, devices) for _ in range(3)]
    assert rounds[0] == rounds[1] == rounds[2]
    assert set(rounds[0]) == {200, 503}


def test_a_draw_for_each_connection(mock, faults):
    faults.add(DOWN, trigger={"probability": 0.5, "draw_per": "connection"})
    fates = set()
    for _ in range(40):
        with line(mock) as wire:
            seen = set(statuses(wire, mock, many(3)))
        assert len(seen) == 1
        fates |= seen
    assert fates == {200, 503}


def test_a_probability_that_grows(mock, faults):
    faults.add(DOWN, trigger={"probability": {"ramp": {"from": 0, "to": 1, "over": "1s"}}})
    time.sleep(1.1)
    assert set(draws(mock, many(20)).values()) == {503}


def test_a_probability_that_shrinks(mock, faults):
    faults.add(DOWN, trigger={"probability": {"ramp": {"from": 1, "to": 0, "over": "1s"}}})
    time.sleep(1.1)
    assert set(draws(mock, many(20)).values()) == {200}


RULES = [
    {"name": "menu", "trigger": {"probability": 0.4}, "do": {"choose": [
        {"weight": 40, "respond": {"status": 503}}, {"weight": 15, "respond": {"status": 500}},
        {"weight": 15, "respond": {"status": 429}}, {"weight": 10, "reset_stream": {}},
        {"weight": 10, "respond": {"status": 410}}]}},
    {"name": "sticky", "trigger": {"probability": 0.1, "draw_per": "device_token"}, "do": {"respond": {"status": 413}}},
    {"name": "late", "at": "response", "trigger": {"probability": 0.2}, "do": {"delay": {"uniform": {
        "min": "1ms", "max": "20ms"}}}},
]


def fates(server, pushes, wires):
    """Sends all pushes over all connections at once; returns the result of each push (device, payload): its status
    or reset code.
    """
    def send(wire, share):
        found = {}
        with wire:
            streams = {wire.open(push_headers(server, device), body): (device, body) for device, body in share}
            for stream, push in streams.items():
                response = wire.response(stream)
                found[push] = response.status if response.reset is None else f"reset {response.reset}"
        return found

    together = {}
    with concurrent.futures.ThreadPoolExecutor(len(wires)) as pool:
        for found in pool.map(send, wires, [pushes[index::len(wires)] for index in range(len(wires))]):
            together |= found
    return together


def test_the_same_seed_decides_alike_whatever_the_order_and_after_a_restart(start):
    """In sequence on one connection; shuffled over eight concurrent ones; and on a restarted server."""
    generator = random.Random(1)
    pushes = [(f"{generator.getrandbits(256):064x}", b'{"aps":{"badge":%d}}' % index) for index in range(800)]
    shuffled = pushes[:]
    generator.shuffle(shuffled)

    def run(order, connections, *flags, seed=None):
        server = start(*flags)
        wires = [widened(server) for _ in range(connections)]
        chosen = Faults(server).use(RULES, name="menu", seed=seed)
        return fates(server, order, wires), chosen["seed"]

    first, seed = run(pushes, 1, "--seed", "11")
    assert seed == 11
    assert set(first.values()) == {200, 410, 413, 429, 500, 503, "reset 2"}
    assert run(shuffled, 8, "--seed", "11")[0] == first
    assert run(shuffled, 8, seed=11)[0] == first, "a seed that was sent is as good as a flag"
    other, _ = run(pushes, 1, "--seed", "12")
    assert other != first
    differing = sum(first[push] != other[push] for push in pushes)
    assert differing > 100


def test_attempts_are_part_of_the_decision_and_repeatable(start):
    """Sends each push three times: each attempt has its own draw, which is the same on another server."""
    devices = [f"{index:064x}" for index in range(100)]

    def run():
        server = start("--seed", "5")
        Faults(server).use([{"name": "half", "trigger": {"probability": 0.5}, "do": DOWN}], name="half")
        with line(server) as wire:
            return [statuses(wire, server, devices) for _ in range(3)]

    first = run()
    assert first == run()
    assert first[0] != first[1] != first[2]


def test_decisions_of_a_rule_do_not_depend_on_the_rules_beside_it(mock, faults):
    devices = many(100)

    def run(rules):
        mock.api("POST", "/reset", {"inbox": True})  # also clears the retry detection
        faults.use(rules, name="beside", seed=3)
        with line(mock) as wire:
            return statuses(wire, mock, devices)

    half = {"name": "half", "trigger": {"probability": 0.5}, "do": DOWN}
    beside = {"name": "never", "trigger": {"probability": 0.000001}, "do": {"respond": {"status": 500}}}
    assert run([half]) == run([beside, half])


# Rates

def test_pushes_over_a_rate(mock, faults):
    faults.add({"respond": {"status": 429}}, trigger={"over_limit": {"limit": 5, "per": "1h"}})
    with line(mock) as wire:
        assert statuses(wire, mock, many(8)) == [200] * 5 + [429] * 3


def test_a_burst_is_allowed(mock, faults):
    faults.add({"respond": {"status": 429}}, trigger={"over_limit": {"limit": 1, "per": "1h", "burst": 4}})
    with line(mock) as wire:
        assert statuses(wire, mock, many(6)) == [200] * 4 + [429] * 2


def test_a_rate_for_each_device(mock, faults):
    faults.add({"respond": {"status": 429}}, trigger={"over_limit": {"limit": 2, "per": "1h", "key": "device_token"}})
    one, other = many(2)
    with line(mock) as wire:
        assert statuses(wire, mock, [one, one, one, other, one, other, other]) == [200, 200, 429, 200, 429, 200, 429]


def test_a_rate_for_each_client_address(mock, faults):
    faults.add({"respond": {"status": 429}}, trigger={"over_limit": {"limit": 2, "per": "1h", "key": "client"}})
    with line(mock) as one, line(mock) as two, line(mock, source="127.0.0.2") as other:
        seen = [statuses(wire, mock, many(1))[0] for wire in (one, two, one, other, other, other)]
    assert seen == [200, 200, 429, 200, 200, 429]


def test_new_connections_of_each_client_address_over_a_rate(mock, faults):
    faults.add({"refuse": {}}, at="accept", trigger={"over_limit": {"limit": 1, "per": "1h", "key": "client"}})
    with line(mock) as first, line(mock, source="127.0.0.2") as other:
        assert statuses(first, mock, many(1)) == statuses(other, mock, many(1)) == [200]
        with pytest.raises(OSError):
            line(mock).settings()


def test_a_rate_lets_pushes_through_again_in_time(mock, faults):
    faults.add({"respond": {"status": 429}}, trigger={"over_limit": {"limit": 1, "per": "1s"}})
    with line(mock) as wire:
        began = time.monotonic()
        seen = statuses(wire, mock, many(1))
        while len([status for status in seen if status == 200]) < 3:
            time.sleep(0.02)
            seen += statuses(wire, mock, many(1))
        assert time.monotonic() - began >= 1.9, "two more needed a second each"
    assert 429 in seen


# Time

def test_a_window_opens_after_its_time(mock, faults):
    began = time.monotonic()
    faults.add(DOWN, trigger={"window": {"after": "800ms"}})
    with line(mock) as wire:
        while statuses(wire, mock, many(1)) == [200]:
            time.sleep(0.02)
        assert time.monotonic() - began >= 0.8


def test_a_window_closes_after_its_time(mock, faults):
    began = time.monotonic()
    faults.add(DOWN, trigger={"window": {"for": "1s"}})
    with line(mock) as wire:
        while statuses(wire, mock, many(1)) == [503]:
            time.sleep(0.02)
        assert time.monotonic() - began >= 0.9


def test_a_window_that_repeats(mock, faults):
    faults.add(DOWN, trigger={"window": {"every": "600ms", "for": "300ms"}})
    seen = []
    with line(mock) as wire:
        while len(seen) < 6:
            status, = statuses(wire, mock, many(1))
            if not seen or seen[-1] != status:
                seen.append(status)
            time.sleep(0.02)
    assert set(seen) == {200, 503}


def test_a_rule_with_a_time_to_live(mock, faults):
    began = time.monotonic()
    rule = faults.add(DOWN, ttl="1s")
    with line(mock) as wire:
        while statuses(wire, mock, many(1)) == [503]:
            time.sleep(0.02)
        assert time.monotonic() - began >= 0.9
    wait_until(lambda: mock.request("GET", f"/api/v1/rules/{rule}").status == 404, "gone")


def test_a_profile_with_a_time_to_live(mock, faults):
    began = time.monotonic()
    faults.use([{"name": "down", "do": DOWN}], stop={"after": "1s"})
    with line(mock) as wire:
        while statuses(wire, mock, many(1)) == [503]:
            time.sleep(0.02)
        assert time.monotonic() - began >= 0.9
    wait_until(lambda: mock.api("GET", "/profile")["name"] == "healthy", "healthy")


def test_faults_are_paused_and_resumed(mock, faults):
    faults.add(DOWN)
    faults.add({"refuse": {}}, at="accept", when={"listener": {"gt": 0}})
    with line(mock) as wire:
        assert statuses(wire, mock, many(1)) == [503]
        assert mock.api("POST", "/faults/halt") == {"halted": True}
        assert statuses(wire, mock, many(3)) == [200, 200, 200]
        assert mock.api("GET", "/status")["halted"] is True
        assert mock.api("POST", "/faults/resume") == {"halted": False}
        assert statuses(wire, mock, many(1)) == [503]


def test_rules_apply_to_the_next_stream_of_open_connections(mock, faults):
    with line(mock) as wire:
        assert statuses(wire, mock, many(1)) == [200]
        rule = faults.add(DOWN)
        assert statuses(wire, mock, many(1)) == [503]
        faults.remove(rule)
        assert statuses(wire, mock, many(1)) == [200]
        faults.use([{"name": "down", "do": DOWN}])
        assert statuses(wire, mock, many(1)) == [503]
        mock.api("DELETE", "/profile")
        assert statuses(wire, mock, many(1)) == [200]


def test_a_connection_is_killed_silently_once_it_is_idle(mock, faults):
    faults.add({"silence": {"for": "3s"}}, at="connection", when={"idle": {"gt": "1s"}})
    with line(mock) as wire:
        for _ in range(4):
            assert statuses(wire, mock, many(1)) == [200]
            time.sleep(0.4)
        time.sleep(1.2)
        frames = len(wire.frames)
        pushed(wire, mock, new_device())
        wire.send(PingFrame(opaque_data=b"silence?"))
        began = time.monotonic()
        wire.read_to_end()
        assert time.monotonic() - began >= 1, "it is silent before it ends"
        assert len(wire.frames) == frames, "neither a response nor a PING acknowledgement nor GOAWAY"


def test_a_connection_ends_at_its_maximum_age(mock, faults):
    faults.add({"goaway": {}}, at="connection", when={"age": {"gt": "1s"}})
    began = time.monotonic()
    with line(mock) as wire:
        assert statuses(wire, mock, many(1)) == [200]
        assert wire.goaway().error_code == 0
        assert time.monotonic() - began >= 0.9


# Limits

def held(server, devices):
    return [one for one in devices if server.record(one)["outcome"] == "pending"]


def test_delayed_pushes_are_limited(mock, faults):
    devices = many(10)
    with widened(mock) as wire:
        faults.add({"hang": {}}, trigger={"max_active": 3})
        streams = [pushed(wire, mock, one) for one in devices]
        for stream in streams[3:]:
            assert wire.response(stream).status == 200
        assert held(mock, devices) == devices[:3]
        wire.send(RstStreamFrame(streams[0], error_code=CODES.index("CANCEL")))
        wire.ping()
        wait_until(lambda: mock.record(devices[0])["outcome"] == "unanswered", "unanswered")
        late = many(2)
        first, second = [pushed(wire, mock, one) for one in late]
        assert wire.response(second).status == 200
        assert held(mock, late) == late[:1], "one place was free again"


def test_a_closed_connection_frees_its_slots(mock, faults):
    wires = [widened(mock) for _ in range(3)]
    faults.add({"hang": {}}, trigger={"max_active": 2})
    for wire in wires:
        devices = many(4)
        with wire:
            streams = [pushed(wire, mock, one) for one in devices]
            assert [wire.response(stream).status for stream in streams[2:]] == [200, 200]
            assert held(mock, devices) == devices[:2]
        wait_until(lambda: not held(mock, devices), "given back")


@pytest.mark.parametrize("change", ["another rule", "the rule changed", "counters reset", "halt and resume"])
def test_active_pushes_are_counted_correctly_when_rules_change(mock, faults, change):
    """Two pushes are held, the rules change, and both are released: then exactly two can be held again."""
    do, trigger = {"hang": {}}, {"max_active": 2}
    devices, again = many(2), many(5)
    wire = widened(mock)
    with wire:
        faults.add(do, name="few", trigger=trigger)
        streams = [pushed(wire, mock, one) for one in devices]
        wire.ping()
        assert held(mock, devices) == devices
        if change == "another rule":
            faults.add(DOWN, when={"priority": 1})
        elif change == "the rule changed":
            faults.add(do, name="few", trigger={"max_active": 2, "times": 1000})
        elif change == "counters reset":
            mock.api("POST", "/reset", {"counters": True})
        else:
            mock.api("POST", "/faults/halt")
            mock.api("POST", "/faults/resume")
        for stream in streams:
            wire.send(RstStreamFrame(stream, error_code=CODES.index("CANCEL")))
        wire.ping()
        wait_until(lambda: not held(mock, devices), "given back")
        later = [pushed(wire, mock, one) for one in again]
        assert [wire.response(stream).status for stream in later[2:]] == [200] * 3
        assert held(mock, again) == again[:2]


def test_a_profile_limits_all_its_rules_together(mock, faults):
    faults.use([
        {"name": "stuck", "when": {"priority": 5}, "do": {"hang": {}}},
        {"name": "slow", "at": "response", "do": {"delay": {"fixed": "60s"}}},
    ], limits={"max_active": 4}, name="bounded")
    mock.api("DELETE", "/profile")
    devices = many(8)
    with widened(mock) as wire:
        mock.api("PUT", "/profile", {"name": "bounded"})
        streams = [pushed(wire, mock, one, apns_priority="5" if index % 2 else "10")
                   for index, one in enumerate(devices)]
        for stream in streams[4:]:
            assert wire.response(stream).status == 200
        assert held(mock, devices) == devices[:4]


def threads(server):
    return len(list(pathlib.Path(f"/proc/{server.process.pid}/task").iterdir()))


# On ten connections each.
DELAYED = 10_000 if ALL else 2_000


@pytest.mark.timeout(240)
def test_thousands_of_delayed_pushes_use_no_thread_and_little_memory(start):
    """All pushes are held concurrently on ten connections, and all are answered afterwards."""
    server = start()
    wires = [widened(server) for _ in range(10)]
    fresh_threads = threads(server) if server.resident_bytes() else 0
    rule = Faults(server).add({"delay": {"fixed": "30s" if ALL else "15s"}}, name="held")
    try:
        streams = [[pushed(wire, server, new_device()) for _ in range(DELAYED // 10)] for wire in wires]
        wait_until(lambda: Faults(server).fired(rule) == DELAYED, "all held")
        assert server.api("GET", "/pushes", outcome="pending", limit=1)["matched"] == DELAYED
        if server.resident_bytes():
            assert server.resident_bytes() < (400 if ALL else 150) * 2**20
            # Dispatch starts some for the store, and ends them when they have had nothing to do for five seconds.
            wait_until(lambda: threads(server) <= fresh_threads + 1, lambda: f"{threads(server)} threads", 8)
        serves_meanwhile(server, rule)
        for wire, opened in zip(wires, streams):
            wire.sock.settimeout(120)
            assert {wire.response(stream).status for stream in opened} == {200}
    finally:
        for wire in wires:
            wire.close()
    assert server.api("GET", "/pushes", outcome="pending", limit=1)["matched"] == 0
    assert server.api("GET", "/pushes", rule=rule, accepted="true", limit=1)["matched"] == DELAYED
    if server.resident_bytes():
        assert server.resident_bytes() < (400 if ALL else 150) * 2**20


def serves_meanwhile(server, rule):
    """Asserts that a push the rule does not apply to is answered while the rule holds others."""
    Faults(server).add({"pass": {}}, name="shield", when={"topic": "com.example.app.voip"})
    with line(server) as wire:
        headers = push_headers(server, new_device(), apns_topic="com.example.app.voip", apns_push_type="voip")
        assert wire.push(headers).status == 200
    assert Faults(server).fired(rule) == DELAYED


@pytest.mark.timeout(120)
def test_thousands_of_pushes_that_hang_end_with_their_connections(start):
    server = start()
    wires = [widened(server) for _ in range(10)]
    rule = Faults(server).add({"hang": {"end_with": "nothing"}}, name="stuck")
    for wire in wires:
        for _ in range(DELAYED // 10):
            pushed(wire, server, new_device())
    wait_until(lambda: Faults(server).fired(rule) == DELAYED, "all held")
    for wire in wires:
        wire.close()
    wait_until(lambda: server.api("GET", "/pushes", outcome="unanswered", limit=1)["matched"] == DELAYED, "all ended")
    assert server.api("GET", "/pushes", outcome="pending", limit=1)["matched"] == 0
    server.api("POST", "/reset", {"rules": True})
    with line(server) as wire:
        assert wire.push(push_headers(server, new_device())).status == 200

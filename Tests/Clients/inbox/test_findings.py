"""Findings: for each kind, a provider that causes it, and one that does the same task without causing any."""

import json
import time
import uuid

import pytest
from hyperframe.frame import GoAwayFrame

from support import careful, tokens
from support.campaigns import campaign, under  # noqa: F401
from support.careful import CarefulProvider
from support.drivers import Push
from support.faults import faults, line, mock, new_device  # noqa: F401
from support.naive import Hasty, Naive, Spender
from support.server import wait_until
from support.wire import connect, push_headers

NOON = "2030-01-01T12:00:00.000Z"
NOON_SECONDS = 1893499200
PAUSE = 0.15  # seconds; longer than the interval that counts as an immediate retry
CROSSING = 0.6  # seconds after which a stream can no longer have crossed a GOAWAY


@pytest.fixture
def scene(mock, faults):
    """A server without records, faults and findings. After the test its clock runs again."""
    mock.api("POST", "/reset", {"inbox": True, "rules": True, "counters": True, "clock": True, "devices": True})
    yield mock
    mock.api("POST", "/reset", {"clock": True, "devices": True})


def found(server, **query):
    """Returns the findings by kind: {kind: count}."""
    return {item["finding"]: item["count"] for item in server.api("GET", "/findings", **query)["items"]}


def await_findings(server, expected):
    """Waits for findings that are only known after a connection has ended."""
    wait_until(lambda: found(server) == expected, lambda: f"{expected}, but {found(server)}")


def again(server, device, times, pauses, **changes):
    """Sends the same push several times on one connection, with pauses between; returns the statuses."""
    statuses = []
    with connect(server) as wire:
        for pause in [0, *pauses][:times]:
            time.sleep(pause)
            statuses.append(wire.push(push_headers(server, device, **changes)).status)
    return statuses


# Retries

def test_retried_permanent(scene):
    device = new_device()
    assert again(scene, device, 2, [PAUSE], apns_priority="7") == [400, 400]
    assert found(scene) == {"retried-permanent": 1}


def test_a_corrected_push_causes_no_finding(scene):
    device = new_device()
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, device, apns_priority="7")).status == 400
        assert wire.push(push_headers(scene, device, apns_priority="5")).status == 200
    assert found(scene) == {}


def test_an_injected_response_counts_as_a_response_of_apns(scene, faults):
    faults.add({"respond": {"status": 400, "reason": "BadTopic"}}, trigger={"times": 1})
    assert again(scene, new_device(), 2, [PAUSE]) == [400, 200]
    assert found(scene) == {"retried-permanent": 1}


def unregistered(server, device, state="unregistered"):
    server.api("PUT", f"/devices/{device}", {"topic": "com.example.app", "state": state})


def test_retried_410(scene):
    device = new_device()
    unregistered(scene, device)
    with connect(scene) as wire:
        # The second one may have been sent before the client read the first response; the third one is the first again.
        for text in ["first", "second", "first"]:
            assert wire.push(push_headers(scene, device), b'{"aps":{"alert":"%s"}}' % text.encode()).status == 410
    assert found(scene) == {"retried-410": 1}


def test_a_device_that_registered_again_causes_no_finding(scene):
    device = new_device()
    unregistered(scene, device)
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, device)).status == 410
        unregistered(scene, device, "online")
        assert wire.push(push_headers(scene, device), b'{"aps":{"alert":"welcome back"}}').status == 200
    assert found(scene) == {}


def test_hot_retry(scene, faults):
    faults.add({"respond": {"status": 503, "reason": "ServiceUnavailable"}}, trigger={"times": 9})
    assert again(scene, new_device(), 10, [0] * 9)[-1] == 200
    kinds = found(scene)
    # On a loaded machine pushes sent without a pause may be far enough apart to count as paused.
    assert kinds["hot-retry"] > 0 and set(kinds) <= {"hot-retry", "no-backoff"}


def test_a_retry_before_its_retry_after(scene, faults):
    faults.add(
        {"respond": {"status": 429, "reason": "TooManyRequests", "headers": {"retry-after": "30"}}},
        trigger={"times": 1})
    device = new_device()
    assert again(scene, device, 2, [PAUSE]) == [429, 200]
    assert found(scene) == {"hot-retry": 1}
    (item,) = scene.api("GET", "/findings")["items"]
    assert "retry-after requires 30s" in item["records"][0]["explanation"]


def test_no_backoff(scene, faults):
    faults.add({"respond": {"status": 503, "reason": "ServiceUnavailable"}}, trigger={"times": 5})
    assert again(scene, new_device(), 6, [PAUSE] * 5)[-1] == 200
    kinds = found(scene)
    assert kinds["no-backoff"] > 0 and set(kinds) == {"no-backoff"}


def test_growing_pauses_cause_no_finding(scene, faults):
    faults.add({"respond": {"status": 503, "reason": "ServiceUnavailable"}}, trigger={"times": 3})
    assert again(scene, new_device(), 4, [PAUSE, 2.5 * PAUSE, 5 * PAUSE])[-1] == 200
    assert found(scene) == {}


def lost(server, faults, first_id, second_id):
    """Sends a push that APNs accepts but whose response is lost, and sends it again."""
    faults.add({"lose_answer": {"end_with": "reset_stream"}}, at="response", trigger={"times": 1})
    device = new_device()
    with connect(server) as wire:
        for apns_id in [first_id, second_id]:
            wire.push(push_headers(server, device, apns_id=apns_id))
            time.sleep(PAUSE)
    assert [record["accepted"] for record in server.pushes(device_token=device)] == [True, True]


def test_duplicate(scene, faults):
    lost(scene, faults, None, None)
    assert found(scene) == {"duplicate": 1}


def test_the_same_id_is_the_same_notification(scene, faults):
    apns_id = str(uuid.uuid4())
    lost(scene, faults, apns_id, apns_id)
    assert found(scene) == {}


# Provider tokens

def pushes_with(server, wire, *ages):
    """Sends one push, each to a different device, for each provider token, given by its age in seconds at noon;
    returns the statuses.
    """
    bearers = {age: "bearer " + server.token(issued_at=NOON_SECONDS - age) for age in dict.fromkeys(ages)}
    return [wire.push(push_headers(server, new_device(), authorization=bearers[age])).status for age in ages]


def test_jwt_churn(scene):
    scene.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(scene) as wire:
        assert pushes_with(scene, wire, 2, 1, 0) == [200, 200, 429]
    assert found(scene) == {"jwt-churn": 2}


def test_a_token_renewed_every_twenty_minutes_causes_no_finding(scene):
    scene.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(scene) as wire:
        for age in [0, -1200, -2400]:
            assert pushes_with(scene, wire, age) == [200]
            scene.api("POST", "/clock/advance", {"by": "20m"})
    assert found(scene) == {}


def test_jwt_stale(scene):
    scene.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    expired = "bearer " + scene.token(issued_at=NOON_SECONDS - 3601)
    with connect(scene) as wire:
        for _ in range(3):
            assert wire.push(push_headers(scene, new_device(), authorization=expired)).status == 403
            time.sleep(PAUSE)
    assert found(scene) == {"jwt-stale": 2}


def test_a_token_renewed_when_it_expires_causes_no_finding(scene):
    """The connection rejects the new token as well (`expired_token_closes`), so it is used on another connection."""
    scene.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    fresh = "bearer " + scene.token(issued_at=NOON_SECONDS)

    def push(wire):
        return wire.push(push_headers(scene, new_device(), authorization=fresh)).status

    with connect(scene) as wire, connect(scene) as another:
        assert pushes_with(scene, wire, 3601) == [403]
        assert push(wire) == 403
        assert [push(another), push(another)] == [200, 200]
        assert push(wire) == 403
    assert found(scene) == {}


def test_a_token_renewed_on_the_same_connection_causes_no_finding(scene, faults):
    faults.use([], apns={"expired_token_closes": "off"})
    scene.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    with connect(scene) as wire:
        assert pushes_with(scene, wire, 3601, 0, 0) == [403, 200, 200]
    assert found(scene) == {}


# Connections

def test_after_goaway(scene):
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, new_device())).status == 200
        scene.api("POST", "/connections/goaway", {"all": True, "close_after": "never"})
        wire.goaway()
        time.sleep(CROSSING)
        wire.open(push_headers(scene, new_device()), b'{"aps":{"alert":"lost"}}')
        wire.ping()
        assert found(scene) == {"after-goaway": 1}


def test_after_a_goaway_that_no_fault_injected(scene, faults):
    """An incomplete request keeps the connection open for a while."""
    faults.use([], apns={"errors_before_goaway": 1})
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, new_device())).status == 200
        wire.open(push_headers(scene, new_device()), end_stream=False)
        assert wire.push(push_headers(scene, new_device(), apns_priority="7")).status == 400
        assert wire.goaway().last_stream_id == 5
        time.sleep(CROSSING)
        wire.open(push_headers(scene, new_device()), b'{"aps":{"alert":"lost"}}')
        wire.ping()
        assert found(scene) == {"after-goaway": 1}


def test_a_new_connection_after_goaway_causes_no_finding(scene):
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, new_device())).status == 200
        scene.api("POST", "/connections/goaway", {"all": True, "close_after": "never"})
        # A request that crosses the GOAWAY on its way is not a finding.
        crossed = wire.open(push_headers(scene, new_device()), b'{"aps":{"alert":"crossed"}}')
        wire.goaway()
        assert crossed
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, new_device())).status == 200
    assert found(scene) == {}


def test_excess_streams(scene):
    with connect(scene) as wire:
        wire.settings()
        wire.ping()  # Ensures that the stream limit of one has been acknowledged.
        for _ in range(2):
            wire.open(push_headers(scene, new_device()), end_stream=False)
        assert wire.goaway().error_code == 7
    await_findings(scene, {"excess-streams": 1})


def test_streams_before_the_settings_were_read_cause_no_finding(scene):
    with connect(scene, acknowledge=False) as wire:
        streams = [wire.open(push_headers(scene, new_device()), b'{"aps":{"alert":"early"}}') for _ in range(5)]
        assert [wire.response(stream).status for stream in streams] == [200] * 5
    assert found(scene) == {}


def test_connection_churn(scene):
    for _ in range(5):
        with line(scene) as wire:
            assert wire.push(push_headers(scene, new_device())).status == 200
    await_findings(scene, {"connection-churn": 1})


def test_connection_churn_by_a_client_that_sends_goaway(scene):
    """Node's `session.close()` sends GOAWAY, and the server closes the connection for it."""
    for _ in range(5):
        with line(scene) as wire:
            assert wire.push(push_headers(scene, new_device())).status == 200
            wire.send(GoAwayFrame(last_stream_id=0))
            wire.read_to_end()
    await_findings(scene, {"connection-churn": 1})


def test_one_connection_for_all_causes_no_finding(scene):
    for _ in range(5):
        with connect(scene) as wire:
            for _ in range(2):
                assert wire.push(push_headers(scene, new_device())).status == 200
    assert found(scene) == {}


def test_the_command_send_causes_no_finding(scene):
    """`send` opens a connection and makes a provider token for each push."""
    for _ in range(5):
        assert scene.command("send", new_device(), "--certs", scene.certs).returncode == 0
    assert len(scene.pushes()) == 5 and found(scene) == {}


# Single pushes

@pytest.mark.parametrize(("kind", "changes", "body"), [
    ("near-limit", {}, {"aps": {"alert": "x" * 3700}}),
    ("near-limit", {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}, {"x": "y" * 4700}),
    ("would-not-show", {}, {"aps": {}}),
    ("would-not-show", {}, {"alert": "not in aps"}),
    ("would-not-show", {"apns_push_type": "background"}, {"aps": {"content-available": 1}}),
    ("missing-push-type", {"apns_push_type": None}, {"aps": {"alert": "hello"}}),
])
def test_findings_of_single_pushes(scene, kind, changes, body):
    device = new_device()
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, device, **changes), json.dumps(body).encode()).status == 200
    assert scene.record(device)["findings"] == [kind]
    assert found(scene) == {kind: 1}


@pytest.mark.parametrize(("changes", "body"), [
    ({}, {"aps": {"alert": "x" * 3500}}),
    ({"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}, {"x": "y" * 4000}),
    ({"apns_push_type": "background", "apns_priority": "5"}, {"aps": {"content-available": 1}}),
])
def test_a_valid_push_causes_no_finding(scene, changes, body):
    device = new_device()
    with connect(scene) as wire:
        assert wire.push(push_headers(scene, device, **changes), json.dumps(body).encode()).status == 200
    assert scene.record(device)["findings"] == []
    assert found(scene) == {}


@pytest.mark.parametrize("rules", ["apple", "lenient"])
def test_es512_over_the_p256_key(start, rules):
    """pushok signs with SHA-512 over the P-256 key, with r and s padded to 66 bytes each."""
    scene, device = start("--rules", rules), new_device()
    token = tokens.es512_token(key=scene.key, key_id=scene.key_id, team_id=scene.team_id)
    with connect(scene) as wire:
        for _ in range(2):
            assert wire.push(push_headers(scene, device, authorization=f"bearer {token}")).status == 200
        rejected = push_headers(scene, new_device(), authorization=f"bearer {token}", apns_topic=None)
        assert wire.push(rejected).status == 400
    assert found(scene) == {"jwt-alg": 2}
    assert [record["findings"] for record in scene.pushes(device_token=device)] == [["jwt-alg"]] * 2
    assert len(scene.pushes(finding="jwt-alg")) == 2
    explanation = scene.api("GET", f"/pushes/{scene.pushes(device_token=device)[0]['seq']}/explain")
    assert "ES256" in explanation["advice"]


def test_strict_rules_refuse_es512(start):
    scene, device = start("--rules", "strict"), new_device()
    token = tokens.es512_token(key=scene.key, key_id=scene.key_id, team_id=scene.team_id)
    with connect(scene) as wire:
        response = wire.push(push_headers(scene, device, authorization=f"bearer {token}"))
    assert (response.status, response.data) == (403, [b'{"reason":"InvalidProviderToken"}'])
    assert found(scene) == {}


# Missing retries

def test_abandoned(scene, faults):
    """By the server's clock: a minute after the last attempt, unless another attempt follows."""
    faults.add({"respond": {"status": 503, "reason": "ServiceUnavailable"}}, trigger={"times": 2})
    device, other = new_device(), new_device()
    scene.api("PUT", "/clock", {"mode": "frozen", "now": NOON})
    token = {"authorization": "bearer " + scene.token(issued_at=NOON_SECONDS)}
    assert again(scene, device, 1, [], **token) == [503]
    scene.api("POST", "/clock/advance", {"by": "59s"})
    assert found(scene) == {}
    assert again(scene, other, 1, [], **token) == [503]
    scene.api("POST", "/clock/advance", {"by": "1s"})
    assert found(scene) == {"abandoned": 1}
    assert [record["seq"] for record in scene.pushes(finding="abandoned")] == [scene.record(device)["seq"]]
    fault_summary = scene.api("GET", f"/pushes/{scene.record(device)['seq']}/explain")
    assert [each["explanation"] for each in fault_summary["findings"]] == [
        "attempt 1 was answered 503 ServiceUnavailable, and no further attempt followed within 1m"]
    assert again(scene, device, 1, [], **token) == [200]
    assert "abandoned" not in found(scene), "an attempt followed, though by the machine's time it came at once"


# Where findings are reported

def test_findings_are_reported_everywhere(scene, faults):
    faults.add({"respond": {"status": 400, "reason": "BadDeviceToken"}}, name="wrong", trigger={"times": 2})
    device = new_device()
    assert again(scene, device, 2, [PAUSE]) == [400, 400]
    first, second = scene.pushes(device_token=device)
    assert (first["findings"], second["findings"]) == ([], ["retried-permanent"])
    assert [record["seq"] for record in scene.pushes(finding="retried-*")] == [second["seq"]]
    assert [record["seq"] for record in scene.pushes(q="!finding:retried-permanent")] == [first["seq"]]
    assert scene.pushes(finding="duplicate") == []
    report = scene.api("GET", "/findings", device_token=device)
    assert (report["total"], report["evicted"], report["complete"]) == (1, 0, True)
    (item,) = report["items"]
    assert item["records"] == [{
        "seq": second["seq"], "evidence": [first["seq"], second["seq"]],
        "explanation":
            f"push {first['seq']} was answered 400 BadDeviceToken, and nothing relevant to this response has changed since",
    }]
    assert item["summary"].endswith(".") and item["advice"].endswith(".") and item["more"] == 0
    assert scene.api("GET", "/findings", device_token=new_device())["items"] == []
    waited = scene.api("GET", "/pushes/wait", finding="retried-permanent", timeout="10s")
    assert [record["seq"] for record in waited["items"]] == [second["seq"]]
    export = scene.request("GET", "/api/v1/export").body.decode().splitlines()
    assert [json.loads(row)["findings"] for row in export] == [[], ["retried-permanent"]]


def test_an_explanation_contains_all_steps(scene, faults):
    faults.add({"respond": {"status": 400, "reason": "BadDeviceToken"}}, name="wrong", trigger={"probability": 1})
    device = new_device()
    again(scene, device, 2, [PAUSE])
    seq = scene.pushes(device_token=device)[-1]["seq"]
    fault_summary = scene.api("GET", f"/pushes/{seq}/explain")
    assert fault_summary["seq"] == seq and fault_summary["served"]["reason"] == "BadDeviceToken"
    assert fault_summary["verdict"]["status"] == 200 and all(check["ok"] for check in fault_summary["verdict"]["checks"])
    assert [(rule["rule"], rule["result"], rule["action"]) for rule in fault_summary["rules"]] == [("wrong", "fired", "respond")]
    assert [finding["finding"] for finding in fault_summary["findings"]] == ["retried-permanent"]
    assert fault_summary["advice"] == fault_summary["findings"][0]["advice"]
    assert "The client was answered 400 BadDeviceToken." in fault_summary["text"]
    assert scene.request("GET", "/api/v1/pushes/999999/explain").status == 404


def test_an_explanation_contains_the_rules(scene, faults):
    respond = {"respond": {"status": 503, "reason": "ServiceUnavailable"}}
    faults.use([
        {"name": "another-topic", "when": {"topic": "com.example.other"}, "do": respond},
        {"name": "unlikely", "trigger": {"probability": 1e-9}, "do": respond},
        {"name": "rare", "trigger": {"after": 5}, "do": respond},
        {"name": "answered-well", "at": "response", "when": {"status": 200}, "do": {"lose_answer": {}}},
        {"name": "answered-badly", "at": "response", "when": {"status": 410}, "do": {"lose_answer": {}}},
    ], seed=7)
    device = new_device()
    with connect(scene) as wire:
        wire.open(push_headers(scene, device), b'{"aps":{"alert":"hello"}}')
        record = wait_until(lambda: scene.pushes(device_token=device), "the push")[0]
    fault_summary = scene.api("GET", f"/pushes/{record['seq']}/explain")
    assert [(step["rule"], step["at"], step["result"]) for step in fault_summary["rules"]] == [
        ("another-topic", "request", "missed"), ("unlikely", "request", "not-drawn"),
        ("rare", "request", "did-not-fire"), ("answered-well", "response", "fired"),
        ("answered-badly", "response", "missed"),
    ]
    missed, drawn = fault_summary["rules"][:2]
    assert missed["text"] == 'topic must be "com.example.other" and is "com.example.app".'
    assert drawn["draw"] > drawn["p"] == 1e-9
    faults.add(respond, name="later")
    assert scene.api("GET", f"/pushes/{record['seq']}/explain")["rules"][0]["result"] == "not-yet"


def test_a_rejected_push_is_explained(scene, faults):
    faults.add({"respond": {"status": 503, "reason": "ServiceUnavailable"}}, name="busy")
    device = new_device()
    again(scene, device, 1, [], apns_priority="7")
    fault_summary = scene.api("GET", f"/pushes/{scene.record(device)['seq']}/explain")
    assert fault_summary["text"].startswith("APNs would respond with 400 BadPriority: ")
    assert [step["result"] for step in fault_summary["rules"]] == ["rejected-by-apns"]
    assert fault_summary["advice"] == "Fix the cause named in the response before sending it again."


def test_the_commands(scene):
    device = new_device()
    again(scene, device, 2, [0], apns_priority="7")
    first, second = [record["seq"] for record in scene.pushes(device_token=device)]
    report = scene.command("findings", f"token:{device}")
    assert (report.returncode, report.stderr) == (0, "")
    assert report.stdout.rstrip("\n").split("\t")[:4] == ["retried-permanent", "1", str(second), f"{first},{second}"]
    assert json.loads(scene.command("findings", "--json").stdout) == scene.api("GET", "/findings")
    silent = scene.command("findings", "status:200")
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "no findings for these pushes\n")
    assert scene.command("findings", "nonsense:1").returncode == 2
    assert json.loads(scene.command("get", second, "--json").stdout)["findings"] == ["retried-permanent"]
    one = scene.command("get", second)
    assert one.stderr.startswith(f"retried-permanent: push {first} was answered 400 BadPriority")
    fault_summary = json.loads(scene.command("get", second, "--explain", "--json").stdout)
    assert fault_summary == scene.api("GET", f"/pushes/{second}/explain")


def test_findings_change_no_response_and_a_reset_removes_them(scene):
    device = new_device()
    assert again(scene, device, 4, [0, 0, 0], apns_priority="7") == [400] * 4
    assert found(scene) == {"retried-permanent": 3}
    scene.api("POST", "/reset", {"inbox": True})
    assert found(scene) == {}
    assert again(scene, device, 1, [], apns_priority="7") == [400]
    assert found(scene) == {}


def test_evicted_records_are_reported(start):
    server = start("--max-records", "2")
    device = new_device()
    assert again(server, device, 2, [0], apns_priority="7") == [400, 400]
    assert found(server) == {"retried-permanent": 1}
    assert again(server, device, 1, [], apns_priority="7") == [400]
    report = server.api("GET", "/findings")
    assert [case["evidence"] for case in report["items"][0]["records"]] == [[2, 3], [1, 2]]
    assert (report["evicted"], report["complete"]) == (1, False)


def test_a_bad_filter_is_an_error(scene):
    response = scene.request("GET", "/api/v1/findings", tpic="x")
    assert response.status == 400 and "topic" in response.json["hint"]


# Complete providers

@pytest.mark.parametrize("profile", [
    "flaky-503?rate=0.5", "unregistered-410", "goaway-storm", "connection-reset", "shutdown-rolling", "ack-lost",
])
def test_a_careful_provider_causes_no_finding(under, monkeypatch, profile):  # noqa: F811
    monkeypatch.setattr(careful, "FIRST_PAUSE", PAUSE)
    monkeypatch.setattr(careful, "LONGEST_PAUSE", 4)
    server = under(profile)
    provider = CarefulProvider(server, width=4)
    provider.run(campaign(12))
    assert found(server) == {}, server.api("GET", "/findings")


def test_a_hasty_provider_causes_findings(under):  # noqa: F811
    server = under("flaky-503?rate=0.9")
    Hasty(server).run(campaign(6))
    assert found(server)["hot-retry"] > 0


def test_a_provider_with_too_many_tokens_causes_a_finding(under):  # noqa: F811
    server = under("healthy")
    Spender(server).run(campaign(3))
    assert found(server)["jwt-churn"] > 0


# Findings about delivery to registered devices

APP = "com.example.app"
BACKGROUND = {"aps": {"content-available": 1}}


class Phone:
    """A registered, online device of a server with settings of `apns:`, and a provider on httpx with one connection.
    The server's clock is stopped.
    """

    def __init__(self, server):
        self.server, self.token = server, new_device()
        self.provider = Naive(server)
        server.api("PUT", "/clock", {"mode": "frozen"})
        server.api("PUT", "/fixtures", {
            "devices": [{"id": "phone", "apps": [{"bundle_id": APP, "tokens": {"alert": self.token}}]}]})

    def push(self, number, **changes):
        """Sends a push and returns its `seq`."""
        push = Push(self.token, **{"payload": {"aps": {"alert": f"message {number}"}}, **changes})
        response = self.provider.send(push)
        assert (response.status_code, response.http_version) == (200, "HTTP/2"), response.text
        return self.server.pushes(apns_id=response.headers["apns-id"])[0]["seq"]

    def wait(self, duration):
        self.server.api("POST", "/clock/advance", {"by": duration})

    def finding(self):
        """Returns the only finding, as `GET /findings` and the command show it."""
        (item,) = self.server.api("GET", "/findings")["items"]
        lines = [line.split("\t") for line in self.server.command("findings").stdout.splitlines()]
        assert [(line[0], int(line[1])) for line in lines if line[0]] == [(item["finding"], item["count"])]
        return item

    def verify(self, expected):
        """Returns the exit code and the output of `apns-mock verify` with this value of `no_findings`."""
        done = self.server.command("verify", "-", input=json.dumps({"no_findings": expected}))
        return done.returncode, done.stdout


@pytest.fixture
def phone(start, tmp_path):
    opened = []

    def starter(**settings):
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"apns": settings}))
        opened.append(Phone(start("--config", config)))
        return opened[-1]

    yield starter
    for one in opened:
        one.provider.client.close()


def test_overwritten_before_ack(phone):
    phone = phone(online_queue=1, acknowledge_after="2s")
    seqs = [phone.push(number) for number in range(3)]
    item = phone.finding()
    assert (item["finding"], item["count"]) == ("overwritten-before-ack", 2)
    assert [record["seq"] for record in item["records"]] == [seqs[1], seqs[0]], "newest first"
    assert [record["evidence"] for record in item["records"]] == [seqs[1:], seqs[:2]], "replaced by the next push"
    assert f"push {seqs[2]} to the same device replaced it" in item["records"][0]["explanation"]
    assert [one["seq"] for one in phone.server.pushes(finding="overwritten-before-ack")] == seqs[:2]
    code, report = phone.verify(["overwritten-before-ack"])
    assert code == 1 and "overwritten-before-ack" in report, report
    assert phone.verify(True)[0] == 1
    assert phone.verify(["background-budget", "overwritten-in-storage"])[0] == 0
    phone.wait("2s")
    shown = phone.server.api("GET", "/devices/phone/notifications")["items"]
    assert [one["payload"]["aps"]["alert"] for one in shown] == ["message 2"], "the device has only the last one"


def test_pushes_that_are_acknowledged_cause_no_finding(phone):
    phone = phone(online_queue=1, acknowledge_after="2s")
    for number in range(3):
        phone.push(number)
        phone.wait("2s")
    assert found(phone.server) == {} and phone.verify(True)[0] == 0
    assert len(phone.server.api("GET", "/devices/phone/notifications")["items"]) == 3


def test_background_budget(phone):
    phone = phone(background_budget="2/10m")
    silent = {"payload": BACKGROUND, "push_type": "background", "priority": 5}
    seqs = [phone.push(number, **silent) for number in range(3)]
    item = phone.finding()
    assert (item["finding"], item["count"]) == ("background-budget", 1)
    assert [record["seq"] for record in item["records"]] == [seqs[2]]
    assert "budget for background pushes was used up" in item["records"][0]["explanation"], item
    assert phone.push(4) and found(phone.server) == {"background-budget": 1}, "alerts have no budget"
    code, report = phone.verify(["background-budget"])
    assert code == 1 and "background-budget" in report, report
    assert phone.verify(["overwritten-before-ack"])[0] == 0
    phone.wait("10m")
    phone.push(5, **silent)
    assert found(phone.server) == {"background-budget": 1}, "ten minutes later there is a new budget"


def test_background_pushes_within_the_budget_cause_no_finding(phone):
    phone = phone(background_budget="2/10m")
    for number in range(4):
        phone.push(number, payload=BACKGROUND, push_type="background", priority=5)
        phone.wait("5m")
    assert found(phone.server) == {} and phone.verify(True)[0] == 0

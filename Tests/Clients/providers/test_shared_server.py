"""Eight test suites share one server, each with its own topic: a scope keeps their resets, waits, verifications and
findings apart.
"""

import concurrent.futures
import secrets
import threading

import httpx
import pytest

from support import tokens
from support.server import Server, stop_cleanly, wait_until
from support.wire import client_context

SUITES = 8
ROUNDS = 5
TIMEOUT = 60  # seconds in which all suites must reach the same line

pytestmark = pytest.mark.timeout(180)


class Suite:
    """A test suite of the topic `com.acme.wN`, with an HTTP/2 connection of its own. Its provider token may be that of
    the other suites.
    """

    def __init__(self, server, number, token=None):
        self.server = server
        self.authorization = f"bearer {token}" if token else server.bearer
        self.number = number
        self.topic = f"com.acme.w{number}"
        self.scope = f"topic:{self.topic}"
        self.client = httpx.Client(
            http2=True, verify=client_context(server.ca), base_url=server.url, timeout=30, trust_env=False)

    # The provider

    def push(self, device=None, *, priority="10", text="hello"):
        """Sends one push; returns its status."""
        headers = {
            "authorization": self.authorization, "apns-topic": self.topic, "apns-push-type": "alert",
            "apns-priority": priority}
        return self.client.post(
            f"/3/device/{device or secrets.token_hex(32)}", headers=headers,
            json={"aps": {"alert": text}}).status_code

    def cause(self, finding):
        """Makes the mistake of a finding."""
        device = secrets.token_hex(32)
        if finding == "retried-permanent":
            assert [self.push(device, priority="7") for _ in range(2)] == [400, 400]
        elif finding == "near-limit":
            assert self.push(device, text="x" * 3900) == 200
        else:
            assert finding == "would-not-show"
            assert self.push(device, text="") == 200

    @property
    def mistake(self):
        """A finding that no neighbour in the list of suites has."""
        return ("retried-permanent", "near-limit", "would-not-show")[self.number % 3]

    # The tests, all in this suite's scope

    def reset(self):
        self.server.api("POST", "/reset", {"scope": self.scope})

    def verify(self, **document):
        """Returns the report, whether the expectations are met or not."""
        response = self.server.request("POST", "/api/v1/verify", {"scope": self.scope, **document})
        assert response.status in (200, 412), response.body
        return response.json

    def findings(self):
        """Returns the findings by kind."""
        found = self.server.api("GET", "/findings", scope=self.scope)["items"]
        return {item["finding"]: item["count"] for item in found}

    def wait(self, count, **query):
        return self.server.api("GET", "/pushes/wait", scope=self.scope, count=f"={count}", timeout="5s", **query)

    def topics(self):
        """Returns the topic of every push in the scope."""
        return [record["apns"]["topic"] for record in self.server.pushes(scope=self.scope)]


@pytest.fixture(scope="module")
def shared(binary, certs):
    running = Server(binary, certs)
    yield running
    stop_cleanly(running)


@pytest.fixture
def together(shared):
    """`together(act)` runs `act(suite, barrier)` for eight suites, each in its own thread. `barrier` waits for all."""
    shared.api("POST", "/reset")

    def run(act):
        suites = [Suite(shared, number) for number in range(SUITES)]
        barrier = threading.Barrier(SUITES, timeout=TIMEOUT)

        def work(suite):
            try:
                act(suite, barrier.wait)
            except BaseException:
                barrier.abort()  # the others need not wait for this suite
                raise
            finally:
                suite.client.close()

        with concurrent.futures.ThreadPoolExecutor(SUITES) as pool:
            ended = [pool.submit(work, suite) for suite in suites]
        errors = [error for one in ended if (error := one.exception())]
        # A suite that waited for one that failed reports a broken barrier, which explains nothing.
        errors.sort(key=lambda error: isinstance(error, threading.BrokenBarrierError))
        if errors:
            raise errors[0]

    return run


def test_suites_that_run_freely_see_only_their_own_pushes(together):
    def act(suite, _):
        for _ in range(ROUNDS):
            count = suite.number + 1
            suite.reset()
            assert suite.topics() == []
            assert {suite.push() for _ in range(count)} == {200}
            waited = suite.wait(count)
            assert (waited["satisfied"], waited["matched"]) == (True, count), waited
            assert suite.topics() == [suite.topic] * count
            report = suite.verify(
                expect=[{"name": "mine", "count": {"exactly": count}, "outcome": "accepted"}], no_others=True,
                nothing_lost=True, no_findings=True)
            assert report["passed"], report["text"]
            suite.cause(suite.mistake)
            assert suite.findings() == {suite.mistake: 1}
            report = suite.verify(no_findings=True)
            assert not report["passed"] and suite.mistake in report["text"]

    together(act)


def test_a_reset_in_a_scope_leaves_the_other_suites_alone(together):
    """Every second suite resets while all hold pushes and findings."""
    def act(suite, everyone):
        resets = suite.number % 2 == 0
        suite.cause(suite.mistake)
        own = len(suite.topics())
        assert own > 0
        everyone()
        if resets:
            suite.reset()
        everyone()
        assert suite.topics() == ([] if resets else [suite.topic] * own)
        assert suite.findings() == ({} if resets else {suite.mistake: 1})
        assert suite.verify(no_findings=True)["passed"] is resets
        if resets:
            waited = suite.server.api("GET", "/pushes/wait", scope=suite.scope, count="1", timeout="200ms")
            assert (waited["satisfied"], waited["items"]) == (False, [])
        everyone()
        assert suite.push() == 200
        assert len(suite.topics()) == (1 if resets else own + 1)

    together(act)


def test_a_verification_does_not_count_pushes_of_another_scope(together):
    """Without a scope, the expectation of one suite is violated by the pushes of another."""
    def act(suite, everyone):
        assert suite.push() == 200
        everyone()
        expected = {"expect": [{"count": {"exactly": 1}}], "no_others": True}
        assert suite.verify(**expected)["passed"]
        whole = suite.server.request("POST", "/api/v1/verify", expected)
        assert whole.status == 412 and f"found {SUITES}" in whole.json["text"]

    together(act)


def test_a_wait_in_a_scope_is_not_ended_by_another_suite(together):
    """All suites wait before the first push; each must be ended by its own."""
    def act(suite, everyone):
        with concurrent.futures.ThreadPoolExecutor(1) as waiter:
            waiting = waiter.submit(
                suite.server.api, "GET", "/pushes/wait", scope=suite.scope, count="2", timeout="30s")
            everyone()
            for number in range(2):
                assert suite.push(text=f"push {number} of {suite.topic}") == 200
            found = waiting.result()
        assert found["satisfied"]
        assert [record["apns"]["topic"] for record in found["items"]] == [suite.topic] * 2

    together(act)


def test_connections_and_provider_tokens_of_other_suites_cause_no_finding(shared):
    """Eight processes that each sign a token and send one push are not one that connects and signs too often: they
    have topics of their own. Five connections for one topic are.
    """
    shared.api("POST", "/reset")
    issued_at = tokens.now()
    suites = [Suite(shared, number, shared.token(issued_at=issued_at)) for number in range(SUITES)]
    for suite in suites:
        assert suite.push() == 200
        suite.client.close()
    for _ in range(4):
        single = Suite(shared, 0)
        single.authorization = suites[0].authorization
        assert single.push() == 200
        single.client.close()
    wait_until(lambda: suites[0].findings(), "no finding for the suite with five connections")
    assert suites[0].findings() == {"connection-churn": 1}
    assert [suite.findings() for suite in suites[1:]] == [{}] * (SUITES - 1)


@pytest.mark.parametrize(("method", "path", "body"), [
    ("POST", "/reset", {"scope": "topik:com.acme.w1"}),
    ("POST", "/verify", {"scope": "topik:com.acme.w1"}),
    ("GET", "/findings?scope=topik:com.acme.w1", None),
    ("GET", "/pushes/wait?scope=topik:com.acme.w1", None),
    ("GET", "/pushes?scope=topik:com.acme.w1", None),
], ids=["reset", "verify", "findings", "wait", "pushes"])
def test_an_unknown_field_in_a_scope_is_an_error(shared, device, method, path, body):
    """A misspelt scope must not reset everything, and not make a test pass."""
    suite = Suite(shared, 1)
    assert suite.push(device) == 200
    suite.client.close()
    response = shared.request(method, "/api/v1" + path, body)
    assert response.status == 400, response.body
    assert "topik" in response.body.decode()
    assert shared.record(device)["apns"]["topic"] == suite.topic

"""Verdicts compared with what happened between provider and server: a sample of `make campaigns`."""

import json

import pytest

from support import ROOT
from support.conducts.carriers import missing
from support.conducts.runner import Run, perform
from support.faults import mock  # noqa: F401 (a fixture)

SAMPLE = """
    healthy/correct/curl/1                healthy/own-connections/go/1
    flaky-503/correct/httpx/1             flaky-503/gives-up-at-503/hand/1      flaky-503/no-pause/node/1
    rate-limited-429/correct/go/1         rate-limited-429/no-pause/curl/1
    unregistered-410/correct/hand/1       unregistered-410/correct/httpx/1      unregistered-410/repeats-410/hand/1
    unregistered-410/repeats-410/go/1
    expired-jwt-403/correct/node/1        expired-jwt-403/no-pause/hand/1
    token-update-storm/correct/hand/1     token-update-storm/drops-errors/curl/1
    bad-token-400/no-pause/httpx/1        bad-token-400/own-connections/hand/1
    wrong-environment-key/correct/go/1    tls-bad-certificate/correct/node/1    tls-handshake-stall/correct/hand/1
    goaway-storm/correct/hand/1           goaway-storm/correct/httpx/1          goaway-storm/correct/node/1
    goaway-storm/correct/go/1             goaway-storm/after-goaway/hand/1      goaway-storm/drops-errors/httpx/1
    stream-throttle/correct/hand/1        stream-throttle/correct/httpx/1       stream-throttle/correct/node/1
    stream-throttle/correct/go/1          stream-throttle/ignores-settings/hand/1
    connection-reset/new-ids/hand/1       connection-reset/new-ids/node/1       connection-reset/resends-blindly/hand/1
    connection-reset/resends-blindly/httpx/1
    ack-lost/correct/httpx/1              ack-lost/new-ids/go/1
    odd-answers/correct/curl/1            single-stream/apart/hand/1            broadcast-flaky/new-tokens/hand/1
""".split()

# They repeat a profile and a conduct with another client.
LONG = """
    unregistered-410/correct/httpx/1      unregistered-410/repeats-410/go/1     goaway-storm/correct/httpx/1
    goaway-storm/correct/node/1           stream-throttle/correct/httpx/1       stream-throttle/correct/go/1
    connection-reset/new-ids/node/1       connection-reset/resends-blindly/httpx/1
""".split()


@pytest.mark.parametrize("text", [pytest.param(text, marks=pytest.mark.long) if text in LONG else text for text in SAMPLE])
def test_verdicts_are_true(mock, text):
    run = Run.of(text)
    if run.carrier in missing():
        pytest.skip(f"{run.carrier} is not on this machine and `.ci/packages test` could not install it")
    report = perform(mock, run, ROOT / ".build/campaigns")
    wrong = "\n".join(report.disagreements)
    assert not wrong, f"{wrong}\n\n{report.timelines}\n\nrepeat: make campaigns CAMPAIGN_ARGS={run}"


class Lying:
    """A server whose answers `change(records, report)` alters: the records, and the report of `POST /verify` or None."""

    def __init__(self, server, change):
        self._server, self._change = server, change

    def __getattr__(self, name):
        return getattr(self._server, name)

    def pushes(self, **query):
        records = self._server.pushes(**query)
        self._change(records, None)
        return records

    def request(self, method, path, body=None):
        response = self._server.request(method, path, body)
        if path.endswith("/verify"):
            report = response.json
            self._change([], report)
            response.body = json.dumps(report)
        return response


def alter(**members):
    """Returns a change of the first record."""
    return lambda records, report: records and records[0].update(members)


def alter_report(change):
    return lambda records, report: report and change(report)


@pytest.mark.parametrize("change, message", [
    (alter(ending="reset", outcome="response_lost"), "ending reset, but it is response"),
    (alter(decision="not_processed", accepted=False), "decision not_processed, but it is accepted"),
    (alter(outcome="unanswered"), "outcome unanswered, but it is accepted"),
    (alter(accepted=False), "accepted False, but decision accepted"),
    (alter(attempt=2), "attempt 2, but it is 1"),
    (alter(findings=["retried-410"]), "retried-410 is wrong"),
    (alter(findings=["abandoned"]), "abandoned is wrong: push 0"),
    (alter(findings=["duplicate"]), "push 0 has the finding duplicate and is not shown twice"),
    (lambda records, report: [record["findings"].clear() for record in records], "abandoned is missing: push"),
    (lambda records, report: records[:] and records.pop(), "no record"),
    (alter_report(lambda report: report["nothing_lost"].update(passed=True, found="none", seqs=[])), "nothing_lost names 0 pushes"),
    (alter_report(lambda report: report["expectations"][0]["criteria"].append(
        {"criterion": "retries.finally", "passed": False, "found": "x", "wanted": "y"})), "retries.finally found x, but it is y"),
])
def test_a_wrong_verdict_is_found(mock, change, message):
    report = perform(Lying(mock, change), Run.of("flaky-503/gives-up-at-503/hand/1"), None)
    assert any(message in line for line in report.disagreements), report.disagreements

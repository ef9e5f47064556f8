"""Verdicts compared with what happened between provider and server: a sample of `make campaigns`."""

import pytest

from support import ROOT
from support.conducts.runner import Run, perform
from support.drivers import tool
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


@pytest.mark.parametrize("text", SAMPLE)
def test_verdicts_are_true(mock, text):
    run = Run.of(text)
    if run.carrier in ("node", "go", "curl"):
        tool(run.carrier)
    report = perform(mock, run, ROOT / ".build/campaigns")
    wrong = "\n".join(report.disagreements)
    assert not wrong, f"{wrong}\n\n{report.timelines}\n\nrepeat: make campaigns CAMPAIGN_ARGS={run}"

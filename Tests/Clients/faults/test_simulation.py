"""`apns-mock profile simulate` and a real run with the same seed and the same order of pushes have the same numbers."""

import concurrent.futures
import contextlib
import dataclasses
import json

import pytest

from support import ROOT
from support.server import Server, run, stop_cleanly, wait_until
from support.simulated import SimulatedProvider, seen

PROFILES = ROOT / "FaultProfiles"
SEED = 7


@dataclasses.dataclass
class Campaign:
    """A profile and the pushes that a provider sends under it.

    `margin`: the seconds by which a push may be late before the next one overtakes it or another rule applies to it; None
    if only the order of connections matters.
    `never`: the actions after which the provider waits for ever.
    """

    text: str
    pushes: int = 60
    connections: int = 2
    rate: float = 20
    margin: float | None = 0.06
    never: tuple = ()


def built_in(name, *, limits="", **parameters):
    """Returns the text of a profile that has the rules of a built-in one."""
    lines = ["name: measured", f"extends: {name}"]
    if parameters:
        lines += ["params:", *(f"  {key}: {value}" for key, value in parameters.items())]
    return "\n".join(lines + [limits, ""])


# Windows open at 2 s and 4 s and the connections drain for 1.286 s then: all that is a third of the time between two pushes
# or more away from a push.
ROLLING = Campaign(built_in("shutdown-rolling", every="2s", drain="1286ms"), pushes=25, rate=14 / 3, margin=0.065)

CAMPAIGNS = {
    "goaway-storm": Campaign(built_in("goaway-storm", streams=5)),
    "connection-reset": Campaign(built_in("connection-reset", rate=0.3)),
    "shutdown-rolling": ROLLING,
    "tls-handshake-stall": Campaign(built_in("tls-handshake-stall", hold="300ms"), margin=None),
    # Slower than the built-in profile. Responses take two and a half times as long as a push takes to follow the last one.
    "stream-throttle": Campaign(
        (PROFILES / "stream-throttle.yaml").read_text().replace("name: stream-throttle", "name: measured")
        .replace("100ms", "600ms"), pushes=24, connections=1, rate=1 / 0.24, margin=0.1),
    "single-stream": Campaign(built_in("single-stream"), pushes=20, connections=1, margin=None),
    "half-open": Campaign(built_in("half-open"), pushes=40, never=("hang",)),
    "ack-lost": Campaign(built_in("ack-lost", rate=0.4)),
    "token-update-storm": Campaign(built_in("token-update-storm")),
    # Delays end in the middle between two pushes of a connection.
    "chaos-mix": Campaign(
        built_in("chaos-mix", intensity=0.6, limits="limits: {max_hold: 625ms}"), pushes=40, rate=8, margin=0.1),
    "drain from the beginning": Campaign(
        "name: measured\nrules: [{name: d, at: connection, do: {drain: {for: 900ms}}}]",
        pushes=20, connections=1, rate=5, margin=0.08),
    "close, goaway and reset of connections": Campaign("""
name: measured
rules:
  - {name: ends, at: connection, trigger: {after_streams: 6}, do: {choose: [{close: {}}, {reset_connection: {}}, {goaway: {}}]}}
  - {name: late, trigger: {every: 4, times_per: connection}, do: {goaway: {last_stream: this}}}
"""),
    "refused connections and a low limit": Campaign("""
name: measured
rules:
  - {name: refused, at: accept, trigger: {every: 2}, do: {refuse: {}}}
  - {name: low, at: settings, do: {settings: {max_concurrent_streams: 2}}}
  - {name: slow, at: response, do: {delay: {fixed: 10ms}}}
  - {name: closing, trigger: {every: 7, times_per: connection}, do: {close: {}}}
"""),
    "a silent connection": Campaign("""
name: measured
rules: [{name: quiet, at: connection, trigger: {after_streams: 4}, do: {silence: {for: 900ms}}}]
""", pushes=20, connections=1, rate=5, margin=0.08),
    "a stall and a hang that end with the answer": Campaign("""
name: measured
rules:
  - {name: stalls, at: tls, trigger: {first: 2}, do: {stall: {for: 200ms, end_with: answer}}}
  - {name: hangs, trigger: {every: 3}, do: {hang: {for: 50ms, end_with: answer}}}
""", margin=None),
}


# What is left out in `make test` has the actions of the others, or none on connections.
LONG = {
    "single-stream", "ack-lost", "token-update-storm", "close, goaway and reset of connections",
    "refused connections and a low limit", "a silent connection", "a stall and a hang that end with the answer",
}


@dataclasses.dataclass
class Numbers:
    """What a simulation printed, and what was seen of a real run."""

    simulated: dict
    expected: dict
    outcomes: dict
    opened: int
    fired: dict


def measure(binary, certs, folder, name):
    """Returns the numbers of a campaign. Raises if its provider was never in time, because its process had to wait."""
    campaign = CAMPAIGNS[name]
    file = folder / "profile.yaml"
    file.write_text(campaign.text)
    ran = run(
        binary, "profile", "simulate", file, "--seed", SEED, "--pushes", campaign.pushes, "--connections",
        campaign.connections, "--rate", campaign.rate, "--json")
    assert ran.returncode == 0, ran.stderr
    simulated = json.loads(ran.stdout)
    expected = seen(simulated["outcomes"], never=campaign.never)

    for _ in range(10):
        server = Server(binary, certs, "--seed", SEED)
        try:
            server.api("PUT", "/profiles/measured", {"source": campaign.text})
            provider = SimulatedProvider(server, pushes=campaign.pushes, connections=campaign.connections)
            server.api("PUT", "/profile", {"name": "measured", "seed": SEED})
            outcomes = provider.run(rate=campaign.rate, unanswered=expected[None])
            if campaign.margin is not None and provider.latest > campaign.margin:
                continue
            opened = sum(any(event["event"] == "settings" for event in one["events"])
                         for one in server.api("GET", "/connections")["items"])
            fired = {}
            for rule, expected_times in simulated["rules"].items():
                with contextlib.suppress(AssertionError):
                    wait_until(lambda: server.api("GET", f"/rules/{rule}/explain")["fired"] == expected_times, "it fires")
                fired[rule] = server.api("GET", f"/rules/{rule}/explain")["fired"]
            return Numbers(simulated, expected, outcomes, opened, fired)
        finally:
            stop_cleanly(server)
    pytest.fail("the provider never sent in time")


@pytest.fixture(scope="module")
def measured(request, binary, certs, tmp_path_factory):
    """The numbers of each campaign whose test is selected, as futures. The campaigns run at the same time: they are slow because
    they send few pushes per second.
    """
    names = [item.callspec.params["name"] for item in request.session.items
             if getattr(item, "originalname", None) == "test_a_simulation_has_the_numbers_of_a_real_run"]
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        yield {name: pool.submit(measure, binary, certs, tmp_path_factory.mktemp("campaign"), name) for name in names}


@pytest.mark.serial
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in CAMPAIGNS])
def test_a_simulation_has_the_numbers_of_a_real_run(measured, name):
    numbers = measured[name].result()
    assert numbers.outcomes == numbers.expected
    assert numbers.opened == numbers.simulated["connections"]
    assert numbers.fired == numbers.simulated["rules"]

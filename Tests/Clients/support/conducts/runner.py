"""One run: a provider of known conduct against one fault profile."""

import asyncio
import dataclasses
import itertools

from support.conducts.carriers import carrier
from support.conducts.comparison import compare
from support.conducts.providers import CONDUCTS, Provider, pushes
from support.conducts.relay import Relay
from support.server import wait_until

COUNT, DEVICES = 24, 12  # pushes, and the devices to which they go in turn
RUN_LIMIT = 20  # seconds, after which a provider is stopped

#: The built-in profiles, with parameters that make their faults frequent and short. Left out is retry-after: the oracle does not
#: read Retry-After.
PROFILES = {
    "healthy": "healthy",
    "flaky-503": "flaky-503?rate=0.4&streak=2",
    "rate-limited-429": "rate-limited-429?limit=1&per=1s&burst=1",
    "unregistered-410": "unregistered-410?rate=0.4",
    "expired-jwt-403": "expired-jwt-403?max_age=30s",
    "token-update-storm": "token-update-storm",
    "bad-token-400": "bad-token-400?rate=0.3",
    "wrong-environment-key": "wrong-environment-key",
    "brownout": "brownout?p50=300ms&ramp=1s",
    "goaway-storm": "goaway-storm?streams=5&grace=800ms",
    "connection-reset": "connection-reset?rate=0.3",
    "shutdown-rolling": "shutdown-rolling?every=2s&drain=500ms",
    "tls-handshake-stall": "tls-handshake-stall?hold=500ms",
    "tls-bad-certificate": "tls-bad-certificate",
    "single-stream": "single-stream",
    "stream-throttle": "stream-throttle",
    "half-open": "half-open",
    "ack-lost": "ack-lost?rate=0.3",
    "odd-answers": "odd-answers",
    "chaos-mix": "chaos-mix?intensity=0.3",
    "channel-limit": "channel-limit",
    "broadcast-flaky": "broadcast-flaky",
}

#: Each conduct with each carrier that can express it.
PAIRS = [[conduct, name] for conduct, of in CONDUCTS.items() for name in of.carriers]


@dataclasses.dataclass(frozen=True)
class Run:
    """What is run. Its text is what the command line takes."""

    profile: str
    conduct: str
    carrier: str
    seed: int

    def __str__(self):
        return f"{self.profile}/{self.conduct}/{self.carrier}/{self.seed}"

    @staticmethod
    def of(text):
        """Returns the run with this name; raises ValueError if there is none."""
        parts = text.split("/")
        if len(parts) != 4 or parts[0] not in PROFILES or parts[1:3] not in PAIRS or not parts[3].isdigit():
            raise ValueError(f"{text} is not PROFILE/CONDUCT/CARRIER/SEED; --list lists the runs")
        return Run(*parts[:3], int(parts[3]))


def all_runs(text="", missing=()):
    """Yields all runs whose name contains a text, without those whose carrier is missing, seed by seed. Neighbors differ in
    profile, conduct and carrier.
    """
    for seed in itertools.count(1):
        runs = [
            Run(list(PROFILES)[(index + shift) % len(PROFILES)], conduct, name, seed)
            for shift in range(len(PROFILES)) for index, (conduct, name) in enumerate(PAIRS) if name not in missing
        ]
        found = [run for run in runs if text in str(run)]
        if not found and seed > 1:
            return
        yield from found


def perform(server, run, folder):
    """Runs a provider against the server, which is reset before; returns the report."""
    server.api("POST", "/reset")
    server.api("PUT", "/profile", {"name": PROFILES[run.profile], "seed": run.seed})
    with Relay(server) as relay:
        provider = asyncio.run(deliver(server, run, relay.port, folder))
    wait_until(lambda: server.api("GET", "/connections")["open"] == 0, "all connections closed")
    wait_until(lambda: not server.pushes(outcome="pending"), "no pending push")
    return compare(server, run, provider, relay)


async def deliver(server, run, port, folder):
    """Runs the provider against this port; returns it."""
    conduct = CONDUCTS[run.conduct]
    client = carrier(run.carrier, port, server.ca, conduct.manners, folder)
    provider = Provider(
        conduct, client, lambda issued_at: server.token(issued_at=issued_at), f"localhost:{port}", run.seed)
    try:
        await asyncio.wait_for(provider.run(pushes(COUNT, DEVICES)), RUN_LIMIT)
    except asyncio.TimeoutError:
        pass  # what it has not sent or not sent again by then is lost
    finally:
        await client.close()
    return provider

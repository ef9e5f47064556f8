"""Campaigns of pushes under a fault profile, and what the inbox tells of them.

Each push has a number, which stands in its payload as `n`. Its device token is always the same, so that a seed decides
the same about it each time."""

import collections
import hashlib

import pytest

from support.drivers import Push

MOST = 1000  # the largest page of the admin API
SEED = 7


@pytest.fixture
def under(start):
    """`under("flaky-503?rate=0.5")`: a server of its own with that profile in force."""

    def starter(reference):
        server = start("--seed", SEED)
        server.api("PUT", "/profile", {"name": reference, "seed": SEED})
        return server

    return starter


def device(number):
    return hashlib.sha256(f"device {number}".encode()).hexdigest()


def campaign(count, *, start=0, devices=None, **more):
    """`count` pushes, each to a device of its own unless `devices` (numbers, in order) says otherwise."""
    devices = devices or range(start, start + count)
    return [
        Push(device(to), {"aps": {"alert": "hello"}, "n": start + index}, **more)
        for index, to in zip(range(count), devices)
    ]


def numbers(pushes):
    return {push.payload["n"] for push in pushes}


def records(server, **query):
    """All records that match, oldest first, by the number of their push: {n: [record, …]}."""
    found = server.api("GET", "/pushes", limit=MOST, **query)
    assert found["matched"] <= MOST, "more than a page"
    by_number = collections.defaultdict(list)
    for record in found["items"]:
        by_number[record["request"]["payload"]["n"]].append(record)
    return dict(by_number)


def attempts(server, **query):
    """How often each push was sent: {n: count}."""
    return {n: len(found) for n, found in records(server, **query).items()}


def shown(server):
    """How many notifications APNs has taken for each push: {n: count}. Accepted again under the same `apns-id` or
    collapse id it is the same notification, and shown once."""
    return {
        n: len({record["apns"]["collapse_id"] or record["apns"]["id"].lower() for record in found})
        for n, found in records(server, accepted="true").items()
    }


def once(pushes):
    """What `shown` says when every push landed exactly once."""
    return {n: 1 for n in numbers(pushes)}


def served(server, **query):
    """What was answered how often: {(status, reason): count}."""
    return collections.Counter(
        (record["served"]["status"], record["served"]["reason"])
        for found in records(server, **query).values() for record in found)


def faulted(server):
    """The numbers of the pushes that met the profile. Those behind them on a connection that a fault ended have no rule."""
    return set(records(server, outcome="faulted", rule="*"))


def again(server):
    """The same from the beginning: no records, no counts, the same seed."""
    server.api("POST", "/reset", {"inbox": True, "counters": True})


def growing(pauses):
    return all(earlier < later for earlier, later in zip(pauses, pauses[1:]))

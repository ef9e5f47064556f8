"""Campaigns of pushes under a fault profile, and what the inbox recorded about them.

Each push has a number, `n` in its payload. The device tokens are the same in every run, so that the same seed
injects the same faults.
"""

import collections
import concurrent.futures
import contextlib
import hashlib

import pytest

from support.drivers import Push

PAGE_LIMIT = 1000  # the admin API's largest page size
SEED = 7


@pytest.fixture
def under(start):
    """`under("flaky-503?rate=0.5")`: a new server with that profile active."""

    def starter(reference):
        server = start("--seed", SEED)
        server.api("PUT", "/profile", {"name": reference, "seed": SEED})
        return server

    return starter


def device(number):
    return hashlib.sha256(f"device {number}".encode()).hexdigest()


def campaign(count, *, start=0, devices=None, **more):
    """Returns `count` pushes, each to a different device unless `devices` (numbers, in order) is given."""
    devices = devices or range(start, start + count)
    return [
        Push(device(to), {"aps": {"alert": "hello"}, "n": start + index}, **more)
        for index, to in zip(range(count), devices)
    ]


def numbers(pushes):
    return {push.payload["n"] for push in pushes}


def records(server, **query):
    """Returns all matching records, oldest first, by the number of their push: {n: [record, …]}."""
    found = server.api("GET", "/pushes", limit=PAGE_LIMIT, **query)
    assert found["matched"] <= PAGE_LIMIT, "more than a page"
    by_number = collections.defaultdict(list)
    for record in found["items"]:
        by_number[record["request"]["payload"]["n"]].append(record)
    return dict(by_number)


def attempts(server, **query):
    """Returns how often each push was sent: {n: count}."""
    return {n: len(found) for n, found in records(server, **query).items()}


def shown(server):
    """Returns how many notifications APNs accepted for each push: {n: count}. A push accepted again under the same
    `apns-id` or collapse id is the same notification and shown once.
    """
    return {
        n: len({record["apns"]["collapse_id"] or record["apns"]["id"].lower() for record in found})
        for n, found in records(server, accepted="true").items()
    }


def once(pushes):
    """Returns the value of `shown` if every push was delivered exactly once."""
    return {n: 1 for n in numbers(pushes)}


def served(server, **query):
    """Counts the responses: {(status, reason): count}."""
    return collections.Counter(
        (record["served"]["status"], record["served"]["reason"])
        for found in records(server, **query).values() for record in found)


def faulted(server):
    """Returns the numbers of the pushes for which a rule of the profile fired, not of those whose connection it ended."""
    return {number for number, found in records(server, q="is:faulted").items()
            if any(record["fault"]["by"] is None and record["verdict"] for record in found)}


def again(server):
    """Restores the initial state: no records, counters at zero, the same seed."""
    server.api("POST", "/reset", {"inbox": True, "counters": True})


def growing(pauses):
    return all(earlier < later for earlier, later in zip(pauses, pauses[1:]))


@contextlib.contextmanager
def at_work(workers=1):
    """Threads for providers that may never finish; after a failure the test does not wait for them."""
    pool = concurrent.futures.ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def end_all_connections(server):
    """Resets all connections, which releases a blocked provider."""
    server.api("POST", "/connections/reset", {"all": True})

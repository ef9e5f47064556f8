"""Which tests run: every promise once (by default), all tests (APNS_MOCK_ALL_TESTS=1), only the quick ones, or a third.

A test of what holds for both databases runs with one of them, unless all tests run.
"""

import collections
import functools
import itertools
import os
import pathlib
import statistics
import zlib

#: Whether tests that only repeat what a shorter one holds run as well.
ALL = os.environ.get("APNS_MOCK_ALL_TESTS") == "1"

#: The tests that took over `QUICK` seconds when `--record-slow` was last given: a line each, with the median of its cases.
SLOW = pathlib.Path(__file__).parent.parent / "slow-tests.txt"
QUICK = 0.1


def some(values, count, first=0):
    """Returns all values if all tests run, and else `count` of them, evenly distributed from number `first` on. Cases with another
    `first` have other values, so that together they have all.
    """
    values = list(values)
    if ALL or count >= len(values):
        return values
    return [values[(first + index * len(values) // count) % len(values)] for index in range(count)]


def pairs(first, second):
    """Returns all pairs of a value of `first` and one of `second` if all tests run, and else as few as have each value."""
    if ALL:
        return list(itertools.product(first, second))
    return [(first[number % len(first)], second[number % len(second)]) for number in range(max(len(first), len(second)))]


def add_options(parser):
    parser.addoption("--quick", action="store_true", help=f"only tests that are not in {SLOW.name}")
    parser.addoption("--third", type=int, choices=[0, 1, 2], help="only a third of the tests, the same in each run")
    parser.addoption("--record-slow", action="store_true", help=f"write {SLOW.name}; run all tests")


def prepare(config):
    if config.getoption("--record-slow") and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Recorder())


def deselect(config, items):
    """Removes the tests that are not to run."""
    third = config.getoption("--third")

    databases = collections.defaultdict(set)
    for item in items:
        databases[function(item.nodeid)].add(database(item))

    def runs(item):
        return ((ALL or item.get_closest_marker("long") is None and chosen(item, databases[function(item.nodeid)]))
                and not (config.getoption("--quick") and function(item.nodeid) in durations())
                and (third is None or zlib.crc32(item.nodeid.encode()) % 3 == third))

    left_out = [item for item in items if not runs(item)]
    if left_out:
        items[:] = [item for item in items if runs(item)]
        config.hook.pytest_deselected(items=left_out)


def database(item):
    """Returns the database that a case is about, which is one of its parameters; None if none is."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((value for value in values if value in ("sqlite", "postgres")), None)


def chosen(item, databases):
    """Returns whether a case is the one that runs of those for several databases: for about half of the tests that with SQLite,
    for the others that with PostgreSQL, always the same.
    """
    if len(databases) < 2 or database(item) is None:
        return True
    return database(item) == ("sqlite", "postgres")[zlib.crc32(function(item.nodeid).encode()) % 2]


def function(nodeid):
    """Returns the id of a test's function below Tests/Clients, without the parameters of a case."""
    return nodeid.partition("[")[0].removeprefix("Tests/Clients/")


@functools.cache
def durations():
    """Returns the recorded seconds of the slow tests by function."""
    lines = SLOW.read_text().splitlines() if SLOW.exists() else []
    return {name: float(seconds) for seconds, name in (line.split() for line in lines)}


def duration(nodeid):
    """Returns how many seconds a test took when that was recorded; 0 for a quick one."""
    return durations().get(function(nodeid), 0)


class Recorder:
    """Writes the list of slow tests when all have run."""

    def __init__(self):
        self.seconds = collections.Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        cases = collections.defaultdict(list)
        for nodeid, seconds in self.seconds.items():
            cases[function(nodeid)].append(seconds)
        medians = {name: statistics.median(of) for name, of in cases.items()}
        slow = sorted(((seconds, name) for name, seconds in medians.items() if seconds > QUICK), reverse=True)
        SLOW.write_text("".join(f"{seconds:.1f} {name}\n" for seconds, name in slow))

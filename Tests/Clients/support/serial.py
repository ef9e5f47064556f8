"""A lock among the workers of pytest-xdist: tests run concurrently, except that a test marked `serial` runs alone."""

import contextlib
import fcntl
import os
import pathlib

FOLDER = pathlib.Path(__file__).parent


@contextlib.contextmanager
def turn(item):
    """Holds the lock while the block runs: exclusively for a test marked `serial`, otherwise shared. A shared lock is
    not granted while a serial test waits, so that it does not wait forever.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    # The files are locked, not changed: any two will do.
    with open(FOLDER / "__init__.py") as queue, open(FOLDER / "serial.py") as lock:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if item.get_closest_marker("serial") else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield

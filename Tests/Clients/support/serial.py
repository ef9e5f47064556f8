"""A lock among the workers of pytest-xdist: tests run concurrently, except that a test marked `serial` runs alone."""

import contextlib
import fcntl
import os
import pathlib
import tempfile

# The environment variable with the folder of the lock files, set by the process that starts the workers.
FOLDER = "CLIENT_TESTS_LOCKS"


def prepare(config):
    """Creates the folder for the duration of the test run, unless this process is a worker."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="apns-mock-test-locks-")
        config.add_cleanup(folder.cleanup)
        os.environ[FOLDER] = folder.name


@contextlib.contextmanager
def exclusive(item):
    """Holds the lock while the block runs: exclusively for a test marked `serial`, otherwise shared. A shared lock is
    not granted while a serial test waits, so that it does not wait forever.
    """
    folder = pathlib.Path(os.environ[FOLDER])
    with open(folder / "queue", "a") as queue, open(folder / "lock", "a") as lock:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if item.get_closest_marker("serial") else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield

"""The incidents of the page Incidents.md: the commands that reproduce them, run as a reader would, and the providers that
the tests need in addition to those in `naive.py` and `careful.py`.
"""

import datetime
import json
import re
import shlex
import subprocess

import yaml

from support.campaigns import SEED
from support.documents import PAGES, blocks
from support.drivers import PROGRAMS, tool
from support.naive import Hasty
from support.server import clean_environment
from support.wire import TIMEOUT

SERVE = "apns-mock serve"


def sections():
    """Returns the page's sections by the thread that they link to, as `owner/repository#number`, or by the repository whose
    source they are about.
    """
    found = {}
    for text in re.split(r"^#{2,3} ", (PAGES / "Incidents.md").read_text(), flags=re.MULTILINE)[1:]:
        if link := re.search(r"\[([^\]]+/[^\]]+)\]\(https://github\.com/([^/)]+/[^/)]+)(?:/issues/(\d+))?\)", text):
            repository, number = link[2], link[3]
            assert link[1] == (f"{repository}#{number}" if number else repository), link[0]
            found[link[1]] = text
    return found


def name_of_test(thread):
    """Returns the name of the test of a thread."""
    return "test_" + re.sub(r"\W+|_", "_", thread).lower()


class Incident:
    """The section of one thread. `start` starts its server, and `run` runs its commands, block by block."""

    def __init__(self, text, folder, paste, start):
        self.folder = folder
        self.server = None
        self.left = blocks(text, "sh")  # the blocks that have not been run
        self._last = None
        self._paste = paste
        self._start = start

    def start(self):
        """Starts the server with the flags of `apns-mock serve` at the end of the first block, or with none, and returns
        it.
        """
        flags = []
        if self.left and self.left[0].splitlines()[-1].startswith(SERVE):
            before, _, line = self.left.pop(0).rstrip("\n").rpartition("\n")
            self._paste(None, before, "sh", "-e")
            flags = shlex.split(line.removeprefix(SERVE))
        listeners, others = [], []
        while flags:
            if flags[0] == "--apns":
                listeners.append(re.sub(r":\d+", ":0", flags[1]))
                flags = flags[2:]
            else:
                others.append(flags.pop(0))
        where = {"apns": listeners} if listeners else {}
        self.server = self._start(
            "--seed", SEED, *others, certs=self.folder / "Certs", directory=self.folder, **where)
        return self.server

    def run(self):
        """Runs the next block and returns its output."""
        self._last = self.left.pop(0)
        return self.repeat()

    def repeat(self):
        """Runs the last block again."""
        return self._paste(self.server, self._last, "sh", "-e")

    def tokens(self, name):
        """Returns the device tokens of a fixture file that a block has written: {(device, push type): token}."""
        fixtures = yaml.safe_load((self.folder / name).read_text())
        return {
            (device["id"], kind): token
            for device in fixtures["devices"] for app in device["apps"] for kind, token in app["tokens"].items()
        }


class View:
    """A server as one provider sees it: with another listener, or another key."""

    def __init__(self, server, **different):
        self._server = server
        self.__dict__.update(different)

    def __getattr__(self, name):
        return getattr(self._server, name)


def listener(server, index):
    """Returns the server as a provider sees it that connects to another listener."""
    _, port = server.listeners[index]
    return View(server, port=port, url=f"https://localhost:{port}", authority=f"localhost:{port}")


def with_key(server, path, key_id, team_id):
    """Returns the server as a provider sees it that signs with another key."""
    key = {"key": path.read_text(), "key_id": key_id, "team_id": team_id}
    return View(server, token=lambda **changes: server.token(**{**key, **changes}))


def clock(server):
    """Returns a function that returns the server's time, in seconds since 1970."""

    def now():
        return datetime.datetime.fromisoformat(server.api("GET", "/clock")["now"].replace("Z", "+00:00")).timestamp()

    return now


def findings(server):
    """Returns the kinds of findings."""
    return {item["finding"] for item in server.api("GET", "/findings")["items"]}


def events(server, name):
    """Returns the details of the connections' events of one kind, oldest connection first."""
    items = sorted(server.api("GET", "/connections")["items"], key=lambda item: item["number"])
    return [event["detail"] for item in items for event in item["events"] if event["event"] == name]


class Stubborn(Hasty):
    """Sends a push again at once until it is accepted."""

    tries = 100_000


class NodeProvider:
    """A provider on Node's http2 with one session (`programs/session.mjs`), which several Node libraries resemble.

    `watches`: whether it watches for GOAWAY, and resends the pushes that were not processed; otherwise it replaces the
    session once that is destroyed. `catches`: whether it catches the error that opening a stream throws.
    """

    def __init__(self, server, *, watches=False, catches=True):
        self._process = subprocess.Popen(
            [tool("node"), str(PROGRAMS / "session.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=clean_environment(NO_PROXY="*"))
        headers = {"apns-topic": "com.example.app", "apns-push-type": "alert", "authorization": server.bearer}
        self._write({"url": server.url, "ca": server.ca, "headers": headers, "watches": watches, "catches": catches})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def _write(self, value):
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def send(self, device):
        """Starts a push."""
        self._write({"device": device})

    def result(self):
        """Waits for the next push to end; returns its device token, and its status or its error's code."""
        line = self._process.stdout.readline()
        assert line, f"the provider has ended: {self._process.stderr.read()}"
        ended = json.loads(line)
        return ended["device"], ended["result"]

    def push(self, device):
        """Sends a push and waits for its result."""
        self.send(device)
        ended, result = self.result()
        assert ended == device
        return result

    def crash(self):
        """Waits for the end of the process, which must be an error, and returns its message."""
        _, message = self._process.communicate(timeout=TIMEOUT)
        assert self._process.returncode != 0, "it has not failed"
        return message

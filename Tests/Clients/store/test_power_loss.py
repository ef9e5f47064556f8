"""A loss of power: `--durable answer` loses no acknowledged push, whatever the disk has of the writes that were not
synchronized. No power is cut; `recorded_writes.py` computes what a disk may contain at a moment.
"""

import contextlib
import pathlib
import random
import secrets
import select
import shutil
import sqlite3
import time
import uuid

import pytest

from support import stores
from support.durability import assert_each_is_there_once
from support.recorded_writes import TracedServer
from support.wire import connect, push_headers

pytestmark = pytest.mark.timeout(240)  # for slow machines; normally each takes seconds

BODY = b'{"aps":{"alert":"%s"}}' % (b"x" * 3_800)
MOST = 6_000  # pushes; a checkpoint begins when SQLite's log has 4,000 pages, after about 1,500 of these pushes
AFTER_CHECKPOINT = 300  # pushes
CONNECTIONS = 4
SEED = 20260611


def acknowledged_pushes(server, enough):
    """Pushes over some connections until `enough` is true for the number of pushes. Returns the apns-ids with the times
    at which the answers arrived.
    """
    with contextlib.ExitStack() as stack:
        wires = {wire.sock: wire for wire in (stack.enter_context(connect(server)) for _ in range(CONNECTIONS))}
        for wire in wires.values():
            assert wire.push(push_headers(server, secrets.token_hex(32)), BODY).status == 200
        answers, waiting, idle = {}, {}, list(wires)
        while True:
            while idle and not enough(len(answers) + len(waiting)):
                sock, apns_id = idle.pop(), str(uuid.uuid4())
                headers = push_headers(server, secrets.token_hex(32), apns_id=apns_id)
                waiting[sock] = wires[sock].open(headers, BODY), apns_id
            if not waiting:
                return answers
            readable, _, _ = select.select(list(waiting), [], [], 20)
            now = time.time_ns()
            assert readable, "no answer for 20 s"
            for sock in readable:
                (stream, apns_id), wire = waiting[sock], wires[sock]
                wire.drain()
                if wire.responses[stream].finished:
                    assert wire.responses[stream].status == 200
                    answers[apns_id] = now
                    del waiting[sock]
                    idle.append(sock)


class Load:
    """A recording, the acknowledged pushes with the times of their answers, and what a disk may contain."""

    def __init__(self, recording, answers, folder):
        self.recording, self.answers = recording, answers
        self.disk = folder / "disk" / "inbox.db"

    def acknowledged(self, moment):
        return {apns_id for apns_id, answered in self.answers.items() if answered <= moment}

    def lose_power(self, moment, kept):
        shutil.rmtree(self.disk.parent, ignore_errors=True)
        self.disk.parent.mkdir()
        for path, content in self.recording.files(moment, kept).items():
            (self.disk.parent / pathlib.Path(path).name).write_bytes(content)

    def stored(self):
        """Checks that the disk has a sound database in which each push is once; returns the apns-ids."""
        with contextlib.closing(sqlite3.connect(self.disk)) as db:
            db.execute("PRAGMA synchronous = OFF")
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'pushes'").fetchall():
                return set()
            found = [apns_id for apns_id, in db.execute("SELECT apns_id FROM pushes")]
        assert len(set(found)) == len(found)
        return set(found)

    def moments(self):
        """Returns moments after the first answer: any, right after answers, right before a synchronization of the log
        ends, during checkpoints, when the log begins again after one, and after the end of the server.
        """
        numbers, recording, answered = random.Random(SEED), self.recording, list(self.answers.values())
        first, last = answered[0], recording.changes[-1].end
        syncs = [end for end, _ in recording.syncs[recording.log] if end > first]
        chosen = [first, answered[-1], last, *numbers.sample(answered, 25)]
        chosen += [end - 1 for end in numbers.sample(syncs, min(15, len(syncs)))]
        chosen += [numbers.randrange(first, last) for _ in range(30)]
        chosen += [numbers.randrange(*checkpoint) for checkpoint in recording.checkpoints() for _ in range(8)]
        for again in recording.writes(recording.log, offset=0):
            chosen += [again.start, *(again.end + later for later in (0, 20_000, 100_000, 500_000))]
        return sorted(moment for moment in chosen if moment >= first)


@pytest.fixture(scope="module")
def load(binary, certs, tmp_path_factory):
    """A server with `--durable answer` from its start to its end. A checkpoint happened between the answers."""
    folder = tmp_path_factory.mktemp("load")
    server, last = TracedServer(binary, certs, folder, "answer"), MOST

    def enough(count):
        nonlocal last
        if last == MOST and server.path.stat().st_size > 100_000:  # before the first checkpoint it has one page
            last = count + AFTER_CHECKPOINT
        return count >= last

    try:
        answers = acknowledged_pushes(server, enough)
        return Load(server.recording(), answers, folder)
    finally:
        server.kill()


def test_the_recording_has_everything_that_the_server_wrote(load):
    paths = [path for path in pathlib.Path(load.recording.folder).iterdir() if path.suffix != ".lock"]
    assert load.recording.files(time.time_ns(), "all") == {str(path): path.read_bytes() for path in paths}


def test_moments_are_during_a_checkpoint_between_answers(load):
    (begin, end), *_ = load.recording.checkpoints()
    assert load.acknowledged(begin) and load.acknowledged(end) != set(load.answers)
    assert sum(begin < moment < end for moment in load.moments()) >= 8


@pytest.mark.parametrize("kept", ["nothing", "some", "all"])
def test_a_loss_of_power_loses_no_acknowledged_push(load, kept):
    moments, losses = load.moments(), []
    for moment in moments:
        load.lose_power(moment, kept)
        acknowledged = load.acknowledged(moment)
        if lost := acknowledged - load.stored():
            losses.append((len(lost), len(acknowledged)))
    assert not losses, "at {} of {} moments, in the worst case {} of {} pushes".format(
        len(losses), len(moments), *max(losses))


@pytest.mark.parametrize("kept", ["nothing", "some", "all"])
def test_a_server_continues_after_a_loss_of_power_during_a_checkpoint(load, kept, start):
    begin, end = load.recording.checkpoints()[0]
    moment = (begin + end) // 2
    load.lose_power(moment, kept)
    server = start(*stores.flags(load.disk, memory_records=8))
    assert server.request("GET", "/readyz").status == 200 and stores.status(server)["store"]["problem"] is None
    assert_each_is_there_once(server, load.disk, load.acknowledged(moment))
    assert set(stores.load(server, 10).values()) == {200}


def test_an_acknowledged_push_is_lost_without_the_synchronization_before_its_answer(load):
    """Otherwise the tests above would not notice an answer that does not wait for it."""
    lost, syncs = [], load.recording.syncs[load.recording.log]
    for apns_id, answered in random.Random(SEED).sample(list(load.answers.items()), 10):
        load.lose_power(max(end for end, _ in syncs if end <= answered) - 1, "nothing")
        lost.append(apns_id not in load.stored())
    assert any(lost)


def test_with_durable_soon_a_loss_of_power_loses_acknowledged_pushes(binary, certs, tmp_path):
    server = TracedServer(binary, certs, tmp_path, "soon")
    try:
        answers = acknowledged_pushes(server, lambda count: count >= 50)
        load = Load(server.recording(), answers, tmp_path)
    finally:
        server.kill()
    moment = max(answers.values())
    load.lose_power(moment, "nothing")
    assert load.acknowledged(moment) - load.stored()

"""Load on a server that is killed, and a check that no acknowledged push is missing and none is there twice."""

import collections
import secrets
import threading
import uuid

from hyperframe.frame import HeadersFrame

from support import stores
from support.server import wait_until
from support.wire import Closed, connect, push_headers

STREAMS = 20
MOST = 4_000  # pushes of a provider, so that a slow kill does not fill the disk
DELAYED = "fe" * 32  # the device of every tenth push, for a rule that delays


class Provider(threading.Thread):
    """Pushes on concurrent streams until the server has gone. `acknowledged`: the ids of its pushes answered with 200."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.acknowledged = set()
        self.other = collections.Counter()  # other statuses
        self.error = None

    def run(self):
        try:
            with connect(self.server) as wire:
                self.push_all(wire)
        except (Closed, OSError):
            pass  # the server has gone, as expected
        except Exception as error:  # raised in the test's thread
            self.error = error

    def push_all(self, wire):
        wire.settings()
        sent, streams, limit = 0, {}, 1  # more streams are allowed after the first response
        while sent < MOST:
            while len(streams) < limit and sent < MOST:
                sent += 1
                apns_id, device = str(uuid.uuid4()), DELAYED if sent % 10 == 0 else secrets.token_hex(32)
                streams[wire.open(push_headers(self.server, device, apns_id=apns_id), stores.BODY)] = apns_id
            frame = wire.receive()
            if isinstance(frame, HeadersFrame):
                limit = STREAMS
                apns_id, status = streams.pop(frame.stream_id), wire.responses[frame.stream_id].status
                if status == 200:
                    self.acknowledged.add(apns_id)
                else:
                    self.other[status] += 1


def acknowledged_under_load(server, count, end, providers=3):
    """Pushes with several providers; calls `end` after this many acknowledged pushes; returns all their ids."""
    threads = [Provider(server) for _ in range(providers)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: sum(len(one.acknowledged) for one in threads) >= count or any(one.error for one in threads),
                   "the load does not come up", 60)
        end()
    finally:
        server.process.kill()
        server.wait()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive() and thread.error is None and not thread.other, (thread.error, thread.other)
    return set().union(*(thread.acknowledged for thread in threads))


def assert_each_is_there_once(server, place, acknowledged):
    """The API and the view agree, and have each acknowledged push once."""
    records = [record["apns"]["id"] for record in stores.everything(server, fields="apns.id")]
    found = collections.Counter(records)
    wrong = {apns_id: found[apns_id] for apns_id in acknowledged if found[apns_id] != 1}
    assert not wrong, f"{len(wrong)} of {len(acknowledged)} acknowledged pushes are not there once"
    assert max(found.values()) == 1
    assert [row["apns_id"] for row in stores.pushes_view(place, "SELECT apns_id FROM pushes ORDER BY seq")] == records
    for apns_id in list(acknowledged)[:20]:
        assert [record["apns"]["id"] for record in server.pushes(apns_id=apns_id)] == [apns_id]

"""The provider that `apns-mock profile simulate` simulates, on real connections: see the comment on `Simulation`.

Each connection is a thread, because a TLS handshake may stall.
"""

import collections
import json
import select
import ssl
import threading
import time

from hyperframe.frame import GoAwayFrame, SettingsFrame

from support.wire import REFUSED_STREAM, TIMEOUT, Closed, Wire, client_context, push_headers, tls_socket

TOPIC = "com.example.app"

# What the provider sees of an action that prevents a response. Of the others it sees nothing.
SEEN = {
    "reset_stream": "reset", "lose_answer": "reset", "hang": "reset", "REFUSED_STREAM": "refused", "goaway": "goaway",
    "drain": "goaway", "reset_connection": "closed", "close": "closed", "silence": "closed", "stall": "not opened",
    "refuse": "not opened", "alert": "not opened",
}


def seen(outcomes, *, never=()):
    """Returns the outcomes of a simulation as the provider sees them: {"200": 50, "goaway": 10}; None for those without
    an end, which are the actions in `never`.
    """
    counted = collections.Counter()
    for outcome, count in outcomes.items():
        counted[None if outcome in never else SEEN.get(outcome, outcome)] += count
    return counted


class Lane(threading.Thread):
    """One of the provider's connections, which is opened again after it has ended."""

    def __init__(self, provider, pushes):
        super().__init__(daemon=True)
        self.provider = provider
        self.due = collections.deque(pushes)  # numbers, in order
        self.waiting = collections.deque()
        self.wire = None
        self.open = {}  # numbers by stream
        self.left = []  # connections with GOAWAY whose streams have not ended
        self.limit = 0

    def run(self):
        while not self.provider.is_done.is_set():
            self.take_due()
            self.send_waiting()
            self.receive(max(0, min(0.05, self.next_due() - time.monotonic())))

    def next_due(self):
        return self.provider.time_of(self.due[0]) if self.due else time.monotonic() + 1

    def take_due(self):
        while self.due and self.next_due() <= time.monotonic():
            self.provider.latest = max(self.provider.latest, time.monotonic() - self.next_due())
            self.waiting.append(self.due.popleft())
            self.provider.notify()

    def send_waiting(self):
        while self.waiting:
            if self.wire is None and not self.connect():
                self.provider.count(self.waiting.popleft(), "not opened")
                continue
            if len(self.open) >= self.limit:
                return
            number = self.waiting.popleft()
            try:
                stream = self.wire.open(*self.provider.request(number))
            except Closed:
                # The end of the connection arrived before the push was sent, so the push needs another one.
                self.waiting.appendleft(number)
                self.end(self.wire, self.open)
                continue
            self.open[stream] = number

    def connect(self):
        began = time.monotonic()
        try:
            self.wire = Wire(tls_socket(self.provider.server, context=self.provider.context))
            self.limit = self.wire.settings().settings.get(SettingsFrame.MAX_CONCURRENT_STREAMS, 100)
        except (Closed, OSError, ssl.SSLError):
            self.wire = None
            return False
        self.open = {}
        self.provider.latest = max(self.provider.latest, time.monotonic() - began)
        return True

    def receive(self, timeout):
        lines = [(wire, streams) for wire, streams in [(self.wire, self.open), *self.left] if wire]
        buffered = any(wire._buffer or wire.sock.pending() for wire, _ in lines)
        select.select([wire.sock for wire, _ in lines], [], [], 0 if buffered else timeout)
        for wire, streams in lines:
            self.read(wire, streams)

    def read(self, wire, streams):
        try:
            while wire.sock.fileno() >= 0 and wire._readable():
                frame = wire.receive()
                if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags and wire is self.wire:
                    self.limit = frame.settings.get(SettingsFrame.MAX_CONCURRENT_STREAMS, self.limit)
                self.resolve(wire, streams)
                if isinstance(frame, GoAwayFrame):
                    self.leave(wire, streams, frame.last_stream_id)
        except Closed:
            self.end(wire, streams)

    def resolve(self, wire, streams):
        for stream in [stream for stream in streams if wire.responses[stream].finished]:
            response = wire.responses[stream]
            if response.reset is not None:
                outcome = "refused" if response.reset == REFUSED_STREAM else "reset"
            else:
                reason = json.loads(response.body)["reason"] if response.body else None
                outcome = f"{response.status} {reason}" if reason else str(response.status)
            self.provider.count(streams.pop(stream), outcome)
        if not streams and any(wire is left for left, _ in self.left):
            self.forget(wire)

    def leave(self, wire, streams, last):
        for stream in [stream for stream in streams if stream > last]:
            self.provider.count(streams.pop(stream), "goaway")
        if wire is self.wire:
            self.lose(wire, "goaway")
            self.left.append((wire, streams))
        if not streams:
            self.forget(wire)

    def end(self, wire, streams):
        had_goaway = any(isinstance(frame, GoAwayFrame) for frame in wire.frames)
        for stream in list(streams):
            self.provider.count(streams.pop(stream), "goaway" if had_goaway else "closed")
        if wire is self.wire:
            self.lose(wire, "goaway" if had_goaway else "closed")
        self.forget(wire)

    def lose(self, wire, outcome):
        self.wire, self.open = None, {}
        if wire.next_stream == 1:
            self.provider.count(self.waiting.popleft(), outcome)

    def forget(self, wire):
        self.left = [entry for entry in self.left if entry[0] is not wire]
        wire.close()


class SimulatedProvider:
    """Sends `pushes` pushes over `connections` connections. `run` returns how often each outcome was seen."""

    def __init__(self, server, *, pushes, connections, devices=1000):
        self.server = server
        self.pushes = pushes
        self.connections = connections
        self.devices = devices
        self.context = client_context(server.ca)
        server.bearer  # signs the provider token, which would make the first push late
        self.outcomes = {}
        self.is_done = threading.Event()
        self.latest = 0  # seconds by which a push was due before it was sent, or for which a connection was opened
        self._changed = threading.Condition()

    def request(self, number):
        index = number // self.connections % self.devices or self.devices
        body = b'{"aps":{"alert":"Hello"},"number":%d}' % number
        return push_headers(self.server, f"{index:064x}", apns_topic=TOPIC, apns_priority="10"), body

    def time_of(self, number):
        return self.start + number / self.rate

    def count(self, number, outcome):
        with self._changed:
            self.outcomes[number] = outcome
            self._changed.notify_all()

    def notify(self):
        with self._changed:
            self._changed.notify_all()

    def run(self, *, rate, unanswered=0):
        """Sends the pushes at `rate` per second from now, and waits until all but `unanswered` of them have an outcome."""
        self.rate = rate
        self.start = time.monotonic()
        lanes = [Lane(self, range(lane, self.pushes, self.connections)) for lane in range(self.connections)]
        for lane in lanes:
            lane.start()
        with self._changed:
            self._changed.wait_for(
                lambda: len(self.outcomes) >= self.pushes - unanswered and not any(lane.due for lane in lanes),
                self.pushes / rate + TIMEOUT)
        self.is_done.set()
        for lane in lanes:
            lane.join()
        return collections.Counter(self.outcomes.get(number) for number in range(self.pushes))

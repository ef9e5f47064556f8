"""Pushes that h2load cannot send: with a provider token signed anew at intervals, with a connection for each push, or
through faults that end streams and connections. Header fields are encoded as h2load encodes them: token, path and
length literally each time, the other fields from the dynamic table.
"""

import functools
import ssl

import wire
from wire import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame

# Static table entries with and without their values (RFC 7541 appendix A), and the first byte of a response with
# :status 200.
POST, HTTPS, PATH, AUTHORITY, AUTHORIZATION, CONTENT_LENGTH = b"\x83", b"\x87", b"\x04", b"\x41", b"\x1f\x08", b"\x0f\x0d"
OK = 0x88
# Index of the newest dynamic table entry.
NEWEST = 62

text = functools.cache(wire.text)


class Provider(wire.Connection):
    """Sends pushes, at most `streams` at once and never more than the server's SETTINGS allow."""

    def __init__(self, context, port, push, expiration):
        self.streams = self.allowed = push.streams
        self.window, self.next_stream, self.unsent = 65535, 1, []
        # The number of each push without a response by its stream, and how each other one ended: "accepted",
        # "rejected" or "reset".
        self.open, self.ends = {}, {}
        fields = [(AUTHORITY, f"127.0.0.1:{port}")] + [
            (b"\x40" + text(name), value) for name, value in (
                ("apns-topic", push.topic), ("apns-push-type", "alert"), ("apns-priority", "10"),
                ("apns-expiration", expiration))]
        self.fields = b"".join(name + text(value) for name, value in fields)
        self.known = bytes(0x80 | NEWEST + age for age in reversed(range(len(fields))))
        super().__init__(context, port)

    def note(self, kind, flags, stream, content):
        if kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(content, "big")
        elif kind == SETTINGS and not flags & ACK:
            settings = {content[at:at + 2]: content[at + 2:at + 6] for at in range(0, len(content), 6)}
            limit = settings.get(wire.MAX_CONCURRENT_STREAMS.to_bytes(2, "big"))
            if limit is not None:
                self.allowed = min(self.streams, int.from_bytes(limit, "big"))
        elif stream in self.open and kind in (HEADERS, DATA, RST_STREAM):
            number = self.open[stream]
            if kind == RST_STREAM:
                self.ends[number] = "reset"
            elif kind == HEADERS:
                self.ends[number] = "accepted" if first_field(content) == OK else "rejected"
            if kind == RST_STREAM or flags & END_STREAM:
                del self.open[stream]

    def push(self, number, path, token, payload):
        """Sends a push as soon as the server allows it."""
        while len(self.open) >= self.allowed or self.window < len(payload):
            self.turn()
        # The token is never indexed, because it is a secret.
        block = (POST + HTTPS + PATH + text(path) + (self.fields if self.next_stream == 1 else self.known)
                 + AUTHORIZATION + text("bearer " + token) + CONTENT_LENGTH + text(str(len(payload))))
        self.unsent += (frame(HEADERS, END_HEADERS, self.next_stream, block),
                        frame(DATA, END_STREAM, self.next_stream, payload))
        self.open[self.next_stream] = number
        self.window, self.next_stream = self.window - len(payload), self.next_stream + 2

    def flush(self):
        if self.unsent:
            self.send(b"".join(self.unsent))
            self.unsent = []

    def turn(self):
        """Sends queued frames and processes received ones."""
        self.flush()
        self.receive()
        for _ in self.frames():
            pass

    def finish(self):
        while self.open:
            self.turn()


def first_field(block):
    """Returns the first byte of a header block after changes of the dynamic table's size (RFC 7541, section 6.3)."""
    at = 0
    while block[at] & 0xE0 == 0x20:
        if block[at] == 0x3F:
            at += 1
            while block[at] & 0x80:
                at += 1
        at += 1
    return block[at]


def connect(port, authority, push, expiration="0"):
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    return Provider(context, port, push, expiration)


def send(port, authority, push, tokens, payload, lives):
    """Sends a workload's pushes, and continues on a new connection when the server ends one.

    Parameter `tokens`: the provider tokens, each for the same share of the pushes.
    Parameter `lives`: how many pushes each connection sends, unless the server ends it earlier.
    Returns: how each push ended by its number, "lost" if its connection broke before its response; and the number of
    the first push of each connection.
    """
    number, total, ends, begins = 0, sum(lives), {}, []
    paths, lives = push.paths, list(reversed(lives))
    while number < total:
        left = lives.pop()
        begins.append(number)
        provider = connect(port, authority, push)
        try:
            while left:
                path, token = paths[number % len(paths)], tokens[number * len(tokens) // total]
                provider.push(number, path, token, payload)
                number, left = number + 1, left - 1
            provider.finish()
        except (OSError, ValueError):
            ends |= dict.fromkeys(provider.open.values(), "lost")
            if left:
                lives.append(left)
        finally:
            provider.close()
        ends |= provider.ends
    return ends, begins

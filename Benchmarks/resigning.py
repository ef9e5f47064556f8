"""Pushes on one connection whose provider token is signed anew at intervals, which h2load cannot do. Header fields
are encoded as h2load encodes them: token, path and length literally each time, the other fields from the dynamic
table.
"""

import ssl

import wire
from wire import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, text

# Static table entries with and without their values (RFC 7541 appendix A), and the first byte of a response with
# :status 200.
POST, HTTPS, PATH, AUTHORITY, AUTHORIZATION, CONTENT_LENGTH = b"\x83", b"\x87", b"\x04", b"\x41", b"\x1f\x08", b"\x0f\x0d"
OK = 0x88
# Index of the newest dynamic table entry.
NEWEST = 62


class ResigningProvider(wire.Connection):
    """Sends pushes, at most `streams` at once and never more than the server's SETTINGS allow."""

    def __init__(self, context, port, streams):
        self.streams, self.allowed, self.window = streams, streams, 65535
        self.open, self.next_stream, self.unsent = 0, 1, []
        super().__init__(context, port)

    def note(self, kind, flags, stream, content):
        if kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(content, "big")
        elif kind == SETTINGS and not flags & ACK:
            settings = {content[at:at + 2]: content[at + 2:at + 6] for at in range(0, len(content), 6)}
            limit = settings.get(wire.MAX_CONCURRENT_STREAMS.to_bytes(2, "big"))
            if limit is not None:
                self.allowed = min(self.streams, int.from_bytes(limit, "big"))
        elif kind == RST_STREAM or kind == HEADERS and content[0] != OK:
            raise ValueError("a push was not answered with 200")
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.open -= 1

    def push(self, path, fields, tokens, each, payload):
        """Sends `each` pushes with each of the tokens and returns when all are answered."""
        beginning = POST + HTTPS + PATH + text(path)
        end = CONTENT_LENGTH + text(str(len(payload)))
        indexed = b"".join(name + text(value) for name, value in fields)
        known = bytes(0x80 | NEWEST + age for age in reversed(range(len(fields))))
        for count, token in enumerate(tokens):
            # Never indexed, because the token is a secret.
            secret = AUTHORIZATION + text("bearer " + token)
            first = beginning + (known if count else indexed) + secret + end
            further = beginning + known + secret + end
            for index in range(each):
                while self.open >= self.allowed or self.window < len(payload):
                    self.turn()
                self.unsent += (
                    frame(HEADERS, END_HEADERS, self.next_stream, further if index else first),
                    frame(DATA, END_STREAM, self.next_stream, payload))
                self.open, self.window, self.next_stream = self.open + 1, self.window - len(payload), self.next_stream + 2
        while self.open:
            self.turn()

    def turn(self):
        """Sends queued frames and processes received ones."""
        if self.unsent:
            self.send(b"".join(self.unsent))
            self.unsent = []
        self.receive()
        for _ in self.frames():
            pass


def send(port, authority, push, tokens, payload):
    """Sends a workload's pushes on a new connection.

    Raises: ValueError if one was not answered with 200.
    """
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    provider = ResigningProvider(context, port, push.streams)
    try:
        fields = [(AUTHORITY, f"127.0.0.1:{port}")] + [
            (b"\x40" + text(name), value) for name, value in (
                ("apns-topic", push.topic), ("apns-push-type", "alert"), ("apns-priority", "10"),
                ("apns-expiration", "0"))]
        provider.push(push.paths[0], fields, tokens, push.each_token, payload)
    finally:
        provider.close()

"""The subset of HTTP/2 (RFC 9113) and HPACK (RFC 7541) needed for connections that h2load cannot make."""

import socket

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
MAX_CONCURRENT_STREAMS = 3
HEADER_SIZE = 9


class Connection:
    """A connection on which SETTINGS have been exchanged."""

    def __init__(self, context, port):
        self.buffer = b""
        plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.send(PREFACE + frame(SETTINGS, 0, 0, b""))
        self.await_frame(lambda kind, flags: kind == SETTINGS and not flags & ACK)
        self.await_frame(lambda kind, flags: kind == SETTINGS and flags & ACK)

    def send(self, bytes):
        self.socket.sendall(bytes)

    def close(self):
        self.socket.close()

    def await_frame(self, is_it):
        seen = set()
        while True:
            for kind, flags in self.frames():
                if is_it(kind, flags):
                    return
                seen.add(kind)
            self.receive(seen)

    def frames(self):
        """Yields the kind and flags of each complete frame received so far, and acknowledges SETTINGS."""
        while len(self.buffer) >= HEADER_SIZE:
            end = HEADER_SIZE + int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < end:
                return
            kind, flags, stream = self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big")
            content, self.buffer = self.buffer[HEADER_SIZE:end], self.buffer[end:]
            if kind == GOAWAY:
                raise ValueError("the server said GOAWAY")
            if kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK, 0, b""))
            self.note(kind, flags, stream, content)
            yield kind, flags

    def note(self, kind, flags, stream, content):
        """Called for every received frame; subclasses override it to keep what they need."""

    def receive(self, seen=()):
        more = self.socket.recv(65536)
        if not more:
            raise ValueError(f"the server closed it; frames seen: {sorted(seen)}")
        self.buffer += more


def frame(kind, flags, stream, body):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def text(value):
    """Returns an HPACK string (RFC 7541 section 5.2), Huffman-coded if that is shorter, as most libraries do."""
    plain, bits = value.encode(), "".join(HUFFMAN[character] for character in value)
    count = (len(bits) + 7) // 8
    if count >= len(plain):
        return length(len(plain), 0) + plain
    # The last byte is padded with ones.
    return length(count, 0x80) + int(bits + "1" * (count * 8 - len(bits)), 2).to_bytes(count, "big")


def length(size, mark):
    if size < 127:
        return bytes([mark | size])
    size, prefix = size - 127, bytes([mark | 127])
    while size >= 128:
        prefix, size = prefix + bytes([size % 128 + 128]), size // 128
    return prefix + bytes([size])


def codes():
    """Returns the Huffman codes of the characters that occur in requests (RFC 7541 appendix B). The code is
    canonical: the length of each character's code and the order of the characters determine it.
    """
    code, bits, found = 0, 5, {}
    for characters in ("012aceiost", " %-./3456789=A_bdfghlmnpru", ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz", "&*,;XZ"):
        for character in characters:
            found[character] = format(code, f"0{bits}b")
            code += 1
        code, bits = code << 1, bits + 1
    return found


HUFFMAN = codes()

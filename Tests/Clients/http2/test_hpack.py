"""RFC 7541: header blocks in every representation, and undecodable ones, which end the connection with
COMPRESSION_ERROR (RFC 9113, section 4.3).
"""

import hpack
import pytest

from support.conformance import (
    BODY, DATA, END_HEADERS, END_STREAM, HEADERS, HEADER_TABLE_SIZE, SERVED, SETTINGS, STREAM, WHOLE, Line, block,
    check, connection_error, frame, integer, setting, text,
)

BROKEN = connection_error("COMPRESSION_ERROR")


def indexed(index):
    return integer(index, 7, 0x80)


def size_update(size):
    return integer(size, 5, 0x20)


def huffman(value):
    """Returns a Huffman-coded string, padded with ones."""
    bits = "".join(format(code, f"0{length}b") for code, length in (CODES[byte] for byte in value.encode()))
    return raw_huffman(bits + "1" * (-len(bits) % 8))


def raw_huffman(bits):
    data = int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""
    return integer(len(data), 7, 0x80) + data


CODES = list(zip(hpack.huffman_constants.REQUEST_CODES, hpack.huffman_constants.REQUEST_CODES_LENGTH))
EOS = format(CODES[256][0], f"0{CODES[256][1]}b")
A = "00011"  # the Huffman code of "a"


def with_field(representation):
    """Returns a push with one more representation at the end of its header block."""
    return lambda line: line.request(more=representation) + frame(DATA, END_STREAM, STREAM, BODY)


def with_start(representation):
    """Returns a push with bytes before its header block."""
    return lambda line: frame(HEADERS, END_HEADERS, STREAM, representation + block(line.fields())) + frame(
        DATA, END_STREAM, STREAM, BODY)


NAME, VALUE = "apns-collapse-id", "remembered"
# The same field in each representation: first byte, then the name, then the value.
NOTATIONS = {
    "6.2.1 literal, indexed from now on": b"\x40" + text(NAME) + text(VALUE),
    "6.2.1 the same, name in Huffman code": b"\x40" + huffman(NAME) + text(VALUE),
    "6.2.1 the same, value in Huffman code": b"\x40" + text(NAME) + huffman(VALUE),
    "6.2.1 the same, both": b"\x40" + huffman(NAME) + huffman(VALUE),
    "6.2.2 literal, not indexed": b"\x00" + text(NAME) + text(VALUE),
    "6.2.2 the same, both in Huffman code": b"\x00" + huffman(NAME) + huffman(VALUE),
    "6.2.3 literal, never indexed": b"\x10" + text(NAME) + text(VALUE),
    "6.2.3 the same, both in Huffman code": b"\x10" + huffman(NAME) + huffman(VALUE),
    "6.1 indexed, from the table of names just said": b"\x40" + text("x-y") + text("z") + b"\x40" + text(NAME) + text(
        VALUE),
    "6.2.1 a name from the table": b"\x40" + text(NAME + "x") + text("") + b"\x00" + text(NAME) + text(VALUE),
    "5.1 a length in more bytes than it needs": b"\x00" + text(NAME) + b"\x0a" + VALUE.encode(),
}


@pytest.mark.parametrize("said", NOTATIONS.values(), ids=NOTATIONS.keys())
def test_a_field_is_the_same_in_each_notation(server, device, said):
    with Line(server, device) as line:
        line.write(with_field(said)(line))
        assert line.response(STREAM).status == 200
    assert [push["apns"]["collapse_id"] for push in server.pushes(device_token=device)] == [None, VALUE]


def remembering(*bodies):
    """Returns a function that sends several pushes on one connection, each with an addition to its header block."""
    def say(line):
        streams = range(STREAM, STREAM + 2 * len(bodies), 2)
        for stream, body in zip(streams, bodies):
            before, behind = body if isinstance(body, tuple) else (b"", body)
            line.write(frame(HEADERS, END_HEADERS, stream, before + block(line.fields()) + behind) + frame(
                DATA, END_STREAM, stream, BODY))
        assert {line.response(stream).status for stream in streams} == {200}
    return say


ENTRY = b"\x40" + text(NAME) + text(VALUE)
OTHER = b"\x40" + text("x-y") + text("z")
FILLER = b"\x40" + text("x-fill") + text("f" * 4000)  # 4038 bytes; with ENTRY the table of 4096 is full
TABLES = {
    "2.3.2 an entry is there for the next request": (remembering(ENTRY, indexed(62)), [VALUE, VALUE]),
    "2.3.2 its name is there with another value":
        (remembering(ENTRY, integer(62, 6, 0x40) + text("new"), indexed(62)), [VALUE, "new", "new"]),
    "2.3.3 the latest entry has the lowest number":
        (remembering(ENTRY, b"\x40" + text(NAME) + text("second"), indexed(63), indexed(62)),
         [VALUE, "second", VALUE, "second"]),
    "4.4 entries leave the table from the end":
        (remembering(OTHER, ENTRY, b"\x40" + text("x-fill") + text("f" * 3950), indexed(63)),
         [None, VALUE, None, VALUE]),
    "4.4 a name from an entry that leaves for its sake":
        (remembering(ENTRY, FILLER, integer(63, 6, 0x40) + text("c" * 64), indexed(62)),
         [VALUE, None, "c" * 64, "c" * 64]),
    "6.2.2 not indexed is not in the table":
        (remembering(ENTRY, b"\x00" + text("x-y") + text("z"), indexed(62)), [VALUE, None, VALUE]),
    "6.2.3 never indexed is not in the table":
        (remembering(ENTRY, b"\x10" + text("x-y") + text("z"), indexed(62)), [VALUE, None, VALUE]),
    "6.3 a smaller table keeps what fits": (remembering(ENTRY, (size_update(100), indexed(62))), [VALUE, VALUE]),
    "6.3 an empty table and a full one again":
        (remembering(ENTRY, (size_update(0) + size_update(4096), ENTRY), indexed(62)), [VALUE, VALUE, VALUE]),
    "6.3 the same size again": (remembering((size_update(4096), ENTRY), indexed(62)), [VALUE, VALUE]),
}


@pytest.mark.parametrize("say, collapse_ids", TABLES.values(), ids=TABLES.keys())
def test_the_table_of_header_fields(server, device, say, collapse_ids):
    with Line(server, device) as line:
        say(line)
    assert [push["apns"]["collapse_id"] for push in server.pushes(device_token=device)] == [None, *collapse_ids]


# RFC 7541, appendix A, without pseudo-headers and fields that the server interprets.
STATIC = {
    15: "accept-charset", 17: "accept-language", 18: "accept-ranges", 19: "accept", 20: "access-control-allow-origin",
    21: "age", 22: "allow", 24: "cache-control", 25: "content-disposition", 26: "content-encoding",
    27: "content-language", 29: "content-location", 30: "content-range", 31: "content-type", 32: "cookie", 33: "date",
    34: "etag", 35: "expect", 36: "expires", 37: "from", 39: "if-match", 40: "if-modified-since", 41: "if-none-match",
    42: "if-range", 43: "if-unmodified-since", 44: "last-modified", 45: "link", 46: "location", 47: "max-forwards",
    48: "proxy-authenticate", 49: "proxy-authorization", 50: "range", 51: "referer", 52: "refresh", 53: "retry-after",
    54: "server", 55: "set-cookie", 56: "strict-transport-security", 58: "user-agent", 59: "vary", 60: "via",
    61: "www-authenticate",
}


def test_the_static_table(server, device):
    with Line(server, device) as line:
        line.write(with_field(b"".join(map(indexed, STATIC)))(line))
        assert line.response(STREAM).status == 200
    headers = server.pushes(device_token=device)[1]["request"]["headers"]
    assert [pair for pair in headers if pair[0] in STATIC.values()] == [[name, ""] for name in STATIC.values()]


UNREADABLE = {
    "2.3.3 an index beyond the static table, the other is empty": with_field(indexed(62)),
    "2.3.3 an index far beyond": with_field(indexed(5000)),
    "2.3.3 an index of more than 32 bits": with_field(b"\xff" + b"\xff" * 4 + b"\x7f"),
    "2.3.3 an index beyond what the block itself added": with_field(ENTRY + indexed(63)),
    "2.3.3 a name beyond the tables": with_field(integer(70, 6, 0x40) + text("v")),
    "2.3.3 a name beyond the tables, not indexed": with_field(integer(70, 4) + text("v")),
    "4.2 a size update behind a field": with_field(size_update(0)),
    "4.2 a size update between fields":
        lambda line: frame(
            HEADERS, WHOLE, STREAM, block(line.fields()[:2]) + size_update(100) + block(line.fields()[2:])),
    "4.2 a size update above the limit": with_start(size_update(4097)),
    "4.2 a size update far above the limit": with_start(size_update(1 << 28)),
    "4.4 an entry that a full table has thrown out": with_field(OTHER + ENTRY + FILLER + indexed(64)),
    "4.4 an entry larger than the table empties it":
        with_field(ENTRY + b"\x40" + text("x-fill") + text("f" * 4096) + indexed(62)),
    "5.1 an integer without end": with_field(b"\xff" + b"\x80" * 30),
    "5.1 an integer of many bytes": with_field(b"\x00" + b"\x7f" + b"\xff" * 10 + b"\x01"),
    "5.1 an integer that breaks off": with_field(b"\xff"),
    "5.1 an integer that breaks off in its second byte": with_field(b"\xff\x80"),
    "5.2 a name longer than the block": with_field(b"\x00\x20x"),
    "5.2 a value longer than the block": with_field(b"\x00" + text("x-y") + b"\x20x"),
    "5.2 a name and no value": with_field(b"\x00" + text("x-y")),
    "5.2 a first byte and no name": with_field(b"\x00"),
    "5.2 Huffman: padding of eight ones": with_field(b"\x00" + text("x-y") + raw_huffman(A + "111" + "1" * 8)),
    "5.2 Huffman: padding of a byte alone": with_field(b"\x00" + text("x-y") + raw_huffman("1" * 8)),
    "5.2 Huffman: padding of zeros": with_field(b"\x00" + text("x-y") + raw_huffman(A + "000")),
    "5.2 Huffman: padding of a zero among ones": with_field(b"\x00" + text("x-y") + raw_huffman(A + "101")),
    "5.2 Huffman: EOS": with_field(b"\x00" + text("x-y") + raw_huffman(EOS + "11")),
    "5.2 Huffman: EOS in the middle": with_field(b"\x00" + text("x-y") + raw_huffman(A + EOS + A)),
    "5.2 Huffman: EOS in a name": with_field(b"\x00" + raw_huffman(A + EOS + A) + text("v")),
    "6.1 index 0": with_field(indexed(0)),
    "6.1 index 0 as the first": with_start(indexed(0)),
    "6.3 above the limit after a good one": with_start(size_update(0) + size_update(4097)),
}


@pytest.mark.parametrize("say", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_invalid_header_blocks_end_the_connection(server, device, say):
    check(server, device, say, BROKEN)


READABLE = {
    "4.1 a size update to nothing": with_start(size_update(0)),
    "4.2 two size updates": with_start(size_update(0) + size_update(4096)),
    "5.2 Huffman: the empty string": with_field(b"\x00" + text("x-y") + raw_huffman("")),
    "5.2 Huffman: padding of seven ones": with_field(b"\x00" + text("x-y") + huffman("aaaaa")),
    "5.2 Huffman: every byte there is": with_field(b"\x00" + text("x-y") + huffman(
        "." + "".join(map(chr, range(0x20, 0x7F))))),
    "6.2.1 an entry larger than the table": with_field(b"\x40" + text("x-fill") + text("f" * 4096)),
}


@pytest.mark.parametrize("say", READABLE.values(), ids=READABLE.keys())
def test_unusual_valid_header_blocks(server, device, say):
    check(server, device, say, SERVED)


# The server's own header blocks

def answers_with_table(line, size, count=4):
    """Returns responses that the server encodes for a table of this size; they are decoded with the same size."""
    line.write(frame(SETTINGS, 0, 0, setting((HEADER_TABLE_SIZE, size))))
    line.ping()
    line._decoder.max_allowed_table_size = size
    first = line.next_stream
    line.next_stream += 2 * count
    for stream in range(first, first + 2 * count, 2):
        line.write(line.push_on(stream, **({"apns_priority": "7"} if stream % 4 == 1 else {})))
        assert line.response(stream).status in (200, 400)


@pytest.mark.parametrize("sizes", [[0], [1], [100], [65536], [0, 4096], [4096, 0, 4096], [64, 1 << 24, 32]],
                         ids=lambda sizes: f"4.2 {sizes}")
def test_the_server_respects_the_clients_table_size(server, device, sizes):
    with Line(server, device) as line:
        for size in sizes:
            answers_with_table(line, size)
            assert line._decoder.header_table.maxsize <= size


def test_a_table_reduced_temporarily_is_emptied(server, device):
    """Section 4.2: the smallest size between two header blocks is signaled first, then the final one."""
    with Line(server, device) as line:
        line.write(frame(SETTINGS, 0, 0, setting((HEADER_TABLE_SIZE, 0))) + frame(
            SETTINGS, 0, 0, setting((HEADER_TABLE_SIZE, 4096))) + line.push_on())
        updates = line.until(lambda one: one.type == HEADERS).data[:1]
        assert updates == b"\x20", "the block begins with a size update to 0"

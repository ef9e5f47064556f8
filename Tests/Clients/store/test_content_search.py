"""Conditions on text, payload and header fields: a database that searches the contents first finds what the filter finds in
memory, whatever the bytes.
"""

import datetime
import json
import random

import pytest

from support import stores
from support.selection import ALL
from support.server import Server
from support.wire import connect, push_headers

#: Parts of payloads and of queries, which meet in many combinations.
PIECES = [
    "order", "Order", "ORDER", "r66", "66", "6", "-", "_", "%", "a%b", "a_b", "\\", "\\\\", '"', "'", "''", "/", "<b>", "für", "FÜR",
    "\N{PARTY POPPER}", "\N{KELVIN SIGN}", "\N{LATIN SMALL LETTER LONG S}", "\u0000", "\t", "\n", "\u007f", "\\u0041", "u0041", "A", "$1",
    "{", "}", "[", ":", "1e3", "3.0", "null", "true", " ", "  ", "*", "?", "E'x'", "\\x", "x5c", "--", ";", "\ufeff", "\u2028",
]
COUNT = 300
QUERIES = 400 if ALL else 100


def payload(rng):
    """Returns bytes: JSON written in one of several ways, or anything."""
    text = "".join(rng.choices(PIECES, k=rng.randint(1, 5)))
    value = {"aps": {"alert": text}, "id": "".join(rng.choices(PIECES, k=2)), "n": rng.choice([66, 3.0, None, True, "66"])}
    way = rng.randrange(6)
    if way == 0:
        return json.dumps(value).encode()
    if way == 1:
        return json.dumps(value, ensure_ascii=False).encode()
    if way == 2:  # each letter as an escape sequence
        return ('{"aps":{"alert":"' + "".join(f"\\u{ord(one):04x}" for one in text if ord(one) < 0xFFFF) + '"}}').encode()
    if way == 3:
        return json.dumps(value).encode().replace(b"/", b"\\/").replace(b"r", b"\\u0072", 1)
    if way == 4:
        return text.encode() + bytes(rng.choices([0, 0x5C, 0xFF, 0x80, 0xC3, 0x22, 0x41, 0x61, 0x36], k=6))
    return bytes(rng.choices([0, 0x5C, 0xFF, 0x36, 0x72, 0x52], k=rng.randint(1, 30)))


def query(rng):
    """Returns parameters of a list."""
    text = "".join(rng.choices(PIECES, k=rng.randint(1, 3)))
    quoted = json.dumps(text, ensure_ascii=False)
    return rng.choice([
        {"search": quoted}, {"search": text}, {"text": text}, {"text": f"{text}*"}, {"text": f"*{text}"}, {"q": f"!text:{quoted}"},
        {"payload./aps/alert": text}, {"payload./id": text}, {"payload./aps/alert": f"*{text}*"}, {"payload./n": "66"},
        {"q": f"!payload./id:{quoted}"}, {"header.x-odd": text}, {"header.x-odd": f"*{text}*"}, {"header.x-odd": "*"},
        {"text": [text, rng.choice(PIECES)]}, {"text": text, "payload./id": "*"}, {"search": f"{quoted} 66"},
    ])


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_search_in_a_database_finds_what_the_filter_finds(binary, certs, tmp_path, store):
    rng = random.Random(f"contents in {store}")
    filled, memory = None, None
    try:
        filled = Server(binary, certs, *stores.flags(stores.new_place(store, tmp_path), memory_records=1))
        with connect(filled) as wire:
            for _ in range(COUNT):
                odd = "".join(one for one in "".join(rng.choices(PIECES, k=2)) if one >= " " and one != "\u007f").strip().encode()
                assert wire.push(push_headers(filled, "ab" * 32, x_odd=odd), payload(rng)).status in (200, 400)
        export = filled.request("GET", "/api/v1/export").body
        memory = Server(binary, certs)
        assert memory.api("POST", "/import", export)["imported"] == COUNT
        found = 0
        for _ in range(QUERIES):
            parameters = query(rng)
            pages = []
            for server in (filled, memory):
                response = server.request("GET", "/api/v1/pushes/seqs", **parameters)
                pages.append((response.status, response.json.get("seqs", [])))
            assert pages[0] == pages[1], parameters
            found += 0 < len(pages[1][1]) < COUNT
        assert found > QUERIES // 5, "most queries select nothing"
    finally:
        for server in (filled, memory):
            if server is not None:
                server.kill()


def at(milliseconds):
    """Returns the text of a time after the beginning of a year."""
    time = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(milliseconds=milliseconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_range_of_times_in_a_database_finds_what_the_filter_finds(start, place):
    """Also if the clock was set back for a while, and if some pushes are far older."""
    rng = random.Random("times")
    stored, memory = start(*stores.flags(place, memory_records=1)), start()
    stores.load(memory, 1, body=b"{}")
    (record,) = map(json.loads, memory.request("GET", "/api/v1/export").body.splitlines())
    memory.api("POST", "/reset")
    times = [number * 1000 - (2_500_000 if 1250 <= number < 2250 else 0) for number in range(2500)]
    for number in rng.sample(range(2500), 10):
        times[number] = rng.randrange(2_500_000)
    lines = [json.dumps({**record, "seq": seq, "received_at": at(time), "finished_at": at(time)}) for seq, time in enumerate(times, 1)]
    for server in (stored, memory):
        for start_of_part in range(0, len(lines), 500):
            imported = server.request("POST", "/api/v1/import", "\n".join(lines[start_of_part:start_of_part + 500]).encode(), headers={
                "content-type": "application/x-ndjson"})
            assert imported.status == 200, imported.body
    base = {server: server.pushes(limit=1)[0]["seq"] for server in (stored, memory)}
    for _ in range(12):
        first, last = sorted(rng.choices(range(-1_500_000, 3_000_000), k=2))
        query = {"since": at(first), "until": at(last), "order": rng.choice(["asc", "desc"]), "limit": rng.choice([1, 20])}
        query.pop(rng.choice(["since", "until", "neither"]), None)
        found = {server: server.api("GET", "/pushes", **query) for server in (stored, memory)}
        seqs = [[one["seq"] - base[server] for one in found[server]["items"]] for server in (stored, memory)]
        assert seqs[0] == seqs[1], query
        assert found[stored]["matched"] in (None, found[memory]["matched"]), query

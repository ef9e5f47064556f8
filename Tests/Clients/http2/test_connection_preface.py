"""RFC 9113, section 3.4: the connection preface. HTTP/1.1 and garbage instead: test_wrong_protocols.py."""

import pytest

from support.conformance import (
    ACK, CONTINUATION, DATA, ENABLE_PUSH, END_HEADERS, END_STREAM, GOAWAY, HEADERS, HEADER_TABLE_SIZE,
    INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE, PING, PRIORITY, PUSH_PROMISE,
    RST_STREAM, SERVED, SETTINGS, UNKNOWN, WHOLE, WINDOW_UPDATE, check, connection_error, field, frame, number,
    priority, setting, table,
)
from support.wire import PREFACE

NO_PREFACE = {
    "3.4 words that are no preface": b"INVALID CONNECTION PREFACE\r\n\r\n",
    "3.4 the last byte is another": PREFACE[:-1] + b"\r",
    "3.4 the first byte is another": b"Q" + PREFACE[1:],
    "3.4 another version": PREFACE.replace(b"2.0", b"2.1"),
    "3.4 small letters": PREFACE.lower(),
    "3.4 line feeds alone": PREFACE.replace(b"\r\n", b"\n").ljust(24, b"\n"),
    "3.4 SETTINGS without it": frame(SETTINGS, payload=setting((MAX_FRAME_SIZE, 16384)) * 4),
}


@pytest.mark.parametrize("words", NO_PREFACE.values(), ids=NO_PREFACE.keys())
def test_an_invalid_preface_is_a_protocol_error(server, device, words):
    check(server, device, lambda line: words, connection_error("PROTOCOL_ERROR"), preface=False)


FIRST_FRAMES = {
    "3.4 the preface again": PREFACE,
    "3.4 SETTINGS with ACK": frame(SETTINGS, ACK),
    "3.4 DATA": frame(DATA, END_STREAM, 1, b"{}"),
    "3.4 HEADERS": frame(HEADERS, WHOLE, 1, field(":method", "GET")),
    "3.4 PRIORITY": frame(PRIORITY, 0, 1, priority(0)),
    "3.4 RST_STREAM": frame(RST_STREAM, 0, 1, number(0)),
    "3.4 PUSH_PROMISE": frame(PUSH_PROMISE, END_HEADERS, 1, number(2)),
    "3.4 PING": frame(PING, payload=b"12345678"),
    "3.4 GOAWAY": frame(GOAWAY, payload=number(0, 8)),
    "3.4 WINDOW_UPDATE": frame(WINDOW_UPDATE, payload=number(1)),
    "3.4 CONTINUATION": frame(CONTINUATION, END_HEADERS, 1),
    "3.4 an unknown frame": frame(UNKNOWN, payload=b"x"),
}


@pytest.mark.parametrize("first", FIRST_FRAMES.values(), ids=FIRST_FRAMES.keys())
def test_the_first_frame_must_be_settings(server, device, first):
    """A second preface parses as a frame of 5 263 945 bytes, so FRAME_SIZE_ERROR is correct as well."""
    right = connection_error("PROTOCOL_ERROR")
    if first == PREFACE:
        right |= connection_error("FRAME_SIZE_ERROR")
    check(server, device, lambda line: PREFACE + first, right, preface=False)


GOOD_STARTS = {
    "3.4 empty SETTINGS, and a push without waiting":
        (lambda line: PREFACE + frame(SETTINGS) + line.push_on(), SERVED),
    "3.4 all known settings":
        (lambda line: PREFACE + frame(SETTINGS, payload=setting(
            (HEADER_TABLE_SIZE, 65536), (ENABLE_PUSH, 0), (MAX_CONCURRENT_STREAMS, 100),
            (INITIAL_WINDOW_SIZE, 1 << 20), (MAX_FRAME_SIZE, 32768), (MAX_HEADER_LIST_SIZE, 1 << 20)))
         + line.push_on(), SERVED),
    "3.4 WINDOW_UPDATE right behind SETTINGS, as most libraries say":
        (lambda line: PREFACE + frame(SETTINGS) + frame(WINDOW_UPDATE, payload=number(1 << 24)) + line.push_on(),
         SERVED),
    "3.4 PRIORITY for streams to come, as nghttp and old browsers say":
        (lambda line: PREFACE + frame(SETTINGS) + b"".join(
            frame(PRIORITY, 0, stream, priority(0, 200)) for stream in (5, 7, 9, 11)) + line.push_on(), SERVED),
}


@table(GOOD_STARTS)
def test_valid_prefaces(server, device, say, right):
    check(server, device, say, right, preface=False)

"""RFC 9113, section 8: the structure of a request. A malformed one is a stream error (section 8.1.1), not a
connection error.

Capital letters, a wrong content length and trailers, as the inbox shows them: test_hostile_requests.py.
"""

import pytest

from support.conformance import (
    BODY, DATA, END_HEADERS, END_STREAM, HEADERS, MALFORMED, PADDED, RST_STREAM, SERVED, STREAM, WHOLE, Line,
    answered, block, check, code_name, field, frame, padded, stream_error, table,
)


def malformed(*extra, body=BODY, **changes):
    return (lambda line: line.push_on(body=body, extra=extra, **changes)), MALFORMED


def good(*extra, right=SERVED, **changes):
    return (lambda line: line.push_on(extra=extra, **changes)), right


def listed(*fields):
    """Returns a request with these header fields and no others."""
    return lambda line: frame(HEADERS, WHOLE, STREAM, block(fields))


def malformed_first(name, value):
    """Returns a case with a pseudo-header before all others."""
    return (lambda line: frame(HEADERS, WHOLE, STREAM, block([(name, value), *line.fields()]))), MALFORMED


def without(line, *names):
    return [pair for pair in line.fields() if pair[0] not in names]


FRAMING = {
    "8.1 HEADERS and DATA": (lambda line: line.push_on(), SERVED),
    "8.1 trailers": (lambda line: line.request() + frame(DATA, 0, STREAM, BODY) + frame(
        HEADERS, WHOLE, STREAM, field("x-y", "z")), SERVED),
    "8.1 trailers without a body": (lambda line: line.request() + frame(
        HEADERS, WHOLE, STREAM, field("x-y", "z")), answered(400)),
    "8.1 empty trailers": (lambda line: line.request() + frame(DATA, 0, STREAM, BODY) + frame(
        HEADERS, WHOLE, STREAM), SERVED),
    "8.1 a second HEADERS without END_STREAM": (lambda line: line.request() + line.request(), MALFORMED),
    "8.1 a second HEADERS without END_STREAM, between DATA":
        (lambda line: line.request() + frame(DATA, 0, STREAM, BODY) + frame(
            HEADERS, END_HEADERS, STREAM, field("x-y", "z")) + frame(DATA, END_STREAM, STREAM, b"{}"), MALFORMED),
    "8.1 DATA behind trailers":
        (lambda line: line.request() + frame(DATA, 0, STREAM, BODY) + frame(
            HEADERS, WHOLE, STREAM, field("x-y", "z")) + frame(DATA, END_STREAM, STREAM, b"}"),
         stream_error("STREAM_CLOSED")),
    "8.1 trailers with a pseudo-header":
        (lambda line: line.request() + frame(HEADERS, WHOLE, STREAM, field(":path", "/")), MALFORMED),
    "8.1 trailers with :status":
        (lambda line: line.request() + frame(HEADERS, WHOLE, STREAM, field(":status", "200")), MALFORMED),
    "8.1 trailers with a capital letter":
        (lambda line: line.request() + frame(HEADERS, WHOLE, STREAM, field("X-Y", "z")), MALFORMED),
    "8.2.1 trailers with a control character, where APNs checks headers":
        (lambda line: line.request() + frame(DATA, 0, STREAM, BODY) + frame(
            HEADERS, WHOLE, STREAM, field("apns-topic", "a\0")), MALFORMED),
    "8.1 trailers with a connection header":
        (lambda line: line.request() + frame(HEADERS, WHOLE, STREAM, field("connection", "close")), MALFORMED),
}


@table(FRAMING)
def test_framing(server, device, say, right):
    check(server, device, say, right)


# Forbidden names. RFC 9113 lists the bytes up to 0x20, capitals, 0x7f and above, and a colon after the first
# character.
NAMES = ["X", "xY", "x y", "x\t", "x\0", "x\r", "x\n", " x", "x ", "x\x7f", b"x\x80", b"x\xff", "x:", "x:y", ""]
FIELDS = {
    **{f"8.2.1 the name {name!r}": malformed((name, "v")) for name in NAMES},
    "8.2.1 names of all other characters":
        good(("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz", "v")),
    "8.2.1 values of all other bytes":
        good(("x-y", bytes(range(0x21, 0x7F)) + b" \t" + bytes(range(0x80, 0x100)) + b".")),
    "8.2.1 an empty value": good(("x-y", "")),
    "8.2.2 connection": malformed(("connection", "keep-alive")),
    "8.2.2 proxy-connection": malformed(("proxy-connection", "keep-alive")),
    "8.2.2 keep-alive": malformed(("keep-alive", "timeout=5")),
    "8.2.2 transfer-encoding": malformed(("transfer-encoding", "chunked")),
    "8.2.2 upgrade": malformed(("upgrade", "h2c")),
    "8.2.2 te: gzip": malformed(("te", "gzip")),
    "8.2.2 te: trailers, gzip": malformed(("te", "trailers, gzip")),
    "8.2.2 te, empty": malformed(("te", "")),
    "8.2.2 te: trailers": good(("te", "trailers")),
    "8.2.2 te: Trailers": good(("te", "Trailers")),
    # APNs responds to a duplicate header with 400 DuplicateHeaders; that is a response, not a stream error.
    "8.2.3 cookies in two fields": good(("cookie", "a=b"), ("cookie", "c=d"), right=SERVED | answered(400)),
}


@table(FIELDS)
def test_fields(server, device, say, right):
    check(server, device, say, right)


FORBIDDEN = [b"a\0b", b"a\nb", b"a\rb", b"\0", b"a\r\nx: y"]
FRAYED = [b" a", b"a ", b"\ta", b"a\t"]


@pytest.mark.parametrize("value", FORBIDDEN + FRAYED, ids=lambda value: f"8.2.1 the value {value!r}")
@pytest.mark.parametrize("name, right", [
    ("apns-topic", answered(400)), ("apns-push-type", answered(400)), ("apns-id", answered(400)),
    ("apns-priority", answered(400)), ("apns-expiration", answered(400)), ("authorization", answered(403)),
])
def test_a_forbidden_value_in_a_checked_header_is_rejected_by_the_rules(server, device, name, right, value):
    """Malformed by section 8.2.1, which recommends a 400 response; a stream reset would not show the reason."""
    if name == "authorization":
        value = server.bearer.encode() + value
    changes = {name.replace("-", "_"): value}
    check(server, device, lambda line: line.push_on(**changes), right)


@pytest.mark.parametrize("value", FORBIDDEN + FRAYED, ids=lambda value: f"8.2.1 the value {value!r}")
@pytest.mark.parametrize("name", ["x-y", "apns-collapse-id", "apns-request-id"])
def test_a_forbidden_value_in_an_unchecked_header_is_malformed(server, device, name, value):
    check(server, device, lambda line: line.push_on(extra=[(name, value)]), MALFORMED)


REQUEST = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/3/device/00")]
CONTROL_DATA = {
    **{f"8.3.1 without {name}": ((lambda line, name=name: frame(
        HEADERS, WHOLE, STREAM, block(without(line, name)))), MALFORMED) for name in (":method", ":scheme", ":path")},
    "8.3.1 without all": (listed(("x-y", "z")), MALFORMED),
    "8.3.1 host in place of :authority": good(("host", "localhost"), authority_=None),
    "8.3.1 host in addition to :authority": (
        lambda line: line.push_on(extra=[("host", line.server.authority)]), SERVED),
    "8.3.1 an :authority with a user": malformed(authority_="me@localhost"),
    # A client must specify its target, but the RFC does not call a request without it malformed.
    "8.3.1 neither host nor :authority": good(authority_=None, right=SERVED | MALFORMED),
    # A server SHOULD treat it as malformed.
    "8.3.1 another host than :authority": good(("host", "elsewhere.example"), right=SERVED | MALFORMED),
    "8.3.1 a name and a password in :authority": good(authority_="user:secret@localhost", right=SERVED | MALFORMED),
    "8.3.1 an empty :path": malformed(path_=""),
    "8.3.1 an empty :method": malformed(method_=""),
    "8.3.1 an empty :scheme": malformed(scheme_=""),
    "8.3.1 a :path without a slash": malformed(path_="3/device/00"),
    "8.3.1 a :path with a control character":
        good(path_="/3/device/0\x01", right=MALFORMED | answered(400)),
    "8.3.1 a :path with a line feed": good(path_="/3/device/0\n", right=MALFORMED | answered(400)),
    "8.3.1 a :method with a space": malformed(method_="PO ST"),
    "8.3.1 a :scheme with a space": malformed(scheme_="ht tps"),
    "8.3.1 an :authority with a space": malformed(authority_="local host"),
    "8.3.1 :path *": good(path_="*", right=MALFORMED | answered(400, 404)),
    "8.3.1 OPTIONS *": good(path_="*", method_="OPTIONS", right=answered(400, 404, 405)),
    "8.3.1 the scheme http": good(scheme_="http", right=SERVED | MALFORMED | answered(400)),
    "8.3.1 an unknown scheme": good(scheme_="gopher", right=SERVED | MALFORMED | answered(400)),
    **{f"8.3.1 {name} twice": ((lambda line, pair=(name, value): frame(
        HEADERS, WHOLE, STREAM, block([pair, *line.fields()]))), MALFORMED) for name, value in REQUEST},
    **{f"8.3 {name} behind other fields": ((lambda line, pair=(name, value): frame(
        HEADERS, WHOLE, STREAM, block([*without(line, pair[0]), pair]))), MALFORMED) for name, value in REQUEST},
    "8.3 an unknown pseudo-header": malformed_first(":unknown", "1"),
    "8.3 a pseudo-header of a response": malformed_first(":status", "200"),
    "8.3 the empty pseudo-header": malformed_first(":", "1"),
    "8.3 a pseudo-header in capitals": malformed_first(":METHOD", "POST"),
    "8.3.1 RFC 8441: :protocol, which was not offered": malformed_first(":protocol", "websocket"),
    "8.5 CONNECT":
        (listed((":method", "CONNECT"), (":authority", "localhost:443")), MALFORMED | answered(400, 404, 405)),
    "8.5 CONNECT with :path and :scheme":
        (listed((":method", "CONNECT"), *REQUEST[1:]), MALFORMED),
    "8.5 CONNECT without :authority": (listed((":method", "CONNECT")), MALFORMED),
    **{f"8.1 {method}": good(method_=method, right=answered(405))
       for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW")},
}


@table(CONTROL_DATA)
def test_control_data(server, device, say, right):
    check(server, device, say, right)


@pytest.mark.parametrize("extra, why", [
    ([("connection", "close")], "it has a field of HTTP/1 connections"),
    ([("X-Y", "z")], "the name of a field has a capital letter"),
    ([("content-length", "1")], "content-length is not the length of its body"),
])
def test_the_log_explains_malformed_requests(start, device, extra, why):
    server = start("--log-level", "notice")
    check(server, device, lambda line: line.push_on(extra=extra), MALFORMED)
    assert server.logged(f"stream {STREAM} reset with PROTOCOL_ERROR: its request is not valid HTTP/2: {why}")


def test_the_response_to_head_has_no_body(server, device):
    """RFC 9110, section 9.3.2."""
    with Line(server, device) as line:
        line.write(line.request(flags=WHOLE, method_="HEAD"))
        response = line.response(STREAM)
        assert (response.status, response.data, response.ended_by) == (405, [], "HEADERS")


def length(value, *bodies):
    """Returns a push with this content-length, and with these bodies."""
    value = str(value)

    def say(line):
        head = line.request(extra=[("content-length", value)], flags=END_HEADERS if bodies else WHOLE)
        frames = [frame(DATA, 0, STREAM, body) for body in bodies]
        if frames:
            frames[-1] = frame(DATA, END_STREAM, STREAM, bodies[-1])
        return head + b"".join(frames)
    return say


LENGTHS = {
    "8.1.1 content-length, right": (length(len(BODY), BODY), SERVED),
    "8.1.1 content-length, right in pieces": (length(len(BODY), BODY[:7], b"", BODY[7:]), SERVED),
    "8.1.1 content-length, right with an empty end": (length(len(BODY), BODY, b""), SERVED),
    "8.1.1 content-length, right with padding":
        (lambda line: line.request(extra=[("content-length", str(len(BODY)))]) + frame(
            DATA, PADDED | END_STREAM, STREAM, padded(BODY, 50)), SERVED),
    "8.1.1 content-length 0 and no body": (length("0"), answered(400)),
    "8.1.1 content-length 0 and a body": (length("0", BODY), MALFORMED),
    "8.1.1 content-length and no body": (length("5"), MALFORMED),
    "8.1.1 content-length and an empty body": (length("5", b""), MALFORMED),
    "8.1.1 content-length one too small": (length(len(BODY) - 1, BODY), MALFORMED),
    "8.1.1 content-length one too large": (length(len(BODY) + 1, BODY), MALFORMED),
    "8.1.1 content-length too small for the sum": (length(len(BODY), BODY, BODY), MALFORMED),
    "8.1.1 content-length too large for the sum": (length(3 * len(BODY), BODY, BODY), MALFORMED),
    "8.1.1 content-length too large, then trailers":
        (lambda line: line.request(extra=[("content-length", "99")]) + frame(DATA, 0, STREAM, BODY) + frame(
            HEADERS, WHOLE, STREAM, field("x-y", "z")), MALFORMED),
    **{f"8.1.1 content-length {value!r}": (length(value, BODY), MALFORMED)
       for value in ("", "x", "-1", "+25", "25x", "0x19", "25, 25", "25.0", "99999999999999999999", " 25\0")},
    "8.1.1 content-length twice":
        (lambda line: line.push_on(extra=[("content-length", str(len(BODY)))] * 2), MALFORMED | answered(400)),
    "8.1.1 content-length twice, and different":
        (lambda line: line.push_on(extra=[("content-length", str(len(BODY))), ("content-length", "1")]), MALFORMED),
}


@table(LENGTHS)
def test_content_length(server, device, say, right):
    check(server, device, say, right)


def test_a_malformed_request_is_an_error_before_its_body(server, device):
    with Line(server, device) as line:
        line.write(line.request(extra=[("connection", "close")]))
        reset = line.until(lambda one: one.type == RST_STREAM)
        assert (reset.stream_id, code_name(reset.error_code)) == (STREAM, "PROTOCOL_ERROR")
    assert [push["outcome"] for push in server.pushes(device_token=device)] == ["accepted", "malformed"]


def test_expect_100_continue_does_not_delay_others(server, device):
    """Section 8.1: an interim response may be sent, the final one must be."""
    with Line(server, device) as line:
        line.write(line.push_on(extra=[("expect", "100-continue")]))
        assert line.response(STREAM).status == 200

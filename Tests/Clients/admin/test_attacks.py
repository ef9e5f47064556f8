"""Attacks on the admin listener: every documented route, request smuggling, disguised paths, foreign host names,
oversized messages. Each is rejected with an explanation, changes nothing, and the next request is answered.
"""

import contextlib
import json
import re
import socket
import time

import pytest

from support.wire import connect, push_headers, read_until_closed

EVIL = "evil.example"
JSON = b"content-type: application/json\r\n"
LOCAL = b"host: localhost\r\n"
CLOSE = b"connection: close\r\n"
METHODS = ["get", "put", "post", "patch", "delete"]
STREAMS = ["/api/v1/events", "/api/v1/export", "/api/v1/devices/notifications/stream"]
# Requests that the API description does not list.
UNLISTED = [("GET", "/page/modules/main.js", False), ("GET", "/page/nothing", False), ("GET", "/api/v1/nothing", True),
            ("PATCH", "/api/v1/clock", True)]


def raw(server, data, timeout=10):
    """Returns everything received until the server closes; raises an error if it does not close."""
    with socket.create_connection((server.admin_host, server.admin_port), timeout=timeout) as sock:
        with contextlib.suppress(ConnectionError):  # it may close before it has read everything
            sock.sendall(data)
        return read_until_closed(sock)[0]


def heads(response):
    """Returns the status of every response in the received bytes."""
    return [int(status) for status in re.findall(rb"(?:^|\r\n\r\n.*?)HTTP/1\.1 (\d{3}) [A-Z]", response, re.DOTALL)]


def problem(response):
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head.lower(), response
    return json.loads(body)


@pytest.fixture(scope="module")
def operations(server):
    """(method, path with a value for each parameter, whether the token is required)"""
    paths = server.request("GET", "/openapi.json").json["paths"]
    return UNLISTED + [(method.upper(), re.sub(r"\{\w+\}", "1", path), "security" not in item[method])
                       for path, item in paths.items() for method in METHODS if method in item]


@pytest.fixture
def full(server, device):
    """A server with a push that must still be in the inbox after the test."""
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    yield server
    assert len(server.pushes(device_token=device)) == 1
    assert server.request("GET", "/livez").status == 200


# Every route


def test_every_route_rejects_foreign_host_names(full, operations):
    for method, path, _ in operations:
        if path in ("/livez", "/readyz"):
            continue
        response = full.request(method, path, headers={"host": EVIL})
        assert response.status == 403, (method, path)
        assert EVIL in response.json["detail"] and "--allow-host" in response.json["hint"]


PUBLIC = ["/", "/ca.pem", "/ca-next.pem", "/livez", "/readyz"]  # everybody may read these, and the files below /page/


def is_public(method, path):
    return method == "GET" and (path in PUBLIC or path.startswith("/page/"))


def test_no_route_serves_a_foreign_page(full, operations):
    for method, path, _ in operations:
        if is_public(method, path) or path in ("/livez", "/readyz"):
            continue
        for origin in (f"https://{EVIL}", "null", "http://localhost:1", "http://127.0.0.1"):
            response = full.request(method, path, headers={"origin": origin})
            assert response.status == 403, (method, path, origin)
            assert origin in response.json["detail"]
        for site in ("cross-site", "same-site"):
            response = full.request(method, path, headers={"sec-fetch-site": site})
            assert response.status == 403, (method, path, site)
            assert site in response.json["detail"]


def escaped(path, position):
    """Returns a path with the character at a position percent-encoded."""
    return f"{path[:position]}%{ord(path[position]):02x}{path[position + 1:]}"


def spellings(path):
    """Returns other spellings of a path, some of which are equivalent to it."""
    name = path.rindex("/") + 1
    return [
        f"/{path}", f"//{path}", path.replace("/", "//"), f"{path}/", f"{path}//", f"{path}/.", f"/.{path}", f"/x/..{path}",
        f"/%2e{path}", f"/x/%2E%2e{path}", f"/page/..{path}", f"/page/%2e%2e{path}", f"/livez/..{path}", f"/ca.pem/..{path}",
        f"{path}/../{path[name:]}", f"/..{path}", f"/page/../page/..{path}", escaped(path, 1), escaped(path, name),
        escaped(path, len(path) - 1), path.replace("/", "%2f"), path.replace("/", "/%2f"), path.upper(), path.title(),
        path[1:], path.replace("/", "\\"), f"\\{path}", f"{path};x", f"/;{path}", f"{path}%00", f"{path}#x", f"{path}?",
        f"http://localhost{path}", f"http://localhost/{path}", f"HTTP://localhost//{path}", f"localhost{path}",
    ]


@pytest.mark.parametrize("field", [f"origin: https://{EVIL}", "sec-fetch-site: cross-site"])
def test_no_spelling_of_a_route_serves_a_foreign_page(full, operations, field):
    """Neither the inbox nor the time that a wait takes is visible to a page of another origin."""
    for method, path, _ in operations:
        if is_public(method, path) or path in ("/livez", "/readyz"):
            continue
        targets = [path, *(spelling for spelling in spellings(path) if is_request_target(spelling))]
        data = b"".join(
            f"{method} {target} HTTP/1.1\r\nhost: localhost\r\n{field}\r\n{'connection: close' if last else 'x: y'}\r\n\r\n".encode()
            for target, last in zip(targets, [False] * (len(targets) - 1) + [True]))
        statuses = heads(raw(full, data))
        assert len(statuses) == len(targets), (method, path)
        for target, status in zip(targets, statuses):
            assert status == 403, (method, target, status)


def is_request_target(text):
    """Returns whether the HTTP parser accepts a request for a target; it hangs up on others."""
    return text.startswith(("/", "http://", "HTTP://"))


@pytest.mark.parametrize("field", [f"origin: https://{EVIL}", "sec-fetch-site: cross-site"])
@pytest.mark.parametrize("target", ["api/v1/pushes", "\\api\\v1\\pushes", "localhost/api/v1/pushes", "*"])
def test_no_malformed_target_serves_a_foreign_page(full, target, field):
    response = raw(full, f"GET {target} HTTP/1.1\r\nhost: localhost\r\n{field}\r\nconnection: close\r\n\r\n".encode())
    assert heads(response)[0] in (400, 403), response


def test_equivalent_spellings_are_served_alike(full):
    for target in ("//api/v1/pushes", "/api//v1/pushes/", "/./api/v1/pushes", "/x/../api/v1/pushes", "/%61pi/v1/pushe%73"):
        response = raw(full, f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        assert heads(response) == [200] and b'"items":[{' in response, target
    for target in ("/API/v1/pushes", "/api%2fv1/pushes", "/api/v1/pushes%00", "/api/v1/pushes;x"):
        response = raw(full, f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        assert heads(response) == [404], target


def test_every_route_requires_the_token(start, operations):
    server = start("--admin-token", "open-sesame")
    for method, path, wants_token in operations:
        if path in STREAMS and not wants_token:
            continue
        response = server.request(method, path)
        assert (response.status == 401) == wants_token, (method, path, response.status)
        if wants_token:
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.headers["content-type"] == "application/problem+json"


def test_every_response_has_the_same_security_headers(full, operations):
    foreign = {"origin": f"https://{EVIL}"}
    requests = [("HEAD", "/api/v1/pushes", {}), *((method, path, foreign) for method, path, _ in operations)]
    # Without the origin, GET requests that end at once.
    requests += [(method, path, {}) for method, path, _ in operations
                 if method == "GET" and path not in STREAMS and not path.endswith("/wait")]
    for method, path, headers in requests:
        response = full.request(method, path, headers=headers)
        names = {name.lower() for name in response.headers.keys()}
        assert not any(name.startswith("access-control") for name in names), path
        assert "set-cookie" not in names, path
        assert response.headers["x-content-type-options"] == "nosniff", path
        assert response.headers["cache-control"] == "no-store", path
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy or "default-src 'self'" in policy, path
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy, path


def test_every_route_rejects_preflight_requests(full, operations):
    for path in {path for _, path, _ in operations} - {"/livez", "/readyz"}:
        response = full.request("OPTIONS", path, headers={
            "origin": f"https://{EVIL}", "access-control-request-method": "DELETE",
            "access-control-request-headers": "content-type"})
        assert response.status == 403
        assert not any(name.lower().startswith("access-control") for name in response.headers.keys())


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_html_forms_change_nothing(full, operations, type):
    """A web page may send these without a preflight request, and some browsers omit Origin."""
    for method, path, _ in operations:
        if method in ("POST", "PUT", "PATCH") and (method, path, True) not in UNLISTED:
            response = full.request(method, path, b'{"all":true}', headers={"content-type": type})
            assert response.status in (400, 415), (method, path, response.status)


# Host names


@pytest.mark.parametrize("host", [
    EVIL, "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "2130706433", "0x7f.1", "127.1",
    "0x7f000001", "evillocalhost", "localhost:8197:1", "localhost:port", "[::1]x", "[evil]",
    "localhost@evil.example", "evil.example@localhost", "evil.example:80:80", "localhost%00.evil.example", "[::1",
    "[::1]evil.example", "lоcalhost", "localhost evil", "", ".", "evil.example#localhost", "evil.example/localhost",
])
def test_similar_host_names_are_rejected(full, host):
    data = b"DELETE /api/v1/pushes?all=true HTTP/1.1\r\nhost: %s\r\n%s\r\n" % (host.encode(), CLOSE)
    assert heads(raw(full, data))[0] in (400, 403)


def test_only_health_checks_need_no_host(full):
    assert heads(raw(full, b"GET /api/v1/status HTTP/1.1\r\n%s\r\n" % CLOSE)) == [403]
    assert heads(raw(full, b"GET /readyz HTTP/1.1\r\n%s\r\n" % CLOSE)) == [200]


@pytest.mark.parametrize(("target", "status"), [
    ("http://evil.example/api/v1/pushes", 403), ("http://evil.example:80/api/v1/pushes", 403),
    ("HTTP://EVIL.example/api/v1/pushes", 403), ("http://evil.example?x", 403), ("http://", 403),
    ("http://user@localhost/api/v1/pushes", 403), ("http://localhost/api/v1/pushes", 200),
    ("http://127.0.0.1:1/api/v1/pushes", 200), ("http://evil.example/livez", 200),
])
def test_the_host_of_an_absolute_target_is_checked(full, target, status):
    response = raw(full, b"GET %s HTTP/1.1\r\n%s%s\r\n" % (target.encode(), LOCAL, CLOSE))
    assert heads(response) == [status], response[:200]
    assert status == 200 or problem(response)["hint"]


def test_the_origin_is_compared_with_an_absolute_target(full):
    fields = b"host: 127.0.0.1:%d\r\norigin: http://127.0.0.1:%d\r\n%s" % (full.admin_port, full.admin_port, CLOSE)
    for target, status in [(b"http://localhost/api/v1/devices/ab", 403), (b"/api/v1/devices/ab", 404)]:
        assert heads(raw(full, b"DELETE %s HTTP/1.1\r\n%s\r\n" % (target, fields))) == [status]


@pytest.mark.parametrize("hosts", [("localhost", EVIL), (EVIL, "localhost"), ("localhost", "localhost")])
def test_two_hosts_cause_no_finding(full, hosts):
    lines = b"".join(b"Host: %s\r\n" % host.encode() for host in hosts)
    for path in (b"/api/v1/pushes?all=true", b"/livez"):
        assert heads(raw(full, b"DELETE %s HTTP/1.1\r\n%s%s\r\n" % (path, lines, CLOSE)))[0] in (400, 403)


# Paths


@pytest.mark.parametrize("path", [
    "/livez/../api/v1/pushes?all=true", "/livez/%2e%2e/api/v1/pushes?all=true", "/livez%2f..%2fapi/v1/pushes?all=true",
    "/livez;/api/v1/pushes?all=true", "/livez?/../api/v1/pushes", "//evil.example/livez", "/livez/", "/%6c%69vez",
    "/LIVEZ", "/readyz/../livez", "\\livez", "/livez#/api", "/./livez", "//livez", "/livez//",
])
def test_public_paths_have_no_aliases(start, device, path):
    """Paths that require neither a known host nor the token are only reachable by their exact names."""
    server = start("--admin-token", "open-sesame")
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    for method in (b"GET", b"DELETE"):
        response = raw(server, b"%s %s HTTP/1.1\r\nhost: evil.example\r\n%s\r\n" % (method, path.encode(), CLOSE))
        assert heads(response)[0] in (400, 403, 404, 405) or (method == b"GET" and b'"status":"live"' in response)
        response = raw(server, b"%s %s HTTP/1.1\r\n%s%s\r\n" % (method, path.encode(), LOCAL, CLOSE))
        assert heads(response)[0] in (400, 401, 404, 405) or (method == b"GET" and b'"status":"live"' in response)
    status = server.request("GET", "/api/v1/pushes", headers={"authorization": "Bearer open-sesame"})
    assert status.json["total"] == 1


@pytest.mark.parametrize("path", [
    "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/schema/../../../etc/passwd",
    "/schema/%2e%2e/ca-key.pem", "/ca-key.pem", "/Certs/ca-key.pem", "/.git/config", "/server-key.pem",
    "/api/v1/profiles/..%2f..%2fetc%2fpasswd", "/api/v1/profiles/%2fetc%2fpasswd", "/api/v1/pushes/%00",
    "/api/v1/pushes/1%00", "/api/v1/pushes/-1", "/api/v1/pushes/99999999999999999999999", "/api/v1/devices/%00",
    "/api/v1/rules/%F0%28%8C%28", "/api/v1/connections/%0d%0aset-cookie:%20x", "/%0d%0aset-cookie:%20x",
])
def test_no_path_reaches_other_files(full, path):
    response = full.request("GET", path)
    assert response.status in (400, 404), path
    assert "set-cookie" not in response.headers and b"PRIVATE" not in response.body and b"root:" not in response.body
    assert response.json["hint"]


@pytest.mark.parametrize("path", ["/api/v1/profile", "/api/v1/profiles/simulate"])
@pytest.mark.parametrize("name", ["/etc/passwd", "../../etc/passwd", "./flaky-503.yaml", "file:///etc/passwd"])
def test_no_name_of_a_profile_reads_a_file(full, path, name):
    response = full.request("PUT" if path.endswith("profile") else "POST", path, {"name": name})
    assert response.status in (400, 422)
    assert "root:" not in response.body.decode()


# Request smuggling

SMUGGLED = b"DELETE /api/v1/pushes?all=true HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize("fields", [
    b"content-length: 0\r\ncontent-length: %d\r\n", b"content-length: %d\r\ncontent-length: 0\r\n",
    b"content-length: 0, %d\r\n", b"content-length: +%d\r\n", b"content-length: 0x%d\r\n", b"content-length: -%d\r\n",
    b"content-length: %d\r\ntransfer-encoding: chunked\r\n", b"transfer-encoding: chunked\r\ncontent-length: %d\r\n",
    b"transfer-encoding: chunked, identity\r\nx: %d\r\n", b"transfer-encoding: identity, chunked, x\r\nx: %d\r\n",
    b"transfer-encoding : chunked\r\nx: %d\r\n", b"transfer-encoding: x\r\n chunked\r\nx: %d\r\n",
    b"transfer-encoding: chunked\r\ntransfer-encoding: x\r\nx: %d\r\n", b"x: a\rcontent-length: %d\r\n",
    b"x\0: %d\r\n", b"x: \0%d\r\n", b" content-length: %d\r\n", b"content-length: %d\r\n\tfolded\r\n", b": %d\r\n",
])
def test_ambiguous_framing_is_rejected(full, fields):
    data = b"POST /api/v1/faults/resume HTTP/1.1\r\n" + LOCAL + JSON + fields % len(SMUGGLED) + b"\r\n"
    for body in (SMUGGLED, b"0\r\n\r\n" + SMUGGLED):
        response = raw(full, data + body)
        assert heads(response) == [400], response
        assert problem(response)["hint"]


def test_an_unwanted_body_is_not_parsed_as_a_request(full):
    """The body of a GET request is not parsed as the next request."""
    response = raw(full, b"GET /livez HTTP/1.1\r\n%scontent-length: %d\r\n\r\n%sGET /livez HTTP/1.1\r\n%s%s\r\n" % (
        LOCAL, len(SMUGGLED), SMUGGLED, LOCAL, CLOSE))
    assert heads(response) == [200, 200]


# Sizes


@pytest.mark.parametrize("data", [
    b"GET /livez HTTP/1.1\r\n" + LOCAL + b"x: " + b"a" * 40_000 + b"\r\n\r\n",
    b"GET /livez HTTP/1.1\r\n" + LOCAL + b"x" * 40_000 + b": a\r\n\r\n",
    b"GET /livez HTTP/1.1\r\n" + LOCAL + b"x: y\r\n" * 5000 + b"\r\n",
    b"GET /livez HTTP/1.1\r\n" + LOCAL + (b"x: " + b"a" * 8000 + b"\r\n") * 10 + b"\r\n",
    b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /api/v1/pushes?topic=" + b"a" * 60_000 + b" HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"A" * 100_000, b"\r\n" * 50_000 + b"\0",
], ids=["value", "name", "fields", "list", "path", "query", "method", "lines"])
def test_a_request_head_is_limited(full, data):
    response = raw(full, data)
    assert heads(response) == [400], response[:200]
    assert "32768" in problem(response)["detail"]


def test_a_body_is_limited(full):
    path = "/api/v1/profiles/lint"
    fits = b'{"source":"#%s"}' % (b"x" * ((1 << 20) - 14))
    assert len(fits) == 1 << 20
    assert full.request("POST", path, fits).status != 413
    assert full.request("POST", path, fits + b" ").status == 413
    announced = raw(full, b"POST %s HTTP/1.1\r\n%s%s%scontent-length: 99999999999\r\n\r\n" % (
        path.encode(), LOCAL, JSON, CLOSE))
    assert heads(announced) == [413] and problem(announced)["hint"]


def test_endless_chunks_are_cut_off(full):
    with socket.create_connection((full.admin_host, full.admin_port), timeout=3) as sock:
        sock.sendall(b"POST /api/v1/profiles/lint HTTP/1.1\r\n" + LOCAL + JSON + CLOSE
                     + b"transfer-encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        # The server closes, or stops reading.
        with contextlib.suppress(ConnectionError, TimeoutError):
            for _ in range(1000):
                sock.sendall(chunk)
            pytest.fail("64 MiB were taken")
        assert full.request("GET", "/livez").status == 200


@pytest.mark.parametrize("framing", [b"content-length: 99999999999", b"transfer-encoding: chunked"])
def test_a_client_that_keeps_sending_after_the_response_is_cut_off(full, framing):
    """Otherwise the client could keep its connection and send data that is discarded for half a minute."""
    with socket.create_connection((full.admin_host, full.admin_port), timeout=3) as sock:
        sock.sendall(b"POST /api/v1/profiles/lint HTTP/1.1\r\n" + LOCAL + JSON + framing + b"\r\n\r\n")
        ends = time.monotonic() + 30
        # The server closes, or stops reading.
        with pytest.raises((ConnectionError, TimeoutError)):
            while time.monotonic() < ends:
                sock.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                time.sleep(0.01)


def test_a_connection_continues_after_a_body_that_was_too_large(full):
    head = b"POST /api/v1/profiles/lint HTTP/1.1\r\n%s%scontent-length: %d\r\n\r\n" % (LOCAL, JSON, 2 << 20)
    response = raw(full, head + b" " * (2 << 20) + b"GET /livez HTTP/1.1\r\n" + LOCAL + CLOSE + b"\r\n")
    assert heads(response) == [413, 200]


def test_deeply_nested_bodies_are_rejected_with_an_explanation(full):
    for type, body in [("application/json", b"[" * 500_000), ("application/json", b'{"a":' * 100_000),
                       ("application/yaml", b"[" * 100_000), ("application/yaml", b"a: &a [*a]\n"),
                       ("application/yaml", b"a: &a [x,x]\n" + b"".join(
                           b"%c: &%c [*%c,*%c,*%c,*%c]\n" % (c, c, c - 1, c - 1, c - 1, c - 1) for c in b"bcdefghijklmnop"))]:
        response = full.request("POST", "/api/v1/profiles/lint", body, headers={"content-type": type})
        assert response.status in (400, 422), response.status
        assert response.json["hint"] and len(response.body) < 100_000


def test_silent_clients_do_not_block_others(full):
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection((full.admin_host, full.admin_port), timeout=10))
        assert full.request("GET", "/livez").status == 200

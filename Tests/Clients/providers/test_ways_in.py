"""Listeners for software that cannot be pointed at a host with TLS: cleartext HTTP, the CONNECT proxy, the PROXY
protocol; and `apns-mock env`, which prints their addresses.
"""

import asyncio
import gc
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time

import pytest

from support import drivers, tokens
from support.faults import Faults
from support.server import Server, clean_environment, run, stop_cleanly, wait_until
from support.tracing import network_calls
from support.wire import TIMEOUT, Wire, client_context, push_headers, read_until_closed

BODY = '{"aps":{"alert":"hello"}}'
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
APPLE = "api.sandbox.push.apple.com"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


class Ways(Server):
    """A server with all kinds of listeners."""

    def __init__(self, binary, certs, *flags):
        super().__init__(
            binary, certs, "--apns-plain", "127.0.0.1:0", "--proxy", "127.0.0.1:0", *flags,
            apns=("127.0.0.1:0", "127.0.0.1:0+proxy-protocol"))
        self.plain_port = self.facts["apns_plain"][0]["port"]
        self.proxy_port = self.facts["proxy"]["port"]
        self.balanced_port = self.listeners[1][1]


@pytest.fixture(scope="module")
def ways(binary, certs):
    running = Ways(binary, certs)
    yield running
    stop_cleanly(running)


@pytest.fixture
def faults(ways):
    faults = Faults(ways)
    yield faults
    faults.clear()


def curl(server, *flags, device, body=BODY, url=None):
    """Pushes with curl; returns its output, with the head of each response."""
    headers = {"authorization": server.bearer, "apns-topic": "com.example.app", "apns-push-type": "alert"}
    return drivers.finished([
        drivers.tool("curl"), "-sS", "-i", "--max-time", "20", *flags,
        *(argument for name, value in headers.items() for argument in ("-H", f"{name}: {value}")), "-d", body,
        url or f"http://127.0.0.1:{server.plain_port}/3/device/{device}"], env=clean_environment())


def dial(port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def http1(server, device, *, method="POST", body=BODY.encode(), version="1.1", **headers):
    """Returns the bytes of a push over HTTP/1.1."""
    fields = {"host": "localhost", "authorization": server.bearer, "apns-topic": "com.example.app",
              "apns-push-type": "alert", "content-length": len(body),
              **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [f"{method} /3/device/{device} HTTP/{version}", *(f"{name}: {value}" for name, value in fields.items()
                                                              if value is not None)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_head(sock):
    """Reads up to the end of a response head, byte by byte: what follows belongs to the next protocol."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        assert byte, f"closed after {head!r}"
        head += byte
    return head


# Cleartext

def test_http2_with_prior_knowledge_without_tls(ways, device):
    assert curl(ways, "--http2-prior-knowledge", device=device).startswith("HTTP/2 200")
    record = ways.record(device)
    assert (record["connection"]["tls"], record["connection"]["http"]) == (None, "h2")
    assert "not-http2" not in record["findings"]
    assert record["listener"] == 2
    log = next(item for item in ways.api("GET", "/connections")["items"] if item["id"] == record["connection"]["id"])
    assert [event["detail"] for event in log["events"] if event["event"] == "handshake"] == ["no TLS, h2"]


@pytest.mark.parametrize(("flag", "first"), [
    ("--http1.1", "HTTP/1.1 200 OK"), ("--http1.0", "HTTP/1.0 200 OK"), ("--http2", "HTTP/1.1 200 OK")])
def test_http1_is_answered_and_is_a_finding(ways, device, flag, first):
    """`--http2` offers an upgrade to h2c, which no server has to accept."""
    url = f"http://127.0.0.1:{ways.plain_port}/3/device/{device}"
    assert curl(ways, flag, url, device=device).count(first) == 2, "also the second request"
    record = ways.pushes(device_token=device)[1]
    assert (record["connection"]["http"], record["outcome"]) == ("http/1.1", "accepted")
    assert "not-http2" in record["findings"]
    assert ["host", "localhost"] not in record["request"]["headers"]
    found = ways.api("GET", "/findings", finding="not-http2", device_token=device)["items"]
    assert "HTTP/1.1" in json.dumps(found)


def test_the_finding_survives_export_and_import(ways, device, binary, tmp_path):
    curl(ways, "--http1.1", device=device)
    exported = tmp_path / "run.ndjson"
    exported.write_bytes(ways.request("GET", "/api/v1/export", device_token=device).body)
    line = json.loads(exported.read_text())
    assert line["connection"]["http"] == "http/1.1" and line["connection"]["tls"] is None
    ports = tmp_path / "view.json"
    view = subprocess.Popen(
        [str(binary), "view", str(exported), "--admin", "127.0.0.1:0", "--port-file", str(ports)],
        stderr=subprocess.DEVNULL, env=clean_environment())
    try:
        wait_until(ports.exists, "the view is ready")
        again = json.loads(run(binary, "ls", "--json", "--port-file", ports).stdout.splitlines()[0])
        assert (again["connection"], again["findings"]) == (line["connection"], line["findings"])
        assert "not-http2" in line["findings"]
    finally:
        view.terminate()
        view.wait()


def test_http1_responses_are_those_of_http2(ways, device):
    large = "x" * 70_000
    with dial(ways.plain_port) as sock:
        # The first four in one write: pipelined, answered in order.
        sock.sendall(
            http1(ways, device) + http1(ways, "zz") + http1(ways, device, method="GET", body=b"")
            + http1(ways, device, method="HEAD", body=b"") + http1(ways, device, body=large.encode()))
        data, end = read_until_closed(sock)
    heads = re.findall(rb"HTTP/1\.1 (\d+ [A-Za-z ]+)\r\n", data)
    assert [head.split()[0] for head in heads] == [b"200", b"400", b"405", b"405", b"413"], data
    assert b'{"reason":"BadDeviceToken"}' in data and data.count(b'{"reason":"MethodNotAllowed"}') == 1
    assert data.endswith(b'{"reason":"PayloadTooLarge"}') and b"connection: close" in data
    records = ways.pushes(connection=ways.pushes(device_token=device)[0]["connection"]["id"])
    assert [record["served"]["status"] for record in records] == [200, 400, 405, 405, 413]
    assert {record["connection"]["id"] for record in records} == {records[0]["connection"]["id"]}


def test_chunked_bodies_and_100_continue(ways, device):
    text = curl(ways, "--http1.1", "-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", device=device)
    assert text.startswith("HTTP/1.1 100 Continue") and "HTTP/1.1 200 OK" in text
    record = ways.record(device)
    assert record["request"]["payload"] == json.loads(BODY)
    names = {name for name, _ in record["request"]["headers"]}
    assert not names & {"transfer-encoding", "expect", "connection"}


def test_large_head_gets_431_and_a_larger_one_400(ways, device):
    with dial(ways.plain_port) as sock:
        sock.sendall(http1(ways, device, x_padding="x" * 9000))
        assert b" 431 " in read_head(sock)
    assert ways.record(device)["verdict"]["status"] == 431
    with dial(ways.plain_port) as sock:
        sock.sendall(http1(ways, device, x_padding="x" * 40_000))
        assert read_until_closed(sock)[0].startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "evil.example"]], ids=["none", "equal", "different"])
def test_a_request_needs_exactly_one_host(ways, device, hosts):
    """RFC 9112 section 3.2."""
    lines = "".join(f"Host: {host}\r\n" for host in hosts)
    request = f"POST /3/device/{device} HTTP/1.1\r\n{lines}content-length: 2\r\n\r\n{{}}".encode()
    with dial(ways.plain_port) as sock:
        # The second one must not be read any more.
        sock.sendall(request + http1(ways, device))
        data, _ = read_until_closed(sock)
    assert data.startswith(b"HTTP/1.1 400 ") and data.count(b"HTTP/1.1 ") == 1, data
    assert f"{len(hosts)} Host fields" in data.decode()
    assert ways.pushes(device_token=device) == []


@pytest.mark.parametrize("field", [
    "content-length: 2\r\ncontent-length: 2", "content-length: 2\r\ncontent-length: 3", "content-length: 2, 2",
    "content-length: 2\r\ntransfer-encoding: chunked"])
def test_the_length_of_a_body_is_unambiguous(ways, device, field):
    with dial(ways.plain_port) as sock:
        sock.sendall(f"POST /3/device/{device} HTTP/1.1\r\nhost: localhost\r\n{field}\r\n\r\n{{}}".encode() + http1(ways, device))
        data, _ = read_until_closed(sock)
    assert data.startswith(b"HTTP/1.1 400 ") and data.count(b"HTTP/1.1 ") == 1, data
    assert ways.pushes(device_token=device) == []


def test_the_absolute_form_precedes_host(ways, device):
    with dial(ways.plain_port) as sock:
        sock.sendall(http1(ways, device).replace(b" /3/device", b" http://elsewhere.example:8080/3/device"))
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
    record = ways.record(device)
    assert record["request"]["path"] == f"/3/device/{device}"
    assert [":authority", "elsewhere.example:8080"] in record["request"]["headers"]


def test_the_proxy_refuses_two_hosts(ways):
    with dial(ways.proxy_port) as sock:
        sock.sendall(f"CONNECT {APPLE}:443 HTTP/1.1\r\nHost: {APPLE}:443\r\nHost: localhost\r\n\r\n".encode())
        data, _ = read_until_closed(sock)
    assert data.startswith(b"HTTP/1.1 400 ") and data.count(b"HTTP/1.1 ") == 1 and b"Host" in data, data


def test_faults_apply_to_http1(ways, faults, device):
    when = {"device_token": device}
    faults.add({"respond": {"status": 503, "reason": "ServiceUnavailable"}}, when=when, trigger={"first": 1})
    assert "HTTP/1.1 503" in curl(ways, "--http1.1", device=device)
    assert "HTTP/1.1 200" in curl(ways, "--http1.1", device=device)
    assert [record["attempt"] for record in ways.pushes(device_token=device)] == [1, 2]


@pytest.mark.parametrize("do", [{"reset_stream": {}}, {"reset_connection": {}}, {"close": {}}])
def test_a_fault_without_response_closes_the_http1_connection(ways, faults, device, do):
    faults.add(do, when={"device_token": device})
    with dial(ways.plain_port) as sock:
        sock.sendall(http1(ways, device))
        data, _ = read_until_closed(sock)
    assert data == b""
    assert ways.record(device)["outcome"] == "unanswered"


def test_goaway_becomes_connection_close(ways, faults, device):
    faults.add({"goaway": {"last_stream": "this"}}, when={"device_token": device})
    with dial(ways.plain_port) as sock:
        sock.sendall(http1(ways, device))
        head = read_head(sock)
        assert head.startswith(b"HTTP/1.1 200 ")
        sock.sendall(http1(ways, device))
        assert b"connection: close" in head or read_until_closed(sock)[0] == b""


def test_other_protocols_on_the_cleartext_listener(ways):
    with dial(ways.plain_port) as sock, pytest.raises(ssl.SSLError, match="(?i)wrong.version.number"):
        client_context(ways.ca).wrap_socket(sock, server_hostname="localhost")
    assert ways.logged("TLS on a cleartext listener", "http://")
    with dial(ways.plain_port) as sock:
        sock.sendall(b"\0\1\2\3 not HTTP\r\n\r\n")
        data, _ = read_until_closed(sock)
        assert data.startswith(b"HTTP/1.1 400 Bad Request\r\nserver: apns-mock plain\r\n"), data


# CONNECT

@pytest.mark.parametrize("target", ["api.push.apple.com", APPLE, "api.development.push.apple.com:2197"])
def test_curl_through_the_proxy(ways, device, target):
    text = curl(
        ways, "--http2", "--cacert", ways.ca, "--proxy", f"http://user:secret@127.0.0.1:{ways.proxy_port}",
        device=device, url=f"https://{target}/3/device/{device}")
    assert text.startswith("HTTP/1.1 200 Connection established") and "HTTP/2 200" in text
    record = ways.record(device)
    assert (record["connection"]["sni"], record["listener"]) == (target.split(":")[0], 3)
    assert "not-http2" not in record["findings"]
    assert "secret" not in ways.log()


def test_sygnal_like_client_through_the_proxy(ways, device):
    """Sygnal sends CONNECT as HTTP/1.0, without `host`, and takes any 200."""
    with dial(ways.proxy_port) as sock:
        source = sock.getsockname()[1]
        sock.sendall(f"CONNECT {APPLE}:443 HTTP/1.0\r\nProxy-Authorization: basic dXNlcjpzZWNyZXQ=\r\n\r\n".encode())
        assert read_head(sock) == ESTABLISHED
        with Wire(client_context(ways.ca).wrap_socket(sock, server_hostname=APPLE)) as wire:
            assert wire.push(push_headers(ways, device)).status == 200
    assert ways.record(device)["connection"]["client"] == f"127.0.0.1:{source}"


def test_bytes_that_follow_the_connect_request_are_not_lost(ways):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(ways.ca).wrap_bio(incoming, outgoing, server_hostname=APPLE)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    with dial(ways.proxy_port) as sock:
        sock.sendall(f"CONNECT {APPLE}:443 HTTP/1.1\r\nHost: {APPLE}:443\r\n\r\n".encode() + outgoing.read())
        assert read_head(sock) == ESTABLISHED
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                incoming.write(sock.recv(65536))
    assert tls.selected_alpn_protocol() == "h2"


def test_aioapns_through_the_proxy(ways, device, monkeypatch):
    """aioapns 4.0 passes the socket of one asyncio transport to another one. Since Python 3.11 that fails, because such
    a socket has no methods for I/O any more: the test adds those that Python 3.10 has.
    """
    aioapns = pytest.importorskip("aioapns")
    for name in ("send", "recv", "recv_into", "close", "shutdown"):
        if not hasattr(asyncio.trsock.TransportSocket, name):
            monkeypatch.setattr(
                asyncio.trsock.TransportSocket, name,
                lambda self, *arguments, name=name: getattr(self._sock, name)(*arguments), raising=False)
    context = ssl.create_default_context(cafile=ways.ca)

    async def send():
        client = aioapns.APNs(
            key=ways.key, key_id=ways.key_id, team_id=ways.team_id, topic="com.example.app", use_sandbox=True,
            ssl_context=context, proxy_host="127.0.0.1", proxy_port=ways.proxy_port)
        result = await client.send_notification(
            aioapns.NotificationRequest(device_token=device, message={"aps": {"alert": "hello"}}))
        client.pool.close()
        return result.status

    assert asyncio.run(send()) == "200"
    gc.collect()  # transports that are left over close their sockets with these methods, too
    assert ways.record(device)["connection"]["sni"] == "api.development.push.apple.com"


def test_kalyke_through_the_proxy(ways, device):
    """A library whose host is fixed to Apple's: the lines of its page, which do not mention the mock."""
    pytest.importorskip("kalyke")
    block = re.search(r"```python\n(.*?)```", ways.command("env", "--library", "kalyke").stdout, re.DOTALL)[1]
    drivers.finished(
        [sys.executable, "-c", block.replace("ab12" * 16, device)],
        env=clean_environment(HTTPS_PROXY=f"http://127.0.0.1:{ways.proxy_port}", SSL_CERT_FILE=ways.ca))
    assert ways.record(device)["connection"]["sni"] == APPLE


@pytest.mark.parametrize(("request_line", "status"), [
    ("CONNECT example.com:443 HTTP/1.1", 403), (f"CONNECT {APPLE}:80 HTTP/1.1", 403),
    ("CONNECT 127.0.0.1:22 HTTP/1.0", 403), ("CONNECT localhost:443 HTTP/1.1", 403),
    (f"CONNECT {APPLE}.example.com:443 HTTP/1.1", 403), (f"GET http://{APPLE}/ HTTP/1.1", 405),
    ("nonsense", 400),
])
def test_the_proxy_refuses_everything_else(ways, request_line, status):
    with dial(ways.proxy_port) as sock:
        sock.sendall(f"{request_line}\r\nhost: x\r\n\r\n".encode())
        data, end = read_until_closed(sock)
    head, _, text = data.decode().partition("\r\n\r\n")
    assert head.split()[1] == str(status) and "server: apns-mock proxy" in head, data
    assert text.endswith(".\n") and "proxy" in text, "the response says what to do"
    assert end == "fin"


def test_the_proxy_connects_to_nothing(ways, device, tmp_path):
    """Nothing leaves the machine: while the proxy serves and refuses requests, the server makes no connection."""
    def work():
        test_the_proxy_refuses_everything_else(ways, "CONNECT example.com:443 HTTP/1.1", 403)
        test_sygnal_like_client_through_the_proxy(ways, device)

    calls = "\n".join(network_calls(ways, tmp_path, work))
    # The event loops of the admin API and of providers create sockets only for listeners, which exist already.
    assert "connect(" not in calls and "socket(AF_INET" not in calls, calls


# PROXY protocol

def header(client="203.0.113.7", port=53000, *, command=0x21, tlvs=b"\x04\x00\x03abc"):
    family = socket.AF_INET6 if ":" in client else socket.AF_INET
    local = "::1" if ":" in client else "127.0.0.1"
    content = (socket.inet_pton(family, client) + socket.inet_pton(family, local) + port.to_bytes(2, "big")
               + (2197).to_bytes(2, "big") + tlvs)
    kind = 0x21 if family == socket.AF_INET6 else 0x11
    return SIGNATURE + bytes([command, kind]) + len(content).to_bytes(2, "big") + content


def push_behind(ways, device, first, *, pause=False):
    """Pushes on a connection that begins with `first`; returns the address of the connection's socket."""
    with dial(ways.balanced_port) as sock:
        source = sock.getsockname()
        for part in ([first[:9], first[9:]] if pause else [first]):
            sock.sendall(part)
        with Wire(client_context(ways.ca).wrap_socket(sock, server_hostname="localhost")) as wire:
            assert wire.push(push_headers(ways, device)).status == 200
    return f"{source[0]}:{source[1]}"


@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.parametrize(("client", "expected"), [
    ("203.0.113.7", "203.0.113.7:53000"), ("2001:db8::9", "[2001:db8::9]:53000")])
def test_the_announced_client_is_recorded(ways, device, client, expected, pause):
    push_behind(ways, device, header(client), pause=pause)
    record = ways.record(device)
    assert (record["connection"]["client"], record["listener"]) == (expected, 1)
    logs = ways.api("GET", "/connections")["items"]
    assert [log["client"] for log in logs if log["id"] == record["connection"]["id"]] == [expected]


def test_a_local_connection_keeps_its_own_address(ways, device):
    own = push_behind(ways, device, header(command=0x20))
    assert ways.record(device)["connection"]["client"] == own


def test_rules_match_the_announced_client(ways, faults, device):
    faults.add({"respond": {"status": 503}}, when={"client": "198.51.100.9"})
    with dial(ways.balanced_port) as sock:
        sock.sendall(header("198.51.100.9"))
        with Wire(client_context(ways.ca).wrap_socket(sock, server_hostname="localhost")) as wire:
            assert wire.push(push_headers(ways, device)).status == 503
    push_behind(ways, device, header("198.51.100.8"))


@pytest.mark.parametrize(("first", "words"), [
    (b"PROXY TCP4 203.0.113.7 127.0.0.1 53000 2197\r\n", "version 1"), (b"\x16\x03\x01\x02\x00\x01", "no header"),
    (SIGNATURE + b"\x31\x11\0\x0c" + bytes(12), "version 3"), (SIGNATURE + b"\x21\x11\xff\xff", "65535 bytes"),
    (SIGNATURE + b"\x21\x11\0\x04" + bytes(4), "too few"), (SIGNATURE + b"\x25\x11\0\0", "command 5"),
])
def test_invalid_headers_close_the_connection(ways, first, words):
    with dial(ways.balanced_port) as sock:
        sock.sendall(first)
        assert read_until_closed(sock)[0] == b""
    assert ways.logged("PROXY protocol", words, "closed")


def test_haproxy_announces_its_client(ways, device, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configuration = tmp_path / "haproxy.cfg"
    configuration.write_text(f"""
global
  maxconn 100
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen apns
  bind 127.0.0.1:{port}
  server mock 127.0.0.1:{ways.balanced_port} send-proxy-v2 check check-send-proxy inter 100ms
""")
    haproxy = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if haproxy is None:
        pytest.skip("haproxy is not on this machine: apt-get install haproxy")
    balancer = subprocess.Popen([haproxy, "-db", "-f", str(configuration)], stderr=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL)
    try:
        def connected():
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
            except ConnectionRefusedError:
                assert balancer.poll() is None, "haproxy ended"
                return None

        with wait_until(connected, "haproxy listens") as sock:
            source = sock.getsockname()[1]
            with Wire(client_context(ways.ca).wrap_socket(sock, server_hostname="localhost")) as wire:
                assert wire.push(push_headers(ways, device)).status == 200
    finally:
        balancer.terminate()
        balancer.wait()
    assert ways.record(device)["connection"]["client"] == f"127.0.0.1:{source}"


# Limits

@pytest.mark.timeout(90)
def test_incomplete_beginnings_are_closed_after_ten_seconds(ways):
    beginnings = {
        ways.plain_port: [b"", b"PR", b"POST /3/device/ab HTTP/1.1\r\nhost: x\r\n"],
        ways.proxy_port: [b"", b"CONNECT api.push"], ways.balanced_port: [b"", SIGNATURE, header()[:20]],
    }
    begun = time.monotonic()
    socks = []
    for port, parts in beginnings.items():
        for part in parts:
            socks.append(dial(port))
            socks[-1].sendall(part)
    for sock in socks:
        with sock:
            read_until_closed(sock)
    assert 8 < time.monotonic() - begun < TIMEOUT
    wait_until(lambda: ways.api("GET", "/connections", state="open")["items"] == [], "the connections are closed")


def test_shutdown_does_not_wait_for_incomplete_beginnings(binary, certs):
    server = Ways(binary, certs)
    try:
        socks = [dial(port) for port in (server.plain_port, server.proxy_port, server.balanced_port)]
        idle = dial(server.plain_port)
        idle.sendall(http1(server, "ab" * 32))
        assert read_head(idle).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: len(server.api("GET", "/connections", state="open")["items"]) == 4, "all are accepted")
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 4, "the shutdown timeout is 5 s"
        for sock in (*socks, idle):
            sock.close()
    finally:
        server.kill()


def test_connections_are_closed_by_listener(ways):
    with dial(ways.proxy_port) as sock:
        wait_until(
            lambda: [log for log in ways.api("GET", "/connections", state="open")["items"] if log["listener"] == 3],
            "the connection is accepted")
        assert ways.api("POST", "/connections/close", {"listener": 3})["connections"]
        assert read_until_closed(sock)[0] == b""


# Commands and settings

@pytest.mark.parametrize("flag", ["--apns-plain", "--proxy"])
def test_port_in_use(ways, binary, certs, flag):
    taken = f"127.0.0.1:{ways.plain_port}"
    done = run(binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, flag, taken)
    assert done.returncode == 6
    assert f"{taken}" in done.stderr and f"another address with {flag} HOST:PORT" in done.stderr


def test_settings_from_variables_and_file(binary, certs, tmp_path):
    config = tmp_path / "mock.yaml"
    config.write_text('apns_plain: ["127.0.0.1:0", "127.0.0.1:0"]\napns: {listen: "127.0.0.1:0+proxy-protocol"}\n')
    server = Server(
        binary, certs, "--config", config, apns=(), environment={"APNS_MOCK_PROXY": "127.0.0.1:0"})
    try:
        assert len(server.facts["apns_plain"]) == 2 and server.facts["proxy"]["port"] > 0
        addresses = server.api("GET", "/status")["addresses"]
        assert (addresses["apns_plain"], addresses["proxy"]) == (server.facts["apns_plain"], server.facts["proxy"])
        assert server.logged(f'http://127.0.0.1:{server.facts["proxy"]["port"]} for Apple')
    finally:
        stop_cleanly(server)
    other = Server(binary, certs)
    assert (other.facts["apns_plain"], other.facts["proxy"]) == ([], None)
    stop_cleanly(other)


def test_exec_passes_the_addresses(binary, certs, device):
    script = ('curl -s --http2-prior-knowledge -d "{}" http://$APNS_MOCK_APNS_PLAIN/3/device/ab; echo " $APNS_MOCK_PROXY";'
              'curl -sS --http2 --cacert "$APNS_MOCK_CA" -x "http://$APNS_MOCK_PROXY" -d "{}" https://api.push.apple.com/3')
    done = run(binary, "exec", "--certs", certs, "--", "sh", "-c", script,
               environment={"APNS_MOCK_PROXY": "127.0.0.1:1", "APNS_MOCK_APNS_PLAIN": "127.0.0.1:1"})
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r'\{"reason":"\w+"\} 127\.0\.0\.1:\d+\n\{"reason":"BadPath"\}', done.stdout), done


@pytest.mark.parametrize(("listener", "word"), [("plain_port", "--apns-plain"), ("proxy_port", "--proxy")])
def test_doctor_recognizes_the_listeners(ways, listener, word):
    seen = len(ways.pushes())
    address = f"127.0.0.1:{getattr(ways, listener)}"
    done = ways.command("doctor", "--apns", address)
    assert done.returncode == 1
    assert f"listener of apns-mock ({word})" in done.stdout or f"proxy of apns-mock ({word})" in done.stdout
    assert f"http://{address}" in done.stdout and f"127.0.0.1:{ways.port}" in done.stdout
    assert len(ways.pushes()) == seen, "it leaves no record"


EXPECTED = {"APNS_MOCK_APNS", "APNS_MOCK_APNS_PLAIN", "APNS_MOCK_PROXY", "APNS_MOCK_ADMIN", "APNS_MOCK_CA",
            "APNS_MOCK_KEY", "APNS_MOCK_KEY_ID", "APNS_MOCK_TEAM_ID"}


def test_env_prints_what_exec_sets(ways, binary, tmp_path):
    values = json.loads(ways.command("env", "--shell", "json").stdout)
    assert set(values) == EXPECTED
    assert values["APNS_MOCK_PROXY"] == f"127.0.0.1:{ways.proxy_port}" and values["APNS_MOCK_CA"] == ways.ca
    # Without the port file, by the admin listener.
    by_admin = run(binary, "env", "--shell", "json", "--admin", f"127.0.0.1:{ways.admin_port}")
    assert json.loads(by_admin.stdout) == values
    script = ways.command("env").stdout
    done = subprocess.run(
        [drivers.tool("bash"), "-c", f"{script}\nenv"], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert {line for line in done.stdout.splitlines() if line.startswith("APNS_")} == {
        f"{name}={value}" for name, value in values.items()}
    dotenv = ways.command("env", "--shell", "dotenv").stdout.splitlines()
    assert dict(shlex.split(line)[0].split("=", 1) for line in dotenv) == values
    assert f"set -gx APNS_MOCK_KEY_ID {ways.key_id}" in ways.command("env", "--shell", "fish").stdout.splitlines()


def test_env_for_a_library(ways, device):
    text = ways.command("env", "--library", "AIOAPNS").stdout
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    pytest.importorskip("aioapns")
    done = drivers.finished([sys.executable, "-c", block.replace("ab12" * 16, device)])
    assert "NotificationResult" in done or "200" in done
    assert ways.record(device)["outcome"] == "accepted"


def test_env_for_every_library_has_this_servers_values(ways):
    for name in ("node-apn", "Node http2", "sideshow/apns2", "Pushy", "curl", "dotAPNS", "pushok"):
        text = ways.command("env", "--library", name).stdout
        assert str(ways.port) in text and ways.certs.as_posix() in text, name
        assert "2197" not in text.replace(str(ways.port), "") and " Certs/" not in text, name


def test_env_errors(ways, binary):
    unknown = ways.command("env", "--library", "pushik")
    assert unknown.returncode == 2 and "did you mean pushok?" in unknown.stderr
    unknown = ways.command("env", "--library", "sendmail")
    assert unknown.returncode == 2 and "aioapns" in unknown.stderr and "env --library list" in unknown.stderr
    both = ways.command("env", "--library", "curl", "--shell", "bash")
    assert both.returncode == 2 and "--shell and --library exclude each other" in both.stderr
    none = run(binary, "env", "--admin", "127.0.0.1:1")
    assert none.returncode == 4 and "no apns-mock responds on 127.0.0.1:1" in none.stderr

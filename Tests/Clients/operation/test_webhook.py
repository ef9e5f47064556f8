"""`serve --webhook`: what a receiver gets, and what it cannot do to the server."""

import contextlib
import http.server
import json
import queue
import socket
import ssl
import threading
import time

import pytest

from support.server import run, wait_until
from support.wire import connect, push_headers


@contextlib.contextmanager
def receiver(*statuses, location=None, delay=0, certificate=None, address="127.0.0.1"):
    """Runs an HTTP server that responds with these statuses in turn, the last one again. Yields its port and a queue of the
    requests: method, path, header fields, JSON.

    `certificate`: the paths of a certificate chain and its key, for a server with TLS.
    """
    requests = queue.Queue()
    left = list(statuses or [200])

    class Handler(http.server.BaseHTTPRequestHandler):
        def handle_one(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            fields = {name.lower(): value for name, value in self.headers.items()}
            requests.put((self.command, self.path, fields, json.loads(body) if body else None))
            time.sleep(delay)
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            if location:
                self.send_header("location", location)
            self.send_header("content-length", "0")
            self.end_headers()

        do_POST = do_GET = handle_one

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        context.set_alpn_protocols(["http/1.1"])
        # The handshake is made when the first bytes are read, in the thread of the connection.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port, requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def push(server, device, body=b'{"aps":{"alert":"secret"}}', **changes):
    with connect(server) as wire:
        return wire.push(push_headers(server, device, **changes), body)


def counted(server, result):
    text = server.request("GET", "/metrics").body.decode()
    lines = [line for line in text.splitlines() if line.startswith(f'apns_mock_webhook_pushes_total{{result="{result}"}}')]
    return float(lines[0].split()[-1])


def test_each_push_is_sent_without_its_payload(start, device):
    with receiver() as (port, requests):
        server = start("--webhook", f"http://127.0.0.1:{port}/hook?key=7")
        push(server, device)
        push(server, "xyz", apns_topic="com.other")
        method, path, fields, first = requests.get(timeout=10)
        second = requests.get(timeout=10)[3]
        assert (method, path, fields["host"]) == ("POST", "/hook?key=7", f"127.0.0.1:{port}")
        assert fields["content-type"] == "application/json" and fields["user-agent"].startswith("apns-mock/")
        assert first["event"] == "push"
        record = first["push"]
        assert (record["seq"], record["outcome"], record["served"]["status"]) == (1, "accepted", 200)
        assert record["request"]["device_token"] == device and record["apns"]["topic"] == "com.example.app"
        assert "secret" not in json.dumps(first) and "authorization" not in json.dumps(first).lower()
        assert (second["push"]["seq"], second["push"]["served"]["reason"]) == (2, "BadDeviceToken")
        wait_until(lambda: counted(server, "delivered") == 2, "both are counted")


def test_the_payload_is_sent_on_request(start, device):
    with receiver() as (port, requests):
        server = start("--webhook", f"http://localhost:{port}", "--webhook-payload")
        push(server, device)
        _, path, _, body = requests.get(timeout=10)
        assert path == "/" and body["push"]["request"]["payload"] == {"aps": {"alert": "secret"}}


def test_a_filter_selects_pushes_and_findings_are_sent(start, device):
    with receiver() as (port, requests):
        server = start("--webhook", f"http://127.0.0.1:{port}", "--webhook-filter", "finding:retried-permanent")
        with connect(server) as wire:
            for _ in range(2):
                wire.push(push_headers(server, device, apns_push_type="nonsense"), b'{"aps":{}}')
        found = requests.get(timeout=10)[3]
        assert (found["event"], found["push"]["seq"]) == ("push", 2)
        assert "retried-permanent" in found["push"]["findings"]
        found = requests.get(timeout=10)[3]
        assert (found["event"], found["push"]["seq"]) == ("finding", 2)
        assert (found["finding"]["finding"], found["finding"]["evidence"]) == ("retried-permanent", [1, 2])
        assert "push 1 was answered" in found["finding"]["explanation"]
        assert requests.empty()


def test_a_finding_that_no_push_causes_is_sent_once(start, device):
    """The push was sent before the end of its connection, from which the finding follows, was known."""
    with receiver() as (port, requests):
        server = start("--webhook", f"http://127.0.0.1:{port}", "--webhook-filter", "topic:com.example.churn")
        for number in range(5):
            push(server, f"{number:02}" * 32, apns_topic="com.example.churn")
        events = [requests.get(timeout=10)[3] for _ in range(6)]
        assert [event["event"] for event in events] == ["push"] * 5 + ["finding"]
        assert (events[5]["finding"]["finding"], events[5]["push"]["seq"]) == ("connection-churn", 5)
        push(server, device)
        push(server, device, apns_topic="com.example.churn")
        assert requests.get(timeout=10)[3]["push"]["seq"] == 7


@pytest.mark.parametrize(("flag", "host"), [("--webhook-ca", "localhost"), ("--webhook-ca", "127.0.0.1"), ("SSL_CERT_FILE", "localhost")])
def test_a_receiver_with_tls(start, device, certs, flag, host):
    server_files = (certs / "server.pem", certs / "server-key.pem")
    start().stop()
    with receiver(certificate=server_files) as (port, requests):
        flags, environment = ([flag, str(certs / "ca.pem")], {}) if flag[0] == "-" else ([], {flag: str(certs / "ca.pem")})
        server = start("--webhook", f"https://{host}:{port}/hook", *flags, environment=environment)
        push(server, device)
        method, path, fields, body = requests.get(timeout=10)
        assert (method, path, fields["host"], body["push"]["seq"]) == ("POST", "/hook", f"{host}:{port}", 1)


@pytest.mark.parametrize(("name", "repair"), [
    ("another CA", "name its CA with --webhook-ca FILE"), ("another name", "use a name that the certificate contains")])
def test_a_receiver_that_is_not_trusted_gets_nothing(start, device, certs, name, repair):
    start().stop()
    host, flags = ("127.0.0.2", ["--webhook-ca", str(certs / "ca.pem")]) if name == "another name" else ("localhost", [])
    with receiver(certificate=(certs / "server.pem", certs / "server-key.pem"), address="0.0.0.0") as (port, requests):
        server = start("--webhook", f"https://{host}:{port}/", *flags)
        push(server, device)
        wait_until(lambda: counted(server, "failed") == 1, "it is given up")
        server.logged("push 1 was not delivered: the certificate is not trusted", repair)
        assert requests.empty()


def test_the_end_does_not_wait_for_a_receiver_that_drops_packets(start, device):
    """The queue of the listener is full, so that the connection is never established."""
    with contextlib.ExitStack() as sockets, socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        for _ in range(4):
            filler = sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        server = start("--webhook", f"http://127.0.0.1:{port}")
        push(server, device)
        assert server.stop() == 0
        server.logged("push 1 was not delivered: the server ended")


def test_a_delayed_push_is_sent_once_when_it_has_ended(start, device):
    with receiver() as (port, requests):
        server = start("--webhook", f"http://127.0.0.1:{port}")
        server.api("POST", "/rules", {"name": "slow", "do": {"delay": {"fixed": "200ms"}}})
        push(server, device)
        assert requests.get(timeout=10)[3]["push"]["outcome"] == "accepted"
        push(server, device)
        assert requests.get(timeout=10)[3]["push"]["seq"] == 2 and requests.empty()


def test_a_temporary_error_is_retried(start, device):
    with receiver(503, 200) as (port, requests):
        server = start("--webhook", f"http://127.0.0.1:{port}")
        push(server, device)
        assert [requests.get(timeout=10)[3]["push"]["seq"] for _ in range(2)] == [1, 1]
        wait_until(lambda: counted(server, "delivered") == 1, "it is delivered")
        assert "apns_mock_webhook_retries_total 1" in server.request("GET", "/metrics").body.decode()
        # The first failure is logged at once, and that the receiver works again.
        server.logged("push 1 was not delivered: the receiver responded with 503; it is sent again")
        server.logged("receives again")


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 404])
def test_a_redirect_is_not_followed_and_other_errors_are_not_retried(start, device, status):
    with receiver(200) as (other, followed), receiver(status, location=f"http://127.0.0.1:{other}/") as (port, requests):
        server = start("--webhook", f"http://127.0.0.1:{port}")
        push(server, device)
        requests.get(timeout=10)
        wait_until(lambda: counted(server, "failed") == 1, "it is given up")
        assert requests.empty() and followed.empty()
        server.logged("push 1 was not delivered", str(status))


@pytest.mark.parametrize("host", ["192.0.2.1", "169.254.169.254", "[2001:db8::1]", "[fe80::1]", "0.0.0.0", "100.64.0.1"])
def test_other_addresses_are_refused_without_a_connection(start, device, host):
    server = start("--webhook", f"http://{host}:9/")
    began = time.monotonic()
    push(server, device)
    wait_until(lambda: counted(server, "failed") == 1, "it is given up")
    assert time.monotonic() - began < 4, "no connection was tried, and nothing was repeated"
    server.logged("are not allowed", "--webhook-anywhere")


def test_other_addresses_are_allowed_on_request(start, device):
    """0.0.0.0 is none of the local addresses, and connects to this machine."""
    with receiver() as (port, requests):
        server = start("--webhook", f"http://0.0.0.0:{port}", "--webhook-anywhere")
        push(server, device)
        assert requests.get(timeout=10)[3]["push"]["seq"] == 1


@pytest.mark.parametrize("answer", [b"", b"HTTP/9 nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000],
                         ids=["nothing", "nonsense", "a head without end"])
def test_a_hostile_receiver_delays_no_push(start, device, answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def respond():
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    with connection, contextlib.suppress(OSError):
                        connection.recv(65536)
                        connection.sendall(answer)

        thread = threading.Thread(target=respond)
        thread.start()
        server = start("--webhook", f"http://127.0.0.1:{port}")
        began = time.monotonic()
        for _ in range(20):
            assert push(server, device).status == 200
        assert time.monotonic() - began < 5
        assert server.request("GET", "/readyz").status == 200
        assert server.stop() == 0
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_what_is_left_is_sent_at_the_end(start, device):
    with receiver(delay=0.02) as (port, requests):
        server = start("--webhook", f"http://127.0.0.1:{port}")
        with connect(server) as wire:
            for _ in range(10):
                wire.push(push_headers(server, device), b'{"aps":{}}')
        server.stop()
        assert [requests.get()[3]["event"] for _ in range(requests.qsize())].count("push") == 10


@pytest.mark.parametrize(("flags", "words"), [
    (["--webhook", "https://127.0.0.1/", "--webhook-ca", "missing.pem"], ["--webhook-ca", "missing.pem"]),
    (["--webhook", "ftp://127.0.0.1/"], ["--webhook", "https://"]),
    (["--webhook", "127.0.0.1:80"], ["--webhook", "http://"]),
    (["--webhook", "http://user@127.0.0.1/"], ["--webhook", "invalid"]),
    (["--webhook", "http://127.0.0.1:99999/"], ["--webhook", "invalid"]),
    (["--webhook-filter", "status:200"], ["--webhook-filter needs --webhook"]),
    (["--webhook-payload"], ["--webhook-payload needs --webhook"]),
    (["--webhook-anywhere"], ["--webhook-anywhere needs --webhook"]),
    (["--webhook-ca", "ca.pem"], ["--webhook-ca needs --webhook"]),
    (["--webhook", "http://127.0.0.1/", "--webhook-ca", "ca.pem"], ["--webhook-ca needs", "https://"]),
    (["--webhook", "http://127.0.0.1/", "--webhook-filter", "topik:x"], ["--webhook-filter", "did you mean topic?"]),
])
def test_an_invalid_setting_is_named(binary, certs, flags, words):
    done = run(binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, *flags, timeout=20)
    assert done.returncode == 2 and all(word in done.stderr for word in words), done.stderr

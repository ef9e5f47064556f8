"""`serve --upstream` with a service or a proxy that does not behave as APNs: the provider gets an answer, and one sentence says why."""

import contextlib
import pathlib
import socket
import socketserver
import ssl
import threading

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded
from h2.exceptions import ProtocolError
from hyperframe.frame import DataFrame

from support.certificates import provider_certificate
from support.server import run
from support.wire import connect, push_headers

INTERNAL_ERROR = 2
OK = [(":status", "200"), ("apns-id", "0" * 8 + "-0000-0000-0000-" + "0" * 12)]


class Service(socketserver.BaseRequestHandler):
    """One connection of a server over TLS that answers each request by the method of this class that `conduct` names."""

    def handle(self):
        with contextlib.suppress(OSError, ProtocolError), self.server.context.wrap_socket(self.request, server_side=True) as tls:
            self.tls, self.http = tls, H2Connection(H2Configuration(client_side=False, validate_outbound_headers=False))
            self.http.initiate_connection()
            if self.server.conduct == "goaway":
                self.http.close_connection()
            self.rest = {}
            tls.sendall(self.http.data_to_send())
            while part := tls.recv(65536):
                for event in self.http.receive_data(part):
                    if isinstance(event, StreamEnded):
                        getattr(self, self.server.conduct)(event.stream_id)
                self.send_rest()
                tls.sendall(self.http.data_to_send())

    def send_rest(self):
        for stream, count in self.rest.items():
            with contextlib.suppress(ProtocolError):
                while count > 0 and (size := min(count, self.http.local_flow_control_window(stream), 16384)) > 0:
                    self.http.send_data(stream, b"x" * size)
                    count -= size
            self.rest[stream] = count

    def interim(self, stream):
        self.http.send_headers(stream, [(":status", "103"), ("link", "x")])
        self.http.send_headers(stream, OK, end_stream=True)

    def trailers(self, stream):
        self.http.send_headers(stream, OK)
        self.http.send_data(stream, b"body")
        self.http.send_headers(stream, [("x-trailer", "1")], end_stream=True)

    def interim_only(self, stream):
        self.http.send_headers(stream, [(":status", "103")])
        self.http.reset_stream(stream, 0)

    def half(self, stream):
        self.http.send_headers(stream, OK)
        self.http.send_data(stream, b"half")
        self.http.reset_stream(stream, 0)

    def short(self, stream):
        self.http.send_headers(stream, OK + [("content-length", "5")])
        self.http.send_data(stream, b"abc", end_stream=True)

    def without_headers(self, stream):
        self.tls.sendall(DataFrame(stream, b"body", flags=["END_STREAM"]).serialize())

    def megabyte(self, stream):
        self.http.send_headers(stream, OK)
        self.rest[stream] = 1 << 20

    def bomb(self, stream):
        """A header block of a few kilobytes that is a megabyte: the same field again and again."""
        self.http.send_headers(stream, OK + [("x-long", "a" * 3000)] * 350, end_stream=True)

    def garbage(self, stream):
        self.tls.sendall(b"\xff" * 100)

    def close(self, stream):
        self.tls.close()

    def goaway(self, stream):
        pass


@contextlib.contextmanager
def listening(handler, **attributes):
    """Runs a server in a thread; returns its port."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    vars(server).update(attributes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def service_context(server, *, requires=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{server.certs}/server.pem", f"{server.certs}/server-key.pem")
    context.set_alpn_protocols(["h2"])
    if requires:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(requires)
    return context


def answered(mock, device, **changes):
    """Pushes; returns the response, the record, and the status of upstream."""
    with connect(mock) as wire:
        response = wire.push(push_headers(mock, device, **changes), b'{"aps":{"alert":"hello"}}')
    return response, mock.record(device), mock.api("GET", "/status")["upstream"]


@pytest.mark.parametrize(("conduct", "status", "outcome", "problem"), [
    ("interim", 200, "accepted", None),
    ("trailers", 200, "accepted", None),
    ("interim_only", None, "unknown", "upstream reset the stream: NO_ERROR"),
    ("half", None, "unknown", "upstream reset the stream: NO_ERROR"),
    ("short", None, "unknown", "the response is not valid HTTP/2: PROTOCOL_ERROR"),
    ("without_headers", None, "unknown", "it sent what is not HTTP/2"),
    ("megabyte", None, "unknown", "the response is too large"),
    ("bomb", None, "unknown", "the response is too large"),
    ("garbage", None, "unknown", "failed"),
    ("close", None, "unknown", "closed the connection"),
    ("goaway", 503, "rejected", "sent GOAWAY NO_ERROR"),
])
def test_odd_answers(start, server, device, conduct, status, outcome, problem):
    with listening(Service, context=service_context(server), conduct=conduct) as port:
        mock = start("--upstream", f"https://localhost:{port}", "--upstream-ca", server.ca)
        response, record, upstream = answered(mock, device)
        assert (response.status, record["outcome"]) == (status, outcome), record
        assert response.reset == (INTERNAL_ERROR if status is None else None)
        counted = {"accepted": "answered", "rejected": "refused", "unknown": "unknown"}[outcome]
        assert upstream[counted] == 1 and upstream["open"] == upstream["waiting"] == 0
        if problem:
            assert problem in record["upstream"]["problem"]
        elif conduct == "trailers":
            assert response.body == b"body"


class Proxy(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(65536)
        self.request.sendall(self.server.answer)


@pytest.mark.parametrize(("answer", "problem"), [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 2\r\n\r\nno", "refused the connection to localhost:1: HTTP/1.1 407"),
    (b"", "closed the connection"), (b"SSH-2.0-x\r\n\r\n", "refused the connection to localhost:1: SSH-2.0-x"),
    (b"x" * 10_000, "sent more than 8 KiB without a response"), (b"HTTP/1.1 200 OK\r\n\r\nnot TLS", "TLS with localhost:1 through the proxy"),
])
def test_a_proxy_that_makes_no_tunnel(start, server, device, answer, problem):
    with listening(Proxy, answer=answer) as port:
        mock = start("--upstream", "https://localhost:1", "--upstream-ca", server.ca, environment={"HTTPS_PROXY": f"http://127.0.0.1:{port}"})
        response, record, upstream = answered(mock, device)
        assert (response.status, record["outcome"]) == (503, "rejected")
        assert problem in record["upstream"]["problem"] and problem in upstream["problems"][0]["text"]


@pytest.fixture
def certificates(start, server, tmp_path):
    """Makes provider certificates that the server which replaces APNs accepts, or not, each in a folder of its own."""

    def make(kind):
        folder = tmp_path / kind
        folder.mkdir()
        issuer = start(certs=tmp_path / "other-certs") if kind == "wrong CA" else server
        chain, key = provider_certificate(issuer.certs, folder, expired=kind == "expired")
        if kind == "another key":
            key = make("valid")[1]
        return chain, key

    return make


def test_a_provider_certificate_is_used(start, server, certificates, device):
    chain, key = certificates("valid")
    mock = start("--upstream", server.url, "--upstream-ca", server.ca, "--upstream-cert", chain, "--upstream-key", key)
    with connect(mock, certificate=provider_certificate(mock.certs, chain.parent)) as wire:
        assert wire.push(push_headers(mock, device, authorization=None)).status == 200
    # The connection to the mock and the one to the server have different certificates.
    assert server.record(device)["auth"]["kind"] == mock.record(device)["auth"]["kind"] == "certificate"


@pytest.mark.parametrize(("kind", "problem"), [
    ("expired", "expired"), ("wrong CA", "unknown ca"), ("none", "requires a client certificate, and none is specified"),
])
def test_a_provider_certificate_that_is_rejected(start, server, certificates, device, kind, problem):
    with listening(Service, context=service_context(server, requires=server.ca), conduct="interim") as port:
        flags, chain = [], None
        if kind != "none":
            chain, key = certificates(kind)
            flags = ["--upstream-cert", chain, "--upstream-key", key]
        mock = start("--upstream", f"https://localhost:{port}", "--upstream-ca", server.ca, *flags)
        response, record, upstream = answered(mock, device)
        text = record["upstream"]["problem"]
        assert problem in text and text in [one["text"] for one in upstream["problems"]]
        assert chain is None or f"rejects the certificate in {chain}" in text
        # Nothing is sent before the first SETTINGS, which prove that the certificate is accepted.
        assert response.status == 503


def test_a_key_of_another_pair(binary, certificates, tmp_path):
    chain, key = certificates("another key")
    for command, certificate in (("serve", "--upstream-cert"), ("compare", "--certificate")):
        own = ["--certs", tmp_path / "own"] if command == "serve" else ["--topic", "com.example.app"]
        key_flag = "--upstream-key" if command == "serve" else "--certificate-key"
        done = run(binary, command, "--upstream", "sandbox", certificate, chain, key_flag, key, *own)
        assert done.returncode == 2 and f"the private key in {key} does not belong to the certificate in {chain}" in done.stderr, done.stderr


def test_a_connection_to_upstream_is_made_on_the_thread_of_the_provider(start, server, device):
    """With a thread of its own for upstream, each push would wake it, and its answer the provider's."""
    mock = start("--upstream", server.url, "--upstream-ca", server.ca, "--threads", "1")
    tasks = pathlib.Path(f"/proc/{mock.process.pid}/task")
    if not tasks.exists():
        pytest.skip("this machine has no /proc")

    def switches():
        """Returns how often each thread but the event loop has waited."""
        texts = {task.name: (task / "status").read_text() for task in tasks.iterdir()}
        return {name: int(text.split("\nvoluntary_ctxt_switches:\t")[1].split()[0]) for name, text in texts.items() if "NIO-ELT" not in text}

    with connect(mock) as wire:
        headers = push_headers(mock, device)
        assert wire.push(headers).status == 200
        before = switches()
        assert {wire.push(headers).status for _ in range(100)} == {200}
        woken = {name: count - before.get(name, 0) for name, count in switches().items()}
    assert max(woken.values()) < 50, woken


@pytest.mark.parametrize("limit", [1, 3])
def test_connections_are_limited(start, server, device, limit):
    mock = start("--upstream", server.url, "--upstream-ca", server.ca, "--upstream-connections", str(limit), "--threads", "4")
    with contextlib.ExitStack() as stack:
        for wire in [stack.enter_context(connect(mock)) for _ in range(8)]:
            assert wire.push(push_headers(mock, device)).status == 200
    upstream = mock.api("GET", "/status")["upstream"]
    assert (upstream["answered"], upstream["connections"], upstream["connections_made"]) == (8, limit, limit)


@pytest.mark.parametrize(("reason", "problem"), [
    ("BadDeviceToken", "is not of sandbox, as upstream answered before"),
    ("DeviceTokenNotForTopic", "does not belong to the apns-topic \"com.example.app\", as upstream answered before"),
])
def test_a_rejected_device_token_is_marked(binary, start, device, tmp_path, reason, problem):
    profile = tmp_path / "reject.yaml"
    profile.write_text(f"name: reject\nrules: [{{name: r, do: {{respond: {{status: 400, reason: {reason}}}}}}}]\n")
    real = start("--profile", profile)
    store = tmp_path / "inbox.sqlite"
    mock = start("--upstream", real.url, "--upstream-ca", real.ca, "--store", f"sqlite:{store}")
    with connect(mock) as wire:
        assert wire.push(push_headers(mock, device)).status == 400
        assert mock.api("GET", f"/devices/{device}")["source"] == "upstream"
        assert wire.push(push_headers(mock, device, apns_collapse_id="c")).status == 400
    second = mock.pushes(q=f"device_token:{device} collapse_id:c")[0]
    assert problem in mock.api("GET", f"/pushes/{second['seq']}/explain")["text"] and not second["upstream"]["deviating"]
    # The mark is kept by the store, and a person who sets the state removes it.
    mock.stop()
    again = start("--store", f"sqlite:{store}")
    assert again.api("GET", f"/devices/{device}")["source"] == "upstream"
    assert again.api("PUT", f"/devices/{device}", {"state": "online"})["source"] is None


@pytest.mark.parametrize(("listener", "service"), [
    ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), ("localhost", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
def test_a_server_does_not_forward_to_itself(binary, tmp_path, listener, service):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = run(binary, "serve", "--apns", f"{listener}:{port}", "--certs", tmp_path / "certs",
               "--upstream", f"https://{service}:{port}")
    assert done.returncode == 2 and f"--upstream {service}:{port} is this server" in done.stderr, done.stderr

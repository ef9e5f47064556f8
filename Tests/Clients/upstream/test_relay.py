"""`serve --upstream`: pushes are forwarded to a second server, which has a CA, keys and rules of its own."""

import asyncio
import http.server
import secrets
import socket
import socketserver
import pathlib
import threading
import uuid

import pytest
from hyperframe.frame import RstStreamFrame

from support import drivers, tokens
from support.conducts.carriers import carrier, missing
from support.conducts.results import Manners, NoReply, Reply, Request
from support.selection import some
from support.server import Server, run, stop_cleanly, wait_until
from support.tracing import network_calls
from support.wire import REFUSED_STREAM, connect, push_headers

ROOT = pathlib.Path(__file__).resolve().parents[3]
KEY_ID, TEAM_ID = "REALKEY123", "REALTEAM12"
INTERNAL_ERROR, CANCEL = 2, 8


@pytest.fixture(scope="session")
def real(binary, tmp_path_factory):
    """The server that replaces APNs."""
    running = Server(binary, tmp_path_factory.mktemp("real-certs"))
    trust_key(running)
    yield running
    stop_cleanly(running)


def trust_key(real):
    """Makes a server trust a key that no other server knows: its own, with another id."""
    real.api("PUT", f"/keys/{KEY_ID}", {"team_id": TEAM_ID, "public_key": tokens.public_half(real.key)})


def bearer(real):
    return "bearer " + tokens.provider_token(key=real.key, key_id=KEY_ID, team_id=TEAM_ID)


@pytest.fixture
def relay(start, real):
    """Starts a server that forwards to `real`, or to `to`."""
    return lambda *flags, to=real, **more: start(
        "--upstream", to.url, "--upstream-ca", to.ca, *flags, **more)


def pushed(relay, real, device, body=b'{"aps":{"alert":"hello"}}', **changes):
    with connect(relay) as wire:
        return wire.push(push_headers(relay, device, **{"authorization": bearer(real), **changes}), body)


def upstream(server):
    return server.api("GET", "/status")["upstream"]


def test_a_push_is_forwarded_and_upstreams_answer_is_given(relay, real, device):
    mock = relay()
    assert mock.logged(f"pushes are forwarded to {real.url}")
    response = pushed(mock, real, device, apns_id=None)
    sent, kept = mock.record(device), real.record(device)
    assert (response.status, response.body) == (200, b"")
    # The ids are those of upstream, and the request is the provider's but for the names of the server.
    assert response.header("apns-id") == kept["apns"]["id"] == sent["apns"]["id"] == sent["upstream"]["apns_id"]
    assert response.header("apns-unique-id")
    assert kept["request"]["payload"] == sent["request"]["payload"]
    own = dict(kept["request"]["headers"])
    assert own[":authority"] == real.authority
    assert own == {**dict(sent["request"]["headers"]), ":authority": real.authority}
    assert sent["auth"]["signature"] == "unknown" and kept["auth"]["signature"] == "valid"
    assert (sent["upstream"]["status"], sent["upstream"]["connection"], sent["upstream"]["deviating"]) == (200, 1, False)
    assert 0 < sent["upstream"]["latency_ms"] <= sent["served"]["latency_ms"]
    assert (sent["outcome"], sent["decision"]) == ("accepted", "accepted")
    assert upstream(mock)["answered"] == 1


def test_an_answer_that_the_rules_do_not_give_is_deviating(relay, real, device):
    mock = relay()
    real.api("PUT", f"/devices/{device}", {"state": "unregistered"})
    response = pushed(mock, real, device)
    first = mock.record(device)
    assert response.status == 410 and b'"Unregistered"' in response.body and b'"timestamp"' in response.body
    assert (first["verdict"]["status"], first["upstream"]["reason"], first["upstream"]["deviating"]) == (200, "Unregistered", True)
    assert [one["seq"] for one in mock.pushes(q="is:deviating")] == [first["seq"]]
    text = mock.api("GET", f"/pushes/{first['seq']}/explain")["text"]
    assert "Upstream answered 410 Unregistered: this deviates from the rules" in text
    assert "(check device_unregistered, see Protocol.md, section 8.2)" in text
    # The token is registered as such, so that the rules say the same now.
    token = mock.api("GET", f"/devices/{device}")
    assert (token["state"], token["source"]) == ("unregistered", "upstream")
    assert pushed(mock, real, device, apns_collapse_id="c").status == 410
    second = mock.pushes(q=f"device_token:{device} collapse_id:c")[0]
    assert ", as upstream answered before. Delete it" in mock.api("GET", f"/pushes/{second['seq']}/explain")["text"]
    assert not mock.pushes(q=f"is:deviating device_token:{device} collapse_id:c")
    # Nothing is learned on demand.
    other = secrets.token_hex(32)
    real.api("PUT", f"/devices/{other}", {"state": "unregistered"})
    silent = relay("--no-learn")
    assert pushed(silent, real, other).status == 410
    assert silent.request("GET", f"/api/v1/devices/{other}").status == 404


def test_a_malformed_push_is_judged_by_upstream_too(relay, real, device):
    mock = relay()
    response = pushed(mock, real, device, apns_priority="7")
    assert (response.status, response.body) == (400, b'{"reason":"BadPriority"}')
    assert mock.record(device)["upstream"]["reason"] == real.record(device)["served"]["reason"] == "BadPriority"


def test_a_fault_costs_no_real_push(relay, real, device, tmp_path):
    profile = tmp_path / "half.yaml"
    profile.write_text("name: half\nrules: [{name: odd, when: {collapse_id: c}, do: {respond: {status: 503, reason: ServiceUnavailable}}}]\n")
    mock = relay("--profile", profile)
    assert pushed(mock, real, device, apns_collapse_id="c").status == 503
    assert pushed(mock, real, device).status == 200
    assert [record["apns"]["collapse_id"] for record in real.pushes(device_token=device)] == [None]
    assert [record["fault"] is not None for record in mock.pushes(device_token=device)] == [True, False]


@pytest.mark.parametrize(("ending", "outcome"), [("reset_stream", "response_lost"), ("nothing", "pending")])
def test_an_answer_can_be_lost_on_purpose(relay, real, device, tmp_path, ending, outcome):
    """`then: forward`: the device gets the push, and the provider does not know."""
    profile = tmp_path / "lost.yaml"
    profile.write_text(f"name: lost\nrules: [{{name: lost, at: response, do: {{lose_answer: {{end_with: {ending}}}}}, then: forward}}]\n")
    mock = relay("--profile", profile)
    with connect(mock) as wire:
        stream = wire.open(push_headers(mock, device, authorization=bearer(real)), b'{"aps":{}}')
        if ending == "reset_stream":
            assert wire.response(stream).reset == INTERNAL_ERROR
        record = wait_until(lambda: [one for one in mock.pushes(device_token=device) if "upstream" in one], "the answer")[0]
    assert (record["upstream"]["status"], record["outcome"], record["accepted"]) == (200, outcome, True)
    assert record["fault"]["rule"] == "lost" and real.record(device)["outcome"] == "accepted"


def test_what_may_not_leave_is_judged_by_the_mock(relay, real, device):
    mock = relay("--allow-topics", "com.example.app", "--allow-tokens", f"{device[:8]}*")
    own = mock.bearer
    with connect(mock) as wire:
        assert wire.push(push_headers(mock, device, authorization=bearer(real))).status == 200
    with connect(mock) as wire:
        assert wire.push(push_headers(mock, device, authorization=own, apns_topic="com.example.other")).status == 200
        assert wire.push(push_headers(mock, "0" * 63 + "1", authorization=own)).status == 200
    assert len(real.pushes(device_token=device)) == 1 and not real.pushes(device_token="0" * 63 + "1")
    assert ["upstream" in record for record in mock.pushes()] == [True, False, False]


@pytest.mark.parametrize(("name", "problem"), [
    ("closed port", "cannot connect to 127.0.0.1:"), ("wrong CA", "is not trusted"), ("HTTP/1.1", "closed the connection|does not speak HTTP/2|failed"),
    ("unknown host", "is unknown"),
])
def test_an_unusable_upstream_is_answered_503(start, real, device, name, problem, server):
    silent = socketserver.TCPServer(("127.0.0.1", 0), HTTP11)
    threading.Thread(target=silent.serve_forever, daemon=True).start()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = {"closed port": closed.getsockname()[1], "wrong CA": real.port, "HTTP/1.1": silent.server_address[1], "unknown host": 1}[name]
    host = "no-such-host.invalid" if name == "unknown host" else "127.0.0.1"
    mock = start("--upstream", f"https://{host}:{port}", "--upstream-ca", server.ca)
    response = pushed(mock, real, device)
    assert (response.status, response.body) == (503, b'{"reason":"ServiceUnavailable"}')
    record = mock.record(device)
    texts = [one["text"] for one in upstream(mock)["problems"]]
    assert (record["outcome"], record["upstream"]["status"]) == ("rejected", None)
    assert any(part in record["upstream"]["problem"] for part in problem.split("|")), record["upstream"]
    assert record["upstream"]["problem"] in texts and upstream(mock)["refused"] == 1
    silent.shutdown()
    silent.server_close()


@pytest.mark.parametrize(("defect", "problem"), [("expired", "certificate has expired"), ("wrong_name", "hostname mismatch")])
def test_a_certificate_that_is_not_valid(binary, relay, device, tmp_path, defect, problem):
    real = Server(binary, tmp_path / "defective-certs", "--profile", f"tls-bad-certificate?use={defect}")
    try:
        mock = relay(to=real)
        assert pushed(mock, real, device).status == 503
        text = mock.record(device)["upstream"]["problem"]
        assert problem in text and real.authority in text, text
        assert real.pushes() == []
    finally:
        stop_cleanly(real)


class HTTP11(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")


def test_a_key_that_upstream_does_not_know(relay, real, device):
    mock = relay()
    foreign = "bearer " + tokens.provider_token(key=real.key, key_id="UNKNOWNKEY", team_id=TEAM_ID)
    response = pushed(mock, real, device, authorization=foreign)
    assert (response.status, response.body) == (403, b'{"reason":"InvalidProviderToken"}')
    assert any("403 InvalidProviderToken" in one["text"] for one in upstream(mock)["problems"])
    assert mock.record(device)["upstream"]["deviating"]


def test_a_provider_certificate_that_is_not_passed_on(relay, certs, device):
    mock = relay()
    with connect(mock, certificate=(certs / "client.pem", certs / "client-key.pem")) as wire:
        assert wire.push(push_headers(mock, device, authorization=None)).status == 403
    assert "--upstream-cert FILE" in mock.api("GET", "/pushes/1/explain")["text"]
    assert "--upstream-cert FILE" in upstream(mock)["problems"][0]["text"]


def faulty(binary, folder, *rules):
    """Starts a server that replaces APNs with fault rules."""
    profile = folder / "real.yaml"
    profile.write_text("name: real\nrules: [" + ", ".join(rules) + "]\n")
    running = Server(binary, folder / "faulty-certs", "--profile", profile)
    trust_key(running)
    return running


@pytest.mark.parametrize(("action", "status", "reset", "outcome"), [
    ("{reset_stream: {code: REFUSED_STREAM}}", 503, None, "rejected"),
    ("{reset_stream: {code: CANCEL}}", None, INTERNAL_ERROR, "unknown"),
    ("{goaway: {last_stream: before_this}}", None, REFUSED_STREAM, "unprocessed"),
    ("{reset_connection: {}}", None, INTERNAL_ERROR, "unknown"),
    ("{close: }", None, INTERNAL_ERROR, "unknown"),
    ("{respond: {status: 429, reason: TooManyRequests}}", 429, None, "rejected"),
    ("{respond: {status: 500, reason: Strange, unreal: true}}", 500, None, "rejected"),
])
def test_the_provider_always_gets_an_answer(binary, relay, device, tmp_path, action, status, reset, outcome):
    real = faulty(binary, tmp_path, f"{{name: one, do: {action}}}")
    try:
        mock = relay(to=real)
        response = pushed(mock, real, device)
        record = mock.record(device)
        assert (response.status, response.reset, record["outcome"]) == (status, reset, outcome), record
        assert record["findings"] == []
    finally:
        stop_cleanly(real)


def test_nothing_waits_for_ever_for_an_upstream_that_says_nothing(relay, real, device):
    """Streams beyond the limit of a stalled upstream wait, memory stays flat, and a client that gives up is recorded."""
    mock = relay()
    pushed(mock, real, device)
    real.signal(19)
    try:
        with connect(mock) as wire:
            headers = push_headers(mock, device, authorization=bearer(real))
            streams = [wire.open(headers, b'{"aps":{}}') for _ in range(300)]
            wait_until(lambda: len(mock.pushes(outcome="pending", limit=500)) == 300, "all are pending")
            before = mock.resident_bytes()
            assert upstream(mock)["open"] + upstream(mock)["waiting"] == 300
        wait_until(lambda: not mock.pushes(outcome="pending"), "the attempts end with the connection")
        ended = mock.pushes(device_token=device, limit=500)[1:]
        assert len(streams) == 300 and {record["ending"] for record in ended} == {"disconnected"}
        assert {record["outcome"] for record in ended} <= {"unknown", "unanswered"}
        assert before is None or mock.resident_bytes() - before < 20 << 20
    finally:
        real.signal(18)


def test_a_provider_that_gives_up_resets_the_stream_of_upstream(relay, start, device):
    real = start()
    real.api("POST", "/rules", {"name": "stall", "do": {"hang": {}}})
    mock = relay(to=real)
    with connect(mock) as wire:
        stream = wire.open(push_headers(mock, device), b'{"aps":{}}')
        wait_until(lambda: len(real.pushes(outcome="pending")) == 1, "it is forwarded")
        wire.send(RstStreamFrame(stream, error_code=CANCEL))
        wait_until(lambda: real.record(device)["ending"] == "cancelled", "upstream's stream is reset")
        assert mock.record(device)["outcome"] == "unknown" and upstream(mock)["open"] == 0
        wire.open(push_headers(mock, device), b'{"aps":{}}')
        wait_until(lambda: len(real.pushes(outcome="pending")) == 1, "it is forwarded")
    wait_until(lambda: [each["ending"] for each in real.pushes()] == ["cancelled"] * 2, "a provider that disconnects gives up, too")


def test_a_shutdown_ends_what_a_stalled_upstream_has_not_answered(relay, real, device):
    mock = relay("--shutdown-timeout", "300ms", "--threads", "1")
    pushed(mock, real, device)
    real.signal(19)
    try:
        with connect(mock) as wire:
            stream = wire.open(push_headers(mock, device, authorization=bearer(real)), b'{"aps":{}}')
            wait_until(lambda: upstream(mock)["open"] == 1, "the push is forwarded")
            mock.signal()
            assert wire.response(stream).reset == INTERNAL_ERROR
    finally:
        real.signal(18)


def test_a_shutdown_waits_for_answers(binary, start, device, tmp_path):
    profile = tmp_path / "slow.yaml"
    profile.write_text("name: slow\nrules: [{name: slow, do: {delay: {fixed: 300ms}}}]\n")
    real = start("--profile", profile)
    mock = start("--upstream", real.url, "--upstream-ca", real.ca)
    with connect(mock) as wire:
        stream = wire.open(push_headers(mock, device), b'{"aps":{}}')
        wait_until(lambda: upstream(mock)["open"] == 1, "the push is forwarded")
        mock.signal()
        assert wire.response(stream).status == 200
    assert real.record(device)["outcome"] == "accepted"


class Tunnel(http.server.BaseHTTPRequestHandler):
    """An HTTP proxy that makes tunnels and remembers their targets."""

    targets = []

    def do_CONNECT(self):
        self.targets.append((self.path, self.headers["proxy-authorization"]))
        host, port = self.path.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as target:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=copy, args=(target, self.connection), daemon=True)
            back.start()
            copy(self.connection, target)

    def log_message(self, *_):
        pass


def copy(source, target):
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def test_a_proxy_is_used(relay, real, device):
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tunnel)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    port = proxy.server_address[1]
    mock = relay(environment={"HTTPS_PROXY": f"http://user:p%40ss@127.0.0.1:{port}"})
    assert pushed(mock, real, device).status == 200
    assert Tunnel.targets == [(real.authority, "Basic dXNlcjpwQHNz")]
    assert upstream(mock)["proxy"] == f"127.0.0.1:{port}"
    direct = relay(environment={"https_proxy": "http://127.0.0.1:1", "no_proxy": "example.com, localhost"})
    assert pushed(direct, real, device).status == 200
    dead = relay(environment={"HTTPS_PROXY": "http://127.0.0.1:1"})
    assert pushed(dead, real, device).status == 503
    assert "cannot connect to the proxy 127.0.0.1:1" in dead.record(device)["upstream"]["problem"]
    proxy.shutdown()
    proxy.server_close()


@pytest.mark.parametrize(("flags", "message"), [
    (["--upstream", "http://localhost:1"], "expected sandbox, production"),
    (["--upstream", "https://localhost:1/3/device"], "expected sandbox, production"),
    (["--upstream", "https://localhost:1", "--upstream-ca", "missing.pem"], "cannot read certificate authorities from missing.pem"),
    (["--upstream", "sandbox", "--upstream-cert", "a.pem"], "belong together"),
    (["--upstream-ca", "a.pem"], "--upstream-ca needs --upstream"), (["--no-learn"], "--no-learn needs --upstream"),
    (["--upstream-connections", "3"], "--upstream-connections needs --upstream"), (["--durable", "answer"], "--durable needs --store"),
    (["--upstream", "sandbox", "--upstream-connections", "0"], "--upstream-connections"),
])
def test_wrong_flags(binary, flags, message, tmp_path):
    done = run(binary, "serve", "--certs", tmp_path / "c", *flags)
    assert done.returncode == 2 and message.lower() in done.stderr.lower(), done.stderr


def connections_made(server, tmp_path, work):
    """Returns the `connect` calls of a server while `work` runs, as lines of strace."""
    return [line for line in network_calls(server, tmp_path, work) if " connect(" in line and "AF_INET" in line]


def test_nothing_leaves_without_the_flag(relay, real, start, device, tmp_path):
    plain = start()

    def push():
        with connect(plain) as wire:
            assert wire.push(push_headers(plain, device)).status == 200

    assert connections_made(plain, tmp_path, push) == []
    mock = relay()
    made = connections_made(mock, tmp_path, lambda: pushed(mock, real, device))
    assert made and all(f"htons({real.port})" in line for line in made), made


@pytest.mark.parametrize("client", some([name for name in drivers.ALL if name not in drivers.FIXED], 3))
def test_provider_libraries_push_through_the_relay(start, device, client):
    real = start()
    mock = start("--upstream", real.url, "--upstream-ca", real.ca)
    apns_id = str(uuid.uuid4())
    reply = drivers.ALL[client](mock, drivers.Push(device, {"aps": {"alert": {"title": "Hi"}}}, apns_id=apns_id))
    assert reply.status == 200
    kept, sent = real.record(device), mock.record(device)
    assert kept["apns"]["id"] == sent["apns"]["id"] == reply.apns_id and not sent["upstream"]["deviating"]
    rejected = drivers.ALL[client](mock, drivers.Push(device, {"aps": {"alert": {"title": "Hi"}}}, apns_id=str(uuid.uuid4()), collapse_id="c" * 65))
    assert (rejected.status, rejected.reason) == (400, "BadCollapseId")


def sent(name, mock, headers, count):
    """Sends pushes with an HTTP/2 client of `carriers`, eight at a time; returns the reply or the error of each by device token."""

    async def send_all():
        client, gate, results = carrier(name, mock.port, mock.ca, Manners(), ROOT / ".build/campaigns"), asyncio.Semaphore(8), {}

        async def send(device):
            async with gate:
                try:
                    results[device] = await client.send(Request(f"/3/device/{device}", headers, b'{"aps":{"alert":"hello"}}', mock.authority))
                except NoReply as error:
                    results[device] = error

        await asyncio.gather(*(send(f"{number:064x}") for number in range(count)))
        await client.close()
        return results

    return asyncio.run(send_all())


@pytest.mark.parametrize(("profile", "client"), [
    (profile, client) for number, profile in enumerate(["goaway-storm", "stream-throttle", "connection-reset", "flaky-503"])
    for client in some(["go", "node", "httpx"], 1, number)])
def test_accounts_agree_under_faults_of_upstream(binary, relay, tmp_path, profile, client):
    """What the relay records is what upstream did and what the client was answered, whatever upstream does to its connections."""
    if client in missing():
        pytest.skip(f"{client} is not on this machine and `.ci/packages test` could not install it")
    real = Server(binary, tmp_path / "stormy-certs", "--profile", profile, "--seed", "7")
    trust_key(real)
    try:
        mock = relay(to=real)
        headers = {"authorization": bearer(real), "apns-topic": "com.example.app", "apns-push-type": "alert"}
        results = sent(client, mock, headers, 200)
        records = mock.pushes(limit=1000)

        def devices(records, *outcomes):
            return {record["request"]["device_token"] for record in records if record["outcome"] in outcomes}

        told = {device for device, result in results.items() if isinstance(result, Reply) and result.status == 200}
        unanswered = {device for device, result in results.items() if isinstance(result, NoReply)}
        recorded = devices(records, "accepted")
        assert len(results) == 200 == len({record["request"]["device_token"] for record in records}) and told
        assert told <= recorded <= told | unanswered
        accepted = {record["request"]["device_token"] for record in real.pushes(accepted="true", limit=1000)}
        assert recorded <= accepted <= recorded | devices(records, "unknown")
    finally:
        stop_cleanly(real)


def test_each_team_has_a_connection(relay, real, device):
    """APNs binds a connection to one team. A team without one gets the second one of another team."""
    real.api("PUT", "/keys/OTHERKEY12", {"team_id": "OTHERTEAM1", "public_key": tokens.public_half(real.key)})
    other = "bearer " + tokens.provider_token(key=real.key, key_id="OTHERKEY12", team_id="OTHERTEAM1")
    mock = relay("--threads", "2")
    for authorization in [bearer(real)] * 4 + [other] * 2 + [bearer(real)] * 4:
        with connect(mock) as wire:
            assert wire.push(push_headers(mock, device, authorization=authorization)).status == 200
    wait_until(lambda: upstream(mock)["connections"] == 2, "the first connection is closed")
    assert upstream(mock)["problems"] == []

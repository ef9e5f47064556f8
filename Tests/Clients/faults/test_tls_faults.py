"""Faults before HTTP/2 begins, at the injection points accept and tls: refused and silent connections, handshakes
that stall or end with an alert, bad certificates. Observed with sockets, openssl, curl and Python's ssl.
"""

import datetime
import re
import socket
import ssl
import subprocess
import time

import pytest
from cryptography import x509

from support import drivers
from support.faults import (  # noqa: F401 (fixtures)
    SHORT, Faults, faults, line, mock, new_device, serves,
)
from support.server import clean_environment, wait_until
from support.wire import TIMEOUT, Wire, client_context, connect, push_headers, read_until_closed, tls_socket

# RFC 8446, section 6, and those of RFC 5246 that clients still know.
ALERTS = {
    "unexpected_message": 10, "bad_record_mac": 20, "record_overflow": 22, "handshake_failure": 40,
    "bad_certificate": 42, "unsupported_certificate": 43, "certificate_revoked": 44, "certificate_expired": 45,
    "certificate_unknown": 46, "illegal_parameter": 47, "unknown_ca": 48, "access_denied": 49, "decode_error": 50,
    "decrypt_error": 51, "protocol_version": 70, "insufficient_security": 71, "internal_error": 80,
    "inappropriate_fallback": 86, "missing_extension": 109, "unsupported_extension": 110, "unrecognized_name": 112,
    "bad_certificate_status_response": 113, "unknown_psk_identity": 115, "certificate_required": 116,
    "no_application_protocol": 120,
}
BOTH = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


def plain_socket(server, port=None):
    return socket.create_connection(("127.0.0.1", port or server.port), timeout=TIMEOUT)


def greeting(server, name="localhost", **options):
    """Returns a real client's first flight."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(server.ca, **options).wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def is_refused(server, port=None, **options):
    """Returns whether a client that connects and sends a ClientHello is reset without a reply, however early the
    kernel reports the reset.
    """
    try:
        sock = socket.create_connection(("127.0.0.1", port or server.port), timeout=TIMEOUT, **options)
        with sock:
            sock.sendall(greeting(server))
            first = sock.recv(1)
    except ConnectionResetError:
        return True
    assert first == b"\x16", first
    return False


def says_nothing(sock, seconds=SHORT):
    """Returns whether neither data nor an end arrives for this long."""
    sock.settimeout(seconds)
    try:
        return sock.recv(1) is None
    except TimeoutError:
        return True
    finally:
        sock.settimeout(TIMEOUT)


def openssl(server, *flags, name="localhost"):
    """Runs `openssl s_client` until it fails or receives SETTINGS; returns its exit code and its output."""
    done = subprocess.run(
        [drivers.tool("openssl"), "s_client", "-connect", f"127.0.0.1:{server.port}", "-servername", name, "-CAfile",
         server.ca, "-verify_return_error", "-verify_hostname", name, "-alpn", "h2", *flags],
        input="", capture_output=True, text=True, timeout=30, errors="replace", env=clean_environment())
    return done.returncode, done.stdout + done.stderr


def curl(server, *flags, host="localhost"):
    device = new_device()
    push = drivers.Push(device, {"aps": {}})
    arguments = [drivers.tool("curl"), "-sS", "--http2", "--cacert", server.ca, "--max-time", "20", "--data", push.body,
                 "--write-out", "%{http_code}"]
    for name, value in push.headers(server).items():
        arguments += ["--header", f"{name}: {value}"]
    return subprocess.run(
        [*arguments, *flags, f"https://{host}:{server.port}/3/device/{device}"], capture_output=True, text=True,
        timeout=30, env=clean_environment(NO_PROXY="*"))


def connections(server, state=None):
    query = {"state": state} if state else {}
    return server.api("GET", "/connections", **query)["items"]


# Accepting

def test_a_refused_connection_is_reset_as_soon_as_it_is_there(mock, faults):
    rule = faults.add({"refuse": {}}, at="accept")
    assert [is_refused(mock) for _ in range(5)] == [True] * 5
    assert faults.fired(rule) == 5
    done = curl(mock)
    # The reset may occur while connecting, in the handshake, while sending or while receiving.
    assert done.returncode in (7, 35, 55, 56), (done.returncode, done.stderr)
    code, text = openssl(mock)
    assert code != 0 and re.search(r"errno=(104|54)\b|reset by peer", text), text


def test_a_refused_connection_in_the_timeline(mock, faults):
    name = faults.add({"refuse": {}}, at="accept", name="closed-door")
    assert is_refused(mock)
    found = wait_until(
        lambda: [one for one in connections(mock, "closed")
                 if any(name in event["detail"] for event in one["events"])], "in the list")
    assert [(event["event"], event["detail"]) for event in found[-1]["events"]] == [
        ("accepted", "listener=0"), ("fault", f"rule {name}: refuse"), ("reset", "TCP RST"), ("closed", "")]


def test_silence_sends_nothing_and_then_closes(mock, faults):
    faults.add({"silence": {"for": "800ms"}}, at="accept")
    began = time.monotonic()
    with plain_socket(mock) as sock:
        sock.sendall(greeting(mock))
        assert says_nothing(sock)
        data, end = read_until_closed(sock)
        assert data == b"" and time.monotonic() - began >= 0.8


def test_silence_without_end(mock, faults):
    faults.add({"silence": {}}, at="accept")
    with plain_socket(mock) as sock:
        sock.sendall(greeting(mock))
        assert says_nothing(sock, 1)
    assert curl(mock, "--connect-timeout", "1").returncode == 28
    with pytest.raises(TimeoutError), plain_socket(mock) as sock:
        sock.settimeout(0.5)
        client_context(mock.ca).wrap_socket(sock, server_hostname="localhost")


def test_a_silent_connection_outlives_the_handshake_time_limit(mock, faults):
    """Without the fault, a connection without a handshake is closed after ten seconds."""
    faults.add({"silence": {}}, at="accept")
    with plain_socket(mock) as sock:
        assert says_nothing(sock, 11)


def test_many_silent_connections_do_not_delay_others(mock, faults):
    rule = faults.add({"silence": {}}, at="accept", trigger={"first": 100})
    sockets = [plain_socket(mock) for _ in range(100)]
    wait_until(lambda: faults.fired(rule) == 100, "all silent")
    serves(mock)
    for sock in sockets:
        sock.close()


def test_a_listener_refuses_and_the_other_serves(start):
    server = start(apns=["127.0.0.1:0", "127.0.0.1:0"])
    Faults(server).add({"refuse": {}}, at="accept", when={"listener": 1})
    (_, first), (_, second) = server.listeners
    assert is_refused(server, second)
    with connect(server, port=first) as wire:
        assert wire.push(push_headers(server, new_device())).status == 200


def test_by_the_clients_address(start):
    """Linux assigns all of 127/8 to its loopback interface."""
    server = start()
    Faults(server).add({"refuse": {}}, at="accept", when={"client": {"prefix": "127.0.0.2"}})
    for address, refused in (("127.0.0.2", True), ("127.0.0.1", False)):
        with socket.socket() as sock:
            try:
                sock.bind((address, 0))
            except OSError as error:
                pytest.skip(f"this machine has no {address}: {error}")
        assert is_refused(server, source_address=(address, 0)) is refused


def test_every_second_connection_is_refused(mock, faults):
    faults.add({"refuse": {}}, at="accept", trigger={"every": 2})
    assert [is_refused(mock) for _ in range(6)] == [False, True] * 3


def test_a_client_reconnects_after_an_outage(mock, faults):
    began = time.monotonic()
    faults.add({"refuse": {}}, at="accept", trigger={"window": {"for": "1500ms"}})
    tries = 0
    while True:
        tries += 1
        try:
            with connect(mock) as wire:
                assert wire.push(push_headers(mock, new_device())).status == 200
                break
        except (ConnectionError, ssl.SSLError, OSError):
            time.sleep(0.05)
    assert tries > 1 and time.monotonic() - began >= 1.4


# Alerts

def alert_on_the_wire(server, **options):
    """Returns the only record sent in response to a ClientHello, and how the connection ends."""
    with plain_socket(server) as sock:
        sock.sendall(greeting(server, **options))
        return read_until_closed(sock)


@pytest.mark.parametrize(("name", "number"), ALERTS.items(), ids=list(ALERTS))
def test_alert_by_name(mock, faults, name, number):
    faults.add({"alert": {"name": name}}, at="tls")
    data, end = alert_on_the_wire(mock)
    assert (data[0], data[1], data[3:5], data[6:]) == (21, 3, b"\x00\x02", bytes([number])), data.hex()
    assert data[5] == 2, "fatal"
    assert end == "fin"


def test_alert_by_number_and_without_a_name(mock, faults):
    faults.add({"alert": {"name": 200}}, at="tls", name="which")
    assert alert_on_the_wire(mock)[0][5:] == bytes([2, 200])
    faults.add({"alert": {}}, at="tls", name="which")
    assert alert_on_the_wire(mock)[0][5:] == bytes([2, 40])


@BOTH
@pytest.mark.parametrize("name", ["handshake_failure", "internal_error", "certificate_required", "unknown_ca"])
def test_alert_is_printed_by_openssl(mock, faults, version, name):
    faults.add({"alert": {"name": name}}, at="tls")
    code, text = openssl(mock, "-tls1_2" if version == ssl.TLSVersion.TLSv1_2 else "-tls1_3")
    assert code != 0
    assert f"SSL alert number {ALERTS[name]}" in text, text


@BOTH
@pytest.mark.parametrize(("name", "reason"), [
    ("handshake_failure", "SSLV3_ALERT_HANDSHAKE_FAILURE"), ("internal_error", "TLSV1_ALERT_INTERNAL_ERROR"),
    ("access_denied", "TLSV1_ALERT_ACCESS_DENIED"), ("unrecognized_name", "TLSV1_UNRECOGNIZED_NAME"),
])
def test_alert_is_raised_by_python(mock, faults, version, name, reason):
    faults.add({"alert": {"name": name}}, at="tls")
    with pytest.raises(ssl.SSLError) as raised:
        tls_socket(mock, version=version)
    assert raised.value.reason == reason


def test_alert_is_reported_by_curl(mock, faults):
    faults.add({"alert": {"name": "handshake_failure"}}, at="tls")
    done = curl(mock)
    assert done.returncode == 35 and "alert" in done.stderr, done.stderr


def test_alert_for_one_host_name_alone(mock, faults):
    faults.add({"alert": {}}, at="tls", when={"sni": "api.push.apple.com"})
    with pytest.raises(ssl.SSLError):
        tls_socket(mock, name="api.push.apple.com")
    serves(mock)
    with tls_socket(mock, name="api.sandbox.push.apple.com"):
        pass


@pytest.mark.parametrize("name", [None, "localhost"])
def test_alert_for_clients_that_name_no_host(mock, faults, name):
    faults.add({"alert": {}}, at="tls", when={"sni": {"present": False}})
    context = client_context(mock.ca)
    context.check_hostname = False
    if name is None:
        with pytest.raises(ssl.SSLError):
            tls_socket(mock, context=context, name=None)
    else:
        with tls_socket(mock, context=context, name=name):
            pass


def test_the_first_two_handshakes_fail_and_the_third_works(mock, faults):
    faults.add({"alert": {}}, at="tls", trigger={"first": 2})
    for _ in range(2):
        with pytest.raises(ssl.SSLError):
            tls_socket(mock)
    serves(mock)


@pytest.mark.parametrize("when", [
    {"topic": "com.example.app"}, {"device_token": "ab"}, {"payload": {"/aps": {"present": True}}}, {"priority": 10},
    {"attempt": 1}, {"jwt": {"age": {"gt": "1s"}}}, {"certificate": "com.example.app"},
])
def test_conditions_on_pushes_are_invalid_at_the_handshake(mock, faults, when):
    response = mock.request("POST", "/api/v1/rules", {"do": {"alert": {}}, "at": "tls", "when": when})
    assert response.status == 422, response.body
    assert response.json["problems"][0]["path"].startswith("when." + next(iter(when))), response.body


# Stalling

@BOTH
def test_a_stalled_handshake_sends_nothing_and_then_closes(mock, faults, version):
    faults.add({"stall": {"for": "800ms"}}, at="tls")
    began = time.monotonic()
    with plain_socket(mock) as sock:
        sock.sendall(greeting(mock, version=version))
        assert says_nothing(sock)
        assert read_until_closed(sock) == (b"", "fin")
        assert time.monotonic() - began >= 0.8


def test_a_stalled_handshake_that_ends_with_nothing(mock, faults):
    faults.add({"stall": {"for": "300ms", "end_with": "nothing"}}, at="tls")
    with plain_socket(mock) as sock:
        sock.sendall(greeting(mock))
        assert says_nothing(sock, 1.2)


@BOTH
def test_a_stalled_handshake_that_continues(mock, faults, version):
    """The handshake continues as usual after the stall."""
    faults.add({"stall": {"for": "600ms", "end_with": "answer"}}, at="tls")
    began = time.monotonic()
    with connect(mock, version=version) as wire:
        assert time.monotonic() - began >= 0.6
        assert wire.push(push_headers(mock, new_device())).status == 200


def test_a_handshake_that_continues_after_a_stall_still_has_a_time_limit(mock, faults):
    """The server continues after the stall, but the client does not: closed 10 s later."""
    faults.add({"stall": {"for": "300ms", "end_with": "answer"}}, at="tls")
    began = time.monotonic()
    with plain_socket(mock) as sock:
        sock.sendall(greeting(mock))
        sock.settimeout(25)
        data, _ = read_until_closed(sock)
        assert data, "the server's part of the handshake is missing"
        assert 10 <= time.monotonic() - began < 20


def test_a_stall_ends_with_the_limits_of_the_profile(mock, faults):
    faults.use([{"name": "stuck", "at": "tls", "do": {"stall": {}}}], limits={"max_hold": "500ms"})
    began = time.monotonic()
    with plain_socket(mock) as sock:
        sock.sendall(greeting(mock))
        assert read_until_closed(sock) == (b"", "fin")
        assert time.monotonic() - began >= 0.5


def test_a_stall_and_the_timeout_of_curl(mock, faults):
    faults.add({"stall": {"for": "30s"}}, at="tls")
    assert curl(mock, "--connect-timeout", "1").returncode == 28


def test_stalled_handshakes_do_not_delay_others(mock, faults):
    rule = faults.add({"stall": {"for": "60s"}}, at="tls", trigger={"first": 100})
    sockets = []
    for _ in range(100):
        sockets.append(plain_socket(mock))
        sockets[-1].sendall(greeting(mock))
    wait_until(lambda: faults.fired(rule) == 100, "all stalled")
    serves(mock)
    for sock in sockets:
        sock.close()


def test_a_stalled_greeting_in_pieces(mock, faults):
    """The rule matches on the complete ClientHello, even if it arrives in pieces."""
    faults.add({"alert": {}}, at="tls", when={"sni": "localhost"})
    hello = greeting(mock)
    with plain_socket(mock) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for index in range(0, len(hello), 50):
            sock.sendall(hello[index:index + 50])
            time.sleep(0.002)
        assert read_until_closed(sock)[0][5:] == bytes([2, 40])


# Certificates

VERIFY = {"expired": 10, "wrong_name": 62}  # X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_HOSTNAME_MISMATCH
KINDS = ["expired", "wrong_name", "untrusted"]


def shown(server, version=None):
    """Returns the certificate that the server presents to a client that accepts any."""
    context = client_context(server.ca, version=version)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Wire(tls_socket(server, context=context)) as wire:
        assert wire.push(push_headers(server, new_device())).status == 200, "a careless client is served"
        return x509.load_der_x509_certificate(wire.sock.getpeercert(binary_form=True))


def names(certificate):
    return certificate.extensions.get_extension_for_class(
        x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_certificate_with_one_thing_wrong(mock, faults, version, kind):
    """All other properties are valid, so that a client can only fail because of this one."""
    good = shown(mock, version)
    faults.add({"certificate": {"use": kind}}, at="tls")
    bad = shown(mock, version)
    now = datetime.datetime.now(datetime.timezone.utc)
    with open(mock.ca, "rb") as file:
        authority = x509.load_pem_x509_certificate(file.read())
    assert (bad.not_valid_after_utc < now) is (kind == "expired")
    assert ("localhost" in names(bad)) is (kind != "wrong_name")
    if kind == "untrusted":
        with pytest.raises(Exception):
            bad.verify_directly_issued_by(authority)
    else:
        bad.verify_directly_issued_by(authority)
    faults.clear()
    assert shown(mock, version) == good, "the good one is back"


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_certificate_openssl_refuses_it(mock, faults, version, kind):
    flag = "-tls1_2" if version == ssl.TLSVersion.TLSv1_2 else "-tls1_3"
    code, text = openssl(mock, flag)
    assert code == 0 and "Verify return code: 0 (ok)" in text, text
    faults.add({"certificate": {"use": kind}}, at="tls")
    code, text = openssl(mock, flag)
    assert code != 0
    found = re.search(r"verify error:num=(\d+)", text) or re.search(r"Verify return code: (\d+)", text)
    assert int(found[1]) in ({VERIFY[kind]} if kind in VERIFY else {18, 19, 20, 21}), text


@pytest.mark.parametrize("kind", KINDS)
def test_certificate_curl_ends_with_60(mock, faults, kind):
    faults.add({"certificate": {"use": kind}}, at="tls")
    done = curl(mock)
    assert done.returncode == 60, (done.returncode, done.stderr)
    done = curl(mock, "--insecure")
    assert (done.returncode, done.stdout) == (0, "200"), done.stderr


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_certificate_python_refuses_it(mock, faults, version, kind):
    faults.add({"certificate": {"use": kind}}, at="tls")
    with pytest.raises(ssl.SSLCertVerificationError) as raised:
        tls_socket(mock, version=version)
    assert raised.value.verify_code in ({VERIFY[kind]} if kind in VERIFY else {18, 19, 20, 21})


@BOTH
def test_certificate_is_shown_to_a_client_with_a_saved_session_too(mock, faults, version):
    """With a resumed session the client would not see the certificate although the rule fired."""
    context = client_context(mock.ca, version=version)
    with Wire(tls_socket(mock, context=context)) as wire:
        assert wire.push(push_headers(mock, new_device())).status == 200
        session = wire.sock.session
    faults.add({"certificate": {"use": "expired"}}, at="tls")
    with pytest.raises(ssl.SSLCertVerificationError):
        tls_socket(mock, context=context, session=session)


def test_certificate_for_one_host_name_alone(mock, faults):
    faults.add({"certificate": {"use": "expired"}}, at="tls", when={"sni": {"glob": "*.push.apple.com"}})
    with pytest.raises(ssl.SSLCertVerificationError):
        tls_socket(mock, name="api.push.apple.com")
    serves(mock)


def test_certificate_and_a_provider_certificate_of_the_client(mock, faults, certs):
    """A client that does not verify the server still authenticates with its own certificate."""
    faults.add({"certificate": {"use": "untrusted"}}, at="tls")
    context = client_context(mock.ca, certificate=(certs / "client.pem", certs / "client-key.pem"))
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    device = new_device()
    with Wire(tls_socket(mock, context=context)) as wire:
        assert wire.push(push_headers(mock, device, authorization=None)).status == 200
    assert mock.record(device)["auth"]["kind"] == "certificate"


def test_built_in_profiles_do_the_same(mock, faults):
    """The built-in profiles for the handshake."""
    mock.api("PUT", "/profile", {"name": "tls-bad-certificate", "params": {"use": "wrong_name"}})
    assert curl(mock).returncode == 60
    mock.api("PUT", "/profile", {"name": "tls-handshake-stall", "params": {"hold": "700ms"}})
    with plain_socket(mock) as sock:
        sock.sendall(greeting(mock))
        assert says_nothing(sock)
        assert read_until_closed(sock)[0] == b""


# Records of these faults

def test_the_timeline_shows_handshake_faults(mock, faults):
    faults.add({"certificate": {"use": "expired"}}, at="tls", name="old-paper")
    with pytest.raises(ssl.SSLCertVerificationError):
        tls_socket(mock)
    found = wait_until(
        lambda: [one for one in connections(mock, "closed")
                 if any(event["detail"] == "rule old-paper: certificate" for event in one["events"])], "in the list")
    kinds = [event["event"] for event in found[-1]["events"]]
    assert kinds[:2] == ["accepted", "fault"] and kinds[-1] == "closed", kinds


def test_a_stall_delays_no_shutdown(start):
    """Nor do silence and delayed pushes; this server's shutdown timeout is longer than the test."""
    server = start("--shutdown-timeout", "10m")
    mine = Faults(server)
    with line(server) as wire:
        mine.add({"hang": {}}, name="hang")
        wire.open(push_headers(server, new_device()), b"{}")
        wire.ping()
        mine.add({"stall": {}}, at="tls", when={"sni": "localhost"}, name="stall")
        stalled = plain_socket(server)
        stalled.sendall(greeting(server))
        wait_until(lambda: mine.explain("stall")["fired"] == 1, "stalled")
        mine.add({"silence": {}}, at="accept")
        silent = plain_socket(server)
        assert says_nothing(silent)
        assert server.stop() == 0
        for sock in (stalled, silent):
            read_until_closed(sock)
            sock.close()

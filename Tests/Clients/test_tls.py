"""TLS as clients in the field use it: versions, names, resumption, addresses."""

import pathlib
import socket
import ssl

import pytest

from support.wire import Closed, Wire, client_context, connect, push_headers, tls_socket

BOTH = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


@BOTH
@pytest.mark.parametrize("alpn", [("h2",), (), ("http/1.1", "h2"), ("spdy/3", "h2-14", "h2")],
                         ids=["h2", "none", "http/1.1 and h2", "old node-apn"])
def test_both_versions_with_alpn_and_without(server, device, version, alpn):
    with connect(server, version=version, alpn=alpn) as wire:
        assert wire.sock.selected_alpn_protocol() == ("h2" if alpn else None)
        assert wire.push(push_headers(server, device)).status == 200
    connection = server.record(device)["connection"]
    assert (connection["tls"], connection["sni"]) == (f"TLSv1.{version - 0x301}", "localhost")


@BOTH
def test_a_client_without_sni_is_served(server, device, version):
    context = client_context(server.ca, version=version)
    context.check_hostname = False
    with connect(server, context=context, name=None) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    assert server.record(device)["connection"]["sni"] is None


@BOTH
@pytest.mark.parametrize("certificate", [False, True], ids=["token", "certificate"])
def test_a_saved_session_connects_again(server, device, version, certificate):
    """A server that asks for certificates and has no session context aborts every resumed handshake."""
    folder = pathlib.Path(server.certs)
    pair = (folder / "client.pem", folder / "client-key.pem") if certificate else None
    context = client_context(server.ca, version=version, certificate=pair)
    changes = {"authorization": None} if certificate else {}
    session = None
    for _ in range(3):
        with Wire(tls_socket(server, context=context, session=session)) as wire:
            assert wire.push(push_headers(server, device, **changes)).status == 200
            session = wire.sock.session
    assert len(server.pushes(device_token=device, accepted="true")) == 3


@pytest.mark.parametrize("name", [
    "localhost", "127.0.0.1", "::1", "apns-mock", "host.docker.internal", "api.push.apple.com",
    "api.sandbox.push.apple.com", "api.development.push.apple.com", "api-broadcast.push.apple.com",
    "api-manage-broadcast.sandbox.push.apple.com", socket.gethostname(),
])
def test_the_certificate_bears_every_name_clients_use(server, name):
    with tls_socket(server, name=name) as sock:
        assert sock.getpeercert()["subjectAltName"]


def test_a_name_of_the_users_own(start, tmp_path):
    server = start("--san", "push.ci.internal", certs=tmp_path / "certs")
    with tls_socket(server, name="push.ci.internal"):
        pass
    with pytest.raises(ssl.SSLCertVerificationError), tls_socket(server, name="elsewhere.internal"):
        pass


def test_strict_verifiers_are_content(server):
    """As Python 3.13 verifies by default: key ids and critical key usage must be there."""
    context = client_context(server.ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    with tls_socket(server, context=context):
        pass


def test_a_client_that_does_not_trust_the_ca_ends_its_own_handshake_only(server, device):
    with connect(server) as neighbour:
        assert neighbour.push(push_headers(server, device)).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            tls_socket(server, context=ssl.create_default_context())
        assert neighbour.push(push_headers(server, device)).status == 200


def test_a_certificate_of_a_foreign_authority_is_refused_in_the_handshake(server, start, tmp_path):
    other = start(certs=tmp_path / "certs")
    folder = pathlib.Path(other.certs)
    with pytest.raises((ssl.SSLError, ConnectionResetError, Closed)):
        with connect(server, certificate=(folder / "client.pem", folder / "client-key.pem")) as wire:
            wire.receive()  # with TLS 1.3 the alert arrives after the client's side is done
    assert [frame for frame in wire.frames if frame.type != 4] == []


def ipv6_is_here():
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
        return True
    except OSError:
        return False


@pytest.mark.skipif(not ipv6_is_here(), reason="this machine has no ::1")
def test_ipv6(start, device):
    server = start(apns=["[::1]:0"])
    assert server.listeners[0][0] == "::1"
    with connect(server, host="::1", name="::1") as wire:
        assert wire.push(push_headers(server, device)).status == 200
    assert server.record(device)["connection"]["client"].startswith("[::1]:")


def test_records_know_their_listener(start, device):
    server = start(apns=["127.0.0.1:0", "127.0.0.1:0"])
    assert len({port for _, port in server.listeners}) == 2
    for _, port in server.listeners:
        with connect(server, port=port) as wire:
            assert wire.push(push_headers(server, device)).status == 200
    assert [record["listener"] for record in server.pushes(device_token=device)] == [0, 1]

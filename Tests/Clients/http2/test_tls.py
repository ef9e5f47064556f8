"""TLS as real clients use it: versions, names, resumption, addresses."""

import pathlib
import socket
import ssl
import threading

import pytest

from support.wire import TIMEOUT, Closed, Wire, client_context, connect, push_headers, tls_socket

BOTH = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


@BOTH
@pytest.mark.parametrize("alpn", [("h2",), ("http/1.1", "h2"), ("spdy/3", "h2-14", "h2")],
                         ids=["h2", "http/1.1 and h2", "old node-apn"])
def test_both_versions_choose_h2(server, device, version, alpn):
    with connect(server, version=version, alpn=alpn) as wire:
        assert wire.sock.selected_alpn_protocol() == "h2"
        assert wire.push(push_headers(server, device)).status == 200
    connection = server.record(device)["connection"]
    assert (connection["tls"], connection["sni"]) == (f"TLSv1.{version - 0x301}", "localhost")


@BOTH
@pytest.mark.parametrize("certificate", [False, True], ids=["token", "certificate"])
def test_a_saved_session_connects_again(server, device, version, certificate):
    """A server that requests client certificates and has no session context would abort every resumed handshake."""
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


@pytest.fixture
def resumable(server):
    """`resumable(context)`: a TLS session with a ticket that another server issued under the same name and
    certificate.
    """
    folder = pathlib.Path(server.certs)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(folder / "server.pem", folder / "server-key.pem")

    def answer_one(listener):
        with listener.accept()[0] as plain, theirs.wrap_socket(plain, server_side=True) as sock:
            sock.sendall(b".")

    def maker(context):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=answer_one, args=(listener,), daemon=True)
            thread.start()
            with tls_socket(server, context=context, port=listener.getsockname()[1]) as sock:
                assert sock.recv(1) == b"."
                session = sock.session
            thread.join(TIMEOUT)
        assert session.has_ticket
        return session

    return maker


@BOTH
def test_a_ticket_of_another_server_leads_to_a_full_handshake(server, resumable, device, version):
    """As with a client that was connected to Apple, or to this server before a restart."""
    context = client_context(server.ca, version=version)
    with Wire(tls_socket(server, context=context, session=resumable(context))) as wire:
        assert wire.sock.session_reused is False
        assert wire.push(push_headers(server, device)).status == 200


def test_a_certificate_for_another_name(start, tmp_path):
    server = start("--san", "push.ci.internal", certs=tmp_path / "certs")
    with tls_socket(server, name="push.ci.internal"):
        pass
    with pytest.raises(ssl.SSLCertVerificationError), tls_socket(server, name="elsewhere.internal"):
        pass


def test_strict_verifiers_accept_the_certificate(server):
    """Python 3.13's default verification, which requires key identifiers and a critical key usage."""
    context = client_context(server.ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    with tls_socket(server, context=context):
        pass


def test_a_client_that_does_not_trust_the_ca_ends_its_own_handshake_only(server, device):
    with connect(server) as neighbor:
        assert neighbor.push(push_headers(server, device)).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            tls_socket(server, context=ssl.create_default_context())
        assert neighbor.push(push_headers(server, device)).status == 200


def test_a_certificate_of_a_foreign_authority_is_refused_in_the_handshake(server, start, tmp_path):
    other = start(certs=tmp_path / "certs")
    folder = pathlib.Path(other.certs)
    with pytest.raises((ssl.SSLError, ConnectionResetError, Closed)):
        with connect(server, certificate=(folder / "client.pem", folder / "client-key.pem")) as wire:
            wire.receive()  # with TLS 1.3 the alert arrives after the client has completed its handshake
    assert [frame for frame in wire.frames if frame.type != 4] == []


def test_records_contain_their_listener(start, device):
    server = start(apns=["127.0.0.1:0", "127.0.0.1:0"])
    assert len({port for _, port in server.listeners}) == 2
    for _, port in server.listeners:
        with connect(server, port=port) as wire:
            assert wire.push(push_headers(server, device)).status == 200
    assert [record["listener"] for record in server.pushes(device_token=device)] == [0, 1]

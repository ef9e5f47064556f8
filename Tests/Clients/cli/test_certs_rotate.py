"""`certs rotate`: a running server presents the chain of its next CA."""

import json
import os
import shutil
import ssl

import pytest

from support.server import run
from support.wire import client_context, connect, push_headers, tls_socket


def trusts(server, ca, **options):
    """Returns whether a client that trusts `ca` alone can connect."""
    try:
        tls_socket(server, context=client_context(ca), **options).close()
    except ssl.SSLCertVerificationError:
        return False
    return True


@pytest.fixture
def server(start, tmp_path):
    return start(certs=tmp_path / "certs")


def test_the_chain_is_switched_there_and_back(server, device):
    old, new = server.certs / "ca.pem", server.certs / "ca-next.pem"
    assert (trusts(server, old), trusts(server, new)) == (True, False)
    before = server.api("GET", "/certificates")
    assert before["chain"] == "current" and before["current"]["path"] == str(old) and before["next"]["path"] == str(new)
    assert before["current"]["fingerprint"] != before["next"]["fingerprint"]
    assert server.request("GET", "/ca-next.pem").body == new.read_bytes()
    done = server.command("certs", "rotate")
    assert (done.returncode, done.stdout) == (0, f"new connections see a certificate of {new}\n"), done.stderr
    assert (trusts(server, old), trusts(server, new)) == (False, True)
    hosts = "localhost", "api.push.apple.com", "api-manage-broadcast.sandbox.push.apple.com"
    assert all(trusts(server, new, name=name) for name in hosts)
    assert server.api("GET", "/certificates") == {**before, "chain": "next"}
    assert any("ca-next.pem" in warning for warning in server.api("GET", "/status")["warnings"])
    assert json.loads(server.command("certs", "rotate", "--json").stdout)["chain"] == "next", "again is no change"
    assert server.command("certs", "rotate", "--to", "current").returncode == 0
    assert (trusts(server, old), trusts(server, new)) == (True, False)


@pytest.mark.parametrize(("body", "chain"), [
    ({}, "current"), ({"profile": True}, "current"), ({"keep": "profile"}, "next"), ({"inbox": True}, "next")])
def test_a_reset_of_the_profile_switches_back(server, body, chain):
    server.api("POST", "/certificates/rotate", {"to": "next"})
    server.api("POST", "/reset", body)
    assert server.api("GET", "/certificates")["chain"] == chain
    assert trusts(server, server.certs / "ca.pem") == (chain == "current")


def test_open_connections_and_client_certificates_stay(server, device):
    certificate = server.certs / "client.pem", server.certs / "client-key.pem"
    headers = push_headers(server, device, authorization=None)
    with connect(server, certificate=certificate) as wire:
        server.api("POST", "/certificates/rotate", {})
        assert wire.push(headers).status == 200
    context = client_context(server.certs / "ca-next.pem", certificate=certificate)
    with connect(server, context=context) as wire:
        assert wire.push(headers).status == 200


def test_the_programs_own_clients_know_both(server, device):
    server.api("POST", "/certificates/rotate", {})
    sent = server.command("send", device, "--topic", "com.example.app")
    assert sent.returncode == 0, sent.stderr
    assert server.api("POST", "/send", {"token": device, "headers": {"apns-topic": "com.example.app"}, "payload": {}})
    doctor = server.command("doctor")
    assert doctor.returncode != 0
    assert "the server was switched to its next CA" in doctor.stdout and "ca-next.pem" in doctor.stdout


def test_a_folder_without_next_ca(start, tmp_path, certs):
    """As one that cannot be written: the server runs without."""
    folder = tmp_path / "certs"
    shutil.copytree(certs, folder)
    server = start(certs=folder)
    for name in ("ca-next.pem", "ca-next-key.pem"):
        (folder / name).rename(folder / (name + ".away"))
    refused = server.request("POST", "/api/v1/certificates/rotate", {})
    assert refused.status == 409 and "ca-next.pem" in refused.json["detail"] and "apns-mock certs" in refused.json["hint"]
    assert server.api("GET", "/certificates")["chain"] == "current"
    assert trusts(server, folder / "ca.pem")
    (folder / "ca-next.pem").write_bytes((folder / "ca.pem").read_bytes())
    (folder / "ca-next-key.pem").write_bytes((folder / "ca-next-key.pem.away").read_bytes())
    assert server.request("POST", "/api/v1/certificates/rotate", {}).status == 409, "the key is another one's"
    assert server.stop() == 0


def test_the_next_ca_is_kept_and_private(server, binary):
    key = server.certs / "ca-next-key.pem"
    assert os.stat(key).st_mode & 0o777 == 0o600
    content = key.read_bytes(), (server.certs / "ca-next.pem").read_bytes()
    shown = json.loads(run(binary, "certs", "--certs", server.certs, "--json").stdout)
    assert shown["ca_next"] == str(server.certs / "ca-next.pem")
    assert (key.read_bytes(), (server.certs / "ca-next.pem").read_bytes()) == content

"""Every client delivers an alert or a background push, or both if all tests run, and rejected pushes, and the inbox contains them as
sent; then each connects in every way that it supports.
"""

import ipaddress
import json
import pathlib
import uuid

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from support import drivers
from support.drivers import Push
from support.selection import ALL, some
from support.server import run
from support.way import APPLE, Way

ALERT = {"aps": {"alert": {"title": "Grüße", "body": "It has shipped"}, "sound": "default"}, "order": 17}
BACKGROUND = {"aps": {"content-available": 1}, "sync": "inbox"}
# The payload and the priority by push type.
PAYLOADS = {"alert": (ALERT, 10), "background": (BACKGROUND, 5)}

every_client = pytest.mark.parametrize("client", drivers.ALL)


def pushed(client, server, push, way=None):
    """Sends a push with a client; its reply must contain the push's apns-id."""
    reply = drivers.ALL[client](server, push, way)
    assert reply.apns_id == push.apns_id
    return reply


@pytest.mark.parametrize(("push_type", "client"), [
    (push_type, client) for number, client in enumerate(drivers.ALL) for push_type in some(PAYLOADS, 1, number)])
def test_an_accepted_push_gets_its_response_and_is_recorded(server_for, device, client, push_type):
    payload, priority = PAYLOADS[push_type]
    apns_id = str(uuid.uuid4())
    server = server_for(client)
    reply = pushed(client, server, Push(device, payload, push_type=push_type, priority=priority, apns_id=apns_id))
    assert (reply.status, reply.reason) == (200, None)

    record = server.record(device)
    assert record["accepted"] is True
    assert record["outcome"] == "accepted"
    assert record["attempt"] == 1
    assert record["request"]["method"] == "POST"
    assert record["request"]["path"] == f"/3/device/{device}"
    assert record["request"]["device_token"] == device
    assert record["request"]["payload"] == payload
    assert record["request"]["payload_error"] is None
    assert record["request"]["size"]["limit"] == 4096
    if client in drivers.NAMELESS:
        assert record["apns"]["id_origin"] == "server"
    else:
        assert (record["apns"]["id"], record["apns"]["id_origin"]) == (apns_id, "client")
    assert record["apns"]["topic"] == "com.example.app"
    assert record["apns"]["push_type"] == push_type
    assert record["apns"]["priority"] == priority
    assert record["apns"]["collapse_id"] is None
    assert record["auth"]["kind"] == "token"
    assert record["auth"]["team_id"] == server.team_id
    assert record["auth"]["key_id"] == server.key_id
    assert record["auth"]["signature"] == "valid"
    assert record["connection"]["tls"] == "TLSv1.3"
    assert record["connection"]["sni"] == server.way.host
    assert record["verdict"]["status"] == record["served"]["status"] == 200
    assert record["verdict"]["reason"] is record["served"]["reason"] is None
    assert all(check["ok"] for check in record["verdict"]["checks"])


@every_client
def test_a_rejected_push_gets_its_response_and_is_recorded(server_for, device, client):
    apns_id = str(uuid.uuid4())
    server = server_for(client)
    reply = pushed(client, server, Push(device, ALERT, apns_id=apns_id, collapse_id="c" * 65))
    assert (reply.status, reply.reason) == (400, "BadCollapseId")

    record = server.record(device)
    assert record["accepted"] is False
    assert record["outcome"] == "rejected"
    assert client in drivers.NAMELESS or record["apns"]["id"] == apns_id
    assert record["request"]["payload"] == ALERT
    assert (record["served"]["status"], record["served"]["reason"]) == (400, "BadCollapseId")
    assert (record["verdict"]["status"], record["verdict"]["reason"]) == (400, "BadCollapseId")
    assert [check["ok"] for check in record["verdict"]["checks"]][-1] is False


@every_client
def test_an_unregistered_device_is_reported_with_its_time(server_for, device, client):
    server = server_for(client)
    server.api("PUT", f"/devices/{device}", {"state": "unregistered", "since": "2026-01-02T03:04:05.678Z"})
    reply = pushed(client, server, Push(device, ALERT, apns_id=str(uuid.uuid4())))
    assert (reply.status, reply.reason, reply.timestamp) == (410, "Unregistered", 1767323045678)
    assert server.record(device)["served"]["reason"] == "Unregistered"


# Ways to connect. Combinations that a client does not support are left empty: nghttp and apns2 have no setting for
# TLS, httpx and nghttp require ALPN, kalyke only connects to one host, and so on. aioapns never offers ALPN.
# curl_cffi uses BoringSSL.
MATRIX = """
| client  | as it is | by address | TLS 1.2 | TLS 1.3 | no ALPN | saved session | IPv6 | Apple's name, own resolver | hosts file |
|---------|----------|------------|---------|---------|---------|---------------|------|----------------------------|------------|
| curl    | yes      | yes        | yes     | yes     | yes     |               | yes  | yes                        | yes        |
| nghttp  | yes      | yes        |         |         |         |               | yes  |                            | yes        |
| httpx   | yes      | yes        | yes     | yes     |         |               | yes  | yes                        | yes        |
| curl_cffi | yes    | yes        |         |         |         |               | yes  | yes                        | yes        |
| aioapns | yes      | yes        | yes     | yes     | yes     |               | yes  |                            | yes        |
| apns2   | yes      |            |         |         |         |               |      |                            | yes        |
| kalyke  |          |            |         |         |         |               |      |                            | yes        |
| node    | yes      | yes        | yes     | yes     | yes     | yes           | yes  | yes                        | yes        |
| php     | yes      | yes        | yes     | yes     | yes     | yes           | yes  | yes                        | yes        |
"""

WAYS = {
    "as it is": Way(), "by address": Way(host="127.0.0.1"), "TLS 1.2": Way(tls="1.2"), "TLS 1.3": Way(tls="1.3"), "no ALPN": Way(alpn=False),
    "saved session": Way(connections=2), "Apple's name, own resolver": Way(host=APPLE, address="127.0.0.1"),
    "IPv6": None, "hosts file": None,  # these two use their own servers
}


def cells():
    """Returns (client, way) of each "yes" in the matrix."""
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in MATRIX.strip().splitlines()]
    return [(row[0], way) for row in rows for way, said in zip(head, row) if said == "yes"]


def cases():
    """Returns (client, way, mode) of each cell: both modes if all tests run, and else in turn, so that each client and each way
    meets both.
    """
    modes = ["token", "certificate"]
    return [(*cell, mode) for number, cell in enumerate(cells())
            for mode in (modes if ALL else [modes[number % 2]])]


@pytest.mark.parametrize(("client", "way", "mode"), cases())
def test_every_client_connects_in_every_way_it_supports(request, server, certificate, device, client, way, mode):
    own = {"IPv6": "ipv6_server", "hosts file": "apple_server"}.get(way)
    server = request.getfixturevalue(own) if own else server
    push = Push(device, ALERT, apns_id=str(uuid.uuid4()))
    if mode == "certificate":
        push.certificate = certificate
        if client == "kalyke":  # it supports certificates for VoIP only
            push.topic, push.push_type = "com.example.app.voip", "voip"
    reply = drivers.ALL[client](server, push, WAYS[way])
    assert (reply.status, reply.reason, reply.apns_id) == (200, None, push.apns_id)

    records = server.pushes(device_token=device)
    assert [record["accepted"] for record in records] == [True] * (2 if way == "saved session" else 1)
    assert len({record["connection"]["id"] for record in records}) == len(records)
    connection = records[0]["connection"]
    assert records[0]["auth"]["kind"] == mode
    assert connection["tls"] == ("TLSv1.2" if way == "TLS 1.2" else "TLSv1.3")
    if way == "no ALPN":
        assert reply.alpn is None or reply.alpn is drivers.ANY
    if way in ("hosts file", "Apple's name, own resolver"):
        assert connection["sni"] == APPLE
    if way == "IPv6":
        assert connection["client"].startswith("[::1]:")


def old_authority(certs, folder):
    """Copies `certs` with a CA as earlier versions made it, with IP addresses among its name constraints."""
    folder.mkdir()
    for path in certs.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    present = x509.load_pem_x509_certificate((certs / "ca.pem").read_bytes())
    key = serialization.load_pem_private_key((certs / "ca-key.pem").read_bytes(), password=None)
    builder = x509.CertificateBuilder(
        present.issuer, present.subject, present.public_key(), x509.random_serial_number(),
        present.not_valid_before_utc, present.not_valid_after_utc)
    for extension in present.extensions:
        value = extension.value
        if isinstance(value, x509.NameConstraints):
            networks = ("127.0.0.0/8", "10.0.0.0/8", "::1/128")
            addresses = [x509.IPAddress(ipaddress.ip_network(text)) for text in networks]
            value = x509.NameConstraints(list(value.permitted_subtrees) + addresses, None)
        builder = builder.add_extension(value, extension.critical)
    old = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (folder / "ca.pem").write_bytes(old)
    leaf = x509.load_pem_x509_certificates((certs / "server.pem").read_bytes())[0]
    (folder / "server.pem").write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + old)
    return old


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_an_old_ca_is_reissued_for_boringssl_and_stays_trusted(start, server, device, tmp_path, host):
    folder = tmp_path / "Certs"
    old = old_authority(pathlib.Path(server.certs), folder)
    before = x509.load_pem_x509_certificate(old)
    mock = start(certs=folder)
    assert mock.logged("re-issued the certificate authority with the same key and subject")
    now = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    assert (now.public_key(), now.subject) == (before.public_key(), before.subject)
    for client in ("curl_cffi", "httpx"):
        reply = pushed(client, mock, Push(device, ALERT, apns_id=str(uuid.uuid4())), Way(host=host))
        assert (client, reply.status) == (client, 200)
    # A trust store with the old certificate still works, except with BoringSSL.
    (tmp_path / "old.pem").write_bytes(old)
    mock.ca = str(tmp_path / "old.pem")
    assert pushed("httpx", mock, Push(device, ALERT, apns_id=str(uuid.uuid4())), Way(host=host)).status == 200
    with pytest.raises(AssertionError, match="(?i)certificate"):
        pushed("curl_cffi", mock, Push(device, ALERT, apns_id=str(uuid.uuid4())), Way(host=host))


def test_an_old_ca_that_cannot_be_replaced_is_kept_with_a_notice(start, server, device, tmp_path):
    """With a read-only folder, clients on other TLS libraries continue to work."""
    folder = tmp_path / "Certs"
    old = old_authority(pathlib.Path(server.certs), folder)
    folder.chmod(0o555)
    try:
        mock = start(certs=folder)
    finally:
        folder.chmod(0o755)
    assert mock.logged("BoringSSL", "cannot be replaced")
    assert (folder / "ca.pem").read_bytes() == old
    assert pushed("httpx", mock, Push(device, ALERT, apns_id=str(uuid.uuid4()))).status == 200


def test_doctor_reports_a_ca_that_boringssl_refuses(binary, server, tmp_path, start):
    folder = tmp_path / "Certs"
    old_authority(pathlib.Path(server.certs), folder)
    (folder / "ca-key.pem").unlink()
    mock = start(certs=folder)
    assert mock.logged("certs --new-ca") and mock.logged("BoringSSL")
    done = run(binary, "doctor", "--port-file", mock.port_file, "--json")
    assert done.returncode == 1, done.stderr
    chain = next(check for check in json.loads(done.stdout)["checks"] if check["check"] == "chain")
    assert chain["result"] == "failed"
    assert "BoringSSL" in chain["seen"] and "apns-mock certs --new-ca" in chain["repair"]


@pytest.mark.parametrize("topic", ["com.example.app", "com.example.app.voip", "com.example.app.complication"])
def test_the_default_certificate_covers_the_topics_of_an_app(server, device, topic):
    folder = pathlib.Path(server.certs)
    kind = topic.removeprefix("com.example.app").lstrip(".") or "alert"
    certificate = (folder / "client.pem", folder / "client-key.pem")
    push = Push(device, ALERT, topic=topic, push_type=kind, certificate=certificate)
    assert drivers.ALL["curl"](server, push).status == 200


def test_the_providers_files_contain_one_certificate_and_one_key(server, certificate):
    for chain in (pathlib.Path(server.certs) / "client.pem", pathlib.Path(certificate[0])):
        leaf, = x509.load_pem_x509_certificates(chain.read_bytes())
        key, found, others = pkcs12.load_key_and_certificates(chain.with_suffix(".p12").read_bytes(), b"mock")
        assert (found, others) == (leaf, [])
        assert key.public_key() == leaf.public_key()

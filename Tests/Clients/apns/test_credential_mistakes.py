"""Mistakes in credentials: what the server, `send` and `doctor` call them. The key is blamed only if it is the cause."""

import base64
import json
import secrets
import ssl

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from support.server import run
from support.tokens import base64url, foreign_key, now, provider_token, raw, signed_by_hand
from support.wire import connect, push_headers


def facts(server):
    return {"key": server.key, "key_id": server.key_id, "team_id": server.team_id}


def with_signature(server, change):
    """Returns a token whose encoded signature is changed."""
    token, signature = signed_by_hand(**facts(server), shape=lambda made: raw(made, 32)).rsplit(".", 1)
    return f"{token}.{change(base64.urlsafe_b64decode(signature + '=='))}"


FORMS = {
    "r or s without leading zeros": (lambda made: base64url(made[1:]), "has 63 bytes: r or s was written without leading zero"),
    "hexadecimal": (lambda made: made.hex(), "is in hexadecimal: write its 64 bytes in base64url"),
    "hexadecimal in base64": (lambda made: base64url(made.hex().encode()), "is the base64url form of a text in hexadecimal"),
    "base64 twice": (lambda made: base64url(base64url(made).encode()), "is encoded in base64 twice"),
    "another curve": (lambda made: base64url(made + made[:32]), "has 96 bytes, those of the curve P-384"),
    "ES512 with ES256 in alg": (lambda made: base64url(made + made + b"1234"), "has 132 bytes, those of the curve P-521"),
    "RSA": (lambda made: base64url(4 * made), "has 256 bytes, those of an RSA key of 2048 bits"),
    "HMAC": (lambda made: base64url(made[:32]), "has 32 bytes, the size of an HMAC with SHA-256"),
    "none": (lambda made: "", "the JWT is not signed"),
    "DER in an OCTET STRING": (
        lambda made: base64url(b"\x04\x08\x30\x06\x02\x01\x01\x02\x01\x01"), "is DER within an OCTET STRING"),
    "cut": (lambda made: base64url(made)[:-1], "has 85 characters, which no base64url text has"),
}


@pytest.mark.parametrize(("change", "words"), FORMS.values(), ids=FORMS)
def test_the_form_of_a_signature_is_named(server, device, change, words):
    token = with_signature(server, change)
    with connect(server) as wire:
        response = wire.push(push_headers(server, device, authorization=f"bearer {token}"))
    assert (response.status, response.body) == (403, b'{"reason":"InvalidProviderToken"}')
    explained = server.api("GET", f"/pushes/{server.record(device)['seq']}/explain")
    assert words in explained["text"]
    assert "does not verify with key" not in explained["text"]


@pytest.mark.parametrize("shape", [lambda made: made, lambda made: raw(made, 32)], ids=["DER", "raw"])
def test_the_right_forms_are_accepted(server, device, shape):
    token = signed_by_hand(**facts(server), shape=shape)
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization=f"bearer {token}")).status == 200


def test_doctor_names_the_form_of_a_signature(server):
    done = server.command("doctor", "--token", with_signature(server, lambda made: base64url(made[1:])), "--json")
    (check,) = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "push"]
    assert "403 InvalidProviderToken" in check["seen"]
    assert check["repair"].startswith("the provider token's signature has 63 bytes")
    assert "key rm" not in check["repair"]


def test_a_key_id_that_is_a_number(server, device):
    token = jwt.encode(
        {"iss": server.team_id, "iat": now()}, server.key, algorithm="ES256", headers={"kid": "1234567890"})
    header = base64url(json.dumps({"alg": "ES256", "kid": 1234567890}).encode())
    numeric = ".".join([header, *token.split(".")[1:]])
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization=f"bearer {numeric}")).status == 403
    explained = server.api("GET", f"/pushes/{server.record(device)['seq']}/explain")
    assert "kid in the JWT's header is a number or another value that is not a string" in explained["text"]
    done = server.command("doctor", "--token", numeric, "--json")
    (check,) = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "push"]
    assert check["repair"] == "kid, the key id, is not a string: write it in quotation marks"


@pytest.mark.parametrize(("rules", "answer"), [
    ("apple", b'{"reason":"ExpiredProviderToken"}'), ("strict", b'{"reason":"ExpiredProviderToken"}'), ("lenient", b""),
])
def test_an_issue_time_in_milliseconds(start, rules, answer):
    server = start("--rules", rules)
    for factor, unit in (1000, "milliseconds"), (1_000_000, "microseconds"), (10**9, "nanoseconds"):
        device = secrets.token_hex(32)
        token = provider_token(**facts(server), issued_at=now() * factor)
        with connect(server) as wire:
            response = wire.push(push_headers(server, device, authorization=f"bearer {token}"))
        assert (response.status, response.body) == (403 if answer else 200, answer), unit
        if answer:
            explained = server.api("GET", f"/pushes/{server.record(device)['seq']}/explain")
            assert f"it looks like {unit}, write seconds" in explained["text"]


# A client certificate and a provider token

@pytest.mark.parametrize(("topic", "status"), [("com.example.app", 200), ("com.example.other", 400)])
def test_a_provider_token_beside_a_certificate_is_ignored(server, device, certificate, topic, status):
    with connect(server, certificate=certificate) as wire:
        response = wire.push(push_headers(server, device, apns_topic=topic))
    record = server.record(device)
    assert (response.status, record["auth"]["kind"]) == (status, "certificate")
    assert "ignored-token" in record["findings"]
    explained = server.api("GET", f"/pushes/{record['seq']}/explain")
    assert "The provider token is ignored: the connection has a client certificate." in explained["text"]
    if status == 400:
        detail = record["verdict"]["checks"][-1]["detail"]
        assert detail.endswith("; the provider token is ignored, because the connection has a client certificate")
    assert server.pushes(finding="ignored-token", device_token=device)


def test_one_credential_causes_no_finding(server, device, certificate):
    with connect(server, certificate=certificate) as wire:
        assert wire.push(push_headers(server, device, authorization=None)).status == 200
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
    assert server.pushes(finding="ignored-token", device_token=device) == []


# A certificate and a key that do not belong together

def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


@pytest.mark.parametrize("command", ["doctor", "send"])
@pytest.mark.parametrize("make", [
    lambda: ec.generate_private_key(ec.SECP256R1()), lambda: rsa.generate_private_key(65537, 2048)], ids=["EC", "RSA"])
def test_a_key_of_another_certificate(server, device, certificate, tmp_path, command, make):
    other = tmp_path / "other.pem"
    other.write_bytes(pem(make()))
    arguments = [device] if command == "send" else []
    done = server.command(command, *arguments, "--cert", certificate[0], "--cert-key", str(other))
    assert done.returncode == 2, done.stdout
    assert f"the private key in {other} does not belong to the certificate in {certificate[0]}" in done.stderr
    assert "specify the certificate's own key with --cert-key FILE" in done.stderr


@pytest.fixture
def forged(certificate, tmp_path):
    """A key file that names the public key of the certificate and has another private key: no program notices that before
    it signs.
    """
    own = serialization.load_pem_private_key(open(certificate[1], "rb").read(), password=None)
    other = ec.generate_private_key(ec.SECP256R1())
    numbers = [key.private_numbers().private_value.to_bytes(32, "big") for key in (own, other)]
    der = own.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    assert der.count(numbers[0]) == 1
    body = base64.encodebytes(der.replace(*numbers)).decode()
    path = tmp_path / "forged.pem"
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n")
    return str(path)


def test_the_log_names_the_cause_of_alert_51(start, certificate, forged):
    server = start()
    with pytest.raises(ssl.SSLError, match="(?i)decrypt.error"):
        with connect(server, certificate=(certificate[0], forged)) as wire:
            wire.sock.recv(1)  # with TLS 1.3 the alert arrives after the client has completed its handshake
    assert server.logged(
        "bad signature", "the client certificate and the private key that the client signs with do not belong together",
        "alert 51")
    done = server.command("doctor", "--cert", certificate[0], "--cert-key", forged, "--json")
    (check,) = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "push"]
    assert "alert 51" in check["repair"]


# Key files

KEY_FILES = {
    "escaped line breaks": (lambda key: key.replace("\n", "\\n"), "has the two characters \\n where line breaks must be"),
    "a byte order mark": (lambda key: "\ufeff" + key, "begins with a byte order mark, which many libraries do not read"),
    "no line breaks": (lambda key: key.replace("\n", " "), "has no line break after the line -----BEGIN"),
    "encrypted": (
        lambda key: serialization.load_pem_private_key(key.encode(), None).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x")).decode(),
        "this is an encrypted private key, which cannot be used: decrypt it: openssl pkey -in"),
    "another curve": (lambda key: pem(ec.generate_private_key(ec.SECP384R1())).decode(), "EC with 384 bits"),
    "in base64": (lambda key: base64.b64encode(key.encode()).decode(), "this is a PEM text in base64: decode it first"),
}


@pytest.mark.parametrize(("change", "words"), KEY_FILES.values(), ids=KEY_FILES)
@pytest.mark.parametrize("command", ["key add", "token provider", "doctor"])
def test_what_is_wrong_with_a_key_file(binary, certs, tmp_path, command, change, words):
    path = tmp_path / "AuthKey_ABC123DEFG.p8"
    path.write_text(change(foreign_key()))
    arguments = [path] if command == "key add" else ["--key", path]
    team = ["--team-id", "DEF123GHIJ"]
    done = run(binary, *command.split(), *arguments, *team, "--certs", tmp_path / "certs")
    assert done.returncode == 2, done.stdout
    assert words in done.stderr, done.stderr

"""Provider tokens as the libraries make them, and as they should not be made."""

import base64
import json
import time

import jwt
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def provider_token(*, key, key_id, team_id, issued_at=None, headers=None, claims=None):
    """A signed ES256 token. `issued_at` in seconds since 1970, now unless given; `claims` win over the usual ones."""
    usual = {"iss": team_id, "iat": int(time.time()) if issued_at is None else issued_at}
    return jwt.encode({**usual, **(claims or {})}, key, algorithm="ES256", headers={"kid": key_id, **(headers or {})})


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def der_signed_token(*, key, key_id, team_id, issued_at=None):
    """As Apple's own shell recipe makes it: `openssl dgst` leaves the signature in DER."""
    issued_at = int(time.time()) if issued_at is None else issued_at
    head = base64url(json.dumps({"alg": "ES256", "kid": key_id}).encode())
    body = base64url(json.dumps({"iss": team_id, "iat": issued_at}).encode())
    private = serialization.load_pem_private_key(key.encode(), password=None)
    signature = private.sign(f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
    return f"{head}.{body}.{base64url(signature)}"


def foreign_key():
    """A P-256 key the server has never heard of, PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def public_half(private_pem):
    """The public key in PEM, as `openssl pkey -pubout` prints it."""
    return serialization.load_pem_private_key(private_pem.encode(), password=None).public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()

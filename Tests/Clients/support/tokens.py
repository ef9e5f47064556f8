"""Provider tokens as libraries make them, and malformed ones."""

import base64
import json
import time

import jwt
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def now():
    return int(time.time())


def provider_token(*, key, key_id, team_id, issued_at=None, headers=None, claims=None):
    """Returns a signed ES256 token. `issued_at` is in seconds since 1970 and defaults to now; `claims` override the
    defaults.
    """
    usual = {"iss": team_id, "iat": now() if issued_at is None else issued_at}
    return jwt.encode({**usual, **(claims or {})}, key, algorithm="ES256", headers={"kid": key_id, **(headers or {})})


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_by_hand(key, key_id, team_id, *, algorithm="ES256", digest=hashes.SHA256(), encode=base64url,
                   shape=lambda signature: signature):
    """Returns a token assembled by hand. `shape` converts the signature from DER to the bytes that are sent."""
    parts = [{"alg": algorithm, "kid": key_id}, {"iss": team_id, "iat": now()}]
    signed = ".".join(encode(json.dumps(part).encode()) for part in parts)
    private = serialization.load_pem_private_key(key.encode(), password=None)
    return f"{signed}.{encode(shape(private.sign(signed.encode(), ec.ECDSA(digest))))}"


def raw(signature, width):
    """Returns the two numbers of a signature, each `width` bytes long."""
    return b"".join(number.to_bytes(width, "big") for number in decode_dss_signature(signature))


def der_signed_token(**facts):
    """Returns a token as Apple's shell recipe makes it: `openssl dgst` leaves the signature in DER."""
    return signed_by_hand(**facts)


def standard_base64_token(**facts):
    """Returns a token with padding and in the standard Base64 alphabet, with at least one + or /."""
    while True:
        token = signed_by_hand(
            **facts, encode=lambda data: base64.b64encode(data).decode(), shape=lambda signature: raw(signature, 32))
        if "+" in token or "/" in token:
            return token


def es512_token(**facts):
    """Returns a token that claims ES512, which requires P-521 and signatures of 132 bytes; the key is P-256 as
    usual.
    """
    return signed_by_hand(
        **facts, algorithm="ES512", digest=hashes.SHA512(), shape=lambda signature: raw(signature, 66))


def foreign_key():
    """Returns a P-256 key that the server does not know, as PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def public_half(private_pem):
    """Returns the public key as PEM, as `openssl pkey -pubout` prints it."""
    return serialization.load_pem_private_key(private_pem.encode(), password=None).public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()

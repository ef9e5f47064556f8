"""Provider certificates in the form of Apple's, signed by the server's CA."""

import datetime
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

APPLE = "1.2.840.113635.100.6.3."
DEVELOPMENT, PRODUCTION, BUNDLE_ID, VOIP, TOPICS = (APPLE + number for number in "12346")
NULL = b"\x05\x00"


def der(tag, content):
    """Returns one DER element."""
    size = len(content)
    head = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + head + content


def topic_list(topics):
    """Returns the value of the extension 1.2.840.113635.100.6.3.6: each topic followed by its labels."""
    return der(0x30, b"".join(der(0x0C, topic.encode()) + der(0x30, der(0x0C, b"app")) for topic in topics))


def provider_certificate(certs, folder, *, uid="com.example.app", topics=("com.example.app",), marks=(DEVELOPMENT,),
                         strings=(), expired=False):
    """Returns the paths of a chain and a key. `marks`: the environments the certificate is valid for; without
    topics and marks it has none of Apple's extensions. `strings`: further extensions, as (identifier, text)
    pairs.
    """
    certs, folder = pathlib.Path(certs), pathlib.Path(folder)
    authority = x509.load_pem_x509_certificate((certs / "ca.pem").read_bytes())
    signer = serialization.load_pem_private_key((certs / "ca-key.pem").read_bytes(), password=None)
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "Apple Push Services: " + (uid or "none"))]
    if uid:
        names.append(x509.NameAttribute(NameOID.USER_ID, uid))
    now = datetime.datetime.now(datetime.timezone.utc)
    ends = now - datetime.timedelta(hours=1) if expired else now + datetime.timedelta(days=30)
    builder = (
        x509.CertificateBuilder().subject_name(x509.Name(names)).issuer_name(authority.subject)
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(ends)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    for mark in marks:
        builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(mark), NULL), critical=False)
    for identifier, text in strings:
        value = x509.UnrecognizedExtension(x509.ObjectIdentifier(identifier), der(0x0C, text.encode()))
        builder = builder.add_extension(value, critical=False)
    if topics:
        value = x509.UnrecognizedExtension(x509.ObjectIdentifier(TOPICS), topic_list(topics))
        builder = builder.add_extension(value, critical=False)
    chain, private = folder / "made.pem", folder / "made-key.pem"
    chain.write_bytes(builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    private.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return chain, private

"""The certificate of the local API's TLS listener: kubectl sends no token over plain http.

A certificate authority of this state folder alone signs one certificate for the loopback names. Its key is thrown
away once it has signed, so nobody can sign a second one with it.
"""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localstack.endpoints import write_private
from localstack.paths import State

NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)
VALID = datetime.timedelta(days=3650)
RENEWED_BEFORE = datetime.timedelta(days=30)


def ensure(state: State) -> tuple[Path, Path]:
    """The files of the certificate and of its key, all made anew when they do not fit each other or run out soon."""
    if not _is_good(state):
        _make(state)
    return state.tls / "cert.pem", state.tls / "key.pem"


def _is_good(state: State) -> bool:
    """Whether one who trusts the stored authority can talk to a listener that has these files, for long enough."""
    try:
        authority = x509.load_pem_x509_certificate(state.tls_authority.read_bytes())
        certificate = x509.load_pem_x509_certificate((state.tls / "cert.pem").read_bytes())
        key = serialization.load_pem_private_key((state.tls / "key.pem").read_bytes(), password=None)
        # The parts may be of different makings, where a process was killed between the files.
        certificate.verify_directly_issued_by(authority)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return False
    now = datetime.datetime.now(datetime.UTC)
    return (
        key.public_key() == certificate.public_key()
        and tuple(names) == NAMES
        and all(
            each.not_valid_before_utc <= now < each.not_valid_after_utc - RENEWED_BEFORE
            for each in (authority, certificate)
        )
    )


def _make(state: State) -> None:
    state.tls.mkdir(exist_ok=True, mode=0o700)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Nodus local cloud")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    authority = (
        _builder(issuer, issuer, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(subject, issuer, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(NAMES), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # The authority first: whatever certificate is ever served, it stands there for who asks whom to trust.
    write_private(state.tls_authority, _pem(authority))
    write_private(state.tls / "key.pem", secret.decode())
    write_private(state.tls / "cert.pem", _pem(certificate))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()

"""Certificates for TLS listeners and clients of tests, as PEM files; some are valid for seconds only."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = ipaddress.ip_address("127.0.0.1")
EARLIER = timedelta(minutes=5)
A_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority with its files in `folder`."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, folder: Path) -> Authority:
        """A new authority, whose own certificate is `ca.pem`."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("an authority")
        draft = _draft(name, name, key.public_key(), A_DAY)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        draft = draft.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        certificate = draft.add_extension(usage, critical=True).sign(key, SHA256())
        authority = cls(folder=folder, key=key, certificate=certificate)
        authority.ca_file.write_bytes(certificate.public_bytes(Encoding.PEM))
        return authority

    @property
    def ca_file(self) -> Path:
        """What the other side trusts."""
        return self.folder / "ca.pem"

    def issue(self, name: str, *, seconds: float = A_DAY, path: Path | None = None) -> Path:
        """Key and certificate of 127.0.0.1 in one PEM file, valid for `seconds` from now on."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = (
            _draft(_name(name), self.certificate.subject, key.public_key(), seconds)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(LOOPBACK)]), critical=False)
            .add_extension(usages, critical=False)
            .sign(self.key, SHA256())
        )
        made = path or self.folder / f"{name}-{secrets.token_hex(4)}.pem"
        made.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        return made


def expiry(path: Path) -> float:
    """When the certificate in a file ends, in seconds since the epoch."""
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _draft(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, seconds: float
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(seconds=seconds))
    )

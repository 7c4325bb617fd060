"""A certificate authority for tests, and stores of each kind that hold what it issues."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from tests.commands import keytool

PASSWORD = "store-pass"
KEY_PASSWORD = "key-pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A key with its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as text."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self, password: str | None = None) -> bytes:
        """The key as PKCS #8 text, encrypted when there is a password."""
        protection = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode())
        )
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A self-signed authority that issues certificates for one day."""

    name: str
    own: Identity

    @classmethod
    def create(cls, name: str) -> Authority:
        """A new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key, name, key, x509.BasicConstraints(ca=True, path_length=None))
        return cls(name=name, own=Identity(key=key, certificate=certificate))

    def issue(self, name: str, *, address: str | None = None, host: str | None = None) -> Identity:
        """A certificate for CN=name, valid for an IP address or a host name."""
        key = ec.generate_private_key(ec.SECP256R1())
        places: list[x509.GeneralName] = []
        if address is not None:
            places.append(x509.IPAddress(ipaddress.ip_address(address)))
        if host is not None:
            places.append(x509.DNSName(host))
        extensions: list[x509.ExtensionType] = [x509.BasicConstraints(ca=False, path_length=None)]
        if places:
            extensions.append(x509.SubjectAlternativeName(places))
        return Identity(key=key, certificate=_certificate(name, key, self.name, self.own.key, *extensions))


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    return builder.sign(signer, hashes.SHA256())


def pem_store(path: Path, identity: Identity, *chain: Identity, password: str | None = None) -> Path:
    """Key, its certificate and those above it in one PEM file, as Kafka wants it."""
    issuers = b"".join(one.certificate_pem for one in chain)
    path.write_bytes(identity.key_pem(password) + identity.certificate_pem + issuers)
    return path


def p12_store(path: Path, identity: Identity, *chain: Identity, password: str = PASSWORD) -> Path:
    """Key and certificates as PKCS #12."""
    content = pkcs12.serialize_key_and_certificates(
        b"ferry",
        identity.key,
        identity.certificate,
        [one.certificate for one in chain],
        serialization.BestAvailableEncryption(password.encode()),
    )
    path.write_bytes(content)
    return path


def jks_store(path: Path, p12: Path, *, password: str = PASSWORD, key_password: str = KEY_PASSWORD) -> Path:
    """A JKS store by keytool from a PKCS #12 store; its key gets a password of its own."""
    keytool(
        "-importkeystore", "-noprompt", "-alias", "ferry",
        "-srckeystore", str(p12), "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD,
        "-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", password, "-destkeypass", key_password,
    )  # fmt: skip
    return path


def java_truststore(path: Path, certificate: Path, kind: str, *, password: str = PASSWORD) -> Path:
    """A trust store of type JKS or PKCS12 by keytool."""
    keytool(
        "-importcert", "-noprompt", "-alias", "authority", "-file", str(certificate),
        "-keystore", str(path), "-storetype", kind, "-storepass", password,
    )  # fmt: skip
    return path


def of_version_19(one: Identity) -> bytes:
    """Its certificate as one of a version that X.509 does not have: the library raises an error of its own kind."""
    der = ssl.PEM_cert_to_DER_cert(one.certificate_pem.decode())
    return ssl.DER_cert_to_PEM_cert(der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x12", 1)).encode()

"""Detached signatures with the operator's key: Ed25519, ECDSA or RSA, in the form that `openssl` makes and checks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from ferry.config.flow.report import KEY, PASSWORD
from ferry.config.login.stores import UNREADABLE
from ferry.errors import BadInput
from ferry.files import read_bounded
from ferry.model.evidence import Signer

Private = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
Public = ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey

RSA_BITS = 2048
"""Shorter RSA keys are refused: NIST SP 800-131A disallows them for signatures."""

_BEGINS = "-----BEGIN "
_KINDS = "an Ed25519, ECDSA or RSA key"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A private key that signs reports."""

    signer: Signer
    private: Private = field(repr=False)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> SigningKey | None:
        """Return the key that the configuration names, as PEM or by the path of a PEM file; None if it names none.

        Raises BadInput if it cannot be read, is of another kind or too short, or if its password is wrong.
        """
        given = properties.get(KEY, "").strip()
        if not given:
            return None
        password = properties.get(PASSWORD, "")
        where = KEY if given.startswith(_BEGINS) else f"{KEY} {given}"
        content = given.encode() if given.startswith(_BEGINS) else _content(given, KEY)
        try:
            private = load_pem_private_key(content, password.encode() or None)
        except TypeError:
            remedy = f"remove {PASSWORD}" if password else f"give its password as {PASSWORD}"
            raise BadInput(f"{where}: the key is {'not ' if password else ''}encrypted: {remedy}") from None
        except (ValueError, UnsupportedAlgorithm):
            raise BadInput(
                f"{where}: this is not a private key in PEM, or its password is another: write one as"
                " `openssl genpkey -algorithm ed25519` does"
            ) from None
        if not isinstance(private, Private):
            raise BadInput(f"{where}: a {type(private).__name__} does not sign reports: use {_KINDS}")
        if isinstance(private, rsa.RSAPrivateKey) and private.key_size < RSA_BITS:
            raise BadInput(f"{where}: an RSA key of {private.key_size} bits is too short: use {RSA_BITS} or more")
        return cls(signer=signer_of(private.public_key()), private=private)

    def sign(self, content: bytes) -> bytes:
        """Return the raw signature: with Ed25519 of the content, with the others of its SHA-256 (RSA: PKCS #1 v1.5)."""
        match self.private:
            case ed25519.Ed25519PrivateKey():
                return self.private.sign(content)
            case ec.EllipticCurvePrivateKey():
                return self.private.sign(content, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPrivateKey():
                return self.private.sign(content, padding.PKCS1v15(), hashes.SHA256())


def public_keys(files: Iterable[Path]) -> dict[str, Public]:
    """Read public keys or certificates from PEM files, by the SHA-256 of the key. Raises BadInput for other content."""
    found = {}
    for file in files:
        content = _content(str(file), "--key")
        try:
            is_certificate = b"BEGIN CERTIFICATE" in content
            public: object = (
                x509.load_pem_x509_certificate(content).public_key() if is_certificate else load_pem_public_key(content)
            )
        except (*UNREADABLE, UnsupportedAlgorithm):
            raise BadInput(
                f"--key {file}: this is not a public key in PEM: `openssl pkey -in PRIVATE -pubout` writes it"
            ) from None
        if not isinstance(public, Public):
            raise BadInput(f"--key {file}: a {type(public).__name__} signs no reports: use {_KINDS}")
        found[signer_of(public).key_sha256] = public
    return found


def signer_of(public: Public) -> Signer:
    """Return how reports name a key."""
    algorithm = "Ed25519"
    if isinstance(public, ec.EllipticCurvePublicKey):
        algorithm = f"ECDSA {public.curve.name} SHA-256"
    elif isinstance(public, rsa.RSAPublicKey):
        algorithm = f"RSA {public.key_size} PKCS1v15 SHA-256"
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return Signer(algorithm=algorithm, key_sha256=hashlib.sha256(spki).hexdigest())


def holds(public: Public, content: bytes, signature: bytes) -> bool:
    """Return whether this key made the signature of the content."""
    try:
        match public:
            case ed25519.Ed25519PublicKey():
                public.verify(signature, content)
            case ec.EllipticCurvePublicKey():
                public.verify(signature, content, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPublicKey():
                public.verify(signature, content, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _content(path: str, what: str) -> bytes:
    try:
        return read_bounded(Path(path))
    except OSError as error:
        raise BadInput(f"{what}: {path} cannot be read: {error.strerror}; name a PEM file that you may read") from None

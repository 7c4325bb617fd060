"""Java key stores of type JKS: certificates and keys as DER bytes.

The format is that of `sun.security.provider.JavaKeyStore` and `KeyProtector`. It is read here, because no maintained
library reads it: see docs/adr/0006-key-stores-are-read-here.md.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC = b"\xce\xce\xce\xce"

_SALT_AND_DIGEST = 20  # bytes of SHA-1
_KEY, _CERTIFICATE = 1, 2
_WHITENER = b"Mighty Aphrodite"
# AlgorithmIdentifier of JKS keys: 1.3.6.1.4.1.42.2.17.1.1 with NULL parameters.
_PROTECTED = bytes.fromhex("300e060a2b060104012a021101010500")


class WrongPassword(ValueError):
    """The password does not fit the store or the key."""


class Damaged(ValueError):
    """The bytes are not a whole store of this type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """A private key, still under its password, and its certificates, its own first."""

    alias: str
    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...] = field(repr=False)

    def private_key(self, password: str) -> bytes:
        """Return the key as PKCS #8 in DER. Raises WrongPassword, and Damaged for a key with another protection."""
        body = _protected_bytes(self.protected)
        salt, crypted, check = (
            body[:_SALT_AND_DIGEST],
            body[_SALT_AND_DIGEST:-_SALT_AND_DIGEST],
            body[-_SALT_AND_DIGEST:],
        )
        secret = password.encode("utf-16-be")
        stream, block = bytearray(), salt
        while len(stream) < len(crypted):
            block = hashlib.sha1(secret + block).digest()
            stream += block
        plain = bytes(one ^ other for one, other in zip(crypted, stream, strict=False))
        if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):
            raise WrongPassword(f"the password does not fit the key {self.alias!r}")
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaKeyStore:
    """The contents of a JKS file."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...] = field(repr=False)
    """Certificates that are trusted themselves."""


def read_jks(content: bytes, password: str | None) -> JavaKeyStore:
    """Return the store in `content`. Without a password its integrity is not checked, as in Java.

    Raises WrongPassword when the password does not fit the store, Damaged when it is not a JKS store or cut off.
    """
    if not content.startswith(MAGIC):
        raise Damaged("it does not begin as a JKS store")
    body = content[:-_SALT_AND_DIGEST]
    reader = _Reader(body)
    reader.take(len(MAGIC))
    version = reader.number()
    if version not in (1, 2):
        raise Damaged(f"JKS version {version} is not known")
    keys, trusted = [], []
    for _ in range(reader.number()):
        kind, alias = reader.number(), reader.text()
        reader.take(8)  # when it was made
        if kind == _KEY:
            protected = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.number()))
            keys.append(KeyEntry(alias=alias, protected=protected, chain=chain))
        elif kind == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise Damaged(f"entry {alias!r} has the unknown kind {kind}")
    if password is not None:
        digest = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body).digest()
        if not hmac.compare_digest(digest, content[-_SALT_AND_DIGEST:]):
            raise WrongPassword("the password does not fit the store, or its bytes were changed")
    return JavaKeyStore(keys=tuple(keys), trusted=tuple(trusted))


class _Reader:
    """Java's DataInput, big-endian."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> bytes:
        piece = self._content[self._at : self._at + size]
        if len(piece) < size:
            raise Damaged("it is cut off")
        self._at += size
        return piece

    def number(self) -> int:
        value: int = struct.unpack(">I", self.take(4))[0]
        return value

    def block(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(struct.unpack(">H", self.take(2))[0]).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        if version == 2 and (kind := self.text()) != "X.509":
            raise Damaged(f"it holds a certificate of type {kind!r}, not X.509")
        return self.block()


def _protected_bytes(der: bytes) -> bytes:
    """Return the octets of an EncryptedPrivateKeyInfo that names JKS' own algorithm."""
    content = _inside(der, 0x30)
    if not content.startswith(_PROTECTED):
        raise Damaged("its key is not protected in the way of JKS")
    body = _inside(content[len(_PROTECTED) :], 0x04)
    if len(body) < 2 * _SALT_AND_DIGEST:
        raise Damaged("its key is cut off")
    return body


def _inside(der: bytes, tag: int) -> bytes:
    """Return the content of the DER value that `der` begins with, which must have `tag`."""
    if len(der) < 2 or der[0] != tag:
        raise Damaged("its key is not in DER")
    length, at = der[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(der[2:at], "big")
    if len(der) < at + length:
        raise Damaged("its key is cut off")
    return der[at : at + length]

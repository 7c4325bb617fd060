"""Key and trust stores of Kafka's clients, read in Java's way: PEM, PKCS #12 and JKS.

Sources: `DefaultSslEngineFactory` of kafka-clients; `sun.security.util.KeyStoreDelegator`. With the latter, Java takes
a JKS store for PKCS12 and the other way round. The first byte of a store decides its type, not `ssl.*.type`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12

from ferry.config.login.jks import JCEKS_MAGIC, MAGIC, Damaged, JavaKeyStore, WrongPassword, read_jks
from ferry.config.login.security import TLS_VERSIONS, TlsOptions
from ferry.errors import BadInput, Refused
from ferry.files import read_bounded
from ferry.messages.catalogue import sentence

UNREADABLE = (ValueError, x509.InvalidVersion)
"""The errors of `cryptography` for a certificate that it cannot read."""

_KINDS = ("JKS", "PKCS12", "PEM")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)
_DER_SEQUENCE = b"\x30"
_MAX_STORE_BYTES = 16 << 20
_NOT_SUPPORTED = {
    "ssl.cipher.suites": "the ciphers of TLS 1.2 and 1.3 are agreed with the broker; limit them there",
    "ssl.engine.factory.class": "a Java class cannot be used here; name stores instead",
}
_OF_JAVA = {"ssl.provider": "SunJSSE", "ssl.trustmanager.algorithm": "PKIX"}
"""Keys that decide in Java which provider does TLS and trust, with their defaults: Python's TLS does the same."""
_BOUNDS = {"TLS": TLS_VERSIONS[-1], **{version: version for version in TLS_VERSIONS}}
"""The newest version that a value of `ssl.protocol` allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Identity:
    key: PrivateKeyTypes = field(repr=False)
    chain: Sequence[x509.Certificate]


def tls_options(properties: Mapping[str, str], prefix: str = "") -> TlsOptions:
    """Return the TLS settings of a client, by Java's names. `prefix` is put before a key where an error names it.

    Raises BadInput for a store that cannot be read (named with its key), Refused for what is not supported.
    """
    for name, why in _NOT_SUPPORTED.items():
        if properties.get(name, "").strip():
            raise Refused(f"{prefix}{name} is not supported: {why}, and remove the line")
    for name, known in _OF_JAVA.items():
        if properties.get(name, "").strip() not in ("", known):
            raise Refused(
                f"{prefix}{name}={properties[name].strip()} is not supported: Python's TLS is OpenSSL's, and does"
                f" what Java does with {known}; remove the line where that is enough"
            )
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise BadInput(
            f"{prefix}ssl.endpoint.identification.algorithm: {algorithm!r} is not known; write https, or nothing to "
            "turn host name verification off"
        )
    trusted = _trusted(_Store(properties, "truststore", prefix))
    identity = _identity(_Store(properties, "keystore", prefix))
    return TlsOptions(
        check_hostname=algorithm == "https",
        trusted_pem=None if trusted is None else _pem(trusted),
        chain_pem=None if identity is None else _pem(identity.chain),
        key_pem=None if identity is None else _key_pem(identity.key),
        versions=_versions(properties, prefix),
    )


class _Store:
    """The keys of one store, by its word: truststore or keystore."""

    def __init__(self, properties: Mapping[str, str], word: str, prefix: str) -> None:
        self._properties = properties
        self._key = f"{prefix}ssl.{word}"
        self._name = f"ssl.{word}"
        self._prefix = prefix
        self.word = word
        self.location = self._value("location")
        self.kind = (self._value("type") or "JKS").upper()
        self.password = self._properties.get(f"{self._name}.password")
        if self.kind not in _KINDS:
            raise Refused(
                f"{self._key}.type={self.kind} is not supported; convert the store to one of {', '.join(_KINDS)}"
            )

    def _value(self, name: str) -> str | None:
        return self._properties.get(f"{self._name}.{name}", "").strip() or None

    def inline(self, name: str) -> str | None:
        """Return a PEM text in the configuration itself. Raises BadInput next to a location, or with another type."""
        text = self._value(name)
        if text is None:
            return None
        if self.kind != "PEM":
            raise BadInput(f"{self._key}.{name}: is PEM text, but the type is {self.kind}; add {self._key}.type=PEM")
        if self.location is not None:
            raise BadInput(f"{self._key}.{name}: is set together with {self._key}.location; keep one of the two")
        return text

    @property
    def key_password(self) -> str | None:
        return self._properties.get("ssl.key.password")

    def content(self) -> bytes:
        """Return the bytes of the file. Raises BadInput when it cannot be read."""
        path = Path(self.location or "")
        try:
            return read_bounded(path, _MAX_STORE_BYTES)
        except OSError as error:
            what, remedy = f"{self._key}.location: {path}", "correct the path or its permissions"
            said = sentence("login.file.unreadable", what=what, why=str(error.strerror), remedy=remedy)
            raise BadInput(said) from None

    def bad(self, why: str, remedy: str, name: str = "location") -> BadInput:
        """Return the error that the file, or the text under another name, is not as it should be.

        A text is never repeated.
        """
        if name != "location":
            return BadInput(f"{self._key}.{name}: {why}; {remedy}")
        return BadInput(f"{self._key}.location: {self.location} is not a usable {self.kind} store: {why}; {remedy}")

    def wrong_password(self) -> BadInput:
        """Return the error about the password of the store."""
        if self.password is None:
            return BadInput(f"{self._key}.password: is missing for {self.location}; add the password of that store")
        return BadInput(f"{self._key}.password: does not open {self.location}; correct the password of that store")

    def wrong_key_password(self, what: str) -> BadInput:
        """Return the error about the password of the key in it."""
        where = self.location or f"{self._key}.key"
        return BadInput(f"{self._prefix}ssl.key.password: {what} the private key in {where}; correct it")


def _trusted(store: _Store) -> list[x509.Certificate] | None:
    name, text = "certificates", store.inline("certificates")
    if text is not None:
        certificates = _certificates(text)
    elif store.location is None:
        return None
    else:
        name, certificates = "location", _trusted_in(store, store.content())
    if not certificates:
        remedy = "put the certificate of the broker's authority into it"
        raise store.bad("it holds no certificate", remedy, name)
    return certificates


def _trusted_in(store: _Store, content: bytes) -> list[x509.Certificate]:
    if store.kind == "PEM":
        return _certificates(_text(store, content))
    if _is_jks(store, content):
        found = _jks(store, content)
        # Java's PKIX trust manager, too, trusts a key's own certificate.
        ders = [*found.trusted, *(entry.chain[0] for entry in found.keys if entry.chain)]
        return [_certificate(store, der) for der in ders]
    bundle = _pkcs12(store, content)
    own = [bundle.cert] if bundle.cert is not None else []
    return [entry.certificate for entry in [*own, *bundle.additional_certs]]


def _identity(store: _Store) -> _Identity | None:
    key, chain = store.inline("key"), store.inline("certificate.chain")
    if (key is None) != (chain is None):
        missing = "key" if key is None else "certificate.chain"
        raise store.bad("is missing, but the other half is set", "give both, or a location", missing)
    if key is not None and chain is not None:
        identity, name = _pem_identity(store, key, chain), "key"
    elif store.location is None:
        return None
    else:
        identity, name = _identity_in(store, store.content()), "location"
    # TLS would fail here, too, with a less clear message.
    if identity.key.public_key() != identity.chain[0].public_key():
        why = "the private key does not belong to the first certificate"
        raise store.bad(why, "put the client's own certificate first", name)
    return identity


def _identity_in(store: _Store, content: bytes) -> _Identity:
    if store.kind == "PEM":
        text = _text(store, content)
        return _pem_identity(store, text, text)
    return _jks_identity(store, content) if _is_jks(store, content) else _p12_identity(store, content)


def _pem_identity(store: _Store, key: str, chain: str) -> _Identity:
    certificates = _certificates(chain)
    if not certificates:
        name = "location" if store.location is not None else "certificate.chain"
        raise store.bad("it holds no certificate", "put the client's certificate there", name)
    return _Identity(key=_pem_key(store, key), chain=certificates)


def _text(store: _Store, content: bytes) -> str:
    try:
        return content.decode("ascii" if not content.startswith(b"\xef\xbb\xbf") else "utf-8-sig")
    except UnicodeDecodeError:
        # Text around the blocks may be in any language.
        if b"-----BEGIN" in content:
            return content.decode("utf-8", "replace")
        raise store.bad("it is not text", "correct the path, or the type of the store") from None


def _certificates(text: str) -> list[x509.Certificate]:
    try:
        return [x509.load_pem_x509_certificate(found.group().encode()) for found in _CERTIFICATE.finditer(text)]
    except UNREADABLE:
        return []


def _pem_key(store: _Store, text: str) -> PrivateKeyTypes:
    name = "location" if store.location is not None else "key"
    found = _KEY.search(text)
    if found is None:
        raise store.bad("it holds no private key", "add the client's key, as PKCS #8 PEM", name)
    encrypted = "ENCRYPTED" in found.group().partition("\n\n")[0]
    password = store.key_password
    if encrypted and password is None:
        raise store.wrong_key_password("is missing for")
    try:
        secret = password.encode() if encrypted and password is not None else None
        return serialization.load_pem_private_key(found.group().encode(), secret)
    except (ValueError, TypeError):
        if encrypted:
            raise store.wrong_key_password("does not open") from None
        raise store.bad("its private key is damaged", "export the key again, as PKCS #8 PEM", name) from None


def _is_jks(store: _Store, content: bytes) -> bool:
    if content.startswith(MAGIC):
        return True
    if content.startswith(JCEKS_MAGIC):
        raise store.bad("it is a JCEKS store", "convert it with keytool -importkeystore -deststoretype PKCS12")
    if not content.startswith(_DER_SEQUENCE):
        remedy = "correct the path, or the type of the store"
        if content.lstrip().startswith(b"-----BEGIN"):
            remedy = f"it is PEM text: add ssl.{store.word}.type=PEM"
        raise store.bad("it begins as neither JKS nor PKCS12", remedy)
    return False


def _jks(store: _Store, content: bytes) -> JavaKeyStore:
    try:
        return read_jks(content, store.password)
    except WrongPassword:
        raise store.wrong_password() from None
    except Damaged as error:
        raise store.bad(str(error), "make the store again") from None


def _jks_identity(store: _Store, content: bytes) -> _Identity:
    keys = _jks(store, content).keys
    if not keys or not keys[0].chain:
        raise store.bad("it holds no private key", "import the client's key with its certificates")
    password = store.key_password if store.key_password is not None else store.password
    try:
        der = keys[0].private_key(password or "")
    except WrongPassword:
        raise store.wrong_key_password("is missing for" if password is None else "does not open") from None
    except Damaged as error:
        raise store.bad(str(error), "make the store again") from None
    key = serialization.load_der_private_key(der, None)
    return _Identity(key=key, chain=[_certificate(store, der) for der in keys[0].chain])


def _certificate(store: _Store, der: bytes) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(der)
    except UNREADABLE as error:
        raise store.bad(f"a certificate is damaged ({error})", "make the store again") from None


def _pkcs12(store: _Store, content: bytes) -> pkcs12.PKCS12KeyAndCertificates:
    secrets = [store.password.encode()] if store.password is not None else [None, b""]
    for secret in secrets:
        try:
            return pkcs12.load_pkcs12(content, secret)
        except ValueError as error:
            # The library has one error for all; only a wrong password is recognised, by the words.
            if "password" not in str(error).lower():
                raise store.bad(f"it cannot be decoded ({error})", "make the store again") from None
        except Exception as error:  # what the library does not support, such as RC2
            raise store.bad(
                f"it cannot be decoded ({error})",
                "make it again with keytool -importkeystore -deststoretype PKCS12 of a current Java",
            ) from None
    raise store.wrong_password()


def _p12_identity(store: _Store, content: bytes) -> _Identity:
    if store.key_password is not None and store.password is not None and store.key_password != store.password:
        raise BadInput(
            f"ssl.key.password: differs from ssl.keystore.password, but {store.location} is a PKCS12 store, whose keys "
            "have the password of the store; remove ssl.key.password"
        )
    bundle = _pkcs12(store, content)
    if bundle.key is None or bundle.cert is None:
        raise store.bad("it holds no private key", "import the client's key with its certificates")
    others = [entry.certificate for entry in bundle.additional_certs]
    return _Identity(key=bundle.key, chain=_upwards(bundle.cert.certificate, others))


def _upwards(leaf: x509.Certificate, others: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    """Return the certificate and its issuers, as far as `others` has them: a store keeps them in no order."""
    chain = [leaf]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((other for other in others if other.subject == chain[-1].issuer and other not in chain), None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _versions(properties: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    """Return the versions of `ssl.enabled.protocols`, none newer than `ssl.protocol` (as Kafka documents that key)."""
    protocol = properties.get("ssl.protocol", TLS_VERSIONS[-1]).strip()
    if protocol not in _BOUNDS:
        raise Refused(
            f"{prefix}ssl.protocol={protocol} is not supported: Python speaks {' and '.join(TLS_VERSIONS)}; write the"
            " newer one of those you allow, or remove the line"
        )
    text = properties.get("ssl.enabled.protocols", "").strip()
    wanted = [item.strip() for item in text.split(",") if item.strip()] or list(TLS_VERSIONS)
    enabled = tuple(version for version in TLS_VERSIONS if version in wanted)
    if not enabled:
        raise Refused(f"{prefix}ssl.enabled.protocols={text} has none of {', '.join(TLS_VERSIONS)}: add one of them")
    known = tuple(version for version in enabled if version <= _BOUNDS[protocol])
    if not known:
        raise Refused(
            f"{prefix}ssl.protocol={protocol} allows nothing newer than itself, and ssl.enabled.protocols={text}"
            " nothing as old; raise the first, or remove it"
        )
    return known


def _pem(certificates: Sequence[x509.Certificate]) -> str:
    return "".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in certificates)


def _key_pem(key: PrivateKeyTypes) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()

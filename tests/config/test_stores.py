"""Stores made by Java's keytool, by `cryptography` and by hand: what is in them, and what is said of broken ones."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from ferry.config.login.jks import Damaged, read_jks
from ferry.config.login.security import TlsOptions
from ferry.config.login.stores import tls_options
from ferry.errors import BadInput, FerryError, Refused
from ferry.net.connect.security import tls_context
from tests.security import pki
from tests.security.pki import KEY_PASSWORD, PASSWORD, Authority, Identity

Stores = Mapping[str, Path]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("ferry test authority")


@pytest.fixture(scope="module")
def me(authority: Authority) -> Identity:
    return authority.issue("me")


@pytest.fixture(scope="module")
def stores(authority: Authority, me: Identity, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    folder = tmp_path_factory.mktemp("stores")
    made = {"ca.pem": folder / "ca.pem", "notes.txt": folder / "notes.txt", "cut.jks": folder / "cut.jks"}
    made["ca.pem"].write_bytes(b"any text before it\n" + authority.own.certificate_pem)
    made["notes.txt"].write_text("no store at all")
    made["me.pem"] = pki.pem_store(folder / "me.pem", me, authority.own)
    made["me-encrypted.pem"] = pki.pem_store(folder / "me-encrypted.pem", me, authority.own, password=KEY_PASSWORD)
    made["other.pem"] = folder / "other.pem"
    made["other.pem"].write_bytes(authority.issue("other").key_pem() + me.certificate_pem)
    made["me.p12"] = pki.p12_store(folder / "me.p12", me, authority.own)
    made["me.jks"] = pki.jks_store(folder / "me.jks", made["me.p12"])
    made["cut.jks"].write_bytes(made["me.jks"].read_bytes()[:-40])
    made["trust.jks"] = pki.java_truststore(folder / "trust.jks", made["ca.pem"], "JKS")
    made["trust.p12"] = pki.java_truststore(folder / "trust.p12", made["ca.pem"], "PKCS12")
    made["trust.jceks"] = pki.java_truststore(folder / "trust.jceks", made["ca.pem"], "JCEKS")
    return made


def options(stores: Stores, properties: Mapping[str, str]) -> TlsOptions:
    """Options of properties whose locations are names of `stores`."""
    return tls_options(
        {
            key: str(stores.get(value, Path(value))) if key.endswith("location") else value
            for key, value in properties.items()
        }
    )


def trust(name: str, **more: str) -> dict[str, str]:
    return store("truststore", name, **more)


def keys(name: str, **more: str) -> dict[str, str]:
    return store("keystore", name, **more)


def store(word: str, name: str, **more: str) -> dict[str, str]:
    return {f"ssl.{word}.location": name} | {f"ssl.{word}.{key}": value for key, value in more.items()}


@pytest.mark.parametrize(
    "properties",
    [
        trust("ca.pem", type="PEM"),
        trust("trust.jks", password=PASSWORD),
        trust("trust.jks"),  # as in Java, integrity is then not checked
        trust("trust.p12", type="PKCS12", password=PASSWORD),
        trust("trust.p12", password=PASSWORD),  # Java looks at the content, whatever the type says
        trust("trust.jks", type="PKCS12", password=PASSWORD),
    ],
    ids=str,
)
def test_the_authority_is_found_in_every_kind_of_store(
    stores: Stores, authority: Authority, properties: dict[str, str]
) -> None:
    found = options(stores, properties)
    assert found.trusted_pem == authority.own.certificate_pem.decode()
    assert (found.chain_pem, found.key_pem) == (None, None)
    assert len(tls_context(found).get_ca_certs()) == 1


@pytest.mark.parametrize(
    "properties",
    [
        keys("me.pem", type="PEM"),
        keys("me-encrypted.pem", type="PEM") | {"ssl.key.password": KEY_PASSWORD},
        keys("me.p12", type="PKCS12", password=PASSWORD),
        keys("me.jks", password=PASSWORD) | {"ssl.key.password": KEY_PASSWORD},
    ],
    ids=str,
)
def test_the_key_comes_with_its_chain_from_every_kind_of_store(
    stores: Stores, authority: Authority, me: Identity, properties: dict[str, str]
) -> None:
    found = options(stores, properties)
    assert found.chain_pem == (me.certificate_pem + authority.own.certificate_pem).decode()
    assert found.key_pem == me.key_pem().decode()
    assert found.key_pem not in repr(found)
    tls_context(found)


def test_pem_may_stand_in_the_configuration_itself(authority: Authority, me: Identity) -> None:
    found = tls_options(
        {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority.own.certificate_pem.decode(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": me.key_pem(KEY_PASSWORD).decode(),
            "ssl.keystore.certificate.chain": me.certificate_pem.decode(),
            "ssl.key.password": KEY_PASSWORD,
        }
    )
    assert (found.trusted_pem, found.chain_pem) == (
        authority.own.certificate_pem.decode(),
        me.certificate_pem.decode(),
    )
    assert found.key_pem == me.key_pem().decode()


def test_without_stores_the_systems_authorities_count_and_names_are_checked() -> None:
    found = tls_options({})
    assert found == TlsOptions(check_hostname=True, trusted_pem=None, chain_pem=None, key_pem=None)
    context = tls_context(found)
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_host_names_are_unchecked_only_where_the_file_says_so_and_chains_always() -> None:
    context = tls_context(tls_options({"ssl.endpoint.identification.algorithm": ""}))
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)


@pytest.mark.parametrize(
    ("protocol", "enabled", "low", "high"),
    [
        (None, "TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        (None, "TLSv1.3", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
        (None, "TLSv1.1, TLSv1.3,TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        ("TLSv1.2", None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        ("TLSv1.2", "TLSv1.2,TLSv1.3", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        ("TLSv1.3", None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        ("TLSv1.3", "TLSv1.3", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
        ("TLS", None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
    ],
)
def test_versions(protocol: str | None, enabled: str | None, low: ssl.TLSVersion, high: ssl.TLSVersion) -> None:
    given = {"ssl.protocol": protocol, "ssl.enabled.protocols": enabled}
    context = tls_context(tls_options({name: text for name, text in given.items() if text is not None}))
    assert (context.minimum_version, context.maximum_version) == (low, high)


def test_what_java_does_unless_told_otherwise_is_no_mistake() -> None:
    javas = {"ssl.protocol": "TLSv1.3", "ssl.provider": "SunJSSE", "ssl.trustmanager.algorithm": "PKIX"}
    assert tls_options(javas) == tls_options({})


@pytest.mark.parametrize(
    ("properties", "error", "parts"),
    [
        (trust("trust.jks", password="geheim"), BadInput, ("ssl.truststore.password: does not open", "trust.jks")),
        (trust("trust.p12", password="geheim"), BadInput, ("ssl.truststore.password: does not open", "trust.p12")),
        (trust("trust.p12"), BadInput, ("ssl.truststore.password: is missing for", "trust.p12")),
        (keys("me.jks", password="geheim"), BadInput, ("ssl.keystore.password: does not open", "me.jks")),
        (keys("me.jks", password=PASSWORD), BadInput, ("ssl.key.password: does not open the private key in",)),
        (keys("me.jks"), BadInput, ("ssl.key.password: is missing for the private key",)),
        (keys("me.p12", password="geheim"), BadInput, ("ssl.keystore.password: does not open", "me.p12")),
        (
            keys("me.p12", password=PASSWORD) | {"ssl.key.password": "geheim"},
            BadInput,
            ("ssl.key.password: differs from ssl.keystore.password", "me.p12", "remove ssl.key.password"),
        ),
        (keys("me-encrypted.pem", type="PEM"), BadInput, ("ssl.key.password: is missing for", "me-encrypted.pem")),
        (
            keys("me-encrypted.pem", type="PEM") | {"ssl.key.password": "geheim"},
            BadInput,
            ("ssl.key.password: does not open the private key in", "me-encrypted.pem"),
        ),
        (keys("other.pem", type="PEM"), BadInput, ("does not belong to the first certificate", "other.pem")),
        (keys("ca.pem", type="PEM"), BadInput, ("ca.pem is no usable PEM store: it holds no private key",)),
        (keys("trust.jks", password=PASSWORD), BadInput, ("trust.jks is no usable JKS store: it holds no private",)),
        (trust("notes.txt", type="PEM"), BadInput, ("ssl.truststore.location", "it holds no certificate")),
        (trust("notes.txt"), BadInput, ("begins as neither JKS nor PKCS12",)),
        (trust("ca.pem"), BadInput, ("is no usable JKS store", "neither")),
        (trust("me.pem"), BadInput, ("it is PEM text: add ssl.truststore.type=PEM",)),
        (trust("me.p12", type="PEM"), BadInput, ("it is not text",)),
        (keys("cut.jks", password=PASSWORD), BadInput, ("cut.jks is no usable JKS store: it is cut off",)),
        (trust("trust.jceks"), BadInput, ("it is a JCEKS store; convert it with keytool",)),
        (trust("/nowhere.jks"), BadInput, ("ssl.truststore.location: /nowhere.jks cannot be read: No such file",)),
        (trust("ca.pem", type="BKS"), Refused, ("ssl.truststore.type=BKS is not supported; convert",)),
        ({"ssl.truststore.certificates": "geheim"}, BadInput, ("ssl.truststore.certificates: is PEM text", "type=PEM")),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "geheim"},
            BadInput,
            ("ssl.truststore.certificates: it holds no certificate",),
        ),
        (
            trust("ca.pem", type="PEM", certificates="geheim"),
            BadInput,
            ("stands beside ssl.truststore.location; keep one",),
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": "geheim"},
            BadInput,
            ("ssl.keystore.certificate.chain: is missing beside the other half",),
        ),
        ({"ssl.cipher.suites": "X"}, Refused, ("ssl.cipher.suites is not supported", "remove the line")),
        ({"ssl.engine.factory.class": "a.B"}, Refused, ("ssl.engine.factory.class is not supported",)),
        ({"ssl.enabled.protocols": "SSLv3"}, Refused, ("ssl.enabled.protocols=SSLv3 has none of TLSv1.2, TLSv1.3",)),
        ({"ssl.protocol": "TLSv9"}, Refused, ("ssl.protocol=TLSv9 is not supported", "write the newer one")),
        ({"ssl.protocol": "TLSv1.1"}, Refused, ("ssl.protocol=TLSv1.1 is not supported: Python speaks TLSv1.2 and",)),
        ({"ssl.protocol": "SSL"}, Refused, ("ssl.protocol=SSL is not supported",)),
        ({"ssl.protocol": ""}, Refused, ("ssl.protocol= is not supported",)),
        (
            {"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"},
            Refused,
            ("ssl.protocol=TLSv1.2 allows nothing newer", "ssl.enabled.protocols=TLSv1.3 nothing as old"),
        ),
        ({"ssl.provider": "BCJSSE"}, Refused, ("ssl.provider=BCJSSE is not supported", "remove the line")),
        ({"ssl.trustmanager.algorithm": "SunX509"}, Refused, ("ssl.trustmanager.algorithm=SunX509 is not", "PKIX")),
        ({"ssl.endpoint.identification.algorithm": "none"}, BadInput, ("write https, or nothing",)),
    ],
    ids=str,
)
def test_a_bad_store_is_one_sentence_with_file_and_key(
    stores: Stores, properties: dict[str, str], error: type[FerryError], parts: tuple[str, ...]
) -> None:
    with pytest.raises(error) as caught:
        options(stores, properties)
    sentence = str(caught.value)
    assert all(part in sentence for part in parts), sentence
    assert "geheim" not in sentence
    assert "\n" not in sentence


def test_a_store_cut_off_anywhere_is_damaged_and_nothing_else(stores: Stores) -> None:
    content = stores["me.jks"].read_bytes()
    for size in range(4, len(content) - 20, 7):
        with pytest.raises(Damaged):
            read_jks(content[:size], None)


def test_a_changed_byte_is_noticed_with_the_password(stores: Stores) -> None:
    content = bytearray(stores["trust.jks"].read_bytes())
    content[-30] ^= 1
    with pytest.raises(ValueError, match="its bytes were changed"):
        read_jks(bytes(content), PASSWORD)


def test_every_key_of_a_jks_store_opens_with_its_own_password(stores: Stores, me: Identity) -> None:
    entry = read_jks(stores["me.jks"].read_bytes(), PASSWORD).keys[0]
    key = serialization.load_der_private_key(entry.private_key(KEY_PASSWORD), None)
    assert key.public_key() == me.key.public_key()

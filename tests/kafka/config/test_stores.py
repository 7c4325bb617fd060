"""Stores made by Java's keytool, by `cryptography` and by hand: what is in them, and what is said of broken ones."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from ferry.config.login.jks import Damaged, WrongPassword, read_jks
from ferry.config.login.security import TlsOptions
from ferry.config.login.stores import tls_options
from ferry.errors import BadInput, FerryError, Refused
from ferry.kafka.connect.security import tls_context
from tests.golden import Golden, brief
from tests.kafka.security import pki
from tests.kafka.security.pki import KEY_PASSWORD, PASSWORD, Authority, Identity

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
    made["version-19.pem"] = folder / "version-19.pem"
    made["version-19.pem"].write_bytes(pki.of_version_19(authority.own))
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
    ("properties", "error"),
    [
        (trust("trust.jks", password="geheim"), BadInput),
        (trust("trust.p12", password="geheim"), BadInput),
        (trust("trust.p12"), BadInput),
        (keys("me.jks", password="geheim"), BadInput),
        (keys("me.jks", password=PASSWORD), BadInput),
        (keys("me.jks"), BadInput),
        (keys("me.p12", password="geheim"), BadInput),
        (keys("me.p12", password=PASSWORD) | {"ssl.key.password": "geheim"}, BadInput),
        (keys("me-encrypted.pem", type="PEM"), BadInput),
        (keys("me-encrypted.pem", type="PEM") | {"ssl.key.password": "geheim"}, BadInput),
        (keys("other.pem", type="PEM"), BadInput),
        (keys("ca.pem", type="PEM"), BadInput),
        (keys("trust.jks", password=PASSWORD), BadInput),
        (trust("notes.txt", type="PEM"), BadInput),
        (trust("notes.txt"), BadInput),
        (trust("ca.pem"), BadInput),
        (trust("me.pem"), BadInput),
        (trust("version-19.pem", type="PEM"), BadInput),
        (trust("me.p12", type="PEM"), BadInput),
        (keys("cut.jks", password=PASSWORD), BadInput),
        (trust("trust.jceks"), BadInput),
        (trust("/nowhere.jks"), BadInput),
        (trust("ca.pem", type="BKS"), Refused),
        ({"ssl.truststore.certificates": "geheim"}, BadInput),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "geheim"}, BadInput),
        (trust("ca.pem", type="PEM", certificates="geheim"), BadInput),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "geheim"}, BadInput),
        ({"ssl.cipher.suites": "X"}, Refused),
        ({"ssl.engine.factory.class": "a.B"}, Refused),
        ({"ssl.enabled.protocols": "SSLv3"}, Refused),
        ({"ssl.protocol": "TLSv9"}, Refused),
        ({"ssl.protocol": "TLSv1.1"}, Refused),
        ({"ssl.protocol": "SSL"}, Refused),
        ({"ssl.protocol": ""}, Refused),
        ({"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"}, Refused),
        ({"ssl.provider": "BCJSSE"}, Refused),
        ({"ssl.trustmanager.algorithm": "SunX509"}, Refused),
        ({"ssl.endpoint.identification.algorithm": "none"}, BadInput),
    ],
    ids=brief,
)
def test_a_bad_store_is_one_sentence_with_file_and_key(
    stores: Stores, properties: dict[str, str], error: type[FerryError], golden: Golden
) -> None:
    with pytest.raises(error) as caught:
        options(stores, properties)
    sentence = str(caught.value)
    golden(sentence.replace(str(stores["ca.pem"].parent), "FOLDER"))
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
    with pytest.raises(WrongPassword):
        read_jks(bytes(content), PASSWORD)


def test_every_key_of_a_jks_store_opens_with_its_own_password(stores: Stores, me: Identity) -> None:
    entry = read_jks(stores["me.jks"].read_bytes(), PASSWORD).keys[0]
    key = serialization.load_der_private_key(entry.private_key(KEY_PASSWORD), None)
    assert key.public_key() == me.key.public_key()

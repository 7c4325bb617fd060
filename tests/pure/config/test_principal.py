"""Whom brokers know Ferry as, by its login; Kafka and Java judge how names are spelt."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from ferry.config.flow.principal import distinguished_name, principal_of
from ferry.config.settings import parse_settings
from tests.golden import Golden
from tests.kafka.security import pki
from tests.kafka.security.pki import PASSWORD, Authority

BASE = """\
clusters = a, b
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
a->b.enabled = true
"""
PACKAGE = "org.apache.kafka.common.security"
PLAIN = f"{PACKAGE}.plain.PlainLoginModule required"
SCRAM = f"{PACKAGE}.scram.ScramLoginModule required"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"


def found(lines: str) -> tuple[str | None, str]:
    flow = parse_settings(f"{BASE}{lines}\n", "f").flow("a->b")
    principal = principal_of(flow, "source")
    return principal.name, principal.why


@pytest.mark.parametrize(
    ("mechanism", "login", "name"),
    [
        ("PLAIN", f'{PLAIN} username="ferry-src" password="geheim";', "User:ferry-src"),
        ("SCRAM-SHA-512", f'{SCRAM} username="me" password="${{env:NOT_SET_HERE}}";', "User:me"),
        ("PLAIN", f'{PLAIN} username="${{env:NOT_SET_HERE}}" password="x";', None),
        ("PLAIN", "${file:/nowhere:jaas}", None),
        ("PLAIN", f'{PLAIN} password="geheim";', None),
        ("PLAIN", "geheim", None),
        ("GSSAPI", f'{KRB5} useKeyTab=true keyTab="/no" principal="ferry/host@A.B";', "User:ferry"),
        ("GSSAPI", f"{KRB5} useTicketCache=true;", None),
        ("OAUTHBEARER", f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required;", None),
    ],
)
def test_who_logs_in(mechanism: str, login: str, name: str | None, golden: Golden) -> None:
    lines = f"a.security.protocol = SASL_SSL\na.sasl.mechanism = {mechanism}\na.sasl.jaas.config = {login}"
    principal, reason = found(lines)
    assert principal == name
    golden(reason)
    assert "geheim" not in reason


def test_whoever_shows_a_certificate_is_its_subject(tmp_path: Path, golden: Golden) -> None:
    authority = Authority.create("authority")
    pki.p12_store(tmp_path / "me.p12", authority.issue("me at home"), authority.own)
    store = f"a.security.protocol = SSL\na.ssl.keystore.location = {tmp_path}/me.p12\n"
    assert found(f"{store}a.ssl.keystore.password = {PASSWORD}")[0] == "User:CN=me at home"
    for case, lines in {
        "a wrong password": f"{store}a.ssl.keystore.password = geheim",
        "no store": "a.security.protocol = SSL",
        "no encryption": "",
    }.items():
        principal, reason = found(lines)
        assert principal is None
        golden(reason, case)
    assert found(f"{store}a.ssl.keystore.password = {PASSWORD}\na.admin.ssl.keystore.location = x")[0] is not None


def subject(*parts: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in parts])


@pytest.mark.parametrize(
    "name",
    [
        *(
            subject((NameOID.COMMON_NAME, text))
            for text in ("a,b", "a=b", "a+b", "#a", "a\\b", " a", "a ", "ä", "a\nb")
        ),
        subject((NameOID.EMAIL_ADDRESS, "me@here")),
        subject((NameOID.SERIAL_NUMBER, "5")),
        x509.Name(
            [x509.RelativeDistinguishedName([*subject((NameOID.COMMON_NAME, "a")), *subject((NameOID.USER_ID, "b"))])]
        ),
    ],
    ids=str,
)
def test_a_spelling_that_is_not_certain_is_not_guessed(name: x509.Name) -> None:
    assert distinguished_name(name) is None

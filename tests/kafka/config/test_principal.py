"""Whom brokers know Ferry as, by its login; Kafka and Java judge how names are spelt."""

from __future__ import annotations

import base64

from cryptography.x509.oid import NameOID

from ferry.config.flow.principal import distinguished_name, short_name
from tests.kafka.config.java_oracle import ask, decoded, encoded
from tests.pure.config.test_principal import subject

KINDS = (
    NameOID.COUNTRY_NAME, NameOID.STATE_OR_PROVINCE_NAME, NameOID.LOCALITY_NAME, NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.USER_ID,
    NameOID.COMMON_NAME,
)  # fmt: skip


def test_java_spells_subjects_like_that() -> None:
    names = [
        subject(
            *((kind, "de" if kind == NameOID.COUNTRY_NAME else f"A b-{at}.c/d@e:1") for at, kind in enumerate(KINDS))
        )
    ]
    names += [subject((kind, "DE")) for kind in KINDS]
    names += [subject(*((kind, "XY") for kind in reversed(KINDS)))]
    answers = ask([f"subject {base64.b64encode(name.public_bytes()).decode()}" for name in names])
    assert [distinguished_name(name) for name in names] == [decoded(answer.split(" ")[1]) for answer in answers]


def test_kafka_shortens_principals_like_that() -> None:
    principals = ["ferry@HERE", "ferry/host.example@HERE", "a-b.c/d@HERE"]
    answers = ask([f"short {encoded('HERE')} {encoded(one)}" for one in principals])
    assert [short_name(one) for one in principals] == [decoded(answer.split(" ")[1]) for answer in answers]

"""The `KafkaClient` section of a JAAS file."""

from pathlib import PurePosixPath

import pytest

from ferry.config.login.jaas import parse_jaas
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.login import read_login
from tests.golden import Golden

KERBEROS = """
// the brokers' own login
KafkaServer { a.B required password="no"; };
/* and KafkaClient { ours */
KafkaClient {
    com.sun.security.auth.module.Krb5LoginModule required
    useKeyTab=true
    keyTab="/etc/keys/mirror.keytab"
    serviceName="kafka"
    principal="mirror/host@EXAMPLE.COM";
};
"""


def test_the_section_becomes_one_value() -> None:
    login = read_login(KERBEROS, "jaas.conf", PurePosixPath("/etc/mm/jaas.conf"))
    again = parse_jaas(login.text())
    assert again.module == "com.sun.security.auth.module.Krb5LoginModule"
    assert again.options == {
        "useKeyTab": "true",
        "keyTab": "/etc/keys/mirror.keytab",
        "serviceName": "kafka",
        "principal": "mirror/host@EXAMPLE.COM",
    }


def test_quotes_braces_and_slashes_inside_a_value() -> None:
    login = read_login(
        'KafkaClient { a.B required username="u//x" password="p}\\"w;"; };',
        "jaas.conf",
        PurePosixPath("/etc/mm/jaas.conf"),
    )
    assert parse_jaas(login.text()).options == {"username": "u//x", "password": 'p}"w;'}
    assert "p}" not in repr(login)


def test_the_new_file_refers_to_it() -> None:
    login = read_login(KERBEROS, "jaas.conf", PurePosixPath("/etc/mm/jaas.conf"))
    assert login.reference() == "${dir:/etc/mm:jaas.conf}"


def test_a_path_that_ends_a_reference_is_refused(golden: Golden) -> None:
    login = read_login(KERBEROS, "jaas.conf", PurePosixPath("/etc/m:m/jaas.conf"))
    with pytest.raises(BadInput) as caught:
        login.reference()
    golden(caught.value)

"""The `KafkaClient` section of a JAAS file."""

import pytest

from ferry.config.jaas import parse_jaas
from ferry.config.problem import BadValue
from ferry.mm1.login import read_login

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
    login = read_login(KERBEROS, "jaas.conf")
    again = parse_jaas(login.text())
    assert again.module == "com.sun.security.auth.module.Krb5LoginModule"
    assert again.options == {
        "useKeyTab": "true",
        "keyTab": "/etc/keys/mirror.keytab",
        "serviceName": "kafka",
        "principal": "mirror/host@EXAMPLE.COM",
    }
    assert not login.has_secret()


def test_quotes_braces_and_slashes_inside_a_value() -> None:
    login = read_login('KafkaClient { a.B required username="u//x" password="p}\\"w;"; };', "jaas.conf")
    assert parse_jaas(login.text()).options == {"username": "u//x", "password": 'p}"w;'}
    assert login.has_secret()
    assert "p}" not in repr(login)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no section KafkaClient"),
        ("KafkaServer { a.B required; };", "has no section KafkaClient"),
        ("// KafkaClient { a.B required; };", "has no section KafkaClient"),
        ("KafkaClient { a.B required; }", "has no section KafkaClient"),
        ("KafkaClient { };", "does not begin with a login module"),
        ("KafkaClient { a.B required x=1 };", "does not end with a semicolon"),
        ("KafkaClient { a.B required; c.D required; };", "more than one login module"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadValue) as caught:
        read_login(text, "jaas.conf")
    assert words in str(caught.value)

"""A connection of Airflow's own type `kafka` as one of Ferry's: its extra holds librdkafka's settings.

Settings of how to reach a cluster are renamed. Those of how to consume or produce do not count. All others are refused:
a cluster is never reached with less protection than the connection asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ferry.config.text.problem import BadValue
from ferry.messages.catalogue import sentence

KAFKA_TYPE = "kafka"

_NAMES = {
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.kerberos.service.name": "sasl.kerberos.service.name",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
}
"""librdkafka's names, and Java's."""
_WITH = {
    "ssl.ca.location": {"ssl.truststore.type": "PEM"},
    "ssl.ca.pem": {"ssl.truststore.type": "PEM"},
    "ssl.keystore.location": {"ssl.keystore.type": "PKCS12"},
}
"""What Java also needs, because librdkafka knows one form only."""
SERVER_KEYS = ("bootstrap.servers", "metadata.broker.list")
_USERS = ("sasl.username", "sasl.oauthbearer.client.id")
_PASSWORDS = ("sasl.password", "sasl.oauthbearer.client.secret")
_FIXED = {
    "sasl.oauthbearer.method": "oidc",
    "ssl.endpoint.identification.algorithm": "https",
    "enable.ssl.certificate.verification": "true",
}
"""Settings of which Ferry has one value."""
_OF_CLIENTS = frozenset(
    {
        *("acks", "auto.offset.reset", "client.id", "compression.type", "enable.auto.commit"),
        *("enable.auto.offset.store", "enable.idempotence", "fetch.min.bytes", "group.id", "group.instance.id"),
        *("heartbeat.interval.ms", "isolation.level", "linger.ms", "max.poll.interval.ms", "message.max.bytes"),
        *("partition.assignment.strategy", "session.timeout.ms"),
    }
)
"""Settings of how to consume or produce."""


class Fields(TypedDict):
    """The fields of a connection of Ferry's type."""

    host: str
    port: None
    login: str | None
    password: str | None
    extra: dict[str, Any]


def ferry_fields(extra: Mapping[str, Any]) -> Fields:
    """Return the fields of Ferry's type; raises BadValue for a setting that has no counterpart there."""
    found = Fields(host="", port=None, login=None, password=None, extra={})
    for key, value in extra.items():
        if value is None or value == "":
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key in SERVER_KEYS:
            found["host"] = text
        elif key in _USERS:
            found["login"] = text
        elif key in _PASSWORDS:
            found["password"] = text
        elif key in _NAMES:
            found["extra"] |= {_NAMES[key]: value, **_WITH.get(key, {})}
        elif not (key in _OF_CLIENTS or _FIXED.get(key) == text.strip().lower()):
            raise BadValue(sentence("login.librdkafka", key=key))
    if not found["host"]:
        raise BadValue(sentence("login.librdkafka.no-servers", key=SERVER_KEYS[0]))
    return found

"""An Airflow connection of the type "Kafka cluster" as a cluster's settings, in place of `{alias}.*` lines.

It holds the values of `security.protocol`, `ssl.*`, `sasl.*` and `bootstrap.servers`. A connection of Airflow's own
type `kafka` is read as one of that type (`ferry.config.login.kafka_type`). This module does not use Airflow: tasks
fetch the connection and pass its fields, other programs find it in `AIRFLOW_CONN_{ID}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ferry.config.keys import values
from ferry.config.keys.layers import is_common_client_key
from ferry.config.login.allowed import check_connection
from ferry.config.login.jaas import JaasLogin, parse_jaas
from ferry.config.login.kafka_type import KAFKA_TYPE, SERVER_KEYS, ferry_fields
from ferry.config.text.problem import BadValue
from ferry.config.text.secrets import ClientProperties, Providers, has_reference, is_secret
from ferry.errors import BadInput
from ferry.messages.catalogue import sentence
from ferry.model import located

TYPE = "kafka_cluster"
TYPES = (TYPE, KAFKA_TYPE)
SERVERS = "bootstrap.servers"
JAAS = "sasl.jaas.config"

Lookup = Callable[[str], Mapping[str, str] | None]
"""Returns a connection's settings by its id; None where Airflow's connections are not known."""

_PLUGIN = "org.apache.kafka.common.security."
_LOGINS = {
    "PLAIN": (f"{_PLUGIN}plain.PlainLoginModule", "username", "password"),
    "SCRAM-SHA-256": (f"{_PLUGIN}scram.ScramLoginModule", "username", "password"),
    "SCRAM-SHA-512": (f"{_PLUGIN}scram.ScramLoginModule", "username", "password"),
    "OAUTHBEARER": (f"{_PLUGIN}oauthbearer.OAuthBearerLoginModule", "clientId", "clientSecret"),
}
"""Login module and the names of its two options, for mechanisms that need only a user and a password."""
_OWN_LOGIN = JaasLogin(module="", options={})
"""The login that `_login` makes of user and password, which names no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowConnection:
    """The fields of a connection as Airflow keeps them; `port` counts for the hosts that name none."""

    conn_id: str
    conn_type: str
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


def nobody(conn_id: str) -> None:
    """Return no settings: the lookup of callers that may not ask, because parsing resolves no secret."""


def connection_properties(connection: AirflowConnection) -> ClientProperties:
    """Return the cluster's settings by Java's names; login and password become `sasl.jaas.config`.

    Raises BadInput for a field that is missing, unknown, contradicts another or would show a secret. Also raises it for
    settings with which this machine would use its own files or logins (`ferry.config.login.allowed`).
    """
    try:
        return Providers().resolve_all(_properties(connection))  # it holds no reference, and may hold blanks
    except BadValue as error:
        raise _wrong(connection, error) from None


def connection_servers(connection: AirflowConnection) -> str:
    """Return the `bootstrap.servers` of a connection; its login and its other settings are not read.

    Raises BadInput if it names no servers, or is of another type.
    """
    named = {key: value for key, value in connection.extra.items() if key in SERVER_KEYS}
    try:
        return _servers(_of_own_type(replace(connection, extra=named)))
    except BadValue as error:
        raise _wrong(connection, error) from None


def _wrong(connection: AirflowConnection, error: BadValue) -> BadInput:
    return BadInput(located(f"Airflow connection {connection.conn_id!r}", error.message))


def _of_own_type(connection: AirflowConnection) -> AirflowConnection:
    if connection.conn_type == KAFKA_TYPE:
        return replace(connection, conn_type=TYPE, **ferry_fields(connection.extra))
    if connection.conn_type != TYPE:
        raise BadValue(sentence("login.type", type=connection.conn_type, wanted=TYPE))
    return connection


def _properties(connection: AirflowConnection) -> dict[str, str]:
    connection = _of_own_type(connection)
    properties = {SERVERS: _servers(connection), **_extra(connection.extra)}
    jaas = _jaas(properties[JAAS]) if JAAS in properties else None
    if connection.login or connection.password:
        properties[JAAS], jaas = _login(connection, properties), _OWN_LOGIN
    for key, value in properties.items():
        if has_reference(value):
            raise BadValue(sentence("login.reference", key=key))
    check_connection(properties, jaas)
    return properties


def _servers(connection: AirflowConnection) -> str:
    hosts = values.items(connection.host or "")
    if not hosts:
        raise BadValue(sentence("login.no-host"))
    if connection.port:
        hosts = tuple(host if re.search(r":\d+$", host) else f"{host}:{connection.port}" for host in hosts)
    return values.bootstrap_servers(",".join(hosts))


def _extra(extra: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that are set: the form stores null or nothing for a field that was left empty."""
    found: dict[str, str] = {}
    for key, value in extra.items():
        if value is None or value == "":
            continue
        if key == SERVERS or not is_common_client_key(key):
            raise BadValue(sentence("login.no-setting", key=key))
        if not isinstance(value, (str, int, bool)):
            raise BadValue(sentence("login.no-text", key=key))
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)
        _refuse_shown_secret(key, found[key])
    return found


def _refuse_shown_secret(key: str, value: str) -> None:
    """Refuse secrets under two names that Airflow does not hide: it hides values by the names of their keys."""
    if key == "ssl.keystore.key":
        raise BadValue(sentence("login.shown-key", key=key))
    if key == JAAS and any(is_secret(option) for option in _jaas(value).options):
        raise BadValue(sentence("login.shown-password", key=key))


def _jaas(text: str) -> JaasLogin:
    try:
        return parse_jaas(text, may_be_file=False)
    except BadValue as error:
        raise BadValue(sentence("login.jaas", jaas=JAAS, error=str(error))) from None


def _login(connection: AirflowConnection, properties: Mapping[str, str]) -> str:
    if not (connection.login and connection.password):
        raise BadValue(sentence("login.half"))
    protocol = properties.get("security.protocol", "PLAINTEXT")
    if not protocol.upper().startswith("SASL"):
        raise BadValue(sentence("login.protocol", protocol=protocol))
    if JAAS in properties:
        raise BadValue(sentence("login.twice", jaas=JAAS))
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in _LOGINS:
        raise BadValue(sentence("login.mechanism", mechanism=mechanism, mechanisms=", ".join(_LOGINS), jaas=JAAS))
    module, user, password = _LOGINS[mechanism]
    return f"{module} required {user}={_quoted(connection.login)} {password}={_quoted(connection.password)};"


def _quoted(text: str) -> str:
    """Quote a value for Java's login configuration, which has backslash escapes and no line breaks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'

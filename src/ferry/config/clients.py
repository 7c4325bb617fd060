"""Java client properties as options of the two Python clients.

What a key does here is in `docs/configuration.md`. A security setting that cannot be honoured is refused: a connection
is never opened with less protection than the file asks for.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ferry.config import values
from ferry.config.jaas import parse_jaas
from ferry.config.problem import BadValue
from ferry.errors import BadInput, Refused

T = TypeVar("T")

MAX_FRAME_BYTES = 2**31 - 1
"""Kafka's own bound on a response; a Java client has no smaller one, and fetch sizes keep responses far below it."""

_MECHANISMS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_REFUSED_SSL = (
    "ssl.truststore.certificates",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.engine.factory.class",
)
_REFUSED_SASL = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How to reach a cluster, named as kafka-python's KafkaConnectionManager names them. Times are milliseconds."""

    bootstrap_servers: tuple[str, ...]
    client_id: str
    request_timeout_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    metadata_max_age_ms: int
    socket_options: tuple[tuple[int, int, int], ...]
    client_dns_lookup: str
    receive_message_max_bytes: int = MAX_FRAME_BYTES
    security_protocol: str
    ssl_check_hostname: bool
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_password: str | None = field(repr=False)
    sasl_mechanism: str | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """Sizes of fetches; None where the file says nothing and the engine chooses."""

    max_bytes: int | None
    partition_max_bytes: int | None
    min_bytes: int | None
    max_wait_ms: int | None
    rack: str
    """`client.rack`, sent with each fetch so that a near replica may answer; empty is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """Sizes and times of produce requests; None where the file says nothing and the engine chooses."""

    max_request_bytes: int | None
    request_timeout_ms: int
    delivery_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Security:
    """What both clients need to know, in neither's words."""

    protocol: str
    check_hostname: bool
    ca_file: str | None
    key_file: str | None
    """One PEM file with the private key and its certificate chain, as Java's PEM key stores are."""
    key_password: str | None = field(repr=False)
    mechanism: str | None
    username: str | None
    password: str | None = field(repr=False)


def kafka_python_options(properties: Mapping[str, str]) -> ConnectionOptions:
    """Connection options of kafka-python. `properties` are effective and resolved, by Java names.

    Raises BadInput for a value that cannot be read, Refused for a setting that is not supported.
    """
    security = _security(properties)
    return ConnectionOptions(
        bootstrap_servers=_servers(properties),
        client_id=properties.get("client.id", "ferry"),
        request_timeout_ms=_number(properties, "request.timeout.ms", 30_000, 1),
        reconnect_backoff_ms=_number(properties, "reconnect.backoff.ms", 50, 0),
        reconnect_backoff_max_ms=_number(properties, "reconnect.backoff.max.ms", 1_000, 0),
        socket_connection_setup_timeout_ms=_number(properties, "socket.connection.setup.timeout.ms", 10_000, 1),
        socket_connection_setup_timeout_max_ms=_number(properties, "socket.connection.setup.timeout.max.ms", 30_000, 1),
        connections_max_idle_ms=_number(properties, "connections.max.idle.ms", 540_000, 1),
        metadata_max_age_ms=_number(properties, "metadata.max.age.ms", 300_000, 0),
        socket_options=_socket_options(properties),
        client_dns_lookup=_read(
            properties,
            "client.dns.lookup",
            "use_all_dns_ips",
            values.one_of(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
        ),
        security_protocol=security.protocol,
        ssl_check_hostname=security.check_hostname,
        ssl_cafile=security.ca_file,
        ssl_certfile=security.key_file,
        ssl_keyfile=security.key_file,
        ssl_password=security.key_password,
        sasl_mechanism=security.mechanism,
        sasl_plain_username=security.username,
        sasl_plain_password=security.password,
    )


def confluent_options(properties: Mapping[str, str]) -> dict[str, str | int]:
    """Options of confluent-kafka (librdkafka's names) for the same connection.

    Raises BadInput for a value that cannot be read, Refused for a setting that is not supported.
    """
    connection = kafka_python_options(properties)
    options: dict[str, str | int] = {
        "bootstrap.servers": ",".join(connection.bootstrap_servers),
        "client.id": connection.client_id,
        "security.protocol": connection.security_protocol,
        "socket.timeout.ms": connection.request_timeout_ms,
        "reconnect.backoff.ms": connection.reconnect_backoff_ms,
        "reconnect.backoff.max.ms": connection.reconnect_backoff_max_ms,
        "connections.max.idle.ms": connection.connections_max_idle_ms,
    }
    for java, name in (
        ("send.buffer.bytes", "socket.send.buffer.bytes"),
        ("receive.buffer.bytes", "socket.receive.buffer.bytes"),
    ):
        if (size := _optional(properties, java, -1)) is not None:
            options[name] = max(size, 0)
    if connection.security_protocol.endswith("SSL"):
        options["ssl.endpoint.identification.algorithm"] = "https" if connection.ssl_check_hostname else "none"
        files = {
            "ssl.ca.location": connection.ssl_cafile,
            "ssl.certificate.location": connection.ssl_certfile,
            "ssl.key.location": connection.ssl_keyfile,
            "ssl.key.password": connection.ssl_password,
        }
        options |= {name: value for name, value in files.items() if value is not None}
    if connection.sasl_mechanism is not None:
        options["sasl.mechanism"] = connection.sasl_mechanism
        options["sasl.username"] = connection.sasl_plain_username or ""
        options["sasl.password"] = connection.sasl_plain_password or ""
    return options


def fetch_options(properties: Mapping[str, str]) -> FetchOptions:
    """Fetch sizes of an effective consumer; raises BadInput for a value that cannot be read."""
    return FetchOptions(
        max_bytes=_optional(properties, "fetch.max.bytes", 0),
        partition_max_bytes=_optional(properties, "max.partition.fetch.bytes", 0),
        min_bytes=_optional(properties, "fetch.min.bytes", 0),
        max_wait_ms=_optional(properties, "fetch.max.wait.ms", 0),
        rack=properties.get("client.rack", ""),
    )


def produce_options(properties: Mapping[str, str]) -> ProduceOptions:
    """Produce sizes and times of an effective producer.

    Raises BadInput for a value that cannot be read, Refused for a compression: batches keep the one they have.
    """
    compression = properties.get("compression.type")
    if compression is not None:
        raise Refused(
            f"producer.compression.type={compression} is not supported: Ferry copies batches in the compression they"
            " have; remove the line"
        )
    return ProduceOptions(
        max_request_bytes=_optional(properties, "max.request.size", 1),
        request_timeout_ms=_number(properties, "request.timeout.ms", 30_000, 1),
        delivery_timeout_ms=_number(properties, "delivery.timeout.ms", 120_000, 1),
    )


def _read(properties: Mapping[str, str], key: str, default: T, convert: Callable[[str], T]) -> T:
    if key not in properties:
        return default
    try:
        return convert(properties[key])
    except BadValue as error:
        raise BadInput(f"{key}: {error}") from None


def _number(properties: Mapping[str, str], key: str, default: int, low: int) -> int:
    return _read(properties, key, default, values.integer(low, 2**63 - 1))


def _optional(properties: Mapping[str, str], key: str, low: int) -> int | None:
    return _number(properties, key, low, low) if key in properties else None


def _servers(properties: Mapping[str, str]) -> tuple[str, ...]:
    servers = _read(properties, "bootstrap.servers", "", values.bootstrap_servers)
    if not servers:
        raise BadInput("bootstrap.servers: is missing; add {alias}.bootstrap.servers = host:port")
    # Java accepts a listener's name before the address and connects to the address.
    return tuple(server.rpartition("://")[2] for server in servers.split(","))


def _socket_options(properties: Mapping[str, str]) -> tuple[tuple[int, int, int], ...]:
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for key, option in (("send.buffer.bytes", socket.SO_SNDBUF), ("receive.buffer.bytes", socket.SO_RCVBUF)):
        size = _optional(properties, key, -1)
        # -1 means what the system gives; so does an absent key, because large fetches profit from its autotuning.
        if size is not None and size >= 0:
            options.append((socket.SOL_SOCKET, option, size))
    return tuple(options)


def _security(properties: Mapping[str, str]) -> _Security:
    protocol = _read(properties, "security.protocol", "PLAINTEXT", lambda text: values.one_of(_PROTOCOLS)(text.upper()))
    over_ssl, over_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    if over_ssl:
        _refuse(properties, _REFUSED_SSL)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if over_ssl and algorithm not in ("https", ""):
        raise BadInput(
            f"ssl.endpoint.identification.algorithm: {algorithm!r} is not known; write https, or nothing to turn host"
            " name verification off"
        )
    mechanism, username, password = _login(properties) if over_sasl else (None, None, None)
    return _Security(
        protocol=protocol,
        check_hostname=algorithm == "https",
        ca_file=_pem_store(properties, "truststore") if over_ssl else None,
        key_file=_pem_store(properties, "keystore") if over_ssl else None,
        key_password=properties.get("ssl.key.password") if over_ssl else None,
        mechanism=mechanism,
        username=username,
        password=password,
    )


def _refuse(properties: Mapping[str, str], keys: tuple[str, ...]) -> None:
    for key in keys:
        if properties.get(key, "").strip():
            raise Refused(f"{key} is not supported; use PEM files by location, or PLAIN and SCRAM, and remove the line")


def _pem_store(properties: Mapping[str, str], store: str) -> str | None:
    location = properties.get(f"ssl.{store}.location", "").strip()
    if not location:
        return None
    kind = properties.get(f"ssl.{store}.type", "JKS").strip()
    if kind.upper() != "PEM":
        raise Refused(
            f"ssl.{store}.location={location} is a {kind} store, which is not supported; convert it to PEM and add"
            f" ssl.{store}.type=PEM"
        )
    return location


def _login(properties: Mapping[str, str]) -> tuple[str, str, str]:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in _MECHANISMS:
        raise Refused(f"sasl.mechanism={mechanism} is not supported; use one of {', '.join(_MECHANISMS)}")
    _refuse(properties, _REFUSED_SASL)
    if "sasl.jaas.config" not in properties:
        raise BadInput(
            f"sasl.jaas.config: is missing for {mechanism}; write {_MECHANISMS[mechanism]} required username=... "
            "password=...;"
        )
    login = _read(properties, "sasl.jaas.config", None, parse_jaas)
    if login is None or login.module != _MECHANISMS[mechanism]:
        found = login.module if login is not None else ""
        raise BadInput(f"sasl.jaas.config: module {found} does not serve {mechanism}; write {_MECHANISMS[mechanism]}")
    for option in ("username", "password"):
        if option not in login.options:
            raise BadInput(f'sasl.jaas.config: option {option} is missing; add {option}="..."')
    if login.options.get("tokenauth", "false").lower() == "true":
        raise Refused("sasl.jaas.config: tokenauth=true (delegation tokens) is not supported; use a user's credentials")
    return mechanism, login.options["username"], login.options["password"]

"""Java client properties as options of Ferry's connections.

The effect of a key is in `docs/configuration.md`. A security setting that cannot be honoured is refused: a connection
is never opened with less protection than the file asks for.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TypeVar

from ferry.config.client_options import ConnectionOptions, FetchOptions, ProduceOptions
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.origins import placed
from ferry.config.keys import values
from ferry.config.keys.layers import Role, Side
from ferry.config.login.sasl import login
from ferry.config.login.security import TlsOptions
from ferry.config.text.problem import BadValue
from ferry.config.text.secrets import ClientProperties
from ferry.errors import BadInput, Refused
from ferry.model import Codec, Compression, located

T = TypeVar("T")

_LEVELS = {Codec.GZIP: (-1, 9), Codec.LZ4: (1, 17), Codec.ZSTD: (-131_072, 22)}
"""Kafka's limits of `compression.*.level` (KIP-390)."""

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def flow_client_options(flow: FlowConfig, side: Side, role: Role) -> ConnectionOptions:
    """Return the connection options of one of a flow's clients.

    Raises BadInput for a value that cannot be read, Refused for a setting that is not supported; with file, line and
    key.
    """
    # Stable per flow, so that a broker's quotas and logs can name it.
    return of_cluster(
        flow, side, role, lambda found: kafka_python_options({"client.id": f"ferry.{flow.flow}", **found})
    )


def flow_fetch_options(flow: FlowConfig) -> FetchOptions:
    """Return the limits of a flow's fetches at the source. Raises BadInput with file, line and key."""
    return of_cluster(flow, "source", "consumer", fetch_options)


def flow_produce_options(flow: FlowConfig) -> ProduceOptions:
    """Return how a flow's batches are produced on the target. Raises BadInput with file, line and key."""
    return of_cluster(flow, "target", "producer", produce_options)


def of_cluster(flow: FlowConfig, side: Side, role: Role, read: Callable[[Mapping[str, str]], T]) -> T:
    """Return what `read` makes of the effective properties of one of a flow's clients.

    The errors of `read` begin with a property, as `key: ...` or `key=...`; they get its file and line.
    """
    alias = flow.flow.source if side == "source" else flow.flow.target
    properties = ClientProperties(values_by_key={})
    try:
        properties = flow.client(side, role)
        return read(properties)
    except (BadInput, Refused) as error:
        said = properties.redacted(error)
        raise type(error)(placed(said, flow.clients.origins[side, role], alias)) from None


def kafka_python_options(properties: Mapping[str, str]) -> ConnectionOptions:
    """Return how to connect. `properties` are effective and resolved, by Java names.

    Raises BadInput for a value that cannot be read, Refused for a setting that is not supported.
    """
    protocol = _read(properties, "security.protocol", "PLAINTEXT", lambda text: values.one_of(_PROTOCOLS)(text.upper()))
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
        security_protocol=protocol,
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        login=login(properties) if protocol.startswith("SASL") else None,
    )


def fetch_options(properties: Mapping[str, str]) -> FetchOptions:
    """Return the fetch sizes of an effective consumer. Raises BadInput for a value that cannot be read."""
    return FetchOptions(
        max_bytes=_optional(properties, "fetch.max.bytes", 0),
        partition_max_bytes=_optional(properties, "max.partition.fetch.bytes", 0),
        min_bytes=_optional(properties, "fetch.min.bytes", 0),
        max_wait_ms=_optional(properties, "fetch.max.wait.ms", 0),
        rack=properties.get("client.rack", ""),
    )


def produce_options(properties: Mapping[str, str]) -> ProduceOptions:
    """Return the sizes and the compression of an effective producer.

    Raises BadInput for a value that cannot be read.
    """
    return ProduceOptions(
        max_request_bytes=_optional(properties, "max.request.size", 1), compression=_compression(properties)
    )


def _compression(properties: Mapping[str, str]) -> Compression | None:
    codecs = {codec.name.lower(): codec for codec in Codec}
    name = _read(properties, "compression.type", None, values.one_of(tuple(codecs)))
    if name is None:
        return None
    key = f"compression.{name}.level"
    low, high = _LEVELS.get(codecs[name], (0, 0))
    level = _read(properties, key, None, values.integer(low, high)) if codecs[name] in _LEVELS else None
    return Compression(codec=codecs[name], level=level)


def _read(properties: Mapping[str, str], key: str, default: T, convert: Callable[[str], T]) -> T:
    if key not in properties:
        return default
    try:
        return convert(properties[key])
    except BadValue as error:
        raise BadInput(located(key, error.message)) from None


def _number(properties: Mapping[str, str], key: str, default: int, low: int) -> int:
    return _read(properties, key, default, values.integer(low, 2**63 - 1))


def _optional(properties: Mapping[str, str], key: str, low: int) -> int | None:
    return _number(properties, key, low, low) if key in properties else None


def _servers(properties: Mapping[str, str]) -> tuple[str, ...]:
    servers = _read(properties, "bootstrap.servers", "", values.bootstrap_servers)
    if not servers:
        raise BadInput("bootstrap.servers: is missing; write host:port, several with commas between")
    # Java accepts a listener's name before the address and connects to the address.
    return tuple(server.rpartition("://")[2] for server in servers.split(","))


def _socket_options(properties: Mapping[str, str]) -> tuple[tuple[int, int, int], ...]:
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for key, option in (("send.buffer.bytes", socket.SO_SNDBUF), ("receive.buffer.bytes", socket.SO_RCVBUF)):
        size = _optional(properties, key, -1)
        # -1 means the system's default; so does an absent key, because large fetches profit from its autotuning.
        if size is not None and size >= 0:
            options.append((socket.SOL_SOCKET, option, size))
    return tuple(options)


def _tls(properties: Mapping[str, str]) -> TlsOptions:
    # Spark's workers import this module.
    from ferry.config.login.stores import tls_options  # noqa: PLC0415 - cryptography, only where TLS is configured

    return tls_options(properties)

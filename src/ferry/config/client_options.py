"""How Ferry's clients connect, fetch and produce, as values that tasks get: they import nothing that reads a file."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.login.security import Login, TlsOptions
from ferry.model import Compression

MAX_FRAME_BYTES = 2**31 - 1
"""Kafka's own limit of a response. A Java client has no smaller one, and fetch sizes keep responses far below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How to reach a cluster.

    Times are ms; `ferry.lane.connections.manager_options` makes kafka-python's arguments of it.
    """

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
    tls: TlsOptions | None
    login: Login | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """Sizes of fetches; None where the file has no value and the engine chooses."""

    max_bytes: int | None
    partition_max_bytes: int | None
    min_bytes: int | None
    max_wait_ms: int | None
    rack: str
    """`client.rack`, sent with each fetch so that a near replica may answer; empty is none."""


ENGINE_CHOOSES = FetchOptions(max_bytes=None, partition_max_bytes=None, min_bytes=None, max_wait_ms=None, rack="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """Sizes and compression of produce requests; None where the file has no value and the engine chooses."""

    max_request_bytes: int | None
    compression: Compression | None
    """The compression of all batches; None: each batch keeps its own."""

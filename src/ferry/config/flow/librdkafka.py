"""A flow's client properties as options of librdkafka: the table of names, and what cannot be translated.

Sources: librdkafka's CONFIGURATION.md (names and ranges), `ferry.config.flow.clients` (what the Java names mean here).
Key stores, JAAS entries and references to secrets are resolved before: librdkafka gets PEM text and plain values.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from ferry.config.client_options import ConnectionOptions, FetchOptions
from ferry.config.flow.clients import kafka_python_options, of_cluster
from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.layers import ROLE_AT, Side
from ferry.config.login.security import Login, OAuthLogin, PasswordLogin, TlsOptions
from ferry.errors import Refused

Options = dict[str, str | int]
"""Options of a client by librdkafka's names."""

_LEAST_FETCH, _MOST_FETCH, _MOST_PARTITION = 1_000, 2**31 - 513, 1_000_000_000
_LARGEST_MESSAGE = 1_000_000
_REMEDY = "use another listener of the cluster, or omit what needs librdkafka"

TIMES: Final = (
    ("request.timeout.ms", "request_timeout_ms", "socket.timeout.ms", 10, 300_000),
    ("reconnect.backoff.ms", "reconnect_backoff_ms", "reconnect.backoff.ms", 0, 3_600_000),
    ("reconnect.backoff.max.ms", "reconnect_backoff_max_ms", "reconnect.backoff.max.ms", 0, 3_600_000),
    (
        "socket.connection.setup.timeout.ms",
        "socket_connection_setup_timeout_ms",
        "socket.connection.setup.timeout.ms",
        1_000,
        2**31 - 1,
    ),
    ("connections.max.idle.ms", "connections_max_idle_ms", "connections.max.idle.ms", 0, 2**31 - 1),
    ("metadata.max.age.ms", "metadata_max_age_ms", "metadata.max.age.ms", 1, 86_400_000),
)
"""Times: the Java name, Ferry's field, librdkafka's name, and the range that librdkafka takes.

A value outside of the range becomes the nearest one: it changes how long a client waits, not what it reads.
`socket.connection.setup.timeout.max.ms` has no counterpart.
"""

SIZES: Final = (
    ("fetch.max.bytes", "max_bytes", "fetch.max.bytes", _LEAST_FETCH, _MOST_FETCH),
    ("max.partition.fetch.bytes", "partition_max_bytes", "max.partition.fetch.bytes", 1, _MOST_PARTITION),
    ("fetch.min.bytes", "min_bytes", "fetch.min.bytes", 1, 100_000_000),
)
"""Sizes of fetches, in the same five columns; a field that is None leaves librdkafka's default."""

_SOCKET_BUFFERS = {
    (socket.SOL_SOCKET, socket.SO_SNDBUF): "socket.send.buffer.bytes",
    (socket.SOL_SOCKET, socket.SO_RCVBUF): "socket.receive.buffer.bytes",
}
_LARGEST_BUFFER = 100_000_000
_WAIT_MS = 10
"""How long librdkafka waits for room in its queue, and a broker waits for records.

What is read ends, and is read once. `fetch.max.wait.ms` is for consumers that follow a log: it is not translated.
"""
_QUEUE_MOST_KB = 64 << 10
_MOST_BATCH = 64 << 20
"""Most bytes of a batch that does not fit a fetch, and so comes alone.

librdkafka also decompresses no more of a batch with zstd than an answer may have, and gzip, lz4 and snappy unbounded.
"""


def flow_librdkafka_options(flow: FlowConfig, side: Side) -> Options:
    """Return how librdkafka reaches a cluster of a flow, with the properties that Ferry's own client there has.

    Raises BadInput for a value that cannot be read, Refused for a setting that librdkafka does not have; both name file
    and line.
    """
    client = {"client.id": f"ferry.{flow.flow}"}
    return of_cluster(flow, side, ROLE_AT[side], lambda found: librdkafka_options({**client, **found}))


def librdkafka_options(properties: Mapping[str, str]) -> Options:
    """Return how librdkafka connects. `properties` are effective and resolved, by Java names.

    Raises BadInput for a value that cannot be read, Refused for a setting that librdkafka does not have.
    """
    return translated(kafka_python_options(properties))


def translated(connection: ConnectionOptions) -> Options:
    """Return connection options by librdkafka's names. Raises Refused, beginning with the Java name."""
    options: Options = {
        "bootstrap.servers": ",".join(connection.bootstrap_servers),
        "client.id": connection.client_id,
        "client.dns.lookup": connection.client_dns_lookup,
        "security.protocol": connection.security_protocol,
    }
    for _, field, name, low, high in TIMES:
        options[name] = max(low, min(high, getattr(connection, field)))
    options["reconnect.backoff.max.ms"] = max(
        int(options["reconnect.backoff.max.ms"]), int(options["reconnect.backoff.ms"])
    )
    for level, option, value in connection.socket_options:
        if (level, option) in _SOCKET_BUFFERS:
            options[_SOCKET_BUFFERS[level, option]] = min(value, _LARGEST_BUFFER)
    return options | _tls(connection.tls) | _login(connection.login)


def reading_options(fetch: FetchOptions, memory_bytes: int) -> Options:
    """Return how librdkafka reads ahead in about `memory_bytes`: half in its queue, and half in a fetch on its way.

    That counts a fetch before it is decompressed, and no batch that is larger than a fetch.
    """
    half = max(1 << 20, memory_bytes // 2)
    options: Options = {
        "queued.max.messages.kbytes": min(_QUEUE_MOST_KB, half >> 10),
        "fetch.queue.backoff.ms": _WAIT_MS,
        "fetch.wait.max.ms": _WAIT_MS,
    }
    for _, field, name, low, high in SIZES:
        value = getattr(fetch, field)
        if value is not None:
            options[name] = max(low, min(high, value))
    fetched = max(_LEAST_FETCH, min(half, _MOST_FETCH, int(options.get("fetch.max.bytes", half))))
    options["fetch.max.bytes"] = fetched
    # librdkafka wants a fetch to have room for the largest message; a batch that is larger still comes alone.
    options["message.max.bytes"] = min(_LARGEST_MESSAGE, fetched)
    parted = int(options.get("max.partition.fetch.bytes", fetched))
    options["max.partition.fetch.bytes"] = min(fetched, parted, _MOST_PARTITION)
    options["receive.message.max.bytes"] = min(fetched + _MOST_BATCH, 2**31 - 1)
    if fetch.rack:
        options["client.rack"] = fetch.rack
    return options


def _tls(tls: TlsOptions | None) -> Options:
    if tls is None:
        return {}
    if "TLSv1.2" not in tls.versions:
        raise Refused(
            f"ssl.enabled.protocols={','.join(tls.versions)} leaves out TLSv1.2, and librdkafka cannot: {_REMEDY}"
        )
    texts = {"ssl.ca.pem": tls.trusted_pem, "ssl.certificate.pem": tls.chain_pem, "ssl.key.pem": tls.key_pem}
    return {
        "ssl.endpoint.identification.algorithm": "https" if tls.check_hostname else "none",
        **{name: text for name, text in texts.items() if text is not None},
    }


def _login(who: Login | None) -> Options:
    match who:
        case None:
            return {}
        case PasswordLogin():
            return {"sasl.mechanism": who.mechanism, "sasl.username": who.username, "sasl.password": who.password}
        case OAuthLogin():
            return _oauth(who)
    raise Refused(
        f"sasl.mechanism={who.mechanism} (Kerberos) is not in the librdkafka that confluent-kafka brings: {_REMEDY}"
    )


def _oauth(who: OAuthLogin) -> Options:
    where = "sasl.oauthbearer.token.endpoint.url"
    if who.endpoint_url is None:
        raise Refused(f"{where}={who.token_file} is a file, and librdkafka asks only an endpoint: {_REMEDY}")
    if who.tls is not None and (who.tls.trusted_pem is not None or who.tls.chain_pem is not None):
        raise Refused(
            f"{where}={who.endpoint_url} has a trust store or a key store of its own, which librdkafka cannot give to "
            f"a token endpoint: {_REMEDY}"
        )
    if who.url_encode and (
        quote(who.client_id, safe="") != who.client_id or quote(who.client_secret, safe="") != who.client_secret
    ):
        raise Refused(
            "sasl.oauthbearer.header.urlencode=true changes this client's id or secret, and librdkafka sends both as "
            f"they are: {_REMEDY}"
        )
    return {
        "sasl.mechanism": who.mechanism,
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": who.endpoint_url,
        "sasl.oauthbearer.client.id": who.client_id,
        "sasl.oauthbearer.client.secret": who.client_secret,
        "sasl.oauthbearer.scope": who.scope or "",
        "sasl.oauthbearer.extensions": ",".join(f"{name}={value}" for name, value in who.extensions.items()),
    }

"""The parts of kafka-python that Ferry needs and that are not documented, and a check that the installed one has them.

kafka-python documents consumers, producers and its admin client. `kafka.net` and `kafka.protocol`, on which those are
built, may change with any release. So each function that Ferry calls or replaces there is listed here. A test compares
their source with what was reviewed (`tests/pure/net/test_reliance.py`). `check_installed` compares names and parameters
where Ferry runs, because a range of versions may be installed there.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import kafka

from ferry.errors import Refused
from ferry.kafka.connect.frames import decoded_records

TESTED = "3.0.12"
"""The version in constraints.txt."""


@dataclass(frozen=True, slots=True)
class Part:
    """A function or class of kafka-python, the parameters that Ferry passes or takes, and what it is for."""

    name: str
    parameters: tuple[str, ...]
    why: str


_MANAGER = "kafka.net.manager.KafkaConnectionManager"
_CONNECTION = "kafka.net.connection.KafkaConnection"
_LOOP = "kafka.net.selector.NetworkSelector"
_SOCKET = "kafka.net.inet.KafkaNetSocket"
_MESSAGE = "kafka.protocol.api_message.ApiMessage"
_FIELD = "kafka.protocol.schemas.fields.base.BaseField"

REPLACED = (
    Part(f"{_MANAGER}._build_transport", ("node", "timeout_at"), "Ferry connects, and makes its own transport"),
    Part("kafka.net.transport.KafkaTCPTransport", (), "Ferry's transport is called in its place"),
    Part("kafka.net.transport.KafkaSSLTransport", (), "Ferry makes the TLS handshake itself"),
    Part("kafka.protocol.parser.KafkaProtocol", (), "Ferry's parser is called in its place"),
    Part(
        "kafka.protocol.schemas.fields.simple.SimpleField.emit_decode_from",
        ("ctx", "var_name", "indent", "version", "compact"),
        "Ferry's code decodes the records of a fetch as views",
    ),
)
"""What Ferry replaces. `_build_transport` is the only private method that Ferry defines or calls."""

CALLED = (
    Part(
        f"{_MANAGER}._connect",
        ("node", "conn"),
        "it calls the method above, and passes the transport to the connection",
    ),
    Part(f"{_MANAGER}.get_connection", ("node_id",), "connections are made there"),
    Part(f"{_MANAGER}.bootstrap_async", ("timeout_ms",), "the first connection with a cluster"),
    Part(f"{_MANAGER}.least_loaded_node", (), "requests that any broker may answer"),
    Part(f"{_MANAGER}.connection_delay", ("node_id",), "waiting before the next connection with a broker"),
    Part(f"{_MANAGER}.wait_for", ("future", "timeout_ms"), "answers that must come in time"),
    Part(f"{_MANAGER}.close", (), "the end of all connections"),
    Part(f"{_CONNECTION}.connection_made", ("transport",), "it takes the transport, and makes the parser"),
    Part(f"{_CONNECTION}.connection_lost", ("exc",), "the transport calls it"),
    Part(f"{_CONNECTION}.data_received", ("data",), "the transport calls it with whole frames"),
    Part(f"{_CONNECTION}.send_request", ("request", "request_timeout_ms"), "every request"),
    Part(f"{_CONNECTION}._send_request", ("request",), "it calls the parser and the transport"),
    Part(f"{_CONNECTION}._sasl_authenticate", ("timeout_at",), "logins"),
    Part(f"{_CONNECTION}.unpause", ("v",), "it sends what waits after a throttle"),
    Part(f"{_CONNECTION}.close", (), "the end of one connection"),
    Part("kafka.cluster.ClusterMetadata.brokers", (), "the addresses of brokers"),
    Part("kafka.cluster.ClusterMetadata.update_metadata", ("metadata",), "answers that Ferry asked for"),
    Part(f"{_SOCKET}.dns_lookup", ("host", "port"), "the addresses of a name"),
    Part(f"{_SOCKET}.socket", ("family", "sock_type", "proto"), "a socket"),
    Part(f"{_SOCKET}.sock_connect", ("net", "sock", "sockaddr", "timeout_at"), "connecting a socket"),
    Part(f"{_LOOP}.run", ("coro",), "the event loop"),
    Part(f"{_LOOP}.call_soon", ("task",), "the event loop"),
    Part(f"{_LOOP}.call_soon_with_future", ("coro",), "the event loop"),
    Part(f"{_LOOP}.cancel", ("task",), "the event loop"),
    Part(f"{_LOOP}.sleep", ("delay",), "the event loop"),
    Part(f"{_LOOP}.wait_read", ("fileobj", "timeout_at"), "the event loop"),
    Part(f"{_LOOP}.wait_write", ("fileobj", "timeout_at"), "the event loop"),
    Part(f"{_LOOP}.unregister_event", ("fileobj", "event"), "the event loop"),
    Part(f"{_LOOP}.close", (), "the event loop"),
    Part(f"{_MESSAGE}.with_header", ("correlation_id", "client_id"), "encoding of requests"),
    Part(f"{_MESSAGE}.encode_header", ("flexible",), "encoding of requests"),
    Part(f"{_MESSAGE}.encode", ("header", "framed"), "encoding of requests"),
    Part(f"{_MESSAGE}.flexible_version_q", ("version",), "encoding of requests"),
    Part(f"{_MESSAGE}.parse_header", ("data",), "decoding of answers"),
    Part(f"{_MESSAGE}.decode", ("data",), "decoding of answers"),
    Part("kafka.protocol.api_header.RequestHeader.get_response_class", (), "decoding of answers"),
    Part(f"{_FIELD}.for_version_q", ("version",), "finding lists that may not be null"),
    Part(f"{_FIELD}.tagged_field_q", ("version",), "finding lists that may not be null"),
    Part(f"{_FIELD}.nullable_for_version_q", ("version",), "finding lists that may not be null"),
    Part(f"{_FIELD}.is_array", (), "finding lists that may not be null"),
    Part(f"{_FIELD}.is_struct", (), "finding lists that may not be null"),
    Part(f"{_FIELD}.is_struct_array", (), "finding lists that may not be null"),
    Part("kafka.protocol.schemas.fields.struct.StructField.emit_decode_from", ("ctx",), "it calls Ferry's code"),
    Part("kafka.protocol.schemas.fields.codegen.CodegenContext.emit", ("indent",), "Ferry's code is emitted by it"),
    Part("kafka.protocol.schemas.fields.codegen.CodegenContext.next_var", (), "Ferry's code is emitted by it"),
    Part(
        "kafka.protocol.schemas.fields.codecs.UnsignedVarInt32.emit_decode_from",
        ("ctx", "var_name", "indent"),
        "Ferry's code is emitted by it",
    ),
    Part(
        "kafka.protocol.broker_version_data.BrokerVersionData",
        ("broker_version", "api_versions"),
        "the version of a broker by its requests",
    ),
    Part("kafka.net.sasl.register_sasl_mechanism", ("name", "klass", "overwrite"), "logins by Kerberos"),
    Part("kafka.net.sasl.get_sasl_mechanism", ("name",), "logins by Kerberos"),
    Part("kafka.net.sasl.abc.SaslMechanism", (), "logins by Kerberos"),
    Part("kafka.net.sasl.gssapi.SaslMechanismGSSAPI", (), "logins by Kerberos that are not Ferry's"),
    Part("kafka.net.sasl.oauth.AbstractTokenProvider", (), "logins by OAUTHBEARER"),
)
"""What Ferry calls, or is called by."""


@cache
def check_installed() -> None:
    """Raise Refused when the installed kafka-python lacks a part, or no longer decodes records as views."""
    for part in (*REPLACED, *CALLED):
        if not _is_there(part):
            raise _unfit(f"has no {part.name}({', '.join(part.parameters)}), which Ferry needs ({part.why})")
    if not isinstance(decoded_records(), memoryview):
        raise _unfit("decodes fetched records in another way")


def find(name: str) -> Any:
    """Return what a dotted name is: a class of a module, or a function of one. Raises LookupError if it is nothing."""
    words = name.split(".")
    for count in range(len(words) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(words[:count]))
        except ModuleNotFoundError:
            continue
        try:
            for word in words[count:]:
                found = inspect.getattr_static(found, word) if inspect.isclass(found) else getattr(found, word)
        except AttributeError:
            break
        return found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
    raise LookupError(name)


def _is_there(part: Part) -> bool:
    try:
        found = find(part.name)
    except LookupError:
        return False
    return not part.parameters or set(part.parameters) <= set(inspect.signature(found).parameters)


def _unfit(why: str) -> Refused:
    return Refused(f"kafka-python {kafka.__version__} {why}: install kafka-python {TESTED}")

"""A flow's client properties as options of librdkafka: each name, each limit, and what is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from ferry.config.client_options import ENGINE_CHOOSES, ConnectionOptions, FetchOptions
from ferry.config.flow.clients import kafka_python_options
from ferry.config.flow.librdkafka import (
    SIZES,
    TIMES,
    flow_librdkafka_options,
    librdkafka_options,
    reading_options,
    translated,
)
from ferry.config.login.security import KerberosLogin, OAuthLogin, TlsOptions
from ferry.config.settings import parse_settings
from ferry.errors import Refused
from ferry.kafka.librdkafka import Failed, event_of
from tests.golden import Golden
from tests.pure.config.test_clients import OAUTH, SASL, SERVERS

PLAIN = kafka_python_options(SERVERS)
TLS = TlsOptions(check_hostname=True, trusted_pem="ca", chain_pem="chain", key_pem="key")
WITHOUT_NAME = {"socket_connection_setup_timeout_max_ms"}
TRANSLATED_APART = {
    "bootstrap_servers",
    "client_id",
    "client_dns_lookup",
    "security_protocol",
    "socket_options",
    "tls",
    "login",
    "receive_message_max_bytes",
}


def test_every_field_of_a_connection_has_a_name_in_librdkafka() -> None:
    assert {field.name for field in fields(ConnectionOptions)} == {
        row[1] for row in TIMES
    } | TRANSLATED_APART | WITHOUT_NAME


def test_every_field_of_a_fetch_has_a_name_in_librdkafka_but_the_wait() -> None:
    assert {field.name for field in fields(FetchOptions)} == {row[1] for row in SIZES} | {"rack", "max_wait_ms"}


@pytest.mark.parametrize("row", TIMES, ids=lambda row: row[0])
def test_a_time_is_passed_on_within_the_range_that_librdkafka_takes(row: tuple[str, str, str, int, int]) -> None:
    java, _, name, low, high = row
    middle = min(high, max(low, 1_234))
    given = {"reconnect.backoff.max.ms": "3600000"} if java == "reconnect.backoff.ms" else {}
    assert librdkafka_options(SERVERS | given | {java: str(middle)})[name] == middle
    for value in (max(low, 1), high, 2**40):
        options = librdkafka_options(SERVERS | given | {java: str(value)})
        assert low <= int(options[name]) <= high


@pytest.mark.parametrize("memory", [1, 4 << 20, 256 << 20, 64 << 30])
@pytest.mark.parametrize("size", [None, 0, 1_000, 2**31 - 1])
def test_reading_ahead_is_bounded(memory: int, size: int | None) -> None:
    fetch = FetchOptions(max_bytes=size, partition_max_bytes=size, min_bytes=size, max_wait_ms=size, rack="r1")
    options = reading_options(fetch, memory)
    assert int(options["queued.max.messages.kbytes"]) <= max(1 << 10, memory >> 11)
    assert int(options["max.partition.fetch.bytes"]) <= int(options["fetch.max.bytes"]) <= max(1 << 20, memory // 2)
    assert int(options["receive.message.max.bytes"]) <= int(options["fetch.max.bytes"]) + (64 << 20)
    assert options["client.rack"] == "r1"


def test_a_batch_that_librdkafka_does_not_open_is_not_called_damaged(golden: Golden) -> None:
    """It may only be longer than the limit."""
    error = KafkaError(KafkaError._BAD_COMPRESSION, "Local: Invalid compressed data")
    message = SimpleNamespace(
        topic=lambda: "orders", partition=lambda: 3, offset=lambda: 17, error=lambda: error, headers=lambda: None
    )
    found = event_of(message)
    assert isinstance(found, Failed)
    assert found.kind is None
    golden(found.message)


def test_what_the_file_leaves_open_the_engine_chooses() -> None:
    options = reading_options(ENGINE_CHOOSES, 8 << 20)
    assert options["fetch.max.bytes"] == options["max.partition.fetch.bytes"] == 4 << 20
    assert not {"fetch.min.bytes", "client.rack"} & options.keys()


def test_addresses_logins_and_trust_are_passed_on() -> None:
    options = librdkafka_options(SASL | {"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"})
    assert (options["bootstrap.servers"], options["security.protocol"]) == ("a:1,b:2", "SASL_SSL")
    assert (options["sasl.mechanism"], options["sasl.username"]) == ("SCRAM-SHA-512", "ann")
    assert options["sasl.password"] == 'p;"= x'
    assert options["client.dns.lookup"] == "resolve_canonical_bootstrap_servers_only"
    secured = translated(replace(PLAIN, security_protocol="SSL", tls=TLS))
    assert (secured["ssl.ca.pem"], secured["ssl.certificate.pem"], secured["ssl.key.pem"]) == ("ca", "chain", "key")
    assert secured["ssl.endpoint.identification.algorithm"] == "https"
    system = replace(TLS, trusted_pem=None, chain_pem=None, key_pem=None, check_hostname=False, versions=("TLSv1.2",))
    loose = translated(replace(PLAIN, security_protocol="SSL", tls=system))
    assert {name for name in loose if name.startswith("ssl.")} == {"ssl.endpoint.identification.algorithm"}
    assert loose["ssl.endpoint.identification.algorithm"] == "none"


def test_what_librdkafka_does_not_have_is_refused(golden: Golden) -> None:
    bearer = kafka_python_options(OAUTH).login
    assert isinstance(bearer, OAuthLogin)
    ticket = KerberosLogin(
        service_name="kafka", principal="ann@EXAMPLE", keytab_path=None, keytab=b"", ticket_cache=None
    )
    for title, connection in {
        "kerberos": replace(PLAIN, login=ticket),
        "only TLS 1.3": replace(PLAIN, tls=replace(TLS, versions=("TLSv1.3",))),
        "token file": replace(PLAIN, login=replace(bearer, endpoint_url=None, token_file="/run/token")),
        "own trust": replace(PLAIN, login=replace(bearer, tls=TLS)),
        "encoded": replace(PLAIN, login=replace(bearer, url_encode=True, client_secret="a/b")),
    }.items():
        with pytest.raises(Refused) as caught:
            translated(connection)
        golden(caught.value, title)
    assert translated(replace(PLAIN, login=replace(bearer, url_encode=True)))["sasl.oauthbearer.method"] == "oidc"


def test_a_refusal_names_file_and_line(golden: Golden, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (
        "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\ntopics = t\n"
        "a.security.protocol = SASL_PLAINTEXT\na.sasl.mechanism = GSSAPI\na.sasl.kerberos.service.name = kafka\n"
        "a.sasl.jaas.config = com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;\n"
    )
    flow = parse_settings(text, "mm2.properties").flow("a->b")
    with pytest.raises(Refused) as caught:
        flow_librdkafka_options(flow, "source")
    golden(caught.value)
    assert flow_librdkafka_options(flow, "target")["client.id"] == "ferry.a->b"

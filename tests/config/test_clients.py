"""Java client properties as options of kafka-python and confluent-kafka, and what is refused."""

import socket

import pytest
from confluent_kafka import Consumer
from kafka.net.manager import KafkaConnectionManager

from ferry.config.clients import confluent_options, fetch_options, kafka_python_options, produce_options
from ferry.config.jaas import parse_jaas
from ferry.config.problem import BadValue
from ferry.errors import BadInput, FerryError, Refused

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SERVERS = {"bootstrap.servers": "a:1, b:2"}
SASL = SERVERS | {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": f'{SCRAM} required username="ann" password="p;\\"= x";',
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/ca.pem",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "/me.pem",
    "ssl.key.password": "hidden-word",
}


def test_defaults_are_javas() -> None:
    options = kafka_python_options(SERVERS)
    assert options.bootstrap_servers == ("a:1", "b:2")
    assert (options.security_protocol, options.sasl_mechanism, options.ssl_cafile) == ("PLAINTEXT", None, None)
    assert (options.request_timeout_ms, options.reconnect_backoff_max_ms) == (30_000, 1_000)
    assert options.ssl_check_hostname
    assert {name for name, _, _ in options.socket_options} == {socket.IPPROTO_TCP, socket.SOL_SOCKET}


def test_every_option_is_one_that_kafka_python_knows() -> None:
    assert set(kafka_python_options(SERVERS).__slots__) <= set(KafkaConnectionManager.DEFAULT_CONFIG)


def test_explicit_values_reach_both_clients() -> None:
    properties = SERVERS | {
        "client.id": "me",
        "request.timeout.ms": "5000",
        "receive.buffer.bytes": "65536",
        "send.buffer.bytes": "-1",
        "reconnect.backoff.ms": "7",
        "security.protocol": "ssl",
        "ssl.endpoint.identification.algorithm": "",
    }
    ours = kafka_python_options(properties)
    assert (ours.client_id, ours.request_timeout_ms, ours.reconnect_backoff_ms) == ("me", 5000, 7)
    assert (socket.SOL_SOCKET, socket.SO_RCVBUF, 65536) in ours.socket_options
    assert all(option != socket.SO_SNDBUF for _, option, _ in ours.socket_options)
    assert (ours.security_protocol, ours.ssl_check_hostname) == ("SSL", False)
    theirs = confluent_options(properties)
    assert theirs["ssl.endpoint.identification.algorithm"] == "none"
    assert (theirs["client.id"], theirs["socket.receive.buffer.bytes"]) == ("me", 65536)
    Consumer({**confluent_options(SERVERS), "group.id": "g"}).close()


def test_sasl_over_tls_with_pem_files() -> None:
    options = kafka_python_options(SASL)
    assert (options.sasl_mechanism, options.sasl_plain_username) == ("SCRAM-SHA-512", "ann")
    assert options.sasl_plain_password == 'p;"= x'
    assert (options.ssl_cafile, options.ssl_certfile, options.ssl_keyfile) == ("/ca.pem", "/me.pem", "/me.pem")
    assert "hidden-word" not in repr(options)
    assert 'p;"' not in repr(options)
    theirs = confluent_options(SASL)
    assert (theirs["ssl.ca.location"], theirs["ssl.key.location"]) == ("/ca.pem", "/me.pem")
    assert (theirs["sasl.username"], theirs["ssl.endpoint.identification.algorithm"]) == ("ann", "https")


def test_a_listener_name_before_an_address_is_dropped() -> None:
    assert kafka_python_options({"bootstrap.servers": "SSL://a:1,[::1]:2"}).bootstrap_servers == ("a:1", "[::1]:2")


@pytest.mark.parametrize(
    ("changed", "error", "part"),
    [
        ({"bootstrap.servers": ""}, BadInput, "bootstrap.servers: no bootstrap server"),
        ({"request.timeout.ms": "soon"}, BadInput, "request.timeout.ms: 'soon' is not a whole number"),
        ({"receive.buffer.bytes": "-2"}, BadInput, "receive.buffer.bytes: -2 is out of range"),
        ({"security.protocol": "TLS"}, BadInput, "security.protocol: 'TLS' is none of PLAINTEXT"),
        ({"client.dns.lookup": "default"}, BadInput, "client.dns.lookup: 'default' is none of use_all_dns_ips"),
        ({"ssl.endpoint.identification.algorithm": "none"}, BadInput, "write https, or nothing"),
        ({"ssl.truststore.type": "JKS"}, Refused, "ssl.truststore.location=/ca.pem is a JKS store"),
        ({"ssl.keystore.type": "PKCS12"}, Refused, "add ssl.keystore.type=PEM"),
        ({"ssl.truststore.certificates": "-----BEGIN"}, Refused, "ssl.truststore.certificates is not supported"),
        ({"ssl.cipher.suites": "X"}, Refused, "ssl.cipher.suites is not supported"),
        ({"sasl.mechanism": "GSSAPI"}, Refused, "sasl.mechanism=GSSAPI is not supported"),
        ({"sasl.mechanism": "PLAIN"}, BadInput, f"does not serve PLAIN; write {PLAIN}"),
        ({"sasl.login.class": "x.Y"}, Refused, "sasl.login.class is not supported"),
        ({"sasl.jaas.config": f'{SCRAM} required username="ann";'}, BadInput, "option password is missing"),
        ({"sasl.jaas.config": f'{SCRAM} required username="ann" password="p"'}, BadInput, "append ;"),
        ({"sasl.jaas.config": "geheim"}, BadInput, "does not begin with a login module"),
    ],
)
def test_what_cannot_be_honoured_is_refused(changed: dict[str, str], error: type[FerryError], part: str) -> None:
    with pytest.raises(error) as caught:
        kafka_python_options(SASL | changed)
    assert part in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_a_login_without_configuration_shows_what_to_write() -> None:
    with pytest.raises(BadInput, match=r"sasl\.jaas\.config: is missing for PLAIN; write .*PlainLoginModule required"):
        kafka_python_options(SERVERS | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"})


def test_security_of_a_protocol_that_is_not_in_use_is_not_looked_at() -> None:
    assert kafka_python_options(SERVERS | {"ssl.truststore.location": "/x.jks"}).ssl_cafile is None


def test_fetch_and_produce_sizes() -> None:
    fetch = fetch_options({"fetch.max.bytes": "5", "max.partition.fetch.bytes": "3", "client.rack": "r1"})
    assert (fetch.max_bytes, fetch.partition_max_bytes, fetch.min_bytes, fetch.rack) == (5, 3, None, "r1")
    assert produce_options({"max.request.size": "9"}).max_request_bytes == 9
    assert produce_options({}).delivery_timeout_ms == 120_000
    with pytest.raises(Refused, match=r"producer\.compression\.type=gzip .* remove the line"):
        produce_options({"compression.type": "gzip"})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("m required;", {}),
        ("m REQUIRED a=b c = 'd e' ;", {"a": "b", "c": "d e"}),
        ('m required\n  a="x\\"y\\\\z"\n  b="";\n', {"a": 'x"y\\z', "b": ""}),
    ],
)
def test_jaas(text: str, options: dict[str, str]) -> None:
    login = parse_jaas(text)
    assert (login.module, login.options) == ("m", options)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "does not begin"),
        ("m", "does not begin"),
        ("m sometimes;", "does not begin"),
        ("m required a;", "option 1 is not"),
        ("m required a=;", "option 1 is not"),
        ('m required a="b;', "never closed"),
        ("m required a=b", "append ;"),
        ("m required; n required;", "more than one"),
    ],
)
def test_broken_jaas(text: str, part: str) -> None:
    with pytest.raises(BadValue, match=part):
        parse_jaas(text)

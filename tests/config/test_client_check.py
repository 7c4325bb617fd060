"""The clients of a file tried out without a network: every error of them, once, at its line."""

import pytest

from ferry.cli.config.check import all_problems
from ferry.config.reading.examine import examine

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""


def found(text: str) -> list[tuple[int | None, str, str]]:
    return [(problem.line, problem.key, problem.severity.value) for problem in all_problems(examine(text, "f"))]


def test_every_error_of_a_client_is_named_once() -> None:
    lines = """\
west.security.protocol = SASL_SSL
west.sasl.mechanism = PLAIN
west.ssl.truststore.location = no-such.jks
west.ssl.keystore.password = ${env:FERRY_NOT_SET_ANYWHERE}
west.consumer.request.timeout.ms = soon # or later
west.consumer.client.dns.lookup = never
west.consumer.fetch.max.bytes = many
east.security.protocol = TLS
east.producer.max.request.size = 0
"""
    assert found(BASE + lines) == [
        (6, "west.sasl.jaas.config", "error"),
        (7, "west.ssl.truststore.location", "warning"),
        (8, "west.ssl.keystore.password", "warning"),
        (9, "west.consumer.request.timeout.ms", "error"),
        (10, "west.consumer.client.dns.lookup", "error"),
        (11, "west.consumer.fetch.max.bytes", "error"),
        (12, "east.security.protocol", "error"),
        (13, "east.producer.max.request.size", "error"),
    ]


@pytest.mark.parametrize(
    ("servers", "key"),
    [
        ("west.bootstrap.servers = ...", "west.bootstrap.servers"),
        ("west.bootstrap.servers = broker6667", "west.bootstrap.servers"),
        ("West.bootstrap.servers = broker-1:9092", "West.bootstrap.servers"),
    ],
)
def test_one_slip_in_the_brokers_is_one_error(servers: str, key: str) -> None:
    assert found(BASE.replace("west.bootstrap.servers = broker-1:9092", servers)) == [(2, key, "error")]

"""The clients of a file tried out without a network: every error of them, once, at its line."""

import pytest

from ferry.config.client_check import all_problems
from ferry.config.flow.clients import flow_fetch_options
from ferry.config.login.environment import from_environment
from ferry.config.reading.examine import examine
from ferry.config.record_source import record_source
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.model import code_of
from tests.said import data_of, facts_in

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


@pytest.mark.parametrize("name", ["acks", "my_key", "x.keyStore"])
def test_an_unset_variable_in_a_property_with_any_name_is_found_at_its_line(name: str) -> None:
    lines = f"west.consumer.{name} = ${{env:FERRY_NOT_SET_ANYWHERE}}\n"
    problems = [one for one in all_problems(examine(BASE + lines, "f")) if code_of(one.message) == "line.reference"]
    assert [(one.line, one.key) for one in problems] == [(5, f"west.consumer.{name}")]


def test_an_error_of_a_client_has_a_code_and_facts_but_no_facts_where_a_value_was_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FERRY_MANY", "some")
    lines = """\
west.consumer.request.timeout.ms = soon
east.producer.request.timeout.ms = ${env:FERRY_MANY}
"""
    plain, resolved = (problem for problem in all_problems(examine(BASE + lines, "f", from_environment)))
    assert (plain.line, code_of(plain.message), facts_in(plain.message)["value"]) == (5, "value.number", "soon")
    assert (resolved.line, code_of(resolved.message), facts_in(resolved.message)) == (6, "value.number", {})
    assert "some" not in resolved.message


@pytest.mark.parametrize(("value", "facts"), [("soon", {"value": "soon"}), ("${env:FERRY_MANY}", {})])
def test_a_command_that_cannot_use_a_client_has_the_code_of_the_reason(
    value: str, facts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRY_MANY", "some")
    flow = parse_settings(f"{BASE}west.consumer.fetch.max.bytes = {value}\n", "f", from_environment).flows[0]
    with pytest.raises(BadInput) as caught:
        flow_fetch_options(flow)
    code, found = data_of(caught.value)
    assert (code, {name: found[name] for name in found if name == "value"}) == ("value.number", facts)
    assert str(caught.value).startswith("f:5: west.consumer.fetch.max.bytes: ")


@pytest.mark.parametrize("wrong", ["task.records", "kafka.request.timeout.ms"])
def test_a_record_source_with_a_wrong_option_or_client_has_the_code_of_the_reason(wrong: str) -> None:
    with pytest.raises(BadInput) as caught:
        record_source({"kafka.bootstrap.servers": "h:9092", "topics": "orders", wrong: "few"})
    code, facts = data_of(caught.value)
    assert (code, facts["value"]) == ("value.number", "few")


def test_what_others_on_the_network_could_use_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = """\
west.security.protocol = SASL_PLAINTEXT
west.sasl.mechanism = PLAIN
west.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";
east.security.protocol = SASL_SSL
east.sasl.mechanism = OAUTHBEARER
east.sasl.jaas.config = ${env:FERRY_NOT_SET_ANYWHERE}
east.sasl.oauthbearer.token.endpoint.url = http://tokens.example/token
east.ssl.endpoint.identification.algorithm =
"""
    unset = (10, "east.sasl.jaas.config", "warning")
    endpoint = (11, "east.sasl.oauthbearer.token.endpoint.url", "warning")
    weak = [(5, "west.security.protocol", "warning"), unset, endpoint]
    names = (12, "east.ssl.endpoint.identification.algorithm", "warning")
    assert found(BASE + lines) == [*weak, endpoint, names]
    monkeypatch.setenv("KAFKA_OPTS", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=http://tokens.example/token")
    assert found(BASE + lines) == [*weak, names]
    for good in ("SCRAM-SHA-512", "GSSAPI"):
        assert (5, "west.security.protocol", "warning") not in found(BASE + lines.replace("= PLAIN\n", f"= {good}\n"))


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

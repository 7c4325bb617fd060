"""No message shows what came out of a reference, whatever the name of its key and however it was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.config.client_check import all_problems
from ferry.config.flow.clients import flow_client_options, flow_fetch_options, flow_produce_options
from ferry.config.flow.flow import FlowConfig
from ferry.config.reading.examine import examine
from ferry.config.settings import parse_settings
from ferry.config.text.secret_refs import LookedUp, without_values
from ferry.errors import BadInput, Refused
from tests.golden import Golden

BASE = """\
clusters = a, b
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
a->b.enabled = true
"""
SASL = "a.security.protocol = SASL_PLAINTEXT\na.sasl.mechanism = PLAIN\n"
TLS = "a.security.protocol = SSL\n"
REFERENCE = "${file:FOLDER/held.properties:it}"


def held(folder: Path, value: str) -> str:
    """A reference to `value`, which stands in a file."""
    (folder / "held.properties").write_text(f"it = {value}\n")
    return REFERENCE.replace("FOLDER", str(folder))


def all_clients(flow: FlowConfig) -> None:
    flow_client_options(flow, "source", "consumer")
    flow_fetch_options(flow)
    flow_produce_options(flow)


LINES = [
    ("a.consumer.bootstrap.servers = {}", "s3Cr3t"),
    ("a.consumer.bootstrap.servers = {}", "x:1,s3Cr3t9092,y:2"),
    ("a.consumer.bootstrap.servers = {}", "PLAINTEXT://s3Cr3t:99999"),
    ("a.consumer.bootstrap.servers = pre{}", "s3Cr3t"),
    ("a.consumer.request.timeout.ms = {}", "s3Cr3t"),
    ("a.consumer.fetch.max.bytes = {}", "s3Cr3t"),
    ("b.producer.max.request.size = {}", "s3Cr3t"),
    ("a.consumer.client.dns.lookup = {}", "s3Cr3t"),
    ("a.security.protocol = {}", "s3Cr3t"),
    (TLS + "a.ssl.truststore.location = {}", "s3Cr3t"),
    (TLS + "a.ssl.truststore.location = /no/{}/x", ".././s3Cr3t"),
    (TLS + "a.ssl.truststore.type = {}", "s3Cr3t"),
    (TLS + "a.ssl.endpoint.identification.algorithm = {}", "s3Cr3t"),
    (TLS + "a.ssl.protocol = {}", "s3Cr3t"),
    (TLS + "a.ssl.enabled.protocols = {}", "s3Cr3t"),
    (SASL.replace("PLAIN\n", "{}\n"), "s3Cr3t"),
    (SASL + "a.sasl.jaas.config = {}", 's3Cr3t required username="a" password="b";'),
    (SASL + "a.sasl.jaas.config = {}", 'x.Y required username="s3Cr3t" password="b";'),
    (SASL + "a.sasl.login.callback.handler.class = {}", "s3Cr3t"),
    ("a->b.ferry.lane = {}", "s3Cr3t s"),
    ("a->b.topics = {}", "(s3Cr3t"),
    ("a->b.tasks.max = {}", "s3Cr3t"),
    ("a->b.replication.policy.class = {}", "s3Cr3t"),
    ("a->b.ferry.schedule = {}", "s3Cr3t s3Cr3t"),
]


@pytest.mark.parametrize(("line", "value"), LINES)
def test_a_finding_shows_the_reference_in_its_place(line: str, value: str, tmp_path: Path) -> None:
    text = f"{BASE}{line.format(held(tmp_path, value))}\n"
    problems = all_problems(examine(text, "f"))
    assert len([problem for problem in problems if problem.severity.value == "error" or "location" in line]) == 1, (
        problems
    )
    for problem in problems:
        assert "s3cr3t" not in f"{problem}{problem.correction}".lower()


@pytest.mark.parametrize(("line", "value"), [row for row in LINES if "->" not in row[0]])
def test_what_ends_a_command_shows_it_no_more(line: str, value: str, tmp_path: Path) -> None:
    flow = parse_settings(f"{BASE}{line.format(held(tmp_path, value))}\n", "f").flow("a->b")
    with pytest.raises((BadInput, Refused)) as refused:
        all_clients(flow)
    assert "s3cr3t" not in str(refused.value).lower()
    assert str(refused.value).startswith("f:")


def test_the_file_says_what_is_wrong_all_the_same(tmp_path: Path, golden: Golden) -> None:
    reference = held(tmp_path, "s3Cr3t")
    (problem,) = all_problems(examine(f"{BASE}a.consumer.bootstrap.servers = {reference}\n", "f"))
    golden(str(problem), "no port")
    (problem,) = all_problems(examine(f"{BASE}{TLS}a.ssl.truststore.location = {reference}\n", "f"))
    golden(str(problem), "no file")


def test_words_of_the_sentence_stay(golden: Golden) -> None:
    message = (
        "sasl.jaas.config: module x.Y does not serve PLAIN; write org.apache.kafka.common.PlainLoginModule, not kafka."
    )
    values = [
        LookedUp(key="sasl.kerberos.service.name", text="kafka", reference="${env:S}"),
        LookedUp(key="sasl.jaas.config", text='x.Y required username="d" password="write";', reference="${env:J}"),
    ]
    golden(without_values(message, values))
    assert without_values(message, ()) == message

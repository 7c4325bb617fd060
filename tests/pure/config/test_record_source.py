"""The options of the Spark source: what is understood, and a sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.config.flow.start import StartEarliest, StartLatest, StartOffsets, StartTime
from ferry.config.record_source import TASK_RECORDS, record_source
from ferry.errors import BadInput, Refused
from ferry.model import TopicPartition
from tests.golden import Golden, brief

BROKER = {"kafka.bootstrap.servers": "b1:9092, b2:9092"}
FILE = """
clusters = here, there
here.bootstrap.servers = h1:9092
there.bootstrap.servers = t1:9092
there.security.protocol = SASL_PLAINTEXT
there.sasl.mechanism = PLAIN
there.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="${env:SOURCE_PW}";
there.consumer.fetch.max.bytes = 1234
"""  # noqa: E501 - one line of a file
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return str(path)


def test_brokers_alone_suffice() -> None:
    found = record_source({**BROKER, "topics": "orders, payments.*"})
    assert found.connection.bootstrap_servers == ("b1:9092", "b2:9092")
    assert found.topics.items == ("orders", "payments.*")
    assert (found.begin, found.end, found.task_records) == (StartEarliest(), StartLatest(), TASK_RECORDS)


def test_a_cluster_of_a_file(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_PW", "planted")
    found = record_source({"config": file, "cluster": "there", "path": "orders", "from": "orders:0:5", "to": "1000"})
    assert (found.alias, found.connection.bootstrap_servers) == ("there", ("t1:9092",))
    assert found.connection.login is not None
    assert found.fetch.max_bytes == 1234
    assert found.begin == StartOffsets(offsets={TopicPartition("orders", 0): 5})
    assert found.end == StartTime(timestamp_ms=1000)
    assert "planted" not in repr(found)


def test_the_file_may_be_named_by_the_environment(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_CONFIG", file)
    assert record_source({"cluster": "here", "topics": "a"}).connection.bootstrap_servers == ("h1:9092",)


def test_secrets_may_be_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_PW", "planted")
    login = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    found = record_source(
        {**BROKER, **login, "kafka.sasl.jaas.config": JAAS.format("${env:SOURCE_PW}"), "topics": "a"}
    )  # fmt: skip
    assert getattr(found.connection.login, "password", "") == "planted"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"topics": " , "},
        {"topics": "a"},
        {**BROKER, "topics": "a", "path": "b"},
        {**BROKER, "topics": "a("},
        {**BROKER, "topics": "a", "form": "latest"},
        {**BROKER, "topics": "a", "zzz": "1"},
        {**BROKER, "topics": "a", "kafka.fetch.mx.bytes": "1"},
        {**BROKER, "topics": "a", "from": "yesterday"},
        {**BROKER, "topics": "a", "to": "1960-01-01T00:00:00Z"},
        {**BROKER, "topics": "a", "task.records": "0"},
        {**BROKER, "topics": "a", "cluster": "here"},
        {"topics": "a", "kafka.client.id": "x"},
        {"topics": "a", "kafka.bootstrap.servers": "b1"},
        {**BROKER, "topics": "a", "kafka.sasl.jaas.config": JAAS.format("planted")},
        {**BROKER, "topics": "a", "kafka.ssl.key.password": "planted"},
        {**BROKER, "topics": "a", "kafka.ssl.key.password": "${env:NO_SUCH}"},
    ],
    ids=brief,
)
def test_bad_input(options: dict[str, str], golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRY_CONFIG", raising=False)
    with pytest.raises(BadInput) as caught:
        record_source(options)
    golden(caught.value)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"kafka.isolation.level": "read_uncommitted"},
        {"kafka.interceptor.classes": "X"},
    ],
    ids=brief,
)
def test_what_is_not_supported_is_refused(options: dict[str, str], golden: Golden) -> None:
    with pytest.raises(Refused) as caught:
        record_source({**BROKER, "topics": "a", **options})
    golden(caught.value)


def test_an_alias_that_the_file_does_not_have(file: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        record_source({"config": file, "cluster": "where", "topics": "a"})
    golden(caught.value, "another alias")
    with pytest.raises(BadInput) as caught:
        record_source({"config": file, "topics": "a"})
    golden(caught.value, "no alias")

"""What Spark's filters leave to read, and how it is dealt to tasks: no cluster is asked."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    Not,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import StringType, StructField, StructType

from ferry.config.record_source import record_source
from ferry.errors import BadInput
from ferry.features.records.acts.survey import Surveyed
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.source import FerryReader, FerrySource, RecordsPartition
from ferry.model import TopicPartition

SECRET = "planted"
RANGES = {TopicPartition(topic, number): (0, 100) for topic in ("orders", "payments") for number in range(2)}


def surveyed(monkeypatch: pytest.MonkeyPatch) -> Surveyed:
    monkeypatch.setenv("PLANTED", SECRET)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    wanted = record_source(
        {
            "kafka.bootstrap.servers": "nowhere:9092",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f'{module} required username="u" password="${{env:PLANTED}}";',
            "topics": "orders,payments",
            "task.records": "150",
        }
    )
    return Surveyed(
        alias=wanted.alias,
        connection=wanted.connection,
        fetch=wanted.fetch,
        ranges=RANGES,
        topic_ids={"orders": "1", "payments": "2"},
        task_records=wanted.task_records,
    )


def tasks(reader: FerryReader) -> list[tuple[ReadRange, ...]]:
    """The pieces of each task, as they come to it."""
    made = pickle.loads(pickle.dumps(reader.partitions()))
    assert all(isinstance(one, RecordsPartition) for one in made)
    return [one.spec.pieces for one in made]


@pytest.mark.parametrize(
    ("filters", "left", "wanted"),
    [
        ([EqualTo(("topic",), "orders")], [], {"orders-0": (0, 100), "orders-1": (0, 100)}),
        # Spark hands a list over where its documents say tuple.
        ([In(("partition",), [1, 2])], [], {"orders-1": (0, 100), "payments-1": (0, 100)}),  # type: ignore[arg-type]
        (
            [StringStartsWith(("topic",), "pay"), GreaterThanOrEqual(("offset",), 10), LessThan(("offset",), 20)],
            [],
            {"payments-0": (10, 20), "payments-1": (10, 20)},
        ),
        (
            [IsNotNull(("offset",)), In(("offset",), (7, 30)), EqualTo(("partition",), 0)],
            [],
            {"orders-0": (7, 31), "payments-0": (7, 31)},
        ),
        ([EqualTo(("offset",), 100)], [], {}),
    ],
)
def test_filters_leave_less_to_read(
    filters: list[Filter], left: list[Filter], wanted: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = FerryReader(surveyed(monkeypatch))
    assert list(reader.pushFilters(filters)) == left
    found = {str(piece.place): (piece.start, piece.end) for pieces in tasks(reader) for piece in pieces}
    assert found == wanted


@pytest.mark.parametrize(
    "one",
    [
        EqualTo(("value",), b"x"),
        EqualTo(("headers", "key"), "x"),
        StringEndsWith(("topic",), "s"),
        Not(EqualTo(("partition",), 1)),
        In(("offset",), [1, None]),  # type: ignore[arg-type]  # a list here too
        IsNotNull(("key",)),
    ],
)
def test_other_filters_are_sparks(one: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = FerryReader(surveyed(monkeypatch))
    asked = EqualTo(("partition",), 0)
    assert list(reader.pushFilters([one, asked])) == [one]
    assert {piece.place.partition for pieces in tasks(reader) for piece in pieces} == {0}


def test_tasks_know_their_own_topics_and_hide_their_login(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [one for one in FerryReader(surveyed(monkeypatch)).partitions() if isinstance(one, RecordsPartition)]
    assert [len(one.spec.pieces) for one in made] == [1, 1, 1, 1]
    assert [one.spec.topic_ids for one in made] == [{"orders": "1"}] * 2 + [{"payments": "2"}] * 2
    assert SECRET not in repr(made)


def test_a_schema_of_ones_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = surveyed(monkeypatch)
    monkeypatch.setattr("ferry.features.records.spark.source.survey", lambda wanted: found)
    source = FerrySource({"kafka.bootstrap.servers": "nowhere:9092", "topics": "orders"})
    assert source.schema() == SCHEMA
    assert isinstance(source.reader(SCHEMA), FerryReader)
    with pytest.raises(BadInput, match="columns"):
        source.reader(StructType([StructField("value", StringType())]))

"""What slots are handed for each record, beside a plain model: nulls, tombstones and poison of every kind."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.features.records.acts.rows import COLUMNS
from ferry.features.records.rules.dead_letters import PoisonRule, poison_sentence
from ferry.features.records.spark.slot_assignment import SLOT_INDEX, dealt_rows, kept_rows
from ferry.model import Slice, TopicPartition
from tests.pure.decide.dealt_model import partition_of_record
from tests.pure.decide.values import dealt_slice

PARTITIONS, TARGETS, TARGET = 3, 2, "a.t"
PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
KINDS = [
    *(pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary()),
    *(pa.list_(PAIR), pa.string()),
]
NAMES = ["topic", "target", "partition", "offset", "timestamp", "key", "value", "headers", "poison"]
"""As `ferry.features.records.spark.transform.COLUMNS`, which takes Spark."""

maybe = st.none() | st.binary(max_size=3)
headers = st.lists(st.fixed_dictionaries({"key": st.text(max_size=2), "value": maybe}), max_size=2)
records = st.lists(
    st.tuples(
        st.just("t"),
        st.sampled_from([TARGET, TARGET, TARGET, "first", "last", None]),
        st.integers(0, PARTITIONS - 1),
        st.integers(0, 50),
        st.integers(-1, 2**40),
        maybe,
        maybe,
        headers,
        st.none() | st.none() | st.just("no JSON"),
    ),
    max_size=8,
)


Names = dict[str, tuple[str, str]]
NAMED: list[Names] = [{}, {TARGET: ("first", "last")}, {TARGET: (TARGET, "last")}]
"""What the transform finds as the record's target and makes of it, where it names the topic."""


def rule(poison: Poison, names: Names) -> PoisonRule:
    return PoisonRule(transform="x", poison=poison, letters=DeadLetters(topic="dead"), names=names)


def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(NAMES)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, KINDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=NAMES)


def marks(poison: Poison, names: Names, row: tuple[Any, ...]) -> tuple[str | None, str | None]:
    """Refusal and letter, by the words of the documents."""
    _, target, partition, offset, *_, why = row
    if why is not None and poison is Poison.SKIP:
        return None, why
    if why is not None and poison is Poison.FAIL:
        return poison_sentence(rule(poison, names), "t", partition, offset, why), None
    first, last = names.get(TARGET, (TARGET, TARGET))
    if target != (last if why is None else first):
        sent = f"it is sent to topic {target} in place of {last}"
        return poison_sentence(rule(poison, names), "t", partition, offset, sent), None
    return None, None


def rows_of(batches: Any) -> list[tuple[Any, ...]]:
    found = []
    for one in batches:
        assert one.schema.names == [SLOT_INDEX, *COLUMNS]
        found += [tuple(row.values()) for row in one.to_pylist()]
    return found


@pytest.mark.parametrize("poison", Poison)
@pytest.mark.parametrize("names", NAMED)
@given(records)
def test_records_that_keep_their_partition(poison: Poison, names: Names, given_rows: list[tuple[Any, ...]]) -> None:
    slices = [
        Slice(
            source=TopicPartition("t", number),
            target=TopicPartition(TARGET, number),
            start=0,
            end=100,
            slot=number + 7,
            bytes_estimate=0,
            first=True,
        )
        for number in range(PARTITIONS)
    ]
    indexes = {number + 7: number for number in range(PARTITIONS)}
    found = rows_of(kept_rows(indexes, slices, rule(poison, names), [batch(given_rows)]))
    assert found == [(row[2], TARGET, row[2], *row[2:8], *marks(poison, names, row)) for row in given_rows]


@pytest.mark.slow
@pytest.mark.parametrize("poison", Poison)
@pytest.mark.parametrize("names", NAMED)
@given(records)
def test_records_that_are_dealt_by_their_key(poison: Poison, names: Names, given_rows: list[tuple[Any, ...]]) -> None:
    starts = [(0, 10, 0), (5, 0, 0)]
    units = [
        dealt_slice(
            topic="t",
            target=TopicPartition(TARGET, number),
            starts=starts[number],
            ends=(40, 40, 40),
            slot=number,
            since=1,
            partitions=TARGETS,
            digest="d",
        )
        for number in range(TARGETS)
    ]
    wanted = []
    for row in given_rows:
        number = partition_of_record(row[5], row[2], row[3], TARGETS)
        if starts[number][row[2]] <= row[3] < 40:
            wanted.append((number, TARGET, number, *row[2:8], *marks(poison, names, row)))
    assert rows_of(dealt_rows({0: 0, 1: 1}, units, rule(poison, names), [batch(given_rows)])) == wanted

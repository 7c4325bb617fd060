"""Records are dealt as the plain partitioner and the plain wish of a unit say, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.features.records.acts.cutoffs import Unread, parse_unread
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark.slot_assignment import dealt_rows
from ferry.model import Slice, TopicPartition
from tests.pure.decide.dealt_model import partition_of_record, wants
from tests.pure.decide.values import dealt_slice

RULE = PoisonRule(transform="t", poison=Poison.FAIL, letters=DeadLetters(topic="letters"))
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
FIELDS = {
    "topic": pa.string(),
    "target": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": PAIRS,
    "poison": pa.string(),
}
RECORDS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 30), st.none() | st.binary(max_size=9)),
    max_size=60,
)


@st.composite
def units(draw: st.DrawFn) -> list[Slice]:
    found = []
    for topic in "ab":
        count, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
        for number in draw(st.sets(st.integers(0, count - 1), min_size=1)):
            starts = tuple(draw(st.integers(0, 10)) for _ in range(width))
            ends = tuple(start + draw(st.integers(0, 30)) for start in starts)
            found.append(
                dealt_slice(
                    topic=topic,
                    target=TopicPartition(f"to-{topic}", number),
                    starts=starts,
                    ends=ends,
                    slot=draw(st.sampled_from([3, 5])),
                    since=1,
                    partitions=count,
                    digest="d",
                    target_next=None,
                )
            )
    return found


def batch_of(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(FIELDS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, FIELDS.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(FIELDS))


@given(records=RECORDS, every=units())
def test_each_goes_where_its_key_says_if_it_is_wanted(
    records: list[tuple[str, int, int, bytes | None]], every: list[Slice]
) -> None:
    rows: list[tuple[object, ...]] = [
        (topic, f"to-{topic}", *place, 7, key, b"v", [], None) for topic, *place, key in records
    ]
    indexes = {3: 0, 5: 1}
    found = [
        tuple(row.values()) for one in dealt_rows(indexes, every, RULE, [batch_of(rows)]) for row in one.to_pylist()
    ]

    wanted: list[tuple[object, ...]] = []
    for topic, partition, offset, key in records:
        for unit in (unit for unit in every if unit.source.topic == topic):
            number = partition_of_record(key, partition, offset, unit.partitions)
            if number == unit.target.partition and wants(unit, partition, offset):
                wanted.append(
                    (indexes[unit.slot], f"to-{topic}", number, partition, offset, 7, key, b"v", [], None, None)
                )
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


NAMES = st.sampled_from(["x", "y", "z"])
SLOTS = {("x", 0): 3, ("x", 1): 5, ("y", 0): 8, ("y", 1): 9}
"""The slot of each target topic and partition."""
INDEXES = {3: 0, 5: 1, 8: 2, 9: 3}
CHOOSING = st.lists(
    st.tuples(NAMES, st.booleans(), st.integers(0, 2), st.integers(0, 30), st.none() | st.binary(max_size=3)),
    max_size=40,
    unique_by=lambda row: row[2:4],
)


@given(records=CHOOSING, starts=st.tuples(*[st.integers(0, 10)] * 3), widths=st.tuples(*[st.integers(0, 25)] * 3))
def test_each_goes_to_the_topic_that_it_names_and_one_that_is_not_listed_is_told(
    records: list[tuple[str, bool, int, int, bytes | None]], starts: tuple[int, ...], widths: tuple[int, ...]
) -> None:
    rule = replace(RULE, targets={"a": ("y", "x")}, names={name: ("to-a", name) for name in "xy"})
    every = [
        dealt_slice(
            topic="a",
            target=TopicPartition(name, number),
            starts=starts,
            ends=tuple(map(int.__add__, starts, widths)),
            slot=SLOTS[name, number],
            since=1,
            partitions=2,
            digest="d",
        )
        for name in ("x", "y")
        for number in (0, 1)
    ]
    rows: list[tuple[object, ...]] = [
        ("a", "to-a" if poison else name, *at, 7, key, b"v", [], "why" if poison else None)
        for name, poison, *at, key in records
    ]
    found: list[tuple[object, ...]] = []
    unread = {}
    try:
        for one in dealt_rows(INDEXES, every, rule, [batch_of(rows[:9]), batch_of(rows[9:])]):
            found += [tuple(row.values())[:5] for row in one.to_pylist()]
    except Unread as error:
        unread = {place.partition: one.offset for place, one in parse_unread(str(error)).items()}
    wanted: list[tuple[object, ...]] = []
    unknown: dict[int, list[int]] = {}
    for name, poison, partition, offset, key in records:
        if not wants(every[0], partition, offset):
            continue
        aim = "y" if poison else name
        if aim == "z":
            unknown.setdefault(partition, []).append(offset)
        else:
            number = partition_of_record(key, partition, offset, 2)
            wanted.append((INDEXES[SLOTS[aim, number]], aim, number, partition, offset))
    assert sorted(found) == sorted(wanted)
    assert unread == {partition: min(offsets) for partition, offsets in unknown.items()}

"""Records are dealt as the plain partitioner and the plain wish of a unit say, one by one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.decide.records.letters import PoisonRule
from ferry.decide.records.partitioner import partition_of_record
from ferry.decide.records.units import wants
from ferry.model import TopicPartition, Unit
from ferry.spark.records.dealing import dealt_rows

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
def units(draw: st.DrawFn) -> list[Unit]:
    found = []
    for topic in "ab":
        count, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
        for number in draw(st.sets(st.integers(0, count - 1), min_size=1)):
            starts = tuple(draw(st.integers(0, 10)) for _ in range(width))
            ends = tuple(start + draw(st.integers(0, 30)) for start in starts)
            found.append(
                Unit(
                    source_topic=topic,
                    target=TopicPartition(f"to-{topic}", number),
                    starts=starts,
                    ends=ends,
                    slot=draw(st.sampled_from([3, 5])),
                    era=1,
                    partitions=count,
                    digest="d",
                    target_next=-1,
                )
            )
    return found


@given(records=RECORDS, every=units())
def test_each_goes_where_its_key_says_if_it_is_wanted(records: list, every: list[Unit]) -> None:
    rows = [(topic, f"to-{topic}", *place, 7, key, b"v", [], None) for topic, *place, key in records]
    columns = list(zip(*rows, strict=True)) or [()] * len(FIELDS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, FIELDS.values(), strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(FIELDS))

    indexes = {3: 0, 5: 1}
    found = [tuple(row.values()) for one in dealt_rows(indexes, every, RULE, [batch]) for row in one.to_pylist()]

    wanted = []
    for topic, partition, offset, key in records:
        for unit in (unit for unit in every if unit.source_topic == topic):
            number = partition_of_record(key, partition, offset, unit.partitions)
            if number == unit.target.partition and wants(unit, partition, offset):
                row = (indexes[unit.slot], f"to-{topic}", number, partition, offset, 7, key, b"v", [], None, None)
                wanted.append(row)
    assert sorted(found, key=repr) == sorted(wanted, key=repr)

"""Batches out of columns are the batches that are made record by record."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.model import Codec, Compression
from ferry.wire.encoding import RecordColumns, batch_of_columns
from ferry.wire.written import NewRecord, batch_of

PAIR = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
TIMES = st.integers(0, 2**45) | st.sampled_from([-1, 0, 2**63 - 1, -(2**63)])
BYTES = st.none() | st.binary(max_size=70) | st.integers(8180, 8200).map(bytes)
HEADERS = st.lists(st.tuples(st.sampled_from(["", "a", "ü" * 40]), st.none() | st.binary(max_size=70)), max_size=3)
RECORDS = st.lists(st.tuples(TIMES, BYTES, BYTES, st.just([]) | HEADERS), min_size=1, max_size=140)
Written = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Time, key, value and headers."""


def columns(records: list[Written]) -> RecordColumns:
    lists = [[{"key": name, "value": value} for name, value in one[3]] for one in records]
    return RecordColumns(
        pa.array([one[0] for one in records], pa.int64()),
        pa.array([one[1] for one in records], pa.binary()),
        pa.array([one[2] for one in records], pa.binary()),
        pa.array(lists, pa.list_(pa.field("element", PAIR, nullable=False))),
    )


def rows(records: list[Written]) -> list[NewRecord]:
    return [NewRecord(*one[:3], [(name.encode(), value) for name, value in one[3]]) for one in records]


@given(records=RECORDS, before=st.integers(0, 3), codec=st.sampled_from([Codec.NONE, Codec.LZ4]))
def test_they_are_the_same(records: list[Written], before: int, codec: Codec) -> None:
    before = min(before, len(records) - 1)
    given = RecordColumns(*(column.slice(before) for column in columns(records)))
    wanted = rows(records)[before:]
    compression = Compression(codec=codec)
    assert batch_of_columns(given, compression) == batch_of(wanted, compression)
    assert given.sizes().tolist() == [one.size for one in wanted]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 8191, 8193])
def test_many_records_without_anything(count: int) -> None:
    records: list[Written] = [(5, None, None, [])] * count
    compression = Compression(codec=Codec.NONE)
    assert batch_of_columns(columns(records), compression) == batch_of(rows(records), compression)

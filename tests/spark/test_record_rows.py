"""Records in Arrow are the records that come one by one, whatever batches they were in."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.errors import Corrupt
from ferry.features.records.rules.filters import Narrowing, Span
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark import rows
from ferry.features.records.spark.rows import rows_of
from ferry.features.records.spark.schema import SCHEMA
from ferry.kafka.fetch.fetch_buffer import ReadFailure
from ferry.model import Codec, RefusalKind, TopicPartition
from ferry.wire.batch import MAGIC, Batch, batches
from ferry.wire.codecs import Malformed
from ferry.wire.content import contents
from ferry.wire.headers import parse_headers
from tests.pure.wire.captured import TOPICS, captured, old_sets

ARROW = to_arrow_schema(SCHEMA, timezone="UTC")
MOST = 1 << 20
HEADERS = st.lists(st.tuples(st.sampled_from(["", "a", "ü"]), st.none() | st.binary(max_size=3)), max_size=2)
RECORD = st.tuples(
    st.integers(0, 2**50),
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=300) | st.integers(8000, 20_000).map(bytes),
    st.just([]) | HEADERS,
)
BATCH = st.tuples(st.lists(RECORD, min_size=1, max_size=20), st.sampled_from([Codec.NONE, Codec.LZ4]))
Row = tuple[object, ...]
Written = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Time, key, value and headers."""


def built(records: Sequence[Written], codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for index, (timestamp, key, value, headers) in enumerate(records):
        builder.append(index, timestamp, key, value, headers)
    return bytes(builder.build())


def one_by_one(found: Sequence[tuple[ReadRange, Batch]]) -> list[Row]:
    wanted: list[Row] = []
    for piece, batch in found:
        kind = -1 if batch.magic == 0 else int(batch.has_log_append_time)
        for offset, timestamp, key, value, headers in contents(batch, MOST):
            if piece.start <= offset < piece.end:
                pairs = [(name.decode(), data) for name, data in parse_headers(headers)]
                wanted.append((*piece.place, offset, timestamp, kind, key, value, pairs))
    return wanted


def in_arrow(found: Sequence[tuple[ReadRange, Batch]]) -> list[Row]:
    got: list[Row] = []
    for batch in rows_of(iter(found), Narrowing(), ARROW):
        batch.validate(full=True)
        for row in batch.to_pylist():
            pairs = [(pair["key"], pair["value"]) for pair in row.pop("headers")]
            got.append((*row.values(), pairs))
    return got


@given(
    every=st.lists(BATCH, max_size=4), start=st.integers(-1, 20), end=st.integers(0, 30), most=st.sampled_from([5, 99])
)
def test_they_are_the_same(every: list[tuple[list[Written], Codec]], start: int, end: int, most: int) -> None:
    found = []
    for number, (records, codec) in enumerate(every):
        (batch,) = batches(built(records, codec))
        found.append((ReadRange(TopicPartition("t" * (number % 2 + 1), number), start, end), batch))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "MOST_ROWS", most)
        patch.setattr(rows, "opened_columns", None)  # all of this is read by columns
        assert in_arrow(found) == one_by_one(found)


@given(records=st.lists(RECORD, min_size=1, max_size=8), seed=st.integers(0, 2**32))
def test_damage_is_met_as_it_is_record_by_record(records: list[Written], seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(built(records, Codec.NONE))
    data[rng.randrange(61, len(data))] = rng.randrange(256)
    (batch,) = batches(data)
    (sound,) = batches(built(records, Codec.NONE))
    place = ReadRange(TopicPartition("t", 0), 0, 2**60)
    found = [(place, sound), (place, batch), (place, sound)]
    try:
        wanted = one_by_one(found)
    except (Malformed, UnicodeDecodeError):
        with pytest.raises((Corrupt, UnicodeDecodeError, pa.ArrowInvalid)):
            in_arrow(found)
    else:
        assert in_arrow(found) == wanted


@given(
    before=st.lists(RECORD, min_size=1, max_size=4), bad=st.lists(RECORD, min_size=1, max_size=4), quick=st.booleans()
)
def test_who_is_told_of_damage_has_all_before_it_and_all_of_others(
    before: list[Written], bad: list[Written], quick: bool
) -> None:
    (sound,) = batches(built(before, Codec.NONE))
    data = bytearray(built(bad, Codec.NONE))
    data[61:] = bytes(len(data) - 61)  # records of no bytes, with fields all the same
    (damaged,) = batches(data)
    own, other = (ReadRange(TopicPartition("t", number), 0, 2**60) for number in (0, 1))
    found = [(own, sound), (own, damaged), (own, sound), (other, sound)]
    told: list[tuple[TopicPartition, ReadFailure]] = []
    where = Narrowing() if quick else Narrowing(offsets=Span(low=0))
    got = rows_of(iter(found), where, ARROW, lambda *one: told.append(one))
    places = [row["partition"] for batch in got for row in batch.to_pylist()]
    assert places == [0] * len(before) + [1] * len(before)
    ((place, failure),) = told
    assert (place, failure.kind) == (own.place, RefusalKind.CORRUPT)
    assert failure.message.startswith(f"the batch at offset {failure.offset} of t-0 cannot be read: ")


def test_formats_take_turns_in_order() -> None:
    found = []
    logs = [list(batches(one.data)) for one in old_sets()] + [captured(topic).batches for topic in TOPICS]
    for number, log in enumerate(logs):
        place = ReadRange(TopicPartition("t", number), 0, 2**60)
        found += [(place, batch) for batch in log if not batch.is_control]
    assert in_arrow(found) == one_by_one(found)
    assert {batch.magic for _, batch in found} == {0, 1, MAGIC}

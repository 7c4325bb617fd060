"""Records as columns are the records that come one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry.model import Codec
from ferry.wire.batch import Batch, batches
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.columns import Columns, columns
from ferry.wire.content import contents
from tests.pure.wire.captured import TOPICS, OldSet, captured, old_sets

MOST = 1 << 20
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 2**40),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text("ab", max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
    ),
    min_size=1,
    max_size=20,
)
Written = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Time, key, value and headers."""


def one_by_one(batch: Batch, start: int = -(2**63), end: int = 2**63 - 1) -> Columns:
    found = [one for one in contents(batch, MOST) if start <= one.offset < end]
    return Columns._make([one[index] for one in found] for index in range(5))


def built(records: list[Written], codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for index, (timestamp, key, value, headers) in enumerate(records):
        builder.append(index, timestamp, key, value, headers)
    return bytes(builder.build())


@given(
    records=RECORDS, codec=st.sampled_from([Codec.NONE, Codec.ZSTD]), start=st.integers(-1, 20), end=st.integers(0, 21)
)
def test_they_are_the_same(records: list[Written], codec: int, start: int, end: int) -> None:
    (batch,) = batches(built(records, codec))
    assert columns(batch, MOST) == one_by_one(batch)
    assert columns(batch, MOST, start, end) == one_by_one(batch, start, end)
    assert len(columns(batch, MOST).offsets) == len(records)


@given(records=RECORDS, seed=st.integers(0, 2**32))
def test_damage_is_met_by_both_alike(records: list[Written], seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(built(records, Codec.NONE))
    data[rng.randrange(61, len(data))] = rng.randrange(256)
    (batch,) = batches(data)
    try:
        wanted = one_by_one(batch)
    except Malformed:
        with pytest.raises(Malformed):
            columns(batch, MOST)
    else:
        assert columns(batch, MOST) == wanted


@pytest.mark.parametrize("topic", TOPICS)
def test_golden_batches(topic: str) -> None:
    found = [columns(batch, MOST) for batch in captured(topic).batches if not batch.is_control]
    assert found == [one_by_one(batch) for batch in captured(topic).batches if not batch.is_control]
    assert any(one.offsets for one in found)


@pytest.mark.parametrize("old", old_sets(), ids=lambda old: old.name)
def test_golden_messages_of_old_formats(old: OldSet) -> None:
    found = [columns(batch, MOST) for batch in batches(old.data)]
    assert [row for one in found for row in zip(*one[:4], strict=True)] == list(old.rows)
    first = old.rows[0][0]
    assert [offset for batch in batches(old.data) for offset in columns(batch, MOST, first, first + 1).offsets] == [
        first
    ]


def test_a_batch_that_is_too_long_is_not_held() -> None:
    (batch,) = batches(built([(1, None, b"x" * 5000, [])], Codec.ZSTD))
    with pytest.raises(TooLong):
        columns(batch, 1000)

"""The age of what lies first in a fetched buffer, from its header alone."""

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from ferry.wire.age import first_timestamp
from ferry.wire.batch import HEADER_BYTES
from tests.pure.wire.captured import CODECS, captured

ATTRIBUTES_AT = 22
"""The low byte of a batch's attributes."""


@pytest.mark.parametrize("topic", [*(f"codec-{name}" for name in CODECS), "transactions", "log-append-time"])
def test_it_is_the_first_records_time(topic: str) -> None:
    golden = captured(topic)
    buffer = golden.answers[0].buffer
    assert first_timestamp(buffer[:HEADER_BYTES]) == first_timestamp(buffer) == golden.uncommitted[0][1]


def test_a_delete_horizon_is_not_a_time() -> None:
    batch = next(batch for batch in captured("compacted").batches if batch.attributes & 0x40)
    assert first_timestamp(bytes(batch.data)) == batch.max_timestamp


def test_a_copy_has_a_delete_horizon_without_the_bit() -> None:
    batch = next(batch for batch in captured("compacted").batches if batch.attributes & 0x40)
    copied = bytearray(batch.data)
    copied[ATTRIBUTES_AT] &= ~0x40
    assert batch.base_timestamp > batch.max_timestamp
    assert first_timestamp(bytes(copied)) == batch.max_timestamp


def test_too_little_tells_nothing() -> None:
    buffer = captured("codec-none").answers[0].buffer
    assert {first_timestamp(buffer[:cut]) for cut in range(HEADER_BYTES)} == {None}


@pytest.mark.parametrize(("magic", "found"), [(0, None), (1, 1234)])
def test_old_formats(magic: int, found: int | None) -> None:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(0, timestamp=1234, key=b"k", value=b"v")
    assert first_timestamp(bytes(builder.build())) == found


def test_a_record_without_time_has_no_age() -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    builder.append(0, timestamp=-1, key=b"k", value=b"v")
    assert first_timestamp(bytes(builder.build())) is None

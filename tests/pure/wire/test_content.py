"""Records as contents, judged by librdkafka and Kafka's own classes; and batches that are the same as they lie."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.model import RecordContent
from ferry.wire.batch import HEADER_BYTES, Batch, batches, restamped
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.content import contents, same_bytes
from ferry.wire.varints import read_signed, read_unsigned, varint, zigzag
from tests.pure.wire.captured import CODECS, OldSet, captured, old_sets
from tests.pure.wire.logs import data

MOST = 1 << 24


def encoded(headers: list[tuple[str, bytes | None]]) -> bytes:
    """Headers as format v2 has them."""
    out = varint(zigzag(len(headers)))
    for name, value in headers:
        out += varint(zigzag(len(name.encode()))) + name.encode()
        out += varint(zigzag(-1)) if value is None else varint(zigzag(len(value))) + value
    return out


@pytest.mark.parametrize("topic", [*(f"codec-{name}" for name in CODECS), "log-append-time", "compacted"])
def test_golden_batches_hold_what_librdkafka_reads(topic: str) -> None:
    golden = captured(topic)
    found = [content for batch in golden.batches for content in contents(batch, MOST)]
    assert found == [RecordContent(*row[:4], encoded(row[4])) for row in golden.uncommitted]


@pytest.mark.parametrize("old", old_sets(), ids=lambda old: old.name)
def test_golden_messages_hold_what_kafkas_classes_read(old: OldSet) -> None:
    found = [content for batch in batches(old.data) for content in contents(batch, MOST)]
    assert found == [RecordContent(*row, b"\0") for row in old.rows]


def test_what_is_no_row_of_records_is_said_to_be_malformed() -> None:
    (batch,) = captured("codec-none").batches
    for wrong in (batch._replace(record_count=batch.record_count + 1), batch._replace(record_count=1)):
        with pytest.raises(Malformed):
            list(contents(wrong, MOST))
    (packed,) = captured("codec-lz4").batches
    with pytest.raises(TooLong):
        list(contents(packed, 10))


@pytest.mark.parametrize("read", [read_unsigned, read_signed])
def test_a_number_has_ten_bytes_at_most(read: Callable[[bytes, int], tuple[int, int]]) -> None:
    assert read(b"\x80" * 9 + b"\x01", 0)[1] == 10
    for long in (10, 1_000_000):
        with pytest.raises(Malformed):
            read(b"\xff" * long + b"\x01", 0)


def copy(batch: Batch, offset: int) -> Batch:
    """The batch as Ferry writes it, where the broker puts it."""
    body = bytearray(restamped(batch, 77, 3, 12))
    struct.pack_into(">q", body, 0, offset)
    struct.pack_into(">i", body, 12, 9)
    (found,) = batches(body)
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_a_verbatim_copy_is_the_same(codec: str) -> None:
    (batch,) = captured(f"codec-{codec}").batches
    assert same_bytes(batch, copy(batch, 1_000))
    (fetched,) = batches(bytearray(batch.data))  # as it lies in an answer
    assert same_bytes(fetched, copy(batch, 1_000))


@given(st.data())
def test_one_flipped_bit_is_seen_wherever_it_counts(draw: st.DataObject) -> None:
    batch = data([(b"k%d" % index, b"v" * index) for index in range(5)])
    body = bytearray(copy(batch, 40).data)
    at = draw.draw(st.integers(HEADER_BYTES, len(body) - 1))
    body[at] ^= 1 << draw.draw(st.integers(0, 7))
    (altered,) = batches(body)
    (fetched,) = batches(bytearray(batch.data))
    assert not same_bytes(batch, altered)
    assert not same_bytes(fetched, altered)


@pytest.mark.parametrize("field", ["base_timestamp", "max_timestamp", "record_count", "attributes", "next_offset"])
def test_headers_that_say_other_things_are_not_the_same(field: str) -> None:
    batch = data([(b"k", b"v")])
    other = copy(batch, 40)
    assert not same_bytes(batch, other._replace(**{field: getattr(other, field) + 1}))


def test_a_batch_that_cannot_have_been_copied_as_bytes_is_opened() -> None:
    (batch, *_) = captured("log-append-time").batches
    assert not same_bytes(batch, copy(batch, 0))

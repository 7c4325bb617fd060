"""Batches written anew, judged by other readers: kafka-python's decoder, librdkafka, and Kafka's own classes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from ferry.errors import Corrupt
from ferry.model import Codec, Compression
from ferry.wire import transcode
from ferry.wire.batch import HEADER_BYTES, Batch, batches, check, obstacle, restamped
from ferry.wire.codecs import Room, TooLong, compressed, decompressed
from ferry.wire.renumber import renumbered
from ferry.wire.transcode import NewBatch, Unsplittable, transcoded
from tests.golden import Golden
from tests.pure.wire.captured import CODECS, OldSet, captured, old_sets

MOST = 1 << 24
BASE = 1_000
HIGHEST = 2**63 - 2  # kafka-python cannot write the one above behind -1
Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Timestamp, key, value, headers."""

fields = st.none() | st.binary(max_size=5) | st.integers(0, 20_000).map(bytes)
times = st.sampled_from([-1, 0, HIGHEST, 1_700_000_000_000]) | st.integers(0, 2**62)
headers = st.lists(st.tuples(st.sampled_from(["", "h", "\u00fc"]), st.none() | st.binary(max_size=3)), max_size=3)
contents = st.tuples(times, fields, fields, headers)
gaps = st.sampled_from([0] * 8 + [1, 2, 70, 9_000])
rows = st.lists(st.tuples(gaps, contents), min_size=1, max_size=150)
codecs = st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD])  # those that kafka-python writes here


def made(
    found: Sequence[tuple[int, Record]], codec: int = 0, *, set_attributes: int = 0, max_timestamp: int | None = None
) -> Batch:
    """A batch at BASE by kafka-python whose record n lies `gap` offsets behind record n-1."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=7, producer_epoch=0, base_sequence=0,
        batch_size=1 << 30,
    )  # fmt: skip
    for delta, (timestamp, key, value, heads) in zip(deltas(found), (row for _, row in found), strict=True):
        builder.append(delta, timestamp, key, value, heads)
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, BASE)
    struct.pack_into(">h", data, 21, struct.unpack_from(">h", data, 21)[0] | set_attributes)
    if max_timestamp is not None:
        struct.pack_into(">q", data, 35, max_timestamp)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    (batch,) = batches(data)
    return batch


def deltas(found: Sequence[tuple[int, Record]]) -> list[int]:
    return list(accumulate((gap + 1 for gap, _ in found[1:]), initial=found[0][0]))


def opened(batch: Batch) -> list[Record]:
    """The records as kafka-python reads them in what is sent."""
    written = bytes(restamped(batch, 77, 3, 12))
    (again,) = batches(written)
    check(again, "orders", 0)
    assert obstacle(again) is None
    reader = DefaultRecordBatch(written)
    found = list(reader)
    assert [record.offset for record in found] == list(range(len(found)))
    assert reader.max_timestamp == max(record.timestamp for record in found)
    return [(record.timestamp, record.key, record.value, record.headers) for record in found]


def assert_same(found: Sequence[NewBatch], wanted: Sequence[tuple[int, Record]], end: int) -> None:
    """The new batches hold these records, and say truly which source offsets they had."""
    assert [record for new in found for record in opened(new.batch)] == [row for _, row in wanted]
    said = [start + index for new in found for start, count in new.runs for index in range(count)]
    assert said == [offset for offset, _ in wanted]
    for new in found:
        assert new.first_timestamp == opened(new.batch)[0][0]
        assert sum(count for _, count in new.runs) == new.batch.record_count
        assert all(start + count < after for (start, count), (after, _) in pairwise(new.runs)), "runs touch"
    assert [new.end for new in found[:-1]] == [new.runs[0][0] for new in found[1:]]
    assert [new.end for new in found[-1:]] == ([end] if wanted else [])


def anew(batch: Batch, first: int = 0, end: int = HIGHEST, **options: Any) -> list[NewBatch]:
    given = {"compression": None, "limit": None, "room": Room(MOST), **options}
    return transcoded([batch], first, end, place="orders-3", **given)


# What goes in comes out


@given(rows, codecs, st.integers(0, 200), st.integers(0, 200) | st.just(HIGHEST), st.none() | st.integers(300, 30_000))
@example([(70, (-1, None, b"", [])), (9_000, (HIGHEST, b"", None, [("", None)] * 2))], Codec.ZSTD, 71, HIGHEST, None)
@example([(0, (5, b"k", b"v", []))] * 3, Codec.LZ4, 1, 1, None)
@example([(0, (5, b"k", b"v", []))] * 3, Codec.LZ4, 1, 0, None)
def test_records_stay_as_they_are_whatever_is_left_out_before_between_and_behind(
    found: list[tuple[int, Record]], codec: Codec, skipped: int, width: int, limit: int | None
) -> None:
    batch = made(found, codec)
    first, end = BASE + skipped, BASE + skipped + width
    wanted = [(BASE + delta, row) for delta, (_, row) in zip(deltas(found), found, strict=True)]
    wanted = [(offset, row) for offset, row in wanted if first <= offset < end]
    try:
        new = anew(batch, first, end, limit=limit)
    except Unsplittable as error:
        found_alone = error
    else:
        assert_same(new, wanted, min(batch.next_offset, end))
        assert all(part.batch.codec == batch.codec for part in new)
        assert limit is None or all(len(part.batch.data) <= limit for part in new)
        return
    assert found_alone.offset in [offset for offset, _ in wanted]
    assert found_alone.size > (limit or HIGHEST)


@given(rows, codecs, st.sampled_from(Codec), st.sampled_from([None, 1, 9]))
def test_another_compression_is_written_when_it_is_asked_for(
    found: list[tuple[int, Record]], codec: Codec, wish: Codec, level: int | None
) -> None:
    batch = made(found, codec)
    (new,) = anew(batch, compression=Compression(codec=wish, level=level))
    assert new.batch.codec == wish
    again = bytearray(new.batch.data[:HEADER_BYTES]) + decompressed(wish, new.batch.payload, MOST)
    struct.pack_into(">i", again, 8, len(again) - 12)
    struct.pack_into(">h", again, 21, 0)
    offsets = [BASE + delta for delta in deltas(found)]
    assert_same(
        [new._replace(batch=next(batches(again)))],
        list(zip(offsets, (row for _, row in found), strict=True)),
        batch.next_offset,
    )


@given(rows, codecs, times)
def test_log_append_time_becomes_the_time_of_each_record(
    found: list[tuple[int, Record]], codec: Codec, stamp: int
) -> None:
    batch = made(found, codec, set_attributes=0x08, max_timestamp=stamp)
    wanted = [(BASE + delta, (stamp, *row[1:])) for delta, (_, row) in zip(deltas(found), found, strict=True)]
    new = anew(batch)
    assert_same(new, wanted, batch.next_offset)
    assert not any(part.batch.has_log_append_time for part in new)


@given(rows, codecs)
def test_a_delete_horizon_is_what_timestamps_count_from_and_goes(found: list[tuple[int, Record]], codec: Codec) -> None:
    batch = made(found, codec, set_attributes=0x40)
    wanted = [(BASE + delta, row) for delta, (_, row) in zip(deltas(found), found, strict=True)]
    assert_same(anew(batch), wanted, batch.next_offset)


def test_a_batch_without_holes_has_the_same_bytes_again() -> None:
    for codec in CODECS:
        (batch,) = captured(f"codec-{codec}").batches
        (new,) = anew(batch, compression=Compression(codec=Codec.NONE))
        assert bytes(new.batch.payload) == decompressed(batch.codec, batch.payload, MOST)


@pytest.mark.parametrize("topic", [*(f"codec-{name}" for name in CODECS), "log-append-time", "compacted"])
def test_golden_batches_hold_what_librdkafka_reads(topic: str) -> None:
    golden = captured(topic)
    plain = Compression(codec=Codec.NONE)
    found: list[Record] = []
    offsets: list[int] = []
    for batch in golden.batches:
        for new in anew(batch, compression=plain):
            found += opened(new.batch)
            offsets += [start + index for start, count in new.runs for index in range(count)]
    assert list(zip(offsets, found, strict=True)) == [(row[0], tuple(row[1:])) for row in golden.uncommitted]


# The old formats


@pytest.mark.parametrize("old", old_sets(), ids=lambda old: old.name)
@pytest.mark.parametrize(("first", "end"), [(0, 106), (101, 105), (102, 103), (105, 999), (106, 999), (0, 100)])
def test_golden_messages_hold_what_kafkas_classes_read(old: OldSet, first: int, end: int) -> None:
    wanted: list[tuple[int, Record]] = [
        (offset, (time, key, value, [])) for offset, time, key, value in old.rows if first <= offset < end
    ]
    found = list(batches(old.data))
    for batch in found:
        check(batch, "orders", 3)
        assert batch.is_wrapper == ("none" not in old.name)
    plain, room = Compression(codec=Codec.NONE), Room(MOST)
    new = transcoded(found, first, end, place="orders-3", compression=plain, limit=None, room=room)
    assert_same(new, wanted, min(end, 106))
    kept = transcoded(found, first, end, place="orders-3", compression=None, limit=None, room=room)
    assert [CODECS[part.batch.codec] for part in kept] == [old.name.split("-")[1]] * len(new)


@pytest.mark.parametrize("old", old_sets(), ids=lambda old: old.name)
def test_a_message_before_what_was_taken_is_damage(old: OldSet, golden: Golden) -> None:
    """The offset of a compressed message is not under its checksum, and says where those inside lie."""
    found = list(batches(old.data))

    def again(first: int) -> list[NewBatch]:
        return transcoded(found, first, place="orders-3", compression=None, limit=None, room=Room(MOST), begun=True)

    lowest = old.rows[0][0]
    assert again(lowest)
    with pytest.raises(Corrupt) as caught:
        again(lowest + 1)
    golden(caught.value)


@pytest.mark.parametrize("old", old_sets(), ids=lambda old: old.name)
def test_a_changed_byte_of_an_old_message_is_found(old: OldSet) -> None:
    for batch in batches(old.data):
        for at in range(12, len(batch.data)):  # offset and size have no checksum
            damaged = bytearray(batch.data)
            damaged[at] ^= 0x55
            with pytest.raises(Corrupt, match="checksum"):
                check(batch._replace(data=memoryview(damaged)), "orders", 3)


def test_timestamps_go_round_as_javas_do() -> None:
    batch = made([(0, (-1, b"k", b"v", [])), (0, (5, b"k", b"v", []))])
    highest = 2**63 - 1
    assert renumbered(bytearray(batch.payload), 2, base=0, base_timestamp=highest).max_timestamp == highest
    second = renumbered(bytearray(batch.payload), 2, base=0, base_timestamp=highest, first=1)
    assert second.max_timestamp == -(2**63) + 5  # six behind the first


# What cannot be written


def test_one_record_that_is_too_large_alone_is_named(golden: Golden) -> None:
    batch = made([(0, (1, b"k", b"small", [])), (0, (1, b"k", bytes(5_000), []))])
    with pytest.raises(Unsplittable) as caught:
        anew(batch, limit=5_000)
    golden(caught.value)
    assert caught.value.offset == BASE + 1


def test_what_grows_beyond_the_memory_is_not_held() -> None:
    batch = made([(0, (1, b"k", bytes(500_000), []))], Codec.ZSTD)
    with pytest.raises(TooLong):
        anew(batch, room=Room(400_000))


def test_many_holes_are_spread_over_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcode, "MOST_RUNS", 10)
    found: list[tuple[int, Record]] = [(1, (1, b"k", b"v", [])) for _ in range(95)]
    batch = made(found, Codec.GZIP)
    new = anew(batch)
    assert_same(
        new, [(BASE + delta, row) for delta, (_, row) in zip(deltas(found), found, strict=True)], 1190 + BASE - 1000
    )
    assert len(new) >= 10
    assert all(len(part.runs) <= 10 for part in new)


@given(rows, st.data())
def test_damage_that_a_checksum_does_not_show_is_an_error_and_never_a_crash(
    found: list[tuple[int, Record]], draw: st.DataObject
) -> None:
    """Whatever the bytes: either an error that names the place, or batches whose counts agree."""
    batch = made(found)
    data = bytearray(batch.data)
    at = draw.draw(st.integers(HEADER_BYTES, len(data) - 1))
    data[at] ^= draw.draw(st.integers(1, 255))
    try:
        new = anew(batch._replace(data=memoryview(data)))
    except Corrupt as error:
        said = str(error)
    else:
        assert sum(part.batch.record_count for part in new) == batch.record_count
        return
    assert f"offset {BASE} of orders-3 " in said


@pytest.mark.parametrize("count", [0, 1, 4, 100])
def test_a_count_that_is_not_that_of_the_records_is_damage(count: int, golden: Golden) -> None:
    batch = made([(0, (1, b"k", b"v", []))] * 3)
    with pytest.raises(Corrupt) as caught:
        anew(batch._replace(record_count=count))
    golden(caught.value)


def test_compressed_bytes_that_are_none_are_damage() -> None:
    batch = made([(0, (1, b"k", b"v", []))], Codec.LZ4)
    for number in (1, 2, 4, 7):
        with pytest.raises(Corrupt, match="orders-3"):
            anew(batch._replace(attributes=number))


def test_rising_offsets_are_required(golden: Golden) -> None:
    one = made([(0, (1, b"k", b"v", []))])
    payload = bytes(one.payload) * 2
    with pytest.raises(Corrupt) as caught:
        anew(one._replace(data=memoryview(bytes(one.data[:HEADER_BYTES]) + payload), record_count=2))
    golden(caught.value)


def test_the_payload_is_compressed_as_the_batch_was() -> None:
    batch = made([(0, (1, b"k", b"x" * 10_000, []))] * 5, Codec.LZ4)
    (new,) = anew(batch, BASE + 1)
    assert new.batch.codec == Codec.LZ4
    assert len(new.batch.data) < 1_000
    assert compressed(Compression(codec=Codec.LZ4), decompressed(3, new.batch.payload, MOST)) == new.batch.payload

"""Batches as bytes: what Ferry reads from a header, what it changes, what it refuses."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from ferry.errors import Corrupt
from ferry.wire.batch import (
    ABORT_MARKER,
    COMMIT_MARKER,
    HEADER,
    HEADER_BYTES,
    Batch,
    batches,
    check,
    extended_digest,
    marker_type,
    obstacle,
    producer_of,
    restamped,
    whole_batch_bytes,
)
from tests.golden import Golden
from tests.pure.wire.captured import CODECS, TOPICS, captured
from tests.pure.wire.logs import data

FIELDS = (
    "baseOffset", "batchLength", "partitionLeaderEpoch", "magic", "crc", "attributes", "lastOffsetDelta",
    "baseTimestamp", "maxTimestamp", "producerId", "producerEpoch", "baseSequence", "count",
)  # fmt: skip
CODEC_MASK = 0x07
DELETE_HORIZON = 0x40

rows = st.lists(st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=200)), min_size=1)
made = st.builds(
    data,
    rows,
    offset=st.integers(0, 2**62),
    producer=st.integers(-1, 2**62),
    transactional=st.booleans(),
    codec=st.sampled_from([0, 1, 4]),  # kafka-python has these without further libraries
    leader_epoch=st.integers(-1, 2**31 - 1),
)


def header(raw: bytes | bytearray | memoryview) -> dict[str, int]:
    return dict(zip(FIELDS, HEADER.unpack_from(raw), strict=True))


def opened(raw: bytes | bytearray | memoryview) -> list[tuple[object, ...]]:
    """The records as kafka-python reads them, without their offsets."""
    batch = DefaultRecordBatch(bytes(raw))
    assert batch.validate_crc()
    return [(record.timestamp, record.key, record.value, record.headers) for record in batch]


# What a header says


@pytest.mark.parametrize("topic", TOPICS)
def test_headers_say_what_kafka_prints(topic: str) -> None:
    golden = captured(topic)
    for batch, line in zip(golden.batches, golden.dumped, strict=True):
        assert batch.base_offset == int(line["baseOffset"])
        assert batch.next_offset == int(line["lastOffset"]) + 1
        assert batch.record_count == int(line["count"])
        assert batch.producer_id == int(line["producerId"])
        assert batch.leader_epoch == int(line["partitionLeaderEpoch"])
        assert batch.magic == int(line["magic"])
        assert batch.crc == int(line["crc"])
        assert batch.max_timestamp == int(line.get("CreateTime") or line["LogAppendTime"])
        assert len(batch.data) == int(line["size"])
        assert str(batch.is_transactional).lower() == line["isTransactional"]
        assert str(batch.is_control).lower() == line["isControl"]
        assert CODECS[batch.attributes & CODEC_MASK] == line["compresscodec"]
        horizon = f"OptionalLong[{batch.base_timestamp}]" if batch.attributes & DELETE_HORIZON else "OptionalLong.empty"
        assert line["deleteHorizonMs"] == horizon


@pytest.mark.parametrize("name", CODECS)
def test_each_codec_is_among_the_golden_batches(name: str) -> None:
    (batch,) = captured(f"codec-{name}").batches
    assert CODECS[batch.attributes & CODEC_MASK] == name


@pytest.mark.parametrize("name", ["none", "gzip", "zstd"])
def test_the_records_of_a_golden_batch_are_those_that_librdkafka_reads(name: str) -> None:
    golden = captured(f"codec-{name}")
    assert opened(golden.batches[0].data) == [tuple(row[1:]) for row in golden.uncommitted]


def test_markers_say_what_kafka_prints() -> None:
    golden = captured("transactions")
    words = {COMMIT_MARKER: "COMMIT", ABORT_MARKER: "ABORT"}
    found = {batch.base_offset: words[marker_type(batch)] for batch in golden.batches if batch.is_control}
    assert found == golden.markers
    assert set(found.values()) == {"COMMIT", "ABORT"}


def test_old_formats_are_handed_out_to_be_named() -> None:
    for magic in (0, 1):
        builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
        builder.append(0, timestamp=1, key=b"k", value=b"v")
        (batch,) = batches(bytes(builder.build()))
        assert (batch.magic, batch.record_count, batch.base_offset) == (magic, 0, 0)
        assert producer_of(batch) == (-1, -1, -1)


# Where a buffer ends


@pytest.mark.parametrize("topic", TOPICS)
def test_a_batch_cut_short_by_the_broker_is_left_out(topic: str) -> None:
    for answer in captured(topic).answers:
        whole = list(batches(answer.buffer))
        ends = [sum(len(batch.data) for batch in whole[: count + 1]) for count in range(len(whole))]
        assert ends[-1] == len(answer.buffer)
        for cut in range(len(answer.buffer) + 1):
            found = [batch.base_offset for batch in batches(answer.buffer[:cut])]
            assert found == [batch.base_offset for batch, end in zip(whole, ends, strict=True) if end <= cut]


def test_twelve_bytes_tell_how_many_the_first_batch_needs() -> None:
    buffer = captured("codec-none").answers[0].buffer
    for cut in range(len(buffer) + 1):
        assert whole_batch_bytes(buffer[:cut]) == (len(buffer) if cut >= 12 else 0)


# What may not be copied


@pytest.mark.parametrize("topic", TOPICS)
def test_the_checksum_of_every_golden_batch_holds(topic: str) -> None:
    for batch in captured(topic).batches:
        check(batch, topic, 0)


def test_any_flipped_bit_behind_the_checksum_is_found() -> None:
    (batch,) = captured("codec-gzip").batches
    raw = bytes(batch.data)
    for at in range(17, len(raw)):
        for bit in range(8):
            damaged = bytearray(raw)
            damaged[at] ^= 1 << bit
            with pytest.raises(Corrupt):
                check(batch._replace(data=memoryview(damaged), crc=header(damaged)["crc"]), "orders", 3)


@given(made, st.data())
def test_any_changed_byte_of_any_batch_is_found(batch: Batch, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(21, len(batch.data) - 1))
    damaged = bytearray(batch.data)
    damaged[at] ^= draw.draw(st.integers(1, 255))
    with pytest.raises(Corrupt):
        check(batch._replace(data=memoryview(damaged)), "orders", 3)


def test_a_damaged_batch_is_named_with_its_offset_both_checksums_and_the_remedy(golden: Golden) -> None:
    (batch,) = captured("codec-none").batches
    damaged = bytearray(batch.data)
    damaged[-1] ^= 1
    with pytest.raises(Corrupt) as caught:
        check(batch._replace(data=memoryview(damaged)), "orders", 3)
    golden(caught.value)


def old_format(magic: int) -> Batch:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(0, timestamp=1, key=b"k", value=b"v")
    return next(batches(bytes(builder.build())))


def compacted(offset: int) -> Batch:
    return next(batch for batch in captured("compacted").batches if batch.base_offset == offset)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(compacted(0), id="two of three records are left"),
        pytest.param(compacted(3), id="two of three records are left, and a delete horizon"),
        pytest.param(compacted(6), id="a delete horizon"),
        pytest.param(compacted(7), id="no record is left"),
        pytest.param(captured("log-append-time").batches[0], id="log append times"),
        pytest.param(old_format(0), id="message format 0"),
        pytest.param(old_format(1), id="message format 1"),
    ],
)
def test_what_stands_against_copying_a_batch_as_bytes(batch: Batch, golden: Golden) -> None:
    golden(obstacle(batch))


@pytest.mark.parametrize(
    "batch",
    [captured("codec-none").batches[0], captured("codec-zstd").batches[0], compacted(8)],
    ids=["not compressed", "compressed", "compacted, and whole"],
)
def test_nothing_stands_against_copying_a_whole_batch_as_bytes(batch: Batch) -> None:
    assert obstacle(batch) is None


@given(made)
def test_nothing_stands_against_what_a_producer_made(batch: Batch) -> None:
    assert obstacle(batch) is None


# Under another producer


@pytest.mark.parametrize("topic", TOPICS)
def test_restamping_golden_batches_changes_only_what_it_documents(topic: str) -> None:
    for batch in captured(topic).batches:
        before = bytes(batch.data)
        after = bytes(restamped(batch, 77, 3, 12))
        changed = {"baseOffset": 0, "producerId": 77, "producerEpoch": 3, "baseSequence": 12}
        changed |= {"attributes": batch.attributes | 0x10, "crc": crc32c(after[21:])}
        assert header(after) == header(before) | changed
        assert after[HEADER_BYTES:] == before[HEADER_BYTES:]
        check(next(batches(after)), topic, 0)


@given(made, st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1))
@example(data([(None, None)]), 2**63 - 1, 2**15 - 1, 2**31 - 1)
def test_a_restamped_batch_is_the_new_producers_with_equal_records(
    batch: Batch, producer: int, epoch: int, sequence: int
) -> None:
    records = opened(batch.data)
    after = DefaultRecordBatch(bytes(restamped(batch, producer, epoch, sequence)))
    assert (after.producer_id, after.producer_epoch, after.base_sequence) == (producer, epoch, sequence)
    assert (after.base_offset, after.is_transactional, after.is_control_batch) == (0, True, False)
    assert opened(bytes(after._buffer)) == records


def test_a_fetched_buffer_is_restamped_where_it_lies() -> None:
    buffer = bytearray(captured("codec-none").answers[0].buffer)
    after = restamped(next(batches(buffer)), 1, 1, 1)
    assert buffer == after
    assert header(buffer)["producerId"] == 1


def test_a_buffer_that_may_not_be_written_stays_as_it_was() -> None:
    buffer = captured("codec-none").answers[0].buffer
    before = bytes(buffer)
    restamped(next(batches(buffer)), 1, 1, 1)
    assert buffer == before


def test_the_digest_of_batches_is_that_of_their_payloads_one_after_the_other() -> None:
    digest, payloads = 0, b""
    for topic in TOPICS:
        for batch in captured(topic).batches:
            digest = extended_digest(digest, batch)
            payloads += bytes(batch.payload)
    assert digest == crc32c(payloads)


@given(st.lists(made, max_size=4), st.integers(0, 4))
def test_a_digest_may_be_continued_at_any_point(log: list[Batch], cut: int) -> None:
    digest = 0
    for batch in log[:cut]:
        digest = extended_digest(digest, batch)
    for batch in log[cut:]:
        digest = extended_digest(digest, batch)
    assert digest == crc32c(b"".join(batch.payload for batch in log))


@given(made)
def test_restamping_leaves_the_digest_alone(batch: Batch) -> None:
    before = extended_digest(0, batch)
    assert extended_digest(0, next(batches(bytes(restamped(batch, 1, 1, 1))))) == before


def test_the_header_is_61_bytes() -> None:
    assert struct.calcsize(HEADER.format) == HEADER_BYTES == 61


@pytest.mark.parametrize(
    ("attributes", "base", "largest", "found"),
    [
        pytest.param(0, 1_000, 2_000, 1_000, id="the base"),
        pytest.param(0x08, 1_000, 2_000, 2_000, id="log append time"),
        pytest.param(0x40, 1_000, 2_000, 2_000, id="the base is a delete horizon"),
        pytest.param(0, 9_000, 2_000, 2_000, id="in a copy that does not say so"),
        pytest.param(0, -1, -1, -1, id="no timestamp"),
    ],
)
def test_the_first_timestamp_of_a_batch(attributes: int, base: int, largest: int, found: int) -> None:
    (batch,) = batches(HEADER.pack(0, 49, 0, 2, 0, attributes, 0, base, largest, -1, -1, -1, 1))
    assert batch.first_timestamp == found

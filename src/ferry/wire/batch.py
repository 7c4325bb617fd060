"""The record batch, format v2 (magic 2): read its header, judge it, give it another producer.

Source: Kafka's `DefaultRecordBatch` (KIP-98). Offsets and timestamps are int64, sizes are bytes; records stay unopened.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from ferry.errors import Corrupt
from ferry.wire.legacy import crc_of

HEADER = struct.Struct(">qiibIhiqqqhii")
"""baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
maxTimestamp, producerId, producerEpoch, baseSequence, recordsCount."""

HEADER_BYTES = HEADER.size  # 61
MAGIC = 2
BEFORE_LENGTH = 12  # baseOffset and batchLength are not counted in batchLength
_MAGIC_AT = 16  # the same place in all three formats
_CRC_AT = 17
_CHECKED_FROM = 21  # the checksum covers everything from attributes on
_PRODUCER_AT = 43
_OLD_ATTRIBUTES_AT = 17
_OLD_BYTES = 22  # of the smallest message: sizes of a key and a value that are null

_CODEC = 0x07
_TIMESTAMP_TYPE = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40

_BASE_OFFSET = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_CONTROL_KEY = struct.Struct(">hh")

COMMIT_MARKER = 1
ABORT_MARKER = 0
CLEANED_MARKER = -1
"""A control batch without a record: the log cleaner took the marker, after all records of its transaction."""

DAMAGED = "the source's copy is damaged; restore it from a replica, or pass it with ferry skip"
"""The end of a sentence about damage."""


def if_known(number: int) -> int | None:
    """Return a leader epoch or a timestamp of Kafka's, or None for -1, which is not known."""
    return None if number == -1 else number


class Batch(NamedTuple):
    """One whole batch as it is in a fetched buffer; `data` is a view, not a copy.

    In the formats v0 and v1 it is one message. A compressed message holds the offset of its last record, and not their
    number: `record_count` is 0, and `base_offset` too large.
    """

    data: memoryview
    base_offset: int
    next_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int

    @property
    def is_control(self) -> bool:
        """Whether it is a commit or abort marker, written by the broker; never copied."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether it was written inside a transaction of `producer_id`."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def codec(self) -> int:
        """The number of its compression; `ferry.model.Codec` names those that exist."""
        return self.attributes & _CODEC

    @property
    def has_log_append_time(self) -> bool:
        """Whether `max_timestamp` is the timestamp of all its records."""
        return bool(self.attributes & _TIMESTAMP_TYPE)

    @property
    def first_timestamp(self) -> int:
        """The first record's timestamp; the largest where the header does not have it (log append, delete horizon).

        A copy may have a delete horizon for a base without that bit: then the base is above the largest.
        """
        is_first = not self.attributes & (_TIMESTAMP_TYPE | _DELETE_HORIZON)
        return min(self.base_timestamp, self.max_timestamp) if is_first else self.max_timestamp

    @property
    def is_wrapper(self) -> bool:
        """Whether it is a compressed message of format v0 or v1, whose first offset is inside."""
        return self.magic != MAGIC and bool(self.codec)

    @property
    def payload(self) -> memoryview:
        """The records, compressed as stored."""
        return self.data[HEADER_BYTES:]


def batches(buffer: bytes | bytearray | memoryview) -> Iterator[Batch]:
    """Yield the whole batches in a fetched buffer, in order.

    A broker may cut the last batch short; that piece is left out and comes again with the next fetch. Messages of magic
    0 and 1 are yielded one by one.
    """
    view, at, end = memoryview(buffer), 0, len(buffer)
    while end - at > _MAGIC_AT:
        size = BEFORE_LENGTH + _SIZE.unpack_from(view, at + 8)[0]
        magic = view[at + _MAGIC_AT]
        if size < (HEADER_BYTES if magic == MAGIC else _OLD_BYTES) or at + size > end:
            return
        if magic == MAGIC:
            (base, _, epoch, _, crc, attributes, last_delta, base_time, max_time, producer, _, _, count) = (
                HEADER.unpack_from(view, at)
            )
            yield Batch(
                view[at : at + size], base, base + last_delta + 1, epoch, 2, crc, attributes, base_time, max_time,
                producer, count,
            )  # fmt: skip
        else:
            base = _BASE_OFFSET.unpack_from(view, at)[0]
            attributes = view[at + _OLD_ATTRIBUTES_AT] & (_CODEC | _TIMESTAMP_TYPE)
            yield Batch(view[at : at + size], base, base + 1, -1, magic, 0, attributes, -1, -1, -1, 0)
        at += size


def whole_batch_bytes(buffer: bytes | bytearray | memoryview) -> int:
    """Return the bytes that the first batch of a cut-short buffer needs in all; 0 when not even its length arrived."""
    if len(buffer) < BEFORE_LENGTH:
        return 0
    size: int = _SIZE.unpack_from(buffer, 8)[0]
    return BEFORE_LENGTH + size


def check(batch: Batch, topic: str, partition: int) -> None:
    """Raise Corrupt when the batch's CRC-32C (CRC-32 in the old formats) is not that of its bytes."""
    if batch.magic == MAGIC:
        named, found = batch.crc, crc32c(batch.data[_CHECKED_FROM:])
    else:
        named, found = crc_of(batch.data)
    if found != named:
        raise Corrupt(
            f"batch at offset {batch.base_offset} of {topic}-{partition} has checksum {found:#010x} where its header "
            f"says {named:#010x}: {DAMAGED} (--to {batch.next_offset}, if its header is correct)"
        )


def obstacle(batch: Batch) -> str | None:
    """Return why the batch must be encoded again; None when it can be copied as bytes.

    The broker refuses a produced batch whose count is not lastOffsetDelta + 1 (error 87), and a batch of another magic.
    It reads the timestamp type and the delete horizon from the attributes again, which would change timestamps.
    """
    if batch.magic != 2:
        return f"it has the old message format {batch.magic}"
    if batch.record_count != batch.next_offset - batch.base_offset:
        return f"compaction left {batch.record_count} of its {batch.next_offset - batch.base_offset} records"
    if batch.attributes & _TIMESTAMP_TYPE:
        return "its timestamps are log append times"
    if batch.attributes & _DELETE_HORIZON:
        return "its base timestamp is a delete horizon"
    return None


def restamped(
    batch: Batch, producer_id: int, producer_epoch: int, sequence: int, *, transactional: bool = True
) -> memoryview:
    """Return the batch as the producer would have written it, in a transaction or not; records are unchanged.

    Only baseOffset (0: the broker assigns), attributes (transactional), producer id, epoch, sequence and the CRC-32C
    change. They change in place if the memory is writable, as in a fetched buffer; otherwise in a copy.
    """
    out = memoryview(bytearray(batch.data)) if batch.data.readonly else batch.data
    attributes = batch.attributes | _TRANSACTIONAL if transactional else batch.attributes & ~_TRANSACTIONAL
    _BASE_OFFSET.pack_into(out, 0, 0)
    _ATTRIBUTES.pack_into(out, _CHECKED_FROM, attributes)
    _PRODUCER.pack_into(out, _PRODUCER_AT, producer_id, producer_epoch, sequence)
    _CRC.pack_into(out, _CRC_AT, crc32c(out[_CHECKED_FROM:]))
    return out


def extended_digest(digest: int, batch: Batch) -> int:
    """Return the CRC-32C of all record payloads so far, continued with this batch's (start with 0)."""
    return crc32c(batch.payload, digest)


def producer_of(batch: Batch) -> tuple[int, int, int]:
    """Return producer id, producer epoch and first sequence number of a batch; -1 each where it has none.

    Messages of the formats v0 and v1 have none.
    """
    if batch.magic != MAGIC:
        return -1, -1, -1
    return stamp_of(batch.data)


def stamp_of(data: bytes | memoryview) -> tuple[int, int, int]:
    """Return producer id, producer epoch and first sequence number from the bytes of a batch of the format v2."""
    number, epoch, sequence = _PRODUCER.unpack_from(data, _PRODUCER_AT)
    return number, epoch, sequence


def marker_type(batch: Batch) -> int:
    """Return COMMIT_MARKER or ABORT_MARKER of a control batch (`ControlRecordType`); other values end no transaction.

    CLEANED_MARKER is one of these. Raises Corrupt when its bytes are not a marker.
    """
    if not batch.record_count:
        return CLEANED_MARKER
    try:
        return _marker_type(batch)
    except (IndexError, struct.error) as error:
        raise Corrupt(
            f"the marker at offset {batch.base_offset} of producer {batch.producer_id} ends too early"
        ) from error


def _marker_type(batch: Batch) -> int:
    view, at = batch.data, HEADER_BYTES
    at = _after_varint(view, at) + 1  # record length, then attributes
    at = _after_varint(view, at)  # timestamp delta
    at = _after_varint(view, at)  # offset delta
    at = _after_varint(view, at)  # key length
    kind: int = _CONTROL_KEY.unpack_from(view, at)[1]
    return kind


def _after_varint(view: memoryview, at: int) -> int:
    while view[at] & 0x80:
        at += 1
    return at + 1

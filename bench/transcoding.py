"""Batches with holes, transcoded codec by codec in this process, without a broker."""

from __future__ import annotations

import struct

from data import Shape, values
from kafka.record.default_records import DefaultRecordBatchBuilder
from usage import Stopwatch, Usage

from ferry.model import Codec, Compression
from ferry.wire.batch import HEADER_BYTES, Batch, batches
from ferry.wire.codecs import Room, compressed
from ferry.wire.transcode import transcoded

BATCH_RECORDS = (16, 1_000)
"""So many records of 1 KiB are in a batch of Java's producers by default, and so many in a batch of tuned ones."""

_MOST = 64 << 20


def measure(codec: Codec, batch_records: int) -> str:
    """Return the name of a row of the table."""
    return f"{codec.name.lower()}, {batch_records:,} records a batch"


def all_codecs(shape: Shape) -> dict[str, Usage]:
    """Measure what it takes to transcode so many records, by codec and size of the batches."""
    return {
        measure(codec, batch_records): _written_anew(shape, codec, batch_records)
        for codec in Codec
        for batch_records in BATCH_RECORDS
    }


def _written_anew(shape: Shape, codec: Codec, batch_records: int) -> Usage:
    contents = values(shape.size)
    found = [_with_a_hole(contents[at : at + batch_records], codec) for at in range(0, len(contents), batch_records)]
    room, left = Room(_MOST), shape.records
    watch = Stopwatch()
    while left > 0:
        for batch in found:
            transcoded([batch], 0, place=shape.topic, compression=None, limit=None, room=room)
            left -= batch.record_count
            if left <= 0:
                break
    return watch.usage()


def _with_a_hole(contents: list[bytes], codec: Codec) -> Batch:
    """Make a batch that lost its second record, so that nearly all the others get another number."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for offset, value in enumerate(contents):
        if offset != 1:
            builder.append(offset, 1_700_000_000_000 + offset, b"%012d" % offset, value, [])
    plain = memoryview(builder.build())
    data = bytearray(plain[:HEADER_BYTES])
    data += compressed(Compression(codec=codec), plain[HEADER_BYTES:])
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, codec)
    (batch,) = batches(data)
    return batch

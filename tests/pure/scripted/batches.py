"""Batches in the logs of the scripted brokers: records as entries of a modelled log, and what a fetch returns of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from crc32c import crc32c
from kafka.protocol import consumer

from ferry.wire.batch import batches
from ferry.wire.records import open_batch
from tests.pure.protocol.broker import Log
from tests.pure.wire.logs import marker

_COUNTED, _IDENTITY = struct.Struct(">i"), struct.Struct(">qhi")
_CRC, _ATTRIBUTES, _MAX_TIMESTAMP = struct.Struct(">I"), struct.Struct(">h"), struct.Struct(">q")
_EPOCH_AT, _CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT, _LOG_APPEND_TIME = 12, 17, 21, 35, 0x08


GONE = object()
"""What a log has where compaction has removed a record."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the records of a batch that was produced."""

    batch: bytes
    index: int


def identity(batch: bytes) -> tuple[int, int, int]:
    """Producer id, producer epoch and first sequence number of a batch."""
    number, epoch, sequence = _IDENTITY.unpack_from(batch, 43)
    return number, epoch, sequence


def appended_at(batch: bytes, at_ms: int) -> bytes:
    """A batch as a topic with LogAppendTime has it."""
    out = bytearray(batch)
    (attributes,) = _ATTRIBUTES.unpack_from(out, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(out, _ATTRIBUTES_AT, attributes | _LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(out, _MAX_TIMESTAMP_AT, at_ms)
    _CRC.pack_into(out, _CRC_AT, crc32c(out[_ATTRIBUTES_AT:]))
    return bytes(out)


def led_in(batch: bytes, epoch: int) -> bytes:
    """A batch as the log of a leader in this epoch has it."""
    out = bytearray(batch)
    _COUNTED.pack_into(out, _EPOCH_AT, epoch)
    return bytes(out)


def parts(batch: bytes) -> list[Part]:
    """The records of a batch, one by one."""
    count = _COUNTED.unpack_from(batch, 23)[0] + 1
    return [Part(batch, index) for index in range(count)]


def row(payload: object) -> tuple[int, bytes, bytes | None]:
    """What `open_batch` reads of the record of an entry."""
    assert isinstance(payload, Part)
    return _rows(payload.batch)[payload.index]


@cache
def _rows(batch: bytes) -> list[tuple[int, bytes, bytes | None]]:
    return list(open_batch(next(batches(batch))))


def records(log: Log, start: int, end: int, most: int) -> bytes:
    """Whole batches from the one that holds `start` up to before `end`: at least one, then up to `most` bytes."""
    found: list[bytes] = []
    size, at = 0, start
    while at < end and (not found or size < most):
        entry = log.entries[at]
        if isinstance(entry.payload, Part):
            base = at - entry.payload.index
            found.append(struct.pack(">q", base) + entry.payload.batch[8:])
            at = base + _COUNTED.unpack_from(entry.payload.batch, 23)[0] + 1
        elif entry.payload is GONE:
            at += 1
            continue
        else:
            assert entry.committed is not None, "only markers have no batch"
            found.append(bytes(marker(at, entry.producer, commits=entry.committed).data))
            at += 1
        size += len(found[-1])
    return b"".join(found)


def aborted(log: Log, start: int, end: int) -> list[Any]:
    """The aborted transactions of offsets from `start` up to before `end`, as a fetch lists them."""
    kind = consumer.FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction
    found: list[Any] = []
    first: dict[int, int] = {}
    for offset, entry in enumerate(log.entries):
        if entry.committed is None and entry.producer >= 0:
            first.setdefault(entry.producer, offset)
        elif entry.committed is not None and entry.producer in first:
            begun = first.pop(entry.producer)
            if not entry.committed and offset >= start and begun < end:
                found.append(kind(producer_id=entry.producer, first_offset=begun))
    return found

"""Blocks of an offset map: what the receipts of a partition show about offsets, packed, about ten bytes a receipt.

A block is columns of int64, little-endian, deflated. Each column holds the difference to the usual value, so most
numbers are 0. Usually a receipt begins where the one before ended, and its records follow the marker of the one before.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

from ferry.errors import BadInput
from ferry.model import Receipt, Segment, TopicPartition

BLOCK_ROWS = 256
"""Receipts of a full block; a lookup unpacks them in less than a millisecond."""

MOST_BYTES = 32 << 20
"""The most bytes of a block or a directory, inflated."""
_ROW_COLUMNS = 6
_SEGMENT_COLUMNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptChain:
    """Receipts that follow each other: one copy of one source partition, by one lane and rule, that never went back.

    Within it source and target offsets ascend from receipt to receipt. Offset maps use all chains of a partition
    together. A comparison of records needs to know which rule made them.
    """

    lane: str
    source: TopicPartition
    target: TopicPartition
    source_topic_id: str
    target_topic_id: str
    source_cluster_id: str
    since: int
    transform: str = ""
    """Digest of the transform that made the records; empty: they are the source's bytes."""

    @classmethod
    def of(cls, receipt: Receipt) -> ReceiptChain:
        """Return the chain that a receipt belongs to."""
        return cls(
            lane=receipt.lane,
            source=receipt.source,
            target=receipt.target,
            source_topic_id=receipt.source_topic_id,
            target_topic_id=receipt.target_topic_id,
            source_cluster_id=receipt.source_cluster_id,
            since=receipt.since,
            transform=receipt.transform_digest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEntry:
    """What a receipt shows about offsets.

    `at` is the receipt's ledger offset; the other fields are those of Receipt.
    """

    at: int
    source: TopicPartition
    start: int
    end: int
    target_next: int | None
    generation: int
    segments: tuple[Segment, ...]
    target_topic_id: str = ""
    adopted: str = ""

    @classmethod
    def of(cls, receipt: Receipt, at: int) -> MapEntry:
        """Return the row of a receipt."""
        return cls(
            at=at,
            source=receipt.source,
            start=receipt.start,
            end=receipt.end,
            target_next=receipt.target_next,
            generation=receipt.generation,
            segments=receipt.segments,
            target_topic_id=receipt.target_topic_id,
            adopted=receipt.adopted,
        )


def pack(rows: Sequence[MapEntry]) -> bytes:
    """Pack the rows of one chain, in ledger order, as a block."""
    columns = [array("q") for _ in range(_ROW_COLUMNS + _SEGMENT_COLUMNS)]
    at = end = target_next = generation = 0
    for row in rows:
        source_at, target_at = row.start, target_next
        row_next = -1 if row.target_next is None else row.target_next
        for part in row.segments:
            numbers = (part.source_start - source_at, part.target_start - target_at, part.count)
            for column, number in zip(columns[_ROW_COLUMNS:], numbers, strict=True):
                column.append(number)
            source_at, target_at = part.source_end, part.target_end
        of_row = (
            row.at - at,
            row.start - end,
            row.end - source_at,
            row_next - target_at,
            row.generation - generation,
            len(row.segments),
        )
        for column, number in zip(columns, of_row, strict=False):
            column.append(number)
        at, end, target_next, generation = row.at, row.end, row_next, row.generation
    return packed_columns(columns)


def packed_columns(columns: Sequence[array[int]]) -> bytes:
    """Pack columns of int64 with their lengths before them, deflated."""
    flat = array("q", chain(map(len, columns), *columns))
    return zlib.compress(_little_endian(flat).tobytes(), 9)


def columns_of(data: bytes, count: int, where: str) -> list[array[int]]:
    """Return the columns that `packed_columns` packed. Raises BadInput when `data` is anything else."""
    flat = array("q")
    try:
        flat.frombytes(_inflated(data))
    except (zlib.error, ValueError) as error:
        raise BadInput(f"{where} is damaged: {error}") from error
    flat = _little_endian(flat)
    lengths = flat[:count].tolist()
    if len(flat) != count + sum(lengths) or len(lengths) != count:
        raise BadInput(f"{where} is damaged: it has {len(flat)} numbers")
    ends = list(accumulate(lengths, initial=count))
    return [flat[start:end] for start, end in pairwise(ends)]


def _inflated(data: bytes) -> bytes:
    """Return what was deflated. Raises ValueError when that is more than any block or directory has."""
    stream = zlib.decompressobj()
    found = stream.decompress(data, MOST_BYTES)
    if not stream.eof:
        raise ValueError("it ends too early" if len(found) < MOST_BYTES else f"it has more than {MOST_BYTES} bytes")
    return found


def unpack(data: bytes, of: ReceiptChain) -> list[MapEntry]:
    """Return the rows of a block. Raises BadInput when it is damaged."""
    where = f"a block of the offset map of {of.target} (lane {of.lane})"
    columns = columns_of(data, _ROW_COLUMNS + _SEGMENT_COLUMNS, where)
    ats, starts, tails, nexts, generations, numbers, sources, targets, counts = columns
    rows = []
    at = end = target_next = generation = taken = 0
    for index in range(len(ats)):
        start = end + starts[index]
        source_at, target_at = start, target_next
        segments = []
        for part in range(taken, taken + numbers[index]):
            segment = Segment(
                source_start=source_at + sources[part], target_start=target_at + targets[part], count=counts[part]
            )
            source_at, target_at = segment.source_end, segment.target_end
            segments.append(segment)
        taken += numbers[index]
        at += ats[index]
        end, target_next = source_at + tails[index], target_at + nexts[index]
        generation += generations[index]
        rows.append(
            MapEntry(
                at=at,
                source=of.source,
                start=start,
                end=end,
                target_next=None if target_next < 0 else target_next,
                generation=generation,
                segments=tuple(segments),
                target_topic_id=of.target_topic_id,
            )
        )
    return rows


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers = array("q", numbers)
        numbers.byteswap()
    return numbers


def cut(rows: Iterable[MapEntry], size: int = BLOCK_ROWS) -> tuple[list[list[MapEntry]], list[MapEntry]]:
    """Return the rows as full blocks, and the rest."""
    kept = list(rows)
    full = len(kept) - len(kept) % size
    return [kept[at : at + size] for at in range(0, full, size)], kept[full:]

"""How far source partitions were read, by receipts, and whether a log is still the one that was read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ferry.model import Receipt, TopicPartition


class Read(NamedTuple):
    """Up to where a source partition was read, and a leader epoch in which its log reached that; None: not known."""

    source: TopicPartition
    source_epoch: int | None
    end: int


def reads_of_units(lasts: Iterable[Receipt]) -> list[Read]:
    """Return what the last receipts of units show about the source's partitions.

    It is the furthest read in each leader epoch. The furthest of all is not enough: after a log was cut, one unit may
    have the old records and another one the new ones. Ascending by partition, and by what was read of it.
    """
    found: dict[tuple[TopicPartition, int | None], Read] = {}
    for last in lasts:
        for number, reached in enumerate(last.ends):
            epoch = last.epochs[number] if number < len(last.epochs) else None
            place = TopicPartition(last.source.topic, number)
            known = found.get((place, epoch))
            if reached and (known is None or known.end < reached):
                found[place, epoch] = Read(place, epoch, reached)

    def order(read: Read) -> tuple[TopicPartition, int, tuple[int, ...]]:
        return read.source, read.end, () if read.source_epoch is None else (read.source_epoch,)

    return sorted(found.values(), key=order)


def diverged(last: Receipt | Read, epoch_end: int) -> int | None:
    """Return where the source's log departs from what the last receipt copied; None when it does not.

    `epoch_end` is where the receipt's leader epoch now ends in the log, -1 when the log does not know it. This holds
    also where compaction left nothing before the receipt's end: its epoch is of a log that reached that end.
    """
    return epoch_end if 0 <= epoch_end < last.end else None

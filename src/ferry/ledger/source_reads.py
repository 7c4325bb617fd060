"""How far source partitions were read, as receipts say it, and whether a log still is the one that was read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ferry.model import Receipt, TopicPartition


class Read(NamedTuple):
    """Up to where a source partition was read, and a leader epoch in which its log reached that; -1: not known."""

    source: TopicPartition
    source_epoch: int
    end: int


def reads_of_units(lasts: Iterable[Receipt]) -> list[Read]:
    """What last receipts of units say of the source's partitions: what was read furthest in each leader epoch.

    Not only the furthest of all: of a log that was cut one unit may have the records of before, another those of now.
    Ascending by partition, and by what was read of it.
    """
    found: dict[tuple[TopicPartition, int], Read] = {}
    for last in lasts:
        for number, reached in enumerate(last.ends):
            epoch = last.epochs[number] if number < len(last.epochs) else -1
            place = TopicPartition(last.source.topic, number)
            known = found.get((place, epoch))
            if reached and (known is None or known.end < reached):
                found[place, epoch] = Read(place, epoch, reached)
    return sorted(found.values(), key=lambda read: (read.source, read.end, read.source_epoch))


def diverged(last: Receipt | Read, epoch_end: int) -> int | None:
    """Where the source's log parts from what the last receipt copied; None when it does not.

    `epoch_end` is where the log now says that the leader epoch of the receipt ended, -1 when it does not know. Also
    where compaction left nothing before the receipt's end, its epoch is of a log that reached that end.
    """
    return epoch_end if 0 <= epoch_end < last.end else None

"""Where a group continues in a topic whose records were repartitioned (units, ADR 39). Pure.

A group's offsets are by source partition. The copy is by target partition, and each of those has records of all source
partitions. So no offset divides what a group has read from what it has not.

The receipts show which source offsets each chunk has, and so which chunk is the first with anything that the group has
not read. The group continues there. It misses nothing, and reads some records again: how many at most is reported.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ferry.features.groups.rules.map_check import Cut
from ferry.ledger.units import is_next, of_partition
from ferry.model import Offsets, Receipt, TopicPartition


class GoesOn(NamedTuple):
    """Where a group continues in a target partition: at `offset`, and how many records at most it reads again.

    `again` is None if that cannot be counted: no receipt is left, or the log begins before the first one that is left.
    """

    offset: int
    again: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtPlace:
    """A target partition of a repartitioned topic.

    `receipts` are those that the ledger still has, without a hole (`connected`). `log_start` is where its log begins,
    `stands_at` where readers end, after the last marker.
    """

    receipts: Sequence[Receipt]
    log_start: int
    stands_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtMap:
    """Where groups of a source topic continue in its copy `target`. With a `trouble`, a sentence, nowhere.

    For `silent` target partitions that is not known, because they do not answer. `cuts` are, by number, the source
    partitions that have lost what was copied, each with the offset from which on.
    """

    target: str
    places: Mapping[TopicPartition, DealtPlace] = field(default_factory=dict)
    silent: frozenset[TopicPartition] = frozenset()
    trouble: str | None = None
    cuts: Mapping[int, Cut] = field(default_factory=dict)

    def trouble_at(self, read: Offsets) -> str | None:
        """Return why the map does not translate what a group has `read`, as a sentence; None when it does."""
        if self.trouble is not None:
            return self.trouble
        lost = (cut.why for number, cut in sorted(self.cuts.items()) if number < len(read) and read[number] >= cut.at)
        return next(lost, None)

    def goes_on(self, read: Offsets) -> dict[TopicPartition, GoesOn]:
        """Return where a group continues in each target partition that answers."""
        return {
            place: goes_on(read, one.receipts, log_start=one.log_start, stands_at=one.stands_at)
            for place, one in self.places.items()
        }

    def is_ahead(self, read: Offsets) -> bool:
        """Report whether a group has read more of some source partition than was copied."""
        lasts = [one.receipts[-1].ends if one.receipts else () for one in self.places.values()]
        return any(
            at > min((of_partition(last, number) for last in lasts), default=0)
            for number, at in enumerate(read)
            if at > 0
        )


def read_of(offsets: Mapping[TopicPartition, int], topics: Collection[str]) -> dict[str, Offsets]:
    """Return what a group has read of these source topics. A partition of which it has no offset counts as not read."""
    found: dict[str, dict[int, int]] = {}
    for place, offset in offsets.items():
        if place.topic in topics:
            found.setdefault(place.topic, {})[place.partition] = max(0, offset)
    return {
        topic: tuple(numbers.get(number, 0) for number in range(max(numbers) + 1)) for topic, numbers in found.items()
    }


def reads_on(read: Offsets, since: Offsets) -> bool:
    """Report whether a group that has `read` so much has read at least all of `since`.

    If so, it misses nothing after the offsets that were written for `since`.
    """
    return all(of_partition(read, number) >= at for number, at in enumerate(since))


def most_read(one: Offsets, other: Offsets) -> Offsets:
    """Return the least vector that contains both."""
    return tuple(
        max(of_partition(one, number), of_partition(other, number)) for number in range(max(len(one), len(other)))
    )


def goes_back_to(read: Offsets, receipts: Sequence[Receipt]) -> bool:
    """Report whether these receipts of a target partition, `connected`, go back to where a group is."""
    return bool(receipts) and all(of_partition(read, number) >= at for number, at in enumerate(receipts[0].starts))


def goes_on(read: Offsets, receipts: Sequence[Receipt], *, log_start: int, stands_at: int) -> GoesOn:
    """Return where a group that has `read` its source partitions so far continues in one target partition.

    `receipts` are those of the target partition that the ledger still has, in its order, `connected`; those of old runs
    are gone. `stands_at` is where readers of the target partition end now, after the last marker.
    """
    if not receipts:
        return GoesOn(stands_at if log_start == stands_at else log_start, 0 if log_start == stands_at else None)
    if not goes_back_to(read, receipts):
        # Unread records may be before the first receipt: where is not known.
        first = next((one.target_start for one in receipts if one.records), None)
        if first is None or log_start < first:
            return GoesOn(log_start, None)
    # Vectors ascend: the unread part begins with the first receipt that ends after what is read, and the part that is
    # read ends with the last one that begins before.
    begin, end = len(receipts), 0
    for number in range(len(receipts[-1].ends)):
        at_most = of_partition(read, number)
        begin = min(begin, bisect_right(receipts, at_most, key=partial(_reached, number)))
        end = max(end, bisect_left(receipts, at_most, key=partial(_begins, number)))
    last = len(receipts)
    at = next((n for n in range(begin, last) if receipts[n].records and _has_unread(read, receipts[n])), None)
    if at is None:
        return GoesOn(_caught_up(receipts, stands_at), 0)
    again = sum(min(one.records, _read_of(read, one)) for one in receipts[at:end] if one.records)
    return GoesOn(max(receipts[at].target_start or 0, log_start), again)


def _reached(number: int, one: Receipt) -> int:
    return of_partition(one.ends, number)


def _begins(number: int, one: Receipt) -> int:
    return of_partition(one.starts, number)


def connected(receipts: Sequence[Receipt]) -> Sequence[Receipt]:
    """Return the last receipts of a target partition between which none is missing."""
    first = 0
    for at in range(1, len(receipts)):
        if not is_next(receipts[at - 1].ends, receipts[at].starts):
            first = at
    return receipts[first:]


def _has_unread(read: Offsets, one: Receipt) -> bool:
    return any(of_partition(one.starts, n) < at and of_partition(read, n) < at for n, at in enumerate(one.ends))


def _read_of(read: Offsets, one: Receipt) -> int:
    """Count how many of a receipt's source offsets the group has read."""
    return sum(max(0, min(of_partition(read, n), at) - of_partition(one.starts, n)) for n, at in enumerate(one.ends))


def _caught_up(known: Sequence[Receipt], stands_at: int) -> int:
    """Return the offset after the last marker if nothing else is there: a group that has read everything has no lag."""
    behind = known[-1].target_next
    return stands_at if behind is None or stands_at == behind + 1 else behind

"""Where a group goes on in a topic whose records were dealt to other partitions (units, ADR 39). Pure.

A group's offsets are by source partition, the copy's by target partition, and records of all source partitions lie in
each of these. So there is no offset that divides what a group has read from what it has not. What there is: the
receipts say of each chunk which source offsets it has, and so which is the first chunk with anything that the group
has not read. It goes on there, misses nothing, and reads some again; how many at most is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ferry.model import UnitReceipt, Vector


class GoesOn(NamedTuple):
    """Where a group goes on in a target partition: at `offset`, and how many records at most it reads again.

    `again` None: as many as lie between the log's first offset and what the receipts tell of, which nobody counts.
    """

    offset: int
    again: int | None


def goes_on(read: Mapping[int, int], receipts: Sequence[UnitReceipt], *, log_start: int, stands_at: int) -> GoesOn:
    """Where a group that has `read` its source partitions up to these offsets goes on in one target partition.

    `receipts` are those of the target partition that the ledger still has, in its order; those of old runs are gone.
    A source partition of which the group has no offset counts as not read. `stands_at` is where readers of the target
    partition end now, behind the last marker.
    """
    known = _connected(receipts)
    if not known:
        return GoesOn(stands_at if log_start == stands_at else log_start, 0 if log_start == stands_at else None)
    if any(_behind(read, number, begin) for number, begin in enumerate(known[0].begins) if begin > 0):
        # What lies before the first receipt may have something that is not read: nobody tells where.
        first = next((one.target_start for one in known if one.records), None)
        if first is None or log_start < first:
            return GoesOn(log_start, None)
    again = 0
    at: int | None = None
    for one in known:
        if not one.records:
            continue
        if at is None and not _has_unread(read, one):
            continue
        at = one.target_start if at is None else at
        again += min(one.records, _read_of(read, one))
    if at is None:
        return GoesOn(_caught_up(known, stands_at), 0)
    return GoesOn(max(at, log_start), again)


def _connected(receipts: Sequence[UnitReceipt]) -> Sequence[UnitReceipt]:
    """The last receipts between which nothing is missing."""
    first = 0
    for at in range(1, len(receipts)):
        before, one = receipts[at - 1], receipts[at]
        width = max(len(before.reached), len(one.begins))
        if _widened(before.reached, width) != _widened(one.begins, width):
            first = at
    return receipts[first:]


def _widened(vector: Vector, width: int) -> Vector:
    return vector + (0,) * (width - len(vector))


def _behind(read: Mapping[int, int], number: int, offset: int) -> bool:
    """Whether the group has not read a source partition up to an offset."""
    return read.get(number, 0) < offset


def _has_unread(read: Mapping[int, int], one: UnitReceipt) -> bool:
    begins = _widened(one.begins, len(one.reached))
    return any(
        begin < reached and _behind(read, number, reached)
        for number, (begin, reached) in enumerate(zip(begins, one.reached, strict=True))
    )


def _read_of(read: Mapping[int, int], one: UnitReceipt) -> int:
    """How many of a receipt's source offsets the group has read."""
    begins = _widened(one.begins, len(one.reached))
    return sum(
        max(0, min(read.get(number, 0), reached) - begin)
        for number, (begin, reached) in enumerate(zip(begins, one.reached, strict=True))
    )


def _caught_up(known: Sequence[UnitReceipt], stands_at: int) -> int:
    """Behind the last marker, if nothing else lies there: so that who has read everything has no lag."""
    behind = known[-1].target_next
    return stands_at if stands_at == behind + 1 or behind < 0 else behind

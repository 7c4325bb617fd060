"""Where a predecessor really stopped: the end of its copy, compared record by record with the source's log.

A replicator without transactions commits its position after its data. After a crash the copy can be longer than the
position. The copy itself is reliable: its last records are searched in the source, and the source continues after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ferry.model.content import ContentDigest
from ferry.wire.batch import if_known

LOOKED_AT = 32
"""How many records of the copy's end are compared."""


class SeamState(StrEnum):
    """The position compared with the end of the copy."""

    CLEAN = "clean"
    """The record before the position is the copy's last: nothing is doubled, nothing lost."""
    AHEAD = "ahead"
    """The copy has records from the position on: they would be copied twice."""
    BEHIND = "behind"
    """The copy ends before the position: the records between are not on the target."""
    UNKNOWN = "unknown"
    """Retention, compaction or too many records prevent an answer, or nothing was compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """The end of a copy, compared with a position.

    `source_next` is the source offset after the copy's last record; None if that is not certain. `records` are those
    between it and the position, at most. They are doubled (`AHEAD`) or missing (`BEHIND`). With `CLEAN` they are
    doubled, if records after the position are equal in all fields to those before it.
    """

    state: SeamState
    source_next: int | None = None
    records: int = 0
    leader_epoch: int | None = None
    """The leader epoch of the source's last batch before the position; None: not known."""


NOT_LOOKED_AT = Seam(state=SeamState.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What was read of both sides of one partition, ascending by offset, without markers and aborted records.

    `source` are records around the position, and `source_whole` says whether its first is the log's first record.
    `target` are the last records of the copy; `target_empty`: there never were any.
    """

    source: Sequence[ContentDigest]
    target: Sequence[ContentDigest]
    source_whole: bool
    target_empty: bool = False


def places_behind(source: Sequence[ContentDigest], target: Sequence[ContentDigest]) -> list[int]:
    """Return the source offsets after the records that may be the copy's last.

    These are the records with the most equal ones before them. The list is empty if the copy's last record is not among
    the source's.
    """
    best = 0
    found: list[int] = []
    for at, record in enumerate(source):
        length = 0
        while length <= at and length < len(target) and source[at - length].same_as(target[-1 - length]):
            length += 1
        if length > best:
            best, found = length, []
        if length and length == best:
            found.append(record.offset + 1)
    return found


def seam(ends: Ends, position: int) -> Seam:
    """Compare the end of the copy with the position, which is the next source offset. Pure."""
    before = [record for record in ends.source if record.offset < position]
    epoch = if_known(before[-1].leader_epoch) if before else None

    def found(state: SeamState, source_next: int | None = None, records: int = 0) -> Seam:
        return Seam(state=state, source_next=source_next, records=records, leader_epoch=epoch)

    places = places_behind(ends.source, ends.target)
    behind = places[-1] if places else position
    doubled = sum(position <= record.offset < behind for record in ends.source)
    if (ends.target_empty and not before) or (before and before[-1].offset + 1 in places):
        return found(SeamState.CLEAN, position if len(places) < 2 else None, doubled)
    if ends.target_empty:
        return found(SeamState.BEHIND, before[0].offset if ends.source_whole else None, len(before))
    if not places:
        return found(SeamState.UNKNOWN)
    certain = places[0] if len(places) == 1 else None
    if behind > position:
        return found(SeamState.AHEAD, certain, doubled)
    return found(SeamState.BEHIND, certain, sum(places[0] <= record.offset < position for record in ends.source))

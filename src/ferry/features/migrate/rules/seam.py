"""Where a predecessor really stopped: the end of its copy, held against the source's log record by record.

A replicator without transactions commits its position behind its data: after a crash the copy is longer than the
position says. The copy itself does not lie. Its last records are looked for in the source, and behind them is where
the source goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ferry.model.content import ContentDigest

LOOKED_AT = 32
"""Records of the copy's end that are compared."""


class SeamState(StrEnum):
    """What the end of the copy says of the position."""

    CLEAN = "clean"
    """The record before the position is the copy's last: nothing is doubled, nothing lost."""
    AHEAD = "ahead"
    """The copy holds records from the position on: they would be copied twice."""
    BEHIND = "behind"
    """The copy ends before the position: what lies between is not on the target."""
    UNKNOWN = "unknown"
    """Retention, compaction or too many records stand between; or nobody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """The end of a copy against a position.

    `source_next` is the source offset behind the copy's last record, None when that is not certain. `records` are
    those between it and the position: at most so many are doubled (AHEAD), missing (BEHIND), or, where records behind
    the position are like those before it in everything, doubled (CLEAN).
    """

    state: SeamState
    source_next: int | None = None
    records: int = 0
    leader_epoch: int = -1
    """Of the source's last batch before the position; -1: not known."""


NOT_LOOKED_AT = Seam(state=SeamState.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What was read of both sides of one partition, ascending by offset, without markers and aborted records.

    `source` are records around the position, `source_whole` says whether its first is the log's first record, and
    `target` the last ones of the copy; `target_empty`: there never were any.
    """

    source: Sequence[ContentDigest]
    target: Sequence[ContentDigest]
    source_whole: bool
    target_empty: bool = False


def places_behind(source: Sequence[ContentDigest], target: Sequence[ContentDigest]) -> list[int]:
    """Source offsets behind the records that could be the copy's last: those with the longest agreement before them.

    None when the copy's last record is not among the source's.
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
    """How the end of the copy meets the position, the next source offset. Pure."""
    before = [record for record in ends.source if record.offset < position]
    epoch = before[-1].leader_epoch if before else -1

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

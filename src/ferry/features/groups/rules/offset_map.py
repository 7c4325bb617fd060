"""The offset map of a partition: which target offset a source offset translates to, exactly, and the way back."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self, TypeAlias

from ferry.ledger.history import Held, current_segments, holds_until
from ferry.model import Gap, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The record at the offset is at `offset` on the other side.

    For a reader at the copied end, `offset` is the end on the other side. With `read_all` it is the second.
    """

    word: ClassVar = "exact"
    offset: int
    read_all: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InGap:
    """Nothing was copied at the offset: it is a marker, or an aborted, deleted or skipped record.

    `offset` is the next copied record, or the copied end.
    """

    word: ClassVar = "gap"
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """The offset is after what was copied.

    `offset` is the copied end: a reader that begins there may read records again.
    """

    word: ClassVar = "ahead"
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The offset is before what was copied.

    `offset` is the first copied record, or the copied end if there is none. With `pruned`, the record was copied, but
    neither side has it any more: the ledger does not keep the receipts of offsets before `pruned`. `offset` is then the
    first record that is left.
    """

    word: ClassVar = "before"
    offset: int
    pruned: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximate:
    """Another replicator copied the record.

    `offset` is at or before the record: a reader loses nothing, and may read records again.
    """

    word: ClassVar = "approximate"
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart:
    """The side that is translated to has deleted the record. `offset` is its log start: a reader continues there."""

    word: ClassVar = "log-start"
    offset: int


Translated: TypeAlias = Exact | InGap | Ahead | Before | Approximate | LogStart


class OffsetMap:
    """The segments of a partition, ordered by the offsets that are translated: 24 bytes each.

    The map covers `[first, end)`. A reader at an offset from `end` to `last` has read all of it, and is at `other` on
    the other side.
    """

    __slots__ = ("_counts", "_froms", "_tos", "end", "first", "last", "other")

    def __init__(self, segments: Iterable[Segment], *, first: int, end: int, last: int, other: int) -> None:
        """Map `source_start` to `target_start` of segments that follow each other."""
        self._froms, self._tos, self._counts = array("q"), array("q"), array("q")
        for segment in segments:
            self._froms.append(segment.source_start)
            self._tos.append(segment.target_start)
            self._counts.append(segment.count)
        self.first = first
        self.end = end
        self.last = last
        self.other = other

    def __len__(self) -> int:
        """Count the segments."""
        return len(self._froms)

    @classmethod
    def forward(
        cls,
        receipts: Sequence[Held],
        gaps: Sequence[Gap] = (),
        stands_at: int | None = None,
        *,
        begins: int | None = None,
    ) -> Self:
        """Build the map from source to target.

        `receipts` are those of one target partition in ledger order, at least one. The lane's `gaps` about these
        receipts apply. `stands_at` is the target's last stable offset. If it is `target_next` + 1, only the last commit
        marker is in between. A reader that has read everything is then after the marker, with lag 0. `begins` is where
        the map begins when `receipts` are not all of them.
        """
        first, end = _covered(receipts, gaps)
        first = first if begins is None else begins
        return cls(
            current_segments(receipts, gaps), first=first, end=end, last=end, other=_read_up_to(receipts[-1], stands_at)
        )

    @classmethod
    def backward(cls, receipts: Sequence[Held], gaps: Sequence[Gap] = (), stands_at: int | None = None) -> Self:
        """Build the map from target to source.

        `receipts` are those of one target partition in ledger order, at least one. The lane's `gaps` about these
        receipts apply. `stands_at` is the target's last stable offset. If it is `target_next` + 1, only the last commit
        marker is in between: a reader after the marker has read everything, too.
        """
        segments = current_segments(receipts, gaps)
        _, other = _covered(receipts, gaps)
        end = receipts[-1].target_next or 0
        return cls(
            (Segment(source_start=s.target_start, target_start=s.source_start, count=s.count) for s in segments),
            first=segments[0].target_start if segments else end,
            end=end,
            last=_read_up_to(receipts[-1], stands_at),
            other=other,
        )

    def translate(self, offset: int) -> Translated:
        """Return where a reader continues on the other side that would read `offset` next on this one."""
        if offset < self.first:
            return Before(offset=self._tos[0] if self._tos else self.other)
        if offset >= self.end:
            return Exact(offset=self.other, read_all=True) if offset <= self.last else Ahead(offset=self.other)
        at = bisect_right(self._froms, offset) - 1
        if at >= 0 and offset < self._froms[at] + self._counts[at]:
            return Exact(offset=self._tos[at] + offset - self._froms[at])
        following = at + 1
        return InGap(offset=self._tos[following] if following < len(self) else self.other)


def _read_up_to(last: Held, stands_at: int | None) -> int:
    """Return where a reader of all that was copied is at the target: after the last commit marker, if it follows."""
    if last.target_next is None:
        return 0
    return last.target_next + (stands_at == last.target_next + 1 and not last.adopted)


def _covered(receipts: Sequence[Held], gaps: Sequence[Gap]) -> tuple[int, int]:
    """Return the source offsets `[first, end)` that receipts still hold; if none, both are where the lane went back to.

    An adopted receipt holds nothing itself. It shows how far another replicator copied.
    """
    held = [(receipt.start, holds_until(receipt, gaps)) for receipt in receipts]
    whole = [
        (start, end)
        for receipt, (start, end) in zip(receipts, held, strict=True)
        if start < end or (receipt.adopted and start == end)
    ]
    if not whole:
        return held[-1][1], held[-1][1]
    return min(start for start, _ in whole), max(end for _, end in whole)

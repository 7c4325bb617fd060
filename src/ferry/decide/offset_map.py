"""The offset map of a topic-partition: which target offset stands for a source offset, exactly, and the way back."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

from ferry.model import Receipt, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The record at the offset lies at `offset` on the other side; at the copied end: a reader stands there."""

    word: ClassVar = "exact"
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InGap:
    """Nothing of the offset was copied: a marker, or an aborted, deleted or skipped record.

    `offset` is the next copied record, or the copied end.
    """

    word: ClassVar = "gap"
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """The offset lies behind what is copied. `offset` is the copied end: a reader from there may read again."""

    word: ClassVar = "ahead"
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The offset lies before what was copied. `offset` is the first copied record, or the copied end without one."""

    word: ClassVar = "before"
    offset: int


Translated: TypeAlias = Exact | InGap | Ahead | Before


class OffsetMap:
    """The segments of a topic-partition, by the offsets that are looked up: 24 bytes each.

    It covers `[first, end)`. Who stands from `end` to `last` has read all of it, and is at `other` on the other side.
    """

    __slots__ = ("_counts", "_froms", "_tos", "end", "first", "last", "other")

    def __init__(self, segments: Iterable[Segment], *, first: int, end: int, last: int, other: int) -> None:
        """From `source_start` to `target_start` of segments that follow each other."""
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
        """How many segments it has."""
        return len(self._froms)

    @classmethod
    def forward(cls, receipts: Sequence[Receipt], stands_at: int | None = None) -> Self:
        """From source to target, of one target partition's receipts in ledger order, one at least.

        `stands_at` is the target's last stable offset. When that is `target_next` + 1, the last commit marker is all
        that lies between: who has read everything stands behind it, with lag 0.
        """
        segments, first = _history(receipts)
        last = receipts[-1]
        return cls(
            segments, first=first, end=last.end, last=last.end, other=_behind_marker(last.target_next, stands_at)
        )

    @classmethod
    def backward(cls, receipts: Sequence[Receipt], stands_at: int | None = None) -> Self:
        """From target to source, as `forward`."""
        segments, _ = _history(receipts)
        last = receipts[-1]
        return cls(
            (Segment(source_start=s.target_start, target_start=s.source_start, count=s.count) for s in segments),
            first=segments[0].target_start if segments else last.target_next,
            end=last.target_next,
            last=_behind_marker(last.target_next, stands_at),
            other=last.end,
        )

    def translate(self, offset: int) -> Translated:
        """Where a reader who would read `offset` next goes on, on the other side."""
        if offset < self.first:
            return Before(offset=self._tos[0] if self._tos else self.other)
        if offset >= self.end:
            return Exact(offset=self.other) if offset <= self.last else Ahead(offset=self.other)
        at = bisect_right(self._froms, offset) - 1
        if at >= 0 and offset < self._froms[at] + self._counts[at]:
            return Exact(offset=self._tos[at] + offset - self._froms[at])
        following = at + 1
        return InGap(offset=self._tos[following] if following < len(self) else self.other)


def _behind_marker(target_next: int, stands_at: int | None) -> int:
    return target_next + 1 if stands_at == target_next + 1 else target_next


def _history(receipts: Sequence[Receipt]) -> tuple[list[Segment], int]:
    """The segments that count today, and the first source offset that they and the gaps between them cover.

    A topic that was created again, on either side, begins anew: its earlier receipts are about other records. A
    receipt that begins before the end of those before it takes their place from there on.
    """
    segments: list[Segment] = []
    first = receipts[-1].start
    for receipt in receipts:
        if not _same_topics(receipt, receipts[-1]):
            continue
        while segments and segments[-1].source_end > receipt.start:
            cut = segments.pop()
            if cut.source_start < receipt.start:
                segments.append(replace(cut, count=receipt.start - cut.source_start))
        first = min(first, receipt.start)
        segments += receipt.segments
    return segments, first


def _same_topics(one: Receipt, other: Receipt) -> bool:
    """Whether two receipts are about the same two topics, as far as their ids are known."""
    pairs = (one.source_topic_id, other.source_topic_id), (one.target_topic_id, other.target_topic_id)
    return all(a == b or "" in {a, b} for a, b in pairs)

"""One range of a partition, compared record by record: what each reader shares, and a range whose records arrive.

Pure: it decides from records, and does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.features.verify.rules.by_content import ByContent
from ferry.features.verify.rules.compare_ranges import CompareRange, is_void
from ferry.features.verify.rules.differences import SOURCE, Comparison, OneSided, Places, See
from ferry.features.verify.rules.unaligned import unaligned
from ferry.model import NotCompared, NotComparedKind, RecordContent, RefusalKind

FAILURES = {
    RefusalKind.RETENTION_PASSED: "its records were deleted meanwhile: verify again",
    RefusalKind.SOURCE_TRUNCATED: "its log was cut meanwhile: verify again",
    RefusalKind.TOPIC_GONE: "the topic was deleted meanwhile",
    RefusalKind.TOPIC_RECREATED: "the topic was created again meanwhile",
    RefusalKind.NOT_AUTHORIZED: "this login may not read it: grant READ and DESCRIBE",
    RefusalKind.NO_LEADER: "its leader does not serve it: look at its brokers, then verify again",
    RefusalKind.CORRUPT: "a batch there is damaged: restore the partition from another replica",
}
"""What readers' failures mean in a comparison."""


def loss_of(kind: RefusalKind | None, side: int) -> NotComparedKind:
    """Return why the rest of a range is not compared, if a side cannot be read any more for a reason."""
    if kind is not RefusalKind.RETENTION_PASSED:
        return NotComparedKind.UNREADABLE
    return NotComparedKind.SOURCE_DELETED if side == SOURCE else NotComparedKind.TARGET_DELETED


def places_of(span: CompareRange) -> Places:
    """Return where each source record of a range is on the target; without a map it has none."""
    return Places(span.segments if span.by_content is None else ())


def comparison_of(span: CompareRange, places: Places, see: See, one_sided: OneSided | None) -> Comparison:
    """Make the comparison of a range: by its offset map, or by content where it has none."""
    ranges = span.source_range, span.target_range
    if span.by_content is None:
        return Comparison(span.source, span.target, places, *ranges, see, one_sided=one_sided)
    both = span.by_content
    return ByContent(span.source, span.target, *ranges, see, all_of=both, one_sided=one_sided)


def is_compared(span: CompareRange, places: Places, offset: int) -> bool:
    """Report whether a target record is compared: it is neither another flow's, nor taken back by the lane."""
    if places.back(offset) is not None:
        return True
    return not span.shared and not is_void(offset, span.void)


def left_of(span: CompareRange, comparison: Comparison, not_compared: NotCompared | None) -> list[NotCompared]:
    """Return what was not compared, and why: without a map also what is before and after what both have."""
    found = [] if not_compared is None else [not_compared]
    if isinstance(comparison, ByContent):
        found += unaligned(span, comparison)
    return found


def given_up(span: CompareRange, comparison: Comparison, message: str, why: NotComparedKind) -> NotCompared:
    """Make the entry for the rest of a range that could not be read, from what is settled on."""
    start, end = comparison.settled_until, span.source_range[1]
    return NotCompared(
        source=span.source,
        start=min(start, end),
        end=end,
        why=why,
        message=f"offsets {start} to {end - 1} of {span.source} could not be compared, {message}",
        asked=True,
    )


class RecordPair:
    """Both sides of a range while their records arrive one by one. `bytes` counts keys, values and headers of both.

    A reader passes on records in the order of their offsets, and says when a side has no more.
    """

    def __init__(self, span: CompareRange, see: See, one_sided: OneSided | None = None) -> None:
        """Take a range; `one_sided` is called for records that only one side has, in place of a difference."""
        self.span = span
        self.bytes = 0
        self.not_compared: NotCompared | None = None
        self._places = places_of(span)
        self.comparison = comparison_of(span, self._places, see, one_sided)
        self._ranges = span.source_range, span.target_range
        self._over = [False, False]
        self._next = [start for start, _ in self._ranges]
        for side, (start, end) in enumerate(self._ranges):
            if start >= end:
                self.end(side)

    @property
    def is_done(self) -> bool:
        """Report whether all is settled, or the rest cannot be compared."""
        return self.not_compared is not None or self.comparison.is_complete

    @property
    def left(self) -> list[NotCompared]:
        """Return what was not compared, and why."""
        return left_of(self.span, self.comparison, self.not_compared)

    def held_bytes(self, side: int) -> int:
        """Count the bytes of a side's records that wait for the other side."""
        return self.comparison.held_bytes(side)

    def is_over(self, side: int) -> bool:
        """Report whether a side (0 source, 1 target) has passed on all of its records."""
        return self._over[side]

    def lacks(self, side: int) -> bool:
        """Report whether the comparison needs more records of a side to continue."""
        return not self.is_done and not self._over[side] and self.comparison.wants(side)

    def take(self, side: int, records: Iterable[RecordContent]) -> None:
        """Take the next records of a side. One at or after the end of its range ends the side."""
        if self.is_done or self._over[side]:
            return
        end = self._ranges[side][1]
        counted, is_over = [], False
        for record in records:
            if record.offset >= end:
                is_over = True
                break
            if record.offset < self._next[side]:  # a client may return a record again that it has read ahead
                continue
            self._next[side] = record.offset + 1
            self.bytes += len(record.key or b"") + len(record.value or b"") + len(record.headers)
            if side == SOURCE or is_compared(self.span, self._places, record.offset):
                counted.append(record)
        self._over[side] = is_over
        self.comparison.feed(side, counted, done=is_over)

    def end(self, side: int) -> None:
        """Take the end of a side: no more of it comes."""
        if not self._over[side]:
            self._over[side] = True
            self.comparison.feed(side, (), done=True)

    def give_up(self, message: str, why: NotComparedKind = NotComparedKind.UNREADABLE) -> None:
        """End the comparison: the rest of the range cannot be read, and `message` says why."""
        if not self.is_done:
            self.not_compared = given_up(self.span, self.comparison, message, why)

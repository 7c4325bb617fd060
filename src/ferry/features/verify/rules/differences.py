"""Compares the source's records with the target's, through the offset map. Pure, and of bounded memory.

Records of both sides come in as they are read, in order. Those that agree are counted and forgotten. If they disagree,
the comparison waits for the next `WINDOW` records of both sides and reads them as the fewest changes (`alignment`). So
one lost record is one difference, although all records after it have other offsets than in the map.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from ferry.features.verify.rules.alignment import (
    WINDOW,
    Reading,
    Step,
    agreeing,
    cost,
    paired,
    read_by_content,
    read_by_offset,
)
from ferry.model import Difference, DifferenceKind, Range, RecordContent, RecordSample, Segment, TopicPartition

WINDOW_BYTES = 16 << 20
"""A window is full when its keys and values have this many bytes, however few records it has."""

MOST_DIFFERENCES = 1_000
"""Differences of one partition that are reported one by one; further ones are counted."""

SHOWN = 20
"""Records of each side of a difference that are kept to be shown."""

SOURCE, TARGET = 0, 1
"""The sides of a comparison."""

_FIELDS = (DifferenceKind.TIMESTAMP, DifferenceKind.KEY, DifferenceKind.VALUE, DifferenceKind.HEADERS)
"""In the order of a content's fields after the offset."""

See = Callable[[RecordContent], RecordSample]
OneSided = Callable[[int, RecordContent, int], None]
"""Gets the side (0 source, 1 target) that has a record, the record, and the offset it should have on the other."""


class Places:
    """Where each source record is on the target, by the segments of an offset map, ascending."""

    __slots__ = ("_froms", "_segments", "_tos")

    def __init__(self, segments: Sequence[Segment]) -> None:
        """Take the segments that `current_segments` returns."""
        self._segments = segments
        self._froms = [segment.source_start for segment in segments]
        self._tos = [segment.target_start for segment in segments]

    def of(self, offset: int) -> int | None:
        """Return the target offset of a source record; None when no segment has it."""
        at = bisect_right(self._froms, offset) - 1
        if at < 0 or offset >= self._segments[at].source_end:
            return None
        segment = self._segments[at]
        return segment.target_start + offset - segment.source_start

    def back(self, offset: int) -> int | None:
        """Return the source offset of a target record; None when no segment has it."""
        at = bisect_right(self._tos, offset) - 1
        if at < 0 or offset >= self._segments[at].target_end:
            return None
        segment = self._segments[at]
        return segment.source_start + offset - segment.target_start

    def names(self, start: int, end: int) -> bool:
        """Report whether a segment has any of the source offsets `[start, end)`."""
        at = bisect_left(self._froms, end) - 1
        return at >= 0 and self._segments[at].source_end > start

    def next_of(self, offset: int, default: int) -> int:
        """Return the target offset of the first record at or after a source offset; `default` after the last."""
        found = self.of(offset)
        if found is not None:
            return found
        at = bisect_left(self._froms, offset)
        return self._tos[at] if at < len(self._tos) else default

    def next_back(self, offset: int, default: int) -> int:
        """Return the source offset of the first record at or after a target offset; `default` after the last."""
        found = self.back(offset)
        if found is not None:
            return found
        at = bisect_left(self._tos, offset)
        return self._froms[at] if at < len(self._froms) else default


class Comparison:
    """One range of a partition while its records come in. `records` counts those of the source that were compared."""

    window_bytes = WINDOW_BYTES

    def __init__(
        self,
        source: TopicPartition,
        target: TopicPartition,
        places: Places,
        source_range: Range,
        target_range: Range,
        see: See,
        *,
        one_sided: OneSided | None = None,
    ) -> None:
        """Take the ranges. `one_sided` is called for records that only one side has, in place of a difference.

        With it, records are not searched for at other offsets than the map's: so compacted topics are compared.
        """
        self.records = 0
        self.differences: list[Difference] = []
        self.more = 0
        """Differences in addition to those that are reported."""
        self._source, self._target = source, target
        self._places = places
        self._see = see
        self._one_sided = one_sided
        self._rows: tuple[deque[RecordContent], deque[RecordContent]] = (deque(), deque())
        self._bytes = [0, 0]
        self._done = [False, False]
        self._shift = 0
        self._next_source, self._next_target = source_range[0], target_range[0]
        self._goes_on = False  # nothing that agrees in its place is after the last difference
        self._by_map = True

    @property
    def is_idle(self) -> bool:
        """Report whether everything that came in is settled, and is where the map says."""
        return not self._rows[0] and not self._rows[1] and self._shift == 0

    def held_bytes(self, side: int) -> int:
        """Count the bytes of keys, values and headers of a side that wait for records of the other one."""
        return self._bytes[side]

    @property
    def settled_until(self) -> int:
        """Return the source offset before which everything is settled."""
        return self._next_source

    @property
    def is_complete(self) -> bool:
        """Report whether both sides have come to their ends, and all is settled."""
        return all(self._done) and not any(self._rows)

    def wants(self, side: int) -> bool:
        """Report whether more records of a side (0 source, 1 target) are needed to settle those that wait."""
        return not self._done[side] and not self._is_full(side)

    def agreed(self, count: int, source_next: int, target_next: int) -> None:
        """Count records that were found equal, in their places, by other means: only while `is_idle`."""
        self.records += count
        self._next_source, self._next_target = source_next, target_next
        self._goes_on = False

    def feed(self, side: int, records: Iterable[RecordContent], *, done: bool = False) -> None:
        """Take the next records of a side (0 source, 1 target); `done`: they are the last."""
        row = self._rows[side]
        for content in records:
            row.append(content)
            self._bytes[side] += _size(content)
        self._done[side] = self._done[side] or done
        self._settle()

    def _is_full(self, side: int) -> bool:
        return len(self._rows[side]) >= WINDOW or self._bytes[side] >= WINDOW_BYTES

    def _settle(self) -> None:
        sources, targets = self._rows
        while True:
            while sources and targets and sources[0][1:] == targets[0][1:]:
                if self._place(sources[0].offset) != targets[0].offset:
                    break
                self._match(sources[0], targets[0])
                self._drop(0, 1)
                self._drop(1, 1)
            if not sources and not targets:
                return
            if not all(self._done[side] or self._is_full(side) for side in (0, 1)):
                return
            self._disagree()

    def _drop(self, side: int, count: int) -> None:
        row = self._rows[side]
        for _ in range(count):
            self._bytes[side] -= _size(row.popleft())

    def _place(self, offset: int) -> int | None:
        found = self._places.of(offset)
        return None if found is None else found + self._shift

    def _disagree(self) -> None:
        """Settle what can be settled of the two rows, which begin with a disagreement."""
        sources, targets = (list(islice(row, WINDOW)) for row in self._rows)
        source_ends, target_ends = (
            done and len(row) <= WINDOW for done, row in zip(self._done, self._rows, strict=True)
        )
        reading = by_offset = read_by_offset(sources, targets, self._place, (source_ends, target_ends))
        if self._one_sided is None and cost(by_offset.steps, self._place) > 1:
            if by_offset.closed:
                sources, targets = sources[: by_offset.sources], targets[: by_offset.targets]
            reading = self._cheaper(by_offset, sources, targets)
        self._by_map = reading is by_offset and not self._shift
        self._tell(reading)
        self._drop(0, reading.sources)
        self._drop(1, reading.targets)
        if not reading.closed:
            self._shift = self._shift_behind(reading)

    def _cheaper(
        self, by_offset: Reading, sources: Sequence[RecordContent], targets: Sequence[RecordContent]
    ) -> Reading:
        """Return the reading by contents if it is the better one, else that by offsets."""
        by_content = read_by_content(sources, targets, final=by_offset.closed)
        if by_content is None or not by_content.steps:
            return by_offset
        by_content = by_content._replace(steps=paired(by_content.steps))
        return min(by_offset, by_content, key=lambda one: (cost(one.steps, self._place), -agreeing(one.steps)))

    def _shift_behind(self, reading: Reading) -> int:
        """Return by how much the records after a reading are shifted, as far as its last agreeing record shows it."""
        for source, target in reversed(reading.steps):
            if source is not None and target is not None and source[1:] == target[1:]:
                place = self._places.of(source.offset)
                return self._shift if place is None else target.offset - place
        return self._shift

    # What is reported.

    def _tell(self, reading: Reading) -> None:
        """Report a reading, cluster by cluster. A cluster is between records that agree in their places."""
        cluster: list[Step] = []
        for step in reading.steps:
            if step.agrees and step.source and step.target and self._place(step.source.offset) == step.target.offset:
                self._tell_cluster(cluster)
                cluster = []
                self._match(step.source, step.target)
            else:
                cluster.append(step)
        self._tell_cluster(cluster)

    def _tell_cluster(self, cluster: Sequence[Step]) -> None:
        sources = [step.source for step in cluster if step.source is not None]
        targets = [step.target for step in cluster if step.target is not None]
        if (
            len(sources) > 1
            and not all(step.agrees for step in cluster)
            and Counter(one[1:] for one in sources) == Counter(one[1:] for one in targets)
        ):
            self._note(DifferenceKind.ORDER, sources, targets)
            return
        for source, target in cluster:
            if source is not None and target is not None:
                self._tell_pair(source, target)
            elif self._one_sided is None or not self._hand_on(source, target):
                kind = DifferenceKind.MISSING if target is None else DifferenceKind.EXTRA
                self._note(kind, [source] if source else [], [target] if target else [])

    def _tell_pair(self, source: RecordContent, target: RecordContent) -> None:
        kinds = [kind for kind, one, other in zip(_FIELDS, source[1:], target[1:], strict=True) if one != other]
        if not kinds:
            self._match(source, target)
        else:
            self._note(kinds[0] if len(kinds) == 1 else DifferenceKind.RECORD, [source], [target])

    def _hand_on(self, source: RecordContent | None, target: RecordContent | None) -> bool:
        """Pass a record to `one_sided`; False when compaction cannot be why it has no counterpart."""
        content, side = (source, 0) if source is not None else (target, 1)
        if content is None or content.key is None or self._one_sided is None:
            return False
        place = (self._places.back if side else self._places.of)(content.offset)
        if place is None:
            return False
        self.records += 1 - side
        self._one_sided(side, content, place)
        return True

    def _match(self, source: RecordContent, target: RecordContent) -> None:
        if self._places.of(source.offset) == target.offset:
            self.records += 1
            self._next_source, self._next_target = source.offset + 1, target.offset + 1
            self._goes_on = False
        else:
            self._note(DifferenceKind.DISPLACED, [source], [target])

    def _note(self, kind: DifferenceKind, here: Sequence[RecordContent], there: Sequence[RecordContent]) -> None:
        """Add a difference, or extend the last one if it continues."""
        self.records += len(here)
        self._add(kind, *self._ranges(here, there), here, there)

    def _ranges(self, here: Sequence[RecordContent], there: Sequence[RecordContent]) -> tuple[Range, Range]:
        """Return the offsets of some records of both sides, or where they would be on a side that has none of them."""
        source_range = (here[0].offset, here[-1].offset + 1) if here else (self._nowhere_at_source(there[0]),) * 2
        target_range = (there[0].offset, there[-1].offset + 1) if there else (self._nowhere_at_target(here[0]),) * 2
        return source_range, target_range

    def _add(
        self,
        kind: DifferenceKind,
        source_range: Range,
        target_range: Range,
        here: Sequence[RecordContent],
        there: Sequence[RecordContent],
    ) -> None:
        self._next_source = max(self._next_source, source_range[1])
        self._next_target = max(self._next_target, target_range[1])
        last = self.differences[-1] if self.differences and self._goes_on else None
        self._goes_on = True
        if last is not None and last.kind is kind and kind is not DifferenceKind.ORDER and not self.more:
            self.differences[-1] = replace(
                last,
                source_range=_grown(last.source_range, source_range),
                target_range=_grown(last.target_range, target_range),
                source_records=self._seen(last.source_records, here),
                target_records=self._seen(last.target_records, there),
            )
        elif len(self.differences) == MOST_DIFFERENCES:
            self.more += 1
        else:
            self.differences.append(
                Difference(
                    source=self._source,
                    target=self._target,
                    source_range=source_range,
                    target_range=target_range,
                    kind=kind,
                    source_records=self._seen((), here),
                    target_records=self._seen((), there),
                )
            )

    def _seen(self, before: tuple[RecordSample, ...], more: Sequence[RecordContent]) -> tuple[RecordSample, ...]:
        return before + tuple(self._see(content) for content in more[: max(0, SHOWN - len(before))])

    def _nowhere_at_target(self, source: RecordContent) -> int:
        place = self._places.of(source.offset) if self._by_map else None
        return self._next_target if place is None else place

    def _nowhere_at_source(self, target: RecordContent) -> int:
        place = self._places.back(target.offset) if self._by_map else None
        return self._next_source if place is None else place


def _grown(first: Range, more: Range) -> Range:
    """Return a range with what follows it; an empty one adds nothing."""
    return (first[0], more[1]) if more[0] < more[1] else first


def _size(content: RecordContent) -> int:
    return len(content.key or b"") + len(content.value or b"") + len(content.headers)

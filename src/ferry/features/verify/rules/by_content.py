"""Compares two logs between which there is no offset map: what a mirror without a ledger has copied.

Records belong together when their contents are equal, in the order of both logs; offsets mean nothing. So batches may
be cut differently, codecs changed, and markers be at any place.

A mirror that delivers at least once repeats records when it starts again. A range that the target has again is
reported as DUPLICATE, as far back as a `History` reaches. Where the logs part, the next place where they agree again is
searched for, within `LOOKAHEAD` records.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ferry.features.verify.rules.alignment import CALM, WINDOW, Step, alike, extra_late, paired, read_by_content
from ferry.features.verify.rules.differences import Comparison, OneSided, Places, See
from ferry.features.verify.rules.history import History
from ferry.features.verify.rules.resync import common
from ferry.model import DifferenceKind, Range, RecordContent, TopicPartition

LOOKAHEAD = 20_000
"""So many records of a side are searched for the place where both agree again."""

LOOKAHEAD_BYTES = 64 << 20
_PAIRED = 1_000
"""Up to so many records on both sides are checked for which may have become which."""

_NEAR = 128
"""So few records of a side are aligned if more are too far apart."""


class ByContent(Comparison):
    """The comparison of one range of a partition in which no offset says which records belong together."""

    def __init__(
        self,
        source: TopicPartition,
        target: TopicPartition,
        source_range: Range,
        target_range: Range,
        see: See,
        *,
        all_of: tuple[bool, bool] = (True, True),
        one_sided: OneSided | None = None,
    ) -> None:
        """Take the ranges.

        `all_of` says of each side (source, target) whether the other should have its records from the start. If not,
        those before the first record that both have are left out. `one_sided` is called for records that only one side
        has, in place of a difference.
        """
        super().__init__(source, target, Places(()), source_range, target_range, see, one_sided=one_sided)
        self.before: tuple[Range | None, Range | None] = (None, None)
        """What is before the first common record and was left out, of each side."""
        self.behind: int | None = None
        """The source offset from which on nothing is on the target yet."""
        self.parted: int | None = None
        """The source offset from which on the two have nothing in common."""
        self._all_of = all_of
        self._begun = False
        self._by_map = False
        self._history = History()
        self._again: int | None = None
        self._limit, self._limit_bytes = WINDOW, self.window_bytes

    @property
    def is_complete(self) -> bool:
        """Report whether both sides have come to their ends, and all is settled, or the comparison cannot continue."""
        return self.parted is not None or self.behind is not None or super().is_complete

    def wants(self, side: int) -> bool:
        """Report whether more records of a side (0 source, 1 target) are needed to settle those that wait."""
        return not self.is_complete and super().wants(side)

    def _is_full(self, side: int) -> bool:
        return len(self._rows[side]) >= self._limit or self._bytes[side] >= self._limit_bytes

    def _settle(self) -> None:
        sources, targets = self._rows
        while self.parted is None and self.behind is None:
            while sources and targets and sources[0][1:] == targets[0][1:]:
                self._again = None
                self._match(sources[0], targets[0])
                self._drop(0, 1)
                self._drop(1, 1)
            if targets and self._goes_on_again(targets[0]):
                self._drop(1, 1)
                continue
            if not sources and not targets:
                return
            if not all(self._done[side] or self._is_full(side) for side in (0, 1)):
                return
            if targets and self._begins_again(targets[0]):
                continue
            if not self._disagree_by_content():
                return

    # Repetitions.

    def _goes_on_again(self, target: RecordContent) -> bool:
        """Take the next record of a range that the target has again. Return whether it was one."""
        place = self._again
        if place is None or not self._history.holds(place, target):
            self._again = None
            return False
        offset = self._history.offset(place)
        self._add(DifferenceKind.DUPLICATE, (offset, offset + 1), (target.offset, target.offset + 1), (), (target,))
        self._again = place + 1
        return True

    def _begins_again(self, target: RecordContent) -> bool:
        """Report whether the target repeats from here on what it had.

        It does not if the source is about to have the record.
        """
        place = self._history.find(target)
        if place is None or any(target[1:] == source[1:] for source in islice(self._rows[0], WINDOW)):
            return False
        self._again = place
        self._goes_on = False
        return True

    # Disagreements.

    def _disagree_by_content(self) -> bool:
        """Settle some of the two rows, which begin with a disagreement; False when more must come first."""
        whole = list(self._rows[0]), list(self._rows[1])
        if not whole[1]:  # the target has no more
            self.behind = whole[0][0].offset
            self._clear()
            return False
        if not self._begun:
            return self._begin(*whole)
        sources, targets = whole[0][:WINDOW], whole[1][:WINDOW]
        final = all(self._done) and all(len(row) <= WINDOW for row in whole)
        reading = read_by_content(sources, targets, final=final)
        if reading is None or not reading.steps:  # much is different: what is near may be aligned even so
            reading, final = read_by_content(sources[:_NEAR], targets[:_NEAR], final=False), False
        if reading is not None and reading.steps:
            steps = extra_late(reading.steps, self._had)
            if final:
                steps = self._without_tail(steps)
            self._tell_steps(self._paired(steps))
            if self.behind is None:
                self._drop(0, reading.sources)
                self._drop(1, reading.targets)
            else:
                self._clear()
            return True
        return self._look_further(*whole)

    def _without_tail(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps up to the last record of the target: what the source has after it may not be copied yet."""
        last = max((at for at, step in enumerate(steps) if step.target is not None), default=-1)
        tail = [step.source for step in steps[last + 1 :] if step.source is not None]
        if tail and steps[last].source is not None:
            self.behind = tail[0].offset
            return list(steps[: last + 1])
        return list(steps)

    def _look_further(self, sources: Sequence[RecordContent], targets: Sequence[RecordContent]) -> bool:
        """Find the place from which on both agree again, however much is between."""
        if not self._has_looked():
            return False
        found = common(sources, targets)
        if found is None:
            if self._done[0] and not sources:
                found = (0, len(targets))
            elif all(alike(*pair) for pair in zip(sources[:CALM], targets[:CALM], strict=False)) and sources:
                count = min(len(sources), len(targets), WINDOW)  # altered, one by one
                self._tell_steps([Step(*pair) for pair in zip(sources[:count], targets[:count], strict=True)])
                self._drop(0, count)
                self._drop(1, count)
                return True
            else:
                self.parted = sources[0].offset if sources else targets[0].offset
                self._clear()
                return False
        lost, more = found
        steps = [Step(one, None) for one in sources[:lost]] + [Step(None, one) for one in targets[:more]]
        follow = 0  # of what agrees again, as much as may belong before what the target has more
        while follow < min(more, len(sources) - lost, len(targets) - more):
            step = Step(sources[lost + follow], targets[more + follow])
            if not step.agrees:
                break
            steps.append(step)
            follow += 1
        steps = extra_late(steps, self._had)
        self._tell_steps(self._paired(steps) if max(lost, more) <= _PAIRED else steps)
        self._drop(0, lost + follow)
        self._drop(1, more + follow)
        self._limit, self._limit_bytes = WINDOW, self.window_bytes
        return True

    def _begin(self, sources: Sequence[RecordContent], targets: Sequence[RecordContent]) -> bool:
        """Find the first record that both have."""
        if not self._has_looked():
            return False
        found = common(sources, targets)
        if found is None and all(self._all_of):
            self._begun = True
            return True
        if found is None:
            self.parted = sources[0].offset if sources else self._next_source
            self._clear()
            return False
        self._begun = True
        self._limit, self._limit_bytes = WINDOW, self.window_bytes
        left: list[Range | None] = [None, None]
        for side, (row, count) in enumerate(((sources, found[0]), (targets, found[1]))):
            if count and not self._all_of[side]:
                left[side] = row[0].offset, row[count - 1].offset + 1
                self._drop(side, count)
        self.before = left[0], left[1]
        return True

    def _has_looked(self) -> bool:
        """Report whether both rows have as many records as are searched."""
        self._limit, self._limit_bytes = LOOKAHEAD, LOOKAHEAD_BYTES
        return all(self._done[side] or self._is_full(side) for side in (0, 1))

    def _clear(self) -> None:
        for side in (0, 1):
            self._drop(side, len(self._rows[side]))

    # What is reported.

    def _paired(self, steps: Sequence[Step]) -> list[Step]:
        """Pair missing and extra records that they may have become, but not with records that the target has again."""
        out: list[Step] = []
        new: list[Step] = []
        here: set[tuple[object, ...]] = set()
        for step in steps:
            if step.source is None and step.target is not None and self._has_been(step.target, here):
                out += [*paired(new), step]
                new = []
                continue
            new.append(step)
            if step.agrees and step.source is not None:
                here.add(step.source[1:])
        return out + paired(new)

    def _has_been(self, target: RecordContent, here: set[tuple[object, ...]]) -> bool:
        return target[1:] in here or self._had(target)

    def _had(self, target: RecordContent) -> bool:
        """Report whether both sides had the record before."""
        return self._history.find(target) is not None

    def _tell_steps(self, steps: Sequence[Step]) -> None:
        """Report steps, cluster by cluster. A cluster is between records that agree with the same shift."""
        cluster: list[Step] = []
        shift = calm = 0
        for step in steps:
            calm = calm + 1 if step.agrees else 0
            if calm >= CALM:  # what was before is over, and both continue as many records apart as they are
                shift = 0
            if step.agrees and step.source and step.target and not shift:
                self._tell_cluster(cluster)
                cluster = []
                self._match(step.source, step.target)
            else:
                shift += (step.target is not None) - (step.source is not None)
                cluster.append(step)
        self._tell_cluster(cluster)

    def _match(self, source: RecordContent, target: RecordContent) -> None:
        self._begun = True
        self.records += 1
        self._next_source, self._next_target = source.offset + 1, target.offset + 1
        self._goes_on = False
        self._history.add(source)

    def _hand_on(self, source: RecordContent | None, target: RecordContent | None) -> bool:
        content, side = (source, 0) if source is not None else (target, 1)
        if content is None or content.key is None or self._one_sided is None:
            return False
        self.records += 1 - side
        self._one_sided(side, content, self._next_source if side else self._next_target)
        return True

    def _note(self, kind: DifferenceKind, here: Sequence[RecordContent], there: Sequence[RecordContent]) -> None:
        place = self._history.find(there[0]) if kind is DifferenceKind.EXTRA else None
        if place is None:
            super()._note(kind, here, there)
            return
        offset = self._history.offset(place)
        self._add(DifferenceKind.DUPLICATE, (offset, offset + 1), (there[0].offset, there[0].offset + 1), (), there)

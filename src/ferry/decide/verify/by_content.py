"""Compare two logs between which there is no offset map: what a mirror without a ledger has copied.

Records belong together when their contents are equal, in the order of both logs; offsets mean nothing. So batches may
be cut anew, codecs changed, and markers lie wherever they like. A mirror that delivers at least once repeats records
when it starts anew: a stretch that the target has again is told as DUPLICATE, as far back as `HISTORY` records reach.
Where both logs part they are searched for the next place where they agree again, within `LOOKAHEAD` records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from ferry.decide.verify.alignment import CALM, WINDOW, Step, alike, paired, read_by_content
from ferry.decide.verify.differences import Comparison, OneSided, Places, See
from ferry.decide.verify.stretches import Stretch
from ferry.model import Content, DifferenceKind, NotCompared, NotComparedKind, Range, TopicPartition

LOOKAHEAD = 20_000
"""Records of a side that are searched for where both agree again."""

LOOKAHEAD_BYTES = 64 << 20
HISTORY = 200_000
"""Records that agreed which are known by a number each, to tell a repetition from what is new."""

_PAIRED = 1_000
"""Of so many records on both sides it is asked which may have become which."""

_NEAR = 128
"""So few records of a side are aligned where more are too far apart."""

_MOST_PLACES = 16
"""Where a content is found so often, further places are not tried."""


class History:
    """The last records that agreed, by what they hold."""

    __slots__ = ("_first", "_hashes", "_offsets", "_places")

    def __init__(self) -> None:
        self._hashes: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self._first = 0

    @property
    def end(self) -> int:
        """The place behind the last one."""
        return self._first + len(self._hashes)

    def add(self, content: Content) -> None:
        """The next record."""
        place, name = self.end, hash(content[1:])
        self._hashes[place], self._offsets[place] = name, content.offset
        self._places[name] = place
        if len(self._hashes) > HISTORY:
            old = self._hashes.pop(self._first)
            del self._offsets[self._first]
            if self._places.get(old) == self._first:
                del self._places[old]
            self._first += 1

    def find(self, content: Content) -> int | None:
        """The last place of a record; None when it was not there, or too long ago."""
        return self._places.get(hash(content[1:]))

    def holds(self, place: int, content: Content) -> bool:
        """Whether the record at a place is this one."""
        return self._hashes.get(place) == hash(content[1:])

    def offset(self, place: int) -> int:
        """The source offset of the record at a place."""
        return self._offsets[place]


class ByContent(Comparison):
    """One stretch of a partition; as Comparison, but that no offset says which records belong together."""

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
        """`all_of` says of each side (source, target) whether the other should have its records from the first on.

        If not, those before the first record that both have are left out. `one_sided` as of Comparison.
        """
        super().__init__(source, target, Places(()), source_range, target_range, see, one_sided=one_sided)
        self.before: tuple[Range | None, Range | None] = (None, None)
        """What lies before the first common record and was left out, of each side."""
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
        """As of Comparison; also when there is no going on."""
        return self.parted is not None or self.behind is not None or super().is_complete

    def wants(self, side: int) -> bool:
        """As of Comparison."""
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

    def _goes_on_again(self, target: Content) -> bool:
        """Take the next record of a stretch that the target has again."""
        place = self._again
        if place is None or not self._history.holds(place, target):
            self._again = None
            return False
        offset = self._history.offset(place)
        self._add(DifferenceKind.DUPLICATE, (offset, offset + 1), (target.offset, target.offset + 1), (), (target,))
        self._again = place + 1
        return True

    def _begins_again(self, target: Content) -> bool:
        """Whether the target repeats from here on what it had; not where the record is about to come at the source."""
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
        if reading is None or not reading.steps:  # much is different: what is near may be understood all the same
            reading, final = read_by_content(sources[:_NEAR], targets[:_NEAR], final=False), False
        if reading is not None and reading.steps:
            steps = _extra_late(reading.steps)
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
        """The steps up to the last record of the target: what the source has behind it may not be copied yet."""
        last = max((at for at, step in enumerate(steps) if step.target is not None), default=-1)
        tail = [step.source for step in steps[last + 1 :] if step.source is not None]
        if tail and steps[last].source is not None:
            self.behind = tail[0].offset
            return list(steps[: last + 1])
        return list(steps)

    def _look_further(self, sources: Sequence[Content], targets: Sequence[Content]) -> bool:
        """Find where both go on alike, however much lies between."""
        if not self._has_looked():
            return False
        found = _common(sources, targets)
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
        follow = 0  # of what agrees again as much as may belong before what the target has more
        while follow < min(more, len(sources) - lost, len(targets) - more):
            step = Step(sources[lost + follow], targets[more + follow])
            if not step.agrees:
                break
            steps.append(step)
            follow += 1
        steps = _extra_late(steps)
        self._tell_steps(self._paired(steps) if max(lost, more) <= _PAIRED else steps)
        self._drop(0, lost + follow)
        self._drop(1, more + follow)
        self._limit, self._limit_bytes = WINDOW, self.window_bytes
        return True

    def _begin(self, sources: Sequence[Content], targets: Sequence[Content]) -> bool:
        """Find the first record that both have."""
        if not self._has_looked():
            return False
        found = _common(sources, targets)
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
        """Whether as much of both rows is there as is looked at."""
        self._limit, self._limit_bytes = LOOKAHEAD, LOOKAHEAD_BYTES
        return all(self._done[side] or self._is_full(side) for side in (0, 1))

    def _clear(self) -> None:
        for side in (0, 1):
            self._drop(side, len(self._rows[side]))

    # What is told.

    def _paired(self, steps: Sequence[Step]) -> list[Step]:
        """As `paired`; but what the target has again did not become of anything that it lacks."""
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

    def _has_been(self, target: Content, here: set[tuple[object, ...]]) -> bool:
        return target[1:] in here or self._history.find(target) is not None

    def _tell_steps(self, steps: Sequence[Step]) -> None:
        """Tell steps, cluster by cluster: records that lie between others which agree as many records apart."""
        cluster: list[Step] = []
        shift = calm = 0
        for step in steps:
            calm = calm + 1 if step.agrees else 0
            if calm >= CALM:  # whatever was before is over, and both go on as many records apart as they are
                shift = 0
            if step.agrees and step.source and step.target and not shift:
                self._tell_cluster(cluster)
                cluster = []
                self._match(step.source, step.target)
            else:
                shift += (step.target is not None) - (step.source is not None)
                cluster.append(step)
        self._tell_cluster(cluster)

    def _match(self, source: Content, target: Content) -> None:
        self._begun = True
        self.records += 1
        self._next_source, self._next_target = source.offset + 1, target.offset + 1
        self._goes_on = False
        self._history.add(source)

    def _hand_on(self, source: Content | None, target: Content | None) -> bool:
        content, side = (source, 0) if source is not None else (target, 1)
        if content is None or content.key is None or self._one_sided is None:
            return False
        self.records += 1 - side
        self._one_sided(side, content, self._next_source if side else self._next_target)
        return True

    def _note(self, kind: DifferenceKind, here: Sequence[Content], there: Sequence[Content]) -> None:
        place = self._history.find(there[0]) if kind is DifferenceKind.EXTRA else None
        if place is None:
            super()._note(kind, here, there)
            return
        offset = self._history.offset(place)
        self._add(DifferenceKind.DUPLICATE, (offset, offset + 1), (there[0].offset, there[0].offset + 1), (), there)


def _extra_late(steps: Sequence[Step]) -> list[Step]:
    """The same changes, with what the target has more as late as it can be: the first of equal records is the copy."""
    out: list[Step] = []
    more: deque[Content] = deque()
    for step in steps:
        if step.target is None:
            out.append(step)
        elif step.source is None:
            more.append(step.target)
        elif more and more[0][1:] == step.target[1:]:
            out.append(Step(step.source, more.popleft()))
            more.append(step.target)
        else:
            out += [*(Step(None, one) for one in more), step]
            more.clear()
    return out + [Step(None, one) for one in more]


def _common(sources: Sequence[Content], targets: Sequence[Content]) -> tuple[int, int] | None:
    """How many records of each row lie before the nearest place from which on both agree; None: there is none."""
    places: dict[tuple[object, ...], list[int]] = {}
    for at, content in enumerate(targets):
        found = places.setdefault(content[1:], [])
        if len(found) < _MOST_PLACES:
            found.append(at)
    best: tuple[int, int] | None = None
    for at, content in enumerate(sources):
        if best is not None and at >= sum(best):
            break
        for there in places.get(content[1:], ()):
            if (best is None or at + there < sum(best)) and all(_agreeing(sources, targets, at, there)):
                best = at, there
    return best


def _agreeing(sources: Sequence[Content], targets: Sequence[Content], at: int, there: int) -> Iterator[bool]:
    for step in range(min(CALM, len(sources) - at, len(targets) - there)):
        yield sources[at + step][1:] == targets[there + step][1:]


def unmatched(stretch: Stretch, found: ByContent) -> list[NotCompared]:
    """What could not be compared because the two logs do not begin or end alike, or have nothing in common."""
    source, end = stretch.source, stretch.source_range[1]
    left = []

    def leave(why: NotComparedKind, part: Range, message: str, *, asked: bool) -> None:
        left.append(NotCompared(source=source, start=part[0], end=part[1], why=why, message=message, asked=asked))

    here, there = found.before
    if here is not None:
        message = f"offsets {here[0]} to {here[1] - 1} of {source} lie before the first record that both sides have"
        leave(NotComparedKind.TARGET_DELETED, here, f"{message}: the target's log does not begin at 0", asked=False)
    if there is not None:
        at = stretch.source_range[0]
        message = f"offsets {there[0]} to {there[1] - 1} of {stretch.target} lie before the first record that both have"
        leave(NotComparedKind.SOURCE_DELETED, (at, at), f"{message}: the source's log does not begin at 0", asked=False)
    if found.behind is not None:
        message = f"offsets {found.behind} to {end - 1} of {source} are not on the target yet: wait, and verify again"
        nothing = not found.records  # it would say equal of a mirror that never wrote
        leave(NotComparedKind.NOT_COPIED, (found.behind, end), message, asked=stretch.to_end or nothing)
    if found.parted is not None:
        message = (
            f"from offset {found.parted} on {source} and {stretch.target} have nothing in common within {LOOKAHEAD} "
            "records: compare from a later time with --from"
        )
        leave(NotComparedKind.NOTHING_IN_COMMON, (min(found.parted, end), end), message, asked=True)
    return left

"""Aligns two rows of records that do not agree: the fewest changes that make one of the other.

Two readings are tried. By offsets: each record belongs where the offset map puts it. By contents: records that are
equal belong together, wherever they are (Myers, "An O(ND) Difference Algorithm", 1986). The cheaper one counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from ferry.model import RecordContent

WINDOW = 512
"""Records of a side that are aligned together."""

CALM = 16
"""So many agreeing records in a row end a disagreement."""

_MOST_EDITS = 64
"""Contents that are further apart than this are aligned by their offsets: they were altered, not shifted."""


class Step(NamedTuple):
    """A record of the source and the target's record that belongs to it; None: the side has no such record."""

    source: RecordContent | None
    target: RecordContent | None

    @property
    def agrees(self) -> bool:
        """Report whether both sides have the record, and the same."""
        return self.source is not None and self.target is not None and self.source[1:] == self.target[1:]


class Reading(NamedTuple):
    """An alignment of the first records of two rows: `sources` and `targets` of them are settled.

    `closed`: it ends before `CALM` agreeing records, or at the end of both rows.
    """

    steps: list[Step]
    sources: int
    targets: int
    closed: bool


Place = Callable[[int], int | None]
"""Returns where the record of a source offset should be on the target; None: the map does not have it."""


def read_by_offset(
    sources: Sequence[RecordContent], targets: Sequence[RecordContent], place: Place, ends: tuple[bool, bool]
) -> Reading:
    """Align by offsets; `ends` says of each row whether nothing follows it."""
    steps: list[Step] = []
    at = to = calm = 0
    while at < len(sources) and to < len(targets):
        expected = place(sources[at].offset)
        if expected is None or expected < targets[to].offset:
            step = Step(sources[at], None)
        elif expected > targets[to].offset:
            step = Step(None, targets[to])
        else:
            step = Step(sources[at], targets[to])
        steps.append(step)
        at += step.source is not None
        to += step.target is not None
        calm = calm + 1 if step.agrees else 0
        if calm == CALM:
            return Reading(steps[:-CALM], at - CALM, to - CALM, True)
    if ends[1] and to == len(targets):
        steps += [Step(left, None) for left in sources[at:]]
        at = len(sources)
    if ends[0] and at == len(sources):
        steps += [Step(None, left) for left in targets[to:]]
        to = len(targets)
    return Reading(steps, at, to, all(ends))


def read_by_content(
    sources: Sequence[RecordContent], targets: Sequence[RecordContent], *, final: bool
) -> Reading | None:
    """Align by contents; None when they are too far apart.

    Unless `final`, it ends with the last records that agree, because the counterparts of what follows may come later.
    """
    ids: dict[tuple[object, ...], int] = {}
    row = [ids.setdefault(content[1:], len(ids)) for content in sources]
    column = [ids.setdefault(content[1:], len(ids)) for content in targets]
    path = _path(row, column, whole=final)
    if path is None:
        return None
    steps: list[Step] = []
    at = to = settled = sources_settled = targets_settled = 0
    for right, down in path:
        step = Step(sources[at] if right else None, targets[to] if down else None)
        at, to = at + right, to + down
        steps.append(step)
        if right and down:
            settled, sources_settled, targets_settled = len(steps), at, to
    if final:
        return Reading(steps, at, to, True)
    return Reading(steps[:settled], sources_settled, targets_settled, False)


_Point = tuple[int, int]


def _path(row: Sequence[int], column: Sequence[int], *, whole: bool) -> list[_Point] | None:
    """Return the moves (right, down) through the edit graph; not `whole`: until one of the two ends is reached."""
    width, height = len(row), len(column)
    trail: list[dict[int, int]] = []  # after each edit: by diagonal x - y, the furthest x
    reach: dict[int, int] = {}
    for edits in range(_MOST_EDITS + 1):
        found: dict[int, int] = {}
        for diagonal in range(-edits, edits + 1, 2):
            began = (0, 0) if edits == 0 else _stepped(reach, diagonal, width, height)
            if began is None:
                continue
            x, y = began
            while x < width and y < height and row[x] == column[y]:
                x, y = x + 1, y + 1
            found[diagonal] = x
            if (x == width and y == height) if whole else (x == width or y == height):
                return _traced(trail, x, y, width, height)
        trail.append(found)
        reach = found
    return None


def _stepped(reach: Mapping[int, int], diagonal: int, width: int, height: int) -> _Point | None:
    """Return where the best single step onto a diagonal leads; None when it leads out of the graph."""
    points = []
    above, left = reach.get(diagonal + 1), reach.get(diagonal - 1)
    if above is not None and above - diagonal <= height:
        points.append((above, above - diagonal))
    if left is not None and left < width:
        points.append((left + 1, left + 1 - diagonal))
    return max(points, default=None)


def _traced(trail: list[dict[int, int]], x: int, y: int, width: int, height: int) -> list[_Point]:
    moves: list[_Point] = []
    for reach in reversed(trail):
        began = _stepped(reach, x - y, width, height)
        if began is None:
            raise AssertionError("a path leads to every point that was reached")
        moves += [(1, 1)] * (x - began[0])
        x, y = began
        moves.append((0, 1) if reach.get(x - y + 1) == x else (1, 0))
        x, y = x - moves[-1][0], y - moves[-1][1]
    moves += [(1, 1)] * x
    return moves[::-1]


def alike(source: RecordContent, target: RecordContent) -> bool:
    """Report whether one record may be the other, altered: the key, the value or the timestamp is the same."""
    return (
        (source.key is not None and source.key == target.key)
        or (bool(source.value) and source.value == target.value)
        or source.timestamp == target.timestamp
    )


def cost(steps: Sequence[Step], place: Place) -> int:
    """Return how many changes a reading assumes: records altered, missing, extra, and rows that begin to be shifted."""
    found = shift = 0
    for source, target in steps:
        if source is None or target is None:
            found += 1
            continue
        if source[1:] != target[1:]:
            found += 1 if alike(source, target) else 2
        expected = place(source.offset)
        moved = shift if expected is None else target.offset - expected
        found += moved != shift
        shift = moved
    return found


def paired(steps: Sequence[Step]) -> list[Step]:
    """Join missing records and the extra ones that they may have become to one step each."""
    out: list[Step] = []
    at = 0
    while at < len(steps):
        until = at
        while until < len(steps) and None in steps[until]:
            until += 1
        if until == at:
            out.append(steps[at])
            at += 1
            continue
        lost = [step.source for step in steps[at:until] if step.source is not None]
        found = [step.target for step in steps[at:until] if step.target is not None]
        out += _matched(lost, found)
        at = until
    return out


def _matched(lost: list[RecordContent], found: list[RecordContent]) -> list[Step]:
    out: list[Step] = []
    for source in lost:
        index = next((number for number, target in enumerate(found) if alike(source, target)), None)
        if index is None:
            out.append(Step(source, None))
            continue
        out += [Step(None, target) for target in found[:index]]
        out.append(Step(source, found[index]))
        found = found[index + 1 :]
    return out + [Step(None, target) for target in found]


def agreeing(steps: Sequence[Step]) -> int:
    """Count the steps that agree."""
    return sum(step.agrees for step in steps)


def extra_late(steps: Sequence[Step], had: Callable[[RecordContent], bool]) -> list[Step]:
    """Return the same changes, with each extra record of the target as late as possible.

    So the first of equal records counts as the copy. Two repetitions in a row may have twice what was between them
    once. `had` reports whether a target record is a repetition wherever it is, because both sides had it before these
    steps.
    """
    out: list[Step] = []
    more: deque[RecordContent] = deque()
    here: set[tuple[object, ...]] = set()
    for step in steps:
        if step.target is None:
            out.append(step)
            continue
        if step.source is None:
            more.append(step.target)
            continue
        at = _first_of(step.target, more, here, had)
        out += [Step(None, more.popleft()) for _ in range(len(more) if at is None else at)]
        if at is None:
            out.append(step)
        else:
            out.append(Step(step.source, more.popleft()))
            more.append(step.target)
        if step.agrees:
            here.add(step.target[1:])
    return out + [Step(None, one) for one in more]


def _first_of(
    target: RecordContent,
    more: Sequence[RecordContent],
    here: Set[tuple[object, ...]],
    had: Callable[[RecordContent], bool],
) -> int | None:
    """Return the index in `more` of a record that is this one, and does not repeat one before; None: there is none."""
    if not more:
        return None
    if more[0][1:] == target[1:]:
        return 0
    if target[1:] in here or had(target):
        return None
    return next((at for at, one in enumerate(more) if one[1:] == target[1:]), None)

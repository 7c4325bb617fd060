"""Clusters in columns, from where the records come to where they go, and a row for each label; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from ferry_airflow.page.chart_shapes import (
    EDGE,
    GAP,
    LABEL_HEIGHT,
    LABEL_WIDTH,
    NODE_WIDTH,
    PORT,
    WIDTH,
    Box,
    Drawn,
    Ends,
    Sheet,
    Spot,
    pairs_of,
)

MOST_COLUMNS = 3
MOST_ROWS = 6
"""The most places in one column; with more around one hub, half are on its other side."""
ROW = LABEL_HEIGHT + 24
"""The distance from the middle of one label to that of the next."""
TWO = 2
NEARER = 0.55
"""The position between two columns of a label that is one of several: nearer to the side that has a row for each."""
Columns = Sequence[Sequence[str]]


def columns_of(flows: Sequence[Ends]) -> list[list[str]]:
    """Return the clusters by their steps from where the records come; none if that gives no row to each line.

    The clusters must be joined, directly or over others, as a tree.
    """
    pairs = pairs_of(flows)
    aliases = list(dict.fromkeys(alias for ends in pairs for alias in ends))
    if len(pairs) != len(aliases) - 1:
        return []
    steps = {aliases[0]: 0}
    while len(steps) < len(aliases):
        for source, target in pairs:
            if source in steps:
                steps.setdefault(target, steps[source] + 1)
            elif target in steps:
                steps[source] = steps[target] - 1
    first, last = min(steps.values()), max(steps.values())
    found = [[alias for alias in aliases if steps[alias] == step] for step in range(first, last + 1)]
    if len(found) == TWO and min(map(len, found)) == 1 and max(map(len, found)) > MOST_ROWS:
        hub, leaves = sorted(found, key=len)
        found = [leaves[: len(leaves) // 2], hub, leaves[len(leaves) // 2 :]]
    fits = len(found) <= MOST_COLUMNS and all(_sides(left, right, pairs) for left, right in pairwise(found))
    return found if fits else []


def _sides(left: Sequence[str], right: Sequence[str], pairs: Sequence[Ends]) -> tuple[Sequence[str], ...]:
    """Return of two columns those whose places have one pair each to the other: their rows are the lines'."""
    between = [ends for ends in pairs if len({*ends} & {*left}) == 1 == len({*ends} & {*right})]
    many = Counter(alias for ends in between for alias in ends)
    return tuple(side for side in (right, left) if all(many[alias] <= 1 for alias in side))


def in_columns(columns: Columns, flows: Sequence[Ends]) -> Sheet:
    """Return the sheet of clusters in columns, as `columns_of` finds them."""
    height, spots = _spots(columns, flows)
    lines: dict[Ends, Drawn] = {}
    for left, right in pairwise(columns):
        rows = _sides(left, right, pairs_of(flows))[0]
        for source, target in flows:
            if {source, target} <= {*left, *right}:
                row = source if source in rows else target
                both = (target, source) in flows
                lines[source, target] = _line(spots[source], spots[target], spots[row], both=both, alone=len(rows) == 1)
    return Sheet(height=height, spots=spots, lines={ends: lines[ends] for ends in flows})


def _spots(columns: Columns, flows: Sequence[Ends]) -> tuple[float, dict[str, Spot]]:
    """Return each column's places below each other: first those of the fullest column.

    The others are next to the places that they are joined to.
    """
    beside: dict[str, list[str]] = {}
    rooms: dict[str, float] = {}
    for source, target in pairs_of(flows):
        room = ROW * (TWO if (target, source) in flows else 1)
        for one, other in ((source, target), (target, source)):
            beside.setdefault(one, []).append(other)
            rooms[one] = max(rooms.get(one, 0), room)
    step = (WIDTH - NODE_WIDTH - 2 * EDGE) / (len(columns) - 1)
    heights = [sum(rooms[alias] for alias in column) for column in columns]
    height = max(heights)
    downs: dict[str, float] = {}
    for column in sorted(columns, key=lambda column: -sum(rooms[alias] for alias in column)):
        wanted = {alias: _middle([downs[other] for other in beside[alias] if other in downs]) for alias in column}
        downs |= _apart({alias: wanted[alias] or height / 2 for alias in column}, rooms, height)
    return height, {
        alias: (EDGE + NODE_WIDTH / 2 + step * number, downs[alias])
        for number, column in enumerate(columns)
        for alias in column
    }


def _middle(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _apart(wanted: Mapping[str, float], rooms: Mapping[str, float], height: float) -> dict[str, float]:
    """Return places of a column as near as possible to where they are wanted, each with its room.

    Places that are wanted at one spot are put around it.
    """
    left, top = height - sum(rooms[alias] for alias in wanted), 0.0
    found = {}
    for spot, same in groupby(sorted(wanted, key=wanted.__getitem__), key=wanted.__getitem__):
        together = list(same)
        spare = min(max(0.0, spot - sum(rooms[alias] for alias in together) / 2 - top), left)
        left, top = left - spare, top + spare
        for alias in together:
            found[alias] = top + rooms[alias] / 2
            top += rooms[alias]
    return found


def _line(start: Spot, end: Spot, row: Spot, *, both: bool, alone: bool) -> Drawn:
    """Return a line that is level under its label, in the row of a place; of two, each keeps to the left of its way."""
    right = 1 if end[0] > start[0] else -1
    side = -right if both else 0
    from_x, to_x = (start[0] + right * (NODE_WIDTH / 2 + GAP), end[0] - right * (NODE_WIDTH / 2 + GAP))
    part = 0.5 if alone else NEARER if row == end else 1 - NEARER
    middle, level = from_x + (to_x - from_x) * part, row[1] + side * ROW / 2
    first, last = middle - right * LABEL_WIDTH / 2, middle + right * LABEL_WIDTH / 2
    from_y, to_y = start[1] + side * PORT, end[1] + side * PORT
    return Drawn(
        start=(from_x, from_y),
        curves=(
            _bent((from_x, from_y), (first, level)),
            _bent((first, level), (last, level)),
            _bent((last, level), (to_x, to_y)),
        ),
        label=Box.of_label(middle, level),
    )


def _bent(start: Spot, end: Spot) -> tuple[Spot, Spot, Spot]:
    """Return a curve that is level at both ends."""
    middle = (start[0] + end[0]) / 2
    return (middle, start[1]), (middle, end[1]), end

"""Clusters on a ring, and the parts of the lines between them where their labels have room; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ferry_airflow.page.chart_shapes import (
    GAP,
    LABEL_HEIGHT,
    LABEL_WIDTH,
    NODE_HEIGHT,
    NODE_WIDTH,
    WIDTH,
    Box,
    Drawn,
    Ends,
    Sheet,
    Spot,
)

BULGE = 58
"""How far the handles of the two lines between clusters that send to each other are from the straight way."""
GROWTH, MOST_GROWTHS = 40, 30
"""A ring on which the labels have no room is made higher: by how much, and at most how often."""
TRIED = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74)
"""The parts of a line where its label may be, the best first."""
STEPS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A cubic Bezier curve."""

    points: tuple[Spot, Spot, Spot, Spot]

    def at(self, part: float) -> Spot:
        """Return the spot at a part of its way: 0 is its start, 1 its end."""
        rest = 1 - part
        weights = (rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3)
        x, y = (sum(weight * spot[axis] for weight, spot in zip(weights, self.points, strict=True)) for axis in (0, 1))
        return x, y


def on_ring(flows: Sequence[Ends]) -> Sheet:
    """Return the sheet of any clusters."""
    aliases = list(dict.fromkeys(alias for ends in flows for alias in ends))
    bulge = BULGE if any(ends[::-1] in flows for ends in flows) else 0
    height = 300 + 34 * len(aliases)
    sheet, fits = _sheet(flows, aliases, height, bulge)
    for grown in range(1, MOST_GROWTHS + 1):
        if fits:
            break
        sheet, fits = _sheet(flows, aliases, height + grown * GROWTH, bulge)
    return sheet


def _sheet(flows: Sequence[Ends], aliases: Sequence[str], height: int, bulge: int) -> tuple[Sheet, bool]:
    """Return the sheet of that height, and whether all labels have room on it."""
    spots = dict(zip(aliases, _spots(len(aliases), height, bulge), strict=True))
    curves = [_curve(spots[one], spots[other], both=(other, one) in flows) for one, other in flows]
    labels, fit = _labels(curves, [Box.of_place(*spot) for spot in spots.values()], height)
    lines = {
        ends: Drawn(start=curve.points[0], curves=(curve.points[1:],), label=label)
        for ends, curve, label in zip(flows, curves, labels, strict=True)
    }
    return Sheet(height=height, spots=spots, lines=lines), fit


def _spots(count: int, height: int, bulge: int) -> list[Spot]:
    turns = [math.tau * index / count - math.pi for index in range(count)]
    # A label next to the outermost place stays on the sheet.
    side, edge = LABEL_WIDTH / 2 + bulge, max(NODE_HEIGHT / 2 + GAP, LABEL_HEIGHT / 2 + bulge)
    across = _spread([math.cos(turn) for turn in turns], side, WIDTH - side)
    down = _spread([math.sin(turn) for turn in turns], edge, height - edge)
    return list(zip(across, down, strict=True))


def _spread(values: Sequence[float], low: float, high: float) -> list[float]:
    """Return values stretched so that they reach from edge to edge."""
    least, most = min(values), max(values)
    return [low + (value - least) / (most - least) * (high - low) for value in values]


def _curve(start: Spot, end: Spot, *, both: bool) -> Curve:
    """Return a line between two places; of two, each keeps to the left of its way."""
    across, down = end[0] - start[0], end[1] - start[1]
    bend = (BULGE if both else 0) / (math.hypot(across, down) or 1.0)
    first, last = (
        (start[0] + across * part + down * bend, start[1] + down * part - across * bend) for part in (1 / 3, 2 / 3)
    )
    return Curve(points=(_edge(start, first), first, last, _edge(end, last)))


def _edge(place: Spot, toward: Spot) -> Spot:
    """Return where the line from a place's middle leaves its box, and a little beyond."""
    across, down = toward[0] - place[0], toward[1] - place[1]
    half_width, half_height = NODE_WIDTH / 2 + GAP, NODE_HEIGHT / 2 + GAP
    scale = min(half_width / abs(across) if across else math.inf, half_height / abs(down) if down else math.inf)
    return place[0] + across * scale, place[1] + down * scale


def _labels(curves: Sequence[Curve], places: Sequence[Box], height: float) -> tuple[list[Box], bool]:
    """Return a label on each line, with few other lines under it.

    The second value is whether no label touches a place or another label.
    """
    ways = [[curve.at(step / STEPS) for step in range(STEPS + 1)] for curve in curves]
    labels: list[Box] = []
    fit = True
    for number, curve in enumerate(curves):
        others = [spot for other, way in enumerate(ways) if other != number for spot in way]
        possible = [Box.of_label(*curve.at(part)) for part in TRIED]
        free = [box for box in possible if _on_sheet(box, height) and not any(map(box.touches, (*places, *labels)))]
        fit = fit and bool(free)
        labels.append(min(free or possible, key=lambda box: sum(map(box.has, others))))
    return labels, fit


def _on_sheet(box: Box, height: float) -> bool:
    across = LABEL_WIDTH / 2 <= box.x <= WIDTH - LABEL_WIDTH / 2
    return across and LABEL_HEIGHT / 2 <= box.y <= height - LABEL_HEIGHT / 2

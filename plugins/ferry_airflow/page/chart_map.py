"""The map: clusters as places, flows as lines between them; where each lies on a sheet of fixed width. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ferry_airflow.page.office import OpenFlow

WIDTH = 1000
NODE_WIDTH, NODE_HEIGHT = 150, 54
BEND = 46
"""How far a line leaves the straight way, so that two directions do not lie on each other."""
_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A cluster, by the middle of its box."""

    alias: str
    x: float
    y: float
    down: str
    """Why it does not answer; empty: it does, or nobody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A flow: an SVG path, and where its label goes."""

    flow: OpenFlow
    path: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """All of it; `height` is the sheet's."""

    height: int
    places: tuple[Place, ...]
    lines: tuple[Line, ...]


def drawn(flows: Sequence[OpenFlow]) -> Drawing:
    """The map of some flows. Clusters that flows join lie together: two side by side, more of them on an ellipse."""
    down = {trouble.cluster: trouble.why for one in flows for trouble in one.seen.troubles}
    places: dict[str, Place] = {}
    height = 0
    for joined in _joined(flows):
        own = _height(len(joined))
        for alias, (x, y) in zip(joined, _spots(len(joined), own), strict=True):
            places[alias] = Place(alias=alias, x=x, y=height + y, down=down.get(alias, ""))
        height += own
    lines = tuple(_line(one, places[one.flow.source], places[one.flow.target]) for one in flows)
    return Drawing(height=height, places=tuple(places.values()), lines=lines)


def _joined(flows: Sequence[OpenFlow]) -> list[list[str]]:
    """The clusters, those together that flows join, directly or over others."""
    parts: list[list[str]] = []
    for one in flows:
        ends = (one.flow.source, one.flow.target)
        touched = [part for part in parts if any(alias in part for alias in ends)]
        parts = [part for part in parts if part not in touched]
        parts.append(list(dict.fromkeys([alias for part in touched for alias in part] + list(ends))))
    return parts


def _height(count: int) -> int:
    return 170 if count <= _PAIR else 300 + 34 * count


def _spots(count: int, height: int) -> list[tuple[float, float]]:
    if count <= _PAIR:
        return [(NODE_WIDTH / 2 + 30, height / 2), (WIDTH - NODE_WIDTH / 2 - 30, height / 2)][:count]
    turns = [math.tau * index / count - math.pi for index in range(count)]
    across = _spread([math.cos(turn) for turn in turns], NODE_WIDTH / 2 + 30, WIDTH - NODE_WIDTH / 2 - 30)
    down = _spread([math.sin(turn) for turn in turns], NODE_HEIGHT / 2 + 12, height - NODE_HEIGHT / 2 - 12)
    return list(zip(across, down, strict=True))


def _spread(values: Sequence[float], low: float, high: float) -> list[float]:
    """Values stretched so that they reach from edge to edge."""
    least, most = min(values), max(values)
    return [low + (value - least) / (most - least) * (high - low) for value in values]


def _line(flow: OpenFlow, start: Place, end: Place) -> Line:
    across, down = end.x - start.x, end.y - start.y
    length = math.hypot(across, down) or 1.0
    # To the left of the direction: the line back bends to the other side.
    bend_x, bend_y = down / length * BEND, -across / length * BEND
    middle_x, middle_y = (start.x + end.x) / 2 + bend_x, (start.y + end.y) / 2 + bend_y
    from_x, from_y = _edge(start, middle_x, middle_y)
    to_x, to_y = _edge(end, middle_x, middle_y)
    path = f"M{from_x:.1f},{from_y:.1f} Q{middle_x:.1f},{middle_y:.1f} {to_x:.1f},{to_y:.1f}"
    return Line(flow=flow, path=path, x=(from_x + 2 * middle_x + to_x) / 4, y=(from_y + 2 * middle_y + to_y) / 4)


def _edge(place: Place, toward_x: float, toward_y: float) -> tuple[float, float]:
    """Where the line from a box's middle leaves the box, and a little beyond."""
    across, down = toward_x - place.x, toward_y - place.y
    half_width, half_height = NODE_WIDTH / 2 + 8, NODE_HEIGHT / 2 + 8
    scale = min(half_width / abs(across) if across else math.inf, half_height / abs(down) if down else math.inf)
    return place.x + across * scale, place.y + down * scale

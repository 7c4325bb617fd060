"""The map: clusters as places, flows as lines between them; where each is on a sheet of fixed width. Pure.

Clusters that are joined as a tree of few steps are in columns, in the direction of the flows; all others are on a ring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ferry_airflow.page.chart_columns import columns_of, in_columns
from ferry_airflow.page.chart_ring import on_ring
from ferry_airflow.page.chart_shapes import Ends, Sheet
from ferry_airflow.page.page_state import OpenFlow

ONE_LINE, LINE_LETTERS = 15, 18
"""How many letters of a cluster's name fit into its place in one line; and into each of two smaller lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A cluster, by the middle of its box."""

    alias: str
    x: float
    y: float
    down: str
    """Why it does not answer; empty: it does, or it was not asked."""

    @property
    def name(self) -> tuple[str, ...]:
        """Its alias in one line or two, shortened to fit."""
        return name_lines(self.alias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A flow: an SVG path, and the middle of its label."""

    flow: OpenFlow
    path: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """All places and lines; `height` is the sheet's."""

    height: int
    places: tuple[Place, ...]
    lines: tuple[Line, ...]


def drawn(flows: Sequence[OpenFlow]) -> Drawing:
    """Return the map of some flows. Clusters that flows join, directly or over others, are drawn together."""
    down = {trouble.cluster: trouble.why for one in flows for trouble in one.seen.troubles}
    by_ends = {(one.flow.source, one.flow.target): one for one in flows}
    places: list[Place] = []
    lines: list[Line] = []
    top = 0.0
    for group in _joined(list(by_ends)):
        sheet = _sheet(tuple(group))
        places += [
            Place(alias=alias, x=x, y=top + y, down=down.get(alias, "")) for alias, (x, y) in sheet.spots.items()
        ]
        for ends, drawn_line in sheet.lines.items():
            lower = drawn_line.lower(top)
            lines.append(Line(flow=by_ends[ends], path=lower.path, x=lower.label.x, y=lower.label.y))
        top += sheet.height
    return Drawing(height=math.ceil(top), places=tuple(places), lines=tuple(lines))


@lru_cache(maxsize=64)
def _sheet(flows: tuple[Ends, ...]) -> Sheet:
    """Return the positions of some flows; kept, because every view of the page asks for them."""
    columns = columns_of(flows)
    return in_columns(columns, flows) if columns else on_ring(flows)


def name_lines(alias: str) -> tuple[str, ...]:
    """Return a name in one line, or in two, split after a separator.

    Letters that do not fit are cut out of the middle of a line.
    """
    if len(alias) <= ONE_LINE:
        return (alias,)
    possible = [at for at in range(1, len(alias)) if not alias[at - 1].isalnum()]
    at = min(possible, key=lambda at: max(at, len(alias) - at), default=LINE_LETTERS)
    return _fitting(alias[:at]), _fitting(alias[at:])


def _fitting(text: str) -> str:
    half = (LINE_LETTERS - 1) // 2
    return text if len(text) <= LINE_LETTERS else f"{text[:half]}\u2026{text[-half:]}"


def _joined(flows: Sequence[Ends]) -> list[list[Ends]]:
    """Return the flows in groups: those whose clusters are joined by other flows are together."""
    parts: list[list[Ends]] = []
    for ends in flows:
        touched = [part for part in parts if any(alias in other for other in part for alias in ends)]
        parts = [part for part in parts if part not in touched]
        parts.append([*(other for part in touched for other in part), ends])
    return parts

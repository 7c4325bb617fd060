"""The parts of the map: places and labels as boxes, lines as Bezier curves; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

WIDTH = 1400
EDGE = 24
"""What stays free at the sides of the places."""
NODE_WIDTH, NODE_HEIGHT = 170, 56
LABEL_WIDTH, LABEL_HEIGHT = 290, 64
GAP = 8
"""What stays free around a label, and before a place."""
PORT = 12
"""How far from each other's middle the two lines between clusters that send to each other begin and end."""
Ends = tuple[str, str]
"""A flow's source and target."""
Spot = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What a place or a label covers, by its middle."""

    x: float
    y: float
    width: float
    height: float

    @classmethod
    def of_place(cls, x: float, y: float) -> Box:
        """Return a cluster's box."""
        return cls(x=x, y=y, width=NODE_WIDTH, height=NODE_HEIGHT)

    @classmethod
    def of_label(cls, x: float, y: float) -> Box:
        """Return the box of a flow's label."""
        return cls(x=x, y=y, width=LABEL_WIDTH, height=LABEL_HEIGHT)

    def touches(self, other: Box) -> bool:
        """Return whether less than a gap is between the two."""
        across = abs(self.x - other.x) < (self.width + other.width) / 2 + GAP
        return across and abs(self.y - other.y) < (self.height + other.height) / 2 + GAP

    def has(self, spot: Spot) -> bool:
        """Return whether it covers a spot."""
        return abs(self.x - spot[0]) < self.width / 2 and abs(self.y - spot[1]) < self.height / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A line from its first spot over cubic curves, two handles and an end each; and its label."""

    start: Spot
    curves: tuple[tuple[Spot, Spot, Spot], ...]
    label: Box

    @property
    def path(self) -> str:
        """The line as an SVG path."""
        parts = (" ".join(f"{x:.1f},{y:.1f}" for x, y in curve) for curve in self.curves)
        return f"M{self.start[0]:.1f},{self.start[1]:.1f}" + "".join(f" C{part}" for part in parts)

    def lower(self, by: float) -> Drawn:
        """Return the line moved down."""
        first, *others = (tuple((x, y + by) for x, y in curve) for curve in ((self.start,), *self.curves))
        return Drawn(
            start=first[0],
            curves=tuple((one[0], one[1], one[2]) for one in others),
            label=replace(self.label, y=self.label.y + by),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Clusters that are joined, by the middles of their places, and the lines between them."""

    height: float
    spots: Mapping[str, Spot]
    lines: Mapping[Ends, Drawn]


def pairs_of(flows: Sequence[Ends]) -> list[Ends]:
    """Return the pairs of clusters that flows join, each once, in the direction of its first flow."""
    found: list[Ends] = []
    for ends in flows:
        if ends not in found and ends[::-1] not in found:
            found.append(ends)
    return found

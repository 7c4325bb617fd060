"""The lag of topics over time as small drawings, all of one page on one axis of time; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.reader.documents import Short, TopicRow

WIDTH, HEIGHT = 96, 22
EDGE = 2
"""What stays free around the line: half of its width, and the round ends of a point alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A line as an SVG path of WIDTH by HEIGHT, and what it shows: records at first, at most and now, since a time."""

    path: str
    since_ms: int
    first: int
    most: int
    last: int


def sparklines(rows: Sequence[TopicRow]) -> dict[str, Sparkline]:
    """Return a line for each topic that was measured; each is as high as its own largest lag."""
    times = [point[0] for row in rows for point in row.lately if point]
    if not times:
        return {}
    begin, end = min(times), max(times)
    return {row.topic: _drawn(row.lately, begin, end) for row in rows if any(row.lately)}


def _drawn(lately: Sequence[Short | None], begin_ms: int, end_ms: int) -> Sparkline:
    known = [point for point in lately if point]
    most = max(records for _, records in known)
    across, down = (WIDTH - 2 * EDGE) / max(1, end_ms - begin_ms), (HEIGHT - 2 * EDGE) / max(1, most)
    parts: list[str] = []
    moves = True
    for at, point in enumerate(lately):
        if point is None:
            moves = True
            continue
        x, y = EDGE + (point[0] - begin_ms) * across, HEIGHT - EDGE - point[1] * down
        parts.append(f"{'M' if moves else 'L'}{x:.1f},{y:.1f}")
        if moves and (at + 1 == len(lately) or lately[at + 1] is None):
            parts.append("h0")  # a point alone is a dot
        moves = False
    return Sparkline(path="".join(parts), since_ms=known[0][0], first=known[0][1], most=most, last=known[-1][1])

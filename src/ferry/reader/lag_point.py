"""The lag at one time, and the points of a flow in order; pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SPAN_MS = 4 * 3_600_000
"""How long a measured lag is kept."""
MOST_POINTS = 2880
"""The points of a flow in that time, at a poll every five seconds."""
APART_MS = 120_000
"""Four times the longest usual pause between two polls: nothing was measured between points further apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The lag of what is paused; `seconds` None: the oldest record's age is not known."""

    records: int
    bytes: int
    seconds: float | None


NOT_HELD = Held(records=0, bytes=0, seconds=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPoint:
    """The lag of a flow, a topic or a partition at one time; `seconds` None: the oldest record's age is not known."""

    at_ms: int
    records: int
    bytes: int
    seconds: float | None
    held: Held = NOT_HELD
    """Of a flow: the lag of topics that are paused on their own, which the other figures do not have."""


def followed(points: Sequence[LagPoint], new: LagPoint) -> tuple[LagPoint, ...]:
    """Return the points with a new one, oldest first, without those that are too old.

    Also without later points, which are left when a clock is set back.
    """
    known = [point for point in points if new.at_ms - SPAN_MS < point.at_ms < new.at_ms]
    return (*known[1 - MOST_POINTS :], new)


@dataclass(frozen=True, slots=True)
class MeasuredSpans:
    """When lag was measured: begin and end of each time without two points far apart, oldest first."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, points: Sequence[LagPoint]) -> MeasuredSpans:
        """Return the spans of points that are in order, oldest first."""
        if not points:
            return cls(())
        cuts = [(a.at_ms, b.at_ms) for a, b in pairwise(points) if b.at_ms - a.at_ms > APART_MS]
        begins = [points[0].at_ms, *(begin for _, begin in cuts)]
        ends = [*(end for end, _ in cuts), points[-1].at_ms]
        return cls(tuple(zip(begins, ends, strict=True)))

    def number(self, at_ms: int) -> int:
        """Return the number of the span that a point belongs to."""
        return bisect_right(self.spans, at_ms, key=lambda span: span[0])

    def near(self, begin_ms: int, end_ms: int) -> bool:
        """Return whether lag was measured at that time, or shortly before or after."""
        return any(begin <= end_ms + APART_MS and end >= begin_ms - APART_MS for begin, end in self.spans)

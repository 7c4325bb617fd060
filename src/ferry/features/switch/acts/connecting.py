"""Connect to the clusters of a switch, without waiting in each step for one that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ferry.features.switch.acts.sides import Sides
from ferry.lane import connections
from ferry.lane.connections import TargetFirst


def old_patience_s(sides: Sides, patience_s: float) -> float:
    """Return how long (s) the cluster that is left is tried where it need not answer; `patience_s` at most."""
    return sides.silence.patience_s(min(patience_s, connections.SOURCE_PATIENCE_S))


@contextmanager
def connected(sides: Sides, patience_s: float) -> Iterator[TargetFirst]:
    """Connect to both clusters; the one that is left need not answer.

    Raises Unreachable if the cluster that is switched to does not answer.
    """
    both = TargetFirst.of(sides.via, patience_s=patience_s)
    whole_s = both.source.patience_s
    tried_s = both.source.patience_s = sides.silence.patience_s(whole_s)
    with both:
        both.source.patience_s = whole_s
        sides.silence.note(answers=both.has_source, tried_s=tried_s)
        yield both

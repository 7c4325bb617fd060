"""The time at which a flow's next success is overdue, by its schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from croniter import croniter  # type: ignore[import-untyped]  # it has no types

_LOOKED_AT = 50
"""How many times of a schedule are read to find its shortest interval: almost any schedule has shown it within them."""
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_BY_HAND = frozenset({"@once", "@continuous"})
_ALIASES = {"@quarterly": "0 0 1 */3 *"}
"""Presets of Airflow that croniter does not know."""


def due_ms(schedule: str | None, since_ms: int, intervals: int) -> int | None:
    """Return the n-th time of the schedule after `since_ms`, in UTC (ms); n is `intervals`.

    It is None if the schedule has no times, or if `intervals` is less than 1.
    """
    if schedule is None or schedule in _BY_HAND or intervals < 1:
        return None
    times = croniter(_ALIASES.get(schedule, schedule), datetime.fromtimestamp(since_ms / 1000, UTC))
    due = since_ms
    for _ in range(intervals):
        due = int(times.get_next(float) * 1000)
    return due


def shortest_interval(schedule: str | None) -> timedelta | None:
    """Return the shortest time between two runs; None if the schedule has no times."""
    if schedule is None or schedule in _BY_HAND:
        return None
    times = croniter(_ALIASES.get(schedule, schedule), _ANY_TIME)
    found: list[datetime] = [times.get_next(datetime) for _ in range(_LOOKED_AT)]
    return min(later - earlier for earlier, later in pairwise(found))

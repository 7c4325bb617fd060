"""How long a task was throttled, and by what."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleTime:
    """Milliseconds for which a task was throttled; those of several tasks or chunks add up.

    `ferry` is the flow's own throttle: a fetch waited for its turn. `source` and `target` are quotas there: a broker
    had asked for a pause (`throttle_time_ms`, KIP-219). Pauses that overlap on one cluster count once; the three
    figures may overlap.
    """

    ferry: int = 0
    source: int = 0
    target: int = 0

    def __add__(self, other: ThrottleTime) -> ThrottleTime:
        return ThrottleTime(
            ferry=self.ferry + other.ferry, source=self.source + other.source, target=self.target + other.target
        )

    def __sub__(self, other: ThrottleTime) -> ThrottleTime:
        return ThrottleTime(
            ferry=self.ferry - other.ferry, source=self.source - other.source, target=self.target - other.target
        )

    def __bool__(self) -> bool:
        return any(getattr(self, item.name) for item in fields(self))


NOT_THROTTLED = ThrottleTime()
"""The time of a run that was not throttled: zero."""

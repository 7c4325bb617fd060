"""Gaps: source offsets that a lane passed over on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.flow import TopicPartition
from ferry.model.plan import RefusalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Source offsets `[start, end)` that were not copied; `why` is the refusal that the flow's guard lifted."""

    source: TopicPartition
    start: int
    end: int
    why: RefusalKind
    run: str
    at_ms: int

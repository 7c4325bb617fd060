"""Whether a flow's lag calls for a run now: not during a run, and not again for what the last run left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ferry.config.flow.lag_start import LagStart
from ferry.ledger.history import PastRun, past_runs
from ferry.ledger.ledger import LedgerView, pauses
from ferry.model import TopicPartition
from ferry.plan.rules.lag import PartitionLag, TotalLag, total_of

PATIENCE_MS = 900_000
"""After this time an unanswered call is repeated, and what a run left is retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneState:
    """The newest run of a flow, by its generation (-1: none), and what is paused (`""`: the flow).

    `under_way`: whether it has not ended, and is not silent (`PastRun.is_silent`). `newest` is that run. `earlier` are
    runs before it, oldest first, as far as they were asked for.
    """

    generation: int = -1
    under_way: bool = False
    paused: frozenset[str] = frozenset()
    newest: PastRun | None = None
    earlier: tuple[PastRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A run that was called for: the newest run's generation then, and the positions of the partitions with a lag."""

    generation: int
    at_ms: int
    positions: Mapping[TopicPartition, int | None]
    total: TotalLag


def standing_of(view: LedgerView, lane: str, now_ms: int) -> LaneState:
    """Return the state of a lane; the view must have its newest run complete."""
    paused = frozenset(pauses(view, now_ms))
    newest = past_runs(view, lane, 1)
    if not newest:
        return LaneState(paused=paused)
    (last,) = newest
    return LaneState(
        generation=last.opened.generation,
        under_way=last.has_not_ended and not last.is_silent(now_ms),
        paused=paused,
        newest=last,
    )


def call_for_run(
    start: LagStart, lags: Collection[PartitionLag], standing: LaneState, last: Call | None, now_ms: int
) -> Call | None:
    """Return the call for a run; None when there is no reason, or a run is active or was just called for.

    These do not count: paused topics, and a lag that is not known. For `PATIENCE_MS` neither does a partition that is
    at the same position as when a run, by now over, was called for. Otherwise a run that was refused there would begin
    again and again.
    """
    if "" in standing.paused or standing.under_way:
        return None
    is_fresh = last is not None and now_ms - last.at_ms < PATIENCE_MS
    if last is not None and is_fresh and last.generation == standing.generation:
        return None  # no run has begun for the last call yet
    left = last.positions if last is not None and is_fresh else {}
    behind = [
        lag
        for lag in lags
        if lag.records
        and lag.source.topic not in standing.paused
        and not (lag.source in left and left[lag.source] == lag.position)
    ]
    total = total_of(behind)
    by_records = start.records is not None and total.records >= start.records
    by_age = start.seconds is not None and any(
        lag.seconds is not None and lag.seconds >= start.seconds for lag in behind
    )
    if not (by_records or by_age):
        return None
    kept = {place: at for place, at in left.items() if any(lag.source == place and lag.position == at for lag in lags)}
    positions = {**kept, **{lag.source: lag.position for lag in behind}}
    return Call(generation=standing.generation, at_ms=now_ms, positions=positions, total=total)

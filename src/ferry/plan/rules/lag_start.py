"""Whether a flow's lag calls for a run now: not while one is under way, and not again for what the last one left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ferry.config.flow.lag_start import LagStart
from ferry.ledger.history import PastState, past_runs
from ferry.ledger.ledger import LedgerView, pauses
from ferry.model import TopicPartition
from ferry.plan.rules.lag import PartitionLag, TotalLag, total_of

PATIENCE_MS = 900_000
"""After so long a run that did not end counts as dead, a call that nobody heard is repeated, and what a run left as it
was is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The newest run of a flow, by its generation (-1: none), and what is paused (`""`: the flow).

    `under_way_since_ms`: when it began, if it has something left to do.
    """

    generation: int = -1
    under_way_since_ms: int | None = None
    paused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A run that was called for: the newest run's generation then, and where the partitions stood that were behind."""

    generation: int
    at_ms: int
    positions: Mapping[TopicPartition, int | None]
    total: TotalLag


def standing_of(view: LedgerView, lane: str, now_ms: int) -> Standing:
    """How a lane stands; the view has its newest run whole."""
    paused = frozenset(pauses(view, now_ms))
    newest = past_runs(view, lane, 1)
    if not newest:
        return Standing(paused=paused)
    opened, state = newest[0].opened, newest[0].state
    since = opened.record.started_ms if state in (PastState.OPEN, PastState.UNPLANNED) else None
    return Standing(generation=opened.generation, under_way_since_ms=since, paused=paused)


def call_for_run(
    start: LagStart, lags: Collection[PartitionLag], standing: Standing, last: Call | None, now_ms: int
) -> Call | None:
    """The call for a run; None when there is no reason, or somebody is at it.

    What is paused does not count, nor a lag that is not known, nor (for a while) a partition that stands where it
    stood when a run was called for that is over: a run that was refused there would begin again and again.
    """
    if "" in standing.paused or _under_way(standing, now_ms):
        return None
    is_fresh = last is not None and now_ms - last.at_ms < PATIENCE_MS
    if last is not None and is_fresh and last.generation == standing.generation:
        return None  # it was not heard yet
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


def _under_way(standing: Standing, now_ms: int) -> bool:
    since = standing.under_way_since_ms
    return since is not None and now_ms - since < PATIENCE_MS

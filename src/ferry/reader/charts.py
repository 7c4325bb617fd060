"""What the page's charts show over time: lag, runs, outages and pauses; pure. It is an answer of the page's reader."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.ledger.history import PastState

Row = tuple[int, int, int, float | None, int, int, float | None]
"""Time in ms; records, bytes and seconds of lag; and the same three of topics that are paused on their own."""


class Mark(StrEnum):
    """What a chart marks over time."""

    OUTAGE = "outage"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """A time in which a cluster did not answer, or the flow or a topic was paused; times are epoch ms.

    An outage is known from `since_ms` to `until_ms`. It may be longer: from `after_ms`, and up to `before_ms`.
    """

    mark: Mark
    of: str
    """The cluster, or the topic; empty: the flow."""
    since_ms: int
    until_ms: int | None = None
    """When it ended; None: it lasts, as the last poll shows."""
    after_ms: int | None = None
    """When the cluster is known to have answered last before it; None: not known."""
    before_ms: int | None = None
    """When the cluster is known to have answered first after it; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A time in which a task of a run tried a cluster without an answer; epoch ms."""

    cluster: str
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRun:
    """A run in a chart, of the flow or of a topic. `measured`: whether lag was measured when it ran."""

    run: str
    state: PastState
    started_ms: int
    ended_ms: int
    seconds: float
    due: int
    records: int
    bytes: int
    latency_ms: int | None
    refused: int
    uncounted: bool
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Measured lag, None for a time without measurement between two points; and runs, oldest first."""

    number: int = 0
    lag: tuple[Row | None, ...] = ()
    runs: tuple[SeriesRun, ...] = ()
    spells: tuple[Spell, ...] = ()

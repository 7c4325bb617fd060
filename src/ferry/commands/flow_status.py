"""What `ferry status` shows of a flow."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.ledger.history import PastRun, PastState
from ferry.ledger.progress import Progress
from ferry.model import Flow
from ferry.plan.rules.lag import TotalLag

UNREACHABLE = "unreachable"
NOT_KNOWN = "not known"
UNFINISHED = "unfinished"
FAILED = "failed"
PARTIAL = "partial"
BEHIND = "behind"
LATE = "late"
PAUSED = "paused"
NEVER_RAN = "never ran"
_OF_STATE = {PastState.SUCCESS: "healthy", PastState.OPEN: "running", PastState.UNPLANNED: "planning"}
"""Words of a flow whose newest run needs no operator."""
_BAD = frozenset({PastState.PARTIAL, PastState.FAILED})
"""States of a newest run that need an operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """The newest run of a flow and its lag. Times are epoch milliseconds.

    `state` is None for a flow that never ran, and for one that could not be read: then `why` has the reason. `next_ms`
    is the next time of the schedule; None without one, and while the flow is known to be paused. `over_rpo` counts the
    partitions beyond `ferry.rpo.*`, also those whose lag is not known; None without limits. `late`:
    `ferry.alert.late.intervals` times of the schedule have passed since a run last succeeded, whatever the newest run
    is. It is None where that is not known, for a flow that never ran, and for a paused one. It is None, too, where no
    line of the file sets a schedule, or the intervals are 0.
    `silent_since_ms` is when the newest run last wrote to the ledger, if it has not ended and is silent
    (`PastRun.is_silent`); else None. `open_run` is the newest run, if it is open and its progress is known.
    `unreachable`: a cluster did not answer.
    """

    flow: Flow
    lane: str
    state: PastState | None = None
    run: str | None = None
    started_ms: int | None = None
    silent_since_ms: int | None = None
    records: int | None = None
    open_run: PastRun | None = None
    paused: tuple[str, ...] = ()
    lag: TotalLag | None = None
    over_rpo: int | None = None
    late: bool | None = None
    next_ms: int | None = None
    why: str = ""
    unreachable: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words of docs/troubleshooting.md that apply to the flow; at least one. What is not known is named so."""
        if self.why:
            return (UNREACHABLE if self.unreachable else NOT_KNOWN,)
        named = {
            UNFINISHED: self.silent_since_ms is not None,
            FAILED: self.state is PastState.FAILED,
            PARTIAL: self.state is PastState.PARTIAL,
            BEHIND: self.is_behind,
            LATE: bool(self.late),
            PAUSED: "" in self.paused,
        }
        found = tuple(word for word, applies in named.items() if applies)
        return found or (NEVER_RAN if self.state is None else _OF_STATE[self.state],)

    @property
    def progress(self) -> Progress | None:
        """How far the newest run has come; None: it is not open, or this is not known."""
        known = self.open_run
        return None if known is None or known.progress is None else known.progress.whole

    @property
    def is_behind(self) -> bool:
        """Whether the lag is beyond `ferry.rpo.*`. That of a paused flow grows on purpose, so it does not count."""
        return bool(self.over_rpo) and "" not in self.paused

    @property
    def is_good(self) -> bool:
        """Whether the flow was read, and neither its newest run, if any, nor its lag needs an operator."""
        is_well = self.silent_since_ms is None and self.state not in _BAD
        return not self.why and is_well and not self.is_behind and not self.late

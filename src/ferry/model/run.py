"""A micro-run's own record in the ledger, and what started it."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.flow import Flow

MOST_SLOTS = 1 << 16
"""The most that `tasks.max` may be: each slot is fenced by its name, so fencing without a limit might never end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What started an attempt: a command line or an Airflow task try; all parts may be empty."""

    host: str = ""
    dag_id: str = ""
    dag_run_id: str = ""
    try_number: int = 0


LOCAL = Origin()
"""Started by hand, host unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Opens a run. Its ledger offset is the run's generation, so no two runs share one (docs/internals/protocol.md)."""

    flow: Flow
    lane: str
    run: str
    slots: int
    config_digest: str
    started_ms: int
    origin: Origin
    deployment: str = ""
    """The deployment of the run (`ferry.config.flow.deployment`).

    It is empty in records from before there were deployments.
    """
    took_over: str = ""
    """The deployment that the lane was taken from on purpose; empty when it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun:
    """A run record together with the generation that the ledger gave it."""

    record: RunRecord
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a run's copy step, as its record in the ledger shows.

    `number` is the offset of the record that began it, so the later of two attempts has the larger one. `generation` is
    the run's. `started_ms` is when the step began, by the clock of the process that began it. `ended`: it was ended
    from outside, as by a signal, and nothing of it may continue.
    """

    run: str
    generation: int
    number: int
    started_ms: int
    origin: Origin
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A stop of a flow (topic empty) or of one source topic of it, until `until_ms` (0: until resumed)."""

    topic: str
    who: str
    why: str
    since_ms: int
    until_ms: int = 0
    lifted_by: str = ""
    """Who resumed before its time was over; empty: it was not resumed."""
    lifted_ms: int = 0

    def holds_at(self, now_ms: int) -> bool:
        """Return whether the pause is still in force at `now_ms`."""
        return not self.lifted_ms and (self.until_ms == 0 or now_ms < self.until_ms)

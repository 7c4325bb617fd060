"""The word for a run, and its colour: the same on every page and in the charts; pure."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.reader.documents import Condition, PastState

__all__ = ["Condition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A word with its colour."""

    condition: Condition
    word: str


RUNNING = Badge(condition=Condition.BUSY, word="running")
PLANNING = Badge(condition=Condition.BUSY, word="planning")
"""For an active run that is open and whose plan is not sealed yet."""
UNFINISHED = Badge(condition=Condition.WARN, word="unfinished")
"""For a run that is open in the ledger and not active."""
TASK_FAILED = Badge(condition=Condition.WARN, word="task failed")
RETRYING = Badge(condition=Condition.WARN, word="retrying")
"""For an active run of which Airflow tries a task again."""

_ENDED = {
    PastState.SUCCESS: Badge(condition=Condition.GOOD, word="success"),
    PastState.PARTIAL: Badge(condition=Condition.WARN, word="partial"),
    PastState.FAILED: Badge(condition=Condition.BAD, word="failed"),
    PastState.OPEN: UNFINISHED,
    PastState.UNPLANNED: Badge(condition=Condition.BAD, word="unplanned"),
}

DAG_CONDITIONS = {
    "success": Condition.GOOD,
    "failed": Condition.BAD,
    "running": Condition.BUSY,
    "queued": Condition.BUSY,
}
"""The conditions of Airflow's runs by their states."""


def run_badge(state: PastState, *, at_work: bool) -> Badge:
    """Return the badge of a run in the ledger; `at_work`: whether it is active."""
    if at_work:
        return PLANNING if state is PastState.UNPLANNED else RUNNING
    return _ENDED[state]


def dag_badge(state: str) -> Badge:
    """Return the badge of a run in Airflow that is not in the ledger."""
    return Badge(condition=DAG_CONDITIONS.get(state, Condition.UNKNOWN), word=state)


def beside_badge(state: PastState, dag_state: str | None) -> Badge | None:
    """Return a second badge for a run that failed in Airflow, if the ledger's word does not show as much."""
    if dag_state != "failed":
        return None
    if state is PastState.SUCCESS:
        return TASK_FAILED
    return Badge(condition=Condition.BAD, word=TASK_FAILED.word) if state is PastState.OPEN else None

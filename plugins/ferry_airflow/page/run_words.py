"""The word for a run, and its colour: the same on every page and in the charts; pure."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.reader.documents import Mood, PastState

__all__ = ["Mood"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A word with its colour."""

    mood: Mood
    word: str


RUNNING = Badge(mood=Mood.BUSY, word="running")
PLANNING = Badge(mood=Mood.BUSY, word="planning")
"""For an active run that is open and whose plan is not sealed yet."""
UNFINISHED = Badge(mood=Mood.WARN, word="unfinished")
"""For a run that is open in the ledger and not active."""
TASK_FAILED = Badge(mood=Mood.WARN, word="task failed")

_ENDED = {
    PastState.SUCCESS: Badge(mood=Mood.GOOD, word="success"),
    PastState.PARTIAL: Badge(mood=Mood.WARN, word="partial"),
    PastState.FAILED: Badge(mood=Mood.BAD, word="failed"),
    PastState.OPEN: UNFINISHED,
    PastState.UNPLANNED: Badge(mood=Mood.BAD, word="unplanned"),
}

DAG_MOODS = {"success": Mood.GOOD, "failed": Mood.BAD, "running": Mood.BUSY, "queued": Mood.BUSY}
"""The moods of Airflow's runs by their states."""


def run_badge(state: PastState, *, at_work: bool) -> Badge:
    """Return the badge of a run in the ledger; `at_work`: whether it is active."""
    if at_work:
        return PLANNING if state is PastState.UNPLANNED else RUNNING
    return _ENDED[state]


def dag_badge(state: str) -> Badge:
    """Return the badge of a run in Airflow that is not in the ledger."""
    return Badge(mood=DAG_MOODS.get(state, Mood.UNKNOWN), word=state)


def beside_badge(state: PastState, dag_state: str | None) -> Badge | None:
    """Return a second badge for a run that failed in Airflow, if the ledger's word does not show as much."""
    if dag_state != "failed":
        return None
    if state is PastState.SUCCESS:
        return TASK_FAILED
    return Badge(mood=Mood.BAD, word=TASK_FAILED.word) if state is PastState.OPEN else None

"""How a flow stands, in one word and one sentence: what the map, the list and the head of its pages say; pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.config.flow.flow import RecoveryPoint
from ferry.decide.ledger.history import PastState
from ferry.decide.plan.lag import TotalLag
from ferry_airflow.page.airflow_side import DagState
from ferry_airflow.page.shown import duration, ms_of, number
from ferry_airflow.page.snapshot import RunDigest, Snapshot


class Mood(StrEnum):
    """What a colour stands for; always beside a word."""

    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    HELD = "held"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A word and why; the worst thing counts."""

    mood: Mood
    word: str
    why: str


RUN_MOODS = {
    PastState.SUCCESS: Mood.GOOD,
    PastState.PARTIAL: Mood.WARN,
    PastState.FAILED: Mood.BAD,
    PastState.OPEN: Mood.BUSY,
    PastState.UNPLANNED: Mood.BAD,
}
"""Of runs by their states."""

DAG_MOODS = {"success": Mood.GOOD, "failed": Mood.BAD, "running": Mood.BUSY, "queued": Mood.BUSY}
"""Of Airflow's runs by their states."""


def standing(seen: Snapshot, dag: DagState, limit: RecoveryPoint) -> Standing:
    """How a flow stands."""
    return (
        _unseen(seen)
        or _held_or_busy(seen, dag)
        or _failed_in_airflow(seen, dag)
        or _ended_badly(seen)
        or _not_begun(seen)
        or _late(seen, limit)
        or _at_rest(dag)
        or Standing(mood=Mood.GOOD, word="healthy", why="The last run copied all that it was for.")
    )


def _unseen(seen: Snapshot) -> Standing | None:
    if seen.troubles:
        names = ", ".join(trouble.cluster for trouble in seen.troubles)
        return Standing(mood=Mood.BAD, word="unreachable", why=f"Cluster {names} does not answer.")
    if not seen.number:
        return Standing(mood=Mood.UNKNOWN, word="looking", why="The clusters are being asked for the first time.")
    return None


def _held_or_busy(seen: Snapshot, dag: DagState) -> Standing | None:
    if seen.is_paused:
        pause = seen.pauses[""]
        return Standing(mood=Mood.HELD, word="paused", why=f"Paused by {pause.who}: {pause.why}")
    at_work = dag.under_way
    if at_work is not None:
        return Standing(mood=Mood.BUSY, word=at_work.state, why=f"Run {at_work.run} is {at_work.state}.")
    return None


def _failed_in_airflow(seen: Snapshot, dag: DagState) -> Standing | None:
    """What Airflow knows better than the ledger of its newest run, unless a later run has begun, by whomever."""
    newest, last = dag.runs[0] if dag.runs else None, seen.last_run
    if newest is None or newest.state != "failed":
        return None
    if all(run.run != newest.run for run in seen.runs):
        over = ms_of(newest.ended or newest.started or newest.queued)
        if last is not None and over is not None and last.started_ms >= over:
            return None
        why = f"Airflow's run {newest.run} failed, and the ledger does not know it: the logs of its tasks say why."
        return Standing(mood=Mood.BAD, word="failed", why=why)
    if last is not None and last.run == newest.run:
        return _beside_the_ledger(last)
    return None


def _beside_the_ledger(last: RunDigest) -> Standing | None:
    """What becomes of the ledger's word on a run that failed in Airflow; None where the ledger says as much."""
    if last.state is PastState.SUCCESS:
        why = f"Run {last.run} copied all that it was for, then a task of it failed: its log in Airflow says why."
        return Standing(mood=Mood.WARN, word="task failed", why=why)
    if last.state is PastState.OPEN:
        why = f"Run {last.run} failed before it had copied all: its tasks' logs say why; the next run copies the rest."
        return Standing(mood=Mood.BAD, word="failed", why=why)
    return None


def _ended_badly(seen: Snapshot) -> Standing | None:
    last = seen.last_run
    if last is None:
        return None
    if last.state in (PastState.FAILED, PastState.UNPLANNED):
        return Standing(mood=Mood.BAD, word="failed", why=f"Run {last.run} copied no part of what it was for.")
    if last.state is PastState.PARTIAL:
        why = (
            f"Run {last.run} refused {number(last.refused)} of what it was to copy; the rest is copied."
            if last.refused
            else f"Run {last.run} refused nothing to copy; its page names what is unfinished, failed or differs."
        )
        return Standing(mood=Mood.WARN, word="partial", why=why)
    return None


def _not_begun(seen: Snapshot) -> Standing | None:
    if seen.last_run is not None and not seen.never_ran:
        return None
    return Standing(mood=Mood.UNKNOWN, word="never ran", why="Start a run, or unpause its DAG.")


def _late(seen: Snapshot, limit: RecoveryPoint) -> Standing | None:
    why = "" if seen.total is None else _beyond(seen.total, limit)
    return Standing(mood=Mood.WARN, word="behind", why=why) if why else None


def _at_rest(dag: DagState) -> Standing | None:
    if not (dag.known and dag.paused):
        return None
    why = "Airflow starts no runs of its DAG until somebody unpauses it."
    return Standing(mood=Mood.HELD, word="DAG paused", why=why)


def _beyond(total: TotalLag, limit: RecoveryPoint) -> str:
    """Why the flow is behind its recovery point; empty when it is not, or has none."""
    if limit.seconds is not None and (total.seconds is None or total.seconds > limit.seconds):
        age = "of unknown age" if total.seconds is None else f"{duration(total.seconds)} old"
        return f"The oldest record that is not yet copied is {age}; its recovery point is {duration(limit.seconds)}."
    if limit.records is not None and total.records > limit.records:
        return f"{number(total.records)} records are not yet copied; its recovery point is {number(limit.records)}."
    return ""

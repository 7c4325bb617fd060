"""The state of a flow, in one word and one sentence: for the map, the list and the head of its pages; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.parts import Budget, RecoveryPoint
from ferry.features.observe.rules.due import due_ms, shortest_interval
from ferry.features.observe.settings import AlertSettings
from ferry.reader.documents import NOT_ENDED, SILENT_MS, Behind, PastState, RunDigest, Status
from ferry_airflow.page.airflow_side import UNDER_WAY, DagRunRow, DagState
from ferry_airflow.page.filters import counted, duration, ms_of, number, size
from ferry_airflow.page.retry_words import before_of, now_of
from ferry_airflow.page.run_words import PLANNING, RETRYING, RUNNING, TASK_FAILED, UNFINISHED, Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A word and why; the worst finding counts. `also`: what else is active, or paused.

    `run`: the run that it is about, if it is about one; `why` has its id. `logs`: the part of `why` that leads to logs,
    for which a page that knows why the run failed has better words.
    """

    condition: Condition
    word: str
    why: str
    also: tuple[Standing, ...] = ()
    run: str = ""
    logs: str = ""


LOGS_SAY = "the logs of its tasks say why"
TRIES_HIDDEN = " Whether Airflow tries a task of it again is not known here: you may not see its tasks."
"""A sentence for users who may not read tasks in Airflow."""

NEVER_RAN = "never ran"
"""The word for a flow without a run."""
STALE = "stale"
"""The word for a flow of which only old figures are known."""

PATIENCE_MS = 300_000
"""How long Airflow may take to begin a run that is due or queued; a scheduler that runs takes seconds."""

STALE_MS = 300_000
"""How old the figures may be: ten polls of a flow that is only in the list; a request causes the next poll."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a flow's file requires of it; `schedule` and `late_intervals` as `due_ms` takes them."""

    limit: RecoveryPoint
    schedule: str | None = None
    late_intervals: int = 0
    budget: Budget | None = None
    """What one run copies at most; None: not known."""

    @classmethod
    def of(cls, flow: FlowConfig) -> Expected:
        """Return the requirements of a flow."""
        return cls(
            limit=flow.rpo,
            schedule=flow.airflow.schedule,
            late_intervals=flow.of(AlertSettings).late_intervals,
            budget=flow.copy.budget,
        )


def standing(seen: Status, dag: DagState, expected: Expected, now_ms: int) -> Standing:
    """Return the state of a flow: first red findings, then amber ones, then the first of the others.

    It depends on the last run that has ended: an active run, or a pause, makes none of it good. Nor does an active run
    make a healthy flow less so: it is in `also`.
    """
    if not seen.number and not seen.troubles and not seen.hindrances:
        return Standing(
            condition=Condition.UNKNOWN, word="connecting", why="The clusters are being asked for the first time."
        )
    last = ended_run(seen, dag, now_ms)
    stopped = stopped_at(seen, last, expected.budget)
    possible = (
        _unreachable(seen),
        _stale(seen, now_ms),
        _paused(seen),
        _under_way(seen, dag, expected, now_ms),
        _retried(dag, now_ms),
        _without_dag(dag),
        _overdue(dag, now_ms),
        _hindered(seen),
        _failed_in_airflow(seen, dag, last),
        _ended_badly(last),
        _unplanned(seen, dag, last),
        _left_open(last),
        _behind(seen, expected.limit, stopped),
        _not_begun(seen),
        _at_rest(dag),
    )
    found = [one for one in possible if one is not None]
    why = stopped or "The last run copied all that it should copy."
    well = Standing(condition=Condition.GOOD, word="healthy", why=why)
    is_well = last is not None and last.state is PastState.SUCCESS
    judged = [one for one in found if not (is_well and one.condition is Condition.BUSY)]
    worst = min((*judged, well), key=lambda one: _RANKS.get(one.condition, len(_RANKS)))
    return replace(
        worst,
        also=tuple(one for one in found if one is not worst and (one.condition in _BESIDES or one.word in _NAMED)),
    )


_RANKS = {Condition.BAD: 0, Condition.WARN: 1}
_BESIDES = frozenset({Condition.BUSY, Condition.HELD})
_NAMED = frozenset({STALE, RETRYING.word})
"""Words that a worse one does not hide."""


def ended_run(seen: Status, dag: DagState, now_ms: int) -> RunDigest | None:
    """Return the newest run that is not active: what the page shows of "the last run" is of this one."""
    return next((run for run in seen.runs if not goes_on(seen, dag, run, now_ms)), None)


def open_run(seen: Status, dag: DagState, now_ms: int) -> RunDigest | None:
    """Return the newest run, if it is active."""
    last = seen.last_run
    return last if last is not None and goes_on(seen, dag, last, now_ms) else None


def goes_on(seen: Status, dag: DagState, run: RunDigest, now_ms: int) -> bool:
    """Return whether a run of the flow's own lane is active."""
    return is_begun(dag, run.run) or is_left(seen, dag, run.state, run.run, run.ended_ms, now_ms)


def is_begun(dag: DagState, run: str) -> bool:
    """Return whether a run is active in Airflow, even if one attempt of it has failed and Airflow begins another."""
    return any(one.run == run and one.state in UNDER_WAY for one in dag.runs)


def is_left(seen: Status, dag: DagState, state: PastState, run: str, heard_ms: int, now_ms: int) -> bool:
    """Return whether a run has not ended and is active; `heard_ms`: when it last wrote to the ledger."""
    return state in NOT_ENDED and is_at_work(seen, dag, run, heard_ms, now_ms)


def is_overdue(dag: DagState, now_ms: int) -> bool:
    """Return whether Airflow should have begun the next run long ago, and no earlier run prevents it."""
    due, ended = ms_of(dag.due), ms_of(dag.runs[0].ended) if dag.runs else None
    if due is None or not dag.known or dag.paused or dag.under_way is not None or dag.hides_runs:
        return False
    return now_ms - max(due, ended or 0) > PATIENCE_MS


def is_at_work(seen: Status, dag: DagState, run: str, heard_ms: int, now_ms: int) -> bool:
    """Return whether a run that did not end is active: by Airflow's state, else if it is the newest and not silent.

    `heard_ms`: when it last wrote to the ledger. The ledger itself does not show that a run was killed.
    """
    its = next((one for one in dag.runs if one.run == run), None)
    if its is not None:
        over = ms_of(its.ended)
        is_news = its.state == "success" and over is not None and seen.ledger_ms < over  # the ledger was read before
        return its.state in UNDER_WAY or is_news
    is_older = seen.last_run is not None and seen.last_run.run != run and any(one.run == run for one in seen.runs)
    return not is_older and now_ms - heard_ms < SILENT_MS


def _unreachable(seen: Status) -> Standing | None:
    if not seen.troubles:
        return None
    names = " and ".join(trouble.cluster for trouble in seen.troubles)
    who = f"Cluster {names} does not" if len(seen.troubles) == 1 else f"Clusters {names} do not"
    return Standing(condition=Condition.BAD, word="unreachable", why=f"{who} answer.")


def _stale(seen: Status, now_ms: int) -> Standing | None:
    """Return the state of a flow with old figures: they show nothing of the present, neither well nor active.

    Troubles show their own age.
    """
    if seen.troubles or seen.hindrances:
        return None
    ages = {"ledger": seen.ledger_ms, "lag": seen.lag_ms}
    old = {what: now_ms - ms for what, ms in ages.items() if ms and now_ms - ms > STALE_MS}
    if not old:
        return None
    parts = " and ".join(f"the {what} of {duration(age / 1000)} ago" for what, age in old.items())
    why = f"The page shows {parts}: the clusters are being asked again. If this stays, see the API server's log."
    return Standing(condition=Condition.UNKNOWN, word=STALE, why=why)


def _paused(seen: Status) -> Standing | None:
    pause = seen.pause
    if pause is None:
        return None
    return Standing(condition=Condition.HELD, word="paused", why=f"Paused by {pause.who}: {pause.why.rstrip('.')}.")


def _under_way(seen: Status, dag: DagState, expected: Expected, now_ms: int) -> Standing | None:
    return (
        _by_hand(seen, dag, now_ms) if dag.under_way is None else _at_work(seen, dag.under_way, dag, expected, now_ms)
    )


def _by_hand(seen: Status, dag: DagState, now_ms: int) -> Standing | None:
    """Return the state for an active run that Airflow did not start."""
    last = open_run(seen, dag, now_ms)
    if last is None:
        return None
    if last.state is PastState.UNPLANNED:
        return Standing(
            condition=PLANNING.condition, word=PLANNING.word, why=f"Run {last.run} is being planned.", run=last.run
        )
    why = f"Run {last.run}, of {last.who}, is under way.{TRIES_HIDDEN if dag.known and dag.hides_runs else ''}"
    return Standing(condition=RUNNING.condition, word=RUNNING.word, why=why, run=last.run)


def _at_work(seen: Status, run: DagRunRow, dag: DagState, expected: Expected, now_ms: int) -> Standing:
    begun_ms = ms_of(run.queued or run.started)
    waited_ms = 0 if begun_ms is None else now_ms - begun_ms
    is_queued = run.state == "queued"
    if dag.paused and is_queued:
        why = f"Run {run.run} is queued, and begins when its DAG is unpaused."
        return Standing(condition=Condition.HELD, word="DAG paused", why=why, run=run.run)
    if is_queued and waited_ms > PATIENCE_MS:
        long = duration(waited_ms / 1000)
        why = f"Run {run.run} has been queued for {long}: see that Airflow's scheduler runs, and what it logs."
        return Standing(condition=Condition.WARN, word="queued", why=why, run=run.run)
    if _is_late(seen, expected, waited_ms, now_ms):
        many = f"{expected.late_intervals} intervals of {expected.schedule}"
        why = f"Run {run.run} is {run.state}, and no run has succeeded for {many}: its tasks' logs say what it is at."
        return Standing(condition=Condition.WARN, word="late", why=why, run=run.run)
    more = "; Airflow begins no other task of it until its DAG is unpaused" if dag.paused else ""
    hidden = TRIES_HIDDEN if dag.hides_tasks and not is_queued else ""
    return Standing(
        condition=Condition.BUSY, word=run.state, why=f"Run {run.run} is {run.state}{more}.{hidden}", run=run.run
    )


def _retried(dag: DagState, now_ms: int) -> Standing | None:
    """Return the state for an active run of which a try of a task has ended without success."""
    run = dag.under_way
    if run is None or run.retry is None:
        return None
    now = now_of(run.retry, paused=dag.paused, now_ms=now_ms)
    why = f"{now} {before_of(run.retry)}: {run.retry.log}."
    return Standing(condition=RETRYING.condition, word=RETRYING.word, why=why, run=run.run, logs=run.retry.log)


def _is_late(seen: Status, expected: Expected, waited_ms: int, now_ms: int) -> bool:
    """Return whether a run that has waited and run for this time is one for which the alert `late` is sent."""
    interval = shortest_interval(expected.schedule)
    succeeded_ms = seen.succeeded_ms
    if interval is None or not expected.late_intervals or succeeded_ms is None:
        return False
    due = due_ms(expected.schedule, succeeded_ms, expected.late_intervals)
    return waited_ms >= expected.late_intervals * interval.total_seconds() * 1000 and due is not None and now_ms >= due


def _without_dag(dag: DagState) -> Standing | None:
    if dag.known:
        return None
    why = "Airflow has no DAG of it, so no schedule starts it: see Airflow's import errors, or add a DAG file."
    return Standing(condition=Condition.WARN, word="no DAG", why=why)


def _overdue(dag: DagState, now_ms: int) -> Standing | None:
    due = ms_of(dag.due)
    if due is None or not is_overdue(dag, now_ms):
        return None
    long = duration((now_ms - due) / 1000)
    why = f"Its next run was due {long} ago, and Airflow has not begun it: see that Airflow's scheduler runs."
    return Standing(condition=Condition.WARN, word="overdue", why=why)


def _hindered(seen: Status) -> Standing | None:
    if not seen.hindrances:
        return None
    return Standing(condition=Condition.WARN, word="not seen", why="The page cannot look at all of it; below is why.")


def _failed_in_airflow(seen: Status, dag: DagState, last: RunDigest | None) -> Standing | None:
    """Return what Airflow shows of its last run beyond the ledger, unless a later run has begun and ended since.

    `last` is the ledger's last run, as `ended_run` finds it. A run that was asked for something that does not exist
    does not count.
    """
    newest = next((run for run in dag.runs if run.state not in UNDER_WAY and not run.asked_wrong), None)
    if newest is None or newest.state != "failed":
        return None
    if all(run.run != newest.run for run in seen.runs):
        over = ms_of(newest.ended or newest.started or newest.queued)
        if last is not None and over is not None and last.started_ms >= over:
            return None
        known = "" if seen.hindrances else ", and the ledger has no such run"
        why = f"Airflow's run {newest.run} failed{known}: {LOGS_SAY}."
        return Standing(condition=Condition.BAD, word="failed", why=why, run=newest.run, logs=LOGS_SAY)
    if last is not None and last.run == newest.run:
        return _beside_the_ledger(last)
    return None


def _beside_the_ledger(last: RunDigest) -> Standing | None:
    """Return how a failure in Airflow changes the ledger's state of a run; None if the ledger shows as much."""
    if last.state is PastState.SUCCESS:
        why = f"Run {last.run} copied all that it should copy, then a task failed: {LOGS_SAY}."
        return Standing(condition=TASK_FAILED.condition, word=TASK_FAILED.word, why=why, run=last.run, logs=LOGS_SAY)
    if last.state is PastState.OPEN:
        why = f"Run {last.run} failed before it had copied all: {LOGS_SAY}; the next run copies the rest."
        return Standing(condition=Condition.BAD, word="failed", why=why, run=last.run, logs=LOGS_SAY)
    return None


def _ended_badly(last: RunDigest | None) -> Standing | None:
    if last is None:
        return None
    if last.state is PastState.FAILED:
        return Standing(
            condition=Condition.BAD,
            word="failed",
            why=f"Run {last.run} copied nothing of what it should copy.",
            run=last.run,
        )
    if last.state is PastState.PARTIAL:
        rest = "its page names what else is unfinished" if last.undone_in_all else "the rest is copied"
        why = (
            f"Run {last.run} refused {number(last.refused)} of what it was to copy; {rest}."
            if last.refused
            else f"Run {last.run} refused nothing to copy; its page names what is unfinished, failed or differs."
        )
        return Standing(condition=Condition.WARN, word="partial", why=why, run=last.run)
    return None


def _unplanned(seen: Status, dag: DagState, last: RunDigest | None) -> Standing | None:
    """Return the state for a run without a sealed plan that counts as not active.

    That it ended is known if a newer run has begun, or Airflow has its end. A run that is only silent may be active.
    """
    if last is None or last.state is not PastState.UNPLANNED:
        return None
    if last != seen.last_run or any(one.run == last.run for one in dag.runs):
        why = f"Run {last.run} ended before its plan was sealed: its log says why."
        return Standing(condition=Condition.BAD, word="failed", why=why, run=last.run, logs="its log says why")
    why = f"Run {last.run}, of {last.who}, has no sealed plan and is silent: whether it still runs is not known."
    return Standing(condition=UNFINISHED.condition, word=UNFINISHED.word, why=why, run=last.run)


def _left_open(last: RunDigest | None) -> Standing | None:
    if last is None or last.state is not PastState.OPEN:
        return None
    why = f"Run {last.run}, of {last.who}, has not ended and is silent: if it was killed, the next run copies the rest."
    return Standing(condition=UNFINISHED.condition, word=UNFINISHED.word, why=why, run=last.run)


def _not_begun(seen: Status) -> Standing | None:
    if seen.last_run is not None and not seen.never_ran:
        return None
    return Standing(condition=Condition.UNKNOWN, word=NEVER_RAN, why="Start a run, or unpause its DAG.")


def limits_of(budget: Budget | None) -> str:
    """Return the limits of bytes and records that one run of the flow has, for a sentence."""
    if budget is None:
        return "its limit"
    limits = [f"{size(budget.max_bytes)} (ferry.run.max.bytes)"]
    if budget.max_records is not None:
        limits.append(f"{counted(budget.max_records, 'record')} (ferry.run.max.records)")
    return f"the limit of a run: {' or '.join(limits)}"


def stopped_at(seen: Status, last: RunDigest | None, budget: Budget | None) -> str:
    """Return why a run that ended well left something to the next ones; empty: no limit of its plan did that."""
    if last is None or not last.cut_short:
        return ""
    lag = seen.lag
    left = "what is left" if lag is None or lag.unknown else f"{counted(lag.records, 'record')} of lag"
    return f"The last run stopped at {limits_of(budget)}. The next runs copy {left}."


def _behind(seen: Status, limit: RecoveryPoint, stopped: str) -> Standing | None:
    if seen.behind is None:
        return None
    return Standing(
        condition=Condition.WARN, word="behind", why=" ".join(filter(None, [_beyond(seen.behind, limit), stopped]))
    )


def _at_rest(dag: DagState) -> Standing | None:
    if not (dag.known and dag.paused) or dag.under_way is not None:
        return None
    why = "Airflow starts no runs of its DAG until it is unpaused."
    return Standing(condition=Condition.HELD, word="DAG paused", why=why)


def _beyond(behind: Behind, limit: RecoveryPoint) -> str:
    """Return why the flow's lag exceeds its recovery point."""
    limits = " or ".join(
        [
            *([] if limit.seconds is None else [duration(limit.seconds)]),
            *([] if limit.records is None else [counted(limit.records, "record")]),
        ]
    )
    return (
        f"{number(behind.count)} of {counted(behind.partitions, 'partition')} {'is' if behind.count == 1 else 'are'} "
        f"beyond the recovery point of {limits} each: {_worst(behind)}."
    )


def _worst(behind: Behind) -> str:
    """Return the text on partitions with too much lag: the worst of known lag, and how many others."""
    parts = []
    if behind.worst:
        worst = behind.worst
        age = "of unknown age" if worst.seconds is None else f"up to {duration(worst.seconds)} old"
        parts.append(f"{worst.source} lacks {counted(worst.records or 0, 'record')} {age}")
    if behind.unknown:
        parts.append(f"the lag of {counted(behind.unknown, 'partition')} is unknown, which counts as beyond it")
    if behind.paused:
        many = "all" if behind.paused == behind.count else number(behind.paused)
        parts.append(f"{many} of these in topics that are paused")
    return "; ".join(parts)

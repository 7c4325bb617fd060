"""Runs of a flow's other DAGs (verifications, group syncs, backfills, drills, switches) in Airflow's database."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.orm import Session

from ferry.errors import MALFORMED
from ferry.model import Flow, Origin
from ferry.model.evidence import EvidenceKind
from ferry_airflow.naming import (
    IN_PRODUCTION,
    REASON,
    TELLING,
    VERBS,
    backfill_dag_id,
    drill_dag_id,
    groups_dag_id,
    other_dags,
    switch_dag_id,
    verify_dag_id,
)
from ferry_airflow.page.access import may_read
from ferry_airflow.page.airflow_side import DagRunRow, dag_states, row_of
from ferry_airflow.page.filters import ms_of
from ferry_airflow.page.run_words import DAG_CONDITIONS, Condition
from ferry_airflow.tables import begin_lines, verified_sentence

ASKING = "awaiting_input"
"""The state of a task that waits for an answer of a user."""
TASK_CONDITIONS = DAG_CONDITIONS | {
    "upstream_failed": Condition.BAD,
    "up_for_retry": Condition.WARN,
    ASKING: Condition.HELD,
}
"""The conditions of tasks by their states."""
PREVIEW = "preview"
"""The task of a drill or a switch that returns what its approver is shown."""
NEWEST = 10
"""How many runs of each DAG a list shows."""
MOST = 50
"""How many things of a kind are shown; Airflow has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task of a run; an empty state: the run has not come so far."""

    name: str
    state: str
    started: datetime | None
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DagRunStory:
    """A run of a DAG with its tasks, what it was asked for, and what it returned."""

    row: DagRunRow
    conf: Mapping[str, Any]
    tasks: tuple[TaskRow, ...]
    reasons: tuple[tuple[str, str], ...] = ()
    """Why tasks have failed, by their names, in the order in which they began."""
    preview: tuple[str, ...] = ()
    """The lines that its approver is shown: the steps, and the checks; none before it has them."""
    returned: Mapping[str, Any] = field(default_factory=dict)
    """What the task returned that reports the outcome; empty as long as there is nothing."""

    @property
    def asks(self) -> bool:
        """Whether it waits for an approval."""
        return any(task.state == ASKING for task in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBeside:
    """A run of another DAG in a list."""

    kind: str
    dag: str
    row: DagRunRow
    asks: bool
    """Whether it waits for an approval."""
    outcome: Outcome | None = None
    """How the run ended; None: it has not ended, or the user may not see what its tasks return."""


def runs_beside(user: BaseUser, flow: Flow, tab: str) -> list[RunBeside]:
    """Return the newest runs of the DAGs that belong to a tab of the flow's page, as far as the user may see them."""
    kinds = {
        dag: kind
        for dag, kind in other_dags(flow).items()
        if tab_of(flow, dag) == tab and may_read(user, dag, DagAccessEntity.RUN)
    }
    waiting = asking(kinds)
    rows = {(dag, row.run): row for dag, one in dag_states(dict.fromkeys(kinds, NEWEST)).items() for row in one.runs}
    seen = {dag for dag in kinds if may_read(user, dag, DagAccessEntity.XCOM)}
    known = asked_and_returned(rows)
    found = []
    for (dag, run), row in rows.items():
        conf, returned = known.get((dag, run), ({}, {}))
        outcome = outcome_of(DagRunStory(row=row, conf=conf, tasks=(), returned=returned)) if dag in seen else None
        kind = kind_of(kinds[dag], conf)
        found.append(RunBeside(kind=kind, dag=dag, row=row, asks=(dag, run) in waiting, outcome=outcome))
    return sorted(found, key=lambda one: (one.asks, ms_of(one.row.queued or one.row.started) or 0), reverse=True)


AskedReturned = tuple[Mapping[str, Any], Mapping[str, Any]]
"""What a run was asked for, and what the task returned that reports its outcome."""


def asked_and_returned(runs: Collection[tuple[str, str]]) -> dict[tuple[str, str], AskedReturned]:
    """Return by DAG and id what some runs were asked for and have returned; it takes two queries, or none."""
    if not runs:
        return {}
    dags, ids = {dag for dag, _ in runs}, {run for _, run in runs}
    with create_session() as session:
        its = select(DagRun.id, DagRun.dag_id, DagRun.run_id, DagRun.conf)
        found = session.execute(its.where(DagRun.dag_id.in_(dags), DagRun.run_id.in_(ids))).all()
        asked = {(dag, run): conf for _, dag, run, conf in found if isinstance(conf, Mapping)}
        # By the primary key: databases that choose the index of keys read all that tasks have ever returned.
        numbers = [number for number, dag, run, _ in found if (dag, run) in runs]
        its_values = (
            select(XComModel.dag_id, XComModel.run_id, XComModel.value)
            .where(XComModel.dag_run_id.in_(numbers), XComModel.task_id.in_(TELLING))
            .where(XComModel.map_index == -1, XComModel.key == "return_value")
        )
        plain = {(dag, run): _plain(value) for dag, run, value in session.execute(its_values)}
    returned = {run: value for run, value in plain.items() if isinstance(value, Mapping)}
    return {run: (asked.get(run, {}), returned.get(run, {})) for run in runs}


def kind_of(kind: str, conf: Mapping[str, Any]) -> str:
    """Return the name of a run with the kind of drill that it was asked for, if it is one."""
    way = conf.get("kind")
    return f"{way} {kind}" if kind == "drill" and way in set(EvidenceKind) else kind


def needs_approval(flow: Flow, dag: str, conf: Mapping[str, Any]) -> bool:
    """Return whether a run waits for an approval before it changes anything: a switch, or a drill in production."""
    if dag in {switch_dag_id(verb, flow) for verb in VERBS}:
        return not conf.get("dry_run")
    return dag == drill_dag_id(flow) and conf.get("kind") in set(IN_PRODUCTION)


def tab_of(flow: Flow, dag: str) -> str:
    """Return the part of the flow's page that one of its other DAGs belongs to."""
    tabs = {verify_dag_id(flow): "runs", groups_dag_id(flow): "groups", backfill_dag_id(flow): "backfills"}
    return tabs.get(dag, "reports")


def asking(dags: Collection[str]) -> set[tuple[str, str]]:
    """Return the runs of some DAGs, by DAG and id, that wait for an approval."""
    task = TaskInstance
    with create_session() as session:
        found = session.execute(
            select(task.dag_id, task.run_id).where(task.dag_id.in_(dags), task.state == ASKING).limit(MOST)
        )
        return {(dag, run) for dag, run in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A run of another of a flow's DAGs that waits for an approval."""

    kind: str
    dag: str
    run: str


def approvals(user: BaseUser, flows: Iterable[Flow]) -> dict[Flow, list[Asking]]:
    """Return the runs of flows that wait for an approval, as far as the user may see them."""
    known = {dag: (flow, kind) for flow in flows for dag, kind in other_dags(flow).items()}
    found: dict[Flow, list[Asking]] = {}
    for dag, run in sorted(asking(known)):
        if may_read(user, dag, DagAccessEntity.RUN):
            flow, kind = known[dag]
            found.setdefault(flow, []).append(Asking(kind=kind, dag=dag, run=run))
    return found


def origin_in_airflow(user: BaseUser, flow: Flow, origin: Origin) -> DagRunRow | None:
    """Return the run of another of the flow's DAGs that made a micro-run; None without one that the user may see."""
    if origin.dag_id not in other_dags(flow) or not may_read(user, origin.dag_id, DagAccessEntity.RUN):
        return None
    with create_session() as session:
        its = select(DagRun).where(DagRun.dag_id == origin.dag_id, DagRun.run_id == origin.dag_run_id)
        found = session.scalar(its)
        return None if found is None else row_of(found)


def story_of(dag: str, run: str, *, with_returned: bool) -> DagRunStory | None:
    """Return a run of a DAG; None if Airflow does not have it, or not any more."""
    with create_session() as session:
        found = session.scalar(select(DagRun).where(DagRun.dag_id == dag, DagRun.run_id == run))
        if found is None:
            return None
        of_run = TaskInstance.dag_id == dag, TaskInstance.run_id == run
        task = TaskInstance
        tasks = session.execute(
            select(task.task_id, task.state, task.start_date, task.duration).where(*of_run).order_by(task.start_date)
        ).all()
        returned = session.scalars(
            select(XComModel)
            .where(XComModel.dag_id == dag, XComModel.run_id == run, XComModel.key == "return_value")
            .where(XComModel.task_id.in_((*TELLING, PREVIEW)))
        ).all()
        values = [_plain(one.value) for one in returned if one.task_id != PREVIEW] if with_returned else []
        shown = [one.value for one in returned if one.task_id == PREVIEW] if with_returned else []
        why = _reasons(session, dag, run) if with_returned else {}
        return DagRunStory(
            row=row_of(found),
            conf=dict(found.conf or {}),
            tasks=tuple(
                TaskRow(name=name, state=str(state or ""), started=started, seconds=seconds)
                for name, state, started, seconds in sorted(tasks, key=lambda task: task[2] is None)
            ),
            reasons=tuple((name, why.get(name, SILENT)) for name, state, *_ in tasks if state in _NOT_WELL)
            if with_returned
            else (),
            preview=tuple(line.removeprefix("- ") for text in shown for line in _text(text).splitlines()[:MOST]),
            returned=next((value for value in values if isinstance(value, Mapping)), {}),
        )


def _plain(value: Any) -> Any:
    """Return what a task returned as plain JSON.

    A user who may write XComs could make Airflow's own reader create objects.
    """
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    """Return a text that a task returned, which is JSON in the database; empty if it is not text."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        found = value
    return found if isinstance(found, str) else ""


_NOT_WELL = frozenset({"failed", "up_for_retry"})
SILENT = "It left no sentence: it was killed, or failed outside of Ferry. Its log in Airflow says more."
"""The text for a task that kept no reason."""


def reasons_of(dag: str, run: str) -> tuple[tuple[str, str], ...]:
    """Return why tasks of a run have failed, or are retried, by their names; SILENT for one without a reason."""
    task = TaskInstance
    with create_session() as session:
        why = _reasons(session, dag, run)
        tasks = session.execute(
            select(task.task_id, task.state)
            .where(task.dag_id == dag, task.run_id == run, task.state.in_(_NOT_WELL))
            .order_by(task.start_date)
        )
        return tuple((name, why.get(name, SILENT)) for name, _ in tasks)


def first_reasons(runs: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return by DAG and run id why the first of a run's tasks with a kept reason failed."""
    if not runs:
        return {}
    with create_session() as session:
        found = session.scalars(
            select(XComModel)
            .where(XComModel.dag_id.in_({dag for dag, _ in runs}), XComModel.run_id.in_({run for _, run in runs}))
            .where(XComModel.key == REASON)
            .order_by(XComModel.timestamp.desc())
        )
        by_run = {(one.dag_id, one.run_id): one.value for one in found if isinstance(one.value, str)}
        return {run: by_run[run] for run in runs if run in by_run}


MOST_REASONS = 100
"""The newest reasons of a DAG that are searched for outages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a task failed, and when it did (epoch ms)."""

    run: str
    at_ms: int
    text: str


def newest_reasons(dag: str, since_ms: int) -> list[Reason]:
    """Return why tasks of a DAG's runs failed since a time, MOST_REASONS at most, oldest first.

    A task that repeats the reason of another one of its run is left out. It takes one query.
    """
    its = select(XComModel.run_id, XComModel.timestamp, XComModel.value).where(
        XComModel.dag_id == dag,
        XComModel.key == REASON,
        XComModel.timestamp >= datetime.fromtimestamp(since_ms / 1000, UTC),
    )
    with create_session() as session:
        rows = session.execute(its.order_by(XComModel.timestamp.desc()).limit(MOST_REASONS)).all()
    found: list[Reason] = []
    for run, at, text in reversed(rows):
        if isinstance(text, str) and not any(one.run == run and one.text in text for one in found):
            found.append(Reason(run=run, at_ms=ms_of(at) or 0, text=text))
    return found


def may_see_reasons(user: BaseUser, dag: str) -> bool:
    """Return whether a user may see what tasks of a DAG keep."""
    return may_read(user, dag, DagAccessEntity.RUN, DagAccessEntity.TASK_INSTANCE, DagAccessEntity.XCOM)


def _reasons(session: Session, dag: str, run: str) -> dict[str, str]:
    found = session.scalars(
        select(XComModel).where(XComModel.dag_id == dag, XComModel.run_id == run, XComModel.key == REASON)
    )
    return {one.task_id: one.value for one in found if isinstance(one.value, str)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a run, as a word and in sentences, and where its report is on the page."""

    condition: Condition
    word: str
    lines: tuple[str, ...] = ()
    report: int | None = None


_CONDITIONS = {
    **dict.fromkeys(("success", "finished", "synced"), Condition.GOOD),
    **dict.fromkeys(("deviations", "abandoned"), Condition.WARN),
    "left alone": Condition.HELD,
    "dry run": Condition.UNKNOWN,
}
"""The conditions of drills, switches and syncs of groups by their outcomes; any other is bad."""


def outcome_of(story: DagRunStory) -> Outcome | None:
    """Return the outcome of a run, from what it has returned; None if Ferry's tasks did not return it."""
    try:
        found = _outcome(story)
    except MALFORMED:
        return None
    if found is None:
        return None
    # Any user who may write XComs may have written it: Ferry's tasks return only texts here.
    texts: tuple[object, ...] = (found.word, *found.lines)
    number: object = found.report
    is_own = all(isinstance(one, str) for one in texts) and (number is None or isinstance(number, int))
    return found if is_own else None


def _outcome(story: DagRunStory) -> Outcome | None:
    body = story.returned
    if "equal" in body:
        return _verified(body)
    word = body.get("outcome")
    if not word:
        return None
    report = body.get("report") or {}
    left = [one["message"] for one in body.get("left", ())]
    lines = (body.get("summary"), *body.get("refusals", ()), *body.get("deviations", ()), *left)
    return Outcome(
        condition=_CONDITIONS.get(word, Condition.BAD),
        word=word,
        lines=tuple(line for line in dict.fromkeys(lines) if line),
        # The page shows the folder of the flow's file, and the form may have named another.
        report=None if story.conf.get("report") else report.get("number"),
    )


def _verified(body: Mapping[str, Any]) -> Outcome:
    if body["differences"]:
        condition, word = Condition.BAD, "differs"
    elif not body["equal"]:
        condition, word = Condition.WARN, "incomplete"
    else:
        condition, word = (Condition.GOOD, "equal") if body["records"] else (Condition.UNKNOWN, "nothing to compare")
    left = [f"Not compared: {one['message']}" for one in body["not_compared"]]
    more = [f"{len(left) - MOST} more could not be compared: the task's log has all."] if len(left) > MOST else []
    begun = begin_lines(body)
    rest = [f"{len(begun) - MOST} more partitions were not compared whole: the task's log has all."]
    return Outcome(
        condition=condition,
        word=word,
        lines=(
            verified_sentence(body), *left[:MOST], *more, *begun[:MOST], *rest[: len(begun) > MOST], *body["notes"]
        ),
    )  # fmt: skip

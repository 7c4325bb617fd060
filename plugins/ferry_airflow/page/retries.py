"""Tasks of active runs that Airflow tries again, from its database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from ferry.errors import MALFORMED
from ferry_airflow.naming import REASON
from ferry_airflow.page.access import TASKS, XCOMS, may_read_of
from ferry_airflow.page.airflow_side import UNDER_WAY, DagState
from ferry_airflow.page.filters import ms_of
from ferry_airflow.page.retry_words import BETWEEN, Retry
from ferry_airflow.page.retry_words import UNDER_WAY as BEGUN

ACTIVE = frozenset({"scheduled", "queued", "restarting", BETWEEN, *BEGUN})
"""The states of a task whose next try is under way, or comes next; one that was cleared has none until its turn."""
MOST_VERSIONS = 1_000
"""Versions of DAGs whose delays are kept."""
RunOf = tuple[str, str]
"""A run, by its DAG and its id."""
kept_delays: dict[UUID, dict[str, timedelta]] = {}
"""How long tasks wait for their next try, by the version of their DAG: one that has runs does not change."""


def with_retries(user: BaseUser, dags: Mapping[str, DagState]) -> dict[str, DagState]:
    """Return the states of DAGs, their active runs with the tasks that are tried again, as far as a user may see them.

    It takes one query for all of them, or none if no run is active. Another one has the delays of DAGs that were not
    asked for before, if a task is between two tries. A third one has why a try ended, if a task waits for its next one.
    """
    active = {(dag, run.run) for dag, its in dags.items() for run in its.runs if run.state in UNDER_WAY}
    seen = may_read_of(user, {dag for dag, _ in active}, TASKS)
    found = retries_of([run for run in active if run[0] in seen])
    reasons = may_read_of(user, {dag for dag, _ in found}, XCOMS)

    def shown(dag: str, its: DagState) -> DagState:
        runs = (replace(run, retries=_as_seen(found.get((dag, run.run), ()), dag in reasons)) for run in its.runs)
        return replace(its, runs=tuple(runs), hides_tasks=any(one == dag for one, _ in active) and dag not in seen)

    return {dag: shown(dag, its) for dag, its in dags.items()} if active else dict(dags)


def _as_seen(retries: Iterable[Retry], reasons: bool) -> tuple[Retry, ...]:
    """Return retries as far as a user may see them: with or without what their tasks kept."""
    return tuple(one if reasons else replace(one, why="") for one in retries)


def retries_of(runs: Collection[RunOf]) -> dict[RunOf, tuple[Retry, ...]]:
    """Return by run the tasks that are tried again, the last one that ended without success first."""
    if not runs:
        return {}
    task, past = TaskInstance, TaskInstanceHistory
    same = and_(
        past.dag_id == task.dag_id,
        past.run_id == task.run_id,
        past.task_id == task.task_id,
        past.map_index == task.map_index,
    )
    of_task = (task.dag_id, task.run_id, task.task_id, task.map_index)
    its = (
        select(
            *(*of_task, task.state, task.try_number, task.max_tries, task.start_date),
            *(task.dag_version_id, task.retry_delay_override, past.try_number, past.end_date, past.retry_reason),
            past.state.label("word"),
        )
        .join(past, same)
        .where(task.dag_id.in_({dag for dag, _ in runs}), task.run_id.in_({run for _, run in runs}))
        .where(task.state.in_(ACTIVE), past.try_number > 0)
        .order_by(past.try_number)
    )
    with create_session() as session:
        tries: dict[tuple[Any, ...], list[Any]] = {}
        for row in session.execute(its):
            if (row[0], row[1]) in runs:
                tries.setdefault(tuple(row[:4]), []).append(row)
        tries = {place: failed for place, rows in tries.items() if (failed := _failed(rows))}
        between = [rows[-1] for rows in tries.values() if rows[-1].state == BETWEEN]
        _read_delays(session, {row.dag_version_id for row in between if row.dag_version_id is not None})
        why = _reasons(session, {place for place, rows in tries.items() if rows[-1].state not in BEGUN})
    found: dict[RunOf, list[Retry]] = {}
    for place, rows in tries.items():
        found.setdefault((place[0], place[1]), []).append(_retry(rows, why.get(place, "")))
    return {run: tuple(sorted(those, key=lambda one: -(one.ended_ms or 0))) for run, those in found.items()}


def _failed(tries: list[Any]) -> list[Any]:
    """Return the tries that failed, or ended without a state, after the last one with success; oldest first.

    A row of another state has no try: its task was skipped, or one before it had failed.
    """
    after = max((at for at, one in enumerate(tries, 1) if one.word == "success"), default=0)
    return [one for one in tries[after:] if one.word in ("failed", None)]


def _retry(tries: list[Any], why: str) -> Retry:
    """Return a task by its tries that ended without success, each a row of `retries_of`, oldest first."""
    *_, name, _, state, number, most, started, version, override, last, ended, reason, _ = tries[-1]
    number += state == BETWEEN
    delay = kept_delays.get(version, {}).get(name) if override is None else timedelta(seconds=override)
    due = ended + delay if state == BETWEEN and ended is not None and delay is not None else None
    return Retry(
        task=name,
        state=str(state),
        number=number,
        most=None if most is None or most + 1 < number else most + 1,
        ended=len(tries),
        last=last,
        ended_ms=ms_of(ended),
        began_ms=ms_of(started) if state in BEGUN else None,
        due_ms=ms_of(due),
        why=why or reason or "",
    )


def _read_delays(session: Session, versions: Collection[UUID]) -> None:
    """Keep how long tasks of versions of DAGs wait for their next try, as their serialized DAGs have it.

    The time of a task whose delay grows with each try is left out: Airflow adds a part of its own to it.
    """
    missing = set(versions) - kept_delays.keys()
    if not missing:
        return
    if len(kept_delays) + len(missing) > MOST_VERSIONS:
        kept_delays.clear()
    for one in session.scalars(select(SerializedDagModel).where(SerializedDagModel.dag_version_id.in_(missing))):
        kept_delays[one.dag_version_id] = delays_in(one.data or {})


def delays_in(serialized: Mapping[str, Any]) -> dict[str, timedelta]:
    """Return how long the tasks of a serialized DAG wait for their next try; a task is left out if it is not known."""
    found = {}
    try:
        tasks = [one["__var"] for one in serialized["dag"]["tasks"]]
        common = serialized.get("client_defaults", {}).get("tasks", {})
        for task in tasks:
            its = {**common, **task}
            if not its.get("retry_exponential_backoff") and "retry_delay" in its:
                found[its["task_id"]] = timedelta(seconds=its["retry_delay"])
    except MALFORMED:
        return found
    return found


def _reasons(session: Session, tasks: Collection[tuple[Any, ...]]) -> dict[tuple[Any, ...], str]:
    """Return what tasks kept when their last try ended: a new try deletes it."""
    if not tasks:
        return {}
    kept = XComModel
    its = select(kept.dag_id, kept.run_id, kept.task_id, kept.map_index, kept.value).where(
        kept.dag_id.in_({one[0] for one in tasks}), kept.run_id.in_({one[1] for one in tasks}), kept.key == REASON
    )
    return {tuple(row[:4]): row.value for row in session.execute(its) if isinstance(row.value, str)}

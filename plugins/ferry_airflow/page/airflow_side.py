"""Airflow's own database about a flow: its DAG, that DAG's runs, and what the page writes there."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.sdk.exceptions import AirflowException
from airflow.serialization.definitions.dag import SerializedDAG
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import exists, select, union_all
from sqlalchemy.orm import Session

from ferry.errors import BadInput
from ferry_airflow.naming import ASKED_WRONG
from ferry_airflow.page.retry_words import Retry

UNDER_WAY = frozenset({"queued", "running"})
FAILED_RUNS = 100
"""How many of a DAG's newest failed runs the list of runs has."""
FAILED_TASKS = frozenset({"failed", "upstream_failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DagRunRow:
    """A run of a DAG; times are None as long as it has not come so far."""

    run: str
    state: str
    queued: datetime | None
    started: datetime | None
    ended: datetime | None
    who: str
    asked_wrong: bool = False
    """Whether it failed because of what it was asked for (a topic that does not exist): the flow itself may be well."""
    retries: tuple[Retry, ...] = ()
    """Its tasks that Airflow tries again, the last one that failed first; known of an active run alone."""

    @property
    def retry(self) -> Retry | None:
        """The first of these, as long as the run is active."""
        return self.retries[0] if self.retries and self.state in UNDER_WAY else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DagState:
    """A flow's DAG in Airflow; `known` is False if no DAG file has brought it."""

    known: bool = False
    paused: bool = False
    due: datetime | None = None
    schedule: str = ""
    runs: tuple[DagRunRow, ...] = ()
    """Runs of the DAG, newest first."""
    hides_runs: bool = False
    """Whether there may be runs that the user may not see: then missing runs prove nothing."""
    hides_tasks: bool = False
    """Whether the user may not see the tasks of its runs: then whether one is tried again is not known."""

    @property
    def under_way(self) -> DagRunRow | None:
        """The run that is running, else the one that is queued."""
        found = [run for run in self.runs if run.state in UNDER_WAY]
        return next((run for run in found if run.state == "running"), found[-1] if found else None)


AT_ONCE = 100
"""The most DAGs whose runs one query asks for: SQLite takes 500 in one."""
_OF_RUN = (
    DagRun.dag_id,
    DagRun.run_id,
    DagRun.state,
    DagRun.queued_at,
    DagRun.start_date,
    DagRun.end_date,
    DagRun.triggering_user_name,
    exists().where(XComModel.dag_run_id == DagRun.id, XComModel.key == ASKED_WRONG).label("asked_wrong"),
)
_OF_DAG = (DagModel.dag_id, DagModel.is_paused, DagModel.next_dagrun_create_after, DagModel.timetable_summary)


def dag_states(dags: Mapping[str, int]) -> dict[str, DagState]:
    """Return the states of some DAGs, each with its newest runs, as many as asked for.

    It takes two queries for any number of DAGs.
    """
    found = dict.fromkeys(dags, DagState())
    with create_session() as session:
        known = session.execute(select(*_OF_DAG).where(DagModel.dag_id.in_(dags), ~DagModel.is_stale)).all()
        runs = _newest_runs(session, {dag: dags[dag] for dag, *_ in known})
    for dag, paused, due, schedule in known:
        found[dag] = DagState(known=True, paused=bool(paused), due=due, schedule=schedule or "", runs=runs[dag])
    return found


def _newest_runs(session: Session, dags: Mapping[str, int]) -> dict[str, tuple[DagRunRow, ...]]:
    """Return the newest runs of each DAG, as many as asked, newest first.

    Each has its own limit within the query: numbering the rows instead would read all runs there have ever been.
    """
    found: dict[str, list[DagRunRow]] = {dag: [] for dag in dags}
    of_each = [
        select(*_OF_RUN, DagRun.run_after).where(DagRun.dag_id == dag).order_by(DagRun.run_after.desc()).limit(most)
        for dag, most in dags.items()
        if most
    ]
    for at in range(0, len(of_each), AT_ONCE):
        rows = union_all(*(select(one.subquery()) for one in of_each[at : at + AT_ONCE])).subquery()
        for dag, *of_run, _ in session.execute(select(rows).order_by(rows.c.run_after.desc())):
            found[dag].append(_row(*of_run))
    return {dag: tuple(rows) for dag, rows in found.items()}


def with_older(dag: str, known: DagState, runs: Collection[str]) -> DagState:
    """Return a DAG's state with those of `runs`, by their ids, that it does not have yet.

    It takes one query, or none if there is nothing to look up. A DAG whose runs the user may not see gets none.
    """
    missing = set(runs) - {run.run for run in known.runs}
    if not missing or not known.known or known.hides_runs:
        return known
    with create_session() as session:
        its = select(*_OF_RUN).where(DagRun.dag_id == dag, DagRun.run_id.in_(missing)).order_by(DagRun.run_after.desc())
        older = tuple(_row(*of_run) for _, *of_run in session.execute(its))
    return replace(known, runs=(*known.runs, *older))


def with_failed(dag: str, known: DagState) -> DagState:
    """Return a DAG's state with the newest of its runs that failed, FAILED_RUNS at most, that it does not have yet.

    A run whose first task failed is in Airflow's database alone. It takes one query. A DAG whose runs the user may not
    see gets none.
    """
    if not known.known or known.hides_runs:
        return known
    failed = select(*_OF_RUN).where(DagRun.dag_id == dag, DagRun.state == "failed")
    with create_session() as session:
        found = session.execute(failed.order_by(DagRun.run_after.desc()).limit(FAILED_RUNS))
        rows = [_row(*of_run) for _, *of_run in found]
    have = {run.run for run in known.runs}
    return replace(known, runs=(*known.runs, *(row for row in rows if row.run not in have)))


def row_of(run: DagRun) -> DagRunRow:
    """Return a run as Airflow's database has it."""
    return _row(run.run_id, run.state, run.queued_at, run.start_date, run.end_date, run.triggering_user_name)


def _row(
    run: str,
    state: str,
    queued: datetime | None,
    started: datetime | None,
    ended: datetime | None,
    who: str | None,
    asked_wrong: bool = False,
) -> DagRunRow:
    return DagRunRow(
        run=run,
        state=str(state),
        queued=queued,
        started=started,
        ended=ended,
        who=who or "",
        asked_wrong=bool(asked_wrong),
    )


def trigger(dag: str, who: str, conf: Mapping[str, Any]) -> str:
    """Start a run of a DAG in the name of a user; return its id. BadInput if Airflow does not take it."""
    try:
        run = trigger_dag(
            dag,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=who,
            conf=dict(conf),
        )
    except (AirflowException, ValueError) as error:
        raise BadInput(f"Airflow starts no run of DAG {dag}: {error}") from error
    if run is None:
        raise BadInput(f"Airflow started no run of DAG {dag}: see its import errors")
    return str(run.run_id)


def clear_failed(dag: str, run: str) -> int:
    """Clear the failed tasks of a run and all after them, so that Airflow runs them again; return how many.

    If none failed, the skipped ones: Airflow skips what it has not begun of a run that is marked as failed or takes too
    long. BadInput if Airflow has no such run, if it has not failed, or if it has neither failed nor skipped tasks.
    """
    with create_session() as session:
        its = session.scalar(select(DagRun).where(DagRun.dag_id == dag, DagRun.run_id == run))
        if its is None or its.state != "failed":
            raise BadInput(f"Run {run} of DAG {dag} is {'not there' if its is None else its.state}: nothing is cleared")
        task = TaskInstance
        of_run = select(task.task_id).where(task.dag_id == dag, task.run_id == run)
        undone = (
            session.scalars(of_run.where(task.state.in_(FAILED_TASKS))).all()
            or session.scalars(of_run.where(task.state == "skipped")).all()
        )
        if not undone:
            raise BadInput(f"Run {run} of DAG {dag} has no failed or skipped task: nothing is cleared; start a new run")
        found = _dag_of(its, session)
        if found is None:
            raise BadInput(f"Airflow has no DAG {dag} now: see its import errors")
        after = found.partial_subset(task_ids=undone, include_downstream=True, include_upstream=False)
        count: int = found.clear(task_ids=[*after.task_dict], run_id=run, session=session)
        return count


def _dag_of(run: DagRun, session: Session) -> SerializedDAG | None:
    """Return the DAG of a run, of the version that the run has."""
    return DBDagBag(load_op_links=False).get_dag_for_run(run, session)


def audit(who: str, event: str, dag: str, run: str | None, extra: Mapping[str, Any]) -> None:
    """Write a line of Airflow's audit log (Browse, Audit Log)."""
    with create_session() as session:
        session.add(
            Log(event=event, owner=who, owner_display_name=who, dag_id=dag, run_id=run, extra=json.dumps(dict(extra)))
        )

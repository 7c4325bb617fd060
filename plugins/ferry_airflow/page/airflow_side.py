"""What Airflow's own database knows of a flow: its DAG, the runs of that, and what the page writes there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.sdk.exceptions import AirflowException
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select

from ferry.errors import BadInput

UNDER_WAY = frozenset({"queued", "running"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DagRunRow:
    """A run of a DAG; times are None as long as it has not come so far."""

    run: str
    state: str
    queued: datetime | None
    started: datetime | None
    ended: datetime | None
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DagState:
    """A flow's DAG as Airflow knows it; `known` is False where no DAG file has brought it."""

    known: bool = False
    paused: bool = False
    due: datetime | None = None
    schedule: str = ""
    runs: tuple[DagRunRow, ...] = ()
    """Newest first."""

    @property
    def under_way(self) -> DagRunRow | None:
        """The run that is running, else the one that is queued."""
        found = [run for run in self.runs if run.state in UNDER_WAY]
        return next((run for run in found if run.state == "running"), found[-1] if found else None)


def dag_states(dags: Mapping[str, int]) -> dict[str, DagState]:
    """The states of some DAGs, each with so many of its newest runs."""
    found = dict.fromkeys(dags, DagState())
    with create_session() as session:
        for model in session.scalars(select(DagModel).where(DagModel.dag_id.in_(dags), ~DagModel.is_stale)):
            newest = (
                select(DagRun)
                .where(DagRun.dag_id == model.dag_id)
                .order_by(DagRun.run_after.desc())
                .limit(dags[model.dag_id])
            )
            found[model.dag_id] = DagState(
                known=True,
                paused=bool(model.is_paused),
                due=model.next_dagrun_create_after,
                schedule=model.timetable_summary or "",
                runs=tuple(row_of(run) for run in session.scalars(newest)),
            )
    return found


def row_of(run: DagRun) -> DagRunRow:
    """A run as Airflow's database has it."""
    return DagRunRow(
        run=run.run_id,
        state=str(run.state),
        queued=run.queued_at,
        started=run.start_date,
        ended=run.end_date,
        who=run.triggering_user_name or "",
    )


def trigger(dag: str, who: str, conf: Mapping[str, Any]) -> str:
    """Start a run of a DAG in somebody's name; its id. BadInput where Airflow does not take it."""
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


def audit(who: str, event: str, dag: str, run: str | None, extra: Mapping[str, Any]) -> None:
    """A line of Airflow's audit log (Browse, Audit Log)."""
    with create_session() as session:
        session.add(
            Log(event=event, owner=who, owner_display_name=who, dag_id=dag, run_id=run, extra=json.dumps(dict(extra)))
        )

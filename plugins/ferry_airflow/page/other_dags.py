"""The pages of a flow's runs other than micro-runs: its verifications, group syncs, backfills, drills and switches."""

from __future__ import annotations

from dataclasses import replace

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from fastapi import HTTPException, Request, status
from fastapi.responses import Response

from ferry_airflow.naming import other_dags, verify_dag_id
from ferry_airflow.page.access import User, may_read, refuse
from ferry_airflow.page.airflow_side import dag_states
from ferry_airflow.page.dag_runs import TASK_CONDITIONS, outcome_of, story_of, tab_of
from ferry_airflow.page.differences import NOTHING, differences_of
from ferry_airflow.page.filters import ms_of
from ferry_airflow.page.page_state import FlowDep
from ferry_airflow.page.pages import may_continue, retried_of, shown_page, with_own_retries
from ferry_airflow.page.threads import page_router

router = page_router(prefix="/flow/{source}/{target}")

CHECK_CONDITIONS = {
    "ok": ("good", ""),
    "warning": ("warn", "Warning"),
    "not known": ("unknown", "Not known"),
    "NOT OK": ("bad", "Failed"),
}
"""The colours of checks in a preview by their outcomes (`Check.outcome`), and the words for screen readers."""


@router.get("/dag/{dag}/run/{run:path}")
def run_beside(request: Request, open_flow: FlowDep, user: User, dag: str, run: str) -> Response:
    """Show a run of another of the flow's DAGs: its state, what it waits for, and its outcome."""
    flow = open_flow.flow
    kind = other_dags(flow).get(dag)
    if kind is None:
        raise HTTPException(
            status.HTTP_404_NOT_FOUND, f"Flow {flow} has no DAG {dag} other than that of its micro-runs"
        )
    refuse(may_read(user, dag, DagAccessEntity.RUN, DagAccessEntity.TASK_INSTANCE), f"see runs of DAG {dag}")
    story = story_of(dag, run, with_returned=may_read(user, dag, DagAccessEntity.XCOM))
    row = None if story is None else with_own_retries(user, dag, story.row)
    if story is not None and row is not None:
        again = {one.task for one in row.retries}
        story = replace(story, reasons=tuple(one for one in story.reasons if one[0] not in again))
    outcome = story and outcome_of(story)
    differing = differences_of(story.returned) if story and outcome and dag == verify_dag_id(flow) else NOTHING
    return shown_page(
        request,
        "beside.html",
        open_flow,
        tab_of(flow, dag),
        retried=retried_of(open_flow, dag, row, in_head=False),
        dag=dag,
        kind=kind,
        run=run,
        began_ms=story and ms_of(story.row.queued or story.row.started),
        story=story,
        outcome=outcome,
        differing=differing,
        clears=story is not None and may_continue(open_flow, user, dag, story.row),
        state=dag_states({dag: 0})[dag],
        task_conditions=TASK_CONDITIONS,
        check_conditions=CHECK_CONDITIONS,
    )

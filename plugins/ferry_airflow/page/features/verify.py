"""Starts a comparison of what a flow has copied."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Body, Request

from ferry_airflow.naming import verify_dag_id
from ferry_airflow.page.access import refuse
from ferry_airflow.page.page_state import FlowDep
from ferry_airflow.page.starting import RunAsked, acting_router, refuse_foreign_topics, topics_of, triggered

router = acting_router()


class VerifyAsked(RunAsked):
    """Compare what was copied."""

    mode: Literal["full", "sample", "compacted"] = "full"


@router.post("/verify")
def verify(request: Request, open_flow: FlowDep, asked: Annotated[VerifyAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG that compares both clusters."""
    dag = verify_dag_id(open_flow.flow)
    refuse(open_flow.rights.verify, f"start runs of DAG {dag}")
    refuse_foreign_topics(open_flow, asked)
    return triggered(request, open_flow, "ferry_verify", dag, {"mode": asked.mode, **topics_of(asked)})

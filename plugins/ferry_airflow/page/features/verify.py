"""Starts a comparison of what a flow has copied."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Body, Request
from pydantic import Field

from ferry_airflow.naming import verify_dag_id
from ferry_airflow.page.access import refuse
from ferry_airflow.page.page_state import FlowDep, OpenFlow
from ferry_airflow.page.rendering import WrongField, each_field
from ferry_airflow.page.starting import (
    INT32,
    RunAsked,
    acting_router,
    refuse_foreign_partition,
    refuse_foreign_topics,
    topics_of,
    triggered,
)

router = acting_router()


class VerifyAsked(RunAsked):
    """Compare what was copied."""

    mode: Literal["full", "sample", "compacted"] = "full"
    partition: int | None = Field(default=None, ge=0, le=INT32)
    """The partition of the one topic that is named; None: all."""


@router.post("/verify")
def verify(request: Request, open_flow: FlowDep, asked: Annotated[VerifyAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG that compares both clusters."""
    dag = verify_dag_id(open_flow.flow)
    refuse(open_flow.rights.verify, f"start runs of DAG {dag}")
    each_field(lambda: refuse_foreign_topics(open_flow, asked), lambda: _refuse_partition(open_flow, asked))
    only = {} if asked.partition is None else {"partition": asked.partition}
    return triggered(request, open_flow, "ferry_verify", dag, {"mode": asked.mode, **topics_of(asked), **only})


def _refuse_partition(open_flow: OpenFlow, asked: VerifyAsked) -> None:
    """Refuse a partition without the one topic that it counts in, and one that the topic does not have."""
    if asked.partition is None:
        return
    if len(set(asked.topics)) != 1:
        raise WrongField("partition", "A partition counts in one topic: name that topic alone, or leave this empty")
    refuse_foreign_partition("partition", open_flow, asked.topics[0], asked.partition)

"""Starts a rehearsal of a failover."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Body, Request
from pydantic import Field

from ferry.config.settings import load
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind
from ferry_airflow.drill_fields import foreign_field
from ferry_airflow.naming import drill_dag_id
from ferry_airflow.page.access import refuse
from ferry_airflow.page.features.groups import refuse_foreign_groups
from ferry_airflow.page.page_state import FlowDep, OpenFlow
from ferry_airflow.page.rendering import WrongField, each_field
from ferry_airflow.page.starting import RunAsked, acting_router, refuse_foreign_topics, topics_of, triggered
from ferry_airflow.report_places import nowhere

router = acting_router()


class DrillAsked(RunAsked):
    """Rehearse a failover."""

    kind: Literal["tabletop", "shadow", "partial", "full"]
    groups: list[Annotated[str, Field(min_length=1, max_length=255)]] = Field(default_factory=list, max_length=1000)
    reason: str = Field(default="", max_length=500)


@router.post("/drill")
def drill(request: Request, open_flow: FlowDep, asked: Annotated[DrillAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG of drills; one that touches production waits there for an approval."""
    dag = drill_dag_id(open_flow.flow)
    refuse(open_flow.rights.drill, f"start runs of DAG {dag}")
    each_field(
        lambda: _refuse_fields(asked),
        lambda: refuse_foreign_topics(open_flow, asked),
        lambda: refuse_foreign_groups(open_flow, asked.groups),
        lambda: _refuse_drill(open_flow, asked.kind),
    )
    more = {key: value for key, value in (("groups", asked.groups), ("reason", asked.reason)) if value}
    return triggered(request, open_flow, "ferry_drill", dag, {"kind": asked.kind, **topics_of(asked), **more})


def _refuse_fields(asked: DrillAsked) -> None:
    """Refuse a field that another kind of drill has, and a partial drill of nothing."""
    if asked.kind == "partial" and not asked.topics and not asked.groups:
        raise WrongField("topics", "A partial drill needs topics or groups of the source: name one")
    foreign = foreign_field(EvidenceKind(asked.kind), {"topics": asked.topics, "groups": asked.groups})
    if foreign is not None:
        name, why = foreign
        raise WrongField(name, why[0].upper() + why[1:])


def _refuse_drill(open_flow: OpenFlow, kind: str) -> None:
    """Refuse a drill whose DAG would fail because of the flow's file."""
    why = nowhere(open_flow.config, {})
    if why is None and kind == EvidenceKind.FULL:
        back = Flow(source=open_flow.flow.target, target=open_flow.flow.source)
        known = {flow.flow for flow in load(open_flow.path).flows}
        if back not in known:
            why = (
                f"a full drill goes back by flow {back}, which the file does not have: add {back}.enabled = true and "
                "its topics"
            )
    if why is not None:
        raise WrongField("kind", why)

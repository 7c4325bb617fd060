"""Starts switches of a flow, and checks before whether its target could take over."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, HTTPException, Request, status
from pydantic import Field

from ferry.model.switch import Verb
from ferry.reader.questions import Begin
from ferry_airflow.naming import switch_dag_id
from ferry_airflow.page.access import refuse
from ferry_airflow.page.actions import begun
from ferry_airflow.page.features.groups import refuse_unknown_groups
from ferry_airflow.page.page_state import FlowDep, OfficeDep, OpenFlow, PageState, has_back
from ferry_airflow.page.rendering import WrongField
from ferry_airflow.page.starting import Asked, acting_router, triggered

router = acting_router()


class SwitchAsked(Asked):
    """Move clients to another cluster."""

    reason: str = Field(min_length=1, max_length=500)
    reverse: bool = True
    """Whether the flow back is started afterwards."""
    leave_groups: list[Annotated[str, Field(min_length=1, max_length=255)]] = Field(
        default_factory=list, max_length=1000
    )
    """Consumer groups that are not moved."""
    dry_run: bool = False
    """Whether only the steps and the checks are shown."""
    confirm: str
    """The name of the cluster that clients go to, as the user typed it."""


class ReadinessAsked(Asked):
    """Check what a switch checks before it begins."""

    verb: Verb = Verb.SWITCHOVER
    reverse: bool = True
    """Whether that switch would start the flow back afterwards."""


@router.post("/readiness", status_code=status.HTTP_202_ACCEPTED)
async def readiness(request: Request, open_flow: FlowDep, asked: Annotated[ReadinessAsked, Body()]) -> dict[str, Any]:
    """Check whether a switch of the flow's clients could begin now; nothing is written."""
    refuse(open_flow.rights.run, f"plan runs of DAG {open_flow.dag_id}")
    begin = Begin(who=open_flow.user, what="readiness", event="ferry_readiness", verb=asked.verb, reverse=asked.reverse)
    return await begun(request, open_flow, {"verb": asked.verb.value}, begin)


@router.post("/switchover")
def switchover(
    request: Request, open_flow: FlowDep, office: OfficeDep, asked: Annotated[SwitchAsked, Body()]
) -> dict[str, Any]:
    """Start a planned move of clients to the target; it waits for an approval."""
    return _switch(request, open_flow, office, Verb.SWITCHOVER, asked)


@router.post("/failover")
def failover(
    request: Request, open_flow: FlowDep, office: OfficeDep, asked: Annotated[SwitchAsked, Body()]
) -> dict[str, Any]:
    """Start a move of clients to the target, although the source may be gone; it waits for an approval."""
    return _switch(request, open_flow, office, Verb.FAILOVER, asked)


@router.post("/failback")
def failback(
    request: Request, open_flow: FlowDep, office: OfficeDep, asked: Annotated[SwitchAsked, Body()]
) -> dict[str, Any]:
    """Start a move of clients back to the source; it waits for an approval."""
    return _switch(request, open_flow, office, Verb.FAILBACK, asked)


def _switch(request: Request, open_flow: OpenFlow, office: PageState, verb: Verb, asked: SwitchAsked) -> dict[str, Any]:
    flow, dag = open_flow.flow, switch_dag_id(verb.value, open_flow.flow)
    refuse(verb.value in open_flow.rights.switch, f"start runs of DAG {dag}")
    if not asked.reason.strip():
        raise WrongField("reason", "Give the reason, for the person who approves")
    cluster = flow.source if verb is Verb.FAILBACK else flow.target
    if asked.confirm.strip() != cluster:
        raise WrongField("confirm", f"Clients would go to {cluster}: type that name")
    if not has_back(open_flow, office):
        if verb is Verb.FAILBACK:
            why = (
                f"The file has no flow {flow.back}, along which clients would come back: add {flow.back}.enabled = true"
            )
            raise HTTPException(status.HTTP_409_CONFLICT, f"{why} and its topics")
        if asked.reverse:
            why = f"The file has no flow {flow.back}: choose no, or add {flow.back}.enabled = true and its topics"
            raise WrongField("reverse", why)
    refuse_unknown_groups("leave_groups", open_flow, asked.leave_groups)
    conf = {"reason": asked.reason.strip(), "reverse": asked.reverse, **({"dry_run": True} if asked.dry_run else {})}
    conf |= {"leave_groups": asked.leave_groups} if asked.leave_groups else {}
    return triggered(request, open_flow, f"ferry_{verb.value}", dag, conf)

"""Consumer groups of both sides of a flow, with their translated offsets; starts a sync of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, HTTPException, Request, status
from fastapi.responses import Response
from pydantic import Field

from ferry.features.groups.rules.page import MOST_GROUPS, GroupsStory, OfGroups
from ferry.features.groups.settings import SCHEDULE
from ferry_airflow.naming import groups_dag_id
from ferry_airflow.page.access import User, refuse
from ferry_airflow.page.dag_runs import runs_beside
from ferry_airflow.page.details import NOTHING
from ferry_airflow.page.filters import moment
from ferry_airflow.page.page_state import FlowDep, OpenFlow
from ferry_airflow.page.pages import shown_page
from ferry_airflow.page.rendering import WrongField
from ferry_airflow.page.starting import Asked, acting_router, names_to_pick, triggered
from ferry_airflow.page.tabs import Tab
from ferry_airflow.page.threads import page_router

router = page_router()
acting = acting_router()
TABS = (Tab(place=50, name="groups"),)

MOST_CHECKED = 20
"""How many groups of a form are compared with those that there are; the DAG names others that are not there."""


@router.get("/flow/{source}/{target}/groups")
def groups(
    request: Request, open_flow: FlowDep, user: User, page: int = 1, q: str = "", group: str = "", partitions: int = 1
) -> Response:
    """Show consumer groups: their offsets at the source, the translated ones, those on the target, and the last syncs.

    `group`: that one alone, with all of its partitions.
    """
    answer = open_flow.ask(OfGroups(page=page, q=q, group=group, partitions=partitions))
    story: GroupsStory | None = answer.got
    return shown_page(
        request,
        "groups.html",
        open_flow,
        "groups",
        answer=answer,
        cut=story.groups if story else NOTHING,
        group=group,
        of_group=story and story.of_group,
        lacking=story.lacking if story else (),
        most=MOST_GROUPS if story and story.more else None,
        q=q,
        beside=runs_beside(user, open_flow.flow, "groups"),
    )


@router.get("/api/flow/{source}/{target}/groups")
def groups_to_pick(open_flow: FlowDep, q: str = "") -> dict[str, Any]:
    """Return consumer groups of both sides with `q` in their names, each with its number of partitions."""
    answer = open_flow.ask(OfGroups(q=q))
    story: GroupsStory | None = answer.got
    rows = [(one.group, one.partitions) for one in story.groups.rows] if story else []
    return names_to_pick(answer, dict(rows), story.groups.total if story else 0)


class GroupsSyncAsked(Asked):
    """Write offsets of consumer groups now; no groups: all that the flow selects."""

    groups: list[Annotated[str, Field(min_length=1, max_length=255)]] = Field(default_factory=list, max_length=1000)
    dry_run: bool = False
    """Whether it is only shown what would be written."""


@acting.post("/groups-sync")
def groups_sync(request: Request, open_flow: FlowDep, asked: Annotated[GroupsSyncAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG that writes offsets of groups between runs."""
    flow, dag = open_flow.flow, groups_dag_id(open_flow.flow)
    refuse(open_flow.rights.groups, f"start runs of DAG {dag}")
    if not open_flow.has_groups_dag:
        unsynced = open_flow.config.unsynced
        lacks = f"{unsynced} in its file" if unsynced else f"its file has no {SCHEDULE.name}: set it, if only to none"
        raise HTTPException(status.HTTP_409_CONFLICT, f"Flow {flow} has no DAG that syncs groups, because {lacks}")
    refuse_foreign_groups(open_flow, asked.groups)
    conf = {"groups": asked.groups} if asked.groups else {}
    return triggered(request, open_flow, "ferry_groups_sync", dag, conf | ({"dry_run": True} if asked.dry_run else {}))


def refuse_foreign_groups(open_flow: OpenFlow, groups: list[str]) -> None:
    """Refuse groups that the flow does not take, or that neither cluster showed when groups were last read."""
    for group in groups:
        if not open_flow.config.groups.filter.takes(group):
            raise WrongField("groups", f"Group {group} is excluded by groups or groups.exclude: correct the name")
    refuse_unknown_groups("groups", open_flow, groups)


def refuse_unknown_groups(field: str, open_flow: OpenFlow, groups: list[str]) -> None:
    """Refuse groups that neither cluster showed when groups were last read."""
    for group in groups[:MOST_CHECKED]:
        answer = open_flow.ask(OfGroups(group=group))
        story: GroupsStory | None = answer.got
        is_known = story is not None and not (answer.is_asked or answer.error or story.more or story.lacking)
        if story is not None and is_known and not story.groups.rows:
            flow = open_flow.flow
            raise WrongField(
                field,
                f"At {moment(answer.at_ms)} neither {flow.source} nor {flow.target} had a group {group}, or showed it: "
                "correct the name or, if it was created since, try again in a few seconds",
            )


router.include_router(acting)

"""Consumer groups of both sides of a flow, with their translated offsets."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from ferry.features.groups.rules.page import MOST_GROUPS, GroupsStory, OfGroups
from ferry_airflow.page.access import User
from ferry_airflow.page.dag_runs import runs_beside
from ferry_airflow.page.details import NOTHING
from ferry_airflow.page.page_state import FlowDep
from ferry_airflow.page.pages import shown_page
from ferry_airflow.page.starting import names_to_pick
from ferry_airflow.page.tabs import Tab
from ferry_airflow.page.threads import page_router

router = page_router()
TABS = (Tab(place=50, name="groups"),)


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

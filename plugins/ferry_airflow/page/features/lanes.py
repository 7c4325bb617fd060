"""Lanes other than a flow's own: backfills, drills, and other live ones; and what each has copied, run by run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Body, HTTPException, Path, Request, status
from fastapi.responses import RedirectResponse, Response
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from ferry.model.lane import LaneKind, lane_kind
from ferry.page.cut import Cut
from ferry.reader.documents import LaneLine, LanePage, RunDigest
from ferry.reader.limits import RUNS
from ferry.reader.questions import OfLane, OfLanes
from ferry.words import ms_of, to_the_ms
from ferry_airflow.naming import backfill_dag_id
from ferry_airflow.page.access import User, refuse
from ferry_airflow.page.airflow_side import DagState
from ferry_airflow.page.dag_runs import runs_beside
from ferry_airflow.page.details import NOTHING
from ferry_airflow.page.page_state import FlowDep, OpenFlow
from ferry_airflow.page.pages import place_of, shown_page
from ferry_airflow.page.rendering import WANTED, WrongField
from ferry_airflow.page.run_list import EitherRun, one_each
from ferry_airflow.page.run_words import Badge, run_badge
from ferry_airflow.page.starting import (
    INT32,
    RunAsked,
    acting_router,
    refuse_foreign_topics,
    topics_of,
    triggered,
    zoned,
)
from ferry_airflow.page.tabs import Tab
from ferry_airflow.page.threads import page_router

router = page_router()
showing = page_router(prefix="/flow/{source}/{target}")
acting = acting_router()
TABS = (Tab(place=60, name="backfills"),)

LONGEST = 249
"""The longest name of a lane, which is a part of topics' names."""


@showing.get("/backfills")
def backfills(request: Request, open_flow: FlowDep, user: User) -> Response:
    """Show the lanes other than the flow's own."""
    answer = open_flow.ask(OfLanes())
    lanes: tuple[LaneLine, ...] = answer.got or ()
    return shown_page(
        request,
        "backfills.html",
        open_flow,
        "backfills",
        answer=answer,
        lanes=lanes,
        badges={one.name: _alone(open_flow, one.last) for one in lanes if one.last},
        more=max(0, open_flow.seen.other_lanes - len(lanes)) if lanes else 0,
        beside=runs_beside(user, open_flow.flow, "backfills"),
    )


def _alone(open_flow: OpenFlow, run: RunDigest) -> Badge:
    """Return the word for the newest run of another lane."""
    return open_flow.badge_of(run.state, run.run, run.ended_ms, DagState())


@showing.get("/lane/{lane}")
def one_lane(
    request: Request,
    open_flow: FlowDep,
    lane: Annotated[str, Path(max_length=LONGEST)],
    page: int = 1,
    parts: int = 1,
) -> Response:
    """Show a lane: its progress, its micro-runs, and what it has copied of which partition."""
    if lane == open_flow.config.lane:
        return RedirectResponse(f"{place_of(request, open_flow.flow)}/runs")
    page = min(max(1, page), INT32)
    answer = open_flow.ask(OfLane(lane=lane, page=page, parts=parts))
    story: LanePage | None = answer.got
    digests = story.runs if story else ()
    total = story.known_runs if story else 0
    pages = max(1, -(-total // RUNS))
    if story and page > pages:
        return RedirectResponse(f"?page={pages}")
    rows = [
        EitherRun(
            name=one.run,
            at_ms=one.started_ms,
            digest=one,
            dag_run=None,
            badges=(_alone(open_flow, one) if page == 1 and at == 0 else run_badge(one.state, at_work=False),),
        )
        for at, one in enumerate(digests)
    ]
    return shown_page(
        request,
        "lane.html",
        open_flow,
        "backfills",
        lane=lane,
        answer=answer,
        story=story,
        cut=Cut(rows=one_each(rows), page=page, pages=pages, total=total, first=(page - 1) * RUNS + 1),
        copied=story.copied if story else NOTHING,
    )


def _lane_of_windows(lane: str) -> str:
    if lane_kind(lane) not in (LaneKind.BACKFILL, LaneKind.APPEND):
        wanted = "backfill-NAME or append-NAME, where NAME has up to 40 letters, digits, hyphens and underscores"
        raise PydanticCustomError(WANTED, "{wanted}", {"wanted": wanted})
    return lane


class BackfillAsked(RunAsked):
    """Copy a window of history into a lane of its own."""

    lane: Annotated[str, AfterValidator(_lane_of_windows)] = "backfill-airflow"
    start: datetime
    end: datetime


@acting.post("/backfill")
def backfill(request: Request, open_flow: FlowDep, asked: Annotated[BackfillAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG of windows."""
    dag = backfill_dag_id(open_flow.flow)
    refuse(open_flow.rights.backfill, f"start runs of DAG {dag}")
    if not open_flow.has_window_dag:
        why = f"Flow {open_flow.flow} has no DAG of windows: its file says ferry.backfill.windows = none"
        raise HTTPException(status.HTTP_409_CONFLICT, why)
    start_ms, end_ms = ms_of(zoned(asked.start)), ms_of(zoned(asked.end))
    start, end = to_the_ms(start_ms), to_the_ms(end_ms)
    if end_ms <= start_ms:
        raise WrongField("end", f"The window ends at {end} and begins at {start}: exchange them")
    refuse_foreign_topics(open_flow, asked)
    window = {"from": start, "to": end}
    return triggered(request, open_flow, "ferry_backfill", dag, {"lane": asked.lane, **window, **topics_of(asked)})


router.include_router(showing)
router.include_router(acting)

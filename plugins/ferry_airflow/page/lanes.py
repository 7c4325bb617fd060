"""Lanes beside a flow's own: backfills, drills, and other live ones; and what each has copied, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response

from ferry.clock import wall_ms
from ferry.features.lanes.rules.listing import Lane, outlook_of
from ferry.ledger.history import PastRun
from ferry.reader.watch import FlowWatch
from ferry_airflow.page.access import User
from ferry_airflow.page.airflow_side import DagState
from ferry_airflow.page.dag_runs import runs_beside
from ferry_airflow.page.deep import INT32, STALE_SECONDS
from ferry_airflow.page.office import FlowDep, OpenFlow
from ferry_airflow.page.pages import Cut, EitherRun, place_of, shown_page
from ferry_airflow.page.run_words import Badge, run_badge
from ferry_airflow.page.snapshot import RunDigest, digest_of

router = APIRouter(prefix="/flow/{source}/{target}")

RUNS = 20
"""Micro-runs of a lane on one page: each is read from the ledger when it is shown."""
LONGEST = 249
"""A lane's name is a part of topics' names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStory:
    """A lane, without its newest run, how far it is, and some of its runs, newest first."""

    lane: Lane
    outlook: str
    runs: Sequence[RunDigest]
    known_runs: int
    """How many the ledger remembers."""


@router.get("/backfills")
def backfills(request: Request, open_flow: FlowDep, user: User) -> Response:
    """Lanes beside the flow's own."""
    found = open_flow.watcher.answer(("lanes",), FlowWatch.lanes, fresh_seconds=STALE_SECONDS)
    lanes = found.got or ()
    others = sum(name != open_flow.config.lane for name in open_flow.seen.lanes)
    return shown_page(
        request,
        "backfills.html",
        open_flow,
        "backfills",
        answer=found,
        lanes=lanes,
        outlook_of=outlook_of,
        badge_of_last=partial(_badge_of_last, open_flow),
        more=max(0, others - len(lanes)) if lanes else 0,
        beside=runs_beside(user, open_flow.flow, "backfills"),
    )


def _badge_of_last(open_flow: OpenFlow, lane: Lane) -> Badge:
    assert lane.last_run is not None
    one = digest_of(lane.last_run)
    return open_flow.badge_of(one.state, one.run, one.ended_ms, DagState())


@router.get("/lane/{lane}")
def one_lane(
    request: Request,
    open_flow: FlowDep,
    lane: Annotated[str, Path(max_length=LONGEST)],
    page: int = 1,
    parts: int = 1,
) -> Response:
    """A lane: how far it is, its micro-runs, and what it has copied of which partition."""
    if lane == open_flow.config.lane:
        return RedirectResponse(f"{place_of(request, open_flow.flow)}/runs")
    page = min(max(1, page), INT32)
    work = partial(_story, name=lane, skip=(page - 1) * RUNS)
    found = open_flow.watcher.answer(("lane", lane, page), work, fresh_seconds=STALE_SECONDS)
    story: LaneStory | None = found.got
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
            badges=(
                open_flow.badge_of(one.state, one.run, one.ended_ms, DagState())
                if page == 1 and at == 0
                else run_badge(one.state, at_work=False),
            ),
        )
        for at, one in enumerate(digests)
    ]
    return shown_page(
        request,
        "lane.html",
        open_flow,
        "backfills",
        lane=lane,
        answer=found,
        story=story,
        cut=Cut(rows=rows, page=page, pages=pages, total=total, first=(page - 1) * RUNS + 1),
        copied=Cut.of(sorted(story.lane.parts, key=lambda part: part.source) if story else (), parts),
    )


def _story(watch: FlowWatch, name: str, skip: int) -> LaneStory | None:
    """What the ledger has of a lane; only the runs that are shown are read, and each is kept in short."""
    found = watch.lane(name)
    if found is None:
        return None
    lane, runs = found
    return LaneStory(
        lane=replace(lane, last_run=None),
        outlook=outlook_of(lane, wall_ms()),
        runs=[digest_of(past) for past in map(watch.past, runs[skip : skip + RUNS]) if isinstance(past, PastRun)],
        known_runs=len(runs),
    )

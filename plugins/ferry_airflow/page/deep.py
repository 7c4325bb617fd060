"""What is read of the ledger and of the clusters when somebody asks: one run, one partition, one offset, the groups.

The flow's thread asks; a request waits for a moment, and the page then fills by itself. Runs and receipts of a lane
beside the flow's own have the same pages, at addresses that begin with the lane.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Any
from urllib.parse import quote

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.errors import FerryError
from ferry.features.groups.acts.table import NotShown, find_groups
from ferry.features.groups.rules.table import GroupTable
from ferry.ledger.history import Forgotten, PastRun
from ferry.model import TopicPartition
from ferry.plan.rules.lag import PartitionLag
from ferry.protocol.opening import KEPT_RUNS
from ferry.reader.watch import SEARCHED, FlowWatch
from ferry_airflow.page.access import User
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.dag_runs import may_see_reasons, origin_in_airflow, reasons_of
from ferry_airflow.page.dealt import MOODS, DealtStory, Sought, story_of_dealt
from ferry_airflow.page.office import FlowDep, OpenFlow
from ferry_airflow.page.pages import A_PAGE, Cut, shown_page
from ferry_airflow.page.run_words import PLANNING, Badge
from ferry_airflow.page.told import done_besides, not_done

router = APIRouter(prefix="/flow/{source}/{target}")

MOST_GROUPS = 2000
INT32, INT64 = 2**31 - 1, 2**63 - 1
Number = Annotated[int, Path(ge=0, le=INT32)]
Asked = Annotated[int, Query(ge=0, le=INT32)]
Offset = Annotated[int | None, Query(ge=0, le=INT64)]
Key = Annotated[str, Query(max_length=1000)]
STALE_SECONDS = 20.0
"""After which an answer of a cluster is asked for again."""


@router.get("/run/{run:path}")
@router.get("/lane/{lane}/run/{run:path}")
def one_run(
    request: Request,
    open_flow: FlowDep,
    user: User,
    run: str,
    lane: str = "",
    page: int = 1,
    q: str = "",
    dealt: int = 1,
    refused: int = 1,
    notes: int = 1,
) -> Response:
    """A run: what it was to do, what it refused, and its receipts."""
    work = partial(FlowWatch.run, name=run, lane=lane)
    found = open_flow.watcher.answer(("run", run, lane), work, fresh_seconds=STALE_SECONDS)
    gone = found.got if isinstance(found.got, Forgotten) else None
    past: PastRun | None = None if gone else found.got
    dag, dag_run = open_flow.dag_id, next((one for one in open_flow.dag.runs if one.run == run), None)
    if dag_run is None and past is not None:
        origin = past.opened.record.origin
        dag, dag_run = origin.dag_id, origin_in_airflow(user, open_flow.flow, origin)
    wanted = q.strip().lower()
    report = past.report if past else None
    left = gone or (past.earlier if past and not report else None)
    written = report or left
    receipts = [one for one in (written.kept if written else ()) if wanted in one.source.topic.lower()]
    units = [one for one in (written.dealt if written else ()) if wanted in one.source.topic.lower()]
    return shown_page(
        request,
        "run.html",
        open_flow,
        "runs",
        lane=lane,
        run=run,
        answer=found,
        past=past,
        gone=gone,
        left=left,
        reasons=_reasons(user, dag, dag_run),
        written=written,
        report=report,
        searched=SEARCHED,
        kept=KEPT_RUNS,
        badge=past and badge_of_past(open_flow, past, lane, dag_run),
        planning=PLANNING,
        dag=dag,
        dag_run=dag_run,
        cut=Cut.of(receipts, page),
        dealt=Cut.of(units, dealt),
        refused=Cut.of(not_done(report) if report else (), refused),
        others=Cut.of(done_besides(report) if report else (), notes),
        q=q,
    )


def _reasons(user: BaseUser, dag: str, dag_run: DagRunRow | None) -> tuple[tuple[str, str], ...]:
    """Why tasks of a run failed, for who may see what they return."""
    if dag_run is None or dag_run.state == "success" or not may_see_reasons(user, dag):
        return ()
    return reasons_of(dag, dag_run.run)


def badge_of_past(open_flow: OpenFlow, past: PastRun, lane: str, dag_run: DagRunRow | None) -> Badge:
    """The word for a run; of another lane, `dag_run` is the run of Airflow that it is a part of."""
    record = past.opened.record
    heard_ms = record.started_ms + int((past.report.seconds if past.report else 0) * 1000)
    if not lane:
        return open_flow.badge_of(past.state, record.run, heard_ms)
    elsewhere = DagState(known=True, runs=(replace(dag_run, run=record.run),) if dag_run else ())
    return open_flow.badge_of(past.state, record.run, heard_ms, elsewhere)


@router.get("/partition/{topic}/{partition}")
@router.get("/lane/{lane}/partition/{topic}/{partition}")
def one_partition(
    request: Request,
    open_flow: FlowDep,
    topic: str,
    partition: Number,
    lane: str = "",
    page: int = 1,
    parts: int = 1,
    offset: Offset = None,
    key: Key = "",
) -> Response:
    """All receipts of a partition, newest first; of one that is dealt to others, what went to which of them."""
    place = TopicPartition(topic=topic, partition=partition)
    page = min(max(1, page), INT32)
    work = partial(FlowWatch.receipts, place=place, skip=(page - 1) * A_PAGE, most=A_PAGE, lane=lane)
    found = open_flow.watcher.answer(("receipts", place, page, lane), work, fresh_seconds=STALE_SECONDS)
    receipts, total = found.got or ([], 0)
    pages = max(1, -(-total // A_PAGE))
    if found.got and page > pages:
        return RedirectResponse(f"?page={pages}")
    cut = Cut(rows=receipts, page=page, pages=pages, total=total, first=(page - 1) * A_PAGE + 1)
    flow = in_lane(open_flow.config, lane) if lane else open_flow.config
    name = receipts[0].target.topic if receipts else flow.policy.format_remote_topic(flow.flow.source, topic)
    copy = TopicPartition(topic=name, partition=receipts[0].target.partition if receipts else partition)
    lags = () if lane else open_flow.seen.lags.get(topic, ())
    lag = next((one for one in lags if one.source == place), None)
    what: dict[str, Any] = {"place": place, "copy": copy, "lag": lag}
    if receipts or not _is_dealt(flow, topic, lag):
        return shown_page(request, "partition.html", open_flow, "topics", lane=lane, answer=found, cut=cut, **what)
    sought = Sought(offset=offset, key=key)
    ask = partial(story_of_dealt, place=place, sought=sought, skip=(page - 1) * A_PAGE, most=A_PAGE, lane=lane)
    asked = ("dealt", place, page, sought, lane)
    told = open_flow.watcher.answer(asked, ask, fresh_seconds=STALE_SECONDS)
    story: DealtStory | None = told.got
    total = story.total if story else 0
    pages = max(1, -(-total // A_PAGE))
    chunks = story.stretches if story else ()
    what |= {
        "story": story,
        "sought": sought,
        "words": MOODS,
        "parts_of": Cut.of(story.parts if story else (), parts),
        "cut": Cut(rows=chunks, page=page, pages=pages, total=total, first=(page - 1) * A_PAGE + 1),
    }
    return shown_page(request, "dealt.html", open_flow, "topics", lane=lane, answer=told, **what)


def _is_dealt(flow: FlowConfig, topic: str, lag: PartitionLag | None) -> bool:
    """Whether a topic's records go to other partitions, as the ledger says or, before its first run, the file."""
    if lag is not None and lag.dealt:
        return True
    try:
        spec = flow.transform_of(topic)
    except FerryError:  # the file lets two transforms have it: no run deals it
        return False
    return spec is not None and spec.partitions is not None


@router.get("/receipt/{topic}/{partition}/{start}")
@router.get("/lane/{lane}/receipt/{topic}/{partition}/{start}")
def one_receipt(
    request: Request,
    open_flow: FlowDep,
    topic: str,
    partition: Number,
    start: Annotated[int, Path(ge=0, le=INT64)],
    lane: str = "",
    run: str = "",
    page: int = 1,
) -> Response:
    """A receipt with all of its segments."""
    place = TopicPartition(topic=topic, partition=partition)
    work = partial(FlowWatch.receipt, place=place, start=start, run=run, lane=lane)
    found = open_flow.watcher.answer(("receipt", place, start, run, lane), work, fresh_seconds=STALE_SECONDS)
    cut = Cut.of(found.got.segments if found.got else (), page)
    what = {"place": place, "start": start, "receipt": found.got}
    return shown_page(request, "receipt.html", open_flow, "topics", lane=lane, answer=found, cut=cut, **what)


@router.get("/offsets")
@router.get("/lane/{lane}/offsets")
def offsets(
    request: Request,
    open_flow: FlowDep,
    lane: str = "",
    topic: str = "",
    partition: Asked = 0,
    offset: Offset = None,
    back: bool = False,
) -> Response:
    """Which target offset is a source offset, and back; and the receipt that says so.

    Of a topic that is dealt to other partitions the partition's own page says it.
    """
    found = None
    if topic and offset is not None:
        place = TopicPartition(topic=topic.strip(), partition=partition)
        lag = next((one for one in open_flow.seen.lags.get(place.topic, ()) if one.source == place), None)
        if not back and _is_dealt(open_flow.config, place.topic, lag):
            return RedirectResponse(f"partition/{quote(place.topic, safe='')}/{partition}?offset={offset}")
        work = partial(FlowWatch.where, place=place, offset=offset, backward=back, lane=lane)
        found = open_flow.watcher.answer(("offset", place, offset, back, lane), work, fresh_seconds=STALE_SECONDS)
    asked = {"topic": topic, "partition": partition, "offset": offset, "back": back}
    return shown_page(request, "offsets.html", open_flow, "offsets", lane=lane, answer=found, asked=asked)


@router.get("/groups")
def groups(
    request: Request, open_flow: FlowDep, page: int = 1, q: str = "", group: str = "", partitions: int = 1
) -> Response:
    """Consumer groups: where they stand at the source, what that is on the target, and where they stand there.

    `group`: that one alone, with all of its partitions.
    """
    found = open_flow.watcher.answer(("groups",), _groups, fresh_seconds=STALE_SECONDS)
    tables, lacking, more = found.got or ((), (), False)
    wanted = q.strip().lower()
    rows = [table for table in tables if (table.group == group if group else wanted in table.group.lower())]
    return shown_page(
        request,
        "groups.html",
        open_flow,
        "groups",
        answer=found,
        cut=Cut.of(rows, page, 20),
        group=group,
        of_group=Cut.of(rows[0].rows, partitions) if group and rows else None,
        lacking=lacking,
        most=MOST_GROUPS if more else None,
        q=q,
    )


def _groups(watch: FlowWatch) -> tuple[tuple[GroupTable, ...], tuple[NotShown, ...], bool]:
    """The first groups by name, what they lack, and whether there are more."""
    found = find_groups(watch.flow, patience_s=watch.patience_s)
    tables = tuple(islice(found.tables, MOST_GROUPS))
    return tables, found.not_shown, next(found.tables, None) is not None

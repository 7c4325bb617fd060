"""Pages that read the ledger and the clusters on request: one run, one partition, one offset.

The reader reads them; a request waits for a moment, and the page then loads the answer itself. Runs and receipts of a
lane other than the flow's own have the same pages, at addresses that begin with the lane.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.errors import FerryError
from ferry.model import TopicPartition
from ferry.page.cut import A_PAGE, Cut
from ferry.plan.rules.lag import PartitionLag
from ferry.reader.documents import Dealt, DealtPage, Progress, ReceiptLine, ReceiptStory, RunProgress, RunStory
from ferry.reader.limits import KEPT_RUNS, SEARCHED
from ferry.reader.questions import OfDealt, OfLag, OfOffset, OfReceipt, OfReceipts, OfRun
from ferry_airflow.page.access import User
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.dag_runs import origin_in_airflow
from ferry_airflow.page.page_state import FlowDep, OpenFlow, with_runs
from ferry_airflow.page.pages import beyond, may_continue, reasons_for, retried_of, shown_page, with_own_retries
from ferry_airflow.page.run_words import PLANNING, RETRYING, RUNNING, Badge, Condition, run_badge
from ferry_airflow.page.starting import INT32, INT64
from ferry_airflow.page.tabs import Tab
from ferry_airflow.page.threads import page_router
from ferry_airflow.page.time_range import ALL, TimeRange

router = page_router(prefix="/flow/{source}/{target}")
TABS = (Tab(place=40, name="offsets"),)

Number = Annotated[int, Path(ge=0, le=INT32)]
Asked = Annotated[int, Query(ge=0, le=INT32)]
Offset = Annotated[int | None, Query(ge=0, le=INT64)]
Key = Annotated[str, Query(max_length=1000)]
DEALT = {
    Dealt.PASSED: (Condition.GOOD, "among these"),
    Dealt.AHEAD: (Condition.BUSY, "not repartitioned yet"),
    Dealt.FORGOTTEN: (Condition.WARN, "no receipt left"),
    Dealt.EARLIER: (Condition.WARN, "before this rule"),
}
"""The page's words for whether a record is in a target partition."""
NOTHING: Cut[Any] = Cut.of((), 1)


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
    """Show a run: what it was to do, what it refused, and its receipts."""
    asked = OfRun(run=run, lane=lane, q=q, page=page, dealt=dealt, refused=refused, notes=notes)
    answer = open_flow.ask(asked)
    story: RunStory | None = answer.got
    dag, dag_run = open_flow.dag_id, None
    if _is_own(open_flow, story, lane):
        open_flow = with_runs(open_flow, [run])
        dag_run = next((one for one in open_flow.dag.runs if one.run == run), None)
    if dag_run is None and story is not None and story.opened is not None:
        origin = story.opened.record.origin
        dag, dag_run = origin.dag_id, origin_in_airflow(user, open_flow.flow, origin)
        dag_run = dag_run and with_own_retries(user, dag, dag_run)
    badge = badge_of_story(open_flow, story, lane, dag_run) if story is not None else None
    at_work = badge == RUNNING
    if story is not None and at_work:  # what is not copied yet is not a complaint
        story = open_flow.ask(replace(asked, at_work=True)).got or story
    progress = story.progress if story is not None and at_work else None
    under_way = open_flow.dag.under_way
    in_head = dag == open_flow.dag_id and under_way is not None and under_way.run == run
    retried = retried_of(open_flow, dag, dag_run, in_head=in_head)
    again = {one.task for one in dag_run.retries} if dag_run else set()
    reasons = tuple(one for one in reasons_for(user, dag, dag_run) if one[0] not in again)
    return shown_page(
        request,
        "run.html",
        open_flow,
        "runs",
        lane=lane,
        retried=retried,
        run=run,
        began_ms=_begun_ms(open_flow, story, run, lane),
        answer=answer,
        story=story,
        opened=story and story.opened,
        figures=story and story.figures,
        left=story and story.remains,
        reasons=beyond(reasons, [line.text for line in story.refused.rows] if story else ()),
        has_why=bool(reasons) and run == open_flow.standing.run,
        is_below=bool(reasons),
        clears=may_continue(open_flow, user, dag, dag_run),
        searched=SEARCHED,
        kept=KEPT_RUNS,
        badge=badge,
        retrying=RETRYING,
        at_work=at_work,
        progress=progress,
        slots=progress and slowest(progress),
        has_ended=dag_run is not None or (story is not None and story.followed),
        planning=PLANNING,
        dag=dag,
        dag_run=dag_run,
        q=q,
    )


def _begun_ms(open_flow: OpenFlow, story: RunStory | None, run: str, lane: str) -> int | None:
    """Return when a run began; None: not known, as for a run of another lane without a record in the ledger."""
    if story is not None and story.opened is not None:
        return story.opened.record.started_ms
    return None if lane else open_flow.begun_ms(run)


def _is_own(open_flow: OpenFlow, story: RunStory | None, lane: str) -> bool:
    """Return whether a run is of the flow's own DAG: in another lane a run of another DAG may have the same id."""
    opened = story.opened if story else None
    return not lane or (opened is not None and opened.record.origin.dag_id == open_flow.dag_id)


def badge_of_story(open_flow: OpenFlow, story: RunStory, lane: str, dag_run: DagRunRow | None) -> Badge | None:
    """Return the word for a run; for one of another lane, `dag_run` is the run of Airflow that it is a part of.

    None if its record was pruned from the ledger.
    """
    if story.opened is None or story.state is None:
        return None
    record = story.opened.record
    heard_ms = record.started_ms + int((story.figures.seconds if story.figures else 0) * 1000)
    if not lane:
        return open_flow.badge_of(story.state, record.run, heard_ms)
    if story.followed and dag_run is None:
        return run_badge(story.state, at_work=False)
    elsewhere = DagState(known=True, runs=(replace(dag_run, run=record.run),) if dag_run else ())
    return open_flow.badge_of(story.state, record.run, heard_ms, elsewhere)


def slowest(progress: RunProgress, most: int = A_PAGE) -> tuple[tuple[int, Progress], ...]:
    """Return the slots that have come least far, by their numbers."""
    return tuple(sorted(sorted(progress.slots, key=lambda slot: slot[1].share)[:most]))


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
    span: TimeRange = ALL,
) -> Response:
    """Show all receipts of a partition, newest first; for a repartitioned one, where its records went."""
    place = TopicPartition(topic=topic, partition=partition)
    page = min(max(1, page), INT32)
    answer = open_flow.ask(OfReceipts(place=place, page=page, lane=lane))
    cut: Cut[ReceiptLine] = answer.got or NOTHING
    if page > cut.pages and answer.got:
        return RedirectResponse(f"?page={cut.pages}")
    flow = in_lane(open_flow.config, lane) if lane else open_flow.config
    first = cut.rows[0].receipt.target if cut.rows else None
    copy = first or TopicPartition(topic=flow.copy_of(topic), partition=partition)
    lag: PartitionLag | None = None if lane else open_flow.ask(OfLag(place=place)).got
    what: dict[str, Any] = {"place": place, "copy": copy, "lag": lag, "span": span}
    if cut.rows or not is_dealt(flow, topic, lag):
        return shown_page(request, "partition.html", open_flow, "topics", lane=lane, answer=answer, cut=cut, **what)
    asked = OfDealt(place=place, page=page, parts=parts, offset=offset, key=key, lane=lane)
    answer = open_flow.ask(asked)
    story: DealtPage | None = answer.got
    what |= {
        "story": story,
        "sought": asked,
        "words": DEALT,
        "parts_of": story.parts if story else NOTHING,
        "cut": story.chunks if story else NOTHING,
    }
    return shown_page(request, "dealt.html", open_flow, "topics", lane=lane, answer=answer, **what)


def is_dealt(flow: FlowConfig, topic: str, lag: PartitionLag | None) -> bool:
    """Return whether a topic is repartitioned, by the ledger or, before its first run, by the file."""
    if lag is not None and lag.dealt:
        return True
    try:
        spec = flow.transform_of(topic)
    except FerryError:  # the file lets two transforms have it: no run copies it
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
    """Show a receipt with all of its segments."""
    place = TopicPartition(topic=topic, partition=partition)
    answer = open_flow.ask(OfReceipt(place=place, start=start, run=run, lane=lane, page=page))
    story: ReceiptStory | None = answer.got
    cut = story.segments if story else NOTHING
    what: dict[str, Any] = {"place": place, "start": start, "receipt": story and story.receipt}
    return shown_page(request, "receipt.html", open_flow, "topics", lane=lane, answer=answer, cut=cut, **what)


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
    """Show the target offset of a source offset, or the reverse, and the receipt that shows it.

    For a repartitioned topic the partition's own page shows it.
    """
    found = None
    if topic and offset is not None:
        place = TopicPartition(topic=topic.strip(), partition=partition)
        if not back and is_dealt(open_flow.config, place.topic, open_flow.ask(OfLag(place=place)).got):
            return RedirectResponse(f"partition/{quote(place.topic, safe='')}/{partition}?offset={offset}")
        found = open_flow.ask(OfOffset(place=place, offset=offset, backward=back, lane=lane))
    asked = {"topic": topic, "partition": partition, "offset": offset, "back": back}
    return shown_page(request, "offsets.html", open_flow, "offsets", lane=lane, answer=found, asked=asked)

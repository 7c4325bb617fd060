"""Lanes beside a flow's own: what each has copied, run by run, and down to its segments."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

from airflow.models.dagrun import DagRun
from sqlalchemy import insert
from sqlalchemy.orm import Session

from ferry.clock import wall_ms
from ferry.features.groups.rules.offset_map import Exact
from ferry.features.groups.rules.translation import Translation
from ferry.features.lanes.rules.listing import Lane, LanePart
from ferry.ledger.history import Holder, PastRun, PastState
from ferry.ledger.report import Report
from ferry.model import LaneKind, OpenedRun, Origin
from ferry.reader.answering import LaneStory
from ferry.reader.limits import RUNS
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.values import answered, digest
from tests.pure.decide.values import PLAN, RECEIPT, place, refusal, run_of

LANE = "backfill-january"
THERE = f"{HERE}/lane/{LANE}"
BACKFILL = "ferry_backfill__primary__backup"
PART = LanePart(source=place("orders", 1), target=place("a.orders.x", 1), ranges=((3, 9), (20, 40)), records=26)
KNOWN = Lane(name=LANE, kind=LaneKind.BACKFILL, topics=("a.orders.x",), parts=(PART,), windows=2, last_run=None)


def story(runs: int, known: int) -> LaneStory:
    return LaneStory(
        lane=KNOWN,
        outlook="75 % copied, 20 offsets left",
        runs=tuple(digest(f"jan~{known - at}", PastState.SUCCESS) for at in range(runs)),
        known_runs=known,
    )


def past(state: PastState, origin: Origin, *, report: bool = True) -> PastRun:
    record = replace(run_of("jan"), lane=LANE, origin=origin, started_ms=wall_ms())
    found = Report(
        plan=replace(PLAN, lane=LANE),
        started_ms=1_000,
        receipts=(RECEIPT,),
        refusals=(refusal("orders", 3),),
        unfinished=(),
        left=(),
        done=1,
    )
    return PastRun(opened=OpenedRun(record=record, generation=3), state=state, report=found if report else None)


def test_a_lane_leads_to_its_micro_runs_and_partitions(desk: Desk) -> None:
    answered(desk, ("lane", LANE, 1), story(RUNS, 31))
    page = desk.page(THERE)
    assert "75 % copied, 20 offsets left" in page
    assert f'href="{THERE}/run/jan~31"' in page
    assert f'href="{THERE}/partition/orders/1"' in page
    assert "[3, 9), [20, 40)" in page
    assert f"1\u2013{RUNS} of 31 runs" in page
    answered(desk, ("lane", LANE, 2), story(31 - RUNS, 31))
    assert f"{RUNS + 1}\u201331 of 31 runs" in desk.page(f"{THERE}?page=2")
    answered(desk, ("lane", LANE, 9), story(0, 31))
    answer = desk.client.get(f"{THERE}?page=9", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "?page=2")


def test_a_lane_that_is_not_there_is_told_and_the_flows_own_has_its_pages(desk: Desk) -> None:
    answered(desk, ("lane", "backfill-no", 1), None)
    assert "The ledger has no such lane" in desk.page(f"{HERE}/lane/backfill-no")
    answer = desk.client.get(f"{HERE}/lane/live", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, f"{HERE}/runs")


def test_a_micro_run_of_a_lane_has_refusals_receipts_and_segments_that_stay_in_the_lane(desk: Desk) -> None:
    answered(desk, ("run", "jan", LANE), past(PastState.PARTIAL, Origin()))
    page = desk.page(f"{THERE}/run/jan")
    assert refusal("orders", 3).message.replace("<", "&lt;").replace(">", "&gt;") in page
    assert f'href="{THERE}/partition/orders/0"' in page
    assert f'href="{THERE}/offsets?topic=orders&amp;partition=0&amp;offset=0"' in page
    assert f'href="{THERE}">lane {LANE}</a>' in page
    answered(desk, ("receipts", place("orders"), 1, LANE), ([RECEIPT], 1))
    page = desk.page(f"{THERE}/partition/orders/0")
    assert f'href="{THERE}/run/run-1"' in page
    assert "data-chart" not in page, "the figures over time are the live lane's"
    answered(desk, ("receipt", place("orders"), 0, "", LANE), RECEIPT)
    assert f'href="{THERE}/run/run-1"' in desk.page(f"{THERE}/receipt/orders/0/0")
    found = Translation(source=place("orders"), target=place("a.orders.x"), outcome=Exact(offset=7))
    held = [Holder(receipt=RECEIPT, segment=RECEIPT.segments[0], target_offset=7)]
    answered(desk, ("offset", place("orders"), 7, False, LANE), (found, held))
    page = desk.page(f"{THERE}/offsets?topic=orders&partition=0&offset=7")
    assert f"{THERE}/receipt/orders/0/0?run=run-1" in page
    assert f"{THERE}/offsets?topic=a.orders.x&amp;partition=0&amp;offset=7&amp;back=true" in page


def test_a_micro_run_leads_to_airflows_run_that_made_it_for_who_may_see_that(desk: Desk, tables: Session) -> None:
    moment = datetime.now(UTC)
    tables.execute(
        insert(DagRun).values(
            dag_id=BACKFILL,
            run_id="m 1",
            state="running",
            run_type="manual",
            run_after=moment,
            queued_at=moment,
            conf={},
        )
    )
    origin = Origin(dag_id=BACKFILL, dag_run_id="m 1")
    answered(desk, ("run", "jan", LANE), past(PastState.UNPLANNED, origin, report=False))
    page = desk.page(f"{THERE}/run/jan")
    assert f'href="/dags/{BACKFILL}/runs/m%201"' in page
    assert "It is being planned" in page
    desk.refused.add((BACKFILL, "GET", None))
    assert "/runs/m%201" not in desk.page(f"{THERE}/run/jan")
    desk.refused.clear()
    tables.execute(DagRun.__table__.update().values(state="failed", end_date=moment))
    assert "It ended before its plan was sealed" in desk.page(f"{THERE}/run/jan")


def test_a_run_of_another_dag_is_not_taken_for_the_run_of_the_flows_own_with_its_id(desk: Desk) -> None:
    """A task group in a DAG of another author: Airflow's ids are equal, Ferry's are not."""
    row = DagRunRow(run="scheduled__1", state="failed", queued=None, started=None, ended=None, who="")
    desk.dag = DagState(known=True, runs=(row,))
    origin = Origin(dag_id="etl", dag_run_id="scheduled__1")
    for run, linked in (("etl@one@scheduled__1", False), ("scheduled__1", True)):
        record = replace(run_of(run), origin=origin if "@" in run else Origin())
        answered(
            desk,
            ("run", run, ""),
            PastRun(opened=OpenedRun(record=record, generation=3), state=PastState.OPEN, report=None),
        )
        page = desk.page(f"{HERE}/run/{quote(run, safe='')}")
        assert run in page
        assert ("Tasks and logs" in page.partition('<div class="head"><h2>')[2]) is linked


def test_the_list_of_lanes_and_a_backfill_in_airflow_lead_to_the_lane(desk: Desk) -> None:
    answered(desk, ("lanes",), [replace(KNOWN, last_run=past(PastState.SUCCESS, Origin()))])
    page = desk.page(f"{HERE}/backfills")
    assert f'href="{THERE}">{LANE}</a>' in page
    assert f'href="{THERE}/run/jan"' in page

"""What the page says of runs: the last one, those under way, and what each refused, left undone and dealt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

from ferry.ledger.history import Forgotten, PastRun, PastState
from ferry.ledger.ledger import UNREAD
from ferry.ledger.report import Report
from ferry.model import GroupOutcome, Left, OpenedRun, Refusal, RefusalKind, Why
from ferry.reader.run_sentences import recurring
from ferry.reader.snapshot import digest_of
from ferry.reader.watch import FlowPoll
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.test_reasons import read
from tests.airflow.page.values import NINE, answered, digest, view_of
from tests.pure.decide.test_deal import receipt
from tests.pure.decide.values import LANE, PLAN, RECEIPT, dealt_slice, piece, place, redealt, refusal, run_of


def test_a_run_says_what_it_refused_and_which_groups_failed_in_pages(desk: Desk) -> None:
    failed = Left(group="app", place=None, why=Why.FAILED, message="group app may not be read")
    report = Report(
        plan=replace(PLAN, notes=tuple(f"note {number}" for number in range(35)), paused=("orders",)),
        started_ms=1_000,
        receipts=(),
        refusals=tuple(refusal("orders", number) for number in range(57)),
        unfinished=(),
        left=(),
        done=0,
        groups=GroupOutcome(groups=0, offsets=0, unchanged=0, left=(failed,), inexact={}),
    )
    opened = OpenedRun(record=run_of("run-1"), generation=3)
    answered(desk, ("run", "run-1", ""), PastRun(opened=opened, state=PastState.PARTIAL, report=report))
    page = desk.page(f"{HERE}/run/run-1")
    assert "1\u201350 of 58 refusals" in page
    assert "group app may not be read" not in page
    second = desk.page(f"{HERE}/run/run-1?refused=2")
    assert "51\u201358 of 58 refusals" in second
    assert "group app may not be read" in second
    assert "36 notes" not in page, "they fit on a page"
    assert "note 34" in page


@pytest.mark.parametrize("cut_short", [True, False])
def test_a_run_that_stopped_at_its_limit_names_the_setting(desk: Desk, cut_short: bool) -> None:
    plan = replace(PLAN, cut_short=cut_short)
    report = Report(plan=plan, started_ms=1_000, receipts=(), refusals=(), unfinished=(), left=(), done=0)
    past = PastRun(opened=OpenedRun(record=run_of("run-1"), generation=3), state=PastState.SUCCESS, report=report)
    assert digest_of(past).cut_short == cut_short
    answered(desk, ("run", "run-1", ""), past)
    page = desk.page(f"{HERE}/run/run-1")
    assert ('id="cut-short"' in page, "ferry.run.max.bytes" in page) == (cut_short, cut_short)


def test_a_run_says_what_it_dealt_to_other_partitions(desk: Desk) -> None:
    some = redealt(receipt(11, (9, 9), target_next=47), target_start=5, records=42)
    report = Report(plan=PLAN, started_ms=1_000, receipts=(some,), refusals=(), unfinished=(), left=(), done=1)
    past = PastRun(opened=OpenedRun(record=run_of("run-1"), generation=3), state=PastState.SUCCESS, report=report)
    answered(desk, ("run", "run-1", ""), past)
    page = desk.page(f"{HERE}/run/run-1")
    assert "Repartitioned records" in page
    assert "a.t-11" in page
    assert "[5, 47)" in page
    assert "topic t: 18 offsets read, 42 records repartitioned into 1 partition of a.t, 0 dead letters" in page


def test_what_a_run_dealt_is_shown_in_pages_and_narrowed_to_a_topic(desk: Desk) -> None:
    units = tuple(redealt(receipt(n, (9, 9), target_next=47), target_start=5, records=42) for n in range(211))
    unit = dealt_slice(
        topic="t", target=units[0].target, starts=(0, 0), ends=(9, 9), slot=0, since=1, partitions=2, digest=""
    )
    report = Report(
        plan=replace(PLAN, slices=(unit,)),
        started_ms=1_000,
        receipts=units,
        refusals=(),
        unfinished=(),
        left=(),
        done=1,
    )
    past = PastRun(opened=OpenedRun(record=run_of("run-1"), generation=3), state=PastState.SUCCESS, report=report)
    answered(desk, ("run", "run-1", ""), past)
    short = digest_of(past)
    assert (short.slices, short.due, short.records) == (1, 18, 211 * 42)
    page = desk.page(f"{HERE}/run/run-1")
    assert "1\u201350 of 211 " in page
    assert "a.t-49<" in page
    assert "a.t-50<" not in page
    assert "all that it copied is repartitioned, above" in page
    last = desk.page(f"{HERE}/run/run-1?dealt=5")
    assert "a.t-210<" in last
    assert "a.t-199<" not in last
    other = desk.page(f"{HERE}/run/run-1?q=other")
    assert "a.t-0<" not in other


def test_what_the_last_run_refused_is_shown_by_kind_and_sentence(desk: Desk) -> None:
    gone = Refusal(
        kind=RefusalKind.RETENTION_PASSED, topic="orders", partition=3, message="offset 4 of orders-3 <is> gone"
    )
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest("r1", PastState.PARTIAL, gone)])
    page = desk.page(f"{HERE}/")
    assert "retention-passed 1" in page
    assert "offset 4 of orders-3 &lt;is&gt; gone" in page


def test_the_last_run_that_ended_is_told_and_the_one_under_way_beside_it(desk: Desk) -> None:
    gone = Refusal(kind=RefusalKind.RETENTION_PASSED, topic="orders", partition=3, message="offset 4 is gone")
    begun = datetime.now(UTC)
    desk.dag = DagState(
        known=True, runs=(DagRunRow(run="r2", state="running", queued=begun, started=begun, ended=None, who=""),)
    )
    last = replace(digest("r1", PastState.PARTIAL, gone), records=4_321)
    now = replace(digest("r2", PastState.OPEN), records=17, bytes=0, started_ms=int(begun.timestamp() * 1000))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [now, last])
    desk.watcher.amend(never_ran=False)
    page, home = desk.page(f"{HERE}/"), desk.page("/")
    tile = page.partition("<dt>Last run</dt>")[2].partition("</dd>")[0]
    assert "4\u202f321 records, 8 MB in 4.0 s" in tile
    assert re.search("under way for <time[^>]* data-lasts [^>]*>[^<]*</time>: 17 records so far", tile)
    assert '<dd class="over">1<small>of 3 parts' in page.partition("<dt>Refused by the last run</dt>")[2]
    assert gone.message in page.partition("Refused in the last run")[2]
    for part, badge in (("live-state", 'class="badge warn">partial<'), ("live-also", 'class="badge busy">running<')):
        assert badge in page.partition(f'id="{part}">')[2].partition("\n")[0]
    why = page.partition('id="live-why">')[2].partition("</p>")[0]
    assert re.search(f'Run <a href="{HERE}/run/r2"[^>]*>.*r2</a> is running.', why)
    row = home.partition("<tbody>")[2].partition("</tbody>")[0]
    assert re.findall(r'class="badge (\w+)">([a-z]+)<', row) == [
        *(("warn", "partial"), ("busy", "running")),  # the flow
        *(("busy", "running"), ("warn", "partial")),  # its runs
    ]
    assert "4\u202f321<small" in row
    assert ">17 <span" not in row


def test_what_a_run_left_undone_and_nobody_refused_is_shown_and_its_sentence_leads_to_it(desk: Desk) -> None:
    failed = Left(group="app", place=None, why=Why.FAILED, message="group app may not be <read>")
    report = Report(
        plan=PLAN,
        started_ms=1_000,
        receipts=(),
        refusals=(),
        unfinished=tuple(piece("orders", number) for number in range(8)),
        left=(),
        done=1,
        groups=GroupOutcome(groups=0, offsets=0, unchanged=0, left=(failed,), inexact={}),
    )
    opened = OpenedRun(record=run_of("run-1"), generation=3)
    told = {}
    for unfinished in (report.unfinished, ()):
        past = PastRun(opened=opened, state=PastState.PARTIAL, report=replace(report, unfinished=unfinished))
        desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest_of(past)])
        told[len(unfinished)] = desk.page(f"{HERE}/")
    card = told[8].partition("Not done by the last run")[2].partition("</section>")[0]
    assert (card.count(">unfinished<"), "and 3 more" in card) == (6, True)
    assert "group app may not be &lt;read&gt;" in told[0].partition("Not done by the last run")[2]
    run, logs = f'href="{HERE}/run/run-1"', "/dags/ferry__primary__backup/runs/run-1"
    sentence = told[0].partition('id="live-why">')[2].partition("</p>")[0]
    assert (run in sentence, logs in sentence) == (True, False), "Airflow knows no such run"
    ended = datetime.now(UTC)
    its = DagRunRow(run="run-1", state="success", queued=ended, started=ended, ended=ended, who="")
    desk.dag = DagState(known=True, runs=(its,))
    sentence = desk.page(f"{HERE}/").partition('id="live-why">')[2].partition("</p>")[0]
    assert (run in sentence, logs in sentence) == (True, True)


def test_what_runs_refuse_again_and_again_is_one_line_with_since_when(desk: Desk) -> None:
    gone, other = replace(refusal("orders", 3), message="offset 4 is gone"), refusal("clicks", 0)
    runs = [
        replace(digest(f"r{at}", PastState.PARTIAL, other if at == 1 else gone), started_ms=NINE + at)
        for at in (3, 2, 1, 0)
    ]
    rows = recurring(runs)
    assert [(one.refusal.topic, one.run, one.since_ms, one.runs, one.still) for one in rows] == [
        ("orders", "r3", NINE, 3, True),
        ("clicks", "r1", NINE + 1, 1, False),
    ]
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), runs)
    page = desk.page(f"{HERE}/refusals")
    assert page.count(gone.message) == 1
    assert "(not by the newest run)" in page


def test_a_run_that_refused_half_of_ten_thousand_partitions_is_shown_in_pages(desk: Desk) -> None:
    rows = tuple(lag(f"topic-{number:05d}", 0, None if number % 2 else 3, 5.0) for number in range(10_000))
    lost = tuple(
        replace(refusal(f"topic-{number:05d}", 0), message=f"topic-{number:05d}-0 has lost its head")
        for number in range(1, 10_000, 2)
    )
    kinds = {lost[0].kind.value: 5_000}
    run = replace(digest("run-1", PastState.PARTIAL), refused=5_000, refusals=lost[:200], kinds=kinds)
    report = Report(
        plan=replace(PLAN, refusals=lost),
        started_ms=1_000,
        receipts=(),
        refusals=lost,
        unfinished=(),
        left=(),
        done=5_000,
    )
    past = PastRun(opened=OpenedRun(record=run_of("run-1"), generation=3), state=PastState.PARTIAL, report=report)
    desk.watcher.see(FlowPoll(view=UNREAD, lags=rows, troubles={}), [run])
    desk.watcher.has(("run", "run-1", ""), past)
    overview = desk.page(f"{HERE}/")
    assert "and 4\u202f994 more" in overview
    assert "5\u202f000 unknown" in overview
    assert len(overview) < 60_000
    first, last = desk.page(f"{HERE}/run/run-1"), desk.page(f"{HERE}/run/run-1?refused=100")
    assert "1\u201350 of 5\u202f000 refusals" in first
    assert lost[0].message in first
    assert lost[-1].message in last
    assert lost[0].message not in last
    assert max(len(first), len(last)) < 60_000
    assert "1\u201350 of 200 refusals" in desk.page(f"{HERE}/refusals")
    assert "topic-00001" in desk.page(f"{HERE}/topics"), "what is not known comes first"


def test_a_run_that_failed_before_the_ledger_knew_it_is_listed(desk: Desk) -> None:
    failed = DagRunRow(run="manual__x", state="failed", queued=None, started=None, ended=None, who="ada")
    desk.dag = DagState(known=True, runs=(failed,))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest("r1")])
    desk.reasons = (("plan", "cluster primary has no topic <ordres>"), ("report", "nothing was planned"))
    page = desk.page(f"{HERE}/runs")
    assert "manual__x" in page
    assert "not in the ledger: cluster primary has no topic &lt;ordres&gt;" in read(page)
    assert "nothing was planned" not in page
    desk.refused.add(("ferry__primary__backup", "GET", DagAccessEntity.XCOM))
    page = desk.page(f"{HERE}/runs")
    assert "not in the ledger" in page
    assert "ordres" not in page


@pytest.mark.parametrize(
    ("age_s", "state", "followed", "planning", "ended"),
    [
        (60, "", False, True, False),
        (901, "", False, False, False),
        (901, "", True, False, True),
        (901, "running", False, True, False),
        (60, "failed", False, False, True),
    ],
)
def test_a_run_without_a_plan_has_ended_if_airflow_or_a_newer_run_shows_it(
    desk: Desk, age_s: int, state: str, followed: bool, planning: bool, ended: bool
) -> None:
    """A silent run may still be active: a slow driver may seal its plan later."""
    begun = datetime.now(UTC) - timedelta(seconds=age_s)
    opened_ms = int(begun.timestamp() * 1000)
    opened = OpenedRun(record=replace(run_of("r1"), started_ms=opened_ms), generation=9)
    its = DagRunRow(run="r1", state=state, queued=begun, started=begun, ended=None, who="ada")
    desk.dag = DagState(known=True, runs=(its,) if state else ())
    past = PastRun(opened=opened, state=PastState.UNPLANNED, report=None, followed=followed)
    answered(desk, ("run", "r1", ""), past)
    run = replace(digest("r1", PastState.UNPLANNED), started_ms=opened_ms, ended_ms=opened_ms)
    later = [replace(digest("r2"), generation=10)] if followed else []
    desk.watcher.see(FlowPoll(view=view_of(opened), lags=(), troubles={}), [*later, run])
    page = desk.page(f"{HERE}/run/r1")
    assert ("It is being planned" in page, "It ended before its plan was sealed" in page) == (planning, ended)
    assert ("whether it still runs is not known" in page) == (not planning and not ended)
    for path in (*(() if followed else ("/", f"{HERE}/")), f"{HERE}/runs", f"{HERE}/run/r1"):
        page = desk.page(path)
        assert (">planning<" in page, ">unplanned<" in page) == (planning, not planning), path


def test_a_failed_run_has_the_reason_on_its_page_for_who_may_see_it(desk: Desk) -> None:
    why = "cluster primary has no topic nosuchtopic"
    desk.dag = DagState(
        known=True, runs=(DagRunRow(run="r1", state="failed", queued=None, started=None, ended=None, who="ada"),)
    )
    desk.reasons = (("plan", why), ("report", f"nothing was planned, so nothing was copied: {why}"))
    answered(desk, ("run", "r1", ""), None)
    page = desk.page(f"{HERE}/run/r1")
    assert "Why it failed" in page
    assert page.count(why) == 2
    overview = desk.page(f"{HERE}/")
    assert 0 < overview.find("Why it failed") < overview.index('id="cut-over"'), "first why, then what can be done"
    desk.refused.add(("ferry__primary__backup", "GET", DagAccessEntity.XCOM))
    assert why not in desk.page(f"{HERE}/run/r1")


@pytest.mark.parametrize("is_own", [False, True])
def test_a_run_of_another_lane_is_not_taken_for_one_of_the_flows_dag_with_its_id(desk: Desk, is_own: bool) -> None:
    """Two DAGs with a schedule share ids of runs; the file may have named another lane before."""
    its = DagRunRow(run="r1", state="failed", queued=None, started=None, ended=None, who="ada")
    desk.older = (its,)
    desk.reasons = (("copy", "the reason of another run"),)
    record = run_of("r1")
    dag = "ferry__primary__backup" if is_own else "ferry_other__primary__backup"
    opened = OpenedRun(record=replace(record, origin=replace(record.origin, dag_id=dag)), generation=3)
    report = Report(plan=PLAN, started_ms=1_000, receipts=(), refusals=(), unfinished=(), left=(), done=0)
    answered(
        desk, ("run", "r1", "backfill-a"), PastRun(opened=opened, state=PastState.SUCCESS, report=report, followed=True)
    )
    assert ("the reason of another run" in desk.page(f"{HERE}/lane/backfill-a/run/r1")) == is_own


def test_a_run_that_the_ledger_has_let_go_shows_its_receipts_and_that_the_rest_is_not_known(desk: Desk) -> None:
    gone = Forgotten(lane=LANE, run="r1", receipts=(replace(RECEIPT, run="r1", records=441_526),))
    answered(desk, ("run", "r1", ""), gone)
    page = desk.page(f"{HERE}/run/r1")
    assert "nothing was copied" not in page
    assert ">unplanned<" not in page
    assert "441\u202f526" in page.partition("</dl>")[0]
    assert "[0, 40)" in page.partition('id="receipts-title"')[2]
    answered(desk, ("run", "r0", ""), None)
    page = desk.page(f"{HERE}/run/r0")
    assert "The ledger has nothing of this run" in page
    assert "nothing was copied" not in page


def test_a_run_whose_copy_was_deleted_after_its_source_does_not_say_that_it_copied_nothing(desk: Desk) -> None:
    """Wherever the page has its figures: what the ledger has forgotten is not known, or more than what is left."""
    other = replace(RECEIPT, source=place("clicks"), records=441_526)
    for receipts, records, took in (
        ((), ">not known<", ">not known<"),
        ((other,), ">at least 441\u202f526<", ">at least 1.0 s<"),
    ):
        slices = piece(end=40), piece("clicks", end=40)
        report = Report(
            plan=replace(PLAN, slices=slices),
            started_ms=1_000,
            receipts=receipts,
            refusals=(),
            unfinished=(),
            left=(),
            done=2,
            uncounted=slices[:1] if receipts else slices,
        )
        opened = OpenedRun(record=replace(run_of("run-1"), started_ms=1_000), generation=3)
        past = PastRun(opened=opened, state=PastState.SUCCESS, report=report)
        answered(desk, ("run", "run-1", ""), past)
        desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest_of(past)])
        desk.watcher.amend(never_ran=False)
        page = desk.page(f"{HERE}/run/run-1")
        copied = page.partition("<dt>Copied</dt>")[2].partition("</div>")[0]
        assert records in copied
        assert f"the receipts of {2 - len(receipts)} slice" in copied
        assert took in page.partition("<dt>Took</dt>")[2].partition("</div>")[0]
        assert "nothing was to be copied" not in page
        assert ("Both clusters have deleted what this run copied" in page) == (not receipts)
        for path in ("/", f"{HERE}/", f"{HERE}/runs"):
            page = desk.page(path)
            assert records[1:-1] in page, path
        (run,) = desk.client.get(f"/api{HERE}/series").json()["runs"]
        assert run["uncounted"]
        (run,) = desk.client.get(f"/api{HERE}/series?topic=clicks").json()["runs"]
        assert run["uncounted"] == (not receipts)


def test_a_run_that_was_let_go_and_has_no_receipt_left_does_not_say_that_it_copied_nothing(desk: Desk) -> None:
    some = redealt(receipt(11, (9, 9), target_next=47), target_start=5, records=42)
    for units in ((some,), ()):
        answered(desk, ("run", "r1", ""), Forgotten(lane=LANE, run="r1", receipts=units))
        page = desk.page(f"{HERE}/run/r1")
        told = page.partition('id="receipts-title"')[2].partition("</section>")[0]
        assert "what else it copied, if anything, is not known any more" in told
        assert ("repartitioned records, above" in told) == bool(units)


@pytest.mark.parametrize("age_s", [60, 901])
def test_a_run_that_was_opened_again_after_it_was_let_go_shows_the_receipts_of_its_name(desk: Desk, age_s: int) -> None:
    opened_ms = int((datetime.now(UTC) - timedelta(seconds=age_s)).timestamp() * 1000)
    opened = OpenedRun(record=replace(run_of("r1"), started_ms=opened_ms), generation=9)
    earlier = Forgotten(lane=LANE, run="r1", receipts=(replace(RECEIPT, run="r1", records=441_526),))
    past = PastRun(opened=opened, state=PastState.UNPLANNED, report=None, earlier=earlier)
    answered(desk, ("run", "r1", ""), past)
    desk.watcher.see(FlowPoll(view=view_of(opened), lags=(), troubles={}), [digest_of(past)])
    page = desk.page(f"{HERE}/run/r1")
    assert ("It is being planned" in page, "whether it still runs is not known" in page) == (age_s == 60, age_s != 60)
    assert "It was opened before under its name" in page
    assert "nothing was copied" not in page
    assert "copied nothing" not in page
    assert "441\u202f526" in page.partition('id="receipts-title"')[0]
    assert "[0, 40)" in page.partition('id="receipts-title"')[2]
    assert "copied nothing" not in desk.page(f"{HERE}/")


def test_a_next_run_is_due_now_until_it_is_overdue(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest("r1")])
    for minutes, told in ((-5, "<small>@hourly"), (2, "data-due"), (20, "<small>overdue: @hourly")):
        desk.dag = DagState(known=True, due=datetime.now(UTC) - timedelta(minutes=minutes), schedule="@hourly")
        next_run = desk.page(f"{HERE}/").partition("<dt>Next run</dt>")[2].partition("</dd>")[0]
        assert told in next_run
        assert ("data-due" in next_run) == (minutes < 20)
    desk.dag = DagState()
    assert "Airflow has no DAG of it" in desk.page(f"{HERE}/")


@pytest.mark.parametrize(
    ("lines", "due", "there", "absent"),
    [
        ("ferry.schedule = none", False, ("by hand", "no schedule"), ("the lag",)),
        ("ferry.schedule = @once", False, ("by hand", "@once"), ("no schedule", "the lag")),
        (
            "ferry.schedule = none\nferry.schedule.lag.records = 1000",
            False,
            ("by lag", "1\u202f000 records"),
            ("by hand", "no schedule", " or "),
        ),
        (
            "ferry.schedule = none\nferry.schedule.lag.records = 1\nferry.schedule.lag.seconds = 600",
            False,
            ("by lag", "1 record or 10 min"),
            ("by hand", "no schedule"),
        ),
        ("ferry.schedule.lag.seconds = 600", True, ("@hourly", "10 min"), ("Asset", "by hand")),
        ("", True, ("@hourly",), ("the lag",)),
    ],
)
def test_what_starts_the_next_run_is_the_clock_the_lag_both_or_a_user(
    desk: Desk, tmp_path: Path, lines: str, due: bool, there: Sequence[str], absent: Sequence[str]
) -> None:
    schedule = "" if "ferry.schedule =" in lines else "ferry.schedule = @hourly"
    with (tmp_path / "flows.properties").open("a") as file:
        file.write(f"{lines}\n{schedule}\n")
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest("r1")])
    when = datetime.now(UTC) + timedelta(minutes=5) if due else None
    summary = "Asset or @hourly" if "lag" in lines else "@hourly"
    desk.dag = DagState(known=True, due=when, schedule=summary if due else "Asset")
    next_run = desk.page(f"{HERE}/").partition("<dt>Next run</dt>")[2].partition("</dd>")[0]
    assert all(text in next_run for text in there), next_run
    assert not any(text in next_run for text in absent), next_run


def test_a_run_that_copied_all_and_failed_in_airflow_is_listed_with_both(desk: Desk) -> None:
    failed = DagRunRow(run="r1", state="failed", queued=None, started=None, ended=None, who="ada")
    desk.dag = DagState(known=True, runs=(failed,))
    told = {
        PastState.SUCCESS: ["success", "task failed"],
        PastState.OPEN: ["unfinished", "task failed"],
        PastState.PARTIAL: ["partial"],
    }
    for state, words in told.items():
        desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest("r1", state)])
        rows = desk.page(f"{HERE}/runs").partition("<tbody>")[2].partition("</tbody>")[0]
        assert re.findall(r'class="badge \w+">([a-z ]+)<', rows) == words

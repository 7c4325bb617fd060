"""What the page shows of what was seen; the words and figures, not their looks."""

from __future__ import annotations

import html
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi.routing import APIRoute

from ferry.decide.groups.offset_map import Ahead, Approximate, Before, Exact, InGap, LogStart, Translated
from ferry.decide.groups.table import GroupTable
from ferry.decide.lanes.listing import Lane
from ferry.decide.ledger.history import Holder, PastRun, PastState
from ferry.decide.ledger.ledger import UNREAD
from ferry.decide.ledger.report import Report
from ferry.model import GroupOutcome, Left, OpenedRun, Refusal, RefusalKind, Segment, TopicPartition, Unit, Why
from ferry.model.lane import LaneKind
from ferry.run.groups.translate import Translation
from ferry.run.watch import Sight
from ferry_airflow.page import reports
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.dealt import Sought, story_of
from ferry_airflow.page.mount import views
from ferry_airflow.page.snapshot import RunDigest, TopicRun, digest_of
from ferry_airflow.page.told import recurring
from tests.decide.test_deal import receipt
from tests.decide.test_dealt_to import DEALT
from tests.decide.values import PLAN, RECEIPT, piece, refusal, run_of
from tests.page.conftest import HERE, Desk, lag

PAGES = (
    *("/", "/topics", "/runs", "/refusals", "/offsets", "/groups", "/backfills", "/reports"),
    *("/run/a", "/partition/orders/0", "/receipt/orders/0/0"),
)


ORDERS = TopicPartition(topic="orders", partition=0)
COPY = TopicPartition(topic="primary.orders", partition=0)
NINE = 1_790_000_000_000


def digest(run: str, state: PastState = PastState.SUCCESS, *refusals: Refusal) -> RunDigest:
    return RunDigest(
        run=run,
        generation=7,
        state=state,
        started_ms=1_790_000_000_000,
        ended_ms=1_790_000_004_000,
        slices=2,
        due=1_000,
        records=900,
        bytes=8_000_000,
        latency_ms=1_500,
        refused=len(refusals),
        refusals=refusals,
        kinds={refusal.kind.value: 1 for refusal in refusals},
        gaps=(),
        notes=(),
        topics={"orders": TopicRun(due=1_000, records=900, bytes=8_000_000)},
        who="ferry__primary__backup",
    )


def test_every_route_asks_who_is_there(desk: Desk) -> None:
    routes = [route for route in desk.app.routes if isinstance(route, APIRoute)]
    assert len(routes) > 15
    for route in routes:
        assert get_user in {dependency.call for dependency in route.dependant.dependencies}, route.path


def test_nobody_who_is_not_signed_in_sees_anything(desk: Desk) -> None:
    del desk.app.dependency_overrides[get_user]
    for path in (
        "/",
        f"{HERE}/",
        "/static/ferry.css",
        "/icon/light.svg",
        "/charts/7.1.0.js",
        f"/api{HERE}/series",
        "/api/job/x",
    ):
        answer = desk.client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 401, path
    assert desk.act("run", {})[0] == 401


@pytest.mark.parametrize("path", PAGES)
def test_before_the_first_look_every_page_says_so(desk: Desk, path: str) -> None:
    assert "Asking the clusters" in desk.page(f"{HERE}{path}")


def see_down(desk: Desk, *aliases: str) -> None:
    """Let these be down since a moment after both were seen; the ledger lies on the target."""
    desk.watcher.see(Sight(view=UNREAD, lags=(lag("orders", 0, 5, 60.0),), troubles={}))
    troubles = {alias: f"{alias} at h:9092 does not <answer>" for alias in aliases}
    desk.watcher.see(Sight(view=None if "backup" in aliases else UNREAD, lags=None, troubles=troubles))


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("down", "known"), [("backup", "; figures are of "), ("primary", "; the lag is of ")])
def test_a_cluster_that_is_down_is_named_above_what_is_known(desk: Desk, path: str, down: str, known: str) -> None:
    see_down(desk, down)
    page = desk.page(f"{HERE}{path}")
    said = page[page.index(f"Cluster {down} cannot be reached since") :].partition("</strong>")
    assert known in said[0]
    assert f"{down} at h:9092 does not &lt;answer&gt;" in said[2].partition("</div>")[0]


@pytest.mark.parametrize("down", [("backup",), ("primary",), ("primary", "backup")])
def test_on_the_map_the_places_that_are_down_are_red_and_no_others(desk: Desk, down: tuple[str, ...]) -> None:
    see_down(desk, *down)
    home = desk.page("/")
    for alias in ("primary", "backup"):
        place = home[home.index(f'id="place:{alias}"') :].partition("</g>")[0]
        assert ('class="place down"' in place, "does not answer" in place) == (alias in down, alias in down), alias
        assert (f"Cluster {alias} cannot be reached since" in home) == (alias in down)
    line = home[home.index('<a id="map:primary:backup"') :].partition("</a>")[0]
    assert ('class="bad"' in line, ">unreachable" in line) == (True, True)


def test_what_is_no_outage_is_told_and_no_cluster_is_down(desk: Desk) -> None:
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}, hindrances=["flow takes <no> topic"]), [digest("r1")])
    page, home = desk.page(f"{HERE}/"), desk.page("/")
    assert "The page cannot look since" in page
    assert "flow takes &lt;no&gt; topic" in page
    assert "<small>flow takes &lt;no&gt; topic</small>" in home
    for text in (page, home):
        assert "does not answer" not in text
        assert "cannot be reached" not in text


def test_every_page_has_a_title_of_its_own(desk: Desk) -> None:
    paths = (*(path for path in PAGES if path != "/"), "/", "/topic/orders", "/partition/orders/1", "/run/b")
    titles = [re.findall("<title>(.*?)</title>", desk.page(f"{HERE}{path}"))[0] for path in paths]
    assert len(set(titles)) == len(paths), titles
    assert all("primary \u2192 backup \u00b7 Ferry" in title for title in titles)


def test_a_flow_is_on_the_map_and_in_the_list(desk: Desk) -> None:
    desk.watcher.see(
        Sight(view=UNREAD, lags=(lag("orders", 0, 1_234_567, 125.0), lag("orders", 1, 0)), troubles={}), [digest("r1")]
    )
    page = desk.page("/")
    line = page[page.index('<a id="map:primary:backup"') :].partition("</a>")[0]
    for told in ("never ran", "2 min 5 s behind", "1\u202f234\u202f567 records", ">success</tspan>"):
        assert told in line
    assert '1 <span class="unit">of 2</span>' in page


def test_ten_thousand_partitions_are_cut_into_pages(desk: Desk) -> None:
    rows = tuple(lag(f"topic-{number:05d}", 0, number, float(number)) for number in range(10_000))
    desk.watcher.see(Sight(view=UNREAD, lags=rows, troubles={}))
    first = desk.page(f"{HERE}/topics")
    assert first.count('scope="row"') == 50
    assert "topic-09999" in first
    assert "Page 1 of 200" in first
    assert "topic-00000" in desk.page(f"{HERE}/topics?page=200")
    assert "topic-00000" in desk.page(f"{HERE}/topics?page=99999")
    assert desk.page(f"{HERE}/topics?q=0042").count('scope="row"') == 11
    assert "topic-00000" in desk.page(f"{HERE}/topics?sort=topic")


OUTCOMES: dict[Translated, str] = {
    Exact(offset=5): "The same record",
    InGap(offset=5): "this is the next record that is",
    Ahead(offset=5): "this is the copied end",
    Before(offset=5): "before what was copied: this is the first record that is",
    Before(offset=5, pruned=3): "Both sides have deleted that record",
    Approximate(offset=5): "Another replicator copied it",
    LogStart(offset=5): "backup has deleted that record",
}


@pytest.mark.parametrize(("outcome", "words"), OUTCOMES.items(), ids=lambda one: getattr(one, "word", ""))
def test_each_way_in_which_an_offset_is_found_is_told(desk: Desk, outcome: Translated, words: str) -> None:
    assert {type(one) for one in OUTCOMES} == set(get_args(Translated))
    copy = TopicPartition(topic="primary.orders", partition=0)
    found = Translation(source=ORDERS, target=copy, outcome=outcome)
    answered(desk, ("offset", ORDERS, 7, False, ""), (found, []))
    page = desk.page(f"{HERE}/offsets?topic=orders&partition=0&offset=7")
    assert words in page
    assert '<b id="other-offset">5</b>primary.orders-0' in page


def answered(desk: Desk, key: tuple[object, ...], got: object) -> None:
    """As if the flow's thread had this answer to a question of a page."""
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}))
    desk.watcher.has(key, got)


def test_groups_are_numbered_by_their_pages_and_it_is_said_that_there_are_more(desk: Desk) -> None:
    tables = tuple(GroupTable(group=f"group-{number:02}", source=None, target=None, rows=()) for number in range(45))
    answered(desk, ("groups",), (tables, (), False))
    page = desk.page(f"{HERE}/groups?page=2")
    assert "21\u201340 of 45 groups" in page
    assert "41\u201345 of 45 groups" in desk.page(f"{HERE}/groups?page=3")
    assert "Only the first" not in page


def test_that_groups_were_cut_off_is_said(desk: Desk) -> None:
    answered(desk, ("groups",), ((), (), True))
    assert "Only the first 2\u202f000 groups by name are here" in desk.page(f"{HERE}/groups")


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


def test_a_run_says_what_it_dealt_to_other_partitions(desk: Desk) -> None:
    some = replace(receipt(11, (9, 9), target_next=47), target_start=5, records=42)
    report = Report(
        plan=PLAN, started_ms=1_000, receipts=(), refusals=(), unfinished=(), left=(), done=1, units=(some,)
    )
    past = PastRun(opened=OpenedRun(record=run_of("run-1"), generation=3), state=PastState.SUCCESS, report=report)
    answered(desk, ("run", "run-1", ""), past)
    page = desk.page(f"{HERE}/run/run-1")
    assert "Dealt to other partitions" in page
    assert "a.t-11" in page
    assert "[5, 47)" in page
    assert "topic t: 18 offsets read, 42 records dealt to 1 partition of a.t, 0 dead letters" in page


def test_what_a_run_dealt_is_shown_in_pages_and_narrowed_to_a_topic(desk: Desk) -> None:
    units = tuple(replace(receipt(n, (9, 9), target_next=47), target_start=5, records=42) for n in range(211))
    unit = Unit(
        source_topic="t", target=units[0].target, starts=(0, 0), ends=(9, 9), slot=0, era=1, partitions=2, digest=""
    )
    report = Report(
        plan=replace(PLAN, units=(unit,)),
        started_ms=1_000,
        receipts=(),
        refusals=(),
        unfinished=(),
        left=(),
        done=1,
        units=units,
    )
    past = PastRun(opened=OpenedRun(record=run_of("run-1"), generation=3), state=PastState.SUCCESS, report=report)
    answered(desk, ("run", "run-1", ""), past)
    short = digest_of(past)
    assert (short.slices, short.due, short.records) == (1, 18, 211 * 42)
    page = desk.page(f"{HERE}/run/run-1")
    assert "1\u201350 of 211 " in page
    assert "a.t-49<" in page
    assert "a.t-50<" not in page
    assert "all that it copied is dealt to other partitions" in page
    last = desk.page(f"{HERE}/run/run-1?dealt=5")
    assert "a.t-210<" in last
    assert "a.t-199<" not in last
    other = desk.page(f"{HERE}/run/run-1?q=other")
    assert "a.t-0<" not in other


def test_a_partition_of_a_dealt_topic_has_no_receipts_of_its_own(desk: Desk) -> None:
    """Its number on the target is none of its own: neither is it shown, nor asked by."""
    lags = (replace(lag("orders", 0, 5), dealt=True), lag("clicks", 0, 5))
    for topic in ("orders", "clicks"):
        answered(desk, ("receipts", TopicPartition(topic=topic, partition=0), 1, ""), ([], 0))
    desk.watcher.see(Sight(view=replace(UNREAD, end=5), lags=lags, troubles={}))
    desk.watcher.has(("dealt", ORDERS, 1, Sought(offset=None), ""), None)
    dealt = desk.page(f"{HERE}/partition/orders/0")
    assert "dealt up to offset 10 of 15" in dealt
    assert "They go to all partitions of primary.orders on backup" in dealt
    assert "Nothing of this partition is copied yet" not in dealt
    assert "/offsets?" not in dealt
    assert 'name="offset"' not in dealt
    copied = desk.page(f"{HERE}/partition/clicks/0")
    assert "Nothing of this partition is copied yet" in copied
    assert 'name="offset"' in copied
    assert "primary.orders, dealt<" in desk.page(f"{HERE}/topic/orders")
    assert "primary.clicks-0<" in desk.page(f"{HERE}/topic/clicks")


def test_a_partition_that_is_dealt_says_what_went_to_which_of_the_others(desk: Desk) -> None:
    answered(desk, ("receipts", ORDERS, 1, ""), ([], 0))
    desk.watcher.see(Sight(view=replace(UNREAD, end=5), lags=(replace(lag("orders", 0, 5), dealt=True),), troubles={}))

    def asked(sought: Sought, page: int = 1) -> str:
        desk.watcher.has(
            ("dealt", ORDERS, page, sought, ""),
            story_of(DEALT, TopicPartition(topic="t", partition=0), sought, 50 * (page - 1), 50),
        )
        query = "" if sought.offset is None else f"&offset={sought.offset}&key={sought.key}"
        return desk.page(f"{HERE}/partition/orders/0?page={page}{query}")

    page = asked(Sought(offset=None))
    assert 'id="to:a.t-0"' in page
    assert f'href="{HERE}/run/r-40"' in page
    assert "[113, 116)" in page
    page = asked(Sought(offset=20))
    where = page[page.index("Where source offset 20 is") :].split("</table>")[0]
    assert ("not here" in where, "among these" in where, "[113, 116)" in where) == (True, True, True)
    page = asked(Sought(offset=19, key="k17"))
    where = page[page.index("Where source offset 19 is") :].split("</table>")[0]
    assert where.count('scope="row"') == 1
    assert 'value="k17"' in page
    led = desk.client.get(f"{HERE}/offsets?topic=orders&partition=0&offset=20", follow_redirects=False)
    assert (led.status_code, led.headers["location"]) == (307, "partition/orders/0?offset=20")


def test_lanes_beyond_those_that_are_read_are_counted(desk: Desk) -> None:
    lane = Lane(
        name="backfill-a", kind=LaneKind.BACKFILL, topics=(), parts=(), windows=1, last_run=None, whole=80, left=20
    )
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}))
    answered(desk, ("lanes",), [lane])
    desk.watcher._seen = replace(desk.watcher._seen, lanes=("live", "backfill-a", "backfill-b", "drill-c"))
    page = desk.page(f"{HERE}/backfills")
    assert "and 2 more lanes" in page
    assert "75 % copied, 20 offset(s) left" in page


def test_what_the_last_run_refused_is_shown_by_kind_and_sentence(desk: Desk) -> None:
    gone = Refusal(
        kind=RefusalKind.RETENTION_PASSED, topic="orders", partition=3, message="offset 4 of orders-3 <is> gone"
    )
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}), [digest("r1", PastState.PARTIAL, gone)])
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
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}), [now, last])
    desk.watcher._seen = replace(desk.watcher._seen, never_ran=False)
    page, home = desk.page(f"{HERE}/"), desk.page("/")
    tile = page.partition("<dt>Last run</dt>")[2].partition("</dd>")[0]
    assert "4\u202f321 records, 8 MB in 4.0 s" in tile
    assert re.search("under way since <time[^>]*>[^<]*</time>: 17 records so far", tile)
    assert "<dd>1<small>of 3 parts" in page.partition("<dt>Refused by it</dt>")[2]
    assert gone.message in page.partition("Refused in the last run")[2]
    for part, badge in (("live-state", 'class="badge warn">partial<'), ("live-also", 'class="badge busy">running<')):
        assert badge in page.partition(f'id="{part}">')[2].partition("\n")[0]
    assert "Run r2 is running." in page.partition('id="live-why">')[2].partition("</p>")[0]
    row = home.partition("<tbody>")[2].partition("</tbody>")[0]
    assert re.findall(r'class="badge (\w+)">([a-z]+)<', row) == [
        *(("warn", "partial"), ("busy", "running")),  # the flow
        *(("busy", "running"), ("warn", "partial")),  # its runs
    ]
    assert "4\u202f321 <span" in row
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
        desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}), [digest_of(past)])
        told[len(unfinished)] = desk.page(f"{HERE}/")
    card = told[8].partition("Not done by the last run")[2].partition("</section>")[0]
    assert (card.count(">unfinished<"), "and 3 more" in card) == (6, True)
    assert "group app may not be &lt;read&gt;" in told[0].partition("Not done by the last run")[2]
    run, logs = f'href="{HERE}/run/run-1">The run<', "/dags/ferry__primary__backup/runs/run-1"
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
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}), runs)
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
    desk.watcher.see(Sight(view=UNREAD, lags=rows, troubles={}), [run])
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


CUT = replace(
    RECEIPT,
    source=ORDERS,
    target=COPY,
    start=0,
    end=24_000,
    segments=tuple(Segment(source_start=100 * at, target_start=90 * at, count=90) for at in range(240)),
)


def test_a_receipt_of_many_segments_leads_to_all_of_them_and_each_of_them_both_ways(desk: Desk) -> None:
    answered(desk, ("receipts", ORDERS, 1, ""), ([CUT], 1))
    page = desk.page(f"{HERE}/partition/orders/0")
    assert f'href="{HERE}/receipt/orders/0/0?run={CUT.run}">All 240 segments' in page
    assert f'href="{HERE}/offsets?topic=primary.orders&amp;partition=0&amp;offset=90&amp;back=true"' in page
    assert 'name="topic" value="primary.orders"' in page
    assert 'name="back" value="true"' in page
    answered(desk, ("receipt", ORDERS, 0, CUT.run, ""), CUT)
    last = desk.page(f"{HERE}/receipt/orders/0/0?run={CUT.run}&page=5")
    assert "201\u2013240 of 240 segments" in last
    assert "23900\u201323989" in last
    answered(desk, ("receipt", ORDERS, 7, "", ""), None)
    assert "no such receipt" in desk.page(f"{HERE}/receipt/orders/0/7")


def test_an_answer_leads_back_and_to_the_partition_and_to_the_receipt(desk: Desk) -> None:
    found = Translation(source=ORDERS, target=COPY, outcome=Exact(offset=95))
    answered(
        desk,
        ("offset", ORDERS, 105, False, ""),
        (found, [Holder(receipt=CUT, segment=CUT.segments[1], target_offset=95)]),
    )
    page = desk.page(f"{HERE}/offsets?topic=orders&partition=0&offset=105")
    assert f'href="{HERE}/offsets?topic=primary.orders&amp;partition=0&amp;offset=95&amp;back=true"' in page
    assert f'href="{HERE}/partition/orders/0"' in page
    assert f'href="{HERE}/receipt/orders/0/0?run={CUT.run}"' in page


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/topics?page=x", "page has to be a whole number, not 'x'."),
        ("/partition/orders/-1", "partition has to be 0 or more, not '-1'."),
        ("/partition/orders/two", "partition has to be a whole number, not 'two'."),
        ("/receipt/orders/0/-4", "start has to be 0 or more, not '-4'."),
        (
            "/offsets?topic=orders&partition=-1&offset=-5",
            "partition has to be 0 or more, not '-1'. offset has to be 0 or more, not '-5'.",
        ),
        ("/offsets?topic=orders&offset=99999999999999999999", "offset has to be 9223372036854775807 or less"),
        ("/offsets?topic=orders&back=perhaps", "back has to be true or false, not 'perhaps'."),
        ("/report/x", "number has to be a whole number, not 'x'."),
    ],
)
def test_a_bad_number_in_an_address_is_told_in_a_sentence(desk: Desk, path: str, sentence: str) -> None:
    answer = desk.client.get(f"{HERE}{path}", headers={"Accept": "text/html"})
    assert answer.status_code == 422
    assert sentence in html.unescape(answer.text)
    assert not desk.watcher._answers._kept, "no cluster is asked"


def test_a_page_of_receipts_beyond_the_last_is_the_last(desk: Desk) -> None:
    answered(desk, ("receipts", ORDERS, 9, ""), ([], 70))
    answer = desk.client.get(f"{HERE}/partition/orders/0?page=9", follow_redirects=False)
    assert answer.headers["location"] == "?page=2"


def test_a_report_that_is_being_read_loads_itself_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = threading.Event()
    monkeypatch.setattr(reports, "_page_of", lambda flow, name: hold.wait(60))  # a folder that answers late
    answer = desk.client.get(f"{HERE}/report/7", headers={"Accept": "text/html"})
    hold.set()
    assert (answer.status_code, answer.headers["refresh"]) == (503, "1")
    assert "this page loads itself again" in answer.text


def test_one_is_not_told_as_several(desk: Desk) -> None:
    desk.watcher.see(Sight(view=UNREAD, lags=(lag("orders", 0, 1, 5.0),), troubles={}), [digest("r1")])
    assert "2 clusters, 1 flow<" in desk.page("/")
    assert "1 topic<" in desk.page(f"{HERE}/topics")
    assert "1 partition<" in desk.page(f"{HERE}/topic/orders")


def test_a_run_that_failed_before_the_ledger_knew_it_is_listed(desk: Desk) -> None:
    failed = DagRunRow(run="manual__x", state="failed", queued=None, started=None, ended=None, who="ada")
    desk.dag = DagState(known=True, runs=(failed,))
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}), [digest("r1")])
    page = desk.page(f"{HERE}/runs")
    assert "manual__x" in page
    assert "not in the ledger" in page


@pytest.mark.parametrize(
    ("age_s", "state", "planning"), [(60, "", True), (901, "", False), (901, "running", True), (60, "failed", False)]
)
def test_a_run_is_being_planned_until_airflow_or_its_age_says_that_it_is_not(
    desk: Desk, age_s: int, state: str, planning: bool
) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=age_s)
    opened_ms = int(begun.timestamp() * 1000)
    opened = OpenedRun(record=replace(run_of("r1"), started_ms=opened_ms), generation=9)
    its = DagRunRow(run="r1", state=state, queued=begun, started=begun, ended=None, who="ada")
    desk.dag = DagState(known=True, runs=(its,) if state else ())
    answered(desk, ("run", "r1", ""), PastRun(opened=opened, state=PastState.UNPLANNED, report=None))
    run = replace(digest("r1", PastState.UNPLANNED), started_ms=opened_ms, ended_ms=opened_ms)
    desk.watcher.see(Sight(view=replace(UNREAD, runs=(opened,)), lags=(), troubles={}), [run])
    told = (planning, not planning)
    page = desk.page(f"{HERE}/run/r1")
    assert ("It is being planned" in page, "It ended before its plan was sealed" in page) == told
    for path in ("/", f"{HERE}/", f"{HERE}/runs", f"{HERE}/run/r1"):
        page = desk.page(path)
        assert (">planning<" in page, ">unplanned<" in page) == told, path


def test_a_next_run_is_due_now_until_it_is_overdue(desk: Desk) -> None:
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}), [digest("r1")])
    for minutes, told in ((-5, "<small>@hourly"), (2, "data-due"), (20, "<small>overdue: @hourly")):
        desk.dag = DagState(known=True, due=datetime.now(UTC) - timedelta(minutes=minutes), schedule="@hourly")
        next_run = desk.page(f"{HERE}/").partition("<dt>Next run</dt>")[2].partition("</dd>")[0]
        assert told in next_run
        assert ("data-due" in next_run) == (minutes < 20)
    desk.dag = DagState()
    assert "Airflow has no DAG of it" in desk.page(f"{HERE}/")


def test_a_run_that_copied_all_and_failed_in_airflow_is_listed_with_both(desk: Desk) -> None:
    failed = DagRunRow(run="r1", state="failed", queued=None, started=None, ended=None, who="ada")
    desk.dag = DagState(known=True, runs=(failed,))
    told = {
        PastState.SUCCESS: ["success", "task failed"],
        PastState.OPEN: ["unfinished", "task failed"],
        PastState.PARTIAL: ["partial"],
    }
    for state, words in told.items():
        desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}), [digest("r1", state)])
        rows = desk.page(f"{HERE}/runs").partition("<tbody>")[2].partition("</tbody>")[0]
        assert re.findall(r'class="badge \w+">([a-z ]+)<', rows) == words


def test_series_are_bounded_and_narrowed_to_a_topic(desk: Desk) -> None:
    for _ in range(1_000):
        desk.watcher.see(Sight(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}), [digest("r1")])
    found = desk.client.get(f"/api{HERE}/series").json()
    assert len(found["lag"]) <= 400
    assert found["lag"][-1][1:] == [5, 500, 2.0]
    assert found["runs"][0]["records"] == 900
    assert desk.client.get(f"/api{HERE}/series?topic=other").json()["runs"] == []
    for query in ("topic=orders", "topic=orders&partition=0"):
        part = desk.client.get(f"/api{HERE}/series?{query}").json()
        assert len(part["lag"]) <= 400
        assert part["lag"][-1][1:] == [5, 500, 2.0]
    assert desk.client.get(f"/api{HERE}/series?topic=orders&partition=1").json()["lag"] == []


def test_a_topic_and_a_partition_have_charts_of_records_bytes_and_seconds(desk: Desk) -> None:
    desk.watcher.see(Sight(view=UNREAD, lags=(lag("orders", 3, 5, 2.0),), troubles={}))
    for path, place in (("topic/orders", 'data-topic="orders"'), ("partition/orders/3", 'data-partition="3"')):
        page = desk.page(f"{HERE}/{path}")
        figures = [line for line in page.splitlines() if "<figure" in line and place in line]
        assert {"lag", "due", "bytes"} <= {re.findall(r'data-chart="(\w+)"', line)[0] for line in figures}


def test_no_configuration_and_no_flow_have_pages_of_their_own(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FERRY_CONFIG")
    assert "FERRY_CONFIG is not set" in desk.page("/")
    monkeypatch.setenv("FERRY_CONFIG", "/nowhere/flows.properties")
    assert "/nowhere/flows.properties cannot be read" in desk.page("/")
    file = tmp_path / "flows.properties"
    file.write_text("clusters = a, b\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\n")
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    page = desk.page("/")
    assert "No flow is configured yet" in page
    assert f"{file} enables no flow" in page


def test_the_tab_of_another_dag_says_that_it_is_no_flow(desk: Desk) -> None:
    assert "example is not a DAG of Ferry" in desk.page("/dag/example")
    answer = desk.client.get("/dag/ferry_verify__primary__backup", follow_redirects=False)
    assert answer.headers["location"] == f"{HERE}/"


@pytest.mark.parametrize("verb", ["verify", "backfill", "drill", "switchover", "failover", "failback"])
def test_the_tab_of_a_run_is_of_that_dag_also_where_another_has_a_run_of_its_id(desk: Desk, verb: str) -> None:
    run = "scheduled__2026-11-23T00%3A00%3A00%2B00%3A00"
    for dag, place in (("ferry", ""), (f"ferry_{verb}", f"dag/ferry_{verb}__primary__backup/")):
        answer = desk.client.get(f"/dag/{dag}__primary__backup/run/{run}", follow_redirects=False)
        assert answer.headers["location"] == f"{HERE}/{place}run/{run}"


def test_pages_load_nothing_from_elsewhere(desk: Desk) -> None:
    desk.watcher.see(Sight(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}), [digest("r1")])
    for path in ("/", *(f"{HERE}{path}" for path in PAGES)):
        page = desk.page(path)
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", page), path
        assert not re.search(r"<script(?![^>]*src=)", page), path
    answer = desk.client.get("/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_the_places_in_airflow_are_one_address_each() -> None:
    assert {view["destination"] for view in views()} == {"nav", "dag", "dag_run"}
    assert len({view["url_route"] for view in views()}) == 3
    assert all(view["href"].startswith("/ferry/") for view in views())

"""The list of runs: what is folded, what filters leave, and by which name a run is shown."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from ferry.clock import wall_ms
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.ledger import UNREAD
from ferry.ledger.report import Report
from ferry.model import GroupOutcome, OpenedRun
from ferry.reader.documents import RunDigest
from ferry.reader.snapshot import digest_of
from ferry.reader.watch import FlowPoll
from ferry_airflow.page import filters
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.filters import short_run
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.values import digest
from tests.pure.decide.values import PLAN, refusal, run_of

MINUTE = 60_000
LATE = "scheduled__2026-01-31T06:00:00+00:00"
"""A run that began long after that."""


def ran(run: str, minutes_ago: int, state: PastState = PastState.SUCCESS, *, idle: bool = False) -> RunDigest:
    """A run that began so many minutes ago."""
    at_ms = wall_ms() - minutes_ago * MINUTE
    one = replace(digest(run, state), started_ms=at_ms, ended_ms=at_ms + 4000, idle=idle)
    return replace(one, due=0, records=0, bytes=0) if idle else one


def runs() -> tuple[RunDigest, ...]:
    return (
        ran("i5", 1, idle=True),
        ran("i4", 2, idle=True),
        ran("a2", 3),
        ran("i3", 5, idle=True),
        ran("p1", 6, PastState.PARTIAL),
        ran("i2", 70, idle=True),
        ran("i1", 80, idle=True),
        ran("a1", 300),
    )


def rows_of(page: str) -> list[str]:
    """The ids of the rows of the list of runs."""
    return re.findall(r'<tr id="((?:run|idle):[^"]+)"', page)


def seen(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), runs())


def test_idle_runs_next_to_each_other_are_one_row(desk: Desk) -> None:
    seen(desk)
    rows = ["idle:i4", "run:a2", "run:i3", "run:p1", "idle:i1", "run:a1"]
    page = desk.page(f"{HERE}/runs")
    assert rows_of(page) == rows
    overview = desk.page(f"{HERE}/")
    assert rows_of(overview) == rows
    assert "nothing to copy<" in overview.partition("<dt>Last run</dt>")[2].partition("</dd>")[0]
    fold = page[page.index('<tr id="idle:i1"') :].partition("</tr>")[0]
    assert re.findall(rf'href="{HERE}/run/(\w+)"', fold) == ["i2", "i1"], "each is a link in the row"
    assert "2 runs that had nothing to copy" in fold


def test_an_idle_run_whose_task_failed_is_a_row_of_its_own(desk: Desk) -> None:
    seen(desk)
    failed = DagRunRow(run="i4", state="failed", queued=None, started=None, ended=datetime.now(UTC), who="")
    desk.dag = DagState(known=True, runs=(failed,))
    assert rows_of(desk.page(f"{HERE}/runs"))[:2] == ["run:i5", "run:i4"]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("copied=true", ["run:a2", "run:p1", "run:a1"]),
        ("state=partial", ["run:p1"]),
        ("range=15m", ["idle:i4", "run:a2", "run:i3", "run:p1"]),
        ("range=4h&copied=true", ["run:a2", "run:p1"]),
        ("range=4h&state=failed", []),
    ],
)
def test_filters_are_parameters_of_the_address(desk: Desk, query: str, rows: list[str]) -> None:
    seen(desk)
    page = desk.page(f"{HERE}/runs?{query}")
    assert rows_of(page) == rows
    assert ("No run of those that are read is like that" in page) == (not rows)
    picks = "".join(re.findall(r'<nav class="picks".*?</nav>', page, re.DOTALL))
    chosen = re.findall(r'<a href="([^"]+)" aria-current="true"', picks)
    assert len(chosen) == 3, "one of each filter"
    for link in chosen:
        assert set(query.split("&")) >= set(filter(None, link.strip("?").replace("&amp;", "&").split("&"))) - {
            "range=all"
        }


def test_a_time_that_no_page_has_is_refused_in_a_sentence(desk: Desk) -> None:
    answer = desk.client.get(f"{HERE}/runs?range=2h", headers={"Accept": "text/html"})
    assert (answer.status_code, "range has to be one of" in answer.text) == (422, True)


def test_the_reason_of_a_run_that_failed_is_in_its_row(desk: Desk) -> None:
    seen(desk)
    desk.reasons = (("copy", "backup does not answer"),)
    failed = DagRunRow(run="p1", state="failed", queued=None, started=None, ended=datetime.now(UTC), who="")
    desk.dag = DagState(known=True, runs=(failed,))
    page = desk.page(f"{HERE}/runs")
    assert desk.reasons[0][1] in page[page.index('<tr id="run:p1"') :].partition("</tr>")[0]


@pytest.mark.parametrize("path", ["runs", f"run/{quote(LATE)}", ""])
def test_a_sentence_about_a_run_names_it_as_its_row_and_its_title_do(desk: Desk, path: str) -> None:
    """An id has the time for which Airflow scheduled a run, and names it by that where nothing else is known."""
    late = ran(LATE, 6, PastState.FAILED)
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), (late,))
    desk.reasons = (("report", f"1 not copied in run {LATE} of a->b"),)
    its = DagRunRow(run=LATE, state="failed", queued=None, started=None, ended=datetime.now(UTC), who="")
    desk.dag = DagState(known=True, runs=(its,))
    page = html.unescape(desk.page(f"{HERE}/{path}"))
    (named,) = re.findall(r"not copied in run <span title=[^>]*><time datetime=\"([^\"]+)\"", page)
    assert named == filters.iso(late.started_ms)


@pytest.mark.parametrize(
    ("ms", "took"), [(0, "not known"), (1, "under 0.1 s"), (40, "under 0.1 s"), (900, "0.9 s"), (4_000, "4.0 s")]
)
def test_how_long_a_run_took_is_not_0_where_it_is_short_or_not_known(desk: Desk, ms: int, took: str) -> None:
    """A run without receipts does not show when it ended."""
    one = ran("a1", 9)
    one = replace(one, ended_ms=one.started_ms + ms)
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [one])
    for path in ("/runs", "/"):
        page = desk.page(f"{HERE}{path}")
        row = page[page.index('<tr id="run:a1"') :].partition("</tr>")[0]
        assert f">{took}<" in row
    tile = desk.page(f"{HERE}/").partition("<dt>Last run</dt>")[2].partition("</div>")[0]
    assert (f" in {took}<" in tile) == (ms > 0)
    assert " 0 s<" not in tile


def test_a_run_at_work_has_taken_the_time_since_its_opening(desk: Desk) -> None:
    seen(desk)
    begun = DagRunRow(run="a2", state="running", queued=None, started=None, ended=None, who="")
    desk.dag = DagState(known=True, runs=(begun,))
    for path in ("/runs", "/"):
        page = desk.page(f"{HERE}{path}")
        row = page[page.index('<tr id="run:a2"') :].partition("</tr>")[0]
        assert re.search(r">3 min( \d+ s)? so far<", row), row


@pytest.mark.parametrize("path", ["/runs", "/runs?state=task+failed", "/"])
def test_a_run_older_than_the_newest_ones_of_airflow_has_its_state_and_reason(desk: Desk, path: str) -> None:
    seen(desk)
    desk.reasons = (("checkpoint", "group `billing` is active"),)
    desk.older = (DagRunRow(run="a1", state="failed", queued=None, started=None, ended=datetime.now(UTC), who=""),)
    page = desk.page(f"{HERE}{path}")
    row = page[page.index('<tr id="run:a1"') :].partition("</tr>")[0]
    assert "task failed" in row
    assert ("group `billing` is active" in html.unescape(row)) == path.startswith("/runs")


@pytest.mark.parametrize("path", ["/runs", "/runs?state=failed"])
def test_a_run_that_failed_before_it_opened_stays_in_the_list(desk: Desk, path: str) -> None:
    """The ledger has nothing of it, and it is not among Airflow's newest runs any more."""
    seen(desk)
    desk.reasons = (("plan", "backup does not answer"),)
    at = datetime.now(UTC) - timedelta(hours=2)
    desk.failed = (DagRunRow(run="never-opened", state="failed", queued=at, started=at, ended=at, who=""),)
    page = desk.page(f"{HERE}{path}")
    row = page[page.index('<tr id="run:never-opened"') :].partition("</tr>")[0]
    assert desk.reasons[0][1] in row
    order = rows_of(page)
    assert order[-2:] == ["run:never-opened", "run:a1"] if path == "/runs" else order == ["run:never-opened"]


def test_the_page_of_an_older_run_has_what_airflow_has_of_it(desk: Desk) -> None:
    seen(desk)
    desk.reasons = (("checkpoint", "group billing is active"),)
    desk.older = (DagRunRow(run="a1", state="failed", queued=None, started=None, ended=datetime.now(UTC), who=""),)
    assert "group billing is active" in desk.page(f"{HERE}/run/a1")
    assert "group billing is active" not in desk.page(f"{HERE}/run/a2")


@pytest.mark.parametrize(
    ("run", "short"),
    [
        ("scheduled__2026-11-23T19:18:04.123456+00:00", "scheduled"),
        ("manual__2026-11-23T19:18:04+00:00_x1Y2", "manual"),
        ("asset_triggered__2026-11-23T19:18:04+00:00_x1Y2", "asset triggered"),
        ("run-20261123T191804Z-ab12", "run"),
        ("backfill-20261123T191804Z-ab12~2", "backfill ~2"),
        ("manual__2026-11-23T19:18:04+00:00~3", "manual ~3"),
        ("before-the-upgrade", "before-the-upgrade"),
        ("my-20261123", "my-20261123"),
    ],
)
def test_a_run_has_a_short_name_and_its_whole_id(desk: Desk, run: str, short: str) -> None:
    assert short_run(run) == short
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [ran(run, 1)])
    page = desk.page(f"{HERE}/runs")
    link = html.unescape(page[page.index('<tr id="run:') :].partition("</th>")[0])
    assert (f'title="{run}"' in link, f"</time> {short}<" in link) == (True, True)
    assert (f'visually-hidden">, {run}<' in link) == (short != run)
    own = desk.page(f"{HERE}/run/{quote(run, safe='')}").partition('<div class="head"><h2>')[2]
    title, after = (html.unescape(re.sub("<[^>]+>", "", part)) for part in own.split("</h2>", 1))
    assert title.endswith(short)
    assert (run in title, run in after.splitlines()) == (short == run, short != run)


@pytest.mark.parametrize(
    ("changed", "idle"),
    [
        ({}, True),
        ({"plan": {"paused": ("orders",)}}, True),
        ({"plan": {"caught_up": 3, "refusals": (refusal("orders", 0),)}}, False),
        ({"groups": GroupOutcome(groups=1, offsets=4, unchanged=0, left=(), inexact={})}, False),
        ({"state": PastState.UNPLANNED}, False),
    ],
)
def test_a_run_is_idle_as_the_ledger_counts_it(changed: dict[str, Any], idle: bool) -> None:
    report = Report(
        plan=replace(PLAN, slices=(), **changed.get("plan", {})),
        started_ms=1_000,
        receipts=(),
        refusals=(),
        unfinished=(),
        left=(),
        done=0,
        groups=changed.get("groups"),
    )
    opened = OpenedRun(record=run_of("run-1"), generation=3)
    past = PastRun(opened=opened, state=changed.get("state", PastState.SUCCESS), report=report)
    assert digest_of(past).idle == idle


def test_what_a_run_was_to_copy_is_counted_in_offsets_and_the_head_says_so(desk: Desk) -> None:
    seen(desk)
    head = desk.page(f"{HERE}/runs").partition("<thead>")[2].partition("</thead>")[0]
    assert re.search(r'words#term-offsets-due" data-means="[^"]+">Offsets due<', head)

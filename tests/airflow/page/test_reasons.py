"""Reasons stand on the page, for who has no mouse: who paused what and until when, why a flow is not green."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from markupsafe import Markup

from ferry.ledger.history import PastState
from ferry.ledger.ledger import UNREAD
from ferry.model import Pause, Refusal, RefusalKind
from ferry.reader.snapshot import topic_rows
from ferry.reader.watch import FlowPoll
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.rendering import sentence
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.everything import filled
from tests.airflow.page.values import NINE, digest

PAUSES = {
    "audit": Pause(topic="audit", who="ada", why="schema <migration>", since_ms=NINE, until_ms=NINE + 60_000),
    "clicks": Pause(topic="clicks", who="bob", why="too loud", since_ms=NINE + 1_000),
}


def read(page: str) -> str:
    """What a reader sees, without what only a mouse tells."""
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))
    return re.sub(r" (?=[:;,.])", "", text)


def paused(desk: Desk, pauses: dict[str, Pause]) -> None:
    desk.watcher.see(
        FlowPoll(view=UNREAD, lags=tuple(lag(topic, 0, 0) for topic in ("audit", "clicks", "orders")), troubles={}),
        [digest("r1")],
    )
    seen = desk.watcher.last
    desk.watcher.amend(never_ran=False, pauses=pauses, topics=topic_rows(seen.lags, pauses))


def test_paused_topics_are_counted_with_a_way_to_them_by_whom_and_until_when(desk: Desk) -> None:
    paused(desk, PAUSES)
    overview, home = desk.page(f"{HERE}/"), desk.page("/")
    told = "since 2026-09-21 14:13:20 UTC until 2026-09-21 14:14:20 UTC, by ada: schema &lt;migration&gt;"
    assert f"2 topics are paused audit: {told}; and 1 more" in read(overview)
    assert "2 topics paused" in read(home)
    for page in (overview, home):
        assert f'href="{HERE}/topics?paused=true"' in page
    only = desk.page(f"{HERE}/topics?paused=true")
    assert only.count('scope="row"') == 2
    assert told in read(only)
    assert "since 2026-09-21 14:13:21 UTC, by bob: too loud" in read(only)
    assert desk.page(f"{HERE}/topics").count('scope="row"') == 3
    assert told in read(desk.page(f"{HERE}/topic/audit"))


def test_where_no_topic_is_paused_nothing_is_said_of_it(desk: Desk) -> None:
    paused(desk, {"": Pause(topic="", who="ada", why="all of it", since_ms=NINE)})
    assert "topics?paused" not in desk.page(f"{HERE}/") + desk.page("/")
    assert "No topic is paused" in desk.page(f"{HERE}/topics?paused=true")


def test_why_a_flow_is_not_green_is_read_in_the_list(desk: Desk) -> None:
    paused(desk, {})
    desk.watcher.amend(runs=(digest("r1", PastState.FAILED),))
    assert " r1 copied nothing of what it should copy." in read(desk.page("/"))
    desk.watcher.amend(runs=(digest("r1"),))
    assert "copied all that it should copy" not in read(desk.page("/")), "what is green needs no sentence"


def test_why_the_chain_of_the_reports_is_broken_is_read_beside_it(desk: Desk) -> None:
    filled(desk)
    assert "broken the report before it is missing" in read(desk.page(f"{HERE}/reports"))


RUN = "scheduled__2026-11-22T10:15:00+00:00"
GONE = Refusal(kind=RefusalKind.RETENTION_PASSED, topic="orders", partition=3, message="offset 4 of orders-3 is gone")


DOWN = "cluster-backup-is-down"


def failed(desk: Desk, state: PastState, *refusals: Refusal, why: str) -> None:
    """Airflow and the ledger have a run that ended like this; `why` is what its task kept."""
    its = DagRunRow(run=RUN, state="failed", queued=None, started=None, ended=datetime.now(UTC), who="")
    desk.dag = DagState(known=True, runs=(its,))
    desk.reasons = (("report", why),)
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest(RUN, state, *refusals)])
    desk.watcher.amend(never_ran=False)


@pytest.mark.parametrize("state", [PastState.SUCCESS, PastState.OPEN, PastState.FAILED])
def test_the_list_says_why_a_run_failed_and_its_overview_says_it_once(desk: Desk, state: PastState) -> None:
    failed(desk, state, why=f"{DOWN}.")
    home, overview = (read(desk.page(path)) for path in ("/", f"{HERE}/"))
    assert home.count(DOWN) == 1
    assert overview.count(DOWN) == 1
    assert "logs of its tasks" not in home + overview
    assert ("why is below" in overview) == (state is not PastState.FAILED)
    assert ("logs of its tasks" in read(desk.page(f"{HERE}/topics"))) == (state is not PastState.FAILED)


def test_who_may_not_see_why_a_run_failed_is_led_to_its_logs(desk: Desk) -> None:
    failed(desk, PastState.OPEN, why=DOWN)
    desk.refused.add(("ferry__primary__backup", "GET", DagAccessEntity.XCOM))
    for path in ("/", f"{HERE}/"):
        page = read(desk.page(path))
        assert (DOWN in page, "logs of its tasks" in page) == (False, True)


def test_what_a_run_refused_does_not_stand_on_its_overview_twice(desk: Desk) -> None:
    failed(desk, PastState.FAILED, GONE, why=f"1 not copied in run {RUN} of primary->backup: {GONE.message}")
    page = desk.page(f"{HERE}/")
    assert page.count(GONE.message) == 1
    assert 'data-ask="clear"' in page
    assert "is below" in read(page)


def test_a_run_in_a_sentence_has_its_kind_and_its_id_on_hover(desk: Desk) -> None:
    failed(desk, PastState.OPEN, why=f"run {RUN} of another deployment has the lane")
    page = desk.page(f"{HERE}/")
    short = rf'run <span title="{re.escape(RUN)}"><time [^>]*>[^<]*</time> scheduled<span class="visually-hidden">, '
    assert len(re.findall(short, html.unescape(page))) == 1


@pytest.mark.parametrize("run", ["scheduled__2026-01-31T06:00:00+00:00", "drill-20260131T060000Z-1a2b", "run-x"])
@pytest.mark.parametrize(
    "text",
    [
        "ferry ledger --run {run}: partial",
        "(ferry failover 'a->b' --id {run})",
        "ferry switches abandon 'a->b' {run}",
        "ferry run --resume={run}",
        "topic primary.backfill.{run}.orders exists, and backfill.{run}",
        "`ferry ledger a {run}`; '{run}' \"{run}\"",
        "of dag@{run}, my-{run} and {run}-orders",
    ],
)
def test_commands_and_names_in_a_sentence_keep_the_whole_id(run: str, text: str) -> None:
    said = text.format(run=run)
    assert html.unescape(str(sentence(said))) == said
    assert html.unescape(str(sentence(said, run, Markup("<a>")))) == said


@pytest.mark.parametrize(
    ("run", "short"),
    [
        ("scheduled__2026-01-31T06:00:00+00:00", "scheduled"),
        ("asset_triggered__2026-01-31T07:00:00.000+01:00_x1Y2", "asset triggered"),
        ("drill-20260131T060000Z-1a2b", "drill"),
        ("backfill-20260131T060000Z-1a2b~2", "backfill ~2"),
    ],
)
def test_a_run_in_a_sentence_has_its_time_and_kind(run: str, short: str) -> None:
    said = str(sentence(f"the source's run {run}, and ({run}) of group 'a': {run}."))
    time = '<time datetime="2026-01-31T06:00:00.000Z" data-titled="yes">'
    assert html.unescape(said).count(f'<span title="{run}">{time}') == 3
    assert said.count(f"</time> {short}<span") == 3
    assert sentence(f"run {run}: it", run, Markup("<a>")) == "run <a>: it"


def test_an_id_of_no_time_stays() -> None:
    assert sentence("run run-20261399T060000Z-1a2b") == "run run-20261399T060000Z-1a2b"


def test_a_time_in_a_sentence_is_written_in_the_zone_of_the_browser() -> None:
    time = '<time datetime="2026-09-21T14:13:20Z">2026-09-21 14:13:20 UTC</time>'
    assert str(sentence("since 2026-09-21 14:13:20 UTC, <b>")) == f"since {time}, &lt;b&gt;"
    assert str(sentence("2026-09-21 14:13:20 UTC")) == time


@pytest.mark.parametrize(
    "said", ["until 2026-11-30 25:00:00 UTC.", "0000-01-01 00:00:00 UTC", "2026-02-30 10:00:00 UTC"]
)
def test_a_text_that_has_the_form_of_a_time_and_is_none_stays_text(said: str) -> None:
    assert str(sentence(said)) == said

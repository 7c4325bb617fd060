"""The figures over time that the charts ask for: runs of a partition, active runs, and spells."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.models.xcom import XComModel
from sqlalchemy import insert
from sqlalchemy.orm import Session

from ferry.clock import wall_ms
from ferry.ledger.history import PastState
from ferry.ledger.ledger import UNREAD
from ferry.reader.charts import Mark, Spell
from ferry.reader.spells import KEPT_MS
from ferry.reader.watch import FlowPoll
from ferry_airflow.naming import ASKED_WRONG, REASON
from ferry_airflow.page import dag_runs
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.dag_runs import Reason
from ferry_airflow.page.time_range import RANGES
from tests.airflow.page.conftest import HERE, RUN, Desk, lag
from tests.airflow.page.everything import ACTIVE, NOWHERE, filled
from tests.airflow.page.values import digest
from tests.browser.page.test_accessibility import PAGES

HOUR_MS = 3_600_000


def test_the_runs_of_a_partition_are_those_of_its_topic_without_figures(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}), [digest("r1")])
    of_topic, of_part = (
        desk.client.get(f"/api{HERE}/series?topic=orders{more}").json()["runs"] for more in ("", "&partition=0")
    )
    figures = ("due", "records", "bytes", "latency")
    assert [run[name] for run in of_part for name in figures] == [None] * 4
    assert of_part == [{**run, **dict.fromkeys(figures)} for run in of_topic]
    assert desk.client.get(f"/api{HERE}/series?topic=clicks&partition=0").json()["runs"] == []


def test_an_active_run_is_in_every_range_however_long_it_has_written_nothing(desk: Desk) -> None:
    begun = wall_ms() - 3 * HOUR_MS
    runs = [
        replace(digest(run, state), generation=at, started_ms=begun, ended_ms=begun, due=0, records=0)
        for at, (run, state) in enumerate((("r2", PastState.OPEN), ("r1", PastState.OPEN)))
    ]
    desk.dag = DagState(
        known=True, runs=(DagRunRow(run="r2", state="running", queued=None, started=None, ended=None, who=""),)
    )
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), runs)
    for query, shown in (("15m", ["r2"]), ("24h", ["r1", "r2"])):
        found = desk.client.get(f"/api{HERE}/series?range={query}").json()["runs"]
        assert [run["run"] for run in found] == shown
        assert [run["idle"] for run in found if run["run"] == "r2"] == [False]


def test_spells_are_kept_and_shown_for_the_longest_range(desk: Desk) -> None:
    assert max(length for _, length in RANGES.values()) == KEPT_MS
    now = wall_ms()
    until_ms = now - 8 * HOUR_MS
    spell = Spell(
        mark=Mark.OUTAGE, of="backup", since_ms=now - 9 * HOUR_MS, until_ms=until_ms, before_ms=until_ms + 5_000
    )
    desk.watcher.amend(spells=(spell, replace(spell, of="primary", since_ms=now - 99 * HOUR_MS)))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [])
    found = {query: desk.client.get(f"/api{HERE}/series?range={query}").json() for query in ("4h", "24h", "all")}
    assert {query: len(one["spells"]) for query, one in found.items()} == {"4h": 0, "24h": 2, "all": 2}
    assert abs(found["all"]["from"] - (now - KEPT_MS)) < 60_000, "a long spell does not press all of the rest together"


def test_outages_that_only_runs_have_seen_are_marked_with_what_is_not_known_of_them(desk: Desk) -> None:
    now = wall_ms()

    def ago(minutes: int) -> int:
        return now - minutes * 60_000

    why = "cluster primary at h:9092 does not answer within 60 s (refused): check the address"
    desk.failures = (
        Reason(run="r2", at_ms=ago(40), text=why),
        Reason(run="r3", at_ms=ago(35), text="cluster backup refuses the login: correct it"),
        Reason(run="r4", at_ms=ago(30), text=f"nothing was planned, so nothing was copied: {why}"),
    )
    runs = [
        replace(digest(run), generation=at, started_ms=ago(at), ended_ms=ago(at))
        for run, at in (("r1", 50), ("r5", 20))
    ]
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), runs[::-1])
    wanted = {"mark": "outage", "of": "primary", "from": ago(41), "to": ago(30), "after": ago(50), "before": ago(20)}
    for query in ("", "?topic=orders", "?topic=orders&partition=0"):
        assert desk.client.get(f"/api{HERE}/series{query}").json()["spells"] == [wanted]
    for entity in (RUN, DagAccessEntity.TASK_INSTANCE, DagAccessEntity.XCOM):
        desk.refused = {("ferry__primary__backup", "GET", entity)}
        assert desk.client.get(f"/api{HERE}/series").json()["spells"] == [], "who may not see reasons sees no outage"


def test_reasons_are_read_by_their_time_and_one_that_repeats_another_is_left_out(tables: Session) -> None:
    began = datetime(2026, 11, 22, 10, tzinfo=UTC)
    kept = (("plan", REASON, "gone", 5), ("report", REASON, "so: gone", 6), ("copy", ASKED_WRONG, "x", 7))
    for task, key, value, minute in (*kept, ("verify", REASON, "differs", -1)):
        tables.execute(
            insert(XComModel).values(
                dag_run_id=1,
                task_id=task,
                key=key,
                dag_id="d",
                run_id="r",
                value=value,
                timestamp=began + timedelta(minutes=minute),
            )
        )
    at_ms = int(began.timestamp() * 1000)
    found = dag_runs.newest_reasons("d", at_ms)
    assert found == [Reason(run="r", at_ms=at_ms + 5 * 60_000, text="gone")]
    assert dag_runs.newest_reasons("another", at_ms) == []


def test_links_between_pages_of_a_flow_keep_the_range(desk: Desk) -> None:
    filled(desk)
    tabs = [f"{HERE}{tab.link}" for tab in desk.app.state.office.tabs]
    for path, more in (
        ("/", [f"{HERE}/topic/clicks"]),
        ("/topics", [f"{HERE}/topic/clicks"]),
        ("/runs", [f"{HERE}/run/{ACTIVE}"]),
        (f"/run/{ACTIVE}", [f"{HERE}/runs"]),
        ("/topic/orders", [f"{HERE}/partition/orders/0", f"{HERE}/"]),
        ("/partition/orders/0", [f"{HERE}/topic/orders"]),
    ):
        page = desk.page(f"{HERE}{path}?range=1h")
        links = set(re.findall(r'href="([^"]*)"', page))
        assert {f"{link}?range=1h" for link in (*tabs, *more)} <= links, path
        assert not links & {*tabs, *more}, path
    assert "range" not in desk.page(f"{HERE}/topics").partition("<main")[2].replace("data-range", "")
    for path, link in (("/", f"{HERE}/topics?paused=true&range=1h"), ("/topics", "?paused=true&range=1h")):
        assert f'href="{html.escape(link)}"' in desk.page(f"{HERE}{path}?range=1h"), "a topic is paused"
    search = desk.page(f"{HERE}/topics?range=1h").partition('role="search"')[2].partition("</form>")[0]
    assert '<input type="hidden" name="range" value="1h">' in search


def test_every_link_to_a_run_a_lane_or_a_receipt_keeps_the_range(desk: Desk) -> None:
    filled(desk)
    seen: set[str] = set()
    for path in PAGES:
        if not path.startswith(HERE) or path == NOWHERE:
            continue
        page = desk.page(f"{path}{'&' if '?' in path else '?'}range=1h")
        links = {html.unescape(link) for link in re.findall(r'href="([^"]*)"', page)}
        for link in links:
            part = re.match(rf"{HERE}(?:/lane/[^/?]+)?/(run|lane|receipt|offsets|partition|topics?|dag)\b", link)
            if part:
                assert parse_qs(urlsplit(link).query).get("range") == ["1h"], (path, link)
                seen.add(part[1])
            assert not urlsplit(link).query.startswith("paused") or "&range=1h" in link, (path, link)
    assert {"run", "lane", "receipt", "offsets", "dag"} <= seen

"""A page that is kept open: figures change in place, and what a reader selected, focused, scrolled or typed stays."""

from __future__ import annotations

import re
from functools import partial

from playwright.sync_api import Route, expect

from ferry.clock import wall_ms
from ferry.ledger.ledger import UNREAD
from ferry.reader.documents import Trouble
from ferry.reader.watch import FlowPoll
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.everything import RUN, TOPICS, filled
from tests.airflow.page.served import served, shown
from tests.airflow.page.values import digest
from tests.chromium import chromium

HEARD = """() => {
  window.heard = [];
  new MutationObserver((changes) => {
    const told = new Set();
    for (const { target, addedNodes } of changes) {
      told.add((target.closest ? target : target.parentElement)?.closest("[role=alert]"));
      for (const node of addedNodes) if (node.matches?.("[role=alert]")) told.add(node);
    }
    for (const alert of told) if (alert) window.heard.push(alert.textContent);
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""
"""Keep what a screen reader would say of alerts from now on."""
SELECT = """(element) => window.getSelection().selectAllChildren(element)"""


def test_what_has_not_changed_is_left_alone_and_an_alert_is_told_once(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium(viewport={"width": 760, "height": 900}) as page:
        shown(page, address, f"{HERE}/topics")
        page.evaluate(HEARD)
        page.evaluate("document.querySelector('.scroll').scrollLeft = 20")
        row = page.locator("tbody th a").nth(20)
        name = row.text_content()
        row.focus()
        page.locator("input[name=q]").evaluate("(field) => { field.value = 'typed' }")
        copied = page.locator("tbody tr", has_text="clicks").locator("td.dim")
        copied.evaluate(SELECT)
        assert page.evaluate("String(window.getSelection())") == "primary.clicks"

        # Another look: more is behind, one topic is new, and it comes first.
        trouble = desk.watcher.last.troubles
        moved = tuple(lag(topic, 0, 70_000 - at, 900.0) for at, topic in enumerate((*TOPICS, "aaa-new")))
        moved = (*moved, lag("aaa-new", 1, 9_999_999, 9_000.0))
        desk.watcher.see(FlowPoll(view=None, lags=moved, troubles={one.cluster: one.why for one in trouble}))
        page.evaluate("ferry.refresh(true)")
        expect(page.locator("tbody th").first).to_contain_text("aaa-new")
        assert page.evaluate("String(window.getSelection())") == "primary.clicks"
        assert page.evaluate("document.activeElement.textContent") == name
        assert page.locator("input[name=q]").input_value() == "typed"
        assert page.evaluate("document.querySelector('.scroll').scrollLeft") == 20
        assert page.locator(".scroll[tabindex='0'][role=region]").count() == 1
        assert page.evaluate("window.heard") == []

        more = Trouble(cluster="primary", why="primary at p:9092 does not answer", since_ms=wall_ms())
        desk.watcher.amend(troubles=(more, *trouble))
        page.evaluate("ferry.refresh(true)")
        expect(page.locator("[role=alert]")).to_have_count(2)
        page.evaluate("ferry.refresh(true)")
        heard = page.evaluate("window.heard")
        assert len(heard) == 1, heard
        assert more.why in heard[0]


def test_what_is_open_stays_open_and_a_charts_table_keeps_what_is_selected(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        figure = page.locator("figure[data-chart=due]")
        figure.locator("summary").click()
        cell = figure.locator("tbody tr").nth(20).locator("td").nth(1)
        figures = cell.text_content()
        cell.evaluate(SELECT)
        desk.watcher.see(FlowPoll(view=None, lags=(lag("orders", 0, 123_457, 3.0),), troubles={}))
        page.evaluate("ferry.refresh(true)")
        expect(figure.locator("tbody tr").first).to_contain_text("123\u202f457")
        assert page.evaluate("String(window.getSelection())") == figures
        expect(figure.locator("details")).to_have_attribute("open", "")


def test_a_page_that_is_not_renewed_says_so_and_does_not_look_well(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 3.0),), troubles={}), [digest("r1")])
    desk.watcher.amend(never_ran=False)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        expect(page.locator("#live-state")).to_have_text("healthy")
        page.evaluate(HEARD)
        banner = page.locator("#not-fresh[role=alert]")
        for status, told in ((500, "answers 500"), (403, "(403)"), (404, "(404)"), (None, "does not answer")):
            page.route(f"{address}{HERE}/", partial(_answered, status))
            page.evaluate("ferry.refresh(true)")
            assert banner.count() == 0, "one is missed now and then"
            for _ in range(3):
                page.evaluate("ferry.refresh(true)")
            expect(banner).to_contain_text("This page shows what was known at ")
            expect(banner).to_contain_text(told)
            filters = page.locator("#live-state .badge").evaluate("(badge) => getComputedStyle(badge).filter")
            assert filters == "grayscale(1)", "it is not green"
            page.unroute(f"{address}{HERE}/")
            page.evaluate("ferry.refresh(true)")
            expect(banner).to_have_count(0)
            assert page.locator("#live-state .badge").evaluate("(badge) => getComputedStyle(badge).filter") == "none"
        heard = page.evaluate("window.heard")
        assert len(heard) == 4, heard

        # Old figures are told as old.
        desk.watcher.amend(ledger_ms=wall_ms() - 301_000, lag_ms=wall_ms() - 1_000)
        page.evaluate("ferry.refresh(true)")
        expect(page.locator("#live-state")).to_have_text("stale")
        expect(page.locator("#live-why .age time")).to_have_class(["old", ""])


def _answered(status: int | None, route: Route) -> None:
    """Instead of the server; None: nobody does."""
    if status is None:
        route.abort()
    else:
        route.fulfill(status=status, body="")


def test_the_way_from_a_flow_to_an_offset_and_back_is_pressed(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        page.get_by_role("navigation", name="Parts of the flow").get_by_role("link", name="Runs").click()
        its = page.get_by_role("link", name=re.compile(f", {re.escape(RUN)}$"))
        its.first.click()  # after it come runs of other DAGs
        page.get_by_title("Where did the first of them go?").first.click()
        expect(page.locator("#other-offset")).to_have_text("7")
        page.get_by_role("link", name="And back: 7 of a.orders-0").click()
        page.wait_for_url("**/offsets?topic=a.orders&partition=0&offset=7&back=true")
        page.get_by_role("link", name="Receipts of orders-0").click()
        page.get_by_label("Target offset").fill("7")
        page.get_by_role("button", name="Where did it come from?").click()
        page.wait_for_url("**/offsets?*back=true*")
        expect(page.locator("#found-title")).to_be_visible()


def test_the_way_from_the_lanes_to_what_a_micro_run_of_one_wrote_is_pressed(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/backfills")
        page.get_by_role("link", name="backfill-january", exact=True).click()
        page.get_by_role("link", name=re.compile(f", {re.escape(RUN)}~20$")).click()
        expect(page.get_by_role("navigation", name="Where you are")).to_contain_text("lane backfill-january")
        page.get_by_role("link", name="orders-1", exact=True).first.click()
        page.wait_for_url("**/lane/backfill-january/partition/orders/1")
        page.locator("summary", has_text="5 segments").click()
        page.get_by_title("Where did the first of them go?").first.click()
        page.wait_for_url("**/lane/backfill-january/offsets?topic=orders&partition=*&offset=*")
        expect(page.locator("#other-offset")).to_have_text("7")
        page.get_by_role("region", name="The receipt that says so").get_by_role("link").first.click()
        page.wait_for_url("**/lane/backfill-january/receipt/orders/0/0?run=*")
        page.get_by_role("link", name="lane backfill-january", exact=True).click()
        expect(page.get_by_role("heading", name="Lane backfill-january")).to_be_visible()

"""Each id of a page stands there once: what keeps the page fresh goes by ids."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from ferry.ledger.ledger import UNREAD
from ferry.reader.watch import FlowPoll
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.served import served
from tests.airflow.page.values import PAGES, digest
from tests.chromium import chromium

TWICE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at);
}"""


def test_no_id_stands_twice_on_a_page_and_not_after_looks_within_one_second(desk: Desk) -> None:
    def look() -> None:
        desk.watcher.see(
            FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 60.0),), troubles={}), [digest("a"), digest("b")]
        )

    look()
    for path in PAGES:
        ids = re.findall(r'\bid="([^"]*)"', desk.page(f"{HERE}{path}"))
        assert len(ids) == len(set(ids)), path
    with served(desk) as address, chromium() as page:
        warnings: list[str] = []
        page.on("console", lambda one: warnings.append(one.text))
        for _ in range(4):
            look()
        page.goto(f"{address}{HERE}/")
        expect(page.locator("figure[data-chart=lag] .xtick text").first).to_be_visible()
        assert page.locator("figure[data-chart=lag] table tbody tr").count() > 1, "several looks are drawn"
        assert page.evaluate(TWICE) == []
        assert not [text for text in warnings if "duplicate" in text]

"""The cards of a flow's clusters: they fill by themselves, and the list of brokers stays open while figures change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import ViewportSize, expect

from ferry.ledger.ledger import UNREAD
from ferry.reader.documents import Answer, ClustersStory
from ferry.reader.watch import FlowPoll
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.everything import filled
from tests.airflow.page.served import served, shown
from tests.browser.page.test_accessibility import violations
from tests.browser.page.test_phone import BROKEN, NARROW, WIDER
from tests.chromium import chromium

SCREEN = ViewportSize(width=1280, height=900)


@pytest.mark.parametrize(("size", "theme"), [(SCREEN, "light"), (NARROW, "dark")], ids=["screen", "phone"])
def test_the_brokers_stay_open_while_figures_change(desk: Desk, size: ViewportSize, theme: str) -> None:
    filled(desk)
    answer, changed = desk.watcher.answer, False

    def later(key: tuple[object, ...], *rest: object, **more: object) -> Answer:
        found: Answer = answer(key, *rest, **more)  # type: ignore[arg-type]
        if key != ("clusters",) or not changed:
            return found
        clusters: ClustersStory = found.got
        health = clusters.source.health
        assert health
        return replace(found, got=replace(clusters, source=replace(clusters.source, health=replace(health, offline=0))))

    desk.watcher.answer = later  # type: ignore[method-assign]
    with served(desk) as address, chromium(viewport=size, color_scheme=theme) as page:
        shown(page, address, f"{HERE}/")
        source = page.locator("[id='cluster:primary']")
        expect(source).to_contain_text("offline partitions")
        expect(page.locator("[id='cluster:backup']")).to_contain_text("does not answer")
        source.locator("summary").click()
        expect(source.locator("tbody tr")).to_have_count(3)
        assert page.evaluate(WIDER) == [True, []]
        assert page.evaluate(BROKEN) == []
        assert violations(page) == []
        changed = True
        desk.watcher.see(FlowPoll(view=None, lags=None, troubles={}))
        expect(source).to_contain_text("not all brokers answer")
        expect(source.locator("tbody tr").first).to_be_visible()


def test_cards_that_wait_fill_by_themselves(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}))
    with served(desk) as address, chromium(viewport=SCREEN) as page:
        shown(page, address, f"{HERE}/")
        cards = page.locator(".cluster")
        expect(cards).to_contain_text(["asking", "asking"])
        filled(desk)
        expect(cards).to_contain_text(["offline partitions", "does not answer"])
        expect(page.locator("[data-waiting]")).to_have_count(0)

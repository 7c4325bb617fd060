"""A run that Airflow tries again, on a phone: what an operator who is woken by it reads first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from ferry.clock import wall_ms
from ferry_airflow.page.retry_words import Retry
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import ACTIVE, filled
from tests.airflow.page.served import served, shown
from tests.browser.page.test_accessibility import violations
from tests.browser.page.test_phone import BROKEN, PHONE, WIDER
from tests.chromium import chromium

FAR = "cluster primary at kafka-1.primary.data-centre.example:9092 does not answer within 5 s (Connection refused)"
PATHS = ("/", f"{HERE}/", f"{HERE}/runs", f"{HERE}/run/{ACTIVE}")


def retry() -> Retry:
    """Of a copy that waits for its third try."""
    now = wall_ms()
    its = Retry(task="copy", state="up_for_retry", number=3, most=5, ended=2, last=2, ended_ms=now - 9_000)
    return replace(its, due_ms=now + 21_000, why=FAR)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_retry_is_read_on_a_phone_without_scrolling_sideways(desk: Desk, theme: str) -> None:
    filled(desk)
    desk.watcher.amend(troubles=())
    desk.retries["ferry__primary__backup", ACTIVE] = (retry(),)
    with served(desk) as address, chromium(viewport=PHONE, color_scheme=theme) as page:
        for path in PATHS:
            shown(page, address, path)
            words = page.locator("main").get_by_text("retrying", exact=True)
            expect(words.first).to_be_visible()
            expect(page.locator("main")).to_contain_text("ry 3 of 5")
            assert page.evaluate(WIDER) == [True, []], path
            assert page.evaluate(BROKEN) == [], path
            assert violations(page) == [], path
        card = page.locator("#retried")
        expect(card).to_contain_text(FAR)
        expect(card).to_contain_text("Broker 3 of cluster primary")
        expect(card.get_by_role("link", name="Log of try 2")).to_have_attribute(
            "href", f"/dags/ferry__primary__backup/runs/{ACTIVE}/tasks/copy?try_number=2"
        )
        times = page.locator("#live-why time:not([data-ago])")
        expect(times.first).to_have_attribute("data-local", "yes")

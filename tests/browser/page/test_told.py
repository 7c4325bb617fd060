"""What came of a request, in a browser: a link to the run; what waits for somebody stays until it has been read."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from ferry_airflow.page.airflow_side import DagState
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import filled
from tests.airflow.page.served import served
from tests.chromium import chromium

VERIFY = "ferry_verify__primary__backup"


def verify(page: Page) -> None:
    """Ask for a verification, as a person does."""
    page.locator("[data-ask=verify]").click()
    page.locator("#ask-go").click()


def test_what_came_of_a_request_leads_to_its_run_and_what_waits_stays(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        page.clock.install()
        page.goto(f"{address}{HERE}/runs")
        told = page.locator("#notices > div")
        verify(page)
        expect(told).to_contain_text("is queued: manual__1.")
        link = told.get_by_role("link", name="manual__1")
        expect(link).to_have_attribute("href", f"{HERE}/dag/{VERIFY}/run/manual__1")
        page.locator("body").hover(position={"x": 2, "y": 2})
        page.clock.run_for(30_000)
        expect(told).to_have_count(0)

        desk.others[VERIFY] = DagState(known=True, paused=True)
        verify(page)
        expect(told).to_contain_text("waits until DAG")
        desk.others[VERIFY] = DagState()
        verify(page)
        expect(page.locator("#ask").get_by_role("alert")).to_contain_text(f"Airflow has no DAG {VERIFY}")
        page.get_by_role("button", name="Cancel").click()
        page.clock.run_for(120_000)
        expect(told).to_have_count(1)
        told.get_by_role("button", name="Dismiss").click()
        expect(told).to_have_count(0)

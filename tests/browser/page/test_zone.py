"""Times are in the zone that was chosen in Airflow, which keeps it in the browser; each page names the zone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Frame, Page, expect

from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import filled
from tests.airflow.page.served import served, shown
from tests.chromium import chromium

AWAY = "America/New_York"
"""Where the browser is."""
CHOSEN = ("Europe/Berlin", "Asia/Tokyo")
KEPT = "(zone) => localStorage.setItem('timezone', JSON.stringify(zone))"
"""As Airflow 3.3 keeps what its user chose."""


def written(at: datetime, zone: str) -> str:
    there = at.astimezone(ZoneInfo(zone))
    return f"{there.day} {there:%b %Y, %H:%M:%S}"


def expect_zone(page: Page | Frame, zone: str) -> None:
    expect(page.locator("#zone")).to_have_text(zone)
    time = page.locator("#live tbody time").first
    at = datetime.fromisoformat(time.get_attribute("datetime") or "")
    expect(time).to_have_text(written(at, zone))


def test_times_are_in_the_chosen_zone_and_follow_another_choice(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium(timezone_id=AWAY) as page:
        shown(page, address, f"{HERE}/runs")
        expect_zone(page, "UTC")
        page.evaluate(KEPT, "No/Such")
        shown(page, address, f"{HERE}/runs")
        expect_zone(page, "UTC")
        page.evaluate(KEPT, CHOSEN[0])
        shown(page, address, f"{HERE}/runs")
        expect_zone(page, CHOSEN[0])
        chart = page.evaluate("document.querySelector('.plot').data[0].x.at(-1)")
        assert page.locator("figure tbody td").first.text_content() == written(
            datetime.fromisoformat(chart).replace(tzinfo=ZoneInfo(CHOSEN[0])), CHOSEN[0]
        )
        other = page.context.new_page()
        other.goto(f"{address}/words")
        other.evaluate(KEPT, CHOSEN[1])
        expect_zone(page, CHOSEN[1])
        drawn = page.evaluate("document.querySelector('.plot').data[0].x.at(-1)")
        assert (datetime.fromisoformat(drawn) - datetime.fromisoformat(chart)).total_seconds() > 6 * 3600


@pytest.mark.parametrize(("chosen", "zone"), [("", AWAY), (CHOSEN[1], CHOSEN[1])])
def test_inside_airflow_without_a_choice_the_zone_is_the_browsers_as_airflow_shows_it(
    desk: Desk, chosen: str, zone: str
) -> None:
    filled(desk)
    with served(desk) as address, chromium(timezone_id=AWAY) as page:
        outer = f"<!doctype html><iframe src='{HERE}/runs'></iframe>"
        page.route("**/outer", lambda route: route.fulfill(body=outer, content_type="text/html"))
        page.goto(f"{address}/outer")
        if chosen:
            page.evaluate(KEPT, chosen)
            page.reload()
        (frame,) = page.main_frame.child_frames
        expect_zone(frame, zone)


def test_what_is_typed_is_a_time_of_the_zone(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium(timezone_id=AWAY) as page:
        page.goto(f"{address}/words")
        page.evaluate(KEPT, CHOSEN[0])
        shown(page, address, f"{HERE}/backfills")
        page.get_by_role("button", name="Start a backfill").click()
        page.get_by_label(f"From ({CHOSEN[0]})").fill("2026-07-01T12:00")
        page.get_by_label(f"To, before ({CHOSEN[0]})").fill("2026-12-01T12:00")
        with page.expect_request(lambda one: one.url.endswith("/backfill")) as sent:
            page.locator("#ask-go").click()
        body = json.loads(sent.value.post_data or "")
        noon = [datetime(2026, 7, 1, 10, tzinfo=UTC), datetime(2026, 12, 1, 11, tzinfo=UTC)]
        assert [datetime.fromisoformat(body[name]) for name in ("start", "end")] == noon

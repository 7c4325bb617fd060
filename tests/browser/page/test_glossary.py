"""Each badge leads to what its word means, on the page itself: no document and no network is needed."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from ferry.ledger.history import PastState
from ferry.model import RefusalKind, Resolution
from ferry_airflow.page.glossary import all_words, anchor_of
from ferry_airflow.page.run_words import TASK_FAILED, run_badge
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import filled, status_of
from tests.airflow.page.served import served
from tests.browser.page.test_accessibility import PAGES
from tests.chromium import chromium
from tests.world.documents.test_troubleshooting import COLOURS, standings


def test_every_word_of_a_flow_a_run_and_a_refusal_has_a_place() -> None:
    of_runs = {run_badge(state, at_work=at_work).word for state in PastState for at_work in (True, False)}
    states = {word for word, _ in standings()} | of_runs | {TASK_FAILED.word}
    assert {word for word in states if not anchor_of(word, "state")} == set()
    assert {kind for kind in (*RefusalKind, *Resolution) if not anchor_of(kind.value, "kind")} == set()
    assert len({one.anchor for one in all_words()}) == len(all_words())


def test_a_word_has_a_colour_that_it_may_have() -> None:
    for one in all_words():
        if one.of == "state" and one.section == "The flow's word":
            assert one.condition in {condition for word, condition in standings() if word == one.word}, one.word
            assert COLOURS[one.condition] in one.colour


def test_badges_lead_to_places_that_are_there_and_those_of_known_words_all_do(desk: Desk) -> None:
    filled(desk)
    there = set(re.findall(r'<div id="([^"]+)"', desk.page("/words")))
    led: set[str] = set()
    for path in PAGES:
        page = desk.page(path, status_of(path))
        anchors = re.findall(r'href="/words#([^"]+)"', page)
        assert set(anchors) <= there, path
        led |= set(anchors)
        if path != "/words":
            outside = re.sub(r"<a .*?</a>", "", page)
            plain = set(re.findall(r'<span class="badge \w+">([^<]+)<', outside))
            in_airflow = {"success", "failed", "running", "queued"}  # Airflow's own words for its runs and tasks
            assert {word for word in plain - in_airflow if anchor_of(word, "state") or anchor_of(word, "kind")} == set()
    assert led >= {"state-running", "state-partial", "state-unplanned", "state-unreachable", "kind-retention-passed"}


def test_from_a_badge_the_keyboard_leads_to_its_sentence_and_back(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        page.goto(f"{address}{HERE}/runs")
        badge = page.get_by_role("link", name="unplanned", exact=True).first
        expect(badge).to_have_accessible_description("What this means")
        badge.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/words#state-unplanned")
        place = page.locator("#state-unplanned")
        expect(place).to_be_in_viewport()
        expect(place).to_contain_text("unplanned")
        expect(place).to_contain_text("What fixes it:")
        assert page.evaluate("getComputedStyle(document.querySelector('#state-unplanned')).boxShadow") != "none"
        page.go_back()
        page.wait_for_url(f"**{HERE}/runs")

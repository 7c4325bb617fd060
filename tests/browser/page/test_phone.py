"""Every page on a phone: nothing is wider than the screen, no word of a name is broken, and cards are rows of a table.

Airflow's navigation takes 72 of a phone's 390 pixels, so that 318 are left. WCAG 1.4.10 asks for 320.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import pytest
from playwright.sync_api import Error, Page, ViewportSize, expect

from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import filled
from tests.airflow.page.served import served, shown
from tests.browser.page.test_accessibility import BUTTONS, PAGES, fill, violations
from tests.chromium import chromium
from tests.tiers import PATIENCE, share

PHONE = ViewportSize(width=390, height=844)
NARROW = ViewportSize(width=318, height=844)
WIDER = """() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  const within = (one) => one.closest(".tabs, .sheet, .scroll, pre, dialog:not([open]), .plot");
  const wide = [...document.body.querySelectorAll("*")].filter((one) =>
    one.checkVisibility() && !within(one) && one.getBoundingClientRect().right > clientWidth + 1);
  return [scrollWidth <= clientWidth, wide.slice(0, 3).map((one) => one.outerHTML.slice(0, 160))];
}"""
BROKEN = """() => {
  const broken = [];
  for (const part of document.querySelectorAll("h1, h2, main th, main td, .crumbs, dd")) {
    if (!part.checkVisibility() || part.closest("figure")) continue;
    const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[A-Za-z0-9]+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""
ROLES = """() => {
  const roles = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  const wanted = ({ tagName, scope }) => roles[tagName] || (scope === "col" ? "columnheader" : "rowheader");
  const parts = [...document.querySelectorAll("[data-cards], [data-cards] :is(thead, tbody, tr, th, td)")];
  const gone = (one) => getComputedStyle(one).display === "none" && one.closest("table").checkVisibility();
  const wrong = parts.filter((one) => one.getAttribute("role") !== wanted(one) || gone(one));
  return wrong.map((one) => one.outerHTML.slice(0, 99));
}"""
"""Parts of cards without their role, and parts that screen readers cannot find."""
SMALL = """() => {
  const fields = "button, select, textarea, input:not([type=checkbox]), summary";
  const alone = `${fields}, .tabs a, .picks a, .pager a, .picks label`;
  const titles = "[data-cards] thead a:not(.term), [data-cards] tbody tr > th > a:not(.badge)";
  const lowest = (one) => one.getBoundingClientRect().height < 43.9;
  const tiny = (one) => one.matches("input, select, textarea") && parseFloat(getComputedStyle(one).fontSize) < 16;
  const found = [...document.querySelectorAll(`${alone}, ${titles}`)];
  const wrong = found.filter((one) => one.checkVisibility() && one.type !== "hidden" && (lowest(one) || tiny(one)));
  return wrong.map((one) => one.outerHTML.slice(0, 99));
}"""
"""What is lower than 44 pixels, and fields with letters so small that Safari enlarges the page."""
TABLES = """() => [...document.querySelectorAll(".scroll > table")]
  .filter((one) => one.tHead && one.checkVisibility() && !one.closest("figure"))
  .map((one) => getComputedStyle(one.tBodies[0].rows[0]).display)"""


def test_no_page_is_wider_than_the_screen_and_no_word_is_broken(desk: Desk) -> None:
    filled(desk)
    wrong: dict[str, Any] = {}
    with served(desk) as address, chromium(viewport=PHONE) as page:
        for path in PAGES:
            shown(page, address, path)
            for size in (PHONE, NARROW):
                page.set_viewport_size(size)
                with suppress(Error):  # charts are drawn again
                    page.wait_for_function(f"() => ({WIDER})()[0]", timeout=5_000 * PATIENCE)
                is_within, wide = page.evaluate(WIDER)
                found = [] if is_within and not wide else [wide or "the page itself"]
                found += page.evaluate(BROKEN)
                found += [one for one in page.evaluate(TABLES) if one != "grid"]
                if found:
                    wrong[f"{path} {size['width']}"] = found
    assert wrong == {}


def test_a_card_is_a_row_of_a_table_to_screen_readers(desk: Desk) -> None:
    """Safari drops the roles of a table whose parts are not displayed as one, unless the page names them."""
    filled(desk)
    wrong: dict[str, Any] = {}
    with served(desk) as address, chromium(viewport=PHONE) as page:
        for path in share(PAGES, 1, 2):
            shown(page, address, path)
            if found := page.evaluate(ROLES):
                wrong[path] = found
        assert wrong == {}
        shown(page, address, f"{HERE}/topics")
        table = page.locator("[data-cards]")
        heads = [one.strip() for one in table.locator("thead th").all_text_contents()]
        assert table.get_by_role("columnheader").count() == len(heads), "no column of a cell is lost"
        first = table.get_by_role("row").nth(1)
        cells = first.get_by_role("rowheader").count() + first.get_by_role("cell").count()
        assert cells == len(heads)


def test_tabs_are_one_row_that_is_scrolled_to_the_open_one_and_only_the_overview_has_the_buttons(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium(viewport=PHONE) as page:
        for tab, has_buttons in (("", True), ("reports", False)):
            shown(page, address, f"{HERE}/{tab}")
            boxes = [one.bounding_box() for one in page.locator(".tabs a").all()]
            assert len(boxes) > 5
            assert len({box["y"] for box in boxes if box}) == 1
            at = page.locator(".tabs [aria-current]").bounding_box()
            assert at
            assert at["x"] >= 0
            assert at["x"] + at["width"] <= PHONE["width"]
            expect(page.get_by_role("button", name="Run now")).to_be_visible(visible=has_buttons)
        page.set_viewport_size({"width": 900, "height": 844})
        expect(page.get_by_role("button", name="Run now")).to_be_visible()


def test_a_card_names_its_figures_and_keeps_them_when_the_page_is_renewed(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium(viewport=PHONE) as page:
        shown(page, address, f"{HERE}/topics")
        card = page.locator("tbody tr").first
        labels = "(row) => [...row.cells].map((cell) => getComputedStyle(cell, '::before').content)"
        named = card.evaluate(labels)
        assert '"Lag in records"' in named
        page.evaluate("ferry.refresh(true)")
        expect(page.locator("#live")).to_be_visible()
        assert card.evaluate(labels) == named
        # What can be pressed in the head of the table is still there.
        page.get_by_role("link", name="Lag in bytes").click()
        page.wait_for_url("**sort=bytes**")


@pytest.mark.parametrize("part", range(3))
def test_no_page_and_no_dialog_of_a_phone_breaks_a_rule(desk: Desk, part: int) -> None:
    fill(desk)
    wrong: dict[str, Any] = {}
    with served(desk) as address, chromium(viewport=PHONE) as page:
        for path in share(PAGES, 0, 4)[part::3]:
            shown(page, address, path)
            wrong[path] = violations(page)
            for name in BUTTONS.get(path, ()):
                _pressed(page, name)
                wrong[f"{path} {name}"] = violations(page) + page.evaluate(WIDER)[1]
                page.get_by_role("button", name="Cancel").click()
    assert {path: found for path, found in wrong.items() if found} == {}


def test_a_finger_hits_what_is_pressed_on_its_own(desk: Desk) -> None:
    """44 pixels are what Apple asks for, and WCAG 2.5.5. Links in sentences and in cells need fewer."""
    fill(desk)
    wrong: dict[str, Any] = {}
    with served(desk) as address, chromium(viewport=NARROW, has_touch=True) as page:
        for path in share(PAGES, 2, 4):
            shown(page, address, path)
            wrong[path] = page.evaluate(SMALL)
            for name in BUTTONS.get(path, ()):
                _pressed(page, name)
                wrong[f"{path} {name}"] = page.evaluate(SMALL) + page.evaluate(WIDER)[1]
                page.get_by_role("button", name="Cancel").click()
    assert {path: found for path, found in wrong.items() if found} == {}


def test_a_choice_of_time_and_an_answer_are_where_the_reader_looks(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium(viewport=NARROW, has_touch=True) as page:
        shown(page, address, f"{HERE}/")
        page.get_by_role("link", name="15 min").tap()
        page.wait_for_url("**range=15m*")
        expect(page.locator("#time")).to_be_in_viewport()
        shown(page, address, f"{HERE}/offsets")
        page.locator("#topic").fill("orders")
        page.locator("#offset").fill("7")
        page.get_by_role("button", name="Look up").tap()
        expect(page.locator("#other-offset")).to_be_in_viewport()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_record_next_to_its_copy_fits_on_a_phone(desk: Desk, theme: Literal["light", "dark"]) -> None:
    filled(desk)
    with served(desk) as address, chromium(viewport=PHONE, color_scheme=theme) as page:
        shown(page, address, f"{HERE}/partition/orders/1")
        _pressed(page, "Show a record")
        assert violations(page) + page.evaluate(WIDER)[1] == []
        page.locator("#f-offset").fill("7")
        page.locator("#ask-go").click()
        answer = page.locator("#answer")
        expect(answer.get_by_text("4929-1111").first).to_be_visible()
        source, target = (one.bounding_box() for one in answer.locator("section").all())
        assert source is not None
        assert target is not None
        assert source["x"] == target["x"], "one above the other"
        assert source["x"] + source["width"] <= PHONE["width"]
        assert violations(page) + page.evaluate(WIDER)[1] == []


def _pressed(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator("#ask")).to_be_visible()

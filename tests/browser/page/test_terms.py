"""Terms of the glossary: what one means is shown next to it, for the pointer, the keyboard and at the first tap."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from ferry_airflow.page.glossary import meaning_of
from ferry_airflow.page.rendering import FOLDER
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import RUN, filled
from tests.airflow.page.served import served, shown
from tests.chromium import chromium

USED = re.compile(r'\bterm\("([^"]+)"')
TIP = "#tip"


def within_the_window(page: Page) -> bool:
    box, size = page.locator(TIP).bounding_box(), page.viewport_size
    assert box
    assert size
    right, below = box["x"] + box["width"], box["y"] + box["height"]
    return box["x"] >= 0 and right <= size["width"] and box["y"] >= 0 and below <= size["height"]


def test_every_term_of_a_template_has_a_row_in_the_glossary() -> None:
    used = {word for path in (FOLDER / "templates").glob("*.html") for word in USED.findall(path.read_text())}
    assert used >= {"generation", "transcoded", "digest", "missing", "receipt"}
    assert all(meaning_of(word) for word in used)


def test_the_pointer_and_the_keyboard_show_what_a_term_means_and_escape_hides_it(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        page.clock.install()
        shown(page, address, f"{HERE}/run/{RUN}")
        for word, name in (("generation", "generation"), ("digest", "Digest"), ("transcoded", "Transcoded")):
            term = page.get_by_role("link", name=name, exact=True).first
            term.focus()
            page.keyboard.press("Shift+Tab")
            page.keyboard.press("Tab")
            expect(term).to_be_focused()
            expect(page.locator(TIP)).to_have_text(meaning_of(word))
            expect(page.locator(TIP)).to_be_visible()
            expect(term).to_have_accessible_description(meaning_of(word))
            assert within_the_window(page), word
            page.keyboard.press("Escape")
            expect(page.locator(TIP)).to_be_hidden()
            term.evaluate("(term) => term.blur()")
            term.hover()
            expect(page.locator(TIP)).to_be_visible()
            page.locator(TIP).hover()
            page.clock.run_for(400)
            expect(page.locator(TIP)).to_be_visible()
            page.mouse.move(2, 2)
            expect(page.locator(TIP)).to_be_hidden()
        page.get_by_role("link", name="Digest", exact=True).first.press("Enter")
        page.wait_for_url("**/words#term-digest")
        expect(page.locator("#term-digest")).to_be_in_viewport()


def test_the_first_tap_shows_it_and_the_second_leads_to_the_words(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium(has_touch=True, viewport={"width": 390, "height": 844}) as page:
        shown(page, address, f"{HERE}/run/{RUN}")
        term = page.get_by_role("link", name="Missing", exact=True).first
        term.tap()
        expect(page.locator(TIP)).to_have_text(meaning_of("missing"))
        expect(page.locator(TIP)).to_be_visible()
        assert within_the_window(page)
        term.tap()
        page.wait_for_url("**/words#term-missing")


def test_the_index_leads_to_each_word(desk: Desk) -> None:
    page = desk.page("/words")
    index = page.partition('<nav class="card index"')[2].partition("</nav>")[0]
    led = re.findall(r'href="#([^"]+)"', index)
    assert set(led) <= set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'<div id="([^"]+)" tabindex', page)) <= set(led)

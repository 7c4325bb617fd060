"""The page by its keyboard alone: all that can be pressed is reached by Tab, in order; dialogs keep and give back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import filled
from tests.airflow.page.served import served, shown
from tests.browser.page.test_accessibility import BUTTONS, PAGES, fill
from tests.chromium import chromium
from tests.tiers import share

MARKED = """() => {
  const all = 'a[href], area[href], button, input, select, textarea, summary, [tabindex], [contenteditable]';
  window.stops = [...document.querySelectorAll(all)].filter((one) =>
    one.tabIndex >= 0 && !one.disabled && one.type !== 'hidden' && one.checkVisibility({ visibilityProperty: true })
    && !one.closest('dialog:not([open])') && !one.matches('details:not([open]) > :not(summary) *'));
  return window.stops.map((one) => one.outerHTML.slice(0, 120));
}"""
STOP = "() => window.stops.indexOf(document.activeElement)"
WITHIN = (
    "() => document.querySelector('#ask').contains(document.activeElement) || document.activeElement === document.body"
)


def test_all_that_can_be_pressed_is_reached_by_tab_in_its_order(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        for path in share(PAGES, 0, 4):
            shown(page, address, path)
            stops = page.evaluate(MARKED)
            assert stops, path
            reached = []
            for _ in stops:
                page.keyboard.press("Tab")
                reached.append(page.evaluate(STOP))
            left = sorted(set(range(len(stops))) - set(reached))
            assert [stops[number] for number in left] == [], path
            assert reached == sorted(reached), path


def test_a_dialog_takes_the_focus_keeps_it_and_gives_it_back(desk: Desk) -> None:
    fill(desk)
    with served(desk) as address, chromium() as page:
        for path, button in ((path, name) for path, names in BUTTONS.items() for name in names):
            shown(page, address, path)
            opener = page.get_by_role("button", name=button, exact=True)
            opener.focus()
            page.keyboard.press("Enter")
            dialog = page.locator("#ask")
            expect(dialog).to_be_visible()
            for _ in range(12):
                assert page.evaluate(WITHIN), button
                page.keyboard.press("Tab")
            page.keyboard.press("Escape")
            expect(dialog).to_be_hidden()
            expect(opener).to_be_focused()
            assert not desk.triggered


def test_ctrl_k_leads_to_the_field_that_filters_a_list_unless_a_dialog_is_open(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        for path, keys in (("/", "Control+k"), (f"{HERE}/topics?q=o", "Meta+k"), (f"{HERE}/groups", "Control+K")):
            shown(page, address, path)
            page.keyboard.press(keys)
            expect(page.locator("#q")).to_be_focused()
        shown(page, address, f"{HERE}/topics")
        page.get_by_role("button", name="Run now").click()
        expect(page.locator("#ask")).to_be_visible()
        page.keyboard.press("Control+k")
        assert page.evaluate(WITHIN)

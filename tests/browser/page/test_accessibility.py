"""The page in a real browser: axe-core's rules of WCAG A and AA in both themes, the keyboard, charts, and rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from airflow.api_fastapi.core_api.security import get_user
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import ACTIVE, ASKING, NOWHERE, RUN, filled
from tests.airflow.page.served import served, shown
from tests.airflow.page.test_actions import with_back
from tests.airflow.page.test_beside import ROW, STORY, differing
from tests.chromium import chromium
from tests.tiers import share

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "resultTypes": ["violations"]}
FAILED = ("ferry_verify__primary__backup", "manual__failed")
"""A verification that found differences."""
PAGES = (
    "/",
    f"{HERE}/",
    *(f"{HERE}/{name}" for name in ("topics", "runs", "offsets", "groups", "backfills", "reports")),
    *(f"{HERE}/topics?q=nothing-is-called-so", f"{HERE}/topic/orders", f"{HERE}/partition/orders/1"),
    f"{HERE}/partition/audit/0?offset=20",
    *(f"{HERE}/refusals", f"{HERE}/receipt/orders/1/0"),
    *(f"{HERE}/run/{ACTIVE}", f"{HERE}/dag/{ASKING[0]}/run/{ASKING[1]}"),
    *(f"{HERE}/run/{RUN}", f"{HERE}/offsets?topic=orders&partition=0&offset=7", NOWHERE),
    *(
        f"{HERE}/lane/backfill-january{path}"
        for path in ("", f"/run/{RUN}", "/partition/orders/1", "/receipt/orders/1/0")
    ),
    *("/dag/no_dag_of_ferrys", "/words"),
    *(f"{HERE}/topic/audit", f"{HERE}/dag/{FAILED[0]}/run/{FAILED[1]}"),
)
BUTTONS = {
    f"{HERE}/": ("Run now", "Dry run", "Verify", "Pause flow", "Readiness"),
    f"{HERE}/groups": ("Sync groups",),
    f"{HERE}/backfills": ("Start a backfill",),
    f"{HERE}/reports": ("Start a drill", "Switchover", "Failover", "Failback"),
    f"{HERE}/topic/orders": ("Show a record",),
    f"{HERE}/topic/audit": ("Resume topic",),
    f"{HERE}/dag/{FAILED[0]}/run/{FAILED[1]}": ("Clear and continue",),
}
"""What opens a dialog, by page."""
REST_MS = 5_000
"""After so long nothing moves by itself (WCAG 2.2.2)."""
MOVING = """() => [...document.querySelectorAll('*')].flatMap((element) => ['', '::before', '::after'].map((part) => {
  const style = getComputedStyle(element, part || null);
  const times = style.animationIterationCount === 'infinite' ? 1e9 : Number(style.animationIterationCount);
  return style.animationName === 'none' ? 0 : 1000 * times * parseFloat(style.animationDuration);
})).filter(Boolean)"""
"""How long what moves goes on, in ms."""
LABELS = """() => [...document.querySelectorAll('.plot:not(:has(.empty))')].map((plot) => {
  const edge = plot.getBoundingClientRect();
  const cut = [...plot.querySelectorAll('.xtick text, .ytick text')].filter((label) => {
    const { top, bottom, left, right } = label.getBoundingClientRect();
    return bottom > edge.bottom + 1 || top < edge.top - 1 || left < edge.left - 1 || right > edge.right + 1;
  });
  return { labels: plot.querySelectorAll('.xtick text').length, cut: cut.map((label) => label.textContent) };
})"""


def fill(desk: Desk) -> None:
    """Let the flow have everything, also what the buttons of BUTTONS are for."""
    with_back("failback")
    filled(desk)
    row = replace(ROW, run=FAILED[1], state="failed")
    desk.stories[FAILED] = replace(STORY, row=row, returned=differing(), reasons=(("verify", "the sides differ"),))


@pytest.fixture
def address(desk: Desk) -> Iterator[str]:
    """The page of a flow that has everything, served to a browser."""
    fill(desk)
    with served(desk) as address:
        yield address


def violations(page: Page) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds wrong: the rule, what it asks for, and where."""
    found = Axe().run(page, options=RULES).response
    assert len(found["passes"]) > 5, "no rule was applied"
    return [
        (one["id"], one["help"], [str(node["html"])[:200] for node in one["nodes"][:4]]) for one in found["violations"]
    ]


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize(
    ("theme", "pages"), [("light", share(PAGES, 0, 2)), ("dark", share(PAGES, 1, 2))], ids=["light", "dark"]
)
def test_no_page_and_no_dialog_breaks_a_rule(
    desk: Desk, address: str, theme: Literal["light", "dark"], pages: Sequence[str], part: int
) -> None:
    wrong: dict[str, Any] = {}
    with chromium(color_scheme=theme) as page:
        for path in pages[part::3]:
            shown(page, address, path)
            assert page.locator("html").get_attribute("data-theme") == theme
            for summary in page.locator("summary").all():
                summary.click()
            wrong[path] = violations(page)
            for name in BUTTONS.get(path, ()):
                page.get_by_role("button", name=name, exact=True).click()
                wrong[f"{path} {name}"] = violations(page)
                page.get_by_role("button", name="Cancel").click()
        del desk.app.dependency_overrides[get_user]
        page.goto(f"{address}{HERE}/")
        expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(246, 247, 249)", "dark": "rgb(13, 17, 23)"}[theme], "it has no style"
        wrong["401"] = violations(page)
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize("width", [1400, 760])
def test_no_label_of_a_chart_is_cut(address: str, width: int) -> None:
    with chromium(viewport={"width": width, "height": 900}) as page:
        for path, count in (
            (f"{HERE}/", 5),
            (f"{HERE}/runs", 1),
            (f"{HERE}/topic/orders", 4),
            (f"{HERE}/partition/orders/1", 3),
        ):
            shown(page, address, path)
            whole = page.locator(".plot:not(:has(.empty))")
            expect(whole).to_have_count(count)
            # A chart makes room for its labels once it has measured them: it is drawn twice.
            page.wait_for_function(f"() => ({LABELS})().every((plot) => plot.labels && !plot.cut.length)")


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_what_moves_rests_soon_and_never_moves_for_who_does_not_want_it(
    desk: Desk, address: str, motion: Literal["no-preference", "reduce"], moves: bool
) -> None:
    desk.watcher.amend(troubles=())
    with chromium(reduced_motion=motion) as page:
        for path in ("/", f"{HERE}/", f"{HERE}/runs"):
            shown(page, address, path)
            assert page.locator(".badge.busy").count()
            lasting = page.evaluate(MOVING)
            assert all(length <= REST_MS for length in lasting), path
            assert bool(lasting) == (moves and path != "/"), path

"""Take the README's pictures of the page from a kept demo: `make demo KEEP=1`, then `python tools/pictures.py`.

It looks at the flow until its charts have something to show, which takes some minutes.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Frame, Page, sync_playwright

from ferry.dev.ports import LOOPBACK
from ferry_airflow.home import PASSWORD, STATE_FILE, USER

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
DAG = "ferry__primary__backup"
SERIES = "/ferry/api/flow/primary/backup/series"
POINTS = 60
"""So often the flow has to have been looked at."""
PATIENCE_MS = 900_000
SIZE = {"width": 1600, "height": 1000}


def main() -> int:
    """Write the pictures; 2 when no demo is kept or no browser is there."""
    state = ROOT / ".demo" / "airflow" / STATE_FILE
    program = shutil.which("chromium")
    if not state.exists() or program is None:
        sys.stderr.write("no demo is kept (make demo KEEP=1), or chromium is missing (make prerequisites)\n")
        return 2
    url = f"http://{LOOPBACK}:{json.loads(state.read_text())['port']}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE, locale="en-GB", timezone_id="UTC").new_page()
        page.set_default_timeout(PATIENCE_MS)
        _sign_in(page, url)
        _looked_at(_opened(page, f"{url}/dags/{DAG}/plugin/ferry_flow"))
        for theme in ("light", "dark"):
            page.evaluate(f"localStorage.setItem('theme', '{theme}')")
            _taken(page, url, theme)
        browser.close()
    return 0


def _sign_in(page: Page, url: str) -> None:
    page.goto(f"{url}/")
    page.locator("input[name=username]").fill(USER)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("input[name=password]").press("Enter")
    page.locator("a[href*='plugin/ferry']").first.wait_for()


def _opened(page: Page, address: str) -> Frame:
    """The page's own frame within Airflow, once it is drawn."""
    page.goto(address)
    found = page.wait_for_selector("iframe").content_frame()
    if found is None:
        raise RuntimeError(f"{address} shows no frame")
    found.locator("html[data-ready]").wait_for(state="attached")
    return found


def _looked_at(frame: Frame) -> None:
    """Wait until so many points of lag were measured."""
    enough = f"async () => (await (await fetch('{SERIES}')).json()).lag.length >= {POINTS}"
    frame.wait_for_function(enough, polling=5_000)


def _taken(page: Page, url: str, theme: str) -> None:
    frame = _opened(page, f"{url}/plugin/ferry")
    frame.locator("#list-title").wait_for()
    page.screenshot(path=PICTURES / f"flows-{theme}.png")
    frame = _opened(page, f"{url}/dags/{DAG}/plugin/ferry_flow")
    frame.locator(".plot .main-svg").nth(3).wait_for()
    page.screenshot(path=PICTURES / f"flow-{theme}.png")
    frame.get_by_role("link", name="Runs").first.click()
    frame.locator("td a[href*='/run/']").nth(1).click()
    frame.locator("#receipts-title").wait_for()
    page.screenshot(path=PICTURES / f"run-{theme}.png")


if __name__ == "__main__":
    sys.exit(main())

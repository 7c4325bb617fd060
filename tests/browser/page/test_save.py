"""A PDF of a report is saved, and the list of reports stays; without scripts, the page that waits leads back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from playwright.sync_api import Page, Response, expect

from ferry.features.evidence.acts.store import LocalStore
from ferry.features.evidence.rules.chain import pdf_name, report_name
from ferry.ledger.ledger import UNREAD
from ferry.reader.watch import FlowPoll
from tests.airflow.page.conftest import HERE, REPORTS, TEXT, Desk
from tests.airflow.page.served import served
from tests.airflow.page.test_reports import OWN, put
from tests.chromium import chromium
from tests.tiers import ANSWER_S

NAME = pdf_name(report_name(1))


@pytest.fixture
def waited() -> threading.Event:
    """Set once the browser was asked to wait for the PDF."""
    return threading.Event()


@pytest.fixture
def listed(desk: Desk, waited: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A page of a flow with one report, whose PDF is not read before the browser was asked to wait."""
    folder = tmp_path / "reports"
    folder.mkdir()
    config = tmp_path / "shared.properties"
    config.write_text(TEXT.replace(REPORTS, f"ferry.report.dir = {folder}"))
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    put(folder, 1, OWN)
    (folder / NAME).write_text("%PDF of 1")
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    read = LocalStore.read

    def late(store: LocalStore, name: str) -> bytes:
        if name == NAME:
            waited.wait(ANSWER_S)
        return read(store, name)

    monkeypatch.setattr(LocalStore, "read", late)
    return desk


def watched(page: Page, waited: threading.Event) -> list[int]:
    """The statuses of the answers for the PDF, as they come."""
    statuses: list[int] = []

    def note(answer: Response) -> None:
        if "form=pdf" in answer.url:
            statuses.append(answer.status)
            waited.set()

    page.on("response", note)
    return statuses


def press(page: Page) -> bytes:
    """What the browser saves when the link is pressed."""
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save report 1 as PDF").click()
    assert saved.value.suggested_filename == NAME
    return saved.value.path().read_bytes()


@pytest.mark.parametrize("width", [1400, 390])
def test_the_list_stays_when_a_pdf_is_saved(listed: Desk, waited: threading.Event, width: int) -> None:
    with served(listed) as address, chromium(viewport={"width": width, "height": 844}) as page:
        page.goto(f"{address}{HERE}/reports")
        statuses = watched(page, waited)
        assert press(page) == b"%PDF of 1"
        assert (statuses[0], statuses[-1]) == (503, 200)
        assert page.url == f"{address}{HERE}/reports"
        assert press(page) == b"%PDF of 1", "and again"
        expect(page.get_by_role("heading", name="Reports of drills and switches")).to_be_visible()


def test_a_pdf_that_cannot_be_saved_is_an_error_on_the_list(listed: Desk) -> None:
    with served(listed) as address, chromium() as page:
        page.goto(f"{address}{HERE}/reports")
        link = page.get_by_role("link", name="Save report 1 as PDF")
        page.route("**/report/1?form=pdf", lambda route: route.fulfill(status=404, json={"detail": "It is gone."}))
        link.click()
        expect(page.locator("#notices .bad")).to_contain_text(f"{NAME} is not saved: It is gone.")
        assert page.url == f"{address}{HERE}/reports"


def test_without_scripts_the_page_that_waits_leads_back(listed: Desk, waited: threading.Event) -> None:
    with served(listed) as address, chromium(java_script_enabled=False) as page:
        page.goto(f"{address}{HERE}/reports")
        page.goto(f"{address}{HERE}/reports")  # the first one waits
        expect(page.get_by_role("link", name="Save report 1 as PDF")).to_be_visible()
        statuses = watched(page, waited)
        assert press(page) == b"%PDF of 1"
        assert statuses[0] == 503
        page.get_by_role("link", name="Its reports").click()
        expect(page.get_by_role("link", name="Save report 1 as PDF")).to_be_visible()

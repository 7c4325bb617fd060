"""Ferry's page as an operator meets it: in Debian's Chromium, inside a real Airflow, over two real clusters."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jwt
import pytest
from playwright.sync_api import Frame, Page, expect

from ferry.clock import wall_ms
from ferry.ledger.ledger import pauses
from ferry.run.ledger.access import LedgerAccess
from ferry_airflow.home import USER, LocalHome
from tests.airflow import planted
from tests.airflow.conftest import Flows
from tests.chromium import chromium
from tests.harness import create_topic, numbered, producer, send
from tests.tiers import ANSWER_S

ALIAS = "paged"
HERE = f"/ferry/flow/{ALIAS}/t{ALIAS}"
PICTURES = "FERRY_PICTURES"
"""A folder in which the test leaves its pictures; `make pictures` takes those of the documents."""


def sign_in(page: Page, home: LocalHome) -> None:
    """As a person does."""
    page.goto(f"{home.url}/")
    page.locator("input[name=username]").fill(USER)
    page.locator("input[name=password]").fill(home.password)
    page.locator("input[name=password]").press("Enter")
    page.locator("a[href*='plugin/ferry']").first.wait_for()


def inside(page: Page) -> Frame:
    """The frame in which Airflow shows the page."""
    page.wait_for_selector("iframe")
    handle = page.locator("iframe").first.element_handle()
    frame = handle.content_frame()
    assert frame is not None
    return frame


def as_viewer(home: LocalHome) -> str:
    """A token of somebody who may only look."""
    answer = httpx.post(f"{home.url}/auth/token", json={"username": USER, "password": home.password})
    token = answer.json()["access_token"]
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    head = jwt.get_unverified_header(token)
    secret = home.environment["AIRFLOW__API_AUTH__JWT_SECRET"]
    return jwt.encode({**claims, "sub": "vera", "role": "VIEWER"}, secret, algorithm=head["alg"], headers=head)


def picture(page: Page, name: str, tmp_path: Path) -> None:
    """Keep what is to be seen."""
    folder = Path(os.environ.get(PICTURES) or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png")


@pytest.mark.timeout(900)  # a browser, and a run with Spark
def test_a_run_is_started_watched_and_read_and_a_topic_is_paused(flows: Flows, tmp_path: Path) -> None:
    for topic, count in ((f"{ALIAS}-orders", 5_000), (f"{ALIAS}-audit", 500)):
        create_topic(flows.source, topic, 2)
        send(producer(flows.source, compression_type="lz4"), topic, numbered(count, partitions=2))
    home, dag = flows.home, flows.dag(ALIAS)
    with chromium() as page:
        sign_in(page, home)
        page.goto(f"{home.url}/plugin/ferry")
        inside(page).locator("#list-title").wait_for()
        picture(page, "flows-light", tmp_path)

        # Inside the tab of the flow's DAG; the figures come by themselves.
        page.goto(f"{home.url}/dags/{dag}/plugin/ferry_flow")
        frame = inside(page)
        expect(frame.locator("html")).to_have_attribute("data-ready", "")
        expect(frame.locator("#live-state")).to_have_text("never ran")
        expect(frame.locator(".figures").first).to_contain_text("5\u202f500")
        run = _planned_and_started(frame, flows)
        expect(frame.locator("#live-state")).to_have_text("healthy")
        picture(page, "flow-light", tmp_path)

        frame.get_by_role("link", name=re.compile(f", {re.escape(run)}$")).first.click()
        expect(frame.locator("#receipts-title")).to_be_visible()
        picture(page, "run-light", tmp_path)
        _offsets_looked_up(frame, flows, run)
        _topic_paused_by_keyboard(frame, flows)
        _topic_resumed(frame, flows)
        assert not planted.found([("page", page.content().encode()), ("frame", frame.content().encode())])

        # The tab of the run, among Airflow's own of it.
        page.goto(f"{home.url}/dags/{dag}/runs/{quote(run, safe='')}/plugin/ferry_run")
        expect(inside(page).locator("#receipts-title")).to_be_visible()

        page.evaluate("localStorage.setItem('theme', 'dark')")
        page.goto(f"{home.url}/dags/{dag}/plugin/ferry_flow")
        frame = inside(page)
        expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
        expect(frame.locator(".plot .main-svg").first).to_be_visible()
        picture(page, "flow-dark", tmp_path)
        page.goto(f"{home.url}/plugin/ferry")
        inside(page).locator("#list-title").wait_for()
        picture(page, "flows-dark", tmp_path)

        page.context.clear_cookies()
        page.goto(f"{home.url}{HERE}/")
        expect(page.locator("body")).to_contain_text("You are not signed in")


def _planned_and_started(frame: Frame, flows: Flows) -> str:
    """A dry run, then a run; its id."""
    dag = flows.dag(ALIAS)
    frame.get_by_role("button", name="Dry run").click()
    frame.get_by_role("button", name="Show the plan").click()
    expect(frame.locator("#answer-body")).to_contain_text(f"{ALIAS}-orders-1")
    frame.get_by_role("button", name="Close").click()
    assert not flows.rest.runs(dag), "a dry run is no run"

    frame.get_by_role("button", name="Run now").click()
    frame.locator("#ask-go").click()
    expect(frame.locator("#notices")).to_contain_text("is queued")
    (run,) = (str(one["dag_run_id"]) for one in flows.rest.runs(dag))
    assert flows.rest.wait_run(dag, run, seconds=420) == "success", flows.rest.log(dag, run, "copy")
    assert flows.rest.run(dag, run)["triggering_user_name"] == USER
    return run


def _offsets_looked_up(frame: Frame, flows: Flows, run: str) -> None:
    """Of a source offset to its copy's, and back, with the run that made it."""
    receipt = next(one for one in flows.lab(ALIAS).receipts() if one.source.topic == f"{ALIAS}-orders")
    source, target = receipt.segments[0].source_start + 7, receipt.segments[0].target_start + 7
    for place, offset, back, other in (
        (receipt.source, source, "false", target),
        (receipt.target, target, "true", source),
    ):
        frame.goto(
            f"{flows.home.url}{HERE}/offsets?topic={place.topic}&partition={place.partition}&offset={offset}&back={back}"
        )
        expect(frame.locator("#other-offset")).to_have_text(f"{other:,}".replace(",", "\u202f"))
        expect(frame.locator("body")).to_contain_text(run)


def _topic_paused_by_keyboard(frame: Frame, flows: Flows) -> None:
    """With a reason, in the reader's name: in the ledger, and in Airflow's audit log."""
    topic = f"{ALIAS}-audit"
    frame.goto(f"{flows.home.url}{HERE}/topics")
    frame.get_by_role("button", name=f"Pause topic {topic}").press("Enter")
    frame.get_by_label("Reason, shown to other operators").press_sequentially("schema migration")
    frame.get_by_label("Reason, shown to other operators").press("Enter")
    expect(frame.get_by_role("button", name=f"Resume topic {topic}")).to_be_visible()
    with LedgerAccess(flows.lab(ALIAS).flow) as ledger:
        held = pauses(ledger.view(), wall_ms())[topic]
    assert (held.who, held.why) == (USER, "schema migration")
    logged = flows.rest.ask("GET", "/api/v2/eventLogs?event=ferry_pause")["event_logs"]
    assert [(one["owner"], one["dag_id"]) for one in logged] == [(USER, flows.dag(ALIAS))]


def _topic_resumed(frame: Frame, flows: Flows) -> None:
    """By its button: it goes on in the ledger, and Airflow's audit log has it."""
    topic = f"{ALIAS}-audit"
    frame.get_by_role("button", name=f"Resume topic {topic}").click()
    frame.locator("#ask-go").click()
    expect(frame.get_by_role("button", name=f"Pause topic {topic}")).to_be_visible()
    with LedgerAccess(flows.lab(ALIAS).flow) as ledger:
        assert topic not in pauses(ledger.view(), wall_ms())
    logged = flows.rest.ask("GET", "/api/v2/eventLogs?event=ferry_resume")["event_logs"]
    assert [(one["owner"], one["dag_id"]) for one in logged] == [(USER, flows.dag(ALIAS))]


def test_who_is_not_signed_in_gets_401_and_who_may_only_look_403(flows: Flows) -> None:
    paths = ("/ferry/", f"{HERE}/", "/ferry/static/ferry.js", f"/ferry/api/flow/{ALIAS}/t{ALIAS}/series")
    action = f"/ferry/api/flow/{ALIAS}/t{ALIAS}/run"
    sent = {"X-Ferry-Request": "1"}
    with httpx.Client(base_url=flows.home.url) as nobody:
        assert {path: nobody.get(path).status_code for path in paths} == dict.fromkeys(paths, 401)
        assert nobody.post(action, json={}, headers=sent).status_code == 401
    runs = len(flows.rest.runs(flows.dag(ALIAS)))
    with httpx.Client(base_url=flows.home.url, cookies={"_token": as_viewer(flows.home)}, timeout=ANSWER_S) as viewer:
        page = viewer.get(f"{HERE}/topics", headers={"Accept": "text/html"})
        assert page.status_code == 200, page.text
        assert "data-ask" not in page.text
        assert viewer.post(action, json={}, headers=sent).status_code == 403
        for verb, body in (("pause", {"topic": f"{ALIAS}-orders", "why": "x"}), ("dry-run", {}), ("verify", {})):
            assert viewer.post(action.replace("/run", f"/{verb}"), json=body, headers=sent).status_code == 403
    assert len(flows.rest.runs(flows.dag(ALIAS))) == runs

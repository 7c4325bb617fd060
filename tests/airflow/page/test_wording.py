"""One word for one state, and one way to write a number, on every page and in the charts."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from ferry.clock import wall_ms
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.ledger import UNREAD
from ferry.model import OpenedRun
from ferry.reader.watch import FlowPoll
from ferry.words import readable
from ferry_airflow.page.run_words import run_badge
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.everything import filled, status_of
from tests.airflow.page.values import answered, digest
from tests.browser.page.test_accessibility import PAGES
from tests.pure.decide.values import refusal, run_of

MINUTE_MS = 60_000


def read(page: str) -> str:
    """What somebody reads of a page, addresses and names of parts left out."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


@pytest.mark.parametrize("state", PastState)
@pytest.mark.parametrize("at_work", [True, False])
def test_no_run_is_called_open(state: PastState, at_work: bool) -> None:
    word = run_badge(state, at_work=at_work).word
    assert word != PastState.OPEN
    assert at_work == (word in ("running", "planning"))


@pytest.mark.parametrize(("minutes", "word"), [(1, "running"), (16, "unfinished")])
def test_a_run_has_one_word_wherever_it_is_told(desk: Desk, minutes: int, word: str) -> None:
    heard_ms = wall_ms() - minutes * MINUTE_MS
    opened = OpenedRun(record=replace(run_of("r1"), started_ms=heard_ms), generation=9)
    answered(desk, ("run", "r1", ""), PastRun(opened=opened, state=PastState.OPEN, report=None))
    run = replace(digest("r1", PastState.OPEN), started_ms=heard_ms, ended_ms=heard_ms)
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 0),), troubles={}), [run])
    desk.watcher.amend(never_ran=False)
    for path in ("/", f"{HERE}/", f"{HERE}/runs", f"{HERE}/run/r1"):
        badges = re.findall(r'class="badge \w+">([^<]+)<', desk.page(path))
        of_clusters = "asking"
        assert {one for one in badges if not one.startswith("1 ")} - {of_clusters} == {word}, path
    (told,) = desk.client.get(f"/api{HERE}/series").json()["runs"]
    assert told["state"] == word


def test_no_page_shows_the_ledgers_word_for_a_run_that_did_not_end(desk: Desk) -> None:
    filled(desk)
    for path in PAGES:
        assert not re.search(r">\s*open\s*<", desk.page(path, status_of(path))), path
    assert "open" not in {run["state"] for run in desk.client.get(f"/api{HERE}/series").json()["runs"]}


def test_no_page_shows_a_large_number_bare(desk: Desk) -> None:
    filled(desk)
    for path in PAGES:
        page = desk.page(path, status_of(path))
        assert readable(read(page)) == read(page), path
        assert not re.search(r'class="(?:num|unit)[^"]*">\s*\d{4,}', page), path


def test_sentences_of_runs_have_their_numbers_parted_and_their_offsets_as_they_are(desk: Desk) -> None:
    lost = replace(refusal("orders", 3), message="71838 records before offset 1204111 are gone")
    run = replace(
        digest("r1", PastState.PARTIAL, lost), undone=(("group", "group app lacks 12345 offsets"),), undone_in_all=1
    )
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [replace(run, kinds={"retention-passed": 5_000})])
    overview = read(desk.page(f"{HERE}/"))
    assert "group app lacks 12\u202f345 offsets" in overview
    assert "retention-passed 5\u202f000" in overview
    for page in (overview, read(desk.page(f"{HERE}/refusals"))):
        assert "71\u202f838 records before offset 1204111 are gone" in page

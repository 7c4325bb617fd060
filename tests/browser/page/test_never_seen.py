"""What was never seen is not told as empty: an API server that has started while a cluster is down."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from ferry.ledger.ledger import UNREAD
from ferry.model import Pause
from ferry.reader.snapshot import topic_rows
from ferry.reader.watch import FlowPoll
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.served import served
from tests.airflow.page.values import answered, digest
from tests.chromium import chromium

DOWN = {alias: f"{alias} at h:9092 does not answer" for alias in ("primary", "backup")}
ALL_CLEAR = ("Nothing was refused", "No run yet", "the ledger remembers 0", "of those read so far", "No topic<")


def see_nothing(desk: Desk, *aliases: str) -> None:
    """The first look, with these down; the ledger lies on the target."""
    troubles = {alias: DOWN[alias] for alias in aliases}
    desk.watcher.see(FlowPoll(view=None if "backup" in aliases else UNREAD, lags=None, troubles=troubles))


@pytest.mark.parametrize("path", ["/", "/runs", "/refusals", "/topics", "/topic/orders"])
def test_what_nobody_could_read_is_not_told_as_empty(desk: Desk, path: str) -> None:
    see_nothing(desk, "primary", "backup")
    page = desk.page(f"{HERE}{path}")
    assert "Cluster backup cannot be reached since" in page
    assert [words for words in ALL_CLEAR if words in page] == []
    assert ("The ledger could not be read yet" in page) == (path in ("/", "/runs", "/refusals"))
    assert ("The source has not answered yet" in page) == ("topic" in path or path == "/")


def test_a_topic_is_unknown_only_to_a_source_that_has_answered(desk: Desk) -> None:
    see_nothing(desk, "primary")
    assert "The source has not answered yet" in desk.page(f"{HERE}/topic/orders")
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("clicks", 0, 5, 60.0),), troubles={}))
    answer = desk.client.get(f"{HERE}/topic/orders", headers={"Accept": "text/html"})
    assert (answer.status_code, "copies no topic orders" in answer.text) == (404, True)


def test_a_paused_topic_that_the_source_does_not_have_has_a_sentence_in_place_of_partitions(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    gone = Pause(topic="gone", who="ada", why="schema", since_ms=5)
    desk.watcher.amend(topics=topic_rows({}, {"gone": gone}))
    assert "The source has no such topic, or does not show it" in desk.page(f"{HERE}/topic/gone")


def test_what_was_not_refused_by_the_runs_that_are_read_is_told_of_these_alone(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest("a")])
    desk.watcher.amend(known_runs=7)
    assert "Nothing was refused by the runs that are read by now" in desk.page(f"{HERE}/refusals")
    desk.watcher.amend(known_runs=1)
    assert "Nothing was refused by the runs that the ledger remembers<" in desk.page(f"{HERE}/refusals")


def test_figures_that_do_not_come_are_told_in_place_of_the_chart_and_drawn_when_they_do(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 60.0),), troubles={}), [digest("a")])
    with served(desk) as address, chromium() as page:
        page.route("**/series*", lambda route: route.fulfill(status=500, body="no"))
        page.goto(f"{address}{HERE}/")
        plot = page.locator("figure[data-chart=throughput] .plot")
        expect(plot).to_have_text("The figures did not come: the page asks again.")
        page.unroute("**/series*")
        desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 6, 60.0),), troubles={}), [digest("a")])
        expect(plot.locator(".xtick text").first).to_be_visible()
        expect(plot).not_to_contain_text("did not come")


@pytest.mark.parametrize(
    ("tab", "key", "none"),
    [("backfills", ("lanes",), "The ledger has no backfill"), ("groups", ("OfGroups", ()), "No consumer group")],
)
def test_an_answer_that_is_being_renewed_is_not_taken_for_there_being_none(
    desk: Desk, tab: str, key: tuple[object, ...], none: str
) -> None:
    answered(desk, key, [] if tab == "backfills" else ((), (), False))
    assert none in desk.page(f"{HERE}/{tab}")
    desk.watcher.kept_answers[key].is_asked = True
    page = desk.page(f"{HERE}/{tab}")
    assert none not in page
    assert "Not known yet" in page

"""The thread of a flow: what it keeps when a cluster is silent, and how long a request waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.decide.ledger.ledger import UNREAD
from ferry.errors import BadInput
from ferry.run.watch import FlowWatch, Sight
from ferry_airflow.page.watcher import WAIT_SECONDS, Watcher, Watchers
from tests.page.conftest import Still, lag


def _nowhere() -> FlowConfig:
    raise BadInput("no such connection")


@pytest.fixture
def thread() -> Iterator[Watcher]:
    """A watcher whose flow has no login."""
    watcher = Watcher(_nowhere, "primary", "backup")
    yield watcher
    watcher.close()


def test_a_flow_without_a_login_is_in_trouble_and_jobs_end_with_the_sentence(thread: Watcher) -> None:
    job = thread.ask("ada", "plan", lambda _: None)
    assert job.done.wait(20)
    assert job.error == "no such connection"
    seen = thread.seen()
    assert [(one.cluster, one.why) for one in seen.troubles] == [("backup", "no such connection")]
    assert seen.troubles[0].since_ms <= seen.looked_ms


def test_what_was_seen_stays_and_trouble_keeps_its_beginning() -> None:
    watcher = Still()
    watcher.see(Sight(view=UNREAD, lags=(lag("orders", 0, 7, 3.0),), troubles={}))
    good = watcher.seen()
    for _ in range(3):
        watcher.see(Sight(view=None, lags=None, troubles={"backup": "gone"}))
    bad = watcher.seen()
    assert (bad.total, bad.lag_ms, bad.ledger_ms, bad.topics) == (good.total, good.lag_ms, good.ledger_ms, good.topics)
    since = bad.troubles[0].since_ms
    watcher.see(Sight(view=None, lags=None, troubles={"backup": "gone"}))
    assert watcher.seen().troubles[0].since_ms == since
    watcher.see(Sight(view=UNREAD, lags=None, troubles={"primary": "gone"}))
    assert [one.cluster for one in watcher.seen().troubles] == ["primary"]


def test_a_request_waits_a_moment_and_then_shows_what_is_there() -> None:
    watcher, hold = Still(), threading.Event()

    def slow(_: FlowWatch) -> str:
        hold.wait(20)
        return "there"

    began = time.monotonic()
    answer = watcher.answer(("slow",), slow, fresh_seconds=60)
    assert time.monotonic() - began < WAIT_SECONDS + 2
    assert answer.waiting
    assert watcher.answer(("slow",), slow, fresh_seconds=60) is answer, "it is asked for once"
    assert answer.job is not None
    hold.set()
    answer.job.work(None)  # type: ignore[arg-type]
    assert (answer.got, answer.waiting) == ("there", False)


def test_another_configuration_ends_the_threads_of_the_one_before() -> None:
    watchers = Watchers()
    first = watchers.of(("a->b", 1), Still)
    assert watchers.of(("a->b", 1), Still) is first
    assert watchers.of(("a->b", 2), Still) is not first
    assert first._closed

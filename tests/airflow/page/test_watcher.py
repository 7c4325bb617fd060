"""The thread of a flow: what it keeps when a cluster is silent, and how long a request waits for it."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import load
from ferry.errors import BadInput, EmptyFilter, Refused, Unreachable
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.ledger import UNREAD
from ferry.model import OpenedRun
from ferry.reader import watcher as watching
from ferry.reader.answers import KEPT_SECONDS
from ferry.reader.service import measured_by
from ferry.reader.watch import FlowPoll, FlowWatch
from ferry.reader.watcher import LOOKING, MOST_ASIDE, Watcher, Watchers, rest_after
from ferry_airflow.rest import until
from tests.airflow.page.conftest import FLOW, TEXT, Still, lag
from tests.airflow.page.values import view_of
from tests.pure.decide.values import LANE, run_of
from tests.tiers import ANSWER_S


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
    assert job.done.wait(ANSWER_S)
    assert job.error == "no such connection"
    seen = thread.seen()
    assert [one.why for one in seen.hindrances] == ["no such connection"]
    assert seen.troubles == (), "no cluster is to blame"
    assert seen.hindrances[0].since_ms <= seen.looked_ms


def test_what_was_seen_stays_and_trouble_keeps_its_beginning() -> None:
    watcher = Still()
    watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 7, 3.0),), troubles={}))
    good = watcher.seen()
    for _ in range(3):
        watcher.see(FlowPoll(view=None, lags=None, troubles={"backup": "gone"}))
    bad = watcher.seen()
    assert (bad.total, bad.lag_ms, bad.ledger_ms, bad.topics) == (good.total, good.lag_ms, good.ledger_ms, good.topics)
    since = bad.troubles[0].since_ms
    watcher.see(FlowPoll(view=None, lags=None, troubles={"backup": "gone"}))
    assert watcher.seen().troubles[0].since_ms == since
    watcher.see(FlowPoll(view=UNREAD, lags=None, troubles={"primary": "gone"}))
    assert [one.cluster for one in watcher.seen().troubles] == ["primary"]


def test_a_time_without_polls_is_no_part_of_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    still, now = Still(), 1_790_000_000_000
    silent = FlowPoll(view=None, lags=None, troubles={"backup": "gone"})
    for seconds in (0, 5, 8 * 3600, 8 * 3600 + 5):
        monkeypatch.setattr(watching, "wall_ms", lambda at=now + seconds * 1000: at)
        still.see(silent)
    assert [(one.since_ms - now, one.until_ms and one.until_ms - now) for one in still.last.spells] == [
        (0, 5_000),
        (8 * 3_600_000, None),
    ]
    assert still.last.troubles[0].since_ms == now + 8 * 3_600_000


def test_what_is_no_outage_has_a_beginning_too_and_goes() -> None:
    watcher = Still()
    watcher.see(FlowPoll.hindered(UNREAD, {"primary": EmptyFilter("no topic"), "backup": Unreachable("gone")}))
    seen = watcher.seen()
    assert ([one.cluster for one in seen.troubles], [one.why for one in seen.hindrances]) == (["backup"], ["no topic"])
    watcher.see(FlowPoll.hindered(UNREAD, {"": Refused("not allowed")}))
    later = watcher.seen()
    assert [(one.why, one.since_ms) for one in later.hindrances] == [("not allowed", seen.hindrances[0].since_ms)]
    assert later.troubles == ()
    watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    assert watcher.seen().hindrances == ()


def test_a_request_waits_a_moment_and_then_shows_what_is_there() -> None:
    watcher, hold = Still(), threading.Event()

    def slow(_: FlowWatch) -> str:
        hold.wait(ANSWER_S)
        return "there"

    answer = watcher.answer(("slow",), slow, fresh_seconds=60)
    assert answer.waiting, "it came back before there was anything"
    assert watcher.answer(("slow",), slow, fresh_seconds=60) is answer, "it is asked for once"
    hold.set()
    (job,) = watcher.jobs
    watcher.do(job, partial(slow, cast("FlowWatch", None)))
    assert (answer.got, answer.waiting) == ("there", False)


def test_an_answer_that_needs_a_login_that_is_missing_ends_with_the_sentence(thread: Watcher) -> None:
    def told() -> bool:
        return thread.answer(("lanes",), lambda _: None, fresh_seconds=60).error == "no such connection"

    assert until(told, ANSWER_S), "the sentence is not given"


def test_what_needs_no_cluster_is_there_while_the_thread_waits_for_one() -> None:
    silent = threading.Event()

    def connected() -> FlowConfig:
        silent.wait(2 * ANSWER_S)
        raise BadInput("no such connection")

    watcher = Watcher(connected, "primary", "backup")
    try:
        watcher.seen()
        slow = watcher.answer(("lanes",), lambda _: "lanes", fresh_seconds=60)
        aside = partial(watcher.answer_aside, ("reports",), lambda: "here", fresh_seconds=60)
        assert until(lambda: aside().got == "here", ANSWER_S), "the folder is not read"
        assert slow.waiting, "a question about the clusters does wait"
    finally:
        silent.set()
        watcher.close()


def test_many_questions_beside_the_clusters_take_no_thread_each() -> None:
    slow = threading.Event()
    watcher = Watcher(lambda: pytest.fail("no cluster is asked"), "primary", "backup")
    try:
        for number in range(3 * MOST_ASIDE):
            watcher.answer_aside(("report", number), lambda: slow.wait(2 * ANSWER_S), fresh_seconds=60)
        alive = [one for one in threading.enumerate() if one.name == "ferry page, aside"]
        assert len(alive) <= MOST_ASIDE
        last = watcher.answer_aside(("report", "last"), lambda: 1, fresh_seconds=60)
        assert "no more are accepted: try again in a moment" in last.error
        slow.set()
        aside = partial(watcher.answer_aside, ("report", "now"), lambda: 1, fresh_seconds=0)
        assert until(lambda: aside().got == 1, ANSWER_S), "no thread is free again"
    finally:
        slow.set()
        watcher.close()


def test_what_is_asked_is_answered_while_other_flows_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "ferry.properties").write_text(TEXT)
    flow = load(tmp_path / "ferry.properties").flow(FLOW)
    watcher = Watcher(lambda: flow, "primary", "backup")
    for _ in range(LOOKING._initial_value):  # type: ignore[attr-defined]  # each of them waits for a silent cluster
        assert LOOKING.acquire(timeout=ANSWER_S)
    try:
        job = watcher.ask("ada", "plan", lambda _: "planned")
        assert job.done.wait(ANSWER_S)
        assert job.answer == "planned"
        assert watcher.seen().number == 0, "it was not its turn to look"
    finally:
        watcher.close()
        LOOKING.release(LOOKING._initial_value)  # type: ignore[attr-defined]
    assert until(lambda: not cast("threading.Thread", watcher._thread).is_alive(), ANSWER_S), "the thread does not end"


class Measuring(Still):
    """A watcher of a lane."""

    def __init__(self, measures: Hashable) -> None:
        super().__init__()
        self.measures = measures


def test_another_configuration_ends_the_threads_of_the_one_before() -> None:
    watchers = Watchers()
    first = watchers.of(("a->b", 1), Still)
    assert watchers.of(("a->b", 1), Still) is first
    assert watchers.of(("a->b", 2), Still) is not first
    assert first._closed


@pytest.mark.parametrize(
    ("line", "is_same"),
    [
        ("ferry.rpo.seconds = 60", True),
        ("primary->backup.topics = orders", True),
        ("primary.bootstrap.servers = 127.0.0.1:2", False),
        ("ferry.lane = other", False),
    ],
)
def test_what_was_measured_stays_if_the_file_changes_and_the_lane_is_the_same(
    tmp_path: Path, line: str, is_same: bool
) -> None:
    watchers = Watchers()
    made: list[Measuring] = []
    key = line.partition(" = ")[0]
    for number, text in enumerate((TEXT, TEXT.replace(f"\n{key} = ", "\n# ") + f"{line}\n")):
        file = tmp_path / f"{number}.properties"
        file.write_text(text)
        still = watchers.of((FLOW, number), partial(Measuring, measured_by(load(file).flow(FLOW))))
        assert isinstance(still, Measuring)
        made.append(still)
        if not number:
            still.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 7),), troubles={"primary": "silent"}))
            assert still.last.history
    first, second = made
    assert first.measures is not None
    kept = (second.last.history, second.last.columns, second.last.spells)
    assert (kept == (first.last.history, first.last.columns, first.last.spells)) == is_same
    assert any(kept) == is_same
    assert second.last.number == 0, "nothing of the present is known yet"


@pytest.mark.parametrize(
    ("took", "computed", "closely", "rest"),
    [
        (0.1, 0.1, True, 5.0),
        (1.2, 1.0, True, 12.0),
        (40.0, 3.0, True, 30.0),  # a busy machine, or a far cluster
        (40.0, 38.0, True, 38.0),  # never more than half of a core
        (0.1, 0.1, False, 30.0),
        (90.0, 70.0, False, 70.0),
    ],
)
def test_half_a_minute_lies_between_two_looks_at_most(took: float, computed: float, closely: bool, rest: float) -> None:
    assert rest_after(took, computed, closely=closely) == rest


class Asked:
    """A connection that is asked for runs, and hears which."""

    def __init__(self, failing: str = "") -> None:
        self.names: list[str] = []
        self.flow = SimpleNamespace(lane=LANE)
        self._failing = failing

    def past(self, opened: OpenedRun) -> PastRun:
        self.names.append(opened.record.run)
        if opened.record.run == self._failing:
            raise Unreachable("gone")
        return PastRun(opened=opened, state=PastState.UNPLANNED, report=None)


def poll_of(runs: int, end: int, name: str = "run") -> FlowPoll:
    opened = tuple(OpenedRun(record=run_of(f"{name}-{at}"), generation=at) for at in range(runs))
    return FlowPoll(view=view_of(*opened, end=end), lags=None, troubles={})


def test_older_runs_are_read_one_by_one_between_looks_and_the_newest_again_when_the_ledger_moves() -> None:
    watcher, asked = Still(), Asked()
    watcher.see(poll_of(7, 10), watcher.look(asked, poll_of(7, 10)))
    assert asked.names == ["run-6", "run-5", "run-4"]
    for _ in range(4):
        watcher.look_back(asked)
    assert asked.names[3:] == ["run-3", "run-2", "run-1", "run-0"]
    assert [run.generation for run in watcher.seen().runs] == [6, 5, 4, 3, 2, 1, 0]
    assert not watcher.unread
    watcher.look(asked, poll_of(7, 10))
    assert len(asked.names) == 7, "what is known stays"
    watcher.look(asked, poll_of(8, 11))
    assert asked.names[7:] == ["run-7", "run-6"], "it may have gone on before the next one was opened"
    watcher.look(asked, poll_of(8, 12))
    assert asked.names[9:] == ["run-7"], "it may have gone on"


def test_another_run_at_the_generation_of_a_lost_ledger_is_read() -> None:
    watcher, asked = Still(), Asked()
    watcher.see(poll_of(3, 10), watcher.look(asked, poll_of(3, 10)))
    watcher.see(poll_of(2, 6, "again"), watcher.look(asked, poll_of(2, 6, "again")))
    assert [run.run for run in watcher.seen().runs] == ["again-1", "again-0"]


def test_runs_of_other_lanes_are_not_counted_among_the_flows_own() -> None:
    watcher = Still()
    backfill = replace(run_of("b-1"), lane="backfill-january")
    backfills = [OpenedRun(record=replace(backfill, run=f"b{at}"), generation=at) for at in range(26)]
    view = view_of(*backfills)
    watcher.see(FlowPoll(view=view, lags=None, troubles={}))
    assert (watcher.seen().known_runs, watcher.seen().never_ran) == (0, True)
    own = tuple(OpenedRun(record=run_of(f"r-{at}"), generation=at) for at in range(14))
    watcher.see(FlowPoll(view=view_of(*backfills, *own), lags=None, troubles={}))
    assert (watcher.seen().known_runs, watcher.seen().never_ran) == (14, False)


def test_older_runs_wait_for_the_next_look_when_the_ledger_does_not_answer() -> None:
    watcher, asked = Still(), Asked("run-2")
    watcher.see(poll_of(6, 10), watcher.look(asked, poll_of(6, 10)))
    watcher.look_back(asked)
    assert not watcher.unread
    assert [run.generation for run in watcher.seen().runs] == [5, 4, 3]
    watcher.look(asked, poll_of(6, 10))
    assert watcher.unread == ["run-2", "run-1", "run-0"]


def test_the_newest_run_is_read_again_when_it_could_not_be() -> None:
    watcher, asked, failing = Still(), Asked(), Asked("run-1")
    watcher.look(asked, poll_of(2, 10))
    watcher.look(failing, poll_of(2, 11))
    watcher.look(asked, poll_of(2, 11))
    assert (asked.names[2:], failing.names) == (["run-1"], ["run-1"])


def test_an_answer_that_nobody_asks_for_any_more_goes() -> None:
    watcher = Still()
    for name in ("a run", "a group"):
        watcher.answer((name,), lambda _: "", fresh_seconds=60)
    assert len(watcher.kept_answers) == 2
    for kept in watcher.kept_answers.values():
        kept.asked_at -= KEPT_SECONDS + 1
    watcher.answer(("a group",), lambda _: "", fresh_seconds=60)
    assert list(watcher.kept_answers) == [("a group",)]

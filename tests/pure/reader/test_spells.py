"""When clusters did not answer, and what was paused, over many polls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.config.settings import load
from ferry.ledger.history import PastRun
from ferry.model import Flow, Pause
from ferry.reader.charts import Mark, Missed, Spell
from ferry.reader.documents import Trouble
from ferry.reader.questions import OfSeries
from ferry.reader.snapshot import Snapshot, digest_of
from ferry.reader.spells import KEPT_MS, MOST_SPELLS, missed_of, outages_of, spells_of
from ferry.reader.status import series_of
from ferry.reader.watch import FlowWatch
from tests.pure.answers.stories import begun
from tests.pure.answers.world import FILE, world
from tests.pure.scripted.faults import Fault

NINE = 1_790_000_000_000
DOWN = Trouble(cluster="b", why="no answer", since_ms=NINE)
OUTAGE = Spell(mark=Mark.OUTAGE, of="b", since_ms=NINE)


def paused(since_ms: int) -> Pause:
    return Pause(topic="orders", who="ada", why="migration", since_ms=since_ms)


def after(
    before: tuple[Spell, ...],
    troubles: Sequence[Trouble],
    pauses: Mapping[str, Pause],
    now_ms: int,
    looked_ms: int = 0,
    answered_ms: int = 0,
) -> tuple[Spell, ...]:
    """The spells after a poll at `now_ms`; the one before it was at `looked_ms`; b answered last at `answered_ms`."""
    return spells_of(before, troubles, pauses, now_ms, looked_ms=looked_ms, answered={"b": answered_ms})


def test_an_outage_lasts_until_the_last_poll_that_shows_it() -> None:
    first = after((), [DOWN], {}, NINE, NINE - 5, NINE - 5)
    assert first == (replace(OUTAGE, after_ms=NINE - 5),)
    assert after(first, [DOWN], {}, NINE + 5, NINE, NINE - 5) == first
    over = after(first, [], {}, NINE + 9, NINE + 5, NINE + 9)
    assert over == (replace(OUTAGE, after_ms=NINE - 5, until_ms=NINE + 5, before_ms=NINE + 9),)
    assert after(over, [], {}, NINE + 20, NINE + 9, NINE + 20) == over
    again = Trouble(cluster="b", why="no answer", since_ms=NINE + 30)
    assert [one.until_ms for one in after(over, [again], {}, NINE + 30, NINE + 20, NINE + 20)] == [NINE + 5, None]


def test_a_poll_that_failed_for_another_reason_is_no_answer_of_a_cluster() -> None:
    over = after((OUTAGE,), [], {}, NINE + 9, NINE + 5, NINE - 5)
    assert over == (replace(OUTAGE, until_ms=NINE + 5),)
    assert after(over, [], {}, NINE + 14, NINE + 9, NINE + 14) == (
        replace(OUTAGE, until_ms=NINE + 5, before_ms=NINE + 14),
    )


def test_a_pause_that_was_replaced_is_two() -> None:
    first = after((), [], {"orders": paused(NINE)}, NINE + 1)
    found = after(first, [], {"orders": paused(NINE + 5)}, NINE + 6)
    assert [(one.of, one.since_ms, one.until_ms) for one in found] == [
        ("orders", NINE, NINE + 6),
        ("orders", NINE + 5, None),
    ]


def test_they_are_kept_for_the_longest_range_of_the_charts_and_are_bounded() -> None:
    over = after(after((), [DOWN], {}, NINE), [], {}, NINE + 2, NINE + 1)
    assert after(over, [], {}, NINE + KEPT_MS, NINE + 2) == over
    assert after(over, [], {}, NINE + 1 + KEPT_MS, NINE + 2) == ()
    found: tuple[Spell, ...] = ()
    for at_ms in range(NINE, NINE + 3 * MOST_SPELLS):
        found = after(found, [], {"orders": paused(at_ms)}, at_ms)
    assert len(found) == MOST_SPELLS
    assert found[-1].until_ms is None


FLOW = ("a", "b")
SECOND = 1_000


def at(seconds: int) -> int:
    return NINE + seconds * SECOND


def outage(since: int, until: int | None, after: int | None = None, before: int | None = None) -> Spell:
    until_ms, after_ms, before_ms = (None if one is None else at(one) for one in (until, after, before))
    return Spell(
        mark=Mark.OUTAGE, of="b", since_ms=at(since), until_ms=until_ms, after_ms=after_ms, before_ms=before_ms
    )


def miss(since: int, until: int, cluster: str = "b") -> Missed:
    return Missed(cluster=cluster, since_ms=at(since), until_ms=at(until))


def test_failed_runs_show_an_outage_and_answers_around_them_bound_it() -> None:
    answers = {"b": [at(0), at(100), at(900)], "a": [at(450)]}
    found = outages_of((), [miss(740, 800), miss(340, 400)], answers)
    assert found == (outage(340, 800, 100, 900),), "that the other cluster answered is no end"
    again = outages_of((), [miss(340, 400), miss(740, 800)], {"b": [at(500)]})
    assert again == (outage(340, 400, None, 500), outage(740, 800, 500, None))
    assert outages_of((), [miss(1, 2)], {}) == (outage(1, 2),), "neither its beginning nor its end is known"


def test_an_outage_that_polls_and_runs_have_seen_is_one() -> None:
    assert outages_of([outage(350, 500)], [miss(340, 400)], {"b": [at(300)]}) == (outage(340, 500, 300),)
    assert outages_of([outage(450, None)], [miss(340, 400)], {"b": [at(300)]}) == (outage(340, None, 300),)
    both = outages_of([outage(350, 360, None, 365)], [miss(400, 460)], {})
    assert both == (outage(350, 360, None, 365), outage(400, 460, 365)), "a poll between them was answered"
    later = outages_of([outage(350, 360), outage(390, 460, None, 470)], (), {"b": [at(300)]})
    assert later == (outage(350, 460, 300, 470),), "a poll between them failed for another reason"


def test_two_outages_that_polls_saw_are_not_one_if_no_poll_was_made_between_them() -> None:
    found = outages_of([outage(350, 360, 300), outage(9000, 9060, 300, 9070)], (), {})
    assert found == (outage(350, 360, 300, 9070), outage(9000, 9060, 300, 9070))


def test_a_copy_that_was_not_answered_shows_an_outage_without_its_time() -> None:
    answers = {"b": [at(0), at(100), at(900)]}
    assert outages_of((), (), answers, [("b", at(100))]) == (outage(100, 100, 100, 900),)
    assert outages_of((), (), answers, [("b", at(900))]) == (outage(900, 900, 900),)
    assert outages_of((), [miss(340, 400)], answers, [("b", at(100))]) == (outage(340, 400, 100, 900),)
    later = outages_of((), [miss(940, 999)], answers, [("b", at(100))])
    assert [one.since_ms for one in later] == [at(940), at(100)]


@pytest.mark.parametrize(
    "text",
    [
        "users-1 on cluster b has no leader at the moment (given up after 60 s: look at the cluster's health)",
        "producer id from cluster b: not available (given up after 60 s: look at the cluster's health)",
        "metadata of cluster b: LEADER_NOT_AVAILABLE (given up after 60 s: look at the cluster's health)",
        "cluster b: the token endpoint answers 503 (given up after 60 s: bring that service back, then run again)",
        "cluster b: x (given up after ..+e s: y)",
        "cluster b at h:1 does not answer within e+ s (refused): check the address",
        "cluster b refuses the login: correct it",
        "cluster bb at h:1 does not answer within 60 s (refused): check the address",
        "",
    ],
)
def test_what_a_cluster_answered_is_no_outage(text: str) -> None:
    assert missed_of(text, NINE, FLOW) is None


@pytest.mark.parametrize(
    ("written", "seconds"), [("60", 60.0), ("0.2", 0.2), ("1.5e+06", 1.5e6), ("9e+99", NINE / 1000)]
)
def test_the_time_that_a_cluster_was_tried_is_as_errors_write_it(written: str, seconds: float) -> None:
    found = missed_of(f"cluster b at h:1 does not answer within {written} s (refused)", NINE, FLOW)
    assert found == Missed(cluster="b", since_ms=NINE - int(seconds * 1000), until_ms=NINE)


def test_spells_of_a_chart_are_in_the_order_of_their_beginning() -> None:
    spells = [replace(OUTAGE, of=of, since_ms=at(since), until_ms=at(since + 1)) for of, since in (("b", 9), ("a", 5))]
    pause = Spell(mark=Mark.PAUSE, of="", since_ms=at(1), until_ms=at(2))
    seen = Snapshot(spells=(*spells, pause))
    assert [one.since_ms for one in series_of(seen, OfSeries(), Flow(source="a", target="b")).spells] == [
        at(1),
        at(5),
        at(9),
    ]


def of_tasks(text: str) -> tuple[str, ...]:
    """The sentences of tasks that name an error."""
    return f"run r of flow a->b: 1 of 2 tasks failed: {text}", f"nothing was planned, so nothing was copied: {text}"


@pytest.mark.parametrize("gone", ["a", "b"])
@pytest.mark.parametrize("in_copy", [False, True], ids=["plan", "copy"])
def test_the_sentences_of_runs_that_a_cluster_did_not_answer_name_it(tmp_path: Path, gone: str, in_copy: bool) -> None:
    with world(tmp_path) as made:
        begun(made, topics={"users": 2})
        brokers = {"a": made.a, "b": made.b}[gone]

        def lose() -> None:
            made.lost = brokers

        if in_copy:
            made.ask("run", "a->b")
            made.produce(made.a, "users", 0, 3)
            api = {"a": "Fetch", "b": "Produce"}[gone]
            of_copy = lambda asked: "users" in "".join(asked.topics)  # noqa: E731
            brokers.faults.append(Fault(api=api, lost=True, times=999, then=lose, only=of_copy))
        else:
            lose()
        asked = made.ask("run", "a->b", "--patience", "2")
        assert asked.code == 3
        body = asked.body
        texts = [body["error"]["message"]] if "error" in body else [one["message"] for one in body["refusals"]]
        assert {missed_of(text, NINE, FLOW) for text in texts} == {miss(-2, 0, gone)}
        assert {missed_of(text, NINE, FLOW) for text in of_tasks(texts[0])} == {miss(-2, 0, gone)}


def test_the_ledger_shows_an_outage_in_a_copy_also_after_a_later_run_copied_the_rest(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        begun(made, topics={"users": 1})
        assert made.ask("run", "a->b").code == 0
        made.produce(made.a, "users", 0, 3)
        lost = Fault(api="Fetch", lost=True, times=999, then=lambda: setattr(made, "lost", made.a), topic="users")
        made.a.faults.append(lost)
        assert made.ask("run", "a->b", "--patience", "2").code == 3
        made.lost = None
        made.a.faults.clear()
        assert made.ask("run", "a->b").code == 0
        config = load(made.folder / FILE).flow("a->b")
        with FlowWatch(config, patience_s=2.0) as watch:
            view = watch.look().view
            assert view is not None
            past = [watch.past(run) for run in view.remembered("live")]
            runs = [digest_of(one) for one in past if isinstance(one, PastRun)]
        assert [run.silent for run in runs] == [(), ("a",), ()]
        (found,) = series_of(Snapshot(runs=tuple(runs[::-1])), OfSeries(), config.flow).spells
        before, after = runs[1].ended_ms, runs[2].started_ms
        assert (found.of, found.since_ms, found.until_ms, found.before_ms) == ("a", before, before, after)

"""A flow's state in one word: the worst thing counts, and figures are written as people read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ferry.config.flow.parts import Budget, RecoveryPoint
from ferry.ledger.history import PastState
from ferry.model import Pause, Refusal, RefusalKind
from ferry.plan.rules.lag import PartitionLag, is_behind, total_of
from ferry.reader.documents import RunDigest, Trouble
from ferry.reader.snapshot import Snapshot, by_topic
from ferry.reader.status import status_of
from ferry_airflow.page import flow_health as judged
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.filters import duration, number, size
from ferry_airflow.page.flow_health import Expected, Standing, is_overdue
from ferry_airflow.page.run_words import Condition
from tests.airflow.page.conftest import LANE, lag
from tests.airflow.page.values import digest
from tests.golden import Golden

LIMIT = RecoveryPoint(records=100, seconds=60)


def standing(seen: Snapshot, dag: DagState, expected: Expected, now_ms: int) -> Standing:
    """As the page judges what its reader has seen."""
    return judged.standing(status_of(seen, expected.limit, LANE), dag, expected, now_ms)


def ended_run(seen: Snapshot, dag: DagState, now_ms: int) -> RunDigest | None:
    return judged.ended_run(status_of(seen, LIMIT, LANE), dag, now_ms)


def open_run(seen: Snapshot, dag: DagState, now_ms: int) -> RunDigest | None:
    return judged.open_run(status_of(seen, LIMIT, LANE), dag, now_ms)


def behind(*lags: PartitionLag) -> Snapshot:
    """Of a flow that is so far behind, and otherwise well."""
    return Snapshot(number=3, runs=(digest("r1"),), lags=by_topic(lags), total=total_of(lags))


WELL = behind(lag("orders", 0, 5, 10.0))
NOW_MS = 1_790_000_100_000
BEGAN_MS = WELL.runs[0].started_ms
BY_HAND = replace(WELL, runs=(replace(digest("r2"), generation=8), digest("r1")))
"""A run by hand after r1."""
AT_WORK_AFTER_UNPLANNED = replace(
    WELL, runs=(replace(digest("r2", PastState.OPEN), generation=8), digest("r1", PastState.UNPLANNED))
)
"""A newer run fences r1."""
KNOWN = DagState(known=True)
REFUSED = Refusal(kind=RefusalKind.TOO_LARGE, topic="orders", partition=0, message="too large")
LEFT_OVER = replace(digest("r1", PastState.PARTIAL, REFUSED), undone_in_all=1)
SILENT = (Trouble(cluster="far", why="gone", since_ms=1),)
HINDERED = (Trouble(cluster="", why="no secret", since_ms=1),)
HELD = {"": Pause(topic="", who="ada", why="migration", since_ms=1)}


def dag_run(name: str, state: str, ended_s: int | None = None) -> DagState:
    ended = None if ended_s is None else datetime.fromtimestamp(BEGAN_MS / 1000 + ended_s, UTC)
    row = DagRunRow(run=name, state=state, queued=None, started=None, ended=ended, who="")
    return DagState(known=True, runs=(row,))


def mistyped(name: str, *others: DagRunRow) -> DagState:
    """Of a DAG whose newest run failed because of what it was asked for."""
    (its,) = dag_run(name, "failed", 1).runs
    return DagState(known=True, runs=(replace(its, asked_wrong=True), *others))


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def row(name: str, state: str, queued_s: int | None = None, ended_s: int | None = None) -> DagRunRow:
    """A run of Airflow's that was queued, and ended, so many seconds ago."""
    queued, ended = (None if ago is None else at(NOW_MS - ago * 1000) for ago in (queued_s, ended_s))
    return DagRunRow(run=name, state=state, queued=queued, started=queued, ended=ended, who="")


def lone(state: PastState, silent_s: int) -> Snapshot:
    """Of a flow whose only run, r1, was last heard of so many seconds ago."""
    return replace(WELL, runs=(replace(digest("r1", state), ended_ms=NOW_MS - silent_s * 1000),))


@pytest.mark.parametrize("records", [None, 7_000])
def test_a_run_that_stopped_at_its_limit_is_why_there_is_lag(records: int | None) -> None:
    budget = Budget(max_bytes=400_000_000, max_records=records, max_seconds=900)
    expected = Expected(limit=LIMIT, budget=budget)
    short = replace(digest("r1"), cut_short=True)
    within, beyond = behind(lag("orders", 0, 5, 1.0)), behind(lag("orders", 0, 5, 61.0))
    for seen, word in ((within, "healthy"), (beyond, "behind")):
        assert "ferry.run.max" not in standing(seen, KNOWN, expected, NOW_MS).why
        found = standing(replace(seen, runs=(short,)), KNOWN, expected, NOW_MS)
        assert found.word == word
        assert "400 MB (ferry.run.max.bytes)" in found.why
        assert ("ferry.run.max.records" in found.why) == (records is not None)
        assert "5 records of lag" in found.why
        assert "copied all" not in found.why


WORST: list[tuple[Snapshot, DagState, str, str]] = [
    (Snapshot(), KNOWN, "connecting", "first time"),
    (WELL, KNOWN, "healthy", "copied all"),
    (WELL, DagState(known=True, paused=True), "DAG paused", "unpaused"),
    (WELL, DagState(), "no DAG", "import errors"),
    (replace(WELL, runs=(), never_ran=True), DagState(), "no DAG", "import errors"),
    (replace(WELL, runs=(digest("r1", PastState.FAILED),)), DagState(), "failed", "copied nothing"),
    (replace(WELL, runs=(digest("r1", PastState.PARTIAL),)), DagState(), "no DAG", "import errors"),
    (behind(lag("orders", 0, 5, 61.0)), KNOWN, "behind", "1 of 1 partition is beyond"),
    (behind(lag("orders", 0, 5, 61.0)), KNOWN, "behind", "1 min 1 s old"),
    (behind(lag("orders", 0, 101, 1.0)), KNOWN, "behind", "orders-0 lacks 101 records"),
    (behind(lag("orders", 0, 5, None)), KNOWN, "behind", "of unknown age"),
    (
        replace(behind(lag("orders", 0, 5, 61.0)), pauses={"orders": HELD[""]}),
        KNOWN,
        "behind",
        "that are paused.",
    ),
    (replace(WELL, runs=(digest("r1", PastState.PARTIAL, REFUSED),)), KNOWN, "partial", "refused 1 of"),
    (replace(WELL, runs=(digest("r1", PastState.PARTIAL, REFUSED),)), KNOWN, "partial", "the rest is copied"),
    (replace(WELL, runs=(LEFT_OVER,)), KNOWN, "partial", "what else is unfinished"),
    (replace(WELL, runs=(digest("r1", PastState.PARTIAL),)), KNOWN, "partial", "refused nothing to copy"),
    (replace(WELL, runs=(digest("r1", PastState.FAILED),)), KNOWN, "failed", "copied nothing"),
    (lone(PastState.UNPLANNED, 901), KNOWN, "unfinished", "is not known"),
    (AT_WORK_AFTER_UNPLANNED, dag_run("r2", "running"), "failed", "r1 ended before its plan"),
    (lone(PastState.UNPLANNED, 899), KNOWN, "planning", "r1 is being planned"),
    (lone(PastState.UNPLANNED, 899), dag_run("r1", "failed"), "failed", "sealed"),
    (lone(PastState.UNPLANNED, 901), dag_run("r1", "running"), "running", "r1 is running"),
    (lone(PastState.UNPLANNED, 899), dag_run("r1", "success", 5), "planning", "r1 is being planned"),
    (replace(lone(PastState.UNPLANNED, 899), ledger_ms=NOW_MS), dag_run("r1", "success", 5), "failed", "sealed"),
    (lone(PastState.OPEN, 899), KNOWN, "running", "r1, of ferry__primary__backup, is under way"),
    (lone(PastState.OPEN, 901), KNOWN, "unfinished", "the next run"),
    (lone(PastState.OPEN, 899), dag_run("r1", "failed"), "failed", "before it had copied"),
    (lone(PastState.OPEN, 899), DagState(), "no DAG", "import errors"),
    (lone(PastState.OPEN, 901), dag_run("r1", "success", 5), "running", "under way"),  # its end was not read yet
    (replace(lone(PastState.OPEN, 901), ledger_ms=NOW_MS), dag_run("r1", "success", 5), "unfinished", "next run"),
    (WELL, dag_run("r2", "failed"), "failed", "r2 failed, and the ledger"),
    (WELL, dag_run("r2", "failed", 1), "failed", "r2 failed, and the ledger"),
    (WELL, dag_run("r2", "failed", -1), "healthy", "copied all"),  # a later run, started by hand
    (WELL, mistyped("r2"), "healthy", "copied all"),
    (WELL, mistyped("r3", *dag_run("r2", "failed", 1).runs), "failed", "r2 failed, and the ledger"),
    (replace(WELL, runs=(digest("r1", PastState.FAILED),)), mistyped("r2"), "failed", "copied nothing"),
    (lone(PastState.UNPLANNED, 901), mistyped("r1"), "failed", "r1 ended before its plan"),
    (replace(WELL, runs=(), never_ran=True), dag_run("r1", "failed", 1), "failed", "logs of its tasks"),
    (WELL, dag_run("r1", "failed"), "task failed", "r1 copied all"),
    (BY_HAND, dag_run("r1", "failed", 1), "healthy", "copied all"),
    (BY_HAND, dag_run("r1", "failed", 99), "healthy", "copied all"),
    (
        replace(WELL, runs=(digest("r1", PastState.OPEN),)),
        dag_run("r1", "failed"),
        "failed",
        "before it had copied",
    ),
    (replace(WELL, runs=(digest("r1", PastState.PARTIAL),)), dag_run("r1", "failed"), "partial", "unfinished"),
    (replace(WELL, runs=(digest("r1", PastState.FAILED),)), dag_run("r1", "failed"), "failed", "copied nothing"),
    (replace(WELL, runs=(), never_ran=True), KNOWN, "never ran", "Start a run"),
    (replace(WELL, hindrances=HINDERED), KNOWN, "not seen", "below is why"),
    (replace(WELL, hindrances=HINDERED, runs=()), KNOWN, "not seen", "below is why"),
    (replace(WELL, hindrances=HINDERED), dag_run("r2", "failed"), "failed", "r2 failed: the logs"),
    (replace(WELL, troubles=(*SILENT, *SILENT)), KNOWN, "unreachable", "Clusters far and far"),
    (replace(WELL, runs=()), KNOWN, "never ran", "Start a run"),  # but a backfill
    (WELL, dag_run("r2", "running"), "healthy", "copied all"),  # that it is at work is said next to it
    (replace(WELL, pauses=HELD), dag_run("r2", "running"), "paused", "ada: migration"),
    (
        replace(WELL, pauses=HELD, troubles=SILENT),
        KNOWN,
        "unreachable",
        "far does not answer",
    ),
]


@pytest.mark.parametrize(("seen", "dag", "word", "why"), WORST, ids=[f"{word}, {why}" for *_, word, why in WORST])
def test_the_worst_thing_counts(seen: Snapshot, dag: DagState, word: str, why: str, golden: Golden) -> None:
    found = standing(seen, dag, Expected(limit=LIMIT), NOW_MS)
    assert found.word == word
    assert why in found.why
    golden(found.why)
    assert (found.condition is Condition.GOOD) == (word == "healthy")


def after(state: PastState, open_run: bool = False) -> Snapshot:
    """Of a flow whose last run, r1, ended so; and then, maybe, r2 is in the ledger and has copied nothing yet."""
    now = replace(digest("r2", PastState.OPEN), generation=8, ended_ms=NOW_MS - 1_000)
    return replace(WELL, runs=(*((now,) if open_run else ()), digest("r1", state)))


FAR = behind(lag("orders", 0, 5, 7_200.0))


@pytest.mark.parametrize(
    ("seen", "dag", "word", "also"),
    [
        (after(PastState.SUCCESS), dag_run("r2", "running"), "healthy", ["running"]),  # nothing is wrong
        (after(PastState.SUCCESS), dag_run("r2", "queued"), "healthy", ["queued"]),
        (after(PastState.SUCCESS, True), KNOWN, "healthy", ["running"]),  # by hand
        (after(PastState.FAILED), dag_run("r2", "running"), "failed", ["running"]),
        (after(PastState.FAILED, True), dag_run("r2", "running"), "failed", ["running"]),
        (after(PastState.FAILED, True), KNOWN, "failed", ["running"]),  # by hand
        (after(PastState.PARTIAL, True), dag_run("r2", "queued"), "partial", ["queued"]),
        (after(PastState.UNPLANNED, True), dag_run("r2", "running"), "failed", ["running"]),
        (after(PastState.FAILED), dag_run("r1", "running"), "running", []),  # another attempt of the same run
        (replace(FAR, runs=after(PastState.FAILED).runs), dag_run("r2", "running"), "failed", ["running"]),
        (FAR, dag_run("r2", "running"), "behind", ["running"]),
        (replace(FAR, runs=(), never_ran=True), dag_run("r1", "running"), "behind", ["running"]),
        (replace(FAR, pauses=HELD), KNOWN, "behind", ["paused"]),
        (
            replace(after(PastState.FAILED), pauses=HELD),
            dag_run("r2", "running"),
            "failed",
            ["paused", "running"],
        ),
        (replace(WELL, pauses=HELD), dag_run("r2", "running"), "paused", ["running"]),
        (FAR, DagState(known=True, paused=True), "behind", ["DAG paused"]),
        (replace(WELL, runs=(), never_ran=True), DagState(known=True, paused=True), "never ran", ["DAG paused"]),
        (replace(WELL, hindrances=HINDERED), dag_run("r2", "running"), "not seen", ["running"]),
        (replace(WELL, troubles=SILENT), dag_run("r2", "running"), "unreachable", ["running"]),
        (WELL, DagState(known=True, runs=(row("r3", "running", 9), row("r2", "failed", 99))), "failed", ["running"]),
        (
            WELL,
            DagState(known=True, runs=(row("r2", "running", 9), row("r1", "failed", 99))),
            "task failed",
            ["running"],
        ),
        (WELL, KNOWN, "healthy", []),
    ],
)
def test_what_is_wrong_is_said_also_while_a_run_is_under_way_or_the_flow_is_paused(
    seen: Snapshot, dag: DagState, word: str, also: list[str]
) -> None:
    found = standing(seen, dag, Expected(limit=LIMIT), NOW_MS)
    assert (found.word, [one.word for one in found.also]) == (word, also)
    assert (found.condition in {Condition.BAD, Condition.WARN}) == (
        word not in {"running", "paused", "never ran", "healthy"}
    )


@pytest.mark.parametrize(
    ("seen", "word", "condition", "also"),
    [
        (WELL, "healthy", Condition.GOOD, []),
        (after(PastState.SUCCESS, True), "healthy", Condition.GOOD, ["running"]),
        (replace(WELL, pauses=HELD), "paused", Condition.HELD, []),
        (after(PastState.FAILED), "failed", Condition.BAD, []),
    ],
)
def test_what_is_old_is_neither_well_nor_at_work(
    seen: Snapshot, word: str, condition: Condition, also: list[str]
) -> None:
    hour_ago = NOW_MS - 3_600_000
    young = replace(seen, ledger_ms=NOW_MS - 299_000, lag_ms=NOW_MS - 299_000)
    found = standing(young, KNOWN, Expected(limit=LIMIT), NOW_MS)
    assert (found.word, found.condition, [one.word for one in found.also]) == (word, condition, also)
    for old in (replace(young, ledger_ms=hour_ago), replace(young, lag_ms=hour_ago)):
        found = standing(old, KNOWN, Expected(limit=LIMIT), NOW_MS)
        told = found if condition is not Condition.BAD else found.also[0]
        assert (told.word, told.condition) == ("stale", Condition.UNKNOWN)
        assert ("ledger of 1 h ago" in told.why, "lag of 1 h ago" in told.why) == (
            old.ledger_ms == hour_ago,
            old.lag_ms == hour_ago,
        )
        assert (found.word == word) == (condition is Condition.BAD)
        down = standing(replace(old, troubles=SILENT), KNOWN, Expected(limit=LIMIT), NOW_MS)
        assert (down.word, "stale" in [one.word for one in down.also]) == ("unreachable", False), (
            "its banner says since when"
        )


def test_the_last_run_is_the_last_that_ended_and_the_one_under_way_stands_beside_it() -> None:
    for dag in (KNOWN, dag_run("r2", "running")):
        seen = after(PastState.PARTIAL, True)
        last, now = ended_run(seen, dag, NOW_MS), open_run(seen, dag, NOW_MS)
        assert (last and last.run, now and now.run) == ("r1", "r2")
    silent = after(PastState.PARTIAL, True)
    assert open_run(silent, KNOWN, NOW_MS + 901_000) is None
    ended = ended_run(silent, KNOWN, NOW_MS + 901_000)
    assert ended is not None
    assert ended.run == silent.runs[0].run


SECONDS, RECORDS = RecoveryPoint(records=None, seconds=60), RecoveryPoint(records=100, seconds=None)


@pytest.mark.parametrize(
    ("lags", "limit"),
    [
        ([lag("t", 0, 40, 1.0), lag("t", 1, 101, 1.0), lag("u", 0, 100, 9.0)], LIMIT),
        ([lag("t", 0, 5, 61.0), lag("u", 0, 5, 99.0), lag("v", 0, 0)], LIMIT),
        ([lag("t", 0, 5, 10.0), lag("t", 1, None)], LIMIT),
        ([lag("t", 0, 5, 10.0), lag("t", 1, None)], SECONDS),
        ([lag("t", 0, 5, 61.0), lag("t", 1, None)], LIMIT),
        ([lag("t", 0, 5, 10.0), lag("t", 1, None)], RECORDS),
        ([lag("t", 0, 5, 10.0), lag("t", 1, 5, None)], SECONDS),
    ],
    ids=[
        "too many records of one of three",
        "too old are two of three",
        "one is unknown",
        "one is unknown, by seconds",
        "one is too old, one is unknown",
        "one is unknown, by records",
        "one has no age, by seconds",
    ],
)
def test_each_partition_is_held_against_the_recovery_point_as_alerts_do(
    lags: list[PartitionLag], limit: RecoveryPoint, golden: Golden
) -> None:
    found = standing(behind(*lags), KNOWN, Expected(limit=limit), NOW_MS)
    assert found.word == "behind"
    assert any(is_behind(one, max_records=limit.records, max_seconds=limit.seconds) for one in lags)
    golden(found.why)


@pytest.mark.parametrize(
    ("lags", "limit"),
    [
        ([lag("t", at, 40, 1.0) for at in range(27)], LIMIT),  # 1,080 in all, and the limit is of each
        ([lag("t", 0, 5, 10.0), lag("t", 1, 5, None)], RECORDS),  # its age does not matter
        ([lag("t", 0, 5_000, 9_000.0), lag("t", 1, None)], RecoveryPoint(records=None, seconds=None)),
    ],
)
def test_what_is_within_the_recovery_point_is_no_more_behind_than_alerts_say(
    lags: list[PartitionLag], limit: RecoveryPoint
) -> None:
    assert standing(behind(*lags), KNOWN, Expected(limit=limit), NOW_MS).word == "healthy"
    assert not any(is_behind(one, max_records=limit.records, max_seconds=limit.seconds) for one in lags)


@pytest.mark.parametrize(
    ("due_s", "dag", "word", "why"),
    [
        (-60, KNOWN, "healthy", "copied all"),
        (290, KNOWN, "healthy", "copied all"),
        (310, KNOWN, "overdue", "due 5 min 10 s ago"),
        (9_000, DagState(known=True, runs=(row("r1", "success", 9_000, 20),)), "healthy", "copied all"),
        (9_000, DagState(known=True, runs=(row("r1", "success", 9_000, 400),)), "overdue", "due 2 h 30 min ago"),
        (9_000, DagState(known=True, runs=(row("r1", "failed", 9_000, 400),)), "overdue", "scheduler"),
        (9_000, DagState(known=True, paused=True), "DAG paused", "unpaused"),
        (9_000, DagState(known=True, runs=(row("r2", "running", 9_000),)), "healthy", "copied all"),
        (9_000, DagState(), "no DAG", "import errors"),
        (9_000, DagState(known=True, hides_runs=True), "healthy", "copied all"),  # one may be in its way
    ],
)
def test_a_run_that_airflow_should_have_begun_long_ago_is_overdue(
    due_s: int, dag: DagState, word: str, why: str
) -> None:
    dag = replace(dag, due=at(NOW_MS - due_s * 1000))
    found = standing(WELL, dag, Expected(limit=LIMIT), NOW_MS)
    assert (found.word, is_overdue(dag, NOW_MS)) == (word, word == "overdue")
    assert why in found.why


@pytest.mark.parametrize(
    ("runs", "paused", "condition", "word", "why"),
    [
        ((row("r2", "queued"),), False, Condition.BUSY, "queued", "r2 is queued."),
        ((row("r2", "queued", 290),), False, Condition.BUSY, "queued", "r2 is queued."),
        ((row("r2", "queued", 310),), False, Condition.WARN, "queued", "queued for 5 min 10 s"),
        ((row("r2", "queued", 10),), True, Condition.HELD, "DAG paused", "r2 is queued, and"),
        ((row("r3", "queued", 310), row("r2", "running", 400)), False, Condition.BUSY, "running", "r2 is running."),
        ((row("r3", "queued", 9), row("r2", "queued", 400)), False, Condition.WARN, "queued", "r2 has been queued"),
        ((row("r2", "running", 400),), True, Condition.BUSY, "running", "no other task"),
    ],
)
def test_what_waits_says_what_it_waits_for(
    runs: tuple[DagRunRow, ...], paused: bool, condition: Condition, word: str, why: str
) -> None:
    state = standing(WELL, DagState(known=True, paused=paused, runs=runs), Expected(limit=LIMIT), NOW_MS)
    found = state.also[0] if condition is Condition.BUSY else state
    assert (found.condition, found.word) == (condition, word)
    assert why in found.why
    assert (state.word == "healthy") == (condition is Condition.BUSY)


@pytest.mark.parametrize(
    ("ended_s", "queued_s", "schedule", "intervals", "word"),
    [
        (4_000, 3_600, "*/20 * * * *", 3, "late"),
        (4_000, 3_590, "*/20 * * * *", 3, "running"),  # it may have begun after a pause
        (1_200, 4_000, "*/20 * * * *", 3, "running"),  # another one has succeeded since
        (4_000, 3_600, "*/20 * * * *", 0, "running"),  # nobody counts
        (4_000, 3_600, None, 3, "running"),
        (None, 3_600, "*/20 * * * *", 3, "running"),  # the first run may be long
    ],
)
def test_a_run_is_late_when_the_alert_says_so(
    ended_s: int | None, queued_s: int, schedule: str | None, intervals: int, word: str
) -> None:
    done = () if ended_s is None else (replace(digest("r1"), ended_ms=NOW_MS - ended_s * 1000),)
    expected = Expected(limit=LIMIT, schedule=schedule, late_intervals=intervals)
    dag = DagState(known=True, runs=(row("r2", "running", queued_s),))
    state = standing(replace(WELL, runs=done), dag, expected, NOW_MS)
    found = state.also[0] if state.also else state
    assert (found.word, found.condition) == (word, Condition.WARN if word == "late" else Condition.BUSY)
    assert state.word == ("healthy" if done and word == "running" else word)
    assert ("no run has succeeded for 3 intervals of */20 * * * *" in found.why) == (word == "late")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (number(None), "\u2013"),
        (number(1_234_567), "1\u202f234\u202f567"),
        (size(None), "\u2013"),
        (size(999), "999 B"),
        (size(1_000), "1 kB"),
        (size(12_345_678), "12.3 MB"),
        (size(123_456_789_000), "123 GB"),
        (duration(None), "\u2013"),
        (duration(0.0), "0 s"),
        (duration(0.04), "under 0.1 s"),
        (duration(9.94), "9.9 s"),
        (duration(125), "2 min 5 s"),
        (duration(3_600), "1 h"),
        (duration(90_061), "1 d 1 h"),
        (duration(86_461), "1 d"),
    ],
)
def test_figures_are_written_as_people_read_them(text: str, wanted: str) -> None:
    assert text == wanted

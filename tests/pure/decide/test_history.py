"""Past runs and whose receipt holds an offset."""

import csv
import io
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from ferry.cli.output import Form, print_answer
from ferry.commands.flow_status import FlowStatus
from ferry.commands.forms import past_runs_json, receipts_json
from ferry.commands.ledger import looked_up
from ferry.errors import Refused
from ferry.features.observe.rules.of_run import run_gauges
from ferry.features.observe.rules.samples import RECORD_RATE, SOURCE_RECORD_WRITE_RATE
from ferry.lane.ledger_cache import LedgerCache
from ferry.ledger.checkpoint_codec import checkpoint_record
from ferry.ledger.codec import deleted_record
from ferry.ledger.history import SILENT_MS, Forgotten, PastRun, PastState, holders, named_run, past_run, past_runs
from ferry.ledger.ledger import LedgerView, fold, fold_on
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.run_codec import Outcome, outcome_record, run_record
from ferry.ledger.runs import expired
from ferry.ledger.summary import rolled_up
from ferry.ledger.verified_codec import run_verified_record
from ferry.model import GroupOutcome, Left, Receipt, Record, RunVerified, Segment, VerifyMode, Why
from ferry.plan.rules.lag_start import standing_of
from ferry.plan.rules.skipping import refuse_while_at_work
from ferry.reader.run_sentences import not_done
from ferry_airflow.steps import Reported, complaint
from ferry_airflow.tables import report_lines
from tests.golden import Golden
from tests.pure.decide.test_unit_codec import ONE, UNIT
from tests.pure.decide.values import DELETED, LANE, PLAN, RECEIPT, lying, piece, place, redealt, refusal, run_of
from tests.pure.run.ledger_model import ModelLog, now
from tests.said import codes, data_of, facts_in

if TYPE_CHECKING:
    from ferry.kafka.produce.ledger_topic import LedgerTopic

OPENED = run_record(run_of("run-1"))  # at offset 0
PLANNED = plan_records(replace(PLAN, generation=0, slices=(piece(end=40),)))
COPIED = receipt_records(replace(RECEIPT, generation=0))
LONGER = plan_records(replace(PLAN, generation=0, slices=(piece(end=80),)))
REFUSED = plan_records(replace(PLAN, generation=0, slices=(), refusals=(refusal(),)))
ENDED = outcome_record(LANE, "run-1", Outcome())
NEWER = run_record(run_of("run-2"))


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([OPENED], PastState.UNPLANNED),
        ([OPENED, *PLANNED[:-1]], PastState.UNPLANNED),
        ([OPENED, *PLANNED], PastState.OPEN),
        ([OPENED, *PLANNED, ENDED], PastState.FAILED),
        ([OPENED, *PLANNED, NEWER], PastState.FAILED),  # nobody will go on with it
        ([OPENED, *PLANNED, *COPIED], PastState.SUCCESS),  # all is there, whoever recorded what
        ([OPENED, *PLANNED, *COPIED, ENDED], PastState.SUCCESS),
        ([OPENED, *REFUSED], PastState.FAILED),  # nothing to copy: nothing under way
        ([OPENED, *PLANNED, OPENED], PastState.UNPLANNED),  # opened again under its name
    ],
)
def test_how_a_run_ended(records: list[Record], state: PastState) -> None:
    past = [run for run in past_runs(fold(lying(*records), 99), LANE, 9) if run.opened.record.run == "run-1"]
    assert past[-1].state is state
    assert (past[-1].report is None) is (state is PastState.UNPLANNED)


@pytest.mark.parametrize(
    ("own", "state"), [((), PastState.FAILED), (COPIED, PastState.PARTIAL)], ids=["nothing", "a part"]
)
def test_a_run_is_judged_by_its_own_receipts_and_not_by_what_a_later_run_copied(
    own: tuple[Record, ...], state: PastState
) -> None:
    end = RECEIPT.end if own else RECEIPT.start
    records = [OPENED, *LONGER, *own, NEWER]
    rest = replace(RECEIPT, run="run-2", generation=len(records) - 1, start=end, end=80)
    past = past_runs(fold(lying(*records, *receipt_records(rest)), 99), LANE, 9)[0]
    assert past.report is not None
    assert (past.state, past.report.unfinished, past.report.done) == (state, (), 0)
    assert [piece.source for piece in past.report.later] == [RECEIPT.source]
    assert [one["kind"] for one in receipts_json([], [], past)["run"]["report"]["refusals"]] == ["unfinished"]
    assert [line.word for line in not_done(past.report)] == ["unfinished"]
    assert complaint(Reported(past.report, "run-2"), translates=False) is None, "a cleared run is green"


@pytest.mark.parametrize(
    ("own", "later", "state"),
    [
        ((), (9, 4), PastState.FAILED),
        ((9, 1), (9, 4), PastState.PARTIAL),
        ((9, 4), (12, 4), PastState.SUCCESS),
        ((9, 1), (9, 3), PastState.PARTIAL),
    ],
    ids=["nothing", "a part", "all", "a part, and not all by now"],
)
def test_repartitioned_records_are_judged_by_the_runs_own_receipts(
    own: tuple[int, ...], later: tuple[int, int], state: PastState
) -> None:
    mine = redealt(ONE, run="run-1", generation=0, ends=own) if own else None
    receipts = receipt_records(mine) if mine else ()
    records = [OPENED, *plan_records(replace(PLAN, generation=0, slices=(UNIT,))), *receipts, NEWER]
    rest = redealt(ONE, run="run-2", generation=len(records) - 1, starts=own or UNIT.starts, ends=later)
    past = past_runs(fold(lying(*records, *receipt_records(rest)), 99), LANE, 9)[0]
    assert past.report is not None
    is_over = later != (9, 3)
    assert past.state is state
    assert past.report.done == (state is PastState.SUCCESS)
    assert [one.target for one in past.report.later] == ([UNIT.target] if is_over and not past.report.done else [])
    assert len(past.report.unfinished) == (not is_over)
    missed = complaint(Reported(past.report, "run-2"), translates=False)
    assert (missed is None) == is_over, "a cleared run is green if nothing is missing"


def test_nothing_of_an_active_run_is_unfinished() -> None:
    (past,) = past_runs(fold(lying(OPENED, *PLANNED), 99), LANE, 1)
    assert past.state is PastState.OPEN
    assert past.report is not None
    assert [line.word for line in not_done(past.report)] == ["unfinished"], "it may have been killed"
    assert not_done(past.report, at_work=True) == []


@pytest.mark.parametrize(
    ("records", "heard_ms", "may_be_killed"),
    [
        ([OPENED], run_of("run-1").started_ms, True),
        ([OPENED, *PLANNED], run_of("run-1").started_ms, True),
        ([OPENED, *LONGER, *COPIED], RECEIPT.at_ms, True),  # a run may last for hours: its receipts show that it lives
        ([OPENED, *PLANNED, *COPIED], RECEIPT.at_ms, False),
        ([OPENED, *PLANNED, ENDED], run_of("run-1").started_ms, False),
    ],
)
def test_a_run_that_has_not_ended_is_silent_some_time_after_its_last_record(
    records: list[Record], heard_ms: int, may_be_killed: bool
) -> None:
    (past,) = past_runs(fold(lying(*records), 99), LANE, 1)
    assert (past.heard_ms, past.has_not_ended) == (heard_ms, may_be_killed)
    assert not past.is_silent(heard_ms + SILENT_MS)
    assert past.is_silent(heard_ms + SILENT_MS + 1) is may_be_killed
    state, since = past.state, heard_ms if may_be_killed else None
    assert FlowStatus(flow=PLAN.flow, lane=LANE, state=state, silent_since_ms=since).is_good is (
        state is PastState.SUCCESS
    )
    standing = standing_of(fold(lying(*records), 99), LANE, heard_ms + SILENT_MS)
    assert standing.under_way is may_be_killed
    assert not standing_of(fold(lying(*records), 99), LANE, heard_ms + SILENT_MS + 1).under_way


def copied_and_deleted(*kept: Receipt, end: int = 40) -> PastRun:
    """A run whose copy of one slice was deleted later; `kept` are its receipts of other slices."""
    slices = (piece(end=40), *(piece(one.source.topic, end=one.end) for one in kept))
    records = [OPENED, *plan_records(replace(PLAN, generation=0, slices=slices)), *COPIED]
    records += [record for one in kept for record in receipt_records(one)]
    deleted = deleted_record(LANE, replace(DELETED, ends={RECEIPT.target.partition: end}))
    gone = [Record(key=record.key, value=None) for record in COPIED]
    return past_runs(fold(lying(*records, ENDED, NEWER, deleted, *gone), 99), LANE, 9)[0]


CLICKS = replace(RECEIPT, generation=0, source=place("clicks"), target=place("a.clicks"))


@pytest.mark.parametrize(
    ("kept", "listed", "as_csv"),
    [
        ((), ["not known", "not known", "not known"], ["", "", "", "not known"]),
        ((CLICKS,), ["at least 40", "at least 4.0 kB", "at least 1.0"], ["40", "4000", "1.0", "at least"]),
    ],
    ids=["nothing is left", "another slice is left"],
)
def test_figures_of_a_run_whose_copy_was_deleted_are_not_said_to_be_all(
    kept: tuple[Receipt, ...],
    listed: list[str],
    as_csv: list[str],
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    past = copied_and_deleted(*kept)
    assert past.report is not None
    assert [piece.source for piece in past.report.uncounted] == [RECEIPT.source]
    looked_up.print_run(past)
    *_, run, uncounted = capsys.readouterr().out.splitlines()
    golden(run, "its line")
    golden(uncounted, "what is not counted")
    looked_up.print_runs([past])
    assert re.split("  +", capsys.readouterr().out.splitlines()[-1])[4:7] == listed
    print_answer(dict, lambda: looked_up.print_runs([past]), form=Form.CSV)
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert [row[name] for name in ("records", "bytes", "seconds", "figures are")] == as_csv
    assert receipts_json([], [], past)["run"]["report"]["uncounted"] == 1
    assert past_runs_json([past])["runs"][0]["uncounted"] == 1
    golden(report_lines(past.report)[-1], "in Airflow")
    rates = {metric for metric, _ in run_gauges(past.report)} & {RECORD_RATE, SOURCE_RECORD_WRITE_RATE}
    assert not rates, "a rate of what is left is none"


def test_a_run_that_had_copied_nothing_of_what_was_deleted_counts_as_it_did() -> None:
    past = copied_and_deleted(end=0)
    assert past.report is not None
    assert past.report.uncounted == ()


def test_a_run_whose_copy_was_deleted_since_is_not_said_to_have_copied_nothing() -> None:
    """The ledger keeps how far the copy had come; the receipts, and with them how many records, are forgotten."""
    gone = [Record(key=record.key, value=None) for record in COPIED]
    deleted = deleted_record(LANE, DELETED)
    view = fold(lying(OPENED, *PLANNED, *COPIED, ENDED, NEWER, deleted, *gone), 99)
    first = past_runs(view, LANE, 9)[0]
    assert first.report is not None
    assert (first.state, first.report.unfinished) == (PastState.SUCCESS, ())
    (note,) = first.report.notes
    assert (codes([note]), facts_in(note)["run"]) == (["topic.forgotten"], "run-2")
    short = deleted_record(LANE, replace(DELETED, ends={RECEIPT.target.partition: 30}))
    view = fold(lying(OPENED, *PLANNED, *COPIED, ENDED, NEWER, short, *gone), 99)
    assert past_runs(view, LANE, 9)[0].state is PastState.FAILED, "it had not come to the end of its slice"
    before = fold(lying(deleted, OPENED, *PLANNED, ENDED, NEWER), 99)
    assert past_runs(before, LANE, 9)[0].state is not PastState.SUCCESS, "an earlier copy of the name says nothing"


GROUP_FAILED = GroupOutcome(
    groups=0,
    offsets=0,
    unchanged=0,
    left=(Left(group="app", place=None, why=Why.FAILED, message="may not be read"),),
    inexact={},
)
DIFFERS = RunVerified(
    mode=VerifyMode.CONTENT,
    generation=0,
    equal=False,
    partitions=1,
    records=1,
    bytes=1,
    seconds=1.0,
    not_compared=("-",),
)


def test_a_run_that_was_let_go_is_known_by_its_receipts_and_not_as_one_that_copied_nothing() -> None:
    before = fold(lying(OPENED, *PLANNED, *COPIED, ENDED, NEWER), 99)
    (opened,) = [run for run in before.runs if run.record.run == "run-1"]
    third = plan_records(replace(PLAN, run="run-3", generation=99, slices=(piece(end=40),)))
    later = fold_on(before, lying(run_record(run_of("run-3")), *third, run_record(run_of("run-4")), first=99), 110)
    view = fold_on(later, lying(*expired(later, LANE, 1), first=110), 200)
    for found in (past_run(view, opened), named_run(view, LANE, "run-1")):
        assert isinstance(found, Forgotten)
        assert (found.run, len(found.receipts), found.records, found.bytes) == ("run-1", 1, 40, 4000)
    assert [run.opened.record.run for run in past_runs(view, LANE, 9)] == ["run-2", "run-3", "run-4"]
    assert named_run(view, LANE, "run-9") is None
    assert named_run(before, LANE, "run-1") == past_run(before, opened) != found


def opened_again() -> ModelLog:
    """A ledger whose run-1 copied, was let go, and is opened again under its name: it has no plan yet."""
    log = ModelLog()
    log.write(OPENED, *PLANNED, *COPIED, ENDED, NEWER)
    log.write(run_record(run_of("run-3")), *plan_records(replace(PLAN, run="run-3", generation=log.end)))
    log.write(run_record(run_of("run-4")))
    log.write(*expired(log.whole(), LANE, 1))
    log.write(run_record(run_of("run-1")))
    return log


@pytest.mark.parametrize("summarised", [False, True])
def test_receipts_of_a_run_that_was_opened_again_after_it_was_let_go_are_found_by_its_name(summarised: bool) -> None:
    log = opened_again()

    class Known(LedgerCache):
        async def view(self) -> LedgerView:
            return rolled_up(log.whole()) if summarised else log.whole()

    past = named_run(now(Known(cast("LedgerTopic", log)).view_named(LANE, "run-1")), LANE, "run-1")
    assert isinstance(past, PastRun)
    assert (past.state, past.report) == (PastState.UNPLANNED, None)
    assert past.earlier is not None
    assert (len(past.earlier.receipts), past.earlier.records) == (1, 40)
    other = named_run(log.whole(), LANE, "run-4")
    assert isinstance(other, PastRun)
    assert other.earlier is None


NOW_MS = 1_790_000_000_000


@pytest.mark.parametrize(
    ("age_s", "newer", "again"),
    [
        pytest.param(60, False, False, id="young"),
        pytest.param(901, False, False, id="old"),
        pytest.param(60, True, False, id="young, before another"),
        pytest.param(901, True, False, id="old, before another"),
        pytest.param(60, False, True, id="young, opened again"),
        pytest.param(901, False, True, id="old, opened again"),
        pytest.param(901, True, True, id="old, opened again, before another"),
    ],
)
def test_a_run_without_a_plan_is_said_to_have_ended_only_when_another_has_begun(
    age_s: int,
    newer: bool,
    again: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
) -> None:
    log = opened_again() if again else ModelLog()
    log.write(run_record(replace(run_of("run-1"), started_ms=NOW_MS - age_s * 1_000)))
    if newer:
        log.write(NEWER)
    view = log.whole()
    access: Any = SimpleNamespace(view_named=lambda lane, run: view)
    monkeypatch.setattr(looked_up, "wall_ms", lambda: NOW_MS)
    asked = looked_up.Asked(
        access=access, lane=LANE, form=Form.TABLE, run="run-1", topic=None, partition=None, last=None
    )
    assert asked.receipts() == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith("a.orders-0") for line in lines) == again
    golden("\n".join(lines))


def test_a_plan_that_a_view_was_not_given_is_not_taken_for_one_that_was_never_sealed() -> None:
    view = rolled_up(fold(lying(OPENED, *PLANNED), 99))
    with pytest.raises(LookupError):
        past_runs(view, LANE, 1)


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (checkpoint_record(LANE, "run-1", GROUP_FAILED), PastState.PARTIAL),
        (checkpoint_record(LANE, "run-1", replace(GROUP_FAILED, left=())), PastState.SUCCESS),
        (checkpoint_record(LANE, "run-2", GROUP_FAILED), PastState.SUCCESS),
        (run_verified_record(LANE, "run-1", DIFFERS), PastState.PARTIAL),
    ],
)
def test_a_run_is_remembered_as_it_was_reported_and_how_its_copy_ended_besides(
    record: Record, state: PastState
) -> None:
    (past,) = past_runs(fold(lying(OPENED, *PLANNED, *COPIED, ENDED, record), 99), LANE, 9)
    assert past.report is not None
    assert (past.state, past.report.state.value) == (state, state.value)
    assert past.copy_state is PastState.SUCCESS


def test_the_newest_runs_come_oldest_first() -> None:
    view = fold(lying(*(run_record(run_of(f"r{number}")) for number in range(5))), 99)
    assert [run.opened.record.run for run in past_runs(view, LANE, 2)] == ["r3", "r4"]


GAPPED = replace(
    RECEIPT,
    start=10,
    end=30,
    segments=(Segment(source_start=10, target_start=100, count=5), Segment(source_start=20, target_start=105, count=9)),
)


@pytest.mark.parametrize(
    ("offset", "target"), [(10, 100), (14, 104), (15, None), (19, None), (20, 105), (28, 113), (29, None)]
)
def test_an_offset_lies_in_a_segment_or_in_a_gap(offset: int, target: int | None) -> None:
    (holder,) = holders([GAPPED], offset)
    assert holder.target_offset == target
    assert (holder.segment is None) is (target is None)


@pytest.mark.parametrize("offset", [9, 30])
def test_nobody_holds_an_offset_beyond_the_receipts(offset: int) -> None:
    assert holders([GAPPED], offset) == []


@pytest.mark.parametrize("is_lost", [False, True], ids=["let it end", "give --interrupt"])
def test_a_failover_says_first_how_to_end_a_run_that_cannot_be_repeated(is_lost: bool, golden: Golden) -> None:
    with pytest.raises(Refused) as refused:
        refuse_while_at_work(fold(lying(OPENED, *PLANNED), 99), LANE, is_lost=is_lost)
    code, facts = data_of(refused.value)
    assert (code, facts["lane"]) == ("run.at-work", LANE)
    golden(refused.value)

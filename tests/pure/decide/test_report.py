"""A run is judged by what the ledger holds of it."""

import re
import time
from dataclasses import replace

import pytest

from ferry.commands.views import show_report
from ferry.errors import Refused
from ferry.ledger.report import (
    RunState,
    throttled_sentence,
    transform_notes,
    unfinished_sentence,
    without_groups,
)
from ferry.ledger.run_codec import Outcome
from ferry.ledger.run_report import report_of
from ferry.messages.catalogue import sentence
from ferry.model import NOT_THROTTLED, GroupOutcome, Left, Plan, Receipt, RefusalKind, ThrottleTime, Why, code_of
from ferry.reader.run_sentences import done_besides
from ferry_airflow.steps import Reported, complaint
from ferry_airflow.tables import report_lines
from tests.golden import Golden
from tests.pure.decide.values import PLAN, RECEIPT, piece, place, refusal
from tests.said import facts_in

WHOLE = replace(RECEIPT, end=100)
HALF = replace(RECEIPT, end=50)
ONE = replace(PLAN, slices=(piece("orders", 0, slot=0),))
TWO = replace(PLAN, slices=(piece("orders", 0, slot=0), piece("orders", 1, slot=1)))
REFUSED = replace(ONE, refusals=(refusal("users"),))


def ended(*refused: int, time_over: tuple[int, ...] = ()) -> Outcome:
    return Outcome(refusals=tuple(refusal("orders", number) for number in refused), time_over=frozenset(time_over))


@pytest.mark.parametrize(
    ("plan", "done", "outcome", "state", "unfinished", "left"),
    [
        (PLAN, [], None, RunState.SUCCESS, 0, 0),
        (ONE, [WHOLE], None, RunState.SUCCESS, 0, 0),
        (ONE, [WHOLE], ended(), RunState.SUCCESS, 0, 0),
        (ONE, [], None, RunState.FAILED, 1, 0),
        (ONE, [HALF], ended(), RunState.PARTIAL, 1, 0),
        (TWO, [WHOLE], ended(), RunState.PARTIAL, 1, 0),
        (TWO, [WHOLE], ended(1), RunState.PARTIAL, 0, 0),  # refused: named, not unfinished
        (TWO, [], ended(0, 1), RunState.FAILED, 0, 0),
        (REFUSED, [WHOLE], ended(), RunState.PARTIAL, 0, 0),
        (replace(REFUSED, slices=()), [], ended(), RunState.FAILED, 0, 0),  # all that it was for was refused
        (replace(REFUSED, slices=(), caught_up=1), [], ended(), RunState.PARTIAL, 0, 0),  # the others are up to date
        (replace(REFUSED, caught_up=1), [], ended(0), RunState.FAILED, 0, 0),  # what there was to copy was not
        (
            replace(REFUSED, slices=(), paused=("users",)),
            [],
            ended(),
            RunState.FAILED,
            0,
            0,
        ),  # a pause is not a success
        (replace(PLAN, paused=("users",)), [], ended(), RunState.SUCCESS, 0, 0),
        (TWO, [WHOLE], ended(time_over=(1,)), RunState.SUCCESS, 0, 1),  # the next run goes on there
        (TWO, [], ended(time_over=(1,)), RunState.FAILED, 1, 1),
        (TWO, [HALF], ended(time_over=(0, 1)), RunState.SUCCESS, 0, 2),
    ],
)
def test_the_state_of_a_run(
    plan: Plan, done: list[Receipt], outcome: Outcome | None, state: RunState, unfinished: int, left: int
) -> None:
    report = report_of(plan, 1_000, done, {receipt.source: receipt.end for receipt in done}, outcome)
    assert (report.state, len(report.unfinished), len(report.left)) == (state, unfinished, left)


def test_what_a_later_run_copied_is_not_missing() -> None:
    assert report_of(ONE, 1_000, [HALF], {place("orders"): 170}, ended()).state is RunState.SUCCESS
    assert report_of(REFUSED, 1_000, [], {place("orders"): 170}, ended()).state is RunState.PARTIAL


def test_a_slot_that_failed_is_not_held_against_what_another_attempt_copied() -> None:
    failed = replace(refusal("orders"), kind=RefusalKind.SLOT_FAILED)
    told = Outcome(refusals=(failed, replace(refusal("orders", 1), kind=RefusalKind.TOO_LARGE)), time_over=frozenset())
    copied = report_of(TWO, 1_000, [WHOLE], {place("orders"): 100, place("orders", 1): 100}, told)
    assert copied.refusals == told.refusals[1:], "what was refused for good stays"
    assert report_of(TWO, 1_000, [HALF], {place("orders"): 50}, told).refusals == told.refusals


def test_refusals_of_the_plan_and_of_the_copy_are_told_together() -> None:
    report = report_of(REFUSED, 1_000, [], {}, ended(0))
    assert report.refusals == (refusal("users"), refusal("orders"))


def test_a_report_adds_its_receipts_up_in_the_order_of_partitions_and_offsets() -> None:
    later = replace(RECEIPT, start=40, end=100, records=7, bytes=70, at_ms=9_500)
    report = report_of(ONE, 1_000, [later, RECEIPT], {place("orders"): 100}, None)
    assert report.receipts == (RECEIPT, later)
    assert (report.records, report.bytes, report.seconds) == (47, 4070, 8.5)


def test_a_run_without_receipts_took_no_time() -> None:
    assert report_of(ONE, 1_000, [], {}, None).seconds == 0


def test_groups_that_could_not_be_processed_have_the_code_of_the_reason() -> None:
    why = sentence("acls.unread", cluster="b", why="grant DESCRIBE")
    report = without_groups(report_of(ONE, 1_000, [], {}, None), Refused(why))
    assert report.groups is not None
    (left,) = report.groups.left
    assert (left.why, code_of(left.message)) == (Why.FAILED, "groups.none-translated")
    assert facts_in(left.message) == {"why": why, "of": why.code, "cluster": "b"}


def test_who_held_the_tasks_back_is_added_up(golden: Golden) -> None:
    first = replace(WHOLE, throttled=ThrottleTime(ferry=1_200, target=300))
    report = report_of(ONE, 1_000, [first, replace(HALF, throttled=ThrottleTime(ferry=500, source=40))], {}, None)
    assert report.throttled == ThrottleTime(ferry=1_700, source=40, target=300)
    golden(throttled_sentence(report.throttled))
    assert throttled_sentence(NOT_THROTTLED) is None


def test_offsets_that_are_missing_are_noted_where_the_topic_shows_no_compaction(golden: Golden) -> None:
    holed = replace(WHOLE, records=60, missing=40)
    plan = replace(ONE, notes=("a note of the plan",))
    (first, said) = report_of(
        plan, 1_000, [replace(holed, end=50, missing=4), replace(holed, start=50)], {}, None
    ).notes
    assert first == "a note of the plan"
    golden(said)
    compacted = replace(plan, slices=(replace(piece(), compacted=True),))
    report = report_of(compacted, 1_000, [holed], {}, None)
    assert (report.missing, report.notes) == (40, plan.notes)
    for none in (0, None):  # None: an earlier Ferry did not count
        report = report_of(plan, 1_000, [replace(WHOLE, missing=none)], {}, None)
        assert (report.missing, report.notes) == (0, plan.notes)


@pytest.mark.slow
def test_the_report_of_very_many_slices_takes_no_longer_for_each() -> None:
    many = replace(PLAN, slices=tuple(piece("orders", number) for number in range(30_000)))
    ends = {place("orders", number): 100 for number in range(0, 30_000, 2)}
    began = time.process_time()
    report = report_of(many, 1_000, [], ends, ended())
    assert time.process_time() - began < 5, "a set of all of them for each of them would take a minute"
    assert (report.done, len(report.unfinished)) == (15_000, 15_000)


def test_transforms_are_told_by_what_receipts_have(golden: Golden) -> None:
    masked = replace(RECEIPT, transform="masked", start=0, end=100, records=90, dead_letters=1)
    more = replace(masked, start=100, end=110, records=10, dead_letters=0)
    few = replace(masked, transform="few", records=0, dead_letters=0)
    told = transform_notes([masked, few, more, RECEIPT])
    numbers = [re.findall(r"\d+", one) for one in told]
    assert numbers == [["100", "0", "0", "100"], ["110", "100", "1", "9"]]
    golden("\n".join(told))


def test_a_complaint_names_where_the_rest_is_and_counts_only_groups_that_failed(golden: Golden) -> None:
    many = report_of(replace(ONE, refusals=tuple(refusal(f"t{at}") for at in range(25))), 1_000, [], {}, ended())
    said = complaint(Reported(many), translates=True)
    assert said is not None
    golden(said, "25 refused, and one unfinished")
    assert ("above" in said, "group" in said) == (False, False), "what became of groups is not known"
    left = Left(group="billing", place=None, why=Why.FAILED, message="no coordinator")
    groups = GroupOutcome(groups=0, offsets=0, unchanged=0, left=(left,), inexact={})
    assert "1 group failed as well" in (complaint(Reported(replace(many, groups=groups)), translates=True) or "")
    whole = report_of(ONE, 1_000, [WHOLE], {place("orders"): 100}, ended())
    said = complaint(Reported(whole), translates=True)
    assert said is not None
    assert "1 not translated" not in said
    assert complaint(Reported(whole), translates=False) is None


def test_what_copies_the_rest_is_this_run_until_another_one_has_the_lane() -> None:
    report = report_of(ONE, 1_000, [HALF], {place("orders"): 50}, ended())
    (piece_left,) = report.unfinished
    assert f"--resume {ONE.run}" in unfinished_sentence(report, piece_left)
    assert not report.notes
    taken = replace(report, superseded="newer")
    said = [*taken.notes, unfinished_sentence(taken, piece_left)]
    assert len(said) == 2
    assert all("run newer" in sentence and "--resume" not in sentence for sentence in said)


@pytest.mark.parametrize(
    ("paused", "is_whole"), [(("orders", "users"), True), (("orders",), False)], ids=["the flow", "a topic"]
)
def test_a_run_that_a_pause_kept_from_copying_is_not_taken_for_an_idle_one(
    paused: tuple[str, ...], is_whole: bool, golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    report = report_of(replace(PLAN, slices=(), paused=paused, flow_paused=is_whole), 0, [], {}, None)
    assert report.state is RunState.SUCCESS
    show_report(report)
    shown = capsys.readouterr().out.strip()
    golden(shown, "in a terminal")
    assert ("flow was paused" in shown.splitlines()[-1]) is is_whole
    told = [line for line in report_lines(report) if line.startswith("paused: ")]
    assert len(told) == 1
    assert told[0] in shown
    assert [line.word for line in done_besides(report)] == ["paused"]
    missed = complaint(Reported(replace(report, groups=None)), translates=True)
    assert (missed is None) is is_whole, "no run of a paused flow moves groups"

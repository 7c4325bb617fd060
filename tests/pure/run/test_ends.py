"""What the ends of slots mean for a whole attempt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from ferry.commands.copying import report_of_ends
from ferry.copy.slot_end import SlotEnd, failure_of, joined, refusals_of
from ferry.copy.task import SlotTask
from ferry.errors import BadInput, Corrupt, FerryError, Refused, Retryable, Superseded, Unreachable
from ferry.ledger.report import RunState
from ferry.model import Attempt, Origin, Receipt, Refusal, RefusalKind, TopicPartition
from ferry.protocol.slot import SlotProgress
from ferry.run import local, worker
from ferry.run.micro_run import MicroRuns
from ferry.run.spark import stage
from tests.golden import Golden
from tests.pure.decide.test_deal import receipt as unit_receipt
from tests.pure.decide.values import PLAN, RECEIPT, dealt_slice, piece, redealt, refusal

TWO = replace(PLAN, slices=(piece("orders", 0), piece("orders", 1), piece("users", 0, slot=1)), slots=2)
DONE = replace(RECEIPT, end=100)


def gave_up(slot: int, failure: FerryError | None = None, *receipts: Receipt) -> SlotEnd:
    return SlotEnd(slot=slot, receipts=receipts, failure=failure or Retryable("no luck"))


def test_a_slot_that_gave_up_is_held_against_the_slices_that_it_did_not_finish() -> None:
    refused = replace(refusal("orders", 1), kind=RefusalKind.TOO_LARGE)
    half = replace(gave_up(0, None, DONE), refusals=(refused,))
    found = [(item.topic, item.partition, item.kind) for item in refusals_of(TWO, [half, gave_up(1)])]
    assert found == [("orders", 1, RefusalKind.TOO_LARGE), ("users", 0, RefusalKind.SLOT_FAILED)]
    assert refusals_of(TWO, [SlotEnd(slot=1)]) == []


def test_units_of_several_topics_are_told_apart(golden: Golden) -> None:
    first = dealt_slice(
        topic="orders",
        target=TopicPartition("x", 0),
        starts=(0,),
        ends=(9,),
        slot=0,
        since=1,
        partitions=1,
        digest="",
    )
    second = replace(first, target=TopicPartition("y", 0), source=TopicPartition("orders", 1))
    done = redealt(unit_receipt(0, (9,)), topic="orders", target=second.target, generation=PLAN.generation)
    plan = replace(PLAN, slices=(first, second))
    (left,) = refusals_of(plan, [SlotEnd(slot=0, receipts=(done,), failure=Retryable("no luck"))])
    golden(left.message)
    refused = replace(refusal("orders", second.source.partition or 0), message="y is full")
    (found,) = refusals_of(plan, [SlotEnd(slot=0, receipts=(replace(done, target=first.target),), refusals=(refused,))])
    assert found == refused, "what stands against the other topic's partition is not taken for done"


def test_two_tries_are_one_end() -> None:
    end = joined(gave_up(0, None, RECEIPT), SlotEnd(slot=0, receipts=(DONE,), retries=2))
    assert (end.receipts, end.retries, end.failure) == ((RECEIPT, DONE), 2, None)


LEFT_PLACE = TopicPartition(topic="orders", partition=1)
LEFT = replace(refusal("orders", 1), message="left out in the first try")


@pytest.mark.parametrize(
    ("after", "known"),
    [
        (gave_up(0), [LEFT]),
        (SlotEnd(slot=0, stopped=True), [LEFT]),
        (SlotEnd(slot=0, time_over=True), [LEFT]),
        (replace(gave_up(0), refusals=(refusal("orders", 1),)), [refusal("orders", 1)]),
        (SlotEnd(slot=0), []),
    ],
)
def test_what_a_try_refused_stands_until_another_one_has_come_to_its_end(after: SlotEnd, known: list[Refusal]) -> None:
    end = joined(replace(gave_up(0), refusals=(LEFT,)), after)
    assert list(end.refusals) == known


def test_a_slice_that_a_later_try_finished_is_refused_no_more() -> None:
    other = replace(DONE, source=LEFT_PLACE, target=TopicPartition("a.orders", 1))
    end = joined(replace(gave_up(0), refusals=(LEFT,)), gave_up(0, None, other))
    assert [(item.partition, item.kind) for item in refusals_of(TWO, [end])] == [(0, RefusalKind.SLOT_FAILED)]


def test_what_slots_tell_is_a_report_when_the_ledger_cannot_be_read() -> None:
    gone = Unreachable("cluster b does not answer")
    half = SlotEnd(slot=0, receipts=(RECEIPT, replace(RECEIPT, start=40, end=100)), failure=gone)
    report = report_of_ends(TWO, 1_500, [half, SlotEnd(slot=1, stopped=True)])
    assert (report.state, report.records, report.seconds) == (RunState.PARTIAL, 80, 0.5)
    assert [(refusal.topic, refusal.partition, refusal.kind) for refusal in report.refusals] == [
        ("orders", 1, RefusalKind.SLOT_FAILED)
    ]
    assert [piece.source.topic for piece in report.unfinished] == ["users"]
    late = [SlotEnd(slot=0, receipts=(DONE,), time_over=True), SlotEnd(slot=1, time_over=True)]
    assert [piece.source.topic for piece in report_of_ends(TWO, 1_500, late).left] == ["orders", "users"]
    assert report_of_ends(TWO, 1_500, [gave_up(0, gone), gave_up(1, gone)]).state is RunState.FAILED


@pytest.mark.parametrize(
    ("failures", "kind"),
    [
        ([], None),
        ([None, None], None),
        ([None, Retryable("x")], Retryable),
        ([Unreachable("x"), Unreachable("x")], Unreachable),
        ([Unreachable("x"), Retryable("x")], Retryable),
        ([Refused("x"), Retryable("x")], Retryable),
        ([Refused("x"), Refused("x")], Refused),
        ([Refused("x"), Corrupt("x"), BadInput("x")], Refused),
        ([Refused("x"), Superseded("x")], Superseded),
    ],
)
def test_what_slots_that_gave_up_mean_for_the_attempt(
    failures: list[FerryError | None], kind: type[FerryError] | None
) -> None:
    found = failure_of(TWO, [SlotEnd(slot=number, failure=failure) for number, failure in enumerate(failures)])
    assert (None if found is None else type(found)) is kind


ONE = replace(TWO, slices=(piece("orders", 0),), slots=1)
ATTEMPT = Attempt(run="r", generation=1, number=2, started_ms=0, origin=Origin())


class Specs:
    """As much of MicroRuns as a crew asks for."""

    def slot_task(self, *_: object) -> SlotTask:
        return cast("SlotTask", SimpleNamespace(ref=SimpleNamespace(slot=0, run="r", generation=1)))


@pytest.mark.parametrize(
    ("failures", "calls", "kind"),
    [
        ([Retryable("fenced")], 2, None),
        ([Retryable("fenced"), Retryable("again")], 2, Retryable),
        ([Refused("not allowed")], 1, Refused),
        ([Superseded("too late")], 1, Superseded),
    ],
)
def test_a_slot_that_gave_up_is_tried_once_more_when_that_may_help(
    monkeypatch: pytest.MonkeyPatch, failures: list[FerryError], calls: int, kind: type[FerryError] | None
) -> None:
    called = []

    def run_slot(spec: object, stop: object, committed: object, result: SlotProgress) -> None:
        called.append(1)
        if len(called) <= len(failures):
            result.refusals[LEFT_PLACE] = LEFT
            raise failures[len(called) - 1]
        result.receipts.append(DONE)

    monkeypatch.setattr(worker, "run_slot", run_slot)
    (end,) = local.copy_all(cast("MicroRuns", Specs()), ONE, ATTEMPT)
    assert len(called) == calls
    assert (None if end.failure is None else type(end.failure)) is kind
    assert end.refusals == (() if kind is None else (LEFT,)), "what it knew goes along when it gives up"


def test_a_copy_that_is_logged_shows_what_it_has_committed_and_passes_it_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run_slot(spec: object, stop: object, committed: Callable[..., None], result: SlotProgress) -> None:
        result.receipts.append(DONE)
        committed([DONE])

    monkeypatch.setattr(worker, "run_slot", run_slot)
    heard: list[Receipt] = []
    with caplog.at_level(logging.INFO):
        (end,) = local.copy_logged(cast("MicroRuns", Specs()), ONE, ATTEMPT, progress=heard.extend)
    assert (end.receipts, heard) == ((DONE,), [DONE])
    *_, last = [record.getMessage() for record in caplog.records if record.name == "ferry.run.following"]
    assert ONE.run in last
    assert f"{DONE.records} records" in last


def test_a_spark_task_that_gives_up_tells_what_it_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_slot(spec: object, stop: object, committed: object, result: SlotProgress, port_of: object) -> None:
        result.receipts.append(DONE)
        result.refusals[LEFT_PLACE] = LEFT
        raise Unreachable("no answer")

    monkeypatch.setattr(stage, "run_slot", run_slot)
    asked = pa.RecordBatch.from_pydict({"slot": pa.array([0], pa.int32())})
    (answer,) = stage.run_named_slots({0: Specs().slot_task()}, [asked])
    (end,) = stage.parse_rows((row["slot"], row["kind"], row["body"]) for row in answer.to_pylist())
    assert (end.receipts, end.refusals, type(end.failure)) == ((DONE,), (LEFT,), Unreachable)

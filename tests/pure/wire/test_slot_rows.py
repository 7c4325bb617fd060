"""What slots answer in rows, through Spark, is what became of them; and what several tries of a slot come to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copy.slot_end import SlotEnd, failure_of, joined, refusals_of
from ferry.copy.task import SlotTask
from ferry.errors import FerryError, OutcomeUnknown, Refused, Retryable, Superseded, Unreachable
from ferry.features.sink.acts.ids import SlotSpec
from ferry.features.sink.spark import stage as sink_stage
from ferry.messages.catalogue import sentence
from ferry.model import RefusalKind
from ferry.protocol.slot import SlotProgress
from ferry.run.spark import stage
from ferry.run.spark.columns import nullable_binaries
from tests.pure.decide.test_unit_codec import ONE
from tests.pure.decide.values import PLAN, RECEIPT, piece, refusal
from tests.said import data_of, facts_in

SPEC = cast("SlotTask", SimpleNamespace(ref=SimpleNamespace(slot=3)))
NEWER = sentence("superseded.slot", run="r1", newer="r2", flow="a->b", lane="live")
FAILURES = [
    None,
    Refused("no"),
    Retryable("later"),
    Superseded("by another"),
    Superseded(NEWER),
    Unreachable("no answer"),
    OutcomeUnknown("?"),
]


@pytest.mark.parametrize("failure", FAILURES)
def test_the_end_of_a_slot_comes_back_as_it_was_told(failure: FerryError | None) -> None:
    end = SlotEnd(
        slot=3,
        receipts=(RECEIPT, replace(RECEIPT, start=50, end=60), ONE),
        refusals=(refusal("orders", 1),),
        retries=2,
        time_over=True,
        failure=failure,
    )
    other = SlotEnd(slot=1)
    (first, second) = stage.parse_rows([*stage.answer_rows(end), *stage.answer_rows(other)])
    assert (first, second) == (other, end)
    assert first.failure is None
    assert (type(second.failure), str(second.failure)) == (type(failure), str(failure))
    if failure is not None and second.failure is not None:
        assert data_of(second.failure) == data_of(failure)


@pytest.mark.parametrize("failure", [Superseded(NEWER), Retryable("later")])
def test_a_slot_of_a_delivery_answers_with_the_code_of_its_error(
    failure: FerryError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: object, batches: Iterable[object]) -> None:
        assert list(batches)
        raise failure

    monkeypatch.setattr(sink_stage, "write_slot", failing)
    monkeypatch.setattr(sink_stage, "with_narrow_edges", lambda batch: batch)
    monkeypatch.setattr(sink_stage, "COLUMNS", ["slot"])
    asked = pa.RecordBatch.from_pydict({"slot": pa.array([3], pa.int32())})
    (answer,) = sink_stage.delivered({3: cast("SlotSpec", None)}, [asked])
    (row,) = answer.to_pylist()
    back = stage.parse_error(json.loads(row["failure"]))
    assert (row["slot"], row["receipts"], type(back), str(back)) == (3, "[]", type(failure), str(failure))
    assert data_of(back) == data_of(failure)


def test_a_slot_that_was_stopped_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: SlotTask, __: object, ___: object, result: SlotProgress, ____: object) -> None:
        result.stopped = True

    monkeypatch.setattr(stage, "run_slot", stopped)
    assert isinstance(stage.run_slot_in_spark(SPEC).failure, Retryable)
    monkeypatch.setattr(stage, "run_slot", lambda *_: None)
    assert stage.run_slot_in_spark(SPEC).failure is None


def test_what_a_try_refused_stays_when_the_next_one_does_not_come_that_far() -> None:
    refused = (replace(refusal("orders", 0), kind=RefusalKind.TOO_LARGE),)
    before = SlotEnd(slot=0, receipts=(RECEIPT,), refusals=refused, retries=1, failure=Retryable("later"))
    for after, left in [
        (SlotEnd(slot=0, failure=Retryable("again")), refused),
        (SlotEnd(slot=0, time_over=True), refused),
        (SlotEnd(slot=0, stopped=True), refused),
        (SlotEnd(slot=0), ()),
    ]:
        found = joined(before, after)
        assert (found.receipts, found.refusals, found.retries) == ((RECEIPT,), left, 1)


def test_slices_that_a_slot_gave_up_are_named_but_for_what_was_copied() -> None:
    plan = replace(PLAN, slices=(piece("orders", 0), piece("orders", 1)))
    done = replace(RECEIPT, source=plan.slices[0].source, end=plan.slices[0].end)
    almost = replace(done, end=done.end - 1)
    for receipt, named in [(done, [1]), (almost, [0, 1])]:
        found = refusals_of(plan, [SlotEnd(slot=0, receipts=(receipt,), failure=Retryable("later"))])
        assert [(one.partition, one.kind) for one in found] == [(at, RefusalKind.SLOT_FAILED) for at in named]


def test_what_failed_a_slot_is_a_fact_of_its_slices_and_of_the_attempt() -> None:
    plan = replace(PLAN, slices=(piece("orders", 1),))
    end = SlotEnd(slot=0, failure=Superseded(NEWER))
    (refusal,) = refusals_of(plan, [end])
    assert (refusal.code, refusal.kind, refusal.topic, refusal.partition) == (
        "slot.failed",
        RefusalKind.SLOT_FAILED,
        "orders",
        1,
    )
    facts = dict(refusal.facts)
    assert facts == {**facts_in(NEWER), "of": NEWER.code, "piece": plan.slices[0].name, "why": str(NEWER)}
    (plain,) = refusals_of(plan, [replace(end, failure=Retryable("later"))])
    assert dict(plain.facts) == {"piece": plan.slices[0].name, "why": "later"}


def test_an_attempt_that_failed_has_the_facts_of_its_first_failure() -> None:
    refused = Refused(sentence("acls.no-authorizer", cluster="b"))
    ends = [SlotEnd(slot=0, failure=refused), SlotEnd(slot=1), SlotEnd(slot=2, failure=Retryable("later"))]
    failure = failure_of(PLAN, ends)
    assert isinstance(failure, Retryable)
    assert data_of(failure) == (
        "run.tasks-failed",
        {
            "run": PLAN.run,
            "flow": str(PLAN.flow),
            "failed": 2,
            "tasks": 3,
            "why": str(refused),
            "of": "acls.no-authorizer",
            "cluster": "b",
        },
    )
    assert failure_of(PLAN, [SlotEnd(slot=0)]) is None


@given(st.lists(st.none() | st.binary(max_size=3), max_size=20))
def test_a_null_in_a_column_for_spark_stays_one(values: list[bytes | None]) -> None:
    assert nullable_binaries(values, pa.binary()).to_pylist() == values

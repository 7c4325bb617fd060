"""What the ends of slots mean for a whole attempt."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from ferry.errors import BadInput, Corrupt, FerryError, Refused, Retryable, Superseded, Unreachable
from ferry.model import Attempt, Origin, Receipt, RefusalKind
from ferry.run import local
from ferry.run.ends import SlotEnd, failure_of, joined, refusals_of
from ferry.run.micro_run import MicroRuns
from ferry.run.slot import SlotResult
from ferry.run.task import TaskSpec
from tests.decide.values import PLAN, RECEIPT, piece, refusal

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


def test_two_tries_are_one_end() -> None:
    end = joined(gave_up(0, None, RECEIPT), SlotEnd(slot=0, receipts=(DONE,), retries=2))
    assert (end.receipts, end.retries, end.failure) == ((RECEIPT, DONE), 2, None)


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

    def task_spec(self, *_: object) -> TaskSpec:
        return cast("TaskSpec", SimpleNamespace(ref=SimpleNamespace(slot=0, run="r")))


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

    def run_slot(*_: object) -> SlotResult:
        called.append(1)
        if len(called) <= len(failures):
            raise failures[len(called) - 1]
        return SlotResult(receipts=[DONE])

    monkeypatch.setattr(local, "run_slot", run_slot)
    (end,) = local.copy_all(cast("MicroRuns", Specs()), ONE, ATTEMPT)
    assert len(called) == calls
    assert (None if end.failure is None else type(end.failure)) is kind

"""Past runs and whose receipt holds an offset."""

from dataclasses import replace

import pytest

from ferry.decide.ledger.history import PastState, holders, past_runs
from ferry.decide.ledger.ledger import fold
from ferry.decide.ledger.plan_codec import plan_records
from ferry.decide.ledger.receipt_codec import receipt_records
from ferry.decide.ledger.run_codec import outcome_record, run_record
from ferry.model import Record, Segment
from tests.decide.values import LANE, PLAN, RECEIPT, lying, piece, refusal, run_of

OPENED = run_record(run_of("run-1"))  # at offset 0
PLANNED = plan_records(replace(PLAN, generation=0, slices=(piece(end=40),)))
COPIED = receipt_records(replace(RECEIPT, generation=0))
REFUSED = plan_records(replace(PLAN, generation=0, slices=(), refusals=(refusal(),)))
ENDED = outcome_record(LANE, "run-1", [], [])
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

"""What a plan that fences nobody takes for somebody else's: not what a run at work has just written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.decide.ledger.ledger import fold
from ferry.decide.ledger.receipt_codec import receipt_records
from ferry.model import Fate, Receipt
from ferry.run.others.foreign import without_own
from tests.decide.values import FACTS, LANE, RECEIPT, lying

# The facts know the lane up to target offset 40; records at 41 and behind were found there afterwards.
FOUND = replace(FACTS, receipts={RECEIPT.target: RECEIPT}, foreign={RECEIPT.target: 41})
NEXT = replace(RECEIPT, start=40, end=60, target_next=61)


@pytest.mark.parametrize(
    ("receipts", "fate", "foreign"),
    [
        ([RECEIPT], Fate.COMMITTED, True),
        ([RECEIPT, NEXT], Fate.COMMITTED, False),
        ([NEXT], Fate.OPEN, False),  # its data's marker came before the ledger's
        ([NEXT], Fate.ABORTED, True),
        ([replace(NEXT, lane="other")], Fate.OPEN, True),
    ],
)
def test_what_the_lane_wrote_meanwhile_is_its_own(receipts: list[Receipt], fate: Fate, foreign: bool) -> None:
    records = [(record, fate) for receipt in receipts for record in receipt_records(receipt)]
    view = fold(lying(*records), 99)
    assert bool(without_own(FOUND, LANE, view).foreign) is foreign

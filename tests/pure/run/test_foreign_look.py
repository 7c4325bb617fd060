"""What a plan that fences nobody takes for somebody else's: not what a run at work has just written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.ledger.ledger import fold
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.run_codec import Outcome, outcome_record, run_record
from ferry.model import Fate, Origin, Receipt, Record, RunRecord
from ferry.model.observed import OpenTransaction
from ferry.plan.others.foreign_records import without_own
from tests.pure.decide.values import FACTS, FLOW, LANE, RECEIPT, facts_with, lying, target

# The facts know the lane up to target offset 40; records at 41 and behind were found there afterwards.
FOUND = facts_with(FACTS, lane={"receipts": {RECEIPT.target: RECEIPT}}, others={"foreign": {RECEIPT.target: 41}})
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
    assert bool(without_own(FOUND, LANE, view).others.foreign) is foreign


def test_receipts_of_a_copy_that_was_created_again_since_make_nothing_in_it_the_lanes_own() -> None:
    last = replace(RECEIPT, target_topic_id="id-old")
    topic = target(last.target.topic, 7, topic_id="id-new")
    facts = facts_with(
        FOUND,
        target={"topics": {**FOUND.target.topics, topic.name: topic}},
        lane={"receipts": {last.target: last}},
        others={"foreign": {last.target: 2}},
    )
    before = [(record, Fate.COMMITTED) for record in receipt_records(last)]
    assert without_own(facts, LANE, fold(lying(*before), 99)).others.foreign
    after = [(record, Fate.COMMITTED) for record in receipt_records(replace(NEXT, target_topic_id="id-new"))]
    assert not without_own(facts, LANE, fold(lying(*before, *after), 99)).others.foreign


OTHERS = OpenTransaction(producer_id=7, start=41, last_ms=5, transactional_id="billing")
UNTOLD = replace(OTHERS, transactional_id="")
ENDED = replace(UNTOLD, producer_id=-1)
RUN_RECORD = run_record(
    RunRecord(flow=FLOW, lane=LANE, run="run-2", slots=1, config_digest="", started_ms=0, origin=Origin())
)
OUTCOME = outcome_record(LANE, "run-2", Outcome())


@pytest.mark.parametrize(
    ("transaction", "ledger", "foreign"),
    [
        (OTHERS, [RUN_RECORD, *receipt_records(NEXT)], True),
        (UNTOLD, [RUN_RECORD, OUTCOME], True),
        (UNTOLD, [RUN_RECORD], False),
        (ENDED, [RUN_RECORD, OUTCOME], True),
        (ENDED, [RUN_RECORD, *receipt_records(NEXT), OUTCOME], False),
    ],
    ids=["named", "unnamed at rest", "unnamed at work", "ended", "ended with a receipt"],
)
def test_an_open_transaction_that_nobody_names_is_taken_for_the_lanes_own_only_where_it_may_be(
    transaction: OpenTransaction, ledger: list[Record], foreign: bool
) -> None:
    view = fold(lying(*((record, Fate.COMMITTED) for record in ledger)), 99)
    facts = facts_with(FOUND, others={"foreign": {}, "open_transactions": {RECEIPT.target: transaction}})
    assert bool(without_own(facts, LANE, view).others.open_transactions) is foreign

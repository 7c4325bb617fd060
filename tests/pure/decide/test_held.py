"""Transactions that hold records back are noted once they are older than any should be."""

import pytest

from ferry.model import TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.rules.blocking_transactions import HANGING_MS
from ferry.plan.rules.planning import decide_plan
from tests.golden import Golden
from tests.pure.decide.test_planning import ORDERS
from tests.pure.decide.values import RULES, facts_with
from tests.said import codes

PLACE = TopicPartition(topic="orders", partition=0)


@pytest.mark.parametrize(("age_ms", "noted"), [(HANGING_MS - 1, False), (HANGING_MS, True), (10 * HANGING_MS, True)])
def test_a_transaction_is_noted_when_it_is_older_than_coordinators_allow(
    age_ms: int, noted: bool, golden: Golden
) -> None:
    now_ms = 1_800_000_000_000
    held = {PLACE: OpenTransaction(producer_id=7, start=17, last_ms=now_ms - age_ms)}
    plan = decide_plan(RULES, facts_with(ORDERS, now_ms=now_ms, source={"open_transactions": held}), "run", 1)
    assert len(plan.slices) == 1, "what lies before it is copied"
    assert (codes(plan.notes) == ["held.by-transaction"]) == noted
    if noted:
        golden(plan.notes[0])


def test_a_transaction_without_times_is_not_judged() -> None:
    held = {PLACE: OpenTransaction(producer_id=7, start=17, last_ms=-1)}
    assert not decide_plan(RULES, facts_with(ORDERS, source={"open_transactions": held}), "run", 1).notes


@pytest.mark.parametrize(("age_ms", "noted"), [(HANGING_MS - 1, False), (HANGING_MS, True), (-1, False)])
@pytest.mark.parametrize("transactional_id", ["ferry.a->b.live.0", ""])
def test_a_transaction_that_hangs_on_the_ledger_is_named(
    age_ms: int, noted: bool, transactional_id: str, golden: Golden
) -> None:
    now_ms = 1_800_000_000_000
    ledger = TopicPartition(topic="ferry-ledger.a.internal", partition=0)
    last_ms = now_ms - age_ms if age_ms >= 0 else -1
    one = OpenTransaction(producer_id=7, start=17, last_ms=last_ms, transactional_id=transactional_id)
    plan = decide_plan(RULES, facts_with(ORDERS, now_ms=now_ms, lane={"open_on_ledger": {ledger: one}}), "run", 1)
    assert len(plan.slices) == 1, "it hinders no copy"
    found = [note for note in plan.notes if "ferry-ledger.a.internal" in note]
    assert len(found) == noted
    for note in found:
        golden(note)

"""Deletions at the source: followed only when asked for, and only where nothing else is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.ledger.codec import claim_record
from ferry.ledger.ledger import claims, fold
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.receipts import last_receipts, receipts
from ferry.model import ChangeKind, RefusalKind
from ferry.plan.rules.deletes import forgetting, forgotten
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Rules
from tests.golden import Golden
from tests.pure.decide.values import (
    FACTS,
    FLOW,
    LANE,
    PLAN,
    RECEIPT,
    RULES,
    facts_with,
    lying,
    part,
    place,
    target,
    topic,
)

FOLLOW = replace(RULES, topic_deletes=True)
GONE = facts_with(
    FACTS,
    source={"absent": frozenset({"orders"}), "deleted": frozenset({"orders"})},
    target={"topics": {"a.orders": target("a.orders", 41)}},  # 40 records and the marker
    lane={"receipts": {RECEIPT.target: RECEIPT}, "claims": {"a.orders": LANE}},
)


def test_a_copy_is_deleted_when_its_source_is() -> None:
    plan = decide_plan(FOLLOW, GONE, "run", 1)
    assert plan.refusals == ()
    assert [(change.kind, change.topic, change.source_topic) for change in plan.changes] == [
        (ChangeKind.DELETE, "a.orders", "orders")
    ]


@pytest.mark.parametrize(("end", "kinds"), [(40, [ChangeKind.DELETE]), (41, [])])
def test_a_copy_with_identical_offsets_has_no_marker_so_one_more_offset_is_a_foreign_record(
    end: int, kinds: list[ChangeKind]
) -> None:
    same = facts_with(
        GONE,
        target={"topics": {"a.orders": target("a.orders", end)}},
        lane={"receipts": {RECEIPT.target: replace(RECEIPT, identical=True)}},
    )
    plan = decide_plan(FOLLOW, same, "run", 1)
    assert [change.kind for change in plan.changes] == kinds
    assert bool(plan.refusals) is not bool(kinds)


def test_a_deletion_that_an_earlier_run_did_not_record_is_gone_on_with() -> None:
    plan = decide_plan(FOLLOW, facts_with(GONE, target={"topics": {}}), "run", 1)
    assert [change.kind for change in plan.changes] == [ChangeKind.DELETE]


def test_a_copy_that_is_hidden_is_not_taken_for_deleted() -> None:
    plan = decide_plan(FOLLOW, facts_with(GONE, target={"topics": {}, "hidden": frozenset({"a.orders"})}), "run", 1)
    assert plan.changes == ()
    assert [(one.topic, one.code) for one in plan.refusals] == [("orders", "target.hidden")]


@pytest.mark.parametrize(
    ("rules", "facts"),
    [(RULES, GONE), (FOLLOW, facts_with(GONE, source={"deleted": frozenset()}))],
    ids=["nobody asked for it", "it may be hidden only"],
)
def test_otherwise_it_is_reported_as_ever(rules: Rules, facts: Facts, golden: Golden) -> None:
    plan = decide_plan(rules, facts, "run", 1)
    assert plan.changes == ()
    (refusal,) = plan.refusals
    assert refusal.kind is RefusalKind.TOPIC_GONE
    golden(refusal.message)


ABORTED = facts_with(GONE, target={"topics": {"a.orders": target("a.orders", 45)}})
"""Four offsets more than the data and its marker."""


@pytest.mark.parametrize(
    ("facts", "deleted"),
    [
        (facts_with(ABORTED, others={"accounted": {RECEIPT.target: 45}}), True),
        (facts_with(ABORTED, others={"accounted": {RECEIPT.target: 44}}), False),
        (facts_with(ABORTED, others={"accounted": {RECEIPT.target: 45}, "foreign": {RECEIPT.target: 42}}), False),
    ],
    ids=["looked through", "not to its end", "and somebody else found"],
)
def test_what_aborted_chunks_left_behind_does_not_keep_a_copy(facts: Facts, deleted: bool) -> None:
    assert bool(decide_plan(FOLLOW, facts, "run", 1).changes) is deleted


def test_where_other_writers_are_put_up_with_their_records_keep_a_copy() -> None:
    bearing = replace(FOLLOW, guards=Guards(foreign_writer=GuardPolicy(default=OnGuard.SKIP)))
    assert decide_plan(bearing, facts_with(ABORTED, others={"accounted": {RECEIPT.target: 45}}), "run", 1).changes == ()


SHARED = replace(RECEIPT, target=place("a.orders", 1), source=place("users"))


@pytest.mark.parametrize(
    ("rules", "facts"),
    [
        (FOLLOW, facts_with(GONE, lane={"claims": {}})),
        (FOLLOW, facts_with(GONE, lane={"claims": {"a.orders": "other"}})),
        (replace(FOLLOW, merges=lambda name: name == "orders"), GONE),
        (FOLLOW, facts_with(GONE, lane={"shared": frozenset({"a.orders"})})),
        (FOLLOW, facts_with(GONE, lane={"receipts": {RECEIPT.target: RECEIPT, SHARED.target: SHARED}})),
        (FOLLOW, facts_with(GONE, target={"topics": {"a.orders": target("a.orders", 41, topic_id="other")}})),
        (FOLLOW, facts_with(GONE, target={"topics": {"a.orders": target("a.orders", 42)}})),
        (FOLLOW, facts_with(GONE, target={"topics": {"a.orders": target("a.orders", 41, 1)}})),
        (FOLLOW, facts_with(GONE, target={"topics": {"a.orders": replace(target("a.orders", 41), ends={})}})),
    ],
    ids=[
        "unclaimed",
        "claimed by another lane",
        "merged here",
        "merged with other flows",
        "another source's",
        "created again",
        "somebody else wrote",
        "somebody else wrote to a new partition",
        "no leader",
    ],
)
def test_a_copy_that_is_not_this_lanes_alone_is_left(rules: Rules, facts: Facts, golden: Golden) -> None:
    plan = decide_plan(rules, facts, "run", 1)
    assert plan.changes == ()
    (refusal,) = plan.refusals
    assert (refusal.topic, refusal.kind) == ("orders", RefusalKind.TOPIC_GONE)
    golden(refusal.message)


def test_the_ledger_forgets_what_was_deleted_and_nothing_else() -> None:
    other = replace(RECEIPT, target=place("a.users"))
    written = [
        *receipt_records(RECEIPT),
        *receipt_records(other),
        claim_record("a.orders", FLOW, LANE),
        claim_record("a.users", FLOW, LANE),
    ]
    view = fold(lying(*written), 99)
    (change,) = decide_plan(FOLLOW, GONE, "run", 1).changes
    rows = {ReceiptChain.of(receipt): [MapEntry.of(receipt, at)] for at, receipt in enumerate((RECEIPT, other))}
    records = forgetting(view, GONE, PLAN, [change], rows)
    after = fold([*lying(*written), *lying(*records, first=50)], 99)
    assert set(last_receipts(after, LANE)) == {other.target}
    assert {receipt.target for receipt in receipts(after)} == {other.target}
    assert claims(after) == {"a.users": LANE}
    ((key, _),) = after.of_kind("deleted")
    assert key == ["deleted", LANE, "a.orders"]
    assert forgetting(view, GONE, PLAN, [], rows) == []


def test_a_topic_that_comes_back_is_a_new_one() -> None:
    (change,) = decide_plan(FOLLOW, GONE, "run", 1).changes
    after = facts_with(forgotten(GONE, [change]), source={"deleted": frozenset()}, target={"topics": {}})
    assert decide_plan(FOLLOW, after, "run", 2).refusals == ()
    back = facts_with(after, source={"topics": {"orders": topic("orders", part(end=7), topic_id="new")}})
    plan = decide_plan(FOLLOW, back, "run", 3)
    assert [(change.kind, change.topic) for change in plan.changes] == [(ChangeKind.CREATE, "a.orders")]
    assert [(piece.start, piece.end) for piece in plan.slices] == [(0, 7)]

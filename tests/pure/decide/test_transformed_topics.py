"""What the ledger keeps of which rule made a copy, for verify, and what a switch says of such a copy."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.switch.rules.transformed import (
    Made,
    Transformed,
    changed_topics,
    leaving,
    returning,
    transformed_topics,
    transforms_check,
)
from ferry.ledger.copied import copied
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.map_rows import newer_rows
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.summary import parse_summary, rolled_up, seal_record, seals, summary_parts
from ferry.model import Record, Segment
from tests.golden import Golden
from tests.pure.decide.values import FLOW, LANE, RECEIPT, lying

PLAIN = RECEIPT
MASKED = replace(
    RECEIPT,
    start=40,
    end=70,
    target_next=52,
    segments=(Segment(source_start=45, target_start=41, count=5), Segment(source_start=60, target_start=46, count=6)),
    transform="mask",
    transform_digest="d1",
)
OTHER = replace(
    MASKED,
    start=70,
    end=80,
    target_next=53,
    segments=(Segment(source_start=75, target_start=53, count=1),),
    transform_digest="d2",
)
AGAIN = replace(MASKED, start=80, end=90, target_next=55, segments=())
ALL = (PLAIN, MASKED, OTHER, AGAIN)
RULES = (((40, 70), "d1"), ((70, 80), "d2"), ((80, 90), "d1"))


def view_of(*records: Record) -> LedgerView:
    return fold(lying(*records), len(records))


def written() -> LedgerView:
    return view_of(*(record for one in ALL for record in receipt_records(one)))


def summarised(view: LedgerView) -> LedgerView:
    """What somebody knows who reads a summary alone."""
    short = rolled_up(view)
    parts = summary_parts(short, 1)
    records = lying(*parts, seal_record(parts, short, 1, view.end, 0), first=view.end)
    (seal,) = seals(records)
    found = parse_summary(seal, records)
    assert found is not None
    return found


def test_a_summary_keeps_which_transform_made_what() -> None:
    view = written()
    for seen in (view, rolled_up(view), summarised(view)):
        (found,) = copied(seen, LANE, newer_rows(seen, lambda _: True))
        assert found.ranges == ((0, 90),)
        assert found.transformed == RULES
        assert found.segments == tuple(part for one in ALL for part in one.segments)


def test_a_copy_is_known_as_transformed_also_when_its_transform_was_taken_away() -> None:
    since = replace(PLAIN, start=90, end=100, target_next=70, segments=())
    for view in (written(), view_of(*(one for each in (*ALL, since) for one in receipt_records(each)))):
        assert transformed_topics(view, LANE) == [Made("orders", "a.orders", "mask")]
        assert [one[:2] for one in transformed_topics(rolled_up(view), LANE)] == [("orders", "a.orders")]
    assert transformed_topics(view_of(*receipt_records(PLAIN)), LANE) == []
    assert transformed_topics(written(), "other") == []


def test_a_failover_says_what_is_not_there_and_a_failback_does_not_go_without_a_word_of_somebody(
    golden: Golden,
) -> None:
    made = [Made("orders", "a.orders", "mask"), Made("paid", "paid", "")]
    assert leaving(FLOW, []) == returning(FLOW, [], bool, ()) == []
    (check,) = leaving(FLOW, made)
    assert check.ok
    golden(check.message, "failover")
    first, second = returning(FLOW, made, lambda topic: topic == "paid", ())
    assert first.ok
    golden(first.message, "failback")
    assert (second.name, second.ok) == ("transforms", False)
    golden(second.message, "failback of what producers wrote")
    _, said = returning(FLOW, made, lambda topic: topic == "paid", ["paid"])
    assert said.ok
    golden(said.message, "that may be left")


def test_only_topics_that_a_failback_would_leave_can_be_left() -> None:
    made = [Made("orders", "a.orders", "mask"), Made("paid", "paid", "")]
    checks = returning(FLOW, made, lambda topic: topic == "paid", ["a.orders", "paid", "piad"])
    assert [check.ok for check in checks] == [True, True, False, False]
    assert [check.message.partition(":")[0] for check in checks[2:]] == ["--leave-topic a.orders", "--leave-topic piad"]


def test_a_copy_that_was_last_made_otherwise_than_the_file_says_now_is_named() -> None:
    view = view_of(*(record for one in (PLAIN, MASKED, OTHER) for record in receipt_records(one)))
    assert changed_topics(view, LANE, {"orders": ("mask", "d2"), "new": ("mask", "d2")}) == []
    assert changed_topics(view, LANE, {"orders": ("mask", "d1")}) == [("orders", "mask")]
    assert changed_topics(view_of(*receipt_records(PLAIN)), LANE, {"orders": ("mask", "d2")}) == [("orders", "mask")]


def test_readiness_fails_for_a_transform_that_cannot_be_had_and_names_what_else_there_is_to_know(
    golden: Golden,
) -> None:
    check = transforms_check(FLOW, Transformed())
    assert (check.name, check.ok) == ("transforms", True)
    golden(check.message, "none")
    made = [Made("orders", "a.orders", "mask")]
    check = transforms_check(FLOW, Transformed(made=made, changed=[("orders", "mask")]))
    assert check.ok
    golden(check.message, "made otherwise")
    lost = ["ferry.transform.mask.function: m:f cannot be imported: there is no module m; install it", "another"]
    check = transforms_check(FLOW, Transformed(made=made, lost=lost))
    assert not check.ok
    golden(check.message, "lost")

"""Where a lane began, and what of a log neither a receipt nor a gap names, is said of each partition."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ferry.features.verify.rules.beginnings import begins
from ferry.ledger.copied import Copied
from ferry.model import Begin, Era, Gap, Range, RefusalKind, TopicPartition
from ferry.plan.rules.starts import LaneStarts

PLACE = TopicPartition("orders", 0)


def copied(*ranges: Range) -> Copied:
    return Copied(
        source=PLACE,
        target=TopicPartition("a.orders", 0),
        ranges=ranges,
        segments=(),
        void=(),
        target_next=0,
        shared=False,
    )


def gap(start: int, end: int) -> Gap:
    return Gap(source=PLACE, start=start, end=end, why=RefusalKind.RETENTION_PASSED, run="r", at_ms=0)


def begun(
    *ranges: Range,
    gaps: tuple[Gap, ...] = (),
    starts: LaneStarts | None = None,
    logs: Mapping[TopicPartition, int] | None = None,
) -> Begin:
    every = [copied(*ranges)] if ranges else []
    (one,) = begins(every, [], starts or LaneStarts(), gaps, [], {PLACE: 0} if logs is None else logs)
    return one


@pytest.mark.parametrize(
    ("ranges", "gaps", "log_start", "offset", "unaccounted"),
    [
        ([(0, 9)], [], 0, 0, []),
        ([(5, 9)], [], 0, 5, [(0, 5)]),
        ([(5, 9)], [], 5, 5, []),
        ([(5, 9)], [], 7, 5, []),
        ([(5, 9)], [(0, 5)], 0, 5, []),
        ([(5, 9)], [(0, 3)], 1, 5, [(3, 5)]),
        ([(0, 4), (6, 9)], [(4, 6)], 0, 0, []),
        ([(0, 4), (6, 9)], [(4, 5)], 0, 0, [(5, 6)]),
        ([(0, 4), (6, 9)], [(9, 4)], 0, 0, [(4, 6)]),
    ],
)
def test_what_neither_a_receipt_nor_a_gap_names_is_unaccounted(
    ranges: list[Range], gaps: list[Range], log_start: int, offset: int, unaccounted: list[Range]
) -> None:
    one = begun(*ranges, gaps=tuple(gap(*part) for part in gaps), logs={PLACE: log_start})
    assert (one.offset, one.log_start, list(one.unaccounted)) == (offset, log_start, unaccounted)
    assert one.is_whole == (not unaccounted)
    assert bool(one.sentence) == bool(unaccounted)


def test_a_partition_without_receipts_begins_where_a_plan_said() -> None:
    one = begun(starts=LaneStarts(offsets={PLACE: 15}))
    assert (one.offset, one.unaccounted, one.is_whole) == (15, ((0, 15),), False)
    assert "0 to 14" in one.sentence
    assert begun((20, 30), starts=LaneStarts(offsets={PLACE: 15})).offset == 20


def test_what_is_not_known_is_not_called_whole() -> None:
    pending = begun(starts=LaneStarts(pending={PLACE: 1_700_000_000_000}))
    assert (pending.offset, pending.unaccounted, pending.is_whole) == (None, (), False)
    gone = begun((0, 9), logs={})
    assert (gone.offset, gone.log_start, gone.is_whole) == (0, None, False)
    assert pending.sentence
    assert gone.sentence


def dealt(begins_at: int, starts: LaneStarts, received: Mapping[TopicPartition, int]) -> Begin:
    """A partition of a topic whose rule in force begins there."""
    era = Era(source_topic="orders", target_topic="a.orders", since=1, begins=(begins_at,), digest="d", partitions=4)
    (one,) = begins([], [era], starts, [], [], {PLACE: 0}, received)
    return one


def test_dealt_topics_begin_where_their_rule_does() -> None:
    one = dealt(3, LaneStarts(), {})
    assert (one.offset, one.unaccounted, one.is_whole) == (3, ((0, 3),), False)
    assert dealt(0, LaneStarts(), {}).is_whole


@pytest.mark.parametrize(
    ("starts", "received"),
    [(LaneStarts(offsets={PLACE: 1}), {}), (LaneStarts(), {PLACE: 1}), (LaneStarts(offsets={PLACE: 2}), {PLACE: 1})],
)
def test_what_a_rule_before_has_dealt_is_in_receipts(
    starts: LaneStarts, received: Mapping[TopicPartition, int]
) -> None:
    one = dealt(500, starts, received)
    assert (one.offset, one.unaccounted) == (1, ((0, 1),))

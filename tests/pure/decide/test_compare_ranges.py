"""What is compared of a partition, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.verify.rules.compare_ranges import SAMPLE_RECORDS, Asked, Ends, distributed, no_receipt_yet, spans
from ferry.features.verify.rules.transformed import Rule, by_todays_rule, without_spark
from ferry.ledger.copied import Copied, common, united, without
from ferry.model import NotComparedKind, Segment
from tests.golden import Golden
from tests.pure.decide.values import place

Kind = NotComparedKind
COPIED = Copied(
    source=place("t"),
    target=place("a.t"),
    ranges=((10, 50), (60, 100)),
    segments=(
        Segment(source_start=10, target_start=0, count=20),
        Segment(source_start=31, target_start=21, count=19),
        Segment(source_start=60, target_start=41, count=39),
    ),
    void=(),
    target_next=80,
    shared=False,
)
ENDS = Ends(source_start=0, source_end=100, target_start=0, target_end=81, stable=81)
ALL = Asked()
Ranges = list[tuple[tuple[int, int], tuple[int, int]]]
Lost = list[tuple[NotComparedKind, int, int, bool]]


def decided(asked: Asked = ALL, ends: Ends = ENDS, copied: Copied = COPIED) -> tuple[Ranges, Lost]:
    found, left = spans(copied, asked, ends, compacted=False)
    assert all(one.records == sum(part.count for part in one.segments) for one in found)
    return [(one.source_range, one.target_range) for one in found], [
        (one.why, one.start, one.end, one.asked) for one in left
    ]


SKIPPED = (Kind.SKIPPED, 50, 60, False)
WHOLE: Ranges = [((10, 50), (0, 41)), ((60, 100), (41, 81))]


@pytest.mark.parametrize(
    ("ranges", "together"),
    [
        ([(3, 5), (5, 8)], [(3, 8)]),
        ([(6, 8), (3, 7)], [(3, 8)]),
        ([(3, 5), (6, 8)], [(3, 5), (6, 8)]),
    ],
    ids=["side by side", "over each other", "an offset between them"],
)
def test_ranges_are_one_where_no_offset_lies_between_them(
    ranges: list[tuple[int, int]], together: list[tuple[int, int]]
) -> None:
    assert list(united(ranges)) == together


def test_all_that_was_copied_is_compared_up_to_what_readers_see() -> None:
    assert decided() == (WHOLE, [SKIPPED])
    behind = replace(ENDS, target_end=95, stable=95)
    assert decided(ends=behind)[0][1] == ((60, 100), (41, 95)), "what follows the last receipt counts, too"
    assert decided(ends=behind, copied=replace(COPIED, shared=True))[0][1] == ((60, 100), (41, 80))


@pytest.mark.parametrize(
    ("asked", "ranges", "lost"),
    [
        (Asked(start=20, end=40), [((20, 40), (10, 30))], []),
        (Asked(start=30, end=31), [((30, 31), (21, 21))], []),
        (Asked(start=90), [((90, 100), (71, 81))], []),
        (Asked(end=12), [((10, 12), (0, 2))], []),
        (Asked(start=5, end=12), [((10, 12), (0, 2))], [(Kind.NOT_COPIED, 5, 10, True)]),
        (Asked(start=95, end=110), [((95, 100), (76, 80))], [(Kind.NOT_COPIED, 100, 110, True)]),
        (Asked(start=200, end=210), [], [(Kind.NOT_COPIED, 200, 210, True)]),
        (Asked(start=200), [], [(Kind.NOT_COPIED, 200, 200, True)]),
        (Asked(run=((60, 70),)), [((60, 70), (41, 51))], []),
    ],
)
def test_what_is_asked_for_is_cut_out_of_what_was_copied(asked: Asked, ranges: Ranges, lost: Lost) -> None:
    assert decided(asked) == (ranges, lost)


def test_what_retention_took_is_left_out_and_matters_only_to_who_asked_for_it() -> None:
    begins = replace(ENDS, source_start=15)
    assert decided(ends=begins) == (
        [((15, 50), (5, 41)), WHOLE[1]],
        [SKIPPED, (Kind.SOURCE_DELETED, 10, 15, False)],
    )
    assert decided(Asked(start=12, end=20), begins) == ([((15, 20), (5, 10))], [(Kind.SOURCE_DELETED, 12, 15, True)])
    there = replace(ENDS, target_start=5)
    assert decided(ends=there)[0][0] == ((15, 50), (5, 41))
    assert decided(ends=there)[1] == [SKIPPED, (Kind.TARGET_DELETED, 10, 15, False)]


def test_a_source_that_ends_too_early_is_said_and_the_rest_compared() -> None:
    assert decided(ends=replace(ENDS, source_end=70)) == (
        [WHOLE[0], ((60, 70), (41, 51))],
        [SKIPPED, (Kind.SOURCE_REPLACED, 70, 100, True)],
    )


def test_a_target_that_ends_too_early_is_compared_for_its_records_are_missing() -> None:
    assert decided(ends=replace(ENDS, target_end=50, stable=50)) == ([WHOLE[0], ((60, 100), (41, 50))], [SKIPPED])


def test_behind_an_open_transaction_nothing_is_compared() -> None:
    assert decided(ends=replace(ENDS, stable=50)) == (
        [WHOLE[0], ((60, 69), (41, 50))],
        [SKIPPED, (Kind.NOT_STABLE, 69, 100, True)],
    )


KEPT = replace(COPIED, ranges=((0, 80),), segments=(Segment(source_start=0, target_start=0, count=80),))
"""A copy with identical offsets."""
AHEAD = replace(ENDS, source_end=120, target_end=95, stable=95, same_until=120)
RECEIPTS = ((0, 80), (0, 80))


@pytest.mark.parametrize(
    ("ends", "ranges", "lost"),
    [
        (AHEAD, [RECEIPTS, ((80, 95), (80, 95))], []),
        (replace(AHEAD, same_until=90), [RECEIPTS, ((80, 90), (80, 95))], []),
        (replace(AHEAD, same_until=70), [RECEIPTS, ((80, 80), (80, 95))], []),
        (replace(AHEAD, stable=80), [RECEIPTS], []),
        (
            replace(AHEAD, source_start=85),
            [((85, 95), (85, 95))],
            [(Kind.SOURCE_DELETED, 0, 80, False), (Kind.SOURCE_DELETED, 80, 85, True)],
        ),
    ],
    ids=["as the source", "after the source's end", "the source was cut", "nothing", "deleted at the source"],
)
def test_identical_offsets_need_no_receipt_to_be_compared(ends: Ends, ranges: Ranges, lost: Lost) -> None:
    assert decided(ends=ends, copied=KEPT) == (ranges, lost)
    found, _ = spans(KEPT, ALL, ends, compacted=False)
    assert {one.covered_until for one in found} <= {max(80, ends.stable)}, "a difference there is none of a newer run"


def test_records_without_a_receipt_are_a_note(golden: Golden) -> None:
    (note,) = no_receipt_yet([(KEPT, AHEAD), (replace(KEPT, target=place("a.t", 1)), replace(AHEAD, stable=81))])
    golden(note)
    assert no_receipt_yet([(KEPT, replace(AHEAD, stable=80)), (COPIED, ENDS)]) == []


@pytest.mark.parametrize("asked", [Asked(end=85), Asked(run=((0, 80),)), Asked(sample=1), Asked(start=80)])
def test_what_is_asked_for_of_identical_offsets_ends_at_the_receipts(asked: Asked) -> None:
    assert [b for _, (_, b) in decided(asked, AHEAD, KEPT)[0]] == ([] if asked.start else [80])


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_a_sample_is_one_of_so_many_pieces_and_the_same_for_the_same_seed(share: int, seed: int) -> None:
    count = 4 * SAMPLE_RECORDS + 5
    long = replace(
        COPIED,
        ranges=((0, count),),
        segments=(Segment(source_start=0, target_start=7, count=count),),
        target_next=count + 7,
    )
    ends = Ends(source_start=0, source_end=count, target_start=0, target_end=count + 8, stable=count + 8)
    ranges, _ = decided(Asked(sample=share, seed=seed), ends, long)
    assert ranges == decided(Asked(sample=share, seed=seed), ends, long)[0]
    pieces = [(at, min(at + SAMPLE_RECORDS, count)) for at in range(0, count, SAMPLE_RECORDS)]
    numbers = [pieces.index(source) for source, _ in ranges]
    assert numbers == list(range(numbers[0], len(pieces), share))
    assert numbers[0] < share
    assert [(a + 7, b + 7) for (a, b), _ in ranges] == [target for _, target in ranges]


@pytest.mark.parametrize("target_end", [0, 7, SAMPLE_RECORDS, SAMPLE_RECORDS + 5, 2 * SAMPLE_RECORDS])
def test_a_sample_leaves_out_nothing_that_the_target_has_lost(target_end: int) -> None:
    count = 3 * SAMPLE_RECORDS
    long = replace(
        COPIED,
        ranges=((0, count),),
        segments=(Segment(source_start=0, target_start=0, count=count),),
        target_next=count,
    )
    ends = Ends(source_start=0, source_end=count, target_start=0, target_end=target_end, stable=target_end)
    pieces = [(at, at + SAMPLE_RECORDS) for at in range(0, count, SAMPLE_RECORDS)]
    assert decided(Asked(sample=1), ends, long) == (
        [(one, (one[0], max(one[0], min(one[1], target_end)))) for one in pieces],
        [],
    )


def test_where_nothing_was_copied_the_target_owes_nothing() -> None:
    empty = replace(COPIED, ranges=((0, 4),), segments=(), target_next=-1)
    assert decided(copied=empty) == ([((0, 4), (81, 81))], []), "what lies there is from before the flow"


@given(st.lists(st.integers(1, 500), max_size=30), st.integers(1, 8))
def test_tasks_get_all_stretches_and_about_as_many_records(counts: list[int], tasks: int) -> None:
    (span, _), _ = spans(COPIED, ALL, ENDS, compacted=False)
    found = [replace(span, segments=(Segment(source_start=n, target_start=n, count=n),)) for n in counts]
    shares = distributed(found, tasks)
    assert sorted(one.records for share in shares for one in share) == sorted(counts)
    assert len(shares) == min(tasks, len(counts))
    loads = [sum(one.records for one in share) for share in shares]
    assert max(loads, default=0) - min(loads, default=0) <= max(counts, default=0) + len(counts)


offsets = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


@given(offsets, offsets)
def test_ranges_are_sets_of_offsets(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    def members(ranges: Iterable[tuple[int, int]]) -> set[int]:
        return {offset for start, end in ranges for offset in range(start, end)}

    assert members(united(some)) == members(some)
    assert members(common(some, others)) == members(some) & members(others)
    assert members(without(some, others)) == members(some) - members(others)
    for made in (united(some), common(some, others), without(some, others)):
        assert all(start < end for start, end in made)
        assert all(before[1] < after[0] for before, after in pairwise(made))


def test_what_a_transform_made_is_cut_out_rule_by_rule() -> None:
    ruled = replace(COPIED, transformed=(((20, 35), "a"), ((35, 50), "b")))
    found, left = spans(ruled, ALL, ENDS, compacted=False)
    assert [(one.source_range, one.target_range, one.transform) for one in found] == [
        ((10, 20), (0, 10), ""),
        ((20, 35), (10, 25), "a"),
        ((35, 50), (25, 41), "b"),
        ((60, 100), (41, 81), ""),
    ]
    assert [one.why for one in left] == [Kind.SKIPPED]
    assert sum(one.records for one in found) == sum(part.count for part in COPIED.segments)


@given(st.lists(st.integers(1, 3 * SAMPLE_RECORDS), min_size=1, max_size=8), st.integers(1, 5), st.integers(0, 99))
def test_a_sample_of_a_filtered_topic_has_what_lies_between_its_records(
    counts: list[int], share: int, seed: int
) -> None:
    segments, at, to = [], 0, 0
    for count in counts:
        segments.append(Segment(source_start=at + 3, target_start=to, count=count))
        at, to = at + 3 + count, to + count
    filtered = replace(
        COPIED, ranges=((0, at + 4),), segments=tuple(segments), target_next=to, transformed=(((0, at + 4), "a"),)
    )
    ends = Ends(source_start=0, source_end=at + 4, target_start=0, target_end=to + 1, stable=to + 1)
    whole, _ = spans(filtered, Asked(sample=1), ends, compacted=False)
    assert [one.source_range[0] for one in whole] == [0, *(one.source_range[1] for one in whole[:-1])]
    assert [one.target_range[0] for one in whole] == [0, *(one.target_range[1] for one in whole[:-1])]
    assert (whole[-1].source_range[1], whole[-1].target_range[1]) == (at + 4, to + 1)
    assert sum(one.records for one in whole) == sum(counts)
    assert all(one.records <= SAMPLE_RECORDS for one in whole)
    some, _ = spans(filtered, Asked(sample=share, seed=seed), ends, compacted=False)
    assert some
    assert all(one in whole for one in some)


def test_only_what_todays_transform_made_is_held_against_it(golden: Golden) -> None:
    ruled = replace(COPIED, transformed=(((20, 35), "a"), ((35, 50), "b")))
    found = [one for one in spans(ruled, ALL, ENDS, compacted=False)[0] if one.transform]
    held, left = by_todays_rule(found, {"t": Rule("mask", "b")}, asked=False)
    assert [one.source_range for one in held] == [(35, 50)]
    assert [(one.why, one.start, one.end, one.asked) for one in left] == [(Kind.TRANSFORM_CHANGED, 20, 35, False)]
    golden(left[0].message, "not asked")
    assert by_todays_rule(found, {}, asked=True)[0] == []
    golden(by_todays_rule(found, {}, asked=True)[1][1].message, "asked")
    assert [(one.why, one.asked) for one in without_spark(found)] == [(Kind.NEEDS_SPARK, True)] * 2

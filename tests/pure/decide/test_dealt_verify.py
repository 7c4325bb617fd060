"""Copies of dealt topics in a comparison: chunks, what cannot be compared, and differences by source partition."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.verify.rules.differences import Places
from ferry.features.verify.rules.repartitioned import (
    ByNumber,
    Chosen,
    Chunk,
    DealtCopy,
    Sides,
    dealt_by_todays_rule,
    dealt_copies,
    gone_receipts,
    source_differences,
    source_ranges,
)
from ferry.features.verify.rules.transformed import Rule
from ferry.model import (
    Difference,
    DifferenceKind,
    Era,
    NotComparedKind,
    Receipt,
    RecordContent,
    Segment,
    TopicPartition,
)
from ferry.plan.rules.record_sample import record_samples
from tests.golden import Golden, brief
from tests.pure.decide.test_dealt_map import ONE, PLACE, Copy, copies
from tests.pure.decide.values import redealt

ERA = Era(source_topic="t", target_topic="a.t", since=1, begins=(0, 0), digest="d", partitions=2)
SEE = record_samples(b"k", values=False)
Kind = DifferenceKind


def receipts_of(made: Copy) -> dict[int, list[Receipt]]:
    return {0: list(made.receipts)}


def sides_of(made: Copy, log_start: int = 0, starts: Mapping[int, int] | None = None) -> Sides:
    begins = starts or {}
    source = {number: (begins.get(number, 0), end) for number, end in enumerate(made.ends)}
    return Sides(source, {0: (log_start, made.stands_at)})


@given(copies(), st.data())
def test_each_record_is_in_the_chunk_that_its_receipt_says_and_what_is_left_is_said(
    made: Copy, data: st.DataObject
) -> None:
    """Also where logs have lost their beginnings; on the target nothing lies beside chunks."""
    log_start = data.draw(st.sampled_from([0, *made.there]), label="log start")
    lost = {number: data.draw(st.integers(0, end), label="lost") for number, end in enumerate(made.ends)}
    found, left = dealt_copies(ERA, receipts_of(made), sides_of(made, log_start, lost), Chosen())
    chunks = [chunk for copy in found for chunk in copy.chunks]
    for chunk in chunks:
        there = [one for at, one in sorted(made.there.items()) if chunk.start <= at < chunk.stop]
        assert len(there) == chunk.records
        assert there == sorted(there)
        assert all(chunk.ranges[part][0] <= offset < chunk.ranges[part][1] for part, offset in there)
        assert all(begin >= lost[part] for part, (begin, _) in chunk.ranges.items())
    whole = not log_start and not any(lost.values())
    assert bool(left) == (len(chunks) < len(made.receipts)) or whole
    if whole:
        assert not left
        assert sum(chunk.records for chunk in chunks) == len(made.there)
        assert source_ranges(found) == {TopicPartition("t", n): (0, end) for n, end in enumerate(made.ends) if end}
    for copy in found:
        read = [at for start, end in copy.pieces for at in range(start, end)]
        wanted = [at for chunk in copy.chunks for at in range(chunk.start, chunk.stop)]
        assert read == wanted, "each offset once, in order"


@pytest.mark.parametrize(
    ("changes", "sides", "why"),
    [
        ({"since": 0}, {}, NotComparedKind.TRANSFORM_CHANGED),
        ({}, {"source": {}}, NotComparedKind.UNREADABLE),
        ({}, {"target": {}}, NotComparedKind.UNREADABLE),
        ({}, {"source": {0: (0, 4)}}, NotComparedKind.SOURCE_REPLACED),
        ({}, {"source": {0: (1, 9)}}, NotComparedKind.SOURCE_DELETED),
        ({}, {"target": {0: (3, 9)}}, NotComparedKind.TARGET_DELETED),
        ({}, {"target": {0: (0, 4)}}, NotComparedKind.NOT_STABLE),
    ],
    ids=brief,
)
def test_what_cannot_be_compared_is_left_in_a_sentence(
    changes: dict[str, int], sides: dict[str, dict[int, tuple[int, int]]], why: NotComparedKind, golden: Golden
) -> None:
    receipt = redealt(ONE, starts=(0,), ends=(5,), records=3, target_start=2, target_next=5, **changes)  # type: ignore[arg-type]
    both = Sides(sides.get("source", {0: (0, 9)}), sides.get("target", {0: (0, 9)}))
    found, (left,) = dealt_copies(ERA, {0: [receipt]}, both, Chosen())
    assert (found, left.why) == ([], why)
    golden(left.message)
    _, (of_run,) = dealt_copies(ERA, {0: [receipt]}, both, Chosen(run=receipt.run))
    matters = why not in (NotComparedKind.SOURCE_DELETED, NotComparedKind.TARGET_DELETED)
    assert (of_run.asked, left.asked) == (matters, matters and why is not NotComparedKind.TRANSFORM_CHANGED)


def test_only_a_run_s_chunks_or_a_sample_are_chosen_and_missing_receipts_are_told() -> None:
    first = redealt(ONE, starts=(0,), ends=(5,), records=3, target_start=2, target_next=5)
    second = redealt(ONE, run="r2", starts=(5,), ends=(9,), records=2, target_start=6, target_next=8)
    sides = Sides({0: (0, 9)}, {0: (0, 20)})
    (copy,), _ = dealt_copies(ERA, {0: [first, second]}, sides, Chosen(run="r2"))
    assert copy.chunks == (Chunk((5,), (9,), 2, 6, 8),), "what lies behind a run is not its own"
    (copy,), _ = dealt_copies(ERA, {0: [first, second]}, sides, Chosen(sample=2, seed=1))
    assert len(copy.chunks) == 1
    assert gone_receipts(ERA, {0: [first, second]}, {0: (2, 20)}) is None
    for known in ([second], [first, redealt(second, starts=(7,))]):
        assert gone_receipts(ERA, {0: known}, {0: (2, 20)}) is not None
    (copy,), _ = dealt_copies(ERA, {0: [first, redealt(second, starts=(7,))]}, sides, Chosen())
    assert [(one.start, one.stop) for one in copy.chunks] == [(2, 5), (6, 20)]


def test_copies_by_another_rule_are_told_and_not_compared() -> None:
    copy = DealtCopy(topic="t", target=PLACE, partitions=2, chunks=(), covered_until=0, transform="d")
    assert dealt_by_todays_rule([copy], {"t": Rule("small", "d")}, asked=False) == ([copy], [])
    for rules in ({"t": Rule("small", "e")}, {}):
        held, (left,) = dealt_by_todays_rule([copy], rules, asked=False)
        assert (held, left.why, left.asked) == ([], NotComparedKind.TRANSFORM_CHANGED, False)


def compared(here: list[tuple[int, int, bytes]], there: list[tuple[int, bytes]]) -> list[Difference]:
    """A chunk of source records (partition, offset, value), and target records (offset, value)."""
    chunk = Chunk((0, 0), (99, 99), len(there), 10, 10 + len(there) + 1)
    segment = Segment(source_start=0, target_start=10, count=len(there))
    comparison = ByNumber(PLACE, PLACE, Places([segment]), (0, len(there)), (chunk.start, chunk.stop), SEE)
    comparison.feed(0, [RecordContent(at, 0, b"k", value, b"") for at, (_, _, value) in enumerate(here)], done=True)
    comparison.feed(1, [RecordContent(at, 0, b"k", value, b"") for at, value in there], done=True)
    assert comparison.is_complete
    return source_differences("t", comparison.differences, [(part, at) for part, at, _ in here], chunk)


@given(st.integers(1, 30), st.integers(0, 30), st.data())
def test_one_record_that_is_not_as_it_should_be_is_one_difference_at_its_own_place(
    first: int, second: int, data: st.DataObject
) -> None:
    here = [(part, 3 * at, f"{part}-{at}".encode()) for part, count in ((0, first), (1, second)) for at in range(count)]
    there = [(10 + at, value) for at, (_, _, value) in enumerate(here)]
    assert compared(here, there) == []
    at = data.draw(st.integers(0, len(here) - 1), label="at")
    part, offset, _ = here[at]
    place = TopicPartition("t", part)

    (one,) = compared(here, [*there[:at], *((to - 1, same) for to, same in there[at + 1 :])])
    assert (one.kind, one.source, one.source_range) == (Kind.MISSING, place, (offset, offset + 1))
    assert [record.offset for record in one.source_records] == [offset]
    (one,) = compared(here, [*there[:at], (10 + at, b"altered"), *there[at + 1 :]])
    assert (one.kind, one.source, one.source_range) == (Kind.VALUE, place, (offset, offset + 1))
    assert one.target_range == (10 + at, 11 + at)
    (one,) = compared(here, [*there[:at], (10 + at, b"more"), *((to + 1, same) for to, same in there[at:])])
    assert (one.kind, one.source, one.source_range) == (Kind.EXTRA, place, (offset, offset))


def test_what_is_missing_of_several_source_partitions_is_told_of_each() -> None:
    here = [(0, 7, b"a"), (0, 9, b"b"), (1, 4, b"c")]
    first, second = compared(here, [])
    assert (first.source, first.source_range) == (TopicPartition("t", 0), (7, 10))
    assert (second.source, second.source_range) == (TopicPartition("t", 1), (4, 5))
    assert [record.offset for record in (*first.source_records, *second.source_records)] == [7, 9, 4]

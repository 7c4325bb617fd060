"""Portions of a comparison: bounded, fair, each offset once; what is cut is compared as if it were whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.rules.differences import Comparison, Places
from ferry.features.verify.rules.portions import (
    cost_of,
    cut,
    joined,
    portion_of,
    portion_of_dealt,
    without_unread,
    without_unread_dealt,
)
from ferry.features.verify.rules.repartitioned import Chunk, DealtCopy
from ferry.model import NotComparedKind, RecordContent, Segment, TopicPartition
from ferry.plan.rules.portions import RECORD_BYTES
from ferry.plan.rules.record_sample import record_samples
from tests.golden import Golden
from tests.pure.decide.values import place

SIZE = 100


@st.composite
def spans(draw: st.DrawFn, partition: int = 0) -> CompareRange:
    """What a filter has left of a partition: segments with gaps on both sides, and something behind the last."""
    source = first_source = draw(st.integers(0, 50))
    target = first_target = draw(st.integers(0, 50))
    segments = []
    for left_out, beside, count in draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 8)), max_size=12)
    ):
        source, target = source + left_out, target + beside
        segments.append(Segment(source_start=source, target_start=target, count=count))
        source, target = source + count, target + count
    return CompareRange(
        source=place("t", partition),
        target=place("a.t", partition),
        source_range=(first_source, source + draw(st.integers(1, 5))),
        target_range=(first_target, target + draw(st.integers(0, 3))),
        segments=tuple(segments),
        covered_until=target,
        transform="d",
    )


def several() -> st.SearchStrategy[list[CompareRange]]:
    return st.integers(1, 4).flatmap(lambda count: st.tuples(*(spans(number) for number in range(count)))).map(list)


@given(spans(), st.data())
def test_what_is_cut_has_on_both_sides_what_belongs_together(one: CompareRange, data: st.DataObject) -> None:
    at = data.draw(st.integers(one.source_range[0] + 1, one.source_range[1] - 1)) if _inside(one) else None
    if at is None:
        return
    first, rest = cut(one, at)
    assert (*first.source_range, *rest.source_range) == (one.source_range[0], at, at, one.source_range[1])
    assert first.target_range[1] == rest.target_range[0]
    assert (first.target_range[0], rest.target_range[1]) == one.target_range
    assert first.records + rest.records == one.records
    for part in (first, rest):
        for segment in part.segments:
            assert part.source_range[0] <= segment.source_start < segment.source_end <= part.source_range[1]
            assert part.target_range[0] <= segment.target_start < segment.target_end <= part.target_range[1]
    assert joined([rest, first])[0].source_range == one.source_range


def _inside(one: CompareRange) -> bool:
    return one.source_range[1] - one.source_range[0] > 1


@given(several(), st.integers(RECORD_BYTES, 40 * RECORD_BYTES), st.data())
def test_portion_by_portion_each_offset_is_compared_once_and_the_same_is_found(
    every: list[CompareRange], most: int, data: st.DataObject
) -> None:
    sizes = {one.source: SIZE for one in every}
    records = sum(one.records for one in every)
    spoilt = data.draw(st.dictionaries(st.integers(0, max(0, records - 1)), st.booleans(), max_size=3), label="spoilt")
    left, parts = every, []
    while left:
        now, left = portion_of(left, sizes, most)
        assert now, "no portion is empty"
        assert cost_of(now, sizes) <= most + len(every) * (SIZE + RECORD_BYTES)
        parts += now
    for one in every:
        mine = [part.source_range for part in parts if part.source == one.source]
        assert [start for start, _ in mine] + [mine[-1][1]] == [one.source_range[0]] + [end for _, end in mine]
        assert mine[-1][1] == one.source_range[1]
    whole, apart = _found(every, spoilt), _found(parts, spoilt)
    assert whole == apart
    assert bool(whole[1]) == bool(spoilt and records)


def _found(parts: list[CompareRange], spoilt: dict[int, bool]) -> tuple[int, Counter[tuple[str, object, object]]]:
    """Records and differences; of the n-th record of all the target lacks (True), or has another value."""
    places = sorted(
        (one.source, segment.source_start + at)
        for one in parts
        for segment in one.segments
        for at in range(segment.count)
    )
    numbers = {where: number for number, where in enumerate(places)}
    total, told = 0, Counter[tuple[str, object, object]]()
    for one in parts:
        where = Places(one.segments)
        comparison = Comparison(
            one.source, one.target, where, one.source_range, one.target_range, record_samples(b"k", values=False)
        )
        here, there = [], []
        for segment in one.segments:
            for at in range(segment.count):
                content = RecordContent(segment.source_start + at, 5, None, b"%d" % (segment.source_start + at), b"\0")
                here.append(content)
                bad = spoilt.get(numbers[one.source, content.offset])
                if bad is not True:
                    value = b"x" if bad is False else content.value
                    there.append(content._replace(offset=segment.target_start + at, value=value))
        comparison.feed(0, here, done=True)
        comparison.feed(1, there, done=True)
        total += comparison.records
        told.update(
            (str(each.kind), each.source, offset)
            for each in comparison.differences
            for offset in range(*each.source_range)
            if (each.source, offset) in numbers  # one difference goes on over what the filter has left out
        )
    return total, told


@given(several(), st.data())
def test_what_cannot_be_read_is_told_from_there_on_and_all_else_stays(
    every: list[CompareRange], data: st.DataObject
) -> None:
    place_, at = every[0].source, data.draw(st.integers(0, 150), label="at")
    most = data.draw(st.integers(RECORD_BYTES, 40 * RECORD_BYTES), label="most")
    groups = portion_of(every, {}, most)
    (now, left), lost = without_unread(groups, {place_: (at, "unread")})
    kept = joined([*now, *left])
    start, end = every[0].source_range
    mine = [one for one in kept if one.source == place_]
    assert [one.source_range for one in mine] == ([(start, min(at, end))] if at > start else [])
    assert sorted(one.source_range for one in kept if one.source != place_) == sorted(
        one.source_range for one in every[1:]
    )
    told = [(one.source, one.start, one.end, one.why) for one in lost]
    assert told == ([(place_, max(at, start), end, NotComparedKind.UNREADABLE)] if at < end else [])
    assert all(one.message.endswith(": unread") for one in lost)
    assert without_unread(groups, {}) == ([*groups], [])


CHUNKS = (
    Chunk((0, 0), (5, 5), 6, 0, 6),
    Chunk((5, 5), (9, 5), 3, 6, 9),
    Chunk((9, 5), (12, 20), 10, 9, 19),
)
COPIES = [
    DealtCopy(
        topic="t", target=TopicPartition("a.t", number), partitions=2, chunks=CHUNKS, covered_until=19, transform="d"
    )
    for number in range(2)
]


def test_dealt_copies_are_taken_by_whole_chunks_those_of_the_same_source_offsets_together() -> None:
    each = SIZE + RECORD_BYTES
    sizes = {TopicPartition("t", 0): SIZE}
    left, taken = list(COPIES), []
    while left:
        now, left = portion_of_dealt(left, sizes, 12 * each)
        taken.append([len(copy.chunks) for copy in now])
        assert sum(copy.records for copy in now) <= 12
    assert taken == [[1, 1], [1, 1], [1], [1]]
    assert portion_of_dealt(COPIES, sizes, 1)[0] == [replace(COPIES[0], chunks=CHUNKS[:1])], "one at least"
    assert portion_of_dealt(COPIES, sizes, 10**9) == (COPIES, [])


def test_chunks_of_what_cannot_be_read_are_left_out_whole(golden: Golden) -> None:
    place_ = TopicPartition("t", 1)
    (now, left), lost = without_unread_dealt(([COPIES[0]], [COPIES[1]]), {place_: (7, "it is damaged")})
    assert [copy.chunks for copy in (*now, *left)] == [CHUNKS[:2]] * 2
    assert [(one.source, one.start, one.end) for one in lost] == [(place_, 7, 20)] * 2
    golden("\n".join(one.message for one in lost))
    assert without_unread_dealt((COPIES,), {place_: (20, "it is damaged")}) == ([COPIES], [])
    (all_but,), _ = without_unread_dealt(([COPIES[0]],), {place_: (19, "it is damaged")})
    assert [copy.chunks for copy in all_but] == [CHUNKS[:2]], "one record of a chunk is as good as all"

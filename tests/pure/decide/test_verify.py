"""Planted differences are found, located exactly and named; whatever agrees is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.verify.rules import alignment
from ferry.features.verify.rules import differences as verify
from ferry.features.verify.rules.alignment import CALM, WINDOW
from ferry.features.verify.rules.differences import MOST_DIFFERENCES, SHOWN, Comparison, Places
from ferry.model import Difference, DifferenceKind, RecordContent, Segment, TopicPartition
from ferry.plan.rules.record_sample import record_samples

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("a.t", 0)
SEE = record_samples(b"secret", values=False)
Kind = DifferenceKind
Found = list[tuple[DifferenceKind, tuple[int, int], tuple[int, int]]]


def content(offset: int, number: int) -> RecordContent:
    return RecordContent(offset, 1000 + number, b"k%d" % (number % 7), b"value %d" % number, b"\0")


@dataclass
class Both:
    """Both sides of a range that agree at first, and their map."""

    segments: list[Segment]
    sources: list[RecordContent]
    targets: list[RecordContent]
    source_end: int
    target_end: int

    @property
    def places(self) -> Places:
        return Places(self.segments)


@st.composite
def sides(draw: st.DrawFn, least: int = 4) -> Both:
    """Segments with holes of any width between them, and a record in each of their offsets."""
    counts = draw(st.lists(st.integers(1, 60), min_size=1, max_size=6))
    counts[-1] += max(0, least - sum(counts))
    segments: list[Segment] = []
    at, to = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    for count in counts:
        segments.append(Segment(source_start=at, target_start=to, count=count))
        at, to = at + count + draw(st.integers(0, 3)), to + count + draw(st.integers(1, 3))
    numbers = iter(range(10_000))
    sources, targets = [], []
    for segment in segments:
        for index in range(segment.count):
            number = next(numbers)
            sources.append(content(segment.source_start + index, number))
            targets.append(content(segment.target_start + index, number))
    return Both(segments, sources, targets, at, to)


def compared(both: Both, steps: Sequence[tuple[int, int]] = (), **settings: Callable[..., None]) -> Comparison:
    """Feed both sides in pieces of the given sizes, then the rest."""
    comparison = Comparison(
        SOURCE, TARGET, both.places, (both.sources[0].offset, both.source_end),
        (both.segments[0].target_start, both.target_end), SEE, **settings,
    )  # fmt: skip
    rows = [list(both.sources), list(both.targets)]
    for side, count in steps:
        piece, rows[side] = rows[side][:count], rows[side][count:]
        comparison.feed(side, piece)
    comparison.feed(0, rows[0], done=True)
    comparison.feed(1, rows[1], done=True)
    return comparison


def told(differences: Sequence[Difference]) -> Found:
    return [(one.kind, one.source_range, one.target_range) for one in differences]


PIECES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40)), max_size=12)


@given(sides(), PIECES)
def test_equal_sides_are_equal_however_they_arrive(both: Both, pieces: list[tuple[int, int]]) -> None:
    comparison = compared(both, pieces)
    assert comparison.differences == []
    assert comparison.records == len(both.sources)
    assert comparison.is_idle


ALTERED: dict[Kind, Callable[[RecordContent], RecordContent]] = {
    Kind.VALUE: lambda one: one._replace(value=bytes([(one.value or b"")[0] ^ 1]) + (one.value or b"")[1:]),
    Kind.KEY: lambda one: one._replace(key=None),
    Kind.HEADERS: lambda one: one._replace(headers=b"\x02\x02a\x01"),
    Kind.TIMESTAMP: lambda one: one._replace(timestamp=one.timestamp + 1),
    Kind.RECORD: lambda one: one._replace(key=b"other", value=None),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALTERED)
@given(data=st.data(), both=sides(), pieces=PIECES)
def test_an_altered_record_is_found_in_its_place(
    kind: Kind, data: st.DataObject, both: Both, pieces: list[tuple[int, int]]
) -> None:
    at = data.draw(st.integers(0, len(both.targets) - 1))
    both.targets[at] = ALTERED[kind](both.targets[at])
    here, there = both.sources[at].offset, both.targets[at].offset
    comparison = compared(both, pieces)
    assert told(comparison.differences) == [(kind, (here, here + 1), (there, there + 1))]
    assert comparison.records == len(both.sources)
    (difference,) = comparison.differences
    assert (difference.source_records, difference.target_records) == (
        (SEE(both.sources[at]),), (SEE(both.targets[at]),),
    )  # fmt: skip


@given(data=st.data(), both=sides(), pieces=PIECES)
def test_a_missing_record_whose_offset_is_empty_is_found(
    data: st.DataObject, both: Both, pieces: list[tuple[int, int]]
) -> None:
    at = data.draw(st.integers(0, len(both.targets) - 1))
    lost = both.targets.pop(at)
    here = both.sources[at].offset
    assert told(compared(both, pieces).differences) == [(Kind.MISSING, (here, here + 1), (lost.offset, lost.offset))]


@given(data=st.data(), both=sides(), pieces=PIECES)
def test_a_missing_record_is_found_where_all_behind_it_are_shifted(
    data: st.DataObject, both: Both, pieces: list[tuple[int, int]]
) -> None:
    at = data.draw(st.integers(0, len(both.targets) - 2))
    offsets = [one.offset for one in both.targets]
    del both.targets[at]
    both.targets = [one._replace(offset=offset) for one, offset in zip(both.targets, offsets, strict=False)]
    here = both.sources[at].offset
    kinds = told(compared(both, pieces).differences)
    assert kinds[0][:2] == (Kind.MISSING, (here, here + 1))
    assert kinds[1:] == [
        (Kind.DISPLACED, (both.sources[at + 1].offset, both.sources[-1].offset + 1), (offsets[at], offsets[-2] + 1))
    ]


@given(data=st.data(), both=sides(), pieces=PIECES)
def test_an_extra_record_in_a_hole_of_the_map_is_found(
    data: st.DataObject, both: Both, pieces: list[tuple[int, int]]
) -> None:
    segment = data.draw(st.sampled_from(both.segments))
    there = segment.target_end  # where a commit marker would be
    both.targets = sorted([*both.targets, content(there, 9_000)])
    kinds = told(compared(both, pieces).differences)
    assert kinds == [(Kind.EXTRA, (segment.source_end, segment.source_end), (there, there + 1))]


@given(data=st.data(), both=sides(), pieces=PIECES)
def test_an_extra_record_is_found_where_all_behind_it_are_shifted(
    data: st.DataObject, both: Both, pieces: list[tuple[int, int]]
) -> None:
    at = data.draw(st.integers(0, len(both.targets) - 2))
    there = both.targets[at].offset
    shifted = [one._replace(offset=one.offset + 1) for one in both.targets[at:]]
    both.targets = [*both.targets[:at], content(there, 9_000), *shifted]
    first, *rest = told(compared(both, pieces).differences)
    assert (first[0], first[2]) == (Kind.EXTRA, (there, there + 1))
    assert [kind for kind, _, _ in rest] == [Kind.DISPLACED]
    assert rest[0][1] == (both.sources[at].offset, both.sources[-1].offset + 1)


@given(data=st.data(), both=sides(), pieces=PIECES)
def test_a_swapped_pair_is_one_difference(data: st.DataObject, both: Both, pieces: list[tuple[int, int]]) -> None:
    at = data.draw(st.integers(0, len(both.targets) - 2))
    one, other = both.targets[at : at + 2]
    both.targets[at : at + 2] = [other._replace(offset=one.offset), one._replace(offset=other.offset)]
    assert told(compared(both, pieces).differences) == [
        (Kind.ORDER, (both.sources[at].offset, both.sources[at + 1].offset + 1), (one.offset, other.offset + 1))
    ]


@pytest.mark.slow
@given(data=st.data(), both=sides(least=40), pieces=PIECES)
def test_a_record_that_went_far_is_one_difference_of_order(
    data: st.DataObject, both: Both, pieces: list[tuple[int, int]]
) -> None:
    at = data.draw(st.integers(0, len(both.targets) - 4))
    to = data.draw(st.integers(at + 2, len(both.targets) - 1))
    offsets = [one.offset for one in both.targets]
    both.targets.insert(to, both.targets.pop(at))
    both.targets = [one._replace(offset=offset) for one, offset in zip(both.targets, offsets, strict=True)]
    assert told(compared(both, pieces).differences) == [
        (Kind.ORDER, (both.sources[at].offset, both.sources[to].offset + 1), (offsets[at], offsets[to] + 1))
    ]


@given(data=st.data(), both=sides(least=60), pieces=PIECES)
def test_two_differences_stay_two(data: st.DataObject, both: Both, pieces: list[tuple[int, int]]) -> None:
    one, other = sorted(data.draw(st.sets(st.integers(0, len(both.targets) - 1), min_size=2, max_size=2)))
    kinds = data.draw(st.permutations(list(ALTERED)))[:2]
    for at, kind in zip((one, other), kinds, strict=True):
        both.targets[at] = ALTERED[kind](both.targets[at])
    assert [(kind, here[0]) for kind, here, _ in told(compared(both, pieces).differences)] == [
        (kinds[0], both.sources[one].offset), (kinds[1], both.sources[other].offset),
    ]  # fmt: skip


@given(both=sides(), pieces=PIECES)
def test_a_record_that_the_map_leaves_out_was_not_copied(both: Both, pieces: list[tuple[int, int]]) -> None:
    here = both.segments[-1].source_end
    both.sources.append(content(here, 9_000))
    both.source_end = here + 1
    (difference,) = told(compared(both, pieces).differences)
    assert difference[:2] == (Kind.MISSING, (here, here + 1))


@st.composite
def tangled(draw: st.DrawFn) -> Both:
    """Sides of which the target was altered in many ways, with records that are alike."""
    both = draw(sides())
    kinds = draw(st.integers(1, 40))
    both.sources = [content(one.offset, index % kinds) for index, one in enumerate(both.sources)]
    targets = [content(one.offset, index % kinds) for index, one in enumerate(both.targets)]
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, len(targets)))
        match draw(st.sampled_from(["drop", "add", "alter", "swap", "cut"])):
            case "drop":
                del targets[at : at + draw(st.integers(1, 20))]
            case "add":
                targets[at:at] = [content(0, draw(st.integers(0, 60))) for _ in range(draw(st.integers(1, 20)))]
            case "alter" if at < len(targets):
                targets[at] = content(targets[at].offset, draw(st.integers(0, 60)))
            case "swap":
                targets[at : at + 2] = targets[at : at + 2][::-1]
            case "cut":
                targets = targets[at:]
    if draw(st.booleans()):  # close up, as who writes a topic anew; else the offsets stay where they rise
        targets = [one._replace(offset=both.segments[0].target_start + index) for index, one in enumerate(targets)]
    offsets = sorted({one.offset for one in targets})
    both.targets = [one._replace(offset=offset) for one, offset in zip(targets, offsets, strict=False)]
    return both


@pytest.mark.parametrize(("window", "calm"), [(WINDOW, CALM), (8, 3)])
@given(both=tangled(), pieces=PIECES)
def test_what_no_difference_names_is_equal_and_in_its_place(
    window: int, calm: int, both: Both, pieces: list[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "WINDOW", window)
        patch.setattr(alignment, "CALM", calm)
        comparison = compared(both, pieces)

    def left(side: str, records: list[RecordContent]) -> list[RecordContent]:
        named = {offset for one in comparison.differences for offset in range(*getattr(one, f"{side}_range"))}
        return [one for one in records if one.offset not in named]

    places = both.places
    expected = [one._replace(offset=places.of(one.offset) or 0) for one in left("source", both.sources)]
    assert left("target", both.targets) == expected
    assert comparison.records == len(both.sources)
    assert comparison.is_complete
    for before, after in pairwise(comparison.differences):
        assert before.source_range[1] <= after.source_range[0] or before.source_range[0] == before.source_range[1]
        assert before.target_range[1] <= after.target_range[0] or before.target_range[0] == before.target_range[1]


def row(count: int, number: Callable[[int], int] = lambda index: index) -> list[RecordContent]:
    return [content(index, number(index)) for index in range(count)]


@dataclass
class Long(Both):
    """One segment that is longer than several windows."""

    segments: list[Segment] = field(default_factory=list)
    sources: list[RecordContent] = field(default_factory=list)
    targets: list[RecordContent] = field(default_factory=list)
    source_end: int = 5 * WINDOW
    target_end: int = 5 * WINDOW

    def __post_init__(self) -> None:
        self.segments = [Segment(source_start=0, target_start=0, count=5 * WINDOW)]
        self.sources, self.targets = row(5 * WINDOW), row(5 * WINDOW)


def test_a_shift_is_followed_through_windows_and_back_again() -> None:
    both = Long()
    del both.targets[100]
    both.targets.insert(4 * WINDOW, content(0, 9_000))
    both.targets = [one._replace(offset=index) for index, one in enumerate(both.targets)]
    late = 4 * WINDOW
    assert told(compared(both).differences) == [
        (Kind.MISSING, (100, 101), (100, 100)),
        (Kind.DISPLACED, (101, late + 1), (100, late)),
        (Kind.EXTRA, (late + 1, late + 1), (late, late + 1)),
    ]


def test_more_lost_than_a_window_holds_is_one_range() -> None:
    both = Long()
    both.targets = [one for one in both.targets if not 100 <= one.offset < 100 + 3 * WINDOW]
    comparison = compared(both)
    assert told(comparison.differences) == [(Kind.MISSING, (100, 100 + 3 * WINDOW), (100, 100))]
    assert len(comparison.differences[0].source_records) == SHOWN
    assert comparison.records == 5 * WINDOW


@pytest.mark.slow
def test_a_side_without_records_is_missing_or_extra_as_a_whole() -> None:
    both = Long()
    both.targets = []
    assert told(compared(both).differences) == [(Kind.MISSING, (0, 5 * WINDOW), (0, 0))]
    both = Long()
    everything, both.sources = both.sources, both.sources[:1]
    (extra,) = told(compared(both).differences)
    assert extra == (Kind.EXTRA, (1, 1), (1, len(everything)))


@pytest.mark.slow
def test_every_record_altered_is_one_range_and_not_a_slow_one() -> None:
    both = Long()
    both.targets = [one._replace(value=b"other") for one in both.targets]
    assert told(compared(both).differences) == [(Kind.VALUE, (0, 5 * WINDOW), (0, 5 * WINDOW))]


def test_what_is_not_told_is_counted() -> None:
    both = Long()
    both.targets = [one._replace(value=b"other") if one.offset % 2 else one for one in both.targets]
    comparison = compared(both)
    assert len(comparison.differences) == MOST_DIFFERENCES
    assert comparison.more == 5 * WINDOW // 2 - MOST_DIFFERENCES


def test_equal_records_one_after_the_other_are_told_apart_by_the_map() -> None:
    both = Long()
    both.sources = [one._replace(key=b"k", value=b"v", timestamp=1) for one in both.sources]
    both.targets = [one._replace(key=b"k", value=b"v", timestamp=1) for one in both.targets if one.offset != 77]
    assert told(compared(both).differences) == [(Kind.MISSING, (77, 78), (77, 77))]


def test_one_sided_records_of_a_compacted_topic_are_handed_on() -> None:
    both = Long()
    both.sources = [one for one in both.sources if one.offset != 10]
    both.targets = [one for one in both.targets if one.offset not in (20, 21)]
    both.targets[30] = both.targets[30]._replace(key=b"other")
    handed: list[tuple[int, int, int]] = []
    comparison = compared(both, one_sided=lambda side, one, place: handed.append((side, one.offset, place)))
    assert handed == [(1, 10, 10), (0, 20, 20), (0, 21, 21)]
    assert [kind for kind, _, _ in told(comparison.differences)] == [Kind.KEY]


@given(both=sides())
def test_places_lead_there_and_back(both: Both) -> None:
    places = both.places
    for source, target in zip(both.sources, both.targets, strict=True):
        assert places.of(source.offset) == target.offset
        assert places.back(target.offset) == source.offset
        assert places.next_of(source.offset, -1) == target.offset
    named = {one.offset for one in both.sources}
    for offset in range(both.sources[0].offset, both.source_end):
        if offset not in named:
            assert places.of(offset) is None
            behind = [t.offset for s, t in zip(both.sources, both.targets, strict=True) if s.offset > offset]
            assert places.next_of(offset, both.target_end) == (behind[0] if behind else both.target_end)


def test_a_witness_has_values_only_when_they_are_asked_for() -> None:
    one = RecordContent(5, 7, b"key", None, b"\0")
    hidden, open_ = record_samples(b"s", values=False)(one), record_samples(b"s", values=True)(one)
    assert (hidden.key_size, hidden.value_size, hidden.key_text, hidden.value_digest) == (3, None, "", "")
    assert open_.key_text == "key"
    assert hidden.content == open_.content != record_samples(b"other", values=False)(one).content
    assert record_samples(b"s", values=True)(one._replace(value=b"\x1b[31m\xff\n")).value_text == "\\x1b[31m\\xff\\n"

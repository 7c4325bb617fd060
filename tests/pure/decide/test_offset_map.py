"""The offset map: whoever goes on where it says reads next what he would have read next on the other side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.groups.rules.offset_map import Ahead, Before, Exact, InGap, OffsetMap, Translated
from ferry.model import Gap, Receipt, RefusalKind, Resolution, Segment
from ferry.model.segment import joined
from tests.pure.decide.values import RECEIPT

HOLE = None
"""What a log has where a read_committed reader is given nothing: markers, aborted records, what a cleaner took."""


@dataclass(slots=True, kw_only=True)
class World:
    """Both logs, as the record that each offset holds, and the receipts of a lane."""

    source: list[int | None]
    first: int
    target: list[int | None] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.receipts[-1].end if self.receipts else self.first

    def copy(self, count: int) -> None:
        """One committed chunk over `count` source offsets."""
        start, end = self.end, min(self.end + count, len(self.source))
        found = []
        for offset in range(start, end):
            if self.source[offset] is not HOLE:
                found.append(Segment(source_start=offset, target_start=len(self.target), count=1))
                self.target.append(self.source[offset])
        receipt = replace(RECEIPT, start=start, end=end, target_next=len(self.target), segments=joined(found))
        self.receipts.append(receipt)
        self.target.append(HOLE)  # the commit marker

    def fail(self, count: int) -> None:
        """A chunk that is aborted: its records stay in the target's log, and nobody sees them."""
        self.target += [HOLE] * (count + 1)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A source log with holes, copied from somewhere on by several chunks, some of them aborted at first."""
    holes = draw(st.lists(st.booleans(), min_size=1, max_size=60))
    source = [HOLE if hole else number for number, hole in enumerate(holes)]
    world = World(source=source, first=draw(st.integers(0, len(source) - 1)))
    world.target = [HOLE] * draw(st.integers(0, 3))
    for commits, count in draw(st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=8)):
        if commits and world.end < len(source):
            world.copy(count)
        elif not commits:
            world.fail(count)
    if not world.receipts:
        world.copy(len(source))
    return world


def next_record(log: Sequence[int | None], offset: int) -> int | None:
    """What a reader who begins at `offset` is given first."""
    return next((record for record in log[offset:] if record is not HOLE), None)


@given(world=worlds(), knows_end=st.booleans())
def test_a_reader_goes_on_with_the_record_that_would_have_come_next(world: World, knows_end: bool) -> None:
    made = OffsetMap.forward(world.receipts, stands_at=len(world.target) if knows_end else None)
    copied = [*world.source[: world.end]]
    for offset in range(len(world.source) + 2):
        found = made.translate(offset)
        if offset < world.first:
            assert found == Before(offset=found.offset)
            assert next_record(world.target, found.offset) == next_record(copied, world.first)
        elif offset > world.end:
            assert found == Ahead(offset=found.offset)
            assert next_record(world.target, found.offset) is None
        else:
            assert next_record(world.target, found.offset) == next_record(copied, offset)
            there = offset == world.end or world.source[offset] is not HOLE
            assert isinstance(found, Exact if there else InGap)


@given(world=worlds())
def test_the_way_back_leads_to_the_same_record(world: World) -> None:
    made = OffsetMap.backward(world.receipts, stands_at=len(world.target))
    copied = [*world.source[: world.end]]
    for offset in range(len(world.target) + 1):
        found = made.translate(offset)
        if isinstance(found, Before):
            assert next_record(copied, found.offset) == next_record(world.target, offset)
        else:
            assert next_record(copied, found.offset) == next_record(world.target, offset)
            assert not isinstance(found, Exact) or found.offset == world.end or world.target[offset] is not HOLE


@given(world=worlds())
def test_there_and_back_again(world: World) -> None:
    there, back = OffsetMap.forward(world.receipts), OffsetMap.backward(world.receipts)
    for offset, record in enumerate(world.source[: world.end]):
        if record is not HOLE and offset >= world.first:
            assert back.translate(there.translate(offset).offset) == Exact(offset=offset)


TWO = (
    replace(RECEIPT, start=10, end=20, target_next=10, segments=(Segment(source_start=10, target_start=0, count=10),)),
    replace(RECEIPT, start=20, end=31, target_next=21, segments=(Segment(source_start=21, target_start=11, count=10),)),
)


@pytest.mark.parametrize(
    ("stands_at", "offset", "found"),
    [
        pytest.param(22, 9, Before(offset=0), id="before"),
        pytest.param(22, 10, Exact(offset=0), id="first"),
        pytest.param(22, 19, Exact(offset=9), id="last of a chunk"),
        pytest.param(22, 20, InGap(offset=11), id="gap"),
        pytest.param(22, 31, Exact(offset=22), id="caught up: behind the marker, no lag"),
        pytest.param(None, 31, Exact(offset=21), id="the target's end is not known"),
        pytest.param(21, 31, Exact(offset=21), id="the marker is not written yet"),
        pytest.param(40, 31, Exact(offset=21), id="something else lies there"),
        pytest.param(22, 32, Ahead(offset=22), id="ahead"),
    ],
)
def test_each_outcome_is_told_from_the_others(stands_at: int | None, offset: int, found: Translated) -> None:
    assert OffsetMap.forward(TWO, stands_at=stands_at).translate(offset) == found


@pytest.mark.parametrize(
    ("offset", "found"),
    [
        (0, Exact(offset=10)),
        (10, InGap(offset=21)),
        (21, Exact(offset=31)),
        (22, Exact(offset=31)),
        (23, Ahead(offset=31)),
    ],
)
def test_a_reader_of_the_target_finds_his_place_at_the_source(offset: int, found: Translated) -> None:
    assert OffsetMap.backward(TWO, stands_at=22).translate(offset) == found


def went_back(void_from: int, to: int) -> Gap:
    """By a run behind those of TWO: what they say from `void_from` on does not hold, and the lane goes on at `to`."""
    return Gap(
        source=RECEIPT.source,
        start=31,
        end=to,
        why=RefusalKind.SOURCE_TRUNCATED,
        run="run-9",
        at_ms=1,
        how=Resolution.RESTART,
        generation=9,
        void_from=void_from,
    )


def test_a_topic_that_was_created_again_has_a_map_of_its_own() -> None:
    again = replace(
        RECEIPT,
        generation=9,
        start=0,
        end=5,
        target_next=45,
        segments=(Segment(source_start=0, target_start=40, count=5),),
    )
    made = OffsetMap.forward([*TWO, again], [went_back(0, 0)], 46)
    assert made.translate(3) == Exact(offset=43)
    assert made.translate(12) == Ahead(offset=46)
    nothing_yet = OffsetMap.forward(TWO, [went_back(0, 0)], 22)
    assert (nothing_yet.translate(0), nothing_yet.translate(12)) == (Exact(offset=22), Ahead(offset=22))


def test_offsets_that_were_copied_again_count_where_they_lie_now() -> None:
    """The source's log was cut off at 15 and went on with other records, which were copied behind the old ones."""
    again = replace(
        RECEIPT,
        generation=9,
        start=15,
        end=18,
        target_next=25,
        segments=(Segment(source_start=15, target_start=22, count=3),),
    )
    made = OffsetMap.forward([*TWO, again], [went_back(15, 15)], 26)
    assert [made.translate(offset) for offset in (14, 15, 17, 18)] == [
        *(Exact(offset=4), Exact(offset=22), Exact(offset=24), Exact(offset=26)),
    ]
    back = OffsetMap.backward([*TWO, again], [went_back(15, 15)], 26)
    # Target offsets 5 to 20 hold records that the source has not any more.
    assert [back.translate(offset) for offset in (4, 5, 22)] == [Exact(offset=14), InGap(offset=15), Exact(offset=15)]


def test_a_chunk_without_records_maps_to_its_end() -> None:
    made = OffsetMap.forward([replace(RECEIPT, start=4, end=6, target_next=7, segments=())])
    assert [made.translate(offset) for offset in (3, 4, 6, 7)] == [
        *(Before(offset=7), InGap(offset=7), Exact(offset=7), Ahead(offset=7)),
    ]


@pytest.mark.parametrize("stands_at", [None, 0, 7], ids=["not known", "empty", "others' records are there"])
def test_a_map_of_which_nothing_was_copied_yet_leads_to_the_first_offset(stands_at: int | None) -> None:
    nothing = replace(RECEIPT, target_next=None, segments=(), records=0)
    assert OffsetMap.forward([nothing], stands_at=stands_at).translate(nothing.end) == Exact(offset=0)
    assert OffsetMap.backward([nothing], stands_at=stands_at).translate(0) == Exact(offset=nothing.end)

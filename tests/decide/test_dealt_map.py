"""Where groups go on in topics that were dealt anew: held against a plain model of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.decide.groups.dealt_map import GoesOn, goes_on
from ferry.decide.records.units import reached_at
from ferry.model import TopicPartition, Unit, UnitReceipt, Vector
from tests.decide.values import FLOW, LANE

PLACE = TopicPartition("a.t", 0)
ONE = UnitReceipt(
    flow=FLOW, lane=LANE, run="r1", generation=1, slot=0, source_topic="t", target=PLACE, era=1, begins=(), reached=(),
    target_start=-1, target_next=-1, records=0, bytes=0, batches=0, digest="", transform="d", at_ms=0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Copy:
    """What one target partition has: source partition and offset by its own offset; and its receipts."""

    ends: Vector
    there: dict[int, tuple[int, int]]
    receipts: list[UnitReceipt]
    stands_at: int


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    """Runs that each take all source partitions up to their ends, in chunks of a few records."""
    width = draw(st.integers(1, 3))
    to = draw(st.integers(0, 2))
    there: dict[int, tuple[int, int]] = {}
    receipts: list[UnitReceipt] = []
    starts: Vector = (0,) * width
    target_next = -1
    for run in range(draw(st.integers(1, 4))):
        if run and draw(st.booleans()) and width < 4:
            width, starts = width + 1, (*starts, 0)
        ends = tuple(at + draw(st.integers(0, 6)) for at in starts)
        unit = Unit(source_topic="t", target=PLACE, starts=starts, ends=ends, slot=0, era=1, partitions=2, digest="d")
        mine = [(p, o) for p in range(width) for o in range(starts[p], ends[p]) if draw(st.booleans())]
        begins = starts
        while True:
            count = draw(st.integers(1, 4))
            chunk, mine = mine[:count], mine[count:]
            reached = reached_at(unit, *chunk[-1]) if mine else ends
            first = to
            for one in chunk:
                there[to] = one
                to += 1
            target_next = to if chunk else target_next
            receipts.append(
                replace(
                    ONE,
                    run=f"r{run}",
                    begins=begins,
                    reached=reached,
                    records=len(chunk),
                    target_next=target_next,
                    target_start=first if chunk else -1,
                )
            )
            to += bool(chunk)  # the marker
            begins = reached
            if not mine:
                break
        starts = ends
    return Copy(starts, there, receipts, to)


@given(copies(), st.data())
def test_nothing_unread_is_missed_and_what_is_read_again_is_told(made: Copy, data: st.DataObject) -> None:
    read = {
        number: data.draw(st.integers(0, end), label=f"read of {number}")
        for number, end in enumerate(made.ends)
        if data.draw(st.booleans(), label=f"has {number}")
    }
    gone = data.draw(st.integers(0, len({one.run for one in made.receipts}) - 1), label="runs whose receipts are gone")
    known = [one for one in made.receipts if int(one.run[1:]) >= gone]
    log_start = data.draw(st.sampled_from([0, *made.there]), label="log start")
    found = goes_on(read, known, log_start=log_start, stands_at=made.stands_at)

    left = {at: one for at, one in made.there.items() if at >= log_start}
    unread = [at for at, (number, offset) in left.items() if offset >= read.get(number, 0)]
    again = [at for at, (number, offset) in left.items() if at >= found.offset and offset < read.get(number, 0)]
    assert all(at >= found.offset for at in unread)
    assert found.again is None or len(again) <= found.again
    assert log_start <= found.offset <= max(made.stands_at, log_start)
    if not gone and not unread and all(read.get(number, 0) == end for number, end in enumerate(made.ends)):
        assert found == GoesOn(made.stands_at if made.there else found.offset, 0), "who has read everything has no lag"


@given(copies())
def test_a_group_at_the_edge_of_a_chunk_reads_nothing_again(made: Copy) -> None:
    """As long as the group's offsets are those that a chunk began with."""
    for one in made.receipts:
        found = goes_on(dict(enumerate(one.begins)), made.receipts, log_start=0, stands_at=made.stands_at)
        following = [each for each in made.receipts[made.receipts.index(one) :] if each.records]
        assert found.again == 0
        if following:
            assert found.offset == following[0].target_start


def test_without_any_receipt_all_of_it_is_read() -> None:
    assert goes_on({0: 9}, [], log_start=0, stands_at=7) == GoesOn(0, None)
    assert goes_on({0: 9}, [], log_start=7, stands_at=7) == GoesOn(7, 0)


def test_receipts_that_do_not_follow_each_other_say_nothing_of_what_is_before() -> None:
    first = replace(ONE, begins=(0,), reached=(5,), records=5, target_start=0, target_next=5)
    later = replace(ONE, begins=(9,), reached=(12,), records=3, target_start=20, target_next=23)
    assert goes_on({0: 3}, [first, later], log_start=0, stands_at=24) == GoesOn(0, None)
    assert goes_on({0: 9}, [first, later], log_start=0, stands_at=24) == GoesOn(20, 0)
    assert goes_on({0: 3}, [first, later], log_start=20, stands_at=24) == GoesOn(20, 0)

"""Offset maps of filtered topics that keep their partitions: held against a plain model of both logs.

A group that goes on where its checkpoint leads it gets each kept record that it has not read, once, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.groups.rules.offset_map import Ahead, Before, Exact, InGap, OffsetMap
from ferry.model import Receipt, Segment
from tests.pure.decide.values import RECEIPT


@dataclass(frozen=True, slots=True)
class Logs:
    """A source log by offset (True: a record that the filter keeps), and its copy: source offsets by target offset."""

    begins: int
    kept: list[bool]
    receipts: list[Receipt]
    there: dict[int, int]
    stands_at: int
    """Where the target ends for readers, behind the last marker."""


@st.composite
def logs(draw: st.DrawFn) -> Logs:
    """What is copied in chunks of any size; each that writes anything leaves a marker behind it."""
    begins = draw(st.integers(0, 5))
    kept = draw(st.lists(st.booleans(), min_size=1, max_size=40))
    end = begins + len(kept)
    edges = sorted({begins, end, *draw(st.lists(st.integers(begins, end), max_size=6))})
    to = draw(st.integers(0, 3))
    there: dict[int, int] = {}
    receipts: list[Receipt] = []
    target_next = to
    for first, last in pairwise(edges):
        segments: list[Segment] = []
        for offset in range(first, last):
            if not kept[offset - begins]:
                continue
            there[to] = offset
            before = segments[-1] if segments else None
            if before is not None and before.source_end == offset:
                segments[-1] = replace(before, count=before.count + 1)
            else:
                segments.append(Segment(source_start=offset, target_start=to, count=1))
            to += 1
            target_next = to
        to += bool(segments)  # the marker
        receipts.append(
            replace(RECEIPT, start=first, end=last, target_next=target_next, segments=tuple(segments), transform="f")
        )
    return Logs(begins, kept, receipts, there, to)


@given(logs(), st.data())
def test_nothing_unread_is_missed_and_nothing_is_read_again(made: Logs, data: st.DataObject) -> None:
    forward = OffsetMap.forward(made.receipts, stands_at=made.stands_at)
    end = made.begins + len(made.kept)
    for offset in range(made.begins, end + 1):
        found = forward.translate(offset)
        unread = [at for at in range(offset, end) if made.kept[at - made.begins]]
        assert [source for target, source in sorted(made.there.items()) if target >= found.offset] == unread
        if offset < end:
            assert isinstance(found, Exact if made.kept[offset - made.begins] else InGap)
    assert forward.translate(end) == Exact(
        offset=made.stands_at if made.there else made.receipts[-1].target_next or 0
    ), "who has read everything has no lag"
    assert isinstance(forward.translate(end + data.draw(st.integers(1, 9))), Ahead)
    if made.begins:
        before = forward.translate(made.begins - 1)
        assert isinstance(before, Before)
        assert not [target for target in made.there if target < before.offset]


@given(logs())
def test_the_way_back_leads_to_the_record_that_is_next_there(made: Logs) -> None:
    back = OffsetMap.backward(made.receipts, stands_at=made.stands_at)
    for target, source in made.there.items():
        assert back.translate(target) == Exact(offset=source)
    for target in range(min(made.there, default=0), made.stands_at + 1):
        left = [source for at, source in sorted(made.there.items()) if at >= target]
        assert back.translate(target).offset == (left[0] if left else made.begins + len(made.kept))

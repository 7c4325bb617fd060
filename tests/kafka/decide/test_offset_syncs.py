"""Offset syncs, read by MirrorMaker 2's own store: it loses no record, and re-reads no more than syncs can tell."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.features.groups.rules.offset_map import OffsetMap
from ferry.features.groups.rules.offset_syncs import anew, offset_syncs, syncs_of
from ferry.model import Segment
from tests.kafka.mirror.mirror_oracle import translated
from tests.pure.decide.test_offset_map import World, worlds
from tests.pure.decide.test_offset_syncs import NEVER, PLACE, segment, written
from tests.pure.decide.values import RECEIPT


@given(world=worlds())
@settings(max_examples=60)
def test_mirror_makers_reader_never_goes_past_a_record(world: World) -> None:
    made = OffsetMap.forward(world.receipts)
    offsets = range(len(world.source) + 2)
    syncs = written(world)
    if not syncs:
        return
    for offset, found in zip(offsets, translated(syncs, offsets), strict=True):
        assert found is not None
        assert found <= made.translate(offset).offset


@given(world=worlds(), data=st.data())
@settings(max_examples=30)
def test_a_repeat_after_a_crash_loses_nothing(world: World, data: st.DataObject) -> None:
    """A step that died before the ledger knew of its syncs writes them again: the reader goes back with them."""
    syncs = written(world)
    if not syncs:
        return
    again = data.draw(st.integers(0, len(world.receipts) - 1))
    syncs += offset_syncs(world.receipts[again:], NEVER)
    made = OffsetMap.forward(world.receipts)
    offsets = range(len(world.source) + 2)
    for offset, found in zip(offsets, translated(syncs, offsets), strict=True):
        assert found is not None
        assert found <= made.translate(offset).offset


@given(world=worlds())
@settings(max_examples=30)
def test_who_has_read_all_copied_records_reads_none_again(world: World) -> None:
    """The last sync of each run is its last record: who stands behind it is translated to behind its copy."""
    for count, receipt in enumerate(world.receipts, 1):
        if receipt.segments:
            last = receipt.segments[-1]
            syncs = written(replace(world, receipts=world.receipts[:count]))
            assert translated(syncs, [last.source_end]) == [last.target_end]


def test_a_long_segment_has_syncs_ever_closer_to_its_end() -> None:
    syncs = syncs_of(PLACE, [Segment(source_start=100, target_start=7, count=1_000_000)])
    distances = [1_000_099 - sync.upstream for sync in syncs]
    assert distances == [999_999, *((1 << bits) - 1 for bits in reversed(range(20)))]
    offsets = [100, 500_000, 900_000, 1_000_000, 1_000_090, 1_000_100]
    for offset, found in zip(offsets, translated(syncs, offsets), strict=True):
        exact = offset - 93
        assert found is not None
        # Half of what lies between an offset and the end is what a reader of syncs may have to read again.
        assert exact - (1_000_100 - offset) <= found <= exact


def test_a_partition_that_went_back_is_forgotten_by_the_reader() -> None:
    """Its copy was created again, so the new offsets are smaller: going on from the old syncs would lose records."""
    first = replace(RECEIPT, start=0, end=50, target_next=50, segments=(segment(0, 0, 50),))
    again = replace(RECEIPT, start=100, end=110, target_next=10, segments=(segment(100, 0, 10),), since=9)
    before = offset_syncs([first], NEVER)
    assert translated([*before, *syncs_of(PLACE, again.segments)], [60]) == [50]  # what the copy does not have
    assert translated([*before, *offset_syncs([again], 5)], [60, 100, 105, 110]) == [0, 0, 3, 10]
    assert offset_syncs([again], 5)[0] == anew(PLACE)
    assert anew(PLACE) not in offset_syncs([again], 9)

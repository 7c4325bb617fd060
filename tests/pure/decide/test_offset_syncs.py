"""Offset syncs, read by MirrorMaker 2's own store: it loses no record, and re-reads no more than syncs can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from ferry.features.groups.rules.offset_syncs import offset_syncs, syncs_of
from ferry.model import OffsetSync, Segment, TopicPartition
from tests.pure.decide.test_offset_map import World, worlds
from tests.pure.decide.values import RECEIPT
from tests.tiers import examples

PLACE = RECEIPT.source
NEVER = -1


def written(world: World) -> list[OffsetSync]:
    """What runs of one chunk each write, one run after the other."""
    return [sync for receipt in world.receipts for sync in offset_syncs([receipt], NEVER)]


def in_order(segments: list[Segment]) -> dict[int, int]:
    """Target offsets by source offset."""
    return {
        segment.source_start + index: segment.target_start + index
        for segment in segments
        for index in range(segment.count)
    }


@given(world=worlds())
@settings(max_examples=examples(60))
def test_syncs_are_of_copied_records_only(world: World) -> None:
    where = in_order([segment for receipt in world.receipts for segment in receipt.segments])
    for sync in written(world):
        assert where[sync.upstream] == sync.downstream


@pytest.mark.slow
def test_many_short_segments_give_few_syncs() -> None:
    """A source in transactions has a hole behind each: a segment each, and MirrorMaker 2's store holds 64 syncs."""
    segments = [Segment(source_start=3 * n, target_start=2 * n, count=2) for n in range(50_000)]
    syncs = syncs_of(PLACE, segments)
    assert len(syncs) <= 20
    assert (syncs[0].upstream, syncs[-1].upstream) == (0, 149_998)


def test_only_the_newest_copy_counts() -> None:
    """The policy has renamed it in between."""
    old = replace(RECEIPT, target=TopicPartition(topic="old", partition=0), segments=(segment(0, 0, 5),))
    new = replace(RECEIPT, segments=(segment(5, 0, 5),))
    assert offset_syncs([old, new], NEVER) == offset_syncs([new], NEVER)


def test_nothing_copied_gives_no_sync() -> None:
    assert offset_syncs([replace(RECEIPT, segments=())], NEVER) == []


def segment(source_start: int, target_start: int, count: int) -> Segment:
    """Records that lie without a hole on both sides."""
    return Segment(source_start=source_start, target_start=target_start, count=count)

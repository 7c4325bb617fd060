"""What a lane takes over, partition by partition, and what speaks against it."""

from __future__ import annotations

from bisect import bisect_right

from ferry.features.groups.rules.adopted_map import approximate
from ferry.model import OffsetSync
from tests.kafka.mirror.mirror_oracle import translated
from tests.pure.decide.test_adoption import ORDERS, kept_in_ledger, syncs


def test_a_reader_reads_as_little_again_as_mirror_makers_own_translation() -> None:
    """The store of MirrorMaker 2 holds 64 of the same syncs; a group re-read 9,529 records by 36 of 346."""
    pairs = syncs(346)
    adoption, _ = kept_in_ledger(pairs)
    written = [OffsetSync(source=ORDERS, upstream=source, downstream=target) for source, target in pairs]
    offsets = [*range(0, adoption.end, 997), 10_080, adoption.end - 1]
    theirs = translated(written, offsets)
    again = []
    for offset, their in zip(offsets, theirs, strict=True):
        ours = approximate([adoption], offset)
        assert ours is not None
        assert their is None or ours.offset >= their, f"offset {offset}: {ours.offset} lies before {their}"
        (source, target) = pairs[bisect_right(pairs, offset, key=lambda pair: pair[0]) - 1]
        assert ours.offset == target + (offset > source), "from the last sync, one further at most"
        again.append(offset - source)
    assert max(again) <= 140

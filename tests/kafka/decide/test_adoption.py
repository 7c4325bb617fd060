"""What a lane takes over, partition by partition, and what speaks against it."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from ferry.features.groups.rules.adopted_map import approximate
from ferry.features.migrate.rules.adoption import mirror_makers
from ferry.model import OffsetSync
from tests.kafka.mirror.mirror_oracle import translated
from tests.pure.decide.test_adoption import ORDERS, kept_in_ledger, of_mirror_maker, syncs


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
    assert theirs.count(None) < len(theirs), "MirrorMaker 2 translates some"


@pytest.mark.parametrize("count", [1, 2, 65, 346, 5_000])
def test_the_pairs_that_are_kept_of_many_are_those_by_which_mirror_maker_translates(count: int) -> None:
    pairs = syncs(count)
    written = [OffsetSync(source=ORDERS, upstream=source, downstream=target) for source, target in pairs]
    offsets = [*range(0, pairs[-1][0] + 200, 97), *(source + more for source, _ in pairs[::7] for more in (0, 1))]
    kept = sorted(mirror_makers(pairs))
    theirs = [-1 if their is None else their for their in translated(written, offsets)]
    assert [of_mirror_maker(kept, offset) for offset in offsets] == theirs

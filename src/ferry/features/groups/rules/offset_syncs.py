"""Chooses the offset syncs of copied records, so that MirrorMaker 2's reader never skips a record.

That reader (`OffsetSyncStore` of Kafka 4.3.0) translates an offset by the last sync at or before it. The offset of the
sync itself leads to the sync's target offset. A later offset leads one record further and no more, because the reader
does not know what is in between. So a sync of a copied record never leads past a record.

The store keeps as many syncs as an offset has bits: the closer to the newest one, the denser. This module makes the
syncs that the store can keep: one record at each power of two back from the last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter

from ferry.model import OffsetSync, Receipt, Segment, TopicPartition


def anew(source: TopicPartition) -> OffsetSync:
    """Make the sync that has a reader drop all earlier ones: every offset after it leads to the beginning.

    It is for a copy that began again: its offsets may be smaller than the earlier ones, from which a reader would
    continue.
    """
    return OffsetSync(source=source, upstream=-1, downstream=-1)


def offset_syncs(receipts: Iterable[Receipt], synced: int) -> list[OffsetSync]:
    """Return the syncs of receipts in ledger order, as they are written: by source partition, then ascending.

    `synced` is the generation of the last run whose syncs were written (-1: none). A partition on which the lane went
    back since then begins with `anew`. If the name of the copy has changed, only the newest copy counts.
    """
    chosen: dict[TopicPartition, list[Receipt]] = {}
    for receipt in receipts:
        chosen.setdefault(receipt.source, []).append(receipt)
    syncs: list[OffsetSync] = []
    for source, found in chosen.items():
        last = found[-1]
        if last.since > synced:
            syncs.append(anew(source))
        valid = (receipt for receipt in found if (receipt.target, receipt.since) == (last.target, last.since))
        syncs += syncs_of(source, sorted(segment for receipt in valid for segment in receipt.segments))
    return syncs


def syncs_of(source: TopicPartition, segments: Sequence[Segment]) -> list[OffsetSync]:
    """Return the syncs of one partition's segments, which ascend by source offset.

    They are the first record, the last one, and ever closer ones towards the last.
    """
    if not segments:
        return []
    first, last = segments[0].source_start, segments[-1].source_end - 1
    wanted = {first, *(last - (1 << bits) + 1 for bits in range((last - first + 1).bit_length()))}
    found = {}
    for offset in sorted(wanted):
        at = bisect_right(segments, offset, key=attrgetter("source_start")) - 1
        inside = offset < segments[at].source_end
        segment = segments[at] if inside else segments[at + 1]
        record = offset if inside else segment.source_start
        found[record] = segment.target_start + record - segment.source_start
    return [OffsetSync(source=source, upstream=up, downstream=down) for up, down in found.items()]

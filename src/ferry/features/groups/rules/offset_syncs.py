"""Which offset syncs stand for what was copied, so that MirrorMaker 2's reader goes past no record.

That reader (`OffsetSyncStore` of Kafka 4.3.0) translates by the last sync at or before an offset: at the sync's own
offset to where it says, behind it to one record further and no more, for what lies between is unknown to it. So a sync
of a record that was copied, and of nothing else, never leads past one. The store keeps as many syncs as an offset has
bits, the closer together the nearer they are to the newest one: here are those that it can keep, one record at every
power of two back from the last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter

from ferry.model import OffsetSync, Receipt, Segment, TopicPartition


def anew(source: TopicPartition) -> OffsetSync:
    """The sync that makes a reader forget all earlier ones: whatever lies behind it leads to the beginning.

    For a copy that began anew: its offsets may be smaller than those of before, which a reader would go on from.
    """
    return OffsetSync(source=source, upstream=-1, downstream=-1)


def offset_syncs(receipts: Iterable[Receipt], synced: int) -> list[OffsetSync]:
    """The syncs of receipts in ledger order, by source partition and then ascending, as they are to be written.

    `synced` is the generation of the last run whose syncs were written (-1: none). A partition on which the lane went
    back since then begins with `anew`, and where the copy has another name now only the newest one counts.
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
    """The syncs of one partition's segments, ascending by source offset: first, last, and ever closer to the last."""
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

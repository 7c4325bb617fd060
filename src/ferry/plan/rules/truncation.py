"""What leader epochs and offsets show of logs that were truncated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ferry.ledger.history import Held, current_segments
from ferry.model import Gap, Receipt, RefusalKind
from ferry.model.observed import Unavailable
from ferry.plan.rules.facts import SourcePartition, SourceTopic

_GUARDS_OF_THE_SOURCE = frozenset(
    {RefusalKind.CLUSTER_CHANGED, RefusalKind.TOPIC_RECREATED, RefusalKind.SOURCE_TRUNCATED}
)


def read_before(
    last: Receipt | None, part: SourcePartition, start: int, gaps: Iterable[Gap]
) -> tuple[int | None, int | None]:
    """Return the leader epoch and end that the source's log must still show for a copy from `start`; None: none yet."""
    if last is None:
        return None, None
    if not any(gap.why in _GUARDS_OF_THE_SOURCE for gap in gaps):
        return last.source_epoch, last.end
    return (part.leader_epoch, start) if part.leader_epoch is not None and start <= part.log_end else (None, None)


def written_before(last: Receipt | None, gaps: Iterable[Gap]) -> int | None:
    """Return the leader epoch in which the target's log had the records after which the lane continues.

    None: it is not known.
    If the target's guard was just lifted, the lane continues after other records.
    """
    if last is None or any(gap.why is RefusalKind.TARGET_CHANGED for gap in gaps):
        return None
    return last.target_epoch


def with_high_watermark(
    topic: SourceTopic, number: int, high_watermark: int | None, failed: Unavailable | None
) -> SourceTopic:
    """Return the topic with the high watermark of a partition; without one the partition becomes a leaderless one."""
    if high_watermark is not None:
        part: SourcePartition = replace(topic.partitions[number], high_watermark=high_watermark)
        return replace(topic, partitions={**topic.partitions, number: part})
    return replace(
        topic,
        partitions={other: part for other, part in topic.partitions.items() if other != number},
        leaderless=tuple(sorted((*topic.leaderless, number))),
        unserved=topic.unserved if failed is None else {**topic.unserved, number: failed},
    )


def held_upto(written: Iterable[Held], gaps: Iterable[Gap], last: Receipt, target_end: int) -> int:
    """Return the source offset up to which a target partition that ends at `target_end` still has its records."""
    own = [receipt for receipt in written if receipt.target_topic_id in ("", last.target_topic_id)]
    for segment in current_segments(own, gaps):
        if segment.target_end > target_end:
            return segment.source_start + max(0, target_end - segment.target_start)
    # Where the records of an adopted predecessor are is not known.
    return 0 if last.adopted else last.end

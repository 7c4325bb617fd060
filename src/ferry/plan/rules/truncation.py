"""What leader epochs and offsets tell of logs that were cut."""

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


def read_before(last: Receipt | None, part: SourcePartition, start: int, gaps: Iterable[Gap]) -> tuple[int, int]:
    """Leader epoch and end of a source's log that a copy from `start` on has to find there; -1: there is none yet.

    That is what was read of it. `gaps` were just decided: where a guard of the source was lifted, the log is known to
    be another one, and it is that log, as the plan saw it, that must still reach `start`.
    """
    if last is None:
        return -1, -1
    if not any(gap.why in _GUARDS_OF_THE_SOURCE for gap in gaps):
        return last.source_epoch, last.end
    return (part.leader_epoch, start) if part.leader_epoch >= 0 and start <= part.log_end else (-1, -1)


def written_before(last: Receipt | None, gaps: Iterable[Gap]) -> int:
    """The leader epoch in which the target's log was found to have what the lane goes on behind; -1: not known.

    Where the target's guard was just lifted the lane goes on behind something else.
    """
    if last is None or any(gap.why is RefusalKind.TARGET_CHANGED for gap in gaps):
        return -1
    return last.target_epoch


def with_high_watermark(
    topic: SourceTopic, number: int, high_watermark: int | None, failed: Unavailable | None
) -> SourceTopic:
    """The topic with the high watermark of a partition; the partition is left out when nobody tells."""
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
    """Up to which source offset a target partition that ends at `target_end` still has what was copied into it."""
    own = [receipt for receipt in written if receipt.target_topic_id in ("", last.target_topic_id)]
    for segment in current_segments(own, gaps):
        if segment.target_end > target_end:
            return segment.source_start + max(0, target_end - segment.target_start)
    # Of what a predecessor copied nobody knows where it lies.
    return 0 if last.adopted else last.end

"""What leader epochs and offsets tell of logs that were cut."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.decide.facts import Facts
from ferry.decide.history import current_segments
from ferry.model import Gap, Receipt


def diverged(facts: Facts, last: Receipt, epoch_end: int) -> int | None:
    """Where the source's log parts from what the last receipt copied; None when it does not.

    `epoch_end` is where the log now says that the leader epoch of the receipt's last batch ended. A compacted log may
    have lost the batches between the last copied record and the receipt's end, with the epochs that they were of.
    """
    settings = facts.sources[last.source.topic].settings
    policy = None if settings is None else settings.in_force("cleanup.policy")
    compacted = "compact" in (policy or "")
    seen = max((part.source_end for part in last.segments), default=0) if compacted else last.end
    return epoch_end if epoch_end < seen else None


def held_upto(written: Iterable[Receipt], gaps: Iterable[Gap], last: Receipt, target_end: int) -> int:
    """Up to which source offset a target partition that ends at `target_end` still has what was copied into it."""
    own = [receipt for receipt in written if receipt.target_topic_id in ("", last.target_topic_id)]
    for segment in current_segments(own, gaps):
        if segment.target_end > target_end:
            return segment.source_start + max(0, target_end - segment.target_start)
    return last.end

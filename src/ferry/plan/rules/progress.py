"""Where a lane continues, and about how many bytes are not yet copied: shared by plans and lag."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ferry.model import Gap, Receipt, TopicPartition
from ferry.plan.rules.facts import Facts, SourcePartition

UNKNOWN_RECORD_BYTES = 1024
"""Assumed bytes for each offset if the log's size is not known."""


def next_offset(facts: Facts, source: TopicPartition, part: SourcePartition, last: Receipt | None) -> int:
    """Return the source offset at which the lane continues in a partition.

    It is the end of the last receipt; without one, where the lane's first run began; for a partition that came later,
    its log start. Gaps that an operator passed by hand from there on are skipped. If a window is being copied, the
    offset is not before the window.
    """
    if last is not None:
        start = last.end
    elif source in facts.lane.dealt:
        start = facts.lane.dealt[source]
    elif source in facts.lane.begins:
        start = max(part.log_start, facts.lane.begins[source])
    elif facts.lane.first_run:
        start = max(part.log_start, part.start)
    else:
        start = max(part.log_start, facts.lane.starts.get(source, part.log_start))
    for gap in facts.lane.skips.get(source, ()):
        if _leads_on(facts, gap, start, last):
            start = gap.end
    return max(start, facts.lane.begins.get(source, start))


def place_of_lane(facts: Facts, source: TopicPartition, part: SourcePartition, last: Receipt | None) -> int:
    """Return the source offset at which the lane continues, whether or not the source still has its record.

    Before the first copy it is where the partition began when a plan first saw it, as far as the ledger shows.
    """
    if last is not None or facts.lane.first_run or source not in facts.lane.starts:
        return next_offset(facts, source, part, last)
    return next_offset(facts, source, replace(part, log_start=0), None)


def _leads_on(facts: Facts, gap: Gap, start: int, last: Receipt | None) -> bool:
    """Return whether a gap begins where the lane is, in the present log: a gap of an earlier log means nothing."""
    topic = facts.source.topics.get(gap.source.topic)
    same = topic is None or not gap.topic_id or not topic.topic_id or gap.topic_id == topic.topic_id
    if not same or gap.end <= start or gap.since != (-1 if last is None else last.since):
        return False
    # A lane that never copied has no position of its own: retention may have moved its start meanwhile.
    return gap.start == start or (last is None and gap.source not in facts.lane.dealt and gap.start < start)


class BytesFrom(StrEnum):
    """What an estimate of bytes is made from, the best first."""

    LOG_SIZE = "log-size"
    """The average of the source's whole log, by its size on disk (DescribeLogDirs)."""
    LAST_RECEIPT = "last-receipt"
    """The average of the chunk that was copied last, if the size on disk is not shown."""
    ASSUMED = "assumed"
    """UNKNOWN_RECORD_BYTES for each offset: neither is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """About how many bytes (as stored, so compressed), and what that was estimated from."""

    bytes: int
    by: BytesFrom


def estimated_bytes(part: SourcePartition, offsets: int, last: Receipt | None = None) -> Estimate:
    """Estimate the bytes of some offsets of a partition, `last` being its last receipt; no data is read."""
    width = part.log_end - part.log_start
    if part.size_bytes is not None and (width > 0 or offsets == 0):
        return Estimate(bytes=offsets * part.size_bytes // max(1, width), by=BytesFrom.LOG_SIZE)
    if last is not None and last.end > last.start:
        return Estimate(bytes=offsets * last.bytes // (last.end - last.start), by=BytesFrom.LAST_RECEIPT)
    return Estimate(bytes=offsets * UNKNOWN_RECORD_BYTES, by=BytesFrom.ASSUMED)

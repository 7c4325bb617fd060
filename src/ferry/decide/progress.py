"""Where a lane goes on, and about how many bytes lie ahead: what plans and lag have in common."""

from __future__ import annotations

from ferry.decide.facts import Facts, SourcePartition
from ferry.model import Receipt, TopicPartition

UNKNOWN_RECORD_BYTES = 1024
"""Assumed bytes per offset where the log's size is not known."""


def next_offset(facts: Facts, source: TopicPartition, part: SourcePartition, last: Receipt | None) -> int:
    """Behind the last receipt; else where the lane's first run began; a later partition: at its beginning."""
    if last is not None:
        return last.end
    if facts.first_run:
        return max(part.log_start, part.start)
    return max(part.log_start, facts.starts.get(source, part.log_start))


def estimated_bytes(part: SourcePartition, offsets: int) -> int:
    """Bytes of so many offsets, by the log's average."""
    width = part.end - part.log_start
    if part.size_bytes < 0 or width <= 0:
        return offsets * UNKNOWN_RECORD_BYTES
    return offsets * part.size_bytes // width

"""Adoptions: partitions that a lane took over from another replicator (ADR 23).

The replicator had copied them up to an offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.model.flow import Flow, TopicPartition


class Predecessor(StrEnum):
    """The replicator that copied a partition before the lane did."""

    MM1 = "mm1"
    MM2 = "mm2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """One partition as its predecessor left it.

    The predecessor copied the source offsets `[start, end)`. Their records are in `[target_start, target_next)` of the
    target, with all other records that were there. No segment shows which record is which. Known are only the `pairs`
    (MirrorMaker 2's offset syncs): a source offset and the target offset of its record, ascending by both. `where` is
    what the position was read from. Times are ms.
    """

    flow: Flow
    lane: str
    run: str
    generation: int
    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    target_start: int
    target_next: int
    by: Predecessor
    where: str
    who: str
    at_ms: int
    pairs: tuple[tuple[int, int], ...] = ()
    source_epoch: int | None = None
    """The leader epoch of the source's last batch before `end`; None: not known."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    source_cluster_id: str = ""
    target_cluster_id: str = ""
    since: int = -1
    """The run, by its generation, that had gone back on the partition before (ADR 18); -1: none did."""

"""Checkpoints: where a consumer group stands, translated from the source to the target."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ferry.model.flow import TopicPartition
from ferry.model.reads import Vector


class Found(StrEnum):
    """How exactly an offset was translated; the words of `ferry.features.groups.rules.offset_map`."""

    EXACT = "exact"
    GAP = "gap"
    """Nothing of the offset was copied: a reader goes on at the next copied record."""
    AHEAD = "ahead"
    """The group is ahead of what is copied: it goes on at the copied end, and may read again."""
    BEFORE = "before"
    """The group stands before what was copied: it goes on at the first copied record."""
    APPROXIMATE = "approximate"
    """The group stands in what another replicator copied: it goes on at or before its record, and may read again."""
    LOG_START = "log-start"
    """The target has deleted the copy, by retention or by hand: the group goes on where its log starts."""
    AGAIN = "again"
    """The topic is dealt to other partitions: the group misses nothing from there on, and reads some records again."""


class Checkpoint(NamedTuple):
    """One group's offset on one source partition, and the offset that stands for it at the target.

    Offsets are those of the next record to read. `metadata` is what the group's consumer noted with its offset. A
    tuple, as a run makes one for each partition of each group.

    In a topic that is dealt to other partitions `read` is what the group has read of each of the source's, and
    `source_offset` the sum of that; `source` has the topic, and the number of the target's partition. `again` records
    at most are read again; None: nobody knows how many.
    """

    group: str
    source: TopicPartition
    source_offset: int
    target: TopicPartition
    target_offset: int
    outcome: Found
    metadata: str = ""
    read: Vector = ()
    again: int | None = 0

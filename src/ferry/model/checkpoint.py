"""Checkpoints: the committed offset of a consumer group, translated from the source to the target."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ferry.model.flow import TopicPartition
from ferry.model.reads import Offsets


class Found(StrEnum):
    """How exactly an offset was translated; the words of `ferry.features.groups.rules.offset_map`."""

    EXACT = "exact"
    GAP = "gap"
    """Nothing of the offset was copied: a reader continues at the next copied record."""
    AHEAD = "ahead"
    """The group is ahead of the copy: it continues at the copied end, and may read records again."""
    BEFORE = "before"
    """The group is before what was copied: it continues at the first copied record."""
    APPROXIMATE = "approximate"
    """The group is in what another replicator copied.

    It continues at or before its record, and may read records again.
    """
    LOG_START = "log-start"
    """The target has deleted the copy, by retention or by hand: the group continues at the start of its log."""
    AGAIN = "again"
    """The topic is repartitioned: the group misses nothing from there on, and reads some records again."""


class Checkpoint(NamedTuple):
    """One group's offset on one source partition, and the translated offset on the target.

    Offsets are those of the next record to read. `metadata` is what the group's consumer stored with its offset. It is
    a tuple, because a run makes one for each partition of each group.

    In a repartitioned topic, `read` is the group's offset on each source partition, and `source_offset` their sum;
    `source` has the topic, and the number of the target's partition. At most `again` records are read again; None: the
    number is not known.
    """

    group: str
    source: TopicPartition
    source_offset: int
    target: TopicPartition
    target_offset: int
    outcome: Found
    metadata: str = ""
    read: Offsets = ()
    again: int | None = 0

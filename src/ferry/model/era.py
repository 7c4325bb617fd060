"""Eras: since when, and by which rule, records of a topic are repartitioned."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.reads import Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Since when, and by which rule, records of a source topic are repartitioned to a target topic.

    A record belongs to exactly one era: the last one that begins at or before its offset in its source partition.
    `since` is the generation of the run that began the era, and `begins` the offsets where it begins. `digest` is that
    of the transform, and `partitions` the target's number of partitions.
    """

    source_topic: str
    target_topic: str
    since: int
    begins: Offsets
    digest: str
    partitions: int
    source_topic_id: str = ""
    target_topic_id: str = ""
    spec: str = ""
    """The transform itself, as JSON: it finishes what its era has begun, even when the file now has another one."""

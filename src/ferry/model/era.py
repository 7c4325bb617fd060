"""Eras: since when, and by which rule, records of a topic are dealt to other partitions."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.reads import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Since when, and by which rule, records of a source topic are dealt to partitions of a target topic.

    A record belongs to exactly one era: the last one that begins at or before its offset in its source partition.
    `since` is the generation of the run that began it, `begins` where it begins, `digest` that of the transform, and
    `partitions` how many the target had.
    """

    source_topic: str
    target_topic: str
    since: int
    begins: Vector
    digest: str
    partitions: int
    source_topic_id: str = ""
    target_topic_id: str = ""
    spec: str = ""
    """The transform itself, as JSON: what an era has begun is finished by it, whatever the file says by then."""

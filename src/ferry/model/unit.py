"""Units: what the record path copies, one target partition of a transformed topic each."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.flow import TopicPartition
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One target partition's part of a run: what of the source's `[starts, ends)` the era's rule deals to it.

    `target_next` is the target offset behind the last receipt's data (-1: no receipt yet), `target_end` where the
    partition ended when the plan was made, `target_epoch` a leader epoch in which its log reached `target_next`
    (KIP-101); -1: not known.
    """

    source_topic: str
    target: TopicPartition
    starts: Vector
    ends: Vector
    slot: int
    era: int
    partitions: int
    digest: str
    source_topic_id: str = ""
    target_topic_id: str = ""
    target_next: int = -1
    target_end: int = -1
    target_epoch: int = -1
    source_epochs: Vector = ()
    """By source partition a leader epoch in which its log reached what the last receipt has of it; as of a receipt."""
    name: int = 0
    """Which one of the topic's targets its target topic is, where records name theirs; else there is only one."""

    @property
    def source(self) -> TopicPartition:
        """What a refusal of it names: the source's topic, and its own number on the target; counted on over the
        topics where there are several."""
        return TopicPartition(self.source_topic, self.name * self.partitions + self.target.partition)

    @property
    def told(self) -> str:
        """What a sentence calls it."""
        return f"{self.target}, dealt from topic {self.source_topic},"

    @property
    def offsets(self) -> int:
        """Width in offsets of the source, of all its partitions together: most of their records go elsewhere."""
        return self.end - self.start

    @property
    def merged(self) -> bool:
        """As of a slice: nobody else writes to a target of the record path."""
        return False

    @property
    def start(self) -> int:
        """How much of the source is done with before, in offsets of all partitions: it grows with every chunk."""
        return sum(self.starts)

    @property
    def end(self) -> int:
        """The same where the unit ends."""
        return sum(self.ends)

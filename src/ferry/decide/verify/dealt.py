"""Topics that get other partitions, in a comparison: what is left out of it, and why. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from ferry.decide.records.units import least_dealt
from ferry.model import Era, NotCompared, NotComparedKind, TopicPartition, UnitReceipt


class DealtTopic(NamedTuple):
    """A source topic, its copy, how many partitions that has, and up to where partition 0 is dealt."""

    topic: str
    target: str
    partitions: int
    end: int

    def left(self, *, asked: bool) -> NotCompared:
        """That it is not compared, in one sentence for all of its partitions."""
        message = (
            f"topic {self.topic} is dealt to the {self.partitions} partitions of {self.target}, and no receipt says "
            "where each record went: it is not compared; count both sides in Spark (format ferry)"
        )
        source = TopicPartition(self.topic, 0)
        return NotCompared(
            source=source, start=0, end=self.end, why=NotComparedKind.DEALT, message=message, asked=asked
        )


def dealt_topics(eras: Iterable[Era], lasts: Collection[UnitReceipt], only: Collection[str] | None) -> list[DealtTopic]:
    """The topics (narrowed to `only`) of which records were dealt, ascending."""
    written = {last.target.topic for last in lasts}
    known = [era for era in eras if era.target_topic in written and (only is None or era.source_topic in only)]
    ends = least_dealt(known, lasts)
    return sorted(
        DealtTopic(era.source_topic, era.target_topic, era.partitions, ends.get(TopicPartition(era.source_topic, 0), 0))
        for era in known
    )

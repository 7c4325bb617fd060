"""The parts of a topic that gets other partitions, before slots are shared out: what lies before each, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ferry.decide.plan.capacity import Load
from ferry.model import Era, Gap, Refusal, TopicPartition, Unit, UnitReceipt, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What lies before one target partition: `[starts, ends)` of the source's. `last` is its last receipt."""

    target: TopicPartition
    starts: Vector
    ends: Vector
    last: UnitReceipt | None
    target_end: int

    @property
    def offsets(self) -> int:
        """How many offsets of the source, of all partitions together."""
        return sum(self.ends) - sum(self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What lies before a topic in one source partition: so many offsets, and about so many bytes (`Candidate`)."""

    source: TopicPartition
    start: int
    offsets: int
    bytes: int
    last_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """A topic's rule and its parts, none of which is in trouble; `is_new`: the rule counts from this plan on.

    `finishing`: the file wants another rule, which has to wait. `ahead`: by source partition how many offsets lie
    before some part, and about how many bytes. `era` is one of `eras`.
    """

    era: Era
    is_new: bool
    finishing: bool
    parts: tuple[Part, ...]
    eras: tuple[Era, ...]
    """The rule for each of the target topics that the topic's records go to; most have one."""
    targets: Mapping[str, str]
    """By these topics their ids as Kafka's tools print them; empty where there is none."""
    ahead: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def needs(self) -> list[Need]:
        """What budgets are shared over."""
        last = max((part.last.generation for part in self.parts if part.last is not None), default=-1)
        found = []
        for number in range(len(self.parts[0].starts) if self.parts else 0):
            start = min(part.starts[number] for part in self.parts)
            end = max(part.ends[number] for part in self.parts)
            if start < end:
                source = TopicPartition(topic=self.era.source_topic, partition=number)
                offsets, size = self.ahead.get(number, (1, 0))
                size = (end - start) * size // max(1, offsets)
                found.append(Need(source=source, start=start, offsets=end - start, bytes=size, last_generation=last))
        return found

    @property
    def loads(self) -> list[Load]:
        """What lies before each target partition, as far as the parts go."""
        return [
            Load(source=self._source_of(part), target=part.target, bytes=self.bytes_of(part)) for part in self.parts
        ]

    def bytes_of(self, part: Part) -> int:
        """About how many bytes of the source a part is: an even share of what it wants, for the keys are not known."""
        found = 0
        for number, (start, end) in enumerate(zip(part.starts, part.ends, strict=True)):
            offsets, size = self.ahead.get(number, (0, 0))
            found += (end - start) * size // offsets if offsets else 0
        return found // (self.era.partitions * max(1, len(self.targets)))

    def unit(self, part: Part, slot: int) -> Unit:
        """A part as a slot writes it."""
        last = part.last
        return Unit(
            source_topic=self.era.source_topic,
            target=part.target,
            starts=part.starts,
            ends=part.ends,
            slot=slot,
            era=self.era.since,
            partitions=self.era.partitions,
            digest=self.era.digest,
            source_topic_id=self.era.source_topic_id,
            target_topic_id=self.targets[part.target.topic],
            target_next=-1 if last is None else last.target_next,
            target_end=part.target_end,
            target_epoch=-1 if last is None else last.target_epoch,
            source_epochs=_epochs(part),
            name=self._number_of(part.target.topic),
        )

    def _number_of(self, name: str) -> int:
        return list(self.targets).index(name)

    def _source_of(self, part: Part) -> TopicPartition:
        """As of its unit."""
        number = self._number_of(part.target.topic) * self.era.partitions + part.target.partition
        return TopicPartition(topic=self.era.source_topic, partition=number)

    def limited(self, shares: Mapping[TopicPartition, int]) -> Deal:
        """So many offsets of each source partition, from the first one that some part wants on."""
        stops = {need.source.partition: need.start + shares.get(need.source, 0) for need in self.needs}

        def ends_of(part: Part) -> Vector:
            pairs = enumerate(zip(part.starts, part.ends, strict=True))
            return tuple(max(start, min(end, stops.get(number, end))) for number, (start, end) in pairs)

        return replace(self, parts=tuple(replace(part, ends=ends_of(part)) for part in self.parts))


def _epochs(part: Part) -> Vector:
    """The leader epochs of the last receipt, where the part goes on from what that has read; -1: not known."""
    last = part.last
    if last is None:
        return ()
    known = zip(part.starts, last.reached, last.source_epochs)  # noqa: B905 - old receipts have fewer epochs, or none
    return tuple(epoch if start == reached else -1 for start, reached, epoch in known)

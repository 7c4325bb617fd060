"""The lots of a topic that gets other partitions, before slots are shared out: what lies before each, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ferry.model import Era, Gap, Reads, Receipt, Refusal, Slice, TopicPartition, Vector
from ferry.plan.rules.capacity import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """What lies before one target partition: `[starts, ends)` of the source's. `last` is its last receipt."""

    target: TopicPartition
    starts: Vector
    ends: Vector
    last: Receipt | None
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
    """A topic's rule and its lots, none of which is in trouble; `is_new`: the rule counts from this plan on.

    `finishing`: the file wants another rule, which has to wait. `ahead`: by source partition how many offsets lie
    before some lot, and about how many bytes. `era` is one of `eras`.
    """

    era: Era
    is_new: bool
    finishing: bool
    lots: tuple[Lot, ...]
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
        last = max((lot.last.generation for lot in self.lots if lot.last is not None), default=-1)
        found = []
        for number in range(len(self.lots[0].starts) if self.lots else 0):
            start = min(lot.starts[number] for lot in self.lots)
            end = max(lot.ends[number] for lot in self.lots)
            if start < end:
                source = TopicPartition(topic=self.era.source_topic, partition=number)
                offsets, size = self.ahead.get(number, (1, 0))
                size = (end - start) * size // max(1, offsets)
                found.append(Need(source=source, start=start, offsets=end - start, bytes=size, last_generation=last))
        return found

    @property
    def loads(self) -> list[Load]:
        """What lies before each target partition, as far as the lots go."""
        return [Load(source=self._source_of(lot), target=lot.target, bytes=self.bytes_of(lot)) for lot in self.lots]

    def bytes_of(self, lot: Lot) -> int:
        """About how many bytes of the source a lot is: an even share of what it wants, for the keys are not known."""
        found = 0
        for number, (start, end) in enumerate(zip(lot.starts, lot.ends, strict=True)):
            offsets, size = self.ahead.get(number, (0, 0))
            found += (end - start) * size // offsets if offsets else 0
        return found // (self.era.partitions * max(1, len(self.targets)))

    def slice_of(self, lot: Lot, slot: int) -> Slice:
        """A lot as a slot writes it."""
        last, reads = lot.last, Reads(starts=lot.starts, ends=lot.ends, epochs=_epochs(lot))
        return Slice(
            source=self._source_of(lot),
            target=lot.target,
            start=reads.start,
            end=reads.end,
            slot=slot,
            source_topic_id=self.era.source_topic_id,
            target_topic_id=self.targets[lot.target.topic],
            target_next=-1 if last is None else last.target_next,
            target_end=lot.target_end,
            since=self.era.since,
            target_epoch=-1 if last is None else last.target_epoch,
            transform_digest=self.era.digest,
            reads=reads,
            partitions=self.era.partitions,
        )

    def _source_of(self, lot: Lot) -> TopicPartition:
        """As of its slice."""
        number = list(self.targets).index(lot.target.topic) * self.era.partitions + lot.target.partition
        return TopicPartition(topic=self.era.source_topic, partition=number)

    def limited(self, shares: Mapping[TopicPartition, int]) -> Deal:
        """So many offsets of each source partition, from the first one that some lot wants on."""
        stops = {need.source.partition: need.start + shares.get(need.source, 0) for need in self.needs}

        def ends_of(lot: Lot) -> Vector:
            pairs = enumerate(zip(lot.starts, lot.ends, strict=True))
            return tuple(max(start, min(end, stops.get(number, end))) for number, (start, end) in pairs)

        return replace(self, lots=tuple(replace(lot, ends=ends_of(lot)) for lot in self.lots))


def _epochs(lot: Lot) -> Vector:
    """The leader epochs of the last receipt, where the lot goes on from what that has read; -1: not known."""
    last = lot.last
    if last is None:
        return ()
    known = zip(lot.starts, last.ends, last.epochs)  # noqa: B905 - old receipts have fewer epochs, or none
    return tuple(epoch if start == reached else -1 for start, reached, epoch in known)

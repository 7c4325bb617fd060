"""The lots of a repartitioned topic, before slots are assigned: what each still has to copy, and how much it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ferry.model import Epochs, Era, Gap, Offsets, Reads, Receipt, Refusal, Slice, TopicPartition
from ferry.plan.rules.capacity import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """What one target partition still has to copy: source offsets `[starts, ends)` by partition.

    `last` is its last receipt.
    """

    target: TopicPartition
    starts: Offsets
    ends: Offsets
    last: Receipt | None
    target_end: int | None

    @property
    def offsets(self) -> int:
        """How many source offsets, of all partitions together."""
        return sum(self.ends) - sum(self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What is not yet copied of one source partition of a repartitioned topic: offsets, and about how many bytes.

    It takes the place of a `Candidate` when budgets are shared.
    """

    source: TopicPartition
    start: int
    offsets: int
    bytes: int
    last_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """A topic's rule and its lots, none of which is in trouble.

    - `is_new`: the rule counts from this plan on.
    - `finishing`: the file wants another rule, which has to wait.
    - `ahead`: by source partition how many offsets some lot still has to copy, and about how many bytes.
    - `era` is one of `eras`.
    """

    era: Era
    is_new: bool
    finishing: bool
    lots: tuple[Lot, ...]
    eras: tuple[Era, ...]
    """The rule for each of the target topics that the topic's records go to; most have one."""
    targets: Mapping[str, str]
    """The ids of these topics by name, as Kafka's tools print them; empty for a topic that does not exist."""
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
        """The bytes that each target partition still has to copy, as far as the lots go."""
        return [Load(source=self._source_of(lot), target=lot.target, bytes=self.bytes_of(lot)) for lot in self.lots]

    def bytes_of(self, lot: Lot) -> int:
        """Return about how many source bytes a lot has: an even share of its ranges, because the keys are not known."""
        found = 0
        for number, (start, end) in enumerate(zip(lot.starts, lot.ends, strict=True)):
            offsets, size = self.ahead.get(number, (0, 0))
            found += (end - start) * size // offsets if offsets else 0
        return found // (self.era.partitions * max(1, len(self.targets)))

    def slice_of(self, lot: Lot, slot: int) -> Slice:
        """Return a lot as the slice that a slot writes."""
        last, reads = lot.last, Reads(starts=lot.starts, ends=lot.ends, epochs=_epochs(lot))
        return Slice(
            source=self._source_of(lot),
            target=lot.target,
            start=reads.start,
            end=reads.end,
            slot=slot,
            source_topic_id=self.era.source_topic_id,
            target_topic_id=self.targets[lot.target.topic],
            target_next=None if last is None else last.target_next,
            target_end=lot.target_end,
            since=self.era.since,
            target_epoch=None if last is None else last.target_epoch,
            transform_digest=self.era.digest,
            reads=reads,
            partitions=self.era.partitions,
        )

    def _source_of(self, lot: Lot) -> TopicPartition:
        """Return the `source` of the lot's slice: its topic, with the number of its unit."""
        number = list(self.targets).index(lot.target.topic) * self.era.partitions + lot.target.partition
        return TopicPartition(topic=self.era.source_topic, partition=number)

    def limited(self, shares: Mapping[TopicPartition, int]) -> Deal:
        """Return this with at most these shares of offsets, each from the first offset that some lot needs."""
        stops = {need.source.partition: need.start + shares.get(need.source, 0) for need in self.needs}

        def ends_of(lot: Lot) -> Offsets:
            pairs = enumerate(zip(lot.starts, lot.ends, strict=True))
            return tuple(max(start, min(end, stops.get(number, end))) for number, (start, end) in pairs)

        return replace(self, lots=tuple(replace(lot, ends=ends_of(lot)) for lot in self.lots))


def _epochs(lot: Lot) -> Epochs:
    """Return the leader epochs of the last receipt where the lot continues from what it has read; None: not known."""
    last = lot.last
    if last is None:
        return ()
    known = zip(lot.starts, last.ends, last.epochs)  # noqa: B905 - old receipts have fewer epochs, or none
    return tuple(epoch if start == reached else None for start, reached, epoch in known)

"""How far each source partition and each target partition of a repartitioned topic can be copied now.

Each has trouble of its own: such a source partition is left out of all lots, such a target partition has no lot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ferry.config.flow.guards import OnGuard
from ferry.ledger.units import Log, Replanned, of_partition, places_of, replanned
from ferry.messages.refusals import open_facts, refused
from ferry.model import Era, Receipt, Refusal, TopicPartition
from ferry.plan.rules.facts import Facts, SourceTopic, TargetTopic
from ferry.plan.rules.guards import Mismatch, retention_trouble, unserved_refusal
from ferry.plan.rules.origins import no_receipt_refusal, returning_refusal
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.progress import next_offset
from ferry.plan.rules.repartition_shares import Lot
from ferry.plan.rules.tombstones import tombstone_trouble


@dataclass(frozen=True, slots=True)
class DealLook:
    """One topic's facts, and what follows from them partition by partition."""

    rules: Rules
    facts: Facts
    topic: SourceTopic
    known: Era | None
    lasts: Mapping[TopicPartition, Receipt]
    wish: Era
    width: int
    targets: tuple[str, ...]
    """Target topics of the wished rule; `before` are those of the known rule."""
    before: tuple[str, ...]

    def names(self, found: Replanned) -> tuple[str, ...]:
        """Return the target topics of the rule that is carried out."""
        return self.before if found.era == self.known else self.targets

    def sources(self) -> tuple[Replanned, list[Refusal], list[Mismatch]]:
        """Return the ranges of the source partitions, refusals of some, and the troubles that policies skip."""
        found = self._replanned(frozenset())
        troubles = [
            retention_trouble(self.topic, one.partition, max(one.start, self._by_hand(one.partition)))
            for one in found.passed
        ]
        troubles += [self._tombstones(number) for number in sorted(self.topic.partitions)]
        refusals: dict[int, Refusal] = {}
        lifted: list[tuple[int, Mismatch]] = []
        for mismatch in troubles:
            if mismatch is None or (number := mismatch.refusal.partition) is None:
                continue
            if self.rules.guards.of(mismatch.refusal.kind, self.topic.name) is OnGuard.SKIP:
                lifted.append((number, mismatch))
            else:
                refusals.setdefault(number, mismatch.refusal)
        for number, reached, _ in found.cut:
            end = self.topic.partitions[number].log_end
            if reached > end:
                refusals[number] = self._truncated(number, reached, end)
        for number, part in self.topic.partitions.items():
            if part.diverged is not None:
                reached = max(of_partition(last.ends, number) for last in self.lasts.values())
                refusals[number] = self._truncated(number, reached, part.diverged)
        for number in range(self.width):
            place = TopicPartition(self.topic.name, number)
            low, high = _span(found, number)
            loop = returning_refusal(self.rules, place, low, high, self.facts.others.returned.get(place, ()))
            loop = loop or no_receipt_refusal(self.rules, place, low, high, self.facts.others.no_receipt.get(place))
            if loop is not None:
                refusals[number] = loop
        if refusals:
            found = self._replanned(frozenset(refusals))
        passed = [mismatch for number, mismatch in lifted if number not in refusals]
        return found, [refusal for _, refusal in sorted(refusals.items())], passed

    def _tombstones(self, number: int) -> Mismatch | None:
        """Return a trouble if the lane was idle long enough to have missed deleted keys of a compacted topic."""
        place, part = TopicPartition(self.topic.name, number), self.topic.partitions[number]
        if place not in self.facts.lane.dealt:
            return None
        start = next_offset(self.facts, place, part, None)
        return tombstone_trouble(self.facts, self.topic, number, start, repartitioned=True)

    def _replanned(self, shut: frozenset[int]) -> Replanned:
        """Return the ranges of `ferry.ledger.units.replanned`, empty for `shut` and unserved source partitions."""
        closed = shut | {number for number in range(self.width) if number not in self.topic.partitions}
        logs = [self._log(number, closed) for number in range(self.width)]
        found = replanned(self.known, self.lasts.values(), self.wish, logs, before=self.before, names=self.targets)
        if not closed:
            return found
        ranges = tuple(
            (
                starts,
                tuple(start if n in closed else end for n, (start, end) in enumerate(zip(starts, ends, strict=True))),
            )
            for starts, ends in found.ranges
        )
        return found._replace(ranges=ranges)

    def _log(self, number: int, closed: frozenset[int]) -> Log:
        if number in closed:
            places = [self.wish.begins, *(last.ends for last in self.lasts.values())]
            places += [] if self.known is None else [self.known.begins]
            return Log(0, max(vector[number] for vector in places if number < len(vector)))
        part = self.topic.partitions[number]
        start = max(part.log_start, self._by_hand(number))
        return Log(start, max(start, part.end))

    def _by_hand(self, number: int) -> int:
        """Return the offset up to which an operator passed a source partition by hand; 0 if none did."""
        place = TopicPartition(self.topic.name, number)
        if place not in self.facts.lane.dealt or number not in self.topic.partitions:
            return 0
        at = next_offset(self.facts, place, self.topic.partitions[number], None)
        return at if at > self.facts.lane.dealt[place] else 0

    def _truncated(self, number: int, reached: int, end: int) -> Refusal:
        return refused("source.truncated.dealt", self.topic.name, number, end=reached, cut=end)

    def lots(self, found: Replanned) -> tuple[list[Lot], list[Refusal]]:
        """Return the lots of the target partitions, and the refusals of others."""
        lots, refusals = [], []
        places = places_of(found.era, self.names(found))
        for number, (place, (starts, ends)) in enumerate(zip(places, found.ranges, strict=True)):
            last, copy = self.lasts.get(place), self.facts.target.topics.get(place.topic)
            refusal = unserved_refusal(self.topic, place.partition, copy) or self._trouble(place, last, copy)
            if refusal is not None:
                refusals.append(replace(refusal, partition=number))  # by the number of its unit
                continue
            end = None if copy is None else copy.ends.get(place.partition)
            lots.append(Lot(target=place, starts=starts, ends=ends, last=last, target_end=end))
        return lots, refusals

    def _trouble(self, place: TopicPartition, last: Receipt | None, copy: TargetTopic | None) -> Refusal | None:
        """Return the refusal of a target partition that lost records, or that has foreign ones; None without."""
        name, number, behind = self.topic.name, place.partition, None if last is None else last.target_next
        end = 0 if copy is None else copy.ends.get(place.partition, 0)
        if behind is not None and (end < behind or place in self.facts.target.cut):
            at = min(end, self.facts.target.cut.get(place, end))
            return refused("target.lost.dealt", name, number, place=str(place), end=behind, cut=at)
        if place in self.facts.others.foreign:
            offset = self.facts.others.foreign[place]
            if behind:
                return refused("foreign.record.dealt", name, number, place=str(place), offset=offset, ours=behind - 1)
            return refused("foreign.occupied.dealt", name, number, place=str(place), offset=offset)
        if place in self.facts.others.open_transactions:
            found = open_facts(f"target {place}", place, self.facts.others.open_transactions[place])
            return refused("foreign.open.dealt", name, number, **found)
        return None


def _span(found: Replanned, number: int) -> tuple[int, int]:
    """Return the range of a source partition that any target partition still needs."""
    return min(starts[number] for starts, _ in found.ranges), max(ends[number] for _, ends in found.ranges)

"""Whether the target's disks can hold what is to be copied: bytes times replicas, compared with brokers' free space.

Source: DescribeLogDirs of version 4 (KIP-827) returns the total and the usable bytes of a log directory's volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ferry.messages.catalogue import sentence
from ferry.messages.refusals import refused
from ferry.model import Refusal, Sentence, TopicChange, TopicPartition
from ferry.model.observed import BrokerSpace
from ferry.plan.rules.facts import Facts, TargetFacts
from ferry.plan.rules.planning_rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Bytes that a run writes to one target partition; `source` is the partition that a refusal names."""

    source: TopicPartition
    target: TopicPartition
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """Bytes by the broker that stores them.

    `unplaced` bytes go to partitions that do not exist yet; they are assumed to be spread evenly over the brokers.
    """

    by_broker: Mapping[int, int]
    unplaced: int
    brokers: int

    def of(self, broker: int) -> int:
        return self.by_broker.get(broker, 0) + self.unplaced // max(1, self.brokers)


def without_room(
    rules: Rules, facts: Facts, loads: Iterable[Load], changes: Iterable[TopicChange]
) -> dict[TopicPartition, Refusal]:
    """Return by source partition the refusal of a load that finds no room on the target.

    If no partition of a topic finds room, there is one refusal for the whole topic. A broker takes nothing if its
    tightest log directory would have less free space than the flow's share. Partitions that are to be created find room
    if at least one broker has some.
    """
    if rules.free_percent is None or not facts.target.space:
        return {}
    planned = list(loads)
    new = _new_replicas(facts, changes)
    demand = _demand(facts.target, new, planned)
    full = {
        broker: space
        for broker, space in facts.target.space.items()
        if space.usable - demand.of(broker) < space.total * rules.free_percent // 100
    }
    everywhere = len(full) >= facts.target.brokers
    found = {}
    for piece in planned:
        nodes = _nodes(facts.target, piece.target)
        tight = [broker for broker in nodes if broker in full] or (sorted(full) if everywhere and not nodes else [])
        if tight:
            found[piece.source] = _refusal(rules, piece, tight[0], full[tight[0]], demand.of(tight[0]))
    room = {piece.source.topic for piece in planned if piece.source not in found}
    whole = {
        place.topic: replace(refusal, partition=None) for place, refusal in found.items() if place.topic not in room
    }
    return {place: whole.get(place.topic, refusal) for place, refusal in found.items()}


def _refusal(rules: Rules, piece: Load, broker: int, space: BrokerSpace, wanted: int) -> Refusal:
    return refused(
        "target.no-space",
        piece.source.topic,
        piece.source.partition,
        broker=broker,
        cluster=rules.flow.target,
        usable=space.usable,
        total=space.total,
        wanted=wanted,
        place=str(piece.target),
        percent=rules.free_percent or 0,
    )


def space_notes(
    rules: Rules, facts: Facts, ahead: Iterable[Load], changes: Iterable[TopicChange], refused: bool
) -> list[Sentence]:
    """Return notes on the target's disk space: brokers that do not report it, and brokers that will become full.

    `ahead` is all that is not yet copied, not only this run's part of it. `refused`: the plan refuses for lack of space
    already, so full brokers need no note.
    """
    if rules.free_percent is None or facts.target.space is None:
        return []
    loads = list(ahead)
    if not any(load.bytes for load in loads):
        return []
    silent = facts.target.brokers - len(facts.target.space)
    notes = []
    if silent > 0:
        notes.append(
            sentence("space.not-known", silent=silent, brokers=facts.target.brokers, cluster=rules.flow.target)
        )
    demand = _demand(facts.target, _new_replicas(facts, changes), loads)
    short = [
        broker
        for broker, space in sorted(facts.target.space.items())
        if space.usable - demand.of(broker) < space.total * rules.free_percent // 100
    ]
    if short and not refused:
        broker, space = short[0], facts.target.space[short[0]]
        more = f" (and {len(short) - 1} more)" if len(short) > 1 else ""
        notes.append(
            sentence(
                "space.short",
                broker=broker,
                more=more,
                cluster=rules.flow.target,
                usable=space.usable,
                total=space.total,
                wanted=demand.of(broker),
                percent=rules.free_percent,
            )
        )
    return notes


def _demand(target: TargetFacts, new: Mapping[str, int], loads: Iterable[Load]) -> _Demand:
    by_broker: dict[int, int] = {}
    unplaced = 0
    for load in loads:
        nodes = _nodes(target, load.target)
        for node in nodes:
            by_broker[node] = by_broker.get(node, 0) + load.bytes
        if not nodes:
            unplaced += load.bytes * new.get(load.target.topic, 1)
    return _Demand(by_broker=by_broker, unplaced=unplaced, brokers=target.brokers)


def _nodes(facts: TargetFacts, place: TopicPartition) -> tuple[int, ...]:
    target = facts.topics.get(place.topic)
    return () if target is None else target.brokers.get(place.partition, ())


def _new_replicas(facts: Facts, changes: Iterable[TopicChange]) -> dict[str, int]:
    """Return by target topic the replicas of its partitions that do not exist yet.

    Where the target's default applies, it is the source's number, at most the number of brokers.
    """
    found = {}
    for change in changes:
        target = facts.target.topics.get(change.topic)
        if target is not None:
            found[change.topic] = max((len(nodes) for nodes in target.brokers.values()), default=1)
        elif change.replication_factor > 0:
            found[change.topic] = change.replication_factor
        else:
            factor = facts.source.topics[change.source_topic].replication_factor
            found[change.topic] = max(1, min(factor, facts.target.brokers))
    return found

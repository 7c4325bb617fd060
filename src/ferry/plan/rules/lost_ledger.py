"""A ledger that was lost, or restored from an older export: the lane's positions then lead beyond its receipts.

A position is committed in one transaction with its receipt, and its metadata names the run by its generation, a ledger
offset. So a position of Ferry's beyond the last receipt shows that a receipt is missing. A position that an operator
moved by hand has no such metadata, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.messages.refusals import refused
from ferry.model import Position, Receipt, Refusal, TopicPartition
from ferry.plan.rules.facts import Facts, LaneFacts, SourceTopic, TargetTopic


def lost_ledger_refusal(lane: LaneFacts, topic: SourceTopic, target: TargetTopic | None, number: int) -> Refusal | None:
    """Return the refusal of copied records that the ledger has lost; None when it has all that the position shows.

    No guard softens it: the next slice would copy what was copied already, whether retention has deleted it since or
    not.
    """
    if target is None:
        return None
    place = TopicPartition(topic=target.name, partition=number)
    last, position = lane.receipts.get(place), lane.positions.get(place)
    if position is None or not is_forgotten(position, last, target.ends.get(number, 0)):
        return None
    end = position.source_next or 0
    if last is None:
        return refused("ledger.lost", topic.name, number, place=str(place), end=end)
    return refused("ledger.behind", topic.name, number, place=str(place), end=end, known=last.end)


def is_forgotten(position: Position, last: Receipt | None, end: int) -> bool:
    """Return whether a position is of a receipt after the `last` one in the ledger; the target ends at `end`.

    Not if the target ends before the position: then the records were lost with the topic, and other guards report that.
    """
    if position.source_next is None or position.generation is None or position.target_next > end:
        return False
    if last is None:
        return position.target_next > 0
    # A lane that went back has a later generation than the position that it left.
    ahead = position.source_next > last.end and position.target_next > (last.target_next or 0)
    return ahead and position.generation >= last.generation


def forgotten_places(facts: Facts) -> frozenset[TopicPartition]:
    """Return the target partitions whose positions lead beyond the ledger."""
    receipts, copies = facts.lane.receipts, facts.target.topics
    return frozenset(
        place
        for place, position in facts.lane.positions.items()
        if position is not None
        and place.topic in copies
        and is_forgotten(position, receipts.get(place), copies[place.topic].ends.get(place.partition, 0))
    )


def accounted_positions(facts: Facts, receipts: Iterable[Receipt]) -> dict[TopicPartition, Position | None]:
    """Return the positions without those beyond the ledger that `receipts` account for.

    A run wrote these receipts after the facts were read.
    """
    forgotten = forgotten_places(facts)
    reached: dict[TopicPartition, int] = {}
    for receipt in receipts:
        reached[receipt.target] = max(receipt.end, reached.get(receipt.target, 0))
    return {
        place: position
        for place, position in facts.lane.positions.items()
        if position is None or place not in forgotten or (position.source_next or 0) > reached.get(place, -1)
    }

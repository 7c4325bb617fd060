"""A ledger that was lost, or written again from an older export: the lane's own positions know more than it does.

A position is committed in one transaction with its receipt, and its metadata names the run by generation, a ledger
offset. So a position of Ferry's that leads beyond the last receipt is a receipt that is not there any more. One that
somebody moved by hand bears no such metadata, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.messages.refusals import refused
from ferry.model import Position, Receipt, Refusal, TopicPartition
from ferry.plan.rules.facts import Facts, SourceTopic, TargetTopic


def lost_ledger_refusal(facts: Facts, topic: SourceTopic, target: TargetTopic | None, number: int) -> Refusal | None:
    """Copied records that the ledger has forgotten; None when it knows all that the lane's position knows.

    No guard softens it: the next slice would be what the target has already, whether retention took it since or not.
    """
    if target is None:
        return None
    place = TopicPartition(topic=target.name, partition=number)
    last, position = facts.receipts.get(place), facts.positions.get(place)
    if position is None or not is_forgotten(position, last, target.ends.get(number, 0)):
        return None
    end = position.source_next
    if last is None:
        return refused("ledger.lost", topic.name, number, place=str(place), end=end)
    return refused("ledger.behind", topic.name, number, place=str(place), end=end, known=last.end)


def is_forgotten(position: Position, last: Receipt | None, end: int) -> bool:
    """Whether a position is of a receipt behind the `last` one that the ledger has; the target ends at `end`.

    Not when the target ends before it: what was copied is gone with the topic, and other guards tell of that.
    """
    if position.generation < 0 or position.target_next > end:
        return False
    if last is None:
        return position.target_next > 0
    # Whoever went back has a later generation than the position that he left.
    ahead = position.source_next > last.end and position.target_next > last.target_next
    return ahead and position.generation >= last.generation


def forgotten_places(facts: Facts) -> frozenset[TopicPartition]:
    """Target partitions whose positions lead beyond the ledger."""
    return frozenset(
        place
        for place, position in facts.positions.items()
        if position is not None
        and place.topic in facts.targets
        and is_forgotten(position, facts.receipts.get(place), facts.targets[place.topic].ends.get(place.partition, 0))
    )


def accounted_positions(facts: Facts, receipts: Iterable[Receipt]) -> dict[TopicPartition, Position | None]:
    """The positions without forgotten ones that `receipts` account for: a run wrote those after the facts were read."""
    forgotten = forgotten_places(facts)
    reached: dict[TopicPartition, int] = {}
    for receipt in receipts:
        reached[receipt.target] = max(receipt.end, reached.get(receipt.target, -1))
    return {
        place: position
        for place, position in facts.positions.items()
        if position is None or place not in forgotten or position.source_next > reached.get(place, -1)
    }

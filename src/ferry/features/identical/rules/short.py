"""Copies that end before the offset at which the lane continues: nothing has passed the offsets up to there.

So it is if the source has no record to copy and its log does not begin at 0. Clients that were moved would write at
offsets that the source has used, and offsets that readers keep outside of Kafka would be false.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ferry.ledger.ledger import LedgerView
from ferry.ledger.receipts import last_receipts
from ferry.model import Plan, TopicPartition
from ferry.plan.rules.starts import recorded_starts
from ferry.words import several


class Short(NamedTuple):
    """Where a copy ends, and where the lane continues. None: the end is not known."""

    end: int | None
    position: int


def idle_places(
    view: LedgerView, lane: str, plan: Plan, topics: Mapping[str, Iterable[int]]
) -> frozenset[TopicPartition]:
    """Return the source partitions of `topics` of which nothing was copied, and of which the plan copies nothing.

    Those that are refused or paused are left out.
    """
    out = {last.source for last in last_receipts(view, lane).values()} | {piece.source for piece in plan.slices}
    refused = {(one.topic, one.partition) for one in plan.refusals}
    return frozenset(
        place
        for topic, numbers in topics.items()
        if topic not in plan.paused and not plan.flow_paused and (topic, None) not in refused
        for place in (TopicPartition(topic=topic, partition=number) for number in numbers)
        if place not in out and (topic, place.partition) not in refused
    )


def begun_at(
    view: LedgerView, lane: str, begins: Mapping[TopicPartition, int], ids: Mapping[str, str]
) -> dict[TopicPartition, int]:
    """Return where the lane continues in source partitions without a receipt, if that is not 0.

    `begins` is where their logs begin. `ids` are the ids of the source topics.
    """
    starts = recorded_starts(view, lane, ids).offsets
    found = {place: max(begin, starts.get(place, 0)) for place, begin in begins.items()}
    return {place: position for place, position in found.items() if position}


def shorter(
    positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, Short]:
    """Return the copies that end before the lane's position, or of which that is not known; both by partition."""
    return {
        place: Short(end, position)
        for place, position in sorted(positions.items())
        if (end := ends.get(place)) is None or end < position
    }


def known_ends(found: Mapping[TopicPartition, Short]) -> dict[TopicPartition, int]:
    """Return the ends that are known."""
    return {place: one.end for place, one in found.items() if one.end is not None}


def named(found: Mapping[TopicPartition, Short]) -> str:
    """Name copies for a sentence, each with its end and where it has to end."""
    return several(
        [
            f"{place} (ends at {'an unknown offset' if one.end is None else one.end}, not at {one.position})"
            for place, one in sorted(found.items())
        ]
    )

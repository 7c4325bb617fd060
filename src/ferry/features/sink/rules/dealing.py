"""The assignment of a delivery's target partitions to slots. Pure; the same in the driver and in tasks."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.model import TopicPartition


def first_numbers(counts: Mapping[str, int]) -> dict[str, int]:
    """Number the partitions of all topics through, in order, and return the number of each topic's first one."""
    found: dict[str, int] = {}
    at = 0
    for topic in sorted(counts):
        found[topic] = at
        at += counts[topic]
    return found


def slot_of(firsts: Mapping[str, int], place: TopicPartition, slots: int) -> int:
    """Return the slot of a partition: they are assigned in turn."""
    return (firsts[place.topic] + place.partition) % slots

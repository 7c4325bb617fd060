"""Which slot writes which target partition of a delivery. Pure; the same in the driver and in tasks."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.model import TopicPartition


def first_numbers(counts: Mapping[str, int]) -> dict[str, int]:
    """By topic the number of its first partition when those of all topics, in order, are counted on."""
    found: dict[str, int] = {}
    at = 0
    for topic in sorted(counts):
        found[topic] = at
        at += counts[topic]
    return found


def slot_of(firsts: Mapping[str, int], place: TopicPartition, slots: int) -> int:
    """Partitions are taken in turn."""
    return (firsts[place.topic] + place.partition) % slots

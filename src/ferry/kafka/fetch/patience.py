"""How long partitions may stay unserved. Each has a clock of its own: none lives, or dies, with its neighbours."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.model import TopicPartition


class Patience:
    """When each partition was first not served, and whether that is too long ago. Times are monotonic seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[TopicPartition, float] = {}
        self._silent: set[TopicPartition] = set()

    def begin(self, places: Iterable[TopicPartition], now: float, *, silent: bool = False) -> None:
        """These are not served, from now on at the latest.

        `silent`: their broker says nothing against them, but what should lie there does not come.
        """
        for place in places:
            self._until.setdefault(place, now + self._seconds)
            if silent:
                self._silent.add(place)

    def answered(self, place: TopicPartition) -> None:
        """Its broker serves it, but had no room for its records: that says nothing about a silent one."""
        if place not in self._silent:
            self._until.pop(place, None)

    def served(self, place: TopicPartition) -> None:
        """Its records come."""
        self._until.pop(place, None)
        self._silent.discard(place)

    def rest(self, places: Iterable[TopicPartition], seconds: float) -> None:
        """So long nobody asked for these."""
        for place in places:
            if place in self._until:
                self._until[place] += seconds

    def is_over(self, place: TopicPartition, now: float) -> bool:
        """Whether a partition has not been served for too long."""
        return now > self._until.get(place, now)

"""How long partitions may stay unserved. Each has its own clock, so that others do not shorten or extend its time."""

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
        """Start the clocks of partitions that are not served; a clock that runs already continues.

        `silent`: the broker reports no error, but records that should be there do not come.
        """
        for place in places:
            self._until.setdefault(place, now + self._seconds)
            if silent:
                self._silent.add(place)

    def answered(self, place: TopicPartition) -> None:
        """Stop the clock: the broker serves the partition, but had no room for its records.

        A silent partition's clock runs on.
        """
        if place not in self._silent:
            self._until.pop(place, None)

    def served(self, place: TopicPartition) -> None:
        """Stop the clock: records of the partition came."""
        self._until.pop(place, None)
        self._silent.discard(place)

    def rest(self, places: Iterable[TopicPartition], seconds: float) -> None:
        """Do not count these seconds: nothing was asked of these partitions."""
        for place in places:
            if place in self._until:
                self._until[place] += seconds

    def is_over(self, place: TopicPartition, now: float) -> bool:
        """Return whether a partition has not been served for too long."""
        return now > self._until.get(place, now)

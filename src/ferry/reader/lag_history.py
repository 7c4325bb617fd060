"""The lag of every partition over time, in bounded memory; pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ferry.plan.rules.lag import PartitionLag
from ferry.reader.lag_point import SPAN_MS, LagPoint

MOST_CELLS = 1_000_000
"""The most values of all partitions and polls together; 20 bytes each."""
MOST_COLUMNS = 720
"""The most polls that are kept of a flow with few partitions."""

Places = Mapping[str, tuple[int, "array[int]"]]
"""Where the partitions of each source topic begin in a column, and their numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One poll of all partitions; a value below 0 was not known. Polls of the same partitions share their `places`."""

    at_ms: int
    places: Places
    records: array[int]
    bytes: array[int]
    seconds: array[float]

    def point(self, topic: str, partition: int | None = None) -> LagPoint | None:
        """Return the lag of a partition or a topic: the sums of what was known.

        None when it was not there, and when no lag is known but that of partitions without any.
        """
        found = self.places.get(topic)
        if found is None:
            return None
        start, numbers = found
        if partition is None:
            chosen = slice(start, start + len(numbers))
        elif partition in numbers:
            at = start + numbers.index(partition)
            chosen = slice(at, at + 1)
        else:
            return None
        records = [value for value in self.records[chosen] if value >= 0]
        if not records or (not any(records) and len(records) < len(self.records[chosen])):
            return None
        return LagPoint(
            at_ms=self.at_ms,
            records=sum(records),
            bytes=sum(value for value in self.bytes[chosen] if value >= 0),
            seconds=max((value for value in self.seconds[chosen] if value >= 0), default=None),
        )


def column_of(at_ms: int, lags: Mapping[str, Sequence[PartitionLag]], before: Sequence[Column] = ()) -> Column:
    """Return a poll of the partitions of each topic as a column."""
    places: dict[str, tuple[int, array[int]]] = {}
    count = 0
    for topic, parts in lags.items():
        places[topic] = count, array("l", [lag.source.partition for lag in parts])
        count += len(parts)
    every = [lag for parts in lags.values() for lag in parts]
    return Column(
        at_ms=at_ms,
        places=before[-1].places if before and before[-1].places == places else places,
        records=array("q", [-1 if lag.records is None else lag.records for lag in every]),
        bytes=array("q", [-1 if lag.bytes is None else lag.bytes for lag in every]),
        seconds=array("f", [-1.0 if lag.seconds is None else lag.seconds for lag in every]),
    )


def kept(columns: Sequence[Column], new: Column) -> tuple[Column, ...]:
    """Return the columns with a new one; if they are too many, without those that are closest together in time."""
    found = [column for column in columns if new.at_ms - SPAN_MS < column.at_ms < new.at_ms]
    found.append(new)
    while len(found) > 2 and (len(found) > MOST_COLUMNS or sum(len(column.records) for column in found) > MOST_CELLS):
        inner = range(1, len(found) - 1)
        found.pop(min(inner, key=lambda at: found[at + 1].at_ms - found[at - 1].at_ms))
    return tuple(found)


def points_of(columns: Sequence[Column], topic: str, partition: int | None) -> Iterator[LagPoint]:
    """Yield the lag of a topic, or of one of its partitions, over time."""
    for column in columns:
        point = column.point(topic, partition)
        if point is not None:
            yield point

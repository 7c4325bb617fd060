"""Conditions on topic, partition, offset and timestamp that narrow what is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from ferry.model import Range, TopicPartition


class Column(Enum):
    """A column that a query can be narrowed by."""

    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"


class Operator(Enum):
    """How a column is compared with a value. ONE_OF has a tuple of values."""

    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    ONE_OF = "in"
    BEGINS_WITH = "begins with"
    IS_THERE = "is not null"
    """True of all four columns, always."""


class Condition(NamedTuple):
    """One condition. `column` may be a column that is not known here; `value` is what it is compared with."""

    column: str
    operator: Operator
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Numbers from `low` to `high`, both included; None means no bound. With `among`, only numbers that are in it."""

    low: int | None = None
    high: int | None = None
    among: frozenset[int] | None = None

    def admits(self, number: int) -> bool:
        """Report whether a number is one of them."""
        return (
            (self.low is None or number >= self.low)
            and (self.high is None or number <= self.high)
            and (self.among is None or number in self.among)
        )

    @property
    def is_open(self) -> bool:
        """Report whether it admits all numbers."""
        return self.low is None and self.high is None and self.among is None

    def within(self, *, low: int | None = None, high: int | None = None, among: frozenset[int] | None = None) -> Span:
        """Return the numbers that this span and the bounds both admit."""
        if among is not None and self.among is not None:
            among &= self.among
        return Span(
            low=self.low if low is None else low if self.low is None else max(low, self.low),
            high=self.high if high is None else high if self.high is None else min(high, self.high),
            among=self.among if among is None else among,
        )

    def cut(self, part: Range) -> Range:
        """Return the smallest range within `part` that has all of its admitted numbers."""
        start, end = part
        lows, highs = [start], [end]
        if self.low is not None:
            lows.append(self.low)
        if self.high is not None:
            highs.append(self.high + 1)
        if self.among is not None:
            lows.append(min(self.among, default=end))
            highs.append(max(self.among, default=start - 1) + 1)
        start, end = max(lows), min(highs)
        return (start, end) if start < end else (part[0], part[0])


ALL = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What all conditions together admit; the default is everything."""

    topics: frozenset[str] | None = None
    prefixes: tuple[str, ...] = ()
    partitions: Span = ALL
    offsets: Span = ALL
    timestamps: Span = ALL

    def admits_topic(self, topic: str) -> bool:
        """Report whether records of the topic may be wanted."""
        return (self.topics is None or topic in self.topics) and all(map(topic.startswith, self.prefixes))

    def admits(self, topic: str, partition: int, offset: int, timestamp_ms: int) -> bool:
        """Report whether a record is wanted."""
        return (
            self.admits_topic(topic)
            and self.partitions.admits(partition)
            and self.offsets.admits(offset)
            and self.timestamps.admits(timestamp_ms)
        )

    def cut(self, ranges: Mapping[TopicPartition, Range]) -> dict[TopicPartition, Range]:
        """Return what is left to read of the ranges, without those of which nothing is."""
        found = {
            place: self.offsets.cut(part)
            for place, part in ranges.items()
            if self.admits_topic(place.topic) and self.partitions.admits(place.partition)
        }
        return {place: part for place, part in found.items() if part[0] < part[1]}


EVERYTHING = Narrowing()


def narrowed(conditions: Iterable[Condition], found: Narrowing = EVERYTHING) -> tuple[Narrowing, Sequence[Condition]]:
    """Return `found` narrowed by the conditions, and the conditions that are not part of it: Spark checks those."""
    rest = []
    for one in conditions:
        taken = _taken(found, one)
        if taken is None:
            rest.append(one)
        else:
            found = taken
    return found, rest


def _taken(found: Narrowing, one: Condition) -> Narrowing | None:
    if one.operator is Operator.IS_THERE:
        return found if one.column in {column.value for column in Column} else None
    match one.column:
        case Column.TOPIC.value:
            return _topics(found, one)
        case Column.PARTITION.value:
            span = _span(found.partitions, one)
            return None if span is None else replace(found, partitions=span)
        case Column.OFFSET.value:
            span = _span(found.offsets, one)
            return None if span is None else replace(found, offsets=span)
        case Column.TIMESTAMP.value:
            span = _span(found.timestamps, one)
            return None if span is None else replace(found, timestamps=span)
    return None


def _topics(found: Narrowing, one: Condition) -> Narrowing | None:
    values = one.value if isinstance(one.value, tuple) else (one.value,)
    names = frozenset(value for value in values if isinstance(value, str))
    if len(names) < len(set(values)):
        return None
    match one.operator:
        case Operator.EQUAL | Operator.ONE_OF:
            return replace(found, topics=names if found.topics is None else names & found.topics)
        case Operator.BEGINS_WITH:
            return replace(found, prefixes=(*found.prefixes, *names))
    return None


def _span(found: Span, one: Condition) -> Span | None:  # noqa: PLR0911 - one line for each operator
    values = one.value if isinstance(one.value, tuple) else (one.value,)
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return None
    match one.operator:
        case Operator.ONE_OF:
            return found.within(among=frozenset(numbers))
        case Operator.EQUAL:
            return found.within(low=numbers[0], high=numbers[0])
        case Operator.LESS:
            return found.within(high=numbers[0] - 1)
        case Operator.AT_MOST:
            return found.within(high=numbers[0])
        case Operator.MORE:
            return found.within(low=numbers[0] + 1)
        case Operator.AT_LEAST:
            return found.within(low=numbers[0])
    return None

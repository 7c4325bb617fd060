"""The differences that a verification has returned, each with the places where the page shows its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ferry.config.text.filters import LEGAL_NAME
from ferry.errors import MALFORMED
from ferry.model import DifferenceKind, TopicPartition
from ferry_airflow.page.starting import INT32, INT64

MOST = 50
"""How many differences are shown; a verification returns fewer, and its task's log has more."""
LONGEST = 249
"""The longest name of a topic or a lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Offsets `[start, end)` of one side; the same number twice: there is no record, and it would be here."""

    place: TopicPartition
    start: int
    end: int

    @property
    def has_records(self) -> bool:
        """Whether the side has records there."""
        return self.start < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A place where the sides differ."""

    kind: DifferenceKind
    source: Span
    target: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What a verification found to differ, of one lane."""

    lane: str
    rows: tuple[Differing, ...]
    more: int
    """How many others it found."""


NOTHING = Differences(lane="", rows=(), more=0)


def differences_of(body: Mapping[str, Any]) -> Differences:
    """Return the differences of what a task has returned; NOTHING if it is not what a verification of Ferry returns.

    Any user who may write XComs may have written it, so each field is checked before it becomes part of a link.
    """
    try:
        lane = body["lane"]
        found = body["differences"]
        rows = tuple(_differing(one) for one in found[:MOST])
        more = len(found[MOST:]) + _number(body["more_differences"], INT64)
    except MALFORMED:
        return NOTHING
    if not isinstance(lane, str) or not 0 < len(lane) <= LONGEST:
        return NOTHING
    return Differences(lane=lane, rows=rows, more=more)


def _differing(one: Mapping[str, Any]) -> Differing:
    return Differing(
        kind=DifferenceKind(one["kind"]),
        source=_span(one["topic"], one["partition"], one["source_range"]),
        target=_span(one["target_topic"], one["target_partition"], one["target_range"]),
    )


def _span(topic: object, partition: object, offsets: object) -> Span:
    """Return one side of a difference; raises TypeError or ValueError for anything else."""
    if not isinstance(topic, str) or not LEGAL_NAME.fullmatch(topic) or len(topic) > LONGEST:
        raise ValueError("no name of a topic")
    if not isinstance(offsets, list) or len(offsets) != 2:
        raise TypeError("no range of offsets")
    start, end = (_number(one, INT64) for one in offsets)
    return Span(place=TopicPartition(topic=topic, partition=_number(partition, INT32)), start=start, end=end)


def _number(value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("no such number")
    return value

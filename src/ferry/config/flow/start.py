"""Where the first run of a flow begins on the partitions that exist then; later partitions always begin at earliest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ferry.config.text.problem import BadValue
from ferry.messages.catalogue import sentence
from ferry.model import TopicPartition
from ferry.words import ms_of

_OFFSET = re.compile(r"([^:\s]+):([0-9]{1,9}):([0-9]{1,18})")
_EPOCH_MS = re.compile(r"[0-9]{1,18}")
_DURATION = "by_duration:"
"""The prefix of an `auto.offset.reset` of Kafka 4 that counts back from now (KIP-1106)."""
_REMEDY = "write earliest, latest, a time such as 2026-01-31T06:00:00Z, epoch milliseconds, or topic:partition:offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEarliest:
    """At each partition's log start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLatest:
    """At each partition's end as the first plan sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTime:
    """At the first record whose timestamp is `timestamp_ms` (milliseconds since the epoch) or later."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOffsets:
    """At the given source offsets; partitions not named begin at earliest."""

    offsets: Mapping[TopicPartition, int]


Start = StartEarliest | StartLatest | StartTime | StartOffsets


def parse_start(text: str) -> Start:
    """Parse `earliest`, `latest`, an ISO 8601 time with its zone, epoch milliseconds, or `topic:partition:offset,…`."""
    value = text.strip()
    match value.lower():
        case "earliest":
            return StartEarliest()
        case "latest":
            return StartLatest()
    if value.lower().startswith(_DURATION):
        raise BadValue(sentence("value.start.relative", value=value))
    if _EPOCH_MS.fullmatch(value):
        return StartTime(timestamp_ms=int(value))
    try:
        # Before offsets: 2026-01-31T06:00:00 has the form of one.
        time = datetime.fromisoformat(value)
    except ValueError:
        if _OFFSET.fullmatch(value.partition(",")[0].strip()):
            return _offsets(value)
        raise BadValue(sentence("value.start", value=value, remedy=_REMEDY)) from None
    if time.tzinfo is None:
        raise BadValue(sentence("value.start.no-zone", value=value))
    return StartTime(timestamp_ms=ms_of(time))


def _offsets(value: str) -> StartOffsets:
    offsets: dict[TopicPartition, int] = {}
    for item in value.split(","):
        match = _OFFSET.fullmatch(item.strip())
        if match is None:
            raise BadValue(sentence("value.start.offset", item=item.strip(), remedy=_REMEDY))
        partition = TopicPartition(topic=match.group(1), partition=int(match.group(2)))
        if partition in offsets:
            raise BadValue(sentence("value.start.twice", partition=str(partition)))
        offsets[partition] = int(match.group(3))
    return StartOffsets(offsets=offsets)

"""Windows: bounded parts of history that a lane copies, by time or by offsets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from ferry.errors import BadInput
from ferry.model.difference import Range
from ferry.model.flow import TopicPartition
from ferry.words import count_of, to_the_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """From the first record of `from_ms` or later to before the first of `to_ms` or later, partition by partition.

    Kafka finds the times (ListOffsets). A log need not be ordered by time, so a record with an older timestamp after
    such a first one belongs to the later window.
    """

    from_ms: int
    to_ms: int
    allow_deleted: bool = False
    """Whether the records that the source still has suffice, where records of the window may have been deleted."""

    def __post_init__(self) -> None:
        """Raise BadInput when the window is reversed or empty."""
        if self.from_ms >= self.to_ms:
            raise BadInput(
                f"the window begins at {to_the_ms(self.from_ms)} and ends at {to_the_ms(self.to_ms)}, which is not "
                "later: exchange the two, or correct one"
            )

    @property
    def topics(self) -> None:
        """Topics that the window names: None, because it is for all."""
        return None

    def of(self, _topic: str) -> TimeWindow:
        """Return the window of one topic: the same for each."""
        return self

    @property
    def id(self) -> str:
        """What distinguishes it from the lane's other windows of a topic; the same for each repetition."""
        return f"{self.from_ms}-{self.to_ms}"

    def __str__(self) -> str:
        return f"{to_the_ms(self.from_ms)} to {to_the_ms(self.to_ms)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWindow:
    """Source offsets `[start, end)` of some partitions; all others are left alone."""

    ranges: Mapping[TopicPartition, Range]

    def __post_init__(self) -> None:
        """Raise BadInput when it names no partition, or a range is reversed or empty."""
        if not self.ranges:
            raise BadInput("the window names no partition: give the offsets of one at least")
        for place, (start, end) in sorted(self.ranges.items()):
            if not 0 <= start < end:
                raise BadInput(
                    f"the window of {place} begins at offset {start} and ends before {end}, which is not later: "
                    "exchange the two, or correct one"
                )

    @property
    def topics(self) -> frozenset[str]:
        """The source topics that it names."""
        return frozenset(place.topic for place in self.ranges)

    def of(self, _topic: str) -> OffsetWindow:
        """Return the window of one topic: the same for each."""
        return self

    @property
    def id(self) -> str:
        """What distinguishes it from the lane's other windows of a topic; the same for each repetition."""
        text = json.dumps([[*place, *part] for place, part in sorted(self.ranges.items())])
        return f"offsets-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def __str__(self) -> str:
        count = len(self.ranges)
        place, (start, end) = min(self.ranges.items())
        more = f" and {count_of(count - 1, 'more partition')}" if count > 1 else ""
        return f"offsets {start} to {end - 1} of {place}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWindows:
    """A time window for each of some topics; all others are left alone."""

    windows: Mapping[str, TimeWindow]
    """The window of each source topic; one at least."""

    @property
    def topics(self) -> frozenset[str]:
        """The source topics that it names."""
        return frozenset(self.windows)

    def of(self, topic: str) -> TimeWindow:
        """Return the window of one of its topics."""
        return self.windows[topic]

    def __str__(self) -> str:
        count = len(self.windows)
        topic, window = min(self.windows.items())
        more = f" and {count_of(count - 1, 'more topic')}" if count > 1 else ""
        return f"{window} of {topic}{more}"


TopicWindow = TimeWindow | OffsetWindow
"""The window of one topic."""

Window = TopicWindow | TopicWindows


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRecord:
    """The offsets of a window of one source topic, as the lane's ledger keeps them from its first run on.

    `from_ms` and `to_ms` are None for a window that was given in offsets.
    """

    lane: str
    topic: str
    window: str
    """The window's id."""
    from_ms: int | None
    to_ms: int | None
    topic_id: str
    ranges: Mapping[int, Range]
    """The source offsets of the window, by partition."""
    run: str
    at_ms: int

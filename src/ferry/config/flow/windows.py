"""Windows as people write them: two times, or offsets by topic and partition."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.config.flow.start import StartOffsets, StartTime, parse_start
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry.model import OffsetWindow, TimeWindow, TopicPartition, Window


def parse_window(
    start: str | None,
    end: str | None,
    start_offsets: Sequence[str],
    end_offsets: Sequence[str],
    *,
    allow_deleted: bool = False,
) -> Window:
    """A window of two times (ISO 8601 with a zone, or epoch milliseconds), or of `topic:partition:offset` items.

    Raises BadInput, which names options as the command line has them.
    """
    if start_offsets or end_offsets:
        if start is not None or end is not None:
            raise BadInput("the window is given both in times and in offsets: leave one of the two out")
        if allow_deleted:
            raise BadInput("allow-deleted is for windows of times: begin a window of offsets where the log begins")
        return _of_offsets(_offsets("from-offset", start_offsets), _offsets("to-offset", end_offsets))
    if start is None or end is None:
        raise BadInput(
            "the window is not given: write --from TIME --to TIME, or --from-offset and --to-offset for each partition"
        )
    return TimeWindow(from_ms=_time("from", start), to_ms=_time("to", end), allow_deleted=allow_deleted)


def _of_offsets(starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]) -> OffsetWindow:
    for place in sorted(starts.keys() ^ ends.keys()):
        missing = "to-offset" if place in starts else "from-offset"
        raise BadInput(f"the window of {place} has no --{missing}: write --{missing} {place.topic}:{place.partition}:N")
    return OffsetWindow(ranges={place: (start, ends[place]) for place, start in starts.items()})


def _time(option: str, text: str) -> int:
    try:
        found = parse_start(text)
    except BadValue as error:
        raise BadInput(f"--{option}: {error}") from None
    if not isinstance(found, StartTime):
        raise BadInput(f"--{option} {text!r} is no time: write one with its zone, as 2026-01-31T06:00:00Z")
    return found.timestamp_ms


def _offsets(option: str, items: Sequence[str]) -> dict[TopicPartition, int]:
    if not items:
        return {}
    try:
        found = parse_start(",".join(items))
    except BadValue as error:
        raise BadInput(f"--{option}: {error}") from None
    if not isinstance(found, StartOffsets):
        raise BadInput(f"--{option} {items[0]!r} is no offset: write TOPIC:PARTITION:OFFSET, as orders:3:1000")
    return dict(found.offsets)

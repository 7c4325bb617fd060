"""Windows as users write them: two times, two for each topic, or offsets by topic and partition."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ferry.config.flow.start import StartOffsets, StartTime, parse_start
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry.model import OffsetWindow, TimeWindow, TopicPartition, TopicWindows, Window, located


def parse_window(
    start: str | None,
    end: str | None,
    start_offsets: Sequence[str],
    end_offsets: Sequence[str],
    topic_times: Sequence[str] = (),
    *,
    allow_deleted: bool = False,
) -> Window:
    """Parse a window of two times, of `topic=time/time` items, or of `topic:partition:offset` items.

    A time is ISO 8601 with a zone, or epoch milliseconds. Raises BadInput, which names the options of the command line.
    """
    if start_offsets or end_offsets:
        if start is not None or end is not None or topic_times:
            raise BadInput("the window is given both in times and in offsets: omit one of the two")
        if allow_deleted:
            raise BadInput("allow-deleted is for windows of times: begin a window of offsets where the log begins")
        return _of_offsets(_offsets("from-offset", start_offsets), _offsets("to-offset", end_offsets))
    if topic_times:
        if start is not None or end is not None:
            raise BadInput("the window is given for all topics and for single ones: leave --from and --to, or --times")
        return TopicWindows(windows=_of_topics(topic_times, allow_deleted=allow_deleted))
    if start is None or end is None:
        raise BadInput(
            "the window is not given: write --from TIME --to TIME, --times TOPIC=TIME/TIME for each topic, or "
            "--from-offset and --to-offset for each partition"
        )
    return TimeWindow(from_ms=time_ms("from", start), to_ms=time_ms("to", end), allow_deleted=allow_deleted)


def _of_topics(items: Sequence[str], *, allow_deleted: bool) -> dict[str, TimeWindow]:
    found: dict[str, TimeWindow] = {}
    for item in items:
        topic, _, times = item.partition("=")
        start, slash, end = times.partition("/")
        if not (topic and slash):
            raise BadInput(
                f"--times {item!r} is not a window of a topic: write TOPIC=TIME/TIME, as "
                "orders=2026-01-01T00:00:00Z/2026-02-01T00:00:00Z"
            )
        if topic in found:
            raise BadInput(f"--times names topic {topic} twice: omit one of the two")
        window = TimeWindow(from_ms=time_ms("times", start), to_ms=time_ms("times", end), allow_deleted=allow_deleted)
        found[topic] = window
    return found


def _of_offsets(starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]) -> OffsetWindow:
    for place in sorted(starts.keys() ^ ends.keys()):
        missing = "to-offset" if place in starts else "from-offset"
        raise BadInput(f"the window of {place} has no --{missing}: write --{missing} {place.topic}:{place.partition}:N")
    return OffsetWindow(ranges={place: (start, ends[place]) for place, start in starts.items()})


def time_ms(option: str, text: str) -> int:
    """Parse a time of an option, ISO 8601 with its zone or epoch milliseconds; return epoch milliseconds.

    Raises BadInput for any other text.
    """
    with suppress(BadValue):
        found = parse_start(text)
        if isinstance(found, StartTime):
            return found.timestamp_ms
    raise BadInput(f"--{option} {text!r} is not a time: write one with a time zone, for example 2026-01-31T06:00:00Z")


def _offsets(option: str, items: Sequence[str]) -> dict[TopicPartition, int]:
    if not items:
        return {}
    for item in items:
        found = None
        with suppress(BadValue):
            found = parse_start(item)
        if not isinstance(found, StartOffsets):
            raise BadInput(
                f"--{option} {item!r} is not an offset: write TOPIC:PARTITION:OFFSET, for example orders:3:1000"
            )
    try:
        whole = parse_start(",".join(items))
    except BadValue as error:  # a partition is given twice
        raise BadInput(located(f"--{option}", error.message)) from None
    assert isinstance(whole, StartOffsets)
    return dict(whole.offsets)

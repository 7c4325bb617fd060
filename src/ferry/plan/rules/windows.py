"""The source offsets that a window means, given what its lane has copied before.

Kafka only appends, so the windows of a partition must come in order. A log is not ordered by time. So two windows that
touch in time must also touch in offsets, or late records would fall between them:

- A window that the lane had before means what it meant then (its record in the ledger).
- Otherwise, if earlier windows reach up to its beginning in time, it begins where they end, copied or not yet.
- Otherwise it begins at the first record of its time.
- It ends before the first record of its end's time, or at the log's end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry.errors import BadInput, Refused
from ferry.ledger.copied import without
from ferry.model import (
    LaneKind,
    OffsetWindow,
    Range,
    Receipt,
    TimeWindow,
    TopicPartition,
    TopicWindow,
    TopicWindows,
    Window,
    WindowRecord,
    lane_kind,
)
from ferry.plan.rules.facts import Facts, SourceTopic
from ferry.words import count_of, to_the_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What the source reports of one partition: the first offsets of a window's two times (-1: none that late).

    `oldest_ms` is the time of the record at the log's start; None when there is none, or it is not known.
    """

    start: int
    end: int
    oldest_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPart:
    """A window of one partition: source offsets `[start, end)`, and the lane's position in them (`stands`)."""

    source: TopicPartition
    start: int
    end: int
    stands: int

    @property
    def offsets(self) -> int:
        """How many offsets the window has here."""
        return self.end - self.start

    @property
    def left(self) -> int:
        """How many of them are not copied yet."""
        return max(0, self.end - max(self.start, self.stands))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLook:
    """A window in offsets, and what of it could not be asked: the window is not done as long as there is some."""

    parts: tuple[WindowPart, ...]
    unserved: tuple[str, ...] = ()
    """Partitions without a leader that the lane has not copied to the window's end, and topics that do not exist."""

    @property
    def left(self) -> int:
        """How many of the known offsets are not copied yet."""
        return sum(part.left for part in self.parts)

    @property
    def is_done(self) -> bool:
        """Whether all of the window is copied."""
        return not self.left and not self.unserved


def check_window(facts: Facts, window: Window, topics: Collection[str]) -> None:
    """Raise BadInput for a window that ends in the future, or that names what the source does not have."""
    if isinstance(window, TopicWindows):
        for name, times in sorted(window.windows.items()):
            _refuse_future(facts.now_ms, times, f"the window of {name}")
        return
    if isinstance(window, TimeWindow):
        _refuse_future(facts.now_ms, window, "the window")
        return
    for place, (_, end) in sorted(window.ranges.items()):
        topic = facts.source.topics.get(place.topic)
        if topic is None or place.topic not in topics:
            continue  # the plan refuses the topic
        if place.partition in topic.leaderless:
            continue
        part = topic.partitions.get(place.partition)
        if part is None:
            count = len(topic.partitions) + len(topic.leaderless)
            raise BadInput(
                f"topic {topic.name} has {count_of(count, 'partition')}, counted from 0: there is no {place}"
            )
        if end > part.log_end:
            raise BadInput(
                f"the window of {place} ends before offset {end}, but the source's log ends at {part.log_end}: end it "
                "there or earlier"
            )


def _refuse_future(now_ms: int, window: TimeWindow, what: str) -> None:
    if window.to_ms > now_ms:
        raise BadInput(
            f"{what} ends at {to_the_ms(window.to_ms)}, which is in the future (it is "
            f"{to_the_ms(now_ms)} now): end it now or earlier, what comes later belongs to a later window"
        )


def window_parts(
    lane: str,
    facts: Facts,
    window: Window,
    topics: Collection[str],
    listed: Mapping[TopicPartition, Listed],
    recorded: Sequence[WindowRecord],
) -> list[WindowPart]:
    """Return the window of each partition that can be asked. Pure.

    Raises Refused if the window would break the order of a partition, or if records of it are deleted; the whole window
    is then refused.
    """
    lasts = {last.source: last for last in facts.lane.receipts.values()}
    parts = []
    for name in sorted(facts.source.topics.keys() & topics):
        topic = facts.source.topics[name]
        known = [one for one in recorded if one.topic == name and one.topic_id in ("", topic.topic_id)]
        for number in sorted(topic.partitions):
            source = TopicPartition(topic=name, partition=number)
            found = _part(lane, window.of(name), topic, source, lasts.get(source), listed.get(source), known)
            if found is not None:
                parts.append(found)
    return parts


def _part(
    lane: str,
    window: TopicWindow,
    topic: SourceTopic,
    source: TopicPartition,
    last: Receipt | None,
    listed: Listed | None,
    known: Sequence[WindowRecord],
) -> WindowPart | None:
    here = [one for one in known if source.partition in one.ranges]
    own = next((one.ranges[source.partition] for one in here if one.window == window.id), None)
    wanted = own or _wanted(window, topic, source, listed)
    if wanted is None:
        return None
    start, end = wanted
    others = [one for one in here if one.window != window.id]
    if own is None:
        start = max((one.ranges[source.partition][1] for one in others if _touches(one, window)), default=start)
        start = _behind_unfinished(lane, source, start, last, others)
        end = max(start, end)
        _refuse_disorder(lane, source, (start, end), last, [one.ranges[source.partition] for one in others])
    stands = start if last is None else last.end
    part = WindowPart(source=source, start=start, end=end, stands=stands)
    return _served(part, window, topic, listed, fresh=own is None)


def _wanted(window: TopicWindow, topic: SourceTopic, source: TopicPartition, listed: Listed | None) -> Range | None:
    """Return what the window means by the source alone; None if it leaves the partition out, or no broker answered."""
    if isinstance(window, OffsetWindow):
        return window.ranges.get(source)
    if listed is None:
        return None
    upto = topic.partitions[source.partition].log_end
    start = listed.start if listed.start >= 0 else upto
    return start, max(start, listed.end if listed.end >= 0 else upto)


def _touches(earlier: WindowRecord, window: TopicWindow) -> bool:
    """Return whether an earlier window of time ends exactly where this one begins."""
    return isinstance(window, TimeWindow) and earlier.to_ms == window.from_ms


def _behind_unfinished(
    lane: str, source: TopicPartition, start: int, last: Receipt | None, others: Iterable[WindowRecord]
) -> int:
    """Return where the window begins if earlier ones are not copied to their ends: at their rest, if that reaches it.

    Raises Refused if it does not reach it: the rest could never be copied after this window.
    """
    stands = -1 if last is None else last.end
    ranges = [(max(part[0], stands), part[1]) for one in others for part in [one.ranges[source.partition]]]
    rest = [part for part in ranges if part[0] < part[1] and part[0] < start]
    if not rest:
        return start
    begin = min(part[0] for part in rest)
    if without([(begin, start)], rest):
        raise Refused(
            f"lane {lane} has not copied an earlier window of {source} to its end: offsets {begin} to "
            f"{max(part[1] for part in rest) - 1} are left, and windows of a partition come in order; finish that one "
            "first, or take another lane"
        )
    return begin


def _refuse_disorder(
    lane: str, source: TopicPartition, wanted: Range, last: Receipt | None, windows: Sequence[Range]
) -> None:
    """Raise Refused when the lane has copied what comes after the window, but not the window."""
    if last is None:
        return
    start = wanted[0]
    if lane_kind(lane) is None:
        raise Refused(
            f"lane {lane} has copied {source} up to offset {last.end} already, and Kafka only appends: old records "
            "would come after newer ones there; copy it to scratch topics (--lane backfill-NAME)"
        )
    missing = without([(start, last.end)], windows) if start < last.end else ()
    if missing:
        raise Refused(
            f"the window of {source} begins at offset {start}, but lane {lane} has copied it up to {last.end} without "
            f"offsets {missing[0][0]} to {missing[0][1] - 1}; Kafka only appends: copy earlier windows first, or "
            f"take another lane, for example {lane}-2"
        )


def _served(
    part: WindowPart, window: TopicWindow, topic: SourceTopic, listed: Listed | None, *, fresh: bool
) -> WindowPart:
    """Return the part as the source still has it.

    Raises Refused if records of it are deleted, unless the window allows that.
    """
    log_start = topic.partitions[part.source.partition].log_start
    begin = max(part.start, part.stands)
    oldest = None if listed is None else listed.oldest_ms
    allowed = isinstance(window, TimeWindow) and window.allow_deleted
    if part.left and begin < log_start:
        since = f" ({to_the_ms(oldest)})" if oldest is not None else ""
        remedy = (
            "begin the window there"
            if isinstance(window, OffsetWindow)
            else "take what is left with --allow-deleted (in Airflow: allow_deleted)"
        )
        if not allowed:
            raise Refused(
                f"the log of {part.source} begins at offset {log_start}{since}, and offsets {begin} to "
                f"{min(part.end, log_start) - 1} of the window are deleted: {remedy}"
            )
        return replace(part, start=log_start, end=max(part.end, log_start), stands=max(part.stands, log_start))
    if (
        isinstance(window, TimeWindow)
        and fresh
        and not allowed
        and part.start <= log_start
        and log_start > 0
        and (oldest is None or window.from_ms < oldest)
    ):
        holds = f"at {to_the_ms(oldest)}" if oldest is not None else "without a record that shows its time"
        later = f"begin the window at {to_the_ms(oldest)} or later, or " if oldest is not None else ""
        raise Refused(
            f"the log of {part.source} begins at offset {log_start}, {holds}, so records of the window, which begins "
            f"at {to_the_ms(window.from_ms)}, may be deleted: {later}take what is left with --allow-deleted (in "
            "Airflow: allow_deleted)"
        )
    return part


def unserved(
    facts: Facts, window: Window, topics: Collection[str], recorded: Iterable[WindowRecord]
) -> tuple[str, ...]:
    """Return what of the window cannot be asked now, by name, without what the ledger shows to be copied."""
    ends = {last.source: last.end for last in facts.lane.receipts.values()}
    own = {one.topic: one.ranges for one in recorded if one.topic in topics and one.window == window.of(one.topic).id}
    found = sorted(set(topics) - facts.source.topics.keys())
    for name in sorted(facts.source.topics.keys() & topics):
        for number in facts.source.topics[name].leaderless:
            place = TopicPartition(topic=name, partition=number)
            known = own.get(name, {}).get(number)
            wanted = not isinstance(window, OffsetWindow) or place in window.ranges
            if wanted and (known is None or ends.get(place, -1) < known[1] > known[0]):
                found.append(str(place))
    return tuple(found)


def narrowed(facts: Facts, topics: Collection[str], parts: Iterable[WindowPart]) -> Facts:
    """Return the facts as if each of the topics ended where the window does: a plan of the window is decided from them.

    Topics outside are unchanged, and the ends of logs stay known for the guards. What the ledger holds about compacted
    topics is dropped: it is about copies that follow them, not about history.
    """
    ends = {part.source: part.end for part in parts}
    found = dict(facts.source.topics)
    for name in found.keys() & topics:
        topic = found[name]
        found[name] = replace(
            topic,
            partitions={
                number: replace(
                    part,
                    end=min(part.end, ends.get(TopicPartition(topic=name, partition=number), 0)),
                    high_watermark=part.log_end,
                )
                for number, part in topic.partitions.items()
            },
        )
    begins = {part.source: max(part.start, part.stands) for part in parts}
    return replace(
        facts,
        source=replace(facts.source, topics=found),
        lane=replace(facts.lane, begins=begins, seen={}),
    )


def new_records(
    lane: str,
    facts: Facts,
    window: Window,
    parts: Iterable[WindowPart],
    recorded: Iterable[WindowRecord],
    run: str,
) -> list[WindowRecord]:
    """Return the records of the window for the ledger: one for each topic with parts that it does not have yet."""
    recorded = list(recorded)
    found: dict[str, dict[int, Range]] = {}
    for part in parts:
        found.setdefault(part.source.topic, {})[part.source.partition] = (part.start, part.end)
    records = []
    for topic, ranges in sorted(found.items()):
        own, topic_id = window.of(topic), facts.source.topics[topic].topic_id
        old = next((one for one in reversed(recorded) if (one.topic, one.window) == (topic, own.id)), None)
        kept = dict(old.ranges) if old is not None and old.topic_id in ("", topic_id) else {}
        if ranges.keys() <= kept.keys():
            continue
        times = (own.from_ms, own.to_ms) if isinstance(own, TimeWindow) else (None, None)
        records.append(
            WindowRecord(
                lane=lane,
                topic=topic,
                window=own.id,
                from_ms=times[0],
                to_ms=times[1],
                topic_id=topic_id,
                ranges={**ranges, **kept},
                run=run,
                at_ms=facts.now_ms,
            )
        )
    return records


def refuse_endless(lane: str, window: Window | None) -> None:
    """Raise BadInput for a run of a backfill lane without a window: it would never end."""
    if window is None and lane_kind(lane) in (LaneKind.BACKFILL, LaneKind.APPEND):
        raise BadInput(f"lane {lane} copies windows: give one (ferry backfill), or leave the lane to live runs")

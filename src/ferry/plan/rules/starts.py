"""Where a lane began: recorded with its first plan, so that a later change of the configuration moves nothing.

A partition that exists at that time but cannot be asked still begins as configured. A given offset is recorded at once.
`latest` and a time are recorded as a time, *pending* until a run can ask the partition for its offset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ferry.codec.form import F, Form
from ferry.codec.kinds import SINGLE, by_partition
from ferry.config.flow.start import Start, StartEarliest, StartLatest, StartOffsets, StartTime
from ferry.ledger.codec import LEDGER_VERSION, Json, encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.model import Record, TopicPartition
from ferry.plan.rules.facts import Facts, SourceTopic, by_topic

NOT_KNOWN = -1
"""The first offset before a lane's start, where the record of the start does not have it."""

Passed = Mapping[int, tuple[int, int]]
"""What a lane skips before its start: the first offset and the end, by partition number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStarts:
    """Where a lane's first run began: an offset by source partition; for pending ones the time (ms) to ask for."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    pending: Mapping[TopicPartition, int] = field(default_factory=dict)
    passed: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """The offsets that the source had before the start and that the lane skips: the first, and the end.

    The first is NOT_KNOWN where the record lacks it. A partition without an entry skips nothing.
    """

    def settled(self, found: Mapping[TopicPartition, int]) -> LaneStarts:
        """Return the starts with the offsets `found` for pending partitions."""
        pending = {place: timestamp for place, timestamp in self.pending.items() if place not in found}
        return LaneStarts(offsets={**self.offsets, **found}, pending=pending, passed=self.passed)


def first_run(view: LedgerView, lane: str) -> bool:
    """Return whether the lane never had a plan: only then does the configured start count."""
    return not any(key[1] == lane for key, _ in view.of_kind("began"))


def unasked_starts(start: Start, unasked: Collection[TopicPartition], asked_ms: int) -> LaneStarts:
    """Return the configured start of partitions that exist at the first run and cannot be asked then.

    `asked_ms` is when that run began to ask: with `latest`, younger records must be copied. Partitions at `earliest`
    need no entry: they begin like partitions that came later.
    """
    match start:
        case StartEarliest():
            return LaneStarts()
        case StartLatest():
            return LaneStarts(pending=dict.fromkeys(unasked, asked_ms))
        case StartTime(timestamp_ms=timestamp):
            return LaneStarts(pending=dict.fromkeys(unasked, timestamp))
        case StartOffsets(offsets=offsets):
            return LaneStarts(offsets={place: offsets[place] for place in unasked if place in offsets})


def due_starts(
    pending: Mapping[TopicPartition, int], served: Collection[TopicPartition], copied: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the pending partitions to ask now: they are served again, and no receipt shows where they continue."""
    return {place: timestamp for place, timestamp in pending.items() if place in served and place not in copied}


def starts_at_time(
    listed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the start of each partition: the first offset of a time or later; its present end if it has none (-1)."""
    return {place: offset if offset >= 0 else ends[place] for place, offset in listed.items()}


def start_records(lane: str, facts: Facts, *, windowed: bool = False) -> list[Record]:
    """Return the records to write with the lane's first plan: the start of every partition that exists now.

    Starts at `earliest` are recorded, too, so that a later plan knows what was there and is gone before it was copied.
    Windows have starts of their own: a `windowed` run leaves out topics that begin at `earliest`.
    """
    given, pending = by_topic(facts.lane.starts), by_topic(facts.lane.pending)
    copied = {last.source for last in facts.lane.receipts.values()}  # adopted: another replicator was there before
    records = [
        start_record(
            lane,
            topic.name,
            {number: max(part.log_start, part.start) for number, part in topic.partitions.items()}
            | given.get(topic.name, {}),
            pending.get(topic.name, {}),
            topic.topic_id,
            _passed_first(topic, given.get(topic.name, {}), copied),
        )
        for topic in facts.source.topics.values()
        if (topic.partitions and not windowed)
        or topic.name in given.keys() | pending.keys()
        or any(part.start > part.log_start for part in topic.partitions.values())
    ]
    return [*records, began_record(lane, facts.now_ms)]


def began_record(lane: str, now_ms: int) -> Record:
    """Return the record that the lane has had its first plan."""
    return Record(key=encode(["began", lane]), value=encode({"v": LEDGER_VERSION, "at_ms": now_ms}))


def _passed_first(
    topic: SourceTopic, given: Mapping[int, int], copied: Collection[TopicPartition]
) -> dict[int, tuple[int, int]]:
    """Return what the lane's first run skips; `given` are starts that are recorded, asked for or not.

    Partitions that were `copied` before continue where they were.
    """
    found = {number: (NOT_KNOWN, start) for number, start in given.items() if start and number not in topic.partitions}
    for number, part in topic.partitions.items():
        start = given.get(number, part.start)
        if start > part.log_start and TopicPartition(topic=topic.name, partition=number) not in copied:
            found[number] = (part.log_start, start)
    return found


def later_start_records(view: LedgerView, lane: str, facts: Facts, *, windowed: bool = False) -> list[Record]:
    """Return the start records to write with a later plan.

    They are of topics with partitions that were pending and are not any more, or that are new and begin at `earliest`.
    A recorded start holds from then on. If it were asked again each time, a partition without a young record would
    begin at an end that moves. Records that came meanwhile with an old timestamp would then be skipped.
    """
    ids = {name: topic.topic_id for name, topic in facts.source.topics.items()}
    recorded = recorded_starts(view, lane, ids)
    settled = {place.topic for place in recorded.pending.keys() - facts.lane.pending.keys()}
    new = {} if windowed else _new_starts(facts)
    starts, pending = by_topic({**new, **facts.lane.starts}), by_topic(facts.lane.pending)
    passed = by_topic({**recorded.passed, **_passed_now(facts, recorded.pending)})
    return [
        start_record(lane, name, starts[name], pending.get(name, {}), ids.get(name, ""), passed.get(name, {}))
        for name in sorted(settled | {place.topic for place in new})
    ]


def _passed_now(facts: Facts, pending: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    """Return what the lane skips in partitions whose start was `pending` and is known now."""
    found = {}
    for place in pending:
        topic = facts.source.topics.get(place.topic)
        part = None if topic is None else topic.partitions.get(place.partition)
        start = facts.lane.starts.get(place)
        first = NOT_KNOWN if part is None else part.log_start
        if place not in facts.lane.pending and start and start > first:
            found[place] = (first, start)
    return found


def _new_starts(facts: Facts) -> dict[TopicPartition, int]:
    """Return the log start of partitions of which nothing was copied, and no plan has recorded a start yet."""
    copied = {last.source for last in facts.lane.receipts.values()}
    parts = {
        TopicPartition(topic=name, partition=number): part.log_start
        for name, topic in facts.source.topics.items()
        for number, part in topic.partitions.items()
    }
    return {
        place: log_start
        for place, log_start in parts.items()
        if place not in copied and place not in facts.lane.starts and place not in facts.lane.pending
    }


def recorded_starts(view: LedgerView, lane: str, ids: Mapping[str, str] | None = None) -> LaneStarts:
    """Return where the lane began, as its plans recorded it.

    Topics that were created again since are left out, by the source topics' `ids`. Offsets of one log mean nothing in
    another, which is copied from its beginning like a topic that came later.
    """
    found: dict[str, _Start] = {}
    for key, record in view.of_kind("start"):
        if key[1] == lane and record.value is not None:
            start, now = read_as(record, _parse_start), (ids or {}).get(key[2], "")
            if not (start.topic_id and now and start.topic_id != now):
                found[key[2]] = start
    return LaneStarts(
        offsets={TopicPartition(name, number): at for name, one in found.items() for number, at in one.offsets.items()},
        pending={TopicPartition(name, number): at for name, one in found.items() for number, at in one.pending.items()},
        passed={TopicPartition(name, number): at for name, one in found.items() for number, at in one.passed.items()},
    )


def start_record(
    lane: str, topic: str, offsets: Mapping[int, int], pending: Mapping[int, int], topic_id: str, passed: Passed
) -> Record:
    """Return the record of where the partitions of a source topic begin.

    `offsets` and `pending` (times in ms) are by partition number; an empty `topic_id` is not known. `passed` is what
    the source had before these offsets and the lane never copies.
    """
    start = _Start(offsets=offsets, pending=pending, topic_id=topic_id, passed=passed)
    return Record(key=encode(["start", lane, topic]), value=encode(_START.dump(start)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Where a topic begins, by partition number; an empty `topic_id` is not known."""

    offsets: Mapping[int, int]
    pending: Mapping[int, int]
    topic_id: str
    passed: Passed


_START = Form(
    _Start,
    head("start")[0],
    F("offsets", kind=by_partition(SINGLE), default={}),
    F("pending", kind=by_partition(SINGLE), default={}, omit=lambda start: not start.pending),
    F("topic_id", default=""),
    F("passed", kind=by_partition(), default={}),
)


def _parse_start(body: Json) -> _Start:
    """Return a record of where a topic begins; what is before its offsets is None where the record lacks it."""
    start = _START.load(body)
    if "passed" in body:
        return start
    return replace(start, passed={number: (NOT_KNOWN, offset) for number, offset in start.offsets.items() if offset})

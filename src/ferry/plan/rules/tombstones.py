"""Deleted keys of compacted topics: a lane that pauses too long misses that they were deleted.

The cleaner may remove a tombstone `delete.retention.ms` after it first met it, so no earlier than that after it was
written. A lane that has read a log to its end at some time, and does so again within that span, misses no tombstone.
Kafka's documentation of log compaction says so.

So the ledger keeps for each partition a time at which the lane had all that was there. The time of the last copy would
not do, because there is nothing to copy from a topic without new records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.codec.form import F, Form
from ferry.codec.kinds import by_partition, row
from ferry.ledger.codec import encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.messages.refusals import refused
from ferry.model import Plan, Record, RefusalKind, Resolution, TopicPartition
from ferry.plan.rules.facts import Facts, Seen, SourceTopic
from ferry.plan.rules.guards import Mismatch
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.progress import next_offset

FRESH_PART = 10
"""The record is written again after this part of `delete.retention.ms`, not by every run."""


def seen_to_end(view: LedgerView, lane: str, ids: Mapping[str, str]) -> dict[TopicPartition, Seen]:
    """Return what the ledger holds about compacted source topics with the topic ids `ids`, by partition."""
    found: dict[TopicPartition, Seen] = {}
    for key, record in view.of_kind("seen"):
        if key[1] != lane or record.value is None:
            continue
        one = read_as(record, _SEEN.load)
        if one.topic_id == ids.get(key[2], ""):
            found.update((TopicPartition(topic=key[2], partition=number), seen) for number, seen in one.read.items())
    return found


@dataclass(frozen=True, slots=True)
class _SeenTopic:
    """What the ledger holds about a compacted source topic, by partition."""

    topic: str
    topic_id: str
    read: Mapping[int, Seen]


_SEEN = Form(_SeenTopic, *head("seen"), F("topic"), F("topic_id"), F("read", kind=by_partition(row(Seen))))


def read_on(before: Seen | None, stands: int, end: int, now_ms: int) -> Seen:
    """Return what is known now of a lane that is at `stands` in a partition that ends at `end`."""
    if before is None or stands >= end:
        return Seen(whole_ms=now_ms, asked_ms=now_ms, asked_end=end)
    if stands >= before.asked_end:
        return Seen(whole_ms=before.asked_ms, asked_ms=now_ms, asked_end=end)
    return before


def tombstone_trouble(
    facts: Facts, topic: SourceTopic, number: int, start: int, *, repartitioned: bool = False
) -> Mismatch | None:
    """Return a trouble if keys of a compacted partition may have been deleted unseen since the lane last had all of it.

    Their tombstones may be gone by now. None if that cannot be, or if nothing is known. The lane would continue at
    `start`. A copy that is `repartitioned` cannot be copied again in place.
    """
    part, before = topic.partitions[number], facts.lane.seen.get(TopicPartition(topic=topic.name, partition=number))
    if topic.delete_retention_ms is None or before is None:
        return None
    whole_ms = read_on(before, start, part.end, facts.now_ms).whole_ms
    if start >= part.end or facts.now_ms - whole_ms <= topic.delete_retention_ms:
        return None
    code = "source.tombstones-passed.dealt" if repartitioned else "source.tombstones-passed"
    refusal = refused(code, topic.name, number, read_ms=whole_ms, retention_ms=topic.delete_retention_ms)
    return Mismatch(refusal=refusal, restart=start, lost=(start, start))


def seen_records(rules: Rules, facts: Facts, plan: Plan) -> list[Record]:
    """Return the records to write with a plan: what is known of its compacted topics, if the old record has aged."""
    refused = {(refusal.topic, refusal.partition) for refusal in plan.refusals}
    anew = {
        gap.source for gap in plan.gaps if gap.how is Resolution.RESTART or gap.why is RefusalKind.TOMBSTONES_PASSED
    }
    paused = frozenset(plan.paused)
    records = []
    for topic in facts.source.topics.values():
        narrowed = rules.only is not None and topic.name not in rules.only
        held_back = "" in facts.lane.pauses or topic.name in paused
        if topic.delete_retention_ms is None or narrowed or held_back or (topic.name, None) in refused:
            continue
        before, found = {}, {}
        for number in {*topic.partitions, *topic.leaderless}:
            source = TopicPartition(topic=topic.name, partition=number)
            seen = facts.lane.seen.get(source)
            if seen is not None:
                before[number] = seen
            if number in topic.partitions and (topic.name, number) not in refused:
                found[number] = _now(rules, facts, source, None if source in anew else seen)
        if any(_is_news(before.get(number), seen, topic.delete_retention_ms) for number, seen in found.items()):
            value = encode(_SEEN.dump(_SeenTopic(topic.name, topic.topic_id, before | found)))
            records.append(Record(key=encode(["seen", rules.lane, topic.name]), value=value))
    return records


def _now(rules: Rules, facts: Facts, source: TopicPartition, before: Seen | None) -> Seen:
    part = facts.source.topics[source.topic].partitions[source.partition]
    target = rules.policy.format_remote_topic(rules.flow.source, source.topic)
    last = facts.lane.receipts.get(TopicPartition(topic=target, partition=source.partition))
    return read_on(before, next_offset(facts, source, part, last), part.end, facts.now_ms)


def _is_news(before: Seen | None, now: Seen, retention_ms: int) -> bool:
    return before is None or now.asked_ms - before.asked_ms >= retention_ms // FRESH_PART

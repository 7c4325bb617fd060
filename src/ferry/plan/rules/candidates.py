"""What a run could copy: for each partition the offsets not yet copied, or the refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ferry.config.flow.guards import OnGuard
from ferry.model import Gap, Receipt, Refusal, RefusalKind, TopicPartition
from ferry.plan.rules.absence import lost_partitions, lost_refusal
from ferry.plan.rules.facts import Facts, SourceTopic
from ferry.plan.rules.guards import leaderless_refusal, position_note, unserved_refusal
from ferry.plan.rules.lost_ledger import lost_ledger_refusal
from ferry.plan.rules.origins import foreign_refusal, no_receipt_refusal, returning_refusal
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.plan.rules.progress import estimated_bytes, next_offset
from ferry.plan.rules.resume_point import resume_point
from ferry.plan.rules.truncation import read_before, written_before


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A partition that may be copied: source offsets `[start, end)`; none when its lag is 0."""

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    bytes: int
    last_generation: int
    """The generation of the run that copied the partition last; -1 when none did."""
    source_topic_id: str
    target_topic_id: str
    target_next: int | None
    log_start: int
    merged: bool
    target_end: int | None
    since: int
    compacted: bool
    read_epoch: int | None
    read_end: int | None
    target_epoch: int | None
    transform: Transform | None
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]

    @property
    def first(self) -> bool:
        """Whether nothing of the partition was copied yet."""
        return self.last_generation < 0

    @property
    def offsets(self) -> int:
        """How many offsets are not yet copied."""
        return self.end - self.start


def candidates(
    rules: Rules, facts: Facts, topic: SourceTopic, lasts: Mapping[int, Receipt], run: str, generation: int
) -> Iterator[Candidate | Refusal]:
    """Yield for each partition of a source topic the candidate with its start, or the refusal.

    `lasts` are the last receipts of its copy's partitions, by number.
    """
    target_name = rules.policy.format_remote_topic(rules.flow.source, topic.name)
    for number in topic.leaderless:
        yield leaderless_refusal(topic, number)
    for lost in lost_partitions(lasts.values(), topic):
        yield lost_refusal(topic, lost)
    for number in sorted(topic.partitions):
        yield _candidate(rules, facts, topic, TopicPartition(topic=target_name, partition=number), run, generation)


def _candidate(
    rules: Rules, facts: Facts, topic: SourceTopic, place: TopicPartition, run: str, generation: int
) -> Candidate | Refusal:
    """Return the candidate, or the refusal, of the source partition that is copied to `place`."""
    number = place.partition
    part = topic.partitions[number]
    source = TopicPartition(topic=topic.name, partition=number)
    target = facts.target.topics.get(place.topic)
    last = facts.lane.receipts.get(place)
    unserved = unserved_refusal(topic, number, target)
    if unserved is not None:
        return unserved
    found = resume_point(rules, facts, topic, number, target, last, run, generation)
    start = next_offset(facts, source, part, last) if isinstance(found, Refusal) else found.start
    # A loop is checked first: the other findings result from it.
    loop = returning_refusal(rules, source, start, part.end, facts.others.returned.get(source, ()))
    loop = loop or no_receipt_refusal(rules, source, start, part.end, facts.others.no_receipt.get(source))
    if loop is not None:
        return loop
    lost = lost_ledger_refusal(facts.lane, topic, target, number)
    if lost is not None:
        return lost
    if isinstance(found, Refusal):
        return found
    foreign = foreign_refusal(facts.others, source, place)
    if foreign is not None:
        return foreign
    note = None
    if last is not None and not last.adopted and place in facts.lane.positions:  # an adoption commits no position
        note = position_note(last, facts.lane.positions[place])
    own = last if last is not None and last.source == source else None
    read_epoch, read_end = read_before(own, part, found.start, found.gaps)
    return Candidate(
        source=source,
        target=place,
        start=start,
        end=max(start, part.end),
        bytes=estimated_bytes(part, max(0, part.end - start), last).bytes,
        last_generation=last.generation if last else -1,
        source_topic_id=topic.topic_id,
        target_topic_id=target.topic_id if target else "",
        target_next=found.target_next,
        log_start=part.log_start,
        merged=rules.merges(topic.name) or rules.guards.of(RefusalKind.FOREIGN_WRITER, topic.name) is not OnGuard.FAIL,
        target_end=None if target is None else target.ends.get(number),
        since=found.since,
        compacted=topic.compacted,
        read_epoch=read_epoch,
        read_end=read_end,
        target_epoch=written_before(last, found.gaps),
        transform=rules.transform_of(topic.name),
        gaps=found.gaps,
        notes=found.notes if note is None else (*found.notes, note),
    )

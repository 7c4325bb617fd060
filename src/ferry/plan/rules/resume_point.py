"""Where a partition continues: after its last receipt, or where its flow's guards send it instead of refusing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ferry.config.flow.guards import OnGuard
from ferry.messages.refusals import passed, what_of
from ferry.model import Gap, Receipt, Refusal, RefusalKind, Resolution, TopicPartition
from ferry.plan.rules.facts import Facts, SourceTopic, TargetTopic
from ferry.plan.rules.guards import (
    Mismatch,
    foreign_trouble,
    occupied_refusal,
    retention_trouble,
    source_trouble,
    target_trouble,
)
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.progress import next_offset, place_of_lane
from ferry.plan.rules.tombstones import tombstone_trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Source offset, target offset and `since` with which a partition continues; `gaps` were decided for that."""

    start: int
    target_next: int | None = None
    since: int = -1
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()


def resume_point(
    rules: Rules,
    facts: Facts,
    topic: SourceTopic,
    number: int,
    target: TargetTopic | None,
    last: Receipt | None,
    run: str,
    generation: int,
) -> ResumePoint | Refusal:
    """Return where a partition continues, or the first refusal that no policy lifts."""
    source = TopicPartition(topic=topic.name, partition=number)
    part = topic.partitions[number]
    stands = next_offset(facts, source, part, last)
    if last is None:
        first = _first(rules, facts, topic, number, target, max(stands, part.log_start), run, generation)
        passed = retention_trouble(topic, number, place_of_lane(facts, source, part, None))
        if isinstance(first, Refusal) or passed is None:
            return first
        policy = rules.guards.of(passed.refusal.kind, topic.name)
        if policy is OnGuard.FAIL:
            return passed.refusal
        return _lifted(first, passed, policy, _gap(facts, source, passed, policy, first, last, run, generation))
    found = ResumePoint(start=stands, target_next=last.target_next, since=last.since)
    looks: tuple[Callable[[int], Mismatch | None], ...] = (
        lambda start: source_trouble(facts.source, topic, number, last, start),
        lambda start: retention_trouble(topic, number, start),
        lambda start: target_trouble(facts.target, topic, number, target, last, start),
        # A policy of its own: a restart into a copy that was created again does not permit foreign records in it.
        lambda start: foreign_trouble(facts.others, topic, number, last, start, behind=found.target_next),
        # A lane that went back reads the whole log again.
        lambda start: None if _went_back(found) else tombstone_trouble(facts, topic, number, start),
    )
    for look in looks:
        mismatch = look(found.start)
        if mismatch is None:
            continue
        policy = rules.guards.of(mismatch.refusal.kind, topic.name)
        if policy is OnGuard.FAIL:
            return mismatch.refusal
        found = _lifted(found, mismatch, policy, _gap(facts, source, mismatch, policy, found, last, run, generation))
    return found


def _first(
    rules: Rules,
    facts: Facts,
    topic: SourceTopic,
    number: int,
    target: TargetTopic | None,
    start: int,
    run: str,
    generation: int,
) -> ResumePoint | Refusal:
    """Return where a partition without a receipt begins: its copy must be empty, or the policy must accept its records.

    If it accepts them, nothing of the source is lost, so the gap that records this is empty. Where records came from
    the target, the copy holds their originals, and the facts only have what comes after those. Whether records may go
    back is judged separately.
    """
    found = ResumePoint(start=start)
    source = TopicPartition(topic=topic.name, partition=number)
    refusal = None if target is None else occupied_refusal(facts.others, topic, number, target)
    if refusal is None:
        return found
    policy = rules.guards.of(refusal.kind, topic.name)
    if policy is OnGuard.FAIL:
        return refusal
    note = passed("passed.copied-behind", refusal)
    mismatch = Mismatch(refusal=refusal, restart=start, lost=(start, start))
    gap = _gap(facts, source, mismatch, policy, found, None, run, generation)
    return replace(found, notes=(note,), gaps=(gap,))


def _went_back(now: ResumePoint) -> bool:
    return any(gap.how is Resolution.RESTART for gap in now.gaps)


def _lifted(now: ResumePoint, mismatch: Mismatch, policy: OnGuard, gap: Gap) -> ResumePoint:
    restart = policy is OnGuard.RESTART
    start = mismatch.restart if restart else max(now.start, mismatch.lost[1])
    note = (
        passed("passed.restarted", mismatch.refusal, start=start)
        if restart
        else passed("passed.skipped", mismatch.refusal)
    )
    return ResumePoint(
        start=start,
        target_next=mismatch.target_next if mismatch.refusal.kind is RefusalKind.TARGET_CHANGED else now.target_next,
        since=gap.generation if restart else now.since,
        gaps=(*now.gaps, gap),
        notes=(*now.notes, note),
    )


def _gap(
    facts: Facts,
    source: TopicPartition,
    mismatch: Mismatch,
    policy: OnGuard,
    now: ResumePoint,
    last: Receipt | None,
    run: str,
    generation: int,
) -> Gap:
    restart = policy is OnGuard.RESTART
    start, end = (now.start, mismatch.restart) if restart else mismatch.lost
    what = what_of(mismatch.refusal)
    return Gap(
        source=source,
        start=start,
        end=end,
        why=mismatch.refusal.kind,
        run=run,
        at_ms=facts.now_ms,
        how=Resolution(policy.value),
        who=f"ferry.guard.{mismatch.refusal.kind.replace('-', '.')}",
        reason=what,
        generation=generation,
        since=-1 if last is None else last.since,
        void_from=mismatch.void_from,
        topic_id=facts.source.topics[source.topic].topic_id,
    )

"""Skipping offsets by hand: what may be skipped of a partition, and what the ledger records of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ferry.errors import BadInput, Refused
from ferry.ledger.history import PastState, past_runs
from ferry.ledger.ledger import LedgerView
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import words_of
from ferry.model import Gap, OpenedRun, Plan, RefusalKind, RunRecord, Sentence, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.guards import cluster_sentence, leaderless_refusal, source_trouble
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.plan.rules.progress import place_of_lane
from ferry.plan.rules.repartition import deal_of
from ferry.plan.rules.topics import owned
from ferry.words import count_of, several


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipRequest:
    """The wish that a lane continues at offset `to` of a source partition."""

    source: TopicPartition
    to: int
    who: str
    reason: str


def refuse_while_at_work(view: LedgerView, lane: str, *, is_lost: bool = False) -> None:
    """Raise Refused while the lane's newest run is not done: it may still copy.

    `is_lost`: the source may be lost, so the flow cannot be run again.
    """
    remedy = "let it end, or run the flow again; --interrupt ends it instead"
    if is_lost:
        remedy = "give --interrupt, which ends it, or let it end"
    for past in past_runs(view, lane, 1):
        if past.state is PastState.OPEN:
            raise Refused(sentence("run.at-work", run=past.opened.record.run, lane=lane, remedy=remedy))


def skip_gap(rules: Rules, facts: Facts, wish: SkipRequest, run: str, generation: int) -> Gap:
    """Return the gap after which the lane continues at the wished offset. Pure.

    Raises BadInput when it names a place that the flow does not copy, or leads back or beyond the end. Raises Refused
    for a partition without a leader, and for a copy that another lane owns. Also when the source's log is not the one
    that the lane has copied from, and when a skip would not help a repartitioned topic.
    """
    source, to = wish.source, wish.to
    topic = facts.source.topics.get(source.topic)
    if topic is None:
        raise BadInput(
            f"flow {rules.flow} does not copy topic {source.topic}: cluster {rules.flow.source} has no such topic, or "
            "the filters leave it out"
        )
    if source.partition in topic.leaderless:
        raise Refused(words_of(leaderless_refusal(topic, source.partition)))
    part = topic.partitions.get(source.partition)
    if part is None:
        count = len(topic.partitions) + len(topic.leaderless)
        raise BadInput(f"topic {topic.name} has {count_of(count, 'partition')}, counted from 0: there is no {source}")
    target = TopicPartition(
        topic=rules.policy.format_remote_topic(rules.flow.source, topic.name), partition=source.partition
    )
    owner = facts.lane.claims.get(target.topic, rules.lane)
    if owner != rules.lane:
        raise Refused(words_of(owned(topic.name, target.topic, owner)))
    transform = rules.transform_of(topic.name)
    if transform is not None and transform.partitions is not None:
        _check_dealt(rules, facts, wish, transform)
    last = facts.lane.receipts.get(target)
    stands = place_of_lane(facts, source, part, last)
    if last is not None:
        why = cluster_sentence(facts, last)
        trouble = source_trouble(facts.source, topic, source.partition, last, stands)
        if why is not None:
            raise Refused(why)
        if trouble is not None:
            raise Refused(words_of(trouble.refusal))
    low = max(stands + 1, part.log_start)
    if not low <= to <= part.end:
        room = (
            f"name an offset from {low} to {part.end}" if low <= part.end else "there is no later offset to continue at"
        )
        raise BadInput(
            f"--to {to} leads {'back' if to <= stands else 'beyond what the source has'}: lane {rules.lane} is at "
            f"offset {stands} of {source}, which holds {part.log_start} to {part.end - 1}; {room}"
        )
    return Gap(
        source=source,
        start=stands,
        end=to,
        why=RefusalKind.STUCK,
        run=run,
        at_ms=facts.now_ms,
        who=wish.who,
        reason=wish.reason,
        generation=generation,
        since=-1 if last is None else last.since,
        topic_id=topic.topic_id,
    )


def _check_dealt(rules: Rules, facts: Facts, wish: SkipRequest, transform: Transform) -> None:
    """Raise Refused if a skip does not help a repartitioned topic, or would have no meaning."""
    targets = rules.copies_of(wish.source.topic)
    found = deal_of(rules, facts, facts.source.topics[wish.source.topic], targets, transform, "(skip)", -1)
    refusals = found if isinstance(found, tuple) else found.refusals
    helped = (RefusalKind.RETENTION_PASSED, RefusalKind.POISON)
    for one in refusals:
        if one.kind not in helped and (one.partition is None or one.partition == wish.source.partition):
            raise Refused(words_of(one))
    if wish.source not in facts.lane.dealt:
        raise Refused(
            f"nothing of {wish.source} was copied to {several(targets)} yet, so there is no position to continue from: "
            "run the flow first, or begin it elsewhere with ferry.start"
        )


def idle_plan(opened: OpenedRun) -> Plan:
    """Return the plan of a run that copies nothing."""
    record = opened.record
    return Plan(
        flow=record.flow,
        lane=record.lane,
        run=record.run,
        generation=opened.generation,
        slots=record.slots,
        slices=(),
    )


def skip_plan(record: RunRecord, gap: Gap) -> Plan:
    """Return the plan of a run that only skips offsets."""
    opened = OpenedRun(record=record, generation=gap.generation)
    return replace(idle_plan(opened), gaps=(gap,), notes=(skip_sentence(gap),))


def skip_sentence(gap: Gap) -> Sentence:
    """Return which offsets were skipped, who decided it and why."""
    return sentence(
        "passed.by-hand", source=str(gap.source), start=gap.start, end=gap.end, who=gap.who, reason=gap.reason
    )

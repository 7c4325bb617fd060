"""What forbids repartitioning a topic at all: from facts to a refusal of the whole topic, or None."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ferry.messages.refusals import refused
from ferry.model import Era, LaneKind, Receipt, Refusal, TopicPartition, lane_kind
from ferry.plan.rules.facts import Facts, LaneFacts, SourceFacts, SourceTopic, TargetFacts, TargetTopic
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.words import several


def deal_refusal(
    rules: Rules,
    facts: Facts,
    topic: SourceTopic,
    target: str,
    rule: Transform,
    known: Era | None,
    lasts: Mapping[TopicPartition, Receipt],
) -> Refusal | None:
    """Return the refusal of the whole topic, or None."""
    other = _against_lane(rules, topic, rule)
    if other is not None:
        return other
    if rules.merges(topic.name):
        return refused("transform.merged", topic.name, transform=rule.name, target=target)
    before = next((last for last in facts.lane.receipts.values() if last.target.topic == target), None)
    if before is not None:
        partitions = rule.partitions or 0
        return refused("transform.copied-before", topic.name, target=target, transform=rule.name, partitions=partitions)
    return (
        _changed_source(rules, facts.source, topic, target, known, lasts.values())
        or _newer_rule(topic, known, lasts.values())
        or _changed_target(facts.target, topic, target, lasts)
    )


def _changed_source(
    rules: Rules,
    source: SourceFacts,
    topic: SourceTopic,
    target: str,
    known: Era | None,
    lasts: Collection[Receipt],
) -> Refusal | None:
    """Return the refusal of a source topic that was created again since it was read, or that is of another cluster."""
    ids = {last.source_topic_id for last in lasts} | {"" if known is None else known.source_topic_id}
    read = max([0 if known is None else len(known.begins), *(len(last.ends) for last in lasts)])
    count = len(topic.partitions) + len(topic.leaderless)
    if read > count:
        return refused("source.recreated.dealt.fewer", topic.name, target=target, partitions=count, read=read)
    if topic.topic_id and ids - {"", topic.topic_id}:
        return refused("source.recreated.dealt", topic.name, target=target, now=topic.topic_id)
    now = source.cluster_id
    if any(last.source_cluster_id and now and last.source_cluster_id != now for last in lasts):
        return refused("source.cluster-changed.dealt", topic.name, target=target, alias=rules.flow.source)
    return None


def dealt_before(lane: LaneFacts, topic: str, target: str) -> Refusal | None:
    """Return why a topic may not keep its partitions now: its copy was repartitioned before; None if it was not."""
    last = max((one for one in lane.units.values() if one.target.topic == target), key=_at, default=None)
    if last is None:
        return None
    era = lane.eras.get(target)
    if era is None:
        return refused("transform.dealt-before.unknown", topic, target=target, run=last.run)
    return refused("transform.dealt-before", topic, target=target, partitions=era.partitions, run=last.run)


def _at(last: Receipt) -> int:
    return last.at_ms


def _against_lane(rules: Rules, topic: SourceTopic, rule: Transform) -> Refusal | None:
    """Return the refusal of a topic that cannot be repartitioned in this lane, or None."""
    if lane_kind(rules.lane) in (LaneKind.BACKFILL, LaneKind.APPEND):
        return refused("transform.window", topic.name, transform=rule.name)
    if rule.targets and rules.scratch:
        return refused("transform.scratch", topic.name, transform=rule.name, lane=rules.lane)
    return None


def _newer_rule(topic: SourceTopic, known: Era | None, lasts: Iterable[Receipt]) -> Refusal | None:
    """Return the refusal of receipts by a newer rule than the one that the ledger has in force, or None.

    By that rule all partitions would begin again.
    """
    newer = None if known is None else next((last for last in lasts if last.since > known.since), None)
    if newer is None or known is None:
        return None
    place = str(newer.target)
    return refused("ledger.newer-rule", topic.name, run=newer.run, place=place, newer=newer.since, known=known.since)


def _changed_target(
    facts: TargetFacts, topic: SourceTopic, target: str, lasts: Mapping[TopicPartition, Receipt]
) -> Refusal | None:
    copy = facts.topics.get(target)
    written = [last for last in lasts.values() if last.target_next is not None and last.target.topic == target]
    if not written:
        return None
    if copy is None:
        return refused("target.gone.dealt", topic.name, target=target, partitions=len(written))
    if copy.topic_id and any(last.target_topic_id not in ("", copy.topic_id) for last in written):
        return refused("target.recreated.dealt", topic.name, target=target)
    if max(last.target.partition for last in written) >= copy.partitions:
        return refused("target.fewer.dealt", topic.name, target=target, partitions=copy.partitions)
    return None


def not_begun(topic: SourceTopic, unserved: Sequence[Refusal]) -> Refusal:
    """Return the refusal of a copy that must begin with all source partitions while some cannot be asked."""
    places = several([f"{topic.name}-{one.partition}" for one in unserved])
    return refused("source.deal-not-begun", topic.name, places=places)


def lost_rule(era: Era, rule: Transform, why: str) -> Refusal:
    """Return the refusal of a topic whose earlier rule has to be finished first but is no longer available."""
    return refused("transform.lost-rule", era.source_topic, transform=rule.name, target=era.target_topic, why=why)


def too_many(topic: SourceTopic, copy: TargetTopic, rule: Transform) -> Refusal:
    """Return the refusal of a target topic that has more partitions than the rule wants."""
    code = "target.partition-count.dealt" if any(copy.ends.values()) else "target.partition-count.dealt.empty"
    wanted = rule.partitions or 0
    return refused(code, topic.name, target=copy.name, there=copy.partitions, transform=rule.name, wanted=wanted)

"""What stands against dealing a topic to other partitions at all: facts -> a refusal of the whole topic, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ferry.model import Era, LaneKind, Refusal, RefusalKind, TopicPartition, UnitReceipt, lane_kind
from ferry.plan.rules.facts import Facts, SourceTopic, TargetTopic
from ferry.plan.rules.guards import ANEW
from ferry.plan.rules.rules import Rules, Transform
from ferry.words import several


def deal_refusal(
    rules: Rules,
    facts: Facts,
    topic: SourceTopic,
    target: str,
    rule: Transform,
    known: Era | None,
    lasts: Mapping[TopicPartition, UnitReceipt],
) -> Refusal | None:
    """What stands against the whole topic."""
    key = f"ferry.transform.{rule.name}.partitions"
    other = _against_lane(rules, topic, rule)
    if other is not None:
        return other
    if rules.merges(topic.name):
        return _refusal(
            topic.name,
            f"topic {topic.name} gets other partitions ({key}), and its target {target} is shared with other flows "
            "(ferry.merge.topics): take it out of one of both",
        )
    before = next((last for last in facts.receipts.values() if last.target.topic == target), None)
    if before is not None:
        return _refusal(
            topic.name,
            f"target topic {target} was copied partition by partition up to now, and transform {rule.name} would deal "
            f"topic {topic.name} to {rule.partitions} partitions: remove {key}, or {ANEW}",
        )
    ids = {last.source_topic_id for last in lasts.values()} | {"" if known is None else known.source_topic_id}
    read = max([0 if known is None else len(known.begins), *(len(last.reached) for last in lasts.values())])
    count = len(topic.partitions) + len(topic.leaderless)
    if (topic.topic_id and ids - {"", topic.topic_id}) or read > count:
        how = f"it has {count} partition(s) where {read} were read" if read > count else f"its id is {topic.topic_id}"
        return _refusal(
            topic.name,
            f"source topic {topic.name} was deleted and created again since it was copied to {target} ({how}): {ANEW}",
            RefusalKind.TOPIC_RECREATED,
        )
    if any(
        last.source_cluster_id and facts.source_cluster_id and last.source_cluster_id != facts.source_cluster_id
        for last in lasts.values()
    ):
        return _refusal(
            topic.name,
            f"topic {topic.name} was dealt to {target} from another cluster than {rules.flow.source} leads to now, and "
            f"cannot go on behind that: {ANEW}",
            RefusalKind.CLUSTER_CHANGED,
        )
    return _newer_rule(topic, known, lasts.values()) or _changed_target(facts, topic, target, lasts)


def dealt_before(facts: Facts, topic: str, target: str) -> Refusal | None:
    """Why a topic may not keep its partitions now: records of its copy were dealt to others; None: none were."""
    last = max((one for one in facts.units.values() if one.target.topic == target), key=_at, default=None)
    if last is None:
        return None
    era = facts.eras.get(target)
    count = f"{era.partitions} partitions" if era is not None else "other partitions"
    return _refusal(
        topic,
        f"target topic {target} was dealt to {count} by run {last.run}, and topic {topic} is to keep its own now: "
        f"write ferry.transform.NAME.partitions again, or {ANEW}",
    )


def _at(last: UnitReceipt) -> int:
    return last.at_ms


def _against_lane(rules: Rules, topic: SourceTopic, rule: Transform) -> Refusal | None:
    """What stands against a topic in this lane."""
    if lane_kind(rules.lane) in (LaneKind.BACKFILL, LaneKind.APPEND):
        return _refusal(
            topic.name,
            f"topic {topic.name} gets other partitions (ferry.transform.{rule.name}.partitions), and a window of it "
            "cannot be copied by itself: name other topics (--topic), or copy all of it anew under another alias of "
            "the source cluster",
        )
    if rule.targets and rules.scratch:
        return _refusal(
            topic.name,
            f"records of topic {topic.name} choose among several topics (ferry.transform.{rule.name}.targets), and "
            f"lane {rules.lane} has scratch topics of its own: leave the topic out here (--topic)",
        )
    return None


def _newer_rule(topic: SourceTopic, known: Era | None, lasts: Iterable[UnitReceipt]) -> Refusal | None:
    """Receipts of a newer rule than the ledger has in force: by that one, all partitions would begin again."""
    newer = None if known is None else next((last for last in lasts if last.era > known.since), None)
    if newer is None or known is None:
        return None
    return _refusal(
        topic.name,
        f"run {newer.run} wrote records of topic {topic.name} to {newer.target} by the rule of ledger offset "
        f"{newer.era}, and the ledger has an older one in force, of offset {known.since}: an earlier version of Ferry "
        f"wrote to it after this run. Upgrade Ferry wherever this flow runs, then {ANEW}",
        RefusalKind.LEDGER_BEHIND,
    )


def _changed_target(
    facts: Facts, topic: SourceTopic, target: str, lasts: Mapping[TopicPartition, UnitReceipt]
) -> Refusal | None:
    copy = facts.targets.get(target)
    written = [last for last in lasts.values() if last.target_next >= 0 and last.target.topic == target]
    if not written:
        return None
    if copy is None:
        what = f"target topic {target} is gone although records were dealt to {len(written)} partition(s) of it"
    elif copy.topic_id and any(last.target_topic_id not in ("", copy.topic_id) for last in written):
        what = f"target topic {target} was deleted and created again since the last receipt"
    elif max(last.target.partition for last in written) >= copy.partitions:
        what = f"target topic {target} has {copy.partitions} partition(s), fewer than were written"
    else:
        return None
    return _refusal(topic.name, f"{what}: find out who did it, then {ANEW}", RefusalKind.TARGET_CHANGED)


def not_begun(topic: SourceTopic, unserved: Sequence[Refusal]) -> Refusal:
    """The copy begins with all partitions of the source, and these cannot be asked."""
    names = several([f"{topic.name}-{one.partition}" for one in unserved])
    return _refusal(
        topic.name,
        f"the copy of topic {topic.name} does not begin, for where it begins is settled for all partitions at once and "
        f"{names} cannot be asked: bring their brokers back, the next run copies it",
        RefusalKind.NO_LEADER,
    )


def lost_rule(era: Era, rule: Transform, why: str) -> Refusal:
    """The rule that has to be finished first is not to be had any more."""
    return _refusal(
        era.source_topic,
        f"transform {rule.name} has changed, and what some partitions of {era.target_topic} have already has to be "
        f"finished for the others by what it was, which cannot be carried out: {why}; or {ANEW}",
    )


def too_many(topic: SourceTopic, copy: TargetTopic, rule: Transform) -> Refusal:
    """The target topic has more partitions than the rule wants."""
    return _refusal(
        topic.name,
        f"target topic {copy.name} has {copy.partitions} partitions, transform {rule.name} wants {rule.partitions}, "
        f"and Kafka takes none away: write ferry.transform.{rule.name}.partitions = {copy.partitions}, or "
        f"{'delete the target topic so that Ferry creates it' if not any(copy.ends.values()) else ANEW}",
        RefusalKind.PARTITION_COUNT,
    )


def _refusal(topic: str, message: str, kind: RefusalKind = RefusalKind.TRANSFORM) -> Refusal:
    return Refusal(topic=topic, partition=None, kind=kind, message=message)

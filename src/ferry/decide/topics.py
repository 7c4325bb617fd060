"""Topics on the target: what stands against a whole topic, and what must be created or grown before the copy."""

from __future__ import annotations

from ferry.config.guards import OnGuard
from ferry.decide.facts import Facts, SourceTopic
from ferry.decide.guards import ANEW
from ferry.decide.rules import Rules
from ferry.model import Refusal, RefusalKind, TopicChange
from ferry.policy import MAX_TOPIC_NAME


def topic_refusal(rules: Rules, facts: Facts, topic: SourceTopic) -> Refusal | None:
    """Why no partition of the topic may be copied; None when they may."""
    name = rules.policy.format_remote_topic(rules.flow.source, topic.name)

    def refusal(kind: RefusalKind, message: str) -> Refusal:
        return Refusal(topic=topic.name, partition=None, kind=kind, message=message)

    if len(name) > MAX_TOPIC_NAME:
        return refusal(
            RefusalKind.NAME_TOO_LONG,
            f"target name {name[:40]}... of topic {topic.name[:40]}... has {len(name)} characters, Kafka allows "
            f"{MAX_TOPIC_NAME}: use a shorter alias or IdentityReplicationPolicy",
        )
    owner = facts.claims.get(name)
    if owner is not None and owner != rules.lane:
        return owned(topic.name, name, owner)
    target = facts.targets.get(name)
    if target is not None and target.partitions > _count(topic):
        copied = any(last.target.topic == name for last in facts.receipts.values())
        other = ANEW if copied else "delete the target topic so that Ferry creates it"
        return refusal(
            RefusalKind.PARTITION_COUNT,
            f"target topic {name} has {target.partitions} partitions, source topic {topic.name} has {_count(topic)}: "
            f"give the source as many, or {other}",
        )
    if topic.configs is None and rules.sync_configs and _to_create(rules, facts, topic, name):
        # Created with the target's settings its old records could be deleted within seconds.
        return refusal(
            RefusalKind.NOT_AUTHORIZED,
            f"not allowed to read the settings of topic {topic.name} on cluster {rules.flow.source}, with which topic "
            f"{name} is to be created: grant DESCRIBE_CONFIGS on it, or create topic {name} by hand",
        )
    return None


def owned(topic: str, target: str, owner: str) -> Refusal:
    """The refusal of a source topic whose target belongs to another lane."""
    return Refusal(
        topic=topic,
        partition=None,
        kind=RefusalKind.OWNED,
        message=f"target topic {target} belongs to lane {owner} of this flow: copy it with ferry.lane = {owner}, or "
        "leave it out here (topics.exclude)",
    )


def topic_changes(rules: Rules, facts: Facts, topic: SourceTopic) -> list[TopicChange]:
    """What the target topic needs before the copy: nothing, to be created, or to be grown.

    A topic that was copied before and is gone is not created again, unless its guard says so: its partitions are
    refused with their receipts.
    """
    name = rules.policy.format_remote_topic(rules.flow.source, topic.name)
    target = facts.targets.get(name)
    if target is not None:
        if target.partitions == _count(topic):
            return []
        return [
            TopicChange(
                kind="grow", topic=name, source_topic=topic.name, partitions=_count(topic), replication_factor=0
            )
        ]
    if not _to_create(rules, facts, topic, name):
        return []
    factor = rules.replication_factor if rules.replication_factor > 0 else topic.replication_factor
    found = (topic.configs or {}) if rules.sync_configs else {}
    configs = tuple(sorted((key, value) for key, value in found.items() if not rules.config_excluded(key)))
    return [
        TopicChange(
            kind="create",
            topic=name,
            source_topic=topic.name,
            partitions=_count(topic),
            replication_factor=max(1, min(factor, facts.target_brokers)),
            configs=configs,
        )
    ]


def _to_create(rules: Rules, facts: Facts, topic: SourceTopic, name: str) -> bool:
    copied = any(last.target.topic == name for last in facts.receipts.values())
    again = rules.guards.target_changed.of(topic.name) is not OnGuard.FAIL
    return name not in facts.targets and (again or not copied)


def _count(topic: SourceTopic) -> int:
    return len(topic.partitions) + len(topic.leaderless)

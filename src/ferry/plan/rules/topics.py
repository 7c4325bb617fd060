"""Topics on the target: the refusal of a whole topic, and the changes that are needed before the copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ferry.config.flow.guards import OnGuard
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import refused
from ferry.model import ChangeKind, Receipt, Refusal, Sentence, TopicChange, lane_kind
from ferry.plan.rules.facts import Facts, SourceTopic, TargetFacts, TargetTopic
from ferry.plan.rules.origins import renaming
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.topic_settings import (
    Narrower,
    created_settings,
    limit_notes,
    narrower_limits,
    settings_change,
    unknown_notes,
    unknown_settings,
)
from ferry.policy import MAX_TOPIC_NAME, DefaultReplicationPolicy, IdentityReplicationPolicy, innermost
from ferry.words import several


def topic_refusal(rules: Rules, facts: Facts, topic: SourceTopic) -> Refusal | None:
    """Return why no partition of the topic may be copied; None when they may."""
    looks = _name_refusal, _copy_refusal
    found = (look(rules, facts, topic, name) for name in rules.copies_of(topic.name) for look in looks)
    return next((refusal for refusal in found if refusal is not None), None)


def _name_refusal(rules: Rules, facts: Facts, topic: SourceTopic, name: str) -> Refusal | None:
    """Return why this lane may not write to a target topic of that name; None when it may."""
    if len(name) > MAX_TOPIC_NAME:
        return refused(
            "name.too-long",
            topic.name,
            target=name[:40],
            cut=topic.name[:40],
            length=len(name),
            most=MAX_TOPIC_NAME,
            shorter=_shorter(rules, topic.name),
        )
    owner = facts.lane.claims.get(name)
    if rules.beside_live:
        if owner is None or lane_kind(owner) is not None:
            return refused("owned.no-live-lane", topic.name, target=name)
    elif owner is not None and owner != rules.lane:
        return owned(topic.name, name, owner)
    return None


def _copy_refusal(rules: Rules, facts: Facts, topic: SourceTopic, name: str) -> Refusal | None:
    """Return why nothing of the topic may be copied to the target topic `name` as it is now; None when it may."""
    if name in facts.target.hidden:
        return hidden_copy(topic.name, name, rules.flow.target)
    target, transform = facts.target.topics.get(name), rules.transform_of(topic.name)
    # It must be known whether a source is compacted, and how many replicas of a copy have to be in sync.
    if topic.settings_error:
        return refused(
            "settings.unknown", topic.name, name=topic.name, cluster=rules.flow.source, answer=topic.settings_error
        )
    if target is not None and target.settings_error:
        return refused(
            "settings.unknown", topic.name, name=name, cluster=rules.flow.target, answer=target.settings_error
        )
    keeps = transform is None or transform.partitions is None
    if keeps and target is not None and target.partitions > _count(topic):
        copied = any(last.target.topic == name for last in facts.lane.receipts.values())
        code = "target.partition-count.copied" if copied else "target.partition-count"
        return refused(code, topic.name, target=name, there=target.partitions, here=_count(topic))
    if topic.settings is None and rules.sync_configs and _to_create(rules, facts, topic, name):
        # Created with the target's settings, its old records could be deleted within seconds.
        return refused("source.settings-hidden", topic.name, cluster=rules.flow.source, target=name)
    return None


def _shorter(rules: Rules, topic: str) -> str:
    """Return how the operator can make the target name shorter."""
    if rules.scratch:
        return "give the lane a shorter name, or leave the topic out"
    key = renaming(rules, topic)
    if key is not None:
        return f"have {key} name it shorter, or leave it out (topics.exclude)"
    if isinstance(innermost(rules.policy), DefaultReplicationPolicy | IdentityReplicationPolicy):
        return "use a shorter alias or IdentityReplicationPolicy"
    return f"have {rules.policy_name} name it shorter, or leave it out (topics.exclude)"


def hidden_copy(topic: str, target: str, cluster: str) -> Refusal:
    """Return the refusal of a source topic whose copy this login may not see: whether that exists is not known."""
    return refused("target.hidden", topic, target=target, cluster=cluster)


def owned(topic: str, target: str, owner: str) -> Refusal:
    """Return the refusal of a source topic whose target topic belongs to another lane."""
    return refused("owned.by-lane", topic, target=target, owner=owner)


@dataclass(slots=True, kw_only=True)
class TopicChanges:
    """The changes of a plan, collected topic by topic."""

    rules: Rules
    facts: Facts
    due: list[TopicChange] = field(default_factory=list)
    drift: list[TopicChange] = field(default_factory=list)
    """Settings that differ and are left unchanged, because the flow does not synchronise them."""
    _narrower: dict[str, list[Narrower]] = field(default_factory=dict)
    _unknown: dict[str, list[str]] = field(default_factory=dict)
    """Settings that are not copied, by target topic: the target's Kafka does not have them."""
    _hidden: list[str] = field(default_factory=list)
    """Copies whose settings are not compared, because one side does not show them."""

    def add(
        self,
        topic: SourceTopic,
        name: str,
        lasts: Collection[Receipt] = (),
        partitions: int | None = None,
    ) -> None:
        """Add what the target topic `name` needs before the copy: to be created, grown or configured, or nothing.

        It gets `partitions`, or as many as the source topic if they are not given. `lasts` are the last receipts of the
        target topic. Unless guards allow it, a copied topic that is gone is not created again. Unless guards allow it,
        a topic that does not belong to the source topic any more is left unchanged. Their partitions are refused, and a
        shorter retention would delete what was copied. A merged topic is not configured, because it has several
        sources.
        """
        target = self.facts.target.topics.get(name)
        count = partitions or _count(topic)
        if target is None:
            if _to_create(self.rules, self.facts, topic, name):
                self._create(topic, name, count)
            return
        if not all(_belongs(self.rules, last, topic, target) for last in lasts):
            return
        if target.partitions < count:
            self.due.append(
                TopicChange(
                    kind=ChangeKind.GROW,
                    topic=name,
                    source_topic=topic.name,
                    partitions=count,
                    replication_factor=0,
                )
            )
        if self.rules.merges(topic.name):
            return
        if topic.settings is None or target.settings is None:
            self._hidden.append(name)
            return
        known = self.facts.target.known_settings
        change = settings_change(self.rules, topic.name, topic.settings, name, target.settings, count, known)
        if change is not None:
            (self.due if self.rules.sync_configs else self.drift).append(change)
        made = change if self.rules.sync_configs else None
        if self.rules.sync_configs:
            self._unknown[name] = unknown_settings(self.rules, topic.settings, known)
        defaults = self.facts.target.defaults
        self._narrower[name] = narrower_limits(self.rules, topic.settings, target.settings, made, defaults)

    def _create(self, topic: SourceTopic, name: str, count: int) -> None:
        _, factor = _replication(self.rules, self.facts.target, topic)
        change = TopicChange(
            kind=ChangeKind.CREATE,
            topic=name,
            source_topic=topic.name,
            partitions=count,
            replication_factor=factor,
            configs=created_settings(self.rules, topic.settings, self.facts.target.known_settings),
        )
        self.due.append(change)
        if topic.settings is not None:
            defaults = self.facts.target.defaults
            self._narrower[name] = narrower_limits(self.rules, topic.settings, None, change, defaults)
            self._unknown[name] = unknown_settings(self.rules, topic.settings, self.facts.target.known_settings)

    def notes(self) -> list[Sentence]:
        """Return what the operator should know of the changes, in one sentence for all topics alike."""
        flow = self.rules.flow
        notes = creation_notes(self.rules, self.facts, self.due)
        if self._hidden and self.rules.sync_configs:
            notes.append(
                sentence(
                    "topic.settings-not-compared",
                    topics=several(self._hidden),
                    source=flow.source,
                    target=flow.target,
                )
            )
        return [*notes, *unknown_notes(flow.target, self._unknown), *limit_notes(self.rules, self._narrower)]


def creation_notes(rules: Rules, facts: Facts, changes: Iterable[TopicChange]) -> list[Sentence]:
    """Return in what the new topics differ from the source or from the configuration."""
    fewer: dict[tuple[int, int], list[str]] = {}
    unset = []
    for change in changes:
        if change.kind is not ChangeKind.CREATE:
            continue
        topic = facts.source.topics[change.source_topic]
        wanted, factor = _replication(rules, facts.target, topic)
        if factor != wanted:
            fewer.setdefault((wanted, factor), []).append(change.topic)
        if topic.settings is None:
            unset.append(change.topic)
    notes = [
        sentence(
            "topic.fewer-replicas", topics=several(names), replicas=factor, wanted=wanted, cluster=rules.flow.target
        )
        for (wanted, factor), names in sorted(fewer.items())
    ]
    if unset:
        notes.append(sentence("topic.settings-of-target", topics=several(unset), cluster=rules.flow.source))
    return notes


def _replication(rules: Rules, target: TargetFacts, topic: SourceTopic) -> tuple[int, int]:
    """Return the replicas that a new topic should have, and those that the target's brokers can hold.

    -1 means the target's default.
    """
    wanted = max(1, topic.replication_factor) if rules.replication_from_source else rules.replication_factor
    return wanted, wanted if wanted < 0 else max(1, min(wanted, target.brokers))


def without_new(changes: Iterable[TopicChange], refused: Iterable[str]) -> list[TopicChange]:
    """Return the changes without new topics for the source topics in `refused`: they would stay empty."""
    names = frozenset(refused)
    return [change for change in changes if change.kind is not ChangeKind.CREATE or change.source_topic not in names]


def _belongs(rules: Rules, last: Receipt, topic: SourceTopic, target: TargetTopic) -> bool:
    """Return whether neither side was created again since a receipt, or the flow's guards accept that it was.

    An id that is not known proves nothing.
    """
    ids = (
        (last.source_topic_id, topic.topic_id, rules.guards.topic_recreated),
        (last.target_topic_id, target.topic_id, rules.guards.target_changed),
    )
    return all(
        not known or not now or known == now or policy.of(topic.name) is not OnGuard.FAIL for known, now, policy in ids
    )


def _to_create(rules: Rules, facts: Facts, topic: SourceTopic, name: str) -> bool:
    copied = any(last.target.topic == name for last in facts.lane.receipts.values())
    copied |= any(last.target.topic == name and last.target_next is not None for last in facts.lane.units.values())
    again = rules.guards.target_changed.of(topic.name) is not OnGuard.FAIL
    return name not in facts.target.topics.keys() | facts.target.hidden and (again or not copied)


def _count(topic: SourceTopic) -> int:
    return len(topic.partitions) + len(topic.leaderless)

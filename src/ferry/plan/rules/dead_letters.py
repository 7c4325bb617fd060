"""The topic of a flow's dead letters: which topics of a plan need it, and how it is created."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.config.flow.dead_letters import PARTITIONS
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import Poison
from ferry.messages.refusals import refused
from ferry.model import ChangeKind, Plan, Refusal, RefusalKind, TopicChange
from ferry.plan.rules.facts import Facts, SourceFacts

_USUAL_BYTES = 1_048_588
"""Kafka's default of `max.message.bytes`: the largest batch that a topic takes."""
_ROOM = 64 << 10
"""Bytes for a dead letter's own headers."""


def skipping(flow: FlowConfig, plan: Plan) -> Mapping[str, str]:
    """Return the transform's name for each source topic of the plan whose failing records become dead letters."""
    topics = {piece.source.topic for piece in plan.slices}
    found = ((topic, flow.transform_of(topic)) for topic in sorted(topics))
    return {topic: spec.name for topic, spec in found if spec is not None and spec.poison is Poison.SKIP}


def letters_topic(flow: FlowConfig, facts: Facts, replication_factor: int, topics: Mapping[str, str]) -> TopicChange:
    """Return the change that creates the topic, for dead letters of these source topics.

    Dead letters keep the timestamps of their records, so retention by age would delete old ones at once: none is
    deleted. `replication_factor` is that of other topics; the topic has at most as many replicas as the target has
    brokers.
    """
    wanted = flow.records.dead_letters.replication_factor
    factor = replication_factor if wanted is None else wanted
    return TopicChange(
        kind=ChangeKind.CREATE,
        topic=flow.records.dead_letters.topic,
        source_topic=flow.records.dead_letters.topic,
        partitions=PARTITIONS,
        replication_factor=factor if factor < 0 else max(1, min(factor, facts.target.brokers)),
        configs=(
            ("cleanup.policy", "delete"),
            ("max.message.bytes", str(max(map(_bytes, _settings(facts.source, topics)), default=_USUAL_BYTES) + _ROOM)),
            ("retention.bytes", "-1"),
            ("retention.ms", "-1"),
        ),
    )


def _settings(source: SourceFacts, topics: Mapping[str, str]) -> list[str | None]:
    found = (source.topics[topic].settings for topic in topics if topic in source.topics)
    return [None if one is None else one.in_force("max.message.bytes") for one in found]


def _bytes(value: str | None) -> int:
    return max(_USUAL_BYTES, int(value or 0))


def clashing(flow: FlowConfig, plan: Plan, topics: Mapping[str, str]) -> dict[str, Refusal]:
    """Return the refusals of topics whose dead letters would be written to a topic that the flow copies to."""
    name = flow.records.dead_letters.topic
    copied = {piece.target.topic: piece.source.topic for piece in plan.slices}
    if name not in copied:
        return {}
    why = f"the flow copies {copied[name]} to it: write another name (errors.deadletterqueue.topic.name)"
    return without_letters(topics, name, RefusalKind.NAME_CLASH, why)


def without_letters(topics: Mapping[str, str], name: str, kind: RefusalKind, why: str) -> dict[str, Refusal]:
    """Return the refusals of topics whose dead letters have no topic to go to."""
    return {
        topic: refused("letters.no-topic", topic, kind=kind, transform=transform, letters=name, why=why)
        for topic, transform in topics.items()
    }

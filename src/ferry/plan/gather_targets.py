"""Gather what a plan must know of the target: the copies with their settings, and what its brokers can hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.kafka.admin.disks import broker_space
from ferry.kafka.admin.topic_settings import DefaultSettings, default_settings, topic_settings_each
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import Era, TopicPartition
from ferry.plan.rules.facts import TargetFacts, TargetTopic, by_topic
from ferry.protocol.names import ledger_topic


async def gather_targets(
    flow: FlowConfig, target: Cluster, chosen: Collection[str], eras: Iterable[Era]
) -> TargetFacts:
    """Return the existing copies of the source topics `chosen`, also those of repartition rules (`eras`)."""
    names = {copy for name in chosen for copy in flow.copies_of(name)}
    names |= {era.target_topic for era in eras if era.source_topic in chosen}
    infos = {name: info for name, info in (await target.refresh(None)).items() if name in names}
    # A full list omits topics that this login may not see; asked by name, a broker says that it may not.
    missing = names - infos.keys()
    infos |= await target.refresh(sorted(missing)) if missing else {}
    places = [
        TopicPartition(topic=name, partition=part.partition)
        for name, info in infos.items()
        for part in info.partitions.values()
        if part.leader >= 0
    ]
    ends = await listed_offsets(target, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)
    found, failed = by_topic(ends.found), by_topic(ends.failed)
    settings = await topic_settings_each(target, sorted(infos))
    topics = {
        name: TargetTopic(
            name=name,
            topic_id=info.id_text,
            partitions=len(info.partitions),
            ends=found.get(name, {}),
            replicas={number: (len(part.in_sync), len(part.replicas)) for number, part in info.partitions.items()},
            brokers={number: part.replicas for number, part in info.partitions.items()},
            settings=settings.found.get(name),
            settings_error=settings.failed.get(name, ""),
            unserved=failed.get(name, {}),
        )
        for name, info in infos.items()
    }
    return TargetFacts(
        cluster_id=target.cluster_id,
        brokers=len(target.brokers),
        topics=topics,
        hidden=frozenset(missing & target.denied),
    )


async def with_resources(flow: FlowConfig, facts: TargetFacts, target: Cluster) -> TargetFacts:
    """Return `facts` with the settings of new topics, and with disk space if the flow keeps a share of it free.

    It takes a few requests in all; what a broker does not show is left out. `target` must have its metadata already.
    """
    own = ledger_topic(flow.flow.source)  # this login may read its settings in any case
    known = own if own in target.topics else min(target.topics, default=None)
    defaults = DefaultSettings() if known is None else await default_settings(target, known)
    space = await broker_space(target) if flow.topics.target_free_percent is not None else None
    return replace(facts, defaults=defaults.values, known_settings=defaults.names, space=space)

"""Create and grow topics on the target, as a plan proposes."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from ferry.errors import Refused
from ferry.model import Refusal, RefusalKind, TopicChange
from ferry.net.admin import NewTopic, NotPermitted, create_topics, grow_topics
from ferry.net.cluster import Cluster, TopicInfo

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0


async def change_topics(target: Cluster, changes: Collection[TopicChange]) -> dict[str, Refusal]:
    """Carry the changes out, and wait until every partition of the changed topics has a leader.

    By source topic what the target refused: one bad topic does not stop the others.
    """
    growing = {change.topic: change.partitions for change in changes if change.kind == "grow"}
    creating = [
        NewTopic(
            name=change.topic,
            partitions=change.partitions,
            replication_factor=change.replication_factor,
            configs=dict(change.configs),
        )
        for change in changes
        if change.kind != "grow"
    ]
    refused = await create_topics(target, creating) | await grow_topics(target, growing)
    failed = {
        change.source_topic: _refusal(change, refused[change.topic]) for change in changes if change.topic in refused
    }
    made = {change.topic: change for change in changes if change.source_topic not in failed}
    for change in await _incomplete(target, made):
        failed[change.source_topic] = Refusal(
            topic=change.source_topic,
            partition=None,
            kind=RefusalKind.NO_LEADER,
            message=f"topic {change.topic} on cluster {target.alias} was created, but not all of its partitions have a "
            "leader yet: look at the brokers' health; the next run copies it",
        )
    return failed


async def _incomplete(target: Cluster, made: Mapping[str, TopicChange]) -> list[TopicChange]:
    """Wait until all partitions have a leader; what is missing when nothing has become complete for the patience."""
    missing, pause = dict(made), FIRST_PAUSE_S
    until = time.monotonic() + target.patience_s
    while missing:
        infos = await target.refresh(missing)
        complete = [name for name, change in missing.items() if _is_complete(infos.get(name), change.partitions)]
        if complete:
            until = time.monotonic() + target.patience_s
        elif time.monotonic() > until:
            break
        for name in complete:
            del missing[name]
        if missing:
            await target.loop.sleep(pause)
            pause = min(LONGEST_PAUSE_S, pause * 2)
    return list(missing.values())


def _is_complete(info: TopicInfo | None, partitions: int) -> bool:
    return (
        info is not None
        and len(info.partitions) >= partitions
        and all(part.leader >= 0 for part in info.partitions.values())
    )


def _refusal(change: TopicChange, error: Refused) -> Refusal:
    kind = RefusalKind.NOT_AUTHORIZED if isinstance(error, NotPermitted) else RefusalKind.INVALID_CONFIG
    return Refusal(topic=change.source_topic, partition=None, kind=kind, message=str(error))

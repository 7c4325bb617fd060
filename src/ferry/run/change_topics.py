"""Create and grow topics on the target, as a plan proposes."""

from __future__ import annotations

from collections.abc import Collection

from ferry.errors import Refused, Retryable
from ferry.model import Refusal, RefusalKind, TopicChange
from ferry.net.admin import NotPermitted, create_topic, grow_topic
from ferry.net.cluster import Cluster


async def change_topics(target: Cluster, changes: Collection[TopicChange]) -> dict[str, Refusal]:
    """Carry the changes out, and wait until every partition of the changed topics has a leader.

    By source topic what the target refused: one bad topic does not stop the others.
    """
    failed = {}
    for change in changes:
        try:
            await _carry_out(target, change)
        except Refused as error:
            kind = RefusalKind.NOT_AUTHORIZED if isinstance(error, NotPermitted) else RefusalKind.INVALID_CONFIG
            failed[change.source_topic] = Refusal(
                topic=change.source_topic, partition=None, kind=kind, message=str(error)
            )
    wanted = {change.topic: change.partitions for change in changes if change.source_topic not in failed}

    async def complete() -> None:
        infos = await target.refresh(wanted)
        for name, count in wanted.items():
            info = infos.get(name)
            if info is None or len(info.partitions) < count or any(p.leader < 0 for p in info.partitions.values()):
                raise Retryable(f"topic {name} is not yet complete on cluster {target.alias}")

    if wanted:
        await target.retrying(complete)
    return failed


async def _carry_out(target: Cluster, change: TopicChange) -> None:
    if change.kind == "grow":
        await grow_topic(target, change.topic, change.partitions)
        return
    await create_topic(
        target,
        change.topic,
        partitions=change.partitions,
        replication_factor=change.replication_factor,
        configs=dict(change.configs),
    )

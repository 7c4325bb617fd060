"""Where logs begin and end, and where a group stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest

from ferry.errors import Refused, Retryable
from ferry.model import TopicPartition
from ferry.net import codes
from ferry.net.cluster import GROUP, Cluster

EARLIEST = -2
LATEST = -1
EARLIEST_LOCAL = -4
"""The start of what a leader has on its own disks (KIP-405); the log's start where there is no tiered storage."""


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, isolation: int
) -> dict[TopicPartition, int]:
    """Offset per partition for EARLIEST, LATEST or a time in ms; one request per leader, all at once.

    With isolation READ_COMMITTED, LATEST is the last stable offset. A time behind the last record gives -1.
    Partitions without leader or that vanish are left out.
    """
    found: dict[TopicPartition, int] = {}
    left = dict(wanted)

    async def action() -> None:
        # Every time: a leader that does not answer may have been replaced.
        await cluster.refresh({place.topic for place in left if place not in found})
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for place in [place for place in left if place not in found]:
            info = cluster.topics.get(place.topic)
            if info is None or place.partition not in info.partitions:
                left.pop(place)
                continue
            leader = info.partitions[place.partition].leader
            if leader >= 0:
                by_leader.setdefault(leader, {})[place] = left[place]
        answers = [await cluster.submit(_list_request(part, isolation), node) for node, part in by_leader.items()]
        moved = False
        for answer in answers:
            for place, code, offset in _listed(await cluster.answered(answer)):
                if code == codes.NONE:
                    found[place] = offset
                elif code in codes.UNAUTHORIZED:
                    raise Refused(
                        f"not allowed to read the offsets of {place} on cluster {cluster.alias}: grant DESCRIBE"
                    )
                else:
                    moved = True
        if moved:
            raise Retryable(f"offsets of cluster {cluster.alias}: a leader moved")

    await cluster.retrying(action)
    return found


def _list_request(places: Mapping[TopicPartition, int], isolation: int) -> Any:
    topic = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = {}
    for place, timestamp in places.items():
        by_topic.setdefault(place.topic, []).append(
            topic.ListOffsetsPartition(partition_index=place.partition, current_leader_epoch=-1, timestamp=timestamp)
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[topic(name=name, partitions=parts) for name, parts in by_topic.items()],
        timeout_ms=30_000,
    )


def _listed(answer: Any) -> Iterable[tuple[TopicPartition, int, int]]:
    for topic in answer.topics:
        for part in topic.partitions:
            yield TopicPartition(topic=topic.name, partition=part.partition_index), part.error_code, part.offset


async def group_offsets(
    cluster: Cluster, group: str, places: Iterable[TopicPartition], *, wait: bool = True
) -> dict[TopicPartition, tuple[int, str] | None]:
    """Committed `(offset, metadata)` of a group, always naming the partitions; None where the group has none.

    A fetch of *all* partitions silently omits those with a pending transactional commit; naming them with
    `require_stable` answers UNSTABLE_OFFSET_COMMIT instead (KIP-447). With `wait` that is retried until the
    transaction ends; without, those partitions are left out.
    """
    by_topic: dict[str, list[int]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(place.partition)
    if not by_topic:
        return {}

    async def action() -> dict[TopicPartition, tuple[int, str] | None]:
        node = await cluster.coordinator(GROUP, group)
        topic = OffsetFetchRequest.OffsetFetchRequestTopic
        request = OffsetFetchRequest(
            group_id=group,
            topics=[topic(name=name, partition_indexes=parts) for name, parts in by_topic.items()],
            require_stable=True,
            max_version=7,
        )
        try:
            answer = await cluster.ask(request, node)
        except Retryable:
            cluster.forget_coordinator(GROUP, group)
            raise
        _check_group(cluster, group, answer.error_code)
        found: dict[TopicPartition, tuple[int, str] | None] = {}
        for topic_answer in answer.topics:
            for part in topic_answer.partitions:
                if part.error_code == codes.UNSTABLE_OFFSET_COMMIT and not wait:
                    continue
                _check_group(cluster, group, part.error_code)
                place = TopicPartition(topic=topic_answer.name, partition=part.partition_index)
                found[place] = (part.committed_offset, part.metadata or "") if part.committed_offset >= 0 else None
        return found

    return await cluster.retrying(action)


def _check_group(cluster: Cluster, group: str, code: int) -> None:
    if code in codes.UNAUTHORIZED:
        raise Refused(f"not allowed to read the offsets of group {group} on cluster {cluster.alias}: grant DESCRIBE")
    if code:
        if code in codes.COORDINATOR_MOVED:
            cluster.forget_coordinator(GROUP, group)
        raise Retryable(f"offsets of group {group} on cluster {cluster.alias}: {codes.describe(code)}")

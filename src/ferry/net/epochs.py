"""Where a leader's log says that a leader epoch ended (KIP-101, KIP-320): by that a truncated log is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from ferry.errors import Retryable
from ferry.model import TopicPartition
from ferry.net.cluster import Cluster, TooOld

_FOR_CONSUMERS_SINCE = 3  # before, it takes CLUSTER_ACTION


async def epoch_ends(cluster: Cluster, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The offset behind the last record of a leader epoch, or of the last one before it, in the log of now.

    Best effort: partitions without a leader, and those that are answered with an error, are left out; so are all where
    the log does not know (-1). A log that was cut is found by its next plan.
    """
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    for place, epoch in epochs.items():
        try:
            by_leader.setdefault(cluster.leader(place), {})[place] = epoch
        except Retryable:
            continue
    found: dict[TopicPartition, int] = {}
    for node, part in by_leader.items():
        try:
            answer = await cluster.ask(_request(part), node)
        except Retryable:
            continue
        except TooOld:  # before 2.3; then a log that was cut is known by its end alone
            break
        found |= {place: end for place, code, end in _answered(answer) if not code and end >= 0}
    return found


def _request(epochs: Mapping[TopicPartition, int]) -> Any:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    by_topic: dict[str, list[Any]] = {}
    for place, epoch in epochs.items():
        by_topic.setdefault(place.topic, []).append(
            topic.OffsetForLeaderPartition(partition=place.partition, current_leader_epoch=-1, leader_epoch=epoch)
        )
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[topic(topic=name, partitions=parts) for name, parts in by_topic.items()],
        min_version=_FOR_CONSUMERS_SINCE,
    )


def _answered(answer: Any) -> Iterable[tuple[TopicPartition, int, int]]:
    for topic in answer.topics:
        for part in topic.partitions:
            yield TopicPartition(topic=topic.topic, partition=part.partition), part.error_code, part.end_offset

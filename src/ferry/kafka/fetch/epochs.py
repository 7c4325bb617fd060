"""Where leader epochs end in a leader's log (KIP-101, KIP-320): this shows whether a log was truncated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster, TooOld
from ferry.model import TopicPartition

_FOR_CONSUMERS_SINCE = 3  # earlier versions need CLUSTER_ACTION


NOT_KNOWN = -1
"""The answer of a log about an epoch that it does not know."""


async def epoch_ends(
    cluster: Cluster, epochs: Mapping[TopicPartition, int], current: Mapping[TopicPartition, int] | None = None
) -> dict[TopicPartition, int]:
    """Return the offset after the last record of a leader epoch, or of the last epoch before it, in the log of now.

    NOT_KNOWN where the log does not know the epoch, or its broker is too old to be asked (before 2.3). Left out are
    partitions without a leader, those whose leader does not answer, and those that are answered with an error. One such
    error is that the leader has another epoch than `current` names.
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
            answer = await cluster.ask(_request(part, current or {}), node)
        except Retryable:
            continue
        except TooOld:  # then only its end shows that a log was cut
            found |= dict.fromkeys(part, NOT_KNOWN)
            continue
        found |= {place: end for place, code, end in _answered(answer) if not code}
    return found


async def ends_of_epochs(
    cluster: Cluster, asked: Iterable[tuple[TopicPartition, int]]
) -> dict[tuple[TopicPartition, int], int]:
    """Return the offset after the last record of each leader epoch asked for, of several epochs of a log.

    A request names each partition once, so there is one round for each epoch of a log. NOT_KNOWN and partitions that
    are left out have the meaning that they have in `epoch_ends`.
    """
    left = sorted(set(asked))
    found: dict[tuple[TopicPartition, int], int] = {}
    while left:
        now = dict(left)  # the last epoch of each partition
        found |= {(place, now[place]): end for place, end in (await epoch_ends(cluster, now)).items()}
        left = [one for one in left if one not in now.items()]
    return found


def _request(epochs: Mapping[TopicPartition, int], current: Mapping[TopicPartition, int]) -> Any:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    by_topic: dict[str, list[Any]] = {}
    for place, epoch in epochs.items():
        by_topic.setdefault(place.topic, []).append(
            topic.OffsetForLeaderPartition(
                partition=place.partition, current_leader_epoch=current.get(place, -1), leader_epoch=epoch
            )
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

"""Where logs begin and end, and the committed offsets of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest

from ferry.errors import Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import GROUP, Cluster, TooOld
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import RefusalKind, TopicPartition
from ferry.model.observed import Unavailable

EARLIEST = -2
LATEST = -1
EARLIEST_LOCAL = -4
"""The first offset that a leader has on its own disks (KIP-405); the log's start where there is no tiered storage."""

CONSUMER = -1
"""The replica id of a consumer: LATEST is the high watermark."""
LEADER_LOG = -2
"""Kafka's id of a replica that debugs (`FetchRequest.DEBUGGING_CONSUMER_ID`): LATEST is the end of the leader's log."""

_LOCAL_SINCE = 8  # ListOffsetsRequest; an older broker would take -4 for a time


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffsets:
    """The offset of each partition, and the reason for those that have none.

    Partitions without a leader, and those that vanish, are in neither.
    """

    found: dict[TopicPartition, int]
    failed: dict[TopicPartition, Unavailable]


async def listed_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    *,
    isolation: int,
    replica: int = CONSUMER,
    leaders_known: bool = False,
) -> ListedOffsets:
    """Return the offset of each partition for EARLIEST, LATEST or a time in ms; one request per leader, all at once.

    With isolation READ_COMMITTED, LATEST is the last stable offset. A time after the last record gives -1. Errors are
    repeated for the cluster's patience. A partition that still has one then, or whose leader does not answer, is in
    `failed`. Raises Unreachable when no leader answered at all. `replica`: as whom it asks, CONSUMER or LEADER_LOG.
    `leaders_known`: the metadata is asked for only when a leader answered with an error, or not at all. Partitions
    that had no leader before are then not asked for.
    """
    question = _Question(cluster, wanted, isolation, replica, leaders_known)
    try:
        await cluster.retrying(question.ask)
    except Unreachable as error:
        if not (question.answered and isinstance(error.__cause__, _Incomplete)):
            raise
    return ListedOffsets(found=question.found, failed=question.failed | question.denied)


class _Incomplete(Retryable):
    """Some partitions were answered with an error, or their leaders did not answer."""


class _Question:
    """The partitions that are not answered yet, asked for round by round."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Mapping[TopicPartition, int],
        isolation: int,
        replica: int,
        leaders_known: bool,
    ) -> None:
        self.found: dict[TopicPartition, int] = {}
        self.failed: dict[TopicPartition, Unavailable] = {}
        self.denied: dict[TopicPartition, Unavailable] = {}
        self.answered = False
        self._cluster = cluster
        self._left = dict(wanted)
        self._isolation = isolation
        self._replica = replica
        self._leaders_known = leaders_known

    async def ask(self) -> None:
        """Ask one round; raise _Incomplete when another round may bring more."""
        self.failed.clear()
        if not self._leaders_known:
            await self._cluster.refresh({place.topic for place in self._left})
        self._leaders_known = False  # a leader that does not answer may have been replaced
        answers = [
            (node, part, self._cluster.loop.call_soon_with_future(partial(self._send, part, node)))
            for node, part in self._by_leader().items()
        ]
        for node, part, answer in answers:
            try:
                self._take_in(node, await answer)
            except Retryable as error:
                self.failed.update(dict.fromkeys(part, _silent(self._cluster, node, error)))
        if self.failed:
            place, unserved = next(iter(self.failed.items()))
            raise _Incomplete(f"offsets of {place}: {unserved.why}")

    async def _send(self, part: Mapping[TopicPartition, int], node: int) -> Any:
        try:
            return await self._cluster.ask(_list_request(part, self._isolation, self._replica), node)
        except TooOld:  # for EARLIEST_LOCAL: without tiered storage a log begins where it begins locally
            begins = {place: EARLIEST if which == EARLIEST_LOCAL else which for place, which in part.items()}
            return await self._cluster.ask(_list_request(begins, self._isolation, self._replica), node)

    def _by_leader(self) -> dict[int, dict[TopicPartition, int]]:
        found: dict[int, dict[TopicPartition, int]] = {}
        for place, which in list(self._left.items()):
            info = self._cluster.topics.get(place.topic)
            if info is None or place.partition not in info.partitions:
                del self._left[place]
                continue
            leader = info.partitions[place.partition].leader
            if leader >= 0:
                found.setdefault(leader, {})[place] = which
        return found

    def _take_in(self, node: int, answer: Any) -> None:
        self.answered = True
        for place, code, offset in _listed(answer):
            if code == codes.NONE:
                self.found[place] = offset
            elif code in codes.UNAUTHORIZED:
                self.denied[place] = _denied(self._cluster)
            else:
                self.failed[place] = _said(self._cluster, node, code)
                continue
            del self._left[place]


async def log_edges(cluster: Cluster, places: Iterable[TopicPartition]) -> tuple[ListedOffsets, ListedOffsets]:
    """Return where logs begin, and where they end (high watermark), now.

    A fetch that was out of range does not show it: its answer has -1 for all its offsets. Raises Unreachable when no
    leader answered at all.
    """
    begins = await listed_offsets(cluster, dict.fromkeys(places, EARLIEST), isolation=READ_UNCOMMITTED)
    ends = await listed_offsets(cluster, dict.fromkeys(begins.found, LATEST), isolation=READ_UNCOMMITTED)
    return begins, ends


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, isolation: int, leaders_known: bool = False
) -> dict[TopicPartition, int]:
    """Return the offset of each partition, where each is needed. `listed_offsets` says of what, and what it asks.

    Raises for the first partition that failed: Refused without permission, else Unreachable.
    """
    listed = await listed_offsets(cluster, wanted, isolation=isolation, leaders_known=leaders_known)
    for place, unserved in listed.failed.items():
        kind = Refused if unserved.kind is RefusalKind.NOT_AUTHORIZED else Unreachable
        raise kind(f"offsets of {place}: {unserved.why}")
    return listed.found


def _silent(cluster: Cluster, node: int, error: Retryable) -> Unavailable:
    return Unavailable(
        kind=RefusalKind.NO_LEADER,
        why=f"its leader, broker {node} of cluster {cluster.alias}, does not answer ({error}): look at that broker and "
        "at the address that it advertises",
    )


def _denied(cluster: Cluster) -> Unavailable:
    return Unavailable(
        kind=RefusalKind.NOT_AUTHORIZED,
        why=f"its offsets may not be read on cluster {cluster.alias}: grant DESCRIBE on its topic",
    )


def _said(cluster: Cluster, node: int, code: int) -> Unavailable:
    where = f"broker {node} of cluster {cluster.alias} answers for it"
    if code == codes.KAFKA_STORAGE_ERROR:
        return Unavailable(kind=RefusalKind.STORAGE, why=f"{where} {codes.advised(code)}")
    return Unavailable(kind=RefusalKind.NO_LEADER, why=f"{where} {codes.describe(code)}: look at that broker's log")


def _list_request(places: Mapping[TopicPartition, int], isolation: int, replica: int) -> Any:
    topic = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = {}
    for place, timestamp in places.items():
        by_topic.setdefault(place.topic, []).append(
            topic.ListOffsetsPartition(partition_index=place.partition, current_leader_epoch=-1, timestamp=timestamp)
        )
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=[topic(name=name, partitions=parts) for name, parts in by_topic.items()],
        timeout_ms=30_000,
        min_version=_LOCAL_SINCE if EARLIEST_LOCAL in places.values() else None,
    )


def _listed(answer: Any) -> Iterable[tuple[TopicPartition, int, int]]:
    for topic in answer.topics:
        for part in topic.partitions:
            yield TopicPartition(topic=topic.name, partition=part.partition_index), part.error_code, part.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsets:
    """The committed `(offset, metadata)` of a group by partition, None where it has none; of others nothing is known.

    `denied` are the topics that this login may not see.
    """

    found: dict[TopicPartition, tuple[int, str] | None] = field(default_factory=dict)
    denied: frozenset[str] = frozenset()

    def refuse_denied(self, alias: str) -> None:
        """Raise Refused for a topic that this login may not see."""
        for topic in sorted(self.denied):
            raise Refused(f"topic {topic} on cluster {alias} is hidden from this login: grant DESCRIBE on it")


async def group_offsets(
    cluster: Cluster, group: str, places: Iterable[TopicPartition], *, wait: bool = True
) -> GroupOffsets:
    """Return the committed offsets of a group for these partitions.

    The request always names the partitions. A fetch of *all* partitions silently omits those with a pending
    transactional commit. Named partitions with `require_stable` answer UNSTABLE_OFFSET_COMMIT instead (KIP-447). With
    `wait` that is retried until the transaction ends; without, those partitions are left out. So are the partitions of
    topics that this login may not see.
    """
    by_topic: dict[str, list[int]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(place.partition)
    if not by_topic:
        return GroupOffsets()

    async def action() -> GroupOffsets:
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
        denied = set()
        for topic_answer in answer.topics:
            for part in topic_answer.partitions:
                if part.error_code == codes.UNSTABLE_OFFSET_COMMIT and not wait:
                    continue
                if part.error_code == codes.TOPIC_AUTHORIZATION_FAILED:
                    denied.add(topic_answer.name)
                    continue
                _check_group(cluster, group, part.error_code)
                place = TopicPartition(topic=topic_answer.name, partition=part.partition_index)
                found[place] = (part.committed_offset, part.metadata or "") if part.committed_offset >= 0 else None
        return GroupOffsets(found=found, denied=frozenset(denied))

    return await cluster.retrying(action)


def _check_group(cluster: Cluster, group: str, code: int) -> None:
    if code in codes.UNAUTHORIZED:
        raise Refused(f"not allowed to read the offsets of group {group} on cluster {cluster.alias}: grant DESCRIBE")
    if code:
        if code in codes.COORDINATOR_MOVED:
            cluster.forget_coordinator(GROUP, group)
        raise Retryable(f"offsets of group {group} on cluster {cluster.alias}: {codes.describe(code)}")

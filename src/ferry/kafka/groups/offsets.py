"""Committed offsets of many groups: fetched, and written by plain OffsetCommit.

TxnOffsetCommit is never used: while the group has a member, the broker refuses the plain request, but not that one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest

from ferry.clock import wall_ms
from ferry.errors import FerryError, Refused
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TooOld
from ferry.kafka.groups.coordinators import Piece, settle_groups
from ferry.kafka.groups.listing import check_group
from ferry.model import CommittedOffset, TopicPartition, sentence_of, with_text

_MANY_SINCE = 8  # OffsetFetch, Kafka 3.0
_WITH_NAMES = 9  # later versions of both requests take topic ids
_FETCHED_PARTITIONS = 5_000
_ALL = 100
"""The size of a group in a request for all of its offsets, whose number is not known."""
_COMMIT_BYTES = 400_000
"""Bytes of one request; the broker writes it as one batch, which must stay below its message.max.bytes."""
_RECORD_BYTES = 200
"""Bytes of one offset in that batch, without topic and metadata; more than it needs."""

HAS_MEMBERS = frozenset(
    {
        codes.ILLEGAL_GENERATION,
        codes.UNKNOWN_MEMBER_ID,
        codes.REBALANCE_IN_PROGRESS,
        codes.FENCED_MEMBER_EPOCH,
        codes.STALE_MEMBER_EPOCH,
    }
)
"""The codes with which a coordinator refuses a commit from outside while the group has members."""


class GroupActive(Refused):
    """The group has members: its offsets are theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedOffsets:
    """Offsets by group and partition; a partition without an offset is not in it.

    `pending` are partitions with a transactional commit that is not decided (KIP-447): their offset is not known.
    `denied` are topics that this login may not see. `failed` are groups of which nothing is known, with the reason.
    """

    found: dict[str, dict[TopicPartition, CommittedOffset]]
    pending: dict[str, frozenset[TopicPartition]]
    denied: dict[str, frozenset[str]]
    failed: dict[str, FerryError]


async def fetch_offsets(
    cluster: Cluster,
    wanted: Mapping[str, Collection[TopicPartition] | None],
    *,
    stable: bool,
    operation: str = "DESCRIBE",
) -> FetchedOffsets:
    """Return offsets of many groups, many in a request (one by one before Kafka 3.0).

    `wanted` names by group the partitions, or None for all of them. With `stable`, partitions of an undecided
    transactional commit are in `pending`, and the partitions must be named. In an answer about *all* partitions, a
    broker silently leaves out those of them that have no earlier offset. Without `stable`, the last commit counts.
    Coordinators that move or load are asked again within the cluster's patience. `operation` is the permission that a
    refusal names: READ, which implies DESCRIBE, where the groups are written next.
    """
    if stable and None in wanted.values():
        raise ValueError("stable offsets are those of named partitions")
    fetching = _Fetching(cluster, stable, operation)
    pieces = [
        Piece(group=group, size=_ALL if places is None else max(1, len(places)), payload=places)
        for group, places in wanted.items()
    ]
    failed = await settle_groups(
        cluster, pieces, fetching.ask, fetching.judge, room=_FETCHED_PARTITIONS, operation=operation
    )
    return FetchedOffsets(found=fetching.found, pending=fetching.pending, denied=fetching.denied, failed=failed)


_Places = Collection[TopicPartition] | None


class _Fetching:
    def __init__(self, cluster: Cluster, stable: bool, operation: str) -> None:
        self.found: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.pending: dict[str, frozenset[TopicPartition]] = {}
        self.denied: dict[str, frozenset[str]] = {}
        self._cluster = cluster
        self._stable = stable
        self._operation = operation

    async def ask(self, node: int, part: list[Piece[_Places]]) -> list[tuple[Piece[_Places], Any]]:
        by_name = {piece.group: piece for piece in part}
        group = OffsetFetchRequest.OffsetFetchRequestGroup
        request = OffsetFetchRequest(
            groups=[
                group(
                    group_id=piece.group,
                    member_id=None,
                    member_epoch=-1,
                    topics=_topics(group.OffsetFetchRequestTopics, piece.payload),
                )
                for piece in part
            ],
            require_stable=self._stable,
            min_version=_MANY_SINCE,
            max_version=_WITH_NAMES,
        )
        try:
            answer = await self._cluster.ask(request, node)
        except TooOld:
            return [(piece, await self._ask_one(node, piece)) for piece in part]
        return [(by_name[one.group_id], one) for one in answer.groups]

    async def _ask_one(self, node: int, piece: Piece[_Places]) -> Any:
        request = OffsetFetchRequest(
            group_id=piece.group,
            topics=_topics(OffsetFetchRequest.OffsetFetchRequestTopic, piece.payload),
            require_stable=self._stable,
            max_version=_MANY_SINCE - 1,
        )
        return await self._cluster.ask(request, node)

    def judge(self, piece: Piece[_Places], answer: Any) -> None:
        if answer.error_code == codes.GROUP_ID_NOT_FOUND:  # then it has no offsets
            self.found[piece.group] = {}
            return
        check_group(self._cluster, piece.group, answer.error_code, "read", self._operation)
        found: dict[TopicPartition, CommittedOffset] = {}
        pending, denied = set(), set()
        for topic in answer.topics:
            name = topic.name
            for part in topic.partitions:
                # By position: this is done for every partition of every group.
                place = TopicPartition(name, part.partition_index)
                if part.error_code == codes.NONE:
                    if part.committed_offset >= 0:
                        at = CommittedOffset(part.committed_offset, part.metadata or "", part.committed_leader_epoch)
                        found[place] = at
                elif part.error_code == codes.UNSTABLE_OFFSET_COMMIT and self._stable:
                    pending.add(place)
                elif part.error_code == codes.TOPIC_AUTHORIZATION_FAILED:
                    denied.add(name)
                else:  # UNKNOWN_TOPIC_OR_PARTITION, too: a broker answers -1 and no error where a group has no offset
                    check_group(self._cluster, piece.group, part.error_code, "read", self._operation)
        self.found[piece.group] = found
        if pending:
            self.pending[piece.group] = frozenset(pending)
        if denied:
            self.denied[piece.group] = frozenset(denied)


def _topics(kind: Any, places: _Places) -> Any:
    if places is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(place.partition)
    return [kind(name=name, partition_indexes=parts) for name, parts in by_topic.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffsets:
    """What was written, and what was not: groups (`failed`) and single partitions (`refused`), with the reasons."""

    failed: dict[str, FerryError]
    """GroupActive, NotPermittedGroup or Refused: only what is in `written`. Unreachable: more of it may be written."""
    refused: dict[str, dict[TopicPartition, str]]
    written: dict[str, set[TopicPartition]] = field(default_factory=dict, compare=False)
    """Partitions whose offset a coordinator acknowledged, also those of a group that failed in a later request."""
    answered_ms: dict[str, int] = field(default_factory=dict, compare=False)
    """When the last answer about a group came, in epoch milliseconds."""


CHECK_HOLDS_SECONDS = 0.25
"""How long a check counts: another process needs longer to move the groups, and to let clients read on."""
MOST_CHECKS = 3
"""Checks before one request, at most: the ledger may always answer more slowly."""


class LastCheck:
    """Awaits `check` unless one began just now and has ended: many requests share it, and none follows a sleep."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        """Prepare for requests of one process; `check` raises to stop it."""
        self._check = check
        self._began = -math.inf

    async def __call__(self) -> None:
        """Raise what `check` raises."""
        for _ in range(MOST_CHECKS):
            began = time.monotonic()
            if began - self._began < CHECK_HOLDS_SECONDS:
                return
            await self._check()
            self._began = began


async def commit_offsets(
    cluster: Cluster,
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    *,
    last_check: Callable[[], Awaitable[None]] | None = None,
) -> CommittedOffsets:
    """Write offsets of groups that have no members; a group that has one fails with GroupActive.

    Repeated within the cluster's patience where a coordinator moves or does not answer: the same offset twice does no
    harm. A group with many offsets is written in several requests, so a part of a group that fails may be written.

    `last_check` raises to stop a process that may have slept meanwhile. It is called when the connection is there,
    right before each request: brokers fence no writer of this request.
    """
    refused: dict[str, dict[TopicPartition, str]] = {}
    written: dict[str, set[TopicPartition]] = {}
    answered_ms: dict[str, int] = {}
    pieces = [piece for group, places in offsets.items() for piece in _in_pieces(group, places)]

    async def ask(node: int, part: list[Piece[_Offsets]]) -> list[tuple[Piece[_Offsets], Any]]:
        answers = []
        if last_check is not None:
            await cluster.ask(
                MetadataRequest(topics=[], allow_auto_topic_creation=False), node
            )  # any request makes the connection
        for piece in part:
            if last_check is not None:
                await last_check()
            answers.append((piece, await cluster.ask(_commit_request(piece), node)))
        return answers

    def judge(piece: Piece[_Offsets], answer: Any) -> None:
        answered_ms[piece.group] = wall_ms()
        found = {
            TopicPartition(topic=topic.name, partition=part.partition_index): part.error_code
            for topic in answer.topics
            for part in topic.partitions
        }
        done = written.setdefault(piece.group, set())
        done |= {place for place, code in found.items() if code == codes.NONE}
        for place, code in found.items():
            if code in HAS_MEMBERS:
                raise GroupActive(f"group {piece.group} has members on cluster {cluster.alias}: its offsets are theirs")
            if code in _OF_ONE_PARTITION:
                refused.setdefault(piece.group, {})[place] = _why(cluster, place, code)
                done.discard(place)
            else:
                check_group(cluster, piece.group, code, "written", "READ")

    errors = await settle_groups(cluster, pieces, ask, judge, room=1, operation="READ")
    failed = {
        group: _in_part(error, len(written.get(group, ())), len(offsets[group])) for group, error in errors.items()
    }
    return CommittedOffsets(failed=failed, refused=refused, written=written, answered_ms=answered_ms)


def _in_part(error: FerryError, count: int, of: int) -> FerryError:
    """Return why a group failed; it names how many of its offsets were written before that."""
    if not count:
        return error
    return type(error)(with_text(sentence_of(error), f"{error} ({count} of {of} offsets were written before)"))


_Offsets = Mapping[TopicPartition, CommittedOffset]
_OF_ONE_PARTITION = frozenset(
    {*codes.OF_ONE_PARTITION, codes.OFFSET_METADATA_TOO_LARGE, codes.INVALID_COMMIT_OFFSET_SIZE}
)


def _in_pieces(group: str, places: _Offsets) -> Iterable[Piece[_Offsets]]:
    piece: dict[TopicPartition, CommittedOffset] = {}
    filled = 0
    for place, committed in places.items():
        size = _RECORD_BYTES + len(group) + len(place.topic) + 4 * len(committed.metadata)
        if piece and filled + size > _COMMIT_BYTES:
            yield Piece(group=group, size=1, payload=piece)
            piece, filled = {}, 0
        piece[place] = committed
        filled += size
    if piece:
        yield Piece(group=group, size=1, payload=piece)


def _commit_request(piece: Piece[_Offsets]) -> Any:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    by_topic: dict[str, list[Any]] = {}
    for place, committed in piece.payload.items():
        by_topic.setdefault(place.topic, []).append(
            topic.OffsetCommitRequestPartition(
                partition_index=place.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=piece.group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic(name=name, partitions=parts) for name, parts in by_topic.items()],
        max_version=_WITH_NAMES,
    )


def _why(cluster: Cluster, place: TopicPartition, code: int) -> str:
    if code in codes.UNAUTHORIZED:
        return f"an offset of {place} may not be written on cluster {cluster.alias}: grant READ on its topic"
    if code == codes.UNKNOWN_TOPIC_OR_PARTITION:
        return (
            f"cluster {cluster.alias} no longer has {place}: run the flow, and it is copied again, or the report "
            "shows why not"
        )
    return f"cluster {cluster.alias} takes no offset of {place} with that metadata: {codes.describe(code)}"

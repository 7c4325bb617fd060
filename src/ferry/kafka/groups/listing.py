"""Consumer groups of a cluster: their names, kinds and states, and their members."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import MetadataRequest

from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TooOld
from ferry.kafka.connect.frames import UNREADABLE
from ferry.kafka.groups.coordinators import ANSWER_SECONDS, NotPermittedGroup, Piece, settle_groups
from ferry.kafka.groups.messages import ConsumerGroupDescribeRequest
from ferry.model import NO_STATE, DescribedGroup, GroupKind, ListedGroup, Member, TopicPartition

_DESCRIBED_AT_ONCE = 100
_CONSUMER = "consumer"
"""Protocol type of groups whose members' assignments are partitions (`ConsumerProtocol.PROTOCOL_TYPE`)."""
_DEAD = "Dead"
"""The state of a group that does not exist (`GroupState`)."""
_DESCRIBE = 8
"""The number of Kafka's `AclOperation.DESCRIBE`."""
_LAST_WITH_OPERATIONS = 10
"""The last version of a Metadata request that asks what a login may do on the cluster (KIP-700)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroups:
    """The groups by name, and the brokers that did not list theirs, with the reason."""

    groups: dict[str, ListedGroup]
    silent: dict[int, str]

    def refuse_silent(self, alias: str) -> None:
        """Raise Refused if a broker of the cluster did not list its groups."""
        for broker, why in self.silent.items():
            raise Refused(f"broker {broker} of cluster {alias} does not list its groups ({why}): bring it back")


async def list_groups(cluster: Cluster) -> ListedGroups:
    """Return all groups that this login may see (KIP-518, KIP-848): every broker lists those that it coordinates.

    `sees_all_groups` reports whether these are all groups.
    Brokers before 3.8 do not report the kind, those before 2.6 no state either. All brokers are asked again within the
    cluster's patience while one is silent, or still loads its groups. Raises Refused; Unreachable when no broker
    answered in the end.
    """
    asked = _Listing(cluster)
    try:
        await cluster.retrying(asked.round)
    except Unreachable:
        if not asked.answered:
            raise
    return ListedGroups(groups=asked.groups, silent=asked.silent)


async def sees_all_groups(cluster: Cluster) -> bool | None:
    """Return whether brokers list all groups to this login. None: they do not report that, as before Kafka 2.3.

    To a login without DESCRIBE on the cluster they list only the groups that it may DESCRIBE, and no error
    (`KafkaApis.handleListGroupsRequest`). What a login may do on the cluster they report by KIP-430. Raises
    Unreachable.
    """

    async def ask() -> Any:
        try:
            answer = await cluster.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
        except TooOld:
            request = MetadataRequest(
                topics=[],
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=True,
                max_version=_LAST_WITH_OPERATIONS,
            )
            answer = await cluster.ask(request)
        if answer.error_code:
            raise Retryable(f"permissions on cluster {cluster.alias}: {codes.describe(answer.error_code)}")
        return answer

    operations = (await cluster.retrying(ask)).authorized_operations
    return None if operations is None else _DESCRIBE in operations


class _Listing:
    """The brokers of a cluster, asked round by round until each of them has listed its groups in the same round."""

    def __init__(self, cluster: Cluster) -> None:
        self.groups: dict[str, ListedGroup] = {}
        self.silent: dict[int, str] = {}
        self.answered: set[int] = set()
        self._cluster = cluster

    async def round(self) -> None:
        """Ask all brokers; raise Retryable when one of them has not answered.

        Groups that moved away from a silent broker are listed by brokers that answered in the round before.
        """
        cluster = self._cluster
        await cluster.refresh(())  # a broker that is gone has no groups any more
        self.silent.clear()
        self.answered.clear()
        answers = [(node, cluster.loop.call_soon_with_future(partial(self._within, node))) for node in cluster.brokers]
        for node, answer in answers:
            try:
                listed = await answer
            except (Retryable, Unreachable) as error:
                self.silent[node] = str(error)
                continue
            self.answered.add(node)
            self.groups |= {group.group_id: _listed(group) for group in listed.groups}
        if self.silent:
            raise Retryable(next(iter(self.silent.values())))

    async def _within(self, node: int) -> Any:
        return await self._cluster.within(ANSWER_SECONDS, partial(self._ask, node))

    async def _ask(self, node: int) -> Any:
        cluster = self._cluster
        try:
            answer = await cluster.ask(ListGroupsRequest(states_filter=[], types_filter=[]), node)
        except TooOld as error:
            raise Retryable(str(error)) from error
        if answer.error_code in codes.UNAUTHORIZED:
            raise Refused(f"not allowed to list the groups of cluster {cluster.alias}: grant DESCRIBE on groups")
        if answer.error_code:
            raise Retryable(f"groups of broker {node} of cluster {cluster.alias}: {codes.describe(answer.error_code)}")
        return answer


def _listed(group: Any) -> ListedGroup:
    return ListedGroup(
        name=group.group_id,
        kind=_kind(group.group_type),
        state=group.group_state or NO_STATE,
        protocol_type=group.protocol_type or "",
    )


def _kind(word: str | None) -> GroupKind:
    try:
        return GroupKind((word or "unknown").lower())
    except ValueError:  # a kind that a later Kafka has
        return GroupKind.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroups:
    """The groups by name, and the errors of the others."""

    groups: dict[str, DescribedGroup]
    failed: dict[str, FerryError]


async def describe_groups(cluster: Cluster, groups: Iterable[ListedGroup]) -> DescribedGroups:
    """Return the members of groups, and the partitions that each of them reads.

    A group that does not exist is Dead, as brokers before Kafka 4.0 answer, unless a list had it with members.
    Share and Streams groups have requests of their own, which are not sent here: they are returned without members.
    """
    found: dict[str, DescribedGroup] = {}
    pieces = []
    for group in groups:
        if group.kind in (GroupKind.SHARE, GroupKind.STREAMS):
            found[group.name] = DescribedGroup(name=group.name, kind=group.kind, state=group.state, members=())
        else:
            pieces.append(Piece(group=group.name, size=1, payload=group))

    async def ask(node: int, part: list[Piece[ListedGroup]]) -> list[tuple[Piece[ListedGroup], Any]]:
        answers: list[tuple[Piece[ListedGroup], Any]] = []
        for kip848 in (True, False):
            of_kind = {piece.group: piece for piece in part if (piece.payload.kind is GroupKind.CONSUMER) is kip848}
            if of_kind:
                answer = await cluster.ask(_describe_request(list(of_kind), kip848=kip848), node)
                answers += [(of_kind[one.group_id], one) for one in answer.groups]
        return answers

    def judge(piece: Piece[ListedGroup], answer: Any) -> None:
        if answer.error_code == codes.GROUP_ID_NOT_FOUND and not piece.payload.is_active:  # KIP-1043
            found[piece.group] = DescribedGroup(name=piece.group, kind=piece.payload.kind, state=_DEAD, members=())
            return
        check_group(cluster, piece.group, answer.error_code, "described", "DESCRIBE")
        found[piece.group] = _described(piece.payload, answer)

    failed = await settle_groups(cluster, pieces, ask, judge, room=_DESCRIBED_AT_ONCE)
    return DescribedGroups(groups=found, failed=failed)


def _describe_request(groups: list[str], *, kip848: bool) -> Any:
    if kip848:
        return ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=False)
    return DescribeGroupsRequest(groups=groups, include_authorized_operations=False)


def _described(listed: ListedGroup, answer: Any) -> DescribedGroup:
    if listed.kind is GroupKind.CONSUMER:
        members = tuple(
            Member(
                member_id=member.member_id,
                client_id=member.client_id,
                host=member.client_host,
                owns=tuple(
                    TopicPartition(topic=part.topic_name, partition=number)
                    for part in member.assignment.topic_partitions
                    for number in part.partitions
                ),
            )
            for member in answer.members
        )
    else:
        members = tuple(
            Member(
                member_id=member.member_id,
                client_id=member.client_id,
                host=member.client_host,
                owns=_owned(member.member_assignment) if answer.protocol_type == _CONSUMER else (),
            )
            for member in answer.members
        )
    return DescribedGroup(name=listed.name, kind=listed.kind, state=answer.group_state, members=members)


def _owned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions of a classic member; none while its group rebalances, or when its bytes are not Kafka's."""
    if not assignment:
        return ()
    try:
        parts = ConsumerProtocolAssignment.decode(bytes(assignment)).assigned_partitions
        return tuple(TopicPartition(topic=part.topic, partition=number) for part in parts for number in part.partitions)
    except UNREADABLE:
        return ()


def check_group(cluster: Cluster, group: str, code: int, done: str, operation: str) -> None:
    """Raise the error that a coordinator reports of a whole group, by the caller's next move.

    `operation` is the permission that is needed.
    """
    if code == codes.NONE:
        return
    where = f"group {group} on cluster {cluster.alias}"
    if code in codes.UNAUTHORIZED:
        raise NotPermittedGroup(f"{where} was not {done}: grant {operation} on it")
    if code in codes.COORDINATOR_MOVED:
        raise Retryable(f"{where} was not {done}: {codes.describe(code)}")
    raise Refused(f"{where} was not {done}: {codes.advised(code)}")

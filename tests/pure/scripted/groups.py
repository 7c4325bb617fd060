"""What scripted brokers answer about consumer groups: their offsets, states and members."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from kafka.protocol import admin, consumer

from ferry.kafka.connect import codes
from ferry.kafka.groups.messages import ConsumerGroupDescribeResponse
from ferry.model import TopicPartition
from tests.pure.protocol.broker import POSITIONS
from tests.pure.scripted.acls import AclBrokers
from tests.pure.scripted.faults import Asked

_NON_EMPTY_GROUP = 68


def _state(code: int, *, active: bool) -> str:
    """The state in an answer about a group of the older protocol."""
    if code:
        return "Dead" if code == codes.GROUP_ID_NOT_FOUND else ""
    return "Stable" if active else "Empty"


@dataclass(kw_only=True)
class GroupBrokers(AclBrokers):
    """A cluster with consumer groups."""

    STATE: ClassVar[tuple[str, ...]] = (*AclBrokers.STATE, "groups", "active")

    groups: dict[str, dict[TopicPartition, tuple[int, str]]] = field(default_factory=dict)
    """What consumer groups have committed."""
    active: set[str] = field(default_factory=set)
    """The groups that have members."""
    modern: set[str] = field(default_factory=set)
    """The groups of the newer protocol for consumers (KIP-848)."""
    mute: bool = False
    """Groups are listed without their states, as by brokers before 2.6."""
    hidden: set[str] = field(default_factory=set)
    """Topics that the login may not describe, whether they exist or not, and groups whose offsets it may not read."""

    def _OffsetFetch(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = consumer.OffsetFetchResponse
        if request.groups:
            group = kind.OffsetFetchResponseGroup
            topic = group.OffsetFetchResponseTopics

            def found(one: Any) -> Any:
                code = codes.NOT_COORDINATOR if self.not_here(asked, one.group_id) else 0
                code = codes.GROUP_AUTHORIZATION_FAILED if one.group_id in self.hidden else code
                topics = [] if code else self._offsets(topic, one.group_id, one.topics)
                return group(group_id=one.group_id, error_code=code, topics=topics)

            return kind(groups=[found(one) for one in request.groups])
        return kind(topics=self._offsets(kind.OffsetFetchResponseTopic, request.group_id, request.topics))

    def _offsets(self, kind: Any, group: str, topics: Any) -> list[Any]:
        held = self._positions().get(group) or self.groups.get(group, {})
        if topics is None:
            wanted = sorted(held)
        else:
            wanted = [TopicPartition(one.name, number) for one in topics for number in one.partition_indexes]
        part = next(inner for name, inner in vars(kind).items() if name.startswith("OffsetFetchResponsePartition"))
        by_topic: dict[str, list[Any]] = {}
        for place in wanted:
            offset, metadata = held.get(place, (-1, ""))
            by_topic.setdefault(place.topic, []).append(
                part(
                    partition_index=place.partition,
                    committed_offset=offset,
                    committed_leader_epoch=-1,
                    metadata=metadata,
                    error_code=codes.TOPIC_AUTHORIZATION_FAILED if place.topic in self.hidden else 0,
                )
            )
        return [kind(name=name, partitions=parts) for name, parts in by_topic.items()]

    def _positions(self) -> dict[str, dict[TopicPartition, tuple[int, str]]]:
        """What writers have committed in transactions, by group."""
        held: dict[str, dict[TopicPartition, tuple[int, str]]] = {}
        if POSITIONS in self.target.logs:
            for _, payload in self.target.logs[POSITIONS].committed():
                assert isinstance(payload, tuple)
                group, place, committed = payload
                held.setdefault(group, {})[place] = committed
        return held

    def _OffsetCommit(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = consumer.OffsetCommitResponse
        topic = kind.OffsetCommitResponseTopic
        outside = request.generation_id_or_member_epoch < 0
        whole = codes.UNKNOWN_MEMBER_ID if outside and request.group_id in self.active else 0
        whole = codes.NOT_COORDINATOR if self.not_here(asked, request.group_id) else whole

        def commit(place: TopicPartition, part: Any) -> int:
            if not whole and place in self.leaders:
                held = self.groups.setdefault(request.group_id, {})
                held[place] = part.committed_offset, part.committed_metadata or ""
            return whole if place in self.leaders else codes.UNKNOWN_TOPIC_OR_PARTITION

        return kind(
            topics=[
                topic(
                    name=one.name,
                    partitions=[
                        topic.OffsetCommitResponsePartition(
                            partition_index=part.partition_index,
                            error_code=commit(TopicPartition(topic=one.name, partition=part.partition_index), part),
                        )
                        for part in one.partitions
                    ],
                )
                for one in request.topics
            ]
        )

    def _ListGroups(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.ListGroupsResponse
        return kind(
            groups=[
                kind.ListedGroup(
                    group_id=name,
                    protocol_type="consumer" if name in self.active else "",
                    group_state="" if self.mute else "Stable" if name in self.active else "Empty",
                    group_type="consumer" if name in self.modern else "classic",
                )
                for name in {**self.groups, **self._positions()}
                if not self.not_here(asked, name) and (self.seen is None or name in self.seen)
            ]
        )

    def _DescribeGroups(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeGroupsResponse
        member = kind.DescribedGroup.DescribedGroupMember(
            member_id="m-1", client_id="app", client_host="/10.0.0.5", member_metadata=b"", member_assignment=b""
        )
        found = []
        for name in asked.request.groups:
            there, active = name in self.groups and name not in self.modern, name in self.active - self.modern
            code = 0 if there else codes.GROUP_ID_NOT_FOUND
            if self.seen is not None and name not in self.seen:
                code = codes.GROUP_AUTHORIZATION_FAILED
            found.append(
                kind.DescribedGroup(
                    error_code=codes.NOT_COORDINATOR if self.not_here(asked, name) else code,
                    group_id=name,
                    group_state=_state(code, active=active),
                    protocol_type="consumer" if active and not code else "",
                    protocol_data="",
                    members=[member] if active and not code else [],
                )
            )
        return kind(groups=found)

    def _ConsumerGroupDescribe(self, asked: Asked) -> Any:  # noqa: N802
        kind = ConsumerGroupDescribeResponse
        group = kind.DescribedGroup
        topics = group.Member.Assignment(topic_partitions=[])
        member = group.Member(
            member_id="m-1",
            member_epoch=1,
            client_id="app",
            client_host="/10.0.0.5",
            subscribed_topic_names=[],
            assignment=topics,
            target_assignment=topics,
        )
        found = []
        for name in asked.request.group_ids:
            there, active = name in self.groups.keys() & self.modern, name in self.active & self.modern
            found.append(
                group(
                    error_code=0 if there else codes.GROUP_ID_NOT_FOUND,
                    group_id=name,
                    group_state="Stable" if active else "Empty" if there else "",
                    members=[member] if active else [],
                )
            )
        return kind(groups=found)

    def _DeleteGroups(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DeleteGroupsResponse
        found = []
        for name in asked.request.groups_names:
            code = 0 if name in self.groups else codes.GROUP_ID_NOT_FOUND
            if name in self.groups and name in self.active:
                code = _NON_EMPTY_GROUP
            if not code:
                del self.groups[name]
            found.append(kind.DeletableGroupResult(group_id=name, error_code=code))
        return kind(results=found)

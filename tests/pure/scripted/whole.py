"""Scripted brokers that also do what commands ask of a cluster: topics and their settings, groups, ACLs, disks, times.

All that a cluster would choose by itself follows from its alias: ids of topics are the same in each run.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kafka.protocol import admin, consumer

from ferry.kafka.connect import codes
from ferry.model import Fate, TopicPartition
from tests.pure.protocol.broker import POSITIONS
from tests.pure.scripted.batches import Part
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Asked

_BROKER = 4
"""Kafka's number of a broker whose settings are asked for."""
_OF_TOPIC, _DEFAULT = 1, 5
"""Where a setting comes from, by Kafka's number."""
_TIMES = struct.Struct(">qq")
_TIMES_AT = 27
"""Where a batch has the times of its first and its newest record."""
_SET = 0


@dataclass(kw_only=True)
class WholeBrokers(Brokers):
    """A cluster that commands can be asked of."""

    STATE: ClassVar[tuple[str, ...]] = (
        *Brokers.STATE,
        *("ids", "ledger", "leaders", "epochs", "own", "groups", "active", "acls", "begins"),
    )

    own: dict[str, dict[str, str]] = field(default_factory=dict)
    """Settings of topics; `settings` are the defaults of all."""
    groups: dict[str, dict[TopicPartition, tuple[int, str]]] = field(default_factory=dict)
    """What consumer groups have committed."""
    active: set[str] = field(default_factory=set)
    """The groups that have members."""
    mute: bool = False
    """Groups are listed without their states, as by brokers before 2.6."""
    seen: set[str] | None = None
    """The groups that the login may describe, if it may not describe the cluster; None: it may."""
    hidden: set[str] = field(default_factory=set)
    """Topics that the login may not describe, whether they exist or not, and groups whose offsets it may not read."""
    acls: list[Mapping[str, Any]] = field(default_factory=list)
    """Each ACL with the names of Kafka's protocol."""

    def topic(self, name: str, partitions: int = 1, *, ledger: bool = False) -> None:
        """Create a topic."""
        super().topic(name, partitions, ledger=ledger or name.startswith("ferry-ledger."))
        self.ids[name] = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.alias}/{name}")

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.ids.pop(name, None)
        for place in [place for place in self.leaders if place.topic == name]:
            del self.leaders[place], self.epochs[place], self.target.logs[self.name(place)]

    def _Metadata(self, asked: Asked) -> Any:  # noqa: N802
        answer = super()._Metadata(asked)
        for one in answer.topics:
            if one.name in self.hidden:
                one.error_code, one.partitions = codes.TOPIC_AUTHORIZATION_FAILED, []
        return answer

    def _CreateTopics(self, asked: Asked) -> Any:  # noqa: N802 - the request's name
        kind = admin.CreateTopicsResponse
        found = []
        for one in asked.request.topics:
            there = one.name in self.ids
            if not there:
                self.topic(one.name, max(1, one.num_partitions))
                self.own[one.name] = {each.name: each.value for each in one.configs}
            code = codes.TOPIC_ALREADY_EXISTS if there else 0
            found.append(kind.CreatableTopicResult(name=one.name, topic_id=self.ids[one.name], error_code=code))
        return kind(topics=found)

    def _CreatePartitions(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.CreatePartitionsResponse
        for one in asked.request.topics:
            self.topic(one.name, one.count)
        return kind(results=[kind.CreatePartitionsTopicResult(name=one.name) for one in asked.request.topics])

    def _DeleteTopics(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DeleteTopicsResponse
        by_id = {value: name for name, value in self.ids.items()}
        found = []
        for one in asked.request.topics:
            name = one.name or by_id.get(one.topic_id, "")
            self.delete(name)
            found.append(kind.DeletableTopicResult(name=name, topic_id=one.topic_id))
        return kind(responses=found)

    def _DescribeConfigs(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeConfigsResponse
        result = kind.DescribeConfigsResult
        entry = result.DescribeConfigsResourceResult

        def there(one: Any) -> bool:
            return one.resource_type == _BROKER or one.resource_name in self.ids

        def configs(one: Any) -> list[Any]:
            own = self.own.get(one.resource_name, {})
            return [
                entry(
                    name=name,
                    value=value,
                    read_only=False,
                    config_source=_OF_TOPIC if name in own else _DEFAULT,
                    is_sensitive=False,
                    synonyms=[],
                )
                for name, value in (self.settings | own).items()
                if not one.configuration_keys or name in one.configuration_keys
            ]

        return kind(
            results=[
                result(
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                    error_code=0 if there(one) else codes.UNKNOWN_TOPIC_OR_PARTITION,
                    configs=configs(one),
                )
                for one in asked.request.resources
            ]
        )

    def _IncrementalAlterConfigs(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.IncrementalAlterConfigsResponse
        result = kind.AlterConfigsResourceResponse
        for one in asked.request.resources:
            own = self.own.setdefault(one.resource_name, {})
            for each in one.configs:
                own.pop(each.name, None)
                if each.config_operation == _SET:
                    own[each.name] = each.value
        return kind(
            responses=[
                result(resource_type=one.resource_type, resource_name=one.resource_name)
                for one in asked.request.resources
            ]
        )

    def _DescribeLogDirs(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeLogDirsResponse
        result = kind.DescribeLogDirsResult
        topics = []
        for name in self.ids:
            parts = [place.partition for place in self.leaders if place.topic == name]
            sizes = {number: self._bytes(TopicPartition(topic=name, partition=number)) for number in parts}
            part = result.DescribeLogDirsTopic.DescribeLogDirsPartition
            topics.append(
                result.DescribeLogDirsTopic(
                    name=name,
                    partitions=[
                        part(partition_index=number, partition_size=size, offset_lag=0, is_future_key=False)
                        for number, size in sizes.items()
                    ],
                )
            )
        whole = asked.request.topics is None
        return kind(
            results=[
                result(log_dir="/kafka", topics=topics if whole else [], total_bytes=10**12, usable_bytes=9 * 10**11)
            ]
        )

    def _bytes(self, place: TopicPartition) -> int:
        entries = self.target.logs[self.name(place)].entries
        return sum(
            len(one.payload.batch) for one in entries if isinstance(one.payload, Part) and one.payload.index == 0
        )

    def _ListOffsets(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = consumer.ListOffsetsResponse
        part = kind.ListOffsetsTopicResponse.ListOffsetsPartitionResponse
        topics = []
        for topic in request.topics:
            parts = []
            for one in topic.partitions:
                place = TopicPartition(topic=topic.name, partition=one.partition_index)
                if place not in self.leaders:
                    parts.append(
                        part(
                            partition_index=place.partition,
                            error_code=codes.UNKNOWN_TOPIC_OR_PARTITION,
                            offset=-1,
                            timestamp=-1,
                        )
                    )
                    continue
                offset, time_ms = self._listed(place, one.timestamp, stable=bool(request.isolation_level))
                parts.append(part(partition_index=place.partition, error_code=0, offset=offset, timestamp=time_ms))
            topics.append(kind.ListOffsetsTopicResponse(name=topic.name, partitions=parts))
        return kind(topics=topics)

    def _listed(self, place: TopicPartition, which: int, *, stable: bool) -> tuple[int, int]:
        log = self.target.logs[self.name(place)]
        if which == -1:
            return (log.stable_end() if stable else log.end), -1
        times = {
            offset: _TIMES.unpack_from(one.payload.batch, _TIMES_AT)[1]
            for offset, one in enumerate(log.entries)
            if isinstance(one.payload, Part)
        }
        if which == -3:  # the newest record
            return max(times.items(), key=lambda item: item[1], default=(-1, -1))
        begin = self.begins.get(place, 0)
        if which < 0:
            return begin, -1
        return next(((at, time_ms) for at, time_ms in times.items() if at >= begin and time_ms >= which), (-1, -1))

    def _OffsetFetch(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = consumer.OffsetFetchResponse
        if request.groups:
            group = kind.OffsetFetchResponseGroup
            topic = group.OffsetFetchResponseTopics
            return kind(
                groups=[
                    group(group_id=one.group_id, error_code=codes.GROUP_AUTHORIZATION_FAILED)
                    if one.group_id in self.hidden
                    else group(group_id=one.group_id, topics=self._offsets(topic, one.group_id, one.topics))
                    for one in request.groups
                ]
            )
        return kind(topics=self._offsets(kind.OffsetFetchResponseTopic, request.group_id, request.topics))

    def _offsets(self, kind: Any, group: str, topics: Any) -> list[Any]:
        held = self._positions() if group.startswith("ferry.") else self.groups.get(group, {})
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
                )
            )
        return [kind(name=name, partitions=parts) for name, parts in by_topic.items()]

    def _positions(self) -> dict[TopicPartition, tuple[int, str]]:
        """What writers have committed in transactions, of all of their groups: none of two groups has a place."""
        held: dict[TopicPartition, tuple[int, str]] = {}
        if POSITIONS in self.target.logs:
            for _, payload in self.target.logs[POSITIONS].committed():
                assert isinstance(payload, tuple)
                held |= {payload[0]: payload[1]}
        return held

    def _OffsetCommit(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = consumer.OffsetCommitResponse
        topic = kind.OffsetCommitResponseTopic
        held = self.groups.setdefault(request.group_id, {})
        for one in request.topics:
            for part in one.partitions:
                place = TopicPartition(topic=one.name, partition=part.partition_index)
                held[place] = part.committed_offset, part.committed_metadata or ""
        return kind(
            topics=[
                topic(
                    name=one.name,
                    partitions=[
                        topic.OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=0)
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
                    group_type="classic",
                )
                for name in self.groups
                if self.seen is None or name in self.seen
            ]
        )

    def _DescribeGroups(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeGroupsResponse
        member = kind.DescribedGroup.DescribedGroupMember(
            member_id="m-1", client_id="app", client_host="/10.0.0.5", member_metadata=b"", member_assignment=b""
        )
        return kind(
            groups=[
                kind.DescribedGroup(
                    group_id=name,
                    group_state="Stable" if name in self.active else "Empty" if name in self.groups else "Dead",
                    protocol_type="consumer" if name in self.active else "",
                    protocol_data="",
                    members=[member] if name in self.active else [],
                )
                for name in asked.request.groups
            ]
        )

    def _DeleteGroups(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DeleteGroupsResponse
        found = []
        for name in asked.request.groups_names:
            code = 0 if self.groups.pop(name, None) is not None else codes.GROUP_ID_NOT_FOUND
            found.append(kind.DeletableGroupResult(group_id=name, error_code=code))
        return kind(results=found)

    def _DescribeAcls(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeAclsResponse
        resource = kind.DescribeAclsResource
        return kind(
            resources=[
                resource(
                    resource_type=one["resource_type"],
                    resource_name=one["resource_name"],
                    pattern_type=one["pattern_type"],
                    acls=[
                        resource.AclDescription(
                            principal=one["principal"],
                            host="*",
                            operation=one["operation"],
                            permission_type=3,
                        )
                    ],
                )
                for one in self.acls
            ]
        )

    def _DescribeCluster(self, asked: Asked) -> Any:  # noqa: N802
        operations = set(range(3, 13)) if self.seen is None else set()
        return admin.DescribeClusterResponse(
            cluster_id=self.alias, controller_id=1, brokers=[], authorized_operations=operations
        )

    def _ListTransactions(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.ListTransactionsResponse
        return kind(
            unknown_state_filters=[],
            transaction_states=[
                kind.TransactionState(transactional_id=name, producer_id=one.producer, transaction_state="Empty")
                for name, one in self.target.txns.items()
            ],
        )

    def _DescribeProducers(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeProducersResponse
        topic = kind.TopicResponse
        state = topic.PartitionResponse.ProducerState
        return kind(
            topics=[
                topic(
                    name=one.name,
                    partitions=[
                        topic.PartitionResponse(
                            partition_index=number,
                            error_code=0,
                            active_producers=[
                                state(
                                    producer_id=producer,
                                    producer_epoch=0,
                                    last_sequence=0,
                                    last_timestamp=0,
                                    coordinator_epoch=0,
                                    current_txn_start_offset=offset,
                                )
                                for producer, offset in self._open_on(one.name, number).items()
                            ],
                        )
                        for number in one.partition_indexes
                    ],
                )
                for one in asked.request.topics
            ]
        )

    def _open_on(self, topic: str, partition: int) -> dict[int, int]:
        """Where the open transactions of a partition begin, by producer id."""
        log = self.log(topic, partition)
        fates = log.fates(0, log.end)
        return {
            log.entries[offset].producer: offset for offset in sorted(fates, reverse=True) if fates[offset] is Fate.OPEN
        }

    def _DescribeClientQuotas(self, asked: Asked) -> Any:  # noqa: N802
        return admin.DescribeClientQuotasResponse(entries=[])

    def _DescribeUserScramCredentials(self, asked: Asked) -> Any:  # noqa: N802
        return admin.DescribeUserScramCredentialsResponse(results=[])

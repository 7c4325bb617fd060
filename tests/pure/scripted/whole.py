"""Scripted brokers that also do what commands ask of a cluster: topics and their settings, groups, ACLs, disks, times.

All that a cluster would choose by itself follows from its alias: ids of topics are the same in each run.
"""

from __future__ import annotations

import re
import struct
import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kafka.protocol import admin, consumer

from ferry.kafka.connect import codes
from ferry.model import TopicPartition
from tests.pure.scripted.batches import Part
from tests.pure.scripted.faults import Asked
from tests.pure.scripted.groups import GroupBrokers

_BROKER = 4
"""Kafka's number of a broker whose settings are asked for."""
_OF_TOPIC, _DEFAULT = 1, 5
"""Where a setting comes from, by Kafka's number."""
_TIMES = struct.Struct(">qq")
_TIMES_AT = 27
"""Where a batch has the times of its first and its newest record."""
_SET = 0


_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_INVALID_PARTITIONS = 37
_SETTINGS = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delete.retention.ms errors.deadletterqueue.group.enable file.delete.delay.ms flush.messages flush.ms
follower.replication.throttled.replicas index.interval.bytes internal.segment.bytes
leader.replication.throttled.replicas local.retention.bytes local.retention.ms max.compaction.lag.ms
max.message.bytes message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.type
min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate remote.copy.lag.bytes
remote.copy.lag.ms remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes
retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
"""
"""The settings that a topic of Kafka can have (`LogConfig`)."""
_POLICIES = {"delete", "compact", "compact,delete", "delete,compact", ""}


def _is_legal(topic: str) -> bool:
    return bool(_LEGAL.fullmatch(topic)) and topic not in {".", ".."}


def _metric(topic: str) -> str:
    """A topic's name in metrics, which no two topics share."""
    return topic.replace(".", "_")


def _fits(name: str, value: str | None) -> bool:
    """Whether a topic may have this setting; None: the default."""
    if name not in _SETTINGS.split():
        return False
    if value is None:
        return True
    if name == "cleanup.policy":
        return value in _POLICIES
    is_number = name.endswith((".ms", ".bytes", ".messages"))
    return not is_number or value.lstrip("-").isdigit()


@dataclass(kw_only=True)
class WholeBrokers(GroupBrokers):
    """A cluster that commands can be asked of."""

    STATE: ClassVar[tuple[str, ...]] = (
        *GroupBrokers.STATE,
        *("ids", "ledger", "leaders", "epochs", "own", "begins"),
    )

    own: dict[str, dict[str, str]] = field(default_factory=dict)
    """Settings of topics; `settings` are the defaults of all."""

    undescribed: dict[str, int] = field(default_factory=dict)
    """Topics whose settings are answered with this error code."""
    quotas: list[str] = field(default_factory=list)
    """Users with a quota."""
    scram: list[str] = field(default_factory=list)
    """Users with a password."""

    def topic(self, name: str, partitions: int = 1, *, ledger: bool | None = None) -> None:
        """Create a topic. The newest with a ledger's name is the ledger, unless the caller says that it is not."""
        is_ledger = name.startswith("ferry-ledger.") if ledger is None else ledger
        super().topic(name, partitions, ledger=is_ledger)
        self.ids[name] = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.alias}/{name}")

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.ids.pop(name, None)
        for place in [place for place in self.leaders if place.topic == name]:
            del self.leaders[place], self.epochs[place], self.target.logs[self.name(place)]
            self.begins.pop(place, None)

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
            code = self._creation_error(one)
            if not code:
                self.topic(one.name, max(1, one.num_partitions))
                self.own[one.name] = {each.name: each.value for each in one.configs}
            topic_id = self.ids.get(one.name, uuid.UUID(int=0))
            found.append(kind.CreatableTopicResult(name=one.name, topic_id=topic_id, error_code=code))
        return kind(topics=found)

    def _creation_error(self, one: Any) -> int:
        if one.name in self.ids:
            return codes.TOPIC_ALREADY_EXISTS
        if not _is_legal(one.name) or _metric(one.name) in map(_metric, self.ids):
            return codes.INVALID_TOPIC
        if one.num_partitions == 0:
            return _INVALID_PARTITIONS
        if one.replication_factor > len(self.nodes):
            return codes.INVALID_REPLICATION_FACTOR
        fit = all(_fits(each.name, each.value) for each in one.configs)
        return 0 if fit else codes.INVALID_CONFIG

    def _CreatePartitions(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.CreatePartitionsResponse
        found = []
        for one in asked.request.topics:
            code = 0 if one.name in self.ids else codes.UNKNOWN_TOPIC_OR_PARTITION
            if not code and one.count <= sum(place.topic == one.name for place in self.leaders):
                code = _INVALID_PARTITIONS
            if not code:
                self.topic(one.name, one.count)
            found.append(kind.CreatePartitionsTopicResult(name=one.name, error_code=code))
        return kind(results=found)

    def _DeleteTopics(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DeleteTopicsResponse
        by_id = {value: name for name, value in self.ids.items()}
        found = []
        for one in asked.request.topics:
            name = one.name or by_id.get(one.topic_id)
            if name in self.ids:
                self.delete(name)
                code = 0
            else:
                code = codes.UNKNOWN_TOPIC_OR_PARTITION if one.name else codes.UNKNOWN_TOPIC_ID
            found.append(kind.DeletableTopicResult(name=name, topic_id=one.topic_id, error_code=code))
        return kind(responses=found)

    def _DescribeConfigs(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeConfigsResponse
        result = kind.DescribeConfigsResult
        entry = result.DescribeConfigsResourceResult

        def error(one: Any) -> int:
            if one.resource_name in self.undescribed:
                return self.undescribed[one.resource_name]
            if one.resource_type == _BROKER or one.resource_name in self.ids:
                return 0
            return codes.UNKNOWN_TOPIC_OR_PARTITION if _is_legal(one.resource_name) else codes.INVALID_TOPIC

        def configs(one: Any) -> list[Any]:
            if error(one):
                return []
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
                    error_code=error(one),
                    configs=configs(one),
                )
                for one in asked.request.resources
            ]
        )

    def _IncrementalAlterConfigs(self, asked: Asked) -> Any:  # noqa: N802
        """All changes of a topic are made, or none."""
        kind = admin.IncrementalAlterConfigsResponse
        result = kind.AlterConfigsResourceResponse
        found = []
        for one in asked.request.resources:
            changes = {each.name: each.value if each.config_operation == _SET else None for each in one.configs}
            code = 0 if one.resource_name in self.ids else codes.UNKNOWN_TOPIC_OR_PARTITION
            if not code and not all(_fits(name, value) for name, value in changes.items()):
                code = codes.INVALID_CONFIG
            if not code:
                own = self.own.get(one.resource_name, {}) | changes
                self.own[one.resource_name] = {name: value for name, value in own.items() if value is not None}
            found.append(result(resource_type=one.resource_type, resource_name=one.resource_name, error_code=code))
        return kind(responses=found)

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

    def _DescribeClientQuotas(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeClientQuotasResponse
        entry = kind.EntryData
        return kind(
            entries=[
                entry(
                    entity=[entry.EntityData(entity_type="user", entity_name=name)],
                    values=[entry.ValueData(key="producer_byte_rate", value=1000.0)],
                )
                for name in self.quotas
            ]
        )

    def _DescribeUserScramCredentials(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeUserScramCredentialsResponse
        result = kind.DescribeUserScramCredentialsResult
        info = result.CredentialInfo(mechanism=1, iterations=4096)
        return kind(results=[result(user=name, error_code=0, credential_infos=[info]) for name in self.scram])

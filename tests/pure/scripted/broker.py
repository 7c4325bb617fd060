"""Brokers that answer Kafka's protocol, frame by frame, out of the modelled cluster of the protocol's random machine.

Clients are Ferry's own: `tests.pure.scripted.wire` puts them on these brokers below the socket, so versions, encoding,
retries and timeouts are the real ones. `tests.pure.scripted.faults` says what becomes of a request. `Brokers.asked`
lists every request that came.
"""

from __future__ import annotations

import copy
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

from ferry.kafka.connect import codes
from ferry.kafka.fetch.offsets import LEADER_LOG
from ferry.model import TopicPartition
from ferry.wire.batch import batches
from tests.pure.protocol.broker import (
    LEDGER,
    POSITIONS,
    BrokerError,
    Busy,
    Fenced,
    Log,
    NotAdded,
    OutOfOrder,
    Target,
    Txn,
    Unknown,
)
from tests.pure.scripted.batches import aborted, identity, parts, records
from tests.pure.scripted.faults import Asked, Fault

HOST = "scripted"
_HEAD = struct.Struct(">hhi")
_CONTROLLER = 1
_TRANSACTION_ABORTABLE, _TRANSACTIONAL_ID_NOT_FOUND = 120, 105


class Connection(Protocol):
    """Where a request came from, and its answer goes."""

    node: int

    def deliver(self, asked: Asked, frame: bytearray, late_s: float) -> None:
        """An answer goes back, after those before it, so many seconds late."""

    def cut(self) -> None:
        """The connection is lost."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pending:
    """A request that waits to be served."""

    wire: Connection
    asked: Asked
    version: int


@dataclass(kw_only=True)
class Brokers:
    """A cluster. Its topics are partitions' logs in `target`; `settings` are of all topics."""

    STATE: ClassVar[tuple[str, ...]] = ("target", "_producers", "begins")
    """What requests change."""

    alias: str
    nodes: tuple[int, ...] = (1,)
    version: int = 2
    """Of transactions."""
    port: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    ended: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """Where leader epochs of before ended."""
    coordinators: dict[str, int] = field(default_factory=dict)
    begins: dict[TopicPartition, int] = field(default_factory=dict)
    """Where logs begin whose oldest records were deleted."""
    behind: dict[TopicPartition, int] = field(default_factory=dict)
    """How many of the leader's newest entries the other replicas in sync do not have yet: they are not listed."""
    unaware: set[int] = field(default_factory=set)
    """Brokers that have not learned of any topic yet."""
    tarry: bool = False
    """Markers wait for `deliver_markers`."""
    gate: Callable[[Asked], bool] | None = None
    """Requests for which this holds wait in `pending`, and what comes after them on their connections."""

    def __post_init__(self) -> None:
        self.target = Target((), self.version)
        self.ids: dict[str, uuid.UUID] = {}
        self.ledger = ""
        self._producers = 5000
        self._held: list[Callable[[], None]] = []
        self.pending: list[Pending] = []
        self.under_way: Counter[int] = Counter()
        """Produce requests that are not answered yet, by broker."""
        self.most_under_way = 0
        self.broken: list[BaseException] = []
        """What went wrong in the brokers themselves: a mistake of the test, or of this module."""

    # ---- what a test sets up and looks at

    def topic(self, name: str, partitions: int = 1, *, ledger: bool = False) -> None:
        """Create a topic."""
        self.ids[name] = uuid.uuid4()
        if ledger:
            self.ledger = name
        for number in range(partitions):
            place = TopicPartition(topic=name, partition=number)
            self.leaders[place] = self.nodes[0]
            self.epochs[place] = 0
            self.target.logs.setdefault(self.name(place), Log(self.name(place)))

    def name(self, place: TopicPartition) -> str:
        """A partition's name in `target`."""
        return LEDGER if place.topic == self.ledger else str(place)

    def log(self, topic: str, partition: int = 0) -> Log:
        """A partition's log."""
        return self.target.logs[self.name(TopicPartition(topic=topic, partition=partition))]

    def append(self, topic: str, batch: bytes, partition: int = 0) -> int:
        """Write a batch, outside any transaction; the offset of its first record."""
        log = self.log(topic, partition)
        base = log.end
        log.append(parts(batch))
        return base

    def write_in(self, transactional_id: str, place: TopicPartition, batch: bytes) -> None:
        """Write a batch in a transaction of `target`."""
        self.target.add(transactional_id, identity(batch)[1], self.name(place))
        self.target.write(transactional_id, identity(batch)[1], self.name(place), identity(batch)[2], parts(batch))

    def count(self, api: str) -> int:
        """How many requests of a kind have come."""
        return sum(one.api == api for one in self.asked)

    @property
    def counts(self) -> Counter[str]:
        """Requests by kind."""
        return Counter(one.api for one in self.asked)

    def deliver_markers(self) -> None:
        """All markers on their way arrive."""
        while self.target.markers():
            self.target.deliver_marker(*self.target.markers()[0])

    def move_leader(self, place: TopicPartition, node: int) -> None:
        """Another broker leads a partition from now on, in a new leader epoch."""
        self.ended[place, self.epochs[place]] = self.target.logs[self.name(place)].end
        self.leaders[place], self.epochs[place] = node, self.epochs[place] + 1

    def lose(self, place: TopicPartition, end: int, node: int) -> None:
        """A broker that lacks what lies from `end` on leads a partition from now on."""
        del self.target.logs[self.name(place)].entries[end:]
        self.move_leader(place, node)

    # ---- requests

    def take(self, wire: Connection, frame: bytes) -> None:
        """A frame has come; the answer goes back now, later or never."""
        key, version, _ = _HEAD.unpack_from(frame)
        kind = _REQUESTS[key]
        request = kind.decode(frame, version=version, header=True)
        asked = Asked(
            node=wire.node, api=kind.name.removesuffix("Request"), request=request, topics=self._topics(request)
        )
        self.asked.append(asked)
        if self.gate is not None and (self.gate(asked) or any(one.wire is wire for one in self.pending)):
            self.pending.append(Pending(wire=wire, asked=asked, version=version))
            return
        fault = next((one for one in self.faults if one.meets(asked)), None)
        if fault is not None and fault.held:
            self._held.append(partial(self._serve, wire, asked, version, None))
            if fault.then is not None:
                fault.then()
            return
        self._serve(wire, asked, version, fault)

    def _topics(self, request: Any) -> frozenset[str]:
        by_id = {value: name for name, value in self.ids.items()}
        topics = [
            topic
            for name in ("topics", "topic_data", "v3_and_below_topics")
            for topic in getattr(request, name, None) or ()
        ]
        names = {getattr(topic, field, None) for topic in topics for field in ("name", "topic")}
        names |= {by_id[topic.topic_id] for topic in topics if getattr(topic, "topic_id", None) in by_id}
        return frozenset(name for name in names if name)

    def serve(self, one: Pending, fault: Fault | None = None) -> None:
        """Carry out a request that waits; `fault` says what becomes of it, and of its answer."""
        self.pending = [other for other in self.pending if other is not one]
        self._serve(one.wire, one.asked, one.version, fault)

    def release(self) -> None:
        """Requests that were held arrive, whether or not their senders still wait."""
        held, self._held = self._held, []
        for serve in held:
            serve()

    def answered(self, asked: Asked) -> None:
        """An answer has arrived, or its connection is gone."""
        if asked.api == "Produce":
            self.under_way[asked.node] -= 1

    def _serve(self, wire: Connection, asked: Asked, version: int, fault: Fault | None) -> None:
        if asked.api == "Produce":
            self.under_way[asked.node] += 1
            self.most_under_way = max(self.most_under_way, self.under_way[asked.node])
        answer = self._answer(asked, fault)
        if not self.tarry:
            self.deliver_markers()
        if fault is not None and fault.then is not None:
            fault.then()
        if fault is not None and fault.lost:
            self.answered(asked)
            wire.cut()
            return
        answer.API_VERSION = version
        answer.with_header(correlation_id=asked.request.header.correlation_id)
        wire.deliver(asked, bytearray(answer.encode(header=True)), 0.0 if fault is None else fault.late_s)

    def _answer(self, asked: Asked, fault: Fault | None) -> Any:
        handle = getattr(self, f"_{asked.api}", None)
        assert handle is not None, f"the scripted brokers know no {asked.api}"
        if fault is None or (fault.code is None and not fault.lost) or fault.applied:
            answer = handle(asked)
        else:  # its shape only: nothing of it happens
            kept = copy.deepcopy({name: getattr(self, name) for name in self.STATE})
            answer = handle(asked)
            vars(self).update(kept)
        if fault is not None and fault.code is not None:
            assert _spoil(answer, fault.code), f"{asked.api} has no error code"
        return answer

    def _ApiVersions(self, asked: Asked) -> Any:  # noqa: N802 - the request's name
        kind = metadata.ApiVersionsResponse
        keys = [
            kind.ApiVersion(api_key=key, min_version=_MIN.get(one.name, 0), max_version=one.max_version)
            for key, one in _REQUESTS.items()
            if hasattr(self, f"_{one.name.removesuffix('Request')}")
        ]
        feature = kind.FinalizedFeatureKey(
            name="transaction.version", max_version_level=self.version, min_version_level=0
        )
        return kind(
            error_code=0, api_keys=keys, supported_features=[], finalized_features=[feature], finalized_features_epoch=1
        )

    def _Metadata(self, asked: Asked) -> Any:  # noqa: N802
        kind = metadata.MetadataResponse
        wanted = asked.request.topics
        by_id = {value: name for name, value in self.ids.items()}
        known = {} if asked.node in self.unaware else self.ids
        names = list(known) if wanted is None else [one.name or by_id.get(one.topic_id) for one in wanted]
        topics = []
        for name in names:
            if name not in known:
                topics.append(
                    kind.MetadataResponseTopic(
                        name=name, topic_id=uuid.UUID(int=0), error_code=codes.UNKNOWN_TOPIC_OR_PARTITION, partitions=[]
                    )
                )
                continue
            parts = [
                kind.MetadataResponseTopic.MetadataResponsePartition(
                    partition_index=place.partition,
                    leader_id=leader,
                    leader_epoch=self.epochs[place],
                    replica_nodes=list(self.nodes),
                    isr_nodes=list(self.nodes),
                )
                for place, leader in self.leaders.items()
                if place.topic == name
            ]
            topics.append(kind.MetadataResponseTopic(name=name, topic_id=self.ids[name], partitions=parts))
        brokers = [kind.MetadataResponseBroker(node_id=node, host=HOST, port=self.port + node) for node in self.nodes]
        return kind(brokers=brokers, cluster_id=self.alias, controller_id=_CONTROLLER, topics=topics)

    def _FindCoordinator(self, asked: Asked) -> Any:  # noqa: N802
        kind = metadata.FindCoordinatorResponse
        keys = asked.request.coordinator_keys or [asked.request.key]
        found = [
            kind.Coordinator(
                key=key, node_id=(node := self.coordinators.get(key, self.nodes[0])), host=HOST, port=self.port + node
            )
            for key in keys
        ]
        first = found[0]
        return kind(coordinators=found, node_id=first.node_id, host=HOST, port=first.port)

    def _InitProducerId(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.InitProducerIdResponse
        name = request.transactional_id
        if name is None:
            self._producers += 1
            return kind(producer_id=self._producers, producer_epoch=0)
        if self._not_here(asked, name):
            return kind(error_code=codes.NOT_COORDINATOR, producer_id=-1, producer_epoch=-1)
        try:
            if request.producer_id >= 0:
                self.target.leave(name, request.producer_epoch)
                txn = self.target.txns[name]
                return kind(producer_id=txn.producer, producer_epoch=txn.epoch)
            number, epoch = self.target.init_producer(name)
        except BrokerError as error:
            return kind(error_code=_code(error), producer_id=-1, producer_epoch=-1)
        return kind(producer_id=number, producer_epoch=epoch)

    def _unmapped(self, name: str, number: int) -> int:
        """The error code of a producer id that a transactional id does not have."""
        txn = self.target.txns.get(name)
        return 0 if txn is not None and txn.producer == number else codes.INVALID_PRODUCER_ID_MAPPING

    def _AddPartitionsToTxn(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.AddPartitionsToTxnResponse
        name, epoch = request.v3_and_below_transactional_id, request.v3_and_below_producer_epoch
        places = [
            TopicPartition(topic=topic.name, partition=number)
            for topic in request.v3_and_below_topics
            for number in topic.partitions
        ]
        whole = codes.NOT_COORDINATOR if self._not_here(asked, name) else 0
        if not whole and not self.leaders.keys() >= set(places):
            whole = codes.OPERATION_NOT_ATTEMPTED
        whole = whole or self._unmapped(name, request.v3_and_below_producer_id)

        def code(topic: str, partition: int) -> int:
            place = TopicPartition(topic=topic, partition=partition)
            if place not in self.leaders:
                return codes.UNKNOWN_TOPIC_OR_PARTITION
            return whole or _outcome(lambda: self.target.add(name, epoch, self.name(place)))

        part = kind.AddPartitionsToTxnTopicResult.AddPartitionsToTxnPartitionResult
        return kind(
            results_by_topic_v3_and_below=[
                kind.AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        part(partition_index=number, partition_error_code=code(topic.name, number))
                        for number in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
        )

    def _AddOffsetsToTxn(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        name, epoch = request.transactional_id, request.producer_epoch
        code = codes.NOT_COORDINATOR if self._not_here(asked, name) else self._unmapped(name, request.producer_id)
        return producer.AddOffsetsToTxnResponse(
            error_code=code or _outcome(lambda: self.target.add(name, epoch, POSITIONS))
        )

    def _TxnOffsetCommit(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.TxnOffsetCommitResponse
        name, epoch = request.transactional_id, request.producer_epoch
        moved = [
            (place, (part.committed_offset, part.committed_metadata))
            for topic in request.topics
            for part in topic.partitions
            if (place := TopicPartition(topic=topic.name, partition=part.partition_index)) in self.leaders
        ]
        whole = codes.NOT_COORDINATOR if self._not_here(asked, request.group_id) else 0
        whole = whole or self._unmapped(name, request.producer_id)
        if moved and not whole and (request.generation_id >= 0 or request.member_id):  # its groups have no members
            whole = _outcome(lambda: self.target.verify(name, epoch, POSITIONS), codes.INVALID_PRODUCER_EPOCH)
            whole = whole or codes.ILLEGAL_GENERATION
        elif moved:
            whole = whole or _outcome(
                lambda: self.target.write(name, epoch, POSITIONS, None, moved), codes.INVALID_PRODUCER_EPOCH
            )

        def code(topic: str, partition: int) -> int:
            there = TopicPartition(topic=topic, partition=partition) in self.leaders
            return whole if there else codes.UNKNOWN_TOPIC_OR_PARTITION

        topics = kind.TxnOffsetCommitResponseTopic
        return kind(
            topics=[
                topics(
                    name=topic.name,
                    partitions=[
                        topics.TxnOffsetCommitResponsePartition(
                            partition_index=part.partition_index, error_code=code(topic.name, part.partition_index)
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _EndTxn(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.EndTxnResponse
        name = request.transactional_id
        if self._not_here(asked, name):
            return kind(error_code=codes.NOT_COORDINATOR)
        if code := self._unmapped(name, request.producer_id):
            return kind(error_code=code)
        try:
            epoch = self.target.end_txn(name, request.producer_epoch, committed=request.committed)
        except BrokerError as error:
            return kind(error_code=_code(error))
        return kind(producer_id=self.target.txns[name].producer, producer_epoch=epoch)

    def _DescribeTransactions(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeTransactionsResponse
        found = []
        for name in asked.request.transactional_ids:
            txn = self.target.txns.get(name)
            code = 0 if txn is not None else _TRANSACTIONAL_ID_NOT_FOUND
            found.append(
                kind.TransactionState(
                    transactional_id=name,
                    error_code=codes.NOT_COORDINATOR if self._not_here(asked, name) else code,
                    transaction_state="" if txn is None else _state(txn),
                    producer_id=0 if txn is None else txn.producer,
                    producer_epoch=0 if txn is None else txn.epoch,
                    topics=[],
                )
            )
        return kind(transaction_states=found)

    def _Produce(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.ProduceResponse
        by_id = {value: name for name, value in self.ids.items()}
        topics = []
        for topic in request.topic_data:
            name = topic.name or by_id.get(topic.topic_id, "")
            parts = []
            for part in topic.partition_data:
                code, base = codes.MESSAGE_TOO_LARGE, -1
                if not name:
                    code = codes.UNKNOWN_TOPIC_ID
                elif len(part.records) <= int(self.settings.get("max.message.bytes", len(part.records))):
                    code, base = self._write(
                        asked.node,
                        request.transactional_id,
                        TopicPartition(topic=name, partition=part.index),
                        bytes(part.records),
                    )
                parts.append(
                    kind.TopicProduceResponse.PartitionProduceResponse(
                        index=part.index, error_code=code, base_offset=base
                    )
                )
            topics.append(
                kind.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=parts)
            )
        return kind(responses=topics)

    def _write(self, node: int, transactional_id: str | None, place: TopicPartition, batch: bytes) -> tuple[int, int]:
        number, epoch, sequence = identity(batch)
        code = self._not_led(node, place)
        if not code and transactional_id is not None:
            code = self._unmapped(transactional_id, number)
        elif not code and next(batches(batch)).base_offset:
            code = codes.INVALID_RECORD
        if code:
            return code, -1
        name = self.name(place)
        try:
            if transactional_id is not None:
                return 0, self.target.write(transactional_id, epoch, name, sequence, parts(batch))
            if number < 0:
                return 0, self.append(place.topic, batch, place.partition)
            return 0, self.target.logs[name].write(number, epoch, sequence, parts(batch), None)
        except BrokerError as error:
            return _code(error, codes.INVALID_PRODUCER_EPOCH), -1

    def expire(self) -> None:
        """Forget the state of all producers without open transactions, as after `producer.id.expiration.ms`."""
        for log in self.target.logs.values():
            log.producers = {number: state for number, state in log.producers.items() if state.open}

    def _Fetch(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = consumer.FetchResponse
        by_id = {value: name for name, value in self.ids.items()}
        topics = []
        for topic in request.topics:
            name = topic.topic or by_id.get(topic.topic_id, "")
            parts = [self._fetched(asked.node, request, name, part) for part in topic.partitions]
            topics.append(kind.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=parts))
        return kind(responses=topics)

    def _fetched(self, node: int, request: Any, topic: str, part: Any) -> Any:
        kind = consumer.FetchResponse.FetchableTopicResponse.PartitionData
        place = TopicPartition(topic=topic, partition=part.partition)
        if place not in self.leaders:
            code = codes.UNKNOWN_TOPIC_OR_PARTITION if topic else codes.UNKNOWN_TOPIC_ID
            return kind(partition_index=part.partition, error_code=code, high_watermark=-1, records=None)
        log = self.log(topic, part.partition)
        stable = log.stable_end()
        code = 0
        if self.leaders[place] != node:
            code = codes.NOT_LEADER_OR_FOLLOWER
        elif not self.begins.get(place, 0) <= part.fetch_offset <= log.end:
            code = codes.OFFSET_OUT_OF_RANGE
        end = stable if request.isolation_level else log.end
        found = b"" if code else records(log, part.fetch_offset, end, part.partition_max_bytes)
        return kind(
            partition_index=part.partition,
            error_code=code,
            high_watermark=-1 if code else log.end,
            last_stable_offset=-1 if code else stable,
            log_start_offset=-1 if code else self.begins.get(place, 0),
            aborted_transactions=aborted(log, part.fetch_offset, end) if request.isolation_level and not code else None,
            records=found,
        )

    def _ListOffsets(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = consumer.ListOffsetsResponse
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                place = TopicPartition(topic=topic.name, partition=part.partition_index)
                assert part.timestamp < 0, "the scripted brokers know no times"
                code, offset = self._not_led(asked.node, place), -1
                if not code:
                    log = self.log(place.topic, place.partition)
                    end = log.stable_end() if request.isolation_level else log.end
                    if request.replica_id != LEADER_LOG:
                        end = min(end, log.end - self.behind.get(place, 0))
                    offset = end if part.timestamp == -1 else self.begins.get(place, 0)
                parts.append(
                    kind.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
                        partition_index=place.partition, error_code=code, offset=offset, timestamp=-1
                    )
                )
            topics.append(kind.ListOffsetsTopicResponse(name=topic.name, partitions=parts))
        return kind(topics=topics)

    def _DeleteRecords(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DeleteRecordsResponse
        topic_kind = kind.DeleteRecordsTopicResult
        topics = []
        for topic in asked.request.topics:
            found = []
            for part in topic.partitions:
                place = TopicPartition(topic=topic.name, partition=part.partition_index)
                code = 0 if self.leaders.get(place) == asked.node else codes.NOT_LEADER_OR_FOLLOWER
                if not code and part.offset > self.log(topic.name, part.partition_index).end:
                    code = codes.OFFSET_OUT_OF_RANGE
                if not code:
                    self.begins[place] = max(self.begins.get(place, 0), part.offset)
                found.append(
                    topic_kind.DeleteRecordsPartitionResult(
                        partition_index=part.partition_index, low_watermark=self.begins.get(place, 0), error_code=code
                    )
                )
            topics.append(topic_kind(name=topic.name, partitions=found))
        return kind(topics=topics)

    def _OffsetForLeaderEpoch(self, asked: Asked) -> Any:  # noqa: N802
        kind = consumer.OffsetForLeaderEpochResponse
        part = kind.OffsetForLeaderTopicResult.EpochEndOffset
        return kind(
            topics=[
                kind.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        part(
                            partition=one.partition,
                            leader_epoch=one.leader_epoch,
                            end_offset=self.ended.get(
                                (TopicPartition(topic=topic.topic, partition=one.partition), one.leader_epoch),
                                self.log(topic.topic, one.partition).end,
                            ),
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in asked.request.topics
            ]
        )

    def _DescribeConfigs(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeConfigsResponse
        entry = kind.DescribeConfigsResult.DescribeConfigsResourceResult
        return kind(
            results=[
                kind.DescribeConfigsResult(
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                    configs=[
                        entry(name=name, value=value, read_only=False, config_source=1, is_sensitive=False)
                        for name, value in self.settings.items()
                        if not one.configuration_keys or name in one.configuration_keys
                    ],
                )
                for one in asked.request.resources
            ]
        )

    def _not_led(self, node: int, place: TopicPartition) -> int:
        """The error code of a broker that does not lead a partition."""
        if place not in self.leaders:
            return codes.UNKNOWN_TOPIC_OR_PARTITION
        return 0 if self.leaders[place] == node else codes.NOT_LEADER_OR_FOLLOWER

    def _not_here(self, asked: Asked, key: str) -> bool:
        return self.coordinators.get(key, self.nodes[0]) != asked.node


def _code(error: BrokerError, fenced: int = codes.PRODUCER_FENCED) -> int:
    """What the brokers answer. `fenced`: coordinators and partitions have each a code of their own for it."""
    found = {
        Fenced: fenced,
        Busy: codes.CONCURRENT_TRANSACTIONS,
        OutOfOrder: codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        NotAdded: _TRANSACTION_ABORTABLE,
        Unknown: codes.INVALID_PRODUCER_ID_MAPPING,
    }
    return found.get(type(error), codes.INVALID_TXN_STATE)


def _outcome(act: Callable[[], object], fenced: int = codes.PRODUCER_FENCED) -> int:
    try:
        act()
    except BrokerError as error:
        return _code(error, fenced)
    return 0


def _state(txn: Txn) -> str:
    """The name of a transaction's state."""
    if txn.closing is not None:
        return "PrepareCommit" if txn.closing else "PrepareAbort"
    if txn.members:
        return "Ongoing"
    return {None: "Empty", True: "CompleteCommit", False: "CompleteAbort"}[txn.closed]


_CODES = {"error_code", "partition_error_code"}
_NO_ANSWER = {"committed_offset", "base_offset", "producer_id", "producer_epoch", "offset", "end_offset", "node_id"}
"""Fields that brokers answer with -1 beside an error."""


def _spoil(answer: Any, code: int) -> bool:
    """Put an error code at the innermost places that have one; whether there is one."""
    fields = answer._struct.fields
    lists = [value for name in fields if isinstance(value := getattr(answer, name), list)]
    inner = [_spoil(one, code) for value in lists for one in value if isinstance(one, DataContainer)]
    if any(inner):
        return True
    for name in _CODES & fields.keys():
        setattr(answer, name, code)
        for other in _NO_ANSWER & fields.keys():
            setattr(answer, other, -1)
        if "records" in fields:
            answer.records = b""
        return True
    return False


_MESSAGES: list[Any] = [
    one
    for module in (producer, consumer, metadata, admin)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, ApiMessage) and one is not ApiMessage
]
_REQUESTS: Mapping[int, Any] = {one.API_KEY: one for one in _MESSAGES if one.type == "request"}
_MIN = {"ProduceRequest": 3, "FetchRequest": 4, "ListOffsetsRequest": 1, "OffsetForLeaderEpochRequest": 2}

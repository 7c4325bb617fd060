"""Requests one by one, to the leader of a partition or to a coordinator: what a client may send, and its answer."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from crc32c import crc32c
from kafka.protocol.admin import DeleteRecordsRequest, DescribeProducersRequest, DescribeTransactionsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

from ferry.clock import wall_ms
from ferry.kafka.connect.cluster import GROUP, TRANSACTION, Cluster
from ferry.kafka.fetch.requests import FetchedPartition, fetch_request, fetched
from ferry.model import Codec, Compression, Record, TopicPartition
from ferry.wire.codecs import compressed
from ferry.wire.records import ProducerIdentity, build_batch
from tests.harness import awaited

OFFSET_NOT_AVAILABLE = 78
NOT_ENOUGH_REPLICAS = 19
CONCURRENT_TRANSACTIONS = 51
LOADING = {14, 15, 16}
"""A coordinator that is not ready yet."""
OF_VERSION_1 = 4
"""The last version of EndTxn and TxnOffsetCommit that is of transactions of version 1."""
CHECKED_AT = 21
"""Where the part of a batch begins that its CRC-32C covers."""


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer id and its epoch."""

    id: int
    epoch: int


class Raw:
    """One topic of a cluster."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic

    def place(self, partition: int) -> TopicPartition:
        """One partition of the topic."""
        return TopicPartition(topic=self.topic, partition=partition)

    async def open(self) -> Raw:
        """Learn the leaders; wait until a broker knows the topic, and each partition has one."""

        async def led() -> bool:
            await self.cluster.refresh([self.topic])
            found = self.cluster.topics.get(self.topic)
            return found is not None and all(part.leader >= 0 for part in found.partitions.values())

        await awaited(self.cluster.loop, led, f"leaders of {self.topic}")
        return self

    async def leader(self, partition: int = 0) -> int:
        """The broker that leads a partition, by the metadata of now."""
        await self.open()
        return self.cluster.leader(self.place(partition))

    async def init(self, transactional_id: str | None = None) -> Producer:
        """InitProducerId; of a transactional id at its coordinator."""
        code, who = await self.initialised(transactional_id)
        assert code == 0, code
        return who

    async def initialised(
        self, transactional_id: str | None, own: Producer | None = None, *, once: bool = False
    ) -> tuple[int, Producer]:
        """InitProducerId, with the identity that the client has if `own` names one; the error code and the answer's.

        `once`: not again while a transaction before it is ending.
        """
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=-1 if own is None else own.id,
            producer_epoch=-1 if own is None else own.epoch,
        )

        async def act() -> tuple[int, Producer]:
            node = None if transactional_id is None else await self.cluster.coordinator(TRANSACTION, transactional_id)
            answer = await self.cluster.ask(request, node)
            return answer.error_code, Producer(answer.producer_id, answer.producer_epoch)

        codes = LOADING if once else {*LOADING, CONCURRENT_TRANSACTIONS}
        outcome: tuple[int, Producer] = await self._again(act, lambda found: found[0], codes)
        return outcome

    async def _again(
        self, act: Callable[[], Awaitable[Any]], code: Callable[[Any], int], codes: Collection[int]
    ) -> Any:
        """Ask again as long as the answer has one of these codes."""
        found: list[Any] = []

        async def answered() -> bool:
            found[:] = [await act()]
            return code(found[0]) not in codes

        await awaited(self.cluster.loop, answered, f"an answer that is none of {sorted(codes)}")
        return found[0]

    async def produce(
        self,
        who: Producer,
        sequence: int,
        count: int,
        *,
        partition: int = 0,
        timestamp: int | None = None,
        acks: int = -1,
        transactional_id: str | None = None,
        batch: bytes | None = None,
        node: int | None = None,
        version: int = 1,
        topic_id: UUID | None = None,
        again: Collection[int] = (NOT_ENOUGH_REPLICAS,),
    ) -> tuple[int, int]:
        """Send one batch; the error code and the base offset of the answer.

        `version` 2: a batch joins its transaction by itself, and the topic is meant by its id where brokers know ids.
        """
        identity = ProducerIdentity(
            producer_id=who.id,
            producer_epoch=who.epoch,
            sequence=sequence,
            transactional=transactional_id is not None,
        )
        records = [Record(key=b"k", value=b"%d" % (sequence + index)) for index in range(count)]
        built = batch or build_batch(records, wall_ms() if timestamp is None else timestamp, identity)
        part = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=built)
        data = ProduceRequest.TopicProduceData(
            name=self.topic, topic_id=topic_id or self.cluster.topics[self.topic].topic_id, partition_data=[part]
        )
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=30_000,
            topic_data=[data],
            max_version=11 if version == 1 else None,
        )
        to = self.cluster.leader(self.place(partition)) if node is None else node

        async def act() -> tuple[int, int]:
            found = (await self.cluster.ask(request, to)).responses[0].partition_responses[0]
            return found.error_code, found.base_offset

        outcome: tuple[int, int] = await self._again(act, lambda found: found[0], again)
        return outcome

    async def mark(
        self,
        *markers: Producer,
        partitions: Sequence[int] = (0,),
        commit: bool = False,
        coordinator: int = 0,
        version: int | None = None,
        node: int | None = None,
    ) -> list[int]:
        """WriteTxnMarkers: one marker for each producer and partition; the error codes of the answer."""
        one = WriteTxnMarkersRequest.WritableTxnMarker
        request = WriteTxnMarkersRequest(
            markers=[
                one(
                    producer_id=who.id,
                    producer_epoch=who.epoch,
                    transaction_result=commit,
                    topics=[one.WritableTxnMarkerTopic(name=self.topic, partition_indexes=list(partitions))],
                    coordinator_epoch=coordinator,
                    transaction_version=0 if version is None else version,
                )
                for who in markers
            ],
            max_version=1 if version is None else None,
        )
        answer = await self.cluster.ask(
            request, self.cluster.leader(self.place(partitions[0])) if node is None else node
        )
        return [part.error_code for found in answer.markers for each in found.topics for part in each.partitions]

    async def end(self, *, replica: int = -1, isolation: int = 0, at: int = -1, partition: int = 0) -> int:
        """ListOffsets, the latest (-1) or earliest (-2) offset, as a consumer or as a replica asks."""
        code, offset = await self.listed(replica=replica, isolation=isolation, at=at, partition=partition)
        assert code == 0, code
        return offset

    async def listed(
        self, *, replica: int = -1, isolation: int = 0, at: int = -1, partition: int = 0, node: int | None = None
    ) -> tuple[int, int]:
        """ListOffsets; the error code and the offset of the answer."""
        topic = ListOffsetsRequest.ListOffsetsTopic
        part = topic.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=at)
        request = ListOffsetsRequest(
            replica_id=replica,
            isolation_level=isolation,
            topics=[topic(name=self.topic, partitions=[part])],
            timeout_ms=30_000,
        )

        async def act() -> tuple[int, int]:
            to = self.cluster.leader(self.place(partition)) if node is None else node
            found = (await self.cluster.ask(request, to)).topics[0].partitions[0]
            return found.error_code, found.offset

        # A new leader says so at first (KIP-207).
        outcome: tuple[int, int] = await self._again(act, lambda found: found[0], {OFFSET_NOT_AVAILABLE})
        return outcome

    async def fetched(
        self, at: int, *, isolation: int = 0, partition: int = 0, topic_id: UUID | None = None, node: int | None = None
    ) -> FetchedPartition:
        """Fetch from an offset, without waiting for records; the partition's part of the answer."""
        place = self.place(partition)
        request = fetch_request(
            self.cluster,
            {place: at},
            topic_ids=None if topic_id is None else {self.topic: topic_id},
            isolation=isolation,
            max_bytes=1 << 20,
            partition_bytes=1 << 20,
            max_wait_ms=0,
        )
        answer = await self.cluster.ask(request, self.cluster.leader(place) if node is None else node)
        [found] = fetched(request, answer)
        return found

    async def state(self, who: Producer, node: int | None = None) -> Any:
        """The producer's state at partition 0 by DescribeProducers; None where the leader has none."""
        request = DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name=self.topic, partition_indexes=[0])]
        )
        answer = await self.cluster.ask(request, self.cluster.leader(self.place(0)) if node is None else node)
        part = answer.topics[0].partitions[0]
        assert part.error_code == 0, part
        return next((one for one in part.active_producers if one.producer_id == who.id), None)

    async def add(self, name: str, who: Producer, partitions: Sequence[int] = (0,)) -> None:
        """AddPartitionsToTxn, version 3; again while a transaction before it is ending."""
        found = await self.added(name, who, partitions)
        assert set(found) == {0}, found

    async def added(self, name: str, who: Producer, partitions: Sequence[int] = (0,)) -> list[int]:
        """AddPartitionsToTxn, version 3; the code of each partition."""
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = AddPartitionsToTxnRequest(
            min_version=3,
            max_version=3,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=who.id,
            v3_and_below_producer_epoch=who.epoch,
            v3_and_below_topics=[topic(name=self.topic, partitions=list(partitions))],
        )

        async def act() -> list[int]:
            answer = await self.cluster.ask(request, await self.cluster.coordinator(TRANSACTION, name))
            found = answer.results_by_topic_v3_and_below[0].results_by_partition
            return [one.partition_error_code for one in sorted(found, key=lambda one: int(one.partition_index))]

        outcome: list[int] = await self._again(act, lambda found: found[0], {*LOADING, CONCURRENT_TRANSACTIONS})
        return outcome

    async def group_added(self, name: str, who: Producer, group: str) -> int:
        """AddOffsetsToTxn, version 3; the error code."""
        request = AddOffsetsToTxnRequest(
            min_version=3,
            max_version=3,
            transactional_id=name,
            producer_id=who.id,
            producer_epoch=who.epoch,
            group_id=group,
        )

        async def act() -> int:
            answer = await self.cluster.ask(request, await self.cluster.coordinator(TRANSACTION, name))
            return int(answer.error_code)

        return int(await self._again(act, int, {*LOADING, CONCURRENT_TRANSACTIONS}))

    async def position(
        self, name: str, who: Producer, group: str, offset: int, *, version: int, generation: int = -1, member: str = ""
    ) -> int:
        """TxnOffsetCommit of one offset of partition 0; the error code."""
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        part = topic.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=group,
            producer_id=who.id,
            producer_epoch=who.epoch,
            generation_id=generation,
            member_id=member,
            group_instance_id=None,
            topics=[topic(name=self.topic, partitions=[part])],
            max_version=OF_VERSION_1 if version == 1 else None,
        )

        async def act() -> int:
            answer = await self.cluster.ask(request, await self.cluster.coordinator(GROUP, group))
            return int(answer.topics[0].partitions[0].error_code)

        return int(await self._again(act, int, {*LOADING, CONCURRENT_TRANSACTIONS}))

    async def abort(self, name: str, who: Producer, version: int) -> Producer:
        """EndTxn of transactions of a version; the producer that begins the next one."""
        code, found = await self.ended(name, who, version=version)
        assert code == 0, code
        return found

    async def ended(self, name: str, who: Producer, *, version: int, commit: bool = False) -> tuple[int, Producer]:
        """EndTxn of transactions of a version; the error code, and the producer that begins the next one."""
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=who.id,
            producer_epoch=who.epoch,
            committed=commit,
            max_version=OF_VERSION_1 if version == 1 else None,
        )

        async def act() -> tuple[int, Producer]:
            answer = await self.cluster.ask(request, await self.cluster.coordinator(TRANSACTION, name))
            found = who if version == 1 else Producer(answer.producer_id, answer.producer_epoch)
            return answer.error_code, found

        outcome: tuple[int, Producer] = await self._again(
            act, lambda found: found[0], {*LOADING, CONCURRENT_TRANSACTIONS}
        )
        return outcome

    async def settled(self, name: str) -> tuple[int, str, Producer]:
        """Wait until no transaction of that id is ending; DescribeTransactions: error code, state and producer."""
        request = DescribeTransactionsRequest(transactional_ids=[name])

        async def act() -> tuple[int, str, Producer]:
            answer = await self.cluster.ask(request, await self.cluster.coordinator(TRANSACTION, name))
            [found] = answer.transaction_states
            return found.error_code, found.transaction_state, Producer(found.producer_id, found.producer_epoch)

        outcome: tuple[int, str, Producer] = await self._again(
            act, lambda found: found[1].startswith("Prepare"), {True}
        )
        return outcome

    async def delete(self, before: int) -> int:
        """DeleteRecords at partition 0; the new log start offset."""
        topic = DeleteRecordsRequest.DeleteRecordsTopic
        part = topic.DeleteRecordsPartition(partition_index=0, offset=before)
        request = DeleteRecordsRequest(topics=[topic(name=self.topic, partitions=[part])], timeout_ms=30_000)
        answer = await self.cluster.ask(request, self.cluster.leader(self.place(0)))
        found = answer.topics[0].partitions[0]
        assert found.error_code == 0, found
        return int(found.low_watermark)

    async def end_becomes(self, offset: int) -> None:
        """Wait for a marker of the coordinator."""

        async def there() -> bool:
            return await self.end() >= offset

        await awaited(self.cluster.loop, there, f"offset {offset}")
        assert await self.end() == offset


def empty_batch(who: Producer, sequence: int, payload: bytes, count: int) -> bytes:
    """A transactional batch of empty records, whose compressed payload is the same for each."""
    stamp = wall_ms()
    body = struct.pack(">hiqqqhii", 0x10 | Codec.ZSTD, count - 1, stamp, stamp, who.id, who.epoch, sequence, count)
    checked = body + payload
    return struct.pack(">qiibI", 0, CHECKED_AT - 12 + len(checked), -1, 2, crc32c(checked)) + checked


def empty_payload(count: int) -> bytes:
    """So many records without key and value, compressed by zstd."""
    out = bytearray()
    for index in range(count):
        delta = bytearray()
        number = index << 1
        while number > 0x7F:
            delta.append(0x80 | number & 0x7F)
            number >>= 7
        delta.append(number)
        body = b"\0\0" + bytes(delta) + b"\1\1\0"
        out += bytes([len(body) << 1]) + body
    return bytes(compressed(Compression(codec=Codec.ZSTD), bytes(out)))

"""Append records to a topic of one partition, outside any transaction: the ledger, and MirrorMaker 2's topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from ferry.clock import skew, wall_ms
from ferry.errors import Refused, Retryable
from ferry.kafka.admin.topics import NotPermitted
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.model import Record, TopicPartition
from ferry.wire.records import ProducerIdentity, build_batch
from ferry.words import count_of

BATCH_BYTES = 700_000
"""Uncompressed bytes of a batch, which must stay below the default message.max.bytes."""


class Appender:
    """Appends to one partition that the cluster's metadata holds. Belongs to the cluster's event loop."""

    def __init__(self, cluster: Cluster, place: TopicPartition, what: str) -> None:
        """`what` names the kind of topic in messages: `ledger`, `topic`."""
        self._cluster = cluster
        self._place = place
        self._what = f"{what} {place.topic}"
        self.skew_ms: int | None = None
        """Milliseconds by which this machine's clock is ahead of the leader's, as the last `append` showed.

        None: nothing was appended, or the topic's records have the times of their writers.
        """

    async def append(self, records: Sequence[Record]) -> int:
        """Write records, acks from all in-sync replicas; return the offset of the last one, -1 for none.

        Idempotent: a repeat after an unknown outcome carries the same sequence, so the broker drops the duplicate.
        Raises Refused without permission and for a batch that is too large for the topic, Unreachable when the leader
        keeps answering with errors.
        """
        offsets = await self.append_each(records)
        return offsets[-1] if offsets else -1

    async def append_each(self, records: Sequence[Record], *, batch_bytes: int = BATCH_BYTES) -> list[int]:
        """Write records in batches of about `batch_bytes` before compression; return the offset of each record.

        Acks come from all in-sync replicas, and a repeat duplicates nothing. Raises Refused without permission and for
        a batch that is too large for the topic, Unreachable when the leader keeps answering with errors.
        """
        offsets: list[int] = []
        for part in below_limit(records, batch_bytes):
            last = await self._append_batch(part)
            offsets += range(last + 1 - len(part), last + 1)
        return offsets

    async def _append_batch(self, records: Sequence[Record]) -> int:
        # A fresh identity per batch keeps sequences trivial; a topic gets a handful of batches in a run.
        identity = await self._cluster.retrying(self._identify)
        batch = build_batch(records, wall_ms(), identity)

        async def send() -> int:
            try:
                leader = self._cluster.leader(self._place)  # first: a topic that was deleted has no id for the request
                request = self._request(batch)
                sent_ms = wall_ms()
                answer = await self._cluster.ask(request, leader)
            except Retryable:
                await self.look_again()
                raise
            answered_ms = wall_ms()
            outcome = answer.responses[0].partition_responses[0]
            await self.check_written(outcome.error_code, records, batch)
            if outcome.log_append_time_ms >= 0:
                self.skew_ms = skew(sent_ms, outcome.log_append_time_ms, answered_ms)
            return int(outcome.base_offset) + len(records) - 1

        return await self._cluster.retrying(send)

    def _request(self, batch: bytes) -> Any:
        topic = ProduceRequest.TopicProduceData
        data = topic(
            name=self._place.topic,
            topic_id=self._cluster.topics[self._place.topic].topic_id,
            partition_data=[topic.PartitionProduceData(index=self._place.partition, records=batch)],
        )
        return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[data])

    async def look_again(self) -> None:
        """Ask for the topic's metadata after an error. Raises Retryable if the topic is gone."""
        await self._cluster.refresh([self._place.topic])
        if self._place.topic not in self._cluster.topics:  # one that is only hidden from this login stays there
            why = codes.advised(codes.UNKNOWN_TOPIC_OR_PARTITION)
            raise Retryable(f"{self._what} on cluster {self._cluster.alias}: {why}")

    async def _identify(self) -> ProducerIdentity:
        answer = await self._cluster.ask(
            InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
            )
        )
        if answer.error_code in codes.UNAUTHORIZED:
            raise NotPermitted(
                f"cluster {self._cluster.alias} gives this principal no producer id to write {self._what} with "
                f"({codes.describe(answer.error_code)}): grant WRITE on that topic"
            )
        if answer.error_code:
            raise Retryable(f"producer id from cluster {self._cluster.alias}: {codes.describe(answer.error_code)}")
        return ProducerIdentity(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch, sequence=0)

    async def check_written(self, code: int, records: Sequence[Record] = (), batch: bytes = b"") -> None:
        """Raise the error that an answer to a produce request has for a partition: Refused, or Retryable.

        `batch` is what was sent, and `records` are in it.
        """
        if code == codes.NONE:
            return
        if code == codes.MESSAGE_TOO_LARGE and records:
            what = f"{count_of(len(records), 'record')}, the first with key"
            raise Refused(
                f"{self._what} on cluster {self._cluster.alias} takes no batch of {len(batch)} bytes ({what} "
                f"{records[0].key[:80].decode(errors='replace')}): raise max.message.bytes of that topic, then do the "
                "same again"
            )
        where = f"{self._what} on cluster {self._cluster.alias}: {codes.advised(code)}"
        if code in codes.UNAUTHORIZED:
            raise NotPermitted(f"{where}: grant WRITE on it")
        if code in codes.LEADER_MOVED:
            await self.look_again()
        raise Retryable(where)


def below_limit(records: Sequence[Record], limit: int = BATCH_BYTES) -> list[Sequence[Record]]:
    """Return the records in parts, each of which fits into a batch."""
    parts: list[list[Record]] = []
    filled = limit
    for record in records:
        size = len(record.key) + len(record.value or b"") + 64
        if filled + size > limit:
            parts.append([])
            filled = 0
        parts[-1].append(record)
        filled += size
    return list(parts)

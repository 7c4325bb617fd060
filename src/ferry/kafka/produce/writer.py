"""A transactional producer session: one slot's writer on the target.

The writer supports transactions of version 2 and of version 1; the broker's finalized feature decides. In version 2
(KIP-890), partitions join by producing, and every EndTxn returns a new epoch. In version 1, the partitions and the
group are added explicitly. `EndTxn(abort)` does not exist here: `initialise` is the abort. Its markers carry a higher
epoch, so a late batch is rejected. An abort with the same epoch would let a late batch into the next transaction (seen
on 3.9.1 and 4.3.0).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kafka.future import Future
from kafka.protocol.admin import DescribeTransactionsRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from ferry.errors import Fenced, FerryError, OutcomeUnknown, Refused, Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import GROUP, TRANSACTION, Cluster
from ferry.kafka.connect.frames import produce_request
from ferry.model import TopicPartition
from ferry.wire.batch import Batch, restamped

log = logging.getLogger(__name__)

POSITIONS_PER_REQUEST = 1000
LEAVE_SECONDS = 5.0
"""How long a leaving writer tries to end its transaction; after that, the broker's timeout ends it."""

_ONGOING = "Ongoing"
_PAUSE_S = 0.005

_GRANTS = {
    codes.TOPIC_AUTHORIZATION_FAILED: "grant READ and WRITE on the topic",
    codes.GROUP_AUTHORIZATION_FAILED: "grant READ on the group",
    codes.CLUSTER_AUTHORIZATION_FAILED: "grant IDEMPOTENT_WRITE on the cluster, which brokers before 2.8 want",
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant WRITE on the transactional id",
}
SEQUENCE_MASK = 0x7FFFFFFF


class Writer:
    """One transactional id; everything sent between `initialise` and `commit` belongs to one transaction."""

    def __init__(self, cluster: Cluster, transactional_id: str, timeout_ms: int) -> None:
        """`timeout_ms` is the time after which the broker aborts an open transaction."""
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id = -1
        self.producer_epoch = -1
        self._joined: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._sequences: dict[TopicPartition, int] = {}
        self._began = time.monotonic()
        self._throttled_before = cluster.throttled_s

    @property
    def joins_by_producing(self) -> bool:
        """Whether transactions are of version 2."""
        return self.cluster.transaction_version >= 2

    async def initialise(self) -> None:
        """Fence every earlier writer of this transactional id, end its open transaction, and begin with a fresh state.

        Retries while the coordinator is loading or still completing the earlier transaction. Raises Refused when not
        permitted, Unreachable when the deadline passes.
        """

        async def action() -> Any:
            answer = await self._at_coordinator(
                InitProducerIdRequest(
                    transactional_id=self.transactional_id,
                    transaction_timeout_ms=self.timeout_ms,
                    producer_id=-1,
                    producer_epoch=-1,
                )
            )
            if answer.error_code == codes.INVALID_TRANSACTION_TIMEOUT:
                raise Refused(
                    f"ferry.transaction.timeout.ms {self.timeout_ms} is above transaction.max.timeout.ms of cluster "
                    f"{self.cluster.alias}: lower it"
                )
            self.raise_for(answer.error_code, "InitProducerId", may_be_fenced=False)
            return answer

        answer = await self.cluster.retrying(action)
        self._renew(answer.producer_id, answer.producer_epoch)

    async def leave(self) -> None:
        """End the own open transaction, if it is still the own one, so that no reader waits for its timeout.

        Best effort, for LEAVE_SECONDS at most. Nothing is raised, because an error made the writer leave.

        The coordinator is asked first (DescribeTransactions, KIP-664). It checks an epoch given to InitProducerId only
        when no transaction is open (TransactionCoordinator, prepareInitProducerIdTransit). So a fenced writer that did
        not ask would end its successor's transaction.
        """
        if self.producer_id < 0:
            return
        try:
            await self.cluster.within(LEAVE_SECONDS, partial(self.cluster.retrying, self._end_own))
        except Exception as error:
            log.warning("the transaction of %s is left to its timeout: %s", self.transactional_id, error)
        self.producer_id = self.producer_epoch = -1

    async def _end_own(self) -> None:
        answer = await self._at_coordinator(DescribeTransactionsRequest(transactional_ids=[self.transactional_id]))
        found = answer.transaction_states[0]
        self._check_coordinator(found.error_code, "DescribeTransactions")
        own = (self.producer_id, self.producer_epoch)
        if found.transaction_state != _ONGOING or (found.producer_id, found.producer_epoch) != own:
            return
        answer = await self._at_coordinator(
            InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self.timeout_ms,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
            )
        )
        # any other answer means that it is, or will be, ended
        self._check_coordinator(answer.error_code, "InitProducerId")

    def _check_coordinator(self, code: int, what: str) -> None:
        if code in codes.COORDINATOR_MOVED:
            self.cluster.forget_coordinator(TRANSACTION, self.transactional_id)
            raise Retryable(f"{what} for {self.transactional_id}: {codes.describe(code)}")

    async def join(self, places: Iterable[TopicPartition]) -> None:
        """Version 1: add the partitions to the transaction before the first batch for them. Version 2: only note them.

        Raises PartitionsRefused when some of them cannot be in it: then none has joined.
        """
        new = [place for place in places if place not in self._joined]
        if not new:
            return
        if not self._joined:
            self._began = time.monotonic()
            self._throttled_before = self.cluster.throttled_s
        if not self.joins_by_producing:
            await self.patiently(lambda: self._add_partitions(new))
        self._joined.update(new)

    async def _add_partitions(self, places: Sequence[TopicPartition]) -> None:
        by_topic: dict[str, list[int]] = {}
        for place in places:
            by_topic.setdefault(place.topic, []).append(place.partition)
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        answer = await self._at_coordinator(
            AddPartitionsToTxnRequest(
                min_version=3,  # since Kafka 2.8; newer versions are the brokers' own
                max_version=3,
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=[topic(name=name, partitions=parts) for name, parts in by_topic.items()],
            )
        )
        self._raise_for_any(
            {
                TopicPartition(topic=found.name, partition=part.partition_index): part.partition_error_code
                for found in answer.results_by_topic_v3_and_below
                for part in found.results_by_partition
            },
            lambda place: f"adding {place} to the transaction",
        )

    def next_sequence(self, place: TopicPartition, records: int) -> int:
        """Return the sequence of the next batch for a partition, and advance it by `records` for the batch after."""
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = (sequence + records) & SEQUENCE_MASK
        return sequence

    def stamped(self, place: TopicPartition, batch: Batch) -> memoryview:
        """Return the next batch for a partition as this producer writes it, in the transaction."""
        sequence = self.next_sequence(place, batch.record_count)
        return restamped(batch, self.producer_id, self.producer_epoch, sequence)

    async def produce(self, node: int, batches: Mapping[TopicPartition, bytes | memoryview]) -> Future:
        """Send one batch per partition to their leader; return the future answer, a ProduceResponse."""
        version = None if self.joins_by_producing else 11
        return await self.cluster.submit(self.produced(self.transactional_id, batches, version), node)

    def produced(
        self,
        transactional_id: str | None,
        batches: Mapping[TopicPartition, bytes | memoryview],
        max_version: int | None,
    ) -> Any:
        """Return the request that writes one batch per partition; None as `transactional_id`: in no transaction.

        Raises Retryable for a topic that is gone.
        """
        by_topic: dict[str, list[tuple[int, bytes | memoryview]]] = {}
        for place, records in batches.items():
            by_topic.setdefault(place.topic, []).append((place.partition, records))
        topics = self.cluster.topics
        gone = next((name for name in by_topic if name not in topics), None)
        if gone is not None:
            raise Retryable(
                f"topic {gone} on cluster {self.cluster.alias}: {codes.advised(codes.UNKNOWN_TOPIC_OR_PARTITION)}"
            )
        return produce_request(
            transactional_id,
            [(name, topics[name].topic_id, parts) for name, parts in by_topic.items()],
            max_version=max_version,
        )

    async def send_positions(self, group: str, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Commit `(offset, metadata)` per partition to a group inside this transaction (TxnOffsetCommit).

        Raises PartitionsRefused when some of them cannot have one.
        """
        if not self.joins_by_producing and group not in self._groups:
            await self.patiently(lambda: self._add_group(group))
        self._groups.add(group)
        places = sorted(positions)
        for at in range(0, len(places), POSITIONS_PER_REQUEST):
            part = places[at : at + POSITIONS_PER_REQUEST]
            await self.patiently(partial(self._commit_positions, group, part, positions))

    async def _add_group(self, group: str) -> None:
        answer = await self._at_coordinator(
            AddOffsetsToTxnRequest(
                min_version=3,  # since Kafka 2.8
                max_version=3,
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                group_id=group,
            )
        )
        self.raise_for(answer.error_code, f"adding group {group} to the transaction")

    async def _commit_positions(
        self, group: str, places: Sequence[TopicPartition], positions: Mapping[TopicPartition, tuple[int, str]]
    ) -> None:
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        by_topic: dict[str, list[Any]] = {}
        for place in places:
            offset, metadata = positions[place]
            by_topic.setdefault(place.topic, []).append(
                topic.TxnOffsetCommitRequestPartition(
                    partition_index=place.partition,
                    committed_offset=offset,
                    committed_leader_epoch=-1,
                    committed_metadata=metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[topic(name=name, partitions=parts) for name, parts in by_topic.items()],
            max_version=None if self.joins_by_producing else 4,
        )
        node = await self.cluster.coordinator(GROUP, group)
        try:
            answer = await self.cluster.ask(request, node)
        except Retryable:
            self.cluster.forget_coordinator(GROUP, group)
            raise
        found = {
            TopicPartition(topic=topic.name, partition=part.partition_index): part.error_code
            for topic in answer.topics
            for part in topic.partitions
        }
        if codes.COORDINATOR_MOVED.intersection(found.values()):
            self.cluster.forget_coordinator(GROUP, group)
        self._raise_for_any(found, lambda place: f"committing the position of {place} to {group}")

    async def commit(self) -> None:
        """Send EndTxn(commit). Raises Fenced when it is refused as such.

        Raises OutcomeUnknown on any other error: read the ledger again.
        """
        try:
            answer = await self._at_coordinator(
                EndTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.producer_epoch,
                    committed=True,
                    max_version=None if self.joins_by_producing else 4,
                )
            )
        except Retryable as error:
            raise OutcomeUnknown(f"commit of {self.transactional_id}: {error}") from error
        # When another client aborted a transaction, version 2 takes its commit for a late repetition, and calls it
        # invalid instead of fenced (KIP-890). A chunk's transaction is never empty, so nothing else is answered in that
        # way.
        if answer.error_code in codes.FENCED or answer.error_code == codes.INVALID_TXN_STATE:
            raise Fenced(self._why_fenced())
        if answer.error_code:
            raise OutcomeUnknown(f"commit of {self.transactional_id} answered {codes.describe(answer.error_code)}")
        if self.joins_by_producing:
            self._renew(answer.producer_id, answer.producer_epoch)
        else:
            self._joined.clear()
            self._groups.clear()

    def _renew(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self._joined.clear()
        self._groups.clear()
        self._sequences.clear()

    async def _at_coordinator(self, request: Any) -> Any:
        node = await self.cluster.coordinator(TRANSACTION, self.transactional_id)
        try:
            answer = await self.cluster.ask(request, node)
        except Retryable:
            self.cluster.forget_coordinator(TRANSACTION, self.transactional_id)
            raise
        if getattr(answer, "error_code", 0) in codes.COORDINATOR_MOVED:
            self.cluster.forget_coordinator(TRANSACTION, self.transactional_id)
        return answer

    async def patiently(self, action: Callable[[], Awaitable[None]]) -> None:
        """Repeat `action` while it raises StillCompleting, for half of the transaction timeout at most.

        The coordinator answers CONCURRENT_TRANSACTIONS to the first requests of a transaction while it writes the
        markers of the one before. Produce requests are repeated with the same sequences.
        """
        until = time.monotonic() + self.timeout_ms / 2000
        while True:
            try:
                await action()
            except StillCompleting:
                if time.monotonic() > until:
                    raise
                await self.cluster.loop.sleep(_PAUSE_S)
            else:
                return

    def _raise_for_any(self, found: Mapping[TopicPartition, int], what: Callable[[TopicPartition], str]) -> None:
        """Raise the error that the codes of single partitions call for.

        Raises PartitionsRefused when all of them concern single partitions.
        """
        errors = {place: code for place, code in found.items() if code}
        # When one partition is refused, the others answer OPERATION_NOT_ATTEMPTED: that is not a cause.
        causes = {place: code for place, code in errors.items() if code != codes.OPERATION_NOT_ATTEMPTED} or errors
        for place, code in causes.items():
            if code not in codes.OF_ONE_PARTITION:
                self.raise_for(code, what(place))
        if causes:
            raise PartitionsRefused(causes)

    def raise_for(self, code: int, what: str, *, may_be_fenced: bool = True) -> None:
        """Raise the error that a code calls for: StillCompleting, Fenced, Refused or Retryable; nothing for 0."""
        if code == codes.NONE:
            return
        where = f"{what} for {self.transactional_id} on cluster {self.cluster.alias}: {codes.advised(code)}"
        if code == codes.CONCURRENT_TRANSACTIONS:
            raise StillCompleting(where)
        if code in codes.FENCED and may_be_fenced:
            raise Fenced(self._why_fenced())
        if code in codes.UNAUTHORIZED:
            raise Refused(f"{where}: {_GRANTS[code]}")
        raise Retryable(where)

    def _why_fenced(self) -> str:
        """Return what the writer itself can report of the cause.

        The ledger shows whether another writer took its place.
        """
        name = f"{self.transactional_id} on cluster {self.cluster.alias}"
        seconds = time.monotonic() - self._began
        if self._joined and seconds * 1000 >= self.timeout_ms:
            paused = self.cluster.throttled_s - self._throttled_before
            if 2 * paused < seconds:
                remedy = ": raise it, or lower ferry.chunk.seconds"
            else:
                remedy = (
                    f", as quotas of its brokers paused this client for {paused:.0f} s: set "
                    "ferry.throttle.bytes.per.second below the quota, or raise the timeout"
                )
            return (
                f"the broker aborted the transaction of {name}, which was open for {seconds:.0f} s where "
                f"ferry.transaction.timeout.ms allows {self.timeout_ms} ms{remedy}"
            )
        return f"another client initialised {name} (producers outside Ferry must not use this transactional.id)"


class PartitionsRefused(FerryError):
    """The broker keeps partitions out of a transaction, each for its error code in `codes`; the others may continue."""

    def __init__(self, found: Mapping[TopicPartition, int]) -> None:
        super().__init__("; ".join(f"{place}: {codes.advised(code)}" for place, code in found.items()))
        self.codes = dict(found)


class StillCompleting(Retryable):
    """The coordinator is still writing the markers of the transaction before."""

"""What scripted brokers answer as coordinators of transactions."""

from __future__ import annotations

from typing import Any

from kafka.protocol import admin, metadata, producer

from ferry.kafka.connect import codes
from ferry.model import TopicPartition
from tests.pure.protocol.broker import POSITIONS, BrokerError, Txn
from tests.pure.scripted.faults import Asked
from tests.pure.scripted.state import State, code_of, outcome_of

_TRANSACTIONAL_ID_NOT_FOUND = 105


class Coordinators(State):
    """Requests by transactional id, and offsets of groups in transactions."""

    def _FindCoordinator(self, asked: Asked) -> Any:  # noqa: N802 - the request's name
        kind = metadata.FindCoordinatorResponse
        keys = asked.request.coordinator_keys or [asked.request.key]
        nodes = {key: self.coordinators.get(key, self.nodes[0]) for key in keys}
        found = [
            kind.Coordinator(key=key, node_id=node, host=self.host, port=self.port + node)
            for key, node in nodes.items()
        ]
        first = found[0]
        return kind(coordinators=found, node_id=first.node_id, host=self.host, port=first.port)

    def _InitProducerId(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.InitProducerIdResponse
        name = request.transactional_id
        if name is None:
            self._producers += 1
            return kind(producer_id=self._producers, producer_epoch=0)
        if self.not_here(asked, name):
            return kind(error_code=codes.NOT_COORDINATOR, producer_id=-1, producer_epoch=-1)
        try:
            if request.producer_id >= 0:
                self.target.leave(name, request.producer_epoch)
                txn = self.target.txns[name]
                return kind(producer_id=txn.producer, producer_epoch=txn.epoch)
            number, epoch = self.target.init_producer(name)
        except BrokerError as error:
            return kind(error_code=code_of(error), producer_id=-1, producer_epoch=-1)
        return kind(producer_id=number, producer_epoch=epoch)

    def _AddPartitionsToTxn(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.AddPartitionsToTxnResponse
        name, epoch = request.v3_and_below_transactional_id, request.v3_and_below_producer_epoch
        places = [
            TopicPartition(topic=topic.name, partition=number)
            for topic in request.v3_and_below_topics
            for number in topic.partitions
        ]
        whole = codes.NOT_COORDINATOR if self.not_here(asked, name) else 0
        if not whole and not self.leaders.keys() >= set(places):
            whole = codes.OPERATION_NOT_ATTEMPTED
        whole = whole or self.unmapped(name, request.v3_and_below_producer_id)

        def code(topic: str, partition: int) -> int:
            place = TopicPartition(topic=topic, partition=partition)
            if place not in self.leaders:
                return codes.UNKNOWN_TOPIC_OR_PARTITION
            return whole or outcome_of(lambda: self.target.add(name, epoch, self.name(place)))

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
        code = codes.NOT_COORDINATOR if self.not_here(asked, name) else self.unmapped(name, request.producer_id)
        return producer.AddOffsetsToTxnResponse(
            error_code=code or outcome_of(lambda: self.target.add(name, epoch, POSITIONS))
        )

    def _TxnOffsetCommit(self, asked: Asked) -> Any:  # noqa: N802
        request = asked.request
        kind = producer.TxnOffsetCommitResponse
        name, epoch = request.transactional_id, request.producer_epoch
        moved = [
            (request.group_id, place, (part.committed_offset, part.committed_metadata))
            for topic in request.topics
            for part in topic.partitions
            if (place := TopicPartition(topic=topic.name, partition=part.partition_index)) in self.leaders
        ]
        whole = codes.NOT_COORDINATOR if self.not_here(asked, request.group_id) else 0
        whole = whole or self.unmapped(name, request.producer_id)
        if moved and not whole and (request.generation_id >= 0 or request.member_id):  # its groups have no members
            whole = outcome_of(lambda: self.target.verify(name, epoch, POSITIONS), codes.INVALID_PRODUCER_EPOCH)
            whole = whole or codes.ILLEGAL_GENERATION
        elif moved:
            whole = whole or outcome_of(
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
        if self.not_here(asked, name):
            return kind(error_code=codes.NOT_COORDINATOR)
        if code := self.unmapped(name, request.producer_id):
            return kind(error_code=code)
        try:
            epoch = self.target.end_txn(name, request.producer_epoch, committed=request.committed)
        except BrokerError as error:
            return kind(error_code=code_of(error))
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
                    error_code=codes.NOT_COORDINATOR if self.not_here(asked, name) else code,
                    transaction_state="" if txn is None else _state(txn),
                    producer_id=0 if txn is None else txn.producer,
                    producer_epoch=0 if txn is None else txn.epoch,
                    topics=[],
                )
            )
        return kind(transaction_states=found)

    def _ListTransactions(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.ListTransactionsResponse
        wanted = set(asked.request.producer_id_filters)
        return kind(
            unknown_state_filters=[],
            transaction_states=[
                kind.TransactionState(transactional_id=name, producer_id=one.producer, transaction_state=_state(one))
                for name, one in self.target.txns.items()
                if not wanted or one.producer in wanted
            ],
        )


def _state(txn: Txn) -> str:
    """The name of a transaction's state."""
    if txn.closing is not None:
        return "PrepareCommit" if txn.closing else "PrepareAbort"
    if txn.members:
        return "Ongoing"
    return {None: "Empty", True: "CompleteCommit", False: "CompleteAbort"}[txn.closed]

"""What scripted brokers answer as leaders of partitions."""

from __future__ import annotations

from typing import Any

from kafka.protocol import admin, consumer, producer

from ferry.clock import wall_ms
from ferry.kafka.connect import codes
from ferry.kafka.fetch.offsets import LEADER_LOG
from ferry.model import Fate, TopicPartition
from ferry.wire.batch import batches
from tests.pure.protocol.broker import BrokerError
from tests.pure.scripted.batches import aborted, appended_at, identity, parts, records
from tests.pure.scripted.faults import Asked
from tests.pure.scripted.state import State, code_of


class Partitions(State):
    """Requests that write, read and shorten logs, and their topics' settings."""

    def _Produce(self, asked: Asked) -> Any:  # noqa: N802 - the request's name
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
                stamped = self.stamps and name == self.ledger and not code
                parts.append(
                    kind.TopicProduceResponse.PartitionProduceResponse(
                        index=part.index,
                        error_code=code,
                        base_offset=base,
                        log_append_time_ms=wall_ms() if stamped else -1,
                    )
                )
            topics.append(
                kind.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=parts)
            )
        return kind(responses=topics)

    def _write(self, node: int, transactional_id: str | None, place: TopicPartition, batch: bytes) -> tuple[int, int]:
        number, epoch, sequence = identity(batch)
        code = self.not_led(node, place)
        if not code and transactional_id is not None:
            code = self.unmapped(transactional_id, number)
        elif not code and next(batches(batch)).base_offset:
            code = codes.INVALID_RECORD
        if code:
            return code, -1
        name = self.name(place)
        batch = appended_at(batch, wall_ms()) if self.stamps and place.topic == self.ledger else batch
        try:
            if transactional_id is not None:
                return 0, self.target.write(transactional_id, epoch, name, sequence, parts(batch))
            if number < 0:
                return 0, self.append(place.topic, batch, place.partition)
            return 0, self.target.logs[name].write(number, epoch, sequence, parts(batch), None)
        except BrokerError as error:
            return code_of(error, codes.INVALID_PRODUCER_EPOCH), -1

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
                code, offset = self.not_led(asked.node, place), -1
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

    def _WriteTxnMarkers(self, asked: Asked) -> Any:  # noqa: N802
        """As brokers do: one entry of the answer for a producer, with what its last marker met."""
        kind = producer.WriteTxnMarkersResponse
        found: dict[int, dict[TopicPartition, int]] = {}
        for one in asked.request.markers:
            for topic in one.topics:
                for number in topic.partition_indexes:
                    place = TopicPartition(topic=topic.name, partition=number)
                    code = self.not_led(asked.node, place)
                    if not code:
                        log = self.target.logs[self.name(place)]
                        log.mark(one.producer_id, one.producer_epoch, one.transaction_result)
                    found.setdefault(one.producer_id, {})[place] = code
        result, each = kind.WritableTxnMarkerResult, kind.WritableTxnMarkerResult.WritableTxnMarkerTopicResult
        part = each.WritableTxnMarkerPartitionResult
        return kind(
            markers=[
                result(
                    producer_id=number,
                    topics=[
                        each(
                            name=place.topic,
                            partitions=[part(partition_index=place.partition, error_code=code)],
                        )
                        for place, code in places.items()
                    ],
                )
                for number, places in found.items()
            ]
        )

    def _DescribeProducers(self, asked: Asked) -> Any:  # noqa: N802
        """A follower answers as the leader does."""
        kind = admin.DescribeProducersResponse
        each = kind.TopicResponse.PartitionResponse
        topics = []
        for topic in asked.request.topics:
            parts = []
            for number in topic.partition_indexes:
                place = TopicPartition(topic=topic.name, partition=number)
                if place not in self.leaders:
                    code = codes.UNKNOWN_TOPIC_OR_PARTITION
                    parts.append(each(partition_index=number, error_code=code, error_message=None, active_producers=[]))
                    continue
                begun = self._open_on(place)
                active = [
                    each.ProducerState(
                        producer_id=one,
                        producer_epoch=state.epoch,
                        last_sequence=state.batches[-1][1] - 1 if state.batches else -1,
                        last_timestamp=wall_ms() - self.aged_ms,
                        coordinator_epoch=0,
                        current_txn_start_offset=begun.get(one, -1),
                    )
                    for one, state in self.target.logs[self.name(place)].producers.items()
                ]
                parts.append(each(partition_index=number, error_code=0, error_message=None, active_producers=active))
            topics.append(kind.TopicResponse(name=topic.name, partitions=parts))
        return kind(topics=topics)

    def _open_on(self, place: TopicPartition) -> dict[int, int]:
        """Where the open transactions of a partition begin, by producer id."""
        log = self.target.logs[self.name(place)]
        fates = log.fates(0, log.end)
        return {
            log.entries[offset].producer: offset for offset in sorted(fates, reverse=True) if fates[offset] is Fate.OPEN
        }

    def _DeleteRecords(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DeleteRecordsResponse
        topic_kind = kind.DeleteRecordsTopicResult
        topics = []
        for topic in asked.request.topics:
            found = []
            for part in topic.partitions:
                place = TopicPartition(topic=topic.name, partition=part.partition_index)
                code = self.not_led(asked.node, place)
                end = 0 if code else self.target.logs[self.name(place)].end
                if not code and part.offset > end:
                    code = codes.OFFSET_OUT_OF_RANGE
                if not code:
                    self.begins[place] = max(self.begins.get(place, 0), end if part.offset == -1 else part.offset)
                found.append(
                    topic_kind.DeleteRecordsPartitionResult(
                        partition_index=part.partition_index,
                        low_watermark=-1 if code else self.begins[place],
                        error_code=code,
                    )
                )
            topics.append(topic_kind(name=topic.name, partitions=found))
        return kind(topics=topics)

    def _OffsetForLeaderEpoch(self, asked: Asked) -> Any:  # noqa: N802
        kind = consumer.OffsetForLeaderEpochResponse
        part = kind.OffsetForLeaderTopicResult.EpochEndOffset

        def ended(topic: str, one: Any) -> Any:
            place = TopicPartition(topic=topic, partition=one.partition)
            code = self.not_led(asked.node, place)
            if code:
                return part(error_code=code, partition=one.partition, leader_epoch=-1, end_offset=-1)
            end = self.ended.get((place, one.leader_epoch), self.target.logs[self.name(place)].end)
            return part(partition=one.partition, leader_epoch=one.leader_epoch, end_offset=end)

        return kind(
            topics=[
                kind.OffsetForLeaderTopicResult(
                    topic=topic.topic, partitions=[ended(topic.topic, one) for one in topic.partitions]
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

"""Small topics read by themselves, on a real broker: what retention takes on the way is passed, whatever reads."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from kafka.protocol.producer import ProduceRequest

from ferry.dev import RunningCluster
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.committed import ReadRecord, UnopenedBatch, read_committed
from ferry.kafka.fetch.whole_topic import read_topic
from ferry.model import Codec, TopicPartition
from ferry.wire.batch import HEADER_BYTES, batches
from ferry.wire.content import MOST_DECOMPRESSED
from tests.harness import create_topic, on_cluster, producer
from tests.pure.wire.hostile import packed, record
from tests.tiers import ANSWER_S

COMMITTED, ABORTED, LATER = range(4), range(5, 8), range(9, 12)
"""Offsets of three transactions; between them lie their markers."""


@pytest.fixture
def filled(source_cluster: RunningCluster, topic: str) -> str:
    create_topic(source_cluster, topic)
    writer = producer(source_cluster, transactional_id=topic)
    writer.init_transactions(ANSWER_S)
    for offsets, ends in ((COMMITTED, True), (ABORTED, False), (LATER, True)):
        writer.begin_transaction()
        for offset in offsets:
            writer.produce(topic, key=b"k", value=str(offset).encode(), partition=0)
        writer.flush(ANSWER_S)
        (writer.commit_transaction if ends else writer.abort_transaction)(ANSWER_S)
    return topic


def committed(cluster: RunningCluster, topic: str, start: int, end: int) -> list[int]:
    """The offsets that are read; each record's value is its offset."""
    rows: list[ReadRecord] = []
    unopened: list[UnopenedBatch] = []

    async def work(client: Cluster) -> None:
        await client.refresh([topic])
        await read_committed(client, TopicPartition(topic=topic, partition=0), start, end, rows.append, unopened.append)

    on_cluster(cluster, work)
    assert not unopened
    assert [row.value for row in rows] == [str(row.offset).encode() for row in rows]
    return [row.offset for row in rows]


def test_committed_records_of_a_range_are_read(source_cluster: RunningCluster, filled: str) -> None:
    assert committed(source_cluster, filled, 0, 13) == [*COMMITTED, *LATER]
    assert committed(source_cluster, filled, 2, 11) == [2, 3, 9, 10]
    assert committed(source_cluster, filled, 3, 3) == []


def test_what_retention_has_taken_is_passed(source_cluster: RunningCluster, filled: str) -> None:
    """A broker that refuses the offset does not say where the log begins."""
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    cut = Place(filled, 0, LATER.start)
    admin.delete_records([cut])[cut].result(ANSWER_S)
    assert committed(source_cluster, filled, 0, 13) == [*LATER]
    found = on_cluster(source_cluster, lambda client: read_topic(client, filled))
    assert [record.value for _, record in found] == [b"9", b"10", b"11"]


def test_a_damaged_abort_marker_is_reported_and_hides_nothing_of_what_its_producer_commits_later(
    source_cluster: RunningCluster, filled: str
) -> None:
    """The broker lists aborted transactions by its own index, which has the marker's offset."""
    (log,) = source_cluster.brokers[0].data.glob(f"{filled}-0/*.log")
    content = bytearray(log.read_bytes())
    marker = next(one for one in batches(content) if one.base_offset == ABORTED.stop)
    marker.data[-1] ^= 1
    with log.open("r+b") as file:  # in place: the broker has it open
        file.write(content)
    rows: list[ReadRecord] = []
    unopened: list[UnopenedBatch] = []

    async def work(client: Cluster) -> None:
        await client.refresh([filled])
        await read_committed(client, TopicPartition(topic=filled, partition=0), 0, 13, rows.append, unopened.append)

    on_cluster(source_cluster, work)
    assert [row.offset for row in rows] == [*COMMITTED, *LATER]
    assert [(one.offset, one.end, one.data) for one in unopened] == [(8, 9, bytes(marker.data))]


def test_what_no_reader_opens_is_handed_over_as_it_lies_in_the_log(source_cluster: RunningCluster, topic: str) -> None:
    """A broker bounds a batch by its compressed size, and takes any bytes for the name of a header."""
    create_topic(source_cluster, topic)
    place = TopicPartition(topic=topic, partition=0)
    odd_name = packed(Codec.LZ4, record(0, b"k", b"0", [(b"\xff\xfe", b"1")]))
    bomb = packed(Codec.ZSTD, record(0, b"k", b"0") + record(1, b"k", bytes(MOST_DECOMPRESSED)), count=2)
    rows: list[ReadRecord] = []
    unopened: list[UnopenedBatch] = []

    async def work(client: Cluster) -> None:
        await client.refresh([topic])
        for batch in (odd_name, bomb):
            part = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=bytes(batch.data))
            data = ProduceRequest.TopicProduceData(
                name=topic, topic_id=client.topics[topic].topic_id, partition_data=[part]
            )
            request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[data])
            answer = await client.ask(request, client.leader(place))
            assert not answer.responses[0].partition_responses[0].error_code
        await read_committed(client, place, 0, 3, rows.append, unopened.append)

    on_cluster(source_cluster, work)
    assert [(row.offset, row.headers) for row in rows] == [(0, ((b"\xff\xfe", b"1"),))]
    (found,) = unopened
    assert (found.offset, found.end) == (1, 3)
    assert found.data[HEADER_BYTES:] == bytes(bomb.payload)

"""Copies on real brokers, compared record by record by an independent reader."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from ferry.plan.options import RunOptions
from tests.harness import (
    Feeder,
    Lab,
    Message,
    create_topic,
    delete_topic,
    grow_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
)
from tests.said import codes
from tests.tiers import ANSWER_S

Clusters = tuple[RunningCluster, RunningCluster]


@pytest.fixture
def clusters(source_cluster: RunningCluster, target_cluster: RunningCluster) -> Clusters:
    """Source and target."""
    return source_cluster, target_cluster


def lab(clusters: Clusters, *topics: str, **settings: str) -> Lab:
    """A flow over the given topics; underscores in setting names stand for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Lab(source=clusters[0], target=clusters[1], alias=new_alias(), topics=topics, settings=given)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_copied_as_it_is(clusters: Clusters, topic: str, codec: str) -> None:
    create_topic(clusters[0], topic, 3)
    send(producer(clusters[0], compression_type=codec), topic, numbered(3_000, partitions=3))
    flow = lab(clusters, topic)
    report = flow.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 3_000)
    assert flow.assert_equal() == 3_000


def test_keys_headers_tombstones_and_timestamps_survive(clusters: Clusters, topic: str) -> None:
    create_topic(clusters[0], topic)
    messages = [
        Message(key=None, value=None, timestamp=1),
        Message(key=b"", value=b""),
        Message(key=b"k", value=None, headers=(("a", b"1"), ("a", b"2"), ("b", None), ("", b""))),
        Message(key=b"\x00\xff", value=b"\x00" * 100_000, timestamp=1_000_000_000_000),
        *numbered(100),
    ]
    send(producer(clusters[0]), topic, messages)
    flow = lab(clusters, topic)
    flow.micro_run()
    assert flow.assert_equal() == len(messages)


def test_aborted_and_open_transactions_stay_behind(clusters: Clusters, topic: str) -> None:
    create_topic(clusters[0], topic)
    plain = producer(clusters[0])
    writer = producer(clusters[0], transactional_id=topic)
    writer.init_transactions(ANSWER_S)
    for number, commit in enumerate([True, False, True, False, False, True]):
        writer.begin_transaction()
        send(writer, topic, numbered(50, start=number * 1000))
        send(plain, topic, numbered(5, start=number * 1000 + 500))
        (writer.commit_transaction if commit else writer.abort_transaction)(30)
    flow = lab(clusters, topic)
    assert flow.micro_run().records == 3 * 50 + 6 * 5
    writer.begin_transaction()
    send(writer, topic, numbered(10, start=9000))
    send(plain, topic, numbered(10, start=9500))
    assert flow.micro_run().records == 0, "records behind an open transaction are not stable yet"
    writer.commit_transaction(ANSWER_S)
    assert flow.micro_run().records == 20
    assert flow.assert_equal() == 200
    assert sum(receipt.aborted_batches for receipt in flow.receipts()) > 0


def test_runs_follow_a_living_source_and_find_new_topics_and_partitions(clusters: Clusters, topic: str) -> None:
    create_topic(clusters[0], f"{topic}-a", 2)
    flow = lab(clusters, f"{topic}-.*", ferry_start="latest")
    send(producer(clusters[0]), f"{topic}-a", numbered(100, partitions=2))
    assert flow.micro_run().records == 0, "the first run starts at the latest offset"
    with Feeder(clusters[0], f"{topic}-a", partitions=2):
        create_topic(clusters[0], f"{topic}-b", 1)
        send(producer(clusters[0]), f"{topic}-b", numbered(70))
        flow.micro_run()
        grow_topic(clusters[0], f"{topic}-a", 3)
        send(producer(clusters[0]), f"{topic}-a", [Message(value=b"third", partition=2)])
        flow.micro_run()
    flow.micro_run()
    copied = read_topic(clusters[1].bootstrap, flow.target_topic(f"{topic}-b"))
    assert len(copied[0]) == 70, "a topic that came later is copied from its beginning"
    assert [row[2] for row in read_topic(clusters[1].bootstrap, flow.target_topic(f"{topic}-a"))[2]] == [b"third"]
    ends = {(r.source.topic, r.source.partition): r.end for r in flow.receipts()}
    source = read_topic(clusters[0].bootstrap, f"{topic}-a")
    assert all(ends[f"{topic}-a", number] == rows[-1][0] + 1 for number, rows in source.items())


@pytest.mark.parametrize(("start", "first"), [("time", 10), ("offsets", 15)])
def test_first_run_starts_where_told_also_inside_a_batch(
    clusters: Clusters, topic: str, start: str, first: int
) -> None:
    create_topic(clusters[0], topic)
    client = producer(clusters[0])
    send(client, topic, [Message(value=b"old", timestamp=1_000_000)] * 10)
    send(client, topic, [Message(value=b"%d" % number, timestamp=2_000_000) for number in range(10, 20)])
    flow = lab(clusters, topic, ferry_start="1500000" if start == "time" else f"{topic}:0:{first}")
    report = flow.micro_run()
    assert report.records == 20 - first
    copied = read_topic(clusters[1].bootstrap, flow.target_topic(topic))[0]
    assert [row[2] for row in copied] == [b"%d" % number for number in range(first, 20)]
    assert [(receipt.start, receipt.transcoded) for receipt in report.receipts] == [(first, int(first == 15))]


def test_a_budget_is_shared_fairly_and_exact_also_inside_batches(clusters: Clusters, topic: str) -> None:
    """Ranges of one record, ends and beginnings inside batches that are copied or were aborted, and the rest."""
    create_topic(clusters[0], topic, 3)
    writer = producer(clusters[0], transactional_id=topic, linger_ms=500)
    writer.init_transactions(ANSWER_S)
    writer.begin_transaction()
    send(writer, topic, numbered(30, partitions=3))
    writer.abort_transaction(ANSWER_S)
    send(producer(clusters[0], linger_ms=500, compression_type="zstd"), topic, numbered(3_000, partitions=3))
    flow = lab(clusters, topic)
    at = 0
    for width, records in ((4, 0), (8, 1), (1, 1), (100, 100), (2, 2)):
        report = flow.micro_run(RunOptions(max_records=3 * width))
        found = {(receipt.source.partition, receipt.start, receipt.end, receipt.records) for receipt in report.receipts}
        assert found == {(number, at, at + width, records) for number in range(3)}
        at += width
        assert flow.assert_equal() == 3 * max(0, at - 11), "behind ten aborted records and their marker"
    report = flow.micro_run()
    assert (report.state, report.records, report.missing) == (RunState.SUCCESS, 3 * (1_011 - at), 0)
    assert {receipt.end for receipt in report.receipts} == {1_011}
    assert flow.assert_equal() == 3_000
    report = flow.micro_run(RunOptions(max_records=1))
    assert (report.state, report.plan.slices, report.receipts) == (RunState.SUCCESS, (), ())


def test_many_chunks_give_one_row_of_segments(clusters: Clusters, topic: str) -> None:
    create_topic(clusters[0], topic, 2)
    send(producer(clusters[0], batch_num_messages=50), topic, numbered(5_000, partitions=2, size=1000))
    flow = lab(clusters, topic, ferry_chunk_bytes="1000000")
    report = flow.micro_run()
    assert len(report.receipts) > 4
    assert flow.assert_equal() == 5_000


def test_old_brokers_speak_transactions_of_version_1(
    source_cluster: RunningCluster, old_cluster: RunningCluster, topic: str
) -> None:
    for number, pair in enumerate([(source_cluster, old_cluster), (old_cluster, source_cluster)]):
        name = f"{topic}-{number}"
        create_topic(pair[0], name, 4)
        send(producer(pair[0]), name, numbered(4_000, partitions=4))
        flow = lab(pair, name, ferry_chunk_bytes="1048576")
        assert flow.micro_run().records == 4_000
        send(producer(pair[0]), name, numbered(400, partitions=4))
        assert flow.micro_run().records == 400
        assert flow.assert_equal() == 4_400


def test_another_partition_count_is_refused_and_the_rest_copied(clusters: Clusters, topic: str) -> None:
    flow = lab(clusters, f"{topic}-.*")
    for name in ("a", "b"):
        create_topic(clusters[0], f"{topic}-{name}", 2)
        send(producer(clusters[0]), f"{topic}-{name}", numbered(10, partitions=2))
    create_topic(clusters[1], flow.target_topic(f"{topic}-a"), 5)
    report = flow.micro_run()
    assert report.state is RunState.PARTIAL
    assert [(r.topic, r.kind) for r in report.refusals] == [(f"{topic}-a", RefusalKind.PARTITION_COUNT)]
    assert report.records == 10


def test_a_lost_or_moved_position_is_decided_by_the_ledger(clusters: Clusters, topic: str) -> None:
    create_topic(clusters[0], topic)
    send(producer(clusters[0]), topic, numbered(100))
    flow = lab(clusters, topic)
    flow.micro_run()
    group = f"ferry.{flow.flow.flow}.live"
    admin = AdminClient({"bootstrap.servers": clusters[1].bootstrap})
    admin.delete_consumer_groups([group])[group].result(ANSWER_S)
    send(producer(clusters[0]), topic, numbered(50, start=100))
    report = flow.micro_run()
    assert report.records == 50
    assert codes(report.plan.notes)[0] == "position.missing"
    consumer = Consumer({"bootstrap.servers": clusters[1].bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(flow.target_topic(topic), 0, 3)], asynchronous=False)
    consumer.close()
    send(producer(clusters[0]), topic, numbered(50, start=150))
    report = flow.micro_run()
    assert report.records == 50
    assert codes(report.plan.notes)[0] == "position.moved"
    assert flow.assert_equal() == 200


def test_one_too_large_record_among_a_thousand_partitions_leaves_the_others_alone(
    clusters: Clusters, topic: str
) -> None:
    create_topic(clusters[0], topic, 1_000, {"max.message.bytes": "5000000"})
    client = producer(clusters[0], message_max_bytes=5_000_000)
    send(client, topic, numbered(2_000, partitions=1_000))
    send(client, topic, [Message(value=b"y" * 2_000_000, partition=7)])
    send(client, topic, numbered(2_000, partitions=1_000, start=2_000))
    flow = lab(clusters, topic, config_properties_exclude="max.message.bytes")
    report = flow.micro_run()
    assert report.state is RunState.PARTIAL
    assert [(r.partition, r.kind) for r in report.refusals] == [(7, RefusalKind.TOO_LARGE)]
    assert report.records == 4_000 - 2, "partition 7 is copied up to the record that does not fit"
    assert flow.assert_equal() == 3_998
    for cluster, name in zip(clusters, (topic, flow.target_topic(topic)), strict=True):
        delete_topic(cluster, name)  # brokers that later tests kill come back sooner without them


def test_an_empty_run_starts_no_task_and_writes_nothing_but_its_records(clusters: Clusters, topic: str) -> None:
    create_topic(clusters[0], topic)
    flow = lab(clusters, topic)
    report = flow.micro_run()
    assert report.state is RunState.SUCCESS
    assert (report.plan.slices, report.plan.used_slots, report.receipts) == ((), (), ())
    reader = Consumer({"bootstrap.servers": clusters[1].bootstrap, "group.id": topic})
    try:
        place = TopicPartition(flow.target_topic(topic), 0)
        assert reader.get_watermark_offsets(place, timeout=ANSWER_S) == (0, 0), (
            "not even a marker of an empty transaction"
        )
    finally:
        reader.close()

"""Copies whose source's log does not begin at 0, between real brokers: the target's log begins there, too."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.features.identical.rules.empty import MOST_AT_ONCE, empty_batch
from ferry.kafka.connect.cluster import Cluster
from tests.harness import (
    Lab,
    Message,
    create_topic,
    new_alias,
    on_cluster,
    producer,
    read_topic,
    send,
    wait_until,
    watermark,
)
from tests.kafka.identical.test_run import PARTITIONS, end_of_copy, feed, lab
from tests.kafka.raw import Raw
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

PASSES = {"ferry.offsets.may.pass": "true"}


def begin_at(cluster: RunningCluster, topic: str, begins: int) -> None:
    """Partition 0 gets so many offsets, which are deleted then, and 3 records; partition 1 gets records from 0 on."""

    async def work(client: Cluster) -> None:
        raw = await Raw(client, topic).open()
        who = await raw.init()
        for at in range(0, begins, MOST_AT_ONCE):
            count = min(MOST_AT_ONCE, begins - at)
            batch = bytes(empty_batch(at, count, producer=who.id, at_ms=wall_ms()))
            assert await raw.produce(who, at, count, batch=batch) == (0, at)

    create_topic(cluster, topic, partitions=PARTITIONS)
    on_cluster(cluster, work)
    send(producer(cluster), topic, [Message(value=b"first", partition=0)] * 3)
    feed(cluster, topic, 400)
    place = Place(topic, 0, begins)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert admin.delete_records([place])[place].result(ANSWER_S).low_watermark == begins


def assert_same(it: Lab, topic: str, begins: int) -> int:
    """All that librdkafka reads from the logs' beginnings is the same on both sides, offsets too; how many records."""
    here = read_topic(it.source.bootstrap, topic)
    for isolation in ("read_committed", "read_uncommitted"):
        assert read_topic(it.target.bootstrap, it.target_topic(topic), isolation=isolation) == here
    assert [row[0] for row in here[0]] == list(range(begins, begins + len(here[0])))
    assert watermark(it.target, it.target_topic(topic), 0) == begins + len(here[0])
    return sum(map(len, here.values()))


def test_the_copy_begins_where_the_source_does_and_continues_there(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    begins = 250_007
    begin_at(source_cluster, topic, begins)
    it = lab(source_cluster, target_cluster, topic)
    refusing = ferry("run", "--json", config=it.write(tmp_path))
    assert refusing.code != 0
    (refusal,) = refusing.json("run")["refusals"]
    assert (refusal["partition"], refusal["facts"]["offset"]) == (0, begins)
    assert watermark(target_cluster, it.target_topic(topic), 0) == 0, "nothing is written without the permission"

    config = lab_again(it, topic, tmp_path, **PASSES)
    shown = ferry("plan", "--json", config=config).json("plan")
    assert shown["refusals"] == []
    assert any(f"{begins} offsets" in note for note in shown["notes"])
    assert ferry("run", config=config).code == 0
    assert assert_same(it, topic, begins) == 403
    feed(source_cluster, topic, 40, begin=10_000)
    assert ferry("run", config=config).code == 0
    assert assert_same(it, topic, begins) == 443
    compared = ferry("verify", "--json", config=config)
    assert (compared.code, compared.json("verify")["differences"]) == (0, []), compared.err
    assert compared.json("verify")["records"] == 443


def lab_again(it: Lab, topic: str, tmp_path: Path, **settings: str) -> Path:
    """The file of the same flow with more settings."""
    again = Lab(
        source=it.source, target=it.target, alias=it.alias, topics=(topic,), settings={**it.settings, **settings}
    )
    return again.write(tmp_path)


def first_rows(cluster: RunningCluster, topic: str, isolation: str) -> list[tuple[int | None, object, object]]:
    """What a reader gets first that begins while there are empty records: offset, key and value."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "first-rows", "isolation.level": isolation}
    reader = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    try:
        reader.assign([Place(topic, 0, OFFSET_BEGINNING)])
        return [(one.offset(), one.key(), one.value()) for one in reader.consume(5, ANSWER_S)]
    finally:
        reader.close()


def test_a_run_that_is_killed_among_the_empty_records_is_continued(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    begins = 12_000_000  # a run writes them in some seconds, and is killed after the first of 120 batches
    begin_at(source_cluster, topic, begins)
    it = lab(source_cluster, target_cluster, topic, **PASSES)
    config = it.write(tmp_path)
    killed = start("run", config=config)
    wait_until(lambda: end_of_copy(it, topic) >= MOST_AT_ONCE, "the first empty offsets", 2 * ANSWER_S)
    os.killpg(killed.pid, signal.SIGKILL)
    finished(killed)
    before = watermark(target_cluster, it.target_topic(topic), 0)
    assert 0 < before < begins
    for isolation in ("read_committed", "read_uncommitted"):
        assert first_rows(target_cluster, it.target_topic(topic), isolation) == [(at, None, None) for at in range(5)]
    assert ferry("run", config=config).code == 0
    assert assert_same(it, topic, begins) == 403
    assert sum(receipt.records for receipt in it.receipts()) == 403


def test_kafka_3_9_as_the_target(
    source_cluster: RunningCluster, old_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    begins = 150_001
    begin_at(source_cluster, topic, begins)
    it = lab(source_cluster, old_cluster, topic, **PASSES)
    assert ferry("run", config=it.write(tmp_path)).code == 0
    assert assert_same(it, topic, begins) == 403


def test_a_leader_that_is_killed_among_the_empty_records_costs_no_offset(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """The target's topics have min.insync.replicas 2, so nothing needs ferry.offsets.may.lose."""
    begins = 8_000_000
    begin_at(source_cluster, topic, begins)
    settings = {"ferry.offsets": "identical", "replication.factor": "3", **PASSES}
    it = Lab(source=source_cluster, target=three_brokers, alias=new_alias(), topics=(topic,), settings=settings)
    config, copy = it.write(tmp_path), it.target_topic(topic)
    running = start("run", config=config)
    wait_until(lambda: end_of_copy(it, topic) >= begins // 8, "an eighth of the empty offsets", 2 * ANSWER_S)
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap})
    leader = admin.list_topics(copy).topics[copy].partitions[0].leader
    assert watermark(three_brokers, copy, 0) < begins
    next(one for one in three_brokers.brokers if one.node_id == leader).kill(signal.SIGKILL)
    finished(running, 10 * ANSWER_S)
    three_brokers.start()
    wait_until(lambda: ferry("run", config=config).code == 0, "a run that succeeds", 10 * ANSWER_S)
    assert assert_same(it, topic, begins) == 403
    assert sum(receipt.records for receipt in it.receipts()) == 403

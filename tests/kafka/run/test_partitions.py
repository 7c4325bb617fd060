"""One partition's trouble is its own: the other partitions of its slot are copied, in the same chunk where possible."""

from __future__ import annotations

import random
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.copy import copier
from ferry.copy.produce_queue import IN_FLIGHT
from ferry.dev import ClusterSpec, RunningCluster, up_all
from ferry.kafka.fetch.broker_fetcher import BrokerFetcher
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from ferry.run.micro_run import local_origin
from tests.harness import (
    Lab,
    Message,
    create_topic,
    delete_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
)
from tests.kafka.run.hooks import Hooks, copy_held
from tests.tiers import ANSWER_S, PATIENCE


def flow(source: RunningCluster, target: RunningCluster, *topics: str, **settings: str) -> Lab:
    """A flow whose topics are all in one slot."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Lab(source=source, target=target, alias=new_alias(), topics=topics, settings={"tasks.max": "1", **given})


def test_log_append_times_stay_and_only_their_batches_are_transcoded(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, f"{topic}.plain", 2)
    create_topic(source_cluster, f"{topic}.stamped", 2, {"message.timestamp.type": "LogAppendTime"})
    for name in ("plain", "stamped"):
        send(producer(source_cluster), f"{topic}.{name}", numbered(1_000, partitions=2))
    lab = flow(source_cluster, target_cluster, f"{topic}.*")
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        result = copy_held(runs, plan, 0, Hooks())
    assert (result.retries, result.refusals) == (0, {})
    assert [(receipt.source.topic, receipt.records) for receipt in result.receipts] == [
        (f"{topic}.{name}", 500) for name in ("plain", "plain", "stamped", "stamped")
    ]
    for receipt in result.receipts:
        assert receipt.transcoded == (receipt.batches if "stamped" in receipt.source.topic else 0)
    assert lab.assert_equal() == 2_000


def test_records_deleted_out_of_a_batch_do_not_come_back(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """DeleteRecords moves the log's start into a batch, and the broker goes on to give all of it."""
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster, linger_ms=500), topic, numbered(40, partitions=2))
    admin, place = AdminClient({"bootstrap.servers": source_cluster.bootstrap}), TopicPartition(topic, 0, 15)
    assert admin.delete_records([place])[place].result(ANSWER_S).low_watermark == 15
    lab = flow(source_cluster, target_cluster, topic)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 25)
    assert {(receipt.source.partition, receipt.start, receipt.transcoded) for receipt in report.receipts} == {
        (0, 15, 1),
        (1, 0, 0),
    }
    assert lab.assert_equal() == 25


def test_what_is_deleted_between_plan_and_copy_is_told_with_its_offsets(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """The broker's answer is "out of range", without a log start or an end: those are asked for."""
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(40, partitions=2))
    lab = flow(source_cluster, target_cluster, topic)
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        admin, place = AdminClient({"bootstrap.servers": source_cluster.bootstrap}), TopicPartition(topic, 0, 15)
        assert admin.delete_records([place])[place].result(ANSWER_S).low_watermark == 15
        report = lab.copy(runs, plan)
    assert (report.state, report.records) == (RunState.PARTIAL, 20)
    (refusal,) = report.refusals
    assert (refusal.partition, refusal.kind) == (0, RefusalKind.RETENTION_PASSED)
    assert refusal.code == "source.retention-passed.since-plan"
    assert dict(refusal.facts).items() >= {"cluster": lab.alias, "log_start": 15, "start": 0, "last": 14}.items()
    # Nothing was copied of it yet, and still the ledger knows what was there at the first plan.
    (refusal,) = lab.micro_run().refusals
    assert (refusal.partition, refusal.kind) == (0, RefusalKind.RETENTION_PASSED)
    facts = dict(refusal.facts)
    assert (refusal.code, facts["log_start"], facts["start"], facts["last"]) == ("source.retention-passed", 15, 0, 14)
    report = replace(lab, settings={"ferry.guard.retention.passed": "skip"}).micro_run()
    assert (report.state, report.records, lab.assert_equal()) == (RunState.SUCCESS, 5, 25)
    assert [(gap.start, gap.end, gap.why) for gap in report.plan.gaps] == [(0, 15, RefusalKind.RETENTION_PASSED)]


def test_a_record_of_ten_megabytes_and_a_name_of_249_characters_are_copied(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """The longest name that Kafka allows, kept by the identity policy, and larger records than brokers take unasked."""
    name = topic.ljust(249, "x")
    create_topic(source_cluster, name, 2, {"max.message.bytes": "11000000"})
    client = producer(source_cluster, message_max_bytes=11_000_000)
    large = [Message(key=b"large", value=random.randbytes(10_000_000)), Message(value=b"small", partition=1)]
    send(client, name, large)
    lab = flow(source_cluster, target_cluster, name, replication_policy_class="IdentityReplicationPolicy")
    report = lab.micro_run()
    assert (report.state, report.transcoded, report.plan.changes[0].topic) == (RunState.SUCCESS, 0, name)
    found, wanted = (read_topic(cluster.bootstrap, name) for cluster in (target_cluster, source_cluster))
    assert found == wanted
    assert [len(rows) for rows in found.values()] == [1, 1]
    for cluster in (source_cluster, target_cluster):
        delete_topic(cluster, name)


def test_all_partitions_with_too_large_records_are_left_out_at_once(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 6, {"max.message.bytes": "5000000"})
    client = producer(source_cluster, message_max_bytes=5_000_000)
    send(client, topic, [Message(value=b"y" * 2_000_000, partition=number) for number in range(5)])
    send(client, topic, [Message(value=b"y", partition=5)])
    lab = flow(source_cluster, target_cluster, topic, config_properties_exclude="max.message.bytes")
    with lab.runs() as runs:
        report = lab.copy(runs, runs.open_run("one", local_origin()))
    assert [(refusal.partition, refusal.kind) for refusal in report.refusals] == [
        (number, RefusalKind.TOO_LARGE) for number in range(5)
    ]
    said = report.refusals[0].message
    assert re.search(rf"{topic}-0: .* offset 0 takes 20000", said)
    assert "takes 1048588: raise max.message.bytes " in said
    assert lab.assert_equal() == 1


def test_a_partition_without_leader_is_waited_for_while_the_others_are_copied(
    three_brokers: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(three_brokers, topic, 3, replicas=1)
    send(producer(three_brokers), topic, numbered(3_000, partitions=3))
    lab = flow(three_brokers, target_cluster, topic)
    with lab.runs(patience_s=5 * PATIENCE) as runs:
        plan = runs.open_run("one", local_origin())
        three_brokers.brokers[1].kill(signal.SIGKILL)
        report = lab.copy(runs, plan)
    assert report.state is RunState.PARTIAL
    assert [refusal.kind for refusal in report.refusals] == [RefusalKind.NO_LEADER]
    assert "does not serve it" in report.refusals[0].message
    assert report.records == 2_000
    three_brokers.start()
    assert lab.micro_run().records == 1_000
    assert lab.assert_equal() == 3_000


def test_a_replica_in_the_consumers_rack_is_read(
    cluster_home: Path, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (racked,) = up_all([ClusterSpec(name="racked", brokers=3, heap_mb=384, racks=True)], home=cluster_home)
    create_topic(racked, topic, 3, replicas=3)
    send(producer(racked, batch_num_messages=20), topic, numbered(3_000, partitions=3, size=300))
    alias = new_alias()
    near = {f"{alias}.consumer.client.rack": "rack-2", f"{alias}.consumer.max.partition.fetch.bytes": "20000"}
    lab = Lab(source=racked, target=target_cluster, alias=alias, topics=(topic,), settings=near)
    asked: list[int] = []
    fetch = BrokerFetcher._fetch

    async def seen(self: BrokerFetcher) -> None:
        asked.append(self.node)
        await fetch(self)

    monkeypatch.setattr(BrokerFetcher, "_fetch", seen)
    assert lab.micro_run().state is RunState.SUCCESS
    assert lab.assert_equal() == 3_000
    assert asked.count(2) > len(asked) / 2, f"brokers asked: {asked}"
    racked.stop()


def test_a_chunk_ends_before_its_receipt_is_too_large(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copier, "MOST_SEGMENTS", 10)
    create_topic(source_cluster, topic)
    client = producer(source_cluster, transactional_id=topic)
    client.init_transactions()
    for number in range(40):
        client.begin_transaction()
        client.produce(topic, str(number).encode())
        client.commit_transaction()
    lab = flow(source_cluster, target_cluster, topic)
    with lab.runs() as runs:
        result = copy_held(runs, runs.open_run("one", local_origin()), 0, Hooks())
    assert sum(receipt.records for receipt in result.receipts) == 40
    assert all(len(receipt.segments) < 10 + 2 * IN_FLIGHT for receipt in result.receipts)
    assert len(result.receipts) > 1
    assert lab.assert_equal() == 40

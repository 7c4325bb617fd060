"""A target partition that lacks replicas: refused by the plan, while everything else is copied."""

from __future__ import annotations

import signal
from dataclasses import replace

from confluent_kafka.admin import AdminClient

from ferry.decide.report import RunState
from ferry.dev import RunningCluster
from ferry.model import RefusalKind
from ferry.net.ledger import ledger_topic
from tests.harness import create_topic, numbered, producer, send
from tests.run.test_faults import eventually, new_lab, wait_until


def test_a_topic_with_too_few_replicas_in_sync_is_refused_and_the_others_are_copied(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str
) -> None:
    poor, rich = f"{topic}-poor", f"{topic}-rich"
    lab = replace(new_lab(source_cluster, three_brokers, rich), topics=(poor, rich))
    create_topic(source_cluster, poor)
    send(producer(source_cluster), poor, numbered(100))
    target = lab.target_topic(poor)
    create_topic(three_brokers, target, config={"min.insync.replicas": "3"}, replicas=3)
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap})
    victim = three_brokers.brokers[2]  # two of three controllers remain: only min.insync.replicas is not met

    def in_sync() -> set[int]:
        partitions = admin.list_topics(target).topics[target].partitions
        return set(partitions[0].isrs) if partitions else set()

    wait_until(lambda: len(in_sync()) == 3)
    victim.kill(signal.SIGKILL)
    wait_until(lambda: len(in_sync()) == 2)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 4_000), report.refusals
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == (poor, 0, RefusalKind.TOO_FEW_REPLICAS)
    assert f"target {target}-0 has 2 replicas in sync where min.insync.replicas asks for 3: bring" in refusal.message
    ledger = admin.list_topics(ledger_topic(lab.alias)).topics[ledger_topic(lab.alias)].partitions[0]
    assert len(ledger.replicas) == 3, "created with a broker down, it would be refused once that is back"
    three_brokers.start()
    eventually(lab)
    assert lab.assert_equal() == 4_100

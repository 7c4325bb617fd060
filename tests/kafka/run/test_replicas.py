"""A target partition that lacks replicas, before and during a run: refused, while everything else is copied."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from ferry.copy.slot_end import SlotEnd, end_of
from ferry.dev import RunningCluster
from ferry.errors import Unreachable
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from ferry.protocol.names import ledger_topic
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, wait_until
from tests.kafka.run.hooks import Hooks, copy_held
from tests.kafka.run.test_faults import eventually, new_lab
from tests.tiers import PATIENCE


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

    wait_until(lambda: len(in_sync()) == 3, "three replicas in sync")
    victim.kill(signal.SIGKILL)
    wait_until(lambda: len(in_sync()) == 2, "two replicas in sync")
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 4_000), report.refusals
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == (poor, 0, RefusalKind.TOO_FEW_REPLICAS)
    assert (refusal.code, dict(refusal.facts)) == (
        "target.too-few-replicas",
        {"place": f"{target}-0", "in_sync": 2, "needed": 3},
    )
    ledger = admin.list_topics(ledger_topic(lab.alias)).topics[ledger_topic(lab.alias)].partitions[0]
    assert len(ledger.replicas) == 3, "created with a broker down, it would be refused once that is back"
    three_brokers.start()
    eventually(lab)
    assert lab.assert_equal() == 4_100


def test_a_replica_that_is_lost_mid_run_keeps_its_slot_and_no_other(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str
) -> None:
    """The transaction that touched the poor partition cannot end before its replicas are back: its slot gives up."""
    poor, rich = f"{topic}-poor", f"{topic}-rich"
    for name in (poor, rich):
        create_topic(source_cluster, name)
        send(producer(source_cluster), name, numbered(1_000, size=300))
    settings = {"replication.factor": "3", "ferry.chunk.bytes": "100000"}
    lab = Lab(source=source_cluster, target=three_brokers, alias=new_alias(), topics=(poor, rich), settings=settings)
    target = lab.target_topic(poor)
    create_topic(three_brokers, target, config={"min.insync.replicas": "3"}, replicas=3)
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap})

    def replicas() -> tuple[int, int]:
        partition = admin.list_topics(target).topics[target].partitions.get(0)
        return (partition.leader, len(partition.isrs)) if partition is not None else (-1, 0)

    wait_until(lambda: replicas()[1] == 3, "three replicas in sync")
    with lab.runs(patience_s=5 * PATIENCE) as runs:
        plan = runs.open_run("one", local_origin())
        attempt = runs.begin(plan, local_origin())
        (hindered,) = {piece.slot for piece in plan.slices if piece.source.topic == poor}
        (free,) = {piece.slot for piece in plan.slices if piece.source.topic == rich}
        leader, _ = replicas()
        victim = next(broker for broker in three_brokers.brokers if broker.node_id != leader)

        def lose_one() -> None:
            victim.kill(signal.SIGTERM)
            wait_until(lambda: replicas()[1] == 2, "two replicas in sync")

        with pytest.raises(Unreachable) as caught:
            copy_held(runs, plan, hindered, Hooks(before={"copy_chunk": lose_one}), attempt)
        done = copy_held(runs, plan, free, Hooks(), attempt)
        ends = [SlotEnd(slot=hindered, failure=caught.value), end_of(free, done)]
        runs.record_outcome(plan, attempt, ends)
        report = runs.report("one")
    assert str(caught.value).startswith(f"{target}-0 on cluster t{lab.alias} answers NotEnoughReplicasError (19): ")
    assert (report.state, report.records) == (RunState.PARTIAL, 1_000)
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == (poor, 0, RefusalKind.SLOT_FAILED)
    assert (refusal.code, refusal.message.endswith(f": {caught.value}")) == ("slot.failed", True)
    assert {receipt.source.topic for receipt in lab.receipts()} == {rich}
    three_brokers.start()
    wait_until(lambda: replicas()[1] == 3, "three replicas in sync")
    again = lab.micro_run()
    assert (again.state, again.records) == (RunState.SUCCESS, 1_000)
    assert lab.assert_equal() == 2_000

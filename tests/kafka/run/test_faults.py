"""Faults of clusters and of people: each gives one sentence, and the next run loses and doubles nothing."""

from __future__ import annotations

import json
import random
import signal
import string
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from ferry.dev import RunningCluster
from ferry.errors import BadInput, FerryError, Refused, Retryable, Unreachable
from ferry.kafka.connect.cluster import GROUP, TRANSACTION, Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.codec import IDENTICAL_VERSION
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.report import RunState
from ferry.model import Flow, Plan, Slice
from ferry.model import TopicPartition as Place
from ferry.protocol.names import ledger_topic, position_group, transactional_id
from ferry.run.micro_run import local_origin
from tests.harness import (
    Lab,
    Message,
    create_topic,
    delete_topic,
    new_alias,
    numbered,
    on_cluster,
    producer,
    send,
    wait_until,
)
from tests.kafka.run.hooks import Hooks, copy_held
from tests.quotas import quota
from tests.said import codes, data_of
from tests.tiers import PATIENCE


def new_lab(source: RunningCluster, target: RunningCluster, topic: str, **settings: str) -> Lab:
    """Four partitions with 4,000 records, two slots, small chunks."""
    replicas = min(3, len(source.brokers))
    create_topic(source, topic, 4, replicas=replicas)
    send(producer(source, batch_num_messages=50), topic, numbered(4_000, partitions=4, size=300))
    given = {name.replace("_", "."): value for name, value in settings.items()}
    given.setdefault("replication.factor", str(min(3, len(target.brokers))))
    return Lab(
        source=source,
        target=target,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "200000", **given},
    )


def eventually(lab: Lab) -> None:
    """A run that succeeds once the clusters have settled."""

    def succeeded() -> bool:
        try:
            return lab.micro_run().state is RunState.SUCCESS
        except FerryError:
            return False

    wait_until(succeeded, "a run that succeeds", 90)


def test_an_unreachable_cluster_is_named_with_its_address(source_cluster: RunningCluster) -> None:
    lab = Lab(source=source_cluster, target=source_cluster, alias=new_alias(), topics=("x",))
    gone = replace(lab, settings={f"t{lab.alias}.bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(Unreachable, match=rf"t{lab.alias} .*127\.0\.0\.1:1"), gone.runs(patience_s=1):
        pass


def test_source_and_target_being_one_cluster_is_refused(source_cluster: RunningCluster) -> None:
    lab = Lab(source=source_cluster, target=source_cluster, alias=new_alias(), topics=("x",))
    with pytest.raises(Refused) as refused, lab.runs():
        pass
    code, facts = data_of(refused.value)
    assert (code, facts["source"], facts["target"]) == ("clusters.same", lab.alias, f"t{lab.alias}")


def test_a_ledger_that_would_lose_receipts_is_refused(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    create_topic(target_cluster, ledger_topic(lab.alias), 1, {"cleanup.policy": "delete"})
    with pytest.raises(Refused) as refused:
        lab.micro_run()
    code, facts = data_of(refused.value)
    assert (code, facts["setting"], facts["found"]) == ("ledger.may-lose", "cleanup.policy", "delete")


def test_a_ledger_of_a_newer_format_is_not_read(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    lab.micro_run()
    newer = Message(key=b'["run","live","later"]', value=json.dumps({"v": 99}).encode())
    send(producer(target_cluster), ledger_topic(lab.alias), [newer])
    with pytest.raises(BadInput, match=f" 99, .* {IDENTICAL_VERSION}: "):
        lab.micro_run()
    delete_topic(target_cluster, ledger_topic(lab.alias))  # flows that look at their neighbours would stop at it


def test_a_malformed_plan_copies_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    with lab.runs() as runs:
        plan = runs.open_run("broken", local_origin())
        part = Message(key=f'["plan","live","broken",{plan.generation},0]'.encode(), value=b"{}")
        send(producer(target_cluster), ledger_topic(lab.alias), [part])
        with pytest.raises(BadInput, match="digest"):
            lab.copy_slot(runs, plan, 0)
    assert lab.micro_run().records == 4_000
    assert lab.assert_equal() == 4_000


def test_a_run_without_a_plan_says_so(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    lab.micro_run()
    with lab.runs() as runs, pytest.raises(BadInput, match="nobody"):
        runs.report("nobody")


def test_a_member_of_the_position_group_that_commits_over_it_changes_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    lab.micro_run()
    target = lab.target_topic(topic)
    group = position_group(lab.flow.flow, "live")
    member = Consumer(
        {
            "bootstrap.servers": target_cluster.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    joined: list[object] = []
    member.subscribe([target], on_assign=lambda _, places: joined.append(places))
    try:
        wait_until(lambda: (member.poll(0.1), bool(joined))[1], "partitions for the member")
        member.commit(offsets=[TopicPartition(target, number, 1) for number in range(4)], asynchronous=False)
        send(producer(source_cluster), topic, numbered(400, partitions=4, start=4_000))
        report = lab.micro_run()
    finally:
        member.close()
    assert report.records == 400
    assert "position.moved" in codes(report.plan.notes)
    assert lab.assert_equal() == 4_400


def test_a_transaction_timeout_above_the_brokers_limit_is_refused(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    lab.micro_run()
    longer = replace(lab, settings={**lab.settings, "ferry.transaction.timeout.ms": "2000000000"})
    with pytest.raises(Refused, match=r"transaction\.max\.timeout\.ms"):
        longer.micro_run()


@pytest.mark.parametrize(("side", "key"), [("source", "consumer_byte_rate"), ("target", "producer_byte_rate")])
def test_throttling_slows_down_and_breaks_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, side: str, key: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    # The run reads and writes half as much again as a broker gives at once.
    with quota(source_cluster if side == "source" else target_cluster, f"ferry.{lab.flow.flow}", key, 80_000):
        report = lab.micro_run()
    assert report.state is RunState.SUCCESS
    assert (report.throttled.source > 0, report.throttled.target > 0) == (side == "source", side == "target")
    assert report.throttled.ferry == 0
    assert lab.assert_equal() == 4_000


def test_two_of_three_brokers_die_mid_chunk_and_nothing_is_lost(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, three_brokers, topic)
    with lab.runs(patience_s=6 * PATIENCE) as runs:
        plan = runs.open_run("poor", local_origin())
        victims = three_brokers.brokers[:2]

        def kill_two() -> None:
            for broker in victims:
                broker.kill(signal.SIGKILL)

        with pytest.raises(FerryError):
            copy_held(runs, plan, plan.used_slots[0], Hooks(before={"append_receipts": kill_two}))
    three_brokers.start()
    eventually(lab)
    assert lab.assert_equal() == 4_000


@pytest.mark.parametrize(
    ("role", "step"),
    [("group coordinator", "send_positions"), ("ledger leader", "append_receipts"), ("coordinator", "commit")],
)
def test_a_broker_that_the_transaction_needs_dies_mid_chunk_and_the_run_succeeds_without_it(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str, role: str, step: str
) -> None:
    lab = new_lab(source_cluster, three_brokers, topic)
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        assert plan.used_slots, (plan.refusals, plan.notes)
        slot = plan.used_slots[0]

        async def nodes(client: Cluster) -> dict[str, int]:
            ledger = Place(topic=ledger_topic(lab.alias), partition=0)
            await client.refresh([ledger.topic])
            return {
                "ledger leader": client.leader(ledger),
                "coordinator": await client.coordinator(TRANSACTION, transactional_id(lab.flow.flow, "live", slot)),
                "group coordinator": await client.coordinator(GROUP, position_group(lab.flow.flow, "live")),
            }

        victim = three_brokers.broker(on_cluster(three_brokers, nodes)[role])
        hooks = Hooks(before={step: lambda: victim.kill(signal.SIGKILL)})
        # The driver gives a slot that gave up one more try, and no third.
        with suppress(Retryable, Unreachable):
            copy_held(runs, plan, slot, hooks)
        assert not hooks.before, "the slot never came to the step"
        assert lab.copy(runs, plan).state is RunState.SUCCESS
    assert victim.state == "stopped"
    three_brokers.start()
    assert lab.assert_equal() == 4_000


def test_a_source_leader_dies_mid_run(
    three_brokers: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    records, size, memory, chunk = 4_000, 3_000, 1 << 20, 200_000
    create_topic(three_brokers, topic, 4, replicas=3)
    send(producer(three_brokers, batch_num_messages=50), topic, numbered(records, partitions=4, size=size))
    settings = {"ferry.chunk.bytes": str(chunk), "ferry.task.memory.bytes": str(memory)}
    lab = Lab(source=three_brokers, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        slot = plan.used_slots[0]
        mine = [piece.source for piece in plan.of_slot(slot)]

        async def leader(client: Cluster) -> int:
            await client.refresh([topic])
            return client.leader(mine[0])

        victim = three_brokers.broker(on_cluster(three_brokers, leader))
        hooks = Hooks(after={"copy_chunk": lambda: victim.kill(signal.SIGKILL)})
        # Committed, held and under way by then: all that can have been read of this leader's partition before it died.
        assert records // 4 * size > chunk + 2 * memory
        result = copy_held(runs, plan, slot, hooks)
        assert not hooks.after
        assert (result.retries, result.refusals) == (0, {}), "the target saw nothing of it"
        assert sum(receipt.records for receipt in result.receipts) == records // 4 * len(mine)
        assert on_cluster(three_brokers, leader) != victim.node_id
        assert lab.copy(runs, plan).state is RunState.SUCCESS
    three_brokers.start()
    assert lab.assert_equal() == records


def test_a_full_disk_at_the_target_fails_the_run_and_loses_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = new_lab(source_cluster, target_cluster, topic)
    with lab.runs(patience_s=5 * PATIENCE) as runs:
        plan = runs.open_run("full", local_origin())
        broker = target_cluster.brokers[0]
        # Files may not grow past this: a write fails as it does when the disk is full.
        psutil.Process(broker.pid).rlimit(psutil.RLIMIT_FSIZE, (4_096, 4_096))
        with pytest.raises((Retryable, Unreachable)) as caught:
            lab.copy(runs, plan)
    assert broker.state == "stopped", "a broker without a directory that it can write to ends"
    # It may answer with the disk's error, or with nothing any more: whichever came last is in the sentence.
    assert f"cluster t{lab.alias}" in str(caught.value)
    target_cluster.stop()
    target_cluster.start()
    eventually(lab)
    assert lab.assert_equal() == 4_000


def test_a_plan_of_ten_thousand_longest_names_fits_default_limits(
    target_cluster: RunningCluster, rng: random.Random
) -> None:
    names = ["".join(rng.choices(string.ascii_letters, k=249)) for _ in range(10_000)]
    plan = Plan(
        flow=Flow(source="a", target="b"),
        lane="live",
        run="wide",
        generation=1,
        slots=8,
        slices=tuple(
            Slice(
                source=Place(topic=name, partition=0),
                target=Place(topic=name, partition=0),
                start=0,
                end=10**12,
                slot=number % 8,
                bytes_estimate=10**12,
                first=True,
                source_topic_id="0" * 36,
                target_topic_id="0" * 36,
            )
            for number, name in enumerate(names)
        ),
    )

    async def write_and_read(client: Cluster) -> int:
        ledger = LedgerTopic(client, new_alias())
        await ledger.open(1)
        records = plan_records(plan)
        await ledger.append(records)
        found, _ = await ledger.read()
        assert [(entry.key, entry.value) for entry in found] == [(entry.key, entry.value) for entry in records]
        return len(found)

    assert on_cluster(target_cluster, write_and_read) > 2

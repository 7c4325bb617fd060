"""Switches of flows with identical offsets, on real brokers: clients continue at the numbers that they have."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.features.identical.rules import late
from ferry.features.switch.acts.switcher import Switcher
from ferry.ledger.receipts import receipts
from ferry.model.switch import Step, SwitchOutcome, Verb, next_step
from ferry.run.ledger.access import LedgerAccess
from tests.harness import committed_offsets, create_topic, numbered, producer, read_topic, send, wait_until, watermark
from tests.kafka.run.switching import (
    IDENTITY,
    OPTIONS,
    PARTITIONS,
    Clients,
    Pair,
    begin_group,
    switch_killed_at_every_change,
)
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

AWAY = replace(OPTIONS, reverse=False)


def one_way(source: RunningCluster, target: RunningCluster, topic: str, **more: str) -> tuple[Pair, Clients]:
    """A flow with identical offsets whose topics keep their names, and no flow back; the topic, and a group in it."""
    clients = Clients(topic=topic, group=f"group-{topic}")
    pair = Pair(here=source, there=target, topic=topic, group=clients.group)
    settings = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true", **more}
    own = {f"{pair.flow}.{key}": value for key, value in settings.items()}
    own |= {"replication.policy.class": IDENTITY, f"{pair.back}.enabled": "false"}
    create_topic(source, topic, PARTITIONS)
    begin_group(source, clients.group, topic)
    return replace(pair, more=own), clients


def ends_of(cluster: RunningCluster, topic: str) -> list[int]:
    """The ends of the topic's partitions; 0 where it is not there yet."""
    try:
        return [watermark(cluster, topic, number) for number in range(PARTITIONS)]
    except Exception:
        return [0] * PARTITIONS


@pytest.mark.timeout(240)
def test_a_switchover_moves_clients_to_the_same_numbers_and_a_flow_with_others_brings_none_back(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    pair, clients = one_way(source_cluster, target_cluster, topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [topic], 7)
    pair.run(pair.flow)
    clients.produce(source_cluster, 10)
    before = committed_offsets(source_cluster, clients.group, topic, PARTITIONS)

    state = switch_killed_at_every_change(pair, Verb.SWITCHOVER, "over-1", AWAY)
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED
    assert read_topic(target_cluster.bootstrap, topic) == read_topic(source_cluster.bootstrap, topic)
    assert committed_offsets(target_cluster, clients.group, topic, PARTITIONS) == before
    clients.produce(target_cluster, 12)
    clients.consume(target_cluster, [topic])
    assert sorted(clients.read) == sorted(clients.produced)

    there = replace(pair, more={**pair.more, f"{pair.back}.enabled": "true"})
    with pytest.raises(Refused) as caught:
        there.switcher(Verb.FAILBACK)
    assert caught.value.args[0].code == "identical.return"


@pytest.mark.timeout(240)
def test_a_failover_after_a_killed_run_waits_for_late_batches_and_counts_from_the_targets_end(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = {"ferry.throttle.bytes.per.second": str(1 << 19)}
    pair, clients = one_way(source_cluster, target_cluster, topic, **slow)
    clients.produce(source_cluster, 20)
    pair.run(pair.flow)
    send(producer(source_cluster), topic, numbered(12_000, partitions=PARTITIONS, size=1_000))
    planned = sum(ends_of(source_cluster, topic))
    file = tmp_path / "pair.properties"
    file.write_text(pair.text)
    killed = start("run", pair.flow, config=file)
    wait_until(lambda: sum(ends_of(target_cluster, topic)) > 100, "records of the copy", 2 * ANSWER_S)
    wait_until(
        lambda: sum(ends_of(target_cluster, topic)) > received(pair),
        "records of the copy without a receipt",
        2 * ANSWER_S,
    )
    os.killpg(killed.pid, signal.SIGKILL)
    finished(killed)
    written = sum(ends_of(target_cluster, topic))
    assert received(pair) < written < planned

    lost = pair.lost
    with lost.switcher(Verb.FAILOVER) as switcher:
        state = switcher.open("over-2", replace(AWAY, interrupt=True), "bob")
        with pytest.raises(Refused) as caught:
            switcher.run("over-2")
        assert f"{topic}-" in str(caught.value)
        assert next_step(switcher.state("over-2")) is Step.STOP
        monkeypatch.setattr(late, "LEASE_MS", 0)
        monkeypatch.setattr(late, "MARGIN_MS", -600_000)  # as if that time were over
        state = switcher.run("over-2")
    assert state.end is not None
    assert state.fact(Step.LOSS, "records") == planned - sum(ends_of(target_cluster, topic))
    assert sum(ends_of(target_cluster, topic)) == written


@pytest.mark.timeout(240)
def test_a_failover_after_a_run_that_copied_all_it_planned_waits_for_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    pair, clients = one_way(source_cluster, target_cluster, topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [topic], 7)
    pair.run(pair.flow)
    before = committed_offsets(source_cluster, clients.group, topic, PARTITIONS)
    file = tmp_path / "pair.properties"
    file.write_text(pair.text)
    ready = ferry("readiness", pair.flow, "--json", config=file).json("readiness")
    assert [one["ok"] for one in ready["checks"] if one["name"] == "offsets"] == [True]

    with Switcher(pair.lost.settings, pair.lost.settings.flow(pair.flow), Verb.FAILOVER, who="ann@desk-7") as switcher:
        switcher.open("over-3", AWAY, "bob")
        state = switcher.run("over-3")
    assert state.end is not None
    assert state.fact(Step.LOSS, "records") == 0
    assert committed_offsets(target_cluster, clients.group, topic, PARTITIONS) == before
    clients.produce(target_cluster, 4)
    clients.consume(target_cluster, [topic])
    assert sorted(clients.read) == sorted(clients.produced)


def received(pair: Pair) -> int:
    """How many records have a receipt."""
    with LedgerAccess(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as ledger:
        return sum(receipt.records for receipt in receipts(ledger.view()))

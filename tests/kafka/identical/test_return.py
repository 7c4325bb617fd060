"""The way back with identical offsets, on real brokers: clients go to the other cluster and return, at one numbering."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.dev import RunningCluster
from ferry.model.switch import SwitchOutcome, Verb
from tests.harness import committed_offsets, create_topic, read_topic
from tests.kafka.run.switching import (
    IDENTITY,
    OPTIONS,
    PARTITIONS,
    Clients,
    Pair,
    begin_group,
    rest,
    switch_killed_at_every_change,
)


def both_ways(source: RunningCluster, target: RunningCluster, topic: str, **more: str) -> tuple[Pair, Clients]:
    """Flows with identical offsets in both directions, whose topics keep their names; the topic, and a group in it."""
    clients = Clients(topic=topic, group=f"group-{topic}")
    own = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true", "replication.policy.class": IDENTITY}
    pair = Pair(here=source, there=target, topic=topic, group=clients.group, more={**own, **more})
    create_topic(source, topic, PARTITIONS)
    begin_group(source, clients.group, topic)
    rest(pair)
    return pair, clients


@pytest.mark.timeout(300)
def test_clients_move_and_return_and_move_again_at_one_numbering(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """Processes die at each change of the switches. In between clients write, and runs follow."""
    pair, clients = both_ways(source_cluster, target_cluster, topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [topic], 7)
    pair.run(pair.flow)
    clients.produce(source_cluster, 10)

    moved(pair, clients, Verb.SWITCHOVER, "out-1", source_cluster, target_cluster)
    pair.run(pair.back)
    clients.produce(target_cluster, 6)
    moved(pair, clients, Verb.FAILBACK, "back-1", target_cluster, source_cluster)
    pair.run(pair.flow)
    clients.produce(source_cluster, 4)
    moved(pair, clients, Verb.SWITCHOVER, "out-2", source_cluster, target_cluster)
    moved(pair, clients, Verb.FAILBACK, "back-2", target_cluster, source_cluster)
    pair.run(pair.flow)
    assert same(source_cluster, target_cluster, topic)


def moved(pair: Pair, clients: Clients, verb: Verb, switch: str, old: RunningCluster, new: RunningCluster) -> None:
    """Clients move, and continue at the other cluster: the group at its numbers, and producers with 12 records."""
    before = committed_offsets(old, clients.group, clients.topic, PARTITIONS)
    state = switch_killed_at_every_change(pair, verb, switch, replace(OPTIONS, reverse=True))
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED
    assert same(old, new, clients.topic)
    assert committed_offsets(new, clients.group, clients.topic, PARTITIONS) == before
    clients.produce(new, 12)
    clients.consume(new, [clients.topic])
    assert sorted(clients.read) == sorted(clients.produced)


def same(one: RunningCluster, other: RunningCluster, topic: str) -> bool:
    """Whether both clusters have the same records at the same offsets."""
    return read_topic(one.bootstrap, topic) == read_topic(other.bootstrap, topic)

"""A switch there, and a failover back, of a topic with a thousand partitions: the group loses nothing."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.features.groups.acts.of_run import sync_groups
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.rules.readiness import Rpo
from ferry.model.switch import Step, SwitchState, Verb
from ferry.run.micro_run import MicroRuns
from tests.harness import Message, commit_offsets, create_topic, producer, send, wait_until
from tests.kafka.run.switching import IDENTITY, OPTIONS, Pair, member, rest
from tests.tiers import ANSWER_S

PARTITIONS = 1_000


@dataclass(kw_only=True)
class Many:
    """Producers and a group of a topic with very many partitions, and what they have seen."""

    topic: str
    group: str
    produced: list[bytes] = field(default_factory=list)
    read: list[bytes] = field(default_factory=list)

    def produce(self, cluster: RunningCluster, count: int) -> None:
        """So many records to each partition."""
        begin = len(self.produced)
        values = [f"{number}".encode() for number in range(begin, begin + count * PARTITIONS)]
        messages = [Message(value=value, partition=number % PARTITIONS) for number, value in enumerate(values)]
        send(producer(cluster), self.topic, messages)
        self.produced += values

    def consume(self, cluster: RunningCluster, topics: list[str], count: int) -> None:
        """The group reads just so many records (0: all that there are), commits them, and leaves."""
        found: list[bytes] = []
        with member(cluster, self.group, topics) as client:
            ended: set[tuple[str, int]] = set()
            everywhere = len(topics) * PARTITIONS

            def read() -> bool:
                ends: dict[tuple[str, int], int] = {}
                for message in client.consume(max(1, count - len(found)) if count else 2_000, timeout=0.5):
                    place = str(message.topic()), int(message.partition() or 0)
                    if message.error() is not None:
                        ended.add(place)
                        continue
                    found.append(message.value() or b"")
                    ends[place] = int(message.offset() or 0) + 1
                if ends:
                    places = [TopicPartition(*place, end) for place, end in ends.items()]
                    client.commit(offsets=places, asynchronous=False)
                return len(found) == count if count else len(ended) == everywhere

            wait_until(read, "the records that the group is to read", 240)
        self.read += found


def switched(pair: Pair, verb: Verb, name: str) -> SwitchState:
    """A switch from its begin to its end."""
    with pair.switcher(verb) as switcher:
        switcher.open(name, OPTIONS, "bob")
        return switcher.run(name)


@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_a_thousand_partitions_are_switched_and_failed_over_back(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, policy: str
) -> None:
    keeps = policy == "Identity"
    many = Many(topic=topic, group=f"g-{topic}")
    pair = Pair(
        here=source_cluster,
        there=target_cluster,
        topic=topic,
        group=many.group,
        more={"replication.policy.class": IDENTITY} if keeps else {},
    )
    here, there = pair.aliases
    on_there, on_here = ([topic], [topic]) if keeps else ([topic, f"{here}.{topic}"], [topic, f"{there}.{topic}"])
    create_topic(source_cluster, topic, PARTITIONS)
    commit_offsets(source_cluster, many.group, {(topic, number): 0 for number in range(PARTITIONS)})
    if keeps:
        rest(pair)
    many.produce(source_cluster, 3)
    many.consume(source_cluster, [topic], 1_200)
    pair.run(pair.flow)
    state = switched(pair, Verb.SWITCHOVER, "over-1")
    (row,) = [row for row in state.rows(Step.GROUPS) if row["group"] == many.group]
    assert (row["outcome"], len(row["offsets"]) >= PARTITIONS) == ("moved", True)

    many.produce(target_cluster, 1)
    many.consume(target_cluster, on_there, 500)
    pair.run(pair.back)
    found = check_readiness(pair.settings.flow(pair.back), Rpo(), back=True, patience_s=2 * ANSWER_S)
    assert found.ready, found.failed
    assert len(many.read) == len(set(many.read)), "a planned switch doubles nothing"
    many.consume(target_cluster, on_there, 300)

    state = switched(pair.turned.lost, Verb.FAILOVER, "lost-1")
    (row,) = [row for row in state.rows(Step.GROUPS) if row["group"] == many.group]
    many.consume(source_cluster, on_here, 0)
    assert set(many.read) == set(many.produced), "nothing is lost"
    assert len(many.read) - len(set(many.read)) <= row["again"]


def test_each_of_three_groups_without_a_checkpoint_in_a_thousand_partitions_is_named(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """Somebody has moved them all on the target: a failover goes by no checkpoint, and leaves none in silence."""
    groups = [f"g-{topic}-{number}" for number in range(3)]
    pair = Pair(here=source_cluster, there=target_cluster, topic=topic, group=f"g-{topic}")
    create_topic(source_cluster, topic, PARTITIONS)
    send(producer(source_cluster), topic, [Message(value=b"v", partition=at % PARTITIONS) for at in range(2_000)])
    copy = f"{pair.aliases[0]}.{topic}"
    pair.run(pair.flow)
    for group in groups:
        commit_offsets(source_cluster, group, {(topic, number): 2 for number in range(PARTITIONS)})
        commit_offsets(target_cluster, group, {(copy, number): 0 for number in range(PARTITIONS)})
    pair.run(pair.flow)
    with pair.lost.switcher(Verb.FAILOVER) as switcher, pytest.raises(Refused, match="3 groups") as refused:
        switcher.open(f"lost-{secrets.token_hex(4)}", OPTIONS, "bob")
    assert all(group in str(refused.value) for group in groups)
    with MicroRuns(pair.settings.flow(pair.flow), patience_s=2 * ANSWER_S) as runs:
        sync_groups(runs, "by-hand", only=frozenset(groups), force=True)
    state = switched(pair.lost, Verb.FAILOVER, "lost-1")
    assert {row["group"]: row["outcome"] for row in state.rows(Step.GROUPS)} == dict.fromkeys(groups, "moved")

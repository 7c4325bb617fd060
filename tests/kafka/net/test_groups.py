"""Consumer groups of real brokers: listed, described, their offsets fetched and written, many at once."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from ferry.dev import RunningCluster
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.groups.listing import describe_groups, list_groups
from ferry.kafka.groups.offsets import GroupActive, commit_offsets, fetch_offsets
from ferry.model import CommittedOffset, GroupKind, TopicPartition
from tests.harness import create_topic, numbered, producer, send, wait_until
from tests.tiers import ANSWER_S

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def connected(brokers: RunningCluster, patience_s: float = 20.0) -> Iterator[Cluster]:
    loop = event_loop()
    cluster = Cluster(loop, "primary", {"bootstrap_servers": brokers.bootstrap.split(",")}, patience_s=patience_s)
    try:
        loop.run(cluster.open)
        yield cluster
    finally:
        cluster.close()
        loop.close()


def ask(
    work: Callable[Concatenate[Cluster, P], Awaitable[T]], cluster: Cluster, *args: P.args, **kwargs: P.kwargs
) -> T:
    result: T = cluster.loop.run(partial(work, cluster, *args, **kwargs))
    return result


@pytest.fixture(params=["4.3.0", "3.9.1"])
def brokers(request: pytest.FixtureRequest) -> RunningCluster:
    """Brokers of both ages; those of 3.9 do not offer KIP-848's protocol unless told to."""
    found: RunningCluster = request.getfixturevalue("source_cluster" if request.param == "4.3.0" else "old_cluster")
    return found


@contextmanager
def consuming(brokers: RunningCluster, group: str, topic: str, protocol: str) -> Iterator[Consumer]:
    """A consumer that has its partitions, reads one record of each and keeps its membership alive."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "client.id": "reader",
        }
    )
    try:
        consumer.subscribe([topic])

        def has_partitions() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(has_partitions, "partitions for the member")
        yield consumer
    finally:
        consumer.close()


def test_groups_are_listed_described_read_and_written(brokers: RunningCluster, topic: str) -> None:
    create_topic(brokers, topic, 2)
    send(producer(brokers), topic, numbered(10, partitions=2))
    suffix = secrets.token_hex(4)
    resting, foreign = f"resting-{suffix}", f"nobody-{suffix}"
    protocols = ["classic"] + (["consumer"] if brokers.spec.version.startswith("4") else [])
    places = [TopicPartition(topic=topic, partition=number) for number in (0, 1)]
    with connected(brokers) as cluster:
        for protocol in protocols:
            group = f"{protocol}-{suffix}"
            with consuming(brokers, group, topic, protocol) as consumer:
                consumer.commit(offsets=[Place(topic, 0, 3, metadata="as far as three")], asynchronous=False)
                listed = ask(list_groups, cluster)
                assert listed.silent == {}
                found = listed.groups[group]
                assert (found.kind, found.state, found.is_active) == (GroupKind(protocol), "Stable", True)
                described = ask(describe_groups, cluster, [found])
                assert described.failed == {}
                owners = described.groups[group].owners
                assert set(owners) == set(places)
                assert owners[places[0]].client_id == "reader"
                wanted = {
                    group: {places[0]: CommittedOffset(offset=1)},
                    resting: {places[1]: CommittedOffset(offset=4, metadata="é", leader_epoch=0)},
                }
                written = ask(commit_offsets, cluster, wanted)
                assert {name: type(error) for name, error in written.failed.items()} == {group: GroupActive}
                assert written.refused == {}
            named = dict.fromkeys([group, resting, foreign], tuple(places))
            read = ask(fetch_offsets, cluster, named, stable=True)
            assert (read.failed, read.pending, read.denied) == ({}, {}, {})
            assert {place: (at.offset, at.metadata.rstrip("\0")) for place, at in read.found[group].items()} == {
                places[0]: (3, "as far as three")
            }
            assert read.found[resting] == {places[1]: CommittedOffset(offset=4, metadata="é", leader_epoch=0)}
            assert read.found[foreign] == {}
            everything = ask(fetch_offsets, cluster, {resting: None}, stable=False)
            assert everything.found == {resting: read.found[resting]}
        again = ask(list_groups, cluster).groups[resting]
        assert (again.state, again.is_active) == ("Empty", False)
        gone = TopicPartition(topic=f"{topic}-gone", partition=0)
        partly = {resting: {gone: CommittedOffset(offset=1), places[0]: CommittedOffset(offset=2)}}
        written = ask(commit_offsets, cluster, partly)
        assert written.failed == {}
        assert list(written.refused[resting]) == [gone]
        assert "no longer has" in written.refused[resting][gone]


def test_groups_whose_coordinator_moves_are_asked_at_the_next_one(three_brokers: RunningCluster, topic: str) -> None:
    create_topic(three_brokers, topic, 1, replicas=3)
    place = TopicPartition(topic=topic, partition=0)
    groups = [f"moving-{secrets.token_hex(4)}" for _ in range(12)]
    with connected(three_brokers, patience_s=ANSWER_S) as cluster:
        wanted = {group: {place: CommittedOffset(offset=number)} for number, group in enumerate(groups)}
        assert ask(commit_offsets, cluster, wanted).failed == {}
        three_brokers.brokers[1].kill()
        moved = {group: {place: CommittedOffset(offset=number + 100)} for number, group in enumerate(groups)}
        assert ask(commit_offsets, cluster, moved).failed == {}
        read = ask(fetch_offsets, cluster, {group: [place] for group in groups}, stable=True)
        assert {group: read.found[group][place].offset for group in groups} == {
            group: number + 100 for number, group in enumerate(groups)
        }
        listed = ask(list_groups, cluster)
        assert set(groups) <= set(listed.groups)
        assert listed.silent == {}


def test_stable_offsets_are_of_named_partitions() -> None:
    loop = event_loop()
    cluster = Cluster(loop, "primary", {"bootstrap_servers": "127.0.0.1:1"})
    with pytest.raises(ValueError, match="partitions"):
        loop.run(lambda: fetch_offsets(cluster, {"orders": None}, stable=True))
    cluster.close()
    loop.close()

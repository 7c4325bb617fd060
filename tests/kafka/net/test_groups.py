"""Consumer groups of real brokers: listed, described, their offsets fetched and written, many at once."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import pytest

from ferry.dev import RunningCluster
from ferry.model import CommittedOffset, TopicPartition
from ferry.net.connect.cluster import Cluster, event_loop
from ferry.net.groups.listing import list_groups
from ferry.net.groups.offsets import commit_offsets, fetch_offsets
from tests.harness import create_topic

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


@pytest.mark.timeout(120)
def test_groups_whose_coordinator_moves_are_asked_at_the_next_one(three_brokers: RunningCluster, topic: str) -> None:
    create_topic(three_brokers, topic, 1, replicas=3)
    place = TopicPartition(topic=topic, partition=0)
    groups = [f"moving-{secrets.token_hex(4)}" for _ in range(12)]
    with connected(three_brokers, patience_s=40.0) as cluster:
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
    with pytest.raises(ValueError, match="named partitions"):
        loop.run(lambda: fetch_offsets(cluster, {"orders": None}, stable=True))
    cluster.close()
    loop.close()

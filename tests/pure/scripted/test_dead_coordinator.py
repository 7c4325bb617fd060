"""Groups whose coordinator has died: they are asked at the broker that has them then, or its silence is named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import pytest

from ferry.errors import Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.listing import describe_groups, list_groups
from ferry.kafka.groups.offsets import commit_offsets, fetch_offsets
from ferry.model import CommittedOffset, ListedGroup
from tests.pure.protocol.world import TOPIC
from tests.pure.scripted.faults import At, Fault
from tests.pure.scripted.lane import place
from tests.pure.scripted.whole import WholeBrokers
from tests.pure.scripted.wire import scripted

PLACE = place()
GROUPS = [f"moving-{number}" for number in range(12)]


def die(brokers: WholeBrokers) -> None:
    """Broker 2 dies. It is still named as coordinator once; then the others have its groups, and load them first."""
    brokers.nodes = (1, 3)
    moved = [group for group, node in brokers.coordinators.items() if node == 2]
    assert moved

    def move() -> None:
        for number, group in enumerate(moved):
            brokers.coordinators[group] = brokers.nodes[number % 2]

    brokers.faults.append(Fault(api="FindCoordinator", then=move))
    for group in moved:
        brokers.faults += [
            Fault(api="OffsetCommit", key=group, code=codes.COORDINATOR_LOAD_IN_PROGRESS),
            Fault(api="OffsetFetch", key=group, code=codes.COORDINATOR_LOAD_IN_PROGRESS, at=At.LISTED),
            Fault(api="DescribeGroups", key=group, code=codes.COORDINATOR_LOAD_IN_PROGRESS),
        ]
    brokers.faults.append(Fault(api="ListGroups", code=codes.COORDINATOR_LOAD_IN_PROGRESS, at=At.OUTER))


async def commit(cluster: Cluster, _: Iterable[ListedGroup]) -> None:
    done = await commit_offsets(cluster, {group: {PLACE: CommittedOffset(offset=9)} for group in GROUPS})
    assert (done.failed, done.refused) == ({}, {})
    await fetch(cluster, (), offset=9)


async def fetch(cluster: Cluster, _: Iterable[ListedGroup], offset: int = 1) -> None:
    read = await fetch_offsets(cluster, {group: [PLACE] for group in GROUPS}, stable=True)
    assert (read.failed, read.pending, read.denied) == ({}, {}, {})
    assert {group: found[PLACE].offset for group, found in read.found.items()} == dict.fromkeys(GROUPS, offset)


async def describe(cluster: Cluster, listed: Iterable[ListedGroup]) -> None:
    described = await describe_groups(cluster, listed)
    assert (set(described.groups), described.failed) == (set(GROUPS), {})


async def list_again(cluster: Cluster, _: Iterable[ListedGroup]) -> None:
    await fetch(cluster, ())  # another broker has them by then
    listed = await list_groups(cluster)
    assert (set(listed.groups), listed.silent) == (set(GROUPS), {})


@pytest.mark.parametrize("act", [commit, fetch, describe, list_again])
def test_groups_whose_coordinator_dies_are_asked_at_the_next_one(
    act: Callable[[Cluster, Iterable[ListedGroup]], Awaitable[None]],
) -> None:
    brokers = WholeBrokers(alias="three", nodes=(1, 2, 3))
    brokers.topic(TOPIC)
    for number, group in enumerate(GROUPS):
        brokers.coordinators[group] = 1 + number % 3
        brokers.groups[group] = {PLACE: (1, "")}
    with scripted(brokers) as (_, (cluster,)):
        listed = cluster.loop.run(list_groups, cluster).groups.values()  # over a connection to each broker
        die(brokers)
        cluster.loop.run(partial(act, cluster, listed))


@pytest.mark.parametrize(
    "how", [{"code": codes.COORDINATOR_LOAD_IN_PROGRESS, "at": At.OUTER}, {"lost": True}, {"held": True}], ids=str
)
def test_a_broker_that_stays_silent_hides_its_own_groups_alone(how: dict[str, Any]) -> None:
    brokers = WholeBrokers(alias="three", nodes=(1, 2, 3))
    brokers.topic(TOPIC)
    for number, group in enumerate(GROUPS):
        brokers.coordinators[group] = 1 + number % 3
        brokers.groups[group] = {PLACE: (1, "")}
    brokers.faults.append(Fault(api="ListGroups", times=10**6, only=lambda asked: asked.node == 2, **how))
    with scripted(brokers) as (_, (cluster,)):
        listed = cluster.loop.run(list_groups, cluster)
    assert listed.groups.keys() == {group for group, node in brokers.coordinators.items() if node != 2}
    assert listed.silent.keys() == {2}


def test_brokers_that_are_all_silent_list_nothing() -> None:
    brokers = WholeBrokers(alias="three", nodes=(1, 2, 3))
    code = codes.COORDINATOR_LOAD_IN_PROGRESS
    brokers.faults.append(Fault(api="ListGroups", code=code, at=At.OUTER, times=10**6, skip=2))
    with scripted(brokers) as (_, (cluster,)), pytest.raises(Unreachable):
        cluster.loop.run(list_groups, cluster)

"""The scripted brokers of the pure tests answer as Kafka does: the same requests to both, and the same answers.

Each sequence of requests is one case. Producer ids are compared by the order in which they appeared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ferry.dev import RunningCluster, up
from ferry.kafka.connect.cluster import Cluster
from tests.harness import create_topic, on_cluster
from tests.kafka.raw import Raw
from tests.kafka.run.groups import member
from tests.kafka.run.test_permissions import GUARDED
from tests.kafka.wire import admin_cases, log_cases, producer_cases
from tests.kafka.wire.admin_cases import AdminCase, AdminTalk, Members
from tests.kafka.wire.talk import Case, Talk
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.whole import WholeBrokers
from tests.pure.scripted.wire import scripted

PARTITIONS = 2
BOTH = producer_cases.CASES.both | log_cases.CASES.both
FIRST = producer_cases.CASES.first | log_cases.CASES.first
"""Those of transactions of version 1 alone."""


async def epochs_that_are_used_up(talk: Talk) -> None:
    """By InitProducerId, by commits, and by InitProducerId over an open transaction."""
    await talk.wear(left=4)
    for _ in range(6):
        await talk.init()
    talk.name += "-ended"
    await talk.wear(left=4)
    who = await talk.init()
    for number in range(6):
        await talk.write(who, 0 if talk.version == 2 else number)
        who = await talk.end(who, True)
    await talk.log()
    talk.name += "-open"
    await talk.wear(left=1)
    await talk.open()
    await talk.init(once=True)
    await talk.state()
    await talk.init()
    await talk.log()


TALKS = [(1, name) for name in BOTH | FIRST] + [(2, name) for name in BOTH]


BEFORE_4: dict[str, dict[int, tuple[Any, ...]]] = {
    "initialise_with_the_own_epoch_over_the_own_transaction": {
        5: ("InitProducerId", 90, -1, -1),
        6: ("DescribeTransactions", 0, "CompleteAbort", 0, 1),
    },
    "a_position_of_a_member_that_is_not_there": {2: ("TxnOffsetCommit", 25), 4: ("TxnOffsetCommit", 25)},
}
"""What Kafka 3.9.1 answers otherwise, by the number of the answer."""


def of_script(case: Case, topic: str, version: int) -> list[tuple[Any, ...]]:
    """What the scripted broker answers."""
    brokers = Brokers(alias="scripted", version=version)
    brokers.topic(topic, PARTITIONS)
    with scripted(brokers) as (_, [cluster]):
        talks: list[Talk] = []

        async def act() -> None:
            talks.append(Talk(await Raw(cluster, topic).open(), version))
            talks[0].transactions = brokers.target.txns
            await case(talks[0])

        cluster.loop.run(act)
    return talks[0].said


def of_kafka(case: Case, cluster: RunningCluster, topic: str, version: int) -> list[tuple[Any, ...]]:
    """What a real broker answers."""
    create_topic(cluster, topic, PARTITIONS)
    talks: list[Talk] = []

    async def act(client: Cluster) -> None:
        talks.append(Talk(await Raw(client, topic).open(), version))
        await case(talks[0])

    on_cluster(cluster, act)
    return talks[0].said


@pytest.mark.parametrize(("version", "name"), TALKS)
def test_kafka_answers_the_same(target_cluster: RunningCluster, topic: str, version: int, name: str) -> None:
    case = (BOTH | FIRST)[name]
    assert of_kafka(case, target_cluster, topic, version) == of_script(case, topic, version)


@pytest.mark.parametrize("name", BOTH | FIRST)
def test_kafka_3_9_answers_the_same(old_cluster: RunningCluster, topic: str, name: str) -> None:
    case = (BOTH | FIRST)[name]
    expected = of_script(case, topic, 1)
    for number, other in BEFORE_4.get(name, {}).items():
        assert expected[number] != other
        expected[number] = other
    assert of_kafka(case, old_cluster, topic, 1) == expected


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", [1, 2])
def test_epochs_that_are_used_up(target_cluster: RunningCluster, topic: str, version: int) -> None:
    expected = of_script(epochs_that_are_used_up, topic, version)
    assert of_kafka(epochs_that_are_used_up, target_cluster, topic, version) == expected


# ---- what changes and describes topics, settings, ACLs, groups and disks


@pytest.fixture(scope="module")
def authorizing(cluster_home: Path) -> Iterator[RunningCluster]:
    """A broker with an authorizer, at which this test may do all."""
    cluster = up(replace(GUARDED, name="authorizing"), home=cluster_home)
    yield cluster
    cluster.stop()


def admin_said(case: AdminCase, cluster: Cluster, topic: str, members: Members) -> list[Any]:
    """What a cluster answers."""
    talk = AdminTalk(cluster, topic, members)
    cluster.loop.run(partial(case, talk))
    return talk.said


def scripted_admin(case: AdminCase, topic: str, *, authorizer: bool = True) -> list[Any]:
    """What the scripted broker answers."""
    brokers = WholeBrokers(alias="scripted", authorizer=authorizer, settings=dict(DEFAULTS))

    @contextmanager
    def members(group: str, _topic: str, protocol: str) -> Iterator[None]:
        brokers.groups.setdefault(group, {})
        brokers.active.add(group)
        brokers.modern |= {group} if protocol == "consumer" else set()
        yield

    with scripted(brokers) as (_, [cluster]):
        return admin_said(case, cluster, topic, members)


def kafka_admin(case: AdminCase, cluster: RunningCluster, topic: str) -> list[Any]:
    """What a real broker answers."""
    found: list[Any] = []

    async def act(client: Cluster) -> None:
        talk = AdminTalk(client, topic, partial(member, cluster))
        await case(talk)
        found.extend(talk.said)

    on_cluster(cluster, act)
    return found


DEFAULTS = {"cleanup.policy": "delete", "max.message.bytes": "1048588", "retention.ms": "604800000"}
"""Settings of topics for which a new broker has nothing else."""


@pytest.mark.parametrize("name", admin_cases.CASES)
def test_kafka_answers_what_changes_and_describes_the_same(authorizing: RunningCluster, topic: str, name: str) -> None:
    case = admin_cases.CASES[name]
    assert kafka_admin(case, authorizing, topic) == scripted_admin(case, topic)


def test_kafka_without_an_authorizer_answers_the_same_about_acls(target_cluster: RunningCluster, topic: str) -> None:
    case = admin_cases.acls_without_an_authorizer
    assert kafka_admin(case, target_cluster, topic) == scripted_admin(case, topic, authorizer=False)

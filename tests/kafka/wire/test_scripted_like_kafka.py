"""The scripted brokers of the pure tests answer as Kafka does: the same requests to both, and the same answers.

Each sequence of requests is one case. Producer ids are compared by the order in which they appeared.
"""

from __future__ import annotations

from typing import Any

import pytest

from ferry.dev import RunningCluster
from ferry.kafka.connect.cluster import Cluster
from tests.harness import create_topic, on_cluster
from tests.kafka.raw import Raw
from tests.kafka.wire import log_cases, producer_cases
from tests.kafka.wire.talk import Case, Talk
from tests.pure.scripted.broker import Brokers
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

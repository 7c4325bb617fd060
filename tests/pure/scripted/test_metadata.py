"""Brokers that learn of topics late: what one of them does not know yet is not gone."""

from __future__ import annotations

import pytest

from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import TopicPartition
from tests.pure.protocol.world import TOPIC
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.wire import scripted

NODES = (1, 2, 3)
PLACE = TopicPartition(topic=TOPIC, partition=0)


@pytest.fixture
def brokers() -> Brokers:
    made = Brokers(alias="two", nodes=NODES)
    made.topic(TOPIC, 2)
    return made


@pytest.mark.parametrize("names", [None, [TOPIC]], ids=["all", "named"])
@pytest.mark.parametrize("aware", NODES)
def test_a_topic_that_one_broker_still_knows_is_there(brokers: Brokers, aware: int, names: list[str] | None) -> None:
    with scripted(brokers) as (_, (cluster,)):
        cluster.loop.run(cluster.refresh, None)
        brokers.unaware = {*NODES} - {aware}
        for _ in NODES:
            assert cluster.loop.run(cluster.refresh, names).keys() == {TOPIC}
            assert cluster.topics.keys() == {TOPIC}


def test_its_offsets_are_learned(brokers: Brokers) -> None:
    with scripted(brokers) as (_, (cluster,)):
        cluster.loop.run(cluster.refresh, None)
        brokers.unaware = {1, 2}
        found = cluster.loop.run(lambda: listed_offsets(cluster, {PLACE: LATEST}, isolation=READ_UNCOMMITTED))
        assert (found.found, found.failed) == ({PLACE: 0}, {})


@pytest.mark.parametrize("names", [None, [TOPIC]], ids=["all", "named"])
@pytest.mark.parametrize("silent", [False, True], ids=["answers", "silent"])
def test_a_topic_that_no_broker_knows_is_gone(brokers: Brokers, silent: bool, names: list[str] | None) -> None:
    with scripted(brokers) as (_, (cluster,)):
        cluster.loop.run(cluster.refresh, None)
        brokers.unaware = {*NODES}
        if silent:  # all but the first one asked
            brokers.faults.append(Fault(api="Metadata", skip=1, lost=True, times=9))
        asked = brokers.count("Metadata")
        assert cluster.loop.run(cluster.refresh, names) == {}
        assert cluster.topics == {}
        assert brokers.count("Metadata") == asked + 1 + len(NODES)
        brokers.faults.clear()
        asked = brokers.count("Metadata")
        assert cluster.loop.run(cluster.refresh, names) == {}
        assert brokers.count("Metadata") == asked + 1, "a topic that is gone is asked for once"


def test_two_looks_at_once_find_that_a_topic_is_gone(brokers: Brokers) -> None:
    with scripted(brokers) as (_, (cluster,)):
        cluster.loop.run(cluster.refresh, None)
        brokers.unaware = {*NODES}

        async def both() -> list[object]:
            looks = [cluster.loop.call_soon_with_future(cluster.refresh, [TOPIC]) for _ in range(2)]
            return [await one for one in looks]

        assert cluster.loop.run(both) == [{}, {}]

"""Brokers that learn of topics late: what one of them does not know yet is not gone."""

from __future__ import annotations

import pytest

from ferry.errors import Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import TopicPartition
from tests.pure.protocol.world import TOPIC
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import At, Fault
from tests.pure.scripted.table import CODES
from tests.pure.scripted.wire import scripted
from tests.tiers import share

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


@pytest.mark.parametrize("at", [At.LISTED, At.OUTER])
@pytest.mark.parametrize("names", [None, [TOPIC]], ids=["all", "named"])
def test_an_error_does_not_say_that_a_topic_is_gone(brokers: Brokers, at: At, names: list[str] | None) -> None:
    """Or a run would refuse to copy it, or copy it once more."""
    says = {*codes.UNAUTHORIZED, codes.UNKNOWN_TOPIC_OR_PARTITION, codes.UNKNOWN_TOPIC_ID, codes.INVALID_TOPIC}
    for code in share(sorted(CODES - says), 0, 12):
        brokers.faults = [Fault(api="Metadata", topic=TOPIC, code=code, at=at, times=5)]
        with scripted(brokers) as (_, (cluster,)):
            assert cluster.loop.run(cluster.refresh, names).keys() == {TOPIC}
        assert brokers.faults[0].happened == 5


@pytest.mark.parametrize("code", [7, -1])
def test_a_topic_is_not_gone_while_another_broker_answers_with_an_error(brokers: Brokers, code: int) -> None:
    with scripted(brokers) as (_, (cluster,)):
        cluster.loop.run(cluster.refresh, None)
        brokers.unaware = {*NODES}
        brokers.faults = [Fault(api="Metadata", topic=TOPIC, code=code, at=At.LISTED, skip=1, times=1)]
        with pytest.raises(Unreachable) as raised:
            cluster.loop.run(cluster.refresh, [TOPIC])
        assert codes.describe(code) in str(raised.value)
        assert cluster.topics.keys() == {TOPIC}


@pytest.mark.parametrize("code", [codes.UNKNOWN_TOPIC_OR_PARTITION, *codes.UNAUTHORIZED])
def test_a_code_of_the_whole_answer_says_nothing_of_a_topic(brokers: Brokers, code: int) -> None:
    brokers.faults = [Fault(api="Metadata", code=code, at=At.OUTER, times=3)]
    with scripted(brokers) as (_, (cluster,)):
        assert cluster.loop.run(cluster.refresh, [TOPIC]).keys() == {TOPIC}
    assert brokers.faults[0].happened == 3


@pytest.mark.parametrize("code", [codes.LEADER_NOT_AVAILABLE, 7, 129, -1])
def test_an_error_that_stays_is_named(brokers: Brokers, code: int) -> None:
    brokers.faults = [Fault(api="Metadata", topic=TOPIC, code=code, at=At.LISTED, times=10_000)]
    with scripted(brokers) as (_, (cluster,)), pytest.raises(Unreachable) as raised:
        cluster.loop.run(cluster.refresh, [TOPIC])
    assert codes.describe(code) in str(raised.value)


@pytest.mark.parametrize("code", [codes.UNKNOWN_TOPIC_OR_PARTITION, codes.INVALID_TOPIC, *codes.UNAUTHORIZED])
@pytest.mark.parametrize("names", [None, [TOPIC]], ids=["all", "named"])
def test_a_topic_that_no_broker_shows_is_not_there(brokers: Brokers, names: list[str] | None, code: int) -> None:
    brokers.faults = [Fault(api="Metadata", topic=TOPIC, code=code, at=At.LISTED, times=99)]
    with scripted(brokers) as (_, (cluster,)):
        assert cluster.loop.run(cluster.refresh, names) == {}
        assert cluster.topics == {}

"""What ADR 0057 needs of replicas of compacted topics: leaders and followers clean on their own.

Brokers clean as in test_compacted_facts.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.kafka.connect import codes
from ferry.wire.content import contents
from tests.clusters import THREE, VERSIONS, of_version
from tests.harness import awaited
from tests.kafka.identical.compacted_log import (
    BUSY,
    DAY_MS,
    Log,
    again,
    again_and_again,
    at,
    described,
    lose_the_newest_segment,
    moved,
    tombstone_alone,
    two_numberings,
)
from tests.kafka.raw import Producer
from tests.nasty import alter

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module", params=VERSIONS)
def _three_cleaning(cluster_home: Path, request: pytest.FixtureRequest) -> Iterator[RunningCluster]:
    properties = {**THREE.properties, **BUSY, "producer.id.expiration.ms": str(20 * DAY_MS)}
    spec = replace(THREE, name="cleaning-three", properties=properties)
    with of_version(spec, request.param, cluster_home) as cluster:
        yield cluster


@pytest.fixture
def three(_three_cleaning: RunningCluster, _revive: Callable[[RunningCluster], None]) -> RunningCluster:
    """Three brokers of either version with busy cleaners, that drop producers after 20 days."""
    _revive(_three_cleaning)
    return _three_cleaning


def test_two_numberings_at_a_follower_that_leads(three: RunningCluster, topic: str) -> None:
    """Item 7: each broker drops expired producers on its own. A follower that did not yet takes a batch for a repeat.

    The answer is a success with the older offset, also for a batch of one record, each time it is sent. A longer batch
    is appended, and so is number 0 of the next epoch.
    """

    async def before(log: Log) -> Producer:
        lane = await log.raw.init()
        found = await described(log.raw)
        [follower] = [node for node in found.replicas if node != found.leader]
        alter(three, ResourceType.BROKER, [str(found.leader)], "producer.id.expiration.ms", str(DAY_MS))
        try:
            await two_numberings(log, lane, wall_ms() - 2 * DAY_MS)
            await moved(log.raw, follower)
        finally:
            alter(three, ResourceType.BROKER, [str(found.leader)], "producer.id.expiration.ms", None)
        return lane

    lane: Producer = at(three, topic, before, replicas=2, config={"min.insync.replicas": "1"})
    again_and_again(three, topic, lane, (3, 8), 3)


def test_a_new_replica_has_the_number_of_a_batch_without_records(three: RunningCluster, topic: str) -> None:
    """Item 2: a broker that copies the cleaned log, and leads then, shows the same number and wants the next one."""

    async def work(log: Log) -> None:
        lane = await log.raw.init()
        assert await log.write("a", lane, 0) == (0, 0)
        assert await log.raw.mark(lane) == [0]
        assert await log.write("aba", lane, 1) == (0, 2)
        assert await log.write("ab") == (0, 5)
        await log.roll()
        await log.becomes((1, 1, 1), (2, 4, 0), (5, 6, 2), (7, 7, 1))
        await log.roll()
        await log.becomes((2, 4, 0), (5, 6, 2), (7, 7, 1), (8, 8, 1))
        old = (await described(log.raw)).leader
        await moved(log.raw, next(one.node_id for one in three.brokers if one.node_id != old))
        await log.becomes((2, 4, 0), (5, 6, 2), (7, 7, 1), (8, 8, 1))
        state = await log.raw.state(lane)
        assert (state.producer_epoch, state.last_sequence) == (0, 3)
        assert await log.raw.end() == 9
        assert (await log.write("d", lane, 5))[0] == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await log.write("d", lane, 4) == (0, 9)

    at(three, topic, work, config={"min.insync.replicas": "1"})


def test_a_new_replica_of_a_log_whose_last_batches_are_cleaned(three: RunningCluster, topic: str) -> None:
    """Item 3: with 3.9.1 **the end is lost**: the replica comes in sync with an empty log, leads, and begins at 0.

    Its leader took the end for that of the replica (`LocalLog.read` has no batch for it). 4.3.0 keeps the last batch of
    each cleaning, so the end stays (KAFKA-17076).
    """
    node: int = at(three, topic, tombstone_alone, config={"min.insync.replicas": "1"})
    lose_the_newest_segment(three, node, topic)
    left, end = ([], 0) if three.spec.version.startswith("3") else ([(1, 1, 0)], 2)

    async def work(log: Log) -> None:
        async def there() -> bool:
            return await log.raw.listed() == (0, 2) and await log.shape() == left

        await awaited(log.raw.cluster.loop, there, f"batches {left}")
        await moved(log.raw, next(one.node_id for one in three.brokers if one.node_id != node))
        assert (await log.raw.end(), await log.raw.end(replica=-2)) == (end, end)
        assert await log.write("b") == (0, end)

    again(three, topic, work)


def test_a_record_that_one_broker_cleaned_is_back_at_the_next_leader(three: RunningCluster, topic: str) -> None:
    """Item 9: each broker cleans on its own. What was absent is there again, also for a new replica of that leader."""

    async def work(log: Log) -> None:
        found = await described(log.raw)
        [follower] = [node for node in found.replicas if node != found.leader]
        [third] = [one.node_id for one in three.brokers if one.node_id not in found.replicas]
        for node in (follower, third):
            alter(three, ResourceType.BROKER, [str(node)], "log.cleaner.backoff.ms", str(DAY_MS))
        try:
            assert await log.write("aba") == (0, 0)
            assert await log.write("c") == (0, 3)
            await log.roll()
            await log.becomes((0, 2, 2), (3, 3, 1), (4, 4, 1))
            assert [one.key for one in contents((await log.batches())[0], 1 << 20)] == [b"b", b"a"]
            for replicas in ((follower,), (third,)):
                await moved(log.raw, *replicas)
                assert await log.shape() == [(0, 2, 3), (3, 3, 1), (4, 4, 1)]
                assert await log.raw.end() == 5
        finally:
            for node in (follower, third):
                alter(three, ResourceType.BROKER, [str(node)], "log.cleaner.backoff.ms", None)
        await log.becomes((0, 2, 2), (3, 3, 1), (4, 4, 1))

    at(three, topic, work, replicas=2, config={"min.insync.replicas": "1"})

"""What ADR 0057 needs of brokers: each test is one fact that the design relies on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from tests.harness import awaited, create_topic, on_cluster, read_topic
from tests.kafka.raw import Producer, Raw, empty_batch, empty_payload

YEAR_MS = 365 * 24 * 3600 * 1000
INVALID_TXN_STATE = 48


@pytest.fixture(params=["target_cluster", "old_cluster"])
def broker(request: pytest.FixtureRequest) -> RunningCluster:
    """One broker 4.3.0, and one broker 3.9.1."""
    cluster: RunningCluster = request.getfixturevalue(request.param)
    return cluster


def at(cluster: RunningCluster, topic: str, work: Callable[[Raw], Awaitable[None]], partitions: int = 1) -> None:
    """Make a topic, and send it requests one by one."""
    create_topic(cluster, topic, partitions)

    async def act(client: Cluster) -> None:
        await work(await Raw(client, topic).open())

    on_cluster(cluster, act)


def test_a_marker_without_a_transaction_passes_one_offset(broker: RunningCluster, topic: str) -> None:
    """Item 1."""

    async def work(raw: Raw) -> None:
        who = await raw.init()
        assert await raw.produce(who, 0, 3) == (0, 0)
        assert await raw.mark(who) == [0]
        assert await raw.end() == 4
        assert await raw.end(isolation=1) == 4
        assert await raw.produce(who, 3, 3) == (0, 4)

    at(broker, topic, work)
    for isolation in ("read_committed", "read_uncommitted"):
        assert [row[0] for row in read_topic(broker.bootstrap, topic, isolation=isolation)[0]] == [0, 1, 2, 4, 5, 6]


def test_produce_compares_and_appends(broker: RunningCluster, topic: str) -> None:
    """A repeated batch has its old offset; one that overlaps or leaves a gap is refused."""

    async def work(raw: Raw) -> None:
        who = await raw.init()
        assert await raw.produce(who, 0, 3) == (0, 0)
        assert await raw.produce(who, 0, 3) == (0, 0)
        for sequence, count in ((1, 3), (1, 1), (5, 2)):
            assert (await raw.produce(who, sequence, count))[0] == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await raw.produce(who, 3, 1) == (0, 3)

    at(broker, topic, work)


def test_several_markers_in_a_request(broker: RunningCluster, topic: str) -> None:
    """Item 2: each marker of a request is one offset, also the same one again, in each partition."""

    async def work(raw: Raw) -> None:
        who = await raw.init()
        found = await raw.mark(who, who, partitions=range(20))
        assert set(found) == {0}
        ends = [await raw.end(partition=number) for number in range(20)]
        assert ends == [2] * 20

    at(broker, topic, work, partitions=20)


def test_a_repeated_marker_is_appended_also_behind_data(broker: RunningCluster, topic: str) -> None:
    """Why a marker may be sent once only."""

    async def work(raw: Raw) -> None:
        who = await raw.init()
        assert await raw.produce(who, 0, 1) == (0, 0)
        assert await raw.mark(who) == [0]
        assert await raw.produce(who, 1, 1) == (0, 2)
        assert await raw.mark(who) == [0]
        assert await raw.end() == 4

    at(broker, topic, work)


def test_without_a_seal_a_late_batch_of_a_lane_lands_after_the_records_of_clients(
    broker: RunningCluster, topic: str
) -> None:
    """Why a failover needs one: the broker compares a producer's batches with each other, not with the log."""

    async def work(raw: Raw) -> None:
        lane, client = await raw.init(), await raw.init()
        assert await raw.produce(lane, 0, 3) == (0, 0)
        assert await raw.produce(client, 0, 2) == (0, 3)
        assert await raw.produce(lane, 3, 1) == (0, 5)

    at(broker, topic, work)


def test_a_marker_of_a_higher_epoch_refuses_late_batches_of_a_lane(broker: RunningCluster, topic: str) -> None:
    """One offset without a record; clients write after it."""

    async def work(raw: Raw) -> None:
        lane, client = await raw.init(), await raw.init()
        assert await raw.produce(lane, 0, 3) == (0, 0)
        assert await raw.mark(Producer(lane.id, lane.epoch + 1)) == [0]
        for sequence in (0, 3, 4):
            assert (await raw.produce(lane, sequence, 1))[0] == codes.INVALID_PRODUCER_EPOCH
        assert await raw.produce(client, 0, 2) == (0, 4)
        assert (await raw.produce(lane, 3, 1))[0] == codes.INVALID_PRODUCER_EPOCH
        assert await raw.mark(lane) == [codes.INVALID_PRODUCER_EPOCH]
        assert await raw.end() == 6

    at(broker, topic, work)
    assert [row[0] for row in read_topic(broker.bootstrap, topic)[0]] == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(
    ("broker", "version"), [("target_cluster", 1), ("target_cluster", 2), ("old_cluster", 1)], indirect=["broker"]
)
def test_a_seal_refuses_older_markers(broker: RunningCluster, topic: str, version: int) -> None:
    """Item 6: after the seal no marker of an older epoch, and the slot's next transaction passes."""

    async def work(raw: Raw) -> None:
        name = f"slot-{topic}"
        await raw.init(name)
        old = await raw.init(name)
        await raw.add(name, old)
        assert await raw.produce(old, 0, 2, transactional_id=name) == (0, 0)
        await raw.abort(name, old, version)
        await raw.end_becomes(3)
        new = await raw.init(name)
        assert new.epoch > old.epoch
        coordinator = (await raw.state(new)).coordinator_epoch  # of a broker that was started again it is higher
        assert await raw.mark(new, commit=True, coordinator=coordinator) == [0]
        assert await raw.end() == 4
        assert await raw.mark(old, coordinator=coordinator) == [codes.INVALID_PRODUCER_EPOCH]
        assert await raw.end() == 4
        await raw.add(name, new)
        assert await raw.produce(new, 0, 2, transactional_id=name) == (0, 4)
        await raw.abort(name, new, version)
        await raw.end_becomes(7)

    at(broker, topic, work)
    assert read_topic(broker.bootstrap, topic)[0] == []


def test_plain_data_amid_a_transaction_is_refused(broker: RunningCluster, topic: str) -> None:
    async def work(raw: Raw) -> None:
        name = f"slot-{topic}"
        who = await raw.init(name)
        await raw.add(name, who)
        assert await raw.produce(who, 0, 2, transactional_id=name) == (0, 0)
        assert (await raw.produce(who, 2, 1))[0] == INVALID_TXN_STATE
        await raw.abort(name, who, 1)

    at(broker, topic, work)


def test_the_state_says_what_was_written_last(broker: RunningCluster, topic: str) -> None:
    """Item 11: DescribeProducers without a transaction, after a marker, after a restart and DeleteRecords."""
    kept: list[Producer] = []

    async def before(raw: Raw) -> None:
        who = await raw.init()
        kept.append(who)
        await raw.produce(who, 0, 3)
        state = await raw.state(who)
        assert (state.producer_epoch, state.last_sequence, state.current_txn_start_offset) == (0, 2, -1)
        await raw.mark(who)
        assert (await raw.state(who)).last_sequence == 2
        assert await raw.delete(4) == 4
        assert (await raw.state(who)).last_sequence == 2
        assert await raw.produce(who, 3, 1) == (0, 4)

    at(broker, topic, before)


def test_after_a_marker_without_a_state_sequence_numbers_begin_at_0(broker: RunningCluster, topic: str) -> None:
    """Items 1 and 11: the leader shows it."""

    async def work(raw: Raw) -> None:
        who = await raw.init()
        assert await raw.state(who) is None
        assert await raw.mark(who) == [0]
        assert (await raw.state(who)).last_sequence == -1
        assert (await raw.produce(who, 1, 1))[0] == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await raw.produce(who, 0, 3) == (0, 1)
        assert await raw.mark(who) == [0]
        assert await raw.produce(who, 3, 1) == (0, 5)
        assert await raw.end() == 6

    at(broker, topic, work)
    for isolation in ("read_committed", "read_uncommitted"):
        assert [row[0] for row in read_topic(broker.bootstrap, topic, isolation=isolation)[0]] == [1, 2, 3, 5]


def test_the_logs_end_as_a_replica_asks(broker: RunningCluster, topic: str) -> None:
    """Item 9, with one broker: both ends are equal when all is replicated."""

    async def work(raw: Raw) -> None:
        who = await raw.init()
        await raw.produce(who, 0, 3)
        assert await raw.end() == 3
        assert await raw.end(replica=0) == 3
        assert await raw.end(replica=-2) == 3

    at(broker, topic, work)


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_old_records_keep_no_state(broker: RunningCluster, topic: str) -> None:
    """Item 7: the broker's next check, after 10 minutes at most, drops the state of records of last year."""

    async def work(raw: Raw) -> None:
        who = await raw.init()
        assert await raw.produce(who, 0, 3, timestamp=wall_ms() - YEAR_MS) == (0, 0)

        async def dropped() -> bool:
            return await raw.state(who) is None

        await awaited(raw.cluster.loop, dropped, "a broker that drops the producer state", 650, every_s=5)
        assert await raw.produce(who, 40, 2) == (0, 3)

    at(broker, topic, work)


def test_a_long_hole_is_passed_compressed(broker: RunningCluster, topic: str) -> None:
    """Item 14: an aborted transaction of empty records, its seal, DeleteRecords; then data continues."""
    each, batches = 100_000, 3

    async def work(raw: Raw) -> None:
        name = f"slot-{topic}"
        lane, slot = await raw.init(), await raw.init(name)
        await raw.add(name, slot)
        payload = empty_payload(each)
        for number in range(batches):
            batch = empty_batch(slot, number * each, payload, each)
            assert await raw.produce(slot, 0, 0, transactional_id=name, batch=batch) == (0, number * each)
        await raw.abort(name, slot, 1)
        end = each * batches + 1
        await raw.end_becomes(end)
        new = await raw.init(name)
        assert await raw.mark(new, commit=True, coordinator=(await raw.state(new)).coordinator_epoch) == [0]
        assert await raw.produce(lane, 0, 2) == (0, end + 1)
        assert await raw.delete(end) == end

    at(broker, topic, work)
    assert [row[0] for row in read_topic(broker.bootstrap, topic)[0]] == [300_002, 300_003]


@pytest.mark.extra
def test_each_of_many_markers_passes_one_offset(broker: RunningCluster, topic: str) -> None:
    """Items 2 and 14: how fast they are, `passed_offsets.py` measures."""
    partitions, times = 100, 2_000

    async def work(raw: Raw) -> None:
        who = await raw.init()
        assert await raw.mark(who, partitions=range(partitions)) == [0] * partitions
        assert [await raw.end(partition=number) for number in range(partitions)] == [1] * partitions
        assert await raw.mark(*[who] * times) == [0]  # the answer is by producer id
        assert await raw.end() == 1 + times
        assert await raw.end(partition=1) == 1

    at(broker, topic, work, partitions=partitions)

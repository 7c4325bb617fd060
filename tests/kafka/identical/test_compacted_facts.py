"""What ADR 0057 needs of brokers for compacted topics: each test is one fact that the planned writer relies on.

Brokers clean every tenth of a second here, and look for expired producers twice a second. A segment rolls by the times
of its records: so each test says when the cleaner may touch what is there.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType

from ferry.clock import wall_ms
from ferry.dev import ClusterSpec, RunningCluster
from ferry.kafka.connect import codes
from ferry.model import Record
from ferry.wire.batch import CLEANED_MARKER, batches, marker_type, restamped
from ferry.wire.codecs import Room
from ferry.wire.content import contents
from ferry.wire.records import ProducerIdentity, build_batch
from ferry.wire.transcode import transcoded
from tests.clusters import KEPT, VERSIONS, of_version, repair
from tests.harness import awaited
from tests.kafka.identical.compacted_log import (
    BUSY,
    DAY_MS,
    DELETE_HORIZON,
    HOUR_MS,
    LOG_APPEND_TIME,
    NO_ONE,
    YEAR_MS,
    Log,
    again,
    at,
    lose_the_newest_segment,
    read_by_both,
    tombstone_alone,
    two_numberings,
    without_last_key,
)
from tests.kafka.raw import Producer
from tests.nasty import alter

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module", params=VERSIONS)
def _cleaning(cluster_home: Path, request: pytest.FixtureRequest) -> Iterator[RunningCluster]:
    with of_version(ClusterSpec(name="cleaning", properties={**KEPT, **BUSY}), request.param, cluster_home) as cluster:
        yield cluster


@pytest.fixture
def broker(_cleaning: RunningCluster, _revive: Callable[[RunningCluster], None]) -> RunningCluster:
    """One broker of either version with a busy cleaner, that runs before and after the test."""
    _revive(_cleaning)
    return _cleaning


def test_markers_without_data_are_removed_by_the_second_cleaning(broker: RunningCluster, topic: str) -> None:
    """Item 1: the first one writes when they may go (a delete horizon), and a later one removes them.

    The offsets stay passed, for readers of both kinds, and the log's end stays.
    """

    async def work(log: Log) -> None:
        lane = await log.raw.init()
        assert await log.write("ab", lane, 0) == (0, 0)
        assert await log.raw.mark(lane, lane, lane) == [0]
        assert await log.write("a", lane, 2) == (0, 5)
        assert await log.roll() == 6
        await log.becomes((0, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1), (5, 5, 1), (6, 6, 1))
        markers = [one for one in await log.batches() if one.is_control]
        assert [one.attributes & DELETE_HORIZON for one in markers] == [DELETE_HORIZON] * 3
        assert await log.roll() == 7
        await log.becomes((0, 1, 1), (5, 5, 1), (6, 6, 1), (7, 7, 1))
        assert (await log.raw.end(), await log.raw.end(replica=-2)) == (8, 8)
        assert (await log.raw.state(lane)).last_sequence == 2

    at(broker, topic, work)
    read_by_both(broker, topic, [1, 5, 6, 7])


def test_markers_that_no_data_follows_stay_as_empty_ones_with_the_state(broker: RunningCluster, topic: str) -> None:
    """Items 1 and 2: all markers stay while the state has no data batch, as control batches without a record.

    Readers pass them. A broker that loads the log again makes no state of them: it takes any number. When data of the
    lane follows, they are removed.
    """

    async def without_data(log: Log) -> Producer:
        lane = await log.raw.init()
        assert await log.raw.mark(lane, lane, lane) == [0]
        assert await log.write("a") == (0, 3)
        assert await log.write("a") == (0, 4)
        assert await log.roll() == 5
        await log.becomes((0, 0, 1), (1, 1, 1), (2, 2, 1), (4, 4, 1), (5, 5, 1))
        assert await log.roll() == 6
        await log.becomes((0, 0, 0), (1, 1, 0), (2, 2, 0), (4, 4, 1), (5, 5, 1), (6, 6, 1))
        assert [one.base_offset for one in await log.batches() if one.is_control] == [0, 1, 2]
        assert (await log.raw.state(lane)).last_sequence == -1
        return lane

    lane: Producer = at(broker, topic, without_data)
    read_by_both(broker, topic, [4, 5, 6])
    broker.brokers[0].kill()
    repair(broker)

    async def with_data(log: Log) -> None:
        log.at_ms += 10 * HOUR_MS
        assert await log.raw.state(lane) is None
        assert await log.write("b", lane, 5) == (0, 7)
        assert await log.roll() == 8
        await log.becomes((4, 4, 1), (6, 6, 1), (7, 7, 1), (8, 8, 1))

    again(broker, topic, with_data)


def test_what_the_cleaner_leaves_of_a_transaction(broker: RunningCluster, topic: str) -> None:
    """Items 1 and 4, for sources: with version 2 a control batch without a record, with version 1 an empty data batch.

    A marker of version 2 raises the epoch, so the state has no data batch then. Kafka 3 has version 1 alone.
    """
    for version in (1,) if broker.spec.version.startswith("3") else (1, 2):
        leaves_of_a_transaction(broker, f"{topic}-{version}", version)


def leaves_of_a_transaction(broker: RunningCluster, topic: str, version: int) -> None:
    """What is left of a transaction of a version, in a topic of its own."""

    async def work(log: Log) -> None:
        name = f"writer-{topic}"
        who = await log.raw.init(name)
        if version == 1:
            await log.raw.add(name, who)
        assert (await log.raw.produce(who, 0, 1, transactional_id=name, version=version))[0] == 0
        assert (await log.raw.ended(name, who, version=version, commit=True))[0] == 0
        await log.raw.end_becomes(2)
        assert await log.write("k") == (0, 2)
        assert await log.roll() == 3
        first = [(1, 1, 1)] if version == 2 else [(0, 0, 0), (1, 1, 1)]
        await log.becomes(*first, (2, 2, 1), (3, 3, 1))
        assert await log.roll() == 4
        await log.becomes(*first, (2, 2, 1), (3, 3, 1), (4, 4, 1))
        if version == 1:  # a marker stays as long as a batch of its transaction does, an empty one, too
            await log.roll()
            await log.becomes(*first, (2, 2, 1), (4, 4, 1), (5, 5, 1))
            return

        async def horizon() -> bool:
            return bool((await log.batches())[0].attributes & DELETE_HORIZON)

        await awaited(log.raw.cluster.loop, horizon, "a delete horizon")
        assert await log.roll() == 5
        await log.becomes((1, 1, 0), (2, 2, 1), (4, 4, 1), (5, 5, 1))
        marker, *_ = await log.batches()
        assert (marker.is_control, marker_type(marker)) == (True, CLEANED_MARKER)

    at(broker, topic, work)
    read_by_both(broker, topic, [2, 4, 5])


@pytest.mark.parametrize("how", ["killed", "killed, without snapshots", "stopped"])
def test_the_last_batch_of_a_lane_stays_without_records(broker: RunningCluster, topic: str, how: str) -> None:
    """Item 2: the cleaner keeps it as an empty batch, and the broker shows the same number, also after a restart."""

    async def before(log: Log) -> Producer:
        lane = await log.raw.init()
        assert await log.write("a", lane, 0) == (0, 0)
        assert await log.write("bca", lane, 1) == (0, 1)
        assert await log.write("abc") == (0, 4)
        assert (await log.raw.state(lane)).last_sequence == 3
        assert await log.roll() == 7
        await log.becomes((1, 3, 0), (4, 6, 3), (7, 7, 1))
        assert (await log.raw.state(lane)).last_sequence == 3
        return lane

    lane: Producer = at(broker, topic, before)
    read_by_both(broker, topic, [4, 5, 6, 7])
    one = broker.brokers[0]
    one.kill(signal.SIGTERM if how == "stopped" else signal.SIGKILL)
    if "snapshots" in how:
        for snapshot in one.data.glob(f"{topic}-0/*.snapshot"):
            snapshot.unlink()
    repair(broker)

    async def after(log: Log) -> None:
        state = await log.raw.state(lane)
        assert (state.producer_epoch, state.last_sequence) == (0, 3)
        assert (await log.write("d", lane, 5))[0] == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await log.write("d", lane, 4) == (0, 8)

    again(broker, topic, after)


def test_the_last_batch_of_an_expired_state_is_removed(broker: RunningCluster, topic: str) -> None:
    """Item 2: then there is no state, and any number is taken.

    4.3.0 keeps the last batch of each cleaning, whose ever it is; 3.9.1 keeps none.
    """

    async def work(log: Log) -> None:
        lane = await log.raw.init()
        old = wall_ms() - YEAR_MS
        log.at_ms = old
        assert await log.write("a", lane, 0, old) == (0, 0)
        assert await log.write("a", lane, 1, old) == (0, 1)
        assert await log.write("a", NO_ONE, -1, old) == (0, 2)

        async def expired() -> bool:
            return await log.raw.state(lane) is None

        await awaited(log.raw.cluster.loop, expired, "a broker that drops the producer state")
        assert await log.roll() == 3
        await log.becomes((2, 2, 1), (3, 3, 1))
        assert await log.write("b", lane, 40) == (0, 4)
        assert (await log.write("c", lane, 42))[0] == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await log.write("c", lane, 41) == (0, 5)

    at(broker, topic, work)


def test_answers_of_fetches_in_holes(broker: RunningCluster, topic: str) -> None:
    """Item 4: a fetch gets the batch that has its offset, also an empty one, else the next batch. No error.

    An answer without records says no more than that the end is reached.
    """

    async def work(log: Log) -> None:
        lane = await log.raw.init()
        assert await log.write("abc", lane, 0) == (0, 0)
        assert await log.write("a", lane, 3) == (0, 3)
        assert await log.write("xa", lane, 4) == (0, 4)
        assert await log.write("cax") == (0, 6)
        assert await log.roll() == 9
        await log.becomes((0, 2, 1), (4, 5, 0), (6, 8, 3), (9, 9, 1))

        async def first(offset: int) -> tuple[int, int] | None:
            part = await log.raw.fetched(offset)
            assert (part.error_code, part.high_watermark) == (0, 10)
            found = list(batches(part.records))
            return (found[0].base_offset, found[0].next_offset) if found else None

        assert [await first(offset) for offset in range(11)] == [
            *[(0, 3)] * 3,
            (4, 6),
            *[(4, 6)] * 2,
            *[(6, 9)] * 3,
            (9, 10),
            None,
        ]

    at(broker, topic, work)


@pytest.mark.parametrize("compression", ["producer", "gzip", "zstd"])
def test_a_batch_with_holes_is_refused_and_its_runs_are_taken(
    broker: RunningCluster, topic: str, compression: str
) -> None:
    """Item 5: the stored bytes get INVALID_RECORD, and nothing is appended. Each run is taken as a batch of its own.

    Ferry's encoder makes the runs: keys, values and timestamps stay, and so does the codec.
    """

    async def work(log: Log) -> None:
        assert await log.write("abcdefb", at_ms=(stamp := wall_ms() - HOUR_MS)) == (0, 0)
        assert await log.write("e") == (0, 7)
        await log.roll()
        await log.becomes((0, 6, 5), (7, 7, 1), (8, 8, 1))
        [stored, *_] = await log.batches()
        assert (stored.codec > 0) == (compression != "producer")
        assert await log.raw.produce(NO_ONE, -1, 5, batch=bytes(stored.data)) == (codes.INVALID_RECORD, -1)
        assert await log.raw.end() == 9
        lane, sequence = await log.raw.init(), 0
        for first, end in ((0, 1), (2, 4), (5, 7)):
            [new] = transcoded([stored], first, end, place=topic, compression=None, limit=None, room=Room(1 << 20))
            count = new.batch.record_count
            assert (new.runs, count) == (((first, end - first),), end - first)
            batch = bytes(restamped(new.batch, lane.id, lane.epoch, sequence, transactional=False))
            assert await log.raw.produce(lane, sequence, count, batch=batch) == (0, 9 + sequence)
            sequence += count
        copies = [one for one in await log.batches(9) if one.producer_id == lane.id]
        assert [(one.base_offset, one.record_count, one.codec) for one in copies] == [
            (9, 1, stored.codec),
            (10, 2, stored.codec),
            (12, 2, stored.codec),
        ]
        found = [one for batch in copies for one in contents(batch, 1 << 20)]
        assert [one.key for one in found] == [b"a", b"c", b"d", b"f", b"b"]
        assert {one.timestamp for one in found} == {stamp}

    at(broker, topic, work, config={"compression.type": compression})


@pytest.mark.parametrize("attribute", [LOG_APPEND_TIME, DELETE_HORIZON], ids=["log append time", "delete horizon"])
def test_a_broker_takes_a_stored_batch_with_its_attributes(broker: RunningCluster, topic: str, attribute: int) -> None:
    """Item 5: so Ferry encodes such batches again, split or not.

    The bit of log append times is cleared: the records have their producers' times then. The bit of a delete horizon
    stays: the target's cleaner takes the tombstones when the source's may.
    """

    async def take(log: Log) -> bytes:
        assert await log.write("aB" if attribute == DELETE_HORIZON else "ab", at_ms=wall_ms() - HOUR_MS) == (0, 0)
        assert await log.roll() == 2

        async def there() -> bool:
            return bool((await log.batches())[0].attributes & attribute)

        await awaited(log.raw.cluster.loop, there, "the attribute")
        return bytes((await log.batches())[0].data)

    kept = {"delete.retention.ms": str(HOUR_MS)}
    kind = {"message.timestamp.type": "LogAppendTime"} if attribute == LOG_APPEND_TIME else {}
    stored: bytes = at(broker, f"{topic}-source", take, config={**kind, **kept})
    [was] = batches(stored)

    async def give(log: Log) -> None:
        assert await log.raw.produce(NO_ONE, -1, 2, batch=stored) == (0, 0)
        [now] = await log.batches()
        assert now.attributes & attribute == (DELETE_HORIZON if attribute == DELETE_HORIZON else 0)
        assert now.base_timestamp == was.base_timestamp
        assert (now.base_timestamp < was.max_timestamp) == (attribute == LOG_APPEND_TIME)

    at(broker, topic, give, config=kept)


def test_a_record_without_a_key(broker: RunningCluster, topic: str) -> None:
    """Item 6: a compacted topic refuses its batch with INVALID_RECORD; a marker is taken.

    A topic that is made compacted later has such records until it is cleaned.
    """

    async def work(log: Log) -> None:
        lane = await log.raw.init()
        identity = ProducerIdentity(producer_id=lane.id, producer_epoch=lane.epoch, sequence=0)
        both = build_batch([Record(key=b"a", value=b"1"), Record(key=b"", value=b"2")], wall_ms(), identity)
        assert without_last_key(both) != both
        assert await log.raw.produce(lane, 0, 2, batch=without_last_key(both)) == (codes.INVALID_RECORD, -1)
        assert await log.raw.end() == 0
        assert await log.raw.mark(lane) == [0]
        assert await log.raw.produce(lane, 0, 2, batch=both) == (0, 1)

    at(broker, topic, work)

    async def keyless(log: Log) -> None:
        both = build_batch([Record(key=b"a", value=b"1"), Record(key=b"", value=b"2")], wall_ms(), ProducerIdentity())
        assert await log.raw.produce(NO_ONE, -1, 2, batch=without_last_key(both)) == (0, 0)
        alter(broker, ResourceType.TOPIC, [later], "cleanup.policy", "compact")
        [batch] = await log.batches()
        assert [one.key for one in contents(batch, 1 << 20)] == [b"a", None]
        await log.roll()
        await log.becomes((0, 1, 1), (2, 2, 1))

    later = f"{topic}-later"
    at(broker, later, keyless, config={"cleanup.policy": "delete"})


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_restart_leaves_one_of_two_numberings(broker: RunningCluster, topic: str, how: str) -> None:
    """Item 7: a broker that loads the log again compares with a producer's last batch alone.

    A stop writes no more of it to the snapshot, and neither does the recovery of a segment after a kill.
    """

    async def before(log: Log) -> Producer:
        lane = await log.raw.init()
        await two_numberings(log, lane, wall_ms() - 2 * DAY_MS)
        return lane

    lane: Producer = at(broker, topic, before, config={"segment.ms": str(7 * DAY_MS)})
    broker.brokers[0].kill(signal.SIGTERM if how == "stopped" else signal.SIGKILL)
    repair(broker)

    async def after(log: Log) -> None:
        assert (await log.raw.state(lane)).last_sequence == 2
        assert await log.write("abc", lane, 0) == (0, 5)  # the last one: a repeat
        assert await log.write("c", lane, 3) == (0, 8)

    again(broker, topic, after)


def test_a_restart_keeps_the_end_of_a_log_whose_batches_are_all_cleaned(broker: RunningCluster, topic: str) -> None:
    """Item 3: the name of the empty segment is the end. 3.9.1 has no batch then, and a fetch shows none.

    4.3.0 keeps the last batch of each cleaning, without records.
    """
    node: int = at(broker, topic, tombstone_alone)
    lose_the_newest_segment(broker, node, topic)
    left = [] if broker.spec.version.startswith("3") else [(1, 1, 0)]

    async def cleaned(log: Log) -> None:
        async def there() -> bool:
            return await log.raw.listed() == (0, 2) and await log.shape() == left

        await awaited(log.raw.cluster.loop, there, f"batches {left}")
        assert (await log.raw.end(), await log.raw.end(replica=-2)) == (2, 2)
        part = await log.raw.fetched(1)
        assert (part.error_code, part.high_watermark, bool(part.records)) == (0, 2, bool(left))

    again(broker, topic, cleaned)
    for number in (signal.SIGKILL, signal.SIGTERM):
        broker.brokers[0].kill(number)
        repair(broker)
        again(broker, topic, cleaned)

    async def after(log: Log) -> None:
        assert await log.write("b") == (0, 2)

    again(broker, topic, after)

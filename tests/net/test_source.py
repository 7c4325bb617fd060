"""What the reader makes of fetch answers."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.future import Future
from kafka.protocol.consumer import FetchRequest

from ferry.config.clients import FetchOptions
from ferry.errors import Retryable
from ferry.model import Record, RefusalKind, TopicPartition
from ferry.net import codes
from ferry.net.cluster import Cluster, PartitionInfo, TopicInfo, event_loop
from ferry.net.fetch import READ_COMMITTED, FetchedPartition
from ferry.net.source import ReadFailure, SourceReader
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.records import ProducerIdentity, build_batch

PLACE = TopicPartition(topic="orders", partition=3)


@pytest.fixture
def reader() -> Iterator[SourceReader]:
    """A reader of offsets 0 to 100 that is not connected: answers are handed to it."""
    loop = event_loop()
    cluster = Cluster(loop, "primary", {"bootstrap_servers": "127.0.0.1:1"})
    yield SourceReader(cluster, {PLACE: (0, 100)}, {}, isolation=READ_COMMITTED, memory_bytes=1 << 20)
    cluster.close()
    loop.close()


def answer(records: bytes) -> FetchedPartition:
    """One partition's part of a fetch answer."""
    return FetchedPartition(
        place=PLACE,
        error_code=0,
        high_watermark=100,
        last_stable_offset=100,
        log_start_offset=0,
        aborted=(),
        records=records,
    )


def know_topic(reader: SourceReader) -> None:
    """The metadata: leader 1, and a replica on broker 2."""
    info = PartitionInfo(partition=PLACE.partition, leader=1, leader_epoch=0, replicas=(1, 2), in_sync=(1, 2))
    reader._cluster.topics[PLACE.topic] = TopicInfo(
        name=PLACE.topic, topic_id=None, partitions={PLACE.partition: info}, internal=False
    )


def response(
    records: bytes, *, partition: int = PLACE.partition, error_code: int = 0, nearer: int = -1
) -> SimpleNamespace:
    """One topic of a fetch answer, as the client decodes it."""
    part = SimpleNamespace(
        partition_index=partition,
        error_code=error_code,
        high_watermark=100,
        last_stable_offset=100,
        log_start_offset=0,
        aborted_transactions=None,
        preferred_read_replica=nearer,
        records=records,
    )
    return SimpleNamespace(topic=PLACE.topic, partitions=[part])


def batch(count: int) -> bytes:
    """A batch with so many records."""
    return build_batch([Record(key=b"k", value=b"v" * 50)] * count, 1, ProducerIdentity())


def test_a_batch_cut_short_is_asked_for_again_as_a_whole(reader: SourceReader) -> None:
    whole = batch(100)
    reader._enqueue(answer(whole[:200]))
    assert not reader.queues[PLACE]
    assert reader._needs[PLACE] == len(whole)
    reader._enqueue(answer(whole))
    assert [entry.next_offset for entry, _ in reader.queues[PLACE]] == [100]
    assert (reader.finished, reader._needs) == ({PLACE: 100}, {})


@pytest.mark.parametrize("length", [-5, 0, 30, 2**31 - 13])
def test_a_length_that_cannot_be_true_is_damage_at_its_offset(reader: SourceReader, length: int) -> None:
    good = batch(10)
    damaged = bytearray(batch(10))
    struct.pack_into(">q", damaged, 0, 10)
    struct.pack_into(">i", damaged, 8, length)
    reader._enqueue(answer(good + damaged))
    assert len(reader.queues[PLACE]) == 1, "what came before is copied"
    reader._enqueue(answer(bytes(damaged)))
    failure = reader.failures[PLACE]
    assert (failure.kind, failure.offset) == (RefusalKind.CORRUPT, 10)
    assert failure.message.startswith("the batch at offset 10 of orders-3 says that it has")


def test_batches_behind_the_end_are_left_alone(reader: SourceReader) -> None:
    reader._end[PLACE] = 5
    reader._enqueue(answer(batch(10)))
    assert reader.finished == {PLACE: 10}, "the batch that holds the last wanted offset is copied whole"


def test_bytes_count_until_they_are_released(reader: SourceReader) -> None:
    data = batch(10)
    reader._enqueue(answer(data))
    reader.take(PLACE)
    assert reader._held == len(data)
    reader.release(len(data))
    assert reader._held == 0


def test_a_partition_that_is_given_up_takes_nothing_more(reader: SourceReader) -> None:
    reader._enqueue(answer(batch(10)))
    failure = ReadFailure(kind=RefusalKind.NEEDS_TRANSCODING, message="why", offset=0)
    reader.give_up(PLACE, failure)
    assert (reader.failures, reader._held) == ({PLACE: failure}, 0)
    reader._take_in({PLACE: 10}, SimpleNamespace(error_code=0, responses=[response(batch(10))]))
    assert reader.exhausted()


def test_a_partition_that_is_not_served_keeps_no_other_from_its_batches(reader: SourceReader) -> None:
    other = PLACE._replace(partition=4)
    reader.queues[other], reader._position[other], reader._end[other] = deque(), 0, 100
    reader._aborted[other] = AbortedTransactions()
    served, refused = response(batch(10)), response(b"", partition=4, error_code=codes.NOT_LEADER_OR_FOLLOWER)
    with pytest.raises(Retryable, match="NotLeader"):
        reader._take_in({PLACE: 0, other: 0}, SimpleNamespace(error_code=0, responses=[refused, served]))
    assert len(reader.queues[PLACE]) == 1
    assert not reader.failures


def test_a_nearer_replica_is_read_until_it_fails(reader: SourceReader) -> None:
    know_topic(reader)
    reader._take_in({PLACE: 0}, SimpleNamespace(error_code=0, responses=[response(b"", nearer=2)]))
    assert not reader.finished, "an answer without records is no end of the range when it names a replica"
    assert reader._moved(PLACE, 1)
    assert not reader._moved(PLACE, 2)
    behind = response(b"", error_code=codes.OFFSET_OUT_OF_RANGE)
    with pytest.raises(Retryable, match="OffsetOutOfRange"):  # the follower lags: its leader decides
        reader._take_in({PLACE: 0}, SimpleNamespace(error_code=0, responses=[behind]))
    assert not reader.failures
    reader._nearer.pop(PLACE)
    reader._take_in({PLACE: 0}, SimpleNamespace(error_code=0, responses=[behind]))
    assert reader.failures[PLACE].kind is RefusalKind.SOURCE_TRUNCATED


def test_the_files_bounds_of_a_fetch_are_kept(reader: SourceReader) -> None:
    know_topic(reader)
    reader._options = FetchOptions(max_bytes=70_000, partition_max_bytes=9_000, min_bytes=5, max_wait_ms=7, rack="r")
    request = reader._request({PLACE: 0}, 1 << 20)
    (part,) = request.topics[0].partitions
    assert (request.max_bytes, part.partition_max_bytes) == (70_000, 9_000)
    assert (request.min_bytes, request.max_wait_ms, request.rack_id) == (5, 7, "r")
    reader._needs[PLACE] = 80_000  # a larger batch comes all the same, as in Java (KIP-74)
    request = reader._request({PLACE: 0}, 1 << 20)
    assert (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) == (80_000, 80_000)


@pytest.mark.parametrize("local_start", [0, 40])
def test_nothing_is_all_there_is_only_where_the_leader_has_the_log_itself(
    reader: SourceReader, monkeypatch: pytest.MonkeyPatch, local_start: int
) -> None:
    async def listed(cluster: Cluster, wanted: dict[TopicPartition, int], *, isolation: int) -> object:
        return dict.fromkeys(wanted, local_start)

    monkeypatch.setattr("ferry.net.source.list_offsets", listed)
    reader._take_in({PLACE: 0}, SimpleNamespace(error_code=0, responses=[response(b"")]))
    assert not reader.finished
    settling = partial(reader._settle_doubts, reader._round)
    if local_start:
        with pytest.raises(Retryable, match="offset 0 lies in tiered storage"):
            reader._cluster.loop.run(settling)
    else:
        reader._cluster.loop.run(settling)
    assert reader.finished == ({} if local_start else {PLACE: 100})


def test_a_damaged_header_hides_nothing(reader: SourceReader) -> None:
    good, damaged = batch(10), bytearray(batch(10))
    struct.pack_into(">q", damaged, 0, 10)
    damaged[22] |= 0x20  # it calls itself a control batch, which would stay behind
    reader._enqueue(answer(good + damaged))
    assert [hidden for _, hidden in reader.queues[PLACE]] == [False]
    assert (reader.failures[PLACE].kind, reader.failures[PLACE].offset) == (RefusalKind.CORRUPT, 10)


def test_a_feeder_that_waits_for_room_is_let_in_when_a_fetch_ends_without_records(reader: SourceReader) -> None:
    reader._asked, waiting = 1 << 20, Future()
    reader._room.append(waiting)
    reader._asked = 0
    reader._let_in()
    assert waiting.is_done


class Gate:
    """A throttle that says what the test says, and remembers what it was told."""

    def __init__(self, admits: int) -> None:
        self.admits = admits
        self.settled: list[tuple[int, int]] = []

    def portion(self, most: int) -> int:
        return most // 2

    async def admit(self, most: int, wanted: Callable[[], bool]) -> int:
        assert most == 1 << 19
        return self.admits if wanted() else 0

    def settle(self, admitted: int, fetched: int) -> None:
        self.settled.append((admitted, fetched))


def test_a_fetch_asks_for_what_the_throttle_admits_and_tells_what_came(
    reader: SourceReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_topic(reader)
    data, asked = batch(10), []

    async def ask(request: FetchRequest, node: int) -> SimpleNamespace:
        asked.append((request.max_bytes, node))
        return SimpleNamespace(error_code=0, responses=[response(data + data[:30])])

    monkeypatch.setattr(reader._cluster, "ask", ask)
    reader._throttle = gate = cast("Any", Gate(5_000))
    reader._cluster.loop.run(reader._fetch, 1, [PLACE], 1 << 20)
    assert asked == [(5_000, 1)]
    assert gate.settled == [(5_000, len(data) + 30)], "what is cut off at the end travels, too"
    assert (len(reader.queues[PLACE]), reader._asked) == (1, 0)


def test_a_fetch_that_is_not_admitted_is_not_sent(reader: SourceReader, monkeypatch: pytest.MonkeyPatch) -> None:
    know_topic(reader)

    async def ask(*_: object) -> None:
        raise AssertionError("it was sent")

    monkeypatch.setattr(reader._cluster, "ask", ask)
    reader._throttle = cast("Any", Gate(5_000))
    started = reader._round
    reader._round += 1
    assert reader._cluster.loop.run(reader._ask, 1, {PLACE: 0}, 1 << 19, started) is None

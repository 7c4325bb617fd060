"""What the intake makes of batches, and whom it lets wait."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.fetch.fetch_buffer import Answer, FetchBuffer, ReadFailure
from ferry.kafka.fetch.requests import FetchedPartition
from ferry.model import RefusalKind, TopicPartition
from tests.golden import Golden
from tests.pure.net.answers import OTHER, PLACE, batch


@pytest.fixture
def buffer() -> Iterator[FetchBuffer]:
    """For offsets 0 to 100 of one partition."""
    loop = event_loop()
    yield FetchBuffer(loop, {PLACE: (0, 100)}, 1 << 20)
    loop.close()


def put(buffer: FetchBuffer, records: bytes, place: TopicPartition = PLACE, memory: Answer | None = None) -> Answer:
    """Take in one partition's part of an answer, by itself unless `memory` has more; the memory it lies in."""
    memory = memory or Answer(len(records))
    buffer.put(fetched(records, place), memory)
    return memory


def fetched(records: bytes, place: TopicPartition) -> FetchedPartition:
    """One partition's part of a fetch answer."""
    return FetchedPartition(
        place=place,
        error_code=0,
        high_watermark=2_000,
        last_stable_offset=2_000,
        log_start_offset=0,
        aborted=(),
        records=records,
    )


def test_a_batch_cut_short_is_asked_for_again_as_a_whole(buffer: FetchBuffer) -> None:
    whole = batch(100)
    put(buffer, whole[:200])
    assert not buffer.queues[PLACE]
    assert buffer.needed([PLACE]) == len(whole)
    put(buffer, whole)
    assert [entry.batch.next_offset for entry in buffer.queues[PLACE]] == [100]
    assert (buffer.finished, buffer.needed([PLACE])) == ({PLACE}, 0)


@pytest.mark.parametrize("length", [-5, 0, 30, 2**31 - 13])
def test_a_length_that_cannot_be_true_is_damage_at_its_offset(buffer: FetchBuffer, length: int, golden: Golden) -> None:
    good, damaged = batch(10), bytearray(batch(10, 10))
    struct.pack_into(">i", damaged, 8, length)
    put(buffer, good + damaged)
    assert len(buffer.queues[PLACE]) == 1, "what came before is copied"
    put(buffer, bytes(damaged))
    failure = buffer.failures[PLACE]
    assert (failure.kind, failure.offset) == (RefusalKind.CORRUPT, 10)
    golden(failure.message)


def test_batches_behind_the_end_are_left_alone(buffer: FetchBuffer) -> None:
    buffer.ends[PLACE] = 5
    put(buffer, batch(10))
    assert (buffer.finished, len(buffer.queues[PLACE])) == ({PLACE}, 1)


def test_a_batch_that_ends_where_the_range_begins_or_begins_where_it_ends_is_left_alone() -> None:
    loop = event_loop()
    buffer = FetchBuffer(loop, {PLACE: (10, 30)}, 1 << 20)
    put(buffer, batch(10) + batch(10, 10))
    put(buffer, batch(5, 30) + batch(5, 35))  # between lies a hole
    assert [entry.batch.base_offset for entry in buffer.queues[PLACE]] == [10]
    assert (buffer.finished, buffer.positions[PLACE]) == ({PLACE}, 30)
    loop.close()


def test_a_damaged_header_hides_nothing(buffer: FetchBuffer) -> None:
    good, damaged = batch(10), bytearray(batch(10, 10))
    damaged[22] |= 0x20  # it calls itself a control batch, which would stay behind
    put(buffer, good + damaged)
    assert [entry.hidden for entry in buffer.queues[PLACE]] == [False]
    assert (buffer.failures[PLACE].kind, buffer.failures[PLACE].offset) == (RefusalKind.CORRUPT, 10)


def test_a_batch_that_leads_back_is_damage_and_not_passed_over(buffer: FetchBuffer, golden: Golden) -> None:
    """The base offset is not under the checksum."""
    put(buffer, batch(10) + batch(10, 0) + batch(10, 20))
    assert [entry.batch.base_offset for entry in buffer.queues[PLACE]] == [0]
    failure = buffer.failures[PLACE]
    assert (failure.kind, failure.offset) == (RefusalKind.CORRUPT, 10)
    golden(failure.message)


def test_a_batch_that_begins_inside_the_one_before_is_damage_in_the_next_answer_too(buffer: FetchBuffer) -> None:
    put(buffer, batch(10))
    put(buffer, batch(10, 5))
    assert (buffer.failures[PLACE].kind, buffer.failures[PLACE].offset) == (RefusalKind.CORRUPT, 10)


def test_a_batch_that_reaches_behind_what_can_be_read_is_damage_when_a_later_answer_says_so_too(
    buffer: FetchBuffer, golden: Golden
) -> None:
    """The last batch of a log: no other contradicts its base offset, but the log's end does."""
    put(buffer, batch(10) + batch(10, 1_995))
    assert (buffer.positions[PLACE], buffer.failures, buffer.needed([PLACE])) == (10, {}, 0)
    put(buffer, batch(10, 1_995))
    assert (buffer.failures[PLACE].kind, buffer.failures[PLACE].offset) == (RefusalKind.CORRUPT, 10)
    golden(buffer.failures[PLACE].message)


def test_a_log_may_grow_while_a_broker_reads_it(buffer: FetchBuffer) -> None:
    short = replace(fetched(batch(10) + batch(10, 10), PLACE), high_watermark=10, last_stable_offset=10)
    buffer.put(short, Answer(1))
    assert (buffer.positions[PLACE], buffer.failures) == (10, {})
    put(buffer, batch(10, 10))
    assert buffer.positions[PLACE] == 20


def test_an_answer_may_begin_before_the_range_and_inside_its_first_batch(buffer: FetchBuffer) -> None:
    buffer.positions[PLACE] = 15
    put(buffer, batch(10) + batch(10, 10) + batch(10, 20))
    assert [entry.batch.base_offset for entry in buffer.queues[PLACE]] == [10, 20]
    assert not buffer.failures


@pytest.mark.parametrize("claimed", [15, 95, 1_000])
def test_a_batch_that_reaches_behind_where_the_next_begins_is_not_taken(
    buffer: FetchBuffer, claimed: int, golden: Golden
) -> None:
    """Also behind the range, where nothing more would be looked at."""
    put(buffer, batch(10) + batch(10, claimed) + batch(10, 20))
    assert [entry.batch.base_offset for entry in buffer.queues[PLACE]] == [0]
    failure = buffer.failures[PLACE]
    assert (failure.kind, failure.offset, buffer.finished) == (RefusalKind.CORRUPT, 10, set())
    golden(failure.message)


def test_of_a_hole_and_a_batch_that_leads_back_only_the_latter_is_damage(buffer: FetchBuffer) -> None:
    put(buffer, batch(10) + batch(10, 15) + batch(10, 5))
    assert [entry.batch.base_offset for entry in buffer.queues[PLACE]] == [0, 15]
    assert buffer.failures[PLACE].offset == 25


def test_holes_between_batches_are_taken_as_they_are(buffer: FetchBuffer) -> None:
    put(buffer, batch(10, 7) + batch(10, 40))
    assert buffer.positions[PLACE] == 17, "the last one of an answer waits for the one behind it to agree"
    put(buffer, batch(10, 40))
    put(buffer, batch(10, 120))
    assert [entry.batch.base_offset for entry in buffer.queues[PLACE]] == [7, 40]
    assert (buffer.failures, buffer.finished) == ({}, {PLACE})


def waits_for_room(buffer: FetchBuffer, size: int) -> bool:
    """Whether a fetch of so many bytes has to wait; it gives the room back when it has not."""
    room = buffer._loop.call_soon_with_future(buffer.reserve, size, [PLACE])
    buffer._loop.drain()
    if room.is_done:
        buffer.unreserve(size)
    return not room.is_done


def test_an_answer_counts_until_the_last_of_its_batches_is_released(buffer: FetchBuffer) -> None:
    memory = Answer(1 << 20)  # most of it is another partition's, or cut off
    put(buffer, batch(10) + batch(10, 10), memory=memory)
    for _ in range(2):
        assert waits_for_room(buffer, 1)
        buffer.release([buffer.take(PLACE).answer])
    buffer._loop.drain()
    buffer.unreserve(2)  # both that waited have come in
    assert not waits_for_room(buffer, 1 << 20)


def test_an_answer_of_which_nothing_is_needed_does_not_count(buffer: FetchBuffer) -> None:
    buffer.positions[PLACE] = 50
    put(buffer, batch(10), memory=Answer(1 << 30))
    assert not waits_for_room(buffer, 1 << 20)


def test_a_partition_that_is_written_slowly_leaves_the_memory_to_others() -> None:
    """A batch of each partition goes into a request, so small ones take their time."""
    loop = event_loop()
    buffer = FetchBuffer(loop, {PLACE: (0, 10_000), OTHER: (0, 10_000)}, 4 * len(batch(10)))
    for at in (0, 10):
        put(buffer, batch(10, at))
    assert buffer.hungry([PLACE, OTHER]) == [OTHER]
    fetch = loop.call_soon_with_future(buffer.reserve, 1, [PLACE])
    loop.drain()
    assert not fetch.is_done
    buffer.release([buffer.take(PLACE).answer])
    loop.drain()
    assert fetch.is_done
    assert buffer.hungry([PLACE, OTHER]) == [PLACE, OTHER]
    loop.close()


def test_a_partition_that_is_given_up_gives_its_room_back(buffer: FetchBuffer) -> None:
    put(buffer, batch(10))
    failure = ReadFailure(kind=RefusalKind.NEEDS_TRANSCODING, message="why", offset=0)
    buffer.give_up(PLACE, failure)
    assert (buffer.failures, buffer.exhausted()) == ({PLACE: failure}, True)
    assert not waits_for_room(buffer, 2 * buffer.memory_bytes), "one fetch at a time is always allowed"


def test_a_partition_that_was_read_and_is_given_up_does_not_stand_for_another() -> None:
    loop = event_loop()
    buffer = FetchBuffer(loop, {PLACE: (0, 10), OTHER: (0, 10)}, 1 << 20)
    put(buffer, batch(10))
    buffer.give_up(PLACE, ReadFailure(kind=RefusalKind.TOO_LARGE, message="too large", offset=0))
    assert not buffer.exhausted()
    put(buffer, batch(10), OTHER)
    buffer.take(OTHER)
    assert buffer.exhausted()
    loop.close()


def test_a_feeder_that_waits_for_room_is_let_in_when_a_fetch_ends_without_records(buffer: FetchBuffer) -> None:
    buffer._loop.run(buffer.reserve, 1 << 20, [PLACE])
    room = buffer._loop.call_soon_with_future(buffer.reserve, 1 << 20, [PLACE])
    buffer._loop.drain()
    assert not room.is_done
    buffer.unreserve(1 << 20)
    buffer._loop.drain()
    assert room.is_done


def test_whoever_waits_hears_of_the_end(buffer: FetchBuffer) -> None:
    buffer._loop.run(buffer.reserve, 1 << 20, [PLACE])
    room = buffer._loop.call_soon_with_future(buffer.reserve, 1 << 20, [PLACE])
    news = buffer._loop.call_soon_with_future(buffer.news, 60)
    buffer._loop.drain()
    buffer.stop(Retryable("no answer"))
    buffer.stop(Retryable("none here either"))
    buffer._loop.drain()
    assert room.is_done
    assert str(news.exception) == "no answer"

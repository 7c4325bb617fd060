"""What the intake makes of batches, and whom it lets wait."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.fetch.intake import Answer, Intake, ReadFailure
from ferry.kafka.fetch.requests import FetchedPartition
from ferry.model import RefusalKind, TopicPartition
from tests.golden import Golden
from tests.pure.net.answers import OTHER, PLACE, batch


@pytest.fixture
def intake() -> Iterator[Intake]:
    """For offsets 0 to 100 of one partition."""
    loop = event_loop()
    yield Intake(loop, {PLACE: (0, 100)}, 1 << 20)
    loop.close()


def put(intake: Intake, records: bytes, place: TopicPartition = PLACE, memory: Answer | None = None) -> Answer:
    """Take in one partition's part of an answer, by itself unless `memory` has more; the memory it lies in."""
    memory = memory or Answer(len(records))
    intake.put(fetched(records, place), memory)
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


def test_a_batch_cut_short_is_asked_for_again_as_a_whole(intake: Intake) -> None:
    whole = batch(100)
    put(intake, whole[:200])
    assert not intake.queues[PLACE]
    assert intake.needed([PLACE]) == len(whole)
    put(intake, whole)
    assert [entry.batch.next_offset for entry in intake.queues[PLACE]] == [100]
    assert (intake.finished, intake.needed([PLACE])) == ({PLACE}, 0)


@pytest.mark.parametrize("length", [-5, 0, 30, 2**31 - 13])
def test_a_length_that_cannot_be_true_is_damage_at_its_offset(intake: Intake, length: int, golden: Golden) -> None:
    good, damaged = batch(10), bytearray(batch(10, 10))
    struct.pack_into(">i", damaged, 8, length)
    put(intake, good + damaged)
    assert len(intake.queues[PLACE]) == 1, "what came before is copied"
    put(intake, bytes(damaged))
    failure = intake.failures[PLACE]
    assert (failure.kind, failure.offset) == (RefusalKind.CORRUPT, 10)
    golden(failure.message)


def test_batches_behind_the_end_are_left_alone(intake: Intake) -> None:
    intake.ends[PLACE] = 5
    put(intake, batch(10))
    assert (intake.finished, len(intake.queues[PLACE])) == ({PLACE}, 1)


def test_a_batch_that_ends_where_the_range_begins_or_begins_where_it_ends_is_left_alone() -> None:
    loop = event_loop()
    intake = Intake(loop, {PLACE: (10, 30)}, 1 << 20)
    put(intake, batch(10) + batch(10, 10))
    put(intake, batch(5, 30) + batch(5, 35))  # between lies a hole
    assert [entry.batch.base_offset for entry in intake.queues[PLACE]] == [10]
    assert (intake.finished, intake.positions[PLACE]) == ({PLACE}, 30)
    loop.close()


def test_a_damaged_header_hides_nothing(intake: Intake) -> None:
    good, damaged = batch(10), bytearray(batch(10, 10))
    damaged[22] |= 0x20  # it calls itself a control batch, which would stay behind
    put(intake, good + damaged)
    assert [entry.hidden for entry in intake.queues[PLACE]] == [False]
    assert (intake.failures[PLACE].kind, intake.failures[PLACE].offset) == (RefusalKind.CORRUPT, 10)


def test_a_batch_that_leads_back_is_damage_and_not_passed_over(intake: Intake, golden: Golden) -> None:
    """The base offset is not under the checksum."""
    put(intake, batch(10) + batch(10, 0) + batch(10, 20))
    assert [entry.batch.base_offset for entry in intake.queues[PLACE]] == [0]
    failure = intake.failures[PLACE]
    assert (failure.kind, failure.offset) == (RefusalKind.CORRUPT, 10)
    golden(failure.message)


def test_a_batch_that_begins_inside_the_one_before_is_damage_in_the_next_answer_too(intake: Intake) -> None:
    put(intake, batch(10))
    put(intake, batch(10, 5))
    assert (intake.failures[PLACE].kind, intake.failures[PLACE].offset) == (RefusalKind.CORRUPT, 10)


def test_a_batch_that_reaches_behind_what_can_be_read_is_damage_when_a_later_answer_says_so_too(
    intake: Intake, golden: Golden
) -> None:
    """The last batch of a log: no other contradicts its base offset, but the log's end does."""
    put(intake, batch(10) + batch(10, 1_995))
    assert (intake.positions[PLACE], intake.failures, intake.needed([PLACE])) == (10, {}, 0)
    put(intake, batch(10, 1_995))
    assert (intake.failures[PLACE].kind, intake.failures[PLACE].offset) == (RefusalKind.CORRUPT, 10)
    golden(intake.failures[PLACE].message)


def test_a_log_may_grow_while_a_broker_reads_it(intake: Intake) -> None:
    short = replace(fetched(batch(10) + batch(10, 10), PLACE), high_watermark=10, last_stable_offset=10)
    intake.put(short, Answer(1))
    assert (intake.positions[PLACE], intake.failures) == (10, {})
    put(intake, batch(10, 10))
    assert intake.positions[PLACE] == 20


def test_an_answer_may_begin_before_the_range_and_inside_its_first_batch(intake: Intake) -> None:
    intake.positions[PLACE] = 15
    put(intake, batch(10) + batch(10, 10) + batch(10, 20))
    assert [entry.batch.base_offset for entry in intake.queues[PLACE]] == [10, 20]
    assert not intake.failures


@pytest.mark.parametrize("claimed", [15, 95, 1_000])
def test_a_batch_that_reaches_behind_where_the_next_begins_is_not_taken(
    intake: Intake, claimed: int, golden: Golden
) -> None:
    """Also behind the range, where nothing more would be looked at."""
    put(intake, batch(10) + batch(10, claimed) + batch(10, 20))
    assert [entry.batch.base_offset for entry in intake.queues[PLACE]] == [0]
    failure = intake.failures[PLACE]
    assert (failure.kind, failure.offset, intake.finished) == (RefusalKind.CORRUPT, 10, set())
    golden(failure.message)


def test_of_a_hole_and_a_batch_that_leads_back_only_the_latter_is_damage(intake: Intake) -> None:
    put(intake, batch(10) + batch(10, 15) + batch(10, 5))
    assert [entry.batch.base_offset for entry in intake.queues[PLACE]] == [0, 15]
    assert intake.failures[PLACE].offset == 25


def test_holes_between_batches_are_taken_as_they_are(intake: Intake) -> None:
    put(intake, batch(10, 7) + batch(10, 40))
    assert intake.positions[PLACE] == 17, "the last one of an answer waits for the one behind it to agree"
    put(intake, batch(10, 40))
    put(intake, batch(10, 120))
    assert [entry.batch.base_offset for entry in intake.queues[PLACE]] == [7, 40]
    assert (intake.failures, intake.finished) == ({}, {PLACE})


def waits_for_room(intake: Intake, size: int) -> bool:
    """Whether a fetch of so many bytes has to wait; it gives the room back when it has not."""
    room = intake._loop.call_soon_with_future(intake.reserve, size, [PLACE])
    intake._loop.drain()
    if room.is_done:
        intake.unreserve(size)
    return not room.is_done


def test_an_answer_counts_until_the_last_of_its_batches_is_released(intake: Intake) -> None:
    memory = Answer(1 << 20)  # most of it is another partition's, or cut off
    put(intake, batch(10) + batch(10, 10), memory=memory)
    for _ in range(2):
        assert waits_for_room(intake, 1)
        intake.release([intake.take(PLACE).answer])
    intake._loop.drain()
    intake.unreserve(2)  # both that waited have come in
    assert not waits_for_room(intake, 1 << 20)


def test_an_answer_of_which_nothing_is_needed_does_not_count(intake: Intake) -> None:
    intake.positions[PLACE] = 50
    put(intake, batch(10), memory=Answer(1 << 30))
    assert not waits_for_room(intake, 1 << 20)


def test_a_partition_that_is_written_slowly_leaves_the_memory_to_others() -> None:
    """A batch of each partition goes into a request, so small ones take their time."""
    loop = event_loop()
    intake = Intake(loop, {PLACE: (0, 10_000), OTHER: (0, 10_000)}, 4 * len(batch(10)))
    for at in (0, 10):
        put(intake, batch(10, at))
    assert intake.hungry([PLACE, OTHER]) == [OTHER]
    fetch = loop.call_soon_with_future(intake.reserve, 1, [PLACE])
    loop.drain()
    assert not fetch.is_done
    intake.release([intake.take(PLACE).answer])
    loop.drain()
    assert fetch.is_done
    assert intake.hungry([PLACE, OTHER]) == [PLACE, OTHER]
    loop.close()


def test_a_partition_that_is_given_up_gives_its_room_back(intake: Intake) -> None:
    put(intake, batch(10))
    failure = ReadFailure(kind=RefusalKind.NEEDS_TRANSCODING, message="why", offset=0)
    intake.give_up(PLACE, failure)
    assert (intake.failures, intake.exhausted()) == ({PLACE: failure}, True)
    assert not waits_for_room(intake, 2 * intake.memory_bytes), "one fetch at a time is always allowed"


def test_a_partition_that_was_read_and_is_given_up_does_not_stand_for_another() -> None:
    loop = event_loop()
    intake = Intake(loop, {PLACE: (0, 10), OTHER: (0, 10)}, 1 << 20)
    put(intake, batch(10))
    intake.give_up(PLACE, ReadFailure(kind=RefusalKind.TOO_LARGE, message="too large", offset=0))
    assert not intake.exhausted()
    put(intake, batch(10), OTHER)
    intake.take(OTHER)
    assert intake.exhausted()
    loop.close()


def test_a_feeder_that_waits_for_room_is_let_in_when_a_fetch_ends_without_records(intake: Intake) -> None:
    intake._loop.run(intake.reserve, 1 << 20, [PLACE])
    room = intake._loop.call_soon_with_future(intake.reserve, 1 << 20, [PLACE])
    intake._loop.drain()
    assert not room.is_done
    intake.unreserve(1 << 20)
    intake._loop.drain()
    assert room.is_done


def test_whoever_waits_hears_of_the_end(intake: Intake) -> None:
    intake._loop.run(intake.reserve, 1 << 20, [PLACE])
    room = intake._loop.call_soon_with_future(intake.reserve, 1 << 20, [PLACE])
    news = intake._loop.call_soon_with_future(intake.news, 60)
    intake._loop.drain()
    intake.stop(Retryable("no answer"))
    intake.stop(Retryable("none here either"))
    intake._loop.drain()
    assert room.is_done
    assert str(news.exception) == "no answer"

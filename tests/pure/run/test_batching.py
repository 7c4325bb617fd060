"""What waits is made ready to be sent: as it is, or anew; the old formats, which no broker writes any more, too."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from crc32c import crc32c
from kafka.net.selector import NetworkSelector
from kafka.record.default_records import DefaultRecordBatch

from ferry.copy import batching as packing_module
from ferry.copy.batching import Batching, BatchingRules
from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import PreparedBatch
from ferry.copy.transcode_pool import TranscodePool
from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.fetch.fetch_buffer import Answer, FetchBuffer
from ferry.model import AgeStats, Codec, Compression, Origin, RefusalKind
from ferry.wire.written import NewRecord, batch_of
from tests.golden import Golden
from tests.pure.decide.values import PLAN, piece
from tests.pure.net.answers import PLACE
from tests.pure.net.test_fetch_buffer import fetched
from tests.pure.wire.captured import OldSet, captured, old_sets

Pack = Callable[[FetchBuffer, BatchingRules, PartProgress], Iterator[PreparedBatch]]

PLAIN = BatchingRules(compression=Compression(codec=Codec.NONE))


def part(start: int, end: int = 1_000) -> PartProgress:
    return PartProgress(plan=PLAN, origin=Origin(), piece=piece(end=end), start=start, end=start, target_next=0)


@pytest.fixture
def loop() -> Iterator[NetworkSelector]:
    found = event_loop()
    yield found
    found.close()


@pytest.fixture
def buffer(loop: NetworkSelector) -> FetchBuffer:
    return FetchBuffer(loop, {PLACE: (0, 1_000)}, 1 << 20)


@pytest.fixture(params=["at once", "in the pool"])
def pack(request: pytest.FixtureRequest, loop: NetworkSelector, monkeypatch: pytest.MonkeyPatch) -> Pack:
    """What is sent next, again and again, whoever makes it."""
    monkeypatch.setattr(packing_module, "HANDED_OVER_BYTES", 0)
    return partial(_packed, loop, None if request.param == "at once" else TranscodePool(loop))


def _packed(
    loop: NetworkSelector, pool: TranscodePool | None, buffer: FetchBuffer, rules: BatchingRules, progress: PartProgress
) -> Iterator[PreparedBatch]:
    """Everything that is sent; each is acknowledged."""
    packing = Batching(buffer, rules, pool)
    while True:
        buffer.arrived.clear()
        if packing.next(PLACE, progress) is not None:
            out = packing.take(PLACE)
            progress.sent(out)
            packing.look_ahead(PLACE, progress)
            buffer.release(out.answers)
            yield out
        elif packing.is_making(PLACE):
            loop.run(buffer.news, 10.0)
        else:
            break
    assert not packing.holds(PLACE)


@pytest.mark.parametrize("old", old_sets(), ids=lambda old: old.name)
@pytest.mark.parametrize(("start", "end"), [(0, 106), (0, 103), (104, 105)])
def test_messages_of_the_old_formats_are_written_together(
    pack: Pack, buffer: FetchBuffer, old: OldSet, start: int, end: int
) -> None:
    memory = Answer(len(old.data))
    buffer.ends[PLACE] = end  # may be inside a compressed message, whose own offset is that of its last record
    buffer.put(fetched(old.data, PLACE), memory)
    progress = part(start, end)
    (out,) = pack(buffer, PLAIN, progress)
    records = list(DefaultRecordBatch(bytes(out.batch.data)))
    wanted = [row for row in old.rows if start <= row[0] < end]
    assert [(record.timestamp, record.key, record.value) for record in records] == [row[1:] for row in wanted]
    said = [first + index for first, count in out.runs for index in range(count)]
    assert said == [row[0] for row in wanted]
    assert PLACE in buffer.finished or end > 105
    progress.reached(end, -1)
    assert (progress.end, progress.records, progress.transcoded) == (end, len(wanted), 1)
    assert memory.needed == 0


def test_a_batch_that_ends_before_the_start_is_dropped_and_its_memory_given_back(
    pack: Pack, buffer: FetchBuffer
) -> None:
    (batch,) = captured("codec-lz4").batches
    memory = Answer(len(batch.data))
    buffer.put(fetched(bytes(batch.data), PLACE), memory)
    progress = part(batch.next_offset)
    assert list(pack(buffer, BatchingRules(), progress)) == []
    assert (progress.end, progress.moved, memory.needed) == (batch.next_offset, False, 0)


@pytest.mark.parametrize(("start", "end"), [(0, 2), (1, 2), (1, 4), (2, 99)])
def test_a_range_inside_a_batch_is_exact(pack: Pack, buffer: FetchBuffer, start: int, end: int) -> None:
    (batch,) = captured("codec-zstd").batches
    buffer.ends[PLACE] = end
    buffer.put(fetched(bytes(batch.data), PLACE), Answer(len(batch.data)))
    progress = part(start, end)
    (out,) = pack(buffer, BatchingRules(), progress)
    last = min(end, batch.next_offset)
    assert (out.runs, out.batch.record_count, out.transcoded) == (((start, last - start),), last - start, True)
    assert (progress.end, progress.records, progress.missing) == (last, last - start, 0)


def test_a_batch_that_ends_where_the_range_does_goes_as_it_is(pack: Pack, buffer: FetchBuffer) -> None:
    (batch,) = captured("codec-zstd").batches
    buffer.put(fetched(bytes(batch.data), PLACE), Answer(1))
    (out,) = pack(buffer, BatchingRules(), part(0, batch.next_offset))
    assert not out.transcoded


def test_parts_of_a_large_batch_give_its_memory_back_with_the_last(pack: Pack, buffer: FetchBuffer) -> None:
    (batch,) = captured("codec-none").batches
    memory = Answer(len(batch.data))
    buffer.put(fetched(bytes(batch.data), PLACE), memory)
    progress = part(0)
    rules = BatchingRules(batch_bytes={progress.piece.target.topic: 450})
    found = list(pack(buffer, rules, progress))
    assert len(found) > 1
    assert [bool(out.answers) for out in found] == [False] * (len(found) - 1) + [True]
    assert all(len(out.batch.data) <= 450 for out in found)
    assert (progress.records, progress.end, memory.needed) == (batch.record_count, batch.next_offset, 0)


def test_the_age_of_a_tombstone_is_its_own_whatever_its_delete_horizon_is(
    pack: Pack, buffer: FetchBuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log cleaner has put the time of a later deletion in the place of the batch's first timestamp (KIP-534)."""
    now, old, horizon = 1_000_000, 400_000, 1_500_000
    monkeypatch.setattr("ferry.copy.chunk.wall_ms", lambda: now)
    row = NewRecord(old, b"k", None, [])
    written = bytearray(batch_of([NewRecord(horizon, b"gone", b"", []), row], Compression(codec=Codec.NONE)).data)
    struct.pack_into(">h", written, 21, 0x40)
    struct.pack_into(">q", written, 35, old)
    struct.pack_into(">I", written, 17, crc32c(memoryview(written)[21:]))
    buffer.put(fetched(bytes(written), PLACE), Answer(1))
    progress = part(1)  # the first record, which only makes the base, is not copied
    (out,) = pack(buffer, BatchingRules(), progress)
    (record,) = DefaultRecordBatch(bytes(out.batch.data))
    receipt = progress.receipt()
    assert record.timestamp == receipt.min_timestamp_ms == receipt.mean_timestamp_ms == receipt.max_timestamp_ms == old
    assert receipt.ages == AgeStats(min=now - old, mean=now - old, max=now - old, records=1)


def refused(pack: Pack, buffer: FetchBuffer, rules: BatchingRules) -> tuple[RefusalKind, str]:
    assert list(pack(buffer, rules, part(0))) == []
    return buffer.failures[PLACE].kind, buffer.failures[PLACE].message


def test_a_record_that_is_too_large_ends_its_partition(pack: Pack, buffer: FetchBuffer, golden: Golden) -> None:
    (batch,) = captured("codec-none").batches
    buffer.put(fetched(bytes(batch.data), PLACE), Answer(1))
    kind, said = refused(pack, buffer, BatchingRules(batch_bytes={piece().target.topic: 100}))
    assert kind is RefusalKind.TOO_LARGE
    golden(said)


def test_a_batch_that_does_not_hold_what_its_header_says_ends_its_partition(
    pack: Pack, buffer: FetchBuffer, golden: Golden
) -> None:
    (batch,) = captured("codec-gzip").batches
    buffer.put(fetched(bytes(batch.data), PLACE), Answer(1))
    (found,) = buffer.queues[PLACE]
    buffer.queues[PLACE][0] = found._replace(batch=found.batch._replace(record_count=9))
    kind, said = refused(pack, buffer, BatchingRules())
    assert kind is RefusalKind.CORRUPT
    golden(said)

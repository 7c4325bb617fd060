"""Both sides of a range as their batches arrive, without brokers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from kafka.net.selector import NetworkSelector
from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry.features.verify.acts import pairing
from ferry.features.verify.acts.pairing import Pair, Side
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.fetch.fetch_buffer import Answer, FetchBuffer
from ferry.kafka.fetch.requests import FetchedPartition
from ferry.model import DifferenceKind, NotComparedKind, RefusalKind, Segment, TopicPartition
from ferry.plan.rules.record_sample import record_samples
from ferry.wire.batch import HEADER_BYTES, Batch, batches, restamped
from tests.golden import Golden
from tests.pure.wire.logs import data, marker

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("a.t", 0)
Kind = DifferenceKind
SIZES = (3, 12, 9, 6)
Found = list[tuple[DifferenceKind, tuple[int, int], tuple[int, int]]]
STRETCH = CompareRange(
    source=SOURCE,
    target=TARGET,
    source_range=(0, 30),
    target_range=(5, 36),
    segments=(Segment(source_start=0, target_start=5, count=30),),
    covered_until=35,
)


@pytest.fixture
def loop() -> Iterator[NetworkSelector]:
    """The loop that intakes want; nothing runs on it."""
    loop = event_loop()
    yield loop
    loop.close()


def made(start: int, count: int, codec: int = 0) -> Batch:
    """Records `start` and following, at their numbers as offsets and times."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for index, number in enumerate(range(start, start + count)):
        builder.append(index, number, b"k%d" % number, b"value %d" % number, [])
    (found,) = batches(with_base(memoryview(builder.build()), start))
    return found


def source(codec: int = 0) -> list[Batch]:
    return [made(start, 10, codec) for start in (0, 10, 20)]


def copied(found: Sequence[Batch], shift: int = 5) -> list[Batch]:
    """Batches as Ferry writes them, and its marker behind them."""
    out: list[Batch] = []
    for batch in found:
        body = bytearray(restamped(batch, 77, 0, 0))
        struct.pack_into(">q", body, 0, batch.base_offset + shift)
        out += batches(body)
    return [*out, marker(found[-1].next_offset + shift, 77, commits=True)]


def flipped(batch: Batch, at: int, *, sound: bool) -> Batch:
    """A batch with one bit flipped in its payload; `sound`: under a checksum that fits."""
    body = bytearray(batch.data)
    body[at] ^= 1
    (found,) = batches(body)
    if sound:
        (found,) = batches(with_base(restamped(found, 77, 0, 0), batch.base_offset))
    return found


def with_base(view: memoryview, offset: int) -> bytearray:
    body = bytearray(view)
    struct.pack_into(">q", body, 0, offset)
    return body


def paired(
    loop: NetworkSelector, here: Sequence[Batch], there: Sequence[Batch], span: CompareRange = STRETCH, turn: int = 1
) -> Pair:
    """Feed both sides, `turn` batches of each at a time."""
    sides = []
    for place, part, checked in ((SOURCE, span.source_range, False), (TARGET, span.target_range, True)):
        buffer = FetchBuffer(loop, {place: part}, 1 << 20, checked=checked)
        sides.append(Side(alias=place.topic, place=place, range=part, buffer=buffer, checked=checked))
    pair = Pair(span, sides[0], sides[1], record_samples(b"s", values=False))
    for at in range(0, max(len(here), len(there)), turn):
        for side, row in zip(sides, (here, there), strict=True):
            assert side.buffer is not None
            if row[at : at + turn] and side.buffer.wanted(side.place):
                put(side.buffer, side.place, row[at : at + turn])
        pair.advance()
    for side in sides:
        assert side.buffer is not None
        if side.buffer.wanted(side.place):
            side.buffer.finish_empty(side.place, 0)
    pair.advance()
    assert pair.is_done
    return pair


def put(buffer: FetchBuffer, place: TopicPartition, row: Sequence[Batch]) -> None:
    data = b"".join(bytes(batch.data) for batch in row)
    part = FetchedPartition(
        place=place, error_code=0, high_watermark=99, last_stable_offset=99, log_start_offset=0, aborted=(),
        records=data,
    )  # fmt: skip
    buffer.put(part, Answer(len(data)))


def told(pair: Pair) -> Found:
    return [(one.kind, one.source_range, one.target_range) for one in pair.comparison.differences]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The base offsets of batches that were opened."""
    seen: list[int] = []
    real: Callable[[Batch, tuple[int, int]], object] = pairing.opened

    def spy(batch: Batch, part: tuple[int, int]) -> object:
        seen.append(batch.base_offset)
        return real(batch, part)

    monkeypatch.setattr(pairing, "opened", spy)
    return seen


@pytest.mark.parametrize("turn", [1, 2, 9])
def test_verbatim_copies_are_equal_and_stay_closed(loop: NetworkSelector, opened: list[int], turn: int) -> None:
    here = source(codec=3)
    pair = paired(loop, here, copied(source(codec=3)), turn=turn)
    assert (told(pair), pair.not_compared, pair.comparison.records, opened) == ([], None, 30, [])
    assert pair.bytes == 2 * sum(len(batch.data) for batch in here)


def test_a_flipped_bit_is_located_and_what_was_before_stays_closed(loop: NetworkSelector, opened: list[int]) -> None:
    there = copied(source())
    at = bytes(there[1].data).index(b"value 13") + 7
    there[1] = flipped(there[1], at, sound=True)
    pair = paired(loop, source(), there)
    assert told(pair) == [(Kind.VALUE, (13, 14), (18, 19))]
    assert pair.comparison.records == 30
    assert 0 not in opened


@pytest.mark.parametrize("side", [0, 1])
def test_a_batch_whose_checksum_is_wrong_is_not_compared(loop: NetworkSelector, side: int) -> None:
    here, there = source(), copied(source())
    row = (here, there)[side]
    row[1] = flipped(row[1], HEADER_BYTES + 30, sound=False)
    pair = paired(loop, here, there)
    assert told(pair) == []
    left = pair.not_compared
    assert left is not None
    assert (left.why, left.start, left.end, left.asked) == (NotComparedKind.UNREADABLE, 10, 30, True)
    assert pair.comparison.records == 10


def test_other_batches_with_the_same_records_are_equal(loop: NetworkSelector) -> None:
    starts = [sum(SIZES[:index]) for index in range(len(SIZES))]
    there = copied([made(start, size) for start, size in zip(starts, SIZES, strict=True)])
    pair = paired(loop, source(), there)
    assert (told(pair), pair.comparison.records) == ([], 30)


def test_only_the_range_counts_of_batches_that_reach_beyond_it(loop: NetworkSelector) -> None:
    inside = replace(
        STRETCH,
        source_range=(5, 25),
        target_range=(10, 30),
        segments=(Segment(source_start=5, target_start=10, count=20),),
    )
    there = copied(source())
    there[0] = flipped(there[0], bytes(there[0].data).index(b"value 3") + 6, sound=True)
    pair = paired(loop, source(), there, inside)
    assert (told(pair), pair.comparison.records) == ([], 20)


def test_records_of_others_count_only_where_nobody_else_may_write(loop: NetworkSelector) -> None:
    foreign = [*copied(source())[:-1], data([(b"x", b"foreign")], offset=35)]
    assert told(paired(loop, source(), foreign)) == [(Kind.EXTRA, (30, 30), (35, 36))]
    for innocent in (replace(STRETCH, shared=True), replace(STRETCH, void=((35, 36),))):
        assert told(paired(loop, source(), foreign, innocent)) == []


def test_a_side_that_cannot_be_read_on_leaves_the_rest_uncompared(loop: NetworkSelector, golden: Golden) -> None:
    pair = paired(loop, source(), copied(source())[:1])
    assert told(pair) == [(Kind.MISSING, (10, 30), (15, 15))]
    sides = [FetchBuffer(loop, {SOURCE: (0, 30)}, 1 << 20), FetchBuffer(loop, {TARGET: (5, 36)}, 1 << 20)]
    pair = Pair(
        STRETCH,
        Side(alias="a", place=SOURCE, range=(0, 30), buffer=sides[0]),
        Side(alias="b", place=TARGET, range=(5, 36), buffer=sides[1]),
        record_samples(b"s", values=False),
    )
    put(sides[0], SOURCE, source())
    put(sides[1], TARGET, copied(source())[:1])
    sides[1].fail(TARGET, RefusalKind.RETENTION_PASSED, "gone")
    pair.advance()
    assert pair.is_done
    left = pair.not_compared
    assert left is not None
    assert (left.why, left.start, left.end) == (NotComparedKind.TARGET_DELETED, 10, 30)
    golden(left.message)


@pytest.mark.parametrize("turn", [1, 2, 9])
def test_logs_without_a_map_are_compared_by_what_they_hold(loop: NetworkSelector, turn: int) -> None:
    without = replace(STRETCH, by_content=(True, True))
    starts = [sum(SIZES[:index]) for index in range(len(SIZES))]
    there = copied([made(start, size, codec=1) for start, size in zip(starts, SIZES, strict=True)])
    pair = paired(loop, source(), there, without, turn=turn)
    assert (told(pair), pair.comparison.records, pair.left) == ([], 30, [])
    short = paired(loop, source(), copied(source())[:2], without, turn=turn)
    assert (told(short), short.comparison.records) == ([], 20)
    assert [(left.why, left.start, left.end) for left in short.left] == [(NotComparedKind.NOT_COPIED, 20, 30)]

"""Logs with holes and with damaged base offsets, answered as a broker does: no record is lost without a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.fetch.fetch_buffer import Answer, FetchBuffer
from ferry.kafka.fetch.requests import FetchedPartition
from tests.pure.net.answers import PLACE, batch

Log = list[tuple[int, int]]
"""Base offset and number of records of each batch."""


@st.composite
def logs(draw: st.DrawFn, *, most_hole: int, least: int = 0) -> Log:
    """Batches with up to so many offsets missing before each."""
    found, at = [], 0
    sizes = st.tuples(st.integers(0, most_hole), st.integers(1, 9))
    for hole, count in draw(st.lists(sizes, min_size=least, max_size=12)):
        found.append((at + hole, count))
        at += hole + count
    return found


def read(log: Log, end: int, per_answer: int) -> tuple[FetchBuffer, Log]:
    """Fetch until the range is read or refused, so many batches at a time; what was taken."""
    loop = event_loop()
    buffer, taken = FetchBuffer(loop, {PLACE: (0, end)}, 1 << 20), []
    for _ in range(3 * len(log) + 3):  # a fetch that brings nothing on would never end
        if not buffer.wanted(PLACE):
            break
        position = buffer.positions[PLACE]
        # A broker looks for the first batch that ends behind the offset, and gives what lies from there on.
        first = next((at for at, (base, count) in enumerate(log) if base + count > position), None)
        if first is None:
            buffer.finish(PLACE)
            break
        records = b"".join(batch(count, base) for base, count in log[first : first + per_answer])
        part = FetchedPartition(
            place=PLACE,
            error_code=0,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=0,
            aborted=(),
            records=records,
        )
        buffer.put(part, Answer(len(records)))
        while buffer.queues[PLACE]:
            entry = buffer.take(PLACE)
            taken.append((entry.batch.base_offset, entry.batch.record_count))
            buffer.release([entry.answer])
    else:
        raise AssertionError("it does not come to an end")
    loop.close()
    return buffer, taken


@given(logs(most_hole=4), st.integers(0, 4), st.integers(1, 5))
def test_a_log_with_holes_is_read_to_its_end(log: Log, behind: int, per_answer: int) -> None:
    end = sum(log[-1]) + behind if log else behind + 1
    buffer, taken = read(log, end, per_answer)
    assert (taken, buffer.failures, buffer.finished) == (log, {}, {PLACE})


@pytest.mark.slow
@given(logs(most_hole=0, least=3), st.data(), st.integers(2, 5))
def test_a_damaged_base_offset_is_refused_or_leaves_a_hole_that_is_counted(
    log: Log, data: st.DataObject, per_answer: int
) -> None:
    """What is taken has its own offsets, whatever a batch claims, be it the first or the last one."""
    victim = data.draw(st.integers(0, len(log) - 1))
    claimed = data.draw(st.integers(0, 2 * sum(log[-1])).filter(lambda base: base != log[victim][0]))
    damaged = [*log[:victim], (claimed, log[victim][1]), *log[victim + 1 :]]
    end = sum(log[-1])
    buffer, taken = read(damaged, end, per_answer)
    if buffer.failures:
        assert taken == log[:victim]
        assert buffer.failures[PLACE].offset == log[victim][0]
    else:  # it claims what was read before, so the broker itself leaves it out
        assert taken == [*log[:victim], *log[victim + 1 :]]
        assert claimed < log[victim][0]

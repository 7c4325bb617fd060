"""What a chunk knows of its batches: where they came to lie, whether others wrote between them, what is missing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import as_it_is
from ferry.model import AgeStats, Origin, Segment
from ferry.wire.batch import Batch, batches
from tests.pure.decide.values import PLAN, piece
from tests.pure.net.answers import batch


def part(*, merged: bool) -> PartProgress:
    return PartProgress(
        plan=PLAN, origin=Origin(), piece=replace(piece(end=1_000), merged=merged), start=0, end=30, target_next=100
    )


def test_the_epoch_of_a_receipt_vouches_for_its_end() -> None:
    progress = replace(part(merged=False), end=10, source_epoch=3)
    progress.reached(10, 5)
    assert (progress.receipt().end, progress.receipt().source_epoch) == (10, 3), "the batch that ends there"
    progress.reached(30, 5)
    assert (progress.receipt().end, progress.receipt().source_epoch) == (30, 5), "what showed that nothing lies there"


@pytest.mark.parametrize("merged", [False, True])
def test_only_a_merged_topic_may_hold_other_flows_records_between_ours(merged: bool) -> None:
    progress = part(merged=merged)
    assert progress.written([(0, 10)], 100)
    assert progress.written([(10, 10)], 110), "what follows directly is the same segment"
    assert progress.written([(20, 10)], 125) is merged
    assert progress.receipt().segments == (
        Segment(source_start=0, target_start=100, count=20),
        Segment(source_start=20, target_start=125, count=10),
    )
    assert progress.receipt().target_next == 135


def held(count: int, base: int) -> Batch:
    """A batch with so many records from offset `base` on."""
    (found,) = batches(batch(count, base))
    return found


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.booleans(), st.integers(0, 4)), max_size=12),
    st.integers(0, 5),
)
def test_missing_are_the_offsets_that_no_batch_had_a_record_of(
    found: list[tuple[int, int, bool, int]], behind: int
) -> None:
    """Holes before batches, in batches that stay behind, and before the end of the range."""
    progress, at, missing = replace(part(merged=False), end=0), 0, 0
    for hole, count, copied, removed in found:
        missing += hole
        if copied:
            progress.sent(as_it_is(held(count, at + hole)))
            at += hole + count
        else:
            here = held(count, at + hole)
            progress.pass_over(here._replace(next_offset=here.next_offset + removed))
            missing += removed
            at += hole + count + removed
    progress.end = max(progress.end, at + behind)
    receipt = progress.receipt()
    assert (receipt.missing, receipt.end) == (missing + behind, at + behind)


def test_of_a_batch_that_stays_behind_only_what_lies_in_the_range_counts() -> None:
    progress = replace(part(merged=False), start=15, end=15)
    progress.pass_over(held(10, 10))
    assert (progress.receipt().end, progress.receipt().missing) == (20, 0)
    progress = replace(part(merged=False), piece=piece(end=13), start=0, end=0)
    progress.pass_over(held(20, 0))
    assert (progress.receipt().end, progress.receipt().missing) == (13, 0)


def timed(count: int, base: int, first_ms: int, last_ms: int) -> Batch:
    """The same, with the timestamps that its header tells."""
    return held(count, base)._replace(base_timestamp=first_ms, max_timestamp=last_ms)


def test_ages_are_those_of_the_records_by_their_batches_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10_000
    monkeypatch.setattr("ferry.copy.chunk.wall_ms", lambda: now)
    progress = replace(part(merged=False), end=0)
    progress.sent(as_it_is(timed(1, 0, 4_000, 4_000)))
    now = 12_000
    progress.sent(as_it_is(timed(3, 1, 5_000, 7_000)))
    progress.sent(as_it_is(timed(9, 4, -1, -1)))  # of format v0: no timestamp
    now = 15_000
    receipt = progress.receipt()
    assert receipt.ages == AgeStats(min=5_000, mean=6_000, max=7_000, records=4)
    assert (receipt.min_timestamp_ms, receipt.mean_timestamp_ms, receipt.max_timestamp_ms) == (4_000, 5_500, 7_000)
    assert receipt.latency == AgeStats(min=8_000, mean=9_500, max=11_000, records=4)


@given(st.lists(st.lists(st.integers(0, 2_000), min_size=1, max_size=5).map(sorted), min_size=1, max_size=6))
def test_the_mean_is_off_by_half_a_batchs_span_at_most(stamps: list[list[int]]) -> None:
    """Held against every record's own timestamp: the youngest and, in batches in order, the oldest are exact."""
    progress, at = replace(part(merged=False), end=0), 0
    for times in stamps:
        progress.sent(as_it_is(timed(len(times), at, times[0], times[-1])))
        at += len(times)
    every = [time for times in stamps for time in times]
    receipt = progress.receipt()
    assert (receipt.min_timestamp_ms, receipt.max_timestamp_ms) == (min(every), max(every))
    half_spans = sum((times[-1] - times[0]) / 2 * len(times) for times in stamps)
    assert receipt.mean_timestamp_ms is not None
    assert abs(receipt.mean_timestamp_ms - sum(every) / len(every)) <= half_spans / len(every) + 1
    assert receipt.latency is not None
    assert receipt.latency.min <= receipt.latency.mean <= receipt.latency.max


def test_records_without_a_timestamp_have_no_age() -> None:
    progress = replace(part(merged=False), end=0)
    progress.sent(as_it_is(timed(2, 0, -1, -1)))
    assert progress.receipt().ages is progress.receipt().latency is None

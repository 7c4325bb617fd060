"""Portion after portion of transformed slices: what stands against one is not passed over by the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ferry.clock import wall_ms
from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.copy.kafka_slot import CopyLimits
from ferry.copy.slot_end import SlotEnd
from ferry.copy.task import SlotTask
from ferry.errors import Retryable
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark import row_writing
from ferry.features.records.spark.row_frames import RowJob
from ferry.features.records.spark.row_writing import Written, write_in_portions
from ferry.features.records.spark.streams import Stream
from ferry.model import FilterCounts, Origin, RefusalKind, TopicPartition
from ferry.protocol.slot import SlotRef
from tests.pure.decide.values import FLOW, LANE, PLAN, piece, place, refusal

SLICES = tuple(
    replace(piece(partition=n, end=100, slot=n % 2), transform="t", bytes_estimate=100_000) for n in range(3)
)
NO_SPARK = cast("SparkSession", None)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writing, "fits_one_portion", lambda *_: False)
    monkeypatch.setattr(row_writing, "at_once", lambda _: 1)


def spec(slot: int, began_ms: int) -> SlotTask:
    limits = CopyLimits(memory_bytes=1, chunk_bytes=1, chunk_seconds=1, transaction_timeout_ms=1, isolation=1)
    ref = SlotRef(flow=FLOW, lane=LANE, run="r", generation=1, attempt=1, slot=slot)
    return SlotTask(
        ref=ref, source=cast("Any", None), target=cast("Any", None), limits=limits, origin=Origin(), began_ms=began_ms,
        patience_s=1,
    )  # fmt: skip


def written(
    monkeypatch: pytest.MonkeyPatch,
    judge: Callable[[int, int], SlotEnd],
    *,
    reached: Mapping[TopicPartition, int] | None = None,
    began_ms: int | None = None,
) -> tuple[Written, dict[int, list[tuple[int, int]]]]:
    """What was written, and what was read of each partition; `judge` says how a slot ends in a round."""
    read: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    rounds = 0

    def write(job: RowJob) -> Written:
        nonlocal rounds
        rounds += 1
        for stream in job.streams:
            for one in stream.pieces:
                assert not one.dealt
                told = job.specs[one.slot].portion
                assert told is not None
                assert told.ranges[one.source] == (one.start, one.end), "the slot is told of other rows than are read"
                read[one.source.partition].append((one.start, one.end))
        return [judge(slot, rounds) for slot in job.specs], {"orders": FilterCounts(read=10, kept=4)}

    rule = PoisonRule(transform="t", poison=Poison.FAIL, letters=DeadLetters(topic="d"))
    streams = [Stream(change=lambda read, then, columns: read(then, columns), rule=rule, pieces=SLICES)]
    plan = replace(PLAN, slices=SLICES, max_seconds=100)
    specs = {slot: spec(slot, wall_ms() if began_ms is None else began_ms) for slot in (0, 1)}
    monkeypatch.setattr(row_writing, "write_rows", write)
    job = RowJob(spark=NO_SPARK, plan=plan, specs=specs, streams=streams, tally=cast("Any", None))
    return write_in_portions(job, reached or {}, 120_000), read


def fine(slot: int, _round: int) -> SlotEnd:
    return SlotEnd(slot=slot)


def test_all_of_each_slice_is_read_once_and_more_than_one_portion_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    (ends, _), read = written(monkeypatch, fine, reached={place("orders", 1): 60})
    assert [end.slot for end in ends] == [0, 1]
    for number, begin in ((0, 0), (1, 60), (2, 0)):
        assert [start for start, _ in read[number]] == [begin, *(end for _, end in read[number][:-1])]
        assert read[number][-1][1] == 100
    assert len(read[0]) > 1


def test_slices_that_an_earlier_attempt_has_finished_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (ends, _), read = written(monkeypatch, fine, reached={place("orders", 0): 100, place("orders", 1): 100})
    assert ([end.slot for end in ends], read[0], read[1], read[2][-1][1]) == ([0], [], [], 100)


def test_nothing_is_begun_when_earlier_attempts_have_finished_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of no slots has none to ask for what all share; an error would take the copied bytes with it."""
    found, read = written(monkeypatch, fine, reached={place("orders", number): 100 for number in range(3)})
    assert (found, read) == (([], {}), {0: [], 1: [], 2: []})


def test_a_slice_that_is_refused_is_left_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    against = replace(refusal("orders", 2), kind=RefusalKind.POISON)
    (ends, _), read = written(
        monkeypatch, lambda slot, at: SlotEnd(slot=slot, refusals=(against,) if (slot, at) == (0, 1) else ())
    )
    assert len(read[2]) == 1
    assert read[0][-1][1] == read[1][-1][1] == 100
    assert ends[0].refusals == (against,), "a later portion has forgotten it"


@pytest.mark.parametrize("how", [{"failure": ValueError("x")}, {"time_over": True}, {"stopped": True}])
def test_a_slot_that_gave_up_is_left_and_the_other_goes_on(
    how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, read = written(monkeypatch, lambda slot, _: SlotEnd(slot=slot, **(how if slot == 0 else {})))
    assert (len(read[0]), len(read[2])) == (1, 1)
    assert read[1][-1][1] == 100


def test_no_portion_is_begun_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    (ends, _), read = written(monkeypatch, fine, began_ms=wall_ms() - 200_000)
    assert [len(found) for found in read.values()] == [1, 1, 1]
    assert [end.time_over for end in ends] == [True, True]


def test_the_counts_of_all_portions_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    (_, sifted), read = written(monkeypatch, fine)
    rounds = max(map(len, read.values()))
    assert rounds > 1
    assert sifted == {"orders": FilterCounts(read=10 * rounds, kept=4 * rounds)}


def test_all_slots_fail_if_spark_does_and_what_was_counted_before_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(slot: int, at: int) -> SlotEnd:
        if at == 2:
            raise PySparkException("gone")
        return SlotEnd(slot=slot)

    (ends, sifted), _ = written(monkeypatch, judge)
    assert [(end.slot, type(end.failure)) for end in ends] == [(0, Retryable), (1, Retryable)]
    assert sifted == {"orders": FilterCounts(read=10, kept=4)}

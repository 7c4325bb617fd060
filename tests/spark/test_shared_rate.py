"""How the tasks that write rows share a rate: no more of them read at once than it is divided by."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from ferry.clock import wall_ms
from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.config.record_source import TASK_RECORDS
from ferry.copy.rate_limiter import RateLimit
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark import row_frames
from ferry.features.records.spark.row_frames import RowJob, shuffled_frame, unshuffled_frame
from ferry.features.records.spark.row_tasks import Alone
from ferry.features.records.spark.steps import ArrowSteps
from ferry.features.records.spark.streams import Stream
from ferry.model import Slice
from tests.pure.decide.values import PLAN, piece
from tests.spark.test_portions import spec

RATE = 8_000_000


class Frames:
    """A stand-in for Spark, its frames and columns: it keeps what the frames would read, and in how many tasks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
        self.asked = 0
        """How often Spark was asked how many tasks it runs at once."""
        self.slots: tuple[Mapping[int, Alone], int] = {}, 0
        self.reads: list[tuple[Sequence[ReadSpec], int]] = []
        self._at_once = at_once
        monkeypatch.setattr(row_frames, "at_once", self._cores)
        monkeypatch.setattr(row_frames, "slot_frame", self._of_slots)
        monkeypatch.setattr(row_frames, "read_frame", self._of_reads)
        monkeypatch.setattr(row_frames, "sf", self)

    def __getattr__(self, _: str) -> Any:
        return lambda *_: self

    def __lt__(self, _: object) -> Frames:
        return self

    def __mod__(self, _: object) -> Frames:
        return self

    def _cores(self, _: object) -> int:
        self.asked += 1
        return self._at_once

    def _of_slots(self, _: object, slots: Collection[int], tasks: int) -> Frames:
        self.slots = cast("Mapping[int, Alone]", slots), tasks
        return self

    def _of_reads(self, _: object, reads: Sequence[ReadSpec], __: object, ___: object, tasks: int) -> Frames:
        self.reads.append((reads, tasks))
        return self


def job(frames: Frames, sizes: Sequence[Sequence[int]], *, plain: bool, rate: bool = True) -> RowJob:
    """A stream for each of `sizes`, with slices of so many offsets, each with a slot of its own."""
    numbers: Iterator[int] = iter(range(100))
    streams: list[Stream] = []
    for name, ends in enumerate(sizes):
        slices: list[Slice] = [
            replace(piece(topic=f"t{name}", partition=at, end=end, slot=next(numbers)), transform=f"t{name}")
            for at, end in enumerate(ends)
        ]
        streams.append(
            Stream(
                change=lambda read, then, columns: read(then, columns),
                rule=PoisonRule(transform=f"t{name}", poison=Poison.FAIL, letters=DeadLetters(topic="d")),
                pieces=tuple(slices),
                plain=ArrowSteps((), {}, b"") if plain else None,
            )
        )
    specs = {one.slot: spec(one.slot, wall_ms()) for stream in streams for one in stream.pieces}
    if rate:
        limit = RateLimit(bytes_per_second=RATE, at_once=len(specs))
        specs = {slot: replace(one, limits=replace(one.limits, rate=limit)) for slot, one in specs.items()}
    tally = SimpleNamespace(adding=lambda _: None, counting=lambda *_: iter)
    return RowJob(spark=cast("SparkSession", frames), plan=PLAN, specs=specs, streams=streams, tally=cast("Any", tally))


def test_slots_of_plain_steps_have_no_more_tasks_than_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = Frames(monkeypatch, 2)
    unshuffled_frame(job(frames, [[100] * 8], plain=True))
    slots, tasks = frames.slots
    assert (len(slots), tasks, frames.asked) == (8, 2, 1)
    assert {one.read.bytes_per_second for one in slots.values()} == {RATE // 2}


@pytest.mark.parametrize(
    ("sizes", "at_once", "tasks", "each"),
    [
        ([[5 * TASK_RECORDS], [100]], 4, [3, 1], [2, 1]),
        ([[5 * TASK_RECORDS], [TASK_RECORDS] * 3], 16, [5, 3], [1, 1]),
        ([[100], [100], [100]], 2, [1, 1, 1], [1, 1, 1]),
        ([[100], [0]], 2, [1, 1], [1, 1]),
    ],
    ids=["fewer cores than reads", "more", "fewer than transforms", "one that has nothing to read"],
)
def test_reads_before_a_shuffle_share_the_rate_of_all_that_run_at_once(
    sizes: list[list[int]], at_once: int, tasks: list[int], each: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = Frames(monkeypatch, at_once)
    _, shares, _ = shuffled_frame(job(frames, sizes, plain=False))
    assert [count for _, count in frames.reads] == [len(one.tasks) for one in shares] == tasks
    assert [one.reads for one in shares] == each
    assert frames.asked <= 1
    reading = sum(count for reads, count in frames.reads if reads)
    assert {one.bytes_per_second for reads, _ in frames.reads for one in reads} == {RATE // reading}


def test_without_a_rate_each_read_has_a_task_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = Frames(monkeypatch, 2)
    unshuffled_frame(job(frames, [[100] * 8], plain=True, rate=False))
    shuffled_frame(job(frames, [[5 * TASK_RECORDS], [100]], plain=False, rate=False))
    assert (frames.slots[1], [count for _, count in frames.reads], frames.asked) == (8, [5, 1], 0)

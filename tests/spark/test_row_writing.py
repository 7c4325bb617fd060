"""What a job on transformed rows leaves out when a transform is ended, and what becomes of all else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ferry.clock import wall_ms
from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.copy.slot_end import SlotResult
from ferry.copy.task import SlotTask
from ferry.features.records.acts.source_logs import Seen
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark import row_frames, row_tasks, row_writing
from ferry.features.records.spark.counters import KEPT, READ, Counters, Place
from ferry.features.records.spark.row_frames import ALONE, RowJob, unshuffled_frame
from ferry.features.records.spark.row_writing import Written, lost_of, write_rows
from ferry.features.records.spark.steps import ArrowSteps
from ferry.features.records.spark.streams import Stream
from ferry.features.records.spark.task_monitor import TooSlow
from ferry.model import FilterCounts, Reads, Slice, TopicPartition
from ferry.run.spark.columns import ints
from tests.pure.decide.values import PLAN, piece, place
from tests.spark.test_portions import spec

SLOW = "ferry.transform.t takes too long"


def of_topic(topic: str, slot: int, **other: Any) -> Slice:
    return replace(piece(topic=topic, partition=0, end=100, slot=slot), transform="t", **other)


def stream(*pieces: Slice, plain: bool) -> Stream:
    """What transform `t` makes of some pieces: all streams have the same name."""
    return Stream(
        change=lambda read, then, columns: read(then, columns),
        rule=PoisonRule(transform="t", poison=Poison.FAIL, letters=DeadLetters(topic="d")),
        pieces=pieces,
        plain=ArrowSteps((), {}, b"") if plain else None,
    )


UNIT = of_topic("dealt", 1, partitions=2, reads=Reads(starts=(0,), ends=(100,), epochs=()))


class Job:
    """A job on streams, whose Spark does what the test says: `acts` has it for each time that it is asked."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, streams: Sequence[Stream], acts: Sequence[Callable[[RowJob], Any]]
    ) -> None:
        self.jobs: list[RowJob] = []
        self.tally = Counters(cast("SparkSession", SimpleNamespace(sparkContext=self)))
        self._acts = iter(acts)
        slices = tuple(one for stream in streams for one in stream.pieces)
        specs = {one.slot: spec(one.slot, wall_ms()) for one in slices}
        self.job = RowJob(
            spark=cast("SparkSession", None),
            plan=replace(PLAN, slices=slices),
            specs=specs,
            streams=streams,
            tally=self.tally,
        )
        monkeypatch.setattr(row_writing, "_written", self._written)
        monkeypatch.setattr(row_writing, "_seen", lambda _: Seen(marks={}, silent={}))
        monkeypatch.setattr(row_writing, "refuse_remote", lambda _: None)

    def accumulator(self, value: dict[Place, int], _: object) -> Any:
        """What stands for Spark's accumulator, which is asked for in the driver."""
        return SimpleNamespace(value=value)

    def counted(self, stream: int, topic: str, records: int) -> None:
        """Task 0 of a stream has read and kept so many records."""
        self.tally._counts.value |= {(what, topic, stream, 0): records for what in (READ, KEPT)}

    def write(self) -> Written:
        return write_rows(self.job)

    def _written(self, job: RowJob) -> list[SlotResult]:
        self.jobs.append(job)
        next(self._acts)(job)
        return [SlotResult(slot=slot) for slot in job.specs]


def too_slow(number: int) -> Callable[[RowJob], Any]:
    def act(_: RowJob) -> None:
        raise TooSlow({number: SLOW})

    return act


def fine(_: RowJob) -> None:
    """All is written."""


def reads(job: RowJob) -> dict[TopicPartition, tuple[int, int]]:
    return {place: (start, end) for one in job.pieces for place, start, end in one.spans if start < end}


def test_a_stream_that_is_ended_leaves_out_no_other_of_its_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are finished by a transform's old rule, while Python alone writes slices by the new one."""
    made = Job(monkeypatch, [stream(of_topic("kept", 0), plain=True), stream(UNIT, plain=False)], [too_slow(1), fine])
    made.write()
    assert made.jobs[1].cutoffs.keys() == {place("dealt", 0)}
    assert reads(made.jobs[1]) == {place("kept", 0): (0, 100)}


def test_of_a_stream_that_is_ended_python_still_writes_what_it_writes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that has a unit, too, passes through Spark with all of its slices."""
    plain = stream(of_topic("kept", 0), of_topic("other", 1), plain=True)
    made = Job(monkeypatch, [plain, stream(UNIT, plain=False)], [too_slow(0), fine])
    made.write()
    assert made.jobs[1].cutoffs.keys() == {place("other", 0)}


def test_a_slot_that_python_writes_alone_knows_what_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its slice, of which nothing is read, would count as copied."""
    ports: list[partial[Any]] = []
    frames: list[Callable[[Any], Any]] = []

    def run(spec: SlotTask, port_of: partial[Any]) -> SlotResult:
        ports.append(port_of)
        return SlotResult(slot=spec.ref.slot)

    frame = SimpleNamespace(mapInArrow=lambda work, _: frames.append(work))
    monkeypatch.setattr(row_frames, "slot_frame", lambda *_: frame)
    monkeypatch.setattr(row_tasks, "run_slot_in_spark", run)
    withheld = lost_of([replace(stream(of_topic("kept", 0), plain=True), lost=SLOW)])
    made = Job(monkeypatch, [stream(of_topic("kept", 0), plain=True)], [])
    tally = SimpleNamespace(adding=lambda _: lambda _: None)
    unshuffled_frame(replace(made.job, tally=cast("Any", tally)).without(withheld))
    (work,) = frames
    list(work([pa.RecordBatch.from_arrays([ints([0])], names=["slot"])]))
    assert ports[0].keywords["cutoffs"] == withheld


def test_counts_of_what_python_wrote_alone_outlive_a_job_that_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off(_: RowJob) -> None:
        made.counted(ALONE, "kept", 100)
        made.counted(1, "dealt", 50)
        raise TooSlow({1: SLOW})

    def next_portion(_: RowJob) -> None:
        made.counted(ALONE, "kept", 7)

    streams = [stream(of_topic("kept", 0), plain=True), stream(UNIT, plain=False)]
    made = Job(monkeypatch, streams, [breaks_off, fine, next_portion])
    assert [made.write()[1] for _ in range(2)] == [{"kept": FilterCounts(100, 100)}, {"kept": FilterCounts(7, 7)}]

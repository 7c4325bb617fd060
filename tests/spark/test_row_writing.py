"""What a job on transformed rows leaves out when a transform is ended, and what becomes of all else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ferry.copy.rate_limiter import RateLimit
from ferry.copy.slot_end import SlotEnd
from ferry.copy.task import SlotTask
from ferry.features.records.acts.source_logs import Seen
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark import row_frames, row_tasks, row_writing
from ferry.features.records.spark.counters import KEPT, READ, Counters, Place
from ferry.features.records.spark.row_frames import ALONE, RowJob, unshuffled_frame
from ferry.features.records.spark.row_tasks import Alone
from ferry.features.records.spark.row_writing import lost_of, write_rows
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
        self, monkeypatch: pytest.MonkeyPatch, streams: Sequence[Stream], acts: Sequence[Callable[[], None]]
    ) -> None:
        self.cutoffs: list[set[TopicPartition]] = []
        """From which partitions something was left out, by attempt."""
        self.reads: list[dict[TopicPartition, tuple[int, int]]] = []
        """What was read, by attempt."""
        self._acts = iter(acts)
        self._counts: Any = None
        slices = tuple(one for stream in streams for one in stream.pieces)
        limit = RateLimit(bytes_per_second=1, at_once=1)  # frames of Python and of Spark are not made one
        specs = {one.slot: spec(one.slot, wall_ms()) for one in slices}
        self.job = RowJob(
            spark=cast("SparkSession", None),
            plan=replace(PLAN, slices=slices),
            specs={slot: replace(one, limits=replace(one.limits, rate=limit)) for slot, one in specs.items()},
            streams=streams,
            tally=Counters(cast("SparkSession", SimpleNamespace(sparkContext=self))),
        )
        monkeypatch.setattr(row_writing, "unshuffled_frame", self._frame)
        monkeypatch.setattr(row_writing, "shuffled_frame", self._shuffled)
        monkeypatch.setattr(row_writing, "watched", self._watched)
        monkeypatch.setattr(row_writing, "seen_before", lambda *_, **__: Seen(marks={}, silent={}))
        monkeypatch.setattr(row_writing, "refuse_remote", lambda _: None)

    def accumulator(self, value: dict[Place, int], _: object) -> Any:
        """A stand-in for Spark's accumulator, in its driver."""
        self._counts = SimpleNamespace(value=value, add=self._add)
        return self._counts

    def _add(self, more: dict[Place, int]) -> None:
        self._counts.value |= more

    def counted(self, stream: int, topic: str, records: int) -> None:
        """Task 0 of a stream has read and kept so many records."""
        self._counts.value |= {(what, topic, stream, 0): records for what in (READ, KEPT)}

    def write(self) -> Mapping[str, FilterCounts]:
        self._begin()
        return write_rows(self.job)[1]

    def _begin(self) -> None:
        self.cutoffs.append(set())
        self.reads.append({})

    def _frame(self, job: RowJob) -> None:
        self.cutoffs[-1] |= job.cutoffs.keys()
        spans = [span for one in job.pieces for span in one.spans]
        self.reads[-1] |= {place: (start, end) for place, start, end in spans if start < end}

    def _shuffled(self, job: RowJob) -> tuple[None, list[Any], int]:
        self._frame(job)
        return None, [], 1

    def _watched(self, *_: object) -> list[Any]:
        act = next(self._acts)
        try:
            act()
        except TooSlow:
            self._begin()
            raise
        return []


def too_slow(number: int) -> Callable[[], None]:
    def act() -> None:
        raise TooSlow({number: SLOW})

    return act


def fine() -> None:
    """All is written."""


def test_a_stream_that_is_ended_leaves_out_no_other_of_its_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are finished by a transform's old rule, while Python alone writes slices by the new one."""
    made = Job(monkeypatch, [stream(of_topic("kept", 0), plain=True), stream(UNIT, plain=False)], [too_slow(1), fine])
    made.write()
    assert made.cutoffs == [set(), {place("dealt", 0)}]
    assert made.reads[1] == {place("kept", 0): (0, 100)}


def test_of_a_stream_that_is_ended_python_still_writes_what_it_writes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that has a unit, too, passes through Spark with all of its slices."""
    plain = stream(of_topic("kept", 0), of_topic("other", 1), plain=True)
    made = Job(monkeypatch, [plain, stream(UNIT, plain=False)], [too_slow(0), fine])
    made.write()
    assert made.cutoffs == [set(), {place("other", 0)}]


def test_a_slot_that_python_writes_alone_knows_what_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its slice, of which nothing is read, would count as copied."""
    ports: list[partial[Any]] = []
    frames: list[Callable[[Any], Any]] = []

    def run(spec: SlotTask, port_of: partial[Any]) -> SlotEnd:
        ports.append(port_of)
        return SlotEnd(slot=spec.ref.slot)

    frame = SimpleNamespace(mapInArrow=lambda work, _: frames.append(work))
    monkeypatch.setattr(row_frames, "slot_frame", lambda *_: frame)
    monkeypatch.setattr(row_tasks, "run_slot_in_spark", run)
    withheld = lost_of([replace(stream(of_topic("kept", 0), plain=True), lost=SLOW)])
    made = Job(monkeypatch, [stream(of_topic("kept", 0), plain=True)], [])
    tally = SimpleNamespace(adding=lambda _: lambda *_: None)
    unshuffled_frame(replace(made.job, tally=cast("Any", tally)).without(withheld))
    (work,) = frames
    list(work([pa.RecordBatch.from_arrays([ints([0])], names=["slot"])]))
    assert ports[0].keywords["cutoffs"] == withheld


def test_counts_of_what_python_wrote_alone_outlive_a_job_that_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off() -> None:
        made.counted(ALONE, "kept", 100)
        made.counted(1, "dealt", 50)
        raise TooSlow({1: SLOW})

    def next_portion() -> None:
        made.counted(ALONE, "kept", 7)

    streams = [stream(of_topic("kept", 0), plain=True), stream(UNIT, plain=False)]
    made = Job(monkeypatch, streams, [breaks_off, fine, next_portion])
    assert [made.write() for _ in range(2)] == [{"kept": FilterCounts(100, 100)}, {"kept": FilterCounts(7, 7)}]


def test_counts_of_slots_that_share_a_task_outlive_one_in_which_only_some_of_them_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slot that is committed reads nothing when its task is repeated; the other one's count is not that of both."""

    def run(spec: SlotTask, port_of: partial[Any]) -> SlotEnd:
        if spec.ref.slot in reading:
            list(port_of.keywords["rows"])
        return SlotEnd(slot=spec.ref.slot)

    def changed(one: Alone, _: Any, __: Any, counts: Counter[tuple[str, str]], *___: Any) -> Iterator[pa.RecordBatch]:
        counts.update({(READ, "kept"): 100 + one.spec.ref.slot, (KEPT, "kept"): 50})
        yield from ()

    frames: list[Callable[[Any], Any]] = []
    frame = SimpleNamespace(mapInArrow=lambda work, _: frames.append(work))
    monkeypatch.setattr(row_frames, "slot_frame", lambda *_: frame)
    monkeypatch.setattr(row_frames, "at_once", lambda _: 1)
    monkeypatch.setattr(row_tasks, "run_slot_in_spark", run)
    monkeypatch.setattr(row_tasks, "changed_rows", changed)
    monkeypatch.setattr(row_tasks, "Rows", iter)
    other = replace(of_topic("kept", 1), source=place("kept", 1), target=place("kept", 1))
    made = Job(monkeypatch, [stream(of_topic("kept", 0), other, plain=True)], [])
    unshuffled_frame(made.job)
    (work,) = frames
    both = pa.RecordBatch.from_arrays([ints([0, 1])], names=["slot"])
    reading = {0, 1}
    list(work([both]))
    made.job.tally.forget(but=ALONE)
    reading = {1}
    list(work([both]))
    assert made.job.tally.totals() == {"kept": FilterCounts(201, 100)}

"""A Spark job that writes rows, and its frames; their actions read, change, assign and write.

```
read (a task for so many offsets) -> transform -> deal (murmur2) -> shuffle by slot, sort -> write (a task a slot)
```
If the steps are plain, one Python process for each slot reads, changes and writes slices (`alone`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from ferry.config.record_source import TASK_RECORDS
from ferry.copy.task import SlotTask
from ferry.features.records.acts.cutoffs import Cutoffs, without
from ferry.features.records.acts.reading import ReadSpec, marks_of
from ferry.features.records.acts.rows import COLUMNS
from ferry.features.records.acts.source_logs import Marks
from ferry.features.records.rules.pace import TransformTasks, edge_tasks
from ferry.features.records.rules.ranges import ReadRange, distributed, ranges_of
from ferry.features.records.spark.counters import KEPT, READ, Counters
from ferry.features.records.spark.row_stage import in_one_worker, read_frame
from ferry.features.records.spark.row_tasks import FIRST, LAST_TOPIC, Alone, write_slot, write_unshuffled
from ferry.features.records.spark.schema import HEADERS, SCHEMA, WRITTEN
from ferry.features.records.spark.slot_assignment import SLOT_INDEX, dealt_rows, kept_rows
from ferry.features.records.spark.streams import Stream
from ferry.features.records.spark.transform import Read
from ferry.model import Plan, Slice
from ferry.run.spark.columns import Stage
from ferry.run.spark.session import at_once, slot_frame
from ferry.run.spark.stage import ROW

ALONE = -1
"""Takes the place of a stream's number for what Python reads alone."""

_DEALT = StructType(
    [
        StructField(SLOT_INDEX, IntegerType(), nullable=False),
        StructField("target_topic", StringType(), nullable=False),
        StructField("target_partition", IntegerType(), nullable=False),
        *WRITTEN,
        StructField("refusal", StringType(), nullable=True),
        StructField("letter", StringType(), nullable=True),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What a stream's tasks read of the source: each has one or more of `reads`, which it reads in turn."""

    reads: Sequence[tuple[ReadRange, ...]]
    tasks: int
    """At least one, which also a stream has of which nothing is left to read."""
    together: int
    """How many tasks of the stage read at the same time, those of other streams as well."""

    @property
    def most(self) -> int:
        """Return how many of `reads` one task has at most, at least one."""
        return max(1, -(-len(self.reads) // self.tasks))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowJob:
    """The input of Spark jobs that write rows; `specs` by slot, `cutoffs` and `seen` by source partition."""

    spark: SparkSession
    plan: Plan
    specs: Mapping[int, SlotTask]
    streams: Sequence[Stream]
    tally: Counters
    """Counts the records of the job that runs now."""
    cutoffs: Cutoffs = field(default_factory=dict)
    seen: Marks = field(default_factory=dict)
    """What `seen_before` has found of what passes through Spark."""
    alone: frozenset[int] = frozenset()
    """The slots that Python writes alone."""

    @property
    def spec(self) -> SlotTask:
        """Return the specification of one slot, for the values that all slots share."""
        return next(iter(self.specs.values()))

    @property
    def pieces(self) -> list[Slice]:
        """Return the pieces of all streams."""
        return [piece for stream in self.streams for piece in stream.pieces]

    def of_slots(self, slots: Collection[int]) -> RowJob:
        """Return the part that these slots write."""
        return replace(
            self,
            specs={slot: spec for slot, spec in self.specs.items() if slot in slots},
            streams=[stream.of_slots(slots) for stream in self.streams],
        )

    @property
    def of_spark(self) -> RowJob:
        """Return the part whose records pass through Spark."""
        return self.of_slots(self.specs.keys() - self.alone)

    def without(self, cutoffs: Cutoffs) -> RowJob:
        """Return the job without what is after the cutoffs."""
        streams = [replace(stream, pieces=without(stream.pieces, cutoffs)) for stream in self.streams]
        return replace(self, streams=streams, cutoffs=dict(cutoffs))

    def plain_slots(self) -> set[int]:
        """Return the slots that have nothing but slices of plain transforms, which Python can write alone.

        Call it with all pieces: a piece of which nothing is left to read is still refused by its slot, which has the
        reason.
        """
        plain: set[int] = set()
        other: set[int] = set()
        for stream in self.streams:
            for piece in stream.pieces:
                is_plain = stream.plain is not None and not piece.dealt
                (plain if is_plain else other).add(piece.slot)
        return plain - other


def unshuffled_frame(job: RowJob) -> DataFrame:
    """Make the frame of slots that Python writes alone, one task each, or fewer tasks where they share a rate."""
    together = together_of(job, len(job.specs))
    of_topic = {piece.source.topic: stream for stream in job.streams for piece in stream.pieces}
    slices: dict[int, list[Slice]] = {slot: [] for slot in job.specs}
    for piece in job.pieces:
        if not piece.dealt:
            slices[piece.slot].append(piece)
    tasks = {}
    for slot, spec in job.specs.items():
        mine = sorted(slices[slot], key=lambda piece: piece.target)
        topics = {piece.source.topic for piece in mine}
        parts = tuple(ReadRange(piece.source, piece.start, piece.end) for piece in mine if piece.start < piece.end)
        tasks[slot] = Alone(
            spec=spec,
            read=replace(_read_spec(job, mine, parts, together), in_order=True),
            targets={piece.source: piece.target for piece in mine},
            changes={topic: plain for topic in topics if (plain := of_topic[topic].plain) is not None},
            rules={topic: of_topic[topic].rule for topic in topics},
        )
    return slot_frame(job.spark, tasks, together).mapInArrow(
        partial(write_unshuffled, tasks, job.cutoffs, to_arrow_schema(SCHEMA, timezone="UTC"), job.tally.adding(ALONE)),
        ROW,
    )


def shuffled_frame(job: RowJob) -> tuple[DataFrame, list[TransformTasks], int]:
    """Make the frame of slots whose records pass through Spark.

    Also return which tasks of the stage before the shuffle belong to which transform, and how many tasks there are. The
    first tasks have the edge rows.
    """
    slots = sorted(job.specs)
    indexes = {slot: index for index, slot in enumerate(slots)}
    # Each slot has at least two rows. The first one names it: a slot without records has receipts to write, too.
    read = {
        number: distributed(ranges_of(stream.pieces), TASK_RECORDS)
        for number, stream in enumerate(job.streams)
        if stream.pieces
    }
    total = sum(len(tasks) for tasks in read.values())
    most = together_of(job, total)
    counts = {number: max(1, len(tasks) * most // max(1, total)) for number, tasks in read.items()}
    together = sum(counts[number] for number, tasks in read.items() if tasks)
    begin = edge_tasks(sum(counts.values()), len(slots))
    rows = _edge_rows(job.spark, len(slots), begin)
    shares: list[TransformTasks] = []
    for number, tasks in read.items():
        stream = job.streams[number]
        spread = Spread(reads=tasks, tasks=counts[number], together=together)
        rows = rows.unionByName(_rows(job, indexes, stream, number, spread))
        shares.append(share_of(job, number, spread, begin))
        begin = shares[-1].tasks.stop
    ordered = rows.repartitionById(len(slots), sf.col(SLOT_INDEX)).sortWithinPartitions(*COLUMNS[:4])
    rules = {piece.source.topic: stream.rule for stream in job.streams for piece in stream.pieces}
    answer = ordered.mapInArrow(partial(write_slot, dict(job.specs), rules, job.cutoffs, job.seen), ROW)
    return answer, shares, begin


def together_of(job: RowJob, count: int) -> int:
    """Return in how many tasks so much is read at the same time, at least one.

    If they share a rate, there are no more tasks than Spark runs at once, as for slots that copy bytes. So no task
    waits for a core while its share of the rate is unused, and no more of them read than have a share.
    """
    if count < 2 or job.spec.limits.rate is None:
        return max(1, count)
    return min(count, at_once(job.spark))


def share_of(job: RowJob, number: int, spread: Spread, begin: int) -> TransformTasks:
    """Return the tasks of a stage, from number `begin` on, that carry out the transform of a stream, by its number."""
    stream = job.streams[number]
    numbers = range(begin, begin + spread.tasks)
    return TransformTasks(
        transform=stream.rule.transform,
        tasks=numbers,
        timeout_s=stream.timeout_s,
        reads=spread.most,
        stream=number,
    )


def _rows(job: RowJob, indexes: dict[int, int], stream: Stream, number: int, spread: Spread) -> DataFrame:
    """Make the rows of the stream of this number, and count what is read and what is kept of it.

    ```
    read -> count READ -> the transform -> count KEPT -> deal
    ```
    `read_by` has the first two, `Stream.change` the third. With plain steps all five run in one worker.
    """
    read, kept = job.tally.counting(READ, number), job.tally.counting(KEPT, number)
    slices = [piece for piece in stream.pieces if not piece.dealt]
    units = [piece for piece in stream.pieces if piece.dealt]
    rule = stream.rule
    deal = partial(kept_rows, indexes, slices, rule) if slices else partial(dealt_rows, indexes, units, rule)
    reading = read_by(job, stream.pieces, spread, read)
    return stream.change(reading, in_one_worker(kept, deal), _DEALT)


def read_by(job: RowJob, pieces: Sequence[Slice], spread: Spread, first: Stage = iter) -> Read:
    """Return a function that reads what is spread of the pieces; the records go through `first` in the same tasks."""
    specs = [_read_spec(job, pieces, parts, spread.together) for parts in spread.reads]
    return lambda then, columns: read_frame(job.spark, specs, in_one_worker(first, then), columns, spread.tasks)


def _read_spec(job: RowJob, written: Sequence[Slice], parts: tuple[ReadRange, ...], together: int) -> ReadSpec:
    """Describe how parts of the source are read while so many tasks read `together`.

    `written` are the slices of these parts.
    """
    spec = job.spec
    rate = spec.limits.rate
    topic_ids = {piece.source.topic: piece.source_topic_id for piece in written}
    return ReadSpec(
        alias=job.plan.flow.source,
        connection=spec.source,
        fetch=spec.limits.fetch,
        pieces=parts,
        topic_ids={part.place.topic: topic_ids[part.place.topic] for part in parts},
        patience_s=spec.patience_s,
        isolation=spec.limits.isolation,
        marks=marks_of(written, parts),
        bytes_per_second=None if rate is None else max(1, rate.bytes_per_second // together),
    )


def _edge_rows(spark: SparkSession, count: int, tasks: int) -> DataFrame:
    """Make the first and the last row of each slot, in so many tasks."""
    empty = {
        "target_topic": sf.when(sf.col("id") < count, sf.lit("")).otherwise(sf.lit(LAST_TOPIC)),
        "target_partition": sf.lit(FIRST),
        "partition": sf.lit(0),
        "offset": sf.lit(0).cast("bigint"),
        "timestamp": sf.lit(0).cast("bigint"),
        "key": sf.lit(None).cast("binary"),
        "value": sf.lit(None).cast("binary"),
        "headers": sf.array().cast(HEADERS),
        "refusal": sf.lit(None).cast("string"),
        "letter": sf.lit(None).cast("string"),
    }
    frame = spark.range(0, 2 * count, 1, tasks).select(
        (sf.col("id") % count).cast("int").alias(SLOT_INDEX), *(v.alias(k) for k, v in empty.items())
    )
    return frame.select([field.name for field in _DEALT.fields])

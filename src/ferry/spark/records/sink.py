"""The exactly-once sink as a Spark job: read the source, let a transform change it, deal it to slots, write.

```
read (a task for so many offsets) -> transform -> deal (murmur2) -> shuffle by slot, sort -> write (a task a slot)
```
Where the steps are plain, one Python process for each slot reads, changes and writes slices (`alone`). A task that is
repeated writes what it has not written: the ledger says what that is. So does a job that is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ferry.config.record_source import TASK_RECORDS
from ferry.decide.records.letters import PoisonRule
from ferry.decide.records.locating import Ranges
from ferry.decide.records.ranges import Piece as Part
from ferry.decide.records.ranges import dealt
from ferry.errors import FerryError, Refused, Retryable
from ferry.model import Piece, Plan, Sifted, Slice, TopicPartition, Unit
from ferry.run.copy.ends import AGAIN, TRIES, SlotEnd, joined
from ferry.run.copy.task import TaskSpec
from ferry.run.records.reading import ReadSpec, marks_of
from ferry.run.records.rows import COLUMNS
from ferry.run.records.withheld import Withheld, Withholding, withheld_at, without
from ferry.spark.records.alone import Alone, write_alone
from ferry.spark.records.dealing import SLOT, dealt_rows, kept_rows
from ferry.spark.records.failures import SPARKS, cause_of, told_by_ferry, unread_of
from ferry.spark.records.faults import faults_of, ranges_of
from ferry.spark.records.frames import read_frame
from ferry.spark.records.plain import PlainChange
from ferry.spark.records.schema import HEADERS, SCHEMA
from ferry.spark.records.tally import KEPT, READ, Counting, Tally
from ferry.spark.records.unit_stage import COUNT, END, FIRST, Stage, count, one_after_the_other, write_slot
from ferry.spark.session import at_once, is_remote, slot_frame
from ferry.spark.stage import ROW, parse_rows

Change = Callable[[DataFrame], DataFrame]
"""From the columns of the source `ferry` to those of `ferry.spark.records.transform`."""

log = logging.getLogger(__name__)

_ALONE = -1
"""In place of a stream's number, of what Python reads alone."""

_DEALT = StructType(
    [
        StructField(SLOT, IntegerType(), nullable=False),
        StructField("target_topic", StringType(), nullable=False),
        StructField("target_partition", IntegerType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("timestamp", LongType(), nullable=False),
        StructField("key", BinaryType(), nullable=True),
        StructField("value", BinaryType(), nullable=True),
        StructField("headers", HEADERS, nullable=False),
        StructField("refusal", StringType(), nullable=True),
        StructField("letter", StringType(), nullable=True),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What one transform makes of a plan: slices, whose records keep their partition, or units, which deal them."""

    change: Change
    rule: PoisonRule
    pieces: tuple[Piece, ...]
    plain: PlainChange | None = None
    """The same as `change`, where Python can do it alone."""

    def of_slots(self, slots: Collection[int]) -> Stream:
        """The part that these slots write."""
        return replace(self, pieces=tuple(piece for piece in self.pieces if piece.slot in slots))


def write_rows(
    spark: SparkSession,
    plan: Plan,
    counts: dict[str, Sifted],
    specs: Mapping[int, TaskSpec],
    streams: Sequence[Stream],
) -> list[SlotEnd]:
    """Write what the streams make, `specs` by slot; every slot's end. Those that gave up are tried once more.

    What a transform breaks off at, or cannot be read, is refused from there on, and all else is written. `counts`, by
    topic, are added to. Raises Refused on Spark Connect, whose server logs functions with the connection data in them.
    """
    refuse_remote(spark)
    ends: dict[int, SlotEnd] = {}
    withheld: dict[TopicPartition, Withheld] = {}
    found: Mapping[str, Sifted] = {}
    todo = dict(specs)
    for _ in range(TRIES):
        tally = Tally(spark)
        for end in _despite_faults(spark, plan, todo, [stream.of_slots(todo) for stream in streams], withheld, tally):
            ends[end.slot] = joined(ends.get(end.slot), end)
        found = found or tally.totals()  # another try reads a part of it again
        todo = {slot: specs[slot] for slot, end in ends.items() if isinstance(end.failure, AGAIN)}
        if not todo:
            break
    for topic, sifted in found.items():
        counts[topic] = counts.get(topic, Sifted()).with_more(sifted)
    return [end for _, end in sorted(ends.items())]


def _despite_faults(
    spark: SparkSession,
    plan: Plan,
    specs: Mapping[int, TaskSpec],
    streams: Sequence[Stream],
    withheld: dict[TopicPartition, Withheld],
    tally: Tally,
) -> list[SlotEnd]:
    """As `_written`, again without what a transform breaks off at, or cannot be read: that joins `withheld`.

    Nothing that passes through Spark is written while it is changed: a job that breaks off there has written nothing.
    """
    while True:
        left = [replace(stream, pieces=without(stream.pieces, withheld)) for stream in streams]
        try:
            return _written(spark, plan, specs, left, withheld, tally)
        except SPARKS as error:
            log.warning("a job on transformed topics ended: %s", cause_of(error))
            try:
                found = _faults(spark, plan, next(iter(specs.values())), left, error)
            except FerryError as failure:
                return [SlotEnd(slot=slot, failure=failure) for slot in specs]
            for sentence in sorted({held.refusal.message for held in found.values()}):
                log.warning("%s", sentence)
            withheld |= found
            tally.forget()


def _faults(
    spark: SparkSession, plan: Plan, spec: TaskSpec, streams: Sequence[Stream], error: Exception
) -> dict[TopicPartition, Withheld]:
    """What has to be left out. Raises what a task of Ferry's own raised, Retryable when it was nothing of that."""
    pieces = [piece for stream in streams for piece in stream.pieces]
    found = withheld_at(unread_of(error))
    told = told_by_ferry(error)
    if not found and told is not None:
        raise told
    if not found:
        for stream in streams:
            if any(stream.plain is None or isinstance(piece, Unit) for piece in stream.pieces):
                found |= faults_of(stream.rule.transform, stream.pieces, partial(_attempt, spark, plan, spec, stream))
    if ranges_of(without(pieces, found)) == ranges_of(pieces):
        raise Retryable(f"Spark gave up the transformed topics ({cause_of(error)}): see its log")
    return found


def _attempt(spark: SparkSession, plan: Plan, spec: TaskSpec, stream: Stream, ranges: Ranges) -> None:
    """Carry a stream's transform out on these ranges, and write nothing. Raises what Spark raises."""
    stream.change(_source(spark, plan, spec, stream.pieces, ranges, iter)).mapInArrow(count, COUNT).collect()


def refuse_remote(spark: SparkSession) -> None:
    """Raise Refused on Spark Connect."""
    if is_remote(spark):
        raise Refused("transformed topics are not written on Spark Connect: use a Spark session without it")


def _written(
    spark: SparkSession,
    plan: Plan,
    specs: Mapping[int, TaskSpec],
    streams: Sequence[Stream],
    withheld: Withholding,
    tally: Tally,
) -> list[SlotEnd]:
    plain = _plain_slots(streams)
    of_python = {slot: spec for slot, spec in specs.items() if slot in plain}
    of_spark = {slot: spec for slot, spec in specs.items() if slot not in plain}
    answers = []
    if of_python:
        answers.append(_alone(spark, plan, of_python, [stream.of_slots(of_python) for stream in streams], tally))
    if of_spark:
        mine = [stream.of_slots(of_spark) for stream in streams]
        answers.append(_shuffled(spark, plan, of_spark, mine, withheld, tally))
    if len(answers) == 1 or all(spec.limits.rate is None for spec in specs.values()):
        answers = [reduce(DataFrame.unionByName, answers)]  # at once; else each has all of the rate
    answer = [row for frame in answers for row in frame.collect()]
    return parse_rows((row.slot, row.kind, row.body) for row in answer)


def _plain_slots(streams: Sequence[Stream]) -> set[int]:
    """The slots that have nothing but slices of plain transforms."""
    plain: set[int] = set()
    other: set[int] = set()
    for stream in streams:
        for piece in stream.pieces:
            is_plain = stream.plain is not None and isinstance(piece, Slice)
            (plain if is_plain else other).add(piece.slot)
    return plain - other


def _alone(
    spark: SparkSession, plan: Plan, specs: Mapping[int, TaskSpec], streams: Sequence[Stream], tally: Tally
) -> DataFrame:
    """The answer of slots that Python writes alone; a task each."""
    of_topic = {piece.source.topic: stream for stream in streams for piece in stream.pieces}
    slices: dict[int, list[Slice]] = {slot: [] for slot in specs}
    for stream in streams:
        for piece in stream.pieces:
            if isinstance(piece, Slice):
                slices[piece.slot].append(piece)
    tasks = {}
    for slot, spec in specs.items():
        mine = sorted(slices[slot], key=lambda piece: piece.target)
        topic_ids = {piece.source.topic: piece.source_topic_id for piece in mine}
        parts = tuple(Part(piece.source, piece.start, piece.end) for piece in mine if piece.start < piece.end)
        tasks[slot] = Alone(
            spec=spec,
            read=replace(_read_spec(spark, plan, spec, mine, parts, topic_ids, len(specs)), in_order=True),
            targets={piece.source: piece.target for piece in mine},
            changes={topic: plain for topic in topic_ids if (plain := of_topic[topic].plain) is not None},
            rules={topic: of_topic[topic].rule for topic in topic_ids},
        )
    return slot_frame(spark, tasks, len(tasks)).mapInArrow(
        partial(write_alone, tasks, to_arrow_schema(SCHEMA, timezone="UTC"), tally.telling(_ALONE)), ROW
    )


def _shuffled(
    spark: SparkSession,
    plan: Plan,
    specs: Mapping[int, TaskSpec],
    streams: Sequence[Stream],
    withheld: Withholding,
    tally: Tally,
) -> DataFrame:
    """The answer of slots whose records pass through Spark."""
    slots = sorted(specs)
    indexes = {slot: index for index, slot in enumerate(slots)}
    # Each task has two rows at least. The first one names its slot: one without records has receipts to write, too.
    rows = _edge_rows(spark, len(slots))
    for number, stream in enumerate(streams):
        if stream.pieces:
            counting = tally.counting(READ, number), tally.counting(KEPT, number)
            rows = rows.unionByName(_rows(spark, plan, specs[slots[0]], indexes, stream, counting))
    ordered = rows.repartitionById(len(slots), sf.col(SLOT)).sortWithinPartitions(*COLUMNS[:4])
    rules = {piece.source.topic: stream.rule for stream in streams for piece in stream.pieces}
    return ordered.mapInArrow(partial(write_slot, dict(specs), rules, dict(withheld)), ROW)


def _rows(
    spark: SparkSession,
    plan: Plan,
    spec: TaskSpec,
    indexes: dict[int, int],
    stream: Stream,
    counting: tuple[Counting, Counting],
) -> DataFrame:
    """The stream's rows; `counting` is told what is read and what is kept."""
    read, kept = counting
    changed = stream.change(_source(spark, plan, spec, stream.pieces, ranges_of(stream.pieces), read))
    slices = [piece for piece in stream.pieces if isinstance(piece, Slice)]
    units = [piece for piece in stream.pieces if isinstance(piece, Unit)]
    rule = stream.rule
    deal = partial(kept_rows, indexes, slices, rule) if slices else partial(dealt_rows, indexes, units, rule)
    return changed.mapInArrow(partial(one_after_the_other, kept, deal), _DEALT)


def _source(
    spark: SparkSession, plan: Plan, spec: TaskSpec, pieces: Iterable[Piece], ranges: Ranges, then: Stage
) -> DataFrame:
    """The records of these ranges, which lie in the pieces; they go through `then` where they are read."""
    every = list(pieces)
    topic_ids = {piece.source.topic: piece.source_topic_id for piece in every}
    tasks = dealt(ranges, TASK_RECORDS)
    return read_frame(
        spark, [_read_spec(spark, plan, spec, every, of_task, topic_ids, len(tasks)) for of_task in tasks], then
    )


def _read_spec(
    spark: SparkSession,
    plan: Plan,
    spec: TaskSpec,
    written: Sequence[Piece],
    pieces: tuple[Part, ...],
    topic_ids: Mapping[str, str],
    tasks: int,
) -> ReadSpec:
    """How one of so many tasks reads its pieces of the source, of which these slices and units are `written`."""
    rate = spec.limits.rate
    return ReadSpec(
        alias=plan.flow.source,
        connection=spec.source,
        fetch=spec.limits.fetch,
        pieces=pieces,
        topic_ids={piece.place.topic: topic_ids[piece.place.topic] for piece in pieces},
        patience_s=spec.patience_s,
        isolation=spec.limits.isolation,
        marks=marks_of(written, pieces),
        bytes_per_second=None if rate is None else max(1, rate.bytes_per_second // min(max(1, tasks), at_once(spark))),
    )


def _edge_rows(spark: SparkSession, count: int) -> DataFrame:
    """The first and the last row of each slot."""
    empty = {
        "target_topic": sf.when(sf.col("id") < count, sf.lit("")).otherwise(sf.lit(END)),
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
    frame = spark.range(0, 2 * count, 1, 1).select(
        (sf.col("id") % count).cast("int").alias(SLOT), *(v.alias(k) for k, v in empty.items())
    )
    return frame.select([field.name for field in _DEALT.fields])

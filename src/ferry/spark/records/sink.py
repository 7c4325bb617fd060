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
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ferry.config.record_source import TASK_RECORDS
from ferry.decide.records.letters import PoisonRule
from ferry.decide.records.locating import Ranges
from ferry.decide.records.pace import Share
from ferry.decide.records.ranges import Piece as Part
from ferry.decide.records.ranges import dealt
from ferry.errors import FerryError, Refused, Retryable
from ferry.model import Piece, Plan, Refusal, RefusalKind, Sifted, Slice, TopicPartition, Unit
from ferry.run.copy.ends import AGAIN, TRIES, SlotEnd, joined
from ferry.run.copy.task import TaskSpec
from ferry.run.records.reading import ReadSpec, marks_of
from ferry.run.records.rows import COLUMNS
from ferry.run.records.source_logs import Marks, Seen, seen_before
from ferry.run.records.withheld import Withheld, Withholding, withheld_at, without
from ferry.spark.records.alone import Alone, write_alone
from ferry.spark.records.dealing import SLOT, dealt_rows, kept_rows
from ferry.spark.records.failures import SPARKS, cause_of, told_by_ferry, unread_of
from ferry.spark.records.faults import faults_of, ranges_of
from ferry.spark.records.frames import read_frame
from ferry.spark.records.plain import PlainChange
from ferry.spark.records.schema import HEADERS, SCHEMA
from ferry.spark.records.tally import KEPT, READ, Tally
from ferry.spark.records.unit_stage import COUNT, END, FIRST, Stage, count, one_after_the_other, write_slot
from ferry.spark.records.watching import TooSlow, watched
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
    timeout_s: float = 0.0
    """How long one Spark task of `change` may take; 0: as long as it does."""
    lost: str = ""
    """Why it cannot be carried out, as a sentence: nothing of it is read, and its pieces are refused; empty: it can."""

    def of_slots(self, slots: Collection[int]) -> Stream:
        """The part that these slots write."""
        return replace(self, pieces=tuple(piece for piece in self.pieces if piece.slot in slots))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What a Spark job that writes rows works with; `specs` by slot, `withheld` and `seen` by source partition."""

    spark: SparkSession
    plan: Plan
    specs: Mapping[int, TaskSpec]
    streams: Sequence[Stream]
    withheld: Withholding
    tally: Tally
    seen: Marks = field(default_factory=dict)
    """What `seen_before` has found of what passes through Spark."""
    alone: frozenset[int] = frozenset()
    """The slots that Python writes alone."""

    @property
    def spec(self) -> TaskSpec:
        """What is the same for all slots."""
        return next(iter(self.specs.values()))

    @property
    def pieces(self) -> list[Piece]:
        """What all streams make."""
        return [piece for stream in self.streams for piece in stream.pieces]

    def of_slots(self, slots: Collection[int]) -> _Job:
        """The part that these slots write."""
        return replace(
            self,
            specs={slot: spec for slot, spec in self.specs.items() if slot in slots},
            streams=[stream.of_slots(slots) for stream in self.streams],
        )

    def left(self, withheld: Withholding) -> _Job:
        """Without what is withheld."""
        streams = [replace(stream, pieces=without(stream.pieces, withheld)) for stream in self.streams]
        return replace(self, streams=streams, withheld=dict(withheld))

    def plain_slots(self) -> set[int]:
        """The slots that have nothing but slices of plain transforms, which Python can write alone.

        To be asked of all pieces: one of which nothing is left to read is still refused by its slot, which knows why.
        """
        plain: set[int] = set()
        other: set[int] = set()
        for stream in self.streams:
            for piece in stream.pieces:
                is_plain = stream.plain is not None and isinstance(piece, Slice)
                (plain if is_plain else other).add(piece.slot)
        return plain - other


def write_rows(
    spark: SparkSession,
    plan: Plan,
    counts: dict[str, Sifted],
    specs: Mapping[int, TaskSpec],
    streams: Sequence[Stream],
) -> list[SlotEnd]:
    """Write what the streams make, `specs` by slot; every slot's end. Those that gave up are tried once more.

    What is lost, what a transform breaks off at, and what cannot be read is refused, and all else is written.
    `counts`, by topic, are added to. Raises Refused on Spark Connect, whose server logs functions with the connection
    data in them.
    """
    refuse_remote(spark)
    ends: dict[int, SlotEnd] = {}
    withheld = lost_of(streams)
    found: Mapping[str, Sifted] = {}
    every = _Job(spark=spark, plan=plan, specs=specs, streams=streams, withheld=withheld, tally=Tally(spark))
    todo = set(specs)
    for _ in range(TRIES):
        job = replace(every.of_slots(todo), tally=Tally(spark))
        for end in _despite_faults(job, withheld):
            ends[end.slot] = joined(ends.get(end.slot), end)
        found = found or job.tally.totals()  # another try reads a part of it again
        todo = {slot for slot, end in ends.items() if isinstance(end.failure, AGAIN)}
        if not todo:
            break
    for topic, sifted in found.items():
        counts[topic] = counts.get(topic, Sifted()).with_more(sifted)
    return [end for _, end in sorted(ends.items())]


def lost_of(streams: Iterable[Stream]) -> dict[TopicPartition, Withheld]:
    """All that lost streams would read, withheld from where it begins."""
    found: dict[TopicPartition, Withheld] = {}
    for piece, why in ((piece, one.lost) for one in streams if one.lost for piece in one.pieces):
        places = {piece.source: piece.start}
        if isinstance(piece, Unit):
            places = {TopicPartition(piece.source_topic, number): 0 for number in range(len(piece.starts))}
        for place, offset in places.items():
            refusal = Refusal(topic=place.topic, partition=place.partition, kind=RefusalKind.TRANSFORM, message=why)
            found[place] = Withheld(offset=offset, refusal=refusal)
    return found


def _despite_faults(every: _Job, withheld: dict[TopicPartition, Withheld]) -> list[SlotEnd]:
    """As `_written`, again without what a transform breaks off at, or cannot be read: that joins `withheld`.

    Nothing that passes through Spark is written while it is changed: a job that breaks off there has written nothing.
    """
    every = replace(every, alone=frozenset(every.plain_slots()))
    while True:
        job = every.left(withheld)
        try:
            seen = _seen(job)
        except FerryError as failure:
            return [SlotEnd(slot=slot, failure=failure) for slot in job.specs]
        withheld |= withheld_at(seen.silent)
        job = replace(job.left(withheld), seen=seen.marks)
        try:
            return _written(job)
        except SPARKS as error:
            log.warning("a job on transformed topics ended: %s", cause_of(error))
            try:
                found = _faults(job, error)
            except FerryError as failure:
                return [SlotEnd(slot=slot, failure=failure) for slot in job.specs]
            except TooSlow as slow:
                found = _given_up(job, slow)
        except TooSlow as slow:
            found = _given_up(job, slow)
        for sentence in sorted({held.refusal.message for held in found.values()}):
            log.warning("%s", sentence)
        withheld |= found
        job.tally.forget()


def _given_up(job: _Job, slow: TooSlow) -> dict[TopicPartition, Withheld]:
    return lost_of(replace(one, lost=slow.given_up.get(one.rule.transform, "")) for one in job.streams)


def _seen(job: _Job) -> Seen:
    """Where logs reach what is to be read of them for slots that write when all is read. Raises Unreachable."""
    ranges = ranges_of([piece for piece in job.pieces if piece.slot not in job.alone])
    return seen_before(job.plan.flow.source, job.spec.source, ranges, patience_s=job.spec.patience_s)


def _faults(job: _Job, error: Exception) -> dict[TopicPartition, Withheld]:
    """What has to be left out. Raises what a task of Ferry's own raised, Retryable when it was nothing of that."""
    found = withheld_at(unread_of(error))
    told = told_by_ferry(error)
    if not found and told is not None:
        raise told
    if not found:
        for stream in job.streams:
            if any(stream.plain is None or isinstance(piece, Unit) for piece in stream.pieces):
                found |= faults_of(stream.rule.transform, stream.pieces, partial(_attempt, job, stream))
    if ranges_of(without(job.pieces, found)) == ranges_of(job.pieces):
        raise Retryable(f"Spark gave up the transformed topics ({cause_of(error)}): see its log")
    return found


def _attempt(job: _Job, stream: Stream, ranges: Ranges) -> None:
    """Carry a stream's transform out on these ranges, and write nothing. Raises what Spark raises, and TooSlow."""
    changed = stream.change(_source(job, stream.pieces, ranges, iter)).mapInArrow(count, COUNT)
    tasks = max(1, len(dealt(ranges, TASK_RECORDS)))
    share = Share(transform=stream.rule.transform, tasks=range(tasks), timeout_s=stream.timeout_s)
    watched(job.spark, [share], tasks, changed.collect)


def refuse_remote(spark: SparkSession) -> None:
    """Raise Refused on Spark Connect."""
    if is_remote(spark):
        raise Refused("transformed topics are not written on Spark Connect: use a Spark session without it")


def _written(job: _Job) -> list[SlotEnd]:
    of_python = job.of_slots(job.alone)
    of_spark = job.of_slots(job.specs.keys() - job.alone)
    answers = [_alone(of_python)] if of_python.specs else []
    if of_spark.specs:
        answers.append(_shuffled(of_spark))
    if len(answers) == 1 or all(spec.limits.rate is None for spec in job.specs.values()):
        answers = [reduce(DataFrame.unionByName, answers)]  # at once; else each has all of the rate
    shares, tasks = _shares(of_spark.streams)
    answer = watched(job.spark, shares, tasks, lambda: [row for frame in answers for row in frame.collect()])
    return parse_rows((row.slot, row.kind, row.body) for row in answer)


def _shares(streams: Sequence[Stream]) -> tuple[list[Share], int]:
    """Which tasks of the stage ahead of the shuffle are which transform's, and how many there are: the first one has
    the edge rows.
    """
    shares: list[Share] = []
    begin = 1
    for stream in streams:
        if stream.pieces:
            end = begin + max(1, len(dealt(ranges_of(stream.pieces), TASK_RECORDS)))
            shares.append(Share(transform=stream.rule.transform, tasks=range(begin, end), timeout_s=stream.timeout_s))
            begin = end
    return shares, begin


def _alone(job: _Job) -> DataFrame:
    """The answer of slots that Python writes alone; a task each."""
    of_topic = {piece.source.topic: stream for stream in job.streams for piece in stream.pieces}
    slices: dict[int, list[Slice]] = {slot: [] for slot in job.specs}
    for piece in job.pieces:
        if isinstance(piece, Slice):
            slices[piece.slot].append(piece)
    tasks = {}
    for slot, spec in job.specs.items():
        mine = sorted(slices[slot], key=lambda piece: piece.target)
        topics = {piece.source.topic for piece in mine}
        parts = tuple(Part(piece.source, piece.start, piece.end) for piece in mine if piece.start < piece.end)
        tasks[slot] = Alone(
            spec=spec,
            read=replace(_read_spec(job, mine, parts, len(job.specs)), in_order=True),
            targets={piece.source: piece.target for piece in mine},
            changes={topic: plain for topic in topics if (plain := of_topic[topic].plain) is not None},
            rules={topic: of_topic[topic].rule for topic in topics},
        )
    return slot_frame(job.spark, tasks, len(tasks)).mapInArrow(
        partial(write_alone, tasks, to_arrow_schema(SCHEMA, timezone="UTC"), job.tally.telling(_ALONE)), ROW
    )


def _shuffled(job: _Job) -> DataFrame:
    """The answer of slots whose records pass through Spark."""
    slots = sorted(job.specs)
    indexes = {slot: index for index, slot in enumerate(slots)}
    # Each task has two rows at least. The first one names its slot: one without records has receipts to write, too.
    rows = _edge_rows(job.spark, len(slots))
    for number, stream in enumerate(job.streams):
        if stream.pieces:
            rows = rows.unionByName(_rows(job, indexes, stream, number))
    ordered = rows.repartitionById(len(slots), sf.col(SLOT)).sortWithinPartitions(*COLUMNS[:4])
    rules = {piece.source.topic: stream.rule for stream in job.streams for piece in stream.pieces}
    return ordered.mapInArrow(partial(write_slot, dict(job.specs), rules, job.withheld, job.seen), ROW)


def _rows(job: _Job, indexes: dict[int, int], stream: Stream, number: int) -> DataFrame:
    """The rows of the stream of this number; what is read and what is kept of it is counted."""
    read, kept = job.tally.counting(READ, number), job.tally.counting(KEPT, number)
    changed = stream.change(_source(job, stream.pieces, ranges_of(stream.pieces), read))
    slices = [piece for piece in stream.pieces if isinstance(piece, Slice)]
    units = [piece for piece in stream.pieces if isinstance(piece, Unit)]
    rule = stream.rule
    deal = partial(kept_rows, indexes, slices, rule) if slices else partial(dealt_rows, indexes, units, rule)
    return changed.mapInArrow(partial(one_after_the_other, kept, deal), _DEALT)


def _source(job: _Job, pieces: Sequence[Piece], ranges: Ranges, then: Stage) -> DataFrame:
    """The records of these ranges, which lie in the pieces; they go through `then` where they are read."""
    tasks = dealt(ranges, TASK_RECORDS)
    return read_frame(job.spark, [_read_spec(job, pieces, of_task, len(tasks)) for of_task in tasks], then)


def _read_spec(job: _Job, written: Sequence[Piece], parts: tuple[Part, ...], tasks: int) -> ReadSpec:
    """How one of so many tasks reads its parts of the source, of which these slices and units are `written`."""
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
        bytes_per_second=None
        if rate is None
        else max(1, rate.bytes_per_second // min(max(1, tasks), at_once(job.spark))),
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

"""The exactly-once sink as a Spark job: read the source, let a transform change it, deal it to slots, write.

```
read (a task for so many offsets) -> transform -> deal (murmur2) -> shuffle by slot, sort -> write (a task a slot)
```
A task that is repeated writes what it has not written: the ledger says what that is. So does a job that is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ferry.config.record_source import TASK_RECORDS
from ferry.decide.records.ranges import dealt
from ferry.decide.records.units import read_ranges
from ferry.errors import Refused
from ferry.model import Plan
from ferry.run.copy.ends import AGAIN, TRIES, SlotEnd, joined
from ferry.run.copy.task import TaskSpec
from ferry.run.records.reading import ReadSpec
from ferry.run.records.rows import COLUMNS
from ferry.spark.records.dealing import SLOT, dealt_rows
from ferry.spark.records.schema import HEADERS, SCHEMA
from ferry.spark.records.unit_stage import FIRST, read_pieces, write_slot
from ferry.spark.session import is_remote
from ferry.spark.stage import ROW, parse_rows

Change = Callable[[DataFrame], DataFrame]
"""From the columns of the source `ferry` to those of `ferry.spark.records.transform`."""

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
    ]
)


def write_units(spark: SparkSession, plan: Plan, specs: Mapping[int, TaskSpec], change: Change) -> list[SlotEnd]:
    """Write a plan's units, `specs` by slot; every slot's end. Those that gave up are tried once more.

    Raises Refused on Spark Connect, whose server logs functions with the connection data in them; what Spark raises.
    """
    if is_remote(spark):
        raise Refused("transformed topics are not written on Spark Connect: use a Spark session without it")
    ends: dict[int, SlotEnd] = {}
    todo = dict(specs)
    for _ in range(TRIES):
        for end in _written(spark, plan, todo, change):
            ends[end.slot] = joined(ends.get(end.slot), end)
        todo = {slot: specs[slot] for slot, end in ends.items() if isinstance(end.failure, AGAIN)}
        if not todo:
            break
    return [end for _, end in sorted(ends.items())]


def _written(spark: SparkSession, plan: Plan, specs: Mapping[int, TaskSpec], change: Change) -> list[SlotEnd]:
    slots = sorted(specs)
    indexes = {slot: index for index, slot in enumerate(slots)}
    units = [unit for unit in plan.units if unit.slot in indexes]
    some = specs[slots[0]]
    changed = change(_source(spark, plan, some, units_of=slots))
    rows = changed.mapInArrow(partial(dealt_rows, indexes, units), _DEALT)
    # Each task has one row at least, which names its slot: a slot without records has receipts to write, too.
    ordered = rows.unionByName(_first_rows(spark, len(slots))).repartitionById(len(slots), sf.col(SLOT))
    ordered = ordered.sortWithinPartitions(*COLUMNS[:4])
    answer = ordered.mapInArrow(partial(write_slot, dict(specs)), ROW).collect()
    return parse_rows((row.slot, row.kind, row.body) for row in answer)


def _source(spark: SparkSession, plan: Plan, spec: TaskSpec, *, units_of: Sequence[int]) -> DataFrame:
    """What the units want to have read, and no more."""
    units = [unit for unit in plan.units if unit.slot in units_of]
    topic_ids = {unit.source_topic: unit.source_topic_id for unit in units}
    tasks = [
        ReadSpec(
            alias=plan.flow.source,
            connection=spec.source,
            fetch=spec.limits.fetch,
            pieces=pieces,
            topic_ids={piece.place.topic: topic_ids[piece.place.topic] for piece in pieces},
            patience_s=spec.patience_s,
        )
        for pieces in dealt(read_ranges(units), TASK_RECORDS)
    ]
    read = partial(read_pieces, tasks, to_arrow_schema(SCHEMA, timezone="UTC"))
    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, SCHEMA)


def _first_rows(spark: SparkSession, count: int) -> DataFrame:
    empty = {
        "target_topic": sf.lit(""),
        "target_partition": sf.lit(FIRST),
        "partition": sf.lit(0),
        "offset": sf.lit(0).cast("bigint"),
        "timestamp": sf.lit(0).cast("bigint"),
        "key": sf.lit(None).cast("binary"),
        "value": sf.lit(None).cast("binary"),
        "headers": sf.array().cast(HEADERS),
    }
    frame = spark.range(0, count, 1, 1).select(
        sf.col("id").cast("int").alias(SLOT), *(v.alias(k) for k, v in empty.items())
    )
    return frame.select([field.name for field in _DEALT.fields])

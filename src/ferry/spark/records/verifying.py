"""Hold the copies of transformed topics against their sources: Spark applies the same transform, tasks compare.

```
read (a task for so many offsets) -> transform -> number by stretch -> shuffle by task, sort -> compare with the target
```
Only what today's transform made is compared: its digest is in the receipts.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from functools import partial

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import TransformSpec
from ferry.config.record_source import TASK_RECORDS
from ferry.decide.records.ranges import Piece, dealt
from ferry.decide.verify.stretches import Stretch, unreadable
from ferry.decide.verify.stretches import dealt as dealt_stretches
from ferry.decide.verify.transformed import Rule, by_todays_rule
from ferry.errors import FerryError
from ferry.model import Range, TopicPartition
from ferry.run.records.reading import ReadSpec
from ferry.run.records.transform_digest import transform_digest
from ferry.run.verify.compare import Compared
from ferry.run.verify.verifier import CompareSpec
from ferry.spark.records.frames import read_frame
from ferry.spark.records.holding import Dealt, held_tasks, marked_rows, numbered_rows
from ferry.spark.records.schema import HEADERS
from ferry.spark.records.transform import prepare, transformed
from ferry.spark.session import is_remote
from ferry.spark.verify_stage import ROW

_HELD = StructType(
    [
        StructField("task", IntegerType(), nullable=False),
        StructField("stretch", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("timestamp", LongType(), nullable=False),
        StructField("key", BinaryType(), nullable=True),
        StructField("value", BinaryType(), nullable=True),
        StructField("headers", HEADERS, nullable=False),
        StructField("trouble", StringType(), nullable=True),
    ]
)

_OWN = re.compile(r"ferry\.errors\.[A-Za-z]+: (.+)")
"""How the trace of a task has an error of Ferry."""

Spec = Callable[[Sequence[Stretch]], CompareSpec]


def compare_transformed(
    spark: SparkSession, flow: FlowConfig, spec: Spec, found: Sequence[Stretch], *, asked: bool
) -> Compared:
    """Compare stretches that a transform made; a transform that cannot be applied does not stop the others.

    `spec` is what tasks need to compare some of them, `asked` as of `by_todays_rule`.
    """
    compared = Compared()
    rules: dict[str, Rule] = {}
    usable: dict[str, TransformSpec] = {}
    left: list[Stretch] = []
    for topic in sorted({one.source.topic for one in found}):
        mine = [one for one in found if one.source.topic == topic]
        try:
            transform = flow.transform_of(topic)
            if transform is not None:
                rules[topic] = Rule(transform.name, transform_digest(transform))
                usable[topic] = transform
        except FerryError as error:
            compared.not_compared += [unreadable(one, str(error)) for one in mine]
            continue
        left += mine
    held, changed = by_todays_rule(left, rules, asked=asked)
    compared.not_compared += changed
    if not held:
        return compared
    if is_remote(spark):
        why = "transformed topics are not compared on Spark Connect: use a Spark session without it"
        compared.not_compared += [unreadable(one, why) for one in held]
        return compared
    prepare(spark)
    for name in sorted({usable[one.source.topic].name for one in held}):
        mine = [one for one in held if usable[one.source.topic].name == name]
        try:
            compared.add(_compared(spark, flow, usable[mine[0].source.topic], spec(mine)))
        except FerryError as error:
            compared.not_compared += [unreadable(one, str(error)) for one in mine]
        except (PySparkException, Py4JError) as error:
            why = f"Spark gave up ferry.transform.{name} ({_told(error)}): see its log"
            compared.not_compared += [unreadable(one, why) for one in mine]
    return compared


def _told(error: PySparkException | Py4JError) -> str:
    """What happened: a sentence of Ferry's own, else Spark's word for it. Its sentences may have values of records."""
    own = _OWN.search(str(error))
    if own is not None:
        return own.group(1)
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition or type(error).__name__


def _compared(spark: SparkSession, flow: FlowConfig, transform: TransformSpec, spec: CompareSpec) -> Compared:
    numbers = {id(one): number for number, one in enumerate(spec.stretches)}
    shares = dealt_stretches(spec.stretches, flow.tasks_max)
    tasks = {numbers[id(one)]: Dealt(task, one) for task, share in enumerate(shares) for one in share}
    schema = to_arrow_schema(_HELD, timezone="UTC")
    topics = {one.source.topic for one in spec.stretches}
    targets = {topic: flow.first_name(topic) for topic in topics}
    changed = transformed(_source(spark, spec), transform, targets)
    rows = changed.mapInArrow(partial(numbered_rows, tasks, transform.poison, schema), _HELD)
    names = spark.range(0, 1, 1, 1).mapInArrow(partial(marked_rows, tasks, schema), _HELD)
    ordered = rows.unionByName(names).repartitionById(len(shares), sf.col("task"))
    ordered = ordered.sortWithinPartitions("stretch", "offset")
    found = Compared()
    for row in ordered.mapInArrow(partial(held_tasks, spec), ROW).collect():
        found.add(pickle.loads(row.body))
    return found


def _source(spark: SparkSession, spec: CompareSpec) -> DataFrame:
    """What the stretches have at the source."""
    tasks = [
        ReadSpec(
            alias=spec.flow.source,
            connection=spec.source,
            fetch=spec.limits.fetch,
            pieces=pieces,
            topic_ids={},
            patience_s=spec.patience_s,
            isolation=spec.limits.isolation,
        )
        for pieces in _pieces(spec.stretches)
    ]
    return read_frame(spark, tasks)


def _pieces(found: Sequence[Stretch]) -> list[tuple[Piece, ...]]:
    """What each task reads; none reads two pieces of one partition."""
    tasks: list[tuple[Piece, ...]] = []
    left = list(found)
    while left:
        layer: dict[TopicPartition, Range] = {}
        rest = []
        for one in left:
            if one.source in layer:
                rest.append(one)
            else:
                layer[one.source] = one.source_range
        tasks += dealt(layer, TASK_RECORDS)
        left = rest
    return tasks

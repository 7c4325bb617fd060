"""Hold the copies of transformed topics against their sources: Spark applies the same transform, tasks compare.

```
read (a task for so many offsets) -> transform -> number by stretch -> shuffle by task, sort -> compare with the target
```
Only what today's transform made is compared: its digest is in the receipts. Copies with other partitions go the same
way, and are numbered by target partition and chunk in place of stretches.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import TransformSpec
from ferry.config.record_source import TASK_RECORDS
from ferry.decide.records.ranges import ReadRange, dealt
from ferry.decide.verify.dealt import DealtCopy, dealt_by_todays_rule, not_applied, source_ranges
from ferry.decide.verify.stretches import Stretch, unreadable
from ferry.decide.verify.stretches import dealt as dealt_stretches
from ferry.decide.verify.transformed import Rule, by_todays_rule
from ferry.errors import FerryError
from ferry.model import NotCompared, NotComparedKind, Range, TopicPartition
from ferry.run.records.reading import ReadSpec
from ferry.run.records.transform_digest import transform_digest
from ferry.run.verify.compare import Compared
from ferry.run.verify.survey import Survey
from ferry.run.verify.verifier import CompareSpec
from ferry.spark.records.dealt_holding import held_dealt_tasks, numbered_dealt_rows
from ferry.spark.records.frames import read_frame
from ferry.spark.records.holding import ORDER, HeldBy, held_tasks, marked_rows, numbered_rows
from ferry.spark.records.schema import HEADERS
from ferry.spark.records.transform import prepare, transformed
from ferry.spark.session import is_remote
from ferry.spark.verify_stage import ROW

_HELD = StructType(
    [
        StructField("task", IntegerType(), nullable=False),
        StructField("stretch", IntegerType(), nullable=False),
        StructField("chunk", IntegerType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
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

Spec = Callable[[Sequence[Stretch], Sequence[DealtCopy]], CompareSpec]
Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def compare_transformed(spark: SparkSession, flow: FlowConfig, spec: Spec, found: Survey, *, asked: bool) -> Compared:
    """Compare what a transform made; one that cannot be applied does not stop the others.

    `spec` is what tasks need to compare some of it, `asked` as of `by_todays_rule`.
    """
    compared = Compared()
    usable, unusable = _rules(flow, sorted({one.source.topic for one in found.transformed} | _topics(found.dealt)))
    for topic, why in unusable.items():
        compared.not_compared += [unreadable(one, why) for one in found.transformed if one.source.topic == topic]
        dealt = [one for one in found.dealt if one.topic == topic]
        compared.not_compared += not_applied(dealt, why, NotComparedKind.UNREADABLE)
    rules = {topic: rule for topic, (rule, _) in usable.items()}
    left = [one for one in found.transformed if one.source.topic not in unusable]
    held, changed = by_todays_rule(left, rules, asked=asked)
    copies, changed_dealt = dealt_by_todays_rule(
        [one for one in found.dealt if one.topic not in unusable], rules, asked=asked
    )
    compared.not_compared += [*changed, *changed_dealt]
    if not held and not copies:
        return compared
    if is_remote(spark):
        why = "transformed topics are not compared on Spark Connect: use a Spark session without it"
        compared.not_compared += _unreadable(held, copies, why)
        return compared
    prepare(spark)
    for name in sorted({rules[topic].name for topic in {one.source.topic for one in held} | _topics(copies)}):
        topics = {topic: transform for topic, (rule, transform) in usable.items() if rule.name == name}
        transform = next(iter(topics.values()))
        mine = [one for one in held if one.source.topic in topics]
        dealt = [one for one in copies if one.topic in topics]
        try:
            if mine:
                compared.add(_compared(spark, flow, transform, spec(mine, ())))
            if dealt:
                compared.add(_compared_dealt(spark, flow, transform, spec((), dealt)))
        except FerryError as error:
            compared.not_compared += _unreadable(mine, dealt, str(error))
        except (PySparkException, Py4JError) as error:
            why = f"Spark gave up ferry.transform.{name} ({_told(error)}): see its log"
            compared.not_compared += _unreadable(mine, dealt, why)
    return compared


def _topics(copies: Iterable[DealtCopy]) -> set[str]:
    return {one.topic for one in copies}


def _rules(flow: FlowConfig, topics: Sequence[str]) -> tuple[dict[str, tuple[Rule, TransformSpec]], dict[str, str]]:
    """By source topic the rule that the file has today, if any, or why it cannot be had."""
    found: dict[str, tuple[Rule, TransformSpec]] = {}
    failed: dict[str, str] = {}
    for topic in topics:
        try:
            transform = flow.transform_of(topic)
            if transform is not None:
                found[topic] = Rule(transform.name, transform_digest(transform)), transform
        except FerryError as error:
            failed[topic] = str(error)
    return found, failed


def _unreadable(held: Iterable[Stretch], copies: Sequence[DealtCopy], why: str) -> list[NotCompared]:
    return [*(unreadable(one, why) for one in held), *not_applied(copies, why, NotComparedKind.UNREADABLE)]


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
    tasks = {numbers[id(one)]: HeldBy(task, one) for task, share in enumerate(shares) for one in share}
    schema = to_arrow_schema(_HELD, timezone="UTC")
    changed = _transformed(
        spark, flow, transform, spec, _pieces([(one.source, one.source_range) for one in spec.stretches])
    )
    rows = changed.mapInArrow(partial(numbered_rows, tasks, transform.poison, schema), _HELD)
    return _in_tasks(spark, rows, {number: one.task for number, one in tasks.items()}, partial(held_tasks, spec))


def _compared_dealt(spark: SparkSession, flow: FlowConfig, transform: TransformSpec, spec: CompareSpec) -> Compared:
    numbers = {id(one): number for number, one in enumerate(spec.dealt)}
    shares = dealt_stretches(spec.dealt, flow.tasks_max)
    tasks = {numbers[id(one)]: task for task, share in enumerate(shares) for one in share}
    schema = to_arrow_schema(_HELD, timezone="UTC")
    changed = _transformed(spark, flow, transform, spec, _pieces(list(source_ranges(spec.dealt).items())))
    targets = {topic: transform.targets_of(topic, flow.first_name(topic)) for topic in _topics(spec.dealt)}
    numbered = partial(numbered_dealt_rows, tasks, spec.dealt, transform.poison, targets, schema)
    rows = changed.mapInArrow(numbered, _HELD)
    return _in_tasks(spark, rows, tasks, partial(held_dealt_tasks, spec))


def _in_tasks(spark: SparkSession, rows: DataFrame, tasks: Mapping[int, int], work: Stage) -> Compared:
    """What tasks find that get the rows of their stretches, by number, in order."""
    schema = to_arrow_schema(_HELD, timezone="UTC")
    names = spark.range(0, 1, 1, 1).mapInArrow(partial(marked_rows, tasks, schema), _HELD)
    ordered = rows.unionByName(names).repartitionById(len(set(tasks.values())), sf.col("task"))
    ordered = ordered.sortWithinPartitions(*ORDER)
    found = Compared()
    for row in ordered.mapInArrow(work, ROW).collect():
        found.add(pickle.loads(row.body))
    return found


def _transformed(
    spark: SparkSession,
    flow: FlowConfig,
    transform: TransformSpec,
    spec: CompareSpec,
    tasks: Sequence[tuple[ReadRange, ...]],
) -> DataFrame:
    """What the transform makes of pieces of the source, each of which a task reads."""
    reads = [
        ReadSpec(
            alias=spec.flow.source,
            connection=spec.source,
            fetch=spec.limits.fetch,
            pieces=pieces,
            topic_ids={},
            patience_s=spec.patience_s,
            isolation=spec.limits.isolation,
        )
        for pieces in tasks
    ]
    topics = {piece.place.topic for pieces in tasks for piece in pieces}
    targets = {topic: flow.first_name(topic) for topic in topics}
    return transformed(read_frame(spark, reads), transform, targets)


def _pieces(found: Sequence[tuple[TopicPartition, Range]]) -> list[tuple[ReadRange, ...]]:
    """What each task reads; none reads two pieces of one partition."""
    tasks: list[tuple[ReadRange, ...]] = []
    left = list(found)
    while left:
        layer: dict[TopicPartition, Range] = {}
        rest = []
        for place, part in left:
            if place in layer:
                rest.append((place, part))
            else:
                layer[place] = part
        tasks += dealt(layer, TASK_RECORDS)
        left = rest
    return tasks

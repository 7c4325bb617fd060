"""Compares the copies of transformed topics with their sources: Spark applies the same transform, tasks compare.

```
read (a task for so many offsets) -> transform -> number by range -> shuffle by task, sort -> compare with the target
```
Only what today's transform made is compared: its digest is in the receipts. Repartitioned copies are compared the same
way; they are numbered by target partition and chunk instead of by range.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import TransformSpec
from ferry.config.record_source import TASK_RECORDS
from ferry.errors import FerryError
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.rules.pace import TransformTasks, edge_tasks
from ferry.features.records.rules.ranges import ReadRange, distributed
from ferry.features.records.spark.row_stage import read_frame
from ferry.features.records.spark.schema import WRITTEN
from ferry.features.records.spark.task_monitor import watched
from ferry.features.records.spark.transform import prepare, transformed
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.acts.survey import Survey
from ferry.features.verify.acts.verifier import CompareSpec
from ferry.features.verify.rules.compare_ranges import CompareRange, unreadable
from ferry.features.verify.rules.compare_ranges import distributed as distributed_spans
from ferry.features.verify.rules.portions import (
    OffsetBytes,
    Unread,
    cost_of,
    cost_of_dealt,
    joined,
    portion_of,
    portion_of_dealt,
    without_unread,
    without_unread_dealt,
)
from ferry.features.verify.rules.repartitioned import DealtCopy, dealt_by_todays_rule, not_applied, source_ranges
from ferry.features.verify.rules.transformed import Rule, by_todays_rule
from ferry.features.verify.spark.compare_portions import compared_in_portions
from ferry.features.verify.spark.compare_repartitioned import compare_repartitioned_tasks, numbered_repartitioned_rows
from ferry.features.verify.spark.compare_rows import ORDER, ComparedBy, compare_tasks, marked_rows, numbered_rows
from ferry.features.verify.spark.stage import ROW
from ferry.model import NotCompared, NotComparedKind, Range, TopicPartition
from ferry.plan.transform_digest import transform_digest
from ferry.run.spark.columns import Stage
from ferry.run.spark.session import at_once, is_remote

_HELD = StructType(
    [
        StructField("task", IntegerType(), nullable=False),
        StructField("span", IntegerType(), nullable=False),
        StructField("chunk", IntegerType(), nullable=False),
        *WRITTEN,
        StructField("trouble", StringType(), nullable=True),
    ]
)

Spec = Callable[[Sequence[CompareRange], Sequence[DealtCopy]], CompareSpec]


def compare_transformed(spark: SparkSession, flow: FlowConfig, spec: Spec, found: Survey, *, asked: bool) -> Compared:
    """Compare what a transform made.

    A transform that cannot be applied does not stop the others, nor does a source partition that cannot be read. `spec`
    makes what tasks need to compare some of it. `asked`: these very offsets were asked for.
    """
    compared = Compared()
    usable, unusable = _rules(flow, sorted({one.source.topic for one in found.transformed} | _topics(found.dealt)))
    for topic, why in unusable.items():
        compared.not_compared += [unreadable(one, why) for one in found.transformed if one.source.topic == topic]
        repartitioned = [one for one in found.dealt if one.topic == topic]
        compared.not_compared += not_applied(repartitioned, why, NotComparedKind.UNREADABLE)
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
        compared.not_compared += [unreadable(one, why) for one in held]
        compared.not_compared += not_applied(copies, why, NotComparedKind.UNREADABLE)
        return compared
    prepare(spark)
    most = flow.copy.portion_bytes
    if cost_of(held, found.sizes) + cost_of_dealt(copies, found.sizes) > most:
        most *= at_once(spark)
    for name in sorted({rules[topic].name for topic in {one.source.topic for one in held} | _topics(copies)}):
        topics = {topic: transform for topic, (rule, transform) in usable.items() if rule.name == name}
        again = _Again(
            spark=spark,
            flow=flow,
            transform=next(iter(topics.values())),
            spec=spec,
            sizes=found.sizes,
            most=most,
        )
        mine = [one for one in held if one.source.topic in topics]
        repartitioned = [one for one in copies if one.topic in topics]
        compared.add(compared_in_portions(_Ranges(again), mine))
        compared.add(compared_in_portions(_Copies(again), repartitioned))
    return compared


def _topics(copies: Iterable[DealtCopy]) -> set[str]:
    return {one.topic for one in copies}


def _rules(flow: FlowConfig, topics: Sequence[str]) -> tuple[dict[str, tuple[Rule, TransformSpec]], dict[str, str]]:
    """Return, by source topic, the rule that the file has today, if any; or why it is not available."""
    found: dict[str, tuple[Rule, TransformSpec]] = {}
    failed: dict[str, str] = {}
    digest = cache(lambda name: transform_digest(next(one for one in flow.records.transforms if one.name == name)))
    for topic in topics:
        try:
            transform = flow.transform_of(topic)
            if transform is not None:
                found[topic] = Rule(transform.name, digest(transform.name)), transform
        except FerryError as error:
            failed[topic] = str(error)
    return found, failed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """A transform that is carried out again."""

    spark: SparkSession
    flow: FlowConfig
    transform: TransformSpec
    spec: Spec
    sizes: OffsetBytes
    most: int
    """About how many bytes one job shuffles."""

    def held(
        self,
        spec: CompareSpec,
        reads: Sequence[tuple[ReadRange, ...]],
        number: Stage,
        tasks: Mapping[int, int],
        work: Stage,
    ) -> Compared:
        """Read, transform and number rows, and return what the tasks find.

        `number` numbers; each task gets its numbers' rows.
        """
        schema = to_arrow_schema(_HELD, timezone="UTC")
        rows = self._changed(spec, reads, number)
        count = len(set(tasks.values()))
        more = edge_tasks(len(reads), count)
        names = self.spark.range(0, 1, 1, more).mapInArrow(partial(marked_rows, tasks, schema), _HELD)
        ordered = rows.unionByName(names).repartitionById(count, sf.col("task")).sortWithinPartitions(*ORDER)
        share = TransformTasks(
            transform=self.transform.name,
            tasks=range(len(reads)),
            timeout_s=self.transform.timeout_ms / 1000,
            done="compared",
        )
        answer = watched(self.spark, [share], len(reads) + more, ordered.mapInArrow(work, ROW).collect)
        found = Compared()
        for row in answer:
            found.add(pickle.loads(row.body))
        return found

    def _changed(self, spec: CompareSpec, tasks: Sequence[tuple[ReadRange, ...]], number: Stage) -> DataFrame:
        """Make the numbered rows of pieces of the source, each of which a task reads and transforms."""
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
        targets = {topic: self.flow.first_name(topic) for topic in topics}
        return transformed(partial(read_frame, self.spark, reads), self.transform, targets, number, _HELD)


class _Ranges:
    """Ranges of topics that keep their partitions."""

    def __init__(self, again: _Again) -> None:
        self._again = again
        self.name = again.transform.name

    def portion(self, left: Sequence[CompareRange]) -> tuple[list[CompareRange], list[CompareRange]]:
        return portion_of(left, self._again.sizes, self._again.most)

    def compare(self, portion: Sequence[CompareRange]) -> Compared:
        spec = self._again.spec(portion, ())
        numbers = {id(one): number for number, one in enumerate(spec.spans)}
        shares = distributed_spans(spec.spans, self._again.flow.copy.tasks_max)
        tasks = {numbers[id(one)]: ComparedBy(task, one) for task, share in enumerate(shares) for one in share}
        reads = _pieces([(one.source, one.source_range) for one in spec.spans])
        number = partial(numbered_rows, tasks, self._again.transform.poison, to_arrow_schema(_HELD, timezone="UTC"))
        of_tasks = {number: one.task for number, one in tasks.items()}
        return self._again.held(spec, reads, number, of_tasks, partial(compare_tasks, spec))

    def readable(
        self, groups: Sequence[Sequence[CompareRange]], unread: Unread
    ) -> tuple[list[list[CompareRange]], list[NotCompared]]:
        return without_unread(groups, unread)

    def lost(self, some: Sequence[CompareRange], why: str) -> list[NotCompared]:
        return [unreadable(one, why) for one in joined(some)]


class _Copies:
    """Comparisons of repartitioned copies, made by Spark."""

    def __init__(self, again: _Again) -> None:
        self._again = again
        self.name = again.transform.name

    def portion(self, left: Sequence[DealtCopy]) -> tuple[list[DealtCopy], list[DealtCopy]]:
        return portion_of_dealt(left, self._again.sizes, self._again.most)

    def compare(self, portion: Sequence[DealtCopy]) -> Compared:
        spec = self._again.spec((), portion)
        numbers = {id(one): number for number, one in enumerate(spec.dealt)}
        shares = distributed_spans(spec.dealt, self._again.flow.copy.tasks_max)
        tasks = {numbers[id(one)]: task for task, share in enumerate(shares) for one in share}
        reads = _pieces(list(source_ranges(spec.dealt).items()))
        transform, flow = self._again.transform, self._again.flow
        targets = {topic: transform.targets_of(topic, flow.first_name(topic)) for topic in _topics(spec.dealt)}
        schema = to_arrow_schema(_HELD, timezone="UTC")
        number = partial(numbered_repartitioned_rows, tasks, spec.dealt, transform.poison, targets, schema)
        return self._again.held(spec, reads, number, tasks, partial(compare_repartitioned_tasks, spec))

    def readable(
        self, groups: Sequence[Sequence[DealtCopy]], unread: Unread
    ) -> tuple[list[list[DealtCopy]], list[NotCompared]]:
        return without_unread_dealt(groups, unread)

    def lost(self, some: Sequence[DealtCopy], why: str) -> list[NotCompared]:
        return not_applied(some, why, NotComparedKind.UNREADABLE)


def _pieces(found: Sequence[tuple[TopicPartition, Range]]) -> list[tuple[ReadRange, ...]]:
    """Return what each task reads; none reads two pieces of one partition."""
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
        tasks += distributed(layer, TASK_RECORDS)
        left = rest
    return tasks

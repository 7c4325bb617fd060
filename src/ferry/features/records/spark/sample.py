"""Records before and after their transform, to be shown: read here, changed in a local Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import TransformSpec
from ferry.errors import BadInput, Refused
from ferry.features.records.acts.latest import latest_specs, patterns
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.rules.filters import EVERYTHING
from ferry.features.records.rules.sample import Pair, Sample, Side
from ferry.features.records.spark.failures import SPARKS, cause_of
from ferry.features.records.spark.local_session import local_session
from ferry.features.records.spark.rows import record_rows
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.transform import of_frame, transformed
from ferry.plan.transform_digest import transform_digest

MOST_FOUND = 3
"""At most so many records of a topic at which its transform breaks off are located; others are named with their
neighbours."""


def samples(flow: FlowConfig, count: int, only: Collection[str] | None, *, clear: bool) -> list[Sample]:
    """Return the last records of each topic that has a transform, at most `count` of each; each transform is checked.

    Nothing is written. `clear`: whether a sentence may show a value. If a transform cannot be carried out, or breaks
    off at a record, its own sample says so. Raises BadInput, Refused and Unreachable as `acts.survey.survey` does, and
    Refused or Retryable if no local Spark starts.
    """
    wanted = {one.name: one.topics for one in flow.records.transforms}

    def is_wanted(topic: str) -> bool:
        taken = (only is None or topic in only) and flow.topics.selection.takes(topic)
        return taken and flow.transform_of(topic) is not None

    specs = latest_specs(flow, patterns(wanted), is_wanted, count)
    tables = {topic: _last(parts, count) for topic, parts in specs.items()}
    with local_session("ferry plan --sample") as spark:
        return sampled(spark, flow, tables, clear=clear)


def sampled(spark: SparkSession, flow: FlowConfig, tables: Mapping[str, pa.Table], *, clear: bool) -> list[Sample]:
    """Apply the flow's transforms to records, by topic; a transform that no topic has is checked with no records."""
    found: list[Sample] = []
    for topic, table in tables.items():
        transform = flow.transform_of(topic)
        if transform is not None:
            target = flow.copy_of(topic)
            named = {topic: flow.first_name(topic)}
            found.append(_sample(spark, transform, named, target, shown_records(table), clear=clear))
    for one in flow.records.transforms:
        if all(sample.transform != one for sample in found):
            found.append(_sample(spark, one, {}, None, [], clear=clear))
    return found


def _last(specs: Collection[ReadSpec], count: int) -> pa.Table:
    """Return the last records by their time, in the order of partitions and offsets."""
    schema = to_arrow_schema(SCHEMA, timezone="UTC")
    batches = [batch for spec in specs for batch in record_rows(spec, EVERYTHING, schema)]
    table = pa.Table.from_batches(batches, schema=schema)
    by_time = table.sort_by([("timestamp", "descending"), ("partition", "ascending"), ("offset", "descending")])
    return by_time.slice(0, count).sort_by([("partition", "ascending"), ("offset", "ascending")])


def _sample(
    spark: SparkSession,
    spec: TransformSpec,
    named: Mapping[str, str],
    target: str | None,
    before: list[dict[str, Any]],
    *,
    clear: bool,
) -> Sample:
    topic = next(iter(named), None)
    name = None if topic is None else named[topic]
    try:
        digest = transform_digest(spec)
        transformed(of_frame(spark.createDataFrame([], SCHEMA)), spec, named)
    except (BadInput, Refused) as error:
        return Sample(transform=spec, digest="", topic=topic, target=target, named=name, pairs=(), error=error)
    trial = _Trial(spark, spec, named, clear=clear)
    trial.carry_out(before)
    return Sample(
        transform=spec,
        digest=digest,
        topic=topic,
        target=target,
        named=name,
        pairs=tuple(_pair(one, trial.rows.get(_place(one)), target, trial.broken.get(_place(one))) for one in before),
    )


class _Trial:
    """Carries out a transform on records, and finds by halves those at which it breaks off."""

    def __init__(self, spark: SparkSession, spec: TransformSpec, named: Mapping[str, str], *, clear: bool) -> None:
        self._spark, self._spec, self._named, self._clear = spark, spec, named, clear
        self.rows: dict[tuple[int, int], Any] = {}
        """What the records became, by partition and offset."""
        self.broken: dict[tuple[int, int], str] = {}
        """Why it breaks off, by partition and offset."""
        self._found = 0

    def carry_out(self, records: list[dict[str, Any]]) -> None:
        """Apply the transform.

        Each row comes from one record, so a part has the same rows as it has among the others.
        """
        if not records:
            return
        frame = self._spark.createDataFrame([_row(one) for one in records], SCHEMA)
        try:
            rows = transformed(of_frame(frame), self._spec, self._named).collect()
        except SPARKS as error:
            middle = len(records) // 2
            if not middle or self._found >= MOST_FOUND:
                self._found += 1
                why = self._why(error)
                beside = "" if not middle else f"it, or one of the {len(records)} records here: "
                self.broken |= {_place(one): beside + why for one in records}
                return
            self.carry_out(records[:middle])
            self.carry_out(records[middle:])
            return
        self.rows |= {(row.partition, row.offset): row for row in rows}

    def _why(self, error: Exception) -> str:
        lines = str(error).strip().splitlines()
        return lines[0][:300] if self._clear and lines else cause_of(error)


def _place(one: Mapping[str, Any]) -> tuple[int, int]:
    return one["partition"], one["offset"]


def shown_records(table: pa.Table) -> list[dict[str, Any]]:
    """Return the records. In the names of headers, bytes that are not UTF-8 are shown as `\\xff`."""
    at = table.schema.get_field_index("headers")
    pairs = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    found: list[dict[str, Any]] = table.set_column(at, "headers", table.column(at).cast(pairs)).to_pylist()
    for one in found:
        for pair in one["headers"]:
            pair["key"] = pair["key"].decode(errors="backslashreplace")
    return found


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    headers = [(pair["key"], pair["value"]) for pair in one["headers"]]
    return (*(one[name] for name in SCHEMA.fieldNames()[:-1]), headers)


def _pair(before: dict[str, Any], after: Any, target: str | None, broken: str | None) -> Pair:
    headers = tuple((pair["key"], pair["value"]) for pair in before["headers"])
    old = Side(
        topic=before["topic"],
        timestamp=before["timestamp"],
        key=before["key"],
        value=before["value"],
        headers=headers,
    )
    new = None
    if after is not None:
        new = Side(
            topic=after.target if after.poison is None else target or after.target,
            timestamp=after.timestamp,
            key=_bytes(after.key),
            value=_bytes(after.value),
            headers=tuple((pair.key, _bytes(pair.value)) for pair in after.headers),
        )
    return Pair(
        partition=before["partition"],
        offset=before["offset"],
        before=old,
        after=new,
        poison=None if after is None else after.poison,
        broken=broken,
    )


def _bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)

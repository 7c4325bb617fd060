"""Records before and after their transform, for somebody to look at: read here, changed in a local Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import TransformSpec
from ferry.decide.records.filters import EVERYTHING
from ferry.errors import BadInput
from ferry.run.records.latest import latest_specs, patterns
from ferry.run.records.reading import ReadSpec
from ferry.run.records.transform_digest import transform_digest
from ferry.spark.records.failures import SPARKS
from ferry.spark.records.local_session import local_session
from ferry.spark.records.rows import record_rows
from ferry.spark.records.schema import SCHEMA
from ferry.spark.records.transform import transformed

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A record before or after; `topic` is the source's, or the target's whole name."""

    topic: str
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A record of the source, and what would be written; None: it is left out."""

    partition: int
    offset: int
    before: Side
    after: Side | None
    poison: str | None
    """Why the transform cannot be applied to it; what becomes of it `TransformSpec.poison` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some of a topic's last records. `topic` None: a transform that no topic of the source is named by."""

    transform: TransformSpec
    digest: str
    topic: str | None
    target: str | None
    """The name of its copy, as far as the source topic's name decides it."""
    named: str | None
    """The policy's own name for it."""
    pairs: tuple[Pair, ...]


def samples(flow: FlowConfig, count: int, only: Collection[str] | None, *, clear: bool) -> list[Sample]:
    """The last records of each topic that has a transform, `count` at most of each; each transform is checked.

    Nothing is written. `clear`: whether an error may show a value. Raises BadInput and Refused by the transform's key,
    and as `ferry.run.records.survey.survey`.
    """
    wanted = {one.name: one.topics for one in flow.transforms}

    def is_wanted(topic: str) -> bool:
        taken = (only is None or topic in only) and flow.selection.takes(topic)
        return taken and flow.transform_of(topic) is not None

    specs = latest_specs(flow, patterns(wanted), is_wanted, count)
    tables = {topic: _last(parts, count) for topic, parts in specs.items()}
    found: list[Sample] = []
    with local_session("ferry plan --sample") as spark:
        for topic, table in tables.items():
            transform = flow.transform_of(topic)
            if transform is not None:
                target = flow.policy.format_remote_topic(flow.flow.source, topic)
                named = {topic: flow.first_name(topic)}
                found.append(_sample(spark, transform, named, target, table, clear=clear))
        for one in flow.transforms:
            if all(sample.transform != one for sample in found):
                found.append(_sample(spark, one, {}, None, _last((), count), clear=clear))
    return found


def _last(specs: Collection[ReadSpec], count: int) -> pa.Table:
    """The last records by their time, in the order of partitions and offsets."""
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
    table: pa.Table,
    *,
    clear: bool,
) -> Sample:
    topic = next(iter(named), None)
    before = _told(table)
    records = spark.createDataFrame([_row(one) for one in before], SCHEMA)
    frame = transformed(records, spec, named)
    try:
        rows = frame.collect() if before else []
    except SPARKS as error:
        kind = error.getCondition() if isinstance(error, PySparkException) else None
        what = str(error).strip().splitlines()[0][:300] if clear else kind or type(error).__name__
        hint = "" if clear else "; --show-values shows the rest, which may have values of records"
        raise BadInput(
            f"ferry.transform.{spec.name}: Spark cannot apply it to records of {topic} ({what}); leave those out by"
            f" WHERE, or use a function that answers null, as try_cast{hint}"
        ) from None
    after = {(row.partition, row.offset): row for row in rows}
    return Sample(
        transform=spec,
        digest=transform_digest(spec),
        topic=topic,
        target=target,
        named=None if topic is None else named[topic],
        pairs=tuple(_pair(one, after.get((one["partition"], one["offset"])), target) for one in before),
    )


def _told(table: pa.Table) -> list[dict[str, Any]]:
    """The records. In the names of headers bytes that are no UTF-8 are shown as `\\xff`."""
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


def _pair(before: dict[str, Any], after: Any, target: str | None) -> Pair:
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
    )


def _bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)

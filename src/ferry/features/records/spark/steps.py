"""The steps of a transform (`ferry.config.flow.steps`) as columns of Spark.

JSON and hashes are Python's, in functions that see Arrow batches: a salt in an expression would stand in Spark's plans.
They never raise, but say of a record why they cannot be applied to it: one that a filter leaves out may still be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, takewhile
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ferry.config.flow.routes import routed
from ferry.config.flow.steps import (
    AddHeader,
    Cast,
    Drop,
    DropHeaders,
    HasHeader,
    HashKey,
    IsTombstone,
    Json,
    Keep,
    OnlyFields,
    Provenance,
    Rename,
    Route,
    RouteByTime,
    Sample,
    Step,
    TopicMatches,
    When,
)
from ferry.config.flow.transforms import TransformSpec
from ferry.errors import BadInput, Refused
from ferry.features.records.rules.json_column import ColumnChange
from ferry.features.records.spark.edits import JSON_STEPS, change_of, changed_values, column_of, hashed_keys
from ferry.features.records.spark.selection import selected
from ferry.spark.columns import nullable_binaries

T = TypeVar("T")

_BEFORE = ("key", "value", "headers", "target")
_LINE = re.compile(r"\bline (\d+)")
_MILLION = 1_000_000
_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Years 1 to 9999, which are written alike by Java's formats and Spark's."""
_TOPIC_NAME = "^[a-zA-Z0-9._-]{1,249}$"
_EDITED = "value binary, poison string"


def _arrow_udf(function: Callable[..., pa.Array], kind: str) -> Callable[..., Column]:
    """A function of Arrow arrays, batch by batch. PySpark's types do not know its own `arrow_udf`."""
    made: Callable[..., Column] = vars(sf)["arrow_udf"](function, returnType=kind)
    return made


def about(spec: TransformSpec, part: str, work: Callable[[], T]) -> T:
    """What `work` answers; its BadInput and Refused get the key ahead."""
    try:
        return work()
    except (BadInput, Refused) as error:
        raise type(error)(f"ferry.transform.{spec.name}.{part}: {error}") from None


def carried_out(records: DataFrame, spec: TransformSpec, secret: bytes, targets: Mapping[str, str]) -> DataFrame:
    """`records` after the steps of `spec`: those that are left, with `poison` where a step cannot be applied.

    Such a record has what it had before the first step. Raises BadInput and Refused as `selected`.
    """
    steps = _Steps(spec, secret, frozenset(targets.values()) if _has_policy_names(spec) else None)
    frame = records
    filters = tuple(takewhile(lambda step: isinstance(step, Keep | Sample), spec.steps))
    for step in filters:
        frame = steps.after(frame, step)
    frame = frame.withColumns({f"_{name}": sf.col(name) for name in _BEFORE})
    # Changes of JSON that follow each other are one call of Python for each record.
    for place, group in groupby(spec.steps[len(filters) :], _json_place):
        if place is None:
            for step in group:
                frame = steps.after(frame, step)
        else:
            frame = steps.changed(frame, [step for step in group if isinstance(step, JSON_STEPS)], *place)
    target = sf.col("target")
    legal = target.isNotNull() & target.rlike(_TOPIC_NAME) & ~target.isin(".", "..")
    frame = _spoilt(frame, ~sf.coalesce(legal, sf.lit(False)), sf.lit("its target is no name of a topic"))
    is_poison = sf.col("poison").isNotNull()
    return frame.withColumns({name: sf.when(is_poison, sf.col(f"_{name}")).otherwise(sf.col(name)) for name in _BEFORE})


def _json_place(step: Step) -> tuple[When | None, str] | None:
    """What a step that changes JSON is for, and in which column; None: it changes none."""
    return (step.when, column_of(step)) if isinstance(step, JSON_STEPS) else None


def _has_policy_names(spec: TransformSpec) -> bool:
    """Whether the targets before the first step are known: SQL and functions may name others."""
    return spec.sql is None and spec.function is None


def _spoilt(frame: DataFrame, why: Column, reason: Column) -> DataFrame:
    return frame.withColumn("poison", sf.coalesce(sf.col("poison"), sf.when(why, reason)))


class _Steps:
    """Carries out one step after the other; knows which targets there can be."""

    def __init__(self, spec: TransformSpec, secret: bytes, possible: frozenset[str] | None) -> None:
        self._spec = spec
        self._secret = secret
        self._possible = possible

    def after(self, frame: DataFrame, step: Step) -> DataFrame:  # noqa: PLR0911 - one line for each step
        """The records after the step."""
        match step:
            case Keep():
                # Without TRUE AND a name in brackets would be read as columns of an alias called WHERE.
                sql = f"SELECT * FROM records WHERE TRUE AND (\n{step.sql}\n)"
                return self._about_line("where", lambda: selected(frame, sql))
            case Rename():
                self._possible = None
                sql = f"SELECT * EXCEPT (target), CAST((\n{step.sql}\n) AS STRING) AS target FROM records"
                return self._about_line("target", lambda: selected(frame, sql))
            case Drop():
                return frame.where(sf.col("poison").isNotNull() | ~_holds(step.when))
            case Sample():
                return frame.where(_share() < step.parts_per_million)
            case AddHeader():
                return frame.withColumn("headers", _if(step.when, "headers", _with_headers([(step.name, step.value)])))
            case DropHeaders():
                left = sf.filter("headers", lambda header: ~header["key"].isin(*step.names))
                return frame.withColumn("headers", _if(step.when, "headers", left))
            case Provenance():
                return frame.withColumn("headers", _with_headers(_provenance(step)))
            case HashKey():
                return frame.withColumn("key", _key_hash(self._secret)("key"))
            case Json() | OnlyFields() | Cast():
                return self.changed(frame, [step], step.when, column_of(step))
            case Route():
                return self._route(frame, step)
            case RouteByTime():
                return self._route_by_time(frame, step)

    def changed(
        self, frame: DataFrame, steps: Sequence[Json | OnlyFields | Cast], when: When | None, column: str
    ) -> DataFrame:
        """The records after changes of their JSON, all for the same of them, in one column."""
        found = sf.col("_edited")
        changes = [change_of(step, self._secret) for step in steps]
        frame = frame.withColumn("_edited", _json(changes, column)(column, _holds(when)))
        spoilt = _spoilt(frame, found["poison"].isNotNull(), found["poison"])
        return spoilt.withColumn(column, found["value"]).drop("_edited")

    def _route(self, frame: DataFrame, step: Route) -> DataFrame:
        if self._possible is None:
            raise Refused(
                f"ferry.transform.{self._spec.name}: RegexRouter stands behind what names topics record by record"
                " (TimestampRouter, target, sql or function): put it before that, or name the topic there"
            )
        names = {name: routed(step, name) for name in self._possible}
        changed = [text for pair in names.items() if pair[0] != pair[1] for text in pair]
        self._possible |= frozenset(names.values())
        if not changed:
            return frame
        target = sf.col("target")
        routes = sf.create_map(*map(sf.lit, changed))
        new = sf.coalesce(sf.try_element_at(routes, target), target)
        return frame.withColumn("target", _if(step.when, "target", new))

    def _route_by_time(self, frame: DataFrame, step: RouteByTime) -> DataFrame:
        self._possible = None
        holds, time = _holds(step.when), sf.col("timestamp")
        in_range = time.between(_EARLIEST_MS, _LATEST_MS)
        written = sf.date_format(sf.timestamp_millis(sf.when(in_range, time).otherwise(0)), step.time_format)
        parts = [
            sf.col("target") if part == "${topic}" else written if part == "${timestamp}" else sf.lit(part)
            for part in re.split(r"(\$\{topic\}|\$\{timestamp\})", step.topic_format)
            if part
        ]
        frame = _spoilt(frame, holds & ~in_range, sf.lit("its timestamp is in no year from 1 to 9999"))
        return frame.withColumn("target", sf.when(holds, sf.concat(*parts)).otherwise(sf.col("target")))

    def _about_line(self, part: str, work: Callable[[], DataFrame]) -> DataFrame:
        """As `about`; the text of the file begins on the second line of the query."""
        try:
            return about(self._spec, part, work)
        except (BadInput, Refused) as error:
            raise type(error)(_LINE.sub(lambda found: f"line {max(1, int(found[1]) - 1)}", str(error))) from None


def _holds(when: When | None) -> Column:
    """Whether a step is for the record; never null."""
    if when is None:
        return sf.lit(True)
    found: Column
    match when.test:
        case TopicMatches():
            found = sf.col("target").rlike(rf"\A(?:{when.test.pattern})\z")
        case HasHeader():
            name = when.test.name
            found = sf.exists("headers", lambda header: header["key"] == name)
        case IsTombstone():
            found = sf.col("value").isNull()
    return ~sf.coalesce(found, sf.lit(False)) if when.negate else sf.coalesce(found, sf.lit(False))


def _if(when: When | None, column: str, changed: Column) -> Column:
    return changed if when is None else sf.when(_holds(when), changed).otherwise(sf.col(column))


def _share() -> Column:
    """A number below a million, by the key; without one by place."""
    place = sf.concat_ws(":", sf.col("topic"), sf.col("partition").cast("string"), sf.col("offset").cast("string"))
    digest = sf.sha2(sf.coalesce(sf.col("key"), place.cast("binary")), 256)
    return sf.conv(sf.substring(digest, 1, 12), 16, 10).cast("bigint") % _MILLION


def _with_headers(pairs: Sequence[tuple[str, str | Column]]) -> Column:
    more = [
        sf.struct(
            sf.lit(name).alias("key"),
            (sf.lit(value) if isinstance(value, str) else value).cast("binary").alias("value"),
        )
        for name, value in pairs
    ]
    return sf.concat(sf.col("headers"), sf.array(*more))


def _provenance(step: Provenance) -> list[tuple[str, str | Column]]:
    return [
        ("ferry.source.cluster", step.cluster),
        ("ferry.source.topic", sf.col("topic")),
        ("ferry.source.partition", sf.col("partition").cast("string")),
        ("ferry.source.offset", sf.col("offset").cast("string")),
    ]


def _key_hash(salt: bytes) -> Callable[..., Column]:
    def hashes(keys: pa.Array) -> pa.Array:
        return hashed_keys(keys, salt)

    hashes.__annotations__ = {"keys": pa.Array, "return": pa.Array}
    return _arrow_udf(hashes, "binary")


def _json(changes_of_column: Sequence[ColumnChange], column: str) -> Callable[..., Column]:
    def changes(values: pa.Array, wanted: pa.Array) -> pa.Array:
        found, poison = changed_values(changes_of_column, values, np.array(wanted.to_pylist(), np.bool_), column)
        why = nullable_binaries([poison.get(row) for row in range(len(found))], pa.string())
        return pa.StructArray.from_arrays([found, why], names=["value", "poison"])

    changes.__annotations__ = {"values": pa.Array, "wanted": pa.Array, "return": pa.Array}
    return _arrow_udf(changes, _EDITED)

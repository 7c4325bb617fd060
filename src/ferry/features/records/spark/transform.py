"""What a transform of the file makes of records, checked before anything is read (ADR 39).

Spark's SQL comes first (`sql`, `function`, `where`), then the steps over Arrow, last `target`. What writes or compares
records calls `transformed`. `ferry.plan.transform_digest` makes the digest of a transform.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from ferry.config.flow.steps import Keep, Rename
from ferry.config.flow.transforms import TransformSpec
from ferry.errors import BadInput, Refused
from ferry.features.records.spark.failures import SPARKS, first_line
from ferry.features.records.spark.meaning import SETTINGS, other_meanings
from ferry.features.records.spark.row_stage import in_one_worker
from ferry.features.records.spark.schema import CHANGED, SCHEMA
from ferry.features.records.spark.selection import own_columns, selected, selected_by
from ferry.features.records.spark.steps import BEFORE, ArrowSteps, finished
from ferry.plan.transform_digest import imported
from ferry.run.spark.columns import Stage

T = TypeVar("T")

Read = Callable[[Stage, StructType], DataFrame]
"""Reads records, passes them through a stage in the worker that reads, and returns the columns that come out of it."""

_LINE = re.compile(r"\bline (\d+)")

ARROW_BYTES = 8 << 20
"""Most bytes that Spark passes to a Python worker at once, or one record; without it, 10,000 records of any size."""


def prepare(spark: SparkSession) -> None:
    """Set the session as transforms need it.

    PySpark's log of failed queries is then silent. It repeats, with Java's stack and values of records, what the code
    that catches the error reports in one sentence.
    """
    logging.getLogger("SQLQueryContextLogger").disabled = True
    for name in other_meanings(spark):
        spark.conf.unset(name)
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(ARROW_BYTES))


def transformed(
    read: Read, spec: TransformSpec, targets: Mapping[str, str], then: Stage = iter, columns: StructType = CHANGED
) -> DataFrame:
    """Return the records that are left, as CHANGED, and what `then` makes of these, in the same worker: `columns`.

    `targets` are the names that the policy gives, by source topic. What is `read` has the columns of the source
    `ferry`, and is of topics in `targets`. A record of another topic gets no target, and is poison. A record with
    `poison` has what it had before the steps. Nothing is read. `prepare` must have set the session, once.

    Raises BadInput and Refused that begin with the transform's key:

    - for a query or function that is not a selection;
    - for a function that cannot be imported, raises or changes the session;
    - for anything else that Spark cannot make a query of;
    - for a salt that cannot be resolved.
    """
    steps = steps_of(spec, targets)
    try:
        return _transformed(read, spec, steps, then, columns)
    except SPARKS as error:  # nothing is carried out yet: Spark's message is about the text of the file
        part = "sql" if spec.sql is not None else "function" if spec.function is not None else "topics"
        raise BadInput(
            f"ferry.transform.{spec.name}.{part}: Spark does not make a query of the transform: {first_line(error)}; "
            "correct its keys"
        ) from error


def of_frame(records: DataFrame) -> Read:
    """Make a reader of records that are a frame already."""
    return lambda then, columns: records if then is iter else records.mapInArrow(then, columns)


def is_plain(spec: TransformSpec) -> bool:
    """Report whether a transform has only steps, without SQL or a function: Python carries it out alone."""
    return spec.sql is None and spec.function is None and not any(isinstance(one, Keep | Rename) for one in spec.steps)


def steps_of(spec: TransformSpec, targets: Mapping[str, str]) -> ArrowSteps:
    """Return the steps that are not SQL's. Raises BadInput when the salt's variable, file or entry is missing."""
    return ArrowSteps(tuple(one for one in spec.steps if not isinstance(one, Keep | Rename)), targets, spec.secret())


def _transformed(read: Read, spec: TransformSpec, steps: ArrowSteps, then: Stage, columns: StructType) -> DataFrame:
    keeps = [step for step in spec.steps if isinstance(step, Keep)]
    renames = [step for step in spec.steps if isinstance(step, Rename)]
    work, made = (steps.begun, None) if renames else (in_one_worker(steps.whole, then), columns)
    if spec.sql is not None or spec.function is not None or keeps:
        records = _selected(_checked(read(iter, SCHEMA)), spec, keeps, steps.targets)
        if made is not None:
            records = records.select(*CHANGED.names)
        frame = records.mapInArrow(work, made or _under_way(records.schema))
    else:
        frame = read(work, made or _under_way(SCHEMA))
    if not renames:
        return frame
    for step in renames:
        sql = f"SELECT * EXCEPT (target), CAST((\n{step.sql}\n) AS STRING) AS target FROM records"
        frame = _of_line(spec, "target", _checked(frame), sql)
    return frame.mapInArrow(in_one_worker(finished, then), columns)


def _checked(frame: DataFrame) -> DataFrame:
    """Return the frame; Refused if the session would give SQL another meaning."""
    for name, value in SETTINGS.items():
        if frame.sparkSession.conf.get(name) != value:
            raise Refused(f"transforms need a session with {name} = {value}: call prepare(spark) first")
    return frame


def _under_way(columns: StructType) -> StructType:
    """Return the columns of `ArrowSteps.begun`."""
    before = [StructField(f"_{name}", CHANGED[name].dataType) for name in BEFORE]
    own = StructType([CHANGED["target"], CHANGED["poison"], *before])
    return StructType([*(field for field in columns if field.name not in own.names), *own])


def _selected(records: DataFrame, spec: TransformSpec, keeps: Sequence[Keep], targets: Mapping[str, str]) -> DataFrame:
    """Return what SQL, or a function, and the conditions before the steps leave of records."""
    named = records.withColumns({"target": _named(targets), "poison": sf.lit(None).cast("string")})
    kept = named
    if spec.sql is not None:
        kept = _about(spec, "sql", lambda: _completed(named, selected(named, spec.sql or ""), targets))
    elif spec.function is not None:
        call = _about(spec, "function", lambda: imported(spec.function or ""))
        kept = _about(spec, "function", lambda: _completed(named, _undisturbed(named, call), targets))
    for step in keeps:
        # Without TRUE AND, a name in brackets would be read as columns of an alias called WHERE.
        kept = _of_line(spec, "where", kept, f"SELECT * FROM records WHERE TRUE AND (\n{step.sql}\n)")
    return kept


def _about(spec: TransformSpec, part: str, work: Callable[[], T]) -> T:
    """Return what `work` returns; its BadInput and Refused begin with the key."""
    try:
        return work()
    except (BadInput, Refused) as error:
        raise type(error)(f"ferry.transform.{spec.name}.{part}: {error}") from None


def _of_line(spec: TransformSpec, part: str, records: DataFrame, sql: str) -> DataFrame:
    """Apply a query in whose second line the text of the file begins: errors count lines from there."""
    try:
        return _about(spec, part, partial(selected, records, sql))
    except (BadInput, Refused) as error:
        raise type(error)(_LINE.sub(lambda found: f"line {max(1, int(found[1]) - 1)}", str(error))) from None


def _named(targets: Mapping[str, str]) -> Column:
    names: list[Column] = [sf.lit(text) for pair in targets.items() for text in pair]
    known = sf.create_map(*names) if names else sf.lit(None).cast("map<string,string>")
    return sf.try_element_at(known, sf.col("topic"))


def _completed(records: DataFrame, found: DataFrame, targets: Mapping[str, str]) -> DataFrame:
    """Add the columns that a selection may leave out; BadInput for one that it may not change."""
    types = dict(found.dtypes)
    if "topic" not in types:
        raise BadInput("the transform drops the column topic: select it too, as by SELECT * EXCEPT (...)")
    if "topic" not in own_columns(records, found):
        raise BadInput(
            "the transform changes the column topic, which says where a record came from: leave it unchanged, and "
            "change target, the topic that it goes to"
        )
    for column in ("target", "poison"):
        if types.get(column, "string") not in ("string", "void"):
            raise BadInput(f"the transform makes the column {column} {types[column]}, it has to be string: cast it")
    target = sf.col("target").cast("string") if "target" in types else _named(targets)
    poison = sf.col("poison").cast("string") if "poison" in types else sf.lit(None).cast("string")
    return found.withColumns({"target": target, "poison": poison})


def _undisturbed(records: DataFrame, call: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Call a function on records, and check that the session has not changed.

    If it has, the session is set again, and Refused is raised. Only a function can change a session after `prepare`.
    """
    spark = records.sparkSession
    try:
        found = _called(records, call)
    finally:
        changed = other_meanings(spark)
        changed += [name for name, value in SETTINGS.items() if spark.conf.get(name) != value]
        if changed:
            prepare(spark)
    if changed:
        raise Refused(
            f"it changes {changed[0]} of the session, by which the SQL of all transforms means something else: leave "
            "that out"
        )
    return found


def _called(records: DataFrame, call: Callable[[DataFrame], DataFrame]) -> DataFrame:
    try:
        return selected_by(records, call)
    except (BadInput, Refused):
        raise
    except Exception as error:
        name = getattr(call, "__qualname__", repr(call))
        said = first_line(error)[:300]
        raise BadInput(f"{name} raises {type(error).__name__}: {said}; correct it") from error

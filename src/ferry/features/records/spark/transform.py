"""What a transform of the file makes of records, checked before anything is read (ADR 39).

Whoever writes records asks `transformed` for them; its digest is `ferry.plan.transform_digest`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ferry.config.flow.transforms import TransformSpec
from ferry.errors import BadInput, Refused
from ferry.features.records.spark.failures import SPARKS, first_line
from ferry.features.records.spark.meaning import SETTINGS, other_meanings
from ferry.features.records.spark.selection import own_columns, selected, selected_by
from ferry.features.records.spark.steps import about, carried_out
from ferry.plan.transform_digest import imported

COLUMNS = ("topic", "target", "partition", "offset", "timestamp", "key", "value", "headers", "poison")
"""What `transformed` answers, in this order. `topic`, `partition`, `offset` say where a record came from, `target` is
the whole name of the topic that it goes to; `poison` says why the transform cannot be applied to it, else null."""

ARROW_BYTES = 8 << 20
"""Most bytes that Spark hands to a Python worker at once, or one record: else it is 10,000 records, however large."""


def prepare(spark: SparkSession) -> None:
    """Set the session as transforms need it.

    PySpark's log of failed queries is silent then: it repeats, with Java's stack and values of records, what whoever
    catches the error tells in one sentence.
    """
    logging.getLogger("SQLQueryContextLogger").disabled = True
    for name in other_meanings(spark):
        spark.conf.unset(name)
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(ARROW_BYTES))


def transformed(records: DataFrame, spec: TransformSpec, targets: Mapping[str, str]) -> DataFrame:
    """The records that are left, in COLUMNS; `targets` are the names that the policy gives, by source topic.

    `records` have the columns of the source `ferry`, and are of topics in `targets`; one of another topic gets no
    target, and is poison. A record with `poison` has what it had before the transform. Nothing is read. Their session
    is one that `prepare` has set, once.

    Raises BadInput and Refused with the transform's key ahead: as `selected` and `selected_by`, for a function that
    cannot be imported, raises or changes the session, for what else Spark makes no query of, and for a salt that
    cannot be looked up.
    """
    for name, value in SETTINGS.items():
        if records.sparkSession.conf.get(name) != value:
            raise Refused(f"transforms need a session with {name} = {value}: call prepare(spark) first")
    secret = spec.secret()
    try:
        return _transformed(records, spec, secret, targets)
    except SPARKS as error:  # nothing is carried out yet: what Spark says of it is about the text of the file
        part = "sql" if spec.sql is not None else "function" if spec.function is not None else "topics"
        raise BadInput(
            f"ferry.transform.{spec.name}.{part}: Spark does not make a query of the transform: {first_line(error)}; "
            "correct its keys"
        ) from error


def _transformed(records: DataFrame, spec: TransformSpec, secret: bytes, targets: Mapping[str, str]) -> DataFrame:
    named = records.withColumns({"target": _named(targets), "poison": sf.lit(None).cast("string")})
    kept = named
    if spec.sql is not None:
        kept = about(spec, "sql", lambda: _completed(named, selected(named, spec.sql or ""), targets))
    elif spec.function is not None:
        call = about(spec, "function", lambda: imported(spec.function or ""))
        kept = about(spec, "function", lambda: _completed(named, _undisturbed(named, call), targets))
    return carried_out(kept, spec, secret, targets).select(*COLUMNS)


def _named(targets: Mapping[str, str]) -> Column:
    names: list[Column] = [sf.lit(text) for pair in targets.items() for text in pair]
    known = sf.create_map(*names) if names else sf.lit(None).cast("map<string,string>")
    return sf.try_element_at(known, sf.col("topic"))


def _completed(records: DataFrame, found: DataFrame, targets: Mapping[str, str]) -> DataFrame:
    """With the columns that a selection may leave out; BadInput for one that it may not change."""
    types = dict(found.dtypes)
    if "topic" not in types:
        raise BadInput("the transform drops the column topic: select it too, as by SELECT * EXCEPT (...)")
    if "topic" not in own_columns(records, found):
        raise BadInput(
            "the transform changes the column topic, which says where a record came from: leave it as it is, and change"
            " target, the topic that it goes to"
        )
    for column in ("target", "poison"):
        if types.get(column, "string") not in ("string", "void"):
            raise BadInput(f"the transform makes the column {column} {types[column]}, it has to be string: cast it")
    if "target" not in types:
        found = found.withColumn("target", _named(targets))
    return found if types.get("poison") == "string" else found.withColumn("poison", sf.lit(None).cast("string"))


def _undisturbed(records: DataFrame, call: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """As `_called`. Nothing but a function changes a session after `prepare`: Refused, and the session is set again."""
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

"""What a transform of the file makes of records, checked before anything is read (ADR 39).

Whoever writes records asks `transformed` for them; whoever plans asks `digest_of` for the transform's digest.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.version import __version__ as spark_version

from ferry.config.flow.transforms import ANSI, TIME_ZONE, TransformSpec
from ferry.errors import BadInput, Refused
from ferry.spark.records.selection import own_columns, selected, selected_by
from ferry.spark.records.steps import about, carried_out

COLUMNS = ("topic", "target", "partition", "offset", "timestamp", "key", "value", "headers", "poison")
"""What `transformed` answers, in this order. `topic`, `partition`, `offset` say where a record came from, `target` is
the whole name of the topic that it goes to; `poison` says why the transform cannot be applied to it, else null."""

SETTINGS: Mapping[str, str] = {"spark.sql.session.timeZone": TIME_ZONE, "spark.sql.ansi.enabled": str(ANSI).lower()}
"""Settings of the session, which decide what an expression means: part of the digest."""


def prepare(spark: SparkSession) -> None:
    """Set the session as transforms need it."""
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)


def transformed(records: DataFrame, spec: TransformSpec, targets: Mapping[str, str]) -> DataFrame:
    """The records that are left, in COLUMNS; `targets` are the names that the policy gives, by source topic.

    `records` have the columns of the source `ferry`, and are of topics in `targets`; one of another topic gets no
    target, and is poison. A record with `poison` has what it had before the transform. Nothing is read.

    Raises BadInput and Refused with the transform's key ahead: as `selected` and `selected_by`, for a function that
    cannot be imported or raises, and for a salt that cannot be looked up.
    """
    spark = records.sparkSession
    for name, value in SETTINGS.items():
        if spark.conf.get(name) != value:
            raise Refused(f"transforms need a session with {name} = {value}: call prepare(spark) first")
    secret = spec.secret()
    named = records.withColumns({"target": _named(targets), "poison": sf.lit(None).cast("string")})
    kept = named
    if spec.sql is not None:
        kept = about(spec, "sql", lambda: _completed(named, selected(named, spec.sql or ""), targets))
    elif spec.function is not None:
        call = about(spec, "function", lambda: _imported(spec.function or ""))
        kept = about(spec, "function", lambda: _completed(named, _called(named, call), targets))
    return carried_out(kept, spec, secret, targets).select(*COLUMNS)


def digest_of(spec: TransformSpec) -> str:
    """The transform's digest with this Spark, and with the text of the function's module. Raises as `transformed`."""
    code = ""
    if spec.function is not None:
        call = about(spec, "function", lambda: _imported(spec.function or ""))
        file = inspect.getsourcefile(inspect.unwrap(call)) if inspect.isroutine(call) else None
        module = sys.modules.get(getattr(call, "__module__", ""))
        file = file or getattr(module, "__file__", None)
        code = hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""
    return spec.digest(spark_version=spark_version, code=code)


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


def _imported(path: str) -> Callable[[DataFrame], DataFrame]:
    name, _, attribute = path.partition(":")
    try:
        found: Any = importlib.import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"{path} cannot be imported: there is no module {error.name}; install it, or put its folder on PYTHONPATH,"
            " where runs are planned and where Spark's driver is"
        ) from None
    except AttributeError:
        raise BadInput(f"{path} cannot be imported: module {name} has no {attribute}; correct the name") from None
    except Exception as error:
        raise BadInput(f"{path} cannot be imported: {type(error).__name__}: {error}; correct the module") from error
    if not callable(found):
        raise BadInput(f"{path} is {type(found).__name__}, and cannot be called: name a function of a DataFrame")
    return found  # type: ignore[no-any-return]


def _called(records: DataFrame, call: Callable[[DataFrame], DataFrame]) -> DataFrame:
    try:
        return selected_by(records, call)
    except (BadInput, Refused):
        raise
    except Exception as error:
        name = getattr(call, "__qualname__", repr(call))
        said = (str(error).strip().splitlines() or [""])[0][:300]
        raise BadInput(f"{name} raises {type(error).__name__}: {said}; correct it") from error

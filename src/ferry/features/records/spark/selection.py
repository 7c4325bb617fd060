"""Selections of records, by SQL or by a function, checked before anything is read by `ferry.features.records.rules`.

The check reads Spark's analysed plan, which is in the driver's JVM. Spark Connect has no access to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ferry.config.flow.selection_rules import reads
from ferry.errors import BadInput, Refused
from ferry.features.records.rules.selection import Node, check_columns, check_nodes
from ferry.features.records.spark.failures import SPARKS, first_line
from ferry.run.spark.session import is_remote

VIEW = "records"
"""The name of the records in SQL."""

_POSITION = re.compile(r"line (\d+),? pos (\d+)")
_FROM_TEXT = ("Cast", "ParseToDate", "ParseToTimestamp")
_TIMES = ("date", "timestamp", "timestamp_ntz", "time")
_QUOTED = re.compile(r"['\"](.*)['\"]", re.DOTALL)
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_INTERNAL = "[INTERNAL_ERROR"


def selected(records: DataFrame, sql: str) -> DataFrame:
    """Return what `SELECT ... FROM records WHERE ...` makes of the records.

    Raises BadInput for SQL that Spark does not understand, with its place in the text, or at which Spark itself breaks
    off. Raises BadInput for columns that are missing or of another type, or if the session has a temporary view of that
    name. Raises Refused for a query that is not a selection. Nothing is read, and no command in `sql` is carried out.
    """
    spark = records.sparkSession
    _check_session(spark)
    try:
        # It is parsed first, because a command would be carried out at once.
        parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)  # noqa: SLF001 - no other way
    except SPARKS as error:
        raise BadInput(_said(error)) from None
    check_nodes(_written(parsed))
    try:
        # It hides a table of that name in a catalog.
        records.createTempView(VIEW)
    except AnalysisException:
        raise BadInput(
            f"the session has a temporary view named {VIEW} already: drop it, or use another session"
        ) from None
    try:
        found = spark.sql(sql)
    except SPARKS as error:  # some of its errors have no class in Python, and come with Java's stack
        raise BadInput(_said(error)) from None
    finally:
        spark.catalog.dropTempView(VIEW)
    return _checked(records, found)


def selected_by(records: DataFrame, function: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Return what a function makes of the records.

    Raises BadInput for a result that is not a DataFrame, or whose columns are missing or of another type. Raises
    Refused for a result that is not a selection. Both name the function. Raises what the function raises.
    """
    _check_session(records.sparkSession)
    name = getattr(function, "__qualname__", repr(function))
    found = function(records)
    if not isinstance(found, DataFrame):
        raise BadInput(
            f"{name} answers {type(found).__name__}: it has to answer the DataFrame that it makes of records"
        )
    try:
        return _checked(records, found)
    except (BadInput, Refused) as error:
        raise type(error)(f"{name}: {error}") from None


def _check_session(spark: SparkSession) -> None:
    if is_remote(spark):
        raise Refused("a transform is checked in the driver's JVM, which Spark Connect hides: use a session without it")


def own_columns(records: DataFrame, found: DataFrame) -> frozenset[str]:
    """Return the columns of `found` that are unchanged columns of `records`."""
    attributes, sources = (
        {one.name(): one.exprId() for one in _each(frame._jdf.queryExecution().analyzed().output())}  # noqa: SLF001 - as above
        for frame in (found, records)
    )
    return frozenset(name for name, number in attributes.items() if name in sources and number.equals(sources[name]))


def _checked(records: DataFrame, found: DataFrame) -> DataFrame:
    base = records._jdf.queryExecution().analyzed()  # noqa: SLF001 - as above
    analysed = found._jdf.queryExecution().analyzed()  # noqa: SLF001 - as above
    check_nodes(_above(analysed, base))
    check_columns({name: kind.replace(" ", "") for name, kind in found.dtypes}, own_columns(records, found))
    return found


def _above(plan: Any, base: Any) -> Iterator[Node]:
    """Iterate over the operators above the records, and their expressions, down to the records' own plan."""
    if plan.equals(base) or plan.sameResult(base):
        return
    yield _node(plan, is_plan=True)
    for expression in _each(plan.expressions()):
        yield from _expressions(expression)
    for child in _each(plan.children()):
        yield from _above(child, base)


def _written(plan: Any) -> Iterator[Node]:
    """Iterate over the operators of a text in its written form, before names are resolved.

    BadInput if it reads anything but the records.
    """
    if plan.getClass().getSimpleName() == "UnresolvedRelation":
        name = plan.tableName()
        if name.lower() != VIEW:
            raise BadInput(f"the transform {reads(name)}")
        return
    yield _node(plan, is_plan=True)
    for child in _each(plan.children()):
        yield from _written(child)


def _expressions(expression: Any) -> Iterator[Node]:
    """Iterate over an expression, inner ones first.

    An expression that is not deterministic makes all around it so, and is the one to be named.
    """
    for child in _each(expression.children()):
        yield from _expressions(child)
    yield _node(expression, is_plan=False)


def _node(tree: Any, *, is_plan: bool) -> Node:
    kind = tree.getClass().getSimpleName()
    origin = tree.origin()
    line, column = origin.line(), origin.startPosition()
    return Node(
        kind=kind,
        name=kind if is_plan else tree.prettyName(),
        is_plan=is_plan,
        deterministic=is_plan or (tree.deterministic() and not _draws_iv(tree, kind)),
        has_plan=not is_plan and kind in ("ScalarSubquery", "Exists", "InSubquery", "ListQuery", "LateralSubquery"),
        position=(line.get(), column.get() + 1) if line.isDefined() and column.isDefined() else None,
        text=None if is_plan else _text(tree, kind),
    )


def _draws_iv(expression: Any, kind: str) -> bool:
    """Report whether `aes_encrypt` draws an initialisation vector for each value.

    Spark calls it deterministic all the same.
    """
    if kind != "AesEncrypt":
        return False
    mode, vector = (one.eval(None) if one.foldable() else None for one in (expression.mode(), expression.iv()))
    is_ecb = mode is not None and mode.toString().upper() == "ECB"
    return not is_ecb and (vector is None or not len(vector))


def _text(expression: Any, kind: str) -> str | None:
    """Return the text of a date or time: Spark resolves 'now' while it parses or plans, without any function."""
    if kind not in (*_FROM_TEXT, "Literal") or expression.dataType().typeName() not in _TIMES:
        return None
    if kind in _FROM_TEXT:
        child = expression.children().apply(0)
        is_text = child.foldable() and child.dataType().typeName() == "string"
        found = child.eval(None) if is_text else None
        return None if found is None else found.toString()
    origin = expression.origin()
    whole, start, stop = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    if not (whole.isDefined() and start.isDefined() and stop.isDefined()):
        return None
    written = _QUOTED.search(whole.get()[start.get() : stop.get() + 1])
    return None if written is None else written.group(1)


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _said(error: Exception) -> str:
    """Return Spark's sentence, the place in the text that it is about, and what to do."""
    found = _POSITION.search(str(error))
    where = "" if found is None else f", line {found.group(1)}, column {int(found.group(2)) + 1}"
    line = first_line(error)
    if line.startswith(_INTERNAL):
        return f"the transform's SQL makes Spark itself break off{where}: {line}; correct it, or say it in other words"
    sentence = _CONDITION.sub("", line).partition("; line")[0].strip()
    return f"the transform's SQL is not understood{where}: {sentence.removesuffix('.')}; correct it"

"""Whether a query is a selection: each row comes of one record, and comes of it again, whenever it is asked.

Only such a query may decide which records are written, and where (ADR 39): a record that one attempt sends to one
partition and the next to another would be there twice, or never.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ferry.errors import BadInput, Refused

KEPT: Mapping[str, str] = {
    "partition": "int",
    "offset": "bigint",
    "timestamp": "bigint",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
"""Columns that a selection has to have, with Spark's names of their types."""

UNCHANGED = ("partition", "offset")
"""Of these the record's own: they say where it came from."""

_PLANS = frozenset(("Project", "Filter", "SubqueryAlias", "View"))
"""Operators that make at most one row of each, and look at no other."""

_WRITTEN: Mapping[str, str] = {
    "Aggregate": "an aggregate",
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT",
    "Generate": "a generator such as explode",
    "GlobalLimit": "LIMIT",
    "Join": "a join",
    "LateralJoin": "a join",
    "LocalLimit": "LIMIT",
    "OneRowRelation": "a query without FROM records",
    "Sort": "ORDER BY",
    "Union": "UNION",
    "UnresolvedWith": "WITH",
    "Window": "a window function",
    "WithCTE": "WITH",
}
"""Other operators in the words of those who write them."""

_MOMENTARY = frozenset(
    (
        "current_catalog", "current_database", "current_date", "current_path", "current_schema", "current_time",
        "current_timestamp", "current_timezone", "current_user", "input_file_block_length", "input_file_block_start",
        "input_file_name", "localtimestamp", "now", "session_user", "user", "version",
    )
)  # fmt: skip
"""Functions that Spark calls deterministic, for they are so within one query. The next attempt is another query."""


_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


class Node(NamedTuple):
    """An operator or an expression of an analysed plan."""

    kind: str
    """The class in Spark."""
    name: str
    """Of an expression: the function's name in SQL."""
    is_plan: bool
    deterministic: bool
    has_plan: bool
    """An expression with a query of its own."""
    position: tuple[int, int] | None
    """Line and column of the text, from 1; None where Spark does not tell."""
    text: str | None = None
    """Of a date or time that is written as text: that text."""


def is_momentary(text: str) -> bool:
    """Whether Spark reads a text as a time of the moment in which it plans: 'now', 'today', also with a zone."""
    return _MOMENT.match(text) is not None


def check_nodes(nodes: Iterable[Node]) -> None:
    """Raise Refused for the first that a selection may not have: operators and expressions above the records."""
    for node in nodes:
        why = _why_not(node)
        if why is not None:
            raise Refused(f"the transform{_at(node.position)} {why}")


def _why_not(node: Node) -> str | None:
    if node.is_plan:
        if node.kind in _PLANS:
            return None
        what = _WRITTEN.get(node.kind, node.kind)
        return f"has {what}: each row has to come of one record, by SELECT, FROM records and WHERE alone"
    if node.has_plan:
        return "has a subquery: each row has to come of one record, by SELECT, FROM records and WHERE alone"
    if not node.deterministic or node.name in _MOMENTARY:
        return (
            f"calls {node.name}(), which is not the same each time: a retry would write other records than the attempt "
            "before it; use the record's timestamp, partition and offset instead, or a constant"
        )
    if node.text is not None and is_momentary(node.text):
        return (
            f"has the time '{node.text}', which is not the same each time: a retry would write other records than the "
            "attempt before it; use the record's timestamp instead, or a constant"
        )
    return None


def _at(position: tuple[int, int] | None) -> str:
    return "" if position is None else f", line {position[0]}, column {position[1]},"


def check_columns(types: Mapping[str, str], own: Iterable[str]) -> None:
    """Raise BadInput when the result lacks a column that a record needs, or has it in another type.

    `types` are Spark's names by column; `own` are the columns that are the record's very own.
    """
    for column, wanted in KEPT.items():
        found = types.get(column)
        if found is None:
            raise BadInput(f"the transform drops the column {column}: select it too, as by SELECT * EXCEPT (...)")
        if found != wanted:
            raise BadInput(f"the transform makes the column {column} {found}, it has to be {wanted}: cast it")
    for column in UNCHANGED:
        if column not in own:
            raise BadInput(
                f"the transform changes the column {column}, which says where a record came from: leave it as it is"
            )

"""Checks that a query is a selection: each row comes from one record, and from the same record whenever it is computed.

Only a selection may decide which records are written, and where (ADR 39). If one attempt sent a record to one partition
and the next attempt to another, the record would be there twice, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ferry.config.flow.selection_rules import (
    KEPT,
    MOMENTARY,
    UNCHANGED,
    changes,
    drops,
    is_momentary,
    not_of_one_record,
    not_the_same,
    of_the_moment,
    takes_share,
)
from ferry.errors import BadInput, Refused

_PLANS = frozenset(("Project", "Filter", "SubqueryAlias", "View"))
"""Operators that make at most one row of each row, and read no other."""

_WRITTEN: Mapping[str, str] = {
    "Aggregate": "an aggregate",
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT",
    "Except": "EXCEPT",
    "Generate": "a generator such as explode",
    "GlobalLimit": "LIMIT",
    "Intersect": "INTERSECT",
    "Join": "a join",
    "LateralJoin": "a join",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "OneRowRelation": "a query without FROM records",
    "RepartitionByExpression": "DISTRIBUTE BY",
    "Sort": "ORDER BY",
    "Union": "UNION",
    "UnresolvedQualify": "QUALIFY",
    "UnresolvedWith": "WITH",
    "Window": "a window function",
    "WithCTE": "WITH",
}
"""Other operators in the words of those who write them."""


class Node(NamedTuple):
    """An operator or an expression of an analysed plan."""

    kind: str
    """The class in Spark."""
    name: str
    """The function's name in SQL, of an expression."""
    is_plan: bool
    deterministic: bool
    has_plan: bool
    """Whether the expression has a query of its own."""
    position: tuple[int, int] | None
    """Line and column of the text, from 1; None if Spark does not report them."""
    text: str | None = None
    """The text of a date or time that is written as text."""


def check_nodes(nodes: Iterable[Node]) -> None:
    """Raise Refused for the first node that a selection may not have. `nodes` are those above the records."""
    for node in nodes:
        why = _why_not(node)
        if why is not None:
            raise Refused(f"the transform{_at(node.position)} {why}")


def _why_not(node: Node) -> str | None:
    if node.is_plan:
        return _why_not_plan(node.kind)
    if node.has_plan:
        return not_of_one_record("a subquery")
    if not node.deterministic or node.name in MOMENTARY:
        return not_the_same(node.name)
    if node.text is not None and is_momentary(node.text):
        return of_the_moment(node.text)
    return None


def _why_not_plan(kind: str) -> str | None:
    if kind in _PLANS:
        return None
    return takes_share() if kind == "Sample" else not_of_one_record(_WRITTEN.get(kind, kind))


def _at(position: tuple[int, int] | None) -> str:
    return "" if position is None else f", line {position[0]}, column {position[1]},"


def check_columns(types: Mapping[str, str], own: Iterable[str]) -> None:
    """Raise BadInput when the result lacks a column that a record needs, or has it in another type.

    `types` are Spark's names by column; `own` are the columns that are the record's own, unchanged.
    """
    for column, wanted in KEPT.items():
        found = types.get(column)
        if found is None:
            raise BadInput(f"the transform {drops(column)}")
        if found != wanted:
            raise BadInput(f"the transform makes the column {column} {found}, it has to be {wanted}: cast it")
    for column in UNCHANGED:
        if column not in own:
            raise BadInput(f"the transform {changes(column)}")

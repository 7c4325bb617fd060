"""Expressions of SQL that name a topic by another topic's name, computed without Spark when a run is planned.

Only expressions that are the same for all records of a topic are computed, with text functions that Java and Python
share. These are the topic's name (`topic`), the policy's name of the copy (`target`), literals, `concat` and
`regexp_replace`. Spark evaluates the expression for each record, and a record that it sends elsewhere is refused. So a
difference to Spark's reading writes nothing wrong. sqlglot reads the text, in its dialect of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ferry.config.text.java_replacement import java_replacement
from ferry.config.text.regex import NotExpressible, compile_java

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_COLUMNS = ("topic", "target")


class NotKnown(Exception):
    """Why the name is known for each record only, as half a sentence whose subject is the expression."""


@lru_cache(maxsize=4096)
def topic_by_sql(sql: str, topic: str, target: str) -> str:
    """Return the name that `sql` gives for records of `topic`, where `target` is the policy's name.

    Raises NotKnown where a record is needed to decide, or Spark.
    """
    return _text(_parsed(sql), {"topic": topic, "target": target})


@lru_cache(maxsize=256)
def _parsed(sql: str) -> Expr:
    """Return the text as a tree, all of whose columns are known of a topic."""
    import sqlglot  # noqa: PLC0415 - it takes a tenth of a second, and few files need it

    try:
        found = sqlglot.parse_one(sql, read="spark")
    except sqlglot.errors.SqlglotError:
        raise NotKnown("is understood by Spark alone") from None
    for column in found.find_all(sqlglot.exp.Column):
        if column.name.lower() not in _COLUMNS or column.table.lower() not in ("", "records"):
            raise NotKnown(f"asks each record for its {column.name}")
    return found


def _text(node: Any, columns: Mapping[str, str]) -> str:  # noqa: PLR0911 - one line for each kind
    """Return the text of a node."""
    given = {name for name, one in node.args.items() if one not in (None, [], False)}
    match type(node).__name__:
        case "Column" if given <= {"this", "table"}:
            return columns[node.name.lower()]
        case "Literal" if node.is_string:
            return str(node.this)
        case "RawString":
            return str(node.this)
        case "Paren":
            return _text(node.this, columns)
        case "DPipe":
            return _text(node.this, columns) + _text(node.expression, columns)
        case "Concat":
            return "".join(_text(one, columns) for one in node.expressions)
        case "RegexpReplace" if given <= {"this", "expression", "replacement"}:
            return _replaced(*(_text(node.args[name], columns) for name in ("this", "expression", "replacement")))
    raise NotKnown("has more than text, concat and regexp_replace, which are all that a plan works out")


def _replaced(text: str, pattern: str, replacement: str) -> str:
    try:
        return compile_java(pattern).sub(java_replacement(replacement), text)
    except (NotExpressible, re.error, ValueError, IndexError):
        raise NotKnown("has REGEXP_REPLACE with what Spark alone works out") from None

"""What is wrong with a transform's SQL, as far as it is certain without Spark: checked wherever a file is read.

sqlglot reads the text, in its dialect of Spark. It is not Spark: what only sqlglot does not understand is a doubt and
no error. What it does not check (types, queries in expressions) is left to the job, which asks Spark before it copies
anything. A function that Spark does not have by itself is a doubt, because a catalogue may have it. The tests compare
with Spark: what is called wrong here, Spark refuses.
"""

from __future__ import annotations

from functools import lru_cache

from ferry.config.flow.record_text import TABLE, Slip, Text
from ferry.config.flow.record_tree import Query
from ferry.config.flow.selection_rules import not_of_one_record

_SETS = {"Union": "UNION", "Except": "EXCEPT", "Intersect": "INTERSECT"}
"""Two queries in one, by sqlglot's name."""


def query_slip(sql: str) -> Slip | None:
    """Return the first slip of `SELECT ... FROM records WHERE ...`; None where none is found."""
    return _slip(sql, "", "", True)


def condition_slip(sql: str, *, columns_known: bool) -> Slip | None:
    """Return the first slip of a condition; None where none is found.

    `columns_known`: the condition is on records as they are read, and not on a query's result.
    """
    return _slip(sql, f"SELECT * FROM {TABLE} WHERE TRUE AND (\n", "\n)", columns_known)


def expression_slip(sql: str, *, columns_known: bool) -> Slip | None:
    """Return the first slip of an expression of a record; None where none is found.

    `columns_known`: the expression is on records as they are read, and not on a query's result.
    """
    return _slip(sql, "SELECT * EXCEPT (target), CAST((\n", f"\n) AS STRING) AS target FROM {TABLE}", columns_known)


@lru_cache(maxsize=256)
def _slip(sql: str, before: str, after: str, columns_known: bool) -> Slip | None:
    import sqlglot  # noqa: PLC0415 - it takes a tenth of a second, and few files need it

    text = Text(f"{before}{sql}{after}", len(before), len(before) + len(sql))
    try:
        text.tokens = sqlglot.tokenize(text.whole, read="spark")
    except sqlglot.errors.TokenError as error:
        return text.unclosed(error)
    found = next(text.written(), None)
    if found is not None:
        return found
    try:
        trees = sqlglot.parse(text.whole, read="spark")
    except sqlglot.errors.ParseError as error:
        first = error.errors[0] if error.errors else {}
        return text.doubt(first.get("line"), first.get("col"))
    except (sqlglot.errors.SqlglotError, RecursionError):
        return text.doubt(None, None)
    queries = [tree for tree in trees if tree is not None]
    if len(queries) == 1 and type(queries[0]).__name__ == "Select":
        found = next(Query(queries[0], text, columns_known).slips(), None)
    elif len(queries) == 1 and type(queries[0]).__name__ in _SETS:
        found = Slip(why=not_of_one_record(_SETS[type(queries[0]).__name__]))
    # Otherwise it is a query in brackets, or something that only Spark reads: Spark decides.
    return found or next(text.unknown_functions(), None)

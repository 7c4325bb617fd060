"""A transform's SQL as sqlglot's tree, and what is certain to be wrong with it: see `ferry.config.flow.record_sql`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from ferry.config.flow.record_text import TABLE, Slip, Text
from ferry.config.flow.selection_rules import (
    KEPT,
    UNCHANGED,
    changes,
    drops,
    is_momentary,
    not_of_one_record,
    not_the_same,
    of_the_moment,
    reads,
)

RECORD_COLUMNS = (
    "topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers", "target", "poison",
)  # fmt: skip
"""The columns that SQL can name: a record's columns in Spark, and those that Ferry adds."""

_BARE = frozenset(
    ("current_date", "current_time", "current_timestamp", "current_user", "localtimestamp", "session_user", "user")
)
"""Functions that need no brackets, where no column has their name."""
_UNITS = frozenset(
    (
        "year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond",
        "microsecond", "nanosecond",
    )
)  # fmt: skip
"""Words in functions of time, which sqlglot may take for columns."""
_CLAUSES = {
    "joins": "a join",
    "group": "an aggregate",
    "having": "an aggregate",
    "order": "ORDER BY",
    "sort": "ORDER BY",
    "cluster": "ORDER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "distinct": "DISTINCT",
    "laterals": "a generator such as explode",
    "with_": "WITH",
}
"""Parts of a query that sqlglot knows, and that make it no selection."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that a query's FROM offers."""

    names: tuple[str, ...]
    """The names as written, for messages; they are compared in lower case."""
    plain: frozenset[str]
    """In lower case: those of the record's own columns that have no fields."""
    tables: frozenset[str]
    """In lower case: the tables that may be named before a column."""
    is_known: bool
    """Whether these are all columns."""

    def has(self, name: str) -> bool:
        """Return whether there is a column of that name."""
        return name.lower() in {one.lower() for one in self.names}

    def is_table(self, parts: Sequence[str], aliases: set[str]) -> bool:
        """Return whether a name begins with a table's.

        If a table and a column have the same name, the one that has the rest of the name is meant.
        """
        if len(parts) < 2 or parts[0].lower() not in self.tables:
            return False
        return self.has(parts[1]) or not (self.has(parts[0]) or parts[0].lower() in aliases)


_OF_RECORDS = _Columns(
    names=RECORD_COLUMNS,
    plain=frozenset(name.lower() for name in RECORD_COLUMNS if name != "headers"),
    tables=frozenset((TABLE,)),
    is_known=True,
)
_NOTHING = _Columns(names=(), plain=frozenset(), tables=frozenset(), is_known=False)


class Query:
    """One SELECT, as sqlglot's tree."""

    def __init__(self, tree: Any, text: Text, columns_known: bool) -> None:
        self._tree, self._text, self._known = tree, text, columns_known

    def slips(self) -> Iterator[Slip]:
        """Yield all slips that are certain."""
        from sqlglot import expressions as exp  # noqa: PLC0415 - it takes a tenth of a second, and few files need it

        yield from self._parts(exp)
        if self._tree.args.get("from_") is None:
            yield Slip(why=not_of_one_record(f"a query without FROM {TABLE}"))
            return
        chain = [*_chain(exp, self._tree)]
        if any(all(one is not known for known in chain) for one in self._tree.find_all(exp.Select)):
            return  # a query in an expression: Spark decides
        table = chain[-1].args["from_"].this if chain[-1].args.get("from_") else None
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or _is_altered(table):
            return
        name = ".".join(part.name for part in table.parts)
        if name.lower() != TABLE:
            yield self._text.slip(table.this.meta.get("start", 0), reads(name))
            return
        if self._known:
            offered = _OF_RECORDS
            for query in reversed(chain):
                offered = _from(query.args["from_"].this, offered)
                yield from self._columns(exp, query, offered)
                offered = _answered(exp, query, offered)
            if len(chain) == 1:
                yield from self._result(exp)

    def _parts(self, exp: Any) -> Iterator[Slip]:
        """Yield a slip for each part that no selection may have."""
        for query in self._tree.find_all(exp.Select):
            for name, what in _CLAUSES.items():
                if query.args.get(name):
                    yield Slip(why=not_of_one_record(what))
        for cast in self._tree.find_all(exp.Cast):
            text = cast.this
            if isinstance(text, exp.Literal) and text.is_string and _is_time(cast) and is_momentary(text.name):
                yield self._text.slip(self._text.place_of(text.name), of_the_moment(text.name))
        if self._tree.find(exp.Window) is not None:
            yield Slip(why=not_of_one_record("a window function"))

    def _columns(self, exp: Any, query: Any, offered: _Columns) -> Iterator[Slip]:
        """Yield a slip for each name that no column has, and for fields of columns that have none."""
        own = [one for one in query.find_all(exp.Column, exp.Alias) if one.find_ancestor(exp.Select) is query]
        aliases = {one.alias.lower() for one in own if isinstance(one, exp.Alias)}
        variables = {name.name.lower() for one in query.find_all(exp.Lambda) for name in one.expressions}
        for column in own:
            parts = (
                [part for part in column.parts if isinstance(part, exp.Identifier)] if _is_named(exp, column) else []
            )
            behind = parts[1:] if offered.is_table([part.name for part in parts], aliases) else parts
            name = behind[0].name.lower() if behind else ""
            if not behind or len(parts) != len(column.parts) or "start" not in behind[0].meta or name in variables:
                continue
            if offered.has(name):
                yield from self._fields(exp, column, behind, offered)
                continue
            if not offered.is_known or (name in aliases and not column.find_ancestor(exp.Where)):
                continue
            if len(parts) > 1 or not self._may_be_no_column(exp, column, name):
                yield self._missing(behind[0], offered, alone=len(parts) == 1)
        for name in ("current_date", "current_timestamp", "current_user", "session_user"):
            kind = getattr(exp, "".join(part.title() for part in name.split("_")))
            if query.find(kind) is not None:
                word = next((one for one in self._text.tokens if one.text.lower() == name), None)
                if word is not None:
                    yield self._text.slip(word.start, not_the_same(name))

    def _fields(self, exp: Any, column: Any, parts: Sequence[Any], offered: _Columns) -> Iterator[Slip]:
        is_asked = len(parts) > 1 or (isinstance(column.parent, exp.Bracket) and column.arg_key == "this")
        if is_asked and parts[0].name.lower() in offered.plain:
            field = parts[1].name if len(parts) > 1 else "x"
            yield self._text.slip(parts[0].meta["start"], _no_fields(parts[0].name, field))

    def _missing(self, named: Any, offered: _Columns, *, alone: bool) -> Slip:
        at = named.meta["start"]
        if alone and named.name.lower() in _BARE and not named.args.get("quoted"):
            return self._text.slip(at, not_the_same(named.name.lower()))
        near = get_close_matches(named.name, offered.names, 1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(offered.names)}"
        whose = "records do" if offered.names == RECORD_COLUMNS else "the query in brackets does"
        return self._text.slip(at, f"names a column {named.name}, which {whose} not have; {remedy}")

    def _may_be_no_column(self, exp: Any, column: Any, name: str) -> bool:
        """Return whether a word is one that functions of Spark take, and that sqlglot reads as a column."""
        return name in _UNITS and isinstance(column.parent, exp.Func)

    def _result(self, exp: Any) -> Iterator[Slip]:
        """Yield a slip for each column that the result lacks or changes, where its names are plain."""
        of_star: set[str] = set()
        named: dict[str, Any] = {}
        for one in self._tree.expressions:
            if isinstance(one, exp.Star) and {name for name, arg in one.args.items() if arg} <= {"except_"}:
                out = {column.name.lower() for column in one.args.get("except_") or ()}
                of_star |= {name.lower() for name in RECORD_COLUMNS} - out
            elif type(one) in (exp.Alias, exp.Column) and not isinstance(one.this, exp.Star):
                named[one.alias_or_name.lower()] = one.this if type(one) is exp.Alias else one
            else:
                return
        for column in ("topic", *KEPT):
            if column not in of_star and column not in named:
                yield Slip(why=drops(column))
        for column in ("topic", *UNCHANGED):
            made = None if column in of_star else named.get(column)
            if made is not None and isinstance(made, exp.Literal | exp.Binary | exp.Func):
                yield Slip(why=changes(column))


def _is_time(cast: Any) -> bool:
    kind = cast.to.this.name if hasattr(cast.to.this, "name") else ""
    return kind.startswith(("DATE", "TIMESTAMP"))


def _is_named(exp: Any, one: Any) -> bool:
    return isinstance(one, exp.Column) and not isinstance(one.this, exp.Star)


def _no_fields(column: str, field: str) -> str:
    how = f"; read JSON in it by get_json_object(CAST({column} AS STRING), '$.{field}')"
    return f"asks the column {column} for a field, which has none{how if column.lower() in ('key', 'value') else ''}"


def _chain(exp: Any, tree: Any) -> Iterator[Any]:
    """Yield a query, the one in its FROM, and so on to the innermost."""
    while True:
        yield tree
        source = tree.args.get("from_")
        inner = None if source is None else source.this
        if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select) or _is_altered(inner):
            return
        tree = inner.this


def _is_altered(table: Any) -> bool:
    """Return whether something gives a table, or a query in brackets, other rows or columns than it has."""
    return any(table.args.get(name) for name in ("sample", "pivots", "joins", "laterals"))


def _from(source: Any, inner: _Columns) -> _Columns:
    """Return what a FROM offers: the records, or the result of the query within."""
    alias = source.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return _NOTHING
    names = {source.alias.lower()} - {""}
    return replace(inner, tables=inner.tables | names if inner is _OF_RECORDS else frozenset(names))


def _answered(exp: Any, query: Any, offered: _Columns) -> _Columns:
    """Return the columns of a query's result, where its names are plain."""
    names: dict[str, str] = {}
    plain: set[str] = set()
    for one in query.expressions:
        if isinstance(one, exp.Star) and {name for name, arg in one.args.items() if arg} <= {"except_"}:
            out = {column.name.lower() for column in one.args.get("except_") or ()}
            names |= {name.lower(): name for name in offered.names if name.lower() not in out}
            plain |= offered.plain - out
            if not offered.is_known:
                return _NOTHING
        elif type(one) in (exp.Alias, exp.Column) and not isinstance(one.this, exp.Star):
            names[one.alias_or_name.lower()] = one.alias_or_name
            plain.discard(one.alias_or_name.lower())
        else:
            return _NOTHING
    return _Columns(names=tuple(names.values()), plain=frozenset(plain), tables=frozenset(), is_known=True)

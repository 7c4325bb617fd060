"""What is wrong with a transform's SQL, as far as it is certain without Spark: asked wherever a file is read.

sqlglot reads the text, by its dialect of Spark. It is not Spark: what it alone does not understand is a doubt and no
error, and what it does not look at (types, functions, queries within queries) is left to the job, which asks Spark
before it copies anything. Spark itself is the oracle of the tests: what is called wrong here, it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

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
    reads,
)

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

RECORD_COLUMNS = (
    "topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers", "target", "poison",
)  # fmt: skip
"""What SQL can name: a record's columns in Spark, and those that Ferry adds."""

_TABLE = "records"
_RANDOM = frozenset(
    (
        "java_method", "monotonically_increasing_id", "rand", "randn", "random", "randstr", "reflect", "shuffle",
        "spark_partition_id", "try_reflect", "uniform", "uuid",
    )
)  # fmt: skip
"""Functions that Spark calls not deterministic."""
_BARE = frozenset(
    ("current_date", "current_time", "current_timestamp", "current_user", "localtimestamp", "session_user", "user")
)
"""Functions that need no brackets, where no column has their name."""
_GENERATORS = frozenset(("explode", "explode_outer", "inline", "inline_outer", "posexplode", "posexplode_outer"))
_AGGREGATES = frozenset(("avg", "count", "max", "min", "sum"))
_UNITS = frozenset(
    (
        "year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond",
        "microsecond", "nanosecond",
    )
)  # fmt: skip
"""Words in functions of time, which sqlglot may take for columns."""
_BEGINNINGS = frozenset(("SELECT", "FROM", "TABLE", "("))
"""Of queries; a command is none."""
_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_ENDLESS = frozenset((",", ".", "=", "==", "<", ">", "<=", ">=", "<=>", "<>", "!=", "+", "-", "/", "||", "->", "::"))
"""What nothing ends with."""
_MISSING = re.compile(r"Missing (?:(?P<mark>.+) from )?(?P<line>\d+):(?P<column>\d+)")

_DOUBT = (
    "is not understood without Spark{}: correct it if it is a slip; the job asks Spark before it copies anything, and "
    "ferry plan --sample asks it now"
)

_CLAUSES = {
    "joins": "a join",
    "group": "an aggregate",
    "having": "an aggregate",
    "order": "ORDER BY",
    "sort": "ORDER BY",
    "limit": "LIMIT",
    "distinct": "DISTINCT",
    "laterals": "a generator such as explode",
    "with_": "WITH",
}
"""Parts of a query that sqlglot knows, and that make it no selection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """What is wrong with a text, at a place in it, from 1."""

    why: str
    """Half a sentence, whose subject is the text."""
    line: int | None = None
    column: int | None = None
    is_sure: bool = True
    """False: Spark may understand what is not understood here."""

    def __str__(self) -> str:
        where = "" if self.line is None else f"at line {self.line}, column {self.column} "
        return f"{where}{self.why}"


def query_slip(sql: str) -> Slip | None:
    """The first slip of `SELECT ... FROM records WHERE ...`; None where none is found."""
    return _slip(sql, "", "", True)


def condition_slip(sql: str, *, columns_known: bool) -> Slip | None:
    """Of a condition; `columns_known`: it is asked of records as they are read, and of no query's result."""
    return _slip(sql, f"SELECT * FROM {_TABLE} WHERE TRUE AND (\n", "\n)", columns_known)


def expression_slip(sql: str, *, columns_known: bool) -> Slip | None:
    """Of an expression of a record; else as of a condition."""
    return _slip(sql, "SELECT * EXCEPT (target), CAST((\n", f"\n) AS STRING) AS target FROM {_TABLE}", columns_known)


@lru_cache(maxsize=256)
def _slip(sql: str, before: str, after: str, columns_known: bool) -> Slip | None:
    # Here, for to import it takes a tenth of a second, and few files need it.
    import sqlglot  # noqa: PLC0415
    from sqlglot.errors import ParseError, SqlglotError, TokenError  # noqa: PLC0415

    text = _Text(f"{before}{sql}{after}", len(before), len(before) + len(sql))
    try:
        text.tokens = sqlglot.tokenize(text.whole, read="spark")
    except TokenError as error:
        return text.unclosed(error)
    found = next(text.written(), None)
    if found is not None:
        return found
    try:
        trees = sqlglot.parse(text.whole, read="spark")
    except ParseError as error:
        told = error.errors[0] if error.errors else {}
        return text.doubt(told.get("line"), told.get("col"))
    except (SqlglotError, RecursionError):
        return text.doubt(None, None)
    if len(trees) != 1 or type(trees[0]).__name__ != "Select":
        return None  # several statements, brackets around it, or what only Spark reads: its to say
    return next(_Query(trees[0], text, columns_known).slips(), None)


class _Text:
    """A text, what it consists of, and where in the writer's part of it something stands."""

    def __init__(self, whole: str, start: int, end: int) -> None:
        self.whole, self._start, self._end = whole, start, end
        self.tokens: Sequence[Token] = ()

    def slip(self, at: int, why: str, *, is_sure: bool = True) -> Slip:
        """A slip at a place in the whole text."""
        at = min(max(at, self._start), max(self._start, self._end - 1))
        line = self.whole.count("\n", self._start, at) + 1
        column = at - max(self._start, self.whole.rfind("\n", self._start, at) + 1) + 1
        return Slip(why=why, line=line, column=column, is_sure=is_sure)

    def unclosed(self, error: Exception) -> Slip:
        """What could not be cut into words."""
        found = _MISSING.search(f"{error.__cause__}")
        if found is None:
            return self.doubt(None, None)
        lines = self.whole.split("\n")[: int(found["line"]) - 1]
        at = sum(len(line) + 1 for line in lines) + max(0, int(found["column"]) - 1)
        at = max(at, self.whole.find(found["mark"] or "", at))
        return self.slip(at, f"opens {found['mark'] or 'a comment'} that nothing closes: close it")

    def written(self) -> Iterator[Slip]:
        """What the words alone say."""
        first = self.tokens[0] if self.tokens and not self._start else None
        if first is not None and first.text.upper() == "WITH":
            yield self.slip(first.start, not_of_one_record("WITH"))
        elif first is not None and first.text.upper() not in _BEGINNINGS:
            yield self.slip(first.start, f"begins with {first.text}: write SELECT ... FROM {_TABLE} WHERE ...")
        mine = [token for token in self.tokens if self._start <= token.start < self._end]
        yield from self._brackets(mine)
        if mine and self._is_sign(mine[-1], _ENDLESS):
            yield self.slip(mine[-1].start, f"ends with {mine[-1].text}, which wants something behind it: write it")
        for number, token in enumerate(mine):
            name = token.text.lower()
            after = mine[number + 1] if number + 1 < len(mine) else None
            before = mine[number - 1] if number else None
            if name not in _RANDOM | MOMENTARY | _GENERATORS | _AGGREGATES or after is None or self._quoted(token):
                continue
            if not self._is_sign(after, ("(",)) or (before is not None and self._is_sign(before, (".",))):
                continue
            if name in _GENERATORS:
                yield self.slip(token.start, not_of_one_record("a generator such as explode"))
            elif name in _AGGREGATES:
                yield self.slip(token.start, not_of_one_record("an aggregate"))
            else:
                yield self.slip(token.start, not_the_same(name))

    def _brackets(self, mine: Sequence[Token]) -> Iterator[Slip]:
        """A bracket without its other one; where the whole has such, it is in the writer's part."""
        if self._unpaired(self.tokens) is not None:
            token = self._unpaired(mine) or self._unpaired(self.tokens)
            if token is not None and token.text in _CLOSE:
                yield self.slip(token.start, f"has a {token.text} that nothing opens: take it out")
            elif token is not None:
                yield self.slip(token.start, f"opens {token.text} and does not close it: close it")

    def _unpaired(self, tokens: Sequence[Token]) -> Token | None:
        opened: list[Token] = []
        for token in tokens:
            if self._is_sign(token, _OPEN):
                opened.append(token)
            elif self._is_sign(token, _CLOSE) and (
                not opened or _OPEN.index(opened.pop().text) != _CLOSE.index(token.text)
            ):
                return token
        return opened[-1] if opened else None

    def _is_sign(self, token: Token, signs: Sequence[str] | frozenset[str]) -> bool:
        return token.text in signs and not self._quoted(token)

    def _quoted(self, token: Token) -> bool:
        return self.whole[token.start : token.start + len(token.text)] != token.text

    def doubt(self, line: int | None, column: int | None) -> Slip:
        """What sqlglot does not understand, and Spark may; by where the word ends, as sqlglot tells."""
        word = next((one for one in self.tokens if (one.line, one.col) == (line, column)), None)
        if word is None or not self._start <= word.start < self._end:
            return Slip(why=_DOUBT.format(""), is_sure=False)
        return self.slip(word.start, _DOUBT.format(f" (near {word.text})"), is_sure=False)

    def place_of(self, quoted: str) -> int:
        """Where a text in quotes stands."""
        found = (one.start for one in self.tokens if one.text == quoted and self._quoted(one))
        return next(found, self._start)


class _Query:
    """One SELECT, as sqlglot's tree."""

    def __init__(self, tree: Any, text: _Text, columns_known: bool) -> None:
        self._tree, self._text, self._known = tree, text, columns_known

    def slips(self) -> Iterator[Slip]:
        """All that is certain."""
        from sqlglot import expressions as exp  # noqa: PLC0415 - as above

        tree = self._tree
        for name, what in _CLAUSES.items():
            if tree.args.get(name):
                yield Slip(why=not_of_one_record(what))
        for cast in tree.find_all(exp.Cast):
            text = cast.this
            if isinstance(text, exp.Literal) and text.is_string and _is_time(cast) and is_momentary(text.name):
                yield self._text.slip(self._text.place_of(text.name), of_the_moment(text.name))
        window = tree.find(exp.Window)
        if window is not None:
            yield Slip(why=not_of_one_record("a window function"))
        source = tree.args.get("from_")
        if source is None:
            yield Slip(why=not_of_one_record(f"a query without FROM {_TABLE}"))
            return
        table = source.this
        if any(one is not tree for one in tree.find_all(exp.Select)) or not isinstance(table, exp.Table):
            return  # a query in a query: Spark's to say
        if not isinstance(table.this, exp.Identifier) or table.args.get("sample"):
            return
        name = ".".join(part.name for part in table.parts)
        if name.lower() != _TABLE:
            yield self._text.slip(table.this.meta.get("start", 0), reads(name))
            return
        if self._known:
            yield from self._columns(exp, {_TABLE, table.alias.lower()} - {""})
            yield from self._result(exp)

    def _columns(self, exp: Any, tables: set[str]) -> Iterator[Slip]:
        """Names that nothing has."""
        aliases = {one.alias.lower() for one in self._tree.find_all(exp.Alias)}
        variables = {name.name.lower() for one in self._tree.find_all(exp.Lambda) for name in one.expressions}
        columns = {name.lower() for name in RECORD_COLUMNS}
        for column in self._tree.find_all(exp.Column):
            if isinstance(column.this, exp.Star):
                continue
            parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
            if len(parts) != len(column.parts):
                continue
            named = parts[1] if len(parts) > 1 and parts[0].name.lower() in tables else parts[0]
            name = named.name.lower()
            visible = columns | variables | (set() if column.find_ancestor(exp.Where) else aliases)
            if name in visible or (len(parts) == 1 and self._may_be_no_column(exp, column, name)):
                continue
            at = named.meta.get("start")
            if at is None:
                continue
            if len(parts) == 1 and name in _BARE and not named.args.get("quoted"):
                yield self._text.slip(at, not_the_same(name))
            else:
                near = get_close_matches(named.name, RECORD_COLUMNS, 1)
                remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(RECORD_COLUMNS)}"
                yield self._text.slip(at, f"names a column {named.name}, which records do not have; {remedy}")
        for name in ("current_date", "current_timestamp", "current_user", "session_user"):
            kind = getattr(exp, "".join(part.title() for part in name.split("_")))
            if self._tree.find(kind) is not None:
                word = next((one for one in self._text.tokens if one.text.lower() == name), None)
                if word is not None:
                    yield self._text.slip(word.start, not_the_same(name))

    def _may_be_no_column(self, exp: Any, column: Any, name: str) -> bool:
        """Words that functions of Spark take, and that sqlglot reads as columns."""
        return name in _UNITS and isinstance(column.parent, exp.Func)

    def _result(self, exp: Any) -> Iterator[Slip]:
        """Columns that the result lacks or has anew, where its names are plain."""
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

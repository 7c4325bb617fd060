"""Expressions of SQL that name a topic by another topic's name, worked out without Spark when a run is planned.

Only what is the same for all records of a topic: its name (`topic`), the policy's name of the copy (`target`),
constants, and functions of text. Spark carries the expression out for each record, and a record that it sends elsewhere
is refused; so what is read here in another way than Spark does writes nothing wrong. sqlglot reads the text, by its
dialect of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ferry.config.text.java_replacement import java_replacement
from ferry.config.text.regex import NotExpressible, compile_java

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Value = str | int | bool | None

_COLUMNS = ("topic", "target")


class NotKnown(Exception):
    """Why the name is known for each record only, as half a sentence whose subject is the expression."""


@lru_cache(maxsize=4096)
def topic_by_sql(sql: str, topic: str, target: str) -> str:
    """The name that `sql` has for records of `topic`, where `target` is that of the policy; empty for null.

    Raises NotKnown where a record is needed to tell, or Spark.
    """
    found = _value(_parsed(sql), {"topic": topic, "target": target})
    if found is not None and not isinstance(found, str):
        raise NotKnown("is no text")
    return found or ""


@lru_cache(maxsize=256)
def _parsed(sql: str) -> Expr:
    """The text as a tree, all of whose columns are known of a topic."""
    # Here, for to import it takes a tenth of a second, and few files need it.
    import sqlglot  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415
    from sqlglot.expressions import Column  # noqa: PLC0415

    try:
        found = sqlglot.parse_one(sql, read="spark")
    except SqlglotError:
        raise NotKnown("is understood by Spark alone") from None
    for column in found.find_all(Column):
        if column.name.lower() not in _COLUMNS or column.table.lower() not in ("", "records"):
            raise NotKnown(f"asks each record for its {column.name}")
    return found


def _value(node: Expr, columns: Mapping[str, str]) -> Value:
    """What a node is."""
    kind = type(node).__name__
    given = {name for name, one in node.args.items() if one not in (None, [], False)}
    known = _KINDS.get(kind)
    if known is None or not given <= known[0]:
        raise NotKnown(f"has {_named(node)}, which Spark alone works out")
    return known[1](node, columns)


def _named(node: Expr) -> str:
    name = node.name if type(node).__name__ == "Anonymous" else getattr(node, "sql_name", lambda: node.key)()
    return str(name).upper()


def _column(node: Any, columns: Mapping[str, str]) -> Value:
    return columns[node.name.lower()]


def _literal(node: Any, _: Mapping[str, str]) -> Value:
    if node.is_string:
        return str(node.this)
    try:
        return int(node.this)
    except ValueError:
        raise NotKnown(f"has {node.this}, which is no text") from None


def _case(node: Any, columns: Mapping[str, str]) -> Value:
    asked = node.args.get("this")
    of = None if asked is None else _value(asked, columns)
    for branch in node.args["ifs"]:
        found = _value(branch.this, columns)
        if (found is True) if asked is None else _equal(of, found):
            return _value(branch.args["true"], columns)
    return _else(node.args.get("default"), columns)


def _if(node: Any, columns: Mapping[str, str]) -> Value:
    if _value(node.this, columns) is True:
        return _value(node.args["true"], columns)
    return _else(node.args.get("false"), columns)


def _else(node: Any, columns: Mapping[str, str]) -> Value:
    return None if node is None else _value(node, columns)


def _decode(node: Any, columns: Mapping[str, str]) -> Value:
    of, *rest = node.expressions
    asked = _value(of, columns)
    for wanted, found in zip(rest[0::2], rest[1::2], strict=False):
        value = _value(wanted, columns)
        if _equal(asked, value) or (asked is None and value is None):
            return _value(found, columns)
    return _value(rest[-1], columns) if len(rest) % 2 else None


def _coalesce(node: Any, columns: Mapping[str, str]) -> Value:
    values = (_value(one, columns) for one in (node.this, *node.expressions))
    return next((one for one in values if one is not None), None)


def _concat_ws(node: Any, columns: Mapping[str, str]) -> Value:
    separator, *parts = (_value(one, columns) for one in node.expressions)
    return None if separator is None else _concat(separator).join(_concat(one) for one in parts if one is not None)


def _and(node: Any, columns: Mapping[str, str]) -> Value:
    found = _value(node.this, columns), _value(node.expression, columns)
    return False if False in found else None if None in found else True


def _or(node: Any, columns: Mapping[str, str]) -> Value:
    found = _value(node.this, columns), _value(node.expression, columns)
    return True if True in found else None if None in found else False


def _in(node: Any, columns: Mapping[str, str]) -> Value:
    asked, others = _value(node.this, columns), [_value(one, columns) for one in node.expressions]
    if asked is None:
        return None
    return True if any(_equal(asked, one) for one in others) else None if None in others else False


def _is(node: Any, columns: Mapping[str, str]) -> Value:
    one, other = _value(node.this, columns), _value(node.expression, columns)
    return (one is None and other is None) or _equal(one, other)


def _equal(one: Value, other: Value) -> bool:
    """Whether two values are the same and not null."""
    if one is None or other is None:
        return False
    if type(one) is not type(other):
        raise NotKnown("compares text with what is none")
    return one == other


def _cast(node: Any, columns: Mapping[str, str]) -> Value:
    if node.args["to"].sql("spark").upper() != "STRING":
        raise NotKnown("has CAST to another type than STRING, which Spark alone works out")
    found = _value(node.this, columns)
    if found is not None and not isinstance(found, str):
        raise NotKnown("has CAST of what is no text, which Spark alone works out")
    return found


def _of(work: Callable[..., Value], *names: str) -> Callable[[Any, Mapping[str, str]], Value]:
    """A function of these arguments, which is null where one of them is; one that is not given is left out."""

    def worked(node: Any, columns: Mapping[str, str]) -> Value:
        found = [_value(node.args[name], columns) for name in names if node.args.get(name) is not None]
        if None in found:
            return None
        try:
            return work(*found)
        except (NotExpressible, re.error, ValueError, TypeError, IndexError, AttributeError):
            raise NotKnown(f"has {_named(node)} with what Spark alone works out") from None

    return worked


def _all_of(work: Callable[..., Value]) -> Callable[[Any, Mapping[str, str]], Value]:
    """The same of a list of arguments."""

    def worked(node: Any, columns: Mapping[str, str]) -> Value:
        found = [_value(one, columns) for one in node.expressions]
        return None if None in found else work(*found)

    return worked


def _concat(*parts: Value) -> str:
    if any(isinstance(one, bool) for one in parts):
        raise NotKnown("makes text of what is none")
    return "".join(map(str, parts))


def _substring(text: str, start: int, length: int | None = None) -> str:
    """As `UTF8String.substringSQL`: from 1, from behind below 0."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else first + length
    return text[max(first, 0) : max(end, 0)]


def _split_part(text: str, delimiter: str, number: int) -> str:
    if not delimiter or not number:
        raise ValueError
    parts = text.split(delimiter)
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or not count:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:count] if count > 0 else parts[count:])


def _like(text: str, pattern: str) -> bool:
    found = re.sub(r"\\(.)|(%)|(_)|(.)", _like_part, pattern, flags=re.DOTALL)
    return re.fullmatch(found, text, re.DOTALL) is not None


def _like_part(part: re.Match[str]) -> str:
    return ".*" if part[2] else "." if part[3] else re.escape(part[1] or part[4])


def _replaced(text: str, pattern: str, replacement: str) -> str:
    return compile_java(pattern).sub(java_replacement(replacement), text)


def _extracted(text: str, pattern: str, group: int = 1) -> str:
    found = compile_java(pattern).search(text)
    return "" if found is None else found[group] or ""


def _translated(text: str, old: str, new: str) -> str:
    table = {char: new[at] if at < len(new) else "" for at, char in reversed(list(enumerate(old)))}
    return "".join(table.get(char, char) for char in text)


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


_TWO = _kinds("this", "expression")
_KINDS: Mapping[str, tuple[frozenset[str], Callable[[Any, Mapping[str, str]], Value]]] = {
    "Column": (_kinds("this", "table"), _column),
    "Literal": (_kinds("this", "is_string"), _literal),
    "RawString": (_kinds("this"), lambda node, _: str(node.this)),
    "Boolean": (_kinds("this"), lambda node, _: bool(node.this)),
    "Null": (_kinds(), lambda _, __: None),
    "Neg": (_kinds("this"), _of(lambda number: -number, "this")),
    "Paren": (_kinds("this"), _of(lambda value: value, "this")),
    "Case": (_kinds("this", "ifs", "default"), _case),
    "If": (_kinds("this", "true", "false"), _if),
    "DecodeCase": (_kinds("expressions"), _decode),
    "Coalesce": (_kinds("this", "expressions"), _coalesce),
    "Concat": (_kinds("expressions", "safe"), _all_of(_concat)),
    "ConcatWs": (_kinds("expressions", "safe", "coalesce", "flatten"), _concat_ws),
    "DPipe": (_kinds("this", "expression", "safe"), _of(_concat, "this", "expression")),
    "Cast": (_kinds("this", "to"), _cast),
    "TryCast": (_kinds("this", "to"), _cast),
    "And": (_TWO, _and),
    "Or": (_TWO, _or),
    "Not": (_kinds("this"), _of(lambda value: value is not True, "this")),
    "In": (_kinds("this", "expressions"), _in),
    "Is": (_TWO, _is),
    "NullSafeEQ": (_TWO, _is),
    "EQ": (_TWO, _of(_equal, "this", "expression")),
    "NEQ": (_TWO, _of(lambda one, other: not _equal(one, other), "this", "expression")),
    "Like": (_TWO, _of(_like, "this", "expression")),
    "RegexpLike": (
        _TWO,
        _of(lambda text, pattern: compile_java(pattern).search(text) is not None, "this", "expression"),
    ),
    "StartsWith": (_TWO, _of(str.startswith, "this", "expression")),
    "EndsWith": (_TWO, _of(str.endswith, "this", "expression")),
    "Contains": (_TWO, _of(lambda text, part: part in text, "this", "expression")),
    "Lower": (_kinds("this"), _of(str.lower, "this")),
    "Upper": (_kinds("this"), _of(str.upper, "this")),
    "Trim": (_kinds("this"), _of(lambda text: text.strip(" "), "this")),
    "Left": (_TWO, _of(lambda text, count: _substring(text, 1, count), "this", "expression")),
    "Right": (_TWO, _of(lambda text, count: text[-count:] if count > 0 else "", "this", "expression")),
    "Substring": (_kinds("this", "start", "length"), _of(_substring, "this", "start", "length")),
    "SubstringIndex": (
        _kinds("this", "delimiter", "count"),
        _of(_substring_index, "this", "delimiter", "count"),
    ),
    "SplitPart": (_kinds("this", "delimiter", "part_index"), _of(_split_part, "this", "delimiter", "part_index")),
    "Replace": (
        _kinds("this", "expression", "replacement"),
        _of(lambda text, old, new="": text.replace(old, new) if old else text, "this", "expression", "replacement"),
    ),
    "RegexpReplace": (
        _kinds("this", "expression", "replacement"),
        _of(_replaced, "this", "expression", "replacement"),
    ),
    "RegexpExtract": (
        _kinds("this", "expression", "group", "null_if_pos_overflow"),
        _of(_extracted, "this", "expression", "group"),
    ),
    "Translate": (_kinds("this", "from_", "to"), _of(_translated, "this", "from_", "to")),
}
"""By sqlglot's class the parts that are understood, and what comes of them."""

"""JSON changed where paths lead, and left byte for byte as it is everywhere else. Pure.

Nothing is parsed and written anew: blanks, the writing of numbers, escapes, order and repeated names stay. Numbers stay
text, so none is too large or too exact.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from json.decoder import scanstring  # type: ignore[attr-defined]  # what the decoder itself reads strings with
from typing import NoReturn

from ferry.config.text.json_path import Path

Edit = Callable[[object, str], str | None]
"""Of a value and its text: the new text, or None when it is to be taken out."""

_WHOLE = re.compile(r"-?[0-9]+")
_BLANK = re.compile(r"[ \t\n\r]*")


class NotJson(ValueError):
    """The value is no JSON, or not what a change is for; the text says why, and shows nothing of it."""


class Number(str):
    """A number, as it is written."""

    __slots__ = ()


def _no_constant(_: str) -> NoReturn:
    raise NotJson("it holds NaN or Infinity, which JSON does not know")


_SCAN: Callable[[str, int], tuple[object, int]] = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_no_constant
).scan_once  # type: ignore[attr-defined]  # as above

_Splice = tuple[int, int, str]
"""What stands from here to there, and what is to stand there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Paths as what is below: `here` is a place that one of them leads to."""

    here: bool
    names: Mapping[str, Tree]
    other: Tree | None
    """Below all names that `names` does not have, and below each place of a list; None: nothing."""


def tree_of(paths: Iterable[Path]) -> Tree:
    """The paths put together, once for all values."""
    every = tuple(paths)
    rest = tuple(one for one in every if one)
    any_name = [one[1:] for one in rest if one[0] is None]
    names = {
        name: tree_of([*any_name, *(one[1:] for one in rest if one[0] == name)])
        for name in dict.fromkeys(one[0] for one in rest if one[0] is not None)
    }
    return Tree(here=len(rest) < len(every), names=names, other=tree_of(any_name) if any_name else None)


def edited(value: bytes, tree: Tree, edit: Edit) -> bytes:
    """`value` with every place changed that one of the tree's paths leads to. Raises NotJson.

    The empty path leads to all of it, which cannot be taken out.
    """
    text = _text(value)
    splices: list[_Splice] = []
    start = _after_blank(text, 0)
    if tree.here:
        whole, end = _value(text, start)
        new = edit(whole, text[start:end])
        if new is not None and new != text[start:end]:
            splices.append((start, end, new))
    else:
        end = _read(text, start, tree, edit, splices)
    _check_end(text, end)
    return _spliced(text, splices) if splices else value


def only_fields(value: bytes, include: frozenset[str], renames: Mapping[str, str]) -> bytes:
    """Of an object's top level only the names of `include` (empty: all), some by another name. Raises NotJson."""
    text = _text(value)
    splices: list[_Splice] = []
    start = _after_blank(text, 0)
    if text[start : start + 1] != "{":
        raise NotJson("it is no JSON object")

    def visit(name: str, name_start: int, name_end: int, at: int) -> tuple[int, bool]:
        is_gone = bool(include) and name not in include
        if not is_gone and name in renames:
            splices.append((name_start, name_end, json.dumps(renames[name], ensure_ascii=False)))
        return _value(text, at)[1], is_gone

    _check_end(text, _members(text, start, visit, splices))
    return _spliced(text, splices) if splices else value


def is_object(value: bytes) -> bool:
    """Whether the value begins as a JSON object does."""
    return value.lstrip(b" \t\n\r")[:1] == b"{"


def redacted(replacement: str | None) -> Edit:
    """What leaves nothing but the type, or `replacement` in its place (`MaskField`): text, or a number for numbers."""

    def edit(value: object, text: str) -> str:  # noqa: PLR0911 - one line for each type
        if value is None:
            return text
        if replacement is not None:
            return _replaced(value, replacement)
        match value:
            case bool():
                return "false"
            case Number():
                return "0" if _WHOLE.fullmatch(value) else "0.0"
            case str():
                return '""'
            case list():
                return "[]"
        return "{}"

    return edit


def redacted_string(replacement: str | None) -> str:
    """What `redacted` makes of every string."""
    return json.dumps(replacement or "", ensure_ascii=False)


def hashed(salt: bytes) -> Edit:
    """The HMAC-SHA-256 of a string, or of the text of another value, in hexadecimal; null stays null."""

    def edit(value: object, text: str) -> str:
        if value is None:
            return text
        clear = value if type(value) is str else text
        return f'"{hash_of(clear.encode("utf-8", "surrogatepass"), salt)}"'

    return edit


def hash_of(clear: bytes, salt: bytes) -> str:
    """The HMAC-SHA-256 in hexadecimal."""
    return hmac.digest(salt, clear, "sha256").hex()


def removed(_value: object, _text: str) -> None:
    """What takes a field out."""
    return


def _replaced(value: object, replacement: str) -> str:
    match value:
        case Number():
            if not re.fullmatch(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][+-]?[0-9])?", replacement):
                raise NotJson("a field to be masked holds a number, and the replacement is none")
            # As Kafka's class: of a fraction in place of a whole number the whole part.
            return str(int(Decimal(replacement))) if _WHOLE.fullmatch(value) else replacement
        case bool() | list() | dict():
            raise NotJson("a field to be masked holds neither text nor a number, which alone can be replaced")
    return json.dumps(replacement, ensure_ascii=False)


def _spliced(text: str, splices: list[_Splice]) -> bytes:
    out: list[str] = []
    at = 0
    for start, end, new in sorted(splices):
        out += (text[at:start], new)
        at = end
    out.append(text[at:])
    return "".join(out).encode("utf-8", "surrogatepass")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None


def _check_end(text: str, end: int) -> None:
    if _after_blank(text, end) != len(text):
        raise NotJson(f"something stands behind its end, at character {end + 1}")


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found is not None else at


def _value(text: str, at: int) -> tuple[object, int]:
    try:
        return _SCAN(text, at)
    except StopIteration:
        raise _no_json(at) from None
    except json.JSONDecodeError as error:
        raise _no_json(error.pos) from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None


def _no_json(at: int) -> NotJson:
    return NotJson(f"it is no JSON from character {at + 1} on")


def _read(text: str, at: int, tree: Tree, edit: Edit, splices: list[_Splice]) -> int:
    """Note the changes of the value at `at`, which lie below it; where it ends."""
    opener = text[at : at + 1]
    names, other = tree.names, tree.other

    def below(child: Tree | None, at: int) -> tuple[int, bool]:
        if child is None:
            return _value(text, at)[1], False
        if not child.here:
            return _read(text, at, child, edit, splices), False
        value, end = _value(text, at)
        new = edit(value, text[at:end])
        if new is None:
            return end, True
        if new != text[at:end]:
            splices.append((at, end, new))
        return end, False

    if opener == "{":
        return _members(text, at, lambda name, _start, _end, value: below(names.get(name, other), value), splices)
    if opener == "[" and other is not None:
        return _items(text, at, lambda value: below(other, value), splices)
    return _value(text, at)[1]


def _members(
    text: str, at: int, visit: Callable[[str, int, int, int], tuple[int, bool]], splices: list[_Splice]
) -> int:
    """Visit those of the object at `at`: name, where that begins and ends, and where the value begins. Where it ends.

    A visitor answers where the value ends, and whether the member is to go.
    """
    at += 1
    if text[at : at + 1] != '"':
        at = _after_blank(text, at)
        if text[at : at + 1] == "}":
            return at + 1
    spans: list[tuple[int, int, bool]] = []
    while True:
        start = at
        if text[at : at + 1] != '"':
            raise _no_json(at)
        try:
            name, name_end = scanstring(text, at + 1, True)
        except json.JSONDecodeError as error:
            raise _no_json(error.pos) from None
        at = name_end if text[name_end : name_end + 1] == ":" else _after_blank(text, name_end)
        if text[at : at + 1] != ":":
            raise _no_json(at)
        end, is_gone = visit(name, start, name_end, _after_blank(text, at + 1))
        spans.append((start, end, is_gone))
        at = _next(text, end, "}")
        if at < 0:
            _take_out(spans, splices)
            return -at


def _items(text: str, at: int, visit: Callable[[int], tuple[int, bool]], splices: list[_Splice]) -> int:
    """As `_members`, of the list at `at`."""
    at = _after_blank(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    spans: list[tuple[int, int, bool]] = []
    while True:
        end, is_gone = visit(at)
        spans.append((at, end, is_gone))
        at = _next(text, end, "]")
        if at < 0:
            _take_out(spans, splices)
            return -at


def _next(text: str, at: int, closer: str) -> int:
    """Where the next member begins behind the one that ends at `at`; where the whole ends, as a negative number."""
    sign = text[at : at + 1]
    if sign not in (",", closer):
        at = _after_blank(text, at)
        sign = text[at : at + 1]
    if sign == closer:
        return -(at + 1)
    if sign != ",":
        raise _no_json(at)
    return _after_blank(text, at + 1)


def _take_out(spans: Sequence[tuple[int, int, bool]], splices: list[_Splice]) -> None:
    """Take out the members that are to go; each that stays keeps the comma and the blanks before it."""
    if not any(is_gone for _, _, is_gone in spans):
        return
    last: int | None = None
    before = spans[0][0]
    for start, end, is_gone in spans:
        if not is_gone:
            splices.append((spans[0][0], start, "") if last is None else (last, before, ""))
            last = end
        before = end
    splices.append((spans[0][0] if last is None else last, before, ""))

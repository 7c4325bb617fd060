"""Changes JSON where paths lead, and leaves all other bytes as they are. Pure.

No value is parsed and written again: blanks, the form of numbers, escapes, order and repeated names stay. Numbers stay
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
"""Takes a value and its text; returns the new text, or None to remove it."""

_WHOLE = re.compile(r"-?[0-9]+")
_BLANK = re.compile(r"[ \t\n\r]*")


class NotJson(ValueError):
    """The value is not JSON, or not what a change is for. The text says why, and shows nothing of the value."""


class Number(str):
    """A number in its written form."""

    __slots__ = ()


def _no_constant(_: str) -> NoReturn:
    raise NotJson("it holds NaN or Infinity, which JSON does not know")


_SCAN: Callable[[str, int], tuple[object, int]] = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_no_constant
).scan_once  # type: ignore[attr-defined]  # as above

_Splice = tuple[int, int, str]
"""The text from the first to the second place, and what replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Paths as a tree. `here`: one of the paths leads to this place."""

    here: bool
    names: Mapping[str, Tree]
    other: Tree | None
    """The tree below all names that `names` does not have, and below each item of a list; None: nothing."""


def tree_of(paths: Iterable[Path]) -> Tree:
    """Combine paths to a tree, once for all values."""
    every = tuple(paths)
    rest = tuple(one for one in every if one)
    any_name = [one[1:] for one in rest if one[0] is None]
    names = {
        name: tree_of([*any_name, *(one[1:] for one in rest if one[0] == name)])
        for name in dict.fromkeys(one[0] for one in rest if one[0] is not None)
    }
    return Tree(here=len(rest) < len(every), names=names, other=tree_of(any_name) if any_name else None)


def edited(value: bytes, tree: Tree, edit: Edit) -> bytes:
    """Return `value` with every place changed that one of the tree's paths leads to. Raises NotJson.

    The empty path leads to the whole value, which cannot be removed.
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
    """Keep only the names of `include` (empty: all) of an object's top level, some by another name. Raises NotJson."""
    text = _text(value)
    splices: list[_Splice] = []
    start = _after_blank(text, 0)
    if text[start : start + 1] != "{":
        raise NotJson("it is not a JSON object")

    def visit(name: str, name_start: int, name_end: int, at: int) -> tuple[int, bool]:
        is_gone = bool(include) and name not in include
        if not is_gone and name in renames:
            splices.append((name_start, name_end, json.dumps(renames[name], ensure_ascii=False)))
        return _value(text, at)[1], is_gone

    _check_end(text, _members(text, start, visit, splices))
    return _spliced(text, splices) if splices else value


def is_object(value: bytes) -> bool:
    """Report whether the value begins as a JSON object does."""
    return value.lstrip(b" \t\n\r")[:1] == b"{"


def redacted(replacement: str | None) -> Edit:
    """Make an edit that keeps only the type, or that puts `replacement` in its place (`MaskField`).

    `replacement` is a text, or a number if it replaces numbers.
    """

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
    """Return what `redacted` makes of every string."""
    return json.dumps(replacement or "", ensure_ascii=False)


def hashed(salt: bytes) -> Edit:
    """Make an edit: the HMAC-SHA-256 of a string, or of the text of another value, in hexadecimal; null stays null."""

    def edit(value: object, text: str) -> str:
        if value is None:
            return text
        clear = value if type(value) is str else text
        return f'"{hash_of(clear.encode("utf-8", "surrogatepass"), salt)}"'

    return edit


def hash_of(clear: bytes, salt: bytes) -> str:
    """Return the HMAC-SHA-256 in hexadecimal."""
    return hmac.digest(salt, clear, "sha256").hex()


def removed(_value: object, _text: str) -> None:
    """Remove a field: this is an edit."""
    return


def _replaced(value: object, replacement: str) -> str:
    match value:
        case Number():
            if not re.fullmatch(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][+-]?[0-9])?", replacement):
                raise NotJson("a field to be masked holds a number, and the replacement is none")
            # Like Kafka's class: if a fraction replaces a whole number, its whole part.
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
        raise NotJson(f"something follows its end, at character {end + 1}")


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
    return NotJson(f"it is not JSON from character {at + 1} on")


def _read(text: str, at: int, tree: Tree, edit: Edit, splices: list[_Splice]) -> int:
    """Record the changes below the value at `at`, and return where the value ends."""
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
    """Visit the members of the object at `at`, and return where the object ends.

    The visitor gets a member's name, where the name begins and ends, and where the value begins. It returns where the
    value ends, and whether the member is removed.
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
    """Visit the items of the list at `at`, and return where the list ends.

    The visitor gets where an item begins. It returns where the item ends, and whether it is removed.
    """
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
    """Return where the member after the one that ends at `at` begins; where the whole ends, as a negative number."""
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
    """Remove the members that are to go; each that stays keeps the comma and the blanks before it."""
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

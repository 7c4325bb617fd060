"""JSON changed where paths lead, and left byte for byte as it is everywhere else. Pure.

Nothing is parsed and written anew: blanks, the writing of numbers, escapes, order and repeated names stay. Numbers stay
text, so none is too large or too exact.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # what the decoder itself reads strings with
from typing import NoReturn

from ferry.config.text.json_path import Path

Edit = Callable[[object, str], str | None]
"""Of a value and its text: the new text, or None when it is to be taken out."""

_BLANK = re.compile(r"[ \t\n\r]*")


class NotJson(ValueError):
    """The value is no JSON, or not what a change is for; the text says why, and shows nothing of it."""


class Number(str):
    """A number, as it is written."""

    __slots__ = ()


def _no_constant(_: str) -> NoReturn:
    raise NotJson("it holds NaN or Infinity, which JSON does not know")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_no_constant)


def edited(value: bytes, paths: Sequence[Path], edit: Edit) -> bytes:
    """`value` with every place changed that one of `paths` leads to. Raises NotJson."""
    text = _text(value)
    start = _after_blank(text, 0)
    out: list[str] = [text[:start]]
    end = _read(text, start, paths, edit, out)
    _check_end(text, end)
    return "".join([*out, text[end:]]).encode("utf-8", "surrogatepass") if len(out) > 1 else value


def only_fields(value: bytes, include: frozenset[str], renames: dict[str, str]) -> bytes:
    """Of an object's top level only the names of `include` (empty: all), some by another name. Raises NotJson."""
    text = _text(value)
    start = _after_blank(text, 0)
    if text[start : start + 1] != "{":
        raise NotJson("it is no JSON object")
    members: list[_Member] = []
    end = _members(text, start, members)
    _check_end(text, end)
    for one in members:
        if include and one.name not in include:
            one.now = None
        elif one.name in renames:
            one.now = json.dumps(renames[one.name], ensure_ascii=False) + text[one.name_end : one.end]
    out = [text[:start]]
    _write(text, start, end, members, out)
    return "".join([*out, text[end:]]).encode("utf-8", "surrogatepass")


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
                return "0" if re.fullmatch(r"-?[0-9]+", value) else "0.0"
            case str():
                return '""'
            case list():
                return "[]"
        return "{}"

    return edit


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
            if not re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", replacement):
                raise NotJson("a field to be masked holds a number, and the replacement is none")
            if "." not in value and not re.fullmatch(r"-?[0-9]+", replacement):
                raise NotJson("a field to be masked holds a whole number, and the replacement is none")
            return replacement
        case bool() | list() | dict():
            raise NotJson("a field to be masked holds neither text nor a number, which alone can be replaced")
    return json.dumps(replacement, ensure_ascii=False)


class _Member:
    """A member of an object, or an item of a list: where it stands, and what stands there now."""

    __slots__ = ("end", "name", "name_end", "now", "start")

    def __init__(self, start: int, name: str | None, name_end: int, end: int, now: str | None) -> None:
        self.start, self.name, self.name_end, self.end, self.now = start, name, name_end, end, now


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
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise NotJson(f"it is no JSON from character {error.pos + 1} on") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None


def _read(text: str, at: int, paths: Sequence[Path], edit: Edit, out: list[str]) -> int:
    """The value at `at` with its changes joins `out`; where it ends."""
    opener = text[at : at + 1]
    if opener not in ("{", "["):
        end = _value(text, at)[1]
        out.append(text[at:end])
        return end
    members: list[_Member] = []
    end = _members(text, at, members, paths, edit) if opener == "{" else _items(text, at, members, paths, edit)
    _write(text, at, end, members, out)
    return end


def _write(text: str, start: int, end: int, members: Sequence[_Member], out: list[str]) -> None:
    """An object or a list with the members that are left; each brings the comma and the blanks before it."""
    if not members:
        out.append(text[start:end])
        return
    out.append(text[start : members[0].start])
    before: int | None = None
    first = True
    for one in members:
        if one.now is not None:
            if not first and before is not None:
                out.append(text[before : one.start])
            out.append(one.now)
            first = False
        before = one.end
    out.append(text[members[-1].end : end])


def _members(text: str, at: int, members: list[_Member], paths: Sequence[Path] = (), edit: Edit = removed) -> int:
    """Those of the object at `at`; where it ends."""
    at = _after_blank(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise NotJson(f"it is no JSON from character {at + 1} on")
        try:
            name, name_end = scanstring(text, at + 1, True)
        except json.JSONDecodeError as error:
            raise NotJson(f"it is no JSON from character {error.pos + 1} on") from None
        colon = _after_blank(text, name_end)
        if text[colon : colon + 1] != ":":
            raise NotJson(f"it is no JSON from character {colon + 1} on")
        begin = _after_blank(text, colon + 1)
        now, end = _changed(text, begin, [one[1:] for one in paths if one[0] is None or one[0] == name], edit)
        members.append(_Member(at, name, name_end, end, None if now is None else text[at:begin] + now))
        at = _after_blank(text, end)
        if text[at : at + 1] == "}":
            return at + 1
        if text[at : at + 1] != ",":
            raise NotJson(f"it is no JSON from character {at + 1} on")
        at = _after_blank(text, at + 1)


def _items(text: str, at: int, members: list[_Member], paths: Sequence[Path], edit: Edit) -> int:
    """Those of the list at `at`; where it ends."""
    at = _after_blank(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    below = [one[1:] for one in paths if one[0] is None]
    while True:
        now, end = _changed(text, at, below, edit)
        members.append(_Member(at, None, at, end, now))
        at = _after_blank(text, end)
        if text[at : at + 1] == "]":
            return at + 1
        if text[at : at + 1] != ",":
            raise NotJson(f"it is no JSON from character {at + 1} on")
        at = _after_blank(text, at + 1)


def _changed(text: str, at: int, paths: Sequence[Path], edit: Edit) -> tuple[str | None, int]:
    """The text of the value at `at`, changed; where it ended."""
    if paths and all(paths):
        out: list[str] = []
        end = _read(text, at, paths, edit, out)
        return "".join(out), end
    value, end = _value(text, at)
    return (edit(value, text[at:end]) if paths else text[at:end]), end

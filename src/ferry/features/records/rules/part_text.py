"""The bytes of a record as text, indented JSON or hexadecimal, cut to what is shown. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from ferry.features.records.rules.one_record import Part
from ferry.words import visible

Style: TypeAlias = Literal["text", "json", "hex"]
"""The form in which bytes are shown."""

MOST_CHARACTERS = 64_000
"""Characters of text or JSON that are shown."""
MOST_DUMPED = 8_192
"""Bytes that are shown as hexadecimal: a row of 16 bytes takes 78 characters."""
_ROW = 16
_PRINTABLE = range(0x20, 0x7F)
_INDENT = "  "
_LAYOUT = "\n\t"
"""Lines and tabs stay as they are."""
_DEEPEST = 200
"""Levels of JSON that are indented: deeper ones are shown as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartText:
    """What is shown of some bytes."""

    text: str | None
    """The bytes as text; None: they are null."""
    size: int | None
    """Bytes of the whole; None: null."""
    style: Style
    """The form that it has."""
    note: str = ""
    """Why it has another form than was asked for."""
    is_cut: bool = False
    """Whether there is more than is shown."""


def part_text(part: Part, style: Style) -> PartText:
    """Return some bytes in a form: what is not JSON is shown as text, and what is not UTF-8 as hexadecimal."""
    if part.data is None or part.size is None:
        return PartText(text=None, size=None, style=style)
    is_whole = len(part.data) == part.size
    if style == "hex":
        return _dump(part, "")
    text = _decoded(part.data, is_whole=is_whole)
    if text is None:
        return _dump(part, "it is not UTF-8")
    note = ""
    if style == "json":
        if not is_whole:
            note = f"only values of up to {len(part.data)} bytes are read as JSON"
        elif (indented := indented_json(text)) is not None:
            return _cut(indented, part, "json", "")
        else:
            note = "it is not JSON"
    return _cut(text, part, "text", note)


def _cut(text: str, part: Part, style: Style, note: str) -> PartText:
    assert part.data is not None
    return PartText(
        text=visible(text[:MOST_CHARACTERS], keep=_LAYOUT),
        size=part.size,
        style=style,
        note=note,
        is_cut=len(text) > MOST_CHARACTERS or len(part.data) != part.size,
    )


def _decoded(data: bytes, *, is_whole: bool) -> str | None:
    """Return bytes as text; None: they are not UTF-8. A character that was cut at the end is left out."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        is_last = error.end == len(data) and error.reason == "unexpected end of data"
        return None if is_whole or not is_last else data[: error.start].decode()


def _dump(part: Part, note: str) -> PartText:
    assert part.data is not None
    shown = part.data[:MOST_DUMPED]
    return PartText(text=hex_dump(shown), size=part.size, style="hex", note=note, is_cut=len(shown) != part.size)


def hex_dump(data: bytes) -> str:
    """Return rows of 16 bytes: the offset, the bytes, and those of them that are ASCII, as `hexdump -C` prints them."""
    rows = []
    for at in range(0, len(data), _ROW):
        row = data[at : at + _ROW]
        halves = " ".join(f"{byte:02x}" for byte in row[:8]), " ".join(f"{byte:02x}" for byte in row[8:])
        letters = "".join(chr(byte) if byte in _PRINTABLE else "." for byte in row)
        rows.append(f"{at:08x}  {halves[0]:<23}  {halves[1]:<23}  |{letters}|")
    return "\n".join(rows)


def indented_json(text: str) -> str | None:
    """Return JSON with a line for each value; None: it is not JSON, or nested too deep.

    Numbers, escapes, repeated names and their order stay as they are written.
    """
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return None
    made: list[str] = []
    depth, at, end = 0, 0, len(text)
    while at < end:
        sign = text[at]
        if sign == '"':
            until = _string_end(text, at)
            made.append(text[at:until])
            at = until
            continue
        at += 1
        if sign.isspace():
            continue
        if sign in "{[":
            following = _next_sign(text, at)
            if text[following] in "}]":
                made.append(sign + text[following])
                at = following + 1
                continue
            depth += 1
            if depth > _DEEPEST:
                return None
            made.append(f"{sign}\n{_INDENT * depth}")
        elif sign in "}]":
            depth -= 1
            made.append(f"\n{_INDENT * depth}{sign}")
        elif sign == ",":
            made.append(f",\n{_INDENT * depth}")
        else:
            made.append(": " if sign == ":" else sign)
    return "".join(made)


def _next_sign(text: str, at: int) -> int:
    while text[at].isspace():
        at += 1
    return at


def _string_end(text: str, at: int) -> int:
    """Return the place after a JSON string that begins at `at`."""
    at += 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")

"""The edits of `ferry.features.records.rules.json_edit`, for most values in a fourth of their time. Pure.

simdjson reports whether a value is JSON and what a path leads to. Where that is in the bytes is found by the path's
last name. This is sure in bytes without a backslash in which each name of the path is once, in its quotes. A quote
there begins or ends a string and nothing else. Between the end of one string and the beginning of the next there is a
colon or a comma, which no such name has.

All other values are left to `edited`, which also says why a value is not JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import simdjson

from ferry.config.text.json_path import Path
from ferry.features.records.rules.json_edit import Edit, NotJson, Number, edited, is_object, tree_of

_PLAIN = re.compile(r'[^"\\,:\x00-\x1f\ud800-\udfff]+')
_COLON = re.compile(rb"[ \t\n\r]*:[ \t\n\r]*")
_WORD = re.compile(rb"[^,\]} \t\n\r]+")
_NUMBERS = (int, float)
_QUOTE = b'"'
_BLANKS = b" \t\n\r"
BYTE_ORDER_MARK = 0xEF
"""A byte order mark begins with it. JSON has none (RFC 8259), and simdjson ignores it."""
_ABSENT = object()


def editor(
    paths: Iterable[Path], edit: Edit, *, is_object_wanted: bool = False, of_string: str | None = None
) -> Callable[[bytes], bytes]:
    """Make a function that changes each place of a value that a path leads to.

    The function takes a value, and returns it with the changes. It raises NotJson for a value that is not JSON or
    that `edit` refuses, and with `is_object_wanted` for one that is not an object. `of_string` is what `edit`
    makes of every string, if that does not depend on the string.
    """
    every = tuple(dict.fromkeys(paths))
    tree = tree_of(every)

    def plainly(value: bytes) -> bytes:
        if is_object_wanted and not is_object(value):
            raise NotJson("it is not a JSON object")
        return edited(value, tree, edit)

    if not has_plain_names(every):
        return plainly
    return _quickly(every, edit, of_string, plainly, is_object_wanted=is_object_wanted)


def has_plain_names(paths: tuple[Path, ...]) -> bool:
    """Report whether all paths lead by names alone that need no escapes, and none leads to a place below another."""
    below = {path[:size] for path in paths for size in range(len(path))}
    return all(
        path and path not in below and all(name is not None and _PLAIN.fullmatch(name) for name in path)
        for path in paths
    )


def _quickly(  # noqa: C901 - the function within is all of it
    paths: tuple[Path, ...],
    edit: Edit,
    of_string: str | None,
    plainly: Callable[[bytes], bytes],
    *,
    is_object_wanted: bool,
) -> Callable[[bytes], bytes]:
    """Make a function that changes a value by its names where that is sure, and else calls `plainly`."""
    constant = None if of_string is None else of_string.encode("utf-8", "surrogatepass")
    quoted = {name: f'"{name}"'.encode() for path in paths for name in path if name is not None}
    names = [[name for name in path if name is not None] for path in paths]
    steps = [
        (tuple((name, quoted[name]) for name in path[:-1]), path[-1], quoted[path[-1]], len(quoted[path[-1]]))
        for path in names
    ]
    parser, of_names, of_items = simdjson.Parser, simdjson.Object, simdjson.Array

    def change(value: bytes) -> bytes:  # noqa: C901, PLR0911, PLR0912  # one pass: calls in it would cost half again
        if b"\\" in value or (value and value[0] == BYTE_ORDER_MARK):
            return plainly(value)
        try:
            whole = parser().parse(value)
        except (ValueError, RuntimeError):  # no JSON; a number that is too long for 64 bits
            return plainly(value)
        if type(whole) is not of_names:
            return plainly(value) if is_object_wanted or type(whole) is of_items else value
        splices: list[tuple[int, int, bytes]] = []
        gone: list[tuple[bytes, object]] = []
        find = value.find
        for above, last, name, size in steps:
            start = find(name)
            if start < 0:
                continue  # then no place has that name
            if find(name, start + size) >= 0:
                return plainly(value)
            node: Any = whole
            for one, also in above:
                at = find(also)
                if at >= 0 and find(also, at + 1) >= 0:
                    return plainly(value)
                node = node.get(one) if type(node) is of_names else None
            node = node.get(last, _ABSENT) if type(node) is of_names else _ABSENT
            if node is _ABSENT:
                continue
            if type(node) is str:
                begin = find(_QUOTE, start + size)
                end = find(_QUOTE, begin + 1) + 1
                if constant is not None:
                    splices.append((begin, end, constant))
                    continue
                text = value[begin:end].decode()
                new = edit(node, text)
            else:
                span = _word(value, start + size, node)
                if span is None:
                    return plainly(value)
                begin, end = span
                text = value[begin:end].decode()
                new = edit(Number(text) if type(node) in _NUMBERS else node, text)
            if new is None:
                gone.append((name, node))
            elif new != text:
                splices.append((begin, end, new.encode("utf-8", "surrogatepass")))
        if not gone:
            return _spliced(value, splices) if splices else value
        if splices:
            return plainly(value)  # what was put in may look like a name
        for name, one_gone in gone:
            value = _without(value, name, one_gone)
        return value

    return change


def _word(value: bytes, behind_name: int, node: object) -> tuple[int, int] | None:
    """Return where a number, true, false or null of a member begins and ends, after the end of the member's name.

    None for a list or an object, because its end is not known.
    """
    colon = _COLON.match(value, behind_name)
    if colon is None or type(node) in (simdjson.Object, simdjson.Array):
        return None
    word = _WORD.match(value, colon.end())
    return None if word is None else word.span()


def _spliced(value: bytes, splices: list[tuple[int, int, bytes]]) -> bytes:
    if len(splices) == 1:
        ((start, end, new),) = splices
        return b"".join((value[:start], new, value[end:]))
    out: list[bytes] = []
    at = 0
    for start, end, new in sorted(splices):
        out += (value[at:start], new)
        at = end
    out.append(value[at:])
    return b"".join(out)


def _without(value: bytes, quoted: bytes, node: object) -> bytes:
    """Return the value without the member of that name; each that stays keeps the comma and the blanks before it."""
    start = value.index(quoted)
    behind_name = start + len(quoted)
    if type(node) is str:
        end = value.index(_QUOTE, value.index(_QUOTE, behind_name) + 1) + 1
    else:
        span = _word(value, behind_name, node)
        assert span is not None  # it was there before
        end = span[1]
    before = value[:start].rstrip(_BLANKS)
    if before.endswith(b","):
        return before[:-1].rstrip(_BLANKS) + value[end:]
    behind = value[end:].lstrip(_BLANKS)
    if behind.startswith(b","):
        return value[:start] + behind[1:].lstrip(_BLANKS)
    return value[:start] + value[end:]

"""Edits of JSON for a whole column of values at once; `json_quick` edits one value. Pure.

simdjson reports of each value whether it is JSON, and whether a path leads to a string in it. With numpy,
the quotes of all values together show where these strings are. That is sure under the conditions of `json_quick`: no
backslash, and each name of the path once in its quotes.

The editor of single values gets a value for which that is not sure. It also gets a value in which a path leads to
something other than a string. Only installations with Spark have numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import simdjson

from ferry.config.text.json_path import Path
from ferry.features.records.rules.json_edit import Edit, NotJson
from ferry.features.records.rules.json_quick import BYTE_ORDER_MARK, editor, has_plain_names

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_MOST_PATHS = 62
"""So many have a bit each in a signed number."""
_UNSURE = -1
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Column:
    """Values one after the other: row `n` is `data[edges[n] : edges[n + 1]]`, and `edges` begins at 0."""

    data: bytes
    edges: Longs

    def row(self, number: int) -> bytes:
        """Return one value."""
        return self.data[self.edges[number] : self.edges[number + 1]]


ColumnChange = Callable[[Column, Flags], tuple[Column, dict[int, str]]]
"""Changes the rows that are flagged, and returns, by row, why a row could not be changed. Such a row stays as it
was."""


@dataclass(frozen=True, slots=True)
class _Splices:
    """Replacements of parts of a column. `spans` has a line for each: row, begin and end in `data`."""

    spans: Longs
    news: list[bytes]


def one_by_one(change: Callable[[bytes], bytes]) -> ColumnChange:
    """Make a column change of a change of one value, which raises NotJson."""

    def of_column(column: Column, wanted: Flags) -> tuple[Column, dict[int, str]]:
        splices, poison = _changed(column, wanted, change)
        return _spliced(column, splices), poison

    return of_column


def column_editor(
    paths: Iterable[Path], edit: Edit, *, is_object_wanted: bool = False, of_string: str | None = None
) -> ColumnChange:
    """Make a change of each place of the values that a path leads to, by the arguments of `json_quick.editor`.

    `edit` does not remove: it makes another text of a string.
    """
    every = tuple(dict.fromkeys(paths))
    one = editor(every, edit, is_object_wanted=is_object_wanted, of_string=of_string)
    if not has_plain_names(every) or len(every) > _MOST_PATHS:
        return one_by_one(one)
    names = [tuple(name for name in path if name is not None) for path in every]
    constant = None if of_string is None else of_string.encode("utf-8", "surrogatepass")

    def of_column(column: Column, wanted: Flags) -> tuple[Column, dict[int, str]]:
        strings, left = _strings(column, wanted, names)
        if constant is None:
            news = [_edited(column.data[begin:end], edit) for begin, end in strings[:, 1:].tolist()]
        else:
            news = [constant] * len(strings)
        if not left.any():
            return _spliced(column, _Splices(strings, news)), {}
        one_after_the_other, poison = _changed(column, left, one)
        return _spliced(column, _merged(_Splices(strings, news), one_after_the_other)), poison

    return of_column


def _edited(quoted: bytes, edit: Edit) -> bytes:
    text = quoted.decode()
    new = edit(text[1:-1], text)
    assert new is not None, "an edit of columns removes nothing"
    return new.encode("utf-8", "surrogatepass")


def _changed(column: Column, wanted: Flags, change: Callable[[bytes], bytes]) -> tuple[_Splices, dict[int, str]]:
    spans: list[tuple[int, int, int]] = []
    news: list[bytes] = []
    poison: dict[int, str] = {}
    for row in np.flatnonzero(wanted).tolist():
        value = column.row(row)
        try:
            new = change(value)
        except NotJson as error:
            poison[row] = str(error)
            continue
        if new != value:
            spans.append((row, int(column.edges[row]), int(column.edges[row + 1])))
            news.append(new)
    return _Splices(np.array(spans, np.int64).reshape(-1, 3), news), poison


def _strings(column: Column, wanted: Flags, paths: Sequence[tuple[str, ...]]) -> tuple[Longs, Flags]:
    """Return where the strings are that the paths lead to, as `_Splices.spans`, and the rows that are not sure."""
    sure = wanted & _without_marks(column)
    data = np.frombuffer(column.data, np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    places = {}
    for name in dict.fromkeys(chain.from_iterable(paths)):
        rows, numbers = _quoted(column, data, quotes, name.encode())
        sure &= np.bincount(rows, minlength=len(sure)) <= 1
        places[name] = np.zeros(len(sure), np.int64)
        places[name][rows] = numbers
    codes = np.full(len(sure), _UNSURE, np.int64)
    codes[sure] = _codes(column, sure, paths)
    sure &= codes != _UNSURE
    found = []
    for bit, path in enumerate(paths):
        rows = np.flatnonzero(sure & (codes >> bit & 1 == 1))
        numbers = places[path[-1]][rows]
        # After the two quotes of the name come those of the string.
        found.append(np.stack((rows, quotes[numbers + 2], quotes[numbers + 3] + 1), axis=1))
    merged = np.concatenate(found)
    return merged[np.argsort(merged[:, 1])], wanted & ~sure


def _without_marks(column: Column) -> Flags:
    """Return the rows without a backslash that do not begin with a byte order mark."""
    data = np.frombuffer(column.data, np.uint8)
    found = np.ones(len(column.edges) - 1, np.bool_)
    starts = column.edges[:-1]
    filled = np.flatnonzero(np.diff(column.edges))
    found[filled] = data[starts[filled]] != BYTE_ORDER_MARK
    if b"\\" in column.data:
        found[_row_of(column, np.flatnonzero(data == _BACKSLASH))] = False
    return found


def _row_of(column: Column, places: Longs) -> Longs:
    return np.searchsorted(column.edges, places, "right") - 1


def _quoted(column: Column, data: npt.NDArray[np.uint8], quotes: Longs, name: bytes) -> tuple[Longs, Longs]:
    """Return where `name` is in quotes: the rows, and the number of its first quote among all quotes."""
    numbers = np.flatnonzero(np.diff(quotes) == len(name) + 1)
    for at, wanted in enumerate(name, start=1):
        numbers = numbers[data[quotes[numbers] + at] == wanted]
    return _row_of(column, quotes[numbers]), numbers


def _codes(column: Column, wanted: Flags, paths: Sequence[tuple[str, ...]]) -> list[int]:
    """Return for each wanted row a bit for each path that leads to a string.

    _UNSURE if a path leads to something else, or if the row is not JSON.
    """
    parse, of_names = simdjson.Parser().parse, simdjson.Object
    steps = [(path[:-1], path[-1], 1 << bit) for bit, path in enumerate(paths)]
    data, edges = column.data, column.edges
    rows = np.flatnonzero(wanted)
    found: list[int] = []
    for start, end in zip(edges[rows].tolist(), edges[rows + 1].tolist(), strict=True):
        code = _UNSURE
        whole: Any
        node: Any
        try:
            whole = parse(data[start:end])
        except (ValueError, RuntimeError):  # no JSON; a number that is too long for 64 bits
            found.append(code)
            continue
        if type(whole) is of_names:
            code = 0
            for above, last, bit in steps:
                node = whole
                for name in above:
                    node = node.get(name) if type(node) is of_names else None
                node = node.get(last, _ABSENT) if type(node) is of_names else _ABSENT
                if type(node) is str:
                    code |= bit
                elif node is not _ABSENT:
                    code = _UNSURE
                    break
        found.append(code)
        whole = node = None  # the parser takes another value only when nothing of its last one is left
    return found


def _merged(some: _Splices, others: _Splices) -> _Splices:
    spans, news = np.concatenate((some.spans, others.spans)), some.news + others.news
    order = np.argsort(spans[:, 1])
    return _Splices(spans[order], [news[number] for number in order.tolist()])


def _spliced(column: Column, splices: _Splices) -> Column:
    """Return the column with each splice in its place. The splices are in order."""
    if not splices.news:
        return column
    rows, begins, ends = splices.spans.T
    out: list[bytes] = []
    at = 0
    for begin, end, new in zip(begins.tolist(), ends.tolist(), splices.news, strict=True):
        out += (column.data[at:begin], new)
        at = end
    out.append(column.data[at:])
    lengths = np.diff(column.edges)
    np.add.at(lengths, rows, np.array(list(map(len, splices.news)), np.int64) - (ends - begins))
    return Column(b"".join(out), np.concatenate(([0], np.cumsum(lengths))))

"""Where answers go: JSON or tables on standard output, everything else on standard error."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len

from ferry.errors import BadInput
from ferry.files import new_file, no_folder, write_whole
from ferry.words import size, visible

if TYPE_CHECKING:
    from rich.console import Console

NO_DATA: Mapping[str, object] = {}
"""The code and facts of a sentence that is a plain text: none."""


class Form(StrEnum):
    """The forms of an answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell with a number: a table has its `text`, csv the number as it is. None: it is not known."""

    number: float | None
    text: str

    def __str__(self) -> str:
        """Return the text of a table."""
        return self.text


def in_bytes(count: int) -> Figure:
    """Return the cell of a number of bytes, which a table has in a readable unit."""
    return Figure(count, size(count))


class Unwritten(Exception):
    """Standard output takes no more, for example on a full disk; the message shows why."""


class _Outlet(io.RawIOBase):
    """A standard stream. If its reader has left (`| head`), what is written is dropped, and the command continues."""

    def __init__(self, descriptor: int, *, needed: bool, closed: bool = False) -> None:
        """`needed`: raise Unwritten if it cannot be written; otherwise that is dropped, too. `closed`: it never can."""
        self._descriptor = descriptor
        self._needed = needed
        self._is_closed = closed

    def writable(self) -> bool:
        """Return True: the stream is written."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: Any, /) -> int:
        """Write some; raises Unwritten."""
        if self._is_closed:
            if self._needed:
                self._needed = False  # raised once
                raise Unwritten("standard output is closed")
            return len(data)
        try:
            return os.write(self._descriptor, data)
        except OSError as error:
            # Everything written from here on is dropped, at exit, too.
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), self._descriptor)
            if self._needed and not isinstance(error, BrokenPipeError):
                raise Unwritten(error.strerror or type(error).__name__) from error
        return len(data)


def take_outlets() -> None:
    """Write standard output and standard error by `_Outlet`, if they are the process's own, or closed."""
    _hold_places()
    if sys.stdout is sys.__stdout__:
        sys.stdout = _outlet(sys.__stdout__, 1, needed=True)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _outlet(sys.__stderr__, 2, needed=False)


def _hold_places() -> None:
    """Open the null device for a closed standard stream: otherwise the next opened file would take its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number, which is this one


def _outlet(stream: TextIO | None, descriptor: int, *, needed: bool) -> TextIO:
    """Return a stream in place of Python's own, which is None if it is closed."""
    raw = _Outlet(descriptor if stream is None else stream.fileno(), needed=needed, closed=stream is None)
    errors = "strict" if stream is None else stream.errors or "strict"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if stream is None else stream.encoding,
        # A letter that the encoding lacks is written by its code: an answer must not fail because of it.
        errors="backslashreplace" if errors == "strict" else errors,
        line_buffering=raw.isatty() or not needed,
        write_through=not needed,
    )


def print_json(body: object) -> None:
    """Print the whole answer of a command; indented on a terminal."""
    print(json.dumps(body, indent=2 if sys.stdout.isatty() else None))


def print_answer(
    document: Callable[[], object],
    show: Callable[[], object],
    *,
    form: Form,
    table: Callable[[], object] | None = None,
) -> None:
    """Print the answer of a command: as JSON the document, else what `show` prints.

    As csv it is the first table that `table` prints, by default `show`; its sentences go to standard error.
    """
    if form is Form.JSON:
        print_json(document())
    elif form is Form.CSV:
        with _as_csv():
            (table or show)()
    else:
        show()


@dataclass(slots=True)
class _Csv:
    """What the answer in the form of csv has so far."""

    is_written: bool = False

    def write(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write a table, if it is the first one."""
        if self.is_written:
            return

        self.is_written = True
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(columns)
        out.writerows(map(_csv_cell, row) for row in rows)


def _csv_cell(cell: object) -> object:
    """Return what csv has: a number as it is, and a text that no spreadsheet takes for a formula."""
    if isinstance(cell, Figure):
        cell = cell.number
    if cell is None or isinstance(cell, int | float):
        return cell
    text = visible(str(cell.value if isinstance(cell, Enum) else cell))  # a tab or a line end is an escape here
    return f"'{text}" if text.startswith(_FORMULA) else text


_FORMULA = ("=", "+", "-", "@")
"""How a cell begins that a spreadsheet calculates. Others choose names of groups and reasons of pauses."""


_csv: _Csv | None = None
"""Set while an answer is printed as csv."""


@contextmanager
def _as_csv() -> Iterator[None]:
    global _csv  # noqa: PLW0603 - the commands print by functions of this module
    _csv = made = _Csv()
    try:
        yield
    finally:
        _csv = None
    if not made.is_written:
        print_warning("this answer has no table, so csv has nothing: -o json has all of it")


def print_json_list(body: Mapping[str, object], key: str, items: Iterable[object]) -> None:
    """Print an answer with a very long list as JSON: the list is under `key`, one item a line, written one by one."""
    print(f"{json.dumps(body)[:-1]}, {json.dumps(key)}: [", end="")
    between = "\n"
    for item in items:
        print(f"{between}{json.dumps(item)}", end="")
        between = ",\n"
    print("]}")


def print_error(message: str, *, kind: str | None = None, data: Mapping[str, object] = NO_DATA) -> None:
    """Print one sentence on standard error; with a `kind` also an object for the program that reads the answer.

    `data` is the code of the sentence and its facts, if it has some.
    """
    sentence = " ".join(message.split())
    print(f"ferry: {visible(sentence)}", file=sys.stderr)
    if kind is not None:
        print_json({"error": {"kind": kind, "message": sentence, **data}})


def print_warning(message: str) -> None:
    """Print a finding that does not stop the command."""
    print(f"ferry: warning: {visible(message)}", file=sys.stderr)


def echo(*values: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False) -> None:
    """Print as `print` does, with escapes for terminal control codes: sentences hold texts of others."""
    lines = (visible(str(value), keep=_LAYOUT) for value in values)
    print(*lines, sep=sep, end=end, file=sys.stderr if file is None and _csv else file, flush=flush)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Iterable[str] = (),
    total: Sequence[object] | None = None,
    omit: bool = False,
    only_csv: str = "",
) -> None:
    """Print a table without lines, or as csv; columns named in `right` are numbers.

    `total` is a last row that csv does not have. `omit`: a table without rows is not printed; csv has its header.
    `only_csv` names one more column, for the last cell of each row. It has what the texts of Figures add to numbers.

    If a terminal is too narrow, names fold, numbers never do; if that does not suffice, each row is a block of lines.
    The table is written in pages, as the rows come. Widths are those of a page, and never smaller than those of earlier
    pages.
    """
    if _csv is not None:
        _csv.write([*columns, only_csv] if only_csv else columns, rows)
        return
    if only_csv:
        rows = (row[:-1] for row in rows)
    first = list(islice(rows := iter(rows), 1))
    if omit and not first:
        return
    rows = chain(first, rows, () if total is None else (total,))
    numbers = [column in set(right) for column in columns]
    widths = [cell_len(column) for column in columns]
    terminal = _terminal() if os.isatty(1) else None

    # Not by rich: it takes four seconds for ten thousand rows. Nothing folds in a pipe, so that names can be copied.
    def line(row: Sequence[str]) -> str:
        padded = []
        for cell, width, number in zip(row, widths, numbers, strict=True):
            blank = " " * (width - cell_len(cell))
            padded.append(blank + cell if number else cell + blank)
        return _BETWEEN.join(padded).rstrip()

    texts = (["-" if cell is None else visible(str(cell)) for cell in row] for row in rows)
    pages = iter(lambda: list(islice(texts, _PAGE)), [])
    for at, cells in enumerate(chain([next(pages, [])], pages)):
        widths = [max(map(cell_len, column)) for column in zip([" " * width for width in widths], *cells, strict=True)]
        if terminal is not None and sum(widths) + len(_BETWEEN) * (len(widths) - 1) > terminal.width:
            _print_folded(terminal, columns, cells, numbers, heads=at == 0)
            continue
        if at == 0:
            print(line(columns)) if terminal is None else _print_head(terminal, line(columns))
        for row in cells:
            print(line(row))


def _print_head(terminal: Console, line: str) -> None:
    from rich.text import Text  # noqa: PLC0415 - a pipe needs none of it

    terminal.print(Text(line, style="bold"))


def _terminal() -> Console:
    from rich.console import Console  # noqa: PLC0415 - a pipe needs none of it

    return Console()


_BETWEEN = "  "
_PAGE = 2_000
_LEAST = 12
"""The fewest characters of a folded name; with fewer it is easier to read in a line of its own."""
_LAYOUT = "\n\t"
"""Line ends and tabs, which are printed as they are."""


def _print_folded(
    terminal: Console, columns: Sequence[str], cells: list[list[str]], numbers: Sequence[bool], *, heads: bool
) -> None:
    from rich.table import Table  # noqa: PLC0415 - a pipe needs none of it
    from rich.text import Text  # noqa: PLC0415 - as above

    widths = _fitting(columns, cells, numbers, terminal.width)
    if widths is None:
        _print_records(terminal, columns, cells)
        return
    table = Table(box=None, pad_edge=False, show_header=heads)
    for column, number, width in zip(columns, numbers, widths, strict=True):
        table.add_column(column, justify="right" if number else "left", overflow="fold", width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    terminal.print(table)


def _fitting(
    columns: Sequence[str], cells: list[list[str]], numbers: Sequence[bool], room: int
) -> tuple[int, ...] | None:
    """Return widths that fit: numbers stay whole, names fold from the widest on; None if they would get too narrow."""
    widest = [max(map(cell_len, column)) for column in zip([""] * len(columns), *cells, strict=True)]
    words = [max(map(cell_len, column.split()), default=0) for column in columns]
    least = [
        max(word, width if number else min(width, _LEAST))
        for word, width, number in zip(words, widest, numbers, strict=True)
    ]
    widths = [max(width, cell_len(column)) for width, column in zip(widest, columns, strict=True)]
    room -= len(_BETWEEN) * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        at = max((at for at in range(len(widths)) if widths[at] > least[at]), key=widths.__getitem__)
        widths[at] -= 1
    return tuple(widths)


def _print_records(terminal: Console, columns: Sequence[str], cells: list[list[str]]) -> None:
    """Print each row as a block with a line for each cell, for a table that is far too wide for the terminal."""
    from rich.text import Text  # noqa: PLC0415 - a pipe needs none of it

    longest = max(map(cell_len, columns))
    for row in cells:
        for column, cell in zip(columns, row, strict=True):
            room = max(1, terminal.width - longest - len(_BETWEEN))
            head = Text(column + " " * (longest - cell_len(column) + len(_BETWEEN)), style="bold")
            for part in Text(cell).wrap(terminal, room, overflow="fold") or [Text("")]:
                terminal.print(head + part)
                head = Text(" " * (longest + len(_BETWEEN)))
        terminal.print()


def write_new(path: Path, text: str, *, mode: int, name: str = "") -> None:
    """Create a file; BadInput when it exists already or cannot be written. `name`: the user's name for it."""
    with new_file(path, mode=mode, name=name) as file:
        file.write(text.encode())


def write_output(path: Path, text: str) -> None:
    """Write the file that --output names, for its owner alone, whole or not at all. Raises BadInput if that fails."""
    try:
        write_whole(path, text)
    except OSError as error:
        said = no_folder(path) or f"{error.strerror}; name a file that you may write"
        raise BadInput(f"--output {path}: cannot be written: {said}") from None

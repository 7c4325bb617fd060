"""Where answers go: JSON or tables on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence


def print_json(body: object) -> None:
    """The whole answer of a command; indented when a person looks at it."""
    print(json.dumps(body, indent=2 if sys.stdout.isatty() else None))


def print_error(kind: str, message: str, *, as_json: bool) -> None:
    """One sentence on standard error; with JSON also an object for the program that reads the answer."""
    sentence = " ".join(message.split())
    print(f"ferry: {sentence}", file=sys.stderr)
    if as_json:
        word = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower()
        print_json({"error": {"kind": word, "message": sentence}})


def print_warning(message: str) -> None:
    """A finding that stops nothing."""
    print(f"ferry: warning: {message}", file=sys.stderr)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> None:
    """A table without lines; columns named in `right` are numbers."""
    # Imported here: the command line starts light.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    numbers = set(right)
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("-" if cell is None else str(cell)) for cell in row))
    # Names are there to be copied: no folding at 80 columns when this is no terminal.
    if os.isatty(1):
        Console().print(table)
        return
    console = Console(width=10_000)
    with console.capture() as captured:
        console.print(table, soft_wrap=True)
    # One long cell would fill every line with blanks to its own length.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def size(count: int) -> str:
    """Bytes in decimal units, as disks and networks are sold: `12.3 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def count_of(number: int, noun: str) -> str:
    """`1 slice`, `2 slices`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

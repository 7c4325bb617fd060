"""Options that take a size or a duration: `--max-bytes 10GiB`, `--patience 2m`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from ferry.errors import BadInput
from ferry.units import Duration, OutOfRange, Size, Unreadable

YEAR_SECONDS = 31_536_000
"""The longest wait: a number that the clock cannot count would end a command midway."""


def sized(name: str, text: str, *, least: int = 0) -> Any:
    """Return Typer's option `name` of a size in bytes; `text` is its help."""
    return _option(name, Size(least=least), text)


def lasting(
    name: str,
    text: str,
    *,
    default: float | None = None,
    least: float = 0,
    most: float = YEAR_SECONDS,
    whole: bool = False,
) -> Any:
    """Return Typer's option `name` of a duration in seconds; `text` is its help, and `default` is shown after it."""
    reader = Duration("s", least=least, most=most, whole=whole)
    return _option(name, reader, text if default is None else f"{text} Default: {reader.text(default)}.")


def _option(name: str, reader: Size | Duration, text: str) -> Any:
    return typer.Option(name, parser=_parser(name, reader), metavar=reader.what.upper(), help=text, show_default=False)


def _parser(name: str, reader: Size | Duration) -> Callable[[Any], Any]:
    def read(given: Any) -> Any:
        if not isinstance(given, str):  # a default
            return given
        try:
            return reader(given)
        except (Unreadable, OutOfRange) as error:
            raise BadInput(f"{name} {error}") from None

    return read

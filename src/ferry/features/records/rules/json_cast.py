"""Casts a JSON value to another type, as Kafka Connect's `Cast` does it for values without a schema. Pure.

There are two differences. A value that does not fit is an error, where Kafka's class cuts its bits off. A number
becomes text in its written form, where Kafka's class writes Java's number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import numpy as np

from ferry.features.records.rules.json_edit import Edit, NotJson, Number

_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_BLANKS = "".join(map(chr, range(33)))
"""The characters that Java's `trim` removes."""
_MOST_DIGITS = 20
"""More digits than any whole number has that fits."""


def cast(kind: str) -> Edit:
    """Make an edit that casts a value to a type of TYPES. Null stays null; NotJson for what cannot be cast."""
    of = TYPES[kind]

    def edit(value: object, text: str) -> str:
        if value is None:
            return text
        if isinstance(value, list | dict):
            raise NotJson(f"what is to be {kind} is a list or an object, which cannot be cast")
        try:
            return of(value, text)
        except ValueError:
            raise NotJson(f"what is to be {kind} has another form, or does not fit") from None

    return edit


def _string(value: object, text: str) -> str:
    return text if type(value) is str else f'"{text}"'


def _boolean(value: object, text: str) -> str:
    match value:
        case bool():
            return text
        case Number():
            return "true" if Decimal(value) >= 1 or Decimal(value) <= -1 else "false"
    return "true" if str(value).lower() == "true" else "false"


def _whole(bits: int) -> Callable[[object, str], str]:
    end = 1 << (bits - 1)

    def of(value: object, _: str) -> str:
        if isinstance(value, bool):
            return str(int(value))
        found = _truncated(value) if isinstance(value, Number) else _read(str(value))
        if not -end <= found < end:
            raise ValueError
        return str(found)

    return of


def _truncated(number: Number) -> int:
    exact = Decimal(number)
    if exact.adjusted() > _MOST_DIGITS:
        raise ValueError
    return int(exact)


def _read(text: str) -> int:
    if not _WHOLE.fullmatch(text) or len(text.lstrip("+-0")) > _MOST_DIGITS:
        raise ValueError
    return int(text)


def _double(value: object, text: str) -> str:
    number = _of_float(value)
    as_written = isinstance(value, Number) and not _WHOLE.fullmatch(value)
    return text if as_written else repr(number)


def _single(value: object, _: str) -> str:
    with np.errstate(over="ignore"):
        number = np.float32(_of_float(value))
    if not np.isfinite(number):
        raise ValueError
    return str(number)


def _of_float(value: object) -> float:
    if isinstance(value, bool):
        return float(value)
    text = str(value).strip(_BLANKS)
    if not _FRACTION.fullmatch(text):
        raise ValueError
    number = float(text.rstrip("fFdD"))
    if not math.isfinite(number):
        raise ValueError
    return number


TYPES: Mapping[str, Callable[[object, str], str]] = {
    "int8": _whole(8),
    "int16": _whole(16),
    "int32": _whole(32),
    "int64": _whole(64),
    "float32": _single,
    "float64": _double,
    "boolean": _boolean,
    "string": _string,
}
"""Functions that cast a value, by Connect's name of the type."""

"""Counts, names and times in the form of sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

_NAMES_TOLD = 3
_THINGS = "records?|offsets?|partitions?|topics?|bytes?|groups?|receipts?|slices?|units?|chunks?|segments?|batch(?:es)?"
_THINGS += "|differences?|keys?|rows?|members?|transactions?|runs?|windows?|refusals?|lanes?|flows?"
_COUNTED = re.compile(
    rf"(?<![\w.,:/=#-])\d{{4,}}(?= (?:of \d+ )?(?:(?:more|other|copied|source|target) )*(?:{_THINGS})\b)"
)


def count_of(number: int, noun: str) -> str:
    """Return `1 slice`, `2 slices`."""
    return agreeing(number, noun, f"{noun}s")


def agreeing(number: int, one: str, many: str) -> str:
    """Return a number with the words that agree with it: `1 group has`, `2 groups have`."""
    return f"{number} {one if number == 1 else many}"


def thousands(value: float) -> str:
    """Return a number with its thousands separated by a narrow space that does not break."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def readable(sentence: str) -> str:
    """Return a sentence of a log or of JSON for people: counts of things have their thousands separated.

    Offsets, names and addresses stay unchanged, so that they can be copied.
    """
    return _COUNTED.sub(lambda found: thousands(int(found[0])), sentence)


def size(count: float) -> str:
    """Return bytes in decimal units, the units in which disks and networks are sold: `12.3 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def whole_size(count: int) -> str:
    """Return bytes in decimal units without fractions, rounded down: `5 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count //= 1000
    return f"{count:.0f} TB"


def several(names: Sequence[str]) -> str:
    """Return names for a sentence: the first few, and how many more there are."""
    shown = ", ".join(names[:_NAMES_TOLD])
    more = len(names) - _NAMES_TOLD
    return f"{shown} and {more} more" if more > 0 else shown


def to_the_second(at_ms: int) -> str:
    """Return a time (ms since the epoch) of the ledger or of a report, in UTC: `2026-11-22T12:00:00Z`."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

"""Counts, names and times as sentences have them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

_NAMES_TOLD = 3


def count_of(number: int, noun: str) -> str:
    """`1 slice`, `2 slices`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def several(names: Sequence[str]) -> str:
    """Names for a sentence: the first few, and how many more there are."""
    told = ", ".join(names[:_NAMES_TOLD])
    more = len(names) - _NAMES_TOLD
    return f"{told} and {more} more" if more > 0 else told


def to_the_second(at_ms: int) -> str:
    """A time (ms since the epoch) of the ledger or of a report, in UTC: `2026-11-22T12:00:00Z`."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

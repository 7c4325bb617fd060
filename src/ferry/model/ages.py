"""How old records, or offsets of groups, were at some moment of their way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeStats:
    """The age in milliseconds at a moment: the least, the mean and the most, and the number of records (or of groups).

    An age is below 0 when the timestamp was later than the moment.
    """

    min: int
    mean: int
    max: int
    records: int


def all_ages(ages: Iterable[AgeStats | None]) -> AgeStats | None:
    """Return the ages of all records together; None where none is known."""
    known = [one for one in ages if one is not None]
    if not known:
        return None
    records = sum(one.records for one in known)
    return AgeStats(
        min=min(one.min for one in known),
        mean=round(sum(one.mean * one.records for one in known) / records),
        max=max(one.max for one in known),
        records=records,
    )

"""Records that one partition lacks and another has in addition: they were moved, not lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ferry.features.verify.rules.differences import SHOWN
from ferry.model import Difference, DifferenceKind, RecordSample

_Contents = tuple[tuple[int, str, str, str], ...]


def with_moved(differences: Iterable[Difference]) -> list[Difference]:
    """Return the differences, with missing records that another partition of the topic has in addition as MOVED.

    All records of both differences must be known, so there must be fewer than `SHOWN` in a row.
    """
    found = list(differences)
    extras: dict[tuple[str, _Contents], list[int]] = {}
    for index, one in enumerate(found):
        if one.kind is DifferenceKind.EXTRA and len(one.target_records) < SHOWN:
            extras.setdefault((one.target.topic, _contents(one.target_records)), []).append(index)
    gone: set[int] = set()
    for index, one in enumerate(found):
        if one.kind is not DifferenceKind.MISSING or not 0 < len(one.source_records) < SHOWN:
            continue
        places = extras.get((one.target.topic, _contents(one.source_records)), [])
        at = next((place for place in places if found[place].target != one.target), None)
        if at is not None:
            places.remove(at)
            gone.add(at)
            there = found[at]
            found[index] = replace(
                one,
                kind=DifferenceKind.MOVED,
                target=there.target,
                target_range=there.target_range,
                target_records=there.target_records,
            )
    return [one for index, one in enumerate(found) if index not in gone]


def _contents(records: Sequence[RecordSample]) -> _Contents:
    return tuple(record.content for record in records)

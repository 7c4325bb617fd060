"""Finds the place where two rows of records that have parted agree again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferry.features.verify.rules.alignment import CALM
from ferry.model import RecordContent

_MOST_PLACES = 16
"""If a content is found so often, further places are not tried."""


def common(sources: Sequence[RecordContent], targets: Sequence[RecordContent]) -> tuple[int, int] | None:
    """Return how many records of each row are before the nearest place from which on both agree; None: no place."""
    places: dict[tuple[object, ...], list[int]] = {}
    for at, content in enumerate(targets):
        found = places.setdefault(content[1:], [])
        if len(found) < _MOST_PLACES:
            found.append(at)
    best: tuple[int, int] | None = None
    for at, content in enumerate(sources):
        if best is not None and at >= sum(best):
            break
        for there in places.get(content[1:], ()):
            if (best is None or at + there < sum(best)) and all(_agreeing(sources, targets, at, there)):
                best = at, there
    return best


def _agreeing(
    sources: Sequence[RecordContent], targets: Sequence[RecordContent], at: int, there: int
) -> Iterator[bool]:
    for step in range(min(CALM, len(sources) - at, len(targets) - there)):
        yield sources[at + step][1:] == targets[there + step][1:]

"""Compacted topics: what only one side has may be what the other's log cleaner removed.

Kafka's `LogCleaner` removes a record when a later one has its key, and a tombstone some time after that (KIP-58,
`delete.retention.ms`). So what counts is the latest record of a key: one that a side lacks must have been followed
there, or be a tombstone that leaves nothing of its key behind.
"""

from __future__ import annotations

from typing import NamedTuple

from ferry.model import Content

MOST_KEYS = 1_000_000
"""Keys with a record that only one side has: their names are held in memory."""


class Lone(NamedTuple):
    """The latest record of a key that a side has alone, and the offset that it should have on the other."""

    offset: int
    place: int
    is_tombstone: bool


class OneSided:
    """Of each side (0 source, 1 target) the keys whose records the other lacks, until the other's log was asked."""

    def __init__(self) -> None:
        self.keys: tuple[dict[bytes, Lone], dict[bytes, Lone]] = ({}, {})
        self.is_full = False
        """There were more than `MOST_KEYS`; what came last was not kept."""
        self._first: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
        self._last: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})

    def add(self, side: int, content: Content, place: int) -> None:
        """A record that only `side` has; in offset order."""
        keys = self.keys[side]
        if content.key is None or (len(keys) >= MOST_KEYS and content.key not in keys):
            self.is_full = True
            return
        keys[content.key] = Lone(content.offset, place, content.value is None)

    def look(self, side: int, content: Content) -> None:
        """A record of the whole log of `side`, in offset order: it may account for a lone one of the other side."""
        key = content.key
        if key is not None and key in self.keys[1 - side]:
            self._first[side].setdefault(key, content.offset)
            self._last[side][key] = content.offset

    def unexplained(self, side: int) -> list[Lone]:
        """The lone records of `side` for which the other's log has no reason, by offset."""
        first, last = self._first[1 - side], self._last[1 - side]
        return sorted(
            lone
            for key, lone in self.keys[side].items()
            if last.get(key, -1) <= lone.place
            and not (lone.is_tombstone and first.get(key, lone.place) >= lone.place)
        )  # fmt: skip

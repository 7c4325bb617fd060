"""Compacted topics: a record that only one side has may be one that the other side's log cleaner removed.

Kafka's `LogCleaner` removes a record when a later one has the same key, and a tombstone some time after that (KIP-58,
`delete.retention.ms`). So the latest record of a key is what counts. If a side lacks it, either a later record followed
it there, or it is a tombstone that leaves nothing of its key.
"""

from __future__ import annotations

from typing import NamedTuple

from ferry.model import RecordContent

MOST_KEYS = 1_000_000
"""Most keys with a record that only one side has; they are kept in memory."""


class Lone(NamedTuple):
    """The latest record of a key that only one side has, and the offset that it should have on the other side."""

    offset: int
    place: int
    is_tombstone: bool


class OneSided:
    """The keys of each side (0 source, 1 target) with records that the other side lacks, and what explains them."""

    def __init__(self) -> None:
        self.keys: tuple[dict[bytes, Lone], dict[bytes, Lone]] = ({}, {})
        self.is_full = False
        """Whether there were more than `MOST_KEYS`, or a record without a key: those were not kept."""
        self._first: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
        self._last: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})

    def add(self, side: int, content: RecordContent, place: int) -> None:
        """Add a record that only `side` has; call it in offset order."""
        keys = self.keys[side]
        if content.key is None or (len(keys) >= MOST_KEYS and content.key not in keys):
            self.is_full = True
            return
        keys[content.key] = Lone(content.offset, place, content.value is None)

    def look(self, side: int, content: RecordContent) -> None:
        """Read a record of the whole log of `side`, in offset order: it may explain a lone record of the other side."""
        key = content.key
        if key is not None and key in self.keys[1 - side]:
            self._first[side].setdefault(key, content.offset)
            self._last[side][key] = content.offset

    def unexplained(self, side: int) -> list[Lone]:
        """Return the lone records of `side` that the other side's log does not explain, by offset."""
        first, last = self._first[1 - side], self._last[1 - side]
        return sorted(
            lone
            for key, lone in self.keys[side].items()
            if last.get(key, -1) <= lone.place
            and not (lone.is_tombstone and first.get(key, lone.place) >= lone.place)
        )  # fmt: skip

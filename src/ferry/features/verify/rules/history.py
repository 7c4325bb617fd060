"""The records that two logs had in common so far, as hashes: they show whether a record is a repetition."""

from __future__ import annotations

from ferry.model import RecordContent

HISTORY = 200_000
"""So many of the last records that agreed are kept, as a number each."""


class History:
    """The last records that agreed, by their content."""

    __slots__ = ("_first", "_hashes", "_offsets", "_places")

    def __init__(self) -> None:
        self._hashes: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self._first = 0

    @property
    def end(self) -> int:
        """Return the place after the last one."""
        return self._first + len(self._hashes)

    def add(self, content: RecordContent) -> None:
        """Add the next record."""
        place, name = self.end, hash(content[1:])
        self._hashes[place], self._offsets[place] = name, content.offset
        self._places[name] = place
        if len(self._hashes) > HISTORY:
            old = self._hashes.pop(self._first)
            del self._offsets[self._first]
            if self._places.get(old) == self._first:
                del self._places[old]
            self._first += 1

    def find(self, content: RecordContent) -> int | None:
        """Return the last place of a record; None when it was not there, or too long ago."""
        return self._places.get(hash(content[1:]))

    def holds(self, place: int, content: RecordContent) -> bool:
        """Report whether the record at a place is this one."""
        return self._hashes.get(place) == hash(content[1:])

    def offset(self, place: int) -> int:
        """Return the source offset of the record at a place."""
        return self._offsets[place]

"""What a transform made of the records of a topic, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class FilterCounts(NamedTuple):
    """How many records of a topic an attempt at a run has read, and how many of them its transform kept."""

    read: int = 0
    kept: int = 0

    @property
    def left_out(self) -> int:
        """How many records it left out."""
        return self.read - self.kept

    def with_more(self, other: FilterCounts) -> FilterCounts:
        """Return the sum of both."""
        return FilterCounts(self.read + other.read, self.kept + other.kept)


NOTHING_FILTERED: Mapping[str, FilterCounts] = MappingProxyType({})
"""No counts, by topic."""

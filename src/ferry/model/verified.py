"""The result of a comparison of two clusters."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.difference import Difference, NotCompared
from ferry.model.flow import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What came of comparing a flow's source and target.

    `records` are those of the source that were compared, `bytes` those of the batches that were read for it, of both
    sides, as stored. `more` counts differences that are not told one by one.
    """

    flow: Flow
    lane: str
    partitions: int
    records: int
    bytes: int
    seconds: float
    differences: tuple[Difference, ...]
    more: int = 0
    not_compared: tuple[NotCompared, ...] = ()
    notes: tuple[str, ...] = ()
    sample: int | None = None
    """One of so many segments was compared; None: all were."""
    seed: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for, or should be there, was compared."""
        return not any(left.asked for left in self.not_compared)

    @property
    def is_equal(self) -> bool:
        """Whether all of it was compared, and agrees."""
        return self.is_complete and not self.differences

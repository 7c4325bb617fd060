"""The result of a comparison of two clusters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
        """Whether all of it was compared, and nothing differs."""
        return self.is_complete and not self.differences

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to compare: nothing differs, and nothing is proven."""
        return self.is_equal and not self.records


class VerifyMode(StrEnum):
    """How a run verifies itself."""

    OFF = "off"
    RECEIPT = "receipt"
    """What its receipts say against both logs: where they end, and the digests of what lies on the target."""
    CONTENT = "content"
    """Every record, on both clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerified:
    """What came of a run that verified itself; counts as of Verified.

    `records` are those that were read: all that the run has copied, or, of receipts, as much as was affordable.
    """

    mode: VerifyMode
    generation: int
    equal: bool
    partitions: int
    records: int
    bytes: int
    seconds: float
    differences: tuple[Difference, ...] = ()
    """The first ones, without their records."""
    more: int = 0
    not_compared: tuple[str, ...] = ()
    """Sentences: what should be there and could not be compared."""
    at_ms: int = 0

    @property
    def sentence(self) -> str:
        """What came of it."""
        count = len(self.differences) + self.more
        verdict = f"{count} difference(s)" if count else "equal" if self.equal else "not all could be compared"
        return (
            f"verified by {self.mode}: {verdict}; {self.partitions} partition(s), {self.records} record(s) read, "
            f"{self.bytes / 1e6:.1f} MB in {self.seconds:.1f} s"
        )

    @property
    def complaints(self) -> list[str]:
        """Why it is not equal, one sentence for each place."""
        told = [one.sentence for one in self.differences]
        return [*told, *([f"and {self.more} further differences"] if self.more else []), *self.not_compared]

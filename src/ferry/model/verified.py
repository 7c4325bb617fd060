"""The result of a comparison of two clusters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.model.difference import Difference, NotCompared, Range
from ferry.model.flow import Flow, TopicPartition
from ferry.words import count_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Where a lane began in a source partition.

    `unaccounted` are the offsets of its log, up to the last one copied, that neither a receipt nor a gap names: they
    were not compared. An offset of None is not known: the lane has no begin yet, or the log is gone.
    """

    source: TopicPartition
    offset: int | None
    log_start: int | None
    unaccounted: tuple[Range, ...] = ()
    adopted: bool = False
    """Whether another replicator copied what is before."""

    @property
    def is_whole(self) -> bool:
        """Whether it is known that receipts and gaps cover all of the log, up to the last offset copied."""
        return self.offset is not None and self.log_start is not None and not self.unaccounted

    @property
    def sentence(self) -> str:
        """What was not compared before and between receipts; empty where that is nothing."""
        if self.offset is None:
            return f"of {self.source} nothing was compared: where the lane begins is not known yet"
        if self.log_start is None:
            return f"{self.source}: the lane began at offset {self.offset}; where its log begins is not known"
        if not self.unaccounted:
            return ""
        ranges = ", ".join(
            str(start) if end == start + 1 else f"{start} to {end - 1}" for start, end in self.unaccounted
        )
        theirs = "; another replicator copied the records before: ferry verify --without-ledger compares them"
        return (
            f"{self.source}: the lane began at offset {self.offset}, its log at {self.log_start}; offsets {ranges} are "
            f"in no receipt and no gap, and were not compared{theirs if self.adopted else ''}"
        )


OWN_READER = "ferry"
"""The name of Ferry's own fetch as a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of comparing a flow's source and target.

    `records` are those of the source that were compared. `bytes` are those of the batches that were read for it on both
    sides, as stored. `more` counts differences that are not listed.
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
    identical: int | None = None
    """How many of `records` were compared with the target's record at the same offset, because the copies have
    identical offsets. None: no copy has."""
    begins: tuple[Begin, ...] = ()
    """Where the lane began in each source partition; empty without a ledger."""
    sample: int | None = None
    """One of this many segments was compared; None: all were."""
    seed: int | None = None
    reader: str = OWN_READER
    """What read both clusters: Ferry's own fetch, or another client with its version."""

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for, or should be there, was compared."""
        return not any(left.asked for left in self.not_compared)

    @property
    def is_equal(self) -> bool:
        """Whether all of it was compared, and nothing differs."""
        return self.is_complete and not self.differences

    @property
    def is_whole(self) -> bool:
        """Whether receipts and gaps cover all of the logs, up to the last offsets copied."""
        return all(one.is_whole for one in self.begins)

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to compare: nothing differs, and nothing is proven."""
        return self.is_equal and not self.records


class VerifyMode(StrEnum):
    """How a run verifies itself."""

    OFF = "off"
    RECEIPT = "receipt"
    """What its receipts show, compared with both logs: where they end, and the digests of the records on the target."""
    CONTENT = "content"
    """Every record, on both clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerified:
    """The result of a run that verified itself.

    `partitions`, `bytes` and `more` have the meaning that they have in Verified. `records` are those that were read:
    all that the run has copied, or, with receipts, as many as was affordable.
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
        """The result in one sentence."""
        count = len(self.differences) + self.more
        verdict = count_of(count, "difference") if count else "equal" if self.equal else "not all could be compared"
        return (
            f"verified by {self.mode}: {verdict}; {count_of(self.partitions, 'partition')}, "
            f"{count_of(self.records, 'record')} read, {self.bytes / 1e6:.1f} MB in {self.seconds:.1f} s"
        )

    @property
    def complaints(self) -> list[str]:
        """Why it is not equal, one sentence for each place."""
        sentences = [one.sentence for one in self.differences]
        return [*sentences, *([f"and {self.more} further differences"] if self.more else []), *self.not_compared]

"""The result of a comparison of two clusters.

It has where they differ, what could not be compared, and the records to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.model.flow import TopicPartition

Range = tuple[int, int]
"""Offsets `[start, end)`; the empty range of a difference is the place where records are missing."""


class DifferenceKind(StrEnum):
    """How two sides differ; stable words for reports and alerts."""

    MISSING = "missing"
    """The source has the records, the target does not."""
    EXTRA = "extra"
    """The target has the records, the source does not."""
    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"
    TIMESTAMP = "timestamp"
    RECORD = "record"
    """More than one of the four above."""
    ORDER = "order"
    """The same records in another order."""
    MOVED = "moved"
    """The records are in another partition of the target topic."""
    DUPLICATE = "duplicate"
    """The target has the records once more; reported only where a mirror without a ledger wrote them."""
    DISPLACED = "displaced"
    """The same records in the same order, at other offsets than in the ledger: translated offsets are wrong there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSample:
    """A record that is shown. Sizes are bytes (None: null).

    Digests are keyed: comparable in one report and in no other. The texts are empty unless values were asked for; then
    they are the beginnings of key, value and headers.
    """

    offset: int
    timestamp_ms: int
    key_size: int | None
    value_size: int | None
    headers_size: int
    key_digest: str
    value_digest: str
    headers_digest: str
    key_text: str = ""
    value_text: str = ""
    headers_text: str = ""

    @property
    def content(self) -> tuple[int, str, str, str]:
        """The fields that are equal for records that differ only in their offsets."""
        return self.timestamp_ms, self.key_digest, self.value_digest, self.headers_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where the sides differ: the source's offsets and the target's, and the first records of both."""

    source: TopicPartition
    target: TopicPartition
    source_range: Range
    target_range: Range
    kind: DifferenceKind
    source_records: tuple[RecordSample, ...] = ()
    target_records: tuple[RecordSample, ...] = ()

    @property
    def sentence(self) -> str:
        """What differs, and where."""
        return f"{self.kind} in {self.source} {list(self.source_range)}, {self.target} {list(self.target_range)}"


class NotComparedKind(StrEnum):
    """Why source offsets were not compared; stable words."""

    SOURCE_DELETED = "source-deleted"
    """Retention, or a client, deleted them at the source."""
    TARGET_DELETED = "target-deleted"
    NOT_COPIED = "not-copied"
    """No receipt has them (yet)."""
    SKIPPED = "skipped"
    """The lane passed them over on purpose."""
    SOURCE_REPLACED = "source-replaced"
    """The source topic was created again, or is gone."""
    TARGET_GONE = "target-gone"
    NOT_STABLE = "not-stable"
    """A transaction is open before them on the target."""
    PARTITION_COUNT = "partition-count"
    """The two topics have different numbers of partitions, so a record's partition does not show its copy's."""
    NOTHING_IN_COMMON = "nothing-in-common"
    """No record there equals any of the other side's near it, so it is not known where to continue."""
    TRANSFORM_CHANGED = "transform-changed"
    """They were copied by another transform than the file has today, so today's shows nothing about them."""
    TRANSFORMED = "transformed"
    """A transform makes the copy, and without a ledger it is not known of which records."""
    DEALT = "dealt"
    """Their topic is repartitioned, and no receipt shows the partition of each record."""
    NEEDS_SPARK = "needs-spark"
    """They were copied by a transform, and there is no Spark here that would apply it again."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCompared:
    """Source offsets `[start, end)` that were not compared; `message` is a sentence.

    `asked`: they were asked for, or should be there, so the comparison is not complete without them.
    """

    source: TopicPartition
    start: int
    end: int
    why: NotComparedKind
    message: str
    asked: bool

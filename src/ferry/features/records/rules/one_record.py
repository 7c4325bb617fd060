"""One record on both sides of a flow: what each side has at an offset, or why it has none, and what differs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from ferry.model import Gap, RefusalKind, Resolution, TopicPartition
from ferry.wire.headers import Header

MOST_HEADERS = 100
"""Headers of a record that are kept, the first ones."""
KEPT_BYTES = 256 << 10
"""Bytes of a key or of a value that are kept, the first ones."""
KEPT_OF_HEADER = 4 << 10
"""Bytes of a header's name or of its value that are kept, the first ones."""


class Lack(StrEnum):
    """Why a side has no record to show."""

    DELETED = "deleted"
    """The log begins after the offset: retention or DeleteRecords took it."""
    COMPACTED = "compacted"
    """The topic is compacted, and its log has nothing at the offset."""
    ABORTED = "aborted"
    """The record belongs to an aborted transaction."""
    CONTROL = "control"
    """The offset is that of a transaction's commit or abort marker."""
    OPEN = "open-transaction"
    """A transaction that began at or before the offset has not ended."""
    NOT_WRITTEN = "not-written"
    """The log ends at or before the offset."""
    NOT_COPIED = "not-copied"
    """The lane has not copied as far as the offset."""
    BEFORE = "before-first-copy"
    """The lane began to copy after the offset."""
    PRUNED = "pruned"
    """Both sides deleted the record, and the ledger its receipt."""
    SKIPPED = "skipped"
    """An operator or a guard had the lane skip the offset."""
    LEFT_OUT = "left-out"
    """The other side has nothing to copy at the offset, or a transform or filter left the record out."""
    APPROXIMATE = "approximate"
    """Another replicator copied the record: which one it is on this side is not known."""
    UNMAPPED = "unmapped"
    """No offset map leads to this side; the sentence says why."""
    UNREADABLE = "unreadable"
    """The log cannot be read there; the sentence says why."""
    NOT_KNOWN = "not-known"
    """Nothing is at the offset, and the reason is not known."""


SAID: Mapping[Lack, str] = {
    Lack.DELETED: "the log begins after this offset: retention or DeleteRecords took the record",
    Lack.COMPACTED: "compaction removed what was at this offset",
    Lack.ABORTED: "the record belongs to an aborted transaction, so no consumer of committed records gets it",
    Lack.CONTROL: "this offset is a transaction's marker, which no consumer gets",
    Lack.OPEN: "a transaction at or before this offset has not ended, so the record cannot be read yet",
    Lack.NOT_WRITTEN: "the log ends before this offset",
    Lack.NOT_COPIED: "the lane has not copied as far as this offset",
    Lack.BEFORE: "the lane began to copy after this offset",
    Lack.PRUNED: "both sides deleted the record, and the ledger its receipt",
    Lack.SKIPPED: "the lane skipped this offset",
    Lack.LEFT_OUT: "nothing of the other side's offset is here",
    Lack.APPROXIMATE: "another replicator copied the record: which one it is here is not known",
    Lack.UNMAPPED: "no offset map leads to this side",
    Lack.UNREADABLE: "the log cannot be read at this offset",
    Lack.NOT_KNOWN: "nothing is at this offset, and why is not known",
}
"""What each reason means, in words."""


class StampedBy(StrEnum):
    """Who set a record's timestamp: Kafka's `TimestampType`."""

    CREATE = "CreateTime"
    APPEND = "LogAppendTime"
    NONE = "NoTimestampType"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A key, a value, or a header's name or value: its first bytes, its size and a digest of all of it."""

    data: bytes | None
    """The first bytes; None: null, as the value of a tombstone."""
    size: int | None
    digest: bytes

    @classmethod
    def of(cls, data: bytes | None, most: int = KEPT_BYTES) -> Part:
        """Keep the first `most` bytes."""
        if data is None:
            return cls(data=None, size=None, digest=b"")
        return cls(data=data[:most], size=len(data), digest=blake2b(data, digest_size=16).digest())

    def equals(self, other: Part) -> bool:
        """Return whether both are the same bytes; null is not empty."""
        return (self.size, self.digest) == (other.size, other.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRecord:
    """A record as far as it is shown: the first bytes of each part."""

    timestamp_ms: int | None
    stamped_by: StampedBy
    key: Part
    value: Part
    headers: tuple[tuple[Part, Part], ...]
    more_headers: int
    """Headers after those that are kept."""
    rest_digest: bytes
    """The digest of the headers that are not kept; empty: there are none."""

    @classmethod
    def of(
        cls,
        timestamp_ms: int,
        stamped_by: StampedBy,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> OneRecord:
        """Keep what is shown of a record. A timestamp of -1 is Kafka's for none."""
        rest = headers[MOST_HEADERS:]
        return cls(
            timestamp_ms=None if timestamp_ms == -1 else timestamp_ms,
            stamped_by=stamped_by,
            key=Part.of(key),
            value=Part.of(value),
            headers=tuple(
                (Part.of(name, KEPT_OF_HEADER), Part.of(value, KEPT_OF_HEADER))
                for name, value in headers[:MOST_HEADERS]
            ),
            more_headers=len(rest),
            rest_digest=blake2b(repr(rest).encode(), digest_size=16).digest() if rest else b"",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side has at an offset: a record, or `lack`, and a sentence if there is more to say of it."""

    place: TopicPartition | None
    """The topic and partition on this side; None: the partition is not known."""
    offset: int | None
    record: OneRecord | None = None
    lack: Lack | None = None
    detail: str = ""
    bounds: tuple[int, int] | None = None
    """Where the log begins, and its end; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BothSides:
    """A record at the source, and its copy."""

    source: Side
    target: Side
    transformed: bool
    """Whether a transform of the file changes records of the topic, so that differences are not a fault."""

    @property
    def differences(self) -> tuple[str, ...]:
        """The parts that differ, of `timestamp`, `key`, `value` and `headers`; empty without two records."""
        one, other = self.source.record, self.target.record
        if one is None or other is None:
            return ()
        found = {
            "timestamp": differ_in_time(one, other),
            "key": not one.key.equals(other.key),
            "value": not one.value.equals(other.value),
            "headers": any(differing_headers(one, other)) or not _same_rest(one, other),
        }
        return tuple(name for name, is_different in found.items() if is_different)


def differ_in_time(one: OneRecord, other: OneRecord) -> bool:
    """Return whether timestamps differ that should not. Each broker sets its own log append time."""
    if StampedBy.APPEND in (one.stamped_by, other.stamped_by):
        return False
    return one.timestamp_ms != other.timestamp_ms


def differing_headers(one: OneRecord, other: OneRecord) -> tuple[bool, ...]:
    """Return for each position of the longer list of kept headers whether the two sides differ there."""
    count = max(len(one.headers), len(other.headers))

    def at(record: OneRecord, index: int) -> tuple[Part, Part] | None:
        return record.headers[index] if index < len(record.headers) else None

    return tuple(not _same_header(at(one, index), at(other, index)) for index in range(count))


def _same_header(one: tuple[Part, Part] | None, other: tuple[Part, Part] | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(mine.equals(yours) for mine, yours in zip(one, other, strict=True))


def _same_rest(one: OneRecord, other: OneRecord) -> bool:
    return (one.more_headers, one.rest_digest) == (other.more_headers, other.rest_digest)


_OF_OUTCOME = {
    "gap": Lack.LEFT_OUT,
    "ahead": Lack.NOT_COPIED,
    "before": Lack.BEFORE,
    "approximate": Lack.APPROXIMATE,
    "log-start": Lack.DELETED,
}


def lack_of(word: str, *, read_all: bool = False, pruned: bool = False) -> Lack | None:
    """Return why the other side has no record, by the word of a translation; None: it has one at its offset.

    `read_all`: the offset is the copied end, where no record is yet.
    """
    if word == "exact":
        return Lack.NOT_COPIED if read_all else None
    return Lack.PRUNED if word == "before" and pruned else _OF_OUTCOME.get(word, Lack.NOT_KNOWN)


def in_gap(asked: Side, lack: Lack, gap: Gap | None, *, transformed: bool) -> tuple[Lack, str]:
    """Return the reason and a sentence for a side without a counterpart of what was asked for.

    `asked` is what the other side has at the offset, `gap` the one of the ledger that covers the source's offset.
    """
    if gap is not None and gap.how is Resolution.SKIP and lack in (Lack.LEFT_OUT, Lack.NOT_COPIED):
        who = f" by {gap.who}" if gap.who else ""
        reason = f": {gap.reason}" if gap.reason else ""
        what = "an operator" if gap.why is RefusalKind.STUCK else f"the guard for {gap.why.value}"
        return Lack.SKIPPED, f"run {gap.run} skipped it for {what}{who}{reason}"
    if lack is not Lack.LEFT_OUT or asked.record is None:
        return lack, ""
    if transformed:
        return Lack.LEFT_OUT, "a transform or filter of the flow may have left it out"
    return Lack.NOT_KNOWN, "the receipt has no counterpart of a record that is there now"


def hole(cleanup_policy: str | None) -> tuple[Lack, str]:
    """Return why a log has nothing at an offset between its begin and its end; None: the policy is not known."""
    if cleanup_policy is not None and "compact" in cleanup_policy:
        return Lack.COMPACTED, "a newer record of the key replaced it, or it was a marker that is no longer needed"
    if cleanup_policy is None:
        return Lack.NOT_KNOWN, "whether the topic is compacted may not be seen: grant DESCRIBE_CONFIGS on it"
    return Lack.NOT_KNOWN, ""

"""What the rules of identical offsets decide on, and what they decide. Times are milliseconds of one clock.

The clock counts sleep: Linux's `CLOCK_BOOTTIME`. ADR 57 has the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Why a partition cannot be copied under identical offsets."""

    LATE_UNBOUNDED = "late-unbounded"
    """The target's brokers never close an idle connection, so a request may arrive at any time."""
    STATE_TOO_SHORT = "state-too-short"
    """The target's brokers drop producer state sooner than a late request may arrive."""
    MAY_LOSE = "may-lose"
    """The target may lose acknowledged records: unclean election, or too few replicas in sync."""
    LOST = "lost"
    """The target's log ends before what receipts show."""
    AHEAD = "ahead"
    """The target's log ends after everything that was planned."""
    FOREIGN = "foreign"
    """The target's last records are of another producer."""
    SHIFTED = "shifted"
    """A record has another offset than at the source."""
    MOVED = "moved"
    """The target's log grew although nothing but this writer may append."""
    MARKERS = "markers"
    """There are holes, and Ferry may not write markers: Alter on Cluster is missing."""
    ABSENT = "absent"
    """There is a hole of compacted or deleted records: another broker of the source may have them yet."""
    EXPIRES = "expires"
    """A number that is not the record's offset would be used, and the producer state that has it expires soon."""
    NOT_QUIET = "not-quiet"
    """There is a hole, and a marker of an earlier writer, or one that was not answered, may arrive yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of time, and what the target allows; read once a run."""

    lease: int
    """How long a writer may begin requests after it saw that no newer run exists."""
    lateness: int | None
    """How late a request may arrive: the brokers' connections.max.idle.ms with a margin; None: no bound."""
    expiration: int
    """The brokers' producer.id.expiration.ms."""
    keeps_acknowledged: bool
    """Whether unclean election is off and enough replicas are in sync."""
    markers_allowed: bool
    slack: int
    """How many markers more than one a transaction may leave."""
    bulk_from: int
    """From how many offsets on a hole is passed by an aborted transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What the target's log shows below its end."""

    producer: int
    """Of the last entry."""
    timestamp: int
    """Of the lane's last entry: a batch's largest timestamp, or the time of a marker. Producer state ages by it."""
    next_sequence: int | None
    """After the lane's last data batch; None: no data batch can be read."""
    right: bool | None
    """Whether the last data batch equals the source's at the same offset; None: the source has it no more."""
    unsealed: bool
    """Whether transactions of slots left markers here that may come once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a target partition. `at`: when it was asked for."""

    at: int
    end: int
    """The high watermark."""
    settled: bool
    """Whether the leader's log has nothing after the high watermark."""
    tail: Tail | None
    """What the target's log shows below its end; None: nothing can be read."""
    state_sequence: int | None = None
    """What DescribeProducers shows as the next sequence of the lane's producer id: last + 1; None: no state."""
    state_ms: int = 0
    """The last timestamp that DescribeProducers shows with it: the state ages by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Records of the source without a hole, from the target's end on. `oldest`: their smallest timestamp."""

    count: int
    oldest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Offsets `[target's end, end)` without a record for readers.

    `seen`: the source shows a marker or an aborted record at each. Otherwise they are absent: compacted or deleted.
    """

    end: int
    seen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a writer has read except for the target's log."""

    now: int
    confirmed_at: int
    """When the last read of the ledger was asked for that showed no newer run."""
    quiet_at: int
    """From then on nothing of another writer can arrive, nor anything of this writer that was not answered."""
    filler_quiet_at: int
    """From then on no marker of the slot's transactions can come once more."""
    loose: bool
    """Whether a writer since the last clean end recorded that it does what no sequence protects."""
    own_loose: bool
    """Whether this writer recorded it, and saw afterwards that no newer run exists."""
    receipts_end: int
    planned_end: int
    expected_end: int | None
    """Where this writer's answers put the end; None: not known."""
    producer: int
    """The lane's producer id for data."""
    fillers: frozenset[int]
    """The producer ids of the transactions of all slots that the lane has had."""
    ahead: Run | Hole | None
    """What the source has from the target's end on."""


@dataclass(frozen=True, slots=True)
class Send:
    """Append records by an idempotent batch that belongs to no transaction."""

    offset: int
    count: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Pass offsets by markers of the lane's producer id: WriteTxnMarkers to the leader, one copy, no retry."""

    count: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Pass offsets by a transaction of so many empty records, which InitProducerId then aborts."""

    count: int


@dataclass(frozen=True, slots=True)
class Seal:
    """Write a commit marker with the slot's newest epoch: markers of its older epochs bounce from then on."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until a time, then look."""

    until: int


@dataclass(frozen=True, slots=True)
class Confirm:
    """Read the ledger: is there a newer run?"""


@dataclass(frozen=True, slots=True)
class Record:
    """Write to the ledger that this writer becomes loose."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Look at the target, after a moment."""


@dataclass(frozen=True, slots=True)
class Done:
    """All that was planned is there. `clean`: nothing can arrive any more, so a successor need not wait."""

    clean: bool


@dataclass(frozen=True, slots=True)
class Refuse:
    """Stop at this partition, if the ledger, asked once more, shows no newer run: its plan may reach further."""

    code: Code


Step = Send | Mark | Fill | Seal | Wait | Confirm | Record | LookAgain | Done | Refuse

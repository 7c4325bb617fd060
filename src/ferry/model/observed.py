"""What brokers report of themselves and of their partitions, as values: nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.refusal import RefusalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """Why the offsets of a partition that has a leader could not be learned: half a sentence with the remedy."""

    kind: RefusalKind
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that holds back a partition's last stable offset.

    It has its first offset, and its last record's time (ms). What its leader does not report is -1, or an empty
    `transactional_id`.
    """

    producer_id: int
    start: int
    last_ms: int
    transactional_id: str = ""

    @classmethod
    def unreported(cls, start: int) -> OpenTransaction:
        """Make a transaction about which its leader reports nothing, or no more."""
        return cls(producer_id=-1, start=start, last_ms=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpace:
    """Bytes of a broker's tightest log directory: its volume's size, and what can still be written."""

    total: int
    usable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The number of some things at the source; None when it is not known, for the reason `why`."""

    count: int | None
    why: str = ""

"""A record of the ledger: before it is written, and as it was read with the fate of its transaction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Key and value to be written; a None value is a tombstone."""

    key: bytes
    value: bytes | None


class Fate(Enum):
    """The outcome of a record's transaction; records outside transactions are COMMITTED."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """A record as it is in the ledger, with its fate at the moment of reading."""

    offset: int
    key: bytes
    value: bytes | None
    fate: Fate
    producer_id: int

"""What brokers report of themselves and of their partitions, as values: nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ferry.model.flow import TopicPartition
from ferry.model.refusal import RefusalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """Why the offsets of a partition that has a leader could not be learned: half a sentence with the remedy."""

    kind: RefusalKind
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that holds back a partition's last stable offset: from where, and its last record's time (ms).

    What its leader does not tell is -1, or an empty `transactional_id`.
    """

    producer_id: int
    start: int
    last_ms: int
    transactional_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpace:
    """Bytes of a broker's tightest log directory: its volume's size, and what can still be written."""

    total: int
    usable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many there are of something at the source; None when it did not tell, for the reason `why`."""

    count: int | None
    why: str = ""


def undecided_sentence(where: str, place: TopicPartition, transaction: OpenTransaction) -> str:
    """Whose transaction is open on `place`, and how it is ended; `where` is how the partition is called."""
    one, whose = transaction, ""
    if one.producer_id >= 0:
        whose = f" (producer id {one.producer_id}"
        whose += f", transactional id {one.transactional_id}" if one.transactional_id else ""
        if one.last_ms >= 0:
            whose += f", last record of {datetime.fromtimestamp(one.last_ms / 1000, UTC).isoformat(timespec='seconds')}"
        whose += ")"
    return (
        f"somebody else has a transaction open on {where}, from offset {one.start} on{whose}: let its producer end it, "
        f"or abort it with kafka-transactions.sh abort --topic {place.topic} --partition {place.partition} "
        f"--start-offset {one.start}, and take the writer's right to write"
    )

"""Source partitions, and a ledger, whose records wait for a transaction that may never end."""

from __future__ import annotations

from datetime import UTC, datetime

from ferry.model import TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.rules import Rules

HANGING_MS = 15 * 60_000
"""`transaction.max.timeout.ms` unless a broker says otherwise: a coordinator ends what is older."""


def held_notes(rules: Rules, facts: Facts) -> list[str]:
    """What read_committed copies do not get to see, for longer than a transaction should last.

    Its age is told by its last record's timestamp, which producers may set as they like: so it is a note.
    """
    notes = []
    for place, transaction in sorted(facts.held.items()):
        if not _hangs(transaction, facts.now_ms) or (rules.only is not None and place.topic not in rules.only):
            continue
        notes.append(
            f"records of {place} from offset {transaction.start} on wait for a transaction of producer id "
            f"{transaction.producer_id} that is still open, and whose last record is of {_when(transaction)}; what "
            f"lies before is copied: {_remedy(place, transaction)}"
        )
    return notes


def ledger_notes(facts: Facts) -> list[str]:
    """A transaction on the flow's ledger that is open for longer than one should last, with what it costs."""
    return [
        f"ledger {place.topic} has an open transaction from offset {transaction.start} on, of producer id "
        f"{transaction.producer_id} ({_writer(transaction)}), whose last record is of {_when(transaction)}: each look "
        "at the ledger reads from there again, each report waits for it in vain, and compaction stops there; "
        f"{_remedy(place, transaction)}"
        for place, transaction in sorted(facts.on_ledger.items())
        if _hangs(transaction, facts.now_ms)
    ]


def _hangs(transaction: OpenTransaction, now_ms: int) -> bool:
    return transaction.last_ms >= 0 and now_ms - transaction.last_ms >= HANGING_MS


def _writer(transaction: OpenTransaction) -> str:
    if transaction.transactional_id:
        return f"transactional id {transaction.transactional_id}"
    return "no coordinator names a transactional id for it"


def _when(transaction: OpenTransaction) -> str:
    return datetime.fromtimestamp(transaction.last_ms / 1000, UTC).isoformat(timespec="seconds")


def _remedy(place: TopicPartition, transaction: OpenTransaction) -> str:
    return (
        f"end it with its producer, or kafka-transactions.sh abort --topic {place.topic} --partition {place.partition} "
        f"--start-offset {transaction.start}"
    )

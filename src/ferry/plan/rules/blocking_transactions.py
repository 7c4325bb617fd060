"""Source partitions, and a ledger, whose records wait for a transaction that may never end."""

from __future__ import annotations

from datetime import UTC, datetime

from ferry.messages.catalogue import sentence
from ferry.model import Fact, Sentence, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.rules import Rules

HANGING_MS = 15 * 60_000
"""`transaction.max.timeout.ms` unless a broker says otherwise: a coordinator ends what is older."""


def held_notes(rules: Rules, facts: Facts) -> list[Sentence]:
    """What read_committed copies do not get to see, for longer than a transaction should last.

    Its age is told by its last record's timestamp, which producers may set as they like: so it is a note.
    """
    notes = []
    for place, transaction in sorted(facts.held.items()):
        if not _hangs(transaction, facts.now_ms) or (rules.only is not None and place.topic not in rules.only):
            continue
        notes.append(sentence("held.by-transaction", **_facts(place, transaction)))
    return notes


def ledger_notes(facts: Facts) -> list[Sentence]:
    """A transaction on the flow's ledger that is open for longer than one should last, with what it costs."""
    return [
        sentence("held.ledger", writer=_writer(transaction), **_facts(place, transaction))
        for place, transaction in sorted(facts.on_ledger.items())
        if _hangs(transaction, facts.now_ms)
    ]


def _hangs(transaction: OpenTransaction, now_ms: int) -> bool:
    return transaction.last_ms >= 0 and now_ms - transaction.last_ms >= HANGING_MS


def _writer(transaction: OpenTransaction) -> str:
    if transaction.transactional_id:
        return f"transactional id {transaction.transactional_id}"
    return "no coordinator names a transactional id for it"


def _facts(place: TopicPartition, transaction: OpenTransaction) -> dict[str, Fact]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "start": transaction.start,
        "producer": transaction.producer_id,
        "last": datetime.fromtimestamp(transaction.last_ms / 1000, UTC).isoformat(timespec="seconds"),
    }

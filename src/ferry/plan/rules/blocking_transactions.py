"""Source partitions, and a ledger, whose records wait for a transaction that may never end."""

from __future__ import annotations

from ferry.messages.catalogue import sentence
from ferry.model import Fact, Sentence, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning_rules import Rules
from ferry.words import to_the_second

HANGING_MS = 15 * 60_000
"""`transaction.max.timeout.ms` of a broker that sets no other value: a coordinator ends older transactions."""


def held_notes(rules: Rules, facts: Facts) -> list[Sentence]:
    """Return notes on records that read_committed copies cannot read, for longer than a transaction should last.

    A transaction's age is taken from the timestamp of its last record. Producers set timestamps as they like, so this
    is a note and no refusal.
    """
    notes = []
    for place, transaction in sorted(facts.source.open_transactions.items()):
        if not _hangs(transaction, facts.now_ms) or (rules.only is not None and place.topic not in rules.only):
            continue
        notes.append(sentence("held.by-transaction", **_facts(place, transaction)))
    return notes


def ledger_notes(facts: Facts) -> list[Sentence]:
    """Return notes on transactions on the flow's ledger that are open for longer than one should last."""
    return [
        sentence("held.ledger", writer=_writer(transaction), **_facts(place, transaction))
        for place, transaction in sorted(facts.lane.open_on_ledger.items())
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
        "last": to_the_second(transaction.last_ms),
    }

"""Partitions whose records wait for a transaction that may never end."""

from __future__ import annotations

from datetime import UTC, datetime

from ferry.decide.plan.facts import Facts
from ferry.decide.plan.rules import Rules

HANGING_MS = 15 * 60_000
"""`transaction.max.timeout.ms` unless a broker says otherwise: a coordinator ends what is older."""


def held_notes(rules: Rules, facts: Facts) -> list[str]:
    """What read_committed copies do not get to see, for longer than a transaction should last.

    Its age is told by its last record's timestamp, which producers may set as they like: so it is a note.
    """
    notes = []
    for place, transaction in sorted(facts.held.items()):
        age_ms = facts.now_ms - transaction.last_ms
        if transaction.last_ms < 0 or age_ms < HANGING_MS or (rules.only is not None and place.topic not in rules.only):
            continue
        when = datetime.fromtimestamp(transaction.last_ms / 1000, UTC).isoformat(timespec="seconds")
        notes.append(
            f"records of {place} from offset {transaction.start} on wait for a transaction of producer id "
            f"{transaction.producer_id} that is still open, and whose last record is of {when}; what lies before is "
            f"copied: end it with its producer, or kafka-transactions.sh abort --topic {place.topic} --partition "
            f"{place.partition} --start-offset {transaction.start}"
        )
    return notes

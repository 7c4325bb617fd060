"""Transactions of somebody else on the copies that are open: what they wrote can neither be seen nor passed over."""

from __future__ import annotations

from datetime import UTC, datetime

from ferry.model import TopicPartition
from ferry.plan.rules.facts import OpenTransaction


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

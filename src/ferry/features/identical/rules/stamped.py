"""Which sequence number a record has under identical offsets: its offset. So the brokers compare offsets."""

from __future__ import annotations

from ferry.features.identical.rules.next_step import damaged
from ferry.features.identical.rules.planned import LAST_SEQUENCE
from ferry.features.identical.rules.values import Code, Look, Tail, View


def sequence_of(offset: int) -> int:
    """Return the sequence number of the record at an offset; a plan ends before the numbers begin again."""
    if offset > LAST_SEQUENCE:
        raise ValueError(f"offset {offset} has no sequence number of its own")
    return offset


def is_outdated(read_at: int, now: int, lease: int) -> bool:
    """Return whether a reading of a log's end is so old that nothing may be sent by it.

    Something of an earlier writer may have come since, and the producer state that shows it may have expired.
    """
    return now >= read_at + lease


def tail_of(
    *, producer: int, epoch: int, sequence: int, base: int, timestamp: int, next_offset: int, counted: bool = False
) -> Tail:
    """Return what the last batch of the target's log shows; it is right if its sequence number is its offset.

    `counted`: there may be markers before it, so sequence numbers count the records.
    """
    return Tail(
        producer=producer,
        timestamp=timestamp,
        next_sequence=next_offset,
        right=epoch == 0 and (counted or sequence == base),
        unsealed=False,
    )


def wrong_with(look: Look, *, receipts_end: int, planned_end: int, producer: int) -> Code | None:
    """Return what is wrong with the target's log before anything is written; None if nothing is."""
    view = View(
        now=look.at,
        confirmed_at=look.at,
        quiet_at=look.at,
        filler_quiet_at=look.at,
        loose=False,
        own_loose=False,
        receipts_end=receipts_end,
        planned_end=planned_end,
        expected_end=None,
        producer=producer,
        fillers=frozenset(),
        ahead=None,
    )
    return damaged(look, view)

"""The clauses of the way back (ADR 57), as the model asks for them: tests switch each one off (`return_clauses.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.pure.identical.returning import Both, Continued, Way


def numbered_again() -> bool:
    """Whether a return has a producer id of its own, not that of the lane."""
    return True


def kept(own: Continued | None, cut: int) -> bool:
    """Whether a return keeps the record of the same cut-over: it is done again, or nothing was written since."""
    return own is not None and own.until == cut


def guarded() -> bool:
    """Whether a return waits until nothing of an earlier run of its lane can arrive."""
    return True


def guards_first() -> bool:
    """Whether a return asks what may arrive before it has fenced the lane."""
    return False


def commits(generation: int, newest: int) -> bool:
    """Whether the record of a return is committed: the transaction of a run that was fenced is not."""
    return generation == newest


def fits(end: int, cut: int) -> bool:
    """Whether the target's log ends where clients began to write elsewhere."""
    return end == cut


def compares() -> bool:
    """Whether the last record of both logs is compared."""
    return True


def compares_in_runs() -> bool:
    """Whether each run compares it, too, until it has a record of its own there."""
    return True


def takes_any_tail(end: int, until: int) -> bool:
    """Whether a run accepts records of other producers at the end of its target's log."""
    return end == until


def number_of(continued: Continued, both: Both) -> int:
    """The producer id of a run: all runs after a return have the same one."""
    return continued.producer


def closes() -> bool:
    """Whether a lane that a switch has stopped copies nothing until a newer return."""
    return True


def planned_to(end: int, way: Way) -> int:
    """Up to where a run reads its source: to the end of before it has read the end of its target."""
    return end


def waits() -> bool:
    """Whether clients write only when no batch of the lane that brought the records can arrive."""
    return True


def counts_from(receipts: int, until: int) -> int:
    """From where on a lane's records begin: its receipts end before those of clients."""
    return max(receipts, until)


def empty_until(until: int) -> int:
    """Up to where a run takes its target's records for empty ones, and deletes them."""
    return 0

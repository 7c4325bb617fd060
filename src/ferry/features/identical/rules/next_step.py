"""The next step of a writer under identical offsets: one pure decision per look at the target.

Data is compare-and-append while the broker has producer state: a batch whose sequence is not the next one is refused.
A marker is never compared. So a writer appends what is compared at once. It appends all else only when it is quiet:
when nothing of another writer can arrive any more.
"""

from __future__ import annotations

from ferry.features.identical.rules.values import (
    Code,
    Confirm,
    Done,
    Fill,
    Hole,
    Limits,
    Look,
    LookAgain,
    Mark,
    Record,
    Refuse,
    Run,
    Seal,
    Send,
    Step,
    View,
    Wait,
)

MARKS_AT_ONCE = 2
"""Markers of one request: it has one outcome that may be unknown."""


def next_step(look: Look, view: View, limits: Limits) -> Step:
    """Return what to do at the look's end."""
    refused = unfit(limits) or damaged(look, view)
    if refused is not None:
        return Refuse(refused)
    if lease_over(view, limits):
        return Confirm()
    if not settled(look):
        return LookAgain()
    if unexpected(look, view):
        return Refuse(Code.MOVED)
    return _go_on(look, view, limits)


def _go_on(look: Look, view: View, limits: Limits) -> Step:
    if look.end == view.planned_end:
        return Done(clean=is_clean(look, view))
    match view.ahead:
        case Hole():
            return pass_hole(look, view, view.ahead, limits)
        case Run():
            return send_run(look, view, view.ahead, limits)
        case None:  # the source's broker shows less than the plan
            return LookAgain()


def send_run(look: Look, view: View, run: Run, limits: Limits) -> Step:
    """Return how records at the look's end are appended."""
    if needs_seal(look, view):
        return Wait(view.filler_quiet_at)  # no offset is left for a seal
    if not quiet(look, view) and not compared(look, view, run, limits):
        return Wait(view.quiet_at)
    if not strict(run, view, limits) and not view.own_loose:
        return Record()
    return Send(look.end, min(run.count, view.planned_end - look.end), sequence_at(look, view))


def sequence_at(look: Look, view: View) -> int:
    """Return the sequence of the record at the look's end.

    The log decides while others may append. When it is quiet the producer state does: a marker that comes after the
    state expired makes a new one, whose sequences begin at 0.
    """
    logged = look.tail.next_sequence if look.tail is not None else None
    if logged is not None and not quiet(look, view):
        return logged
    return next((one for one in (look.state_sequence, logged) if one is not None), 0)


def pass_hole(look: Look, view: View, hole: Hole, limits: Limits) -> Step:
    """Return how offsets without a record are passed."""
    if not limits.markers_allowed:
        return Refuse(Code.MARKERS)
    if not quiet(look, view):
        return Wait(view.quiet_at)
    if not hole.seen and not recorded(view):
        return Record()
    if needs_seal(look, view):
        return Seal()
    left = min(hole.end, view.planned_end) - look.end
    if left >= limits.bulk_from:
        return Fill(filling(left, limits))
    return Mark(min(left, MARKS_AT_ONCE))


def unfit(limits: Limits) -> Code | None:
    """Return why the target's settings do not allow identical offsets."""
    if limits.lateness is None:
        return Code.LATE_UNBOUNDED
    if limits.expiration <= strict_for(limits):
        return Code.STATE_TOO_SHORT
    return None if limits.keeps_acknowledged else Code.MAY_LOSE


def damaged(look: Look, view: View) -> Code | None:
    """Return what is wrong with the target's log."""
    if is_lost(look, view):
        return Code.LOST
    if look.end > view.planned_end:
        return Code.AHEAD
    if is_foreign(look, view):
        return Code.FOREIGN
    return Code.SHIFTED if is_shifted(look) else None


def is_lost(look: Look, view: View) -> bool:
    """Return whether records are gone that receipts show."""
    return look.end < view.receipts_end


def is_foreign(look: Look, view: View) -> bool:
    """Return whether another producer wrote last."""
    return look.tail is not None and look.tail.producer not in view.fillers | {view.producer}


def is_shifted(look: Look) -> bool:
    """Return whether the last data batch differs from the source's at the same offset."""
    return look.tail is not None and look.tail.right is False


def unexpected(look: Look, view: View) -> bool:
    """Return whether the log grew while no other writer may append."""
    return quiet(look, view) and view.expected_end is not None and look.end > view.expected_end


def lease_over(view: View, limits: Limits) -> bool:
    """Return whether a newer run may have begun since the ledger was read."""
    return view.now >= view.confirmed_at + limits.lease


def settled(look: Look) -> bool:
    """Return whether the high watermark is the end of the leader's log."""
    return look.settled


def quiet(look: Look, view: View) -> bool:
    """Return whether the look was asked for when nothing could arrive any more."""
    return look.at >= view.quiet_at


def compared(look: Look, view: View, run: Run, limits: Limits) -> bool:
    """Return whether the broker compares sequences until it is quiet.

    No writer since the last clean end may be loose. The last batch can be read, and the producer state has its next
    sequence. Neither that batch nor this run may let the state expire before.
    """
    tail = look.tail
    if view.loose or tail is None or tail.next_sequence is None or tail.next_sequence != look.state_sequence:
        return False
    return tail.timestamp + limits.expiration > view.quiet_at and strict(run, view, limits)


def strict(run: Run, view: View, limits: Limits) -> bool:
    """Return whether the producer state outlives what may be late, although it ages by the records' timestamps."""
    return run.oldest + limits.expiration > view.now + strict_for(limits)


def strict_for(limits: Limits) -> int:
    """Return how long producer state has to last: one lease, and lateness of two writers."""
    return limits.lease + 2 * (limits.lateness or 0)


def recorded(view: View) -> bool:
    """Return whether this writer said in the ledger that it is loose."""
    return view.own_loose


def needs_seal(look: Look, view: View) -> bool:
    """Return whether markers of the slot's transactions may come once more."""
    return look.tail is not None and look.tail.unsealed and look.at < view.filler_quiet_at


def filling(left: int, limits: Limits) -> int:
    """Return how many empty records a transaction holds: its marker may come more than once, and a seal follows."""
    return left - 2 - limits.slack


def is_clean(look: Look, view: View) -> bool:
    """Return whether a successor need not wait."""
    return quiet(look, view) and not needs_seal(look, view)


def quiet_after(asked_at: int, limits: Limits) -> int:
    """Return from when on a request that was not answered cannot arrive any more."""
    return asked_at + (limits.lateness or 0) + 1


def quiet_after_takeover(answered_at: int, clean: bool, limits: Limits) -> int:
    """Return from when on nothing of earlier writers can arrive; `answered_at`: when the ledger had this run."""
    return answered_at if clean else answered_at + limits.lease + (limits.lateness or 0) + 1


def after_send(step: Send, base: int) -> Code | None:
    """Return what the base offset of an answer shows: records of others came before the batch.

    A lower one is that of an older batch with the same sequences: nothing was appended, and the log shows more.
    """
    return Code.SHIFTED if base > step.offset else None

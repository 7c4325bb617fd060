"""When a hole of the source's log may be passed by markers, and which sequence number comes after one.

A broker compares no marker. So a writer sends one when no marker of an earlier writer can arrive any more, and sends it
once. Late batches need no waiting: each is right at one place alone, which is before the hole or after its markers.
Times are milliseconds.
"""

from __future__ import annotations

from ferry.features.identical.rules.values import Look
from ferry.wire.batch import Batch


def is_seen(batch: Batch, offset: int) -> bool:
    """Return whether a batch that readers do not get shows that there is no record at an offset, and never will be.

    It is a marker, or it is of an aborted transaction and has a record at each of its offsets. Otherwise the record may
    have been compacted or deleted: another broker of the source may have it yet.
    """
    if not batch.base_offset <= offset < batch.next_offset:
        return False
    return batch.is_control or batch.record_count == batch.next_offset - batch.base_offset


def quiet_from(until: int, lateness: int) -> int:
    """Return from when on no marker of earlier writers can arrive.

    `until`: up to when the ledger lets them send one; 0: all of their markers were answered.
    """
    return until + lateness + 1 if until else 0


def is_quiet(read_at: int, until: int, lateness: int) -> bool:
    """Return whether a reading of the target was asked for when no marker of earlier writers could arrive."""
    return read_at >= quiet_from(until, lateness)


def shows_all_markers(read_at: int, until: int) -> bool:
    """Return whether a reading shows all markers of earlier writers, if it ends before a record of the source.

    An earlier writer sent its last markers before `until`, for the hole at the end of the log. It sent nothing of what
    comes after that hole before they were answered. So no marker is late if the reading ends outside of a hole. The
    leader must have answered: a batch that was appended where the reading ends proves that.
    """
    return read_at >= until


def may_send(now: int, until: int) -> bool:
    """Return whether a writer may send markers, by what it wrote to the ledger itself."""
    return now < until


def after_silence(earlier_until: int, own_until: int) -> int:
    """Return up to when markers were sent that may be late, when one of this writer's own was not answered."""
    return max(earlier_until, own_until)


def next_sequence(look: Look) -> int:
    """Return the sequence number of the next record.

    The state decides: a marker that comes after it expired makes a new one, whose numbers begin at 0. Without a state
    the broker takes any number. Then it is the record's offset, which is the same for all writers.
    """
    return look.end if look.state_sequence is None else look.state_sequence

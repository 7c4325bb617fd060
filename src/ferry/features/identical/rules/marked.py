"""When a hole of the source's log may be passed by markers, and which sequence number comes after one.

A broker compares no marker. So a writer sends one when no marker of an earlier writer can arrive any more, and sends it
once. Late batches need no waiting: each is right at one place alone, which is before the hole or after its markers.
Times are milliseconds.
"""

from __future__ import annotations

from ferry.features.identical.rules.planned import LEASE_MS
from ferry.features.identical.rules.values import Look
from ferry.wire.batch import Batch

CHECK_MS = 10 * 60 * 1000
"""How often brokers drop producer states that have expired."""


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


def no_earlier(wall: int, since_boot: int) -> int:
    """Return the time from which on markers are said to be sent: a wall clock may have been set back meanwhile.

    `since_boot` is the wall clock of the beginning, with the time that has passed by the clock that counts sleep.
    """
    return max(wall, since_boot)


def no_later(wall: int, since_boot: int) -> int:
    """Return the time of a reading that is asked for now: a wall clock may have been set forward meanwhile.

    `since_boot` is as for `no_earlier`.
    """
    return min(wall, since_boot)


def after_silence(earlier_until: int, own_until: int) -> int:
    """Return up to when markers were sent that may be late, when one of this writer's own was not answered."""
    return max(earlier_until, own_until)


def next_sequence(look: Look) -> int:
    """Return the sequence number of the next record.

    The state decides: a marker that comes after it expired makes a new one, whose numbers begin at 0. Without a state
    the broker takes any number. Then it is the record's offset, which is the same for all writers.
    """
    return look.end if look.state_sequence is None else look.state_sequence


def usable_until(offset: int, sequence: int, state_ms: int, max_age: int) -> int | None:
    """Return until when a batch with a sequence number may be sent for an offset; None: at any time.

    A writer that reads after the state expired takes the offset for the number. So a batch with another number must
    arrive while the state lives, and so must what is late then. `state_ms`: the last timestamp of the state. `max_age`:
    how old the last batch may be, as for the batch that is sent.
    """
    return None if sequence == offset else state_ms + max_age


def gone_from(state_ms: int, max_age: int, lateness: int) -> int:
    """Return from when on a producer state is gone, if it lasts just as long as `max_age` shows.

    Nothing but the time of a refusal depends on it: `lateness` is 0 where it is not known.
    """
    return state_ms + max_age + LEASE_MS + max(2 * lateness, max_age) + CHECK_MS

"""How far an active run has come: what it has committed, what it has sent and not committed, its rate; pure.

What a slot has sent is at the end of the target partitions. It is in an open transaction, but where records keep their
offsets. So the ends of these logs show it, and the run writes no record about it (`progress_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ferry.model import Plan, Receipt, Slice, TopicPartition

PACE_SECONDS = 60.0
"""A rate is that of about this time."""


class LogEnd(NamedTuple):
    """The end of a partition's log: its last stable offset, and its high watermark."""

    stable: int
    end: int


NOTHING_SENT = LogEnd(stable=0, end=0)
"""For a slot that has not begun."""


class Committed(NamedTuple):
    """What a run's receipts have of one target partition."""

    end: int
    """The source offset that they reach."""
    target_next: int | None
    records: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a slot, or all of a run, has come.

    `passed` of the `offsets` are committed or sent. What is sent comes from the ends of logs, so it is about right: a
    foreign producer's open transaction counts, too. Nothing that is committed counts as sent.
    """

    slices: int
    """All slices, of repartitioned topics, too."""
    done: int
    """The slices that are committed to their end."""
    offsets: int
    """Source offsets of all slices. A repartitioned one has those of each source partition."""
    passed: int
    """Of a transformed or repartitioned topic only what is committed: its offsets are not those of the target."""
    records: int
    """Committed ones, as `bytes`."""
    bytes: int
    sent: int
    """Records that are sent and not committed."""
    sent_bytes: int | None
    """Their bytes, by the size of the run's other records or by the plan's estimate; None: not known."""
    unseen: int
    """Unfinished slices of which the target did not show what is sent: `sent` is without them."""
    bytes_per_second: float | None = None
    """Committed and sent ones; None: not known."""
    offsets_per_second: float | None = None

    @property
    def left(self) -> int:
        """Source offsets that are neither committed nor sent."""
        return self.offsets - self.passed

    @property
    def share(self) -> int:
        """The percentage of the offsets that are committed or sent."""
        return 100 * self.passed // max(1, self.offsets)

    @property
    def is_unknown(self) -> bool:
        """Whether the target did not show of any unfinished slice what is sent."""
        return 0 < self.unseen == self.slices - self.done

    @property
    def has_sent_nothing(self) -> bool:
        """Whether nothing is committed or sent of what it is to copy; False if the target does not show that."""
        return self.slices > 0 and not (self.done or self.passed or self.records or self.sent or self.unseen)

    @property
    def seconds_left(self) -> float | None:
        """About how long the rest takes at this rate; None: not known."""
        return self.seconds_for(self.left)

    def seconds_for(self, offsets: int) -> float | None:
        """About how long so many offsets take at this rate; None: not known, as before 1 % is committed or sent."""
        return offsets / self.offsets_per_second if self.offsets_per_second and self.share else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run has come, and each of its slots by its number."""

    whole: Progress
    slots: tuple[tuple[int, Progress], ...]


def committed(receipts: Iterable[Receipt]) -> dict[TopicPartition, Committed]:
    """Return what one run's receipts have, by target partition."""
    found: dict[TopicPartition, Committed] = {}
    for one in receipts:
        end, target_next, records, size = found.get(one.target, (0, None, 0, 0))
        if one.end > end:
            end, target_next = one.end, one.target_next
        found[one.target] = Committed(end, target_next, records + one.records, size + one.bytes)
    return found


def unfinished(plan: Plan, done: Mapping[TopicPartition, Committed]) -> list[TopicPartition]:
    """Return the target partitions whose slices are not committed to their end."""
    return [piece.target for piece in plan.slices if not _is_done(piece, done.get(piece.target))]


def progress_of(
    plan: Plan, done: Mapping[TopicPartition, Committed], ends: Mapping[TopicPartition, LogEnd]
) -> RunProgress:
    """Return how far a run has come, by what is committed and by the ends of the target's logs.

    Ask for the ends before the receipts are read: then a chunk that is committed in between counts once.
    """
    of_slots: dict[int, list[Progress]] = {slot: [] for slot in plan.used_slots}
    for piece in plan.slices:
        of_slots[piece.slot].append(_of_slice(piece, done.get(piece.target), ends.get(piece.target)))
    slots = tuple((slot, _together(parts)) for slot, parts in of_slots.items())
    return RunProgress(whole=_together([part for _, part in slots]), slots=slots)


def progress_before(plan: Plan, done: Mapping[TopicPartition, Committed]) -> RunProgress:
    """Return the progress of an attempt that has sent nothing yet."""
    return progress_of(plan, done, {piece.target: NOTHING_SENT for piece in plan.slices})


def _is_done(piece: Slice, done: Committed | None) -> bool:
    return done is not None and done.end >= piece.end


def _of_slice(piece: Slice, done: Committed | None, log: LogEnd | None) -> Progress:
    is_done = _is_done(piece, done)
    end, target_next, records, size = done or (piece.start, None, 0, 0)
    sent = 0
    if log is not None and not is_done:
        sent = max(0, log.end - _sent_from(piece, end, target_next, log))
    sent_bytes: int | None = 0
    if sent:
        whole, count = (size, records) if records else (piece.bytes_estimate, piece.offsets)
        sent_bytes = sent * whole // count if whole and count else None
    # The target's offsets of a changed or repartitioned topic are not the source's.
    passed = end - piece.start + (0 if piece.transform or piece.dealt else sent)
    return Progress(
        slices=1,
        done=int(is_done),
        offsets=piece.offsets,
        passed=max(0, min(passed, piece.offsets)),
        records=records,
        bytes=size,
        sent=sent,
        sent_bytes=sent_bytes,
        unseen=int(log is None and not is_done),
    )


def _sent_from(piece: Slice, end: int, target_next: int | None, log: LogEnd) -> int:
    """Return the target offset from which on the log has what is sent and not committed; `end` is committed.

    Records that keep their offsets are in no transaction, so readers see them already.
    """
    if piece.producer is not None:
        return end
    # A transaction that is open since before our last receipt is another producer's.
    known = (log.stable, target_next, piece.target_end, piece.target_next)
    return max(one for one in known if one is not None)


def _together(parts: Iterable[Progress]) -> Progress:
    parts = list(parts)
    sizes = [part.sent_bytes for part in parts if part.sent_bytes is not None]
    return Progress(
        slices=sum(part.slices for part in parts),
        done=sum(part.done for part in parts),
        offsets=sum(part.offsets for part in parts),
        passed=sum(part.passed for part in parts),
        records=sum(part.records for part in parts),
        bytes=sum(part.bytes for part in parts),
        sent=sum(part.sent for part in parts),
        sent_bytes=sum(sizes) if len(sizes) == len(parts) else None,
        unseen=sum(part.unseen for part in parts),
    )


class Paced:
    """The last measurements of one run, from which its rate follows. Times are seconds of any one clock."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, RunProgress]] = []

    def add(self, at_s: float, progress: RunProgress) -> RunProgress:
        """Return the progress with its rate since a measurement of PACE_SECONDS ago, or since the first one."""
        while len(self._kept) > 1 and self._kept[1][0] <= at_s - PACE_SECONDS:
            del self._kept[0]
        self._kept.append((at_s, progress))
        since_s, before = self._kept[0]
        return with_pace(before, progress, at_s - since_s)


def with_pace(before: RunProgress, now: RunProgress, seconds: float) -> RunProgress:
    """Return the progress `now` with its rate since the one `before`, which was measured some seconds earlier."""
    slots = dict(before.slots)
    return RunProgress(
        whole=_paced(before.whole, now.whole, seconds),
        slots=tuple((slot, _paced(slots[slot], part, seconds)) for slot, part in now.slots),
    )


def _paced(before: Progress, now: Progress, seconds: float) -> Progress:
    # What was seen at one of the two times alone was not sent in between. Before the first record no rate is known.
    if seconds <= 0 or before.unseen != now.unseen or now.has_sent_nothing:
        return now
    known = before.sent_bytes is not None and now.sent_bytes is not None
    moved = now.bytes + (now.sent_bytes or 0) - before.bytes - (before.sent_bytes or 0)
    return replace(
        now,
        bytes_per_second=max(0, moved) / seconds if known else None,
        offsets_per_second=max(0, now.passed - before.passed) / seconds,
    )

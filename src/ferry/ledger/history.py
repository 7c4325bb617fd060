"""Find runs and offsets in the ledger: runs with their states, and the receipt that holds a source offset."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from ferry.ledger.ledger import LedgerView
from ferry.ledger.progress import RunProgress
from ferry.ledger.receipts import receipts
from ferry.ledger.report import Report
from ferry.ledger.run_report import run_report
from ferry.ledger.runs import (
    is_remembered,
    opened_run,
    outcome,
    sealed_plan,
    superseded_by,
)
from ferry.ledger.unit_codec import last_units
from ferry.model import Gap, OpenedRun, Receipt, Resolution, Segment, TopicPartition
from ferry.words import count_of

SILENT_MS = 900_000
"""How long a run that has not ended may write nothing to the ledger before it counts as silent."""


class PastState(StrEnum):
    """The states of RunState, and two for runs that never ended."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    OPEN = "open"
    """The newest run, whose copy step has not recorded its outcome: it is under way, or was killed."""
    UNPLANNED = "unplanned"
    """It has no sealed plan: it is being planned, or ended before that (`PastRun.followed`)."""


NOT_ENDED = frozenset({PastState.OPEN, PastState.UNPLANNED})
"""The ledger has no end of the run: it is under way, or was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What the ledger still has of a run whose record, plan and outcome it has deleted.

    What the run was to copy, what it refused and how it ended is not known any more. `receipts` are those of it that
    are not pruned. Of repartitioned topics, only receipts that no later run has followed are left.
    """

    lane: str
    run: str
    receipts: tuple[Receipt, ...] = ()

    @property
    def kept(self) -> tuple[Receipt, ...]:
        """The receipts whose records keep the number of their partition."""
        return tuple(one for one in self.receipts if not one.dealt)

    @property
    def dealt(self) -> tuple[Receipt, ...]:
        """The receipts of repartitioned topics."""
        return tuple(one for one in self.receipts if one.dealt)

    @property
    def records(self) -> int:
        """Number of records in the receipts that are left."""
        return sum(one.records for one in self.receipts)

    @property
    def bytes(self) -> int:
        """Bytes in the receipts that are left."""
        return sum(one.bytes for one in self.receipts)

    @property
    def sentence(self) -> str:
        """One sentence about what is known of the run, and what is not."""
        left = count_of(len(self.receipts), "receipt")
        return (
            f"the ledger no longer keeps the plan of run {self.run} (lane {self.lane}): what it was to copy, what it "
            f"refused and how it ended is no longer known. It still has {left} of it, of "
            f"{count_of(self.records, 'record')}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run as the ledger has it; `report` is None when it has no sealed plan."""

    opened: OpenedRun
    state: PastState
    report: Report | None
    earlier: Forgotten | None = None
    """What is left of an earlier run of the same name that the ledger had deleted before this one was opened."""
    followed: bool = False
    """Whether a newer run of its lane has begun. That run fences it: what it has not sealed or copied, it never will.

    Without one, the ledger does not show whether a run that has not ended is still active.
    """
    progress: RunProgress | None = None
    """How far an open run has come, where the target was asked for what it has sent."""

    @property
    def open_report(self) -> Report | None:
        """Its report, if it is open and has a sealed plan."""
        return self.report if self.state is PastState.OPEN else None

    @property
    def heard_ms(self) -> int:
        """When it last wrote to the ledger, as far as receipts show: the newest one's time, else its beginning."""
        written = [] if self.report is None else [one.at_ms for one in self.report.receipts]
        return max([self.opened.record.started_ms, *written])

    @property
    def has_not_ended(self) -> bool:
        """Whether the ledger has no end of it: it is under way, or was killed."""
        return self.state in NOT_ENDED

    def is_silent(self, now_ms: int) -> bool:
        """Return whether it has not ended, and has written nothing for SILENT_MS. It may still be active."""
        return self.has_not_ended and now_ms - self.heard_ms > SILENT_MS

    @property
    def copy_state(self) -> PastState:
        """How its copy ended, whatever happened to its groups and its verification."""
        if self.report is None or self.state is PastState.OPEN:
            return self.state
        return PastState(replace(self.report, groups=None, verified=None).state.value)


def past_runs(view: LedgerView, lane: str, newest: int) -> list[PastRun]:
    """Return the lane's `newest` runs that the ledger has, oldest first."""
    chosen = view.remembered(lane)[-newest:]
    by_generation: dict[int, list[Receipt]] = {run.generation: [] for run in chosen}
    for receipt in receipts(view, lane=lane):
        if receipt.generation in by_generation:
            by_generation[receipt.generation].append(receipt)
    return [_past_run(view, run, by_generation[run.generation]) for run in chosen]


def past_run(view: LedgerView, opened: OpenedRun) -> PastRun | Forgotten:
    """Return one run; `view` has its plan, its outcome and its receipts.

    The ledger may have deleted its record since the caller found it: then only what is left of it is returned.
    """
    lane, run, generation = opened.record.lane, opened.record.run, opened.generation
    of_name = list(receipts(view, lane=lane, run=run))
    done = [one for one in of_name if one.generation == generation]
    if not is_remembered(view, opened) and sealed_plan(view, lane, run, generation) is None:
        return _forgotten(view, lane, run, done)
    earlier = _forgotten(view, lane, run, of_name, before=generation)
    return replace(_past_run(view, opened, done), earlier=earlier if earlier.receipts else None)


def named_run(view: LedgerView, lane: str, run: str) -> PastRun | Forgotten | None:
    """Return the run of a name, or what is left of it; None when `view` has neither a record nor a receipt of it."""
    opened = opened_run(view, lane, run)
    if opened is not None:
        return past_run(view, opened)
    found = _forgotten(view, lane, run, receipts(view, lane=lane, run=run))
    return found if found.receipts else None


def _forgotten(
    view: LedgerView, lane: str, run: str, written: Iterable[Receipt], before: float = math.inf
) -> Forgotten:
    """Return what is left of a run with these receipts; `before`: only what was written before that generation."""
    kept = sorted(written, key=lambda one: (one.source, one.start))
    units = (last for _, last in sorted(last_units(view, lane).items()) if last.run == run)
    return Forgotten(lane=lane, run=run, receipts=tuple(one for one in (*kept, *units) if one.generation < before))


def _past_run(view: LedgerView, opened: OpenedRun, done: list[Receipt]) -> PastRun:
    lane, run = opened.record.lane, opened.record.run
    found = sealed_plan(view, lane, run, opened.generation)
    followed = superseded_by(view, lane, opened.generation) is not None
    if found is None:
        return PastRun(opened=opened, state=PastState.UNPLANNED, report=None, followed=followed)
    ended = outcome(view, lane, run)
    report = run_report(view, found[0], opened, done)
    under_way = ended is None and bool(report.unfinished) and not followed
    state = PastState.OPEN if under_way else PastState(report.state.value)
    return PastRun(opened=opened, state=state, report=report, followed=followed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The receipt that covers a source offset. `segment` is None when the offset is in a gap.

    A gap holds transaction markers, aborted records and offsets that the source lacks; nothing of it was copied. `void`
    is the gap by which the receipt does not hold for the offset any more, because the lane went back from there later.
    None: the receipt holds.
    """

    receipt: Receipt
    segment: Segment | None
    target_offset: int | None
    void: Gap | None = None


def holders(chosen: Iterable[Receipt], offset: int, gaps: Iterable[Gap] = ()) -> list[Holder]:
    """Return which of the given receipts cover a source offset; at most one per partition and lane is not void."""
    later = tuple(gaps)
    found = []
    for receipt in chosen:
        if not receipt.start <= offset < receipt.end:
            continue
        segment = next((part for part in receipt.segments if part.source_start <= offset < part.source_end), None)
        target = None if segment is None else segment.target_start + offset - segment.source_start
        found.append(
            Holder(receipt=receipt, segment=segment, target_offset=target, void=voided(receipt, offset, later))
        )
    return found


class Held(Protocol):
    """What a receipt shows about offsets; rows of an offset map show the same."""

    @property
    def source(self) -> TopicPartition: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def target_next(self) -> int | None: ...
    @property
    def generation(self) -> int: ...
    @property
    def segments(self) -> tuple[Segment, ...]: ...
    @property
    def target_topic_id(self) -> str: ...
    @property
    def adopted(self) -> str: ...


def voided(receipt: Held, offset: int, gaps: Iterable[Gap]) -> Gap | None:
    """Return the gap by which a receipt does not hold for a source offset any more; None when it holds."""
    voids = ((gap, _void_from(gap, receipt)) for gap in gaps)
    return next((gap for gap, void_from in voids if void_from is not None and void_from <= offset), None)


def holds_until(receipt: Held, gaps: Iterable[Gap]) -> int:
    """Return the source offset up to which a receipt holds: its end, or where the lane went back to later."""
    voids = (_void_from(gap, receipt) for gap in gaps)
    return min([receipt.end, *(void_from for void_from in voids if void_from is not None)])


def _void_from(gap: Gap, receipt: Held) -> int | None:
    """Return from where on the receipt does not hold, because the lane went back after it; None: all of it holds."""
    return gap.void_from if gap.source == receipt.source and receipt.generation < gap.generation else None


def current_segments(chosen: Iterable[Held], gaps: Iterable[Gap]) -> list[Segment]:
    """Return one partition's offset map: the segments of its receipts that still hold, ascending by source offset.

    Segments are cut where a later gap requires it, and no two segments name the same source offset.
    """
    later = tuple(gaps)
    found = []
    for receipt in chosen:
        end = holds_until(receipt, later)
        found += [
            Segment(
                source_start=part.source_start,
                target_start=part.target_start,
                count=min(part.source_end, end) - part.source_start,
            )
            for part in receipt.segments
            if part.source_start < end
        ]
    return sorted(found)


def skipped_at(
    gaps: Iterable[Gap], topic: str, partition: int | None, offset: int, held: Iterable[Holder] = ()
) -> list[Gap]:
    """Return the gaps of a topic (narrowed to a partition) that contain a source offset that no valid receipt holds.

    A skip by hand has no effect when a run was faster. Such a gap is not among them, because a valid receipt holds the
    offset.
    """
    copied = {holder.receipt.source for holder in held if holder.void is None}
    return [
        gap
        for gap in gaps
        if gap.how is Resolution.SKIP
        and gap.source.topic == topic
        and partition in (None, gap.source.partition)
        and gap.start <= offset < gap.end
        and gap.source not in copied
    ]

"""Look things up in the ledger: runs with their states, and the receipt that holds a source offset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ferry.decide.ledger import LedgerView, lane_ends, newest_run, outcome, receipts, sealed_plan
from ferry.decide.report import Report, report_of
from ferry.model import OpenedRun, Receipt, Segment


class PastState(StrEnum):
    """RunState's words, and two for runs that never came to an end."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    OPEN = "open"
    """The newest run; its copy step has not recorded its outcome: it is under way, or was killed."""
    UNPLANNED = "unplanned"
    """It ended before its plan was sealed; nothing was copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run as the ledger remembers it; `report` is None when it has no sealed plan."""

    opened: OpenedRun
    state: PastState
    report: Report | None


def past_runs(view: LedgerView, lane: str, newest: int) -> list[PastRun]:
    """The lane's `newest` runs, oldest first."""
    chosen = sorted((run for run in view.runs if run.record.lane == lane), key=lambda run: run.generation)[-newest:]
    by_generation: dict[int, list[Receipt]] = {run.generation: [] for run in chosen}
    for receipt in receipts(view, lane=lane):
        if receipt.generation in by_generation:
            by_generation[receipt.generation].append(receipt)
    return [_past_run(view, run, by_generation[run.generation]) for run in chosen]


def _past_run(view: LedgerView, opened: OpenedRun, done: list[Receipt]) -> PastRun:
    lane, run = opened.record.lane, opened.record.run
    found = sealed_plan(view, lane, run, opened.generation)
    if found is None:
        return PastRun(opened=opened, state=PastState.UNPLANNED, report=None)
    ended = outcome(view, lane, run)
    report = report_of(found[0], opened.record.started_ms, done, lane_ends(view, lane), ended)
    newest = newest_run(view, lane)
    under_way = ended is None and bool(report.unfinished) and newest == opened
    state = PastState.OPEN if under_way else PastState(report.state.value)
    return PastRun(opened=opened, state=state, report=report)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The receipt that a source offset fell to. `segment` is None when the offset lies in a gap.

    A gap holds transaction markers and records of aborted transactions; nothing of it was copied.
    """

    receipt: Receipt
    segment: Segment | None
    target_offset: int | None


def holders(chosen: Iterable[Receipt], offset: int) -> list[Holder]:
    """Who holds a source offset, of the given receipts; at most one per partition and lane."""
    found = []
    for receipt in chosen:
        if not receipt.start <= offset < receipt.end:
            continue
        segment = next((part for part in receipt.segments if part.source_start <= offset < part.source_end), None)
        target = None if segment is None else segment.target_start + offset - segment.source_start
        found.append(Holder(receipt=receipt, segment=segment, target_offset=target))
    return found

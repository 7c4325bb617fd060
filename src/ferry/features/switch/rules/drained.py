"""Lag and rates while a switch copied, over time, from the receipts that its drain left in the ledger.

The receipts are in the ledger even if the process that drained was killed, and for every place that it copied in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferry.features.evidence.rules.figures import Committed, samples_of
from ferry.ledger.draining import is_drain_run
from ferry.ledger.ledger import LedgerView
from ferry.ledger.receipts import receipts
from ferry.ledger.runs import sealed_plan
from ferry.model import OpenedRun, Plan, Receipt
from ferry.model.evidence import Sample

ONE_CHUNK_MS = 50
"""Receipts of one slot that were made within this many ms belong to one chunk."""


def drain_runs(view: LedgerView, lane: str, switch: str) -> list[OpenedRun]:
    """Return the micro-runs with which a switch drained the lane, oldest first, as far as the ledger keeps them."""
    found = [run for run in view.runs if run.record.lane == lane and is_drain_run(switch, run.record.run)]
    return sorted(found, key=lambda run: run.generation)


def drained_samples(view: LedgerView, opened: OpenedRun) -> tuple[Sample, ...]:
    """Return lag and rates while a run copied; empty if it had nothing to copy.

    `view` has its plan and its receipts.
    """
    lane, run = opened.record.lane, opened.record.run
    done = [one for one in receipts(view, lane=lane, run=run) if one.generation == opened.generation]
    found = sealed_plan(view, lane, run, opened.generation)
    offsets = sum(one.end - one.start for one in done) + (0 if found is None else _left(found[0], done))
    return samples_of(opened.record.started_ms, offsets, _chunks(done))


def _chunks(done: Iterable[Receipt]) -> list[Committed]:
    """Group the receipts by chunk."""
    found: list[list[Receipt]] = []
    for receipt in sorted(done, key=lambda one: (one.slot, one.at_ms)):
        last = found[-1][-1] if found else None
        if last is not None and last.slot == receipt.slot and receipt.at_ms - last.at_ms <= ONE_CHUNK_MS:
            found[-1].append(receipt)
        else:
            found.append([receipt])
    return [Committed(at_ms=some[-1].at_ms, receipts=tuple(some)) for some in found]


def _left(plan: Plan, done: Sequence[Receipt]) -> int:
    """Count the offsets of a plan for which its run has no receipt."""
    ends = {receipt.source: receipt.end for receipt in sorted(done, key=lambda one: one.end)}
    return sum(max(0, piece.end - ends.get(piece.source, piece.start)) for piece in plan.kept)

"""How the copying of a switch went: lag and rates over time, from the receipts that its drain left in the ledger.

The ledger has them however often the process that drained has died, and wherever it copied.
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
"""Receipts of one task that were made within this time are those of one chunk."""


def drain_runs(view: LedgerView, lane: str, switch: str) -> list[OpenedRun]:
    """The micro-runs by which a switch has drained the lane, oldest first, as far as the ledger keeps them."""
    found = [run for run in view.runs if run.record.lane == lane and is_drain_run(switch, run.record.run)]
    return sorted(found, key=lambda run: run.generation)


def drained_samples(view: LedgerView, opened: OpenedRun) -> tuple[Sample, ...]:
    """Lag and rates while a run copied; none where it had nothing to copy. `view` has its plan and its receipts."""
    lane, run = opened.record.lane, opened.record.run
    done = [one for one in receipts(view, lane=lane, run=run) if one.generation == opened.generation]
    found = sealed_plan(view, lane, run, opened.generation)
    offsets = sum(one.end - one.start for one in done) + (0 if found is None else _left(found[0], done))
    return samples_of(opened.record.started_ms, offsets, _chunks(done))


def _chunks(done: Iterable[Receipt]) -> list[Committed]:
    """The receipts by chunk."""
    found: list[list[Receipt]] = []
    for receipt in sorted(done, key=lambda one: (one.slot, one.at_ms)):
        last = found[-1][-1] if found else None
        if last is not None and last.slot == receipt.slot and receipt.at_ms - last.at_ms <= ONE_CHUNK_MS:
            found[-1].append(receipt)
        else:
            found.append([receipt])
    return [Committed(at_ms=some[-1].at_ms, receipts=tuple(some)) for some in found]


def _left(plan: Plan, done: Sequence[Receipt]) -> int:
    """Offsets of a plan that its run has no receipts of."""
    ends = {receipt.source: receipt.end for receipt in sorted(done, key=lambda one: one.end)}
    return sum(max(0, piece.end - ends.get(piece.source, piece.start)) for piece in plan.kept)

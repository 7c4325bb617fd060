"""Opening a run: steps 1 to 3 of the protocol, and beginning an attempt at it. The order makes the guarantee true.

1. Append the run record; its ledger offset is the generation.
2. Read the ledger up to it; fence every slot that any run of the lane ever had.
3. Append that they are fenced, and read the ledger up to that record: every earlier writer's receipts and markers lie
   before it, so a leader that answers late cannot hide one. Only now read facts, decide the plan, append it sealed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from ferry.decide.ledger import LedgerView, fold, outlived, slots_to_fence, superseded_by
from ferry.decide.ledger_codec import attempt_record, fenced_record, run_record
from ferry.decide.plan_codec import plan_records
from ferry.errors import Superseded
from ferry.model import Attempt, Fate, OpenedRun, Origin, Plan, RunRecord
from ferry.run.port import FencePort, LedgerPort

KEPT_RUNS = 100
"""Runs whose plans stay in the ledger; receipts stay whatever their run is."""

Decide = Callable[[LedgerView, OpenedRun], Awaitable[Plan]]


async def open_run(port: FencePort, record: RunRecord, decide: Decide) -> Plan:
    """Open a run and seal its plan. `decide` gathers the facts and may change topics; it runs after the fencing.

    Raises Superseded when a newer run opened the lane meanwhile, and what the port raises: an unfenced slot is never
    passed over.
    """
    generation = await port.append([run_record(record)])
    records, end = await port.read(None, generation + 1)
    slots = slots_to_fence(fold(records, end), record.lane)
    await port.fence(slots)
    fenced = await port.append([fenced_record(record.lane, record.run, generation, slots)])
    settled = [entry for entry in records if entry.fate is not Fate.OPEN]
    if len(settled) < len(records):  # the fencing decided some of them
        settled, end = [], 0
    tail, end = await port.read(end or None, fenced + 1)
    view = fold([*settled, *tail], end)
    opened = OpenedRun(record=record, generation=generation)
    refuse_if_superseded(view, opened)
    plan = await decide(view, opened)
    await port.append(plan_records(plan))
    old = outlived(view, record.lane, KEPT_RUNS)
    if old:
        await port.append(old)
    return plan


async def begin_attempt(port: LedgerPort, plan: Plan, origin: Origin) -> Attempt:
    """Begin an execution of the plan's copy step: slots of earlier attempts that see its record stop."""
    started_ms = time.time_ns() // 1_000_000
    number = await port.append([attempt_record(plan.lane, plan.run, plan.generation, started_ms, origin)])
    return Attempt(run=plan.run, generation=plan.generation, number=number, started_ms=started_ms, origin=origin)


def refuse_if_superseded(view: LedgerView, opened: OpenedRun) -> None:
    """Raise Superseded when the lane has a newer run than this one."""
    newer = superseded_by(view, opened.record.lane, opened.generation)
    if newer is not None:
        raise Superseded(
            f"run {opened.record.run} of {opened.record.flow} (lane {opened.record.lane}) is superseded by "
            f"{newer.record.run}; nothing is left to do for it"
        )

"""Opening a run: steps 1 to 3 of the protocol, and beginning an attempt at it. The order makes the guarantee true.

1. Append the run record; its ledger offset is the generation.
2. Read the ledger up to it; fence every slot that any run of the lane ever had.
3. Append that they are fenced, and read the ledger up to that record: every earlier writer's receipts and markers lie
   before it, so a leader that answers late cannot hide one. Only now read facts, decide the plan, append it sealed.

Both reads are needed, for each ends at a record that the step before wrote (ADR 5); each begins where the one before
ended, or at the first record that was undecided then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ferry.clock import wall_ms
from ferry.decide.ledger.ledger import UNREAD, LedgerView, fold_on, resume_at
from ferry.decide.ledger.plan_codec import plan_records
from ferry.decide.ledger.run_codec import attempt_record, fenced_record, run_record
from ferry.decide.ledger.runs import outlived, slots_to_fence, superseded_by
from ferry.errors import Retryable, Superseded
from ferry.model import Attempt, OpenedRun, Origin, Plan, RunRecord
from ferry.run.copy.port import FencePort, LedgerPort

KEPT_RUNS = 100
"""Runs whose plans stay in the ledger; receipts stay whatever their run is."""

Decide = Callable[[LedgerView, OpenedRun], Awaitable[Plan]]


async def open_run(port: FencePort, record: RunRecord, decide: Decide, known: LedgerView = UNREAD) -> Plan:
    """Open a run and seal its plan. `decide` gathers the facts and may change topics; it runs after the fencing.

    `known` is what was read of the ledger before, however late its leader answered: it is read on from there.
    Raises Superseded when a newer run opened the lane meanwhile, Retryable when the ledger was created again, and what
    the port raises: an unfenced slot is never passed over.
    """
    generation = await port.append([run_record(record)])
    if generation < known.end:
        raise Retryable(
            f"the ledger of {record.flow} was created again while run {record.run} was being opened: find out who did "
            "it, then start a new run"
        )
    view = await _read_on(port, known, generation + 1)
    slots = slots_to_fence(view, record.lane)
    await port.fence(slots)
    fenced = await port.append([fenced_record(record.lane, record.run, generation, slots)])
    view = await _read_on(port, view, fenced + 1)
    opened = OpenedRun(record=record, generation=generation)
    refuse_if_superseded(view, opened)
    plan = await decide(view, opened)
    await port.append(plan_records(plan))
    old = outlived(view, record.lane, KEPT_RUNS)
    if old:
        await port.append(old)
    return plan


async def _read_on(port: LedgerPort, view: LedgerView, end: int) -> LedgerView:
    return fold_on(view, *await port.read(resume_at(view) or None, end))


async def begin_attempt(port: LedgerPort, plan: Plan, origin: Origin) -> Attempt:
    """Begin an execution of the plan's copy step: slots of earlier attempts that see its record stop."""
    started_ms = wall_ms()
    number = await port.append([attempt_record(plan.lane, plan.run, plan.generation, started_ms, origin)])
    return Attempt(run=plan.run, generation=plan.generation, number=number, started_ms=started_ms, origin=origin)


def refuse_if_superseded(view: LedgerView, opened: OpenedRun) -> None:
    """Raise Superseded when the lane has a newer run than this one."""
    newer = superseded_by(view, opened.record.lane, opened.generation)
    if newer is not None:
        raise Superseded(
            f"run {opened.record.run} of {opened.record.flow} (lane {opened.record.lane}) is superseded by "
            f"{newer.record.run}, which began while it was being opened: nothing of it was planned, let "
            f"{newer.record.run} finish"
        )

"""The plan that a run continues with: the ledger's or a new one; and what of it must still be copied."""

from __future__ import annotations

from ferry.errors import BadInput, Superseded
from ferry.ledger.ledger import LedgerView
from ferry.ledger.receipts import lane_ends
from ferry.ledger.runs import opened_run, sealed_plan, superseded_by
from ferry.ledger.unit_codec import last_units
from ferry.ledger.units import is_done
from ferry.messages.catalogue import sentence
from ferry.model import OpenedRun, Plan, Slice


def kept_plan(view: LedgerView, lane: str, run: str) -> Plan | None:
    """Return the plan that the ledger has of a run, which every further try keeps; None: the run must be opened.

    Raises Superseded when it was never planned and a newer run owns the lane.
    """
    opened = opened_run(view, lane, run)
    if opened is None:
        return None
    plan = plan_of(view, opened)
    newer = superseded_by(view, lane, opened.generation)
    if plan is None and newer is not None:
        flow = str(opened.record.flow)
        raise Superseded(sentence("superseded.unplanned", run=run, flow=flow, lane=lane, newer=newer.record.run))
    return plan


def resumed_plan(view: LedgerView, lane: str, run: str) -> Plan:
    """Return the plan that the ledger has of a run. Raises BadInput when there is none.

    Raises Superseded when it was never planned and a newer run owns the lane.
    """
    plan = kept_plan(view, lane, run)
    if plan is None:
        raise _unplanned(view, lane, run)
    return plan


def planned_run(view: LedgerView, lane: str, run: str) -> tuple[Plan, OpenedRun]:
    """Return a run's sealed plan and its opening, whichever run owns the lane now.

    Raises BadInput when there is no plan.
    """
    opened = opened_run(view, lane, run)
    plan = plan_of(view, opened) if opened is not None else None
    if opened is None or plan is None:
        raise _unplanned(view, lane, run)
    return plan, opened


def refuse_planned(view: LedgerView, lane: str, run: str) -> None:
    """Raise BadInput when the ledger already has a plan of this run: a new one under its name would hide it."""
    opened = opened_run(view, lane, run)
    if opened is not None and plan_of(view, opened) is not None:
        raise BadInput(f"run {run} exists already: give another id, or --resume {run} to copy what it left")


def _unplanned(view: LedgerView, lane: str, run: str) -> BadInput:
    if opened_run(view, lane, run) is not None:
        return BadInput(
            f"run {run} (lane {lane}) has no plan: it is being planned, or what planned it ended before the plan was "
            "sealed, and its log says why: wait for it, or start a new run"
        )
    return BadInput(
        f"the ledger has no record of run {run} (lane {lane}): its plan never began, or the ledger has let it go "
        f"since; `ferry ledger --run {run}` shows what receipts there are of it"
    )


def plan_of(view: LedgerView, opened: OpenedRun) -> Plan | None:
    """Return the plan that was sealed when the run was opened; None when none was sealed."""
    found = sealed_plan(view, opened.record.lane, opened.record.run, opened.generation)
    return found[0] if found is not None else None


def slices_left(view: LedgerView, plan: Plan) -> list[Slice]:
    """Return the slices of a plan that the ledger does not have up to their ends.

    Raises Superseded when there are such slices and a newer run owns the lane: only that run and later ones may copy
    them.
    """
    ends = lane_ends(view, plan.lane, plan)
    left: list[Slice] = [piece for piece in plan.kept if ends.get(piece.source, -1) < piece.end]
    lasts = last_units(view, plan.lane) if plan.dealt else {}
    left += [unit for unit in plan.dealt if not is_done(unit, lasts.get(unit.target))]
    newer = superseded_by(view, plan.lane, plan.generation)
    if left and newer is not None:
        facts = {"run": plan.run, "flow": str(plan.flow), "newer": newer.record.run}
        raise Superseded(sentence("superseded.unfinished", slices=len(left), **facts))
    return left

"""A skip is a run that copies nothing: opened like every run, so whoever is at work is fenced before it decides.

Its gap is appended when all earlier writers are fenced and their receipts are read, so nobody can still copy what it
passes over but a run that was opened behind it. Such a run has read the gap, or else its record lies before the gap.
Then the skip says so; the gap counts for the run after that one, if the lane still stands where the gap begins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ferry.decide.ledger.codec import gap_record
from ferry.decide.ledger.deployments import admitted
from ferry.decide.ledger.ledger import UNREAD, LedgerView, fold_on, resume_at
from ferry.decide.ledger.runs import superseded_by
from ferry.decide.plan.skipping import Wish, refuse_while_at_work, skip_gap, skip_plan
from ferry.errors import Superseded
from ferry.model import Gap, OpenedRun, Origin, Plan, RunRecord
from ferry.run.copy.port import FencePort
from ferry.run.plan.gather import Positions
from ferry.run.plan.opening import open_run
from ferry.run.plan.options import WHOLE, rules_of
from ferry.run.plan.planner import Planner

DecideGap = Callable[[LedgerView, OpenedRun], Awaitable[Gap]]


async def open_skip(port: FencePort, record: RunRecord, decide: DecideGap, known: LedgerView = UNREAD) -> Plan:
    """Open a run that appends one gap; its sealed plan. Raises as `open_run` and as `decide`."""

    async def work(view: LedgerView, opened: OpenedRun) -> Plan:
        gap = await decide(view, opened)
        end = await port.append([gap_record(record.lane, gap)]) + 1
        newer = superseded_by(
            fold_on(view, *await port.read(resume_at(view) or None, end)), record.lane, opened.generation
        )
        if newer is not None:
            raise Superseded(
                f"run {newer.record.run} of {record.flow} began while {gap.source} was being skipped: the skip counts "
                f"only if the lane still stands at offset {gap.start} when that run has ended; look with ferry plan"
            )
        return skip_plan(record, gap)

    return await open_run(port, record, work, known)


async def preview_skip(planner: Planner, view: LedgerView, wish: Wish) -> Gap:
    """What would be passed now; writes nothing. Raises as `skip_gap`."""
    return skip_gap(
        rules_of(planner.flow, planner.lane, WHOLE), await planner.facts(view, Positions.NONE), wish, "(dry run)", -1
    )


async def skip(planner: Planner, wish: Wish, run: str, origin: Origin, *, interrupt: bool) -> Plan:
    """Pass a place by hand; what stands against it is an error before anything is written.

    With `interrupt` also while a run is at work, which then ends. Raises as `skip_gap` and `open_run`.
    """
    view = await planner.known.view_with_newest(planner.lane, 1)
    if not interrupt:
        refuse_while_at_work(view, planner.lane)
    await preview_skip(planner, view, wish)
    record = admitted(view, planner.record(run, origin), take_over=False)

    async def decide(view: LedgerView, opened: OpenedRun) -> Gap:
        planner.known.learn(view)
        facts = await planner.facts(view, Positions.NONE)
        return skip_gap(rules_of(planner.flow, planner.lane, WHOLE), facts, wish, run, opened.generation)

    return await open_skip(planner.fencing_lane(), record, decide, view)

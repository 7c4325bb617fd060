"""A skip is a run that copies nothing: it is opened like every run, so active writers are fenced before it decides.

Its gap is written in the transaction of its plan, after all earlier writers are fenced and their receipts are read. A
run that is opened after it has read the gap. If it has not, it has fenced the skip's driver, and the gap does not
count.
"""

from __future__ import annotations

from ferry.ledger.codec import gap_record
from ferry.ledger.deployments import admitted
from ferry.ledger.ledger import LedgerView
from ferry.model import Gap, Origin, Plan
from ferry.plan.gather import Positions
from ferry.plan.options import WHOLE, rules_of
from ferry.plan.planner import Planner
from ferry.plan.rules.skipping import SkipRequest, refuse_while_at_work, skip_gap, skip_plan
from ferry.protocol.driver import Driver
from ferry.protocol.opening import open_run


def keep_skip(driver: Driver, gap: Gap) -> Plan:
    """Have the driver write a gap with the plan of the run that passes it, and return that plan."""
    driver.keep([gap_record(driver.opened.record.lane, gap)])
    return skip_plan(driver.opened.record, gap)


async def preview_skip(planner: Planner, view: LedgerView, wish: SkipRequest) -> Gap:
    """Return the gap that a skip would leave now; writes nothing.

    Raises BadInput for a place that the flow does not copy, or that is before the lane's position or beyond the end.
    Raises Refused for a place that may not be skipped now (`ferry.plan.rules.skipping.skip_gap`).
    """
    return skip_gap(
        rules_of(planner.flow, planner.lane, WHOLE), await planner.facts(view, Positions.NONE), wish, "(dry run)", -1
    )


async def skip(planner: Planner, wish: SkipRequest, run: str, origin: Origin, *, interrupt: bool) -> Plan:
    """Pass over offsets by hand; anything that refuses it is an error before anything is written.

    With `interrupt` it also works while a run is active, which then ends; without it that raises Refused. Raises
    BadInput for a place that the flow does not copy, or that is before the lane's position or beyond the end. Raises
    Refused for a place that may not be skipped now (`ferry.plan.rules.skipping.skip_gap`), and Superseded if a newer
    run opened the lane meanwhile.
    """
    view = await planner.ledger_cache.view_with_newest(planner.lane, 1)
    if not interrupt:
        refuse_while_at_work(view, planner.lane)
    await preview_skip(planner, view, wish)
    record = admitted(view, planner.record(run, origin), take_over=False)

    async def decide(driver: Driver) -> Plan:
        planner.ledger_cache.learn(driver.view, driver.read_ms)
        facts = await planner.facts(driver.view, Positions.NONE)
        gap = skip_gap(rules_of(planner.flow, planner.lane, WHOLE), facts, wish, run, driver.opened.generation)
        return keep_skip(driver, gap)

    return (await open_run(planner.driver_port(), record, decide, view)).plan

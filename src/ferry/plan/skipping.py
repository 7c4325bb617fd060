"""A skip is a run that copies nothing: it is opened like every run, so active writers are fenced before it decides.

Its gap is written in the transaction of its plan, after all earlier writers are fenced and their receipts are read. A
run that is opened after it has read the gap. If it has not, it has fenced the skip's driver, and the gap does not
count.
"""

from __future__ import annotations

from ferry.lane.open_lane import OpenLane
from ferry.ledger.codec import gap_record
from ferry.ledger.deployments import admitted
from ferry.ledger.ledger import LedgerView
from ferry.model import Gap, Origin, Plan
from ferry.plan.gather import Positions
from ferry.plan.gather_all import gather_all
from ferry.plan.options import DEFAULT_RUN, rules_of
from ferry.plan.rules.skipping import SkipRequest, refuse_while_at_work, skip_gap, skip_plan
from ferry.protocol.driver import Driver, fence_and_seal


def keep_skip(driver: Driver, gap: Gap) -> Plan:
    """Have the driver write a gap with the plan of the run that passes it, and return that plan."""
    driver.keep([gap_record(driver.opened.record.lane, gap)])
    return skip_plan(driver.opened.record, gap)


async def preview_skip(lane: OpenLane, view: LedgerView, wish: SkipRequest) -> Gap:
    """Return the gap that a skip would leave now; writes nothing.

    Raises BadInput for a place that the flow does not copy, or that is before the lane's position or beyond the end.
    Raises Refused for a place that may not be skipped now (`ferry.plan.rules.skipping.skip_gap`).
    """
    return skip_gap(
        rules_of(lane.flow, lane.name, DEFAULT_RUN), await gather_all(lane, view, Positions.NONE), wish, "(dry run)", -1
    )


async def skip(lane: OpenLane, wish: SkipRequest, run: str, origin: Origin, *, interrupt: bool) -> Plan:
    """Skip offsets by hand; anything that refuses it is an error before anything is written.

    With `interrupt` it also works while a run is active, which then ends; without it that raises Refused. Raises
    BadInput for a place that the flow does not copy, or that is before the lane's position or beyond the end. Raises
    Refused for a place that may not be skipped now (`ferry.plan.rules.skipping.skip_gap`), and Superseded if a newer
    run opened the lane meanwhile.
    """
    view = await lane.cache.view_with_newest(lane.name, 1)
    if not interrupt:
        refuse_while_at_work(view, lane.name)
    await preview_skip(lane, view, wish)
    record = admitted(view, lane.record(run, origin), take_over=False)

    async def decide(driver: Driver) -> Plan:
        lane.cache.learn(driver.view, driver.read_ms)
        facts = await gather_all(lane, driver.view, Positions.NONE)
        gap = skip_gap(rules_of(lane.flow, lane.name, DEFAULT_RUN), facts, wish, run, driver.opened.generation)
        return keep_skip(driver, gap)

    return (await fence_and_seal(lane.driver_port(), record, decide, view)).plan

"""The upkeep of a ledger: a run that has sealed its plan writes a summary, and prunes, where that is due."""

from __future__ import annotations

import logging

from ferry.errors import FerryError
from ferry.lane.open_lane import OpenLane
from ferry.lane.pruning import give_up, sweep, tombstones_of
from ferry.ledger.pruning import unswept
from ferry.ledger.runs import superseded_by
from ferry.ledger.summary import is_due
from ferry.model import Plan
from ferry.protocol.driver import Driver

log = logging.getLogger(__name__)


async def keep_short(lane: OpenLane, driver: Driver, plan: Plan) -> None:
    """Write a summary of the ledger if one is due, and prune it.

    The plan is sealed before, and the run's copy waits for this. The summary is of the ledger as the driver read it,
    up to a record of this run. If summary or pruning fails, the run continues, and the next run does it.
    """
    if lane.cache.last is None:
        return
    view, read_ms = lane.cache.last
    due = is_due(view)
    prunes = lane.flow.ledger.prunes and (due or bool(unswept(view, lane.name)))
    if not due and not prunes:
        return
    try:
        if superseded_by(await lane.cache.view(), lane.name, plan.generation) is not None:
            return  # the newer run does it
        if due:
            await lane.cache.summarise(view, plan.generation, read_ms)
        if prunes:
            await _prune(lane, driver, plan, more=due)
    except FerryError as error:
        log.warning("run %s: summary and pruning of the ledger are left to the next run: %s", plan.run, error)


async def _prune(lane: OpenLane, driver: Driver, plan: Plan, *, more: bool) -> None:
    """Delete some of the ledger records that earlier runs discarded, and with `more` discard others.

    Raises Superseded, and writes nothing, when a newer run owns the lane.
    """
    view = await lane.cache.view()
    most = tombstones_of(len(plan.slices))
    await sweep(lane.ledger, view, lane.name, most, driver.commit)
    if more:
        await give_up(view, lane.name, plan.run, lane.source, lane.target, driver.commit)

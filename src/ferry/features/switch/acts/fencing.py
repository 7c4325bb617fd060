"""A run of a switch that copies nothing.

It fences all writers of a lane, and writes the switch's records for the lane.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Superseded
from ferry.features.switch.acts.engine import StillMine
from ferry.lane.connections import TargetConnection
from ferry.lane.open_lane import driver_port, lane_record
from ferry.ledger.deployments import admitted
from ferry.messages.catalogue import sentence
from ferry.model import Plan
from ferry.model.switch import SwitchState, Verb
from ferry.plan.rules.skipping import idle_plan
from ferry.protocol.driver import Driver, fence_and_seal
from ferry.run.micro_run import local_origin

FENCE_TRIES = 5
FENCE_SECONDS = 0.5
"""Seconds between two attempts to be the lane's newest run."""

Keep = Callable[[Driver], Awaitable[None]]
"""Has the driver write records in the transaction of the run's plan. It is called in each attempt to open the run."""


def run_of(state: SwitchState, what: str) -> str:
    """Return the name of the run with which the step `what` of a switch fences a lane."""
    return f"{state.switch.id}-{what}"


async def keep_nothing(_: Driver) -> None:
    """Keep no record, for a run that only fences."""


async def fence_lane(
    flow: FlowConfig,
    state: SwitchState,
    what: str,
    connections: TargetConnection,
    still_mine: StillMine,
    keep: Keep = keep_nothing,
) -> Plan:
    """Open a run that copies nothing, named after the switch and its step `what`. It fences all writers of the lane.

    If another run begins at the same moment, it tries FENCE_TRIES times. Raises Superseded if the step belongs to
    another process now, or if other runs begin all the time. Raises Refused for a slot that may not be fenced, and for
    a lane of another deployment, which only a failover takes over.
    """
    for _ in range(FENCE_TRIES - 1):
        try:
            return await _fence(flow, state, what, connections, keep)
        except Superseded:
            still_mine()
            await connections.loop.sleep(FENCE_SECONDS)
    return await _fence(flow, state, what, connections, keep)


async def _fence(flow: FlowConfig, state: SwitchState, what: str, connections: TargetConnection, keep: Keep) -> Plan:
    view = await connections.view()
    record = lane_record(flow, flow.lane, run_of(state, what), local_origin())
    record = admitted(view, record, take_over=state.switch.verb is Verb.FAILOVER)

    async def decide(driver: Driver) -> Plan:
        await keep(driver)
        note = sentence("run.of-switch", step=what, verb=state.switch.verb.value, switch=state.switch.id)
        return replace(idle_plan(driver.opened), notes=(note,))

    return (await fence_and_seal(driver_port(flow, flow.lane, connections.ledger), record, decide, view)).plan

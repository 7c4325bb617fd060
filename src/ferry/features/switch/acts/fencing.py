"""A run of a switch: it copies nothing, fences every writer of a lane, and writes what the switch decides for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Superseded
from ferry.features.switch.acts.engine import StillMine
from ferry.lane.connections import TargetConnection
from ferry.lane.opening import driver_port, lane_record
from ferry.ledger.deployments import admitted
from ferry.messages.catalogue import sentence
from ferry.model import Plan
from ferry.model.switch import SwitchState, Verb
from ferry.plan.rules.skipping import idle_plan
from ferry.protocol.driver import Driver
from ferry.protocol.opening import open_run
from ferry.run.micro_run import local_origin

FENCE_TRIES = 5
FENCE_SECONDS = 0.5
"""Between two tries to be the lane's newest run."""

Keep = Callable[[Driver], Awaitable[None]]
"""Has the driver keep records for the transaction of the run's plan. It is called once for each try to open the run."""


async def keep_nothing(_: Driver) -> None:
    """For a run that does nothing but to fence."""


async def fence_lane(
    flow: FlowConfig,
    state: SwitchState,
    what: str,
    connections: TargetConnection,
    still_mine: StillMine,
    keep: Keep = keep_nothing,
) -> Plan:
    """Open a run that copies nothing, named after the switch and its step `what`: who is at work on the lane is fenced.

    A run that begins at the same moment is waited for a few times. Raises Superseded when the step is another
    process's by now, or when runs begin all the time; Refused for a slot that may not be fenced, and for a lane that is
    another deployment's, which only a failover takes over.
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
    record = lane_record(flow, flow.lane, f"{state.switch.id}-{what}", local_origin())
    record = admitted(view, record, take_over=state.switch.verb is Verb.FAILOVER)

    async def decide(driver: Driver) -> Plan:
        await keep(driver)
        note = sentence("run.of-switch", step=what, verb=state.switch.verb.value, switch=state.switch.id)
        return replace(idle_plan(driver.opened), notes=(note,))

    return (await open_run(driver_port(flow, flow.lane, connections.ledger), record, decide, view)).plan

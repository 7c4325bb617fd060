"""Opening a run (steps 1 to 3 of the protocol) and beginning an attempt at it. The guarantee depends on the order.

1. Append the run record; its ledger offset is the generation.
2. Read the ledger up to that record. Fence every slot that any run of the lane ever had, under every name of the flow
   that the lane's runs had. Fence the lane's earlier drivers, too.
3. With the driver writer (`ferry.protocol.driver`): write that they are fenced, and read the ledger up to that record.
   Every earlier writer's records and markers are before it, so a leader that answers late cannot hide one. Only now
   read facts and decide the plan. Write it sealed, together with all else that was decided.

Both reads are needed, because each ends at a record that the step before it wrote (ADR 5). Each begins where the read
before it ended, or at the first record that was undecided then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ferry.errors import Fenced, Retryable
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.run_codec import attempt_record, fenced_record, run_record
from ferry.ledger.runs import expired, flows_to_fence, slots_to_fence
from ferry.model import Attempt, OpenedRun, Origin, Plan, RunRecord
from ferry.protocol.driver import Driver, read_on
from ferry.protocol.port import DriverPort, LedgerPort

KEPT_RUNS = 100
"""Number of runs whose plans stay in the ledger. Receipts stay, whatever their run is."""

OPENINGS = 3
"""Number of times that a run is opened when its driver is fenced though no newer run is there.

A late driver of an earlier run does that.
"""

Decide = Callable[[Driver], Awaitable[Plan]]


class Sealed(NamedTuple):
    """A sealed plan, and the driver that sealed it."""

    plan: Plan
    driver: Driver


async def fence_and_seal(port: DriverPort, record: RunRecord, decide: Decide, known: LedgerView = UNREAD) -> Sealed:
    """Open a run and seal its plan.

    `decide` gathers the facts and may change topics. It runs after the fencing. It runs again, with another driver,
    when a late driver of an earlier run fenced this one. Records that `decide` gives to `Driver.keep` are written in
    the transaction of the plan. `known` is the part of the ledger that was read before; the reading continues from
    there.

    Raises Superseded when a newer run opened the lane meanwhile. Raises Retryable when the ledger was created again.
    Raises what the port raises: an unfenced slot is never passed over.
    """
    for left in reversed(range(OPENINGS)):
        try:
            return await _open(port, record, decide, known)
        except Fenced as error:
            if not left:
                raise Retryable(
                    f"the driver of run {record.run} of {record.flow} (lane {record.lane}) was fenced {OPENINGS} times "
                    f"while no newer run is there ({error}): end the other drivers of the flow, then run again"
                ) from error
    raise AssertionError("the last opening returns or raises")


async def _open(port: DriverPort, record: RunRecord, decide: Decide, known: LedgerView) -> Sealed:
    generation = await port.append([run_record(record)])
    if generation < known.end:
        raise Retryable(
            f"the ledger of {record.flow} was created again while run {record.run} was being opened: find out who did "
            "it, then start a new run"
        )
    view = await read_on(port, known, generation + 1)
    slots, flows = slots_to_fence(view, record.lane), flows_to_fence(view, record.lane)
    await port.fence(slots, flows)
    await port.initialise()
    driver = Driver(port, OpenedRun(record=record, generation=generation), view)
    await driver.commit([fenced_record(record.lane, record.run, generation, slots, flows)])
    plan = await decide(driver)
    own = run_record(record).key
    old = (one for one in expired(driver.view, record.lane, KEPT_RUNS) if one.key != own)
    await driver.seal([*plan_records(plan), *old])
    await driver.settle()
    return Sealed(plan, driver)


async def begin_attempt(port: LedgerPort, plan: Plan, origin: Origin, started_ms: int) -> Attempt:
    """Begin an execution of the plan's copy step at `started_ms` (epoch milliseconds), which is now.

    Slots of earlier attempts stop when they see its record.
    """
    number = await port.append([attempt_record(plan.lane, plan.run, plan.generation, started_ms, origin)])
    return Attempt(run=plan.run, generation=plan.generation, number=number, started_ms=started_ms, origin=origin)

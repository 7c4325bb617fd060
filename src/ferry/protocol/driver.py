"""The driver: it opens a run, and writes all that the run decides. Steps 1 to 3 of the protocol.

1. Append the run record; its ledger offset is the generation.
2. Read the ledger up to that record. Fence every slot that any run of the lane ever had, under every name of the flow
   that the lane's runs had. Fence the lane's earlier drivers, too.
3. With the driver writer: write that they are fenced, and read the ledger up to that record. Every earlier writer's
   records and markers are before it, so a leader that answers late cannot hide one. Only now read facts and decide the
   plan. Write it sealed, together with all else that was decided.

The guarantee depends on the order. Both reads are needed, because each ends at a record that the step before it wrote
(ADR 5). Each begins where the read before it ended, or at the first record that was undecided then.

A lane has one driver writer, in addition to the writers of its slots: `ferry.{flow}.{lane}.driver`. Each commit of it
is one transaction, which a newer run's driver fences:

- Append the records.
- Read the ledger up to them.
- Abandon them if a newer run of the lane is there.
- Else EndTxn(commit).

So each record that counts was committed before a newer run fenced this driver. The newer run has read that record
before it decides (ADR 42).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from ferry.errors import Fenced, FerryError, OutcomeUnknown, Retryable, Superseded
from ferry.ledger.ledger import UNREAD, LedgerView, fold_on, resume_at
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.run_codec import attempt_record, fenced_record, run_record
from ferry.ledger.runs import expired, flows_to_fence, slots_to_fence, superseded_by
from ferry.messages.catalogue import caused, sentence
from ferry.model import Attempt, Fate, OpenedRun, Origin, Plan, Record, RunRecord
from ferry.protocol.port import DriverPort, LedgerPort

log = logging.getLogger(__name__)

MAX_FAILURES = 8
"""Failures in a row after which a commit fails. A slot has the same limit (`ferry.protocol.slot.MAX_FAILURES`)."""

KEPT_RUNS = 100
"""Number of runs whose plans stay in the ledger. Receipts stay, whatever their run is."""

OPENINGS = 3
"""Number of times that a run is opened when its driver is fenced though no newer run is there.

A late driver of an earlier run does that.
"""


async def read_on(
    port: LedgerPort, view: LedgerView, end: int | None = None, own: frozenset[int] = frozenset()
) -> LedgerView:
    """Return the view with the records that were written after it, up to `end` (None: now).

    Records at `own` offsets count already, whatever their fate.
    """
    return fold_on(view, *await port.read(resume_at(view) or None, end), own=own)


class Driver:
    """The driver of one opened run: its view of the ledger, and the only writer of what the run decides."""

    def __init__(self, port: DriverPort, opened: OpenedRun, view: LedgerView) -> None:
        """Start from `view`, which was read after the run's record was made, up to a record of this run.

        `port` is initialised as the lane's driver.
        """
        self.opened = opened
        self.view = view
        """The ledger up to this driver's last commit. Own commits count before their markers are there."""
        self._port = port
        self._own: frozenset[int] = frozenset()
        self._kept: tuple[Record, ...] = ()

    @property
    def read_ms(self) -> int:
        """When the reading of `view` began, at the earliest (epoch milliseconds): the run's record was made before it.

        The view may lack tombstones that were written later, and that compaction took before the view was read up to
        them.
        """
        return self.opened.record.started_ms

    def keep(self, records: Iterable[Record]) -> None:
        """Have records written when the plan is sealed, before the plan's own records."""
        self._kept = (*self._kept, *records)

    async def seal(self, records: Iterable[Record] = ()) -> None:
        """Write the kept records and `records` in one transaction; raises the errors of `commit`."""
        await self.commit((*self._kept, *records))
        self._kept = ()

    async def commit(self, records: Iterable[Record]) -> None:
        """Write `records` in one transaction, without the kept ones, and wait for its outcome.

        Raises Superseded when a newer run opened the lane: then no record of the transaction counts. Raises Fenced when
        this writer was fenced and no newer run is there. Raises Retryable after too many failures, or when the outcome
        cannot be learned.
        """
        written = tuple(records)
        if not written:
            return
        failures = 0
        while not await self._written(written, failures):
            failures += 1
            await self._port.back_off(failures)

    async def _written(self, records: tuple[Record, ...], failures: int) -> bool:
        """Try once. False: nothing was committed, and the caller may try again."""
        try:
            if failures:
                await self.refuse_superseded()
                await self._port.initialise()
            return await self._try(records)
        except Fenced:
            await self.refuse_superseded()
            raise
        except (Retryable, OutcomeUnknown) as error:
            if failures >= MAX_FAILURES:
                await self._port.leave()
                stopped = caused("driver.stopped", error, **_run_facts(self.opened.record), failures=failures)
                raise Retryable(stopped) from error
            log.warning("%s writes to the ledger again (failure %d): %s", self._what, failures + 1, error)
            return False
        except FerryError:  # no reader must wait for the transaction's timeout
            await self._port.leave()
            raise

    async def _try(self, records: tuple[Record, ...]) -> bool:
        own = await self._port.append_in(records)
        view = await read_on(self._port, self.view, max(own) + 1, self._own | own)
        self._refuse_superseded(view)
        try:
            await self._port.commit()
        except OutcomeUnknown:
            await self.refuse_superseded()
            # This is the abort, unless it is committed: the broker answers once the markers are written.
            await self._port.initialise()
            if not await self._is_committed(own):
                return False
        self.view, self._own = view, self._own | own
        return True

    async def _is_committed(self, own: frozenset[int]) -> bool:
        """Return whether own records count, once a marker shows it; one marker decides all of them.

        Raises Retryable when no marker can be read.
        """
        for failures in range(1, MAX_FAILURES + 1):
            found, _ = await self._port.read(min(own), None)
            fates = {record.fate for record in found if record.offset in own} - {Fate.OPEN}
            if fates:
                return Fate.COMMITTED in fates
            await self._port.back_off(failures)
        raise Retryable(f"the ledger does not show whether records at offsets {min(own)} to {max(own)} are committed")

    async def settle(self) -> None:
        """Wait, some seconds at most, until every reader of the ledger sees the committed records."""
        if self._own:
            await self._port.settle(max(self._own))

    async def refuse_superseded(self) -> None:
        """Raise Superseded when a newer run has opened the lane. Call it before an act outside the ledger."""
        self._refuse_superseded(await read_on(self._port, self.view, own=self._own))

    def _refuse_superseded(self, view: LedgerView) -> None:
        newer = superseded_by(view, self.opened.record.lane, self.opened.generation)
        if newer is not None:
            facts = _run_facts(self.opened.record)
            raise Superseded(sentence("superseded.driver", **facts, newer=newer.record.run))

    @property
    def _what(self) -> str:
        record = self.opened.record
        return f"run {record.run} of {record.flow} (lane {record.lane})"


def _run_facts(run: RunRecord) -> dict[str, str]:
    """Return the facts that name a run in a sentence."""
    return {"run": run.run, "flow": str(run.flow), "lane": run.lane}


Decide = Callable[[Driver], Awaitable[Plan]]


class Sealed(NamedTuple):
    """A sealed plan, and the driver that sealed it."""

    plan: Plan
    driver: Driver


async def fence_and_seal(port: DriverPort, record: RunRecord, decide: Decide, view: LedgerView = UNREAD) -> Sealed:
    """Open a run and seal its plan.

    `decide` gathers the facts and may change topics. It runs after the fencing. It runs again, with another driver,
    when a late driver of an earlier run fenced this one. Records that `decide` gives to `Driver.keep` are written in
    the transaction of the plan. `view` is the part of the ledger that was read before; the reading continues from
    there.

    Raises Superseded when a newer run opened the lane meanwhile. Raises Retryable when the ledger was created again.
    Raises what the port raises: an unfenced slot is never skipped.
    """
    for left in reversed(range(OPENINGS)):
        try:
            return await _open(port, record, decide, view)
        except Fenced as error:
            if not left:
                fenced = caused("driver.fenced", error, **_run_facts(record), times=OPENINGS)
                raise Retryable(fenced) from error
    raise AssertionError("the last opening returns or raises")


async def _open(port: DriverPort, record: RunRecord, decide: Decide, view: LedgerView) -> Sealed:
    generation = await port.append([run_record(record)])
    if generation < view.end:
        raise Retryable(
            f"the ledger of {record.flow} was created again while run {record.run} was being opened: find out who did "
            "it, then start a new run"
        )
    view = await read_on(port, view, generation + 1)
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

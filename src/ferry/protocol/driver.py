"""The driver writer writes what a run decides to the ledger, in transactions that a newer run's driver fences.

A lane has one driver writer, in addition to the writers of its slots: `ferry.{flow}.{lane}.driver`. Each commit is one
transaction:

1. Append the records.
2. Read the ledger up to them.
3. Abandon them if a newer run of the lane is there.
4. Else EndTxn(commit).

So each record that counts was committed before a newer run fenced this driver. The newer run has read that record
before it decides (ADR 42).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ferry.errors import Fenced, FerryError, OutcomeUnknown, Retryable, Superseded
from ferry.ledger.ledger import LedgerView, fold_on, resume_at
from ferry.ledger.runs import superseded_by
from ferry.model import Fate, OpenedRun, Record
from ferry.protocol.port import DriverPort, LedgerPort

log = logging.getLogger(__name__)

MAX_FAILURES = 8
"""Failures in a row after which a commit fails. A slot has the same limit (`ferry.protocol.slot.MAX_FAILURES`)."""


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
        """Make one attempt. False: nothing was committed, and the caller may try again."""
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
                raise Retryable(f"{self._what} stopped, failure {failures}: {error}") from error
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
            raise Superseded(
                f"{self._what} is superseded by {newer.record.run}, which began while it was being opened: let "
                f"{newer.record.run} finish"
            )

    @property
    def _what(self) -> str:
        record = self.opened.record
        return f"run {record.run} of {record.flow} (lane {record.lane})"

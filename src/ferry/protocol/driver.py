"""The driver writer: what a run decides enters the ledger in transactions that a newer run's driver fences.

A lane has one, beside the writers of its slots: `ferry.{flow}.{lane}.driver`. Each commit is one transaction: append
the records, read the ledger up to them, give up when a newer run of the lane is there, then EndTxn(commit). So what
counts was committed before a newer run fenced this driver, and that run has read it before it decided (ADR 42).
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
"""Failures in a row after which a commit is given up; as those of a slot."""


async def read_on(
    port: LedgerPort, view: LedgerView, end: int | None = None, own: frozenset[int] = frozenset()
) -> LedgerView:
    """The view with what was written after it, up to `end` (None: now); records of `own` offsets count already."""
    return fold_on(view, *await port.read(resume_at(view) or None, end), own=own)


class Driver:
    """What decides for one opened run: its view of the ledger, and the only writer of what it decides."""

    def __init__(self, port: DriverPort, opened: OpenedRun, view: LedgerView, read_ms: int) -> None:
        """`view` is the ledger up to an own record, read from `read_ms` on (epoch milliseconds); `port` is initialised
        as the lane's driver.
        """
        self.opened = opened
        self.view = view
        """The ledger up to the own record that was committed last; own commits count before their markers are there."""
        self.read_ms = read_ms
        """Since when `view` is read. It may lack tombstones that came later and were dropped before it was read on."""
        self._port = port
        self._own: frozenset[int] = frozenset()
        self._kept: tuple[Record, ...] = ()

    def keep(self, records: Iterable[Record]) -> None:
        """Have records written in the next commit, before its own ones."""
        self._kept = (*self._kept, *records)

    async def commit(self, records: Iterable[Record] = ()) -> None:
        """Write what is kept and `records` in one transaction, and wait for its outcome.

        Raises Superseded when a newer run opened the lane: then nothing of it counts. Raises Fenced when this writer
        was fenced and no newer run is there, Retryable after too many failures, or when the outcome cannot be learned.
        """
        written = (*self._kept, *records)
        if not written:
            return
        failures = 0
        while not await self._written(written, failures):
            failures += 1
            await self._port.back_off(failures)
        self._kept = ()

    async def _written(self, records: tuple[Record, ...], failures: int) -> bool:
        """One try; False: it did not happen, and may be tried again."""
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
                raise Retryable(f"{self._what} gave up, failure {failures}: {error}") from error
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
        """Whether own records count, once a marker tells; they share their fate. Retryable when none can be read."""
        for failures in range(1, MAX_FAILURES + 1):
            found, _ = await self._port.read(min(own), None)
            fates = {record.fate for record in found if record.offset in own} - {Fate.OPEN}
            if fates:
                return Fate.COMMITTED in fates
            await self._port.back_off(failures)
        raise Retryable(f"the ledger does not show whether records at offsets {min(own)} to {max(own)} are committed")

    async def settle(self) -> None:
        """Wait, some seconds at most, until every reader of the ledger sees what was committed."""
        if self._own:
            await self._port.settle(max(self._own))

    async def refuse_superseded(self) -> None:
        """Raise Superseded when a newer run has opened the lane by now: before something that is not written here."""
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

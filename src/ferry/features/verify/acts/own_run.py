"""A run verifies what it has copied: whether that is due, by its receipts or by content, and the record of it."""

from __future__ import annotations

import logging

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.acts.digests import Lying, lying
from ferry.features.verify.acts.survey import Survey
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.rules.by_receipt import affordable
from ferry.ledger.receipts import receipts
from ferry.ledger.runs import opened_run
from ferry.ledger.unit_codec import narrowed_units
from ferry.ledger.verified_codec import due, of_run, run_verified_record
from ferry.model import Receipt, RunVerified, Verified, VerifyMode
from ferry.words import agreeing

log = logging.getLogger(__name__)


class OwnRun(Verifier):
    """The comparison of what one run has copied. Use as a context manager."""

    def __init__(self, flow: FlowConfig, run: str, *, patience_s: float = 60.0) -> None:
        """Compare what `run` has copied; `patience_s` is how many seconds an unreachable cluster is tried."""
        super().__init__(flow, Wanted(run=run), patience_s=patience_s)
        self._run = run

    def due(self) -> VerifyMode:
        """Return how the run is to verify itself; OFF when it is not, or has copied nothing."""

        async def work() -> VerifyMode:
            view = await self._connections.cache.view_with(self._flow.lane, self._run)
            return due(view, self._flow.lane, self._run, self._flow.verification)

        return self._connections.run(work)

    def verify(self, mode: VerifyMode) -> Verified:
        """Compare what the run has copied, in this process; Unreachable when a cluster does not answer any more."""
        found = self.survey()
        return self.sum_up(found, self.by_receipt(found) if mode is VerifyMode.RECEIPT else self.compare(found))

    def by_receipt(self, found: Survey) -> Compared:
        """Compare what is on the target with the run's receipts, as much as is affordable.

        If a digest differs, the records are compared: the target's topic may compress again what it gets.
        """

        async def work() -> list[Lying]:
            view = await self._connections.cache.view_with(self._flow.lane, self._run)
            known = [*found.spans, *found.transformed]
            done: list[Receipt] = [
                *receipts(view, lane=self._flow.lane, run=self._run),
                *narrowed_units(view, self._flow.lane, self._run, None),
            ]
            chosen = affordable(done, known, repartitioned=found.dealt)
            return await lying(self._connections.target, chosen, self._limits)

        read = self._connections.run(work)
        doubted = {one.receipt.target for one in read if not one.is_as_written}
        compared = Compared(
            records=sum(one.records for one in read if one.receipt.target not in doubted),
            bytes=sum(one.bytes for one in read),
        )
        if doubted:
            differ = agreeing(len(doubted), "partition differs", "partitions differ")
            log.warning("%s from the receipts: the records there are compared", differ)
            compared.add(
                self.compare(
                    Survey(
                        spans=[one for one in found.spans if one.target in doubted],
                        transformed=[one for one in found.transformed if one.target in doubted],
                        dealt=[one for one in found.dealt if one.target in doubted],
                    )
                )
            )
        return compared

    def keep(self, mode: VerifyMode, result: Verified) -> RunVerified:
        """Write the result into the ledger, for the report."""

        async def work() -> RunVerified:
            lane, run = self._flow.lane, self._run
            opened = opened_run(await self._connections.cache.view_with(lane, run), lane, run)
            if opened is None:
                raise BadInput(f"the ledger has no run {run} of lane {lane}: `ferry ledger --runs` lists its runs")
            kept = of_run(result, mode, opened.generation, wall_ms())
            await self._connections.ledger.append([run_verified_record(lane, run, kept)])
            return kept

        return self._connections.run(work)


def verify_run(flow: FlowConfig, run: str, *, patience_s: float = 60.0) -> RunVerified | None:
    """Let a run verify itself if that is due, in this process; None when it is not.

    Raises BadInput, and Unreachable when a cluster does not answer.
    """
    with OwnRun(flow, run, patience_s=patience_s) as own:
        mode = own.due()
        return None if mode is VerifyMode.OFF else own.keep(mode, own.verify(mode))

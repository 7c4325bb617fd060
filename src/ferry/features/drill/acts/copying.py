"""Copying in a drill: as in a run, with the time of each chunk for the report's plots."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ferry.clock import wall_ms
from ferry.errors import FerryError
from ferry.features.evidence.rules.figures import Committed
from ferry.model import Plan, Receipt
from ferry.run.local import copy_logged, copy_plan
from ferry.run.micro_run import MicroRuns


def copy_seen(runs: MicroRuns, plan: Plan, stop: Callable[[], bool], chunks: list[Committed]) -> FerryError | None:
    """Copy a plan in processes of this machine until `stop` returns true; add what is committed to `chunks`.

    The log shows meanwhile how far it has come. Return why not all of it was copied, if so.
    """

    def on_receipts(receipts: list[Receipt]) -> None:
        chunks.append(Committed(at_ms=wall_ms(), receipts=tuple(receipts)))

    return copy_plan(runs, plan, partial(copy_logged, stop=stop, progress=on_receipts))

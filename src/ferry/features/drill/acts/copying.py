"""Copying in a drill: as a run does, with a note of when each chunk came, for the report's plots."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ferry.clock import wall_ms
from ferry.errors import FerryError
from ferry.features.evidence.rules.figures import Committed
from ferry.model import Plan, Receipt
from ferry.run.local import copy_all, copy_plan
from ferry.run.micro_run import MicroRuns


def copy_seen(runs: MicroRuns, plan: Plan, stop: Callable[[], bool], chunks: list[Committed]) -> FerryError | None:
    """As `copy_plan`, until `stop` says so; what is committed is added to `chunks`."""

    def told(receipts: list[Receipt]) -> None:
        chunks.append(Committed(at_ms=wall_ms(), receipts=tuple(receipts)))

    return copy_plan(runs, plan, partial(copy_all, stop=stop, progress=told))

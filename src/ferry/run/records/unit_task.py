"""One slot of units in one process: connect, write the rows, hand back. What a Spark task calls."""

from __future__ import annotations

from collections.abc import Callable

from ferry.run.copy.slot import SlotResult, copy_slot
from ferry.run.copy.task import TaskSpec
from ferry.run.records.rows import Rows
from ferry.run.records.unit_slot import UnitSlot


def run_unit_slot(spec: TaskSpec, rows: Rows, stop: Callable[[], bool], result: SlotResult | None = None) -> SlotResult:
    """Write the rows of the slot that `spec` names, in the order of `Rows`; `result` as of `copy_slot`.

    Raises as `copy_slot`, and Unreachable when a cluster does not answer.
    """
    with spec.connections() as connections:

        async def work() -> SlotResult:
            port = UnitSlot(
                rows,
                source=connections.source,
                target=connections.target,
                ledger=connections.ledger,
                ref=spec.ref,
                limits=spec.limits,
                origin=spec.origin,
                began_ms=spec.began_ms,
                stop=stop,
            )
            try:
                return await copy_slot(port, spec.ref, stop, lambda _: None, result)
            finally:
                await port.end()

        return connections.run(work)

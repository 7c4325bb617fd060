"""One slot in one process: connect, copy, hand back. What a Spark task and the command line both call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ferry.config.flow.clients import ConnectionOptions
from ferry.copy.kafka_slot import CopyLimits, KafkaSlot, SlotWiring
from ferry.copy.row_scope import RowScope
from ferry.lane.connections import FlowConnections
from ferry.model import Origin, Receipt
from ferry.protocol.slot import SlotRef, SlotResult, copy_slot


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """All that a process needs to copy any slot of a run; travels pickled, its secrets never in text."""

    ref: SlotRef
    source: ConnectionOptions = field(repr=False)
    target: ConnectionOptions = field(repr=False)
    limits: CopyLimits
    origin: Origin
    began_ms: int
    patience_s: float
    portion: RowScope | None = None
    """What rows are there for, of a slot of rows; None: for all of it."""

    def connections(self) -> FlowConnections:
        """Connections of its own for the slot; a context manager."""
        return FlowConnections(self.ref.flow, self.target, self.source, patience_s=self.patience_s)

    def wiring(self, connections: FlowConnections, stop: Callable[[], bool]) -> SlotWiring:
        """What the slot's writer works with, over these connections."""
        return SlotWiring(
            source=connections.source,
            target=connections.target,
            ledger=connections.ledger,
            ref=self.ref,
            limits=self.limits,
            origin=self.origin,
            began_ms=self.began_ms,
            stop=stop,
            portion=self.portion,
        )


def run_slot(
    spec: TaskSpec,
    stop: Callable[[], bool],
    committed: Callable[[list[Receipt]], None],
    result: SlotResult | None = None,
    writer: Callable[[SlotWiring], KafkaSlot] = KafkaSlot,
) -> SlotResult:
    """Copy the slot that `spec` names; `result` as of `copy_slot`. `writer` is what reads and writes.

    Raises as `copy_slot`, and Unreachable when a cluster does not answer.
    """
    with spec.connections() as connections:

        async def work() -> SlotResult:
            port = writer(spec.wiring(connections, stop))
            try:
                return await copy_slot(port, spec.ref, stop, committed, result)
            finally:
                await port.end()

        return connections.run(work)

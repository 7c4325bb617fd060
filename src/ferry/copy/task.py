"""One slot in one process: connect, copy, return the result. Spark tasks and the command line both call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ferry.config.client_options import ConnectionOptions
from ferry.copy.kafka_slot import CopyLimits, KafkaSlot, SlotWiring, TargetSlot
from ferry.copy.row_scope import RowScope
from ferry.lane.connections import FlowConnections
from ferry.model import Origin, Receipt
from ferry.protocol.slot import SlotProgress, SlotRef, copy_slot
from ferry.registry import imported


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTask:
    """All that a process needs to copy one slot of a run. It is sent pickled; its repr has no connection data."""

    ref: SlotRef
    source: ConnectionOptions = field(repr=False)
    target: ConnectionOptions = field(repr=False)
    limits: CopyLimits
    origin: Origin
    began_ms: int
    patience_s: float
    portion: RowScope | None = None
    """The ranges for which a slot of rows has rows; None: all of its work."""
    port: str = ""
    """The place (`module:name`) of the port that copies the slot; empty: that of the kernel."""

    def connections(self) -> FlowConnections:
        """Return new connections for the slot; a context manager."""
        return FlowConnections(self.ref.flow, self.target, self.source, patience_s=self.patience_s)

    def wiring(self, connections: FlowConnections, stop: Callable[[], bool]) -> SlotWiring:
        """Return what the slot's writer needs, over these connections."""
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
    task: SlotTask,
    stop: Callable[[], bool],
    committed: Callable[[list[Receipt]], None],
    progress: SlotProgress | None = None,
    port_of: Callable[[SlotWiring], TargetSlot] | None = None,
) -> SlotProgress:
    """Copy the slot that `task` names. `port_of` makes its port: what reads and writes; None: the one of `task`.

    A given `progress` is filled even if this raises. Raises Superseded when a newer run or attempt took over; Retryable
    after too many failures in a row, or when the slot was fenced without a successor; Unreachable when a cluster does
    not answer.
    """
    made = port_of or (imported(task.port) if task.port else KafkaSlot)
    with task.connections() as connections:

        async def work() -> SlotProgress:
            port = made(task.wiring(connections, stop))
            try:
                return await copy_slot(port, task.ref, stop, committed, progress)
            finally:
                await port.end()

        return connections.run(work)

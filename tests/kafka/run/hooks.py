"""A slot whose attempt can be held at any step of the protocol while something else happens: a zombie on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferry.copy.kafka_slot import KafkaSlot, SlotWiring, TargetSlot
from ferry.model import Attempt, Plan, Receipt, TopicPartition
from ferry.protocol.slot import SlotProgress, copy_slot
from ferry.run.micro_run import MicroRuns, local_origin

STEPS = ("initialise", "copy_chunk", "send_positions", "append_receipts", "commit")


@dataclass
class Hooks:
    """What happens once before (or after) a step; the step goes on when the action returns."""

    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    after: dict[str, Callable[[], object]] = field(default_factory=dict)

    def fire(self, when: dict[str, Callable[[], object]], step: str) -> None:
        """Run the step's action, the first time only."""
        action = when.pop(step, None)
        if action is not None:
            action()


class Held(TargetSlot):
    """Hooks around the steps of a real slot, before whose class it is a base."""

    hooks: Hooks

    async def initialise(self) -> None:
        self.hooks.fire(self.hooks.before, "initialise")
        await super().initialise()
        self.hooks.fire(self.hooks.after, "initialise")

    async def copy_chunk(self) -> Any:
        self.hooks.fire(self.hooks.before, "copy_chunk")
        parts = await super().copy_chunk()  # type: ignore[safe-super]  # the slot's own
        self.hooks.fire(self.hooks.after, "copy_chunk")
        return parts

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        self.hooks.fire(self.hooks.before, "send_positions")
        await super().send_positions(positions)

    async def append_receipts(self, receipts: Sequence[Receipt]) -> frozenset[int]:
        self.hooks.fire(self.hooks.before, "append_receipts")
        return await super().append_receipts(receipts)

    async def commit(self) -> None:
        self.hooks.fire(self.hooks.before, "commit")
        await super().commit()
        self.hooks.fire(self.hooks.after, "commit")


class HeldSlot(Held, KafkaSlot):
    """A slot of batches with hooks around its steps."""


def copy_held(
    runs: MicroRuns,
    plan: Plan,
    slot: int,
    hooks: Hooks,
    attempt: Attempt | None = None,
    port_of: Callable[[SlotWiring], Held] = HeldSlot,
) -> SlotProgress:
    """Copy one slot in this process with hooks, in an attempt of its own unless one is given; raises as `copy_slot`."""
    spec = runs.slot_task(plan, slot, attempt or runs.begin(plan, local_origin()))

    with spec.connections() as connections:
        held = port_of(spec.wiring(connections, lambda: False))
        held.hooks = hooks
        return connections.run(lambda: copy_slot(held, spec.ref, lambda: False, lambda _: None))

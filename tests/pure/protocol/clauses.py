"""The clauses of the protocol, each to be switched off together with its backup; the product has no such switches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from unittest.mock import patch
from weakref import WeakKeyDictionary

from ferry.errors import Fenced as FencedOff
from ferry.errors import Retryable
from ferry.ledger.codec import decode_key
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.runs import newest_run, sealed_plan
from ferry.model import Fate, Flow, LedgerRecord, OpenedRun, Plan, Receipt, Record, TopicPartition
from ferry.plan.rules import resume_point
from ferry.plan.rules.facts import Facts, SourcePartition
from ferry.protocol import driver, slot
from tests.pure.protocol import ports
from tests.pure.protocol.broker import LEDGER, Fenced, Rejected, Target
from tests.pure.protocol.calls import Call, Task
from tests.pure.protocol.ports import DRIVER, ModelLane, ModelSlot, patiently


def _switched(*patches: AbstractContextManager[object]) -> ExitStack:
    stack = ExitStack()
    for change in patches:
        stack.enter_context(change)
    return stack


def _none_foreign(records: Iterable[LedgerRecord], **_: object) -> str | None:
    return None


def no_look() -> ExitStack:
    """Step 6's look finds nothing. (It is itself the backup of the reads that may be stale.)"""
    return _switched(patch.object(slot, "foreign_record", _none_foreign))


def generation_counted() -> ExitStack:
    """The generation is a counter that each driver reads and raises, so two drivers can have the same; and no look."""

    def superseded_by(view: LedgerView, lane: str, generation: int) -> OpenedRun | None:
        counts = {run.generation: run.record.started_ms for run in view.runs}  # the model's drivers count there
        newest = newest_run(view, lane)
        if newest is None or counts.get(generation, 0) >= newest.record.started_ms:
            return None
        return newest

    return _switched(
        patch.object(slot, "superseded_by", superseded_by),
        patch.object(driver, "superseded_by", superseded_by),
        patch.object(slot, "foreign_record", _none_foreign),
    )


def own_slots_fenced() -> ExitStack:
    """A run fences as many slots as it has itself; and no look."""

    def slots_to_fence(view: LedgerView, lane: str) -> int:
        newest = newest_run(view, lane)
        return newest.record.slots if newest else 0

    return _switched(
        patch.object(driver, "slots_to_fence", slots_to_fence), patch.object(slot, "foreign_record", _none_foreign)
    )


def fenced_slots_forgotten() -> ExitStack:
    """How many slots were fenced before is not kept when a run record is compacted away; and no look."""

    def slots_to_fence(view: LedgerView, lane: str) -> int:
        return max((run.record.slots for run in view.runs), default=0)

    return _switched(
        patch.object(driver, "slots_to_fence", slots_to_fence), patch.object(slot, "foreign_record", _none_foreign)
    )


def slots_dealt_by_attempt() -> ExitStack:
    """Which slices a slot has depends on the attempt; and no look."""

    def dealt(view: LedgerView, lane: str, run: str, generation: int) -> tuple[Plan, int] | None:
        found = sealed_plan(view, lane, run, generation)
        if found is None or Task.running is None:
            return found
        plan, offset = found
        turned = [replace(piece, slot=(piece.slot + Task.running.attempt) % plan.slots) for piece in plan.slices]
        return replace(plan, slices=tuple(turned)), offset

    return _switched(patch.object(slot, "sealed_plan", dealt), patch.object(slot, "foreign_record", _none_foreign))


def position_trusted() -> ExitStack:
    """The position group decides where a plan begins; no position means from the start."""

    def start(facts: Facts, source: TopicPartition, part: SourcePartition, last: Receipt | None) -> int:
        position = facts.lane.positions.get(last.target) if last else None
        return (position.source_next or 0) if position else part.log_start

    return _switched(patch.object(resume_point, "next_offset", start))


def attempts_forgotten() -> ExitStack:
    """A slot does not look whether a newer attempt has begun."""

    def newer_attempt(*_: object) -> None:
        return None

    return _switched(patch.object(slot, "newer_attempt", newer_attempt))


def undecided_ignored() -> ExitStack:
    """A slot does not wait until the receipts that it reads are decided; and no look."""

    def all_decided(records: Iterable[LedgerRecord], end: int) -> LedgerView:
        return replace(fold(records, end), open=())

    return _switched(patch.object(slot, "fold", all_decided), patch.object(slot, "foreign_record", _none_foreign))


def fenced_takes_over() -> ExitStack:
    """A slot that was fenced goes back to step 4, as after any other failure."""
    return _switched(patch.object(ports, "FencedOff", Retryable))


def leaves_unasked() -> ExitStack:
    """A slot that stops ends the open transaction without asking whose it is."""

    def holds(self: Target, name: str, epoch: int) -> bool:
        return True

    return _switched(patch.object(Target, "holds", holds))


def abort_sent() -> ExitStack:
    """EndTxn(abort) ends what went wrong, and the writer goes on with its epoch and sequences."""
    initialise = ModelSlot.initialise

    async def abort(self: ModelSlot) -> None:
        if self.epoch < 0:
            await initialise(self)
            return
        name, epoch = self.name, self.epoch
        try:
            self.epoch = await patiently("abort", lambda: self.target.end_txn(name, epoch, committed=False))
        except Fenced as error:
            raise FencedOff(f"{name} is fenced: abort") from error
        except Rejected:  # there was nothing to abort
            pass
        self._joined.clear()

    return _switched(patch.object(ModelSlot, "initialise", abort))


def read_up_to_stable() -> ExitStack:
    """The ledger is read up to its last stable offset, as a read_committed consumer reads it."""
    read = ports.read_ledger

    async def read_stable(target: Target, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        records, end = await read(target, start, end)
        stable = target.logs[LEDGER].stable_end()
        return [record for record in records if record.offset < stable and record.fate is Fate.COMMITTED], end

    return _switched(patch.object(ports, "read_ledger", read_stable))


def fenced_late() -> ExitStack:
    """Positions and receipts are read first, and only then the older writers are fenced."""
    append, fence = ModelLane.append_in, ModelLane.fence
    waiting: dict[int, int] = {}

    async def fence_later(self: ModelLane, slots: int, flows: Collection[Flow] = ()) -> None:
        waiting[id(self)] = slots

    async def append_fenced(self: ModelLane, records: Sequence[Record]) -> frozenset[int]:
        if any(decode_key(record.key)[0] == "plan" for record in records) and id(self) in waiting:
            await fence(self, waiting.pop(id(self)))
        return await append(self, records)

    return _switched(
        patch.object(ModelLane, "fence", fence_later),
        patch.object(ModelLane, "append_in", append_fenced),
        patch.object(slot, "foreign_record", _none_foreign),
    )


def opened_by_a_stale_read() -> ExitStack:
    """After fencing, a run reads "the end now" instead of up to its own record."""
    read = ModelLane.read

    async def read_now(self: ModelLane, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        last = self.target.logs[LEDGER].entries[end - 1].payload if end else None
        own = isinstance(last, Record) and decode_key(last.key)[0] == "fenced"
        return await read(self, start, None if own else end)

    return _switched(patch.object(ModelLane, "read", read_now))


def driver_writes_plainly() -> ExitStack:
    """What a driver decides is appended outside of transactions; it looks for a newer run afterwards."""

    async def append_plainly(self: ModelLane, records: Sequence[Record]) -> frozenset[int]:
        kinds = [decode_key(record.key)[0] for record in records]
        label = f"append {'plan' if 'plan' in kinds else kinds[0]}"
        last = await Call(label, lambda: self.target.logs[LEDGER].append(records), writes=True)
        return frozenset(range(last + 1 - len(records), last + 1))

    async def commit_nothing(self: ModelLane) -> None:
        await Call("commit", lambda: None)

    return _switched(
        patch.object(ModelLane, "append_in", append_plainly), patch.object(ModelLane, "commit", commit_nothing)
    )


def no_look_of_the_driver() -> ExitStack:
    """A driver does not look for a newer run before it commits."""

    def superseded_by(*_: object) -> None:
        return None

    return _switched(patch.object(driver, "superseded_by", superseded_by))


def driver_unfenced() -> ExitStack:
    """Each driver writes under a name of its own, so no other one fences it."""
    initialise = ModelLane.initialise
    counts: WeakKeyDictionary[Target, int] = WeakKeyDictionary()

    async def initialise_alone(self: ModelLane) -> None:
        counts[self.target] = counts.get(self.target, 0) + 1
        self.name = f"{DRIVER}-{counts[self.target]}"
        await initialise(self)

    return _switched(patch.object(ModelLane, "initialise", initialise_alone))


def driver_unguarded() -> ExitStack:
    """No driver is fenced by another one; and no look of the driver."""
    return _switched(driver_unfenced(), no_look_of_the_driver())

"""The work of one slot: steps 4 to 7 of the protocol, at every try. The guarantee depends on the order.

4. Check that the lane's newest run and its newest attempt are ours; send InitProducerId for the slot; check again.
5. Only then read what an earlier attempt committed, and skip it.
6. Copy a chunk in one transaction: data, then positions, then receipts last. When the receipts are acknowledged, read
   the ledger once more; then commit.
7. After any error, return to step 4. EndTxn(abort) is never sent: the InitProducerId of step 4 is the abort. After
   Fenced, end. A fenced writer never sends InitProducerId again, because that would fence the writer in its place. A
   slot that fails for another reason asks the coordinator whether the open transaction is its own. If so, it aborts it
   by InitProducerId (`SlotPort.leave`), so that no reader waits for the transaction timeout.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ferry.errors import Fenced, FerryError, OutcomeUnknown, Retryable, Superseded, Unreachable
from ferry.ledger.codec import decode_key
from ferry.ledger.ledger import fold
from ferry.ledger.receipt_codec import parsed_receipt, receipt_place
from ferry.ledger.receipts import last_receipts
from ferry.ledger.runs import newer_attempt, sealed_plan, superseded_by
from ferry.ledger.unit_codec import last_units
from ferry.ledger.units import rest_of
from ferry.messages.catalogue import caused, sentence
from ferry.model import Fate, Flow, LedgerRecord, Plan, Receipt, Refusal, Slice, TopicPartition, sentence_of, with_text
from ferry.protocol.drops import Blocked, Drop, Dropped
from ferry.protocol.port import SlotPort

log = logging.getLogger(__name__)

MAX_FAILURES = 8
"""Failures in a row, without a commit in between, after which an attempt fails.

With the back-off between them, that takes longer than a controller takes to replace a dead leader (9 s by default).
"""


MAX_WAITS = 40
"""The limit of failures while a zombie's transaction is undecided.

During these the broker has aborted that transaction (after 60 s by default).
"""


class Undecided(Retryable):
    """Another writer's receipt for one of our partitions is neither committed nor aborted yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRef:
    """The slot, its run, and the number of the attempt at that run; a process receives it in its `SlotTask`."""

    flow: Flow
    lane: str
    run: str
    generation: int
    attempt: int
    slot: int


@dataclass(slots=True, kw_only=True)
class SlotProgress:
    """What one try did. It is filled during the try, and true also when the try raised.

    `refusals` are by source partition. `stopped`: the try was asked to end early. `time_over`: the run's time did not
    suffice.
    """

    receipts: list[Receipt] = field(default_factory=list)
    refusals: dict[TopicPartition, Refusal] = field(default_factory=dict)
    retries: int = 0
    stopped: bool = False
    time_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """The plan, what is left of each slice, and the ledger offset that was read up to, once the slot is ours.

    `todo` is by source partition.
    """

    plan: Plan
    todo: Mapping[TopicPartition, Slice]
    cursor: int


async def copy_slot(
    port: SlotPort,
    ref: SlotRef,
    stop: Callable[[], bool],
    committed: Callable[[list[Receipt]], None],
    progress: SlotProgress | None = None,
) -> SlotProgress:
    """Copy a slot's slices; call `committed` with the receipts of every chunk once it counts.

    A `progress` that the caller passes shows what was done and refused, even when this raises.

    Raises Superseded when a newer run or attempt took over. Raises Retryable after too many failures in a row, or when
    the slot was fenced and no newer attempt took over. Then the caller that began the attempt may have the slot copied
    once more.
    """
    progress = SlotProgress() if progress is None else progress
    try:
        await _copy(port, ref, stop, committed, progress)
    except Fenced as fenced:
        records, end = await port.read(ref.generation, None)
        refuse_if_superseded(records, end, ref)
        raise Retryable(caused("slot.fenced", fenced, slot=ref.slot, run=ref.run)) from fenced
    except FerryError:
        await port.leave()
        raise
    finally:
        progress.refusals.update(port.refusals())
    return progress


async def _copy(
    port: SlotPort,
    ref: SlotRef,
    stop: Callable[[], bool],
    committed: Callable[[list[Receipt]], None],
    progress: SlotProgress,
) -> None:
    """Take over and copy, again after failures, until nothing is left, the time is over or `stop()`."""
    limits: dict[TopicPartition, int] = {}
    failures = counted = 0
    hindrance: Blocked | None = None
    while True:
        try:
            taken = await _take_over(port, ref, limits)
            await _copy_chunks(port, ref, taken, progress, stop, committed)
        except Dropped as dropped:
            _leave_out(dropped.drops, limits, progress)
        except Unreachable as error:
            # The markers that end a transaction wait for the same brokers as its data did.
            why = sentence_of(error)
            if hindrance is not None:
                why = with_text(why, f"{hindrance}; until then its transaction cannot end ({error})")
            raise Unreachable(why) from error
        except (Retryable, OutcomeUnknown) as error:
            hindrance = error if isinstance(error, Blocked) else None
            if stop():
                await port.leave()
                progress.stopped = True
                return
            failures = failures + 1 if len(progress.receipts) == counted else 1
            counted = len(progress.receipts)
            progress.retries += 1
            if failures > MAX_FAILURES and isinstance(error, Blocked):
                _leave_out(error.drops, limits, progress)
                failures = 0
            elif failures > (MAX_WAITS if isinstance(error, Undecided) else MAX_FAILURES):
                stopped = caused("slot.stopped", error, slot=ref.slot, run=ref.run, failures=failures)
                raise Retryable(stopped) from error
            log.warning("slot %d of run %s takes over again (failure %d): %s", ref.slot, ref.run, failures, error)
            await port.back_off(failures)
        else:
            progress.stopped = stop()
            progress.time_over = not progress.stopped and port.time_over(taken.plan)
            return


async def _copy_chunks(
    port: SlotPort,
    ref: SlotRef,
    taken: _Taken,
    progress: SlotProgress,
    stop: Callable[[], bool],
    committed: Callable[[list[Receipt]], None],
) -> None:
    """Run step 6, chunk after chunk, until nothing is left or the time is over."""
    await port.begin(taken.plan, taken.todo)
    cursor = taken.cursor
    # One chunk in any case: a plan that waited, or a clock that is ahead, must not stop it.
    while not stop() and not (progress.receipts and port.time_over(taken.plan)):
        parts = await port.copy_chunk()
        if not parts:
            break
        receipts = [part.receipt() for part in parts]
        await port.send_positions({part.piece.target: part.position() for part in parts})
        own = await port.append_receipts(receipts)
        cursor = await _check_before_commit(port, ref, cursor, own, {part.piece.target: part.start for part in parts})
        await port.commit()
        progress.receipts += receipts
        committed(receipts)


def _leave_out(drops: Iterable[Drop], limits: dict[TopicPartition, int], progress: SlotProgress) -> None:
    for drop in drops:
        limits[drop.piece.source] = drop.offset
        progress.refusals[drop.piece.source] = drop.refusal


async def _take_over(port: SlotPort, ref: SlotRef, limits: Mapping[TopicPartition, int]) -> _Taken:
    """Run steps 4 and 5."""
    records, end = await port.read(ref.generation, None)
    refuse_if_superseded(records, end, ref)
    await port.initialise()
    records, end = await port.read(ref.generation, None)
    refuse_if_superseded(records, end, ref)
    view = fold(records, end)
    found = sealed_plan(view, ref.lane, ref.run, ref.generation)
    if found is None:  # the driver has read it, so a new leader answers late
        raise Retryable(f"the ledger does not (yet) show the sealed plan of run {ref.run}: run its plan step first")
    plan, _ = found
    mine = {piece.target: piece for piece in plan.of_slot(ref.slot)}
    for record in view.open:
        if receipt_place(record, ref.lane) in mine:
            raise Undecided(f"a receipt at ledger offset {record.offset} is still undecided")
    lasts = {**last_receipts(view, ref.lane), **last_units(view, ref.lane)}
    left = [
        rest
        for place, piece in mine.items()
        if (rest := rest_of(piece, lasts.get(place), ref.generation, limits.get(piece.source))) is not None
    ]
    return _Taken(plan=plan, todo={piece.source: piece for piece in left}, cursor=end)


async def _check_before_commit(
    port: SlotPort, ref: SlotRef, cursor: int, own: frozenset[int], starts: Mapping[TopicPartition, int]
) -> int:
    """Run the last read of step 6; return the offset where the next one begins.

    Raises Retryable when another writer's record forbids the commit.
    """
    end = max(own) + 1
    records, _ = await port.read(cursor, end)
    why = foreign_record(records, lane=ref.lane, generation=ref.generation, own_offsets=own, starts=starts)
    if why is not None:
        raise Retryable(f"chunk of slot {ref.slot} abandoned: {why}")
    return end


def foreign_record(
    records: Iterable[LedgerRecord],
    *,
    lane: str,
    generation: int,
    own_offsets: frozenset[int],
    starts: Mapping[TopicPartition, int],
) -> str | None:
    """Return why the chunk must be abandoned, or None: the last check before a commit.

    `records` are those between the plan and the own receipts; `own_offsets` are the ledger offsets of the own receipts.
    `starts` is where this chunk begins per target partition (source offsets). A newer run record forbids the commit. So
    does another receipt that is not aborted and reaches past one of those starts. The sink's twin is
    `ferry.features.sink.rules.batch_state.foreign_record`.
    """
    for record in records:
        if record.fate is Fate.ABORTED or record.offset in own_offsets or record.value is None:
            continue
        key = decode_key(record.key)
        if key[:2] == ["run", lane] and record.offset > generation:
            return f"run {key[2]} opened the lane at ledger offset {record.offset}"
        place = receipt_place(record, lane)
        start = None if place is None else starts.get(place)
        if start is not None and parsed_receipt(record).end > start:
            return f"another receipt of {place} is at ledger offset {record.offset}"
    return None


def refuse_if_superseded(records: list[LedgerRecord], end: int, ref: SlotRef) -> None:
    """Raise Superseded if the ledger, read from the run's generation on, has a newer run or attempt."""
    view = fold(records, end)
    facts = {"run": ref.run, "flow": str(ref.flow), "lane": ref.lane}
    newer = superseded_by(view, ref.lane, ref.generation)
    if newer is not None:
        raise Superseded(sentence("superseded.slot", newer=newer.record.run, **facts))
    later = newer_attempt(view, ref.lane, ref.run, ref.generation, ref.attempt)
    if later is not None:
        host = later.origin.host or "an unknown host"
        if later.number == ref.attempt:
            raise Superseded(sentence("superseded.ended", attempt=ref.attempt, host=host, **facts))
        raise Superseded(sentence("superseded.attempt", attempt=ref.attempt, newer=later.number, host=host, **facts))

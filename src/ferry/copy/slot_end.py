"""How the slots of an attempt ended, in this process, in others or on Spark; and what that means for the attempt."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from operator import attrgetter

from ferry.errors import FerryError, Refused, Retryable, Superseded, Unreachable
from ferry.ledger.run_codec import Outcome
from ferry.messages.catalogue import caused
from ferry.messages.refusals import refused_as
from ferry.model import Plan, Receipt, Refusal, RefusalKind
from ferry.protocol.slot import SlotProgress

TRIES = 2
"""How often a failed slot is started within one attempt, also after the broker timed out its transaction."""

AGAIN = (Retryable, Unreachable)
"""Failures that another try may not meet again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotEnd:
    """How a slot ended, over all its tries; `failure` is why it failed, None when it did not."""

    slot: int
    receipts: tuple[Receipt, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    retries: int = 0
    stopped: bool = False
    time_over: bool = False
    failure: FerryError | None = field(default=None, compare=False)


def end_of(slot: int, progress: SlotProgress, failure: FerryError | None = None) -> SlotEnd:
    """Return the end of a slot's try; `failure` is set when it failed."""
    return SlotEnd(
        slot=slot,
        receipts=tuple(progress.receipts),
        refusals=tuple(progress.refusals.values()),
        retries=progress.retries,
        stopped=progress.stopped,
        time_over=progress.time_over,
        failure=failure,
    )


def joined(before: SlotEnd | None, after: SlotEnd) -> SlotEnd:
    """Return two tries of a slot as one: all that was copied, and how the last one ended.

    A try that ended well has met every refusal that still applies. Any other may not have come that far, so what was
    refused before stays.
    """
    if before is None:
        return after
    refusals = after.refusals
    if after.failure is not None or after.stopped or after.time_over:
        named = {_place(refusal) for refusal in refusals}
        refusals = tuple(refusal for refusal in before.refusals if _place(refusal) not in named) + refusals
    return replace(
        after,
        receipts=before.receipts + after.receipts,
        refusals=refusals,
        retries=before.retries + after.retries,
    )


def portions_joined(before: SlotEnd | None, after: SlotEnd) -> SlotEnd:
    """Return two portions of a slot's work as one; the second was begun after the first one's end, and both count."""
    if before is None:
        return after
    named = {_place(refusal) for refusal in after.refusals}
    kept = tuple(refusal for refusal in before.refusals if _place(refusal) not in named)
    return replace(joined(before, after), refusals=kept + after.refusals)


def refusals_of(plan: Plan, ends: Collection[SlotEnd]) -> list[Refusal]:
    """Return what the slots refused, and the slices that failed slots did not finish, so that the report names them."""
    return [refusal for end in ends for refusal in _against(plan, end)]


def outcome_of(plan: Plan, ends: Collection[SlotEnd]) -> Outcome:
    """Return what the slots refused, in order, and which of them ran out of time."""
    return Outcome(
        refusals=tuple(sorted(refusals_of(plan, ends), key=attrgetter("order"))),
        time_over=frozenset(end.slot for end in ends if end.time_over),
    )


def _against(plan: Plan, end: SlotEnd) -> list[Refusal]:
    """Return why slices of one slot were not wholly copied, each for its own reason where one is known."""
    reached = {receipt.target: receipt.end for receipt in end.receipts}
    pieces = plan.of_slot(end.slot)
    finished = {piece.source for piece in pieces if reached.get(piece.target, -1) >= piece.end}
    known = [refusal for refusal in end.refusals if _place(refusal) not in finished]  # a later try may have copied it
    if end.failure is None:
        return known
    named = {_place(refusal) for refusal in known}
    return known + [
        refused_as(caused("slot.failed", end.failure, piece=piece.name), *piece.source, kind=RefusalKind.SLOT_FAILED)
        for piece in pieces
        if piece.source not in finished and piece.source not in named
    ]


def _place(refusal: Refusal) -> tuple[str, int | None]:
    return refusal.topic, refusal.partition


def failure_of(plan: Plan, ends: Collection[SlotEnd]) -> FerryError | None:
    """Return what failed slots mean for the attempt as a whole; None when none failed.

    Superseded when one was superseded; Unreachable when all found a cluster unreachable; Refused when no other try can
    help; Retryable otherwise.
    """
    failures = [end.failure for end in ends if end.failure is not None]
    if not failures:
        return None
    superseded = next((failure for failure in failures if isinstance(failure, Superseded)), None)
    if superseded is not None:
        return superseded
    kind: type[FerryError] = Retryable
    if all(isinstance(failure, Unreachable) for failure in failures):
        kind = Unreachable
    elif not any(isinstance(failure, AGAIN) for failure in failures):
        kind = Refused
    why, failed = failures[0], len(failures)
    return kind(caused("run.tasks-failed", why, run=plan.run, flow=str(plan.flow), failed=failed, tasks=len(ends)))
